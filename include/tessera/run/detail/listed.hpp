// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How calls are listed, and carried out.
///
///     { const TakenBy scope(&calls);  y = f(x); }   calls.run();
///
/// Laws: those of run/listing.hpp.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/base/memory.hpp>
#include <tessera/run/listing.hpp>
#include <tessera/run/run.hpp>

namespace tessera::detail {

TESSERA_FUNCTION TensorCore Listing::take(const Request& r) {
  MeshCore& mesh = mesh_of(r);
  return on_process(mesh, r.site, [&]() -> TensorCore {
    if (mesh_ != nullptr && mesh_ != r.mesh())
      throw MeshError(std::string(r.site.label) +
                          ": a compiled function calls operators on two meshes, " +
                          mesh_->to_string() + " and " + mesh.to_string() +
                          "; it works on one; reshard between meshes before or after",
                      r.site.where);
    if (r.extras.kernel.make != nullptr && r.extras.kernel.keep == nullptr) {
      const TakenBy none(nullptr);  // of the host's memory, which may be gone when the list runs
      return tessera::detail::run(r);
    }
    const PlanQuestion question(r);
    auto call = std::make_unique<ListedCall>(r);
    call->prepared = planned(r, question).shared_from_this();
    const Plan& plan = *call->prepared->plan;
    require_own_tensors(r, plan);
    std::vector<TensorCore> results = promise_results(r, plan, call->promised);
    for (const TensorCore* operand : r.operands)
      call->operands.push_back(number_of(*operand, false));
    for (const TensorCore& result : results)
      call->results.push_back(number_of(result, result.storage()->promised()));
    if (const TensorCore* into = r.extras.into; into != nullptr && !into->storage()->promised()) {
      hidden_.push_back(into->storage());
      into->storage()->hide(r.site.where);
    }
    digest_.add(question.query.digest());
    for (const char c : r.site.label) digest_.add(static_cast<std::uint64_t>(c));
    for (const int number : call->operands) digest_.add(static_cast<std::uint64_t>(number));
    for (const int number : call->results) digest_.add(static_cast<std::uint64_t>(number));
    call->lane = lane_of_thread;
    call->layers = layers_now(mesh);
    mesh_ = r.mesh();
    calls_.push_back(std::move(call));
    if (r.extras.also != nullptr)
      for (std::size_t i = 1; i < results.size(); ++i)
        r.extras.also->push_back(std::move(results[i]));
    return std::move(results[0]);
  });
}

TESSERA_FUNCTION void Listing::refuse(CallSite site) const {
  throw UsageError(std::string(site.label) +
                       ": the call is made at once, and the operators of a compiled function run "
                       "after its end; call it before or after the function",
                   site.where);
}

TESSERA_FUNCTION int Listing::number_of(const TensorCore& tensor, bool made) {
  const Storage* const storage = tensor.storage().get();
  const auto [at, fresh] = numbers_.try_emplace(storage, static_cast<int>(numbers_.size()));
  if (fresh) {
    const Index bytes = made ? arena_charge(TensorCore::local_bytes(*tensor.mesh(), tensor.desc()))
                             : storage->charge();
    const int entry = made ? size() : -1;
    tensors_.push_back({tensor.desc(), bytes, entry, made ? entry : 0, 0, storage->adopted()});
  }
  tensors_[static_cast<std::size_t>(at->second)].last = size();
  return at->second;
}

TESSERA_FUNCTION LayerPath::LayerPath(const OpenLayer& innermost) : where(innermost.where) {
  for (const OpenLayer* l = &innermost; l != nullptr; l = l->outer) names.push_back(l->name);
  std::reverse(names.begin(), names.end());
}
TESSERA_FUNCTION bool LayerPath::is(const OpenLayer* innermost) const {
  std::size_t left = names.size();
  for (; innermost != nullptr && left > 0; innermost = innermost->outer)
    if (innermost->name != names[--left]) return false;
  return innermost == nullptr && left == 0;
}

TESSERA_FUNCTION int Listing::layers_now(const MeshCore& mesh) {
  const OpenLayer* const open = innermost_layer(mesh);
  if (open == nullptr) return -1;
  if (layers_.empty() || !layers_.back().is(open)) layers_.emplace_back(*open);
  return static_cast<int>(layers_.size()) - 1;
}

TESSERA_FUNCTION std::vector<bool> Listing::kept_by_others() const {
  std::vector<long> own(numbers_.size(), 0);
  std::vector<const std::shared_ptr<Storage>*> storages(numbers_.size(), nullptr);
  const auto add = [&](int number, const std::shared_ptr<Storage>& storage) {
    ++own[static_cast<std::size_t>(number)];
    storages[static_cast<std::size_t>(number)] = &storage;
  };
  for (const auto& call : calls_) {
    const Request r = call->kept.request();
    for (int i = 0; i < r.operands.size(); ++i) add(call->operands[i], r.operands[i]->storage());
    if (r.extras.into != nullptr) add(call->results[0], r.extras.into->storage());
    for (int i = 0; i < call->promised.size(); ++i)
      if (call->promised[i] != nullptr) add(call->results[i], call->promised[i]);
  }
  for (const std::shared_ptr<Storage>& storage : hidden_)
    ++own[static_cast<std::size_t>(numbers_.at(storage.get()))];
  std::vector<bool> kept;
  for (std::size_t i = 0; i < own.size(); ++i)
    kept.push_back(storages[i] != nullptr && storages[i]->use_count() > own[i]);
  return kept;
}

TESSERA_FUNCTION std::uint64_t Listing::structure() const {
  Digest digest = digest_;
  for (const bool kept : kept_by_others()) digest.add(kept ? 1u : 0u);
  return digest.value();
}

inline int enter(Program& program, const LayerPath& path) {
  for (const std::string& name : path.names) program.enter(name);
  return static_cast<int>(path.names.size());
}
TESSERA_FUNCTION Program Listing::program() const {
  Program program;
  if (mesh_ == nullptr) return program;
  program.mesh = mesh_->shape();
  program.process = mesh_->process();
  program.set_names(mesh_->names());
  const std::vector<bool> kept = kept_by_others();
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    ProgramTensor tensor = tensors_[i];
    if (kept[i]) tensor.last = size();
    (void)program.add(tensor);
  }
  for (int i = 0; i < size(); ++i) {
    const ListedCall& call = *calls_[static_cast<std::size_t>(i)];
    const CallSite& site = call.kept.site();
    ProgramEntry entry{call.prepared->plan, std::string(site.label), site.where};
    entry.operands = call.operands;
    entry.operation = std::make_shared<const Operation>(call.kept.request().operation);
    entry.call = i;
    entry.result = call.results[0];
    for (int k = 1; k < call.results.size(); ++k) entry.also.push_back(call.results[k]);
    const int depth =
        call.layers < 0 ? 0 : enter(program, layers_[static_cast<std::size_t>(call.layers)]);
    program.record(std::move(entry));
    for (int d = 0; d < depth; ++d) program.leave();
  }
  program.state_held(0);
  return program;
}

/// Opens the layers of a path again, one within the other.
class OpenAgain {
 public:
  explicit OpenAgain(MeshCore& mesh) : mesh_(mesh) {}
  OpenAgain(const OpenAgain&) = delete;
  OpenAgain& operator=(const OpenAgain&) = delete;
  ~OpenAgain() { close(); }
  void open(const LayerPath* path) {
    if (path == open_) return;
    close();
    open_ = path;
    if (path == nullptr) return;
    for (const std::string& name : path->names)
      layers_.push_back(std::make_unique<Layer>(mesh_, name, path->where));
  }

 private:
  void close() {
    while (!layers_.empty()) layers_.pop_back();  // the innermost first
  }
  MeshCore& mesh_;
  const LayerPath* open_ = nullptr;
  std::vector<std::unique_ptr<Layer>> layers_;
};

TESSERA_FUNCTION void Listing::run(const Program& program) {
  if (mesh_ == nullptr) return;
  const TakenBy none(nullptr);
  for (const std::shared_ptr<Storage>& storage : hidden_) storage->show();
  hidden_.clear();
  // Tensors that a pass added, and results that operators read in another's place.
  std::vector<TensorCore> moved(program.tensors().size());
  std::vector<int> last(moved.size(), -1);
  const auto elsewhere = [&](const ProgramEntry& e, int k) {
    return e.call < 0 || e.operands[k] != calls_[static_cast<std::size_t>(e.call)]->operands[k];
  };
  for (int i = 0; i < program.size(); ++i)
    for (int k = 0; k < program.entry(i).operands.size(); ++k)
      if (elsewhere(program.entry(i), k))
        last[static_cast<std::size_t>(program.entry(i).operands[k])] = i;
  for (const auto& call : calls_) {
    const Request r = call->kept.request();
    for (int k = 0; k < r.operands.size(); ++k) {
      const auto t = static_cast<std::size_t>(call->operands[k]);
      const bool input = tensors_[t].made < 0;
      if (input && last[t] >= 0 && moved[t].storage() == nullptr) moved[t] = *r.operands[k];
    }
  }
  std::vector<bool> goes(calls_.size(), true);
  for (const ProgramEntry& e : program.entries()) {
    if (e.call < 0) continue;
    goes[static_cast<std::size_t>(e.call)] = false;
    for (int k = 0; k < e.operands.size(); ++k)
      if (elsewhere(e, k)) calls_[static_cast<std::size_t>(e.call)]->kept.let_go(k);
  }
  for (std::size_t i = 0; i < calls_.size(); ++i)
    if (goes[i]) calls_[i].reset();  // a pass has dropped it
  OpenAgain layers(*mesh_);
  for (int i = 0; i < program.size(); ++i) {
    const ProgramEntry& e = program.entry(i);
    const auto tensor = [&](int t) -> TensorCore& { return moved[static_cast<std::size_t>(t)]; };
    if (e.call < 0) {
      Request r{*e.operation, {&tensor(e.operands[0])}, {e.label, e.where, Contract{}}};
      tensor(e.result) = tessera::detail::run(r);
    } else {
      // It ends with the call, and what it alone holds.
      const std::unique_ptr<ListedCall> call = std::move(calls_[static_cast<std::size_t>(e.call)]);
      layers.open(call->layers < 0 ? nullptr : &layers_[static_cast<std::size_t>(call->layers)]);
      const OnLane there(call->lane);
      std::vector<TensorCore> also;
      Request r = call->kept.request();
      for (int k = 0; k < r.operands.size(); ++k)
        if (e.operands[k] != call->operands[k]) r.operands[k] = &tensor(e.operands[k]);
      r.extras.also = &also;
      if (r.extras.into == nullptr) r.extras.promised = &call->promised;
      TensorCore result = tessera::detail::run(r);
      const auto keep = [&](int number, TensorCore& made) {
        if (last[static_cast<std::size_t>(number)] > i) tensor(number) = std::move(made);
      };
      keep(e.result, result);
      for (int k = 0; k < e.also.size(); ++k) keep(e.also[k], also[static_cast<std::size_t>(k)]);
    }
    for (int k = 0; k < e.operands.size(); ++k)
      if (last[static_cast<std::size_t>(e.operands[k])] == i) tensor(e.operands[k]) = TensorCore();
  }
  calls_.clear();
}

}  // namespace tessera::detail
