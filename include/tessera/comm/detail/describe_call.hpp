// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A call as a phrase for messages, and whether the calls made by the members of a group fit
/// together.
///
///     describe(call) == "all-gather of float over 4 processes, sends 6, receives 24"
///
/// Laws: disagreement(calls) is empty exactly when every piece that one member sends is received,
/// with the same count, by the member it is for, and kind, type and reduction are the same.
#include <cstddef>
#include <string>
#include <vector>

#include <tessera/mesh/call.hpp>

namespace tessera::detail {

inline Index total_count(const std::vector<Piece>& pieces) {
  Index total = 0;
  for (const Piece& piece : pieces) total += piece.count;
  return total;
}

inline std::string describe(const Call& call) {
  std::string text(name_of(call.kind));
  if (call.reduction != Reduction::none) text += " (" + std::string(name_of(call.reduction)) + ")";
  text += " of " + std::string(name_of(call.type)) + " over " + std::to_string(call.members) +
          " processes, sends " + std::to_string(total_count(call.send)) + ", receives " +
          std::to_string(total_count(call.receive));
  return text;
}

/// Returns the piece of the `which`-th occurrence of `peer`, or nullptr.
inline const Piece* find_piece(const std::vector<Piece>& pieces, int peer, int which = 0) {
  const auto at = static_cast<std::size_t>(peer);
  if (which == 0 && at < pieces.size() && pieces[at].peer == peer &&
      (at == 0 || pieces[at - 1].peer != peer))
    return &pieces[at];
  for (const Piece& piece : pieces)
    if (piece.peer == peer && which-- == 0) return &piece;
  return nullptr;
}

/// Returns how many pieces before `index` have the same peer.
inline int occurrence(const std::vector<Piece>& pieces, std::size_t index) {
  int count = 0;
  for (std::size_t i = index; i > 0 && pieces[i - 1].peer == pieces[index].peer; --i) ++count;
  return count;
}

/// Two members whose calls do not fit, or first == -1; `count` says how many elements the first
/// sends to the second, `expected` how many the second receives.
struct Disagreement {
  int first = -1;
  int second = -1;
  bool counts = false;
  Index sent = 0;
  Index expected = 0;
};

/// `calls[i]` is member i's call.
inline Disagreement disagreement(const std::vector<const Call*>& calls) {
  const int members = static_cast<int>(calls.size());
  const auto of = [&](int member) -> const Call& {
    return *calls[static_cast<std::size_t>(member)];
  };
  for (int i = 1; i < members; ++i)
    if (of(i).kind != of(0).kind || of(i).type != of(0).type ||
        of(i).reduction != of(0).reduction || of(i).even != of(0).even)
      return {0, i};
  const auto fails = [](int first, int second, Index sent, Index expected) {
    return Disagreement{first, second, true, sent, expected};
  };
  const Collective kind = of(0).kind;
  for (int i = 0; i < members; ++i) {
    if (kind == Collective::all_reduce) {
      const Index n = of(i).send.front().count;
      if (n != of(0).send.front().count) return fails(0, i, of(0).send.front().count, n);
      continue;
    }
    const auto& receives = of(i).receive;
    for (std::size_t k = 0; k < receives.size(); ++k) {
      const Index expected = receives[k].count;
      if (kind == Collective::reduce_scatter) {
        for (int j = 0; j < members; ++j) {
          const Piece* sent = find_piece(of(j).send, i);
          if (sent == nullptr || sent->count != expected)
            return fails(j, i, sent == nullptr ? 0 : sent->count, expected);
        }
        continue;
      }
      const int peer = receives[k].peer;
      if (peer < 0 || peer >= members) return {i, i};
      const auto& sends = of(peer).send;
      const Piece* sent = sends_to_all(kind) ? find_piece(sends, peer)
                                             : find_piece(sends, i, occurrence(receives, k));
      if (kind == Collective::all_gather && sent == nullptr && !sends.empty())
        sent = &sends.front();
      const Index count = sent == nullptr ? 0 : sent->count;
      if (count != expected) return fails(peer, i, count, expected);
    }
    if (kind == Collective::broadcast && !of(i).send.empty()) {
      for (int j = 0; j < members; ++j)
        if (j != i && of(j).receive.empty()) return fails(i, j, of(i).send.front().count, 0);
    }
    if (kind == Collective::collective_permute || kind == Collective::exchange)
      for (std::size_t k = 0; k < of(i).send.size(); ++k) {
        const Piece& piece = of(i).send[k];
        if (piece.count == 0) continue;
        if (piece.peer < 0 || piece.peer >= members) return {i, i};
        const Piece* taken = find_piece(of(piece.peer).receive, i, occurrence(of(i).send, k));
        if (taken == nullptr) return fails(i, piece.peer, piece.count, 0);
      }
  }
  return {};
}

}  // namespace tessera::detail
