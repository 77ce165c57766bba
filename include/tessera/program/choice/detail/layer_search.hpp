// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How open layers and shardings are chosen together.
///
///     Choice choice = LayerSearch(record, planning, options).make();
///
/// A layer that runs again changes which operators there are, so each choice of layers is a Program
/// of its own, whose shardings are chosen. For most choices the search only looks at what they hold
/// and cost as recorded: that says in which order layers are kept (recorded_layers.hpp). How many
/// are kept in this order is found by halving, since the price falls while tensors need not be
/// split for memory's sake, and rises once layers run again for nothing; then one layer more and
/// one less of each kind is tried.
///
/// Laws: those of program/choice.hpp; no layer runs again where the cheapest shardings keep the
/// limit without; the choice costs no more than that of the Program all of whose layers are kept,
/// nor than the recorded Program whose layers RecordedLayers::within_limit names.
#include <algorithm>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/base/error.hpp>
#include <tessera/program/choice.hpp>
#include <tessera/program/choice/detail/choose.hpp>
#include <tessera/program/choice/detail/recorded_layers.hpp>
#include <tessera/program/choice/table.hpp>

namespace tessera::detail {

class LayerSearch {
 public:
  LayerSearch(const RecordLayers& record, const PlanOptions& planning, const ChooseOptions& options)
      : planning_(planning), options_(options), recorded_(record, planning, options) {}

  Choice make() {
    const Again none(recorded_.size(), false);
    if (options_.stated != nullptr)
      take(again_by_name(recorded_.names(), options_.stated->layers));
    else if (recorded_.size() == 0 || options_.memory_limit == max_int64)
      take(none);
    else if (options_.keep_shardings)
      take(of_recorded()), says_prices_ = !recorded_.fits(none);
    else
      search(none);
    return finished();
  }

 private:
  using Again = RecordedLayers::Again;
  /// What is known of a choice of layers, once its shardings have been chosen.
  struct Value {
    bool found = false;
    Cost cost = infeasible;
    Index peak = 0;  ///< the least that was seen
    bool at_most(const Value& other) const {
      if (found != other.found) return found;
      return found ? cost <= other.cost : peak < other.peak;
    }
  };

  /// Returns the layers that a limit asks for as tensors are recorded, or the previous ones where
  /// these keep it at no more cost.
  Again of_recorded() {
    const Again anew = recorded_.within_limit();
    if (options_.previous == nullptr) return anew;
    const Again before = again_by_name(recorded_.names(), options_.previous->layers);
    const bool stays =
        recorded_.fits(before) && recorded_.facts(before).cost <= recorded_.facts(anew).cost;
    return stays ? before : anew;
  }
  void search(const Again& none) {
    ChooseOptions unlimited = options_;
    unlimited.memory_limit = max_int64;
    Choice free = choose(recorded_.kept(), planning_, unlimited);
    ++searched_;
    const Index peak = peak_over_processes(free.program);
    if (free.found && peak <= options_.memory_limit) {
      free.memory_limit = options_.memory_limit;
      free.least_peak = peak;
      best_ = std::move(free);
      best_again_ = none;
      return;
    }
    says_prices_ = true;
    const auto previous = std::exchange(options_.previous, nullptr);
    options_.prices = std::make_shared<Prices>(recorded_.kept(), planning_, options_);
    const std::size_t n = recorded_.size();
    (void)value(none);
    (void)value(recorded_.within_limit());
    std::size_t least = 0, most = n;  // how many run again
    while (least < most) {
      const std::size_t middle = least + (most - least) / 2;
      if (value(recorded_.but_first(n - middle))
              .at_most(value(recorded_.but_first(n - middle - 1))))
        most = middle;
      else
        least = middle + 1;
    }
    (void)value(recorded_.but_first(n - least));
    try_neighbours();
    if (previous != nullptr) {
      (void)value(again_by_name(recorded_.names(), previous->layers), true);
      options_.previous = previous;
      if (!best_again_.empty()) take(best_again_);
    }
    if (best_again_.empty()) std::rethrow_exception(refused_);
  }
  /// Tries one layer more and one less of each kind.
  void try_neighbours() {
    for (int kind = 0; kind < recorded_.kinds() && recorded_.kinds() > 1; ++kind) {
      const std::vector<std::size_t> layers = recorded_.of_kind(kind);
      for (const bool more : {false, true}) {
        Again again = best_again_;  // the earlier ones of a kind run again
        std::size_t l = 0;
        while (l < layers.size() && again[layers[l]]) ++l;
        if (more ? l == layers.size() : l == 0) continue;
        again[layers[more ? l : l - 1]] = more;
        (void)value(again);
      }
    }
  }
  /// Returns what a choice of layers leads to, and takes it if it is the best one so far;
  /// `preferred`: also if it is as good.
  const Value& value(const Again& again, bool preferred = false) {
    const auto known = values_.find(again);
    if (known != values_.end() && !preferred) return known->second;
    ++searched_;
    Choice choice;
    try {
      choice = choose(recorded_.program(again), planning_, options_);
    } catch (const ShardingError&) {  // what is pinned has no place within the limits
      refused_ = std::current_exception();
      return values_[again] = {false, infeasible, recorded_.facts(again).peak};
    }
    const Value one{choice.found, choice.cost, choice.least_peak};
    const Value best{best_.found, best_.cost, best_.least_peak};
    if (best_again_.empty() || (preferred ? one.at_most(best) : !best.at_most(one))) {
      best_ = std::move(choice);
      best_again_ = again;
    }
    return values_[again] = one;
  }
  void take(Again again) {
    best_ = choose(recorded_.program(again), planning_, options_);
    best_again_ = std::move(again);
    ++searched_;
  }
  Choice finished() {
    for (std::size_t l = 0; l < recorded_.size(); ++l)
      best_.layers.push_back({recorded_.names()[l], best_again_[l]});
    for (const auto& [again, one] : values_)
      best_.least_peak = std::min(best_.least_peak, one.peak);
    if (recorded_.size() > 0) {
      const auto& kept = recorded_.facts(Again(recorded_.size(), false));
      best_.before = kept.cost;
      if (options_.memory_limit != max_int64) best_.peak_kept = kept.peak;
    }
    if (says_prices_) best_.layer_prices = recorded_.prices();
    best_.recorded = recorded_.recorded();
    best_.searched = searched_;
    return std::move(best_);
  }

  PlanOptions planning_;
  ChooseOptions options_;
  RecordedLayers recorded_;
  std::map<Again, Value> values_;
  Choice best_;
  Again best_again_;
  std::exception_ptr refused_;  ///< why a choice of layers has no choice of shardings
  bool says_prices_ = false;
  int searched_ = 0;
};

TESSERA_FUNCTION Choice choose_layers(const RecordLayers& record, const PlanOptions& planning,
                                      const ChooseOptions& options) {
  return LayerSearch(record, planning, options).make();
}

}  // namespace tessera::detail
