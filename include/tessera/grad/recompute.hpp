// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Layers that keep their arguments alone, and run once more on the way back: less memory for more
/// arithmetic.
///
///     const auto layer = recompute([](const auto& v, const auto& w) { return tanh(einsum<"ik,kj->ij">(v, w)); });
///     auto y = layer(x, weights);
///     auto z = recompute_if(Open{}, tanh_of)(y);         // whether it runs again is chosen
///
/// An open layer is decided where shardings are (run/choose_of.hpp): of a function that choose is
/// given, as a limit on memory asks for, and of one that compile(f, choice) runs, as the choice
/// says. On paper, where nobody chooses, it is kept.
///
/// Laws: values and gradients are those of the function itself, to the bit, where it computes the
/// same twice. Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016); GShard,
/// section 5.1; JAX's checkpoint.
#include <concepts>
#include <vector>

#include <tessera/grad/custom_gradient.hpp>
#include <tessera/grad/detail/differentiation.hpp>
#include <tessera/grad/detail/open_layer.hpp>
#include <tessera/spec/partition_spec.hpp>

namespace tessera {

/// Whether a layer runs again on the way back: true, false, or Open{} where that is chosen.
class Recompute {
 public:
  constexpr Recompute() = default;
  template <class B>
    requires(std::same_as<B, bool> || std::same_as<B, std::vector<bool>::reference>)
  constexpr Recompute(const B& again) : kind_(again ? 1 : 0) {}
  constexpr Recompute(Open) : kind_(2) {}
  constexpr bool open() const { return kind_ == 2; }
  constexpr bool again() const { return kind_ == 1; }
  constexpr bool operator==(const Recompute&) const = default;

 private:
  int kind_ = 0;
};

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
          const detail::WithinLayer within;
          (tape.follow(argument), ...);
          const auto y = tape.forward([&] { return again(argument...); });
          tape.back(y, detail::with_tensors(y, cotangents));
          return tape.gradients();
        },
        arguments);
  };
  using Within = detail::LayerFunction<std::decay_t<F>>;
  return detail::OwnGradient<Within, std::decay_t<decltype(back)>>(Within{std::forward<F>(f)}, back,
                                                                   "recompute", where);
}

/// Returns a function that is f, and of which a gradient keeps the arguments alone where `again`
/// says so, or where it is open and that is chosen. An open layer within a layer that is open or
/// runs again is kept, and one of which no gradient is taken is f. Communication: as
/// recompute, or as f. Throws what these throw, and UsageError where it is open, runs with data,
/// and nothing has chosen.
template <class F> auto recompute_if(Recompute again, F&& f, Where where = Where::here()) {
  return [again, f = std::decay_t<F>(f), repeated = recompute(f, where),
          where](const auto&... arguments) {
    MeshCore* const mesh = again.open() ? detail::mesh_to_choose_on(arguments...) : nullptr;
    if (mesh == nullptr) return again.again() ? repeated(arguments...) : f(arguments...);
    const detail::OpenLayerRun run(*mesh, where);
    return run.again() ? repeated(arguments...) : f(arguments...);
  };
}

}  // namespace tessera
