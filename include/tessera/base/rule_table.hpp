// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The rules of all operators, one row each: number, name, kind of error at run time, facts and
/// sentence. base/rule.hpp includes it wherever it makes something of every row, after it has
/// defined TESSERA_RULE; so this file has no #pragma once, and undefines TESSERA_RULE.
///
///     enum class Rule {
///     #define TESSERA_RULE(number, name, kind, facts, sentence) name,
///     ///     };
///
/// A sentence says what is wrong, the rule and the way out. A type's message is the sentence alone,
/// with the facts as template arguments; an exception inserts the facts where the sentence has
/// places such as {left}, or else appends them in parentheses (base/verdict.hpp).
///
/// Messages of both kinds end with the rule's number, as a link into docs/errors.md. A number is
/// never given again: a new rule takes the next one, wherever its row stands.
#ifndef TESSERA_RULE
#define TESSERA_RULE(number, name, kind, facts, sentence)
#endif

TESSERA_RULE(0, ok, usage, "", "no rule is broken")

// ---- shardings on a mesh: spec/verdict.hpp

TESSERA_RULE(1, axis_in_mesh, sharding, "dimension {dim} of {first}, on a mesh of {second} axes",
             "the PartitionSpec names an axis that its Mesh does not have; a dimension is split "
             "over axes of the mesh; check the spelling, or add the axis to the mesh")
TESSERA_RULE(109, nothing_open, sharding, "dimension {dim} of {first}",
             "an entry of this PartitionSpec is Open where nothing is left to choose; a result is "
             "open where an operand's type is, the plan of one operator nowhere; write an axis or "
             "_ here, or leave an operand open")
TESSERA_RULE(2, axis_used_once, sharding, "dimension {dim} of {first}",
             "the PartitionSpec uses a mesh axis twice; an axis splits at most one dimension; "
             "replace one use by _")
TESSERA_RULE(3, partial_axis_used_once, sharding, "{first}",
             "the PartitionSpec is Unreduced over an axis that also splits a dimension; an axis "
             "does one or the other; drop it from one of them")
TESSERA_RULE(4, reduction_named, sharding, "",
             "Unreduced names no reduction; write Unreduced<Sum, axis>, or Product, Max, Min, Any "
             "or All in place of Sum")
TESSERA_RULE(5, reduction_defined, sharding, "{first}",
             "the spec is Unreduced by a kind that its elements do not have; numbers have Sum and "
             "Product, ordered ones Max and Min, bool Any and All; name one of these")

// ---- letters and shardings: plan/check/verdict.hpp, row_verdict.hpp, op/indexed/take.hpp and its
// siblings

TESSERA_RULE(6, equation_readable, sharding, "",
             "the equation cannot be read; write one letter a dimension, commas between operands "
             "and one arrow, as in \"ik,kj->ij\", for at most 8 operands of at most 8 dimensions")
TESSERA_RULE(7, operand_count, sharding, "{left} against {right}",
             "the equation has another number of operands than the call; write one group of "
             "letters for each operand")
TESSERA_RULE(8, rank_matches, shape, "{left} against {right}",
             "the equation gives a tensor another number of dimensions than it has; write one "
             "letter for each dimension")
TESSERA_RULE(9, label_once, sharding, "",
             "a letter stands twice in one tensor; only the operands of an einsum or a sum have "
             "diagonals; rename one of them")
TESSERA_RULE(10, result_label_known, sharding, "",
             "the result has a letter that no operand has; take it from an operand, or drop it")
TESSERA_RULE(11, label_kept, sharding, "",
             "an elementwise operator or transpose drops a dimension; use reduce to sum it away, "
             "or keep its letter in the result")
TESSERA_RULE(12, finished, sharding, "",
             "an unfinished partial value is used as a value; only linear operators act on "
             "Unreduced<Sum>, multiplicative ones on Unreduced<Product> and monotone ones on "
             "Unreduced<Max> or <Min>; reshard it to a finished spec first")
TESSERA_RULE(13, one_unfinished, sharding, "",
             "both operands of a product are unfinished sums; a product is linear in one of them "
             "at a time; reshard one to a finished spec first")
TESSERA_RULE(14, open_axis_contracted, sharding, "",
             "the result is Unreduced over an axis that splits no reduced dimension; "
             "name an axis of a reduced dimension, or ask for a finished result")
TESSERA_RULE(15, reduction_alike, sharding, "",
             "partial values of one kind meet a reduction of another; finish them first, or use "
             "the same kind")
TESSERA_RULE(16, extents_agree, shape, "{left} against {right}",
             "one letter stands for dimensions of different extent; make the extents equal")
TESSERA_RULE(
    17, along_known, sharding, "",
    "the operator runs along a letter that its operand does not have; write the letters of the "
    "operand, and one of them, as in cumsum<\"bij\", 'j'>(x)")
TESSERA_RULE(18, convolution_letters, sharding, "",
             "a convolution has a batch in input and result, an input feature in input and kernel, "
             "an output feature in kernel and result, and one to three spatial letters in all "
             "three; write them as in \"bhwi,hwio->bhwo\"")
TESSERA_RULE(
    19, indices_match, sharding, "{left} against {right}",
    "a take has one tensor of indices for each letter of its table that the result drops, "
    "a scatter for each letter of its result that the updates lack, and there are one to "
    "six of them; write as many groups of letters between table and result, or updates, or one "
    "group with a letter of its own, along which it has a column for each")
TESSERA_RULE(20, index_letter_kept, sharding, "",
             "a letter of the indices is missing in the result of a take, or in the updates of a "
             "scatter; indices are not summed away; keep the letter")

// ---- elements: plan/check/type_rules.hpp

TESSERA_RULE(21, products_of_numbers, usage, "",
             "truth values have no products and sums; cast them to a number first, or use "
             "logical_and with reduce<Any> or reduce<All>")
TESSERA_RULE(22, sums_of_numbers, usage, "",
             "the sum and the product of truth values are not truth values; count them with sum, "
             "which gives int64, cast them to an integer, or use reduce<Any> or reduce<All>")
TESSERA_RULE(23, means_of_floats, usage, "",
             "the mean of integers is not an integer, nor that of truth values a truth value; "
             "convert to float or double with cast first")
TESSERA_RULE(24, extremes_of_ordered, usage, "",
             "complex numbers have no largest and no smallest; use abs(x), real(x) or imag(x) "
             "first")
TESSERA_RULE(25, extremes_of_numbers, usage, "",
             "truth values are reduced by reduce<Any> and reduce<All>, not by their size; use one "
             "of these")
TESSERA_RULE(26, any_and_all_of_truths, usage, "",
             "numbers are not true or false; compare them first, as in not_equal(x, 0)")
TESSERA_RULE(27, wide_sums_of_finished, usage, "",
             "the tensor is an unfinished sum of narrow integers, which wraps in their own type, "
             "and sums of them have 64 bits; reshard it to a finished spec first, cast it to int64 "
             "or uint64 before it is left open, or name its own type, as in reduce<As<Sum, "
             "std::int8_t>, ...>")
TESSERA_RULE(
    28, wide_products_of_finished, usage, "",
    "the tensor is an unfinished product of narrow integers, which wraps in their own "
    "type, and products of them have 64 bits; reshard it to a finished spec first, cast it "
    "to int64 or uint64 before it is left open, or name its own type, as in "
    "reduce<As<Product, std::int8_t>, ...>")
TESSERA_RULE(29, sums_as_own_or_64_bits, usage, "",
             "sums and products have the tensor's own element type, or of integers and truth "
             "values int64 or uint64; name one of these in As<...>, or cast the result")

TESSERA_RULE(30, searches_of_ordered, usage, "",
             "complex numbers and truth values have no largest and no least; convert them to real "
             "numbers or integers first, for example with map")
TESSERA_RULE(31, indices_of_integers, usage, "",
             "the indices are of another element type; indices are int32 or int64; convert them "
             "with cast first")
TESSERA_RULE(32, factor_types_alike, shape, "{type} and {other}",
             "the operands have different element types; a product takes one; cast one of them")
TESSERA_RULE(33, update_types_alike, shape, "{type} and {other}",
             "the tensor and its updates have different element types; cast one of them")
TESSERA_RULE(
    34, norm_types_alike, shape, "{type} and {other}",
    "the tensor and its scale or bias have different element types; a norm takes one; cast "
    "one of them")
TESSERA_RULE(35, norm_of_rows, shape, "",
             "the tensor has no dimensions; a norm is over the last one; add one with expand_dims")
TESSERA_RULE(36, epsilon_not_negative, usage, "",
             "epsilon is negative or no number; a norm divides by the root of a variance and "
             "epsilon; give a number of at least 0, such as 1e-5")
TESSERA_RULE(37, joined_types_alike, shape, "{type} and {other}",
             "tensors that are put together have different element types; cast one of them")

// ---- indices, and slices that begin anywhere: plan/op/indexed/take.hpp, scatter.hpp, one_hot.hpp,
// dynamic_slice.hpp

TESSERA_RULE(
    38, indexed_not_empty, shape, "",
    "the indexed dimension {letter} has extent 0, and {left} of its elements are asked for; there "
    "is none to clamp an index to; make it longer, or drop such indices (OutOfRange::drop)")
TESSERA_RULE(39, indexed_window_within, shape, "",
             "a window has {left} elements along {letter}, and the tensor has {right}; there is no "
             "place to clamp it to; make it shorter, or drop such windows (OutOfRange::drop)")
TESSERA_RULE(40, indexed_window_each, shape, "",
             "the result has {left} letters of windows ({first}), and {right} extents of windows "
             "are given; give one for each letter, in the result's order, as in WindowSizes(3, 2)")
TESSERA_RULE(41, index_column_each, shape, "",
             "a tensor of indices has {left} columns along {letter}, and {right} letters have no "
             "tensor of their own; give it a column for each of them")
TESSERA_RULE(42, indexed_extent_each, shape, "",
             "the result has {left} indexed letters ({first}), and {right} extents are given; give "
             "one for each letter")
TESSERA_RULE(43, extent_not_negative, shape, "",
             "the result is given an extent of {left}; extents are not negative; give 0 or more")
TESSERA_RULE(44, moving_window_each, shape, "",
             "the window moves along {first}, {left} letters, and {right} {second} are given; give "
             "one for each letter")
TESSERA_RULE(45, moving_window_within, shape, "",
             "the window has {left} elements along {letter}, and the tensor has {right}; a window "
             "has from 0 elements to all of them; give such a size")
TESSERA_RULE(46, update_extents_alike, shape, "",
             "along {letter} the tensor has {left} elements and the update {right}; the extents "
             "are equal in the dimensions along which the window does not move; let it move along "
             "{letter} too, or make the extents equal")

// ---- operators that move dimensions: plan/check/shape_verdict.hpp

TESSERA_RULE(47, entry_each, shape, "{left} against {right}",
             "the spec of the result has another number of entries than the result has "
             "dimensions; write one entry for each dimension")
TESSERA_RULE(48, ranks_alike, shape, "{left} against {right}",
             "tensors that are put together have different numbers of dimensions; reshape one of "
             "them first")
TESSERA_RULE(49, dimension_known, shape, "dimension {dim} of {left}",
             "a dimension is named that the tensor does not have; dimensions count from 0; name "
             "one of the tensor's")
TESSERA_RULE(50, dimension_once, shape, "dimension {dim} of {left}",
             "a dimension is named twice; name each once")
TESSERA_RULE(51, unfinished_alike, sharding, "",
             "tensors that are put together are not Unreduced alike; finish them first, or leave "
             "all Unreduced over the same axes")
TESSERA_RULE(52, open_operand, sharding, "",
             "the result is Unreduced where the operand is not; an operator that moves elements "
             "keeps the Unreduced axes of its operand, and adds none; ask for a finished result")

// ---- numbers of operators that move elements: plan/check/shape_verdict.hpp

TESSERA_RULE(53, number_each, shape, "", "{first}; give one entry for each dimension")
TESSERA_RULE(54, slice_named, shape, "", "no slice is named; name at least one")
TESSERA_RULE(55, slice_within, shape, "",
             "the slice is [{left}, {right}){first}; 0 <= start <= limit <= extent; cut it to the "
             "tensor, or pad the tensor first")
TESSERA_RULE(56, stride_positive, shape, "",
             "the stride is {left}{first}; a stride is at least 1; to go backwards, use reverse")
TESSERA_RULE(57, interior_not_negative, shape, "",
             "the interior padding is {left}{first}; it is not negative; to leave elements out, "
             "use slice with a stride")
TESSERA_RULE(58, padding_countable, shape, "",
             "the padding is {first}; a padded dimension has fewer than 2^61 elements; pad less")
TESSERA_RULE(
    59, crop_within, shape, "",
    "the padding is {first}; negative padding crops, and cannot crop more than there is; crop less")
TESSERA_RULE(60, outside_joins, sharding, "",
             "the operand is {first}, and the value that lies outside it would be joined once for "
             "each part of the unfinished values; a sum takes 0 there, a product 0 or 1; reshard "
             "the operand to a finished spec first")
TESSERA_RULE(
    61, extents_beside, shape, "",
    "operand 1 is {first}: dimension {dim} has {left} elements in one and {right} in the "
    "other; all extents but that of dimension {second} are equal; pad or slice one of them "
    "first")
TESSERA_RULE(
    62, block_within, shape, "",
    "the block, of {first}, begins at {left}{second}; a block lies within the tensor; move it, "
    "or slice it first")
TESSERA_RULE(63, extents_not_negative, shape, "",
             "the new extents are {second}: dimension {dim} has {left} elements; extents are not "
             "negative; give 0 or more")
TESSERA_RULE(64, volume_stays, shape, "",
             "a tensor of {first} has {left} elements and one of {second} has {right}; reshape "
             "keeps their number; pad or slice the tensor first")

TESSERA_RULE(
    65, broadcast_fits, shape, "",
    "{first} does not broadcast to {second}; a dimension keeps its extent, or has extent 1 "
    "and stretches; NumPy's lines dimensions up from the right")

// ---- numbers of a convolution: plan/op/window/convolution.hpp, plan/op/window/convolve.hpp

TESSERA_RULE(66, convolution_entry_each, shape, "",
             "a setting has {left} entries and there are {right} spatial dimensions; give one for "
             "each, or none")
TESSERA_RULE(67, convolution_positive, shape, "",
             "a stride or dilation along {letter} is {left}; the least is 1; give 1 or more")
TESSERA_RULE(68, groups_positive, shape, "",
             "there are {left} groups of features and {right} of the batch; each is at least 1, "
             "and only one of them is more; give such numbers")
TESSERA_RULE(69, channels_match, shape, "",
             "the input has {left} features and the kernel, times the groups of features, {right}; "
             "make them equal")
TESSERA_RULE(70, groups_divide_out, shape, "",
             "{left} output features cannot be cut into {right} groups; make the kernel's a "
             "multiple of the groups")
TESSERA_RULE(71, groups_divide_batch, shape, "",
             "a batch of {left} cannot be cut into {right} groups; make it a multiple of the "
             "groups")
TESSERA_RULE(72, kernel_fits, shape, "",
             "the window along {letter} spans {left} positions and the padded input has {right}; "
             "pad more, or dilate less")
TESSERA_RULE(73, kernel_not_empty, shape, "",
             "the kernel along {letter} has no tap; give it an extent of at least 1")
TESSERA_RULE(
    74, gradient_extent_each, shape, "",
    "{left} extents ({second}) are given for the {first}, which has {right} dimensions; give "
    "one for each dimension")
TESSERA_RULE(75, gradient_fits, shape, "",
             "the gradient of the result is {first} and the result {second}; give the settings and "
             "extents of the operator itself")

// ---- windows: plan/region/window_settings.hpp, plan/op/window/reduce_window.hpp

TESSERA_RULE(76, window_entry_each, shape, "",
             "a setting of the window has {left} entries and the tensor {right} dimensions; give "
             "one for each dimension (only the size has to be given)")
TESSERA_RULE(77, window_positive, shape, "",
             "a size, stride or dilation of the window in dimension {dim} is {left}; the least is "
             "1; give 1 or more")
TESSERA_RULE(78, window_fits, shape, "",
             "the window in dimension {dim} spans {left} positions and the padded tensor has "
             "{right}; pad more, or use a smaller window")
TESSERA_RULE(79, source_each_window, shape, "",
             "the second tensor has extents {first}, and {second} are asked for; a source has one "
             "element for each window, and the values of a gather have one for each element")

// ---- halos: plan/op/halo/halo_exchange.hpp, plan/op/halo/halo_exchange.hpp

TESSERA_RULE(80, halo_width_each, shape, "",
             "there are widths for {left} dimensions and the tensor has {right}; give one HaloDim "
             "for each")
TESSERA_RULE(81, halo_not_negative, shape, "",
             "the halo of dimension {dim} is {left} low and {right} high; widths are 0 or more; to "
             "leave elements out, use slice")
TESSERA_RULE(82, halo_within_image, shape, "",
             "the halo of dimension {dim} is {left} wide, and the mirror image of {first} elements "
             "has {right}; make the halo narrower, or the boundary periodic")
TESSERA_RULE(83, halo_of_finished, sharding, "{first}",
             "a halo holds finished values, and the tensor's spec is Unreduced; reshard it to a "
             "spec without Unreduced first")
TESSERA_RULE(84, halo_types_alike, shape, "{type} and {other}",
             "tensors that share a halo exchange have different element types; one exchange takes "
             "one; cast one of them, or make two exchanges")

// ---- boxes: plan/check/check_boxes.hpp

TESSERA_RULE(85, box_each_process, shape, "",
             "{left} boxes are declared for {right} processes; declare one for each process, in "
             "order")
TESSERA_RULE(86, box_rank_matches, shape, "",
             "{first}, which has {left} dimensions, of a tensor {second}, which has {right}; give "
             "one interval for each dimension")
TESSERA_RULE(87, box_in_bounds, shape, "",
             "{first} of a tensor {second}; boxes are half-open intervals lo <= hi within it; give "
             "such a box")
TESSERA_RULE(88, boxes_disjoint, shape, "",
             "{first} and {second}; boxes are disjoint, or equal where processes have the same "
             "data; shrink one of them")
TESSERA_RULE(89, boxes_cover, shape, "",
             "no process declares {first} of the tensor {second}; together the boxes are the whole "
             "tensor; extend one of them")

// ---- functions on elements: op/elements/function_check.hpp

TESSERA_RULE(90, matrices_last, shape, "dimensions {left}",
             "the tensor has no matrices; a triangle is of matrices, which are the last two "
             "dimensions; add dimensions with expand_dims")
TESSERA_RULE(91, function_types_alike, usage, "",
             "the operands have different element types; elementwise functions do not convert; "
             "cast one of them, as in cast<double>(x)")
TESSERA_RULE(
    92, condition_of_truths, usage, "",
    "the elements of the condition are not bool; a choice needs bool; compare first, as in "
    "not_equal(x, 0)")
TESSERA_RULE(93, function_of_reals, usage, "",
             "this function is for real numbers and its operand is not real; cast<float>(x) or "
             "cast<double>(x) first")
TESSERA_RULE(94, function_of_numbers, usage, "",
             "this function is for numbers and its operand is bool; cast<std::int32_t>(x) first, "
             "or use logical_and, logical_or, logical_not")
TESSERA_RULE(95, function_of_ordered, usage, "",
             "this function is for numbers that have an order, and complex ones have none; use "
             "real(x), imag(x) or abs(x) first")
TESSERA_RULE(
    96, function_of_truths, usage, "",
    "this function is for bool and its operand is not; compare first, as in not_equal(x, 0)")
TESSERA_RULE(
    97, function_of_integers, usage, "",
    "this function is for integers and its operand is not an integer; cast<std::int32_t>(x) first")
TESSERA_RULE(98, function_of_complex, usage, "",
             "this function is for complex numbers and its operand is not complex; "
             "cast<complex<float>>(x) first")
TESSERA_RULE(99, function_defined, usage, "",
             "the function cannot be called with these elements; its operator() is const and takes "
             "one argument for each operand, of the operand's element type or one that it converts "
             "to")
TESSERA_RULE(100, function_makes_element, usage, "",
             "the function of a map returns a type that no tensor holds; return an element type, "
             "such as float, double or std::int32_t")

// ---- operations: plan/op/

TESSERA_RULE(101, reshardable, sharding, "",
             "finished values do not become partial, nor one partial kind another; drop Unreduced "
             "from the target")
TESSERA_RULE(102, made_finished, sharding, "",
             "the spec of a new tensor is Unreduced; a tensor is made finished, and only operators "
             "leave values Unreduced; drop Unreduced from "
             "its spec")
TESSERA_RULE(103, root_known, usage, "",
             "process {left} is named as root, but the mesh has {right} processes; processes are "
             "numbered from 0; name one of them")
TESSERA_RULE(104, dimensions_kept, shape, "{left} against {right}",
             "a reshard to another mesh keeps the number of dimensions; write one entry of the "
             "spec for each dimension")
TESSERA_RULE(105, arrives_finished, sharding, "",
             "the spec of a reshard to another mesh is Unreduced; a tensor arrives there finished; "
             "drop Unreduced from the spec")
TESSERA_RULE(106, limbs_suffice, shape, "{left} elements",
             "a row is too long for a deterministic sum, which takes 2^48; sum over some of the "
             "dimensions first")

TESSERA_RULE(107, row_not_empty, shape, "",
             "rows of a tensor of extents {first} have no element, so that none is the largest or "
             "least; a dimension that is searched has an extent of at least 1")
TESSERA_RULE(108, first_of_line, shape, "",
             "the first {left} elements along dimension {dim} of a tensor of extents {first} are "
             "asked for; ask for 0 to {right}")

#undef TESSERA_RULE
