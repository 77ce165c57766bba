// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Gradients of several small batches as that of one large batch.
///
///     GradientSum sum;
///     for (const auto& batch : batches) sum.add(gradients_of(batch));
///     optimizer.step(weights, sum.mean());
///
/// Laws: the mean of the gradients of equal batches is the gradient of all of them, to rounding;
/// sums of half types are kept in float; unfinished gradients are added as they are, and so is
/// their sum. Communication: none, but where gradients of one tensor come under two shardings.
#include <string>
#include <utility>
#include <vector>

#include <tessera/nn/optimizer/update.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {

class GradientSum {
 public:
  /// Adds the gradients of a batch: a tree of tensors, or a vector of dynamic ones. Throws
  /// UsageError where there are other tensors than before.
  template <class Gradients> void add(const Gradients& gradients, Where where = Where::here()) {
    std::vector<TensorCore> given;
    for_each_tensor([&](const auto& one) { given.push_back(one.core()); }, gradients);
    add_all(given, where);
  }
  /// Returns how many batches have been added.
  Index batches() const { return batches_; }
  /// Returns their mean, and begins anew. Throws UsageError where none has been added.
  std::vector<DynamicTensor> mean(Where where = Where::here()) {
    if (batches_ == 0)
      throw UsageError("the mean of no gradients is asked for; add those of a batch first", where);
    std::vector<DynamicTensor> means;
    const double part = 1 / static_cast<double>(std::exchange(batches_, 0));
    for (const TensorCore& sum : std::exchange(sums_, {}))
      means.emplace_back(detail::applied(detail::function_of<1>(sum.type(), fn::Scale{part}),
                                         {&sum}, sum.type(), {"gradient sum", where}));
    return means;
  }

 private:
  void add_all(const std::vector<TensorCore>& given, Where where) {
    const detail::CallSite site{"gradient sum", where};
    if (batches_ > 0 && given.size() != sums_.size())
      throw UsageError("gradients of " + std::to_string(given.size()) +
                           " tensors are added to those of " + std::to_string(sums_.size()) +
                           "; add gradients of the same weights",
                       where);
    for (std::size_t i = 0; i < given.size(); ++i) {
      const DType wide = detail::update_type(given[i].type());
      if (batches_ == 0)
        sums_.push_back(detail::converted(given[i], wide, site));
      else
        sums_[i] = added(sums_[i], given[i], site);
    }
    ++batches_;
  }
  /// Returns the sum, unfinished where both summands are alike so.
  static TensorCore added(TensorCore sum, TensorCore x, detail::CallSite site) {
    if (!(sum.sharding() == x.sharding())) {
      sum = detail::moved_to(sum, sum.sharding().finished(), site);
      x = detail::moved_to(x, x.sharding().finished(), site);
    }
    const Term all = detail::letters_of(sum.desc());
    return detail::with_real_type(x.type(), [&](auto zero) {
      using T = decltype(zero);
      using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
      return detail::map_letters<Wide, T>({{all, all}, all}, fn::AddAs<Wide>{}, {&sum, &x},
                                          sum.sharding(), site, Linearity::linear);
    });
  }

  std::vector<TensorCore> sums_;
  Index batches_ = 0;
};

}  // namespace tessera
