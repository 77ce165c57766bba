// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The verbs of a softmax: the sum of the exponentials of what a line's elements are below its
/// largest, and the softmax or its logarithm. The largest and the sum are further inputs where
/// lines are split.
///
///     step.set(step::Softmax{{.along = 1}});
#include <tessera/plan/work/instruction.hpp>
#include <tessera/plan/work/row_work.hpp>

namespace tessera::step {

/// What works on whole lines of its first input along a dimension.
struct OfLines : Verb {
  static constexpr Operations operations = Operations::read;
  std::int8_t along = -1;
  detail::LocalScan work(const Plan& plan, const Step& step, const Coordinates& at) const {
    return detail::lines_work(plan, step, along, at);
  }
  template <class Self, class Visit> static constexpr void members(Self& self, const Visit& visit) {
    visit(self.along);
  }
};

struct ExpSum : OfLines {
  static constexpr std::string_view name = "sum of exponentials";
};
struct Softmax : OfLines {
  static constexpr std::string_view name = "softmax";
};
struct LogSoftmax : OfLines {
  static constexpr std::string_view name = "log-softmax";
};

}  // namespace tessera::step
