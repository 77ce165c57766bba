// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The Program that follows from a choice.
///
///     Program chosen = UnderChoice(question, assignment, planning).make();
///
/// An operator reads its operands where they lie and makes its result where it shall lie, if that
/// is the cheapest; else the moves to its way are operators of their own. `as_counted`: they are
/// so wherever something is moved, and a free tensor that has a copy is read from the copy, so that
/// the Program holds what the question counts.
///
/// Laws: the Program's price is at most the assignment's cost.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <tessera/program/choice/detail/question.hpp>

namespace tessera::detail {

class UnderChoice : ProgramEdit {
 public:
  UnderChoice(ChoiceQuestion& question, const Assignment& assignment, const PlanOptions& planning,
              bool as_counted = false)
      : ProgramEdit(question.program(), planning),
        question_(question),
        assignment_(assignment),
        as_counted_(as_counted),
        count_(static_cast<int>(program_.tensors().size())) {
    for (int t = 0; t < count_; ++t) now_.push_back(t);
    copies_.assign(now_.size(), -1);
  }

  Program make() {
    const Index others = program_.held_by_others();
    for (int t = 0; t < count_; ++t)
      if (program_.tensor(t).made < 0 && question_.is_free(t)) relay(t);
    program_.state_held(others);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      ProgramEntry e = entries_[i];
      at_ = i;
      dropped_[i] = true;
      if (question_.is_move(e))
        move(e);
      else if (const PricedWay* const way = question_.way(static_cast<int>(i), assignment_))
        open(e, *way);
      else
        fixed(e);
      origins_.resize(origins_.size() + before_[i].size(), static_cast<int>(i));
    }
    for (int t = 0; t < count_; ++t)  // what stands for a tensor that outlives the Program does so
      if (program_.tensor(t).last >= program_.size())
        program_.tensor_to_change(now(t)).last = program_.size();
    return finished();
  }
  /// Returns, for each operator of the Program that was made, the one of the given Program that it
  /// stands for.
  const std::vector<int>& origins() const { return origins_; }

 private:
  /// An open argument is born where it is chosen to be.
  void relay(int t) {
    ProgramTensor& tensor = program_.tensor_to_change(t);
    tensor.desc.sharding = question_.home(t, assignment_).sharding;
    tensor.bytes = charge_of(tensor, program_.mesh, program_.mesh.coordinates(program_.process));
  }
  int& now(int t) { return now_[static_cast<std::size_t>(t)]; }
  Sharding home(int t) const { return question_.home(t, assignment_).sharding; }
  TensorDesc desc_at_home(int t) const {
    TensorDesc desc = question_.program().tensor(t).desc;
    desc.sharding = home(t);
    return desc;
  }
  /// A tensor to read: where it lies, or its copy.
  struct Source {
    TensorDesc desc;
    bool copy = false;
  };
  /// Returns from where a tensor is brought to a sharding.
  Source source(int t, const Sharding& to, const Contract& contract) {
    const Home place = question_.home(t, assignment_);
    Source from{desc_at_home(t)};
    from.copy = place.copy && ((as_counted_ && question_.is_free(t)) ||
                               question_.source(from.desc, place, to, contract).copy);
    if (from.copy) from.desc.sharding = *place.copy;
    return from;
  }
  /// Returns the tensor of a source; a copy is made where it is read first.
  int tensor_of(const ProgramEntry& e, int t, const Source& from) {
    if (!from.copy) return now(t);
    int& copy = copies_[static_cast<std::size_t>(t)];
    if (copy < 0) copy = moved(e, now(t), desc_at_home(t), from.desc.sharding);
    return copy;
  }
  /// Returns the tensor that stands for a result that the operator makes at its home.
  int made(int t) {
    const bool stays = program_.tensor(t).desc.sharding == home(t);
    if (!stays) now(t) = add(desc_at_home(t), at_);
    return now(t);
  }
  void put(ProgramEntry e) { before_[at_].push_back(std::move(e)); }
  /// Adds an operator that moves a tensor, for tensor `home_of` of the program that was given if it
  /// is one's home; returns what it makes: the tensor itself where nothing is to be done.
  int moved(const ProgramEntry& e, int tensor, const TensorDesc& from, const Sharding& to,
            int home_of = -1) {
    if (from.sharding == to) return tensor;
    const auto operation = std::make_shared<const Operation>(ops::Reshard{to});
    const auto plan = planned(*operation, {from}, Destination::fresh, e.contract);
    if (plan->result < plan->operands) return tensor;
    const int result = home_of >= 0 ? made(home_of) : add({from.type, from.extents, to}, at_);
    put(reshard(operation, plan, e, tensor, result));
    return result;
  }

  void move(const ProgramEntry& e) {
    const int from = e.operands[0], to = e.result;
    const Sharding out = home(to);
    const bool again = program_.tensor(to).made != static_cast<int>(at_);
    const Source read = source(from, out, e.contract);
    ProgramEntry entry = e;
    entry.operation = std::make_shared<const Operation>(ops::Reshard{out});
    entry.operands[0] = tensor_of(e, from, read);
    entry.plan = planned(*entry.operation, {read.desc}, e.plan->destination, e.contract);
    if (!again && entry.plan->result < entry.plan->operands) {
      if (question_.makes_own(e)) become(from, entry.operands[0] = made(to));
      now(to) = entry.operands[0];
      return;
    }
    entry.result = again ? now(to) : made(to);
    put(std::move(entry));
  }
  /// Lets the operator that makes a tensor make another one in its place.
  void become(int t, int other) {
    const int old = std::exchange(now(t), other);
    const auto put_other = [&](int& number) { number = number == old ? other : number; };
    for (auto i = static_cast<std::size_t>(program_.tensor(t).made); i < at_; ++i)
      for (ProgramEntry& e : before_[i]) {
        put_other(e.result);
        for (int& number : e.also) put_other(number);
        for (int& number : e.operands) put_other(number);
      }
  }
  /// An operator without a choice reads its operands as it did.
  void fixed(ProgramEntry e) {
    for (int k = 0; k < e.operands.size(); ++k) {
      const int t = e.operands[k];
      if (!question_.is_free(t)) {
        e.operands[k] = now(t);
        continue;
      }
      const Sharding& to = e.plan->slots[k].desc.sharding;
      const Source from = source(t, to, e.contract);
      e.operands[k] = moved(e, tensor_of(e, t, from), from.desc, to);
    }
    put(std::move(e));
  }
  void open(const ProgramEntry& e, const PricedWay& way) {
    TensorDescs as_it_lies, in_way;
    FixedVector<Source, max_operands> sources;
    for (int k = 0; k < e.operands.size(); ++k) {
      sources.push_back(source(e.operands[k], way.way.operands[k], e.contract));
      as_it_lies.push_back(sources.back().desc);
      in_way.push_back(as_it_lies.back());
      in_way.back().sharding = way.way.operands[k];
    }
    Prices& prices = question_.prices();
    const Operation direct = e.operation->with_result(home(e.result));
    const auto plan_of = [&](const Operation& operation, const TensorDescs& descs) {
      return planned(operation, descs, e.plan->destination, e.contract);
    };
    /// Operand k is operand `same` again, and goes to the same place; -1: it is none.
    const auto same = [&](int k) {
      for (int j = 0; j < k; ++j)
        if (e.operands[j] == e.operands[k] && in_way[j] == in_way[k]) return j;
      return -1;
    };
    const auto cost_of_direct = [&](const TensorDescs& x) {
      const auto priced = prices.plan(direct, x, e.plan->destination, e.contract);
      return priced == nullptr || (question_.makes_own(e) && returns_operand(*priced))
                 ? infeasible
                 : add_costs(prices.of(*priced), tolls_of_further(e, direct, x));
    };
    Cost direct_cost = cost_of_direct(as_it_lies);
    const Operation apart = e.operation->with_result(way.way.out);
    Cost way_cost = add_costs(way.cost, tolls_of_further(e, apart, in_way));
    for (int k = 0; k < e.operands.size(); ++k)
      if (same(k) < 0)
        way_cost = add_costs(way_cost, prices.toll(as_it_lies[k], as_it_lies[k].sharding,
                                                   in_way[k].sharding, e.contract));
    way_cost = add_costs(
        way_cost, prices.toll(e.plan->result_desc(), way.way.out, home(e.result), e.contract));
    const Home place = question_.home(e.operands[0], assignment_);
    if (e.operands.size() == 1 && place.copy && !as_counted_) {  // it may read the other as it is
      Source other{as_it_lies[0], !sources[0].copy};
      other.desc.sharding = other.copy ? *place.copy : place.sharding;
      const Cost cost = cost_of_direct({other.desc});
      if (cost < direct_cost && cost <= way_cost)
        direct_cost = cost, sources[0] = other, as_it_lies[0] = other.desc;
    }
    FixedVector<int, max_operands> operands;
    for (int k = 0; k < e.operands.size(); ++k)
      operands.push_back(tensor_of(e, e.operands[k], sources[k]));
    const bool moves = !(as_it_lies == in_way) || !(way.way.out == home(e.result));
    if (direct_cost <= way_cost && !(as_counted_ && moves))
      return put_operator(e, direct, plan_of(direct, as_it_lies), as_it_lies, operands);
    for (int k = 0; k < e.operands.size(); ++k)
      operands[k] = same(k) >= 0 ? operands[same(k)]
                                 : moved(e, operands[k], as_it_lies[k], in_way[k].sharding);
    put_operator(e, apart, plan_of(apart, in_way), in_way, operands);
  }
  Cost tolls_of_further(const ProgramEntry& e, const Operation& operation,
                        const TensorDescs& descs) {
    if (e.also.empty()) return 0;
    const TensorDescs results = operation.view().results(descs);
    Cost cost = 0;
    for (int k = 0; k < e.also.size(); ++k)
      cost = add_costs(cost, question_.prices().toll(results[k + 1], results[k + 1].sharding,
                                                     home(e.also[k]), e.contract));
    return cost;
  }
  /// Adds the operator, whose results are then moved home.
  void put_operator(const ProgramEntry& e, const Operation& operation,
                    const std::shared_ptr<const Plan>& plan, const TensorDescs& descs,
                    const FixedVector<int, max_operands>& operands) {
    if (returns_operand(*plan) && program_.tensor(e.result).made == static_cast<int>(at_)) {
      now(e.result) = operands[plan->result];
      return;
    }
    ProgramEntry entry = e;
    entry.operation = std::make_shared<const Operation>(operation);
    entry.plan = plan;
    entry.operands = operands;
    const TensorDescs results = operation.view().results(descs);
    const auto result = [&](int t, const TensorDesc& as) {
      if (program_.tensor(t).made != static_cast<int>(at_)) return now(t);  // it was there
      if (as.sharding == home(t)) return made(t);
      return add(as, at_);
    };
    entry.result = result(e.result, results[0]);
    for (int k = 0; k < e.also.size(); ++k) entry.also[k] = result(e.also[k], results[k + 1]);
    const ProgramEntry put_entry = entry;
    put(std::move(entry));
    const auto bring_home = [&](int t, int lies, const TensorDesc& as) {
      if (!(as.sharding == home(t))) now(t) = moved(e, lies, as, home(t), t);
    };
    bring_home(e.result, put_entry.result, results[0]);
    for (int k = 0; k < e.also.size(); ++k)
      bring_home(e.also[k], put_entry.also[k], results[k + 1]);
  }

  ChoiceQuestion& question_;
  const Assignment& assignment_;
  bool as_counted_;
  int count_;
  std::vector<int> now_;     ///< the tensor that stands for each one
  std::vector<int> copies_;  ///< each tensor's copy; -1: it has not been made
  std::vector<int> origins_;
  std::size_t at_ = 0;
};

}  // namespace tessera::detail
