// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: halo
// Typed operators take a halo tensor where they take a tensor: each against itself on the tensor.
#include <doctest/doctest.h>

#include <tessera/tessera.hpp>

#include "support/grid.hpp"

using namespace tessera;

namespace {
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;
template <class... D> using Field = Tensor<double, D...>;

struct Ramp {
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i) const {
    return static_cast<double>((i.linear() * 7) % 23) - 9;
  }
};
struct Masked {
  template <class T> KOKKOS_FUNCTION T operator()(const GlobalIndex& i, T x) const {
    return i[0] < i[1] ? x : T{};
  }
};
struct Blend {
  template <class T> KOKKOS_FUNCTION T operator()(T a, T b, T c) const { return a * b + c; }
};

/// Returns x within a halo that holds poison.
template <class A, int... D> HaloTensor<A> within(const A& x) {
  const auto mesh = detail::mesh_like(x);
  const auto u =
      make_halo<A, D...>(mesh, x.extents(), 2, 1, Boundary::constant, typename A::value_type(99));
  u.assign(x);
  return u;
}
template <class R> auto values_of(const R& result) { return to_host(result).values; }
template <class... R> auto values_of(const std::tuple<R...>& results) {
  return std::apply([](const auto&... r) { return std::make_tuple(values_of(r)...); }, results);
}

/// Checks op(x) against op of x within halos along D....
template <int... D, class A, class Op>
void same(const A& x, const Op& op, Where where = Where::here()) {
  INFO(to_string(where));
  const auto u = within<A, D...>(x);
  CHECK(values_of(op(u)) == values_of(op(x)));
  CHECK(values_of(u) == values_of(x));  // and what it owns is as it was
}
template <class Run> void on_meshes(const Run& run) {
  for (const MeshSizes<Grid> size :
       {sizes<Grid>(1, 1), sizes<Grid>(2, 2), sizes<Grid>(3, 2), sizes<Grid>(1, 4)})
    run_loopback(size.shape.processes(),
                 [&](std::shared_ptr<Transport> world) { run(make_mesh<Grid>(world, size)); });
}
}  // namespace

TEST_CASE("functions, reductions and products of halo tensors") {
  on_meshes([](const auto& mesh) {
    const auto x = from_function<Field<data, _, model>>(mesh, {5, 7, 6}, Ramp{});
    const auto w = from_function<Field<model, _>>(mesh, {6, 4}, Ramp{});
    const auto row = from_function<Field<model>>(mesh, {6}, Ramp{});
    same<0, 1, 2>(x, [&](const auto& u) { return u + x; });
    same<0, 1, 2>(x, [&](const auto& u) { return x * u - u / 2.0; });
    same<1>(x, [&](const auto& u) { return map(Blend{}, u, x, row); });
    same<0, 2>(x, [&](const auto& u) { return exp(-abs(u)) + tanh(u) + maximum(u, 0); });
    same<2>(x, [&](const auto& u) { return map_with_index(Masked{}, u); });
    same<0, 1>(x, [&](const auto& u) { return where(less(u, 0), u, x); });
    same<0, 1, 2>(x, [&](const auto& u) { return sum(u); });
    same<0, 1, 2>(x, [&](const auto& u) { return sum<"abc->b">(u); });
    same<0, 2>(x, [&](const auto& u) { return max<"abc->ca">(u); });
    same<0, 2>(x, [&](const auto& u) { return mean<"abc->a">(u); });
    same<0, 2>(x, [&](const auto& u) { return variance<"abc->a">(u) + norm<2, "abc->a">(u); });
    same<0, 2>(x, [&](const auto& u) { return softmax<"abc", 'c'>(u); });
    same<0, 2>(x, [&](const auto& u) { return sum(u, deterministic); });
    same<0, 2>(x, [&](const auto& u) { return argmax<"abc->ac">(u); });
    same<1, 2>(x, [&](const auto& u) { return cumsum<"abc", 'b'>(u); });
    same<1, 2>(x, [&](const auto& u) { return tessera::sort<"abc", 'c'>(u); });
    same<1, 2>(x, [&](const auto& u) { return top_k<"abc", 'b'>(u, 2).values; });
    same<0, 1, 2>(x, [&](const auto& u) { return einsum<"abc,cd->abd">(u, w); });
    same<0>(w, [&](const auto& u) { return einsum<"abc,cd->abd">(x, u); });
    same<0, 1>(x, [&](const auto& u) { return einsum<"abc,abc->">(u, u); });
    same<0, 1>(x,
               [&](const auto& u) { return einsum<"abc,cd,dc->a">(u, w, transpose<"cd->dc">(w)); });
    same<0, 1, 2>(x, [&](const auto& u) { return transpose<"abc->cab">(u); });
    same<0, 1, 2>(x, [&](const auto& u) { return dot(u, u); });
  });
}

TEST_CASE("halo tensors moved, cut and put together") {
  on_meshes([](const auto& mesh) {
    const auto x = from_function<Field<data, model>>(mesh, {9, 6}, Ramp{});
    same<0, 1>(x, [&](const auto& u) { return reshard<P<data, model>>(u); });
    same<0, 1>(x, [&](const auto& u) { return reshard<P<model, _>>(u); });
    same<0, 1>(x, [&](const auto& u) { return replicate(u); });
    same<0, 1>(x,
               [&](const auto& u) { return async([&] { return reshard<P<_, data>>(u); }).wait(); });
    same<0, 1>(x, [&](const auto& u) { return reshard_together<P<_, data>, P<model, _>>(u, x); });
    same<0, 1>(x, [&](const auto& u) { return slice(u, {1, 2}, {8, 6}); });
    same<0, 1>(x, [&](const auto& u) { return pad(u, {1, 0}, {0, 2}, {}, 0.5); });
    same<0, 1>(x, [&](const auto& u) { return roll<0>(u, 2); });
    same<0, 1>(x, [&](const auto& u) { return shift<1>(u, -1); });
    same<0, 1>(x, [&](const auto& u) { return reverse<0, 1>(u); });
    same<0, 1>(x, [&](const auto& u) { return concatenate<0>(u, x, u); });
    same<0, 1>(x, [&](const auto& u) { return stack<0>(u, x); });
    same<0, 1>(x, [&](const auto& u) { return reshape<P<data, _, model>>(u, {9, 3, 2}); });
    same<0, 1>(x, [&](const auto& u) { return update(x, slice<1>(u, {1}, {5}), {0, 1}); });
    same<0, 1>(x, [&](const auto& u) { return dynamic_slice<"ab", 'a'>(u, {2}, {3}); });
    same<0, 1>(x, [&](const auto& u) {
      return dynamic_update_slice<"ab", 'a'>(u, slice<0>(x, {0}, {2}), {3});
    });
    same<0, 1>(x, [&](const auto& u) {
      return take<"vm,bs->bsm">(u, iota<Tensor<std::int32_t, data, _>>(mesh, {4, 2}, 0));
    });
    same<0, 1>(x, [&](const auto& u) { return halo_exchange<0>(u, 1, 1, Boundary::periodic); });
    same<0, 1>(x, [&](const auto& u) { return zeros_like(u) + full_like(u, 2); });
    CHECK(to_root(within<Field<data, model>, 0, 1>(x)).values == to_root(x).values);
    CHECK(allclose(within<Field<data, model>, 0, 1>(x), x));
    CHECK(to_string(within<Field<data, model>, 0, 1>(x).core()) == to_string(x.core()));
  });
}

TEST_CASE("windows over halo tensors") {
  on_meshes([](const auto& mesh) {
    const auto x = from_function<Field<_, data, model, _>>(mesh, {2, 7, 6, 2}, Ramp{});
    const auto k = from_function<Field<_, _, _, _>>(mesh, {3, 3, 2, 3}, Ramp{});
    Convolution around;
    around.low = around.high = {1, 1};
    same<1, 2>(x, [&](const auto& u) { return convolve<nhwc>(u, k, around); });
    same<0, 3>(x, [&](const auto& u) { return convolve<nhwc>(u, k, around); });
    same<0, 1>(k, [&](const auto& u) { return convolve<nhwc>(x, u, around); });
    WindowSettings pool;
    pool.size = {1, 2, 3, 1};
    same<1, 2>(x, [&](const auto& u) { return reduce_window<Sum>(u, pool); });
    same<1, 2>(x, [&](const auto& u) {
      return reduce_window_gradient<Max>(u, reduce_window<Max>(x, pool), pool);
    });
  });
}

TEST_CASE("halo tensors written in place") {
  on_meshes([](const auto& mesh) {
    const auto x = from_function<Field<data, model>>(mesh, {9, 6}, Ramp{});
    const auto row = from_function<Field<model>>(mesh, {6}, Ramp{});
    auto y = x + 1;
    auto u = within<Field<data, model>, 0, 1>(y);
    ((y += x) *= row) -= 3;
    ((u += x) *= row) -= 3;
    axpy(2, u, y);
    axpy(2, u.tensor(), u);
    map_into(y, Blend{}, y, x, row);
    map_into(u, Blend{}, u, x, row);
    CHECK(to_host(u).values == to_host(y).values);
    einsum_into<"ab,cb->ac">(y, x, reshard<P<data, _>>(slice<0>(x, {0}, {6})));
    einsum_into<"ab,cb->ac">(u, x, reshard<P<data, _>>(slice<0>(x, {0}, {6})));
    CHECK(to_host(u).values == to_host(y).values);
    reshard_into(u, transpose<"ba->ab">(transpose<"ab->ba">(x)));
    CHECK(to_host(u).values == to_host(x).values);
    DynamicTensor t = u;
    t += DynamicTensor(x);
    CHECK(to_host(u).values == to_host(x + x).values);
    // The halo is what it was: nothing but what the process owns is written.
    const auto v = u.global();
    for (Index i = u.box()[0].lo; i < u.box()[0].hi; ++i)
      for (Index j = u.box()[1].lo; j < u.box()[1].hi; ++j) {
        const bool own = i >= u.own_box()[0].lo && i < u.own_box()[0].hi &&
                         j >= u.own_box()[1].lo && j < u.own_box()[1].hi;
        if (!own) CHECK(v(i, j) == 99);
      }
    auto pending = u.exchange_async();
    if (mesh.core()->shape().processes() > 1) CHECK_THROWS_AS(u += x, UsageError);
    pending.wait();
    CHECK_THROWS_AS((void)t.data<double>(), UsageError);
    using Plain = Field<data, model>;
    CHECK_THROWS_AS((void)as<Plain>(t), UsageError);
  });
}
