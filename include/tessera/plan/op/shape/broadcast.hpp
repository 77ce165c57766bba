// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that repeats a tensor: dimension d of the operand becomes dimension dims[d] of the
/// result, and along the others, and along those of extent 1, all elements are the same.
///
///     ops::Broadcast{{1, 2}, {4, 8, 6}, out}.plan({x}, {mesh, process, options})     // x is 8 x 6
#include <string>

#include <tessera/plan/check/shape_verdict.hpp>
#include <tessera/plan/operation.hpp>

namespace tessera::ops {

struct Broadcast {
  Dimensions dims = {};
  Extents extents = {};  ///< of the result
  Sharding out = {};

  constexpr OperatorKind kind() const { return OperatorKind::broadcast; }
  constexpr Verdict check(const TensorDescs& x) const {
    const int rank = extents.size();
    if (x[0].rank() > rank) return {.rule = Rule::broadcast_fits};
    if (dims.size() != x[0].rank())
      return {.rule = Rule::number_each, .left = dims.size(), .right = x[0].rank()};
    if (const Verdict v = detail::check_dimensions(dims, rank); !v.ok()) return v;
    for (int d = 0; d < rank; ++d)
      if (extents[d] < 0) return {.rule = Rule::extents_not_negative, .left = extents[d], .dim = d};
    for (int d = 0; d < dims.size(); ++d)
      if (const Index n = x[0].extents[d]; n != 1 && n != extents[dims[d]])
        return {.rule = Rule::broadcast_fits, .dim = d};
    return detail::check_shape(detail::shardings_of(x), rank, out);
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames&) const {
    return tessera::explain(
        v, {.operands = 1,
            .first = v.rule == Rule::number_each ? tessera::detail::entries_text("dims", v)
                                                 : to_string(x[0].extents),
            .second = to_string(extents)});
  }
  /// Returns the default sharding of the result: what does not stretch keeps its axes, and the
  /// rest is whole.
  constexpr Sharding deduced(const TensorDescs& x) const {
    Sharding s = Sharding::replicated(extents.size());
    for (int d = 0; d < dims.size() && d < x[0].rank(); ++d)
      if (dims[d] >= 0 && dims[d] < extents.size() && !stretches(x[0], d))
        s[dims[d]] = x[0].sharding[d];
    return s.with_partial(x[0].sharding.partial, x[0].sharding.reduction);
  }
  constexpr TensorDescs results(const TensorDescs& x) const { return {{x[0].type, extents, out}}; }
  /// Each process takes the elements that its block of the result repeats, and repeats them.
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    detail::PlanBuilder build(kind(), on.mesh, on.process, on.options);
    const Term labels = detail::default_labels(extents.size());
    Term own;
    Sharding needed = Sharding::replicated(x[0].rank());
    for (int d = 0; d < dims.size(); ++d) {
      own.push_back(labels[dims[d]]);
      if (!stretches(x[0], d)) needed[d] = out[dims[d]];
    }
    const int slot =
        build.reshard(build.operand(x[0], own), needed.with_partial(out.partial, out.reduction));
    return build.finish(build.stretch(slot, {x[0].type, extents, out}, labels), out);
  }
  /// The call that stands for all: nothing of the operand stretches.
  constexpr tessera::detail::StandIn<Broadcast> stand_in(const TensorDescs& x) const {
    return {{dims, Extents(out.rank(), 5040), out}, tessera::detail::stand_ins(x)};
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("dimensions", detail::as_numbers(dims));
    visit("extents", extents);
    visit("to", out);
  }
  constexpr bool operator==(const Broadcast&) const = default;

 private:
  constexpr bool stretches(const TensorDesc& x, int d) const {
    return x.extents[d] == 1 && extents[dims[d]] != 1;
  }
};

}  // namespace tessera::ops

TESSERA_OPERATION(Broadcast)
