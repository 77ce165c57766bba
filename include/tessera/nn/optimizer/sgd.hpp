// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Stochastic gradient descent, with momentum.
///
///     Optimizer optimizer(Sgd{.rate = 0.1, .momentum = 0.9, .nesterov = true}, weights);
///
/// Laws: without momentum there is no state.
#include <vector>

#include <tessera/nn/optimizer/schedule.hpp>
#include <tessera/nn/optimizer/update.hpp>

namespace tessera {

namespace detail {
struct Descent {
  double rate, decay;
  template <class C> KOKKOS_FORCEINLINE_FUNCTION Several<C> operator()(C w, C g) const {
    return {w - static_cast<C>(rate) * (g + static_cast<C>(decay) * w), {}};
  }
};
struct MomentumDescent {
  double rate, decay, momentum, of_gradient, of_velocity;
  template <class C>
  KOKKOS_FORCEINLINE_FUNCTION Several<C, C> operator()(C w, C g, C velocity) const {
    const C slope = g + static_cast<C>(decay) * w;
    const C v = static_cast<C>(momentum) * velocity + slope;
    const C along = static_cast<C>(of_gradient) * slope + static_cast<C>(of_velocity) * v;
    return {w - static_cast<C>(rate) * along, {v, {}}};
  }
};
}  // namespace detail

/// v = momentum v + (g + decay w), w -= rate v; with `nesterov` w -= rate (g + decay w + momentum
/// v). Source: Qian, "On the momentum term in gradient descent learning algorithms" (1999);
/// Sutskever et al. 2013, section 2, in the form of PyTorch's SGD.
struct Sgd {
  Schedule rate = 0.01;
  double momentum = 0;
  double decay = 0;  ///< of weights, added to the gradient
  bool nesterov = false;

  static constexpr bool flat = true;     ///< elements do not know each other
  static constexpr bool trusts = false;  ///< its rate is one for all weights
  std::vector<TensorDesc> auxiliary(const TensorDesc& share) const {
    return std::vector<TensorDesc>(momentum == 0 ? 0 : 1, share);
  }
  detail::Updated update(const detail::Share& share, Index step) const {
    const double by = share.decays ? decay : 0;
    if (momentum == 0) return detail::update_elements<0>(share, detail::Descent{rate(step), by});
    return detail::update_elements<1>(
        share, detail::MomentumDescent{rate(step), by, momentum, nesterov ? 1.0 : 0.0,
                                       nesterov ? momentum : 1.0});
  }
};

}  // namespace tessera
