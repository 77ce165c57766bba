// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// An optimizer of a tree of weights: its rule (sgd.hpp, adam.hpp, lars.hpp, adafactor.hpp), where
/// each weight is updated (update_policy.hpp), and the state that goes with it.
///
///     Optimizer<Adam, ShardedUpdate<data>> optimizer(Adam{.rate = 1e-3}, weights);
///     const auto [loss, gradients] = optimizer.value_and_grad(f)(weights);   // reduce-scattered
///     optimizer.step(weights, gradients);          // shares are updated, new weights gathered
///     optimizer.report().norm;                     // of the gradients; which steps were skipped
///
/// Where the shardings of a function of weights and optimizer are chosen, the state's are chosen
/// with them: the sharded update is found where it pays.
///
///     using Open = Optimizer<Adam, OpenUpdate>;
///     const auto step = [](Decoder w, Open optimizer, const Ids& ids) { …; return std::pair(w, optimizer); };
///     const Choice choice = choose(step)(on_paper, Open(Adam{}, on_paper), ids, sizes<Grid>(2, 4));
///     Open optimizer(Adam{}, weights, {}, {&choice, "1"});       // its state as it is chosen
///
/// Where the weights themselves are split over the policy's axes, and the function gathers them by
/// reshard or gives them to einsum as they are, nothing is whole but what is in use: the same
/// gradients arrive by reduce-scatter, and no weight is gathered after the update.
///
/// Laws: new weights are equal under every policy, to rounding where sums are made in another
/// order; state is born under the update's sharding, and stays so; in a compiled function a step
/// does as outside, to the bit, and a second one is refused where steps may be skipped. Where
/// `finite` is asked for, a gradient that is not changes nothing but the count of calls and the
/// loss's scale. Tensors that gradients do not move (Fields, `untrained`) are left as they are,
/// have no state, and their gradients count for nothing. Source: Xu et al., "Automatic
/// Cross-Replica Sharding of Weight Update in Data-Parallel Training" (2020); ZeRO (Rajbhandari et
/// al. 2020), section 5.
#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tessera/grad/gradient_under.hpp>
#include <tessera/nn/optimizer/gradient_norm.hpp>
#include <tessera/nn/optimizer/optimized_weight.hpp>
#include <tessera/nn/optimizer/step_report.hpp>
#include <tessera/nn/optimizer/steps.hpp>
#include <tessera/nn/optimizer/update_policy.hpp>
#include <tessera/op/shape/reshape.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {

/// `Rule`: Sgd, Adam, AdamW, Lars, Adafactor or one like them. `Policy`: a type of
/// update_policy.hpp, or UpdatePolicy, whose value is then given. One object has one tree.
template <class Rule, class Policy = ReplicatedUpdate> class Optimizer {
 public:
  /// Makes the state of a tree of weights, on a mesh or its parts: typed tensors, or, with an
  /// UpdatePolicy, any. Communication: none. Collective over the mesh. Throws UsageError for a
  /// weight that is unfinished or no real number, or where the tree has none that is trained.
  template <class Tree>
  Optimizer(Rule rule, const Tree& weights, OptimizerOptions options = {}, Policy policy = {},
            Where where = Where::here())
      : rule_(std::move(rule)),
        options_(std::move(options)),
        steps_(options_.scale, options_.finite) {
    const auto add = [&](const detail::TreePlace& place, const auto& weight) {
      using Tensor = std::decay_t<decltype(weight)>;
      if constexpr (std::is_same_v<Policy, UpdatePolicy>) {
        policy_ = policy;
      } else {
        static_assert(TypedTensor<Tensor>,
                      "[tessera] the policy of an update names axes as types, and a weight is a "
                      "dynamic tensor; give Optimizer<Rule, UpdatePolicy> a value");
        policy_ = Policy::template on<typename Tensor::mesh_type>();
      }
      add_weight({place.path(), weight.desc(), {}, {}, {}, place.trained()},
                 weight.core().as_closed(), where);
      if constexpr (std::is_same_v<Policy, OpenUpdate>)
        if (policy.choice != nullptr)
          weights_.back().put(*policy.choice, policy.path, {"optimizer", where});
    };
    detail::walk({}, add, weights);
    if (trained().empty())
      throw UsageError("an optimizer is given a tree " +
                           std::string(weights_.empty() ? "without tensors"
                                                        : "whose tensors are all untrained") +
                           "; give it a tree with a tensor that gradients move",
                       where);
  }

  /// Returns f's value and gradients as a function of its first argument, the weights: gradients
  /// under the shardings of the update. Communication, collective over: as value_and_grad_under.
  template <class F> auto value_and_grad(F&& f, Where where = Where::here()) const {
    return value_and_grad_under(std::forward<F>(f), gradient_shardings(), where);
  }
  /// Returns the shardings under which step() wants gradients; it takes any.
  std::vector<Sharding> gradient_shardings() const {
    std::vector<Sharding> wanted;
    for (const Weight& w : weights_)
      wanted.push_back(w.place.flat
                           ? w.desc.sharding.with_partial(
                                 w.place.sharding.used() - w.desc.sharding.used(), Reduction::sum)
                           : w.place.sharding);
    return wanted;
  }

  /// Updates the weights by gradients: a tree like the weights, or a vector of dynamic tensors; the
  /// tree's tensors are assigned anew. Communication: gradients that lie otherwise are brought
  /// under the update's sharding; one number (of doubles two) is summed for all (GradientCheck),
  /// and what the rule needs; new weights are gathered, several in one call where small
  /// (reshard_together). Collective over the mesh. Throws UsageError for other weights than the
  /// optimizer was made for, and for a second step in one function that is compiled or async, where
  /// steps may be skipped (OptimizerOptions::finite).
  template <class Tree, class Gradients>
  void step(Tree& weights, const Gradients& gradients, Where where = Where::here()) {
    std::vector<TensorCore> given;
    std::vector<InTree> olds;
    const auto take = [&](auto& one) {
      olds.push_back({one.core().as_closed(), [&one](const TensorCore& made) {
                        one = std::remove_cvref_t<decltype(one)>(made);
                      }});
    };
    for_each_tensor(take, weights);
    for_each_tensor([&](const auto& one) { given.push_back(one.core().as_closed()); }, gradients);
    update(std::move(olds), std::move(given), {"optimizer step", where});
  }

  /// Returns the factor by which the caller multiplies the loss of the next step: the same until
  /// step() is called, which divides by it.
  double loss_scale() const { return steps_.loss_scale(); }
  /// Returns what the calls since the last report did. Outside compiled functions. Communication:
  /// none, but for steps that were skipped: their gradients' norms are finished. Collective over
  /// the mesh.
  StepReport report(Where where = Where::here()) {
    const std::vector<Weight*> weights = trained();
    const auto path = [&](int i) { return weights[static_cast<std::size_t>(i)]->path; };
    return steps_.report(path, {"optimizer report", where});
  }

  /// Returns where weight i, in the tree's order, is updated.
  const UpdatePlace& place(int i) const { return weights_[static_cast<std::size_t>(i)].place; }
  /// Calls f(path, tensor) for each tensor of the state, "weight.0" of a weight's first auxiliary
  /// tensor, "weight.master" of its master: to be written to a file or, as DynamicTensor&, read.
  /// The tensors have the weight's extents, or a row's or column's, whatever the policy and the
  /// mesh. Communication: where shares are of a line of elements (FlatUpdate), the reshape to the
  /// weight's extents and, of a tensor that f replaces, the one back. Collective over the mesh.
  template <class F> void for_each_state(F&& f, Where where = Where::here()) {
    const detail::CallSite site{"optimizer state", where, Contract{}};
    for (Weight& w : weights_) {
      w.visit([&](const std::string& name, TensorCore& core) {
        const bool line = w.place.flat && core.extents() == Extents{volume(w.desc.extents)};
        const TensorCore shown = line ? of_weight(w, core, site) : core;
        DynamicTensor tensor(shown);
        f(name, tensor);
        if (!line)
          core = tensor.core();
        else if (tensor.core().storage() != shown.storage())
          core = w.share_of(tensor.core(), site);
      });
    }
  }
  /// Calls f(path, core) for each tensor of a state that is open, as for_each_state names it.
  template <class F> void for_each_open(const F& f) const {
    if (policy_.kind != UpdatePolicy::Kind::open) return;
    for (Weight w : weights_) w.visit(f);
  }
  /// Returns the optimizer with f(core) in place of each tensor of its state.
  template <class F> Optimizer with_state(const F& f) const {
    Optimizer made = *this;
    for (Weight& w : made.weights_)
      w.visit([&](const std::string&, TensorCore& core) { core = f(core); });
    return made;
  }
  /// Returns how many updates there were. Outside compiled functions. Communication: none.
  Index updates() { return steps_.updates(); }
  /// Returns what is to be written beside the state (the facts of a checkpoint): the counts of
  /// calls and updates, and the loss's scale. Outside compiled functions. Communication: none.
  std::map<std::string, std::string> facts() {
    return detail::facts_of<std::map<std::string, std::string>>(steps_.counts());
  }
  /// Goes on from there, with the state that was written with these facts; others among them are
  /// not looked at, and the calls since then are forgotten. Throws UsageError where one is missing
  /// or is no number.
  void resume(const std::map<std::string, std::string>& facts, Where where = Where::here()) {
    steps_.resume(detail::counts_of(facts, where));
  }
  Rule& rule() { return rule_; }

 private:
  using Weight = detail::OptimizedWeight;
  /// A weight of the caller's tree, and how another takes its place.
  struct InTree {
    TensorCore core;
    std::function<void(const TensorCore&)> assign;
  };

  void add_weight(Weight w, const TensorCore& x, Where where) {
    const MeshCore& mesh = detail::mesh_of(x, {"optimizer", where});
    if (!is_real(x.type()) || !x.sharding().partial.empty())
      throw UsageError("the weight " + w.path + " is " + to_string(x.desc(), mesh.names()) +
                           ", and weights are finished tensors of half, bfloat16, float or double; "
                           "keep others out of the tree of weights",
                       where);
    w.desc = x.desc();
    if (!w.trained) {
      w.place.sharding = w.desc.sharding.with_partial(mesh.shape().axes() - w.desc.sharding.used(),
                                                      Reduction::sum);  // nobody reads its gradient
      weights_.push_back(std::move(w));
      return;
    }
    w.decays = !options_.decays || options_.decays(w.path, w.desc);
    const DType type = detail::update_type(x.type());
    const auto bytes = [&] {
      Index all = 0;
      for (const TensorDesc& one : rule_.auxiliary({type, x.extents(), x.sharding()}))
        all += volume(one.extents) * static_cast<Index>(size_of(type));
      return UpdateBytes{all / max_of(Index{1}, volume(x.extents()))};
    };
    UpdatePolicy policy = policy_;
    policy.flat = policy.flat && Rule::flat;
    w.place = update_place(x.desc(), policy, bytes(), mesh.shape(), plan_options(mesh));
    const detail::CallSite site{"optimizer", where};
    TensorDesc share{type, x.extents(), w.place.sharding};
    if (w.place.flat) share.extents = {volume(x.extents())};
    for (const TensorDesc& one : rule_.auxiliary(share))
      w.auxiliary.push_back(detail::filled(x.mesh(), one, 0, site));
    if (options_.master && type != x.type())
      w.master = detail::converted(w.share_of(x, site), type, site);
    weights_.push_back(std::move(w));
  }

  /// Returns a line of elements as a tensor of the weight's extents, split as evenly.
  TensorCore of_weight(const Weight& w, const TensorCore& line, detail::CallSite site) const {
    const ops::Reshape back{w.desc.extents,
                            detail::sharded_update(w.desc, policy_.axes, line.mesh()->shape())};
    return detail::run({back, {&line}, site});
  }

  /// Returns the weights that are trained, in the tree's order.
  std::vector<Weight*> trained() {
    std::vector<Weight*> all;
    for (Weight& w : weights_)
      if (w.trained) all.push_back(&w);
    return all;
  }
  /// Returns those of a tree's tensors that belong to them.
  template <class T> std::vector<T> of_trained(std::vector<T> tree) const {
    std::vector<T> some;
    for (std::size_t i = 0; i < tree.size(); ++i)
      if (weights_[i].trained) some.push_back(std::move(tree[i]));
    return some;
  }

  void update(std::vector<InTree> olds, std::vector<TensorCore> given, detail::CallSite site) {
    require_alike(olds, given, site);
    olds = of_trained(std::move(olds));
    const std::vector<Weight*> weights = trained();
    const double scale = loss_scale();  // before begin(), as the loss's function read it
    const Index step = steps_.begin(site);
    std::vector<TensorCore> gradients =
        detail::gradients_in_place(of_trained(std::move(given)), weights, policy_, site);
    detail::GradientCheck check(gradients, {options_.clip, options_.finite, scale}, site);
    const std::vector<TensorCore> trust = trust_of(weights, olds, gradients, check, site);
    // Few weights at a time, so that old and new ones are not all there at once.
    for (std::size_t first = 0; first < olds.size(); first += detail::together_at_once) {
      const std::size_t end = std::min(olds.size(), first + detail::together_at_once);
      std::vector<TensorCore> made;
      for (std::size_t i = first; i < end; ++i) {
        Weight& w = *weights[i];
        detail::Share share{w.share_to_update(olds[i].core, {"optimizer's share", site.where}),
                            std::exchange(gradients[i], {}),
                            w.auxiliary,
                            check.factor(olds[i].core.mesh(), site),
                            Rule::trusts ? trust[i] : TensorCore(),
                            w.desc.type,
                            w.master.defined(),
                            w.decays,
                            site};
        detail::Updated updated = rule_.update(share, step);
        for (std::size_t k = 0; k < w.auxiliary.size(); ++k)
          w.auxiliary[k] = detail::moved_to(updated.auxiliary[k], w.auxiliary[k].sharding(), site);
        if (updated.master.defined()) w.master = std::move(updated.master);
        made.push_back(std::move(updated.weight));
      }
      made = detail::new_weights_in_place(
          std::move(made), std::span(weights).subspan(first, end - first), policy_, site);
      for (std::size_t i = first; i < end; ++i) {
        olds[i].assign(made[i - first]);
        olds[i].core = TensorCore();
      }
    }
    if (options_.clip > 0 || options_.finite) steps_.end(scale, std::move(check));
  }

  /// Returns the factor of each weight's rate, 1 of one that does not decay; none where the rule
  /// has one for all.
  std::vector<TensorCore> trust_of(const std::vector<Weight*>& weights,
                                   const std::vector<InTree>& olds,
                                   const std::vector<TensorCore>& gradients,
                                   detail::GradientCheck& check, detail::CallSite site) const {
    std::vector<TensorCore> trust;
    if constexpr (Rule::trusts) {
      std::vector<TensorCore> open;
      std::vector<std::size_t> ends;  // of each weight's sums
      const auto add = [&](const TensorCore& x) {
        for (TensorCore& sum : detail::squares_of(x, site)) open.push_back(std::move(sum));
      };
      for (std::size_t i = 0; i < olds.size(); ++i) {
        if (weights[i]->decays) {
          const TensorCore old = weights[i]->share_to_update(olds[i].core, site);
          const bool wide = (old.type() == DType::f64) != (gradients[i].type() == DType::f64);
          add(old);
          add(wide ? detail::converted(gradients[i], old.type(), site) : gradients[i]);
        }
        ends.push_back(open.size());
      }
      const std::vector<TensorCore> sums = detail::finish_scalars(open, site);
      std::size_t next = 0;
      for (std::size_t i = 0; i < olds.size(); ++i) {
        const auto& mesh = olds[i].core.mesh();
        std::vector<TensorCore> own;
        while (next < ends[i]) own.push_back(sums[next++]);
        trust.push_back(own.empty() ? detail::filled(mesh, {DType::f64, {}, {}}, 1, site)
                                    : rule_.trust_of(own, check.factor(mesh, site), site));
      }
    }
    return trust;
  }

  void require_alike(const std::vector<InTree>& olds, const std::vector<TensorCore>& given,
                     detail::CallSite site) const {
    if (olds.size() != weights_.size() || given.size() != weights_.size())
      throw UsageError("an optimizer of " + std::to_string(weights_.size()) + " weights is given " +
                           std::to_string(olds.size()) + " weights and " +
                           std::to_string(given.size()) +
                           " gradients; give it the tree that it was made for, and a gradient for "
                           "each weight",
                       site.where);
    for (std::size_t i = 0; i < olds.size(); ++i) {
      const Weight& w = weights_[i];
      const AxisNames& names = detail::mesh_of(olds[i].core, site).names();
      if (!(olds[i].core.desc() == w.desc))
        throw ShapeError("the weight " + w.path + " is " + to_string(olds[i].core.desc(), names) +
                             ", and its optimizer was made for " + to_string(w.desc, names) +
                             "; give it the weights that it was made for",
                         site.where);
      if (!given[i].defined() || !(given[i].extents() == w.desc.extents))
        throw ShapeError(
            "the gradient of the weight " + w.path + " is " +
                (given[i].defined() ? to_string(given[i].desc(), names) : "an empty tensor") +
                ", and the weight " + to_string(w.desc, names) +
                "; give it a gradient of the weight's extents",
            site.where);
    }
  }

  Rule rule_;
  OptimizerOptions options_;
  UpdatePolicy policy_;
  std::vector<Weight> weights_;
  detail::StepsSoFar steps_;
};

}  // namespace tessera
