// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shardings that are chosen for functions: what constrain states of them, typed and dynamic, in
// dry plans, in compiled functions and in gradients.
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include <tessera/grad.hpp>
#include <tessera/op/compile.hpp>
#include <tessera/tessera.hpp>

#include "support/grid.hpp"
#include "support/near.hpp"

using namespace tessera;
using support::near;

namespace {
template <class... D> using Real = ShardedTensor<double, Grid, P<D...>>;

std::mutex mutex;

template <class F> void on_meshes(F f) {
  for (const MeshSizes<Grid> size : {sizes<Grid>(1, 1), sizes<Grid>(2, 2), sizes<Grid>(3, 2)})
    run_loopback(size.shape.processes(),
                 [&](std::shared_ptr<Transport> world) { f(make_mesh<Grid>(world, size)); });
}

struct Placed {
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i, double x) const {
    return x * static_cast<double>(7 * i[0] + i[1]);
  }
};

/// A block whose middle tensor a caller may pin.
template <class S> struct Block {
  Real<data, _> operator()(const Real<data, _>& x, const Real<_, _>& in,
                           const Real<_, _>& out) const {
    const auto h = tanh(einsum<"bi,ih->bh">(x, in));
    const auto pinned = constrain<S>(h);
    return einsum<"bh,ho->bo">(pinned, out);
  }
};
template <class S> Program plan_block(int batch, int wide) {
  return plan(Block<S>{})(like<Real<data, _>>(batch, 64), like<Real<_, _>>(64, wide),
                          like<Real<_, _>>(wide, 64), sizes<Grid>(2, 4));
}
/// Returns the number of the tensor that tanh makes.
int middle_of(const Program& program) {
  for (const ProgramEntry& e : program.entries())
    if (e.label == "Tanh") return e.result;
  return -1;
}
Sharding chosen_middle(const Program& program, const ChooseOptions& options = {}) {
  const Choice choice = choose(program, {}, options);
  for (const ProgramEntry& e : choice.program.entries())
    if (e.label == "Tanh")
      CHECK(choice.program.tensor(e.result).desc.sharding ==
            choice.chosen[static_cast<std::size_t>(middle_of(program))]);
  return choice.chosen[static_cast<std::size_t>(middle_of(program))];
}
}  // namespace

TEST_CASE("what constrain names is kept, and what it leaves open is chosen") {
  for (const int batch : {8, 512}) {
    CHECK(chosen_middle(plan_block<P<_, _>>(batch, 512)) == Sharding{{}, {}});
    CHECK(chosen_middle(plan_block<P<_, data>>(batch, 512)) == Sharding{{}, {0}});
    CHECK(chosen_middle(plan_block<P<Axes<model, data>, _>>(batch, 512)) == Sharding{{1, 0}, {}});
    CHECK(chosen_middle(plan_block<P<Open, model>>(batch, 512))[1] == AxisList{1});
    CHECK(chosen_middle(plan_block<P<model, Open>>(batch, 512))[0] == AxisList{1});
    const Sharding free = chosen_middle(plan_block<P<Open, Open>>(batch, 512));
    CHECK(chosen_middle(plan(Block<P<Open, Open>>{})(
              like<Real<data, _>>(batch, 64), like<Real<_, _>>(64, 512), like<Real<_, _>>(512, 64),
              sizes<Grid>(2, 4))) == free);
  }
}

TEST_CASE("a tensor that is pinned by its number lies there") {
  const Program program = plan_block<P<Open, Open>>(64, 512);
  const int t = middle_of(program);
  const Cost least = choose(program).cost;
  for (const Sharding& s : {Sharding{{}, {}}, Sharding{{0}, {1}}, Sharding{{1}, {0}},
                            Sharding{{}, {0, 1}}, Sharding{{0, 1}, {}}}) {
    ChooseOptions options;
    options.pins.push_back({t, s});
    const Choice choice = choose(program, {}, options);
    CHECK(choice.chosen[static_cast<std::size_t>(t)] == s);
    CHECK(choice.cost >= least);
  }
}

TEST_CASE("a pin that a tensor cannot keep is an error that names both") {
  const auto fails = [](const Program& program, const char* with,
                        const ChooseOptions& options = {}) {
    std::string text;
    try {
      (void)choose(program, {}, options);
    } catch (const ShardingError& error) {
      text = error.what();
    }
    CAPTURE(text);
    CHECK(text.find(with) != std::string::npos);
  };
  const auto sums = [](const auto& pin) {
    return plan([&](const Real<data, _>& x) { return pin(x); })(like<Real<data, _>>(8, 6),
                                                                sizes<Grid>(2, 2));
  };
  fails(sums([](const auto& x) { return exp(constrain<P<_, Open>>(x)); }),
        "an argument of 8x6 is pinned to P<_,Open>, and lies P<data,_>");
  fails(sums([](const auto& x) { return constrain<P<Open, model>>(exp(x)); }),
        "returns or keeps it");
  fails(sums([](const auto& x) {
          const auto y = exp(x);
          return tanh(constrain<P<_, Open>>(constrain<P<model, Open>>(y)));
        }),
        "is pinned to P<model,Open> and to P<_,Open>, which no sharding keeps");
  ChooseOptions open;
  open.open_arguments = open.open_results = true;
  const Choice choice =
      choose(sums([](const auto& x) { return exp(constrain<P<_, model>>(x)); }), {}, open);
  CHECK(choice.chosen[0] == Sharding{{}, {1}});
  CHECK_THROWS_AS(sums([](const auto& x) { return constrain(DynamicTensor(x), {{0}}); }),
                  ShardingError);
  CHECK_THROWS_AS(sums([](const auto& x) {
                    return constrain(DynamicTensor(x), {{0}, {0}});
                  }),
                  ShardingError);
  CHECK_THROWS_AS(sums([](const auto& x) {
                    return constrain(DynamicTensor(x), {{7}, Open{}});
                  }),
                  ShardingError);
}

TEST_CASE("sums that stay unfinished from one operator to the next may stay so") {
  const auto squares = [](const auto& x, const auto& y, const auto& z) {
    using Open = P<Unreduced<Sum, data>>;
    const auto two = sum<"ij->", Open>(x * x) + sum<"ij->", Open>(y * y);
    return finish(two + sum<"ij->", Open>(z * z));
  };
  const auto x = like<Real<data, _>>(64, 32);
  const Program program = plan(squares)(x, x, x, sizes<Grid>(2, 4));
  const Choice choice = choose(program);
  CHECK(choice.solution.found());
  CHECK(choice.program.count(all_reduce) == 1);
}

TEST_CASE("a function of the index has the index of its place, wherever a choice puts it") {
  on_meshes([](const ProcessMesh<Grid>& mesh) {
    const auto x = random_normal<Real<data, _>>(mesh, {7, 10}, 1);
    const auto w = random_normal<Real<_, _>>(mesh, {10, 6}, 2);
    const auto f = [](const auto& a, const auto& b) {
      const auto placed = constrain<P<_, Axes<model, data>>>(map_with_index(Placed{}, exp(a)));
      return finish(einsum<"bi,ih->bh">(placed + a, b));
    };
    const auto g = [](const auto& a, const auto& b) {
      const auto kept = constrain<P<_, model>>(tril(constrain<P<_, data>>(a * a), 1));
      const auto y = einsum<"bi,ih->bh">(kept, b);
      return sum(y * y);
    };
    auto forward = compile(f, {.choose = ChooseOptions{}});
    auto back = compile([&](const auto& a, const auto& b) { return value_and_grad<0, 1>(g)(a, b); },
                        {.choose = ChooseOptions{}});
    bool right = near(f(x, w), forward(x, w));
    const auto plain = value_and_grad<0, 1>(g)(x, w), chosen = back(x, w);
    right = right && near(plain.value, chosen.value);
    for_each_tensor([&](const auto& one, const auto& other) { right = right && near(one, other); },
                    plain.gradient, chosen.gradient);
    const std::lock_guard lock(mutex);
    CHECK(right);
  });
}

TEST_CASE("compiled functions keep pins, and compute what they compute alone") {
  on_meshes([](const ProcessMesh<Grid>& mesh) {
    const auto x = random_normal<Real<data, _>>(mesh, {7, 6}, 1);
    const auto in = random_normal<Real<_, _>>(mesh, {6, 10}, 2);
    const auto out = random_normal<Real<_, _>>(mesh, {10, 6}, 3);
    bool pins = true;
    const auto step = [&](const auto& a, const auto& b, const auto& c) {
      const DynamicTensor h = tanh(einsum("bi,ih->bh", DynamicTensor(a), DynamicTensor(b)));
      if (pins) (void)constrain(h, {Open{}, {1, 0}});
      return einsum("bh,ho->bo", h, DynamicTensor(c));
    };
    const DynamicTensor expected = step(x, in, out);
    auto compiled = compile(step, {.choose = ChooseOptions{}});
    bool right = near(compiled(x, in, out), expected);
    const auto middle = [&] {
      const Program& listed = compiled.listed();
      return compiled.choice().chosen[static_cast<std::size_t>(middle_of(listed))];
    };
    const OpenSharding wanted{Open{}, {1, 0}};
    right = right && wanted.allows(middle(), mesh.core()->shape());
    pins = false;
    right = right && near(compiled(x, in, out), expected) && compiled.structures() == 2;
    pins = true;
    right = right && near(compiled(x, in, out), expected) && compiled.structures() == 2 &&
            wanted.allows(middle(), mesh.core()->shape());

    const auto loss = [](const auto& a, const auto& b, const auto& c) {
      const auto h = constrain<P<_, Axes<data, model>>>(tanh(einsum<"bi,ih->bh">(a, b)));
      const auto y = einsum<"bh,ho->bo">(h, c);
      return sum(y * y);
    };
    const auto plain = value_and_grad<0, 1, 2>(loss)(x, in, out);
    auto gradients = compile([&](const auto& a, const auto& b,
                                 const auto& c) { return value_and_grad<0, 1, 2>(loss)(a, b, c); },
                             {.choose = ChooseOptions{}});
    const auto chosen = gradients(x, in, out);
    right = right && allclose(plain.value, chosen.value);
    for_each_tensor([&](const auto& a, const auto& b) { right = right && allclose(a, b); },
                    plain.gradient, chosen.gradient);
    right =
        right &&
        OpenSharding(Sharding{{}, {0, 1}})
            .allows(
                gradients.choice().chosen[static_cast<std::size_t>(middle_of(gradients.listed()))],
                mesh.core()->shape());
    const std::lock_guard lock(mutex);
    CHECK(right);
  });
}
