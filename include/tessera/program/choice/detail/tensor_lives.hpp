// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// When a Program that is made of another one has its tensors: each from the operator that makes it
/// to the last one that reads it, whatever the given Program held longer.
///
///     TensorLives lives(program);
///     lives.of(t).begin;   TensorLives::works(i)
///
/// Every operator has three times: its operands are moved to its way, it works, and its results are
/// moved to where they shall lie.
///
/// Laws: lives are those of Program::relist.
#include <algorithm>
#include <cstddef>
#include <vector>

#include <tessera/base/math.hpp>
#include <tessera/program/program.hpp>

namespace tessera::detail {

class TensorLives {
 public:
  /// A tensor's times are begin … end-1; none where no operator has it.
  struct Life {
    int begin = 0, end = 0;
    int first_reader = -1;  ///< an operator; -1: none
  };
  /// Time 0 is left to what has no time.
  static constexpr int moves_in(int i) { return 3 * i + 1; }
  static constexpr int works(int i) { return 3 * i + 2; }
  static constexpr int moves_home(int i) { return 3 * i + 3; }
  static constexpr int operator_at(int time) { return (time - 1) / 3; }

  explicit TensorLives(Program program)
      : times_(moves_in(program.size())), others_(program.held_by_others()) {
    program.relist(program.entries());
    for (const ProgramTensor& t : program.tensors()) {
      Life life{moves_in(t.made < 0 ? t.first : t.made + 1),
                t.last >= program.size() ? times_ : moves_home(std::max(t.last, 0))};
      if (t.last < 0 || life.end < life.begin) life.end = life.begin;
      lives_.push_back(life);
    }
    for (int i = program.size(); i-- > 0;)
      for (const int t : program.entry(i).operands)
        lives_[static_cast<std::size_t>(t)].first_reader = i;
  }

  int times() const { return times_; }
  /// Returns the bytes that are held throughout, of tensors that the Program does not name.
  Index others() const { return others_; }
  const Life& of(int t) const { return lives_[static_cast<std::size_t>(t)]; }

 private:
  int times_;
  Index others_ = 0;
  std::vector<Life> lives_;
};

}  // namespace tessera::detail
