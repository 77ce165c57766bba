// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CASE varying_returned: returns a tensor that varies over an axis that it names as if it were equal
// CASE varying_declared: use of deleted function .*Varies<grid::model>.* M = .*Varies<>|invokes a deleted function
// CASE unfinished_used: an operand is a part of a sum over an axis that manual names
// CASE unfinished_added: an operand is a part of a sum over an axis that manual names
// CASE unfinished_gathered: a part of a sum is moved over its axis as if it were the sum
// CASE unfinished_along: returns parts of a sum as blocks along a dimension
// CASE unnamed_axis: names an axis that no manual function around it names
// CASE outside: names an axis that no manual function around it names
// CASE no_permutation: is no permutation
// CASE odd_permutation: is no permutation
// CASE nested_same: names already
// CASE no_such_axis: names an axis that the mesh does not have
// CASE equal_summed: a sum is taken over an axis over which the value is equal
// CASE equal_gathered: a value is moved over an axis over which it is equal
// CASE varying_cut: a value that is not equal over an axis is used as if it were
// CASE minor_axis: splits a dimension after an automatic axis
// CASE along_unnamed: along names an axis that the manual function around it does not name
// CASE another_mesh: returns a tensor that is none of its mesh
// CASE moved_away: a tensor within a manual function is moved to another mesh
// CASE captured: the operands live on different Mesh types
// CASE equal_destination: the destination of a map has another element type, mesh or number
// CASE plain_struct: a struct enters a manual function whose tensors do not follow from
// ERRORS each: 1
#include <tessera/manual.hpp>
#include <tessera/tessera.hpp>

using namespace tessera;
namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
template <class... D> using Tensor = ShardedTensor<float, Grid, P<D...>>;

template <class... D> using Equal = ShardedTensor<float, ManualMesh<Grid, model>, P<D...>>;

struct Plain {
  Tensor<model, data> a;
  static constexpr auto fields = Fields<&Plain::a>{};
};

void use(const Tensor<model, data>& x, const Tensor<_, data>& w,
         const Tensor<_, data, Unreduced<Sum, model>>& parts,
         const Tensor<Axes<data, model>, _>& minor, const ProcessMesh<Mesh<data>>& other) {
  (void)x, (void)w, (void)parts, (void)minor, (void)other;
#if defined(CASE_varying_returned)
  manual<model>([](const auto& a) { return a + a; })(x);
#elif defined(CASE_varying_declared)
  manual<model>([](const auto& a) {
    const Equal<_, data> b = a + a;
    return b;
  })(x);
#elif defined(CASE_unfinished_used)
  manual<model>([](const auto& a) { return all_reduce_over<model>(exp(a)); })(parts);
#elif defined(CASE_unfinished_added)
  manual<model>([](const auto& a, const auto& b) { return a + b; })(parts, w);
#elif defined(CASE_unfinished_gathered)
  manual<model>([](const auto& a) { return all_gather_over<model>(a); })(parts);
#elif defined(CASE_unfinished_along)
  manual<model>([](const auto& a) { return along<0, model>(a); })(parts);
#elif defined(CASE_unnamed_axis)
  manual<model>([](const auto& a) { return all_reduce_over<data>(a); })(x);
#elif defined(CASE_outside)
  all_reduce_over<model>(x);
#elif defined(CASE_no_permutation)
  manual<model>(
      [](const auto& a) { return along<0, model>(permute_over<model, Sends<0, 1, 1, 1>>(a)); })(x);
#elif defined(CASE_odd_permutation)
  manual<model>(
      [](const auto& a) { return along<0, model>(permute_over<model, Sends<0, 1, 1>>(a)); })(x);
#elif defined(CASE_nested_same)
  manual<model>([](const auto& a) {
    return along<0, model>(manual<model>([](const auto& b) { return b; })(a));
  })(x);
#elif defined(CASE_no_such_axis)
  struct other_axis : Axis<> {};
  manual<other_axis>([](const auto& a) { return a; })(x);
#elif defined(CASE_equal_summed)
  manual<model>([](const auto& a) { return all_reduce_over<model>(a); })(w);
#elif defined(CASE_equal_gathered)
  manual<model>([](const auto& a) { return all_gather_over<model, 0>(a); })(w);
#elif defined(CASE_varying_cut)
  manual<model>([](const auto& a) { return along<0, model>(own_block<model, 0>(a)); })(x);
#elif defined(CASE_minor_axis)
  manual<model>([](const auto& a) { return along<0, model>(a); })(minor);
#elif defined(CASE_along_unnamed)
  manual<model>([](const auto& a) { return along<0, data>(a); })(w);
#elif defined(CASE_plain_struct)
  manual<model>([](const auto& a, const auto&) { return all_reduce_over<model>(a); })(x, Plain{x});
#elif defined(CASE_another_mesh)
  manual<model>([&](const auto&) { return w; })(x);
#elif defined(CASE_moved_away)
  manual<model>([&](const auto& a) {
    (void)reshard<ShardedTensor<float, Mesh<data>, P<_, data>>>(a, other);
    return along<0, model>(a);
  })(x);
#elif defined(CASE_captured)
  manual<model>([&](const auto& a) { return along<0, model>(a * w); })(x);
#elif defined(CASE_equal_destination)
  manual<model>([](const auto& a) {
    auto b = all_reduce_over<model>(a);
    b += a;
    return b;
  })(x);
#else
  const Tensor<model, data> y =
      manual<model>([](const auto& a) { return along<0, model>(a + a); })(x);
  const Tensor<_, data> z = manual<model>([](const auto& a, const auto& b) {
    const Equal<_, data> c = all_reduce_over<model>(a);
    return c + b + all_reduce_over<model>(varying<model>(b));
  })(parts, w);
  const Tensor<_, data, Unreduced<Sum, model>> u =
      manual<model>([](const auto& a) { return part_of_sum<model>(a * a); })(x);
  const Tensor<model, data> v = manual<model>(
      [](const auto& a) { return along<0, model>(permute_over<model, Sends<0, 1, 1, 0>>(a)); })(x);
  const Tensor<model, data> n = manual<model>([](const auto& a) {
    return along<0, model>(manual<data>(
        [](const auto& b) { return along<1, data>(b - all_reduce_over<data, model>(b)); })(a));
  })(x);
  (void)y, (void)z, (void)u, (void)v, (void)n;
#endif
}
