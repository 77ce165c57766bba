// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// LARS: momentum whose rate follows, for each weight, the ratio of the norms of the weight and its
/// gradient.
///
///     Optimizer optimizer(Lars{.rate = 10.0, .decay = 1e-4}, weights);
///
/// Laws: the norms are those of the whole weight on every mesh, of doubles from 2^-900 on; those of
/// all weights are finished in few calls (reductions to scalars, weight-update sharding,
/// section 4.1).
#include <cmath>
#include <vector>

#include <tessera/nn/optimizer/norm.hpp>
#include <tessera/nn/optimizer/schedule.hpp>
#include <tessera/nn/optimizer/update.hpp>

namespace tessera {

namespace detail {
struct TrustedDescent {
  double rate, decay, momentum;
  template <class C>
  KOKKOS_FUNCTION Several<C, C> operator()(C w, C g, double trust, C velocity) const {
    const C v = static_cast<C>(momentum) * velocity +
                static_cast<C>(rate * trust) * (g + static_cast<C>(decay) * w);
    return {w - v, {v, {}}};
  }
};
/// From a weight, its gradient and the gradient's factor.
struct TrustRatio {
  double trust, decay;
  KOKKOS_FUNCTION double operator()(Squares weight, Squares gradient, double factor) const {
    const double w = weight.norm(), g = gradient.norm(Kokkos::fabs(factor));
    return w > 0 && g > 0 ? trust * w / (g + decay * w) : 1.0;
  }
};
}  // namespace detail

/// v = momentum v + rate l (g + decay w), w -= v, where l = trust |w| / (|g| + decay |w|), and 1
/// where a norm is 0 or the weight does not decay (OptimizerOptions::decays). Source: You, Gitman
/// and Ginsburg, "Scaling SGD Batch Size to 32K for ImageNet Training" (2017), Algorithm 1.
struct Lars {
  Schedule rate = 1.0;
  double momentum = 0.9;
  double decay = 0;
  double trust = 0.001;  ///< the paper's eta

  static constexpr bool flat = true;
  static constexpr bool trusts = true;
  std::vector<TensorDesc> auxiliary(const TensorDesc& share) const { return {share}; }
  /// Returns the factor of one weight's rate, from the finished sums of squares of the weight and
  /// its gradient.
  TensorCore trust_of(const std::vector<TensorCore>& sums, const TensorCore& factor,
                      detail::CallSite site) const {
    return detail::map_squares(detail::TrustRatio{trust, decay}, sums, factor, site);
  }
  detail::Updated update(const detail::Share& share, Index step) const {
    return detail::update_elements<1, true>(
        share, detail::TrustedDescent{rate(step), share.decays ? decay : 0, momentum});
  }
};

}  // namespace tessera
