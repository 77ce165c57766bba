// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The messages that a call is made of: in rounds, of each round whom a member sends how much.
///
///     detail::rounds_of(call)                          // of an all-gather over 8 members: 3
///     detail::message_of(call, 1)                      // what its second round sends
///
/// Laws: the bytes of all rounds are the call's payload, but for an all-reduce or reduce-scatter
/// whose elements the members do not divide; where there is one, the others' rounds fit.
/// Sources: Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in
/// MPICH" (2005), sections 4.1 to 4.5.
#include <tessera/mesh/call.hpp>

namespace tessera::detail {

/// A message to member `to` of the group; -1: none.
struct RoundMessage {
  int to = -1;
  double bytes = 0;
};

/// Returns whether members exchange with those at a distance of 1, 2, 4, … rather than with their
/// neighbours in a ring: where their number is a power of two.
constexpr bool doubles(int members) { return (members & (members - 1)) == 0; }

/// Returns how many rounds a call has: each begins when those before have ended.
constexpr int rounds_of(const Call& call) {
  const int members = call.members;
  if (members < 2) return 0;
  switch (call.kind) {
    case Collective::all_gather:
    case Collective::reduce_scatter:
      return doubles(members) ? rounds(members) : members - 1;
    case Collective::all_reduce:
      return 2 * (doubles(members) ? rounds(members) : members - 1);
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

/// Returns what the own member sends in a round of a collective call; not for those that go point
/// to point.
constexpr RoundMessage message_of(const Call& call, int round) {
  const int members = call.members, own = call.own;
  const double size = static_cast<double>(size_of(call.type));
  const auto share = [&](int blocks) {  // bytes of so many of all members' blocks
    Index all = 0;
    for (const Piece& piece : call.kind == Collective::reduce_scatter ? call.send : call.receive)
      all += piece.count;
    return size * static_cast<double>(all) * blocks / members;
  };
  const int turn = rounds(members);
  switch (call.kind) {
    case Collective::all_gather:
      if (doubles(members)) return {own ^ 1 << round, share(1 << round)};
      return {(own + 1) % members, share(1)};
    case Collective::reduce_scatter:
      if (doubles(members)) {
        const int distance = members >> (round + 1);
        return {own ^ distance, share(distance)};
      }
      return {(own + 1) % members, share(1)};
    case Collective::all_reduce:
      if (doubles(members)) {
        const int back = round - turn;  // of the rounds that gather, which takes the others back
        if (back < 0) return {own ^ 1 << round, share(members >> (round + 1))};
        return {own ^ members >> (back + 1), share(1 << back)};
      }
      return {(own + 1) % members, share(1)};
    case Collective::all_to_all: {
      const int to = doubles(members) ? own ^ (round + 1) : (own + round + 1) % members;
      for (const Piece& piece : call.send)
        if (piece.peer == to) return {to, size * static_cast<double>(piece.count)};
      return {};
    }
    case Collective::broadcast: {  // a binomial tree
      const int root = !call.send.empty()      ? own
                       : !call.receive.empty() ? call.receive.front().peer
                                               : -1;
      if (root < 0) return {};
      const int place = (own - root + members) % members, distance = 1 << (turn - 1 - round);
      const auto& pieces = call.send.empty() ? call.receive : call.send;
      if (place % (2 * distance) != 0 || place + distance >= members) return {};
      return {(own + distance) % members, size * static_cast<double>(pieces.front().count)};
    }
    case Collective::collective_permute:
    case Collective::exchange:
      break;
  }
  return {};
}

}  // namespace tessera::detail
