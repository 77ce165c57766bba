// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Makes the list of instructions of a plan, step by step, for the plan's process.
///
///     Instructions list = InstructionList(plan, how).make();
///
/// A move packs, calls and unpacks; in rounds it does so again and again. A move that overlaps
/// starts its call, begins the kernels of the next step that need none of its data, and waits.
/// Several inputs write one after the other, so that later ones lie over earlier ones.
///
/// Laws: those of plan/work/instruction.hpp; a temporary is released after its last use.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/work/instruction_writer.hpp>
#include <tessera/plan/work/instructions.hpp>
#include <tessera/plan/work/kernel_work.hpp>
#include <tessera/plan/work/loop_work.hpp>
#include <tessera/plan/work/work.hpp>

namespace tessera {
namespace detail {

/// How the calls of a list are made.
struct Calls {
  bool repeated = false;  ///< each time between the same buffers: started, then waited for
  /// For each step whether its group reads the block where it lies, in place of messages; empty:
  /// no step.
  std::vector<bool> in_place = {};
};

class InstructionList : private InstructionWriter {
 public:
  InstructionList(const Plan& plan, const Calls& how) : InstructionWriter(plan), how_(how) {}

  Instructions make() {
    for (at_ = 0; at_ < plan_.steps.size(); ++at_) {
      if (begun_ != at_) open(at_);
      carry_out();
      close();
    }
    for (const std::int32_t call : offered_) add(Action::wait_read).first = call;
    return std::move(list_);
  }

 private:
  /// A tensor that one process has whole lies in host memory.
  bool on_host(int slot) const { return plan_.slots[slot].place.kind == Placement::Kind::root; }
  bool reads_in_place(int i) const {
    return static_cast<std::size_t>(i) < how_.in_place.size() &&
           how_.in_place[static_cast<std::size_t>(i)];
  }

  // ---- the slots' memory

  void open(int i) {
    const Step& s = plan_.steps[i];
    if (s.merges) {
      for (int k = 0; k < s.in.size(); ++k) take_over(s.output(k), s.in[k]);
      return;
    }
    for (int slot : s.also)
      if (!s.in_place(slot)) allocate(memory(slot), plan_.slots[slot].bytes);
    if (s.in_place(s.out)) {
      // What it holds stays.
    } else if (s.takes >= 0) {
      take_over(s.out, s.takes);
    } else if (plan_.slots[s.out].given) {
      add(Action::place, s.out);
    } else {
      allocate(s.out, plan_.slots[s.out].bytes);
    }
  }
  void take_over(int to, int from) {
    add(Action::take_over, memory(to), memory(from));
    moved_.push_back(from);
  }
  void close() {
    const Step& s = step();
    std::vector<int> ended;
    const auto end = [&](int slot) {
      const auto has = [slot](const std::vector<int>& list) {
        return std::find(list.begin(), list.end(), slot) != list.end();
      };
      if (plan_.slots[slot].role != SlotRole::temporary || plan_.slots[slot].last_use != at_ ||
          has(ended) || has(moved_))
        return;
      ended.push_back(slot);
      add(Action::release, memory(slot));
    };
    for (int slot : s.in) end(slot);
    for (int slot : s.also) end(slot);  // where nobody asked for it
    end(s.out);
  }

  /// Fills the places of a step's outputs that no element reaches.
  void fill(const MoveWork& work) {
    for (int k = 0; k <= step().also.size(); ++k) {
      const int slot = step().output(k);
      Instruction& made = add(work.boxed ? Action::fill_gaps : Action::fill, memory(slot));
      made.type = type_of(slot);
      made.bytes = plan_.slots[slot].bytes;
      made.first = static_cast<std::int32_t>(list_.copies.size());
      made.count = static_cast<std::int32_t>(work.gaps.size());
      for (const StridedCopy& gap : work.gaps) list_.copies.push_back(gap);
    }
  }

  // ---- calls

  void allocate_staging(const MoveWork& work) {
    if (work.send_bytes > 0) allocate(send_staging, work.send_bytes, on_host(step().in[0]));
    if (work.receive_bytes > 0) allocate(receive_staging, work.receive_bytes, on_host(step().out));
  }
  void release_staging(const MoveWork& work) {
    if (work.receive_bytes > 0) add(Action::release, receive_staging);
    if (work.send_bytes > 0) add(Action::release, send_staging);
  }

  // ---- steps

  void carry_out() {
    const StepKind kind = step().kind;
    if (kind == StepKind::communicate) {
      if (step().region >= 0) return regions();
      for (Index round = 0; round < step().rounds; ++round) move(move_work(plan_, step(), round));
      return;
    }
    if (kind == StepKind::copy && step().region >= 0) return regions();
    if (kind == StepKind::copy || kind == StepKind::slice || kind == StepKind::permute ||
        kind == StepKind::diagonal) {
      const LocalCopies work = local_copies(plan_, step());
      if (work.zeroed) add(Action::zero, step().out).bytes = plan_.slots[step().out].bytes;
      return copy_blocks(work.copies, step().out, step().in[0]);
    }
    if (kind == StepKind::convolve) return convolve(begun_ == at_ ? Part::rest : Part::all);
    if (kind == StepKind::contract && step().loop) return loop();
    if (kind == StepKind::contract && operand_in_parts(plan_, step()) >= 0) {
      for (const BlockProduct& one : part_products(plan_, step())) multiply(one);
      return;
    }
    compute(kernel_work(plan_, step()), step_scratch(plan_, step(), at()));
  }
  Coordinates at() const { return plan_.mesh.coordinates(plan_.process); }

  /// One round of a step that communicates.
  void move(const MoveWork& work) {
    allocate_staging(work);
    copy(work.pack);
    copy(work.local);
    fence();
    call(Action::call, work);
    copy(work.unpack);
    for (const CallWork& next : work.then) {
      copy(next.pack);
      fence();
      call(Action::call, next);
      copy(next.unpack);
    }
    if (step().merges && !work.call.send.empty()) {
      KernelCall& kernel = add_kernel(work.merge);
      kernel.in = {send_staging, receive_staging};
      for (int k = 0; k < step().in.size(); ++k) kernel.in.push_back(memory(step().output(k)));
    }
    if (work.receive_bytes > 0) fence();  // the staging memory goes back
    release_staging(work);
  }

  /// Brings regions of one or several tensors, or adds them back, by one call or none.
  void regions() {
    const MoveWork work = region_work(plan_, step(), reads_in_place(at_));
    if (step().fills) fill(work);
    const bool moves = step().kind == StepKind::communicate;
    if (!moves && !work.adds && step().in.size() == 1) return copy(work.local);
    if (moves) allocate_staging(work);
    if (step().in.size() == 1)
      region(work, moves);
    else
      several_regions(work, moves);
    if (moves) release_staging(work);
  }
  void region(const MoveWork& work, bool moves) {
    const bool in_place = reads_in_place(at_);
    const MemoryNumber to = begin_sums(work, step().out);
    const std::vector<MemoryCopy>& packed = in_place ? work.reads.packed : work.pack;
    if (in_place && !packed.empty()) add(Action::prefetch, send_staging).bytes = work.send_bytes;
    copy(packed);
    if (moves && how_.repeated) {
      fence();
      if (in_place)
        offer(work, packed);
      else
        call(Action::start, work);
      copy(work.local, 0, work.adds, to);
      if (in_place)
        read(work, to, packed);
      else
        wait();
    } else {
      if (step().overlaps) {
        fence();
        call(Action::start, work);
        begin_next();
        wait();
        copy(work.local, 0, work.adds, to);
      } else {
        copy(work.local, 0, work.adds, to);
        fence();
        if (moves) call(Action::call, work);
      }
    }
    if (!in_place) copy(work.unpack, 0, work.adds, to);
    end_sums(work, step().out);
    fence();  // the staging memory goes back
  }
  void several_regions(const MoveWork& work, bool moves) {
    if (moves) {
      copy(work.pack);
      fence();
      call(step().overlaps ? Action::start : Action::call, work);
      if (step().overlaps) {
        begin_next();
        wait();
      }
    }
    for (int k = 0; k < step().in.size(); ++k) {
      const MemoryNumber to = begin_sums(work, step().output(k));
      copy(work.local, k, work.adds, to);
      copy(work.unpack, k, work.adds, to);
      end_sums(work, step().output(k));
    }
    fence();  // the staging memory goes back
  }
  /// Sums for a block of a half type are made in float, and rounded once. Returns where to add.
  MemoryNumber begin_sums(const MoveWork& work, int slot) {
    if (work.sum_bytes == 0) return no_memory;
    allocate(wide_sums, work.sum_bytes);
    convert(Action::to_wide, wide_sums, memory(slot), slot);
    return wide_sums;
  }
  void end_sums(const MoveWork& work, int slot) {
    if (work.sum_bytes == 0) return;
    convert(Action::to_narrow, memory(slot), wide_sums, slot);
    fence();
    add(Action::release, wide_sums);
  }
  void convert(Action action, MemoryNumber to, MemoryNumber from, int slot) {
    Instruction& made = add(action, to, from);
    made.type = type_of(slot);
    made.bytes = plan_.slots[slot].bytes / static_cast<Index>(size_of(made.type));
  }
  void offer(const MoveWork& work, const std::vector<MemoryCopy>& packed) {
    call(Action::offer, work.call, step().in[0], packed.empty() ? no_memory : send_staging).bytes =
        work.send_bytes;
    offered_.push_back(last_call());
  }
  void read(const MoveWork& work, MemoryNumber to, const std::vector<MemoryCopy>& packed) {
    const std::int32_t call = last_call();
    Instruction& made =
        add(work.adds ? Action::read_adding : Action::read, to == no_memory ? step().out : to);
    made.type = type_of(step().out);
    made.first = call;
    made.count = static_cast<std::int32_t>(list_.reads.size());
    list_.reads.push_back(work.reads.peers);
    // Before the staging memory goes back, and before all of the block is written.
    if (!packed.empty() || work.sum_bytes > 0) add(Action::wait_read).first = call;
  }

  // ---- kernels

  KernelCall& add_kernel(KernelWork work) {
    add(Action::compute).first = static_cast<std::int32_t>(list_.kernels.size());
    KernelCall& kernel = list_.kernels.emplace_back();
    kernel.kind = step().kind;
    kernel.step = static_cast<std::int16_t>(at_);
    kernel.work = std::move(work);
    return kernel;
  }
  void compute(KernelWork work, Index scratch) {
    if (step().scratch > 0) allocate(kernel_scratch, scratch);
    KernelCall& kernel = add_kernel(std::move(work));
    for (int slot : step().in) kernel.in.push_back(memory(slot));
    for (int slot : step().also) kernel.in.push_back(memory(slot));  // which it writes
    kernel.out = step().out;
    if (step().scratch == 0) return;
    kernel.scratch = kernel_scratch;
    fence();  // the memory goes back
    add(Action::release, kernel_scratch);
  }
  enum class Part { all, first, rest };
  void convolve(Part part) {
    for (ConvolvePart& one : convolve_work(plan_, step(), at())) {
      const bool first = one.input == 0;
      if (part != Part::all && first != (part == Part::first)) continue;
      KernelCall& kernel = add_kernel(std::move(one.work));
      kernel.in = {memory(step().in[one.input]), memory(step().in[1])};
      kernel.out = step().out;
    }
  }
  /// A product in rounds.
  void loop() {
    const LoopWork work = loop_work(plan_, step());
    for (int b = 0; b < work.buffers.size(); ++b)
      if (work.buffers[b] > 0) allocate(loop_buffer(b), work.buffers[b]);
    const std::int32_t first = last_call() + 1;
    for (const LoopEvent& event : work.events) {
      const auto number = static_cast<std::size_t>(event.number);
      switch (event.kind) {
        case LoopEvent::Kind::call:
        case LoopEvent::Kind::start:
          fence();
          call(event.kind == LoopEvent::Kind::call ? Action::call : Action::start,
               work.calls[number].call, memory_at(work.calls[number].to),
               memory_at(work.calls[number].from));
          break;
        case LoopEvent::Kind::progress:
          add(Action::progress);
          break;
        case LoopEvent::Kind::wait:
          add(Action::wait).first = first + event.number;
          break;
        case LoopEvent::Kind::multiply:
          multiply(work.products[number]);
          break;
      }
    }
    fence();  // the buffers go back
    for (int b = work.buffers.size() - 1; b >= 0; --b)
      if (work.buffers[b] > 0) add(Action::release, loop_buffer(b));
  }
  static MemoryNumber loop_buffer(int b) {
    return static_cast<MemoryNumber>(first_loop_buffer + b);
  }
  MemoryNumber memory_at(const BlockPlace& place) const {
    if (place.tensor < 0) return loop_buffer(place.buffer);
    if (place.tensor == BlockPlace::own_part)
      return plan_.slots[step().in[operand_in_parts(plan_, step())]].own_part;
    return place.tensor == 2 ? step().out : step().in[place.tensor];
  }
  void multiply(const BlockProduct& product) {
    KernelCall& kernel = add_kernel(product.work);
    for (const BlockPlace& place : product.blocks) kernel.offsets.push_back(place.offset);
    kernel.in = {memory_at(product.blocks[0]), memory_at(product.blocks[1])};
    kernel.out = memory_at(product.blocks[2]);
    kernel.adds = product.adds;
  }
  /// Begins the next step: the part that needs no data of the exchange in progress.
  void begin_next() {
    begun_ = ++at_;
    open(at_);
    convolve(Part::first);
    --at_;
  }

  const Calls& how_;
  int begun_ = -1;                     ///< the step that began during the exchange before it
  std::vector<int> moved_;             ///< slots whose memory is another's now
  std::vector<std::int32_t> offered_;  ///< calls that readers replace
};
}  // namespace detail

TESSERA_FUNCTION Instructions instructions_of(const Plan& plan) {
  const detail::Calls how;
  return detail::InstructionList(plan, how).make();
}

}  // namespace tessera
