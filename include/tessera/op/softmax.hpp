// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Softmax along a dimension, sharded or not, and its logarithm.
///
///     auto p = softmax<"bsv", 'v'>(logits);         // sums to 1 along v
///
/// Laws: rows sum to 1 to rounding; the largest element is subtracted first, so exp does not
/// overflow. For half types all is computed in float and rounded once, at the end.
#include <string>

#include <tessera/op/arithmetic.hpp>
#include <tessera/op/dynamic_map.hpp>
#include <tessera/op/functions.hpp>
#include <tessera/op/reduce.hpp>
#include <tessera/op/to_host.hpp>

namespace tessera {
namespace detail {
/// Functors of the second pass, after the row's maximum and the row's sum are known.
struct ShiftedExp {
  template <class T> KOKKOS_FUNCTION ComputeType<T> operator()(T x, T row_max) const {
    return fn::Exp{}(static_cast<ComputeType<T>>(x) - static_cast<ComputeType<T>>(row_max));
  }
};
struct ShiftedMinus {
  template <class T> KOKKOS_FUNCTION T operator()(T x, T row_max, ComputeType<T> row_log) const {
    return static_cast<T>(static_cast<ComputeType<T>>(x) - static_cast<ComputeType<T>>(row_max) -
                          row_log);
  }
};
/// a / b; for half types, of floats.
template <class T> struct QuotientAs {
  KOKKOS_FUNCTION T operator()(ComputeType<T> a, ComputeType<T> b) const {
    return static_cast<T>(a / b);
  }
};

/// Returns how often a letter stands in an equation. (Counted by index: with -fsanitize=undefined
/// g++ 12 does not accept a pointer into a template argument as a constant, so
/// std::string_view::find is not one.)
constexpr int count_letter(const Equation& e, char letter) {
  int count = 0;
  for (int i = 0; i < e.length; ++i) count += e.text[i] == letter;
  return count;
}

template <Equation Labels, char Along> struct RowEquations {
  static consteval bool said() {
    static_assert(count_letter(Labels, Along) == 1 && count_letter(Labels, '>') == 0,
                  "[tessera] softmax takes the letters of its operand and one of them: "
                  "softmax<\"bsv\", 'v'>(x)");
    return true;
  }
  static_assert(said());
  static constexpr Equation labels = Labels;
  static constexpr void append(Equation& e, const Equation& text) {
    for (int i = 0; i < text.length; ++i) e.text[e.length++] = text.text[i];
  }
  static constexpr void append_row(Equation& e) {
    for (int i = 0; i < Labels.length; ++i)
      if (Labels.text[i] != Along) e.text[e.length++] = Labels.text[i];
  }
  static constexpr Equation reduce = [] {  // "bsv->bs"
    Equation e;
    append(e, labels);
    append(e, "->");
    append_row(e);
    return e;
  }();
  static constexpr Equation spread = [] {  // "bsv,bs->bsv"
    Equation e;
    append(e, labels);
    append(e, ",");
    append_row(e);
    append(e, "->");
    append(e, labels);
    return e;
  }();
  static constexpr Equation spread_two = [] {  // "bsv,bs,bs->bsv"
    Equation e;
    append(e, labels);
    append(e, ",");
    append_row(e);
    append(e, ",");
    append_row(e);
    append(e, "->");
    append(e, labels);
    return e;
  }();
};

/// The equations of a softmax at run time.
struct RowTexts {
  std::string reduce, spread, spread_two;
  RowTexts(std::string_view labels, char along, CallSite site) {
    const std::string all = to_text(parse(labels).operands[0]);
    std::string row;
    for (const char letter : all)
      if (letter != along) row += letter;
    if (row.size() + 1 != all.size())
      throw UsageError(std::string(site.label) + ": '" + along + "' stands " +
                           std::to_string(all.size() - row.size()) + " times in \"" +
                           std::string(labels) +
                           "\"; it takes the letters of its operand and one of them",
                       site.where);
    reduce = all + "->" + row;
    spread = all + "," + row + "->" + all;
    spread_two = all + "," + row + "," + row + "->" + all;
  }
};
}  // namespace detail

/// Returns exp(x) / sum of exp(x) along the dimension `Along` of x, whose letters are `Labels`.
/// Communication: two all-reduces of a row's size over the axes that split `Along`, within the
/// contract `Bound`; none otherwise.
/// Collective over the mesh.
template <Equation Labels, char Along, class Bound = NoContract, TypedTensor A>
auto softmax(const A& x, Where where = Where::here()) {
  using Rows = detail::RowEquations<Labels, Along>;
  using T = typename A::value_type;
  static_assert(RealElement<T>,
                "[tessera] softmax is of floating-point tensors; convert with map first");
  if constexpr (RealElement<T>) {
    const auto e = map<Rows::spread>(detail::ShiftedExp{}, x,
                                     max<Rows::reduce, Deduced, Bound>(x, where), where);
    return map<Rows::spread>(detail::QuotientAs<T>{}, e,
                             sum<Rows::reduce, Deduced, Bound>(e, where), where);
  } else {
    return detail::Unknown<A>();
  }
}

/// Returns the logarithm of softmax(x), without forming the quotient.
/// Communication: as softmax. Collective over the mesh.
template <Equation Labels, char Along, class Bound = NoContract, TypedTensor A>
auto log_softmax(const A& x, Where where = Where::here()) {
  using Rows = detail::RowEquations<Labels, Along>;
  using T = typename A::value_type;
  static_assert(RealElement<T>,
                "[tessera] softmax is of floating-point tensors; convert with map first");
  if constexpr (RealElement<T>) {
    const auto row_max = max<Rows::reduce, Deduced, Bound>(x, where);
    const auto row_sum = sum<Rows::reduce, Deduced, Bound>(
        map<Rows::spread>(detail::ShiftedExp{}, x, row_max, where), where);
    return map<Rows::spread_two>(detail::ShiftedMinus{}, x, row_max, log(row_sum, where), where);
  } else {
    return detail::Unknown<A>();
  }
}

/// The same with everything known at run time, of elements T; the result is sharded as x, or
/// resharded to `out` at the end. Throw UsageError when x has other elements.
template <Element T>
DynamicTensor softmax(std::string_view labels, char along, const DynamicTensor& x,
                      const DynamicCall& call = Where::here()) {
  static_assert(RealElement<T>,
                "[tessera] softmax is of floating-point tensors; convert with map first");
  const detail::CallSite site = call.fresh_site("softmax");
  detail::require_type<T>(x, site);
  const detail::RowTexts rows(labels, along, site);
  const DynamicTensor largest = reduce<Max>(rows.reduce, x, call);
  const DynamicTensor e =
      detail::map_dynamic<T>(rows.spread, detail::ShiftedExp{}, x.sharding(), site, x, largest);
  return detail::map_dynamic<ComputeType<T>>(rows.spread, detail::QuotientAs<T>{}, x.sharding(),
                                             site, e, reduce<Sum>(rows.reduce, e, call));
}
template <Element T>
DynamicTensor log_softmax(std::string_view labels, char along, const DynamicTensor& x,
                          const DynamicCall& call = Where::here()) {
  static_assert(RealElement<T>,
                "[tessera] softmax is of floating-point tensors; convert with map first");
  const detail::CallSite site = call.fresh_site("log_softmax");
  detail::require_type<T>(x, site);
  const detail::RowTexts rows(labels, along, site);
  const DynamicTensor largest = reduce<Max>(rows.reduce, x, call);
  const DynamicTensor sums = reduce<Sum>(
      rows.reduce,
      detail::map_dynamic<T>(rows.spread, detail::ShiftedExp{}, x.sharding(), site, x, largest),
      call);
  const std::string row = rows.reduce.substr(rows.reduce.find('>') + 1);
  using C = ComputeType<T>;
  return detail::map_mixed<T, T, C>(
      rows.spread_two, detail::ShiftedMinus{}, x.sharding(), site, x, largest,
      detail::map_dynamic<C>(row + "->" + row, fn::Log{}, sums.sharding(), site, sums));
}
template <Element T>
DynamicTensor softmax(std::string_view labels, char along, const DynamicTensor& x,
                      const Sharding& out, const DynamicCall& call = Where::here()) {
  return DynamicTensor(
      detail::reshard(softmax<T>(labels, along, x, call).core(), out, call.site("softmax")));
}
template <Element T>
DynamicTensor log_softmax(std::string_view labels, char along, const DynamicTensor& x,
                          const Sharding& out, const DynamicCall& call = Where::here()) {
  return DynamicTensor(detail::reshard(log_softmax<T>(labels, along, x, call).core(), out,
                                       call.site("log_softmax")));
}

}  // namespace tessera
