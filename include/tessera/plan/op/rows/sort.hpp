// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that sorts lines, or takes their first elements in order: keys, carried tensors,
/// positions.
///
///     Plan p = detail::plan_sort({'b', 'v'}, 1, {.descending = true}, {x}, out, mesh, process);
///
/// Lines are moved to the sharding that plan/op/rows/sort_way.hpp chooses and sorted, and the
/// results are moved to theirs. For the first k, every process may first select from its own part
/// of a line, so that only k elements of each part move.
///
///     ops::Sort{detail::same_terms("bv"), 'v', {.descending = true, .positions = true}, out}
///
/// Laws: keys alone are sorted without positions; no communication when the dimension is not split;
/// communication depends on extents and shardings alone; positions count along the whole dimension.
#include <tessera/plan/check/row_verdict.hpp>
#include <tessera/plan/check/type_rules.hpp>
#include <tessera/plan/op/move/together.hpp>
#include <tessera/plan/op/rows/sort_way.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/plan/search/moving_way.hpp>
#include <tessera/plan/step/sort.hpp>

namespace tessera {

/// The settings of a sort. Results come in this order: keys, carried tensors, positions.
struct SortTask {
  bool descending = false;
  bool keys = true;
  bool positions = false;
  Index limit = -1;  ///< the number of elements of each line; -1: all
  OperatorKind kind = OperatorKind::sort;
  constexpr bool operator==(const SortTask&) const = default;
};

namespace detail {
class SortPlanner {
 public:
  constexpr SortPlanner(const Term& labels, int along, const SortTask& task, const TensorDescs& x,
                        const Sharding& out, DType position, const MeshShape& mesh, int process,
                        const PlanOptions& options)
      : labels_(labels),
        along_(along),
        task_(task),
        x_(x),
        out_(out),
        position_(position),
        mesh_(mesh),
        options_(options),
        build_(task.kind, mesh, process, options),
        limit_(task.limit < 0 ? x[0].extents[along] : task.limit) {}

  constexpr Plan make() {
    FixedVector<int, max_operands> slots;
    for (const TensorDesc& operand : x_) slots.push_back(build_.operand(operand, labels_));
    const bool whole = task_.limit < 0;
    // Positions distinguish equal elements; without positions their bits do.
    positions_ = task_.positions || x_.size() > 1;
    Index unit = 0;
    for (const TensorDesc& operand : x_) unit += static_cast<Index>(size_of(operand.type));
    if (positions_) unit += static_cast<Index>(size_of(position_));
    const SortWay way = sort_way(along_, x_, results(), out_, mesh_, options_, whole ? unit : 0);
    if (const SortWay fewer = after_candidates(); fewer.cost < way.cost) {
      take_candidates(slots);
      move(slots, fewer.at);
      take_first(slots);
    } else {
      move(slots, way.at);
      if (way.merges)
        merge(slots);
      else
        sort(slots);
    }
    move(slots, out_);
    if (task_.positions) slots.back() = widened(slots.back());
    for (int i = 1; i < slots.size(); ++i)
      build_.plan().also.push_back(static_cast<std::int8_t>(build_.returned(slots[i], out_)));
    return build_.finish(slots[0], out_);
  }

 private:
  using Slots = FixedVector<int, max_operands>;

  constexpr void move(Slots& slots, const Sharding& to) {
    move_together(build_, slots, Shardings(slots.size(), to));
  }

  /// Returns the descriptions of the results, with any shardings.
  constexpr TensorDescs results() const {
    TensorDescs all;
    for (int i = task_.keys ? 0 : 1; i < x_.size(); ++i)
      all.push_back(limited(x_[i].type, x_[0].sharding));
    if (task_.positions) all.push_back(limited(position_, x_[0].sharding));
    return all;
  }
  constexpr TensorDesc limited(DType type, const Sharding& s) const {
    TensorDesc desc{type, x_[0].extents, s};
    desc.extents[along_] = limit_;
    return desc;
  }

  // A step of local work, priced by its comparisons or, for arrange, by its copies.
  template <class V>
  constexpr int local(const FixedVector<int, 2>& inputs, const TensorDesc& result) {
    V verb;
    verb.along = static_cast<std::int8_t>(along_);
    verb.descending = task_.descending;
    const int slot = build_.compute(verb, inputs, result, labels_);
    Plan& plan = build_.plan();
    Step& made = plan.steps.back();
    const Coordinates origin(mesh_.rank(), 0);
    made.cost =
        std::is_same_v<V, step::Arrange>
            ? options_.machine.copy(
                  2 * saturating_mul(block_volume(result.extents, result.sharding, mesh_, origin),
                                     static_cast<Index>(size_of(result.type))))
            : comparison_price(options_.machine, step_flops(plan, made, origin));
    return slot;
  }
  constexpr int ordered(const FixedVector<int, 2>& inputs, const TensorDesc& result) {
    return local<step::Order>(inputs, {position_, result.extents, result.sharding});
  }
  /// Returns positions in the type of a result.
  constexpr int widened(int slot) {
    const TensorDesc desc = build_.desc(slot);
    if (desc.type == DType::i64) return slot;
    const int made = build_.compute(step::Widen{}, FixedVector<int, 1>{slot},
                                    {DType::i64, desc.extents, desc.sharding}, labels_);
    build_.price_copies(1);
    return made;
  }
  constexpr int arranged(int slot, int positions) {
    return local<step::Arrange>(
        {slot, positions},
        {build_.desc(slot).type, build_.desc(positions).extents, build_.desc(positions).sharding});
  }

  /// Sorts whole lines; the slots become the results.
  constexpr void sort(Slots& slots) {
    const TensorDesc result = limited(x_[0].type, build_.desc(slots[0]).sharding);
    if (!positions_) {
      slots[0] = local<step::Sort>({slots[0]}, result);
      return;
    }
    const int positions = ordered({slots[0]}, result);
    Slots made;
    for (int i = task_.keys ? 0 : 1; i < slots.size(); ++i)
      made.push_back(arranged(slots[i], positions));
    if (task_.positions) made.push_back(positions);
    slots = made;
  }

  /// Sorts parts of lines, and merges them among the processes that have them.
  constexpr void merge(Slots& slots) {
    Slots state;
    if (positions_) {
      const int positions = ordered({slots[0]}, build_.desc(slots[0]));
      for (int slot : slots) {
        state.push_back(arranged(slot, positions));
        if (state.size() == 1) state.push_back(positions);
      }
    } else {
      state.push_back(local<step::Sort>({slots[0]}, build_.desc(slots[0])));
    }
    add_merges(state);
    Slots made;
    if (task_.keys) made.push_back(state[0]);
    for (int i = 2; i < state.size(); ++i) made.push_back(state[i]);
    if (task_.positions) made.push_back(state[1]);
    slots = made;
  }
  constexpr void add_merges(Slots& state) {
    const TensorDesc keys = build_.desc(state[0]);
    Step step;
    step.set(step::Communicate{{}, static_cast<std::int8_t>(along_), task_.descending});
    step.collective = Collective::exchange;
    step.group = keys.sharding[along_].set();
    const Levels found = levels(step.group, mesh_, options_.machine);
    step.level = found.level();
    step.node = found.node;
    step.merges = true;
    step.rounds = merge_exchange_rounds(mesh_.group_size(step.group));
    for (int& slot : state) {
      step.in.push_back(static_cast<std::int8_t>(slot));
      const TensorDesc desc = build_.desc(slot);
      slot = build_.temporary(desc, labels_);
      if (step.out < 0)
        step.out = static_cast<std::int8_t>(slot);
      else
        step.also.push_back(static_cast<std::int8_t>(slot));
    }
    Plan& plan = build_.plan();
    const Coordinates origin(mesh_.rank(), 0);
    const Index elements = block_volume(keys.extents, keys.sharding, mesh_, origin);
    const Index unit = merged_bytes(plan, step);
    step.slab = saturating_mul(elements, unit);
    step.cost = merge_exchange_price(elements, unit, step.group, mesh_, options_.machine);
    number_merges(plan, step, build_.at());
    plan.needs.accept(step.collective, step.group);
    plan.steps.push_back(step);
  }

  /// The first elements of each part of a line, as a tensor that is split as the line is.
  constexpr TensorDesc candidates(DType type) const {
    TensorDesc desc = limited(type, x_[0].sharding);
    const Index parts = mesh_.parts(desc.sharding[along_]);
    const Coordinates origin(mesh_.rank(), 0);
    const Index part = block(x_[0].extents[along_], desc.sharding[along_], mesh_, origin).size();
    desc.extents[along_] = saturating_mul(parts, min_of(limit_, part));
    return desc;
  }
  /// Returns the way to sort the candidates, with the price of the whole; empty where there are as
  /// many candidates as elements.
  constexpr SortWay after_candidates() const {
    SortWay none;
    if (task_.limit < 0) return none;
    const TensorDesc values = candidates(x_[0].type), places = candidates(position_);
    if (values.extents[along_] >= x_[0].extents[along_]) return none;
    SortWay way = sort_way(along_, {values, places}, results(), out_, mesh_, options_);
    const Coordinates origin(mesh_.rank(), 0);
    const Index own = block_volume(x_[0].extents, x_[0].sharding, mesh_, origin);
    const Index part = x_[0].extents[along_] / max_of(1, mesh_.parts(x_[0].sharding[along_]));
    way.cost = saturating_add(way.cost,
                              comparison_price(options_.machine, comparisons(own, part, limit_)));
    return way;
  }
  constexpr void take_candidates(Slots& slots) {
    const int positions = ordered({slots[0]}, candidates(position_));
    const int values = arranged(slots[0], positions);
    slots = {values, positions};
  }
  constexpr void take_first(Slots& slots) {
    const TensorDesc result = limited(position_, build_.desc(slots[0]).sharding);
    const int first = ordered({slots[0], slots[1]}, result);
    Slots made;
    if (task_.keys) made.push_back(arranged(slots[0], first));
    if (task_.positions) made.push_back(arranged(slots[1], first));
    slots = made;
  }

  Term labels_;
  int along_;
  SortTask task_;
  TensorDescs x_;
  Sharding out_;
  DType position_;  ///< of positions during the sort
  MeshShape mesh_;
  PlanOptions options_;
  PlanBuilder build_;
  Index limit_;
  bool positions_ = false;
};

/// Plans the order of the lines of x[0] along dimension `along`; further tensors are carried along.
/// All are finished and have the same extents; the results have sharding `out`. Resulting positions
/// are int64; during the sort they are int32 where lines are short enough and that costs less.
constexpr Plan plan_sort(const Term& labels, int along, const SortTask& task, const TensorDescs& x,
                         const Sharding& out, const MeshShape& mesh, int process = 0,
                         const PlanOptions& options = {}) {
  const auto make = [&](DType position, int at) {
    return detail::SortPlanner(labels, along, task, x, out, position, mesh, at, options).make();
  };
  const bool has_positions = task.positions || x.size() > 1 || task.limit >= 0;
  if (!has_positions || options.needs_alone || x[0].extents[along] > Index{0x7fff'ffff})
    return make(DType::i64, process);
  detail::BestWay<DType> best(options);
  best.add(make(DType::i32, 0), DType::i32);
  best.add(make(DType::i64, 0), DType::i64);
  return process == 0 ? best.plan() : make(best.way(), process);
}
}  // namespace detail
}  // namespace tessera

namespace tessera::ops {

struct Sort {
  Terms terms = {};  ///< the letters of every operand are the results'
  char along = 0;
  SortTask task = {};
  Sharding out = {};

  constexpr OperatorKind kind() const { return task.kind; }
  constexpr std::string_view name() const {
    return !task.keys && terms.operands.size() == 1 ? std::string_view("arg-sort")
                                                    : name_of(task.kind);
  }
  constexpr Verdict check(const TensorDescs& x) const {
    if (const Verdict v = detail::check_sort_type(x[0].type); !v.ok()) return v;
    if (const Verdict v = detail::check_sort(terms, along, detail::shardings_of(x), out); !v.ok())
      return v;
    if (const Verdict v = detail::check_extents(terms, x, false); !v.ok()) return v;
    const int d = terms.result.find(along);
    if (task.kind == OperatorKind::top_k && (task.limit < 0 || task.limit > x[0].extents[d]))
      return {.rule = Rule::first_of_line, .left = task.limit, .right = x[0].extents[d], .dim = d};
    return {};
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames& names) const {
    if (v.rule == Rule::first_of_line)
      return tessera::explain(v, {.first = to_string(x[0].extents)});
    return tessera::detail::explain_terms(v, terms, x, names);
  }
  /// Returns the default sharding of the results: the keys'. Lines cut to their first elements are
  /// whole.
  constexpr Sharding deduced(const TensorDescs& x) const {
    Sharding s = x[0].sharding;
    const int d = terms.result.find(along);
    if (task.limit >= 0 && d >= 0 && d < s.rank()) s[d] = {};
    return s;
  }
  constexpr TensorDescs results(const TensorDescs& x) const {
    Extents extents = x[0].extents;
    if (task.limit >= 0) extents[terms.result.find(along)] = task.limit;
    TensorDescs made;
    for (int i = task.keys ? 0 : 1; i < x.size(); ++i) made.push_back({x[i].type, extents, out});
    if (task.positions) made.push_back({DType::i64, extents, out});
    return made;
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_sort(terms.result, terms.result.find(along), task, x, out, on.mesh,
                             on.process, on.options);
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("along", along);
    visit("descending", task.descending);
    visit("keys", task.keys);
    visit("positions", task.positions);
    if (task.limit >= 0) visit("first", task.limit);
    visit("kind", task.kind);
    visit("to", out);
  }
  constexpr bool operator==(const Sort&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Sort)
