// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One communication call of one process, as a value: plans list them, transports make them,
/// ledgers record them.
///
///     Call call{.kind = Collective::all_gather, .group = AxisSet{1}, .type = DType::f32};
///
/// Laws: payload(call) is a fixed function of the call: for an all-gather, the others' blocks; for
/// a broadcast, what is not the process's own; for a reduce-scatter, the total minus the own block;
/// for an all-reduce, both of these with nested blocks; for the rest, what is sent to others.
#include <cstdint>
#include <string_view>
#include <vector>

#include <tessera/base/dtype.hpp>
#include <tessera/base/math.hpp>
#include <tessera/base/reduction.hpp>
#include <tessera/mesh/axis_group.hpp>

namespace tessera {

/// The ways processes of one group exchange data. `collective_permute` and `exchange` go point to
/// point; a `broadcast` is an exchange in which one process sends the same to all others.
enum class Collective : std::uint8_t {
  all_gather,
  all_to_all,
  reduce_scatter,
  all_reduce,
  collective_permute,
  exchange,
  broadcast
};

namespace detail {
inline constexpr int collective_kinds = 7;
/// Returns whether a collective joins elements of several processes.
constexpr bool reduces(Collective kind) {
  return kind == Collective::reduce_scatter || kind == Collective::all_reduce;
}
/// Returns whether a process sends all members the same.
constexpr bool sends_to_all(Collective kind) {
  return kind == Collective::all_gather || kind == Collective::broadcast;
}
}  // namespace detail

// Short spellings, so that plans read well: p.count(all_reduce).
inline constexpr Collective all_gather = Collective::all_gather;
inline constexpr Collective all_to_all = Collective::all_to_all;
inline constexpr Collective reduce_scatter = Collective::reduce_scatter;
inline constexpr Collective all_reduce = Collective::all_reduce;
inline constexpr Collective collective_permute = Collective::collective_permute;

/// Returns the name as plans print it: "all-gather".
constexpr std::string_view name_of(Collective kind) {
  switch (kind) {
    case Collective::all_gather:
      return "all-gather";
    case Collective::all_to_all:
      return "all-to-all";
    case Collective::reduce_scatter:
      return "reduce-scatter";
    case Collective::all_reduce:
      return "all-reduce";
    case Collective::collective_permute:
      return "collective-permute";
    case Collective::exchange:
      return "exchange";
    case Collective::broadcast:
      return "broadcast";
  }
  return "?";
}

/// `count` elements at `offset` of a buffer, for or from member `peer` of the group.
struct Piece {
  int peer = 0;
  Index offset = 0;
  Index count = 0;
  constexpr bool operator==(const Piece&) const = default;
};

/// The meaning of the pieces for each kind (p = size of the group; pieces in the order of its
/// members):
///   all_gather      send: one piece, the own block;  receive: p pieces, one a member
///   reduce_scatter  send: p pieces, one a member;    receive: one piece, the own block
///   all_reduce      send and receive: one piece
///   all_to_all      send and receive: p pieces, the own one included
///   permute, exchange  send and receive: only non-empty pieces of other members, ascending by peer
///   broadcast       send: one piece, on the process that has it; receive: one piece from it, on
///   the
///                   others; where there is nothing to send, none on any
struct Call {
  Collective kind = Collective::all_gather;
  AxisGroup group;
  DType type = DType::f32;
  Reduction reduction = Reduction::none;
  bool even = false;  ///< all pieces are alike on every member and packed in order: the plain MPI
                      ///< call, not the v-form
  bool in_place = false;   ///< all_reduce only: send and receive are the same buffer
  bool own_stays = false;  ///< all_gather only: the own piece need not be received
  int own = 0;             ///< this process's number in the group
  int members = 1;
  Index network = 0;  ///< elements of the payload that go between nodes
  std::vector<Piece> send;
  std::vector<Piece> receive;
  /// From 1 on, the number of a channel of an exchange: a member makes its half by itself when it
  /// is ready, and one that has no part in the exchange makes no call. Halves meet in the order in
  /// which each pair makes those of one channel. 0: all members make the call together.
  int channel = 0;
  Index bound = 0;  ///< no member counts or displaces by more elements than this; 0: not known
  bool operator==(const Call&) const = default;
};

namespace detail {
/// Returns this process's share when n elements are cut into `parts` blocks of ceil(n / parts).
constexpr Index block_size(Index n, Index parts, Index part) {
  const Index block = ceil_div(n, parts);
  return max_of(0, min_of(n, (part + 1) * block) - min_of(n, part * block));
}

/// Makes a broadcast of an exchange in which one member sends the same to all others (or nobody
/// sends anything).
constexpr void send_to_all(Call& call) {
  call.kind = Collective::broadcast;
  if (!call.send.empty()) {
    call.send.resize(1);
    call.send.front().peer = call.own;
  }
  for (const auto* pieces : {&call.send, &call.receive})
    for (const Piece& piece : *pieces) call.bound = piece.count;
}

/// Returns the payload of a call in elements (see the law above).
constexpr Index payload_elements(const Call& call) {
  Index total = 0;
  switch (call.kind) {
    case Collective::all_gather:
    case Collective::broadcast:
      for (const Piece& piece : call.receive)
        if (piece.peer != call.own) total += piece.count;
      return total;
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::collective_permute:
    case Collective::exchange:
      for (const Piece& piece : call.send)
        if (piece.peer != call.own) total += piece.count;
      return total;
    case Collective::all_reduce: {
      const Index n = call.send.front().count;
      return 2 * (n - block_size(n, call.members, call.own));
    }
  }
  return total;
}

/// Returns the rounds of a collective over a tree or a hypercube of `members`: log2, rounded up.
constexpr int rounds(int members) {
  int count = 0;
  while ((1 << count) < members) ++count;
  return count;
}

/// Returns the number of messages that a process sends, as the cost model counts them: one for each
/// peer point to point and in an all-to-all, one for each round in the other collectives
/// (all-reduce: twice).
constexpr Index message_count(const Call& call) {
  switch (call.kind) {
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::broadcast:
      return rounds(call.members);
    case Collective::all_reduce:
      return 2 * rounds(call.members);
    case Collective::all_to_all:
      return call.members - 1;
    case Collective::collective_permute:
    case Collective::exchange:
      break;
  }
  Index count = 0;
  for (const Piece& piece : call.send) count += piece.count > 0 && piece.peer != call.own;
  return count;
}

/// Returns the payload of a call in bytes (see the law above).
constexpr Index payload_bytes(const Call& call) {
  return payload_elements(call) * static_cast<Index>(size_of(call.type));
}
/// Returns the bytes of the payload that go between nodes, as the plan predicts.
constexpr Index network_bytes(const Call& call) {
  return call.network * static_cast<Index>(size_of(call.type));
}
}  // namespace detail
}  // namespace tessera
