// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The sharding of a result that the user left open: a function of names alone, so that it can be
/// part of a type.
///
///     // P<data,_,model> and P<data,model> give P<data,_,model>
///     detail::deduce(parse("bsm,mh->bsh"), {x, w})
///
/// Laws: an output dimension takes its operands' sharding; on conflict dimensions that all operands
/// share win, then the left operand's; an axis is used once. (GShard 3.3.2: batch dimensions have
/// priority.)
#include <limits>

#include <tessera/plan/equation.hpp>
#include <tessera/spec/sharding.hpp>

namespace tessera {

namespace detail {
template <> inline constexpr Limit list_limit<Sharding, max_operands> = Limit::operands;
template <> inline constexpr Limit list_limit<TensorDesc, max_operands> = Limit::operands;
}  // namespace detail
using Shardings = FixedVector<Sharding, max_operands>;
using TensorDescs = FixedVector<TensorDesc, max_operands>;

namespace detail {
constexpr Shardings shardings_of(const TensorDescs& tensors) {
  Shardings shardings;
  for (const TensorDesc& tensor : tensors) shardings.push_back(tensor.sharding);
  return shardings;
}

/// Returns the extents of `labels`, each from the first operand that has the label; labels that no
/// operand has get the extents in `others`, in order.
constexpr Extents extents_of(const Term& labels, const Terms& terms, const TensorDescs& descs,
                             const Extents& others = {}) {
  Extents extents;
  int next = 0;
  for (char label : labels) {
    Index extent = -1;
    for (int t = 0; t < descs.size() && extent < 0; ++t)
      if (const int d = terms.operands[t].find(label); d >= 0) extent = descs[t].extents[d];
    extents.push_back(extent >= 0 ? extent : others[next++]);
  }
  return extents;
}

/// Returns the number of elements that are summed into each element of the result.
constexpr Index reduced_count(const Terms& terms, const Extents& extents) {
  Index count = 1;
  for (int d = 0; d < extents.size(); ++d)
    if (!terms.result.contains(terms.operands[0][d])) count = saturating_mul(count, extents[d]);
  return count;
}

/// Returns what turns these sums into means: 1 / their number of elements, or NaN of none.
constexpr double mean_scale(const Terms& terms, const Extents& extents) {
  const Index count = reduced_count(terms, extents);
  return count > 0 ? 1.0 / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

/// The letters of a tensor, each once, and the sharding of its diagonal over the repeated letters.
struct Diagonal {
  Term labels;
  Sharding
      sharding;  ///< `partial`: the axes over which the diagonal is a sum, besides the tensor's own
};

/// Returns the diagonal of a tensor: the first dimension of a letter that is split keeps its axes.
/// The other dimensions' axes split the diagonal's elements among processes that own the same part
/// of it. So the diagonal is a sum over those axes, and each process contributes zero for the
/// elements that it does not hold.
constexpr Diagonal diagonal_of(const Term& term, const Sharding& sharding) {
  Diagonal result;
  AxisSet open = sharding.partial;
  for (int d = 0; d < term.size(); ++d) {
    const int at = result.labels.find(term[d]);
    if (at < 0) {
      result.labels.push_back(term[d]);
      result.sharding.dims.push_back(sharding[d]);
    } else if (result.sharding[at].empty()) {
      result.sharding[at] = sharding[d];
    } else {
      open = open | sharding[d].set();
    }
  }
  result.sharding = result.sharding.with_partial(open, Reduction::sum);
  return result;
}

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

/// Returns the position at which a letter first repeats, or -1.
constexpr int repeated_label(const Term& term) {
  for (int i = 0; i < term.size(); ++i)
    for (int j = 0; j < i; ++j)
      if (term[i] == term[j]) return i;
  return -1;
}

/// Returns the finished sharding of the result of an operator with these terms.
constexpr Sharding deduce(const Terms& terms, const Shardings& operands) {
  for (int i = 0; i < operands.size(); ++i)
    if (repeated_label(terms.operands[i]) >= 0) {
      Terms once = terms;
      Shardings diagonals = operands;
      const Diagonal diagonal = diagonal_of(terms.operands[i], operands[i]);
      once.operands[i] = diagonal.labels;
      diagonals[i] = diagonal.sharding;
      return deduce(once, diagonals);
    }
  Sharding out = Sharding::replicated(terms.result.size());
  AxisSet used;
  for (int pass = 0; pass < 2; ++pass)
    for (int i = 0; i < operands.size(); ++i)
      for (int d = 0; d < out.rank(); ++d)
        if ((pass == 0) == (operands.size() > 1 && detail::in_all_operands(terms, terms.result[d])))
          detail::take_sharding(terms, operands, i, d, used, out);
  return out;
}
}  // namespace detail
}  // namespace tessera
