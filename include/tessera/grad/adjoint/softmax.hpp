// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The adjoint of softmax and of its logarithm.
///
///     // y = softmax(x): dx = y (dy - sum(dy y))
///
/// Laws: the gradient of a softmax sums to zero along its dimension.
#include <tuple>

#include <tessera/grad/adjoint/parts.hpp>
#include <tessera/kernel/functions/derivative.hpp>
#include <tessera/kernel/functions/exponential.hpp>
#include <tessera/plan/op/rows/softmax.hpp>

namespace tessera {
namespace fn {
/// y (dy - s)
struct SoftmaxBack {
  static constexpr std::string_view name = "gradient";
  template <int I>
  using slope_by = std::tuple_element_t<
      I, std::tuple<SlopeBy<Same, 1>, SlopeBy<Subtract, 0, 2>, SlopeBy<Negate, 1>>>;
  template <RealElement T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(const T& dy, const T& y, const T& s) const {
    using C = ComputeType<T>;
    return static_cast<T>(static_cast<C>(y) * (static_cast<C>(dy) - static_cast<C>(s)));
  }
};
/// -e^y s and -e^y
struct NegativeExp {
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(const T& y, const T& s) const {
    using C = ComputeType<T>;
    return static_cast<T>(-Exp{}(static_cast<C>(y)) * static_cast<C>(s));
  }
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(const T& y) const {
    return static_cast<T>(-Exp{}(static_cast<ComputeType<T>>(y)));
  }
};
/// dy - e^y s
struct LogSoftmaxBack {
  static constexpr std::string_view name = "gradient";
  template <int I>
  using slope_by = std::tuple_element_t<
      I, std::tuple<UnitSlope, SlopeBy<NegativeExp, 1, 2>, SlopeBy<NegativeExp, 1>>>;
  template <RealElement T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(const T& dy, const T& y, const T& s) const {
    using C = ComputeType<T>;
    return static_cast<T>(static_cast<C>(dy) - Exp{}(static_cast<C>(y)) * static_cast<C>(s));
  }
};
}  // namespace fn

namespace detail {

inline void adjoint_of(const ops::Softmax& op, AdjointBuilder& build) {
  const Term& letters = op.terms.result;
  const AdjointValue g = build.cotangent(), y = build.finish(build.result());
  const TensorDesc made = build.desc(g);
  Terms rows{{letters}, {}};
  for (char letter : letters)
    if (letter != op.along) rows.result.push_back(letter);
  const Sharding out = sharding_of(rows.result, letters, made.sharding);
  const AdjointValue sum =
      op.logarithm ? build.add(ops::Reduce{rows, Reduction::sum, false, false, made.type, out}, {g})
                   : build.add(ops::Einsum{{{letters, letters}, rows.result}, out}, {g, y});
  const auto f = op.logarithm ? function_of<3>(made.type, fn::LogSoftmaxBack{})
                              : function_of<3>(made.type, fn::SoftmaxBack{});
  build.set(0, mapped(build, {{letters, letters, rows.result}, letters}, {g, y, sum}, made.type,
                      made.sharding, f));
}

inline const bool softmax_has_adjoint = have_adjoints<ops::Softmax>();

}  // namespace detail
}  // namespace tessera
