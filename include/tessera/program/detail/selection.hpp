// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Which of a pass's changes are made, where all of them together would exceed a limit on memory.
///
///     const std::vector<int> made = selected(changes, [&](const std::vector<int>& some) { … });
///
/// The one that saves most for each byte comes first: the greedy rule for a knapsack (Dantzig
/// 1957).
///
/// Laws: what is selected keeps the limit, or nothing is; where fewer changes never take more
/// memory, the result is that of adding one change after the other where it fits; all of them are
/// tried at first, so that a limit that all keep costs one trial.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <tessera/program/detail/over_processes.hpp>
#include <tessera/program/program.hpp>

namespace tessera::detail {

/// A change that a pass can make.
struct Change {
  int number = 0;    ///< the pass's own
  double saved = 0;  ///< bytes or picoseconds
  Index bytes = 0;   ///< of the tensors that live longer by it, on the process with most
};

/// Returns the numbers of the changes that are made; keeps(numbers) is asked at most `most` times.
template <class Keeps>
std::vector<int> selected(std::vector<Change> changes, const Keeps& keeps, int most = 64) {
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.saved * static_cast<double>(b.bytes) > b.saved * static_cast<double>(a.bytes);
  });
  std::vector<int> made;
  struct Part {
    std::size_t begin, end;
  };
  std::vector<Part> left;  // the next one is last
  if (!changes.empty()) left.push_back({0, changes.size()});
  for (int tried = 0; !left.empty() && tried < most; ++tried) {
    const Part part = left.back();
    left.pop_back();
    std::vector<int> more = made;
    for (std::size_t i = part.begin; i < part.end; ++i) more.push_back(changes[i].number);
    if (keeps(more)) {
      made = std::move(more);
    } else if (const std::size_t count = part.end - part.begin; count > 1) {
      left.push_back({part.begin + count / 2, part.end});
      left.push_back({part.begin, part.begin + count / 2});
    }
  }
  return made;
}

/// Returns whether a program takes up at most `limit` bytes on every process: passes decide alike
/// on all of them.
inline bool keeps(const Program& program, Index limit) {
  return limit == max_int64 || over_processes(program).peak.most <= limit;
}
/// Returns the limit that a pass keeps: what the program takes up anyway it may take up.
inline Index limit_of(const Program& program, Index limit) {
  return limit == max_int64 ? limit : std::max(limit, over_processes(program).peak.most);
}

/// A change that an attempt at a pass has made.
struct MadeChange {
  int number = 0;
  double saved = 0;
  std::vector<int> tensors{};  ///< that live longer by it
};
/// What an attempt at a pass has made of a program.
template <class Report> struct Attempt {
  Report made;
  std::vector<MadeChange> changes;
};

/// Returns what a pass makes of a program within a limit: attempt(nullptr) makes all its changes,
/// attempt(&numbers) some of them, whose numbers are sorted.
template <class Try> auto within_limit(const Program& program, Index limit, const Try& attempt) {
  auto all = attempt(nullptr);
  const Index most = limit_of(program, limit);
  if (keeps(all.made.program, most)) return std::move(all.made);
  const MeshShape& mesh = program.mesh;
  const Coordinates worst = mesh.coordinates(over_processes(all.made.program).peak.process);
  std::vector<Change> changes;
  for (const MadeChange& change : all.changes) {
    changes.push_back({change.number, change.saved});
    for (const int t : change.tensors)
      changes.back().bytes =
          saturating_add(changes.back().bytes, charge_of(all.made.program.tensor(t), mesh, worst));
  }
  const auto sorted = [](std::vector<int> numbers) {
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  };
  const std::vector<int> made = sorted(selected(changes, [&](const std::vector<int>& numbers) {
    const std::vector<int> some = sorted(numbers);
    return keeps(attempt(&some).made.program, most);
  }));
  auto result = attempt(&made).made;
  result.refused += static_cast<int>(changes.size() - made.size());
  return result;
}

}  // namespace tessera::detail
