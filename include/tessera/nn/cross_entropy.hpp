// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Cross-entropy of scores, and the mean of the losses that count. Scores that are split by
/// vocabulary are never gathered.
///
///     auto losses = cross_entropy(scores, targets);       // (batch, sequence), in nats
///     auto loss = mean_where(losses, valid);              // a scalar
///     auto soft = cross_entropy(scores, targets, {.smoothing = 0.1, .z = 1e-4});
///
/// Laws: cross_entropy(x, t) == log of the sum of exp(x) - x[t]; its gradient is softmax(x) minus
/// one at t, and zero for a row whose loss does not count, whatever lies there: NaN, too. Half
/// types are computed in float. Errors: those of the operators that it is made of.
#include <string>
#include <type_traits>

#include <tessera/base/error.hpp>
#include <tessera/grad/custom_gradient.hpp>
#include <tessera/kernel/functions/exponential.hpp>
#include <tessera/nn/detail/letters.hpp>
#include <tessera/op/elements/arithmetic.hpp>
#include <tessera/op/elements/cast.hpp>
#include <tessera/op/elements/comparison.hpp>
#include <tessera/op/elements/map.hpp>
#include <tessera/op/indexed/take.hpp>
#include <tessera/op/reduce.hpp>
#include <tessera/op/rows/statistics.hpp>

namespace tessera {

/// What a cross-entropy has beside the target.
struct CrossEntropyOptions {
  /// The target's probability is to be 1 - smoothing, and that of each token smoothing / vocabulary
  /// more. Source: Szegedy et al., "Rethinking the Inception Architecture" (2016), section 7.
  double smoothing = 0;
  /// z times the square of the log of the sum of exp, which keeps scores near zero. Source:
  /// Chowdhery et al., "PaLM" (2022), section 5.
  double z = 0;
};

namespace fn {
/// (p (1 + 2 z log of the sum of exp) - hit [i is the target] - share) dy, p = exp(x - log of the
/// sum of exp), i the index along the last dimension; 0 where dy is 0, as in rows that are masked,
/// which may hold anything.
struct CrossEntropyGradient {
  static constexpr std::string_view name = "gradient of a cross-entropy";
  template <class> static constexpr bool computes_much = true;
  Index last;  ///< of the vocabulary
  double hit, share, z;
  template <class T, class Id, class C = ComputeType<T>>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(const GlobalIndex& i, T x, ComputeType<T> total,
                                           Id target, ComputeType<T> dy) const {
    return static_cast<T>(
        tessera::detail::choose(dy == 0, C(0), slope_of(i, x, total, target) * dy));
  }
  template <int I, class T, class Id, class C = ComputeType<T>>
  KOKKOS_FORCEINLINE_FUNCTION C derivative(const GlobalIndex& i, T x, ComputeType<T> total,
                                           Id target, ComputeType<T> dy) const {
    const C p = tessera::detail::choose(dy == 0 && I < 2, C(0), exp_of(x, total));
    if constexpr (I == 0) return p * growth(total) * dy;
    if constexpr (I == 1) return p * (static_cast<C>(2 * z) - growth(total)) * dy;
    if constexpr (I == 2) return C(0);
    return slope_of(i, x, total, target);
  }

 private:
  template <class C> KOKKOS_FORCEINLINE_FUNCTION C growth(C total) const {
    return C(1) + static_cast<C>(2 * z) * total;
  }
  template <class T, class Id>
  KOKKOS_FORCEINLINE_FUNCTION ComputeType<T> slope_of(const GlobalIndex& i, T x,
                                                      ComputeType<T> total, Id target) const {
    using C = ComputeType<T>;
    return exp_of(x, total) * growth(total) - one_at(i, target, x) * static_cast<C>(hit) -
           static_cast<C>(share);
  }
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static ComputeType<T> exp_of(T x, ComputeType<T> total) {
    return Exp{}(static_cast<ComputeType<T>>(x) - total);
  }
  template <class T, class Id>
  KOKKOS_FORCEINLINE_FUNCTION ComputeType<T> one_at(const GlobalIndex& i, Id target, T) const {
    const Index t = max_of(0, min_of(static_cast<Index>(target), last));
    return tessera::detail::choose(i.back() == t, ComputeType<T>(1), ComputeType<T>(0));
  }
};
/// log of the sum of exp - hit x[target] - share sum of x + z (log of the sum of exp)^2.
struct SmoothedLoss {
  static constexpr std::string_view name = "smoothed cross-entropy";
  double hit, share, z;
  /// What has no part in it may be infinite.
  template <class C> KOKKOS_FORCEINLINE_FUNCTION C operator()(C total, C chosen, C sum) const {
    const C own = tessera::detail::choose(hit == 0, C(0), static_cast<C>(hit) * chosen),
            all = tessera::detail::choose(share == 0, C(0), static_cast<C>(share) * sum);
    return total - own - all + static_cast<C>(z) * total * total;
  }
};
/// A sum over its count, of at least one, as T.
template <class T> struct OverCount {
  static constexpr std::string_view name = "mean";
  template <class C> KOKKOS_FORCEINLINE_FUNCTION T operator()(C sum, std::int64_t count) const {
    return static_cast<T>(sum / static_cast<C>(max_of(count, Index{1})));
  }
  template <int I, class C> KOKKOS_FORCEINLINE_FUNCTION C derivative(C, std::int64_t count) const {
    return C(1) / static_cast<C>(max_of(count, Index{1}));
  }
};
}  // namespace fn

/// Returns the negative logarithm of the targets' probabilities by softmax: scores is (...,
/// vocabulary), targets (...), integers within the vocabulary (others are clamped into it), the
/// result (...), float for half types. Communication: where the vocabulary is split three
/// all-reduces of the result's size, with smoothing four, none on the way back. Collective
/// over the mesh. Throws UsageError unless 0 <= smoothing <= 1 and z >= 0. Source: Megatron-LM
/// (Shoeybi et al. 2019), section 3.
template <TypedTensor A, TypedTensor I>
auto cross_entropy(const A& scores, const I& targets, const CrossEntropyOptions& options,
                   Where where = Where::here()) {
  static_assert(A::rank == I::rank + 1,
                "[tessera] cross_entropy takes scores with one dimension more than the targets: "
                "the last, the vocabulary; give a target for each row of scores");
  static constexpr Equation to_row = detail::without_last(A::rank);
  if (!(options.smoothing >= 0 && options.smoothing <= 1 && options.z >= 0))
    throw UsageError("cross_entropy: smoothing of " + std::to_string(options.smoothing) +
                         " and z of " + std::to_string(options.z) +
                         "; give a share between 0 and 1, and no negative z",
                     where);
  const bool plain = options.smoothing == 0 && options.z == 0;
  const Index vocabulary = scores.extent(A::rank - 1);
  const double hit = 1 - options.smoothing, z = options.z,
               share = options.smoothing / static_cast<double>(max_of(vocabulary, Index{1}));
  const auto loss = custom_gradient(
      [targets, plain, hit, share, z](const A& x) {
        const auto wide = detail::widened(x, Where{});
        const auto total = logsumexp<to_row>(wide);
        using Row = std::decay_t<decltype(total)>;
        const auto chosen = take<detail::equation_of(I::rank, "*y,*->*"), typename Row::spec>(
            wide, targets, OutOfRange::clamp);
        if (plain) return with_saved(Row(total - chosen), x, total);
        const Row all = share == 0 ? Row(chosen) : Row(sum<to_row>(wide));
        return with_saved(Row(map(fn::SmoothedLoss{hit, share, z}, total, chosen, all)), x, total);
      },
      [targets, hit, share, z](const auto& dy, const A& x, const auto& total) {
        return A(map_with_index<detail::equation_of(I::rank, "*y,*,*,*->*y"), typename A::spec>(
            fn::CrossEntropyGradient{x.extent(A::rank - 1) - 1, hit, share, z}, x, total, targets,
            dy));
      },
      where);
  return loss(scores);
}
template <TypedTensor A, TypedTensor I>
auto cross_entropy(const A& scores, const I& targets, Where where = Where::here()) {
  return cross_entropy(scores, targets, CrossEntropyOptions{}, where);
}

/// Returns the mean of the elements at which `valid` is true, a scalar; 0 where none is. x and
/// valid are (...); other elements may be anything, NaN too, and have gradient 0. For half types
/// the sum is in float. Communication: two all-reduces of a number. Collective over the mesh.
template <TypedTensor A, TypedTensor V>
  requires std::is_same_v<typename V::value_type, bool>
auto mean_where(const A& x, const V& valid, Where where = Where::here()) {
  using T = typename A::value_type;
  constexpr Equation all = detail::total_equation(A::rank);
  const auto counted = detail::widened(tessera::where(valid, x, T{}, where), where);
  return map(fn::OverCount<T>{}, sum<all>(counted, where), sum<all>(valid, where), where);
}

}  // namespace tessera
