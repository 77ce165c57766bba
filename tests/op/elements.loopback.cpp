// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: halo
// Every element type through every operator, on every mesh of up to 4 processes (and some of 6 and
// 8), all shardings of small ragged tensors, finished and partial of every kind, against plain
// loops over exact values.
#include <doctest/doctest.h>

#include <cmath>
#include <mutex>
#include <stdexcept>

#include "op/elements.hpp"
#include "support/every_mesh.hpp"
#include "support/grid.hpp"

using namespace tessera;
using namespace support;

namespace {
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;

struct Number {
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i) const {
    return i.linear() % 3 == 0 ? 2 : -1;
  }
};
struct Rarely {
  KOKKOS_FUNCTION bool operator()(const GlobalIndex& i) const { return i[0] == 2 && i[1] == 3; }
};
/// Returns the text of the E that f throws, or what else happened.
template <class E, class F> std::string thrown(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another exception: ") + error.what();
  }
  return "nothing was thrown";
}
bool holds(const std::string& text, const char* part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE("\"" << std::string(part) << "\" is not in: " << text);
  return found;
}
}  // namespace

TEST_CASE("operators on elements of every type equal plain loops") {
  const std::uint64_t seed = seed_for("elements on loopback", 31);
  std::mutex mutex;
  std::vector<std::string> wrong;
  long cases = 0;
  std::vector<MeshShape> shapes = meshes(4, 2);
  for (const MeshShape& more : {MeshShape{3, 2}, MeshShape{2, 2, 2}, MeshShape{7}})
    shapes.push_back(more);
  Random sample(seed);
  for (const MeshShape& shape : shapes) {
    if (!one_in(2, sample)) continue;
    run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
      Random random(seed + static_cast<std::uint64_t>(shape.processes()));
      const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()));
      ElementCases all(mesh, random);
      all.enumerate();
      const std::lock_guard lock(mutex);
      wrong.insert(wrong.end(), all.wrong.begin(), all.wrong.end());
      if (mesh->process() == 0) cases += all.cases;
    });
  }
  MESSAGE(cases << " cases");
  CHECK(cases > 1000);
  for (std::size_t i = 0; i < wrong.size() && i < 5; ++i) MESSAGE(wrong[i]);
  CHECK(wrong.empty());
}

TEST_CASE(
    "products, any and all, typed: finished, scattered, left open, and what acts on them then") {
  for (const MeshShape& shape :
       {MeshShape{1, 1}, MeshShape{2, 2}, MeshShape{3, 2}, MeshShape{1, 5}})
    run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(world, sizes<Grid>(shape[0], shape[1]));
      const auto x = from_function<Tensor<double, data, model>>(mesh, {5, 7}, Number{});
      const auto whole = to_host(x);
      const auto product_of_row = [&](int i) {
        double p = 1;
        for (int j = 0; j < 7; ++j) p *= whole(i, j);
        return p;
      };
      const auto finished = to_host(reduce<Product, "ij->i">(x));
      const auto scattered = to_host(reduce<Product, "ij->i", P<Axes<data, model>>>(x));
      const auto open = reduce<Product, "ij->i", P<data, Unreduced<Product, model>>>(x);
      static_assert(std::is_same_v<std::remove_const_t<decltype(open)>,
                                   Tensor<double, data, Unreduced<Product, model>>>);
      const auto squares = to_host(square(open)), both = to_host(open * open),
                 sizes_of = to_host(abs(open)), inverse = to_host(reciprocal(open));
      const auto quotient = to_host(open / (open * open));
      bool right = true;
      for (int i = 0; i < 5; ++i) {
        const double p = product_of_row(i);
        right = right && finished(i) == p && scattered(i) == p && squares(i) == p * p &&
                both(i) == p * p && sizes_of(i) == std::abs(p) && inverse(i) == 1 / p &&
                quotient(i) == 1 / p;
      }
      const auto rare = from_function<Tensor<bool, data, model>>(mesh, {5, 7}, Rarely{});
      const auto any = reduce<Any, "ij->i", P<data, Unreduced<Any, model>>>(rare);
      const auto none = reduce<All, "ij->i", P<data, Unreduced<All, model>>>(logical_not(rare));
      const auto either = to_host(logical_or(any, any)), each = to_host(logical_and(none, none)),
                 forced = to_host(logical_or(any, true));
      const auto count = value(sum(cast<std::int32_t>(rare)));
      for (int i = 0; i < 5; ++i)
        right = right && either(i) == (i == 2) && each(i) == (i != 2) && forced(i);
      right = right && value(reduce<Any, "ij->">(rare)) && !value(reduce<All, "ij->">(rare)) &&
              count == 1;
      if (!right)
        throw std::runtime_error("process " + std::to_string(mesh.process()) + " has other values");
    });
}

TEST_CASE("operators that elements do not have are refused at run time, with the way out") {
  use_all_elements();
  const auto mesh = make_mesh_core(dry_transport(2), MeshShape{2}, axis_names(1));
  const auto tensor = [&](DType type, const Sharding& s = Sharding{{0}}) {
    return DynamicTensor(TensorCore::make(mesh, {type, {4}, s}));
  };
  const auto open = [](Reduction kind) { return Sharding{{}}.with_partial(AxisSet{0}, kind); };
  const DynamicTensor truth = tensor(DType::boolean), wave = tensor(DType::c64),
                      byte = tensor(DType::u8);
  CHECK(holds(thrown<UsageError>([&] { einsum("i,i->", truth, truth); }),
              "of bool: truth values have no products and sums; cast them"));
  CHECK(holds(thrown<UsageError>([&] { einsum("i->", {truth}, Sharding{}); }),
              "of bool: truth values have no products"));
  CHECK(holds(thrown<UsageError>([&] { reduce<As<Sum, bool>>("i->", truth); }),
              "the sum and the product of truth values are not truth values"));
  CHECK(holds(thrown<UsageError>([&] { reduce<Mean>("i->", truth); }),
              "nor that of truth values a truth value"));
  CHECK(reduce<Sum>("i->", truth).type() == DType::i64);
  CHECK(reduce<Sum>("i->", byte).type() == DType::u64);
  CHECK(holds(thrown<UsageError>([&] { reduce<Max>("i->", truth); }),
              "truth values are reduced by reduce<Any>"));
  CHECK(holds(thrown<UsageError>([&] { reduce<Min>("i->", wave); }),
              "of complex<float>: complex numbers have no largest"));
  CHECK(holds(thrown<UsageError>([&] { reduce<Any>("i->", byte); }),
              "of uint8: numbers are not true or false"));
  CHECK(holds(thrown<UsageError>([&] { reduce<Mean>("i->", byte); }),
              "the mean of integers is not an integer"));
  CHECK(holds(thrown<ShardingError>([&] { tensor(DType::f32, open(Reduction::any)); }),
              "one of these (a tensor of float with P<_,Unreduced<Any,a>>)"));
  CHECK(holds(thrown<ShardingError>([&] { tensor(DType::boolean, open(Reduction::sum)); }),
              "bool Any and All"));
  const DynamicTensor product = tensor(DType::f32, open(Reduction::product)),
                      any = tensor(DType::boolean, open(Reduction::any));
  CHECK(holds(thrown<ShardingError>([&] {
                map_dynamic<float>("i,i->i", fn::Add{}, product.sharding(), product, product);
              }),
              "multiplicative ones on Unreduced<Product>"));
  CHECK(holds(thrown<ShardingError>(
                  [&] { map_dynamic<bool>("i,i->i", fn::LogicalAnd{}, any.sharding(), any, any); }),
              "an unfinished partial value is used as a value"));
  CHECK(holds(thrown<ShardingError>([&] { reduce<Sum>("i->", product); }),
              "partial values of one kind meet a reduction of another"));
  CHECK(map_dynamic<float>("i,i->i", fn::Multiply{}, product.sharding(), product, product)
            .sharding() == product.sharding());
  CHECK(map_dynamic<bool>("i,i->i", fn::LogicalOr{}, any.sharding(), any, any).sharding() ==
        any.sharding());
}
