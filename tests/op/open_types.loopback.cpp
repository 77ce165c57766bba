// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors whose types leave dimensions open: what their types promise, where operators take them,
// and that a choice opens exactly what is open.
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include <tessera/grad.hpp>
#include <tessera/op/compile.hpp>
#include <tessera/run/choose_of.hpp>
#include <tessera/tessera.hpp>

#include "support/grid.hpp"
#include "support/near.hpp"

using namespace tessera;
using support::near, support::error_of;

namespace {
template <class... D> using Real = ShardedTensor<double, Grid, P<D...>>;

std::mutex mutex;

/// Two weights of which nothing is said, or one dimension of each.
template <class In, class Out> struct Weights {
  In in;
  Out out;
  static constexpr auto fields = Fields<&Weights::in, &Weights::out>{};
};
using AllOpen = Weights<Real<Open, Open>, Real<Open, Open>>;
using HalfOpen = Weights<Real<Open, model>, Real<Open, _>>;

template <class X, class W> auto feed(const X& x, const W& w) {
  return einsum<"bh,ho->bo">(tanh(einsum<"bi,ih->bh">(x, w.in)), w.out);
}
template <class X, class W> auto trained(const X& x, const W& w) {
  auto [loss, by] =
      value_and_grad([&](const W& weights) { return mean(square(feed(x, weights))); })(w);
  W next = w;
  for_each_tensor([](auto& one, const auto& gradient) { one = one - 0.25 * gradient; }, next, by);
  return std::pair(loss, next);
}
}  // namespace

TEST_CASE("a result's type is open where it depends on an open entry, and closed elsewhere") {
  const auto mesh = dry_mesh<Grid>(sizes<Grid>(2, 2));
  const auto x = zeros<Real<data, _>>(mesh, 8, 6);
  const Real<Open, Open> w = zeros<Real<_, _>>(mesh, 6, 10);
  const auto h = einsum<"bi,ih->bh">(x, w);
  const auto is = [](const auto& made, auto expected) {
    return std::is_same_v<std::decay_t<decltype(made)>, decltype(expected)>;
  };
  CHECK(is(h, Real<data, Open>()));
  CHECK(h.sharding() == Sharding{{0}, {}});
  CHECK(is(tanh(h), Real<data, Open>()));
  CHECK(is(h + h, Real<data, Open>()));
  CHECK(is(h + zeros<Real<model>>(mesh, 10), Real<data, Open>()));
  CHECK(is(transpose<"ij->ji">(h), Real<Open, data>()));
  CHECK(is(cast<float>(h), ShardedTensor<float, Grid, P<data, Open>>()));
  CHECK(is(sum<"ij->i">(h), Real<data>()));
  CHECK(is(sum<"ij->j">(h), Real<Open>()));
  CHECK(is(mean(h), Real<>()));
  CHECK(is(expand_dims<0>(h), Real<_, data, Open>()));
  CHECK(is(softmax<"ij", 'j'>(h), Real<data, Open>()));
  CHECK(is(reshard<P<data, model>>(h), Real<data, model>()));
  CHECK(is(concatenate<0>(w, w), Real<Open, Open>()));
  CHECK(is(einsum<"bi,ih->bh", P<_, model>>(x, w), Real<_, model>()));
  CHECK(is(einsum<"bi,ih->bh", P<Open, model>>(x, w), Real<Open, model>()));
  CHECK(einsum<"bi,ih->bh", P<Open, data>>(x, w).sharding() == Sharding{{}, {0}});
  CHECK(is(einsum<"bi,ih,ho->bo">(x, w, transpose<"ij->ji">(w)), Real<data, Open>()));
}

TEST_CASE("every typed call takes open tensors, and its result lies as its type promises") {
  const auto mesh = dry_mesh<Grid>(sizes<Grid>(2, 2));
  using Ints = ShardedTensor<std::int64_t, Grid, P<Open, Open>>;
  // The types say nothing, and the tensors lie split in each way: a result that broke a promise
  // would be an error.
  const auto call_all = [&](const Real<Open, Open>& x, const Real<Open>& row,
                            const Real<data, Open>& half) {
    const Ints ids = zeros<ShardedTensor<std::int64_t, Grid, P<data, _>>>(mesh, 8, 6);
    (void)matmul(x, transpose<"ij->ji">(half));
    (void)einsum<"ij,j,ij->i">(x, row, half);
    (void)map([](double a, double b) { return a - b; }, half, row);
    (void)map_with_index<"ij->ij">([](const GlobalIndex&, double a) { return a; }, half);
    (void)where(greater(half, 0.0), half, x);
    (void)max<"ij->j">(half), (void)any<"ij->i">(greater(x, 0.0)), (void)mean<"ij->j">(half);
    (void)variance<"ij->i">(half), (void)logsumexp<"ij->i">(half), (void)norm(half);
    (void)layer_norm(half, row, row), (void)rms_norm(half, row);
    (void)softmax<"ij", 'i'>(half), (void)log_softmax<"ij", 'j'>(half);
    (void)argmax<"ij->i">(half), (void)sort<"ij", 'j'>(half), (void)top_k<"ij", 'j'>(half, 2);
    (void)cumsum<"ij", 'i'>(half), (void)cumprod<"ij", 'j'>(x);
    (void)take<"ij,ab->abj">(half, ids), (void)take_along_axis<"ij", 'i'>(x, ids);
    (void)scatter<Sum, "ij,ij->k">(ids, half, {9}), (void)one_hot<double, "ijk", 'k'>(ids, 5);
    (void)pad(half, {0, 1}, {0, 1}), (void)slice(half, {0, 1}, {8, 5}), (void)roll<1>(half, 2);
    (void)reverse(half), (void)flip<-1>(half), (void)shift<0>(half, 1);
    (void)concatenate<0>(half, x), (void)stack<1>(half, x), (void)squeeze<0>(expand_dims<0>(half));
    (void)broadcast_to<P<_, data, Open>>(half, {3, 8, 6}), (void)reshape<P<Open>>(half, {48});
    (void)tril(half), (void)cast<float>(half), (void)finish(half), (void)replicate(half);
    (void)split<0, model>(half), (void)reshard<P<Open, model>>(x), (void)reshard<P<_, _>>(half);
    (void)dot(row, row);
    (void)dynamic_slice<"ij", 'i'>(half, {3}, {2});
    (void)dynamic_update_slice<"ij", 'j'>(half, slice(half, {0, 0}, {8, 2}), {1});
    (void)reduce_window<Max>(half, {.size = {2, 2}}), (void)finish_together(half, x);
    auto y = half + x;
    y += half;
    y *= 2.0;
  };
  const auto x = zeros<Real<_, _>>(mesh, 8, 6);
  const auto row = zeros<Real<_>>(mesh, 6);
  call_all(x, row, reshard<P<data, _>>(x));
  call_all(reshard<P<model, data>>(x), reshard<P<data>>(row), reshard<P<data, model>>(x));
  call_all(reshard<P<_, Axes<data, model>>>(x), reshard<P<model>>(row), reshard<P<data, _>>(x));
}

TEST_CASE("a tensor turns into one of an open type that agrees, and back where it lies so") {
  const auto mesh = dry_mesh<Grid>(sizes<Grid>(2, 2));
  const Real<data, model> x = zeros<Real<data, model>>(mesh, 8, 6);
  const Real<data, Open> rows = x;
  const Real<Open, Open> any = rows;
  CHECK(any.sharding() == x.sharding());
  static_assert(!std::is_convertible_v<Real<data, model>, Real<_, Open>>);
  static_assert(!std::is_convertible_v<Real<data, Open>, Real<data, model>>);
  CHECK(as<Real<data, model>>(any).sharding() == x.sharding());
  CHECK(as<Real<Open, model>>(any).sharding() == x.sharding());
  CHECK(error_of<ShardingError>([&] { (void)as<Real<_, Open>>(any); }).find("P<_,Open>") !=
        std::string::npos);
  CHECK(error_of<ShardingError>([&] { (void)Real<Open, data>(x.core()); }).find("P<data,model>") !=
        std::string::npos);
}

TEST_CASE("a choice opens what types leave open, and keeps what they state") {
  const auto on = sizes<Grid>(2, 4);
  const auto mesh = dry_mesh<Grid>(on);
  const AllOpen all{zeros<Real<_, _>>(mesh, 64, 512), zeros<Real<_, _>>(mesh, 512, 64)};
  const HalfOpen half{zeros<Real<_, model>>(mesh, 64, 512), zeros<Real<_, _>>(mesh, 512, 64)};
  const auto x = like<Real<data, _>>(256, 64);
  const auto f = [](const auto& a, const auto& w) { return feed(a, w); };
  const Choice free = choose(f)(x, all, on), kept = choose(f)(x, half, on);
  const Choice named = choose(
      [](const DynamicTensor& a, const Weights<DynamicTensor, DynamicTensor>& w) {
        return einsum("bh,ho->bo", tanh(einsum("bi,ih->bh", a, w.in)), w.out);
      },
      {.open_paths = {"1"}, .open_results = true})(
      TensorDesc{DType::f64, {256, 64}, {{0}, {}}},
      Weights<DynamicTensor, DynamicTensor>{all.in, all.out}, on);
  CHECK(free.argument("0") == Sharding{{0}, {}});
  CHECK(free.cost < free.before);
  CHECK(kept.argument("1.in")[1] == AxisList{1});
  CHECK(kept.argument("1.out")[1] == AxisList{});
  CHECK(free.cost <= kept.cost);
  CHECK(named.cost <= free.cost);
  const Choice one = choose([](const auto& a, const auto& w) { return einsum<"bi,ih->bh">(a, w); })(
      like<Real<data, _>>(256, 64), like<Real<Open, _>>(64, 512), on);
  CHECK(one.argument("1")[1] == AxisList{});
}

TEST_CASE("weights that are returned lie as those whose place they take") {
  const auto on = sizes<Grid>(2, 4);
  const auto mesh = dry_mesh<Grid>(on);
  const AllOpen all{zeros<Real<_, _>>(mesh, 64, 512), zeros<Real<_, _>>(mesh, 512, 64)};
  const auto step = [](const auto& a, const auto& w) { return trained(a, w); };
  const Choice choice = choose(step)(like<Real<data, _>>(256, 64), all, on);
  int ties = 0;
  for (const TensorPin& pin : choice.given().pins()) {
    if (pin.like < 0) continue;
    ++ties;
    CHECK(choice.chosen[static_cast<std::size_t>(pin.like)] ==
          choice.chosen[static_cast<std::size_t>(pin.tensor)]);
  }
  CHECK(ties == 2);
  CHECK(choice.argument("1.in") != Sharding{{}, {}});
  CHECK(choice.cost < choice.before);
  CHECK(choice.gap() == 0);
}

TEST_CASE("a reshard to open entries keeps the others, and may end elsewhere in these") {
  const auto on = sizes<Grid>(2, 4);
  const auto moved = [](const auto& a, const auto& w) {
    return einsum<"bh,oh->bo">(reshard<P<Open, model>>(einsum<"bi,ih->bh">(a, w)), w);
  };
  const Choice choice =
      choose(moved)(like<Real<data, _>>(256, 64), like<Real<Open, Open>>(64, 64), on);
  int pinned = 0;
  for (const TensorPin& pin : choice.given().pins()) {
    pinned += pin.to == OpenSharding{Open{}, {1}} ? 1 : 0;
    CHECK(pin.to.allows(choice.chosen[static_cast<std::size_t>(pin.tensor)], on.shape));
  }
  CHECK(pinned == 1);
}

TEST_CASE("a function of open tensors runs as chosen, its arguments born so; alone it is refused") {
  for (const MeshSizes<Grid> size : {sizes<Grid>(2, 2), sizes<Grid>(3, 2)})
    run_loopback(size.shape.processes(), [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(world, size);
      const auto x = random_normal<Real<data, _>>(mesh, {7, 64}, 1);
      const Weights<Real<_, _>, Real<_, _>> whole{random_normal<Real<_, _>>(mesh, {64, 96}, 2),
                                                  random_normal<Real<_, _>>(mesh, {96, 64}, 3)};
      const AllOpen open{whole.in, whole.out};
      const auto step = [](const auto& a, const auto& w) { return trained(a, w); };
      const Choice choice = choose(step)(x, open, mesh);
      const AllOpen born{
          as<Real<Open, Open>>(reshard(DynamicTensor(whole.in), choice.argument("1.in"))),
          as<Real<Open, Open>>(reshard(DynamicTensor(whole.out), choice.argument("1.out")))};
      auto run = compile(step, choice);
      const auto [loss, next] = run(x, born);
      const auto [again, last] = run(x, next);
      const auto [first, expected] = trained(x, whole);
      const auto [second, at_last] = trained(x, expected);
      const std::string refused = error_of<UsageError>([&] { (void)feed(x, born); });
      const std::string plain = error_of<UsageError>([&] { (void)compile(step)(x, born); });
      const bool right = std::abs(value(loss) - value(first)) < 1e-9 &&
                         near(next.in, expected.in) && near(next.out, expected.out) &&
                         std::abs(value(again) - value(second)) < 1e-9 && near(last.in, at_last.in);
      const bool lies =
          next.in.sharding() == born.in.sharding() && next.out.sharding() == born.out.sharding();
      const std::lock_guard lock(mutex);
      CHECK(right);
      CHECK(lies);
      CHECK(refused.find("bi,ih->bh: a tensor whose type has Open entries") != std::string::npos);
      CHECK(refused.find("open_types.loopback.cpp") != std::string::npos);
      CHECK(plain.find("a tensor whose type has Open entries") != std::string::npos);
    });
}
