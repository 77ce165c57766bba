// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The local work of one round of a merging step (plan/move/merge_split.hpp): all tensors are
/// packed into one message, and the message that arrives is merged with them.
///
///     const Merging merging(plan, step, work.merge, sent, received);
///     merging.pack(data);   /* the call */   merging.merge(data);
#include <array>

#include <tessera/kernel/copy/copy.hpp>
#include <tessera/kernel/sort/merge.hpp>
#include <tessera/plan/move/merge_split.hpp>

namespace tessera::detail {

class Merging {
 public:
  /// `sent` and `received` are the staging memory of the round.
  Merging(const Plan& plan, const Step& step, const LocalMerge& work, void* sent, void* received)
      : plan_(plan), step_(step), work_(work), sent_(sent), received_(received) {}

  void pack(const std::array<void*, Plan::max_slots>& data) const {
    const Index elements = work_.outer * work_.own * work_.inner;
    const auto offsets = merge_offsets(plan_, step_, elements);
    const StridedCopy all{{elements}, 0, {1}, 0, {1}};
    for (int k = 0; k < step_.in.size(); ++k)
      tessera::copy(type(k), data[slot(k)], at(sent_, offsets[k]), &all, 1);
  }
  void merge(const std::array<void*, Plan::max_slots>& data) const {
    const auto own = merge_offsets(plan_, step_, work_.outer * work_.own * work_.inner);
    const auto other = merge_offsets(plan_, step_, work_.outer * work_.other * work_.inner);
    MergeRuns runs;
    for (int k = 0; k < step_.in.size(); ++k)
      runs.add(at(sent_, own[k]), at(received_, other[k]), data[slot(k)], size_of(type(k)));
    tessera::merge(type(0), work_, runs);
  }

 private:
  static void* at(void* memory, Index bytes) { return static_cast<char*>(memory) + bytes; }
  std::size_t slot(int k) const {
    return static_cast<std::size_t>(k == 0 ? step_.out : step_.also[k - 1]);
  }
  DType type(int k) const { return plan_.slots[step_.in[k]].desc.type; }

  const Plan& plan_;
  const Step& step_;
  const LocalMerge& work_;
  void* sent_;
  void* received_;
};

}  // namespace tessera::detail
