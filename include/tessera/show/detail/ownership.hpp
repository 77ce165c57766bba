// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The content of ownership drawings: the blocks along some dimensions, with long sequences
/// abbreviated, and the processes that hold a block.
///
///     const BlockSequence rows(desc, mesh, 0, 1);
///     for (const BlockOrGap& row : rows.shown(most_blocks)) ...       // a block, or a gap of many
///
/// Laws: the blocks and gaps shown cover the sequence in order; their number and their memory are
/// bounded for any mesh; the time is linear in the number of blocks.
#include <algorithm>
#include <string>
#include <vector>

#include <tessera/spec/block.hpp>

namespace tessera::detail {

inline constexpr Index most_blocks = 16;     ///< along a dimension of a whole drawing
inline constexpr Index most_cells = 256;     ///< of a whole drawing; with more,
inline constexpr Index most_of_crowded = 6;  ///< this many along a dimension
inline constexpr Index shown_ends = 3;       ///< blocks at either end of an abbreviated dimension
inline constexpr int shown_sizes = 4;        ///< sizes whose first block is shown wherever it lies
inline constexpr int most_printed_runs = 8;  ///< of processes, in the text of one block

/// "0,4,8" or "0-7": processes, added in rising order; of many runs the first and the last.
class ProcessText {
 public:
  void add(int first, int last) {
    count_ += last - first + 1;
    if (!open_.empty() && open_.hi == first) {
      open_.hi = last + 1;
      return;
    }
    close();
    open_ = {first, Index{last} + 1};
  }
  Index count() const { return count_; }
  std::string text() const {
    ProcessText all = *this;
    all.close();
    std::string text;
    const std::size_t runs = all.runs_ > most_printed_runs ? 3 : all.first_.size();
    for (std::size_t i = 0; i < runs; ++i) text += (i > 0 ? "," : "") + run_text(all.first_[i]);
    if (all.runs_ > most_printed_runs)
      text += ",...," + run_text(all.last_) + " (" + std::to_string(count_) + " in all)";
    return text;
  }

 private:
  struct Run {
    Index lo = 0, hi = 0;
    bool empty() const { return hi == lo; }
  };
  static std::string run_text(const Run& run) {
    if (run.hi == run.lo + 1) return std::to_string(run.lo);
    return std::to_string(run.lo) + (run.hi == run.lo + 2 ? "," : "-") + std::to_string(run.hi - 1);
  }
  void close() {
    if (open_.empty()) return;
    if (runs_ < most_printed_runs) first_.push_back(open_);
    last_ = open_;
    ++runs_;
    open_ = {};
  }
  std::vector<Run> first_;
  Run last_, open_;
  Index runs_ = 0, count_ = 0;
};

/// One block of a sequence, or a gap that stands for several that are not shown.
struct BlockOrGap {
  Box box;              ///< of the block, or of the gap's first one
  Index blocks = 1;     ///< more than one: a gap
  Extents least, most;  ///< the sizes of its blocks
  Index lowest = 0;     ///< what these blocks add to the number of a process that holds them
  Index highest = 0;

  bool gap() const { return blocks > 1; }
  /// "58 more"
  std::string count_text() const { return std::to_string(blocks) + " more"; }
  /// "of 128", "of 1 to 2", "of 2x3"
  std::string size_text() const {
    return "of " + to_string(least) + (least == most ? "" : " to " + to_string(most));
  }
};

/// The non-empty blocks of dimensions first ... last - 1, row-major. A process's number is the sum
/// of what its block adds in each sequence and its place among the holders of that block.
class BlockSequence {
 public:
  BlockSequence(const TensorDesc& desc, const MeshShape& mesh, int first, int last)
      : desc_(desc), mesh_(mesh), first_(first), last_(last) {
    for_each([&](const BlockOrGap& block) {
      if (std::find(sizes_.begin(), sizes_.end(), block.least) == sizes_.end() &&
          sizes_.size() < shown_sizes) {
        sizes_.push_back(block.least);
        begins_.push_back(count_);
      }
      ++count_;
    });
  }
  Index count() const { return count_; }

  /// Returns all blocks where they are no more than `limit`, else those at the ends and the first
  /// of each size, with gaps of at least two blocks.
  std::vector<BlockOrGap> shown(Index limit) const {
    std::vector<BlockOrGap> list;
    Index i = 0;
    bool in_gap = false;
    for_each([&](const BlockOrGap& block) {
      // A gap of one block would need as much room as the block.
      const bool gap = count_ > limit && !kept(i) && (!kept(i - 1) || !kept(i + 1));
      ++i;
      if (!gap || !in_gap) {
        list.push_back(block);
        in_gap = gap;
        return;
      }
      BlockOrGap& all = list.back();
      ++all.blocks;
      for (int d = 0; d < all.least.size(); ++d) {
        all.least[d] = min_of(all.least[d], block.least[d]);
        all.most[d] = max_of(all.most[d], block.most[d]);
      }
      all.lowest = min_of(all.lowest, block.lowest);
      all.highest = max_of(all.highest, block.highest);
    });
    return list;
  }

 private:
  bool kept(Index i) const {
    return i < shown_ends || i >= count_ - shown_ends ||
           std::find(begins_.begin(), begins_.end(), i) != begins_.end();
  }
  template <class F> void for_each(F&& f) const {
    AxisList axes;  // of all the dimensions, the last one fastest
    for (int d = first_; d < last_; ++d)
      for (int i = 0; i < desc_.sharding[d].size(); ++i) axes.push_back(desc_.sharding[d][i]);
    Coordinates at(mesh_.rank(), 0);
    const Index parts = mesh_.parts(axes);
    for (Index part = 0; part < parts; ++part) {
      Index rest = part;
      for (int i = axes.size() - 1; i >= 0; --i) {
        at[axes[i]] = static_cast<int>(rest % mesh_[axes[i]]);
        rest /= mesh_[axes[i]];
      }
      BlockOrGap block;
      for (int d = first_; d < last_; ++d)
        block.box.side.push_back(tessera::block(desc_.extents[d], desc_.sharding[d], mesh_, at));
      if (block.box.empty()) continue;
      block.least = block.most = block.box.extents();
      block.lowest = block.highest = mesh_.process(at);
      f(block);
    }
  }

  TensorDesc desc_;
  MeshShape mesh_;
  int first_, last_;
  Index count_ = 0;
  std::vector<Extents> sizes_;
  std::vector<Index> begins_;  ///< where the first block of each size lies
};

/// The processes that hold the same block: those that differ along axes which split no dimension.
class Holders {
 public:
  Holders(const TensorDesc& desc, const MeshShape& mesh)
      : mesh_(mesh), free_(mesh.axes() - desc.sharding.used()), at_(mesh.rank(), 0) {
    free_ = free_ | mesh.unit_axes();
    for (int a = mesh.rank() - 1; a >= 0 && free_.contains(a); --a) run_ *= mesh[a];
  }
  int count() const { return mesh_.group_size(free_); }
  /// Returns holder k of the block that adds `base`.
  int process(Index base, int k) const {
    return static_cast<int>(base) + mesh_.process(mesh_.member(free_, at_, k));
  }
  std::string text(Index base) const {
    ProcessText all;
    for (int k = 0; k < count(); k += run_) all.add(process(base, k), process(base, k) + run_ - 1);
    return all.text();
  }
  /// The lowest and the highest process that hold blocks of a gap.
  std::string lowest(Index base) const { return std::to_string(process(base, 0)); }
  std::string highest(Index base) const { return std::to_string(process(base, count() - 1)); }

 private:
  MeshShape mesh_;
  AxisSet free_;
  Coordinates at_;
  int run_ = 1;  ///< holders with neighbouring numbers
};

/// The processes without elements; "" if there are none. `blocks` are not empty.
inline std::string idle_text(const TensorDesc& desc, const MeshShape& mesh, Index blocks) {
  if (blocks * Holders(desc, mesh).count() == mesh.processes()) return "";
  ProcessText idle;
  for (int p = 0; p < mesh.processes(); ++p)
    if (block_volume(desc.extents, desc.sharding, mesh, mesh.coordinates(p)) == 0) idle.add(p, p);
  return idle.text();
}
/// Returns the most blocks that a drawing of `blocks` blocks shows along one dimension.
inline Index limit_for(Index blocks) { return blocks > most_cells ? most_of_crowded : most_blocks; }

inline std::string interval_text(const Interval& interval) {
  if (interval.size() == 0) return "none";
  if (interval.size() == 1) return std::to_string(interval.lo);
  return std::to_string(interval.lo) + ".." + std::to_string(interval.hi - 1);
}

}  // namespace tessera::detail
