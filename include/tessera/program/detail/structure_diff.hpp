// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// In what two operators differ that stand side by side in two Programs: their values, what they
/// read, and who keeps what they make.
///
///     StructureDiff d(before, after);
///     d.of(3, 3);            // "operand 1 is the result of operator 2 (Add), and was … there"
///
/// Laws: rows are asked in their order; of a Program and itself nothing is said.
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include <tessera/plan/operation.hpp>
#include <tessera/plan/text.hpp>
#include <tessera/program/program.hpp>

namespace tessera::detail {

class StructureDiff {
 public:
  StructureDiff(const Program& before, const Program& after)
      : before_(before),
        after_(after),
        is_(before.tensors().size(), -1),
        was_(after.tensors().size(), -1) {}

  /// Returns what differs between operator i of the first Program and j of the second; "": nothing.
  std::string of(int i, int j) {
    const ProgramEntry& a = before_.entry(i);
    const ProgramEntry& b = after_.entry(j);
    std::string text;
    const auto add = [&](const std::string& one) { text += (text.empty() ? "" : "; ") + one; };
    if (a.operation != nullptr && b.operation != nullptr && !(*a.operation == *b.operation)) {
      const std::string was = a.operation->view().text(before_.names_on(a.part));
      const std::string is = b.operation->view().text(after_.names_on(b.part));
      add(was == is ? "one of its numbers is another" : "it is" + is + ", and was" + was);
    }
    if (!(a.contract == b.contract)) add("its contract is another one");
    for (int k = 0; k < a.operands.size() && k < b.operands.size(); ++k) {
      const std::string name = "operand " + std::to_string(k + 1);
      const std::string was = to_string(a.plan->slots[k].desc, before_.names_on(a.part));
      const std::string is = to_string(b.plan->slots[k].desc, after_.names_on(b.part));
      if (was != is) add(name + " is " + is + ", and was " + was);
      const int old = a.operands[k], now = b.operands[k];
      if (!same(old, now)) {
        add(name + " is " + origin(after_, now) + ", and was " + origin(before_, old) + " there");
        continue;
      }
      if (before_.tensor(old).made >= 0 || !said_.insert(now).second) continue;
      const auto kept = [](const Program& p, int t) { return p.tensor(t).last >= p.size(); };
      if (kept(after_, now) != kept(before_, old))
        add(name +
            (kept(after_, now) ? " is kept, and was given away" : " is given away, and was kept"));
      if (after_.tensor(now).adopted != before_.tensor(old).adopted)
        add(name + (after_.tensor(now).adopted ? " is memory of the application's, and was not"
                                               : " was memory of the application's, and is not"));
    }
    const auto result = [&](int old, int now) {
      if (old < 0 || now < 0 || !same(old, now)) return;
      const bool was = before_.tensor(old).last >= before_.size();
      const bool is = after_.tensor(now).last >= after_.size();
      if (is != was) add(is ? "its result is kept, and was not" : "its result is no longer kept");
    };
    result(a.result, b.result);
    for (int k = 0; k < a.also.size() && k < b.also.size(); ++k) result(a.also[k], b.also[k]);
    return text;
  }

 private:
  /// Returns whether two tensors stand for each other; those that are new do from now on.
  bool same(int old, int now) {
    int& is = is_[static_cast<std::size_t>(old)];
    int& was = was_[static_cast<std::size_t>(now)];
    if (is < 0 && was < 0) {
      is = now;
      was = old;
    }
    return is == now && was == old;
  }
  static std::string origin(const Program& program, int t) {
    const int made = program.tensor(t).made;
    return made < 0 ? "a tensor that was given"
                    : "the result of operator " + std::to_string(made) + " (" +
                          program.entry(made).label + ")";
  }

  const Program& before_;
  const Program& after_;
  std::vector<int> is_;   ///< the second Program's tensor for each of the first; -1: not known
  std::vector<int> was_;  ///< the other way around
  std::set<int> said_;    ///< tensors that were there, of which is said whose they are
};

}  // namespace tessera::detail
