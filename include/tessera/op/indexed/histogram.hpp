// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How many elements lie in each of equal parts of an interval: NumPy's histogram. A map to the
/// numbers of the parts, and a bincount (op/indexed/bincount.hpp).
///
///     auto h = histogram<"bs->v">(x, 64, -4.0, 4.0);     // h[v]: int64
///     auto rows = histogram<"bs->bv">(x, 64, -4.0, 4.0); // for each b by itself
///
/// Laws: part v holds the elements from edge v up to, but not including, edge v + 1, the last one
/// also hi; edge v is lo + v * ((hi - lo) / bins) in double. Elements outside, and NaNs, are left
/// out.
#include <limits>
#include <string>
#include <string_view>

#include <tessera/op/elements/dynamic_map.hpp>
#include <tessera/op/indexed/bincount.hpp>

namespace tessera {
namespace detail {
/// The number of an element's part, or -1.
struct PartOf {
  double lo, hi;
  Index bins;
  KOKKOS_FUNCTION double edge(Index v) const {
    return v == bins ? hi : lo + static_cast<double>(v) * ((hi - lo) / static_cast<double>(bins));
  }
  template <class T>
    requires(is_real(dtype_of<T>) || is_integer(dtype_of<T>))
  KOKKOS_FUNCTION std::int64_t operator()(T element) const {
    const double x = static_cast<double>(element);
    if (!(x >= lo && x <= hi)) return -1;
    Index v = static_cast<Index>((x - lo) / (hi - lo) * static_cast<double>(bins));
    v = v < 0 ? 0 : v < bins ? v : bins - 1;
    while (v > 0 && x < edge(v)) --v;
    while (v + 1 < bins && x >= edge(v + 1)) ++v;
    return v;
  }
};
inline PartOf parts_of(Index bins, double lo, double hi, Where where) {
  if (bins < 1 || !(lo < hi) || !(hi - lo <= std::numeric_limits<double>::max()))
    throw ShapeError("histogram: " + std::to_string(bins) + " parts of the interval from " +
                         std::to_string(lo) + " to " + std::to_string(hi) +
                         "; give at least one part, of a finite interval whose end is beyond its "
                         "beginning",
                     where);
  return {lo, hi, bins};
}
}  // namespace detail

/// Returns how many elements of x lie in each of `bins` equal parts of the interval from lo to hi,
/// as int64, by the equation E, whose new letter counts the parts; its other letters are batches.
/// Communication: as bincount. Collective over the mesh. Throws ShapeError when there is no part,
/// or the interval is empty.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto histogram(const A& x, Index bins, double lo, double hi,
               const CallOptions& call = Where::here()) {
  return bincount<E, Out, Bound>(map(detail::parts_of(bins, lo, hi, call.where()), x, call.where()),
                                 bins, OutOfRange::drop, call);
}
/// This overload takes everything but the element type T at run time; without a sharding the
/// result's is deduced.
template <Element T>
DynamicTensor histogram(std::string_view equation, const DynamicTensor& x, Index bins, double lo,
                        double hi, const CallOptions& call = Where::here()) {
  const detail::PartOf part = detail::parts_of(bins, lo, hi, call.where());
  const std::string letters = to_text(detail::default_labels(x.core().rank()));
  const DynamicTensor parts = detail::map_dynamic<T>(letters + "->" + letters, part, x.sharding(),
                                                     {"histogram", call.where()}, x);
  return bincount(equation, parts, bins, OutOfRange::drop, call);
}

}  // namespace tessera
