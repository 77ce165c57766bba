// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Adam with decoupled weight decay, as maps: moments are sharded as their weights, so a process
/// updates what it owns and nothing is communicated.
///
///     Adam<T> adam(weights);
///     adam.step(weights, gradients, rate);
///
/// Source: Kingma and Ba 2015, algorithm 1; Loshchilov and Hutter 2019, algorithm 2.
#include <cmath>

#include "model.hpp"

namespace gradients_by_hand {

template <class T> struct Blend {  // keep * old + (1 - keep) * fresh
  T keep;
  KOKKOS_FUNCTION T operator()(T old, T fresh) const { return keep * old + (1 - keep) * fresh; }
};
template <class T> struct BlendSquare {
  T keep;
  KOKKOS_FUNCTION T operator()(T old, T fresh) const {
    return keep * old + (1 - keep) * fresh * fresh;
  }
};
template <class T> struct Improve {
  T rate, first_scale, second_scale, decay;
  KOKKOS_FUNCTION T operator()(T weight, T first, T second) const {
    const T direction = first * first_scale / (fn::Sqrt{}(second * second_scale) + T(1e-8));
    return weight - rate * (direction + decay * weight);
  }
};

template <class T> class Adam {
 public:
  explicit Adam(const Weights<T>& w, double decay = 0.01) : first_(w), second_(w), decay_(decay) {
    const ProcessMesh<Grid> mesh(w.table.core().mesh());
    const auto clear = [&]<class X>(X& x) { x = full<X>(mesh, x.extents(), T{0}); };
    for_each_tensor(clear, first_);
    for_each_tensor(clear, second_);
  }

  /// Improves the weights by their gradients. Communication: none.
  void step(Weights<T>& w, const Weights<T>& gradients, double rate) {
    ++steps_;
    const Layer scope(w.table, "adam");
    const Improve<T> improve{
        static_cast<T>(rate), static_cast<T>(1 / (1 - std::pow(keep_first, steps_))),
        static_cast<T>(1 / (1 - std::pow(keep_second, steps_))), static_cast<T>(decay_)};
    for_each_tensor(
        [&](auto& weight, auto& first, auto& second, const auto& gradient) {
          first = map(Blend<T>{T(keep_first)}, first, gradient);
          second = map(BlendSquare<T>{T(keep_second)}, second, gradient);
          weight = map(improve, weight, first, second);
        },
        w, first_, second_, gradients);
  }

 private:
  static constexpr double keep_first = 0.9, keep_second = 0.99;
  Weights<T> first_, second_;
  double decay_;
  int steps_ = 0;
};

/// One step of training: returns the loss before it.
template <class T>
Tensor<T> train_step(Weights<T>& w, Adam<T>& adam, const Tensor<Id, data, _>& context,
                     const Tensor<Id, data>& next, double rate) {
  const Pass<T> pass = forward(w, context);
  const auto target = target_rows(pass, next);
  const auto nats = loss(pass, target);
  adam.step(w, backward(w, pass, target), rate);
  return nats;
}

}  // namespace gradients_by_hand
