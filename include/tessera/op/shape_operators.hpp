// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operators that move elements and compute nothing, on erased tensors: what op/operators.hpp
/// is for the others. Slice, pad and their siblings end here.
///
///     TensorCore y = detail::slice(x, {0, 2}, {4, 6}, {}, out, {"slice", where});
#include <string>

#include <tessera/op/operators.hpp>
#include <tessera/op/outside.hpp>
#include <tessera/plan/shape_text.hpp>
#include <tessera/plan/shape_verdict.hpp>

namespace tessera::detail {

inline void require(const ShapeVerdict& verdict, int operands, CallSite site) {
  if (verdict.ok()) return;
  const std::string text = std::string(site.label) + ": " + explain(verdict, operands);
  if (verdict.rule == ShapeRule::unfinished_alike || verdict.rule == ShapeRule::open_operand)
    throw ShardingError(text, site.where);
  throw ShapeError(text, site.where);
}
/// Throws ShapeError with a text of plan/shape_text.hpp, if there is one.
inline void require_no(const std::string& text, CallSite site) {
  if (!text.empty()) throw ShapeError(std::string(site.label) + ": " + text, site.where);
}
/// Throws unless unfinished values may have this value beside them.
inline void require_fill(const FillValue& fill, const TensorCore& x, CallSite site) {
  const Sharding& s = x.sharding();
  if (s.partial.empty() || fill.stays_under(s.reduction)) return;
  throw ShardingError(std::string(site.label) + ": the operand is " +
                          to_string(s, x.mesh()->names()) +
                          ", and the value that lies outside it would be joined once for each part "
                          "of the unfinished values; a sum takes 0 there, a product 0 or 1; "
                          "reshard the operand to a finished spec first",
                      site.where);
}

inline Shardings shardings_of(const OperandList& operands) {
  Shardings shardings;
  for (const TensorCore* operand : operands) shardings.push_back(operand->sharding());
  return shardings;
}

/// Carries out what `make` says is taken, once it is checked; `key` has all that this depends on
/// but the operands and `out`.
template <class Make>
TensorCore take(PlanKey& key, const OperandList& operands, const Sharding& out, CallSite site,
                const FillValue& fill, const Make& make) {
  MeshCore& mesh = mesh_of(*operands[0], site);
  for (const TensorCore* operand : operands) key.add(operand->desc());
  key.add(out);
  Extras extras;
  extras.fill = fill.data();
  return run_operator(key, operands, site, extras, [&](const PlanOptions& options) {
    const Taking taken = make();
    require(check_shape(shardings_of(operands), taken.extents.size(), out), operands.size(), site);
    require_sharding(out, mesh, site);
    for (int k = 1; k < operands.size(); ++k)
      if (operands[k]->type() != operands[0]->type())
        throw ShapeError(std::string(site.label) + ": operand 1 is of " +
                             std::string(name_of(operands[0]->type())) + " and operand " +
                             std::to_string(k + 1) + " of " +
                             std::string(name_of(operands[k]->type())) +
                             "; tensors that are put together have one element type; cast one of "
                             "them",
                         site.where);
    return plan_take(taken, descs_of(operands), out, mesh.shape(), mesh.process(), options);
  });
}

inline TensorCore slice(const TensorCore& x, const Extents& start, const Extents& limit,
                        const Extents& stride, const Sharding& out, CallSite site) {
  mesh_of(x, site);
  PlanKey key(OperatorKind::slice);
  key.add("start", start);
  key.add("limit", limit);
  key.add("stride", stride);
  return take(key, {&x}, out, site, {}, [&] {
    require_no(slice_text(x.extents(), start, limit, stride), site);
    return slice_of(x.extents(), start, limit, stride);
  });
}

}  // namespace tessera::detail
