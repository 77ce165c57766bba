// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Calls whose adjoint is stated: a user's (grad/custom_gradient.hpp), and moves between meshes. A
/// tape records them as they are; the gradients that they give are checked, and brought to where it
/// keeps those of the operands.
///
///     detail::checked_gradient(g, x.desc(), site)     // as x is sharded
#include <string>
#include <vector>

#include <tessera/grad/adjoint/parts.hpp>
#include <tessera/grad/tape.hpp>
#include <tessera/op/call/operators.hpp>

namespace tessera::detail {

TESSERA_FUNCTION void Tape::record(const Back& back, const std::vector<TensorCore>& arguments,
                                   const std::vector<TensorCore>& results,
                                   const std::vector<TensorCore>& kept, CallSite site,
                                   Stated stated) {
  Node node;
  bool any = false;
  for (const TensorCore& x : arguments) {
    node.operands.push_back(follows(x) ? number_of(x) : -1);
    node.given.push_back(x.desc());
    any = any || node.operands.back() >= 0;
  }
  if (!any || results.empty()) return;
  for (const TensorCore& y : results) {
    node.results.push_back(is_differentiable(y.type()) ? add_value(y) : -1);
    if (node.results.back() >= 0 && stated == Stated::seen) takes_parts_.back() = true;
    node.made.push_back(y.desc());
  }
  for (const TensorCore& x : kept) node.kept.push_back({{}, x, writes_[memory_of(x)]});
  node.back = back;
  node.stated = stated;
  node.mesh = results[0].mesh();
  add_node(std::move(node), site);
}

/// Returns a gradient that a user's function gave, as that of a tensor must be.
inline TensorCore checked_gradient(const TensorCore& g, const TensorDesc& of, CallSite site) {
  const AxisNames& names = g.mesh()->names();
  if (!(g.extents() == of.extents) || g.type() != of.type)
    throw UsageError(std::string(site.label) + ": the gradient by " + to_string(of, names) +
                         " is given as " + to_string(g.desc(), names) +
                         "; give a tensor of the same element type and extents",
                     site.where);
  return moved_to(g, of.sharding.finished(), site);
}

/// The gradients of a call whose adjoint is given.
TESSERA_FUNCTION void Tape::run_stated(const Node& node, std::size_t number_of_node,
                                       const std::vector<TensorCore>& cotangents, CallSite site) {
  const std::vector<TensorCore> gradients = node.back(cotangents);
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    if (node.operands[i] >= 0 && gradients[i].defined())
      add_gradient(node.operands[i],
                   node.stated == Stated::seen
                       ? gradients[i]
                       : checked_gradient(gradients[i], node.given[i], site),
                   site, false, gives_last(node, number_of_node, i));
}

}  // namespace tessera::detail
