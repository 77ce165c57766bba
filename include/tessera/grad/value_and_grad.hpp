// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Gradients of functions of tensors, by reverse mode: the function runs once, and the adjoints of
/// its operators run backwards.
///
///     const auto step = value_and_grad([&](const auto& w) { return mean<"ij->">(square(y - x * w)); });
///     auto [loss, gradient] = step(weights);        // the gradient has the weights' type
///     auto both = value_and_grad<0, 1>(f)(w, b);    // of two arguments: a tuple
///
/// An argument is a tensor, typed or dynamic, or a tree of them, such as a vector, or a struct with
/// `fields` (tensor/tree.hpp); its gradient is of the same type, so that a weight's
/// gradient is reduced as the weight's spec says. The function returns a scalar tensor, or a tuple
/// that begins with one.
///
/// A kernel of the user's own, on views of tensors (data(), local_view, block_mdspan, adopt, a halo
/// tensor's view()), is seen by no gradient. So where f has viewed a tensor that depends on an
/// argument, and has viewed another tensor to write it, or adopted it, the loss may not depend on
/// the latter: that is an error, which names both places. custom_gradient states the gradient of
/// such a kernel, and what it calls may view anything; a kernel that is to have none reads a
/// stop_gradient. Values that are copied to the host (to_host, value, printing) are numbers of the
/// host, and constants. Views that were taken before f was called, and kernels that change a tensor
/// in place which depends on an argument, are not noticed.
///
/// Laws: the value is the function's; the gradient is that of the whole tensors, on every mesh.
#include <tuple>
#include <type_traits>
#include <utility>

#include <tessera/grad/detail/differentiation.hpp>

namespace tessera {

/// What a function returned, and the gradient of its first result by its arguments.
template <class Value, class Gradient> struct ValueAndGradient {
  Value value;
  Gradient gradient;
};

namespace detail {
template <class F, int... I> class GradientOf {
 public:
  GradientOf(F f, Where where) : f_(std::move(f)), where_(where) {}

  template <class... A>
    requires std::is_invocable_v<const F&, const A&...>
  auto operator()(const A&... arguments) const {
    using Result = std::decay_t<std::invoke_result_t<const F&, const A&...>>;
    static_assert(((I >= 0 && I < static_cast<int>(sizeof...(A))) && ...),
                  "[tessera] value_and_grad names an argument that the call does not have; "
                  "arguments count from 0");
    const auto given = std::tie(arguments...);
    Differentiation run(where_);
    (run.follow(std::get<I>(given)), ...);
    Result value = run.forward([&] { return f_(arguments...); });
    run.back(loss_among(value));
    if constexpr (sizeof...(I) == 1)
      return ValueAndGradient<
          Result,
          std::decay_t<std::tuple_element_t<std::get<0>(std::tuple(I...)), decltype(given)>>>{
          std::move(value), run.gradient(std::get<I>(given)...)};
    else
      return ValueAndGradient<
          Result, std::tuple<std::decay_t<std::tuple_element_t<I, decltype(given)>>...>>{
          std::move(value), {run.gradient(std::get<I>(given))...}};
  }

 private:
  F f_;
  Where where_;
};
}  // namespace detail

/// Returns a function of f's arguments that returns f's result and its gradient by the arguments
/// numbered `I`: the first where none is named. Communication: that of f, and of its adjoints: a
/// gradient ends under its argument's spec. Collective over the mesh. Throws UsageError when f's
/// result is no scalar, or where an operator has no gradient.
template <int... I, class F> auto value_and_grad(F&& f, Where where = Where::here()) {
  if constexpr (sizeof...(I) == 0)
    return detail::GradientOf<std::decay_t<F>, 0>(std::forward<F>(f), where);
  else
    return detail::GradientOf<std::decay_t<F>, I...>(std::forward<F>(f), where);
}

}  // namespace tessera
