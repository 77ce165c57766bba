// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Collectives among buffers in one address space: the loopback transport runs them once all
/// members have arrived.
///
///     for (int member = 0; member < p; ++member) detail::fill(parties, member);
///
/// Laws: reductions add in the order of the members, so that the result depends on nothing else.
#include <cstddef>
#include <cstring>
#include <vector>

#include <tessera/base/dtype.hpp>
#include <tessera/base/fixed_vector.hpp>
#include <tessera/comm/detail/describe_call.hpp>
#include <tessera/kernel/join.hpp>

namespace tessera::detail {

/// One member's call and buffers.
struct Party {
  const Call* call = nullptr;
  const std::byte* send = nullptr;
  std::byte* receive = nullptr;
};

/// Most processes of one program.
inline constexpr int max_parties = 64;

inline void copy_bytes(std::byte* to, const std::byte* from, Index bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, static_cast<std::size_t>(bytes));
}

/// Fills the receive buffer of member `own`, for every kind but all_reduce.
inline void fill(const std::vector<Party>& parties, int own) {
  const auto party = [&](int member) -> const Party& {
    return parties[static_cast<std::size_t>(member)];
  };
  const Call& call = *party(own).call;
  const Index size = static_cast<Index>(size_of(call.type));
  for (std::size_t k = 0; k < call.receive.size(); ++k) {
    const Piece& piece = call.receive[k];
    if (piece.count == 0 || (call.own_stays && piece.peer == own)) continue;
    std::byte* to = party(own).receive + piece.offset * size;
    if (call.kind == Collective::reduce_scatter) {
      FixedVector<const void*, max_parties> sources;
      for (const Party& from : parties)
        sources.push_back(from.send + find_piece(from.call->send, own)->offset * size);
      join(call.type, call.reduction, sources.data(), sources.size(), piece.count, to);
      continue;
    }
    const Party& from = party(piece.peer);
    const Piece* sent = sends_to_all(call.kind)
                            ? &from.call->send.front()
                            : find_piece(from.call->send, own, occurrence(call.receive, k));
    copy_bytes(to, from.send + sent->offset * size, piece.count * size);
  }
}

/// Reduces the elements [first, first + count) of all members of an all-reduce into `result`, which
/// starts at element `first`.
inline void reduce_slice(const std::vector<Party>& parties, Index first, Index count,
                         std::byte* result) {
  if (count == 0) return;
  FixedVector<const void*, max_parties> sources;
  for (const Party& from : parties) {
    const Index size = static_cast<Index>(size_of(from.call->type));
    const std::byte* source = from.call->in_place
                                  ? from.receive + from.call->receive.front().offset * size
                                  : from.send + from.call->send.front().offset * size;
    sources.push_back(source + first * size);
  }
  const Call& call = *parties.front().call;
  join(call.type, call.reduction, sources.data(), sources.size(), count, result);
}

/// Gives one member of an all-reduce the whole result.
inline void deliver(const Party& party, const std::byte* result) {
  const Piece& piece = party.call->receive.front();
  const Index size = static_cast<Index>(size_of(party.call->type));
  copy_bytes(party.receive + piece.offset * size, result, piece.count * size);
}

}  // namespace tessera::detail
