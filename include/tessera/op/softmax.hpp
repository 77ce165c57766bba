// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Softmax along a dimension, sharded or not, and its logarithm.
///
///     auto p = softmax<"bsv", 'v'>(logits);         // sums to 1 along v
///
/// Laws: rows sum to 1 to rounding; the largest element is subtracted first, so exp does not overflow.
#include <tessera/op/arithmetic.hpp>
#include <tessera/op/reduce.hpp>

namespace tessera {
namespace detail {
/// Functors of the second pass, after the row's maximum and the row's sum are known.
struct ShiftedExp {
  template <class T>
  KOKKOS_FUNCTION T operator()(T x, T row_max) const {
    return fn::Exp{}(x - row_max);
  }
};
struct ShiftedMinus {
  template <class T>
  KOKKOS_FUNCTION T operator()(T x, T row_max, T row_log) const {
    return x - row_max - row_log;
  }
};

template <Equation Labels, char Along>
struct RowEquations {
  static constexpr std::string_view labels = Labels.view();
  static_assert(labels.find(Along) != std::string_view::npos && labels.find("->") == std::string_view::npos,
                "[tessera] softmax takes the letters of its operand and one of them: softmax<\"bsv\", 'v'>(x)");
  static constexpr void append(Equation& e, std::string_view text) {
    for (char c : text) e.text[e.length++] = c;
  }
  static constexpr void append_row(Equation& e) {
    for (char c : labels)
      if (c != Along) e.text[e.length++] = c;
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
}  // namespace detail

/// Returns exp(x) / sum of exp(x) along the dimension `Along` of x, whose letters are `Labels`.
/// Communication: two all-reduces of a row's size over the axes that split `Along`; none otherwise. Collective over the mesh.
template <Equation Labels, char Along, TypedTensor A>
auto softmax(const A& x, Where where = Where::here()) {
  using Rows = detail::RowEquations<Labels, Along>;
  const auto e = map<Rows::spread>(detail::ShiftedExp{}, x, max<Rows::reduce>(x, where));
  return map<Rows::spread>(fn::Divide{}, e, sum<Rows::reduce>(e, where));
}

/// Returns the logarithm of softmax(x), without forming the quotient.
/// Communication: as softmax. Collective over the mesh.
template <Equation Labels, char Along, TypedTensor A>
auto log_softmax(const A& x, Where where = Where::here()) {
  using Rows = detail::RowEquations<Labels, Along>;
  const auto row_max = max<Rows::reduce>(x, where);
  const auto row_sum = sum<Rows::reduce>(map<Rows::spread>(detail::ShiftedExp{}, x, row_max), where);
  return map<Rows::spread_two>(detail::ShiftedMinus{}, x, row_max, log(row_sum));
}

}  // namespace tessera
