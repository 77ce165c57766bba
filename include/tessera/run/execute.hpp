// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The one executor: it carries a prepared plan out, step by step, and decides nothing.
///
///     TensorCore y = execute(prepared, {&x, &w}, {"bsm,mh->bsh", where});
///
/// Laws: it makes exactly the calls of the plan's work, and its peak of arena memory is exactly
/// plan.peak_bytes; on a dry mesh it does the accounting and nothing else. A Kokkos Tools library
/// sees one region an operator, and in it one for each call.
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/kernel/accumulate.hpp>
#include <tessera/kernel/copy/copy.hpp>
#include <tessera/kernel/fence.hpp>
#include <tessera/kernel/fill.hpp>
#include <tessera/kernel/narrow.hpp>
#include <tessera/kernel/tool_region.hpp>
#include <tessera/program/explain.hpp>
#include <tessera/run/detail/communication.hpp>
#include <tessera/run/detail/compute.hpp>
#include <tessera/run/detail/merging.hpp>
#include <tessera/run/detail/same_calls.hpp>
#include <tessera/run/plan_cache.hpp>
#include <tessera/run/recording.hpp>
#include <tessera/run/require_operands.hpp>
#include <tessera/tensor/tensor_core.hpp>

namespace tessera {

namespace detail {

class Execution {
 public:
  Execution(const Prepared& prepared, const OperandList& operands, CallSite site, double scale,
            MapKernel kernel, const TensorCore* destination, const void* fill = nullptr,
            bool portable = false, const Extents* starts = nullptr)
      : prepared_(prepared),
        plan_(*prepared.plan),
        mesh_(operands[0]->mesh()),
        operands_(operands),
        site_(site),
        scale_(scale),
        kernel_(kernel),
        destination_(destination),
        fill_(fill),
        portable_(portable),
        starts_(starts),
        live_(!mesh_->dry()) {
    for (int i = 0; i < operands.size(); ++i) lay(i, operands[i]->data());
  }

  TensorCore run() {
    mesh_->arena().require(plan_.peak_bytes);  // before anything is allocated, or sent
    record();
    return finish();
  }
  /// Carries out the steps up to the first call, and starts that.
  void start() {
    mesh_->arena().require(plan_.peak_bytes);  // before anything is allocated, or sent
    record();
    for (; next_ < plan_.steps.size(); close(plan_.steps[next_])) {
      const Step& step = plan_.steps[next_];
      open(step);
      if (step.kind == StepKind::communicate && step.in.size() == 1 && !work().adds) {
        under_way_.emplace(*mesh_, site_, work(), type_of(step), source(step), target(step));
        return under_way_->start();
      }
      carry_out(step, work());
    }
  }
  /// Returns true when the call that start() started is done, and lets it progress.
  bool arrived() { return !under_way_.has_value() || under_way_->done(); }
  /// Returns true when no call is in progress, without asking MPI.
  bool arrived_already() const { return !under_way_.has_value() || !under_way_->under_way(); }
  /// Carries out what is left.
  TensorCore finish() {
    if (under_way_.has_value()) {
      const Step& step = plan_.steps[next_];
      under_way_->finish();
      under_way_.reset();
      communicate_rounds(step, 1);
      close(step);
    }
    while (next_ < plan_.steps.size()) {
      const Step& step = plan_.steps[next_];
      if (begun_ != next_) open(step);
      carry_out(step, work());
      close(step);
    }
    TensorCore result = made(plan_.result, plan_.result_desc());
    if (entry_ >= 0) mesh_->attachment<Recorder>().end(entry_, result);
    return result;
  }
  /// Returns the result while it is in progress: as much of it as the steps up to the first call
  /// have made.
  TensorCore begun() { return {mesh_, plan_.result_desc(), storage_[plan_.result]}; }
  /// Returns the further result i of a plan with several, once it is finished.
  TensorCore also(int i, const Sharding& sharding) {
    TensorDesc desc = plan_.slots[plan_.also[i]].desc;
    desc.sharding = sharding;
    TensorCore result = made(plan_.also[i], desc);
    if (entry_ >= 0) mesh_->attachment<Recorder>().end(entry_, result);
    return result;
  }

 private:
  TensorCore made(int slot, const TensorDesc& desc) {
    return {mesh_, desc,
            slot < plan_.operands ? operands_[slot]->storage() : std::move(storage_[slot])};
  }
  void make(int slot) {
    storage_[slot] = make_storage(mesh_, plan_.slots[slot].bytes);
    data_[slot] = storage_[slot]->data();
  }
  /// Places a slot's block at `memory`.
  void lay(int slot, void* memory) {
    const Slot& s = plan_.slots[slot];
    data_[static_cast<std::size_t>(slot)] =
        s.first == 0 || memory == nullptr
            ? memory
            : static_cast<std::byte*>(memory) + s.first * static_cast<Index>(size_of(s.desc.type));
  }
  void open(const Step& step) {
    if (step.merges) {
      for (int k = 0; k < step.in.size(); ++k) {
        const int slot = result_of(step, k);
        storage_[slot] = std::move(storage_[step.in[k]]);
        data_[slot] = storage_[slot]->data();
      }
      return;
    }
    for (int slot : step.also)
      if (!step.in_place(slot)) make(slot);
    if (step.in_place(step.out)) {
      // What it holds stays.
    } else if (step.takes >= 0) {
      storage_[step.out] = std::move(storage_[step.takes]);
      data_[step.out] = data_[step.takes];
    } else if (plan_.slots[step.out].given) {
      storage_[step.out] = destination_->storage();
      lay(step.out, storage_[step.out]->data());
    } else {
      make(step.out);
    }
    for (int k = 0; step.fills && live_ && k <= step.also.size(); ++k)
      fill(type_of(step), step.output(k), work());
  }
  void fill(DType type, int slot, const StepWork& work) {
    const Index bytes = plan_.slots[slot].bytes;
    if (!work.boxed && fill_ == nullptr) return fill_zeros(data_[slot], bytes);
    alignas(16) static constexpr std::byte zero[16] = {};
    const Side one{const_cast<void*>(fill_ == nullptr ? zero : fill_), true},
        block{data_[slot], false};
    if (work.boxed) return copy_all(type, one, block, work.gaps);
    copy_all(type, one, block, {{{bytes / static_cast<Index>(size_of(type))}, 0, {0}, 0, {1}}});
  }
  void record() {
    Recorder& recorder = mesh_->attachment<Recorder>();
    if (recorder.on())
      entry_ = recorder.begin(prepared_.plan, site_.label, site_.where, *mesh_, operands_);
  }
  const StepWork& work() const { return prepared_.work[static_cast<std::size_t>(next_)]; }
  void close(const Step& step) {
    const auto release = [&](int slot) {
      if (plan_.slots[slot].role == SlotRole::temporary && plan_.slots[slot].last_use == next_)
        storage_[slot].reset();
    };
    for (int slot : step.in) release(slot);
    for (int slot : step.also) release(slot);  // where nobody asked for it
    release(step.out);
    ++next_;
  }
  /// Returns the slot of the result for input k, of a step that has a result for each input.
  static int result_of(const Step& step, int k) { return k == 0 ? step.out : step.also[k - 1]; }
  /// A tensor that one process has whole lies in host memory.
  bool in_host_memory(int slot) const {
    return plan_.slots[slot].place.kind == Placement::Kind::root;
  }
  void carry_out(const Step& step, const StepWork& work) {
    const DType type = plan_.slots[step.out].desc.type;
    if (step.merges) return merge_rounds(step, work);
    if (step.region >= 0 && (step.in.size() > 1 || work.adds)) return take_regions(step, work);
    if (!step.also.empty()) return communicate_joined(step, work);
    if (step.kind == StepKind::communicate) {
      Communication(*mesh_, site_, work, type, source(step), target(step)).run();
      return communicate_rounds(step, 1);
    }
    if (step.scratch > 0) return compute_in_scratch(step, work);
    if (!live_) return;
    switch (step.kind) {
      case StepKind::communicate:
        break;
      case StepKind::slice:
      case StepKind::copy:
      case StepKind::permute:
      case StepKind::diagonal:
        if (work.zeroed) fill_zeros(data_[step.out], plan_.slots[step.out].bytes);
        copy_all(type, source(step), target(step), work.local);
        break;
      default:
        compute(plan_, step, work,
                {.scale = scale_,
                 .kernel = kernel_,
                 .portable = portable_,
                 .begun = begun_ == next_,
                 .starts = starts_},
                data_);
    }
  }
  /// Carries out a step that computes with scratch memory.
  void compute_in_scratch(const Step& step, const StepWork& work) {
    const Staging scratch(mesh_->arena(), work.send_staging, false);
    if (!live_) return;
    compute(plan_, step, work, {.scale = scale_, .kernel = kernel_, .scratch = scratch.side().data},
            data_);
    tessera::fence();  // the memory goes back
  }
  /// Moves several tensors in one call.
  void communicate_joined(const Step& step, const StepWork& work) {
    const Staging send(mesh_->arena(), work.send_staging, false);
    const Staging receive(mesh_->arena(), work.receive_staging, false);
    const Staging& packed = work.send == Buffer::send_staging ? send : receive;
    const DType type = type_of(step);
    for (int k = 0; live_ && k < step.in.size(); ++k)
      copy_all(type, {data_[step.in[k]], false}, packed.side(),
               work.joined[static_cast<std::size_t>(k)].pack);
    if (live_) tessera::fence();
    mesh_->collective(work.call, packed.side().data, receive.side().data, site_.label, site_.where);
    for (int k = 0; live_ && k < step.in.size(); ++k)
      copy_all(type, receive.side(), {data_[result_of(step, k)], false},
               work.joined[static_cast<std::size_t>(k)].unpack);
    if (live_) tessera::fence();  // the staging memory goes back
  }
  /// Brings regions of several tensors, or adds one back, by one call or none.
  void take_regions(const Step& step, const StepWork& work) {
    const DType type = type_of(step);
    const Staging send(mesh_->arena(), work.send_staging, false);
    const Staging receive(mesh_->arena(), work.receive_staging, false);
    const auto each = [&](const auto& visit) {
      for (int k = 0; live_ && k < step.in.size(); ++k)
        visit(Side{data_[step.in[k]], false},
              work.joined.empty() ? work : work.joined[static_cast<std::size_t>(k)],
              Side{data_[step.output(k)], false}, k);
    };
    const auto put = [&](Side from, const std::vector<StridedCopy>& copies, Side to) {
      if (work.adds && !copies.empty())
        return accumulate(type, from.data, to.data, copies.data(), static_cast<int>(copies.size()));
      copy_all(type, from, to, copies);
    };
    if (step.kind == StepKind::communicate) {
      each([&](Side block, const CallWork& one, Side, int) {
        copy_all(type, block, send.side(), one.pack);
      });
      if (live_) tessera::fence();
      const bool packed = work.send == Buffer::send_staging;
      void* const from = packed ? send.side().data : source(step).data;
      if (step.overlaps && live_) {
        const auto pending =
            mesh_->start(work.call, from, receive.side().data, site_.label, site_.where);
        begin_next();
        if (pending != nullptr) mesh_->finish(*pending, work.call, site_.label, site_.where);
      } else {
        mesh_->collective(work.call, from, receive.side().data, site_.label, site_.where);
        if (step.overlaps) begin_next();
      }
    }
    const Staging sums(mesh_->arena(), work.sums, false);
    each([&](Side block, const CallWork& one, Side to, int k) {  // later inputs overwrite earlier
      const Side sum = work.sums > 0 ? sums.side() : to;
      const Index n = plan_.slots[step.output(k)].bytes / static_cast<Index>(size_of(type));
      if (work.sums > 0) widen(type, to.data, sum.data, n);
      put(block, one.local, sum);
      put(receive.side(), one.unpack, sum);
      if (work.sums > 0) narrow(type, sum.data, to.data, n);
    });
    if (live_) tessera::fence();  // the staging memory goes back
  }
  /// Begins the next step: the part that needs no data of the exchange in progress.
  void begin_next() {
    begun_ = next_ + 1;
    const Step& step = plan_.steps[begun_];
    const StepWork& work = prepared_.work[static_cast<std::size_t>(begun_)];
    make(step.out);
    if (live_) compute(plan_, step, work, {scale_, kernel_, portable_, true, false}, data_);
  }
  /// In each round: sends all local elements to one other process, and merges those received.
  void merge_rounds(const Step& step, const StepWork& first) {
    for (Index round = 0; round < step.rounds; ++round) {
      const StepWork later = round > 0 ? work_of(plan_, step, round) : StepWork{};
      const StepWork& work = round > 0 ? later : first;
      const Staging send(mesh_->arena(), work.send_staging, false);
      const Staging receive(mesh_->arena(), work.receive_staging, false);
      const bool meets = live_ && !work.call.send.empty();
      const Merging merging(plan_, step, work.merge, send.side().data, receive.side().data);
      if (meets) merging.pack(data_);
      if (live_) tessera::fence();
      mesh_->collective(work.call, send.side().data, receive.side().data, site_.label, site_.where);
      if (meets) merging.merge(data_);
      if (live_) tessera::fence();  // the staging memory goes
    }
  }
  /// Carries out the rounds of a step from `round` on.
  void communicate_rounds(const Step& step, Index round) {
    for (; round < step.rounds; ++round)
      Communication(*mesh_, site_, work_of(plan_, step, round), type_of(step), source(step),
                    target(step))
          .run();
  }
  DType type_of(const Step& step) const { return plan_.slots[step.out].desc.type; }
  Side source(const Step& step) const { return {data_[step.in[0]], in_host_memory(step.in[0])}; }
  Side target(const Step& step) const { return {data_[step.out], in_host_memory(step.out)}; }

  const Prepared& prepared_;
  const Plan& plan_;
  const std::shared_ptr<MeshCore>& mesh_;
  const OperandList& operands_;
  CallSite site_;
  double scale_;
  MapKernel kernel_;
  const TensorCore* destination_;
  const void* fill_;  ///< one element, for places of a region outside its source; null: zero
  bool portable_;
  const Extents* starts_;
  bool live_;
  std::array<void*, Plan::max_slots> data_{};
  std::array<std::shared_ptr<Storage>, Plan::max_slots> storage_;
  int entry_ = -1;  ///< in the program that is recorded
  int next_ = 0;    ///< the step that comes next, or is in progress
  int begun_ = -1;  ///< the step that began during the exchange before it
  std::optional<Communication> under_way_;
};

/// Returns "tessera::einsum ij,jk->ik", "tessera::reduce sum ij->i", "tessera::reshard": the name
/// for Kokkos Tools.
inline std::string region_name(const Plan& plan, std::string_view label) {
  std::string text = "tessera::" + std::string(name_of(plan.kind));
  if (plan.kind == OperatorKind::reduce) text += " " + std::string(name_of(plan.reduction));
  if (plan.kind == OperatorKind::scatter)
    text += plan.reduction == Reduction::none ? " set" : " " + std::string(name_of(plan.reduction));
  return label == name_of(plan.kind) ? text : text + " " + std::string(label);
}
}  // namespace detail

/// Carries out a prepared plan on the operands and returns its result, which is `destination` where
/// the plan has one. Collective over the mesh. Communication: plan.steps. Throws
/// CommunicationError, MemoryError.
TESSERA_FUNCTION TensorCore execute(const Prepared& prepared, const detail::OperandList& operands,
                                    CallSite site, double scale = 1, MapKernel kernel = {},
                                    const TensorCore* destination = nullptr,
                                    const void* fill = nullptr, bool portable = false,
                                    const Extents* starts = nullptr);

#if TESSERA_BODIES
TESSERA_FUNCTION TensorCore execute(const Prepared& prepared, const detail::OperandList& operands,
                                    CallSite site, double scale, MapKernel kernel,
                                    const TensorCore* destination, const void* fill, bool portable,
                                    const Extents* starts) {
  const detail::ToolRegion region([&] { return detail::region_name(*prepared.plan, site.label); },
                                  !operands[0]->mesh()->dry());
  return detail::Execution(prepared, operands, site, scale, kernel, destination, fill, portable,
                           starts)
      .run();
}
#endif

}  // namespace tessera
