// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CASE wrong_axis: the PartitionSpec names an axis that its Mesh does not have
// CASE not_canonical: this PartitionSpec is not in its canonical form; write P<
// CASE two_meshes: the operands live on different Mesh types; an operator takes tensors of one mesh
// CASE two_types: the operands have different element types
// CASE scalar_added_to_unfinished: an unfinished partial value is used as a value
// CASE unfinished_plus_finished: an unfinished partial value is used as a value
// CASE out_rank: the equation gives a tensor another number of dimensions than it has
// CASE out_axis: the PartitionSpec uses a mesh axis twice
// CASE reshard_rank: the spec of the result has another number of entries
// CASE value_of_matrix: value takes a scalar tensor; reduce it first
// CASE mean_of_ints: the mean of integers is not an integer, .*convert to float or double
// CASE made_unfinished: the spec of a new tensor is Unreduced; a tensor is made finished, and only operators
// CASE split_dimension: split names a dimension that the tensor does not have
// CASE one_extent_each: is given another number of extents than its tensor has dimensions
// CASE like_extents: is given another number of extents than its tensor has dimensions
// CASE returns_another_spec: use of deleted function .*ItsSpec = .*<grid::data, grid::model>; .* S = .*<grid::data, tessera::Replicated>|conversion function from .*data, .*model.* to .*data.*Replicated.* invokes a deleted function
// NOTE returns_another_spec: another spec, mesh or element type than is declared; .* reshard<P<...>>.x. or cast<T>.x., or declare its own P<...>
// CASE returns_another_type: use of deleted function .*Other = float; .* T = double|conversion function from .*float.* to .*double.* invokes a deleted function
// NOTE returns_another_type: another spec, mesh or element type than is declared
// CASE made_of_another_spec: use of deleted function|conversion function from .* invokes a deleted function
// NOTE made_of_another_spec: another spec, mesh or element type than is declared
// CASE plan_of_two_extents: right operand of shift expression .*5 << -6.*is negative|constexpr variable 'p' must be initialized by a constant expression
// NOTE plan_of_two_extents: letter_has_two_extents<'k'>|letter_has_two_extents.&"k".0., 5, 6.
// NOTE plan_of_two_extents: one letter stands for dimensions of two extents, .* make the extents equal
// CASE plan_of_no_extent: right operand of shift expression .*0 << -5.*is negative|constexpr variable 'p' must be initialized by a constant expression
// CASE plan_of_diagonal: right operand of shift expression .*5 << -6.*is negative|constexpr variable 'p' must be initialized by a constant expression
// CASE compares_tensors: use of deleted function .*operator==|deleted operator '=='
// NOTE compares_tensors: tensors have no ==; equal.a, b. compares element by element; allclose.a, b.
// CASE compares_with_number: use of deleted function .*operator!=|deleted operator '!='
// NOTE compares_with_number: tensors have no !=; not_equal.a, b. compares element by element; allclose.a, b.
// CASE element_by_index: elements of a tensor live on several processes, .* to_host.x..i, j. .* value.x. .* slice.x, .* local_view.x.
// CASE element_by_subscript: elements of a tensor live on several processes, .* to_host.x..i, j. .* local_view.x.
// ERRORS each: 1
#include <tessera/tessera.hpp>

using namespace tessera;
namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
struct stage : Axis<> {};
}  // namespace grid
using grid::data, grid::model, grid::stage;
using Grid = Mesh<data, model>;
template <class... D> using Tensor = ShardedTensor<float, Grid, P<D...>>;

using X = Tensor<data, model>;
constexpr auto on_eight = sizes<Grid>(2, 4);
using OpenSum = Tensor<data, _, Unreduced<Sum, model>>;

// What asks whether a tensor could become another, or be compared, gets an answer, no message.
static_assert(!std::is_convertible_v<X, Tensor<data, _>> &&
              !std::is_convertible_v<X, Tensor<data>>);
static_assert(!std::is_constructible_v<Tensor<data, _>, X> &&
              !std::is_assignable_v<Tensor<data, _>&, X>);
static_assert(std::is_convertible_v<X, DynamicTensor> && std::is_copy_assignable_v<X>);
static_assert(!std::equality_comparable<X> && !std::equality_comparable_with<X, float>);

void use(const ProcessMesh<Grid>& mesh, const X& x, const Tensor<model, _>& w, const OpenSum& open,
         const ShardedTensor<float, Mesh<model, data>, P<model, _>>& elsewhere,
         const ShardedTensor<double, Grid, P<model, _>>& wide,
         const ShardedTensor<std::int32_t, Grid, P<data>>& ints) {
  (void)mesh, (void)x, (void)w, (void)open, (void)elsewhere, (void)wide, (void)ints;
#if defined(CASE_returns_another_spec)
  (void)[](const X& v)->Tensor<data, _> { return sqrt(v); };
#elif defined(CASE_returns_another_type)
  (void)[](const X& v)->ShardedTensor<double, Grid, P<data, model>> { return v; };
#elif defined(CASE_made_of_another_spec)
  const Tensor<data, _> rows = x;
#elif defined(CASE_plan_of_two_extents)
  constexpr auto p = plan<"ik,kj->ij">(like<X>(8, 5), like<Tensor<model, _>>(6, 96), on_eight);
#elif defined(CASE_plan_of_no_extent)
  constexpr auto p = plan<"ik,kj->ij">(like<X>(8, 5), like<Tensor<model, _>>(0, 96), on_eight);
#elif defined(CASE_plan_of_diagonal)
  constexpr auto p = plan<Sum, "kk->">(like<X>(5, 6), on_eight);
#elif defined(CASE_element_by_index)
  (void)x(3, 4);
#elif defined(CASE_element_by_subscript)
  (void)DynamicTensor(x)[3];
#elif defined(CASE_compares_tensors)
  (void)(x == x);
#elif defined(CASE_compares_with_number)
  (void)(1 != x);
#elif defined(CASE_wrong_axis)
  Tensor<data, stage> t;
#elif defined(CASE_not_canonical)
  ShardedTensor<float, Grid, PartitionSpec<Axes<data>, _>> t;
#elif defined(CASE_two_meshes)
  einsum<"ik,kj->ij">(x, elsewhere);
#elif defined(CASE_two_types)
  einsum<"ik,kj->ij">(x, wide);
#elif defined(CASE_scalar_added_to_unfinished)
  cast<double>(open) + 1.0;
#elif defined(CASE_unfinished_plus_finished)
  open + x;
#elif defined(CASE_out_rank)
  einsum<"ik,kj->ij", P<data>>(x, w);
#elif defined(CASE_out_axis)
  einsum<"ik,kj->ij", P<data, data>>(x, w);
#elif defined(CASE_reshard_rank)
  reshard<P<data>>(x);
#elif defined(CASE_value_of_matrix)
  value(x);
#elif defined(CASE_mean_of_ints)
  mean<"i->">(ints);
#elif defined(CASE_made_unfinished)
  zeros<OpenSum>(mesh, 4, 4);
#elif defined(CASE_split_dimension)
  split<2, data>(x);
#elif defined(CASE_one_extent_each)
  zeros<X>(mesh, 4);
#elif defined(CASE_like_extents)
  (void)like<X>(4);
#else
  constexpr auto p = plan<"ik,kj->ij">(like<X>(8, 5), like<Tensor<model, _>>(5, 96), on_eight);
  static_assert(p.count(all_to_all) == 0);
  (void)einsum<"ik,kj->ij">(x, w);
  (void)einsum<"ik,kj->ij", P<data, _, Unreduced<Sum, model>>>(x, w);
  (void)(open + open);
  (void)gelu(reshard<P<data, _>>(open));
  (void)einsum<"ij,kj->ik">(open, x);
  (void)einsum<"ii,ij->ij">(x, w);
  (void)value(sum(x));
  (void)mean<"ij->">(x);
  (void)max<"ij->i">(x);
  (void)split<1, data>(x);
  (void)softmax<"ij", 'j'>(x);
  (void)zeros<X>(mesh, 4, 4);
  (void)like<X>(4, 4);
#endif
}
