// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The verbs of running sums and other joins: of each element with all before it, and of all
/// elements of a part of a line, in order, by the user's function.
///
///     step.set(step::Scan{{.along = 1, .options = {.reverse = true}}});
#include <tessera/plan/work/instruction.hpp>
#include <tessera/plan/work/row_work.hpp>

namespace tessera::step {

struct Scan : Verb {
  static constexpr std::string_view name = "scan";
  static constexpr Operations operations = Operations::read;
  std::int8_t along = -1;
  ScanOptions options;
  /// Where the second input holds one total on each process: that of the parts up to this many
  /// before its own, where there are as many.
  int behind = 0;
  detail::LocalScan work(const Plan& plan, const Step& step, const Coordinates& at) const {
    return detail::scan_work(plan, step, along, options, behind, at);
  }
  template <class Self, class Visit> static constexpr void members(Self& self, const Visit& visit) {
    visit(self.along);
    visit(self.options.reverse);
    visit(self.options.exclusive);
    visit(self.behind);
  }
};
struct Fold : Scan {
  static constexpr std::string_view name = "fold";
};

}  // namespace tessera::step
