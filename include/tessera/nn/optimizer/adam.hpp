// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Adam and AdamW.
///
///     Optimizer optimizer(Adam{.rate = WarmupCosine{.peak = 3e-4, .steps = 1000}}, weights);
///     Optimizer decaying(AdamW{.rate = 1e-3, .decay = 0.1}, weights, {.decays = matrices_only});
///
/// Laws: the state is two tensors of each weight's extents.
#include <cmath>
#include <vector>

#include <tessera/nn/optimizer/schedule.hpp>
#include <tessera/nn/optimizer/update.hpp>

namespace tessera {

namespace detail {
struct AdamUpdate {
  double kept, decay, beta1, beta2, rate, root2, epsilon;
  template <class C>
  KOKKOS_FORCEINLINE_FUNCTION Several<C, C, C> operator()(C w, C g, C m, C v) const {
    const C slope = g + static_cast<C>(decay) * w;
    const C mean = static_cast<C>(beta1) * m + static_cast<C>(1 - beta1) * slope;
    const C square = static_cast<C>(beta2) * v + static_cast<C>(1 - beta2) * slope * slope;
    const C root = Kokkos::sqrt(square) * static_cast<C>(root2) + static_cast<C>(epsilon);
    return {static_cast<C>(kept) * w - static_cast<C>(rate) * mean / root, {mean, {square, {}}}};
  }
};
/// With both moments corrected for their beginning at zero; `kept`: the factor of the weight.
inline Updated adam(const Share& share, Index step, double rate, double beta1, double beta2,
                    double epsilon, double decay, double kept) {
  const auto t = static_cast<double>(step);
  return update_elements<2>(share,
                            AdamUpdate{kept, decay, beta1, beta2, rate / (1 - std::pow(beta1, t)),
                                       1 / std::sqrt(1 - std::pow(beta2, t)), epsilon});
}
}  // namespace detail

/// m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, w -= rate m^ / (sqrt(v^) + epsilon),
/// where m^ = m / (1 - beta1^t) and v^ alike; `decay` w is added to the gradient. Source: Kingma
/// and Ba, "Adam" (2015), Algorithm 1.
struct Adam {
  Schedule rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double decay = 0;

  static constexpr bool flat = true;
  static constexpr bool trusts = false;
  std::vector<TensorDesc> auxiliary(const TensorDesc& share) const { return {share, share}; }
  detail::Updated update(const detail::Share& share, Index step) const {
    return detail::adam(share, step, rate(step), beta1, beta2, epsilon, share.decays ? decay : 0,
                        1);
  }
};

/// Adam, whose weights decay by themselves: w is multiplied by 1 - rate decay. Source: Loshchilov
/// and Hutter, "Decoupled Weight Decay Regularization" (2019), Algorithm 2, in the form of
/// PyTorch's AdamW: the decay follows the rate.
struct AdamW {
  Schedule rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double decay = 0.01;

  static constexpr bool flat = true;
  static constexpr bool trusts = false;
  std::vector<TensorDesc> auxiliary(const TensorDesc& share) const { return {share, share}; }
  detail::Updated update(const detail::Share& share, Index step) const {
    const double now = rate(step);
    return detail::adam(share, step, now, beta1, beta2, epsilon, 0,
                        share.decays ? 1 - now * decay : 1);
  }
};

}  // namespace tessera
