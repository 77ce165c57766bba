// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The check of level `heavy`: before a collective, its group compares kind, type, operator and all
/// counts.
///
///     check_together(control_group, call, "einsum", where);
///
/// Laws: either all members return, and then disagreement(their calls) is empty, or all throw
/// MismatchError.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/comm/detail/agreement.hpp>
#include <tessera/comm/detail/describe_call.hpp>
#include <tessera/comm/detail/mix.hpp>

namespace tessera::detail {

/// Returns how many elements a call sends to (or expects from) each member.
inline std::vector<std::int64_t> counts_by_member(const Call& call, bool sends) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(call.members), 0);
  const auto& pieces = sends ? call.send : call.receive;
  const bool same_for_all =
      call.kind == Collective::all_reduce ||
      (sends ? sends_to_all(call.kind) : call.kind == Collective::reduce_scatter);
  for (const Piece& piece : pieces)
    for (std::size_t member = 0; member < counts.size(); ++member)
      if (same_for_all || piece.peer == static_cast<int>(member)) counts[member] += piece.count;
  if (call.kind == Collective::broadcast) counts[static_cast<std::size_t>(call.own)] = 0;
  return counts;
}

/// Communication: an all-reduce, an all-gather of as many integers as there are members, and an
/// all-reduce, over `group`, which has the members of the call and serves only this check.
inline void check_together(Group& group, const Call& call, std::string_view label, Where where) {
  std::uint64_t digest =
      mix(static_cast<std::uint64_t>(call.kind), static_cast<std::uint64_t>(call.type));
  digest =
      mix(mix(mix(digest, static_cast<std::uint64_t>(call.reduction)), call.even ? 1u : 0u), label);
  const std::string text = std::string(label) + ": " + describe(call);
  if (!all_equal(group, digest)) report_disagreement(group, digest, text, where);

  const auto members = static_cast<std::size_t>(group.size());
  const auto sent = gather_integers(group, counts_by_member(call, true), members);
  const auto expected = counts_by_member(call, false);
  const auto own = static_cast<std::size_t>(group.own());
  std::size_t bad = members;
  for (std::size_t from = members; from-- > 0;)
    if (sent[from * members + own] != expected[from]) bad = from;
  std::int64_t first = bad < members ? group.own() : group.size();
  group.run(control_all_reduce(group, Reduction::min, 1), &first, &first);
  if (first == group.size()) return;
  if (bad == members)
    throw MismatchError(text + ": member " + std::to_string(first) +
                            " of the group expects other counts than it is sent",
                        where);
  throw MismatchError(text + ": member " + std::to_string(bad) + " of the group sends " +
                          std::to_string(sent[bad * members + own]) +
                          " elements to this one, member " + std::to_string(own) +
                          ", which expects " + std::to_string(expected[bad]) +
                          "; all members must plan from the same extents and shardings",
                      where);
}

}  // namespace tessera::detail
