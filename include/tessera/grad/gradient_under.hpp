// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Gradients under shardings of one's choice, in place of their tensors' own: what updates a shard
/// of a weight wants the gradient of that shard alone.
///
///     // w is P<_,_>: its gradient P<data,_> ends in a reduce-scatter, and is a dynamic tensor
///     auto [loss, gradients] = value_and_grad_under(f, {Sharding{{0}, {}}})(weights);
///
/// Laws: the elements are value_and_grad's; where the gradient's own sharding would end in an
/// all-reduce, and axes of that sum split it here, it ends in a reduce-scatter; gradients of
/// several tensors never share memory. Source: ZeRO (Rajbhandari et al. 2020), section 5.2.
#include <string>
#include <utility>
#include <vector>

#include <tessera/grad/value_and_grad.hpp>

namespace tessera {
namespace detail {
template <class F> class GradientUnder {
 public:
  GradientUnder(F f, std::vector<Sharding> under, Where where)
      : f_(std::move(f)), under_(std::move(under)), where_(where) {}

  template <class Tree, class... A>
    requires std::is_invocable_v<const F&, const Tree&, const A&...>
  auto operator()(const Tree& tree, const A&... more) const {
    using Result = std::decay_t<std::invoke_result_t<const F&, const Tree&, const A&...>>;
    Differentiation run(where_);
    std::size_t tensors = 0;
    for_each_tensor([&](const auto&) { ++tensors; }, tree);
    if (tensors != under_.size())
      throw UsageError("value_and_grad_under: the tree has " + std::to_string(tensors) +
                           " tensors, and " + std::to_string(under_.size()) +
                           " shardings are given; give one for each tensor",
                       where_);
    std::size_t at = 0;
    const auto follow = [&](const auto& tensor) {
      using Tensor = std::decay_t<decltype(tensor)>;
      if constexpr (TypedTensor<Tensor>) use_gradients_of<typename Tensor::value_type>();
      run.follow(tensor.core(), under_[at++]);
    };
    for_each_tensor(follow, tree);
    Result value = run.forward([&] { return f_(tree, more...); });
    run.back(loss_among(value));
    std::vector<DynamicTensor> gradients;
    for (TensorCore& one : run.summands(tree)) gradients.emplace_back(std::move(one));
    return ValueAndGradient<Result, std::vector<DynamicTensor>>{std::move(value),
                                                                std::move(gradients)};
  }

 private:
  F f_;
  std::vector<Sharding> under_;
  Where where_;
};
}  // namespace detail

/// Returns a function of f's arguments that returns f's result and its gradient by the first one, a
/// tree of tensors: a vector of dynamic tensors, in the tree's order, of the elements, extents and
/// sharding that `under` has for each. Communication: that of f, and of its adjoints: sums over
/// processes end under these shardings. Collective over the mesh. Throws UsageError when there are
/// more or fewer shardings than tensors, when f's result is no scalar, or where an operator has no
/// gradient, ShardingError for one that the mesh does not have. One that is an unfinished sum says
/// that the gradient may be left so: it is where products and convolutions of the argument itself
/// make it, and finished elsewhere.
template <class F>
auto value_and_grad_under(F&& f, std::vector<Sharding> under, Where where = Where::here()) {
  return detail::GradientUnder<std::decay_t<F>>(std::forward<F>(f), std::move(under), where);
}

}  // namespace tessera
