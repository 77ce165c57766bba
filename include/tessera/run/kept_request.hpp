// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A call that outlives the place where it was written: with copies of its operator, operands,
/// label and function, which are its caller's otherwise.
///
///     const KeptRequest kept(r);
///     run(kept.request());                     // later
///
/// Laws: a tensor that it reads is not written meanwhile (require_destination).
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include <tessera/plan/operation.hpp>
#include <tessera/run/extras.hpp>
#include <tessera/tensor/tensor_core.hpp>

namespace tessera::detail {

class KeptRequest {
 public:
  /// A call that is started uses its operands until it ends; one that is listed is not alone: the
  /// others of the list may write them, each in its turn.
  enum class Use { started, listed };

  explicit KeptRequest(const Request& r, Use use = Use::started)
      : operation_(r.operation), label_(r.site.label), site_(r.site), extras_(r.extras) {
    for (const TensorCore* operand : r.operands) operands_.push_back(*operand);
    for (int i = 0; i < operands_.size(); ++i) {
      if (use == Use::listed || operands_[i].storage()->promised()) continue;  // or nobody can
      operands_[i].storage()->begin_use(site_.where);
      used_ |= 1u << i;
    }
    site_.label = label_;
    site_.into = nullptr;
    if (extras_.into != nullptr) {
      into_ = *extras_.into;
      extras_.into = &into_;
    }
    extras_.also = nullptr;
    extras_.started = nullptr;
    if (extras_.kernel.keep != nullptr)
      extras_.kernel.context = extras_.kernel.keep(extras_.kernel.context, nullptr);
    if (extras_.mesh != nullptr) {
      mesh_ = *extras_.mesh;
      extras_.mesh = &mesh_;
    }
    if (extras_.fill != nullptr) {
      std::memcpy(fill_, extras_.fill, size_of(operands_[0].type()));
      extras_.fill = fill_;
    }
    if (extras_.starts != nullptr) {
      starts_ = *extras_.starts;
      extras_.starts = &starts_;
    }
  }
  KeptRequest(const KeptRequest&) = delete;
  KeptRequest& operator=(const KeptRequest&) = delete;
  ~KeptRequest() {
    end_use();
    if (extras_.kernel.keep != nullptr)
      (void)extras_.kernel.keep(nullptr, const_cast<void*>(extras_.kernel.context));
  }

  Request request() const {
    Request r{operation_, {}, site_, extras_};
    for (const TensorCore& operand : operands_) r.operands.push_back(&operand);
    return r;
  }
  /// Operands may be written again, by the call itself.
  void end_use() {
    for (int i = 0; i < operands_.size(); ++i)
      if (used_ >> i & 1) operands_[i].storage()->end_use();
    used_ = 0;
  }
  const CallSite& site() const { return site_; }
  /// Operand i of a listed call is another tensor's now.
  void let_go(int i) { operands_[i] = TensorCore(); }
  const std::shared_ptr<MeshCore>& mesh() const {
    return extras_.mesh != nullptr ? mesh_ : operands_[0].mesh();
  }

 private:
  Operation operation_;
  TensorCore into_;
  FixedVector<TensorCore, max_operands> operands_;
  unsigned used_ = 0;  ///< operands whose use is counted, a bit each
  std::string label_;
  CallSite site_;
  Extras extras_;
  alignas(16) std::byte fill_[16] = {};
  Extents starts_;
  std::shared_ptr<MeshCore> mesh_;  ///< of a call without operands
};

}  // namespace tessera::detail
