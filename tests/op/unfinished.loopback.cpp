// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: program
// What acts on unfinished values gives what it gives on finished ones, on every mesh; results never
// share memory with their operands by accident of the mesh.
#include <doctest/doctest.h>

#include <cmath>
#include <utility>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/grid.hpp"

namespace {
using namespace tessera;
template <class... D> using Real = ShardedTensor<double, Grid, P<D...>>;

struct Centred {  // negative and positive, largest in the middle rows
  double operator()(const GlobalIndex& i) const {
    return 1.5 - std::abs(static_cast<double>(i[0]) - 2) - 0.25 * static_cast<double>(i[1]);
  }
};

template <class F> void on_every_mesh(const F& f) {
  for (const MeshSizes<Grid> size : {sizes<Grid>(1, 1), sizes<Grid>(4, 1), sizes<Grid>(2, 2),
                                     sizes<Grid>(3, 2), sizes<Grid>(8, 1)})
    run_loopback(size.shape.processes(), [&](std::shared_ptr<Transport> world) {
      f(make_mesh<Grid>(std::move(world), size));
    });
}

template <class T> bool close(const HostTensor<T>& a, const HostTensor<T>& b) {
  if (!(a.extents == b.extents)) return false;
  for (std::size_t i = 0; i < a.values.size(); ++i)
    if (!(std::abs(a.values[i] - b.values[i]) <= 1e-12 * (1 + std::abs(b.values[i])))) return false;
  return true;
}

TEST_CASE("monotone functions may act before a maximum or minimum is finished") {
  on_every_mesh([](const ProcessMesh<Grid>& mesh) {
    const auto q = from_function<Real<data, _>>(mesh, {5, 3}, Centred{});  // empty blocks on 8
    const auto top = reduce<Max, "ij->j", P<_, Unreduced<Max, data>>>(q);
    const auto low = reduce<Min, "ij->j", P<_, Unreduced<Min, data>>>(q);
    const auto top_done = max<"ij->j">(q);
    const auto low_done = min<"ij->j">(q);
    CHECK(close(to_host(exp(top)), to_host(exp(top_done))));
    CHECK(close(to_host(tanh(top)), to_host(tanh(top_done))));
    CHECK(close(to_host(relu(top)), to_host(relu(top_done))));
    CHECK(close(to_host(exp(low)), to_host(exp(low_done))));
    CHECK(close(to_host(tanh(low)), to_host(tanh(low_done))));
    CHECK(close(to_host(relu(low)), to_host(relu(low_done))));
    CHECK(close(to_host(maximum(top, top)), to_host(top_done)));
  });
}

static_assert(has(detail::linearity<fn::Divide, double, double>, Linearity::linear_in_first));
static_assert(detail::linearity<fn::Divide, std::int32_t, std::int32_t> == Linearity::pointwise);

TEST_CASE("a product or quotient is linear in the one operand that is open") {
  on_every_mesh([](const ProcessMesh<Grid>& mesh) {
    const auto q = from_function<Real<data, _>>(mesh, {5, 3}, Centred{});
    const auto f = random_uniform<Real<model>>(mesh, {3}, 5, 1, 2);
    const auto open = einsum<"ij,ij->j", P<_, Unreduced<Sum, data>>>(q, q);
    const auto done = einsum<"ij,ij->j">(q, q);
    static_assert(std::is_same_v<decltype(open * f)::spec, P<model, Unreduced<Sum, data>>>);
    CHECK(close(to_host(open * f), to_host(done * f)));
    CHECK(close(to_host(f * open), to_host(done * f)));
    CHECK(close(to_host(open / f / 2.0), to_host(done / f / 2.0)));
    CHECK(close(to_host(open + open - open * 3.0), to_host(-done)));
  });
}

constexpr Equation line{"bxi,xio->bxo"};

TEST_CASE("a convolution is linear in the one operand that is open, and so are its gradients") {
  using Open = P<model, _, _, Unreduced<Sum, data>>;
  using OpenKernel = P<_, _, _, Unreduced<Sum, data>>;
  // Nothing is sent where the result stays open and the halo is the block's own.
  static_assert(detail::plan_convolve(parse("bxi,xio->bxo"), detail::ConvolveWindows{{{3}}},
                                      {DType::f64, {4, 7, 6}, named_sharding<Grid, Open>()},
                                      {DType::f64, {3, 6, 5}, Sharding::replicated(3)},
                                      named_sharding<Grid, Open>(), MeshShape{3, 2})
                    .communications() == 0);
  // Finished where the result is smaller: one reduction.
  static_assert(detail::plan_convolve(parse("bxi,xio->bxo"), detail::ConvolveWindows{{{3}}},
                                      {DType::f64, {4, 7, 6}, named_sharding<Grid, Open>()},
                                      {DType::f64, {3, 6, 5}, Sharding::replicated(3)},
                                      Sharding{{1}, {}, {}}, MeshShape{3, 2})
                    .count(all_reduce) == 1);
  on_every_mesh([](const ProcessMesh<Grid>& mesh) {
    const auto a = random_uniform<Real<model, _, data>>(mesh, {4, 7, 5}, 1);
    const auto b = random_uniform<Real<data, _>>(mesh, {5, 6}, 2);
    const auto k = random_uniform<Real<_, _, _>>(mesh, {3, 6, 5}, 3);
    const auto open = einsum<"bxj,ji->bxi", Open>(a, b);
    const auto done = einsum<"bxj,ji->bxi">(a, b);
    const Convolution same{.low = {1}, .high = {1}};
    const auto wanted = to_host(convolve<line>(done, k, same));
    const auto left = convolve<line, Open>(open, k, same);
    static_assert(std::is_same_v<decltype(left)::spec, Open>);
    CHECK(close(to_host(left), wanted));
    CHECK(close(to_host(convolve<line>(open, k, same)), wanted));
    // By the result's gradient, open; by the kernel, of an open input or an open gradient.
    const auto dx = to_host(
        convolve_input_gradient<line>(reshard<P<model, _, _>>(left), k, done.extents(), same));
    CHECK(close(to_host(convolve_input_gradient<line, Open>(left, k, done.extents(), same)), dx));
    const auto dk = to_host(
        convolve_kernel_gradient<line>(done, reshard<P<model, _, _>>(left), k.extents(), same));
    CHECK(close(to_host(convolve_kernel_gradient<line, OpenKernel>(done, left, k.extents(), same)),
                dk));
    CHECK(close(to_host(convolve_kernel_gradient<line>(open, reshard<P<model, _, _>>(left),
                                                       k.extents(), same)),
                dk));
    // A kernel that is open, typed and dynamic.
    const auto u = random_uniform<Real<_, _, data>>(mesh, {3, 6, 5}, 4);
    const auto v = random_uniform<Real<data, _>>(mesh, {5, 5}, 5);
    const auto kernel = einsum<"xij,jo->xio", OpenKernel>(u, v);
    const auto by_whole = to_host(convolve<line>(done, einsum<"xij,jo->xio">(u, v), same));
    CHECK(close(to_host(convolve<line, Open>(done, kernel, same)), by_whole));
    const DynamicTensor dynamic =
        convolve("bxi,xio->bxo", DynamicTensor(done), DynamicTensor(kernel), same,
                 named_sharding<Grid, Open>());
    CHECK(close(to_host(Real<model, _, _>(reshard(dynamic, Sharding{{1}, {}, {}}).core())),
                by_whole));
    CHECK_THROWS_AS(
        (void)convolve("bxi,xio->bxo", DynamicTensor(open), DynamicTensor(kernel), same),
        ShardingError);
  });
}

TEST_CASE("a chain of products may stay open") {
  on_every_mesh([](const ProcessMesh<Grid>& mesh) {
    const auto a = random_uniform<Real<_, data>>(mesh, {4, 5}, 1);
    const auto b = random_uniform<Real<data, _>>(mesh, {5, 6}, 2);
    const auto c = random_uniform<Real<_, _>>(mesh, {6, 3}, 3);
    const auto open = einsum<"ij,jk,kl->il", P<_, _, Unreduced<Sum, data>>>(a, b, c);
    CHECK(close(to_host(open), to_host(einsum<"ij,jk,kl->il">(a, b, c))));
  });
}

TEST_CASE("only a reshard to the same spec shares memory with its operand") {
  on_every_mesh([](const ProcessMesh<Grid>& mesh) {
    const auto q = full<Real<data, _>>(mesh, {8, 2}, 1.0);
    auto whole = reshard<P<_, _>>(q);
    auto same = transpose<"ij->ij">(whole);
    auto kept = sum<"ij->ij">(whole);
    auto alike = reshard<P<_, _>>(whole);
    whole.data()[0] = 7;
    CHECK(to_host(q)(0, 0) == 1.0);
    CHECK(same.data()[0] == 1.0);
    CHECK(kept.data()[0] == 1.0);
    CHECK(alike.data()[0] == 7.0);
  });
}
}  // namespace
