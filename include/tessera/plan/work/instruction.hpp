// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What a process does for a plan, as a flat list of instructions on memories with numbers
/// (plan/move/memory.hpp). plan/work/instructions.hpp makes the list; one loop carries it out
/// (run/execute.hpp) and decides nothing.
///
///     const Instructions list = instructions_of(plan);  // plan/work/instructions.hpp
///     for (const Instruction& next : list.all) ...
///
/// Laws: the calls of the list are the calls that are made, in order; the memory that its
/// allocations hold at once is at most the plan's peak_bytes; what a call reads has been fenced.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/base/memory.hpp>
#include <tessera/plan/move/move_work.hpp>
#include <tessera/plan/work/contraction.hpp>

namespace tessera {

enum class Action : std::uint8_t {
  allocate,     ///< memory `to`, of `bytes`
  take_over,    ///< `to` gets the memory of `from`
  place,        ///< `to` is the destination that the caller gave
  release,      ///< memory `to`
  fill,         ///< all of `to` with the element outside a tensor
  fill_gaps,    ///< the same by the copies of the list, all from one element
  zero,         ///< all of `to`
  copy,         ///< by the copies of the list
  accumulate,   ///< the same, adding to what is there
  to_wide,      ///< `bytes` elements of a half type to float
  to_narrow,    ///< and back
  compute,      ///< a kernel of the list
  fence,        ///< waits for the kernels of the thread's lane
  call,         ///< starts a call of the list and waits for it
  start,        ///< starts it
  wait,         ///< waits for it
  progress,     ///< lets all calls under way proceed
  prefetch,     ///< brings `bytes` of `to` near, to be written
  offer,        ///< in place of a start: lets the group read `to` (and what is packed in `from`)
  read,         ///< in place of a wait: reads what the others offer
  read_adding,  ///< the same, adding to what is there
  wait_read     ///< waits until the others have read
};
constexpr std::string_view name_of(Action action) {
  constexpr std::string_view names[] = {"allocate",     "take over",
                                        "place",        "release",
                                        "fill",         "fill gaps",
                                        "zero",         "copy",
                                        "add",          "to float",
                                        "round",        "compute",
                                        "fence",        "call",
                                        "start",        "wait",
                                        "progress",     "prefetch",
                                        "offer",        "read",
                                        "read and add", "wait for readers"};
  return names[static_cast<int>(action)];
}

struct Instruction {
  Action action = Action::fence;
  detail::MemoryNumber to = detail::no_memory;
  detail::MemoryNumber from = detail::no_memory;
  DType type = DType::f32;
  bool host = false;       ///< memory that is always the host's
  std::int16_t step = 0;   ///< of the plan
  std::int32_t first = 0;  ///< of the list's copies, calls, kernels or reads
  std::int32_t count = 0;  ///< of copies
  Index bytes = 0;
};

/// The local work of a kernel.
using KernelWork =
    std::variant<std::monostate, detail::ContractionWork, detail::LocalReduce, detail::LocalMap,
                 detail::LocalFind, detail::LocalScan, detail::LocalSort, detail::MergeWork,
                 detail::LocalBins, detail::LocalConvolve, detail::LocalReduceWindow,
                 detail::LocalSelectScatter, detail::LocalIndexed, detail::LocalScatter,
                 detail::LocalOneHot, detail::LocalSlide>;

/// A kernel and the memories that it reads and writes.
struct KernelCall {
  static constexpr int most_inputs = max_operands + 2;  ///< of a merge: two messages, and tensors
  StepKind kind = StepKind::map;
  std::int16_t step = 0;
  bool adds = false;  ///< a product is added to what is there
  detail::MemoryNumber out = detail::no_memory;
  detail::MemoryNumber scratch = detail::no_memory;
  FixedVector<detail::MemoryNumber, most_inputs> in;
  /// The first element of the work in the memory of each input, and then of the output; empty: 0.
  std::vector<Index> offsets;
  KernelWork work;
};

struct Instructions {
  std::vector<Instruction> all;
  std::vector<detail::StridedCopy> copies;
  std::vector<Call> calls;  ///< in the order in which they start
  std::vector<KernelCall> kernels;
  std::vector<std::vector<detail::PeerCopies>> reads;  ///< of the calls that readers replace
};

/// Returns the most bytes of arena memory that a list's allocations hold at once.
inline Index peak_bytes(const Instructions& list) {
  std::array<Index, detail::max_memories> held{};
  Index all = 0, peak = 0;
  for (const Instruction& i : list.all) {
    const auto of = [&](detail::MemoryNumber m) -> Index& {
      return held[static_cast<std::size_t>(m)];
    };
    if (i.action == Action::allocate) all += of(i.to) = detail::arena_charge(i.bytes);
    if (i.action == Action::take_over) of(i.to) = std::exchange(of(i.from), 0);
    if (i.action == Action::release) all -= std::exchange(of(i.to), 0);
    peak = max_of(peak, all);
  }
  return peak;
}

namespace detail {
template <class V>
void work_of_verb(const Plan& plan, const Step& step, const Coordinates& at, KernelCall& call) {
  call.work = KernelWork(step.as<V>().work(plan, step, at));
}

/// Returns the bytes of the lists.
inline Index heap_bytes(const Instructions& list) {
  const auto of = [](const auto& v) {
    return static_cast<Index>(v.capacity() * sizeof(*v.data()));
  };
  Index bytes = of(list.all) + of(list.copies) + of(list.calls) + of(list.kernels) + of(list.reads);
  for (const Call& call : list.calls) bytes += of(call.send) + of(call.receive);
  for (const KernelCall& kernel : list.kernels) bytes += of(kernel.offsets);
  for (const std::vector<PeerCopies>& peers : list.reads) {
    bytes += of(peers);
    for (const PeerCopies& peer : peers) bytes += of(peer.copies) + of(peer.packed);
  }
  return bytes;
}
}  // namespace detail

}  // namespace tessera
