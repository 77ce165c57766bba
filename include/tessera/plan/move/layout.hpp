// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The layout of one side of a call: where in memory the elements for each member of the group lie.
/// All calls are laid out by it: collectives of one or several tensors, calls in levels, regions,
/// relocations and merges.
///
///     MessageSide send(Flow::out, direct, call.type, slot);
///     send.begin(peer);  send.add(slot, type, {counts, offset, strides});    // for each member
///     call.send = send.pieces;  work.pack = send.copies;
///
/// Laws: a direct side has no copies and takes no staging memory; else the elements lie one after
/// the other in the order in which they were added, and every element has one place.
#include <utility>
#include <vector>

#include <tessera/base/box.hpp>
#include <tessera/mesh/call.hpp>
#include <tessera/plan/move/memory.hpp>

namespace tessera::detail {

/// Where some elements lie in a block.
struct Strided {
  Extents counts;
  Index offset = 0;
  Extents strides;
};
/// Returns the place of `count` elements in a row.
constexpr Strided row_at(Index offset, Index count) { return {{count}, offset, {1}}; }
/// Returns the place of `box` in a block that holds `container`, with these strides.
constexpr Strided box_at(const Box& box, const Box& container, const Extents& strides) {
  Strided place{box.extents(), 0, strides};
  for (int d = 0; d < box.rank(); ++d) place.offset += (box[d].lo - container[d].lo) * strides[d];
  return place;
}
/// Returns the place of `box` in a row-major block.
constexpr Strided box_at(const Box& box, const Box& container) {
  return box_at(box, container, row_major_strides(container.extents()));
}
/// Returns the copy of elements from one place to another.
constexpr StridedCopy copy_between(const Strided& from, const Strided& to) {
  return {from.counts, from.offset, from.strides, to.offset, to.strides};
}

/// Where a side's elements go: out of blocks into messages, or in from messages into blocks.
enum class Flow : std::uint8_t { out, in };

class MessageSide {
 public:
  /// `direct`: the messages are parts of `block`, or of a staging memory in which they lie already.
  constexpr MessageSide(Flow flow, bool direct, DType call_type, MemoryNumber block)
      : MessageSide(flow, direct, call_type, block,
                    flow == Flow::out ? send_staging : receive_staging) {}
  /// Takes staging memory of the caller's choice.
  constexpr MessageSide(Flow flow, bool direct, DType call_type, MemoryNumber block,
                        MemoryNumber staging)
      : flow_(flow),
        direct_(direct),
        unit_(static_cast<Index>(size_of(call_type))),
        memory_(direct ? block : staging) {}

  /// Begins the message for (or from) a member; it may stay empty.
  constexpr void begin(int peer) { pieces.push_back({peer, total_, 0}); }
  /// Adds elements of a block, which is input (or output) number `tensor` of the step.
  constexpr void add(MemoryNumber block, DType type, const Strided& lies, int tensor = 0) {
    const Index elements = volume(lies.counts);
    const Index count = elements * static_cast<Index>(size_of(type)) / unit_;
    if (direct_)
      pieces.back().offset = elements > 0 ? lies.offset : 0;
    else if (elements > 0)
      copies.push_back(flow_ == Flow::out
                           ? MemoryCopy{block, memory_, type, static_cast<std::int8_t>(tensor),
                                        copy_between(lies, packed(lies, type))}
                           : MemoryCopy{memory_, block, type, static_cast<std::int8_t>(tensor),
                                        copy_between(packed(lies, type), lies)});
    pieces.back().count += count;
    total_ += count;
  }
  /// Adds elements of a direct side's own memory.
  constexpr void add(const Strided& row) {
    pieces.back().offset = row.offset;
    pieces.back().count += row.counts[0];
    total_ += row.counts[0];
  }
  /// Names a message that was packed before, at `offset`.
  constexpr void repeat(int peer, Index offset, Index count) {
    pieces.push_back({peer, offset, count});
  }

  /// Returns the elements of the call that were added.
  constexpr Index total() const { return total_; }
  /// Returns the bytes of staging memory.
  constexpr Index staging() const { return direct_ ? 0 : saturating_mul(total_, unit_); }
  constexpr MemoryNumber memory() const { return memory_; }

  std::vector<Piece> pieces;
  std::vector<MemoryCopy> copies;

 private:
  /// The next place in the staging memory.
  constexpr Strided packed(const Strided& lies, DType type) const {
    return {lies.counts, total_ * unit_ / static_cast<Index>(size_of(type)),
            row_major_strides(lies.counts)};
  }

  Flow flow_;
  bool direct_;
  Index unit_;
  MemoryNumber memory_;
  Index total_ = 0;
};

}  // namespace tessera::detail
