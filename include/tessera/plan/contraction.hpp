// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A local product of two blocks as a batched GEMM: which dimensions play m, n, k and batch, and which operand must be
/// permuted first. Decided from the labels alone.
///
///     Contraction c = contraction("bqhd", "bkhd", "bhqk");     // no permutation: strides do
///     Gemm g = gemm_of(c, extents of a, b and the result)
///
/// Laws: an operand is permuted only when its m (or n) or k dimensions are not one strided run each.
#include <tessera/base/local_work.hpp>
#include <tessera/plan/equation.hpp>

namespace tessera {

/// Labels by role, and the order in which each tensor is to be stored.
struct Contraction {
  Term batch, m, n, k;
  Term a, b, c;  ///< the given orders, or permuted ones
};

namespace detail {
/// Returns true when the labels of `group` stand next to each other in `term`, in the same order.
constexpr bool is_run(const Term& term, const Term& group) {
  if (group.empty()) return true;
  const int first = term.find(group[0]);
  for (int i = 0; i < group.size(); ++i)
    if (first + i >= term.size() || term[first + i] != group[i]) return false;
  return true;
}
constexpr bool ends_with(const Term& term, const Term& group) {
  return !group.empty() && term.size() > 0 && term.back() == group.back();
}
/// A matrix of `rows` x `columns` can be had from `term` by strides: both are runs and one of them is innermost.
constexpr bool is_matrix(const Term& term, const Term& rows, const Term& columns) {
  if (!is_run(term, rows) || !is_run(term, columns)) return false;
  return (rows.empty() && columns.empty()) || ends_with(term, rows) || ends_with(term, columns);
}
constexpr Term joined(const Term& x, const Term& y, const Term& z) {
  Term all;
  for (char c : x) all.push_back(c);
  for (char c : y) all.push_back(c);
  for (char c : z) all.push_back(c);
  return all;
}
constexpr Index stride_of(const Term& term, const Extents& strides, const Term& group) {
  return group.empty() ? 1 : strides[term.find(group.back())];
}
constexpr Index extent_of(const Term& term, const Extents& extents, const Term& group) {
  Index product = 1;
  for (char label : group) product = saturating_mul(product, extents[term.find(label)]);
  return product;
}
}  // namespace detail

/// Returns the roles of the labels of a * b -> c and the stored orders. Every label is in at least two of the three.
constexpr Contraction contraction(const Term& a, const Term& b, const Term& c) {
  Contraction result;
  for (char label : c) {
    const bool left = a.contains(label);
    const bool right = b.contains(label);
    (left && right ? result.batch : left ? result.m : result.n).push_back(label);
  }
  for (char label : a)
    if (!c.contains(label)) result.k.push_back(label);
  const auto stored = [&](const Term& given, const Term& rows, const Term& columns) {
    return detail::is_matrix(given, rows, columns) ? given : detail::joined(result.batch, rows, columns);
  };
  result.a = stored(a, result.m, result.k);
  result.b = stored(b, result.k, result.n);
  result.c = stored(c, result.m, result.n);
  return result;
}

/// Returns the GEMM of blocks whose extents, in the stored orders, are ea, eb and ec. A product whose result has m
/// innermost is computed as its transpose.
constexpr Gemm gemm_of(const Contraction& roles, const Extents& ea, const Extents& eb, const Extents& ec, bool& swapped) {
  const Extents sa = row_major_strides(ea);
  const Extents sb = row_major_strides(eb);
  const Extents sc = row_major_strides(ec);
  Gemm gemm;
  const Index m = detail::extent_of(roles.a, ea, roles.m);
  const Index n = detail::extent_of(roles.b, eb, roles.n);
  gemm.k = detail::extent_of(roles.a, ea, roles.k);
  // Row-major A (m x k): k innermost is plain, m innermost is transposed; likewise B (k x n) and C (m x n).
  const bool a_plain = roles.m.empty() ? !roles.k.empty() : detail::ends_with(roles.a, roles.k);
  const bool b_plain = roles.k.empty() ? !roles.n.empty() : detail::ends_with(roles.b, roles.n);
  const bool c_plain = roles.m.empty() || detail::ends_with(roles.c, roles.n);
  const Index a_lead = a_plain ? detail::stride_of(roles.a, sa, roles.m) : detail::stride_of(roles.a, sa, roles.k);
  const Index b_lead = b_plain ? detail::stride_of(roles.b, sb, roles.k) : detail::stride_of(roles.b, sb, roles.n);
  const Index c_lead = c_plain ? detail::stride_of(roles.c, sc, roles.m) : detail::stride_of(roles.c, sc, roles.n);
  const Index a_inner = a_plain ? gemm.k : m;
  const Index b_inner = b_plain ? n : gemm.k;
  const Index c_inner = c_plain ? n : m;
  swapped = !c_plain;
  gemm.m = swapped ? n : m;
  gemm.n = swapped ? m : n;
  gemm.transpose_a = swapped ? b_plain : !a_plain;
  gemm.transpose_b = swapped ? a_plain : !b_plain;
  gemm.lda = max_of(1, swapped ? max_of(b_lead, b_inner) : max_of(a_lead, a_inner));
  gemm.ldb = max_of(1, swapped ? max_of(a_lead, a_inner) : max_of(b_lead, b_inner));
  gemm.ldc = max_of(1, max_of(c_lead, c_inner));
  for (char label : roles.batch) {
    gemm.batch.push_back(ea[roles.a.find(label)]);
    gemm.batch_a.push_back(sa[roles.a.find(label)]);
    gemm.batch_b.push_back(sb[roles.b.find(label)]);
    gemm.batch_c.push_back(sc[roles.c.find(label)]);
  }
  if (swapped) {
    const Extents other = gemm.batch_a;
    gemm.batch_a = gemm.batch_b;
    gemm.batch_b = other;
  }
  return gemm;
}

}  // namespace tessera
