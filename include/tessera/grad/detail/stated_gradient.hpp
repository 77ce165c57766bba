// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The gradients of a call whose adjoint a user gives (grad/custom_gradient.hpp): they are checked,
/// and brought to where the tape keeps those of the operands.
///
///     detail::checked_gradient(g, x.desc(), site)     // as x is sharded
#include <string>
#include <vector>

#include <tessera/grad/tape.hpp>
#include <tessera/run/run.hpp>

namespace tessera::detail {

/// Returns a gradient that a user's function gave, as that of a tensor must be.
inline TensorCore checked_gradient(const TensorCore& g, const TensorDesc& of, CallSite site) {
  const AxisNames& names = g.mesh()->names();
  if (!(g.extents() == of.extents) || g.type() != of.type)
    throw UsageError(std::string(site.label) + ": the gradient by " + to_string(of, names) +
                         " is given as " + to_string(g.desc(), names) +
                         "; give a tensor of the same element type and extents",
                     site.where);
  const ops::Reshard move{of.sharding.finished()};
  return g.sharding() == move.out ? g : run({move, {&g}, site});
}

/// The gradients of a call whose adjoint is given.
TESSERA_FUNCTION void Tape::run_stated(const Node& node, std::size_t number_of_node,
                                       const std::vector<TensorCore>& cotangents, CallSite site) {
  const std::vector<TensorCore> gradients = node.back(cotangents);
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    if (node.operands[i] >= 0 && gradients[i].defined())
      add_gradient(node.operands[i], checked_gradient(gradients[i], node.given[i], site), site,
                   false, gives_last(node, number_of_node, i));
}

}  // namespace tessera::detail
