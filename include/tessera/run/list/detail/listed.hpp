// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How calls are listed.
///
///     { const TakenBy scope(&calls);  y = f(x); }   calls.program();
///
/// Laws: those of run/list/listing.hpp.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/base/memory.hpp>
#include <tessera/plan/op/move/between.hpp>
#include <tessera/plan/op/move/between_parts.hpp>
#include <tessera/run/list/listing.hpp>
#include <tessera/run/program_parts.hpp>
#include <tessera/run/run.hpp>
#include <tessera/tensor/part_core.hpp>

namespace tessera::detail {

/// Where the calls of lists lie.
struct ListedCallPool : PoolOwner {};

/// Returns whether a call writes the memory of a tensor of another mesh.
inline bool goes_elsewhere(const Request& r) {
  return r.operation.get_if<ops::Between>() != nullptr ||
         r.operation.get_if<ops::BetweenParts>() != nullptr;
}
/// Returns whether meshes are over the same processes.
inline bool one_world(MeshCore& a, MeshCore& b) {
  std::vector<int> mine = a.processes(), theirs = b.processes();
  std::sort(mine.begin(), mine.end());
  std::sort(theirs.begin(), theirs.end());
  return mine == theirs && a.transport().name() == b.transport().name();
}
inline bool is_own(const MeshCore& mesh) {
  const PartHome* const home = mesh.attached<PartHome>();
  return home != nullptr && home->own;
}
/// Returns whether a mesh is `world` or a part of it; or, where neither of both is a part of what
/// the other is a part of, whether it is or is a part of a mesh over the same processes. A
/// process's own part in a manual function is over others on other processes, and counts as no such
/// mesh.
inline bool works_in(const std::shared_ptr<MeshCore>& mesh, const std::shared_ptr<MeshCore>& world,
                     Where where) {
  if (lies_in(*mesh, *world)) return true;
  if (is_own(*world) || whole_of(mesh, where) == whole_of(world, where)) return false;
  std::shared_ptr<MeshCore> around = mesh;
  while (around != nullptr && (is_own(*around) || !one_world(*around, *world)))
    around = outer_mesh(*around, where);
  return around != nullptr;
}
/// Returns the smallest mesh in which all of some meshes work, of those that the mesh `within` lies
/// in; null where there is none. The meshes have one or none, in whichever order they come.
inline std::shared_ptr<MeshCore> world_of(std::shared_ptr<MeshCore> within,
                                          const std::vector<std::shared_ptr<MeshCore>>& meshes,
                                          Where where) {
  const auto all_work = [&](const std::shared_ptr<MeshCore>& world) {
    return std::all_of(meshes.begin(), meshes.end(), [&](const std::shared_ptr<MeshCore>& mesh) {
      return works_in(mesh, world, where);
    });
  };
  while (within != nullptr && !all_work(within)) within = outer_mesh(*within, where);
  return within;
}

TESSERA_FUNCTION int Listing::part_of(const std::shared_ptr<MeshCore>& mesh, CallSite site) {
  if (const int known = number_among(meshes_, *mesh); known >= 0) return known;
  const auto refuse = [&](const MeshCore& other, const char* rule) {
    throw MeshError(std::string(site.label) +
                        ": a compiled function calls operators on two meshes, " +
                        text_of_mesh(other) + " and " + text_of_mesh(*mesh) + rule,
                    site.where);
  };
  if (meshes_.empty()) {
    mesh_ = world_ = mesh;
    pool_ = &mesh->attachment<ListedCallPool>().pool();
  } else if (on_ == ListsOn::one_mesh) {
    if (manual_whole_of(mesh, site.where) != manual_whole_of(mesh_, site.where))
      refuse(*mesh_, "; it works on one; reshard between meshes before or after");
    world_ = mesh_of_both(world_, mesh, site.where);
  } else {
    std::vector<std::shared_ptr<MeshCore>> all = meshes_;
    all.push_back(mesh);
    const std::shared_ptr<MeshCore> world = world_of(world_, all, site.where);
    if (world == nullptr) {
      const auto apart = std::find_if(meshes_.begin(), meshes_.end(), [&](const auto& known) {
        return world_of(known, {known, mesh}, site.where) == nullptr;
      });
      refuse(apart == meshes_.end() ? *mesh_ : **apart,
             ", of other processes; it works on the parts of one mesh, on that mesh, and on meshes "
             "over the same processes; make one of them over the processes of the other");
    }
    world_ = world;
  }
  meshes_.push_back(mesh);
  return static_cast<int>(meshes_.size()) - 1;
}

TESSERA_FUNCTION TensorCore Listing::take(const Request& r) {
  MeshCore& mesh = mesh_of(r);
  return on_process(mesh, r.site, [&]() -> TensorCore {
    if (r.extras.kernel.make != nullptr && r.extras.kernel.keep == nullptr) {
      const TakenBy none(nullptr);  // of the host's memory, which may be gone when the list runs
      return tessera::detail::run(r);
    }
    const int part = part_of(r.mesh(), r.site);
    const PlanQuestion question(r);
    const Prepared& prepared = planned(r, question);
    const Plan& plan = *prepared.plan;
    const bool moves = goes_elsewhere(r);
    if (!moves) require_own_tensors(r, plan, false);
    const auto kept = std::allocate_shared<ListedCall>(PoolAllocator<ListedCall>(*pool_), r);
    ListedCall& call = *kept;
    call.prepared = prepared.shared_from_this();
    call.name = CallName(question.query, r.site.label).digest;
    call.part = part;
    call.moves = moves;
    digest_.add(call.name);
    if (part > 0) digest_.add(static_cast<std::uint64_t>(part));
    const auto list = [&](auto& places, const TensorCore& tensor, bool made) {
      places.push_back(place_of(tensor, made));
      digest_.add(static_cast<std::uint64_t>(number_of(places.back())));
    };
    for (const TensorCore* operand : r.operands) list(call.operands, *operand, false);
    const TensorCore* const into = r.extras.into;
    if (moves) {
      digest_.add(static_cast<std::uint64_t>(part_of(into->mesh(), r.site)));
      list(call.results, *into, false);
      ListedTensor& first = listed(number_of(call.results[0]));
      if (first.made < 0 && !first.hidden && first.tensor.storage()->promised()) {
        first.made = size();
        first.awaits = true;
      }
    } else {
      promise_results(r, plan, [&](const TensorCore& result) {
        list(call.results, result, result.storage()->promised());
      });
    }
    if (into != nullptr) {
      call.into = true;
      if (!into->storage()->promised())
        for (const int t : {call.results[0], number_of(call.results[0])}) {
          listed(t).hidden = true;
          listed(t).tensor.storage()->hide(r.site.where);
        }
    }
    call.lane = lane_of_thread;
    call.layers = layers_now(mesh);
    calls_.push_back(kept);
    if (r.extras.also != nullptr)
      for (int i = 1; i < call.results.size(); ++i)
        r.extras.also->push_back(listed(call.results[i]).tensor);
    return listed(call.results[0]).tensor;
  });
}

TESSERA_FUNCTION void Listing::see(const TensorCore& x, const TensorCore& seen, CallSite site) {
  for (const TensorCore* one : {&x, &seen}) (void)part_of(one->mesh(), site);
  const int from = found(x, false);
  digest_.add(0x5EE4'0000'0000'0001u);  // no call's name: a tensor is seen
  digest_.add(static_cast<std::uint64_t>(from));
  listed(number_of(from)).seen = true;
  ++listed(x.storage()->listed()).holds;  // by what is seen
  const int at = add(seen, number_of(from));
  seen.storage()->set_listed(at);
  listed(at).holds = 1;
}

TESSERA_FUNCTION void Listing::refuse(CallSite site) const {
  throw UsageError(std::string(site.label) +
                       ": the call is made at once, and the operators of a compiled function run "
                       "after its end; call it before or after the function",
                   site.where);
}

TESSERA_FUNCTION int Listing::place_of(const TensorCore& tensor, bool made) {
  const int at = found(tensor, made);
  listed(number_of(at)).last = size();
  return at;
}

TESSERA_FUNCTION int Listing::found(const TensorCore& tensor, bool made) {
  Storage& storage = *tensor.storage();
  const int known = storage.listed();  // by this list, if its tensor has this memory
  const bool mine = known >= 0 && known < static_cast<int>(tensors_.size()) &&
                    listed(known).tensor.storage().get() == &storage;
  if (!mine) {
    const int at = add(tensor, -1);
    storage.set_listed(at);
    listed(at).holds = 1;
    listed(at).made = made ? size() : -1;
    return at;
  }
  int last = known;
  for (int at = known; at >= 0; last = at, at = listed(at).beside)
    if (listed(at).tensor.desc() == tensor.desc()) return at;
  const int at = add(tensor, number_of(known));
  listed(last).beside = at;
  ++listed(known).holds;
  return at;
}

TESSERA_FUNCTION int Listing::add(const TensorCore& tensor, int number) {
  const int at = static_cast<int>(tensors_.size());
  const int first = number < 0 ? at : number;
  tensors_.push_back({tensor, first});
  if (number >= 0) listed(listed(first).end).next = at;
  listed(first).end = at;
  return at;
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

TESSERA_FUNCTION bool Listing::kept_by_others(int number) const {
  for (int i = number; i >= 0; i = listed(i).next)
    if (const int holds = listed(i).holds;
        holds > 0 && listed(i).tensor.storage().use_count() > holds)
      return true;
  return false;
}

TESSERA_FUNCTION void Listing::show() {
  for (ListedTensor& t : tensors_)
    if (t.hidden) t.tensor.storage()->show();
}

TESSERA_FUNCTION void Listing::let_go() {
  show();
  for (const ListedTensor& t : tensors_)
    if (t.made >= 0 && t.tensor.defined()) t.tensor.storage()->break_promise();
}

TESSERA_FUNCTION std::uint64_t Listing::structure() const {
  Digest digest = digest_;
  for (int i = 0; i < static_cast<int>(tensors_.size()); ++i) {
    if (number_of(i) != i) continue;
    const auto number = static_cast<std::uint64_t>(i) * 2;
    if (kept_by_others(i)) digest.add(number);
    if (listed(i).tensor.storage()->adopted()) digest.add(number + 1);
  }
  for (const TensorPin& pin : pins()) {
    digest.add(static_cast<std::uint64_t>(pin.tensor));
    for (const OpenEntry& entry : pin.to.dims)
      digest.add(entry.open ? ~std::uint64_t{} : entry.axes.bits());
  }
  return digest.value();
}

TESSERA_FUNCTION std::vector<TensorPin> Listing::pins() const {
  if (pins_.empty()) return {};
  Pins pins = pins_;
  for (int i = 0; i < static_cast<int>(tensors_.size()); ++i)
    if (number_of(i) == i) pins.tell(listed(i).tensor.storage(), i);
  Program numbered;
  pins.put_into(numbered);
  return numbered.pins();
}

TESSERA_FUNCTION Program Listing::program() const {
  Program program;
  if (mesh_ == nullptr) return program;
  program.mesh = world()->shape();
  program.process = world()->process();
  program.set_names(world()->names());
  const bool parts = meshes_.size() > 1;
  if (parts) {
    std::vector<MeshCore*> meshes;
    for (const std::shared_ptr<MeshCore>& mesh : meshes_) meshes.push_back(mesh.get());
    program.set_parts(program_parts(*world_, meshes));
  }
  for (int i = 0; i < static_cast<int>(tensors_.size()); ++i) {
    const ListedTensor& t = listed(i);
    const Storage& storage = *t.tensor.storage();
    ProgramTensor tensor{t.tensor.desc()};
    tensor.last = -1;  // another description of a memory takes up none
    if (number_of(i) == i) {
      tensor.made = t.made;
      tensor.first = t.made >= 0 ? t.made : 0;
      tensor.last = kept_by_others(i) ? size() : t.last;
      tensor.adopted = storage.adopted();
      tensor.awaits = t.awaits;
      tensor.seen = t.seen;
      const std::shared_ptr<MeshCore>& on = t.tensor.mesh();
      tensor.part = number_among(meshes_, *on);
      if (!on->absent() || world_->absent())
        tensor.bytes = t.made >= 0 ? arena_charge(TensorCore::local_bytes(*on, tensor.desc))
                                   : storage.charge();
    }
    (void)program.add(tensor);
  }
  std::vector<int> layers;  // of each path its number in the Program, where calls have come to it
  for (int i = 0; i < size(); ++i) {
    const ListedCall& c = call(i);
    const CallSite& site = c.kept.site();
    ProgramEntry entry{c.prepared->plan, std::string(site.label), site.where};
    for (const int t : c.operands) entry.operands.push_back(number_of(t));
    entry.operation = c.prepared->operation;
    entry.call = i;
    entry.contract = contract_at(*meshes_[static_cast<std::size_t>(c.part)], site);
    entry.part = c.part;
    entry.result = number_of(c.results[0]);
    for (int k = 1; k < c.results.size(); ++k) entry.also.push_back(number_of(c.results[k]));
    program.go_to_layer(0);
    for (auto path = layers.size(); static_cast<int>(path) <= c.layers; ++path) {
      program.go_to_layer(0);
      for (const std::string& name : layers_[path].names) program.enter(name);
      layers.push_back(program.layer());
    }
    if (c.layers >= 0) program.go_to_layer(layers[static_cast<std::size_t>(c.layers)]);
    program.record(std::move(entry));
  }
  for (const TensorPin& pin : pins()) program.pin(pin);
  program.state_held(0);
  return program;
}

TESSERA_FUNCTION bool Listing::is(const Program& program) const {
  if (program.size() != size() || program.tensors().size() != tensors_.size()) return false;
  const std::vector<TensorPin> own = pins();
  if (!std::equal(own.begin(), own.end(), program.pins().begin(), program.pins().end(),
                  [](const TensorPin& a, const TensorPin& b) {
                    return a.tensor == b.tensor && a.to == b.to;
                  }))
    return false;
  for (int i = 0; i < size(); ++i) {
    const ListedCall& c = call(i);
    const ProgramEntry& e = program.entry(i);
    if (e.operands.size() != c.operands.size() || e.also.size() + 1 != c.results.size() ||
        e.result != number_of(c.results[0]) || e.label != c.kept.site().label || e.part != c.part ||
        (e.operation == nullptr) != c.moves ||
        !(e.contract == contract_at(*meshes_[static_cast<std::size_t>(c.part)], c.kept.site())))
      return false;
    if (!(e.plan == c.prepared->plan || *e.plan == *c.prepared->plan) ||
        (!c.moves && !(*e.operation == c.kept.operation())))
      return false;
    for (int k = 0; k < e.operands.size(); ++k)
      if (e.operands[k] != number_of(c.operands[k])) return false;
    for (int k = 0; k < e.also.size(); ++k)
      if (e.also[k] != number_of(c.results[k + 1])) return false;
  }
  return true;
}

}  // namespace tessera::detail
