// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How calls of operators that only move elements are made from their types, with numbers that
/// stand for all that a call may give. Dimensions, where a call names some, are template arguments:
/// they say what may be communicated.
///
///     slice<1>(x, {2}, {13});            // dimension 1 alone
///     slice<P<data, _>>(x, {0, 2}, {8, 13});
#include <tessera/op/call/call_options.hpp>
#include <tessera/op/call/outside.hpp>
#include <tessera/op/call/result.hpp>
#include <tessera/plan/op/shape/shape.hpp>
#include <tessera/run/request.hpp>

namespace tessera::detail {

/// The dimensions that a call names; none: all.
template <int... D> struct Along {
  static constexpr Dimensions of(int rank) {
    Dimensions dims;
    (dims.push_back(D), ...);
    for (int d = 0; dims.size() < rank && sizeof...(D) == 0; ++d) dims.push_back(d);
    return dims;
  }
  /// Returns 1 for each of them and 0 for the others.
  static constexpr Extents marks(int rank) {
    Extents marks(rank, 0);
    for (int d : of(rank))
      if (d >= 0 && d < rank) marks[d] = 1;
    return marks;
  }
};

/// Returns numbers for all dimensions of x, given those for the dimensions `D` that the call names;
/// the others have those of `others`. Where it names none, the numbers are for all dimensions
/// already.
template <int... D, class A>
Extents spread(const A&, std::string_view name, const Extents& numbers, const Extents& others,
               CallSite site) {
  static_assert(demand_elements<check_dimensions(Along<D...>::of(A::rank), A::rank).rule, A>());
  if constexpr (sizeof...(D) == 0) {
    return numbers;
  } else {
    constexpr Dimensions dims = Along<D...>::of(A::rank);
    if (const Verdict v = check_number_each(numbers, dims.size()); !v.ok())
      throw_broken(v.rule,
                   std::string(site.label) + ": " + explain(v, {.first = entries_text(name, v)}),
                   site.where);
    Extents all = others;
    for (int i = 0; i < dims.size(); ++i) all[dims[i]] = numbers[i];
    return all;
  }
}
/// Returns the slice that a call on dimensions `D` of x names.
template <int... D, class A>
Slice spread_slice(const A& x, const Extents& start, const Extents& limit, const Extents& stride,
                   CallSite site) {
  return {spread<D...>(x, "start", start, Extents(A::rank, 0), site),
          spread<D...>(x, "limit", limit, x.extents(), site),
          stride.empty() ? stride : spread<D...>(x, "stride", stride, Extents(A::rank, 1), site)};
}

}  // namespace tessera::detail
