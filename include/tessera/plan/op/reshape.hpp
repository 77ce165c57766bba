// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that splits and merges dimensions; elements keep their row-major order.
///
///     ops::Reshape{{8, 16, 4, 8}, out}
#include <string>

#include <tessera/plan/check/shape_verdict.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/plan/region/reshape.hpp>

namespace tessera::ops {

struct Reshape {
  Extents extents = {};
  Sharding out = {};

  constexpr OperatorKind kind() const { return OperatorKind::reshape; }
  constexpr Verdict check(const TensorDescs& x) const {
    if (const Verdict v = check_extents(x[0].extents); !v.ok()) return v;
    return detail::check_shape(detail::shardings_of(x), extents.size(), out);
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames&) const {
    return tessera::explain(
        v, {.operands = 1, .first = to_string(x[0].extents), .second = to_string(extents)});
  }
  /// Returns the default sharding of the result: the leading dimension of each group that is split
  /// or merged keeps its axes, and inner ones are whole.
  constexpr Sharding deduced(const TensorDescs& x) const {
    return check_extents(x[0].extents).ok() ? detail::reshaped_sharding(x[0], extents)
                                            : Sharding::replicated(extents.size());
  }
  constexpr TensorDescs results(const TensorDescs& x) const { return {{x[0].type, extents, out}}; }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_reshape(x[0], results(x)[0], on.mesh, on.process, on.options);
  }
  /// The call that stands for all: no two dimensions, and no two blocks, hold the same elements.
  constexpr tessera::detail::StandIn<Reshape> stand_in(const TensorDescs& x) const {
    const int from_rank = x[0].sharding.rank(), to_rank = out.rank();
    const bool scalar = from_rank == 0 || to_rank == 0;
    Extents from(from_rank, scalar ? 1 : 11), to(to_rank, scalar ? 1 : 13);
    if (!scalar) {
      from.back() = to.back() = 17;
      for (int d = 1; d < to_rank; ++d) from.back() *= 13;
      for (int d = 1; d < from_rank; ++d) to.back() *= 11;
    }
    return {{to, out}, {{x[0].type, from, x[0].sharding}}};
  }
  constexpr Contract needs(const TensorDescs& x, const MeshShape& mesh, PlanOptions options) const {
    options.needs_alone = true;
    const auto call = stand_in(x);
    return call.operation.plan(call.operands, {mesh, 0, options}).needs;
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("extents", extents);
    visit("to", out);
  }
  constexpr bool operator==(const Reshape&) const = default;

 private:
  constexpr Verdict check_extents(const Extents& from) const {
    for (int d = 0; d < extents.size(); ++d)
      if (extents[d] < 0) return {.rule = Rule::extents_not_negative, .left = extents[d], .dim = d};
    if (const Index n = volume(from), m = volume(extents); n != m)
      return {.rule = Rule::volume_stays, .left = n, .right = m};
    return {};
  }
};

}  // namespace tessera::ops

TESSERA_OPERATION(Reshape)
