// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parts of a mesh: what a process does for a part that it is not in, and tensors that go from part
// to part.
#include <doctest/doctest.h>

#include <tessera/grad/value_and_grad.hpp>
#include <tessera/op/async.hpp>
#include <tessera/op/compile.hpp>

#include "op/parts_case.hpp"
#include "op/texts_of.hpp"
#include "support/grid.hpp"

using namespace tessera;
using namespace support;

namespace {
struct line : Axis<> {};
struct stage : Axis<> {};
using Staged = Mesh<stage, data, model>;
using Part = Without<Staged, stage>;
static_assert(std::is_same_v<Part, Mesh<data, model>>);
static_assert(std::is_same_v<Without<Staged, model, stage>, Mesh<data>>);
static_assert(std::is_same_v<Without<Staged, model, stage, data>, Mesh<alone>>);
static_assert(std::is_same_v<Without<Strict<Staged>, data>, Strict<Mesh<stage, model>>>);
static_assert(MeshPart{{2, 3}, {1, -1}}.members() == std::vector<int>{3, 4, 5});
template <class... D> using Tensor = ShardedTensor<double, Part, P<D...>>;

struct Ramp {
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    return static_cast<double>(10 * i[0] + i[1]);
  }
};
}  // namespace

TEST_CASE("a tensor goes from any part of a mesh to any other, to the whole mesh, and back") {
  const std::uint64_t seed = seed_for("parts of a mesh", 380);
  for (int processes = 1; processes <= 8; ++processes) {
    const auto texts = texts_of(processes, [&](const std::shared_ptr<Transport>& world) {
      for (int round = 0; round < cases_of(2, 40); ++round) {
        Random random(seed + static_cast<std::uint64_t>(100 * processes + round));
        if (const std::string text = parts_case(world, random, 12); !text.empty()) return text;
      }
      return std::string();
    });
    CHECK(quiet(texts));
  }
}

TEST_CASE("two stages, a part each: a process works for its own alone") {
  CHECK(quiet(texts_of(8, [&](const std::shared_ptr<Transport>& world) -> std::string {
    const auto mesh = make_mesh<Staged>(world, 2, 2, 2);
    const auto first = mesh.part<stage>(0), second = mesh.part<stage>(1);
    REQUIRE_THAT(first.core() == mesh.part<stage>(0).core());
    REQUIRE_THAT(first.takes_part() == (world->process() < 4));
    REQUIRE_THAT(second.takes_part() != first.takes_part());
    const auto x = from_function<Tensor<data, _>>(first, {4, 6}, Ramp{});
    const auto w = from_function<Tensor<_, model>>(first, {6, 5}, Ramp{});
    const auto y = einsum<"ij,jk->ik">(x, w);
    const auto sent = reshard<Tensor<_, model>>(y, second);
    const auto v = from_function<Tensor<model, _>>(second, {5, 3}, Ramp{});
    const auto z = einsum<"ij,jk->ik", P<_, _>>(sent, v);
    const bool works = second.takes_part();
    REQUIRE_THAT(first.ledger().total().calls == 0);  // no operator of the first stage communicates
    REQUIRE_THAT((second.ledger().total().calls > 0) == works);
    REQUIRE_THAT(z.core().dry() == !works);
    if (works) {
      const auto host = to_host(z);
      for (Index i = 0; i < 4; ++i)
        for (Index l = 0; l < 3; ++l) {
          double sum = 0;
          for (Index j = 0; j < 6; ++j)
            for (Index k = 0; k < 5; ++k)
              sum += static_cast<double>((10 * i + j) * (10 * j + k) * (10 * k + l));
          REQUIRE_THAT(host(i, l) == sum);
        }
    } else {
      const std::string text = complaint_of([&] { (void)to_host(z); });
      REQUIRE_THAT(text.find("takes no part") != std::string::npos);
    }
    return "";
  })));
}

TEST_CASE("parts of parts, of one process, and of a mesh that has ended") {
  CHECK(quiet(texts_of(4, [&](const std::shared_ptr<Transport>& world) -> std::string {
    auto mesh = make_mesh<Staged>(world, 2, 2, 1);
    const auto corner = mesh.part<stage>(1).part<data>(0);
    REQUIRE_THAT(corner.takes_part() == (world->process() == 2));
    REQUIRE_THAT(mesh.part<stage>(0).part<data>(1).takes_part() == (world->process() == 1));
    const auto one = mesh.part<stage, data, model>(1, 1, 0);
    using Scalar = ShardedTensor<double, Mesh<alone>, P<>>;
    const auto x = full<Scalar>(one, {}, 7.0);
    const auto y = reshard<ShardedTensor<double, Mesh<model>, P<>>>(x, corner);
    if (corner.takes_part()) REQUIRE_THAT(value(y) == 7);
    REQUIRE_THAT(value(reshard<ShardedTensor<double, Staged, P<>>>(y, mesh)) == 7);
    mesh = {};
    const std::string text = complaint_of([&] { (void)reshard<Scalar>(y, one); });
    REQUIRE_THAT(text.find("is a part of a mesh that has ended") != std::string::npos);
    return "";
  })));
}

TEST_CASE("parts that there are not") {
  const auto mesh = dry_mesh<Staged>(2, 2, 2);
  const DynamicMesh dynamic = mesh;
  const auto says = [](const auto& f, const std::string& part) {
    return complaint_of(f).find(part) != std::string::npos;
  };
  CHECK(says([&] { (void)mesh.part<stage>(2); },
             "axis stage has 2 processes, and the part at coordinate 2"));
  CHECK(says([&] { (void)mesh.part<stage>(-1); }, "coordinate -1 is asked for"));
  CHECK(says([&] { (void)dynamic.part({}, {}); }, "no axis is fixed"));
  CHECK(says([&] { (void)dynamic.part({0, 0}, {1, 1}); }, "axis 0 of the mesh"));
  CHECK(says([&] { (void)dynamic.part({3}, {1}); }, "axis 3 of the mesh"));
  CHECK(says([&] { (void)dynamic.part({0}, {1, 1}); }, "1 axes are fixed at 2 coordinates"));
}

TEST_CASE("what a move between parts cannot do yet, it says") {
  CHECK(quiet(texts_of(2, [&](const std::shared_ptr<Transport>& world) -> std::string {
    using Line = Mesh<stage, data>;
    using Here = ShardedTensor<double, Mesh<data>, P<data, _>>;
    const auto mesh = make_mesh<Line>(world, 2, 1);
    const auto first = mesh.part<stage>(0), second = mesh.part<stage>(1);
    const auto x = from_function<Here>(first, {4, 6}, Ramp{});
    const auto says = [](const auto& f, const std::string& part) {
      const std::string text = complaint_of(f);
      return text.find(part) != std::string::npos ? std::string() : "says: " + text;
    };
    const auto move = [&](const Here& t) { return reshard<Here>(t, second); };
    const Here there = compile(move)(x);
    if (second.takes_part()) REQUIRE_THAT(to_host(there)(3, 5) == 35);
    if (auto text = says([&] { (void)async([&] { return move(x); }).wait(); }, "another mesh's");
        !text.empty())
      return text;
    constexpr Contract gathers_alone = contract_of<Mesh<data>, Only<gathers<data>>>();
    return says(
        [&] { (void)reshard(DynamicTensor(x), Sharding::replicated(2), second, gathers_alone); },
        "between parts communicates over the axes of stage=2 x data=1");
  })));
}

TEST_CASE("gradients go through moves between parts, and between meshes") {
  CHECK(quiet(texts_of(8, [&](const std::shared_ptr<Transport>& world) -> std::string {
    const auto mesh = make_mesh<Staged>(world, 2, 2, 2);
    const auto first = mesh.part<stage>(0), second = mesh.part<stage>(1);
    using X = Tensor<data, model>;
    const auto x = from_function<X>(first, {5, 6}, Ramp{});
    const auto w = from_function<Tensor<model, _>>(second, {5, 6}, Ramp{});
    // The loss is x^3 w in two stages; x itself goes back to the first, which uses it too.
    const auto loss = [&](const X& t, const Tensor<model, _>& v) {
      const auto there = reshard<Tensor<model, _>>(t * t, second);
      const auto again = reshard<X>(there * v, first);
      return sum(reshard<ShardedTensor<double, Staged, P<stage, _>>>(again * t, mesh));
    };
    const auto [value, gradients] = value_and_grad<0, 1>(loss)(x, w);
    (void)value;
    if (first.takes_part()) {
      const auto by_x = to_host(std::get<0>(gradients));
      for (Index i = 0; i < 5; ++i)
        for (Index j = 0; j < 6; ++j) {
          const double v = static_cast<double>(10 * i + j);
          REQUIRE_THAT(by_x(i, j) == 3 * v * v * v);
        }
    }
    if (second.takes_part()) {
      const auto by_w = to_host(std::get<1>(gradients));
      for (Index i = 0; i < 5; ++i)
        for (Index j = 0; j < 6; ++j) {
          const double v = static_cast<double>(10 * i + j);
          REQUIRE_THAT(by_w(i, j) == v * v * v);
        }
    }
    using Row = ShardedTensor<double, Mesh<line>, P<_, line>>;
    using Wide = ShardedTensor<double, Staged, P<data, model>>;
    const auto row = make_mesh<Mesh<line>>(world, 8);
    const auto y = from_function<Wide>(mesh, {5, 6}, Ramp{});
    const auto other = [&](const Wide& t) { return sum(reshard<Row>(t * t, row)); };
    const auto by_y = to_host(value_and_grad(other)(y).gradient);
    REQUIRE_THAT(by_y(4, 5) == 90);
    return "";
  })));
}
