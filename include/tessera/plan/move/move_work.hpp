// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The work of a step that moves elements, on one process: its calls, and the copies before and
/// after each. plan/work/instructions.hpp lists it for the executor.
///
///     detail::MoveWork work = detail::move_work(plan, plan.steps[0]);    // work.call, work.pack, work.unpack
///
/// Laws: packing elements and unpacking them again gives the same elements.
#include <vector>

#include <tessera/plan/move/layout.hpp>

namespace tessera::detail {

/// One call and its copies.
struct CallWork {
  Call call;
  MemoryNumber send = no_memory;
  MemoryNumber receive = no_memory;
  std::vector<MemoryCopy> pack;  ///< before the call
  std::vector<MemoryCopy>
      local;  ///< between blocks; the call neither reads nor writes these places
  std::vector<MemoryCopy> unpack;  ///< after the call
};

/// What replaces a call among processes that read each other's memory.
struct ReadWork {
  std::vector<PeerCopies> peers;
  std::vector<MemoryCopy> packed;  ///< what is so scattered that it is packed for the others
};

/// A tensor of a merge: where its elements lie in the two messages, in bytes.
struct MergedTensor {
  Index own = 0;
  Index other = 0;
  DType type = DType::f32;
  constexpr bool operator==(const MergedTensor&) const = default;
};
/// A merge of a process's own message with one that has arrived.
struct MergeWork {
  LocalMerge lines;
  FixedVector<MergedTensor, max_operands> tensors;
};

/// The work of a step, or of one of its rounds.
struct MoveWork : CallWork {
  std::vector<CallWork> then;  ///< for a collective in levels: the calls after the first
  Index send_bytes = 0;        ///< of staging memory
  Index receive_bytes = 0;
  Index sum_bytes = 0;  ///< of the floats in which half types are summed
  bool adds = false;    ///< `local` and `unpack` add to the destination, in order
  bool boxed = false;   ///< the taken elements form one box of the destination: `gaps` are the rest
  std::vector<StridedCopy> gaps;  ///< from one element outside the source
  ReadWork reads;
  MergeWork merge;  ///< of a round of merging, after the call

  /// Calls visit(call work) for every call, in order.
  template <class Visit> constexpr void for_each_call(const Visit& visit) const {
    visit(static_cast<const CallWork&>(*this));
    for (const CallWork& next : then) visit(next);
  }
};

/// Returns the elements of the largest block of a move from `from` to the sharding `to`: blocks are
/// largest at the origin of the mesh, so every process can compute it.
constexpr Index largest_block(const TensorDesc& from, const Sharding& to, const MeshShape& mesh) {
  const Coordinates origin = mesh.coordinates(0);
  return max_of(block(from.extents, from.sharding, mesh, origin).size(),
                block(from.extents, to, mesh, origin).size());
}
/// Lays a call's two sides out.
constexpr void put_sides(CallWork& work, MessageSide& send, MessageSide& receive) {
  work.send = send.memory();
  work.receive = receive.memory();
  work.call.send = std::move(send.pieces);
  work.call.receive = std::move(receive.pieces);
  work.pack = std::move(send.copies);
  work.unpack = std::move(receive.copies);
}
}  // namespace tessera::detail
