// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Two Programs side by side: two choices of specs, or two sizes of mesh. Operators are aligned by
/// order, kind, label and layer.
///
///     const ProgramDiff d = diff(before, after);
///     d.payload();   d.appeared();   d.changed()          // after minus before; rows
///     explain(d)
///
/// Laws: diff(p, p) changes nothing; every operator of both is in exactly one row, in order; as
/// many as possible are aligned.
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/over_processes.hpp>

namespace tessera {

/// One operator in both programs, or in one of them.
struct DiffRow {
  int before = -1;  ///< its number in the first program, or -1
  int after = -1;   ///< its number in the second, or -1
  bool changed = false;
  std::string why = {};  ///< in what the operators differ beside their plans
  bool appeared() const { return before < 0; }
  bool vanished() const { return after < 0; }
};

struct ProgramDiff {
  Program before;
  Program after;
  std::vector<DiffRow> rows;
  ProgramSpread was;  ///< the numbers of the first over all processes
  ProgramSpread is;   ///< and of the second

  /// Return how many operators are in the second program only; in the first only; in both, with
  /// different steps or numbers.
  int appeared() const {
    return count([](const DiffRow& r) { return r.appeared(); });
  }
  int vanished() const {
    return count([](const DiffRow& r) { return r.vanished(); });
  }
  int changed() const {
    return count([](const DiffRow& r) { return r.changed; });
  }
  bool same() const { return appeared() + vanished() + changed() == 0; }
  /// Return the second program's total, on the process with most, minus the first's.
  Index payload() const { return is.payload.most - was.payload.most; }
  Index flops() const { return is.flops.most - was.flops.most; }
  Index duplicated_flops() const { return is.duplicated.most - was.duplicated.most; }
  Index peak() const { return is.peak.most - was.peak.most; }
  std::int64_t cost() const { return after.cost() - before.cost(); }

 private:
  template <class F> int count(const F& f) const {
    int n = 0;
    for (const DiffRow& row : rows) n += f(row);
    return n;
  }
};

/// Returns the two programs aligned, operator by operator.
TESSERA_FUNCTION ProgramDiff diff(const Program& before, const Program& after);

/// Returns the difference as a table: a row for each operator that appeared (+), vanished (-) or
/// changed (~), a line for each of the first ones that read or keep something else, and a line of
/// totals. Numbers are the most on one process.
TESSERA_FUNCTION std::string explain(const ProgramDiff& d);

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/detail/diff.hpp>
#endif
