// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Vector-Jacobian products: a function's result, and what pulls a gradient of it back to the
/// arguments.
///
///     auto [y, pull] = vjp([&](const auto& w) { return einsum<"ik,kj->ij">(x, w); }, w);
///     auto gradient = pull(ones_like(y));           // of w's type
///
/// Laws: pull is linear, and may be called once: it gives back the tensors that it kept. Source:
/// JAX's vjp.
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include <tessera/grad/detail/differentiation.hpp>

namespace tessera {
namespace detail {
/// Keeps what the adjoints of a function's operators need, and its arguments.
template <class Y, class... A> class Pull {
 public:
  Pull(std::shared_ptr<Differentiation> run, Y y, const A&... arguments)
      : run_(std::move(run)), y_(std::move(y)), arguments_(arguments...) {}
  /// Returns the gradient by the arguments: of one the gradient itself, else a tuple. `cotangent`
  /// is the gradient of a number by the function's result, and has its type. Communication: that of
  /// the adjoints. Collective over the mesh. Throws UsageError when it is called before.
  auto operator()(const Y& cotangent, Where where = Where::here()) {
    if (run_ == nullptr)
      throw UsageError(
          "the pull of a vjp is called twice, and what it kept is gone; call vjp again", where);
    const std::shared_ptr<Differentiation> run = std::move(run_);
    run->back(y_, cotangent);
    if constexpr (sizeof...(A) == 1)
      return run->gradient(std::get<0>(arguments_));
    else
      return std::apply([&](const A&... one) { return std::tuple<A...>{run->gradient(one)...}; },
                        arguments_);
  }

 private:
  std::shared_ptr<Differentiation> run_;
  Y y_;
  std::tuple<A...> arguments_;
};
}  // namespace detail

/// Returns the tensor y = f(arguments...), (n, m, ...), and a function of a gradient of y, of y's
/// shape, that returns the gradients of the arguments, each of its argument's shape and type: one,
/// or a tuple. Communication: that of f, and, when a gradient is pulled back, that of its
/// operators' adjoints. Collective over the mesh. Throws UsageError where an argument is unfinished
/// or has elements without a derivative; pulling throws it the second time, and for an operator
/// without a gradient or a tensor that was overwritten meanwhile, with the operator's place.
template <class F, class... A>
  requires std::is_invocable_v<const F&, const A&...>
auto vjp(const F& f, const A&... arguments) {
  auto run = std::make_shared<detail::Differentiation>(Where{});
  (run->follow(arguments), ...);
  auto y = run->forward([&] { return f(arguments...); });
  return std::pair(y, detail::Pull<decltype(y), A...>(std::move(run), y, arguments...));
}

}  // namespace tessera
