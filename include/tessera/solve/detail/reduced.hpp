// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A network made smaller in every way that is known: without values that exceed a limit in any
/// assignment (detail/within_limits.hpp), simplified and shortened. It may in turn be made of a
/// reduced network, of which some values are not to be taken.
///
///     auto reduced = std::make_shared<const Reduced>(network, SimplifyOptions{.scale = scale});
///     Reduced smaller(reduced, reduced->network(), allowed);
///     smaller.recovered(assignment_of(smaller.network()));     // of the first network
///
/// Laws: an assignment costs in the first network, by the scale, what it costs here plus
/// `constant()`; it uses what it uses here. The least cost of the allowed assignments that keep the
/// limits is found here, too.
#include <memory>
#include <utility>
#include <vector>

#include <tessera/solve/cost_network.hpp>
#include <tessera/solve/detail/shortened.hpp>
#include <tessera/solve/detail/simplified.hpp>
#include <tessera/solve/detail/timeline.hpp>
#include <tessera/solve/detail/within_limits.hpp>

namespace tessera::detail {

class Reduced {
 public:
  Reduced(const CostNetwork& network, SimplifyOptions options)
      : simplified_(network, within_limits(network, std::move(options))),
        shortened_(simplified_.network()),
        constant_(simplified_.constant()) {}
  /// `network` is the outer one, or the same one with its costs moved.
  Reduced(std::shared_ptr<const Reduced> outer, const CostNetwork& network,
          std::vector<char> allowed)
      : Reduced(network, {.allowed = std::move(allowed)}) {
    outer_ = std::move(outer);
    constant_ += outer_->constant_;
  }

  const CostNetwork& network() const { return shortened_.network(); }
  Cost constant() const { return constant_; }
  /// False where no assignment keeps the limits, which is seen without a search.
  bool feasible() const { return simplified_.feasible(); }
  /// Which variable a variable of this network was in the outer one.
  int variable(int reduced) const { return simplified_.variable(shortened_.variable(reduced)); }
  /// The first network's assignment.
  Assignment recovered(const Assignment& assignment) const {
    const Assignment outer = simplified_.recovered(shortened_.recovered(assignment));
    return outer_ == nullptr ? outer : outer_->recovered(outer);
  }
  /// This network's part of the outer one's assignment, as far as there is one.
  Assignment reduced(const Assignment& assignment) const {
    return shortened_.reduced(simplified_.reduced(assignment));
  }

 private:
  static SimplifyOptions within_limits(const CostNetwork& network, SimplifyOptions options) {
    if (options.allowed.empty()) options.allowed.assign(network.all_values(), 1);
    if (!network.limits().empty() &&
        !keep_within_limits(network, Timeline(network), options.allowed))
      options.allowed.assign(network.all_values(), 0);
    return options;
  }

  Simplified simplified_;
  Shortened shortened_;
  Cost constant_;
  std::shared_ptr<const Reduced> outer_;
};

}  // namespace tessera::detail
