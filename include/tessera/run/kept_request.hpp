// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A call that outlives the place where it was written: with copies of its operator, of the lists
/// that a move between meshes views, of its operands, label and function, which are its caller's
/// otherwise.
///
///     const KeptRequest kept(r);
///     run(kept.request());                     // later
///
/// Laws: a tensor that it reads is not written meanwhile (require_destination).
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <tessera/plan/op/move/between.hpp>
#include <tessera/plan/op/move/between_parts.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/run/extras.hpp>
#include <tessera/tensor/tensor_core.hpp>

namespace tessera::detail {

/// All of a call but its tensors.
class KeptCall {
 public:
  explicit KeptCall(const Request& r)
      : operation_(r.operation), label_(r.site.label), site_(r.site), extras_(r.extras) {
    site_.label = label_;
    site_.into = nullptr;
    extras_.into = nullptr;
    extras_.also = nullptr;
    extras_.started = nullptr;
    extras_.promised = nullptr;
    keep_lists();
    if (extras_.kernel.keep != nullptr)
      extras_.kernel.context = extras_.kernel.keep(extras_.kernel.context, nullptr);
    if (extras_.mesh != nullptr) {
      mesh_ = *extras_.mesh;
      extras_.mesh = &mesh_;
    }
    if (extras_.fill != nullptr) {
      std::memcpy(fill_, extras_.fill, size_of(r.operands[0]->type()));
      extras_.fill = fill_;
    }
    if (extras_.starts != nullptr) {
      starts_ = *extras_.starts;
      extras_.starts = &starts_;
    }
  }
  KeptCall(const KeptCall&) = delete;
  KeptCall& operator=(const KeptCall&) = delete;
  ~KeptCall() {
    if (extras_.kernel.keep != nullptr)
      (void)extras_.kernel.keep(nullptr, const_cast<void*>(extras_.kernel.context));
  }

  /// Returns the call without its tensors: operands, destination, results.
  Request request() const { return {operation_, {}, site_, extras_}; }
  const Operation& operation() const { return operation_; }
  const CallSite& site() const { return site_; }
  /// Returns the mesh of a call without operands.
  const std::shared_ptr<MeshCore>& mesh() const { return mesh_; }

 private:
  /// Copies the lists that a move's operator views.
  void keep_lists() {
    if (const auto* const move = operation_.view().get_if<ops::BetweenParts>()) {
      ops::BetweenParts own = *move;
      for (const Box& box : own.from.boxes()) boxes_.push_back(box);
      for (const Box& box : own.to.boxes()) boxes_.push_back(box);
      own.from.place.boxes = boxes_.data();
      own.to.place.boxes = boxes_.data() + own.from.place.count;
      operation_ = own;
    } else if (const auto* const to_mesh = operation_.view().get_if<ops::Between>()) {
      ops::Between own = *to_mesh;
      for (const int place : own.to.places) places_.push_back(place);
      own.to.places = places_;
      operation_ = own;
    }
  }

  Operation operation_;
  std::vector<Box> boxes_;
  std::vector<int> places_;
  std::string label_;
  CallSite site_;
  Extras extras_;
  alignas(16) std::byte fill_[16] = {};
  Extents starts_;
  std::shared_ptr<MeshCore> mesh_;
};

class KeptRequest {
 public:
  explicit KeptRequest(const Request& r) : call_(r), promised_(r.extras.promised) {
    for (const TensorCore* operand : r.operands) operands_.push_back(*operand);
    for (int i = 0; i < operands_.size(); ++i) {
      if (operands_[i].storage()->promised()) continue;  // nobody can write it
      operands_[i].storage()->begin_use(call_.site().where);
      used_ |= 1u << i;
    }
    if (r.extras.into != nullptr) into_ = *r.extras.into;
  }
  KeptRequest(const KeptRequest&) = delete;
  KeptRequest& operator=(const KeptRequest&) = delete;
  ~KeptRequest() { end_use(); }

  Request request() const {
    Request r = call_.request();
    for (const TensorCore& operand : operands_) r.operands.push_back(&operand);
    if (into_.defined()) r.extras.into = &into_;
    r.extras.promised = promised_;
    return r;
  }
  /// Operands may be written again, by the call itself.
  void end_use() {
    for (int i = 0; i < operands_.size(); ++i)
      if (used_ >> i & 1) operands_[i].storage()->end_use();
    used_ = 0;
  }
  const std::shared_ptr<MeshCore>& mesh() const {
    return operands_.empty() ? call_.mesh() : operands_[0].mesh();
  }

 private:
  KeptCall call_;
  const Promises* promised_;
  TensorCore into_;
  FixedVector<TensorCore, max_operands> operands_;
  unsigned used_ = 0;  ///< operands whose use is counted, a bit each
};

}  // namespace tessera::detail
