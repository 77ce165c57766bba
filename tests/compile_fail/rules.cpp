// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An example of every rule that types can break, and, in the control, of the call that keeps it;
// op/rules.loopback.cpp has the rules that the run time finds broken, with the same tensors.
// cmake/docs/errors.py makes docs/errors.md of both.
// CASE axis_in_mesh: docs/errors\.md#r1\)
// CASE nothing_open: docs/errors\.md#r109\)
// CASE axis_used_once: docs/errors\.md#r2\)
// CASE partial_axis_used_once: docs/errors\.md#r3\)
// CASE reduction_defined: docs/errors\.md#r5\)
// CASE equation_readable: docs/errors\.md#r6\)
// CASE operand_count: docs/errors\.md#r7\)
// CASE rank_matches: docs/errors\.md#r8\)
// CASE label_once: docs/errors\.md#r9\)
// CASE result_label_known: docs/errors\.md#r10\)
// CASE label_kept: docs/errors\.md#r11\)
// CASE finished: docs/errors\.md#r12\)
// CASE one_unfinished: docs/errors\.md#r13\)
// CASE open_axis_contracted: docs/errors\.md#r14\)
// CASE reduction_alike: docs/errors\.md#r15\)
// CASE along_known: docs/errors\.md#r17\)
// CASE convolution_letters: docs/errors\.md#r18\)
// CASE indices_match: docs/errors\.md#r19\)
// CASE index_letter_kept: docs/errors\.md#r20\)
// CASE products_of_numbers: docs/errors\.md#r21\)
// CASE sums_of_numbers: docs/errors\.md#r22\)
// CASE means_of_floats: docs/errors\.md#r23\)
// CASE extremes_of_ordered: docs/errors\.md#r24\)
// CASE extremes_of_numbers: docs/errors\.md#r25\)
// CASE any_and_all_of_truths: docs/errors\.md#r26\)
// CASE wide_sums_of_finished: docs/errors\.md#r27\)
// CASE wide_products_of_finished: docs/errors\.md#r28\)
// CASE sums_as_own_or_64_bits: docs/errors\.md#r29\)
// CASE searches_of_ordered: docs/errors\.md#r30\)
// CASE indices_of_integers: docs/errors\.md#r31\)
// CASE factor_types_alike: docs/errors\.md#r32\)
// CASE update_types_alike: docs/errors\.md#r33\)
// CASE norm_types_alike: docs/errors\.md#r34\)
// CASE norm_of_rows: docs/errors\.md#r35\)
// CASE joined_types_alike: docs/errors\.md#r37\)
// CASE entry_each: docs/errors\.md#r47\)
// CASE ranks_alike: docs/errors\.md#r48\)
// CASE dimension_known: docs/errors\.md#r49\)
// CASE dimension_once: docs/errors\.md#r50\)
// CASE unfinished_alike: docs/errors\.md#r51\)
// CASE open_operand: docs/errors\.md#r52\)
// CASE halo_of_finished: docs/errors\.md#r83\)
// CASE halo_types_alike: docs/errors\.md#r84\)
// CASE matrices_last: docs/errors\.md#r90\)
// CASE function_types_alike: docs/errors\.md#r91\)
// CASE condition_of_truths: docs/errors\.md#r92\)
// CASE function_of_reals: docs/errors\.md#r93\)
// CASE function_of_numbers: docs/errors\.md#r94\)
// CASE function_of_ordered: docs/errors\.md#r95\)
// CASE function_of_truths: docs/errors\.md#r96\)
// CASE function_of_integers: docs/errors\.md#r97\)
// CASE function_of_complex: docs/errors\.md#r98\)
// CASE function_defined: docs/errors\.md#r99\)
// CASE function_makes_element: docs/errors\.md#r100\)
// CASE reshardable: docs/errors\.md#r101\)
// CASE made_finished: docs/errors\.md#r102\)
// CASE dimensions_kept: docs/errors\.md#r104\)
// CASE arrives_finished: docs/errors\.md#r105\)
// ERRORS each: 1
#include <tessera/op/halo/halo.hpp>
#include <tessera/tessera.hpp>

using namespace tessera;
namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
struct stage : Axis<> {};
}  // namespace grid
using grid::data, grid::model, grid::stage;
using Grid = Mesh<data, model>;
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;
#define KEEPS(rule, ...) (void)(__VA_ARGS__)

void use(const ProcessMesh<Grid>& mesh, const ProcessMesh<Mesh<stage>>& stages,
         const Tensor<float, data, model>& x, const Tensor<float, model, _>& w,
         const Tensor<float, model>& row, const Tensor<double, data, model>& wide,
         const Tensor<std::int32_t, data, model>& n, const Tensor<bool, data, model>& truths,
         const Tensor<complex<float>, data, model>& z, const Tensor<std::int32_t, data>& ids,
         const Tensor<float, data, _, _, _>& image, const Tensor<float, _, _, _, _>& kernel,
         const Tensor<float, data, _, Unreduced<Sum, model>>& open,
         const Tensor<float, data, _, Unreduced<Max, model>>& largest,
         const Tensor<std::uint8_t, data, _, Unreduced<Sum, model>>& open_bytes,
         const Tensor<std::int8_t, data, _, Unreduced<Product, model>>& open_factors) {
  (void)mesh, (void)stages, (void)x, (void)w, (void)row, (void)wide, (void)n, (void)truths;
  (void)z, (void)ids, (void)image, (void)kernel, (void)open, (void)largest, (void)open_bytes;
  (void)open_factors;
#if defined(CASE_axis_in_mesh)
  (void)(zeros<Tensor<float, stage>>(mesh, 8));
#elif defined(CASE_nothing_open)
  (void)(reshard<P<data, Open>>(x));
#elif defined(CASE_axis_used_once)
  (void)(zeros<Tensor<float, data, data>>(mesh, 8, 8));
#elif defined(CASE_partial_axis_used_once)
  (void)(Tensor<float, data, _, Unreduced<Sum, data>>());
#elif defined(CASE_reduction_defined)
  (void)(Tensor<float, data, Unreduced<Any, model>>());
#elif defined(CASE_equation_readable)
  (void)(einsum<"ik,kj=ij">(x, w));
#elif defined(CASE_operand_count)
  (void)(einsum<"ik,kj,jl->il">(x, w));
#elif defined(CASE_rank_matches)
  (void)(einsum<"ik,kjl->ij">(x, w));
#elif defined(CASE_label_once)
  (void)(einsum<"ij,jk->ii">(x, w));
#elif defined(CASE_result_label_known)
  (void)(einsum<"ik,kj->iz">(x, w));
#elif defined(CASE_label_kept)
  (void)(transpose<"ij->i">(x));
#elif defined(CASE_finished)
  (void)(gelu(open));
#elif defined(CASE_one_unfinished)
  (void)(einsum<"ij,kj->ik">(open, open));
#elif defined(CASE_open_axis_contracted)
  (void)(einsum<"ik,kj->ij", P<_, _, Unreduced<Sum, data>>>(x, w));
#elif defined(CASE_reduction_alike)
  (void)(max<"ij->i">(open));
#elif defined(CASE_along_known)
  (void)(softmax<"ij", 'k'>(x));
#elif defined(CASE_convolution_letters)
  (void)(convolve<"bhwi,hwio->hwio">(image, kernel));
#elif defined(CASE_indices_match)
  (void)(take<"vm,b->b">(x, ids));
#elif defined(CASE_index_letter_kept)
  (void)(take<"vm,b->m">(x, ids));
#elif defined(CASE_products_of_numbers)
  (void)(einsum<"ij,ij->i">(truths, truths));
#elif defined(CASE_sums_of_numbers)
  (void)(reduce<As<Sum, bool>, "ij->i">(truths));
#elif defined(CASE_means_of_floats)
  (void)(mean<"ij->i">(n));
#elif defined(CASE_extremes_of_ordered)
  (void)(max<"ij->j">(z));
#elif defined(CASE_extremes_of_numbers)
  (void)(max<"ij->i">(truths));
#elif defined(CASE_any_and_all_of_truths)
  (void)(reduce<Any, "ij->i">(x));
#elif defined(CASE_wide_sums_of_finished)
  (void)(sum<"ij->j">(open_bytes));
#elif defined(CASE_wide_products_of_finished)
  (void)(product<"ij->j">(open_factors));
#elif defined(CASE_sums_as_own_or_64_bits)
  (void)(reduce<As<Sum, std::int16_t>, "ij->i">(n));
#elif defined(CASE_searches_of_ordered)
  (void)(argmax<"ij->i">(z));
#elif defined(CASE_indices_of_integers)
  (void)(take<"vm,bj->bjm">(x, x));
#elif defined(CASE_factor_types_alike)
  (void)(einsum<"ik,kj->ij">(wide, w));
#elif defined(CASE_update_types_alike)
  (void)(scatter<Sum, "vm,b,bm->vm">(x, ids, wide));
#elif defined(CASE_norm_types_alike)
  (void)(rms_norm(wide, row));
#elif defined(CASE_norm_of_rows)
  (void)(rms_norm(sum(x), sum(x)));
#elif defined(CASE_joined_types_alike)
  (void)(concatenate<0>(x, wide));
#elif defined(CASE_entry_each)
  (void)(slice<P<data>>(x, {0, 0}, {4, 4}));
#elif defined(CASE_ranks_alike)
  (void)(concatenate<0>(x, row));
#elif defined(CASE_dimension_known)
  (void)(roll<2>(x, 1));
#elif defined(CASE_dimension_once)
  (void)(reverse<1, 1>(x));
#elif defined(CASE_unfinished_alike)
  (void)(concatenate<0>(reshard<P<data, _>>(x), open));
#elif defined(CASE_open_operand)
  (void)(pad<P<data, _, Unreduced<Sum, model>>>(x, {1, 1}, {1, 1}));
#elif defined(CASE_halo_of_finished)
  (void)(halo_exchange<0>(open, 1, 1, Boundary::none));
#elif defined(CASE_halo_types_alike)
  (void)(halo_exchange_together<0>(1, 1, Boundary::none, x, wide));
#elif defined(CASE_matrices_last)
  (void)(tril(row));
#elif defined(CASE_function_types_alike)
  (void)(x + wide);
#elif defined(CASE_condition_of_truths)
  (void)(where(n, x, x));
#elif defined(CASE_function_of_reals)
  (void)(sin(n));
#elif defined(CASE_function_of_numbers)
  (void)(truths + truths);
#elif defined(CASE_function_of_ordered)
  (void)(z < z);
#elif defined(CASE_function_of_truths)
  (void)(logical_and(x, x));
#elif defined(CASE_function_of_integers)
  (void)(bitwise_xor(x, x));
#elif defined(CASE_function_of_complex)
  (void)(imag(x));
#elif defined(CASE_function_defined)
  (void)(map([](const char*) { return 1; }, x));
#elif defined(CASE_function_makes_element)
  (void)(map([](float) { return "text"; }, x));
#elif defined(CASE_reshardable)
  (void)(reshard<P<data, _, Unreduced<Sum, model>>>(x));
#elif defined(CASE_made_finished)
  (void)(zeros<Tensor<float, data, Unreduced<Sum, model>>>(mesh, 8));
#elif defined(CASE_dimensions_kept)
  (void)(reshard<ShardedTensor<float, Mesh<stage>, P<stage>>>(x, stages));
#elif defined(CASE_arrives_finished)
  (void)(reshard<ShardedTensor<float, Mesh<stage>, P<_, _, Unreduced<Sum, stage>>>>(x, stages));
#else
  KEEPS(axis_in_mesh, zeros<Tensor<float, data>>(mesh, 8));
  KEEPS(nothing_open, reshard<P<data, _>>(x));
  KEEPS(axis_used_once, zeros<Tensor<float, data, _>>(mesh, 8, 8));
  KEEPS(partial_axis_used_once, Tensor<float, data, _, Unreduced<Sum, model>>());
  KEEPS(reduction_defined, Tensor<bool, data, Unreduced<Any, model>>());
  KEEPS(equation_readable, einsum<"ik,kj->ij">(x, w));
  KEEPS(operand_count, einsum<"ik,kj,jl->il">(x, w, transpose<"ij->ji">(w)));
  KEEPS(rank_matches, einsum<"ik,kl->il">(x, w));
  KEEPS(label_once, einsum<"ij,jk->ik">(x, w));
  KEEPS(result_label_known, einsum<"ik,kz->iz">(x, w));
  KEEPS(label_kept, sum<"ij->i">(x));
  KEEPS(finished, gelu(reshard<P<data, _>>(open)));
  KEEPS(one_unfinished, einsum<"ij,kj->ik">(open, reshard<P<data, _>>(open)));
  KEEPS(open_axis_contracted, einsum<"ik,kj->ij", P<_, _, Unreduced<Sum, model>>>(x, w));
  KEEPS(reduction_alike, max<"ij->i">(largest));
  KEEPS(along_known, softmax<"ij", 'j'>(x));
  KEEPS(convolution_letters, convolve<"bhwi,hwio->bhwo">(image, kernel));
  KEEPS(indices_match, take<"vm,b->bm">(x, ids));
  KEEPS(index_letter_kept, sum<"bm->m">(take<"vm,b->bm">(x, ids)));
  KEEPS(products_of_numbers, reduce<Any, "ij->i">(logical_and(truths, truths)));
  KEEPS(sums_of_numbers, sum<"ij->i">(truths));
  KEEPS(means_of_floats, mean<"ij->i">(cast<float>(n)));
  KEEPS(extremes_of_ordered, max<"ij->j">(abs(z)));
  KEEPS(extremes_of_numbers, reduce<Any, "ij->i">(truths));
  KEEPS(any_and_all_of_truths, reduce<Any, "ij->i">(not_equal(x, 0)));
  KEEPS(wide_sums_of_finished, sum<"ij->j">(reshard<P<data, _>>(open_bytes)));
  KEEPS(wide_products_of_finished, product<"ij->j">(reshard<P<data, _>>(open_factors)));
  KEEPS(sums_as_own_or_64_bits, cast<std::int16_t>(sum<"ij->i">(n)));
  KEEPS(searches_of_ordered, argmax<"ij->i">(abs(z)));
  KEEPS(indices_of_integers, take<"vm,bj->bjm">(x, n));
  KEEPS(factor_types_alike, einsum<"ik,kj->ij">(cast<float>(wide), w));
  KEEPS(update_types_alike, scatter<Sum, "vm,b,bm->vm">(x, ids, cast<float>(wide)));
  KEEPS(norm_types_alike, rms_norm(wide, cast<double>(row)));
  KEEPS(norm_of_rows, rms_norm(x, row));
  KEEPS(joined_types_alike, concatenate<0>(x, cast<float>(wide)));
  KEEPS(entry_each, slice<P<data, _>>(x, {0, 0}, {4, 4}));
  KEEPS(ranks_alike, concatenate<0>(x, expand_dims<0>(row)));
  KEEPS(dimension_known, roll<1>(x, 1));
  KEEPS(dimension_once, reverse<1, 0>(x));
  KEEPS(unfinished_alike, concatenate<0>(open, open));
  KEEPS(open_operand, pad<P<data, _, Unreduced<Sum, model>>>(open, {1, 1}, {1, 1}));
  KEEPS(halo_of_finished, halo_exchange<0>(reshard<P<data, _>>(open), 1, 1, Boundary::none));
  KEEPS(halo_types_alike, halo_exchange_together<0>(1, 1, Boundary::none, x, x));
  KEEPS(matrices_last, tril(x));
  KEEPS(function_types_alike, cast<double>(x) + wide);
  KEEPS(condition_of_truths, where(not_equal(n, 0), x, x));
  KEEPS(function_of_reals, sin(cast<float>(n)));
  KEEPS(function_of_numbers, logical_or(truths, truths));
  KEEPS(function_of_ordered, abs(z) < abs(z));
  KEEPS(function_of_truths, logical_and(x > 0, x < 1));
  KEEPS(function_of_integers, bitwise_xor(n, n));
  KEEPS(function_of_complex, imag(z));
  KEEPS(function_defined, map([](float a) { return a * a; }, x));
  KEEPS(function_makes_element, map([](float a) { return a > 0; }, x));
  KEEPS(reshardable, reshard<P<data, _>>(x));
  KEEPS(made_finished, zeros<Tensor<float, data>>(mesh, 8));
  KEEPS(dimensions_kept, reshard<ShardedTensor<float, Mesh<stage>, P<stage, _>>>(x, stages));
  KEEPS(arrives_finished, reshard<ShardedTensor<float, Mesh<stage>, P<_, _>>>(x, stages));
#endif
}
