// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The rounds of messages that a call is made of: to whom each member sends, and how much.
///
///     detail::rounds_of(call)                          // of an all-gather over 8 members: 3
///     detail::message_of(call, 3, 1)                   // what member 3 sends in its second round
///
/// Laws: in the rounds of an all-gather a process sends as many bytes as some other process has to
/// receive, which is its own call's payload where all blocks are alike; in those of a
/// reduce-scatter it receives as many as another has to send. An all-reduce is counted in equal
/// parts, as if its members divided its elements.
/// Sources: Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in
/// MPICH" (2005), sections 4.1 to 4.5.
#include <cstddef>
#include <vector>

#include <tessera/mesh/call.hpp>

namespace tessera::detail {

/// A message to member `to` of the group; -1: none.
struct RoundMessage {
  int to = -1;
  double bytes = 0;
};

/// Returns whether members exchange with those at a distance of 1, 2, 4, … rather than with their
/// neighbours in a ring. They do where their number is a power of two, unless `rings` is true.
constexpr bool doubles(int members, bool rings = false) {
  return !rings && (members & (members - 1)) == 0;
}

/// Returns how many rounds a call has. Each begins when the ones before it have ended.
constexpr int rounds_of(const Call& call, bool rings = false) {
  const int members = call.members;
  if (members < 2) return 0;
  switch (call.kind) {
    case Collective::all_gather:
    case Collective::reduce_scatter:
      return doubles(members, rings) ? rounds(members) : members - 1;
    case Collective::all_reduce:
      return 2 * (doubles(members, rings) ? rounds(members) : members - 1);
    case Collective::all_to_all:
      return members - 1;
    case Collective::broadcast:
      return rounds(members);
    case Collective::collective_permute:
    case Collective::exchange:
      break;
  }
  return 1;  // all at once, point to point
}

/// Returns whether all rounds of a call are like its first, as in a ring with equal blocks.
constexpr bool alike_rounds(const Call& call, bool rings = false) {
  if (doubles(call.members, rings)) return false;
  return call.kind == Collective::all_reduce ||
         (call.even &&
          (call.kind == Collective::all_gather || call.kind == Collective::reduce_scatter));
}

/// Returns the elements of `count` members' pieces, from member `first` on.
constexpr Index elements_of(const std::vector<Piece>& pieces, int first, int count) {
  Index all = 0;
  for (int m = first; m < first + count; ++m) all += pieces[static_cast<std::size_t>(m)].count;
  return all;
}

/// Returns what member `own` sends in a round of a call that goes around a ring: to the next one,
/// or backwards.
constexpr RoundMessage ring_message_of(const Call& call, int own, int round,
                                       bool backwards = false) {
  const int members = call.members;
  const auto before = [&](int steps) {
    return (own + (backwards ? steps : members - steps)) % members;
  };
  const int next = before(members - 1);
  const auto size = static_cast<double>(size_of(call.type));
  if (call.kind == Collective::all_gather)
    return {next, size * static_cast<double>(elements_of(call.receive, before(round), 1))};
  if (call.kind == Collective::reduce_scatter)
    return {next, size * static_cast<double>(elements_of(call.send, before(1 + round), 1))};
  return {next, size * static_cast<double>(call.send.front().count) / members};
}

/// Returns what member `own` sends in a round of its call; a call that goes point to point has no
/// such rounds. The call may be that of another member, if it is alike.
constexpr RoundMessage message_of(const Call& call, int own, int round) {
  const int members = call.members;
  const auto bytes = [&](Index elements) {
    return static_cast<double>(elements * static_cast<Index>(size_of(call.type)));
  };
  const int turn = rounds(members);
  switch (call.kind) {
    case Collective::all_gather: {
      if (!doubles(members)) return ring_message_of(call, own, round);
      const int first = own >> round << round;
      return {own ^ 1 << round, bytes(elements_of(call.receive, first, 1 << round))};
    }
    case Collective::reduce_scatter: {
      if (!doubles(members)) return ring_message_of(call, own, round);
      const int distance = members >> (round + 1), to = own ^ distance;
      return {to, bytes(elements_of(call.send, to / distance * distance, distance))};
    }
    case Collective::all_reduce: {
      if (!doubles(members)) return ring_message_of(call, own, round);
      const double block = bytes(call.send.front().count) / members;
      const int back = round - turn;  // a round that gathers, the way back of the others
      if (back < 0) return {own ^ 1 << round, block * (members >> (round + 1))};
      return {own ^ members >> (back + 1), block * (1 << back)};
    }
    case Collective::all_to_all: {
      const int to = doubles(members) ? own ^ (round + 1) : (own + round + 1) % members;
      return {to, bytes(elements_of(call.send, to, 1))};
    }
    case Collective::broadcast: {  // a binomial tree
      const int root = !call.send.empty()      ? own
                       : !call.receive.empty() ? call.receive.front().peer
                                               : -1;
      if (root < 0) return {};
      const int place = (own - root + members) % members, distance = 1 << (turn - 1 - round);
      const auto& pieces = call.send.empty() ? call.receive : call.send;
      if (place % (2 * distance) != 0 || place + distance >= members) return {};
      return {(own + distance) % members, bytes(pieces.front().count)};
    }
    case Collective::collective_permute:
    case Collective::exchange:
      break;
  }
  return {};
}

}  // namespace tessera::detail
