// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How two Programs are laid beside each other.
///
///     diff(before, after)
///
/// Laws: those of program/diff.hpp.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/text.hpp>
#include <tessera/program/detail/explain.hpp>
#include <tessera/program/detail/structure_diff.hpp>
#include <tessera/program/diff.hpp>
#include <tessera/program/text_table.hpp>

namespace tessera {

namespace detail {
/// The longest common subsequence of two lists of words, in memory linear in their length
/// (D. S. Hirschberg, "A linear space algorithm for computing maximal common subsequences", 1975).
class Alignment {
 public:
  using Words = std::vector<std::string>;
  Alignment(const Words& a, const Words& b) : a_(a), b_(b) { align(0, size(a), 0, size(b)); }
  /// Pairs of equal words, ascending in both lists.
  const std::vector<std::pair<int, int>>& pairs() const { return pairs_; }

 private:
  static int size(const Words& words) { return static_cast<int>(words.size()); }
  bool equal(int i, int j) const {
    return a_[static_cast<std::size_t>(i)] == b_[static_cast<std::size_t>(j)];
  }
  /// Returns the lengths of the longest common subsequences of a[a0, a1) and each prefix of b[b0,
  /// b1); with `from_behind`, each suffix.
  std::vector<int> lengths(int a0, int a1, int b0, int b1, bool from_behind) const {
    const auto n = static_cast<std::size_t>(b1 - b0);
    std::vector<int> row(n + 1, 0);
    for (int i = 0; i < a1 - a0; ++i) {
      int diagonal = 0;
      for (std::size_t j = 1; j <= n; ++j) {
        const int above = row[j];
        const int k = static_cast<int>(j);
        const bool match = from_behind ? equal(a1 - 1 - i, b1 - k) : equal(a0 + i, b0 + k - 1);
        row[j] = match ? diagonal + 1 : std::max(above, row[j - 1]);
        diagonal = above;
      }
    }
    return row;
  }
  void align(int a0, int a1, int b0, int b1) {
    while (a0 < a1 && b0 < b1 && equal(a0, b0)) pairs_.emplace_back(a0++, b0++);
    int behind = 0;
    while (a0 < a1 - behind && b0 < b1 - behind && equal(a1 - 1 - behind, b1 - 1 - behind))
      ++behind;
    const int a_end = a1 - behind;
    const int b_end = b1 - behind;
    if (a_end - a0 == 1) {
      for (int j = b0; j < b_end; ++j)
        if (equal(a0, j)) {
          pairs_.emplace_back(a0, j);
          break;
        }
    } else if (a0 < a_end && b0 < b_end) {
      const int middle = a0 + (a_end - a0) / 2;
      const std::vector<int> first = lengths(a0, middle, b0, b_end, false);
      const std::vector<int> second = lengths(middle, a_end, b0, b_end, true);
      const int n = b_end - b0;
      int cut = 0;
      for (int j = 1; j <= n; ++j)
        if (first[static_cast<std::size_t>(j)] + second[static_cast<std::size_t>(n - j)] >
            first[static_cast<std::size_t>(cut)] + second[static_cast<std::size_t>(n - cut)])
          cut = j;
      align(a0, middle, b0, b0 + cut);
      align(middle, a_end, b0 + cut, b_end);
    }
    for (int k = 0; k < behind; ++k) pairs_.emplace_back(a_end + k, b_end + k);
  }

  const Words& a_;
  const Words& b_;
  std::vector<std::pair<int, int>> pairs_;
};

inline std::vector<std::string> alignment_words(const Program& program) {
  std::vector<std::string> words;
  for (const ProgramEntry& e : program.entries())
    words.push_back(std::string(name_of(e.plan->kind)) + " " + e.label + " " +
                    program.layer_path(e.layer));
  return words;
}

/// Returns whether two plans communicate or cost differently.
inline bool differ(const ProgramEntry& a, const ProgramEntry& b) {
  if (a.plan == b.plan) return a.held_before != b.held_before;
  const Plan& p = *a.plan;
  const Plan& q = *b.plan;
  if (p.steps.size() != q.steps.size() || p.cost != q.cost || p.peak_bytes != q.peak_bytes ||
      a.held_before != b.held_before || !(p.result_desc() == q.result_desc()) ||
      !(p.also == q.also))
    return true;
  for (const int slot : p.also)
    if (!(p.slots[slot].desc == q.slots[slot].desc)) return true;
  for (int i = 0; i < p.steps.size(); ++i)
    if (!(p.steps[i] == q.steps[i])) return true;
  return false;
}

/// How a number changes; both numbers, where one of them is saturated.
inline std::string change_text(Index was, Index is, std::string (*text)(Index)) {
  if (saturated(was) || saturated(is)) return text(was) + " -> " + text(is);
  return is < was ? "-" + text(was - is) : "+" + text(is - was);
}

inline std::string operator_name(const Program& program, const ProgramEntry& e) {
  const std::string layer = program.layer_path(e.layer);
  return (layer.empty() ? "" : layer + ": ") + std::string(name_of(e.plan->kind)) + " " + e.label;
}

inline std::string moves_text(const ProgramEntry& e, const AxisNames& names) {
  std::string moves;
  for (const Step& step : e.plan->steps)
    if (step.communicates()) moves += (moves.empty() ? "" : ", ") + step_name(step, names);
  return moves.empty() ? "-" : moves;
}
}  // namespace detail

TESSERA_FUNCTION ProgramDiff diff(const Program& before, const Program& after) {
  ProgramDiff d{before, after, {}, over_processes(before), over_processes(after)};
  const std::vector<std::string> a = detail::alignment_words(before);
  const std::vector<std::string> b = detail::alignment_words(after);
  int i = 0;
  int j = 0;
  const auto up_to = [&](int i_end, int j_end) {
    while (i < i_end) d.rows.push_back({i++, -1});
    while (j < j_end) d.rows.push_back({-1, j++});
  };
  const detail::Alignment aligned(a, b);
  detail::StructureDiff structure(before, after);
  for (const auto& [x, y] : aligned.pairs()) {
    up_to(x, y);
    std::string why = structure.of(x, y);
    const bool changed = !why.empty() || detail::differ(before.entry(x), after.entry(y));
    d.rows.push_back({i++, j++, changed, std::move(why)});
  }
  up_to(before.size(), after.size());
  return d;
}

TESSERA_FUNCTION std::string explain(const ProgramDiff& d) {
  const AxisNames names[] = {d.before.names(), d.after.names()};
  std::string text =
      "program on " + to_string(d.before.mesh, names[0]) + " -> " +
      to_string(d.after.mesh, names[1]) + ": " + std::to_string(d.appeared()) + " appeared, " +
      std::to_string(d.vanished()) + " vanished, " + std::to_string(d.changed()) + " changed, " +
      std::to_string(static_cast<int>(d.rows.size()) - d.appeared() - d.vanished() - d.changed()) +
      " alike\n";
  const auto from_to = [](Index a, Index b, std::string (*unit)(Index)) {
    return a == b ? unit(a) : unit(a) + " -> " + unit(b);
  };
  const auto number_of = [](const ProgramSpread& spread, int i) {
    return i < 0 ? TotalSpread{} : spread.entries[static_cast<std::size_t>(i)];
  };
  detail::TextTable table;
  table.row({"", "operator", "communication", "payload", "work", "memory"});
  for (const DiffRow& row : d.rows) {
    if (!row.changed && row.before >= 0 && row.after >= 0) continue;
    const ProgramEntry* a = row.before >= 0 ? &d.before.entry(row.before) : nullptr;
    const ProgramEntry* b = row.after >= 0 ? &d.after.entry(row.after) : nullptr;
    const ProgramEntry& one = b != nullptr ? *b : *a;
    const TotalSpread was = number_of(d.was, row.before);
    const TotalSpread is = number_of(d.is, row.after);
    const std::string name = detail::operator_name(b != nullptr ? d.after : d.before, one);
    if (a == nullptr || b == nullptr) {
      const TotalSpread& its = b != nullptr ? is : was;
      table.row({b != nullptr ? "+" : "-", name,
                 detail::moves_text(one, (b != nullptr ? d.after : d.before).names_on(one.part)),

                 detail::bytes_text(its.payload.most), detail::flops_text(its.flops.most),
                 detail::bytes_text(its.peak.most)});
      continue;
    }
    const std::string moved = detail::moves_text(*a, d.before.names_on(a->part));
    const std::string moves = detail::moves_text(*b, d.after.names_on(b->part));
    table.row({"~", name, moved == moves ? moves : moved + " -> " + moves,
               from_to(was.payload.most, is.payload.most, detail::bytes_text),
               from_to(was.flops.most, is.flops.most, detail::flops_text),
               from_to(was.peak.most, is.peak.most, detail::bytes_text)});
  }
  int said = 0;
  for (const DiffRow& row : d.rows)
    if (!row.why.empty() && said++ < 12)
      text += "  operator " + std::to_string(row.after) + ", " +
              detail::operator_name(d.after, d.after.entry(row.after)) + ": " + row.why + "\n";
  if (said > 12) text += "  and " + std::to_string(said - 12) + " more\n";
  if (!d.same()) text += table.text("  ");
  text += "  in all, most on one process: payload " +
          detail::change_text(d.was.payload.most, d.is.payload.most, detail::bytes_text) +
          ", work " + detail::change_text(d.was.flops.most, d.is.flops.most, detail::flops_text) +
          ", duplicated work " +
          detail::change_text(d.was.duplicated.most, d.is.duplicated.most, detail::flops_text) +
          ", peak memory " +
          detail::change_text(d.was.peak.most, d.is.peak.most, detail::bytes_text) +
          ", model time " +
          detail::change_text(d.before.cost(), d.after.cost(), detail::time_text) + "\n";
  return text;
}

}  // namespace tessera
