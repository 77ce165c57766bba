// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The memory of one mesh in one memory space, given out in blocks: first from the node's shared
/// memory, if there is any, then from private chunks that grow on demand and are kept for reuse.
/// comm/memory_source.hpp says where chunks come from.
///
///     detail::Arena arena(std::make_shared<detail::HostMemory>());
///     detail::Block block = arena.allocate(1000);            // arena.in_use() == 1024
///     arena.release(block);
///
/// Laws: in_use() is the sum of arena_charge(bytes) over the blocks given out, whichever memory
/// holds them; blocks are disjoint; where the memory left is known, the arena takes no more than
/// that; a repeated pattern of requests allocates nothing new; a block that one lane has given back
/// goes to another lane when the first one's kernels are done.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/base/memory.hpp>
#include <tessera/comm/detail/free_ranges.hpp>
#include <tessera/comm/memory_source.hpp>
#include <tessera/kernel/lane_use.hpp>

namespace tessera::detail {

/// A piece of an arena. Offsets below the size of the shared memory lie in it.
struct Block {
  Index offset = -1;
  Index bytes = 0;
  void* data = nullptr;      ///< aligned to arena_alignment; null when empty or dry
  bool shared = false;       ///< lies in the node's shared memory
  std::uint64_t serial = 0;  ///< its number among the blocks that count together, from 1
};

/// The bytes charged for blocks of several arenas.
struct ChargedTogether {
  Index now = 0;
  Index peak = 0;            ///< the most since the start or the last reset
  std::uint64_t serial = 0;  ///< of the latest block
};

/// Not for several threads at once. Communication: none, ever.
class Arena {
 public:
  /// An arena of `source`'s memory; a null source makes a dry arena, which counts and holds
  /// nothing. `shared` is shared memory: if it has bytes, it is used first and belongs to the
  /// caller. `limit` bounds in_use().
  /// A given limit is trusted; without one the arena asks the source how much is left before it
  /// takes more, and each of `sharers` processes may use an equal part of that.
  explicit Arena(std::shared_ptr<MemorySource> source, void* shared = nullptr,
                 Index shared_bytes = 0, Index limit = max_int64, int sharers = 1)
      : source_(std::move(source)), limit_(limit), sharers_(sharers) {
    if (shared != nullptr) add_range(shared, shared_bytes, shared_bytes);
    shared_bytes_ = capacity_;
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { close(); }

  /// Returns a block of at least `bytes` bytes, its contents unspecified. Throws MemoryError when
  /// there is no memory for it.
  Block allocate(Index bytes) {
    if (bytes < 0)
      throw MemoryError("a block of " + std::to_string(bytes) +
                        " bytes was asked for; sizes are zero or more");
    const Index charge = arena_charge(bytes);
    if (closed_ || charge > limit_ - in_use_) refuse(bytes);
    Block block{-1, bytes, nullptr, false, 0};
    if (charge > 0 && source_ != nullptr) {
      block.offset = free_.take(charge, this_lane());
      if (const LaneSet lanes = block.offset < 0 ? free_.lanes() : 0; lanes != 0) {
        wait_for(lanes);
        free_.settle();
        block.offset = free_.take(charge);
      }
      if (block.offset < 0) {
        grow(charge, bytes);
        block.offset = free_.take(charge);
      }
      block.data = address(block.offset);
      block.shared = block.offset < shared_bytes_;
    }
    block.serial = ++together_->serial;
    in_use_ += charge;
    if (in_use_ > peak_) peak_ = in_use_;
    if (charges_) together_->now += charge;
    together_->peak = max_of(together_->peak, together_->now);
    return block;
  }

  /// Throws MemoryError, and takes nothing, when `bytes` more than what is in use cannot be had.
  void require(Index bytes) const {
    if (closed_ || bytes > limit_ - in_use_) refuse(bytes, "would be needed");
    if (in_use_ + bytes > capacity_)
      require_left(in_use_ + bytes - capacity_, bytes, "would be needed");
  }

  /// Takes a block back and empties it; kernels of this thread's lane may still use it. After
  /// close() it only forgets it.
  void release(Block& block) { release(block, closed_ || dry() ? 0 : this_lane()); }
  /// Takes a block back and empties it, where kernels of `lanes` may still use it.
  void release(Block& block, LaneSet lanes) {
    if (block.bytes > 0 && !closed_) {
      const Index charge = arena_charge(block.bytes);
      in_use_ -= charge;
      if (charges_) together_->now -= charge;
      if (block.offset >= 0) free_.give(block.offset, charge, lanes);
    }
    block = {};
  }

  bool dry() const { return source_ == nullptr; }
  /// Returns the bytes charged for the blocks now given out.
  Index in_use() const { return in_use_; }
  /// Returns the serial of the latest block of the arenas that count together; 0 before the first.
  std::uint64_t serial() const { return together_->serial; }
  /// Returns the maximum of in_use() since the start or the last reset_peak().
  Index peak() const { return peak_; }
  void reset_peak() { peak_ = in_use_; }
  /// Counts its blocks, of which there are none yet, with those of another arena. `charges`: they
  /// are charged there too, and not numbered alone.
  void count_with(const Arena& other, bool charges = true) {
    together_ = other.together_;
    charges_ = charges;
  }
  /// Returns what is charged for the blocks of all arenas that count together.
  ChargedTogether& together() { return *together_; }
  /// Returns the bytes of memory held, in blocks or free.
  Index capacity() const { return capacity_; }
  /// Returns the bytes of shared memory.
  Index shared_bytes() const { return shared_bytes_; }

  /// Gives the private memory back. Blocks still given out become invalid, and nothing can be
  /// allocated.
  void close() {
    if (closed_) return;
    closed_ = true;
    if (charges_) together_->now -= in_use_;
    if (!chunks_.empty()) wait_for(~LaneSet{0});
    free_.clear();
    for (const Chunk& chunk : chunks_)
      if (chunk.raw != nullptr) source_->release(chunk.raw, chunk.raw_bytes);
    chunks_.clear();
    capacity_ = shared_bytes_ = 0;
  }

 private:
  struct Chunk {
    Index offset;
    Index bytes;
    char* base;
    void* raw;  ///< from the source, or null for shared memory
    Index raw_bytes;
  };

  /// Adds at most `most` of [memory, memory + bytes), in whole units. Ranges of offsets never
  /// touch, so that no block spans two chunks.
  void add_range(void* memory, Index bytes, Index most, void* raw = nullptr, Index raw_bytes = 0) {
    const auto at = reinterpret_cast<std::uintptr_t>(memory);
    const Index skip =
        static_cast<Index>((arena_alignment - at % arena_alignment) % arena_alignment);
    const Index usable = min_of(most, bytes - skip) / arena_alignment * arena_alignment;
    if (usable <= 0) return;
    const Index offset =
        chunks_.empty() ? 0 : chunks_.back().offset + chunks_.back().bytes + arena_alignment;
    chunks_.push_back({offset, usable, static_cast<char*>(memory) + skip, raw, raw_bytes});
    free_.give(offset, usable);
    capacity_ += usable;
  }

  void grow(Index charge, Index asked) {
    constexpr Index smallest = Index{1} << 20;
    constexpr Index generous = Index{64} << 20;
    const Index wish = max_of(charge, max_of(smallest, min_of(capacity_, generous)));
    require_left(charge, asked, "were asked for");
    for (const Index size : {wish, charge}) {
      const Index raw_bytes = size + arena_alignment;
      if (void* raw = source_->allocate(raw_bytes)) {
        add_range(raw, raw_bytes, size, raw, raw_bytes);
        return;
      }
    }
    refuse(asked);
  }

  /// Asks the source only when the answer could matter: asking the machine takes microseconds.
  void require_left(Index more, Index asked, const char* verb) const {
    if (source_ == nullptr || limit_ != max_int64 || more < (Index{1} << 20)) return;
    const Index left = source_->left();
    if (more <= left / sharers_) return;
    throw MemoryError(
        facts(asked, verb) + ", and " + std::to_string(left) + " are left on this machine" +
        (sharers_ > 1 ? " for " + std::to_string(sharers_) + " processes" : std::string()) +
        "; shard over more axes or processes, lower MeshOptions::workspace_limit, so that plans "
        "keep less at once, or set MeshOptions::memory_limit to the bytes that this process may "
        "use, so that the machine is not asked");
  }

  std::string facts(Index asked, const char* verb) const {
    return std::to_string(asked) + " bytes " + verb + ", " + std::to_string(in_use_) +
           " are in use of " + std::to_string(capacity_) + " held";
  }

  [[noreturn]] void refuse(Index asked, const char* verb = "were asked for") const {
    const std::string facts = this->facts(asked, verb);
    if (closed_)
      throw MemoryError("the arena of this mesh is closed; " + facts +
                        ": make tensors before the mesh or the environment ends");
    if (limit_ != max_int64 && arena_charge(asked) > limit_ - in_use_)
      throw MemoryError("the arena is full: " + facts + ", and its limit is " +
                        std::to_string(limit_) +
                        "; shard over more axes or processes, lower "
                        "MeshOptions::workspace_limit, so that plans keep less at once, or raise "
                        "MeshOptions::memory_limit");
    throw MemoryError("memory is exhausted: " + facts +
                      "; shard over more processes, or use smaller tensors");
  }

  void* address(Index offset) const {
    std::size_t low = 0;
    std::size_t high = chunks_.size();
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      (chunks_[middle].offset <= offset ? low : high) = middle;
    }
    return chunks_[low].base + (offset - chunks_[low].offset);
  }

  std::shared_ptr<MemorySource> source_;
  Index limit_;
  int sharers_;
  detail::FreeRanges free_;
  std::vector<Chunk> chunks_;
  Index shared_bytes_ = 0;
  Index capacity_ = 0;
  Index in_use_ = 0;
  Index peak_ = 0;
  std::shared_ptr<ChargedTogether> together_ = std::make_shared<ChargedTogether>();
  bool charges_ = true;  ///< what it gives out, where blocks count together
  bool closed_ = false;
};
}  // namespace tessera::detail
