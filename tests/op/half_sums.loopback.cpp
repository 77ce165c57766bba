// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: sums
// Sums of half types are rounded once, however their parts are made and brought together; and what
// that costs, and who asks for less.
#include "op/half_sums.hpp"

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
      // Of 2048 and as many ones as there are other processes.
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
}
