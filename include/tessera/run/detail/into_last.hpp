// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The bodies of run/into_last.hpp.
///
///     calls.take(r)         // carries out the call before, and holds this one back
#include <algorithm>
#include <string>
#include <utility>

#include <tessera/plan/op/move/reshard.hpp>
#include <tessera/run/into_last.hpp>
#include <tessera/run/recording.hpp>
#include <tessera/run/run.hpp>

namespace tessera::detail {

inline const TensorCore& IntoLast::now(const TensorCore& operand) const {
  for (const Made& made : made_)
    if (made.result.defined() && made.promised.storage() == operand.storage()) return made.result;
  return operand;
}

inline void IntoLast::let_go() {
  std::erase_if(made_, [](const Made& made) { return made.promised.storage().use_count() == 1; });
}

TESSERA_FUNCTION void IntoLast::hold(const Request& r) {
  held_ = std::make_unique<KeptRequest>(r);
  held_->end_use();  // nobody writes in between
  several_ = r.extras.also != nullptr;
  lane_ = lane_of_thread;
}

TESSERA_FUNCTION void IntoLast::pass_on() {
  if (held_ == nullptr) return;
  const TakenBy outer(outer_);
  const OnLane there(lane_);
  Request r = held_->request();
  std::vector<TensorCore> also;
  if (several_) r.extras.also = &also;
  const std::size_t first = made_.size() - open_;
  Promises promised;
  for (std::size_t k = 0; k < open_; ++k) promised.push_back(made_[first + k].promised.storage());
  if (outer_ == nullptr) r.extras.promised = &promised;  // others make results of their own
  const TensorCore result = run(r);
  held_.reset();
  for (std::size_t k = 0; k < open_; ++k) made_[first + k].result = k == 0 ? result : also[k - 1];
  open_ = 0;
}

TESSERA_FUNCTION void IntoLast::pin(const TensorCore& x, const OpenSharding& to, Where where) {
  const TakenBy scope(outer_);
  pin_tensor(now(x), to, where);
}

TESSERA_FUNCTION TensorCore IntoLast::take(const Request& r) {
  MeshCore& mesh = mesh_of(r);
  return on_process(mesh, r.site, [&]() -> TensorCore {
    if (r.extras.into != nullptr || r.extras.started != nullptr)
      throw UsageError(std::string(r.site.label) +
                           ": an operator with a destination of its own is called where the last "
                           "operator's result goes into a tensor; call it before or after",
                       where_);
    last_ = TensorCore();
    pass_on();
    Request call = r;
    FixedVector<TensorCore, max_operands> operands;
    for (int i = 0; i < r.operands.size(); ++i)
      call.operands[i] = &operands.push_back(now(*r.operands[i]));
    let_go();
    const bool kept = r.extras.kernel.context == nullptr || r.extras.kernel.keep != nullptr;
    if (!kept) {  // it reads what may be gone when the function has returned: its result is copied
      const TakenBy outer(outer_);
      last_ = run(call);
      const ops::Reshard copy{last_.sharding()};
      hold({copy, {&last_}, r.site});
      return last_;
    }
    const TensorDescs descs = descs_of(call.operands);
    require(r.operation, descs, mesh, r.site);
    hold(call);
    for (const TensorDesc& desc : r.operation.results(descs)) {
      if (open_ > 0 && !several_) break;
      made_.push_back({{r.mesh(), desc, make_promise(r.mesh(), r.site.where)}, {}});
      if (++open_ > 1) r.extras.also->push_back(made_.back().promised);
    }
    return last_ = made_[made_.size() - open_].promised;
  });
}

TESSERA_FUNCTION void IntoLast::finish(const TensorCore& returned) {
  if (held_ == nullptr)
    throw UsageError(
        "the function given to into calls no operator, so nothing was written; let it call one",
        where_);
  if (!last_.defined() || returned.storage() != last_.storage())
    throw UsageError(
        "the function given to into returns a tensor that its last operator has not made, and a "
        "destination takes the last operator's result; let the operator that makes the result be "
        "the last one",
        where_);
  let_go();
  const TakenBy outer(outer_);
  const OnLane there(lane_);
  Request r = held_->request();
  // What the function returns may be seen under other dimensions than the operator made.
  const TensorCore into =
      returned.desc() == y_.desc() ? TensorCore(y_.mesh(), last_.desc(), y_.storage()) : y_;
  std::vector<TensorCore> also;
  if (several_) r.extras.also = &also;
  r.site.into = &into;
  (void)run(r);
}

}  // namespace tessera::detail
