// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The one executor: a loop that carries out a plan's instructions (plan/work/instruction.hpp) and
/// decides nothing.
///
///     TensorCore y = execute(prepared, {&x, &w}, {"bsm,mh->bsh", where});
///
/// Laws: it makes exactly the calls of the list, and its peak of arena memory is exactly
/// plan.peak_bytes; on a dry mesh it does the accounting and nothing else. A Kokkos Tools library
/// sees one region an operator, and in it one for each call.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/kernel/accumulate.hpp>
#include <tessera/kernel/copy/copy.hpp>
#include <tessera/kernel/fence.hpp>
#include <tessera/kernel/fill.hpp>
#include <tessera/kernel/narrow.hpp>
#include <tessera/kernel/prefetch.hpp>
#include <tessera/kernel/tool_region.hpp>
#include <tessera/program/explain.hpp>
#include <tessera/run/detail/compute.hpp>
#include <tessera/run/detail/recorded.hpp>
#include <tessera/run/detail/same_calls.hpp>
#include <tessera/run/execution_memory.hpp>
#include <tessera/run/extras.hpp>
#include <tessera/run/plan_cache.hpp>
#include <tessera/run/recording.hpp>
#include <tessera/run/require_operands.hpp>
#include <tessera/tensor/tensor_core.hpp>

namespace tessera::detail {

/// The calls of a list that is run again and again between the same memories.
struct Binding {
  Instructions list;
  struct Bound {
    std::unique_ptr<RepeatedCall> call;
    const void* from = nullptr;
    void* to = nullptr;
    std::unique_ptr<SharedBlock> shared;  ///< in place of a call: the group's blocks
  };
  std::vector<Bound> calls;
};

/// What an instruction does, for a trace.
constexpr TraceKind trace_kind(Action action) {
  switch (action) {
    case Action::call:
      return TraceKind::call;
    case Action::start:
    case Action::offer:
      return TraceKind::start;
    case Action::wait:
    case Action::read:
    case Action::read_adding:
    case Action::wait_read:
      return TraceKind::wait;
    case Action::compute:
      return TraceKind::kernel;
    case Action::fence:
      return TraceKind::fence;
    case Action::fill:
    case Action::fill_gaps:
    case Action::zero:
    case Action::copy:
    case Action::accumulate:
    case Action::to_wide:
    case Action::to_narrow:
    case Action::prefetch:
      return TraceKind::copy;
    default:
      return TraceKind::nothing;
  }
}

/// Returns "tessera::einsum ij,jk->ik", "tessera::reduce sum ij->i", "tessera::reshard": the name
/// for Kokkos Tools.
inline std::string region_name(const Plan& plan, std::string_view label) {
  std::string text = "tessera::" + std::string(name_of(plan.kind));
  if (plan.kind == OperatorKind::reduce) text += " " + std::string(name_of(plan.reduction));
  if (plan.kind == OperatorKind::scatter)
    text += plan.reduction == Reduction::none ? " set" : " " + std::string(name_of(plan.reduction));
  return label == name_of(plan.kind) ? text : text + " " + std::string(label);
}

class Execution : private ExecutionMemory {
 public:
  Execution(const Prepared& prepared, const OperandList& operands, CallSite site,
            const Extras& extras = {}, Binding* binding = nullptr)
      : ExecutionMemory(*prepared.plan, mesh_under(operands, extras)),
        prepared_(prepared),
        list_(binding != nullptr ? binding->list : prepared.list),
        binding_(binding),
        operands_(operands),
        site_(site),
        extras_(extras),
        live_(!mesh_->dry()) {
    for (int i = 0; i < operands.size(); ++i) lay(i, operands[i]->memory());
  }
  /// Where an exception has passed between a call's start and its end, nothing is freed that MPI
  /// may still read or write, and the mesh can no longer be used.
  ~Execution() {
    if (unfinished_ == 0) return;
    mesh_->poison("an exception passed while an operator was under way");
    for (auto& pending : pending_) (void)pending.release();
    if (binding_ != nullptr)
      for (Binding::Bound& one : binding_->calls) (void)one.call.release();
    keep_for_ever(operands_);
  }
  TensorCore run() {
    const ToolRegion region([this] { return name(); }, named());
    begin();
    carry_out(false);
    return end();
  }
  /// Carries the list out up to its first call, and starts that.
  void start() {
    const ToolRegion region([this] { return name(); }, named());
    begin();
    carry_out(true);
  }
  /// Returns true when the call that start() started is done, and lets it progress.
  bool arrived() {
    if (under_way_ < 0) return true;
    if (binding_ == nullptr) {
      const auto& pending = pending_[static_cast<std::size_t>(under_way_)];
      return pending == nullptr || pending->done();
    }
    Binding::Bound& bound = this->bound(under_way_);
    return bound.shared != nullptr ? bound.shared->offered(call(under_way_).receive)
                                   : bound.call->done();
  }
  /// Returns true when no call is in progress that writes memory, without asking MPI.
  bool arrived_already() const { return unfinished_ == 0; }
  /// Returns true when nothing is left to carry out.
  bool complete() const { return next_ == list_.all.size() && under_way_ < 0; }
  /// Carries out what is left.
  TensorCore finish() {
    const ToolRegion region([this] { return name(); }, named());
    carry_out(false);
    return end();
  }
  /// Returns the result while it is in progress: as much of it as the list up to the first call has
  /// made.
  TensorCore begun() { return {mesh_, plan_.result_desc(), storage(plan_.result)}; }
  /// Returns the further result i of a plan with several, once it is finished.
  TensorCore also(int i, const Sharding& sharding) {
    TensorDesc desc = plan_.slots[plan_.also[i]].desc;
    desc.sharding = sharding;
    TensorCore result = made(plan_.also[i], desc, i + 1);
    recorded_.end(*mesh_, result);
    return result;
  }

 private:
  std::string name() const { return region_name(plan_, site_.label); }
  /// A halo that is kept for many exchanges has a region of its own (op/halo).
  bool named() const { return live_ && binding_ == nullptr; }

  void begin() {
    mesh_->arena().require(plan_.peak_bytes);  // before anything is allocated, or sent
    recorded_.begin(prepared_, *mesh_, operands_, site_);
  }
  TensorCore end() {
    TensorCore result = made(plan_.result, plan_.result_desc(), 0);
    recorded_.end(*mesh_, result);
    return result;
  }
  /// Returns result `number`, in the storage that it was promised.
  TensorCore made(int slot, const TensorDesc& desc, int number) {
    if (slot < plan_.operands) return {mesh_, desc, operands_[slot]->storage()};
    std::shared_ptr<Storage>& own = storage(slot);
    if (extras_.promised == nullptr || (*extras_.promised)[number] == nullptr)
      return {mesh_, desc, std::move(own)};
    const std::shared_ptr<Storage>& promised = (*extras_.promised)[number];
    promised->keep(*own);
    own.reset();
    return {mesh_, desc, promised};
  }

  /// Carries out the instructions that are left or, `until_call`, those up to the first call, which
  /// it starts.
  void carry_out(bool until_call) {
    if (recorded_.traced()) return carry_out_traced(until_call);
    if (unwaited_) wait_at_last();
    while (next_ < list_.all.size())
      if (carry_out(list_.all[next_++], until_call)) return;
  }
  /// Carries the list out, and tells how long each instruction takes.
  void carry_out_traced(bool until_call) {
    TraceEvent part;
    part.begin = trace_clock();
    const auto tell = [&](TraceEvent event, const auto& f) {
      event.begin = trace_clock();
      const bool pauses = f();
      event.end = trace_clock();
      if (event.kind != TraceKind::nothing) recorded_.tell(*mesh_, event);
      return pauses;
    };
    if (unwaited_) {
      Instruction waits = list_.all[next_ - 1];
      waits.action = Action::wait;
      tell(event_of(waits, false), [&] { return wait_at_last(); });
    }
    for (bool pauses = false; !pauses && next_ < list_.all.size();) {
      const Instruction& i = list_.all[next_++];
      pauses = tell(event_of(i, until_call), [&] { return carry_out(i, until_call); });
    }
    part.end = trace_clock();
    recorded_.tell(*mesh_, part);
  }
  TraceEvent event_of(const Instruction& i, bool until_call) const {
    TraceEvent event;
    event.kind = trace_kind(i.action);
    event.step = i.step;
    if (!event.communicates()) return event;
    if (until_call) event.kind = TraceKind::start;
    event.call = i.first;
    if (event.kind != TraceKind::wait) event.bytes = payload_bytes(call(i.first));
    return event;
  }
  bool wait_at_last() {
    wait(under_way_);
    return unwaited_ = false;
  }
  /// Carries out one instruction. Returns true where the list pauses, since a call has started.
  bool carry_out(const Instruction& i, bool until_call) {
    switch (i.action) {
      case Action::allocate:
        allocate(i);
        break;
      case Action::take_over:
        storage(i.to) = std::move(storage(i.from));
        memory(i.to) = memory(i.from);
        break;
      case Action::place:
        storage(i.to) = extras_.into->storage();
        lay(i.to, storage(i.to)->data());
        break;
      case Action::release:
        release(i.to);
        break;
      case Action::call:
        if (until_call) {
          start(i);
          return unwaited_ = true;
        }
        mesh_->collective(call(i.first), data(i.from), data(i.to), site_.label, site_.where,
                          on_host(i));
        break;
      case Action::start:
        start(i);
        return until_call;
      case Action::wait:
        wait(i.first);
        break;
      case Action::progress:
        for (const auto& pending : pending_)
          if (pending != nullptr) (void)pending->done();
        break;
      case Action::offer:
        under_way_ = i.first;
        mesh_->start(*bound(i.first).shared, i.from == no_memory ? nullptr : data(i.from), i.bytes,
                     call(i.first), site_.label, site_.where);
        return until_call;
      case Action::read:
      case Action::read_adding:
        under_way_ = -1;
        read(i);
        break;
      case Action::wait_read: {
        SharedBlock& shared = *bound(i.first).shared;
        mesh_->wait_read(shared, call(i.first), shared.turn(), site_.label, site_.where);
        break;
      }
      default:
        if (live_) on_memory(i);
    }
    return false;
  }
  /// Carries out an instruction that only reads and writes memory.
  void on_memory(const Instruction& i) {
    switch (i.action) {
      case Action::fill:
        return fill(i);
      case Action::fill_gaps:
        return copy_element(i.type, outside(), memory(i.to), copies(i), i.count);
      case Action::zero:
        return fill_zeros(data(i.to), i.bytes);
      case Action::copy:
        return copy_between(i.type, memory(i.from), memory(i.to), copies(i), i.count);
      case Action::accumulate:
        return accumulate(i.type, data(i.from), data(i.to), copies(i), i.count);
      case Action::to_wide:
        return widen(i.type, data(i.from), data(i.to), i.bytes);
      case Action::to_narrow:
        return narrow(i.type, data(i.from), data(i.to), i.bytes);
      case Action::compute:
        return compute(plan_, list_.kernels[static_cast<std::size_t>(i.first)], extras_,
                       extras_.scale * prepared_.scale, memory_.of, mesh_->products());
      case Action::prefetch:
        return prefetch_to_write(data(i.to), i.bytes);
      default:
        return tessera::detail::fence();
    }
  }

  const StridedCopy* copies(const Instruction& i) const { return list_.copies.data() + i.first; }
  const Call& call(int number) const { return list_.calls[static_cast<std::size_t>(number)]; }
  OnHost on_host(const Instruction& i) { return {memory(i.from).host, memory(i.to).host}; }
  Binding::Bound& bound(int number) { return binding_->calls[static_cast<std::size_t>(number)]; }
  const void* outside() const {
    alignas(16) static constexpr std::byte zero[16] = {};
    return extras_.fill == nullptr ? zero : extras_.fill;
  }
  void fill(const Instruction& i) {
    if (extras_.fill == nullptr) return fill_zeros(data(i.to), i.bytes);
    const StridedCopy all{{i.bytes / static_cast<Index>(size_of(i.type))}, 0, {0}, 0, {1}};
    copy_element(i.type, outside(), memory(i.to), &all, 1);
  }

  void start(const Instruction& i) {
    under_way_ = i.first;
    if (binding_ == nullptr) {
      pending_.resize(list_.calls.size());
      pending_[static_cast<std::size_t>(i.first)] = mesh_->start(
          call(i.first), data(i.from), data(i.to), site_.label, site_.where, on_host(i));
      if (pending_[static_cast<std::size_t>(i.first)] != nullptr) ++unfinished_;
      return;
    }
    Binding::Bound& b = bound(i.first);
    if (b.call == nullptr || b.from != data(i.from) || b.to != data(i.to)) {
      b.call = mesh_->repeated(call(i.first), data(i.from), data(i.to), site_.where, on_host(i));
      b.from = data(i.from);
      b.to = data(i.to);
    }
    mesh_->start(*b.call, call(i.first), site_.label, site_.where);
    ++unfinished_;
  }
  void wait(int number) {
    under_way_ = -1;
    if (binding_ != nullptr) {
      mesh_->finish(*bound(number).call, call(number), site_.label, site_.where);
      --unfinished_;
      return;
    }
    auto& pending = pending_[static_cast<std::size_t>(number)];
    if (pending == nullptr) return;
    mesh_->finish(*pending, call(number), site_.label, site_.where);
    pending.reset();
    --unfinished_;
  }
  /// Reads what the others offer, where it lies.
  void read(const Instruction& i) {
    SharedBlock& shared = *bound(i.first).shared;
    mesh_->finish(shared, call(i.first), site_.label, site_.where, [&] {
      for (const PeerCopies& peer : list_.reads[static_cast<std::size_t>(i.count)]) {
        const std::byte* packed = peer.packed.empty() ? nullptr : shared.packed_of(peer.peer);
        const void* from = packed != nullptr ? packed : shared.block_of(peer.peer);
        const std::vector<StridedCopy>& copies = packed != nullptr ? peer.packed : peer.copies;
        const int count = static_cast<int>(copies.size());
        prefetch_source(static_cast<Index>(size_of(i.type)), from, copies.data(), count);
        if (i.action == Action::read_adding)
          accumulate(i.type, from, data(i.to), copies.data(), count);
        else
          tessera::detail::copy(i.type, from, data(i.to), copies.data(), count);
      }
    });
  }

  const Prepared& prepared_;
  const Instructions& list_;
  Binding* binding_;
  const OperandList& operands_;
  CallSite site_;
  Extras extras_;
  bool live_;
  std::vector<std::unique_ptr<PendingCall>> pending_;
  std::size_t next_ = 0;   ///< the instruction that comes next
  int under_way_ = -1;     ///< the call that was started last and has not been waited for
  bool unwaited_ = false;  ///< and that the list does not wait for
  int unfinished_ = 0;     ///< calls that were started and have not been waited for
  RecordedOperator recorded_;
};

TESSERA_FUNCTION TensorCore execute(const Prepared& prepared, const OperandList& operands,
                                    CallSite site, const Extras& extras) {
  return Execution(prepared, operands, site, extras).run();
}

}  // namespace tessera::detail
