// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether a process waits for others that will never come. It waits for the members of its mesh
/// that have not begun the operator that it is in. When all of those have ended, or wait in vain
/// elsewhere, nobody can continue, however long the limit is.
///
///     if (std::string text = standstill(board, process); !text.empty()) abort(text);
///
/// Laws: while an awaited process of this node computes, or does something that is not on the
/// board, the answer is no, and tell_of_delay() says which one it is; processes of other nodes are
/// not considered.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <tessera/comm/blackboard.hpp>

namespace tessera::detail {

/// Returns what each process of the node said last.
inline std::vector<CallState> states_on(const Blackboard& board) {
  std::vector<CallState> states(static_cast<std::size_t>(board.size()));
  for (std::size_t p = 0; p < states.size(); ++p)
    if (board.slot(static_cast<int>(p)) >= 0) states[p] = board.read(static_cast<int>(p));
  return states;
}

/// Calls f(member) for each member that has not reached p's operator, until it returns false.
/// Before a mesh's first operator its calls have no number: who waits in one of them is there.
template <class F>
void each_missing(const Blackboard& board, const std::vector<CallState>& states, std::size_t p,
                  const F& f) {
  const CallPlace& place = states[p].place;
  const auto reached = [&](std::size_t q) {
    return place.ordinal == 0
               ? states[q].activity == Activity::waits && states[q].place.mesh == place.mesh
               : board.trail(static_cast<int>(q)).may_have_reached(place.mesh, place.ordinal);
  };
  for (std::size_t q = 0; q < states.size(); ++q) {
    const int slot = board.slot(static_cast<int>(q));
    if (q == p || slot < 0 || slot >= 128 || (place.members[slot / 64] >> slot % 64 & 1) == 0 ||
        reached(q))
      continue;
    if (!f(q)) return;
  }
}

/// Prints a warning when process `process` has waited for 45 seconds, or half of a limit below 90,
/// and no process of its node has told so recently. It names the processes of the node that it
/// waits for and that are in no call: they compute, or loop without end. A limit below 2 seconds,
/// or one that is nearly reached, speaks for itself.
inline void tell_of_delay(Blackboard& board, int process, double waited, double limit) {
  const double patience = limit > 0 && limit < 90 ? limit / 2 : 45;
  if (waited < patience || patience < 1 || (limit > 0 && waited > 0.75 * limit)) return;
  if (!board.claim_notice(static_cast<std::int64_t>(1e9 * patience))) return;
  const std::vector<CallState> states = states_on(board);
  std::string late;
  each_missing(board, states, static_cast<std::size_t>(process), [&](std::size_t q) {
    if (states[q].activity != Activity::waits)
      late += (late.empty() ? "process " : ", process ") + std::to_string(q);
    return true;
  });
  const auto seconds = [](double s) {
    char text[32];
    std::snprintf(text, sizeof text, s < 1e9 ? "%.0f s" : "%g s", s);
    return std::string(text);
  };
  const std::string text =
      "process " + std::to_string(process) + " has waited " + seconds(waited) + " for " +
      (late.empty() ? "others" : late + ", which makes no call meanwhile: it computes, or loops") +
      ". What each did last:" + board.report() +
      (limit > 0 ? "\nThe job ends when a call has waited " + seconds(limit) +
                       "; TESSERA_TIME_LIMIT=<seconds> changes that."
                 : std::string());
  std::fprintf(stderr, "[tessera] warning: %s\n", text.c_str());
}

/// Returns a message when process `process` waits in vain, else nothing. Calls younger than half a
/// second are not judged.
inline std::string standstill(const Blackboard& board, int process) {
  constexpr std::int64_t young = 500'000'000;
  const std::int64_t now = steady_nanoseconds();
  const std::vector<CallState> states = states_on(board);
  const std::size_t count = states.size();
  std::vector<bool> stuck(count, false);
  for (std::size_t p = 0; p < count; ++p) {
    if (board.slot(static_cast<int>(p)) < 0) continue;
    const CallState& state = states[p];
    stuck[p] = state.activity == Activity::ended ||
               (state.activity == Activity::waits && state.place.mesh != 0 &&
                (state.place.members[0] | state.place.members[1]) != 0 && now - state.time > young);
  }
  const auto own = static_cast<std::size_t>(process);
  if (!stuck[own] || states[own].activity != Activity::waits) return {};
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t p = 0; p < count; ++p) {
      if (!stuck[p] || states[p].activity == Activity::ended) continue;
      bool some = false;
      bool all = true;
      each_missing(board, states, p, [&](std::size_t q) {
        some = true;
        return all = stuck[q];
      });
      if (some && all) continue;
      stuck[p] = false;
      changed = true;
    }
  }
  if (!stuck[own]) return {};
  std::size_t other = count;
  each_missing(board, states, own, [&](std::size_t q) {
    if (other == count || states[q].activity == Activity::ended) other = q;
    return states[q].activity != Activity::ended;
  });
  const bool ended = states[other].activity == Activity::ended;
  return "process " + std::to_string(other) +
         (ended ? " has ended, but process " + std::to_string(process) + " waits for it"
                : " stands in another call than process " + std::to_string(process) +
                      ", which waits for it, and neither can go on") +
         "; all processes must make the same calls, in the same order. What each did last:" +
         board.report();
}

}  // namespace tessera::detail
