// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Two extents that disagree, as a sentence: their dimensions, by letter or by number, their
/// operands, and the operands' shardings.
///
///     detail::extents_text(parse("ik,kj->ij"), operands, false, names)
///     // "ik,kj->ij": k is 7 in operand 1 (dimension 1 of float 5x7 P<data,model>, split over model)
///     // and 6 in operand 2 (dimension 0 of float 6x3 P<_,_>, not split); one letter has one extent; ...
///
/// Laws: empty where check_extents finds no error.
#include <string>

#include <tessera/plan/check/verdict.hpp>
#include <tessera/plan/elementwise.hpp>
#include <tessera/plan/text.hpp>

namespace tessera::detail {

/// A dimension of an operand: "operand 1 (dimension 1 of float 5x7 P<data,model>, split over
/// model)".
inline std::string dimension_text(const TensorDescs& operands, int operand, int d,
                                  const AxisNames& names) {
  const TensorDesc& desc = operands[operand];
  const AxisList axes = desc.sharding[d];
  std::string split;
  for (int i = 0; i < axes.size(); ++i)
    split += (i > 0 ? "," : "split over ") + std::string(names[axes[i]]);
  return "operand " + std::to_string(operand + 1) + " (dimension " + std::to_string(d) + " of " +
         to_string(desc, names) + ", " + (axes.empty() ? "not split" : split) + ")";
}

/// Whether terms are implicit: dimensions aligned from the right.
inline bool from_the_right(const Terms& terms) {
  FixedVector<int, max_operands> ranks;
  for (const Term& term : terms.operands) ranks.push_back(term.size());
  return broadcast_terms(ranks) == terms;
}

/// Returns the error of check_extents as text; `stretch` as there.
inline std::string extents_text(const Terms& terms, const TensorDescs& operands, bool stretch,
                                const AxisNames& names) {
  const Verdict v = check_extents(terms, operands, stretch);
  if (v.ok()) return "";
  // The pair that check_extents found: `right` is an extent of operand v.operand, `left` of an
  // earlier dimension.
  int other = 0, at = 0, d = 0;
  for (int i = v.operand; i >= 0; --i)
    for (int k = operands[i].rank() - 1; k >= 0; --k) {
      if (terms.operands[i][k] != v.label) continue;
      if (operands[i].extents[k] == v.left) other = i, at = k;
      if (i == v.operand && operands[i].extents[k] == v.right) d = k;
    }
  const std::string first = detail::dimension_text(operands, other, at, names);
  const std::string second = detail::dimension_text(operands, v.operand, d, names);
  const std::string left = std::to_string(v.left), right = std::to_string(v.right);
  if (stretch && detail::from_the_right(terms))
    return "an extent is " + left + " in " + first + " and " + right + " in " + second +
           "; dimensions line up from the right, and their extents are equal or 1; make them so, "
           "or "
           "say by letters which belong together, as in map<\"ab,a->ab\">(f, x, y)";
  const std::string letter(1, v.label);
  return "\"" + to_text(terms) + "\": " + letter + " is " + left + " in " + first + " and " +
         right + " in " + second + "; one letter stands for one extent" +
         (stretch ? ", or 1" : "") + "; make the extents equal, or use two letters";
}
}  // namespace tessera::detail
