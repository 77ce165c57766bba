// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: sums
// Sums of half types are rounded once, however their parts are made and brought together; and what
// that costs, and who asks for less.
#include "op/half_sums.hpp"

#include <algorithm>

#include "support/grid.hpp"

namespace {
using namespace tessera;
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;

template <class F> void on(const MeshShape& shape, const MeshOptions& options, const F& f) {
  run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
    f(make_mesh_core(world, shape, support::axis_names(shape.rank()), options));
  });
}
template <class T> constexpr float big = std::is_same_v<T, half> ? 2048 : 256;
}  // namespace

TEST_CASE("sums of half types are rounded once under all shardings") {
  for (const MeshShape& shape : {MeshShape{1}, MeshShape{4}, MeshShape{2, 2}, MeshShape{3, 2}})
    on(shape, {}, [](const auto& mesh) {
      half_sums::check<half>(mesh, 1, 6);
      half_sums::check<bfloat16>(mesh, 2, 6);
    });
}

TEST_CASE("sums of half types are rounded once where products go in rounds") {
  MeshOptions tight, hides;
  tight.workspace_limit = 64;
  hides.machine.hidden_percent = 90;
  hides.machine.message_ps = 1;
  for (const MeshOptions& options : {tight, hides})
    for (const MeshShape& shape : {MeshShape{4}, MeshShape{2, 2}})
      on(shape, options, [](const auto& mesh) { half_sums::check<half>(mesh, 3, 8); });
}

namespace {
/// A large number and 1 on the first of four processes, whose sum T has not; 1 on the second.
template <class T> struct FirstLarge {
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    return static_cast<T>(i[0] == 0 ? big<T> : i[0] < 3 ? 1.0f : 0.0f);
  }
};
template <class T> void check_parts(const ProcessMesh<Grid>& mesh, bool once) {
  const float right = big<T> + 2;
  const auto x = from_function<Tensor<T, Axes<data, model>>>(mesh, {8}, FirstLarge<T>{});
  const auto table = from_function<Tensor<T, _, _>>(mesh, {2, 3}, FirstLarge<T>{});
  const auto ids = from_function<ShardedTensor<std::int32_t, Grid, P<Axes<data, model>>>>(
      mesh, {8}, [](const GlobalIndex&) { return 1; });
  const auto up = from_function<Tensor<T, Axes<data, model>, _>>(mesh, {8, 3}, FirstLarge<T>{});
  const auto by_table =
      value_and_grad([&](const auto& t) { return sum(take<"vm,n->nm">(t, ids) * up); })(table)
          .gradient;
  const auto weight =
      from_function<Tensor<T, _>>(mesh, {3}, [](const GlobalIndex&) { return T(1); });
  const auto by_weight = value_and_grad([&](const auto& w) {
                           return sum(map<"nm,m->nm">(fn::Multiply{}, up, w));
                         })(weight)
                             .gradient;
  // Two readers of one value, whose gradients are added.
  const auto twice = value_and_grad([&](const auto& w) {
                       return sum(einsum<"nm,m->n">(up, w)) - sum(einsum<"nm,m->n">(up, w * T(0)));
                     })(weight)
                         .gradient;
  const bool same = to_host(by_table)(1, 2) == T(right) && to_host(by_weight)(1) == T(right) &&
                    to_host(twice)(1) == T(right) &&
                    static_cast<float>(value(einsum<"i,i->">(x, x * T(0) + T(1)))) == right;
  CHECK(same == once);
}
}  // namespace

TEST_CASE("parts of sums of half types travel as float, and as they are where a mesh says so") {
  for (const bool narrow : {false, true})
    run_loopback(4, [&](std::shared_ptr<Transport> world) {
      MeshOptions options;
      options.narrow_parts = narrow;
      const auto mesh = make_mesh<Grid>(world, sizes<Grid>(2, 2), options);
      check_parts<half>(mesh, !narrow);
      check_parts<bfloat16>(mesh, !narrow);
    });
}

TEST_CASE("parts that are half types in their tensor's own type are summed wider") {
  for (const int processes : {4, 8})
    on(MeshShape{processes}, {}, [&](const auto& mesh) {
      // The sum is of 2048 and as many ones as there are other processes.
      const auto x = from_function<half>(
          mesh, {processes}, Sharding{{0}},
          [](const GlobalIndex& i) { return static_cast<half>(i[0] == 0 ? 2048.0f : 1.0f); });
      const Sharding open = Sharding::replicated(0).with_partial(AxisSet{0}, Reduction::sum);
      const DynamicTensor parts = reduce<Sum>("i->", x, open);
      CHECK(to_host<half>(finish(parts))() == static_cast<half>(2048.0f + float(processes - 1)));
      const auto two = reshard_together({parts, parts + parts},
                                        {Sharding::replicated(0), Sharding::replicated(0)});
      CHECK(to_host<half>(two[1])() == static_cast<half>(4096.0f + 2 * float(processes - 1)));
    });
}

TEST_CASE("what parts in float cost") {
  const auto payload = [](bool narrow, DType type) {
    PlanOptions options;
    options.narrow_parts = narrow;
    const Sharding columns{{}, {0}}, rows{{0}, {}}, whole{{}, {}};
    return ops::Einsum{parse("ik,kj->ij"), whole}
        .plan({{type, {64, 64}, columns}, {type, {64, 64}, rows}}, {MeshShape{4}, 0, options})
        .payload_bytes();
  };
  CHECK(payload(false, DType::bf16) == payload(false, DType::f32));
  CHECK(2 * payload(true, DType::bf16) == payload(false, DType::f32));
  // A look-up sends one number and zeros: no sum is rounded.
  const Sharding rows{{0}, {}}, whole{{}, {}};
  const Plan look_up = ops::Take{parse("vm,n->nm"), OutOfRange::clamp, whole}.plan(
      {{DType::f16, {4096, 8}, rows}, {DType::i32, {16}, Sharding{{}}}}, {MeshShape{4}, 0, {}});
  for (const Slot& slot : look_up.slots) CHECK(slot.desc.type != DType::f32);
  // An epilogue's product is one tensor of floats more.
  const auto peak = [&](bool epilogue) {
    return ops::Einsum{parse("ik,kj->ij"), whole, epilogue, DType::bf16}
        .plan({{DType::bf16, {64, 64}, whole}, {DType::bf16, {64, 64}, whole}},
              {MeshShape{1}, 0, {}})
        .peak_bytes;
  };
  CHECK(peak(true) - peak(false) == 4 * 64 * 64);
}

namespace {
/// A number and 1, whose sum T has not, at the ends of each row.
template <class T> struct Ends {
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    return static_cast<T>(i[1] == 0 ? big<T> : i[1] == 5 ? 1.0f : 0.0f);
  }
};
/// product + extra - 1 of its own element type.
template <class T> struct LessOne {
  KOKKOS_FUNCTION T operator()(T product, T extra) const { return product + extra - T(1.0f); }
};
/// What is made of products big + 1 beside a tensor of `y`.
template <class T> void check_products(const ProcessMesh<Grid>& mesh, float y) {
  const auto a = from_function<Tensor<T, data, model>>(mesh, {3, 6}, Ends<T>{});
  const auto b = full<Tensor<T, model, _>>(mesh, {6, 4}, T(1.0f));
  const auto c = full<Tensor<T, data, _>>(mesh, {3, 4}, T(y));
  const auto bias = full<Tensor<T, _>>(mesh, {4}, T(y));
  const float product = big<T> + 1;
  CAPTURE(y);
  const auto holds = [&](const auto& made, float exact) {
    for (const auto x : to_host(made).values) {
      using Made = std::remove_const_t<decltype(x)>;
      CHECK(static_cast<float>(x) == static_cast<float>(static_cast<Made>(exact)));
    }
  };
  for (const float alpha : {1.0f, 0.5f, 3.0f})
    for (const float beta : {1.0f, -2.0f, 0.0f}) {
      auto typed = c * T(1.0f);
      einsum_into<"ik,kj->ij">(typed, a, b, alpha, beta);
      holds(typed, alpha * product + beta * y);
      const auto dynamic = DynamicTensor(c * T(1.0f));
      einsum_into<T>("ik,kj->ij", dynamic, DynamicTensor(a), DynamicTensor(b), alpha, beta);
      CHECK(to_host<T>(dynamic).values == to_host(typed).values);
    }
  const auto by = [&](const auto& last) { return einsum<"ik,kj->ij">(a, b, last); };
  holds(by(epilogue().bias(bias)), product + y);
  holds(by(epilogue(fn::Relu{}).scale(0.5f).bias(bias).residual(c)),
        std::max(0.5f * product + y, 0.0f) + y);
  holds(by(then(fn::Subtract{}, bias)), product - y);
  holds(by(then([](const auto& x, const auto& z) { return x * z; }, bias)), product * y);
  holds(by(then(LessOne<float>{}, bias)), product + y - 1);  // which takes float
  const T rounded = T(product);
  holds(by(then(LessOne<T>{}, bias)), static_cast<float>(LessOne<T>{}(rounded, T(y))));
}
}  // namespace

TEST_CASE("what is added to a product of half types, and acts on it, comes before it is rounded") {
  MeshOptions tight;
  tight.workspace_limit = 64;
  for (const MeshOptions& options : {MeshOptions{}, tight})
    for (const int processes : {1, 4})
      run_loopback(processes, [&](std::shared_ptr<Transport> world) {
        const auto sizes_of = processes == 1 ? sizes<Grid>(1, 1) : sizes<Grid>(2, 2);
        const auto mesh = make_mesh<Grid>(world, sizes_of, options);
        for (const float y : {1.0f, 3.0f, -2.0f}) {
          check_products<half>(mesh, y);
          check_products<bfloat16>(mesh, y);
        }
      });
  // Where parts are as narrow as the type, so is their sum, and the function widens it.
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    MeshOptions options;
    options.narrow_parts = true;
    const auto mesh = make_mesh<Grid>(world, sizes<Grid>(2, 2), options);
    const auto a = from_function<Tensor<half, data, model>>(mesh, {3, 6}, Ends<half>{});
    const auto b = full<Tensor<half, model, _>>(mesh, {6, 4}, half(1.0f));
    const auto bias = full<Tensor<half, _>>(mesh, {4}, half(4.0f));
    const auto made = einsum<"ik,kj->ij">(a, b, epilogue().scale(0.5f).bias(bias));
    for (const half x : to_host(made).values) CHECK(static_cast<float>(x) == 1028);
  });
}
