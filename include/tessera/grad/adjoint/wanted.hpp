// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Under which sharding the gradient of a result is made. It is the result's own, but where the
/// operator only brought its operand to more processes: then it is the one that the operand's
/// gradient is wanted under, so that a sum over processes ends in a reduce-scatter and not in an
/// all-reduce of which each process keeps a part.
///
///     // y = reshard(x) of P<data,_> to P<_,_>; z = einsum(b, y): dy is made under P<data,_>
///
/// An argument's gradient may be wanted unfinished over some axes: a product or convolution that
/// makes it then leaves the sum over them open, for who reads it to finish under another shape.
///
/// Laws: a gradient's values are the same under every sharding. Source: ZeRO (Rajbhandari et al.
/// 2020), section 5; weight-update sharding (Xu et al. 2020), section 2.2.
#include <tessera/grad/adjoint/parts.hpp>

namespace tessera::detail {

/// Returns whether gathering over axes leads from one sharding to another: the axes of each
/// dimension begin with the other's.
inline bool gathers_to(const Sharding& from, const Sharding& to) {
  if (!from.partial.empty() || !to.partial.empty() || from.rank() != to.rank()) return false;
  for (int d = 0; d < from.rank(); ++d) {
    if (from[d].size() < to[d].size()) return false;
    for (int i = 0; i < to[d].size(); ++i)
      if (from[d][i] != to[d][i]) return false;
  }
  return true;
}

inline Shardings finished_shardings(const TensorDescs& x) {
  Shardings own;
  for (const TensorDesc& one : x) own.push_back(one.sharding.finished());
  return own;
}

/// Returns the shardings under which the gradients of a call's results come.
inline Shardings coming(const AdjointCall& call) {
  Shardings all = finished_shardings(call.results);
  if (call.operands.size() != 1) return all;
  const Sharding from = call.operands[0].sharding, wanted = call.wanted[0].finished();
  if (call.operation.get_if<ops::Reshard>() != nullptr && gathers_to(wanted, all[0]))
    all[0] = wanted;
  // A function of the index knows where the block of its result lies, and has no identity.
  if (const auto* map = call.operation.get_if<ops::Map>();
      map != nullptr && map->terms.operands[0] == map->terms.result && from == all[0] &&
      call.kernel.identity != nullptr)
    all[0] = wanted;
  if (const auto* transpose = call.operation.get_if<ops::Transpose>(); transpose != nullptr) {
    const Term &own = transpose->terms.operands[0], &made = transpose->terms.result;
    if (sharding_of(made, own, from.finished()) == all[0]) all[0] = sharding_of(made, own, wanted);
  }
  return all;
}

}  // namespace tessera::detail
