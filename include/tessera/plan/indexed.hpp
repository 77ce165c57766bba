// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The letters of takes, scatters and their like: which are indexed, and what their extents are.
///
///     indices_of_take(parse("vm,bs->bsm")) == 1
///     take_terms(2, 1, 0).result == Term{'A', 'b'}       // of x (a, b) at (A)
///
/// Laws: a take has one tensor of indices for each letter of the table that its result drops, in
/// the table's order; a scatter for each letter of its result that the updates lack.
#include <tessera/plan/map.hpp>

namespace tessera {

/// Returns the terms of a take along dimension `dim` of a tensor, which the indices' dimensions
/// replace: NumPy's take.
constexpr Terms take_terms(int rank, int indices_rank, int dim) {
  Terms terms;
  Term x = default_labels(rank), i;
  for (int d = 0; d < indices_rank; ++d) i.push_back(static_cast<char>('A' + d));
  terms.well_formed = dim >= 0 && dim < rank && rank - 1 + indices_rank <= max_dims;
  terms.operands = {x, i};
  if (!terms.well_formed) return terms;
  for (int d = 0; d < rank; ++d) {
    if (d != dim) terms.result.push_back(x[d]);
    for (int k = 0; d == dim && k < indices_rank; ++k) terms.result.push_back(i[k]);
  }
  return terms;
}

/// How many tensors of indices a take has, and a scatter; and whether a scatter has an operand.
constexpr int indices_of_take(const Terms& terms) {
  return letters_without(terms.operands[0], terms.result).size();
}
constexpr int indices_of_scatter(const Terms& terms) {
  return letters_without(terms.result, terms.operands.back()).size();
}
constexpr bool has_operand(const Terms& scatter) {
  return scatter.operands.size() == indices_of_scatter(scatter) + 2;
}

/// Returns by what the parts of a take's result are joined: as the caller asks, or as the table is
/// unfinished, else by a sum (of truth values, any). All but one are neutral, so that each is
/// exact.
constexpr Reduction take_reduction(const TensorDesc& x, const Sharding& out) {
  if (!out.partial.empty()) return out.reduction;
  if (!x.sharding.partial.empty()) return x.sharding.reduction;
  return is_boolean(x.type) ? Reduction::any : Reduction::sum;
}

}  // namespace tessera
