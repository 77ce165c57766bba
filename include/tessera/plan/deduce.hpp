// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The sharding of a result that the user left open: a function of names alone, so that it can be
/// part of a type.
///
///     deduce(parse("bsm,mh->bsh"), {x, w})          // P<data,_,model> from P<data,_,model> and
///     P<data,model>
///
/// Laws: an output dimension takes its operands' sharding; on conflict dimensions that all operands
/// share win, then the left operand's; an axis is used once. (GShard 3.3.2: batch dimensions have
/// priority.)
#include <tessera/plan/equation.hpp>
#include <tessera/spec/sharding.hpp>

namespace tessera {

using Shardings = FixedVector<Sharding, max_operands>;

namespace detail {
constexpr bool in_all_operands(const Terms& terms, char label) {
  for (const Term& term : terms.operands)
    if (!term.contains(label)) return false;
  return true;
}
/// Gives output dimension d the first non-empty sharding that an operand has for its label.
constexpr void take_sharding(const Terms& terms, const Shardings& operands, int operand, int d,
                             AxisSet& used, Sharding& out) {
  const int at = terms.operands[operand].find(terms.result[d]);
  if (at < 0 || !out[d].empty()) return;
  const AxisList free = operands[operand][at].without(used);
  out[d] = free;
  used = used | free.set();
}
}  // namespace detail

/// Returns the finished sharding of the result of an operator with these terms.
constexpr Sharding deduce(const Terms& terms, const Shardings& operands) {
  Sharding out = Sharding::replicated(terms.result.size());
  AxisSet used;
  for (int pass = 0; pass < 2; ++pass)
    for (int i = 0; i < operands.size(); ++i)
      for (int d = 0; d < out.rank(); ++d)
        if ((pass == 0) == (operands.size() > 1 && detail::in_all_operands(terms, terms.result[d])))
          detail::take_sharding(terms, operands, i, d, used, out);
  return out;
}

}  // namespace tessera
