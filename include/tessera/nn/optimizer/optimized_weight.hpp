// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The weights of an optimizer, each with the state that is kept for it where it is updated, and
/// the moves there and back.
///
///     detail::OptimizedWeight w{"layer.weight"};
///     w.visit([](const std::string& name, TensorCore& state) {});   // "layer.weight.0"
///
/// Laws: a tensor that lies where it is wanted is not moved.
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tessera/nn/optimizer/update.hpp>
#include <tessera/nn/optimizer/update_policy.hpp>
#include <tessera/op/shape/reshape.hpp>
#include <tessera/run/taker.hpp>

namespace tessera::detail {

/// Brings tensors to shardings that they do not have: together, or, where an open state is chosen,
/// each alone, by operators that a choice may leave out.
inline std::vector<TensorCore> moved_together(const std::vector<TensorCore>& from,
                                              const std::vector<Sharding>& to,
                                              const UpdatePolicy& policy, CallSite site) {
  if (policy.kind != UpdatePolicy::Kind::open || !chosen_on_thread)
    return reshard_by_mesh(from, to, site);
  std::vector<TensorCore> made;
  for (std::size_t i = 0; i < from.size(); ++i) made.push_back(moved_to(from[i], to[i], site));
  return made;
}

struct OptimizedWeight {
  std::string path;
  TensorDesc desc;
  UpdatePlace place;
  TensorCore master;  ///< undefined where there is none
  std::vector<TensorCore> auxiliary;
  bool trained = true;  ///< else the optimizer leaves it as it is, and has no state for it
  bool decays = true;   ///< the rule's decay holds for it

  /// Calls f(name, tensor) for each tensor of the state.
  template <class F> void visit(const F& f) {
    const std::string begin = path.empty() ? "" : path + '.';
    for (std::size_t k = 0; k < auxiliary.size(); ++k) f(begin + std::to_string(k), auxiliary[k]);
    if (master.defined()) f(begin + "master", master);
  }
  /// Puts the state where a choice has it, as argument `of` of its function; the weight is updated
  /// where the first tensor of its own extents lies. A template, so that none but its callers need
  /// what a Choice is.
  template <class C> void put(const C& choice, const std::string& of, CallSite site) {
    bool placed = false;
    visit([&](const std::string& name, TensorCore& core) {
      core = moved_to(core, choice.argument(of + '.' + name), site);
      if (!placed && core.extents() == desc.extents) place.sharding = core.sharding();
      placed = placed || core.extents() == desc.extents;
    });
  }
  /// Returns the share of a tensor of the weight's extents that this process updates.
  TensorCore share_of(const TensorCore& x, CallSite site) const {
    if (!place.flat) return moved_to(x, place.sharding, site);
    const ops::Reshape line{{volume(x.extents())}, place.sharding};
    return run({line, {&x}, site});
  }
  TensorCore share_to_update(const TensorCore& old, CallSite site) const {
    return master.defined() ? master : share_of(old, site);
  }
};

/// Brings gradients to the places where their weights are updated: those that are not there yet,
/// together.
inline std::vector<TensorCore> gradients_in_place(const std::vector<TensorCore>& given,
                                                  const std::vector<OptimizedWeight*>& weights,
                                                  const UpdatePolicy& policy, CallSite site) {
  std::vector<TensorCore> shares;
  std::vector<TensorCore> elsewhere;
  std::vector<Sharding> targets;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const OptimizedWeight& w = *weights[i];
    shares.push_back(w.place.flat ? w.share_of(given[i], site) : given[i]);
    if (shares[i].sharding() == w.place.sharding) continue;
    elsewhere.push_back(shares[i]);
    targets.push_back(w.place.sharding);
  }
  const std::vector<TensorCore> there =
      moved_together(elsewhere, targets, policy, {"optimizer's gradient", site.where});
  std::size_t next = 0;
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!(shares[i].sharding() == weights[i]->place.sharding)) shares[i] = there[next++];
  return shares;
}

/// Brings new weights from the places of the update to their own shardings, together.
inline std::vector<TensorCore> new_weights_in_place(std::vector<TensorCore> made,
                                                    std::span<OptimizedWeight* const> weights,
                                                    const UpdatePolicy& policy, CallSite site) {
  std::vector<TensorCore> shares;
  std::vector<Sharding> targets;
  for (std::size_t i = 0; i < made.size(); ++i) {
    const OptimizedWeight& w = *weights[i];
    const Sharding own = w.place.flat ? line_of(w.desc).sharding : w.desc.sharding;
    if (made[i].sharding() == own) continue;
    shares.push_back(std::exchange(made[i], {}));
    targets.push_back(own);
  }
  std::vector<TensorCore> whole =
      moved_together(shares, targets, policy, {"optimizer's new weight", site.where});
  std::size_t next = 0;
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (!made[i].defined()) made[i] = std::exchange(whole[next++], {});
    const OptimizedWeight& w = *weights[i];
    if (!w.place.flat) continue;
    const ops::Reshape back{w.desc.extents, w.desc.sharding};
    made[i] = run({back, {&made[i]}, site});
  }
  return made;
}

}  // namespace tessera::detail
