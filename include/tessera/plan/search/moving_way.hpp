// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The ways to plan an operator that moves elements and computes nothing (plan/region/shape.hpp,
/// plan/op/shape/reshape.hpp), and which is the best: the sharding of its result while it is made,
/// and the axes over which operands are gathered first.
///
///     Resting rests({x}, out, result, mesh);
///     Plan p = best_moving(make, rests.list(), moving, process, options);    // make(way, process)
///
/// Laws: ways are compared by the plans of process 0, so all processes decide alike; one that keeps
/// the contract comes before any that does not.
#include <tessera/plan/builder.hpp>
#include <tessera/plan/elementwise.hpp>
#include <tessera/plan/search/best_way.hpp>

namespace tessera::detail {
constexpr Sharding without_axes(Sharding s, AxisSet gone) {
  for (int d = 0; d < s.rank(); ++d) s[d] = s[d].without(gone);
  return s;
}

/// Returns `to` split further over the axes `spare`: each along the dimension of `dims` where
/// `like` has it or, if that is too short or there is none, along the first that is long enough; if
/// none is, the axis is left out. `whatever_extents`: treat all dimensions as long enough.
template <class Dims>
constexpr Sharding spread(const Extents& extents, Sharding to, const Sharding& like, AxisSet spare,
                          const Dims& dims, const MeshShape& mesh, bool whatever_extents = false) {
  const auto put = [&](int d, int axis) {
    const Index parts = saturating_mul(static_cast<Index>(mesh.parts(to[d])), mesh[axis]);
    if (!spare.contains(axis) || (extents[d] < parts && !whatever_extents)) return;
    to[d].push_back(axis);
    spare.erase(axis);
  };
  for (int d : dims)
    for (int i = 0; i < like[d].size(); ++i) put(d, like[d][i]);
  for (int axis = 0; axis < mesh.rank(); ++axis)
    for (int d : dims) put(d, axis);
  return to;
}

/// The sharding of a result while it is made.
enum class Rest : std::uint8_t {
  there,   ///< as requested
  spread,  ///< as requested, and also split over the axes that only operands use: it is gathered at
           ///< the end
  beside,  ///< the same over those of them along which nothing moves
  operand  ///< like the first operand that is split
};
/// How the operands come to the result.
struct MovingWay {
  Rest rest = Rest::there;
  AxisSet
      gathered;  ///< the axes, among those with movement, over which operands are gathered first
  AxisSet moving = {};  ///< for Rest::beside: the axes with movement
};

/// The possible shardings of a result that is made from operands with as many dimensions.
/// Unfinished operands are taken unfinished, and the result is finished or scattered at the end.
class Resting {
 public:
  /// `extents`: of one of the results. A contract holds for all extents, so extents do not decide
  /// under one.
  constexpr Resting(const Shardings& operands, const Sharding& out, const Extents& extents,
                    const MeshShape& mesh, const Contract& contract)
      : mesh_(mesh), whatever_extents_(contract.bounded()) {
    int split = 0;  // only names decide, not the sizes of axes
    while (split + 1 < operands.size() && operands[split].used().empty()) ++split;
    if (operands[split].used().empty()) split = 0;
    operand_ = without_unit_axes(operands[split], mesh);
    for (const Sharding& x : operands) spare_ = spare_ | without_unit_axes(x, mesh).used();
    const AxisSet open = operand_.partial;
    there_ =
        without_axes(without_unit_axes(out, mesh), open).with_partial(open, operand_.reduction);
    spare_ = spare_ - there_.used();
    list_.push_back(Rest::there);
    const Sharding wide = at({Rest::spread, {}}, extents);
    if (!(wide == there_)) list_.push_back(Rest::spread);
    const bool whole = operand_.used().empty() && open.empty();
    if (!whole && !(operand_ == there_) && !(operand_ == wide)) list_.push_back(Rest::operand);
  }
  constexpr Sharding at(const MovingWay& way, const Extents& extents) const {
    if (way.rest == Rest::operand) return operand_;
    if (way.rest == Rest::there) return there_;
    Dimensions all;
    for (int d = 0; d < extents.size(); ++d) all.push_back(d);
    const AxisSet spare = way.rest == Rest::beside ? spare_ - way.moving : spare_;
    return spread(extents, there_, operand_, spare, all, mesh_, whatever_extents_);
  }
  constexpr const FixedVector<Rest, 3>& list() const { return list_; }

 private:
  using Dimensions = FixedVector<int, max_dims>;

  MeshShape mesh_;
  bool whatever_extents_;
  Sharding there_, operand_;
  AxisSet spare_;
  FixedVector<Rest, 3> list_;
};

/// Adds the plans make(way, 0) of a way that exchange moving elements; that gather first, so that
/// the rest is local; and that gather only where an exchange is not allowed. A gather must not move
/// more than the exchange in its place. `make` sets `moving` to the axes over which data move.
template <class Way, class Make>
constexpr void add_gathered_too(BestWay<Way>& best, Way way, const Make& make,
                                const AxisSet& moving, const PlanOptions& options) {
  const Plan direct = make(way, 0);
  best.add(direct, way);
  if (best.done()) return;
  const Index most = options.needs_alone ? max_int64 : bytes_moved(direct);
  const AxisSet all = moving, barred = all - options.contract.axes(Collective::exchange);
  for (const AxisSet gathered : {all, barred}) {
    if (gathered.empty()) continue;
    way.gathered = gathered;
    best.add(make(way, 0), way, most);
    if (barred == all) break;
  }
}

/// Returns the best plan make(way, process) among those whose result has one of the shardings

template <class Make>
constexpr Plan best_moving(const Make& make, const FixedVector<Rest, 3>& rests,
                           const AxisSet& moving, int process, const PlanOptions& options) {
  BestWay<MovingWay> best(options);
  add_gathered_too(best, {}, make, moving, options);
  for (const Rest rest : rests) {
    if (rest == Rest::there || best.done()) continue;
    best.add(make({rest, {}}, 0), {rest, {}});
    // What one process has may go to all along some axes, and stay in shares along the others.
    const MovingWay beside{Rest::beside, {}, moving};
    if (rest == Rest::spread && !moving.empty() && !options.needs_alone)
      best.add(make(beside, 0), beside);
  }
  return process == 0 ? best.plan() : make(best.way(), process);
}
}  // namespace tessera::detail
