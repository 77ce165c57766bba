// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Reading and writing windows that begin where the program says while it runs.
///
///     auto w = dynamic_slice<"bsm", 's'>(x, {start}, {16});            // 16 of s, from start on
///     auto y = dynamic_update_slice<"bsm", 's'>(x, w, {start});        // x with them replaced
///     dynamic_update_slice_into<"bsm", 's'>(cache, fresh, {position}); // in place: a cache of keys
///
/// Where a window begins is a number on the host, the same on every process. It is not part of the
/// plan: one plan serves all beginnings, and the messages do not depend on them. (A window whose
/// place is fixed is a slice, which sends no more than that place needs.)
///
/// A window stays within the tensor: a start is clamped into [0, extent - size], XLA's rule.
///
/// Laws: equals the window of the whole tensor, to the bit; writing back what was read changes
/// nothing.
#include <tessera/op/call/call_options.hpp>
#include <tessera/op/call/operators.hpp>
#include <tessera/op/call/result.hpp>
#include <tessera/plan/op/indexed/dynamic_slice.hpp>

namespace tessera {
namespace detail {
/// How dynamic_slice<Labels, Along> is made, and dynamic_update_slice.
template <Equation Labels, Equation Along> struct DynamicSliceBy {
  static constexpr ops::DynamicSlice make(const TensorDescs&) {
    return {same_terms(Labels.view()), same_terms(Along.view())};
  }
};
template <Equation Labels, Equation Along> struct DynamicUpdateSliceBy {
  static constexpr ops::DynamicUpdateSlice make(const TensorDescs&) {
    return {same_terms(Labels.view(), 2), same_terms(Along.view())};
  }
};

/// Returns where a window begins in each dimension.
inline Extents starts_of(const Terms& terms, const Terms& along, const Extents& start) {
  Extents starts(terms.result.size(), 0);
  for (int k = 0; k < along.result.size() && k < start.size(); ++k)
    if (const int d = terms.result.find(along.result[k]); d >= 0) starts[d] = start[k];
  return starts;
}
/// Runs an operator whose window begins at `start`, a number for each letter along which it moves.
template <class Op>
TensorCore run_window(const Op& operation, const OperandList& operands, const Extents& start,
                      CallSite site, Extras extras = {}) {
  const Term& along = operation.along.result;
  if (const Verdict v{
          .rule = Rule::moving_window_each, .left = along.size(), .right = start.size()};
      v.left != v.right)
    throw_broken(
        v.rule,
        std::string(site.label) + ": " + explain(v, {.first = to_text(along), .second = "starts"}),
        site.where);
  const Extents starts = starts_of(operation.terms, operation.along, start);
  extras.starts = &starts;
  return run({operation, operands, site, extras});
}
template <char Letter> constexpr Equation one_letter() {
  const char text[2] = {Letter, 0};
  return Equation(text);
}
}  // namespace detail

/// Returns the window of x that begins at `start` and has `size` elements along each letter of
/// `Along`, of x's letters `Labels`, and is whole along the others. Its spec is `Out`, or x's
/// without the axes that split dimensions of `Along`. Communication: none when those dimensions are
/// not split; else, over the axes that split them, an all-reduce of the window (a reduce-scatter
/// where `Out` uses them), or whatever costs less. Collective over the mesh. Throws ShapeError when
/// the window is larger than x.
template <Equation Labels, Equation Along, class Out = Deduced, class Bound = NoContract,
          TypedTensor A>
auto dynamic_slice(const A& x, const Extents& start, const Extents& size,
                   const CallOptions& call = Where::here()) {
  using Typed = detail::Typed<detail::DynamicSliceBy<Labels, Along>, Out, A>;
  detail::use_indexed<typename A::value_type>();
  ops::DynamicSlice operation = Typed::operation;
  operation.size = size;
  return typename Typed::result(
      detail::run_window(operation, {&x.core()}, start,
                         detail::typed_site<Typed, Bound>("dynamic_slice", call, x.core())));
}
/// Along one letter.
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto dynamic_slice(const A& x, const Extents& start, const Extents& size,
                   const CallOptions& call = Where::here()) {
  return dynamic_slice<Labels, detail::one_letter<Along>(), Out, Bound>(x, start, size, call);
}

/// Returns x with the window that begins at `start` replaced by `update`, under x's spec or `Out`.
/// x and update are finished, or unfinished alike. Communication: none when the window's dimensions
/// are not split and the shardings fit; else at most an all-gather of the update. Collective over
/// the mesh. Throws ShapeError when the update is larger than x.
template <Equation Labels, Equation Along, class Out = Deduced, class Bound = NoContract,
          TypedTensor A, TypedTensor U>
auto dynamic_update_slice(const A& x, const U& update, const Extents& start,
                          const CallOptions& call = Where::here()) {
  using Typed = detail::Typed<detail::DynamicUpdateSliceBy<Labels, Along>, Out, A, U>;
  detail::use_indexed<typename A::value_type>();
  return typename Typed::result(
      detail::run_window(Typed::operation, {&x.core(), &update.core()}, start,
                         detail::typed_site<Typed, Bound>("dynamic_update_slice", call, x.core())));
}
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A,
          TypedTensor U>
auto dynamic_update_slice(const A& x, const U& update, const Extents& start,
                          const CallOptions& call = Where::here()) {
  return dynamic_update_slice<Labels, detail::one_letter<Along>(), Out, Bound>(x, update, start,
                                                                               call);
}

/// Writes `update` over the window of x that begins at `start`; the rest of x is not touched.
/// Communication: as dynamic_update_slice. Collective over the mesh. Throws UsageError when x
/// shares memory with the update.
template <Equation Labels, Equation Along, class Bound = NoContract, TypedTensor A, TypedTensor U>
void dynamic_update_slice_into(A& x, const U& update, const Extents& start,
                               Where where = Where::here()) {
  using Typed = detail::Typed<detail::DynamicUpdateSliceBy<Labels, Along>, typename A::spec, A, U>;
  detail::use_indexed<typename A::value_type>();
  ops::DynamicUpdateSlice operation = Typed::operation;
  operation.in_place = true;
  (void)detail::run_window(operation, {&update.core(), &x.core()}, start,
                           {"dynamic_update_slice", where, detail::bound<Typed, Bound>()},
                           detail::changing(x.core()));
}
template <Equation Labels, char Along, class Bound = NoContract, TypedTensor A, TypedTensor U>
void dynamic_update_slice_into(A& x, const U& update, const Extents& start,
                               Where where = Where::here()) {
  dynamic_update_slice_into<Labels, detail::one_letter<Along>(), Bound>(x, update, start, where);
}

/// These overloads take everything at run time; `along` are letters of `labels`; without a sharding
/// the result's is deduced.
inline DynamicTensor dynamic_slice(std::string_view labels, std::string_view along,
                                   const DynamicTensor& x, const Extents& start,
                                   const Extents& size, const CallOptions& call = Where::here()) {
  const detail::CallSite site = call.sharded_site("dynamic_slice");
  ops::DynamicSlice operation{detail::same_terms(labels), detail::same_terms(along), size};
  detail::mesh_of(x.core(), site);
  operation.out = call.out() != nullptr ? *call.out() : operation.deduced({x.desc()});
  return DynamicTensor(detail::run_window(operation, {&x.core()}, start, site));
}
inline DynamicTensor dynamic_update_slice(std::string_view labels, std::string_view along,
                                          const DynamicTensor& x, const DynamicTensor& update,
                                          const Extents& start,
                                          const CallOptions& call = Where::here()) {
  const ops::DynamicUpdateSlice operation{detail::same_terms(labels, 2), detail::same_terms(along),
                                          false, call.out_or(x)};
  return DynamicTensor(detail::run_window(operation, {&x.core(), &update.core()}, start,
                                          call.sharded_site("dynamic_update_slice")));
}
inline void dynamic_update_slice_into(std::string_view labels, std::string_view along,
                                      const DynamicTensor& x, const DynamicTensor& update,
                                      const Extents& start,
                                      const CallOptions& call = Where::here()) {
  const ops::DynamicUpdateSlice operation{detail::same_terms(labels, 2), detail::same_terms(along),
                                          true, x.sharding()};
  (void)detail::run_window(operation, {&update.core(), &x.core()}, start,
                           call.site("dynamic_update_slice"), detail::changing(x.core()));
}

}  // namespace tessera
