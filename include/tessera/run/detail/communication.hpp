// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Carries out a communicate step: staging memory, packing, its calls one after the other. The
/// first call may stay in progress while the program does something else.
///
///     Communication(mesh, site, work, type, source, target).run();
///
/// Laws: it makes exactly the calls of the work, in order; run() and start() with finish() differ
/// in time only.
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <tessera/plan/work/step_work.hpp>
#include <tessera/run/call_site.hpp>
#include <tessera/run/detail/side.hpp>
#include <tessera/tensor/tensor_core.hpp>

namespace tessera {

namespace detail {

inline void copy_all(DType type, Side from, Side to, const std::vector<StridedCopy>& copies) {
  if (!copies.empty()) copy_between(type, from, to, copies);
}

class Communication {
 public:
  Communication(MeshCore& mesh, CallSite site, const StepWork& work, DType type, Side in, Side out)
      : mesh_(mesh),
        site_(site),
        work_(work),
        type_(type),
        in_(in),
        out_(out),
        send_(mesh.arena(), work.send_staging, in.host),
        receive_(mesh.arena(), work.receive_staging, out.host) {}

  void run() {
    leave(work_, in_);
    mesh_.collective(work_.call, at(work_.send, in_), at(work_.receive, out_), site_.label,
                     site_.where);
    rest();
  }
  /// Makes the first call without waiting for it.
  void start() {
    leave(work_, in_);
    pending_ = mesh_.start(work_.call, at(work_.send, in_), at(work_.receive, out_), site_.label,
                           site_.where);
  }
  /// Returns true when the first call is done, and lets it progress.
  bool done() { return pending_ == nullptr || pending_->done(); }
  bool under_way() const { return pending_ != nullptr; }
  void finish() {
    if (pending_ != nullptr) mesh_.finish(*pending_, work_.call, site_.label, site_.where);
    pending_.reset();
    rest();
  }

 private:
  /// Carries out what comes after the first call.
  void rest() {
    arrive(work_);
    for (const CallWork& next : work_.then) {
      leave(next, receive_.side());
      mesh_.collective(next.call, at(next.send, in_), at(next.receive, out_), site_.label,
                       site_.where);
      arrive(next);
    }
    if (live() && work_.receive_staging > 0) tessera::fence();  // the staging memory goes back
  }
  void leave(const CallWork& one, Side packed_from) const {
    if (!live()) return;
    copy_all(type_, packed_from, send_.side(), one.pack);
    copy_all(type_, in_, out_, one.local);
    tessera::fence();
  }
  void arrive(const CallWork& one) const {
    if (live()) copy_all(type_, receive_.side(), out_, one.unpack);
  }
  void* at(Buffer buffer, Side block) const {
    return buffer == Buffer::block          ? block.data
           : buffer == Buffer::send_staging ? send_.side().data
                                            : receive_.side().data;
  }
  bool live() const { return !mesh_.dry(); }

  MeshCore& mesh_;
  CallSite site_;
  const StepWork& work_;
  DType type_;
  Side in_;
  Side out_;
  Staging send_;
  Staging receive_;
  std::unique_ptr<PendingCall> pending_;
};

}  // namespace detail
}  // namespace tessera
