// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The sums of a pipeline's outputs over its micro-batches, in the order in which they come.
///
///     OutputSums sums(2);
///     sums.add(0, loss, where);
///     TensorCore total = sums.take(0);
///
/// Laws: a sum lies in the memory of its first summand, but for half types, which are summed in
/// float and rounded once. Summands are perhaps unfinished, and so is their sum.
#include <cstddef>
#include <utility>
#include <vector>

#include <tessera/base/dtype.hpp>
#include <tessera/grad/adjoint/parts.hpp>
#include <tessera/op/call/operators.hpp>

namespace tessera::detail {

class OutputSums {
 public:
  explicit OutputSums(std::size_t outputs) : sums_(outputs) {}
  std::size_t size() const { return sums_.size(); }

  void add(std::size_t output, TensorCore x, Where where) {
    auto& [sum, type] = sums_[output];
    const CallSite site{"the sum over micro-batches", where};
    if (!sum.defined()) {
      type = x.type();
      const DType wide = facts_of(type).compute;
      // What a stage still has, or has twice, is not to be written.
      const bool kept = x.storage().use_count() > 1 || x.storage()->adopted();
      sum = kept || wide != type ? applied(conversion(type, wide), {&x}, wide, site) : std::move(x);
      return;
    }
    if (!(sum.sharding() == x.sharding())) {  // another size was planned otherwise
      sum = moved_to(sum, sum.sharding().finished(), site);
      x = moved_to(x, x.sharding().finished(), site);
    }
    const Term letters = letters_of(sum.desc());
    const ops::Map map{
        {{letters, letters}, letters}, sum.type(), Linearity::linear, sum.sharding()};
    const auto plus = addition(sum.type(), x.type(), sum.type());
    Extras extras{.kernel = plus->kernel(), .into = &sum};
    extras.destination = Destination::accumulated;
    (void)run({map, {&sum, &x}, site, extras});
  }
  /// Returns a sum, of the summands' type, finished. Collective over its mesh. Communication: that
  /// of finishing it.
  TensorCore take(std::size_t output, Where where) {
    const CallSite site{"the sum over micro-batches", where};
    auto [sum, type] = std::exchange(sums_[output], {});
    if (!sum.defined()) return sum;
    sum = converted(sum, type, site);
    return moved_to(sum, sum.sharding().finished(), site);
  }

 private:
  struct Sum {
    TensorCore sum;
    DType type = DType::f64;  ///< of its summands
  };
  std::vector<Sum> sums_;
};

}  // namespace tessera::detail
