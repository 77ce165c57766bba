// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The work of one step of a plan on its process: the exact call, the packing and unpacking, the
/// local arithmetic. plan/work/work.hpp and plan/move/relocation.hpp make it, the executor carries
/// it out.
///
///     StepWork work = work_of(plan, plan.steps[0]);    // work.call, work.pack, work.unpack
///
/// Laws: packing a box and unpacking it again gives the same box.
#include <vector>

#include <tessera/base/local_index.hpp>
#include <tessera/base/local_work.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/plan/work/contraction.hpp>

namespace tessera {

/// The memory that a call sends from or receives in: a block of a tensor, or staging memory of the
/// step.
enum class Buffer : std::uint8_t { block, send_staging, receive_staging };

/// A part of a convolution, and which input of the step it reads.
struct ConvolvePart {
  int input = 0;
  LocalConvolve work;
};

/// One call and its copies.
struct CallWork {
  Call call;
  Buffer send = Buffer::block;     ///< the source block
  Buffer receive = Buffer::block;  ///< the destination block
  std::vector<StridedCopy> pack;   ///< source block (later stages: receive staging) -> send staging
  std::vector<StridedCopy> local;  ///< source block -> destination block
  std::vector<StridedCopy> unpack;  ///< receive staging -> destination block
  /// For regions: others' source blocks -> destination block. These replace the call and its copies
  /// among processes that read each other's memory. Scattered copies of `pack` are still packed for
  /// them.
  std::vector<PeerCopies> reads;
  std::vector<StridedCopy> scattered;
};

struct StepWork : CallWork {
  std::vector<CallWork> then;  ///< for a collective in levels: the calls after the first
  /// For a step that moves several tensors in one call: the copies of each tensor.
  std::vector<CallWork> joined;
  bool zeroed = false;  ///< the copies do not cover the destination; the rest is zero, or as filled
  bool adds = false;    ///< `local` and `unpack` add to the destination, in order
  Index sums = 0;       ///< bytes of the floats in which half types are summed
  bool boxed = false;   ///< the taken elements form one box of the destination: `gaps` are the rest
  std::vector<StridedCopy> gaps;       ///< the filled elements, all from one element
  Index send_staging = 0;              ///< bytes
  Index receive_staging = 0;           ///< bytes
  ContractionWork contract;            ///< for a contract step
  LocalReduce reduce;                  ///< for a reduce step
  LocalMap map;                        ///< for a map step
  LocalFind find;                      ///< for a find step
  LocalScan scan;                      ///< for a scan step
  LocalSort sort;                      ///< for a sort, order or arrange step
  LocalMerge merge;                    ///< for one round of a step that merges
  LocalBins bins;                      ///< for an exponent, bins or unbin step
  std::vector<ConvolvePart> convolve;  ///< for a convolve step: parts of groups and of the block
  LocalReduceWindow reduce_window;     ///< for a reduce-window step
  LocalSelectScatter select;           ///< for a select-and-scatter step
  LocalIndexed take;                   ///< for a take step
  LocalScatter scatter;                ///< for a scatter step; its integers are in the send staging
  LocalOneHot one_hot;                 ///< for a one-hot step
  LocalSlide slide;                    ///< for a slide or put step

  /// Calls visit(call work) for every call of a communicate step, in order.
  template <class Visit> void for_each_call(const Visit& visit) const {
    visit(static_cast<const CallWork&>(*this));
    for (const CallWork& next : then) visit(next);
  }
};

namespace detail {

/// Return the bytes of a call's, or a step's, lists.
inline Index heap_bytes(const CallWork& work) {
  const auto of = [](const auto& list) {
    return static_cast<Index>(list.capacity() * sizeof(list.front()));
  };
  Index bytes = of(work.call.send) + of(work.call.receive) + of(work.pack) + of(work.local) +
                of(work.unpack) + of(work.reads) + of(work.scattered);
  for (const PeerCopies& peer : work.reads) bytes += of(peer.copies) + of(peer.packed);
  return bytes;
}
inline Index heap_bytes(const StepWork& work) {
  Index bytes = heap_bytes(static_cast<const CallWork&>(work));
  for (const auto* calls : {&work.then, &work.joined}) {
    bytes += static_cast<Index>(calls->capacity() * sizeof(CallWork));
    for (const CallWork& call : *calls) bytes += heap_bytes(call);
  }
  return bytes + static_cast<Index>(work.gaps.capacity() * sizeof(StridedCopy) +
                                    work.convolve.capacity() * sizeof(ConvolvePart));
}

/// Returns the elements of the largest block of a move from `from` to the sharding `to`: blocks are
/// largest at the origin of the mesh, so every process can compute it.
inline Index largest_block(const TensorDesc& from, const Sharding& to, const MeshShape& mesh) {
  const Coordinates origin = mesh.coordinates(0);
  return max_of(block(from.extents, from.sharding, mesh, origin).size(),
                block(from.extents, to, mesh, origin).size());
}

/// Returns the copy of `box` from the block `source` to the block `target`, which have these
/// strides.
constexpr StridedCopy box_copy(const Box& box, const Box& source, const Extents& from_strides,
                               const Box& target, const Extents& to_strides) {
  StridedCopy copy;
  copy.extents = box.extents();
  copy.from_strides = from_strides;
  copy.to_strides = to_strides;
  for (int d = 0; d < box.rank(); ++d) {
    copy.from_offset += (box[d].lo - source[d].lo) * copy.from_strides[d];
    copy.to_offset += (box[d].lo - target[d].lo) * copy.to_strides[d];
  }
  return copy;
}
/// The same of row-major blocks.
constexpr StridedCopy box_copy(const Box& box, const Box& source, const Box& target) {
  return box_copy(box, source, row_major_strides(source.extents()), target,
                  row_major_strides(target.extents()));
}
/// Returns the copy of `box` out of a block into a buffer at `offset`, packed.
constexpr StridedCopy pack_copy(const Box& box, const Box& source, const Extents& strides,
                                Index offset) {
  StridedCopy copy = box_copy(box, source, strides, box, row_major_strides(box.extents()));
  copy.to_offset = offset;
  return copy;
}
constexpr StridedCopy unpack_copy(const Box& box, const Box& target, const Extents& strides,
                                  Index offset) {
  StridedCopy copy = box_copy(box, box, row_major_strides(box.extents()), target, strides);
  copy.from_offset = offset;
  return copy;
}
/// The same of row-major blocks.
constexpr StridedCopy pack_copy(const Box& box, const Box& source, Index offset) {
  return pack_copy(box, source, row_major_strides(source.extents()), offset);
}
constexpr StridedCopy unpack_copy(const Box& box, const Box& target, Index offset) {
  return unpack_copy(box, target, row_major_strides(target.extents()), offset);
}
}  // namespace detail

}  // namespace tessera
