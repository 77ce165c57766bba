// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The verb of each row's sum of squared distances to its mean, or to zero. The mean is a second
/// input, or a further output, or neither.
///
///     step.set(step::Moments{.centred = false});      // mean squares
#include <tessera/plan/work/instruction.hpp>
#include <tessera/plan/work/row_work.hpp>

namespace tessera::step {

struct Moments : Verb {
  static constexpr std::string_view name = "moments";
  static constexpr Operations operations = Operations::read;
  static constexpr bool reads_gaps = true;
  bool centred = true;  ///< else about zero
  detail::LocalReduce work(const Plan& plan, const Step& step, const Coordinates& at) const {
    return detail::reduce_work(plan.slots[step.in[0]], plan.slots[step.out], plan, at);
  }
  template <class Self, class Visit> static constexpr void members(Self& self, const Visit& visit) {
    visit(self.centred);
  }
};

}  // namespace tessera::step
