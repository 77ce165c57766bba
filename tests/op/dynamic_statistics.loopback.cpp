// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: statistics
// sanitized: preset address
// What is made of dynamic tensors, and computed of them in several steps, is what the typed
// functions make and compute.
#include <doctest/doctest.h>

#include <vector>

#include <tessera/tessera.hpp>

namespace {
using namespace tessera;
namespace grid {
struct x : Axis<> {};
struct y : Axis<> {};
}  // namespace grid
using grid::x, grid::y;
using Grid = Mesh<x, y>;
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;

struct Ramp {
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i) const {
    return static_cast<double>(i[0] * 3 + i[1] * i[1] % 5) / 4;
  }
};

template <class F> void on_every_mesh(const F& f) {
  for (const MeshSizes<Grid> size : {sizes<Grid>(1, 1), sizes<Grid>(4, 1), sizes<Grid>(2, 2),
                                     sizes<Grid>(3, 2), sizes<Grid>(1, 5), sizes<Grid>(8, 1)})
    run_loopback(size.shape.processes(), [&](std::shared_ptr<Transport> world) {
      f(make_mesh<Grid>(std::move(world), size));
    });
}
/// The same elements, to the last bit, under the same sharding.
template <class A> void same(const DynamicTensor& d, const A& typed) {
  using T = typename A::value_type;
  CHECK(d.desc() == typed.desc());
  CHECK(gather<T>(d) == gather(typed));
}
template <class T> void statistics(const ProcessMesh<Grid>& mesh) {
  const auto t = random_normal<Tensor<T, x, y>>(mesh, {5, 7}, 3);
  const DynamicTensor d = random_normal<T>(mesh.core(), {5, 7}, Sharding{{0}, {1}}, 3);
  same(d, t);
  same(variance<T>("ij->i", d), variance<"ij->i">(t));
  same(variance<T>("ij->j", d, Sharding{{0}}, 1), variance<"ij->j", P<x>>(t, 1));
  same(standard_deviation<T>("ij->", d, {}, 1), standard_deviation(t, 1));
  same(norm<1, T>("ij->i", d), norm<1, "ij->i">(t));
  same(norm<2, T>("ij->j", d, Sharding{{0, 1}}), norm<2, "ij->j", P<Axes<x, y>>>(t));
  same(norm<infinite_norm, T>("ij->", d), norm<infinite_norm>(t));
  if constexpr (RealElement<T>) {
    same(log_sum_exp<T>("ij->i", d, Sharding{{1}}), log_sum_exp<"ij->i", P<y>>(t));
    same(softmax<T>("ij", 'j', d), softmax<"ij", 'j'>(t));
    same(log_softmax<T>("ij", 'i', d), log_softmax<"ij", 'i'>(t));
  }
}

TEST_CASE("statistics and softmax of dynamic tensors are those of typed ones") {
  on_every_mesh([](const ProcessMesh<Grid>& mesh) {
    statistics<double>(mesh);
    statistics<half>(mesh);
    statistics<complex<float>>(mesh);
  });
}

TEST_CASE("dynamic tensors are made as typed ones are") {
  on_every_mesh([](const ProcessMesh<Grid>& mesh) {
    const Sharding s{{1}, {0}};
    const auto& core = mesh.core();
    same(zeros<std::int8_t>(core, {5, 7}, s), zeros<Tensor<std::int8_t, y, x>>(mesh, 5, 7));
    same(full<float>(core, {5, 7}, s, 2.5f), full<Tensor<float, y, x>>(mesh, {5, 7}, 2.5f));
    same(from_function<float>(core, {5, 7}, s, Ramp{}),
         from_function<Tensor<float, y, x>>(mesh, {5, 7}, Ramp{}));
    same(random_uniform<std::int32_t>(core, {5, 7}, s, 4, -3, 3),
         random_uniform<Tensor<std::int32_t, y, x>>(mesh, {5, 7}, 4, -3, 3));
    const std::vector<float> values(35, 1.5f);
    same(from_host<float>(core, {5, 7}, s, values),
         from_host<Tensor<float, y, x>>(mesh, {5, 7}, values));
    const std::vector<std::uint8_t> bytes{1, 0, 7};
    same(from_host<bool>(core, {3}, Sharding{{0}}, std::span<const std::uint8_t>(bytes)),
         from_host<Tensor<bool, x>>(mesh, {3}, bytes));
    CHECK_THROWS_AS((from_host<float>(core, {5, 6}, s, values)), ShapeError);
    CHECK_THROWS_AS(
        (zeros<float>(core, {5}, Sharding{{}}.with_partial(AxisSet{0}, Reduction::sum))),
        ShardingError);
  });
}

TEST_CASE(
    "a function on elements that the tensor does not have is refused, and so is a letter it does "
    "not have") {
  const auto mesh = dry_mesh<Grid>(2, 2);
  const DynamicTensor d = zeros<float>(mesh.core(), {4, 6}, Sharding{{0}, {1}});
  const auto message = [](const auto& f) -> std::string {
    try {
      f();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto says = [&](const auto& f, std::string_view part) {
    return message(f).find(part) != std::string::npos;
  };
  CHECK(says([&] { (void)variance<double>("ij->i", d); },
             "the tensor is of float and is read as double"));
  CHECK(says([&] { (void)map_dynamic<double>("ij->ij", fn::Exp{}, d.sharding(), d); },
             "operand 1 is of float and the function is called on double"));
  CHECK(says([&] { (void)softmax<float>("ij", 'k', d); }, "softmax: 'k' stands 0 times in \"ij\""));
  CHECK(says([&] { (void)norm<2, float>("ij->i", d, Sharding{{0}}, Contract::nothing()); },
             "the call accepts Only<>"));
  CHECK(message([&] {
          (void)norm<2, float>("ij->i", d, Sharding{{0}},
                               contract_of<Grid, Only<all_reduces<y>>>());
        }).empty());
}
}  // namespace
