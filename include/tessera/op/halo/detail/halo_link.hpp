// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The repeated exchange in place of one extended block: calls and requests are made once, and
/// where the processes of a group share memory, each reads its halo out of the others' blocks,
/// without messages, packing or unpacking.
///
///     HaloLink link(core, operation, call);   link.start(site);   link.finish();
///
/// Laws: it moves, counts and holds the same as Execution with the same plan; a repeated exchange
/// allocates nothing on the heap; one exchange at a time is in progress.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/kernel/accumulate.hpp>
#include <tessera/kernel/narrow.hpp>
#include <tessera/kernel/prefetch.hpp>
#include <tessera/run/request.hpp>

namespace tessera::detail {

class HaloLink {
 public:
  /// `core`: the extended block, the only operand and result of `call`'s plan.
  HaloLink(const TensorCore& core, const Operation& operation, const Agreed& call)
      : core_(core),
        operation_(operation),
        kept_(call.prepared.shared_from_this()),
        prepared_(call.prepared),
        mark_(call.mark),
        turns_(static_cast<std::size_t>(call.prepared.plan->steps.size())) {}
  HaloLink(const HaloLink&) = delete;
  HaloLink& operator=(const HaloLink&) = delete;

  /// Compares the call with those of the other processes, as Comparison does, for an exchange after
  /// the first. Throws MismatchError.
  void compare(CallSite site) const {
    if (prepared_.communicates)
      mesh().begin_operator(
          mark_, [&] { return words_of(site, operation_, {&core_}); }, site.where);
  }

  /// Carries out the steps up to the first call, and starts that. Throws UsageError when one is in
  /// progress.
  void start(CallSite site) {
    if (under_way_)
      throw UsageError(std::string(site.label) + ": this halo is being exchanged since " +
                           to_string(site_.where) +
                           ", and that has not been waited for; wait for it first",
                       site.where);
    label_ = site.label;
    site_ = {label_, site.where};
    mesh().arena().require(plan().peak_bytes);
    Recorder& recorder = mesh().attachment<Recorder>();
    entry_ = recorder.on() ? recorder.begin(prepared_.plan, site.label, site.where, mesh(),
                                            OperandList{&core_})
                           : -1;
    core_.storage()->begin_use(site.where);
    under_way_ = true;
    for (next_ = 0; next_ < plan().steps.size(); ++next_) {
      if (step().kind == StepKind::communicate) return begin();
      make_local();
    }
  }
  /// Returns true when the call that was started first is done, and lets it progress.
  bool done() {
    if (!under_way_ || next_ >= plan().steps.size()) return true;
    Turn& turn = this->turn();
    return turn.shared != nullptr ? turn.shared->offered(work().call.receive) : turn.call->done();
  }
  /// Returns true when it waits for no memory that others write.
  bool quiet() const {
    return !under_way_ || next_ >= plan().steps.size() ||
           turns_[static_cast<std::size_t>(next_)].shared != nullptr;
  }
  /// Carries out what is left.
  void finish() {
    for (bool begun = true; next_ < plan().steps.size(); ++next_, begun = false) {
      if (step().kind != StepKind::communicate) {
        make_local();
        continue;
      }
      if (!begun) begin();
      end();
    }
    for (int i = 0; i < plan().steps.size(); ++i) wait_read(i);  // before the block is written
    under_way_ = false;
    core_.storage()->end_use();
    if (entry_ >= 0) mesh().attachment<Recorder>().end(entry_, core_);
  }

 private:
  /// The state of one communicating step.
  struct Turn {
    bool asked = false;                   ///< whether sharing the block was tried
    std::unique_ptr<SharedBlock> shared;  ///< then it is read where it is
    std::optional<Staging> send, receive;
    std::optional<Staging> sums;  ///< for half types, in float
    const void* from = nullptr;   ///< of `call`
    void* to = nullptr;
    std::unique_ptr<RepeatedCall> call;
  };

  MeshCore& mesh() const { return *core_.mesh(); }
  const Plan& plan() const { return *prepared_.plan; }
  const Step& step() const { return plan().steps[next_]; }
  const StepWork& work() const { return prepared_.work[static_cast<std::size_t>(next_)]; }
  Turn& turn() { return turns_[static_cast<std::size_t>(next_)]; }
  DType type() const { return core_.type(); }
  void* at(Buffer buffer) {
    return buffer == Buffer::block          ? core_.data()
           : buffer == Buffer::send_staging ? turn().send->side().data
                                            : turn().receive->side().data;
  }
  void put(const void* from, const std::vector<StridedCopy>& copies) const {
    if (copies.empty()) return;
    const int count = static_cast<int>(copies.size());
    if (work().adds)
      accumulate(type(), from, work().sums > 0 ? sums() : core_.data(), copies.data(), count);
    else
      tessera::copy(type(), from, core_.data(), copies.data(), count);
  }
  void* sums() const { return turns_[static_cast<std::size_t>(next_)].sums->side().data; }
  Index elements() const {
    return plan().slots[plan().result].bytes / static_cast<Index>(size_of(type()));
  }
  /// Sums for a block of a half type are made in float, and rounded once.
  void begin_sums() {
    turn().sums.emplace(mesh().arena(), work().sums, false);
    if (work().sums > 0) widen(type(), core_.data(), sums(), elements());
  }
  void end_sums() {
    if (work().sums > 0) {
      wait_read(next_);  // all of the block is written
      narrow(type(), sums(), core_.data(), elements());
      tessera::fence();
    }
    turn().sums.reset();
  }
  void make_local() {
    begin_sums();
    copy_local();
    end_sums();
  }
  void copy_local() const { put(core_.data(), work().local); }

  /// Returns when no process reads in step i any more.
  void wait_read(int i) {
    if (Turn& turn = turns_[static_cast<std::size_t>(i)]; turn.shared != nullptr)
      mesh().wait_read(*turn.shared, prepared_.work[static_cast<std::size_t>(i)].call,
                       turn.shared->turn(), site_.label, site_.where);
  }
  void begin() {
    Turn& turn = this->turn();
    const Call& call = work().call;
    if (!turn.asked) {
      turn.shared =
          mesh().share(call.group, core_.data(), plan().slots[plan().result].bytes, site_.where);
      turn.asked = true;
    }
    // Staging memory counts even where it is not used: the workspace is the plan's.
    turn.send.emplace(mesh().arena(), work().send_staging, false);
    turn.receive.emplace(mesh().arena(), work().receive_staging, false);
    begin_sums();
    const std::vector<StridedCopy>& pack = turn.shared != nullptr ? work().scattered : work().pack;
    if (turn.shared != nullptr && !pack.empty())
      prefetch_to_write(turn.send->side().data, work().send_staging);
    if (!pack.empty())
      tessera::copy(type(), core_.data(), turn.send->side().data, pack.data(),
                    static_cast<int>(pack.size()));
    tessera::fence();
    if (turn.shared != nullptr) {
      mesh().start(*turn.shared, pack.empty() ? nullptr : turn.send->side().data,
                   work().send_staging, call, site_.label, site_.where);
      return copy_local();
    }
    const void* from = at(work().send);
    void* to = at(work().receive);
    if (turn.call == nullptr || turn.from != from || turn.to != to) {
      turn.call = mesh().repeated(call, from, to, site_.where);
      turn.from = from;
      turn.to = to;
    }
    mesh().start(*turn.call, call, site_.label, site_.where);
    copy_local();
  }
  void end() {
    Turn& turn = this->turn();
    if (turn.shared != nullptr) {
      mesh().finish(*turn.shared, work().call, site_.label, site_.where, [&] {
        for (const PeerCopies& peer : work().reads) {
          const std::byte* packed =
              peer.packed.empty() ? nullptr : turn.shared->packed_of(peer.peer);
          const void* from = packed != nullptr ? packed : turn.shared->block_of(peer.peer);
          const std::vector<StridedCopy>& copies = packed != nullptr ? peer.packed : peer.copies;
          prefetch_source(static_cast<Index>(size_of(type())), from, copies.data(),
                          static_cast<int>(copies.size()));
          put(from, copies);
        }
      });
      if (!work().scattered.empty()) wait_read(next_);  // the staging memory goes back
    } else {
      mesh().finish(*turn.call, work().call, site_.label, site_.where);
      put(turn.receive->side().data, work().unpack);
    }
    tessera::fence();
    end_sums();
    turn.send.reset();
    turn.receive.reset();
  }

  const TensorCore& core_;
  Operation operation_;
  std::shared_ptr<const Prepared> kept_;
  const Prepared& prepared_;
  OperatorMark mark_;  ///< the exchange that all processes have announced
  std::vector<Turn> turns_;
  std::string label_;
  CallSite site_;
  bool under_way_ = false;
  int next_ = 0;
  int entry_ = -1;
};

}  // namespace tessera::detail
