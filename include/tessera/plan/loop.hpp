// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A product made in rounds as a value: each round multiplies the blocks in hand while, or before,
/// the next ones travel by collective-permute, so that no process holds a gathered tensor (GShard,
/// Lepikhin et al. 2020, section 3.3.2 and figure 4c). plan/work/loop_turns.hpp says who has which
/// block in which round.
///
///     Loop loop{.kind = LoopKind::gather, .letter = 'm'};
///     loop.rings[0] = {0};                 // the left operand's blocks of m travel around axis 0
///
/// Laws: the rounds of all processes together make every product of the plain form once.
#include <cstdint>
#include <string_view>

#include <tessera/mesh/axis_list.hpp>

namespace tessera {

/// Which tensors of a product travel.
enum class LoopKind : std::uint8_t {
  none,
  gather,   ///< one operand's blocks, in place of its all-gather
  scatter,  ///< sums of the result, in place of its reduce-scatter
  cannon,   ///< both operands' blocks; in each round every block is wanted by one process of a ring
  summa     ///< both operands' blocks; in each round all processes of a ring want the same one
};
/// Returns the name as plans print it: "gather loop".
constexpr std::string_view name_of(LoopKind kind) {
  switch (kind) {
    case LoopKind::none:
      return "no loop";
    case LoopKind::gather:
      return "gather loop";
    case LoopKind::scatter:
      return "reduce-scatter loop";
    case LoopKind::cannon:
      return "Cannon loop";
    case LoopKind::summa:
      return "SUMMA loop";
  }
  return "?";
}

/// The rounds of a product. The tensors are numbered: left operand, right operand, result.
struct Loop {
  LoopKind kind = LoopKind::none;
  char letter = 0;  ///< the dimension (of a result the first) whose blocks travel; of two operands
                    ///< it is summed
  bool both_ways = false;  ///< one half of every block travels up the ring, the other half down
  AxisList rings[3] = {};  ///< the axes around which each tensor's blocks travel
  bool at_once = false;    ///< nothing hides behind products on one node: a call is waited for at
                           ///< once, so that it may go through shared memory
  AxisSet layers;          ///< the rounds are dealt out over these axes (2.5-D)

  constexpr explicit operator bool() const { return kind != LoopKind::none; }
  /// Returns the axes over which the loop communicates.
  constexpr AxisSet axes() const { return rings[0].set() | rings[1].set() | rings[2].set(); }
  constexpr bool operator==(const Loop&) const = default;
};

}  // namespace tessera
