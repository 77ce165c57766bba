// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How listed calls are carried out, as a Program says.
///
///     calls.run(listed, program, ready);
///
/// Laws: those of run/list/listing.hpp; a tensor ends where the Program says that it does.
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/run/list/listing.hpp>
#include <tessera/run/run.hpp>

namespace tessera::detail {

/// A move that is under way.
struct Moving {
  int entry = 0;  ///< of the program
  Promises promised;
  UnderWay calls;
};

/// Carries out a Program of a list's calls.
class ListedRun {
 public:
  ListedRun(Listing& calls, const Program& listed, const Program& program,
            std::vector<ReadyCall>& ready)
      : calls_(calls), program_(program), ready_(ready), layers_(*calls.mesh_) {
    ready.resize(program.entries().size());
    added_.resize(program.tensors().size() - calls.tensors_.size());
    layers_of_.resize(program.layers().size(), -1);
    for (int i = 0; i < listed.size(); ++i)
      layers_of_[static_cast<std::size_t>(listed.entry(i).layer)] = calls.call(i).layers;
  }
  void run() {
    for (int t = 0; t < listed(); ++t)
      if (calls_.listed(t).made < 0 && program_.tensor(t).last < 0 && calls_.number_of(t) == t)
        end(t);  // no operator has it
    for (int i = 0; i < program_.size(); ++i) {
      finish_before(i);
      const ProgramEntry& e = program_.entry(i);
      const int layer = layers_of_[static_cast<std::size_t>(e.layer)];
      layers_.open(layer < 0 ? nullptr : &calls_.layers_[static_cast<std::size_t>(layer)],
                   *mesh_of(e));
      if (e.meanwhile > 0)
        start(e, i);
      else if (e.call < 0)
        made_by_pass(e, i);
      else
        listed_call(e, i, calls_.call(e.call));
      end_tensors(e, i);
    }
    finish_before(program_.size());
  }

 private:
  int listed() const { return static_cast<int>(calls_.tensors_.size()); }
  /// Returns the mesh on which an operator works.
  const std::shared_ptr<MeshCore>& mesh_of(const ProgramEntry& e) const {
    return calls_.meshes_[static_cast<std::size_t>(e.part)];
  }
  TensorCore& tensor(int t) {
    return t < listed() ? calls_.listed(t).tensor : added_[static_cast<std::size_t>(t - listed())];
  }
  /// Ends the tensors of an operator that operator i is the last to have.
  void end_tensors(const ProgramEntry& e, int i) {
    const auto over = [&](int t) {
      if (t >= 0 && program_.tensor(t).last <= i) end(t);
    };
    for (const int t : e.operands) over(t);
    over(e.result);
    for (const int t : e.also) over(t);
  }
  /// Memory that nobody else holds ends.
  void end(int t) {
    tensor(t) = TensorCore();
    if (t >= listed()) return;
    for (int i = calls_.listed(t).next; i >= 0; i = calls_.listed(i).next) tensor(i) = TensorCore();
  }
  /// Returns tensor t as operand k of an operator: what lies there may have another's description,
  /// of a sharding that is the same on this mesh.
  TensorCore as_operand(const ProgramEntry& e, int k) {
    return {mesh_of(e), e.plan->slots[k].desc, tensor(on_mesh_of(e, e.operands[k])).storage()};
  }
  /// Returns the place of the tensor that memory t is on an operator's mesh.
  int on_mesh_of(const ProgramEntry& e, int t) {
    if (t >= listed() || calls_.meshes_.size() == 1) return t;
    for (int i = t; i >= 0; i = calls_.listed(i).next)
      if (tensor(i).defined() && tensor(i).mesh() == mesh_of(e)) return i;
    return t;
  }
  /// Returns the memory that the results were promised; null where a pass added one.
  Promises promises_of(const ProgramEntry& e) {
    const auto of = [&](int t) { return t < listed() ? tensor(t).storage() : nullptr; };
    Promises promised{of(e.result)};
    for (const int t : e.also) promised.push_back(of(t));
    return promised;
  }
  /// Carries out operator i of the program, and plans it unless it is ready.
  TensorCore carried_out(const Request& r, int i) {
    const std::shared_ptr<MeshCore>& mesh = mesh_of(program_.entry(i));
    return on_process(*mesh, r.site, [&] {
      mesh->require_usable(r.site.where);
      const ProgramEntry& e = program_.entry(i);
      ReadyCall& ready = ready_[static_cast<std::size_t>(i)];
      const ListedCall* const call = e.call < 0 ? nullptr : &calls_.call(e.call);
      if (ready.prepared == nullptr && call != nullptr && e.plan == call->prepared->plan)
        ready = {call->prepared, call->name};
      if (ready.prepared == nullptr) {
        const PlanQuestion question(r);
        ready = {planned(r, question).shared_from_this(),
                 CallName(question.query, r.site.label).digest};
      }
      const Agreed agreed = agree_on(r, {r.operation, ready.name},
                                     [&]() -> const Prepared& { return *ready.prepared; });
      return carry_out(r, agreed.prepared, agreed.history);
    });
  }
  void made_by_pass(const ProgramEntry& e, int i) {
    Request r{*e.operation, {}, {e.label, e.where, e.contract}};
    FixedVector<TensorCore, max_operands> operands;
    for (int k = 0; k < e.operands.size(); ++k)
      r.operands.push_back(&operands.push_back(as_operand(e, k)));
    std::vector<TensorCore> also;
    if (!e.also.empty()) r.extras.also = &also;
    const Promises promised = promises_of(e);
    r.extras.promised = &promised;
    tensor(e.result) = carried_out(r, i);
    for (int k = 0; k < e.also.size(); ++k) tensor(e.also[k]) = also[static_cast<std::size_t>(k)];
  }
  /// Starts operator i, a move, whose results others wait for.
  void start(const ProgramEntry& e, int i) {
    auto move = std::make_unique<Moving>();
    move->entry = i;
    move->promised = promises_of(e);
    if (e.result >= listed()) {
      move->promised[0] = make_promise(mesh_of(e), e.where);
      tensor(e.result) = {mesh_of(e), e.plan->result_desc(), move->promised[0]};
    }
    Request r{*e.operation, {}, {e.label, e.where, e.contract}};
    FixedVector<TensorCore, max_operands> operands;
    for (int k = 0; k < e.operands.size(); ++k)
      r.operands.push_back(&operands.push_back(as_operand(e, k)));
    std::vector<TensorCore> also;
    if (!e.also.empty()) r.extras.also = &also;
    r.extras.promised = &move->promised;
    const OnLane there(e.call < 0 ? nullptr : calls_.call(e.call).lane);
    auto started = std::make_unique<Started>();
    r.extras.started = started.get();
    (void)carried_out(r, i);
    move->calls.add(std::move(started));
    moving_.push_back(std::move(move));
  }
  /// Waits for what operator i has.
  void finish_before(int i) {
    for (std::size_t k = 0; k < moving_.size();) {
      const ProgramEntry& e = program_.entry(moving_[k]->entry);
      if (moving_[k]->entry + e.meanwhile >= i) {
        ++k;
        continue;
      }
      moving_[k]->calls.finish();
      moving_.erase(moving_.begin() + static_cast<std::ptrdiff_t>(k));
      end_tensors(e, i - 1);
    }
  }
  void listed_call(const ProgramEntry& e, int i, const ListedCall& call) {
    const OnLane there(call.lane);
    Request r = call.kept.request();
    if (!call.moves) r.operation = *e.operation;
    std::vector<TensorCore> others;  // in place of those that are listed
    others.reserve(static_cast<std::size_t>(call.operands.size()));
    for (int k = 0; k < call.operands.size(); ++k)
      r.operands.push_back(calls_.number_of(call.operands[k]) == e.operands[k]
                               ? &tensor(call.operands[k])
                               : &others.emplace_back(as_operand(e, k)));
    if (call.moves) return moved(r, i, call);
    std::vector<TensorCore> also;
    if (call.results.size() > 1) r.extras.also = &also;
    if (e.plan->destination == Destination::accumulated &&
        call.prepared->plan->destination == Destination::fresh)
      return in_place(e, i, r,
                      e.replaces >= 0 && e.replaces < listed() ? e.replaces
                                                               : calls_.number_of(call.results[0]));
    const auto added = [&](int t) { return t >= listed(); };
    bool makes_others = e.result != calls_.number_of(call.results[0]);
    for (int k = 0; k < e.also.size(); ++k)
      makes_others = makes_others || e.also[k] != calls_.number_of(call.results[k + 1]);
    if (makes_others && !call.into) {  // by a pass, in place of what is listed
      const Promises own = promises_of(e);
      r.extras.promised = &own;
      TensorCore made = carried_out(r, i);
      if (added(e.result)) tensor(e.result) = std::move(made);
      for (int k = 0; k < e.also.size(); ++k)
        if (added(e.also[k])) tensor(e.also[k]) = also[static_cast<std::size_t>(k)];
      return;
    }
    Promises promised;
    for (const int t : call.results) promised.push_back(tensor(t).storage());
    r.extras.promised = &promised;
    TensorCore into;
    if (call.into) {
      promised[0] = nullptr;
      const TensorCore& asked = tensor(call.results[0]);
      const bool own = calls_.number_of(call.results[0]) == e.result && asked.defined();
      into = {mesh_of(e), e.plan->result_desc(), (own ? asked : tensor(e.result)).storage()};
      r.extras.into = &into;
    }
    (void)carried_out(r, i);
  }

  /// A move, to the memory of a tensor on another mesh, which may begin with it.
  void moved(Request r, int i, const ListedCall& call) {
    const int number = calls_.number_of(call.results[0]);
    const TensorCore& result = tensor(number);
    if (program_.tensor(number).awaits && result.storage()->promised())
      on_process(*result.mesh(), r.site, [&] {
        result.storage()->keep(
            *make_storage(result.mesh(), TensorCore::local_bytes(*result.mesh(), result.desc())));
      });
    const TensorCore& into = tensor(call.results[0]);
    r.extras.into = &into;
    (void)carried_out(r, i);
    if (into.storage() != result.storage())
      result.storage()->set_history(into.storage()->history());
  }
  /// The result takes the memory of an operand, and the promise is kept with it.
  void in_place(const ProgramEntry& e, int i, Request r, int own) {
    r.extras.into = r.operands[e.operands.find(e.result)];
    r.extras.destination = Destination::accumulated;
    Storage& there = *r.extras.into->storage();  // which may differ where the result does
    if (tensor(own).defined()) there.set_varies(there.varies() | tensor(own).storage()->varies());
    const TensorCore made = carried_out(r, i);
    if (program_.tensor(own).last >= 0) {  // another operator makes what was listed
      tensor(e.result) = made;
      return;
    }
    const TensorCore result = tensor(own);
    result.storage()->keep(*made.storage());
    result.storage()->set_history(made.storage()->history());
    end(own);
    end(e.result);
    tensor(e.result) = result;
  }

  Listing& calls_;
  const Program& program_;
  std::vector<ReadyCall>& ready_;
  OpenAgain layers_;
  std::vector<TensorCore> added_;  ///< tensors that passes added
  std::vector<std::unique_ptr<Moving>> moving_;
  std::vector<int> layers_of_;  ///< for each layer of the program, the list's
};

TESSERA_FUNCTION void Listing::run(const Program& listed, const Program& program,
                                   std::vector<ReadyCall>& ready) {
  if (mesh_ == nullptr) return;
  const TakenBy none(nullptr);
  show();
  for (ListedTensor& t : tensors_) t.hidden = false;
  ListedRun(*this, listed, program, ready).run();
  calls_.clear();
  tensors_.clear();
}

}  // namespace tessera::detail
