// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that extends the blocks of tensors by halos, and its adjoint, which adds halos to
/// their owners; from tensors, or in place in extended blocks.
///
///     const Halo halo{{1, 1, Boundary::periodic}, {2, 0, Boundary::none}};
///     ops::HaloExchange{{halo}}                     // of one tensor, or of each
///     ops::HaloExchange{{halo, other}, true, true}  // the adjoint in place, of two
#include <tessera/plan/check/type_rules.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/plan/region/halo.hpp>

namespace tessera {
namespace detail {

constexpr void add_to(Digest& digest, const HaloDim& d) {
  add_to(digest, d.low);
  add_to(digest, d.high);
  add_to(digest, d.boundary);
}
}  // namespace detail

namespace ops {
struct HaloExchange {
  FixedVector<Halo, max_operands> halos = {};  ///< one for all tensors, or one for each
  bool adjoint = false;
  bool in_place = false;  ///< the operands are extended blocks, and only their halos move

  constexpr OperatorKind kind() const {
    return adjoint ? OperatorKind::halo_adjoint : OperatorKind::halo;
  }
  constexpr Verdict check(const TensorDescs& x) const {
    for (int i = 0; i < x.size(); ++i) {
      if (!x[i].sharding.partial.empty()) return {Rule::halo_of_finished, i};
      Verdict v = detail::check_halo(x[i].extents, halo(i));
      v.operand = i;
      if (!v.ok()) return v;
      v = detail::check_one_type(Rule::halo_types_alike, x[0].type, x[i].type, i);
      if (!v.ok()) return v;
    }
    return adjoint ? detail::check_product_type(x[0].type) : Verdict{};
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames& names) const {
    const TensorDesc& one = x[v.operand];
    if (v.rule == Rule::halo_of_finished || v.rule == Rule::halo_types_alike)
      return tessera::explain(v, {.operands = x.size(), .first = to_string(one.sharding, names)});
    return tessera::explain(v, one.extents) + " (" + to_string(one, names) + ")";
  }
  constexpr TensorDescs results(const TensorDescs& x) const { return x; }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    FixedVector<Halo, max_operands> each;
    for (int i = 0; i < x.size(); ++i) each.push_back(halo(i));
    return tessera::detail::plan_halo_of(x, each, adjoint, {Corners::cheaper, in_place}, on.mesh,
                                         on.process, on.options);
  }
  /// Widths of 1 stand for all.
  constexpr tessera::detail::StandIn<HaloExchange> stand_in(const TensorDescs& x) const {
    tessera::detail::StandIn<HaloExchange> call{*this, tessera::detail::stand_ins(x)};
    for (Halo& one : call.operation.halos)
      for (HaloDim& d : one)
        if (d.low > 0 || d.high > 0) d = {1, 1, Boundary::periodic};
    return call;
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("halos", halos);
    visit("adjoint", adjoint);
    visit("in place", in_place);
  }
  constexpr bool operator==(const HaloExchange&) const = default;

 private:
  constexpr Halo halo(int i) const {
    if (halos.size() == 1) return halos[0];
    return i < halos.size() ? halos[i] : Halo{};
  }
};
}  // namespace ops
}  // namespace tessera

TESSERA_OPERATION(HaloExchange)
