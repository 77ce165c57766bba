// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Layers that keep their arguments alone, and run once more on the way back: less memory for more
/// arithmetic.
///
///     const auto layer = recompute([](const auto& v, const auto& w) { return tanh(einsum<"ik,kj->ij">(v, w)); });
///     auto y = layer(x, weights);
///
/// Laws: values and gradients are those of the function itself, to the bit, where it computes the
/// same twice. Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016); GShard,
/// section 5.1; JAX's checkpoint.
#include <tessera/grad/custom_gradient.hpp>
#include <tessera/grad/detail/differentiation.hpp>

namespace tessera {

/// Returns a function that is f, and of which a gradient keeps the arguments alone. Arguments and
/// result are trees of tensors; every tensor that is differentiated and that f reads is among the
/// arguments. Communication: that of f, once more on the way back, and of its adjoints. Collective
/// over the mesh. Throws UsageError where f reads a tensor that is differentiated and is not among
/// its arguments.
template <class F> auto recompute(F&& f, Where where = Where::here()) {
  const auto back = [again = std::decay_t<F>(f), where](const std::vector<TensorCore>& cotangents,
                                                        const auto&, const auto& arguments,
                                                        const auto&) {
    detail::Differentiation tape(where, detail::Repeated::once);
    return std::apply(
        [&](const auto&... argument) {
          (tape.follow(argument), ...);
          const auto y = tape.forward([&] { return again(argument...); });
          tape.back(y, detail::with_tensors(y, cotangents));
          return tape.gradients();
        },
        arguments);
  };
  return detail::OwnGradient<std::decay_t<F>, std::decay_t<decltype(back)>>(
      std::forward<F>(f), back, "recompute", where);
}

/// Returns a function that is f, and of which a gradient keeps the arguments alone where `again` is
/// true: for choices that are made while the program runs (grad/choose_recompute.hpp).
/// Communication and exceptions: as recompute, or as f. Throws what f throws.
template <class F> auto recompute_if(bool again, F&& f, Where where = Where::here()) {
  return [again, f = std::decay_t<F>(f), repeated = recompute(f, where)](const auto&... arguments) {
    return again ? repeated(arguments...) : f(arguments...);
  };
}

}  // namespace tessera
