// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Programs by which of their open layers run again, as they are recorded: what each holds and
/// costs, and which layers a limit on memory asks for.
///
///     RecordedLayers recorded(record, planning, options);
///     recorded.facts(again).peak;   recorded.within_limit()
///
/// For layers that are alike, how many run again matters more than which. The earlier ones do,
/// since what the later ones keep is read first on the way back.
///
/// Laws: no layer of within_limit() could be kept beside the others, where keeping fewer never
/// takes more memory, and none be exchanged for the next one of a cheaper kind; all layers run
/// again where no choice of them keeps the limit.
#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/program/choice/chosen_layer.hpp>
#include <tessera/program/choice/detail/alike_layers.hpp>
#include <tessera/program/choice/detail/way_prices.hpp>
#include <tessera/program/choice/options.hpp>
#include <tessera/program/peak.hpp>

namespace tessera::detail {

class RecordedLayers {
 public:
  using Again = std::vector<bool>;
  struct Facts {
    Index peak = 0;
    Cost cost = 0;
  };

  RecordedLayers(const RecordLayers& record, const PlanOptions& planning,
                 const ChooseOptions& options)
      : record_(record),
        kept_(record({})),
        prices_(kept_, planning, options),
        limit_(options.memory_limit),
        kinds_(alike_layers(kept_)) {
    for (const ProgramOpenLayer& layer : kept_.open_layers()) names_.push_back(layer.path);
    note(Again(size(), false), kept_);
  }

  /// Returns the Program all of whose layers are kept, and how many layers are open.
  const Program& kept() const { return kept_; }
  std::size_t size() const { return kinds_.size(); }
  const std::vector<std::string>& names() const { return names_; }
  /// Returns how many Programs have been recorded.
  int recorded() const { return recorded_; }

  Program program(const Again& again) {
    if (std::count(again.begin(), again.end(), true) == 0) return kept_;
    Program made = record_(again);
    note(again, made);
    return made;
  }
  const Facts& facts(const Again& again) {
    const auto known = facts_.find(again);
    if (known != facts_.end()) return known->second;
    (void)program(again);
    return facts_.at(again);
  }
  bool fits(const Again& again) { return facts(again).peak <= limit_; }

  /// Returns the layers that run again so that the Program keeps the limit as it is recorded, at
  /// least cost by the greedy rule: kinds of layers are kept in the order of time saved for a byte
  /// (Dantzig 1957), as many of each as fit; then layers are exchanged for some of cheaper kinds.
  const Again& within_limit() {
    if (!within_) within_ = find_within_limit();
    return *within_;
  }
  /// Returns the layers in the order in which they are kept.
  const std::vector<std::size_t>& order() {
    if (order_.empty()) find_order();
    return order_;
  }
  /// Returns what each layer costs and saves.
  std::vector<LayerPrice> prices() {
    (void)order();
    std::vector<LayerPrice> all;
    for (const int kind : kinds_) all.push_back(of_kind_[static_cast<std::size_t>(kind)]);
    return all;
  }
  /// Returns the choice in which all but the first `kept` layers of the order run again.
  Again but_first(std::size_t kept) {
    Again again(size(), true);
    for (std::size_t i = 0; i < kept; ++i) again[order()[i]] = false;
    return again;
  }
  /// Returns the layers of one kind, as they run.
  std::vector<std::size_t> of_kind(int kind) const {
    std::vector<std::size_t> all;
    for (std::size_t l = 0; l < size(); ++l)
      if (kinds_[l] == kind) all.push_back(l);
    return all;
  }
  int kinds() const { return 1 + *std::max_element(kinds_.begin(), kinds_.end()); }

 private:
  void note(const Again& again, const Program& made) {
    ++recorded_;
    facts_[again] = {peak_over_processes(made), prices_.of(made)};
  }
  /// Prices each kind by its last layer kept alone, and by its first one run again alone: which of
  /// the two decides about the peak depends on where that is.
  void find_order() {
    Again again(size(), true), kept(size(), false);
    const Facts all = facts(again), none = facts(kept);
    for (int kind = 0; kind < kinds(); ++kind) {
      const std::vector<std::size_t> layers = of_kind(kind);
      again[layers.back()] = false;
      kept[layers.front()] = true;
      const Facts one_kept = facts(again), one_again = facts(kept);
      again[layers.back()] = true;
      kept[layers.front()] = false;
      const Index bytes = std::max(one_kept.peak - all.peak, none.peak - one_again.peak);
      of_kind_.push_back(
          {kind, std::max<Cost>(all.cost - one_kept.cost, 0), std::max<Index>(bytes, 0)});
    }
    std::vector<LayerPrice> sorted = of_kind_;
    std::stable_sort(sorted.begin(), sorted.end(), [](const LayerPrice& a, const LayerPrice& b) {
      return static_cast<double>(a.saved) * static_cast<double>(b.bytes + 1) >
             static_cast<double>(b.saved) * static_cast<double>(a.bytes + 1);
    });
    for (const LayerPrice& kind : sorted) {
      const std::vector<std::size_t> layers = of_kind(kind.alike);
      order_.insert(order_.end(), layers.rbegin(), layers.rend());
    }
  }
  Again find_within_limit() {
    Again again(size(), false);
    if (fits(again)) return again;
    again.assign(size(), true);
    if (!fits(again)) return again;
    for (std::size_t begin = 0; begin < size();) {
      std::size_t end = begin + 1;
      while (end < size() && kinds_[order()[end]] == kinds_[order()[begin]]) ++end;
      const auto keep = [&](std::size_t to) {
        Again with = again;
        for (std::size_t i = begin; i < to; ++i) with[order()[i]] = false;
        return with;
      };
      std::size_t fitting = begin, too_many = end + 1;  // halved: how many of the kind are kept
      while (fitting + 1 < too_many) {
        const std::size_t middle = fitting + (too_many - fitting) / 2;
        (fits(keep(middle)) ? fitting : too_many) = middle;
      }
      again = keep(fitting);
      begin = end;
    }
    do {
      keep_more(again);
    } while (exchange(again));
    return again;
  }
  /// Keeps layers of any place that fit: another one of a kind may where the next does not.
  void keep_more(Again& again) {
    for (std::size_t l = 0; l < size(); ++l) {
      if (!again[l]) continue;
      again[l] = false;
      again[l] = !fits(again);
    }
  }
  /// Runs a layer again in place of one of a dearer kind, if that fits and pays.
  bool exchange(Again& again) {
    const Cost before = facts(again).cost;
    for (const LayerPrice& dear : of_kind_)
      for (const LayerPrice& cheap : of_kind_) {
        if (cheap.saved >= dear.saved) continue;
        Again with = again;
        std::vector<std::size_t> from = of_kind(dear.alike), to = of_kind(cheap.alike);
        std::erase_if(from, [&](std::size_t l) { return !again[l]; });
        std::erase_if(to, [&](std::size_t l) { return again[l]; });
        if (from.empty() || to.empty()) continue;
        with[from.back()] = false;
        with[to.front()] = true;
        if (!fits(with) || facts(with).cost >= before) continue;
        again = with;
        return true;
      }
    return false;
  }

  const RecordLayers& record_;
  Program kept_;
  Prices prices_;
  Index limit_;
  std::vector<int> kinds_;  ///< the kind of each layer
  std::vector<std::string> names_;
  std::map<Again, Facts> facts_;
  std::vector<LayerPrice> of_kind_;
  std::vector<std::size_t> order_;
  std::optional<Again> within_;
  int recorded_ = 0;
};

}  // namespace tessera::detail
