// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Calls of an operator whose plan moves elements while it works, for less than moving them first:
/// a product that is made in rounds, a concatenation that sends each block where it belongs.
///
///     add_whole_calls(prices, entry, operands, result, mesh, ways)
///
/// Laws: afterwards no call between placements, or where the tensors lie, costs less than the ways
/// with their moves.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include <tessera/program/choice/detail/way_prices.hpp>

namespace tessera::detail {

class WholeCalls {
 public:
  WholeCalls(Prices& prices, const ProgramEntry& e, const TensorDescs& operands,
             const TensorDesc& result, const MeshShape& mesh)
      : prices_(prices), e_(e), operands_(operands) {
    for (const TensorDesc& x : operands) tensors_.push_back(tensor(x, mesh));
    tensors_.push_back(tensor(result, mesh));
    for (const Tensor& t : tensors_) calls_ = std::min(calls_ * t.places.size(), most_calls + 1);
  }
  bool too_many() const { return calls_ > most_calls; }
  /// Returns whether every tensor lies as a placement does.
  bool are_of_placements() const { return of_placements_; }

  void add_to(std::vector<PricedWay>& all) {
    for (const PricedWay& one : all) add_way(one);
    std::vector<std::size_t> at(tensors_.size());
    for (std::size_t call = 0; call < calls_; ++call) {
      std::size_t rest = call;
      for (std::size_t k = 0; k < at.size(); rest /= tensors_[k++].places.size())
        at[k] = rest % tensors_[k].places.size();
      const Cost known = least(at);
      if (known <= least_work_) continue;  // nothing is moved that could be hidden
      Way way;
      for (std::size_t k = 0; k + 1 < at.size(); ++k)
        way.operands.push_back(tensors_[k].places[at[k]]);
      way.out = tensors_.back().places[at.back()];
      const std::optional<PricedWay> one = prices_.priced(e_, operands_, way);
      if (!one || one->cost >= known) continue;
      all.push_back(*one);
      add_way(*one);
    }
  }

 private:
  /// A tensor's places, and those that each way has for it, as numbers of `moves`.
  struct Tensor {
    MovePrices* moves;
    std::vector<Sharding> places;
    std::vector<int> numbers, of_way = {};
  };
  Tensor tensor(const TensorDesc& x, const MeshShape& mesh) {
    MovePrices& moves = prices_.moves(x, e_.contract);
    std::vector<Sharding> places = placements(x.extents, mesh);
    if (!is_placement(x.sharding, x.extents, mesh)) {
      places.push_back(x.sharding);
      of_placements_ = false;
    }
    return {&moves, places, moves.places_of(places)};
  }
  void add_way(const PricedWay& one) {
    for (std::size_t k = 0; k + 1 < tensors_.size(); ++k)
      tensors_[k].of_way.push_back(tensors_[k].moves->place(one.way.operands[static_cast<int>(k)]));
    tensors_.back().of_way.push_back(tensors_.back().moves->place(one.way.out));
    work_.push_back(one.cost);
    least_work_ = std::min(least_work_, one.cost);
  }
  /// Returns the least price of moving tensors to a way, and its result from there.
  Cost least(const std::vector<std::size_t>& at) const {
    Cost least = infeasible;
    for (std::size_t w = 0; w < work_.size(); ++w) {
      Cost cost = work_[w];
      for (std::size_t k = 0; k < at.size() && cost < least; ++k) {
        const Tensor& t = tensors_[k];
        const int place = t.numbers[at[k]];
        const bool made = k + 1 == at.size();
        cost = add_costs(
            cost, made ? t.moves->toll(t.of_way[w], place) : t.moves->toll(place, t.of_way[w]));
      }
      least = std::min(least, cost);
    }
    return least;
  }

  Prices& prices_;
  const ProgramEntry& e_;
  const TensorDescs& operands_;
  std::vector<Tensor> tensors_;  ///< the operands, then the result
  std::size_t calls_ = 1;
  std::vector<Cost> work_;  ///< the work of each way
  Cost least_work_ = infeasible;
  bool of_placements_ = true;
};

inline bool add_whole_calls(Prices& prices, const ProgramEntry& e, const TensorDescs& operands,
                            const TensorDesc& result, const MeshShape& mesh,
                            std::vector<PricedWay>& all) {
  WholeCalls calls(prices, e, operands, result, mesh);
  if (calls.too_many()) return false;
  // A map's plan brings its operands to where it works and its result from there, each move by
  // itself: between placements it is a way with its moves. Contracts are of the whole call.
  const bool is_way = e.plan->kind == OperatorKind::map && !e.contract.bounded();
  if (!is_way || !calls.are_of_placements()) calls.add_to(all);
  return true;
}

}  // namespace tessera::detail
