// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Windows that begin where the program says while it runs: read, and written.
///
///     auto w = dynamic_slice<"bsm", 's'>(x, {start}, {16});            // 16 of s, from start on
///     auto y = dynamic_update_slice<"bsm", 's'>(x, w, {start});        // x with them replaced
///     dynamic_update_slice_into<"bsm", 's'>(cache, fresh, {position}); // in place: a cache of keys
///
/// Where a window begins is a number of the host, the same on every process. It is no part of the
/// plan: one plan, made once, serves all of them, and what is sent does not depend on it. (A window
/// whose place is fixed is a slice, which sends no more than that place needs.)
///
/// A window stays within the tensor: a start is clamped into [0, extent - size], XLA's rule.
///
/// Laws: equals the window of the whole tensor, to the bit; writing back what was read changes
/// nothing.
#include <tessera/op/indexed_operators.hpp>
#include <tessera/op/result.hpp>

namespace tessera {
namespace detail {
template <Equation Labels, Equation Along, class Out, class A> struct DynamicSliceCall {
  using mesh = typename A::mesh_type;
  static_assert(demand_out<mesh, Out>());
  static constexpr Terms terms = same_terms(Labels.view());
  static constexpr Terms along = same_terms(Along.view());
  static constexpr Shardings operands{A::sharding()};
  static constexpr Sharding make_value() {
    if constexpr (std::is_same_v<Out, Deduced>)
      return deduce_window(terms, along, operands[0]);
    else
      return lower<mesh, Out>();
  }
  static constexpr Sharding value = make_value();
  static constexpr Verdict verdict = check_dynamic_slice(terms, along, operands, value);
  static constexpr bool sound = verdict.ok() && founded<A>;
  static_assert(demand<DynamicSliceCall, A>());
  static constexpr Contract needs(const MeshShape& on, const Contract& contract) {
    return verdict.ok() ? needs_of_dynamic_slice(terms.result, along.result, operands[0], value, on,
                                                 contract)
                        : Contract::nothing();
  }
  using result = Result<typename A::value_type, mesh, DynamicSliceCall>;
};

template <Equation Labels, Equation Along, class Out, class A, class U> struct DynamicUpdateCall {
  using mesh = typename CommonMesh<A, U>::type;
  static_assert(demand_one_type<Rule::update_types_alike, A, U>());
  static_assert(demand_out<mesh, Out>());
  static constexpr Terms terms = same_terms(Labels.view());
  static constexpr Terms along = same_terms(Along.view());
  static constexpr Shardings operands{A::sharding(), U::sharding()};
  static constexpr Sharding make_value() {
    if constexpr (std::is_same_v<Out, Deduced>)
      return operands[0];
    else
      return lower<mesh, Out>();
  }
  static constexpr Sharding value = make_value();
  static constexpr Verdict verdict = check_dynamic_update(terms, along, operands, value);
  static constexpr bool sound = verdict.ok() && founded<A> && founded<U>;
  static_assert(demand<DynamicUpdateCall, A, U>());
  static constexpr Contract needs(const MeshShape& on, const Contract& contract) {
    return verdict.ok()
               ? needs_of_dynamic_update(terms.result, along.result, operands, value, on, contract)
               : Contract::nothing();
  }
  using result = Result<typename A::value_type, mesh, DynamicUpdateCall>;
};

template <char Letter> constexpr Equation one_letter() {
  const char text[2] = {Letter, 0};
  return Equation(text);
}
}  // namespace detail

/// Returns the window of x that begins at `start` and has `size` elements along each letter of
/// `Along`, of x's letters `Labels`, and all along the others. Its spec is x's, but for those
/// dimensions, which are whole, or `Out`. Communication: none when they are not split; else, over
/// the axes that split them, an all-reduce of the window (a reduce-scatter where `Out` uses them),
/// or what costs less. Collective over the mesh. Throws ShapeError when the window is larger than
/// x.
template <Equation Labels, Equation Along, class Out = Deduced, class Bound = NoContract,
          TypedTensor A>
typename detail::DynamicSliceCall<Labels, Along, Out, A>::result dynamic_slice(
    const A& x, const Extents& start, const Extents& size, Where where = Where::here()) {
  using Typed = detail::DynamicSliceCall<Labels, Along, Out, A>;
  detail::use_indexed<typename A::value_type>();
  return typename Typed::result(
      detail::dynamic_slice(Typed::terms, Typed::along, x.core(), start, size, Typed::value,
                            {"dynamic_slice", where, detail::bound<Typed, Bound>()}));
}
/// Along one letter.
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto dynamic_slice(const A& x, const Extents& start, const Extents& size,
                   Where where = Where::here()) {
  return dynamic_slice<Labels, detail::one_letter<Along>(), Out, Bound>(x, start, size, where);
}

/// Returns x with the window that begins at `start` replaced by `update`, under x's spec or `Out`.
/// x and update are finished, or unfinished alike. Communication: none when the window's dimensions
/// are not split and the shardings fit; else at most an all-gather of the update. Collective over
/// the mesh. Throws ShapeError when the update is larger than x.
template <Equation Labels, Equation Along, class Out = Deduced, class Bound = NoContract,
          TypedTensor A, TypedTensor U>
typename detail::DynamicUpdateCall<Labels, Along, Out, A, U>::result dynamic_update_slice(
    const A& x, const U& update, const Extents& start, Where where = Where::here()) {
  using Typed = detail::DynamicUpdateCall<Labels, Along, Out, A, U>;
  detail::use_indexed<typename A::value_type>();
  return typename Typed::result(detail::dynamic_update_slice(
      Typed::terms, Typed::along, x.core(), update.core(), start, Typed::value,
      {"dynamic_update_slice", where, detail::bound<Typed, Bound>()}));
}
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A,
          TypedTensor U>
auto dynamic_update_slice(const A& x, const U& update, const Extents& start,
                          Where where = Where::here()) {
  return dynamic_update_slice<Labels, detail::one_letter<Along>(), Out, Bound>(x, update, start,
                                                                               where);
}

/// Writes `update` over the window of x that begins at `start`; the rest of x is not touched.
/// Communication: as dynamic_update_slice. Collective over the mesh. Throws UsageError when x
/// shares memory with the update.
template <Equation Labels, Equation Along, class Bound = NoContract, TypedTensor A, TypedTensor U>
void dynamic_update_slice_into(A& x, const U& update, const Extents& start,
                               Where where = Where::here()) {
  using Typed = detail::DynamicUpdateCall<Labels, Along, typename A::spec, A, U>;
  detail::use_indexed<typename A::value_type>();
  detail::Extras extras;
  extras.into = &x.core();
  extras.destination = Destination::accumulated;
  (void)detail::dynamic_update_slice(
      Typed::terms, Typed::along, x.core(), update.core(), start, Typed::value,
      {"dynamic_update_slice", where, detail::bound<Typed, Bound>()}, extras);
}
template <Equation Labels, char Along, class Bound = NoContract, TypedTensor A, TypedTensor U>
void dynamic_update_slice_into(A& x, const U& update, const Extents& start,
                               Where where = Where::here()) {
  dynamic_update_slice_into<Labels, detail::one_letter<Along>(), Bound>(x, update, start, where);
}

/// The same with everything known at run time; `along` are letters of `labels`.
inline DynamicTensor dynamic_slice(std::string_view labels, std::string_view along,
                                   const DynamicTensor& x, const Extents& start,
                                   const Extents& size, const Sharding& out,
                                   Where where = Where::here()) {
  return DynamicTensor(detail::dynamic_slice(same_terms(labels), same_terms(along), x.core(), start,
                                             size, out, {"dynamic_slice", where}));
}
inline DynamicTensor dynamic_update_slice(std::string_view labels, std::string_view along,
                                          const DynamicTensor& x, const DynamicTensor& update,
                                          const Extents& start, const Sharding& out,
                                          Where where = Where::here()) {
  return DynamicTensor(detail::dynamic_update_slice(same_terms(labels), same_terms(along), x.core(),
                                                    update.core(), start, out,
                                                    {"dynamic_update_slice", where}));
}
inline void dynamic_update_slice_into(std::string_view labels, std::string_view along,
                                      const DynamicTensor& x, const DynamicTensor& update,
                                      const Extents& start, Where where = Where::here()) {
  detail::Extras extras;
  extras.into = &x.core();
  extras.destination = Destination::accumulated;
  (void)detail::dynamic_update_slice(same_terms(labels), same_terms(along), x.core(), update.core(),
                                     start, x.sharding(), {"dynamic_update_slice", where}, extras);
}

}  // namespace tessera
