// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The functions of elements in the loop over blocks (nn/detail/block_attention.hpp), and its
/// operators on dynamic tensors.
///
///     auto weights = block_map<T, T, T>("bgrst,bgrs->bgrst", fn::ExpAbove{}, on, where, scores, most);
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/grad/adjoint/softmax.hpp>
#include <tessera/grad/derivatives/arithmetic.hpp>
#include <tessera/kernel/functions/arithmetic.hpp>
#include <tessera/kernel/functions/cast.hpp>
#include <tessera/kernel/functions/comparison.hpp>
#include <tessera/kernel/functions/exponential.hpp>
#include <tessera/nn/detail/block_sizes.hpp>
#include <tessera/op/call/operators.hpp>
#include <tessera/op/elements/map.hpp>
#include <tessera/op/shape/concatenate.hpp>
#include <tessera/op/shape/slice.hpp>

namespace tessera {
namespace fn {
/// e^(x - m); 0 of a masked score, where m may be one too.
struct ExpAbove {
  static constexpr std::string_view name = "exp above";
  template <int I>
  using slope_by =
      std::conditional_t<I == 0, SlopeBy<Same, reads_result>, SlopeBy<Negate, reads_result>>;
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x, T m) const {
    return of(x, m);
  }
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x, T m) {
    const bool masked = x == static_cast<T>(tessera::detail::masked_score);
    return tessera::detail::choose(masked, T(0), tessera::detail::exp_of(x - m));
  }
};
/// e^(x - m) w, where e^(x - m) is ExpAbove's; 0 of a masked score, whatever w is.
struct ShareAbove {
  static constexpr std::string_view name = "share";
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x, T m, T w) const {
    const T e = ExpAbove::of(x, m);
    return tessera::detail::choose(e == T(0), T(0), e * w);
  }
  template <int I, RealElement T> KOKKOS_FORCEINLINE_FUNCTION T derivative(T x, T m, T w) const {
    return I == 2 ? ExpAbove::of(x, m) : I == 1 ? -(*this)(x, m, w) : (*this)(x, m, w);
  }
};
/// A key where it and its value are finite, else NaN: so are the scores of queries that see it.
struct SpoiltKey {
  static constexpr std::string_view name = "key";
  template <int I> using slope_by = std::conditional_t<I == 0, UnitSlope, ZeroSlope>;
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T key, T value) const {
    return IsFinite{}(key) && IsFinite{}(value) ? key : std::numeric_limits<T>::quiet_NaN();
  }
};
/// What an element of a gradient is: 0 zero, 1 finite, 2 not.
template <class S> struct GradientKind {
  static constexpr std::string_view name = "kind of gradient";
  static constexpr Slope slope = Slope::zero;
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION S operator()(T dy) const {
    return static_cast<S>(dy == T{} ? 0.0f : IsFinite{}(dy) ? 1.0f : 2.0f);
  }
};
/// A weight on the way back, by the kind of its query's gradient: one that is not finite passes no
/// gradient of zero, and a gradient that is not finite makes NaN of each that is not zero. A finite
/// weight stays beside a gradient of zero, since it is the derivative by that.
struct WeightBack {
  static constexpr std::string_view name = "weight";
  template <int I> using slope_by = std::conditional_t<I == 0, UnitSlope, ZeroSlope>;
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T weight, T kind) const {
    if (weight == T{}) return T{};
    if (kind == T{}) return IsFinite{}(weight) ? weight : T{};
    return kind > static_cast<T>(1.5f) ? std::numeric_limits<T>::quiet_NaN() : weight;
  }
};
/// SoftmaxBack's w (dy - s); 0 of a weight of 0, whatever the others are.
struct MaskedSoftmaxBack {
  static constexpr std::string_view name = "gradient";
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T dy, T w, T s) const {
    return w == T{} ? T{} : SoftmaxBack{}(dy, w, s);
  }
  template <int I, RealElement T> KOKKOS_FORCEINLINE_FUNCTION T derivative(T dy, T w, T s) const {
    if (w == T{}) return T{};
    return I == 0 ? w : I == 1 ? dy - s : -w;
  }
};
/// 1 / x; 0 of the sum of no weights.
struct ShareOfSum {
  static constexpr std::string_view name = "share of a sum";
  template <int> using slope_by = Derivative<Reciprocal, 0>;
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    return tessera::detail::choose(x == T(0), T(0), T(1) / x);
  }
};
/// x a + y
struct ScaledSum {
  static constexpr std::string_view name = "scaled sum";
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x, T a, T y) const {
    return x * a + y;
  }
  template <int I, RealElement T> KOKKOS_FORCEINLINE_FUNCTION T derivative(T x, T a, T) const {
    return I == 0 ? a : I == 1 ? x : T(1);
  }
};
/// A score, and what is added to it by the key's distance, which may be narrower.
struct WithBias {
  static constexpr std::string_view name = "relative bias";
  template <int> using slope_by = UnitSlope;
  template <RealElement S, RealElement T> KOKKOS_FORCEINLINE_FUNCTION S operator()(S x, T b) const {
    return x + static_cast<S>(b);
  }
};
}  // namespace fn

namespace detail {

/// Returns f of tensors of elements X, by letters; R is what f returns.
template <class R, class... X, class F, class... A>
DynamicTensor block_map(std::string_view equation, const F& f, const Sharding& out, Where where,
                        const A&... x) {
  const ops::Map operation{parse(equation), dtype_of<R>, detail::linearity<F, X...>, out, false};
  return DynamicTensor(run({operation,
                            {&x.core()...},
                            {function_name<F>(), where},
                            {.kernel = MapRunner<R, F, X...>::kernel(f)}}));
}
/// The same of a function of the place among a block of scores, the score, and what is beside it;
/// linear indices are those in a tensor of extents `all`.
template <class R, class... X, class F, class... A>
DynamicTensor placed_map(std::string_view equation, const F& f, const Extents& all, Where where,
                         const DynamicTensor& x, const A&... beside) {
  const ops::Map operation{parse(equation), dtype_of<R>, Linearity::pointwise, x.sharding()};
  const OperandList operands{&x.core(), &beside.core()...};
  PlacedFunction<F> placed{f, {}, {}};
  place_result(operation.terms, operands, x.sharding(), placed.offset, placed.extents);
  placed.extents = all;
  return DynamicTensor(run({operation,
                            operands,
                            {function_name<F>(), where},
                            {.kernel = IndexRunner<R, F, R, X...>::kernel(placed)}}));
}

/// The equations of a function of each element, of one tensor and of two.
struct EachElement {
  std::string_view of_one, of_two;
};
/// Returns those of a bias's table, of keys, or of queries: tensors of so many dimensions.
inline EachElement each_element(std::size_t rank) {
  if (rank == 3) return {"zgr->zgr", "zgr,zgr->zgr"};
  if (rank == 4) return {"btgd->btgd", "btgd,btgd->btgd"};
  return {"bsgrd->bsgrd", "bsgrd,bsgrd->bsgrd"};
}
/// Returns the tensor in another element type.
template <class To, class From> DynamicTensor converted(const DynamicTensor& x, Where where) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else {
    return block_map<To, From>(each_element(x.extents().size()).of_one, fn::Cast<To>{},
                               x.sharding(), where, x);
  }
}
/// Returns the weights of queries s and keys t without those that are dropped; `all` are the
/// extents of all weights.
template <class T>
DynamicTensor thinned(const DynamicTensor& weights, fn::Dropped drop, Span s, Span t,
                      const Extents& all, Where where) {
  drop.first += s.from * all[4] + t.from;
  return placed_map<T>("bgrst->bgrst", drop, all, where, weights);
}
inline DynamicTensor product(std::string_view equation, const DynamicTensor& a,
                             const DynamicTensor& b, const Sharding& out, Where where) {
  return DynamicTensor(einsum(parse(equation), a.core(), b.core(), out, {equation, where}));
}

/// Returns the tensors one behind the other, eight at a time.
inline DynamicTensor joined(int dim, std::vector<DynamicTensor> parts, Where where) {
  while (parts.size() > 1) {
    std::vector<DynamicTensor> fewer;
    for (std::size_t i = 0; i < parts.size(); i += max_operands) {
      std::vector<DynamicTensor> some;
      for (std::size_t k = i; k < parts.size() && k < i + max_operands; ++k)
        some.push_back(std::exchange(parts[k], {}));
      fewer.push_back(some.size() == 1 ? some[0] : concatenate(dim, some, where));
    }
    parts = std::move(fewer);
  }
  return parts[0];
}
/// Returns places span.from to before span.to of a dimension that is whole.
inline DynamicTensor part_of(const DynamicTensor& x, int dim, Span span, Where where) {
  if (span.from == 0 && span.to == x.extents()[dim]) return x;
  Extents start(x.extents().size(), 0), limit = x.extents();
  start[dim] = span.from;
  limit[dim] = span.to;
  return slice(x, start, limit, {}, where);
}

}  // namespace detail
}  // namespace tessera
