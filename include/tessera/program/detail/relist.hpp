// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a Program gets other operators.
///
///     program.relist(std::move(entries));
///
/// Laws: those of Program::relist and Program::state_held; both take time linear in operators and
/// tensors.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/program.hpp>

namespace tessera {

TESSERA_FUNCTION Index Program::held_by_others() const {
  Index others = empty() ? 0 : entries_->front().held_before;
  for (const ProgramTensor& t : *tensors_)
    if (t.alive_at(0)) others = detail::saturating_sub(others, t.bytes);
  return others;
}

TESSERA_FUNCTION void Program::relist(std::vector<ProgramEntry> entries) {
  const Index others = held_by_others();
  std::vector<ProgramTensor>& tensors = tensors_.own();
  for (ProgramTensor& t : tensors) {
    const bool outlives = t.last >= size();
    t.first = 0;
    t.last = outlives ? static_cast<int>(entries.size()) : -1;
  }
  entries_ = {};
  entries_.own() = std::move(entries);
  std::vector<bool> made(tensors.size(), false);
  const auto of = [&](int number) -> ProgramTensor& {
    return tensors[static_cast<std::size_t>(number)];
  };
  const auto used = [&](int number, int i) { of(number).last = std::max(of(number).last, i); };
  for (int i = 0; i < size(); ++i) {
    const ProgramEntry& e = (*entries_)[static_cast<std::size_t>(i)];
    const int until = std::min(i + e.meanwhile, size() - 1);
    for (const int t : e.operands) used(t, until);
    const auto result = [&](int number) {
      if (number < 0) return;
      ProgramTensor& t = of(number);
      if (t.made >= 0 && !made[static_cast<std::size_t>(number)]) t.first = t.made = i;
      made[static_cast<std::size_t>(number)] = true;
      used(number, until);
    };
    result(e.result);
    for (const int t : e.also) result(t);
  }
  for (std::size_t t = 0; t < tensors.size(); ++t)
    if (tensors[t].made >= 0 && !made[t]) tensors[t].last = -1;  // nothing makes it any more
  state_held(others);
}

TESSERA_FUNCTION void Program::state_held(Index others) {
  std::vector<Index> more(static_cast<std::size_t>(size()) + 2, 0);
  for (const ProgramTensor& t : *tensors_) {
    const int begins = t.begins();
    if (t.last < begins) continue;
    more[static_cast<std::size_t>(begins)] += t.bytes;
    more[static_cast<std::size_t>(min_of(t.last, size()) + 1)] -= t.bytes;
  }
  Index held = others;
  std::vector<ProgramEntry>& entries = entries_.own();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    held += more[i];
    entries[i].held_before = held;
  }
}

}  // namespace tessera
