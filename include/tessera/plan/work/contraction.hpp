// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A local product of two blocks as a batched GEMM: which dimensions are m, n, k and batch, and
/// which operand must be permuted first. Only labels decide.
///
///     const Terms t = parse("bqhd,bkhd->bhqk");                // no permutation: strides do
///     detail::Contraction roles = detail::contraction(t.operands[0], t.operands[1], t.result);
///     detail::ContractionWork w = detail::contraction_work(a, b, c);           // of blocks with local extents
///
/// Blocks may be stored in panels along one dimension, the layout of collectives: each panel is
/// then a separate product, and nothing is unpacked or packed.
///
/// Laws: an operand is permuted only when its m (or n) or k dimensions are not adjacent; dimensions
/// of extent 1 do not count, since they may lie anywhere. In a block
/// with its own strides, rows that are not one strided run become separate products; its k
/// dimensions form one run.
#include <tessera/base/local_work.hpp>
#include <tessera/plan/equation.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera::detail {

/// Labels by role, and the order in which each tensor is to be stored.
struct Contraction {
  Term batch, m, n, k;
  Term a, b, c;  ///< the given orders, or permuted ones
};

/// Returns true when the labels of `group` are adjacent in `term`, in the same order.
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
/// Returns true when `term` is a strided matrix of `rows` x `columns`: both are runs and one of
/// them is innermost.
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

/// Returns the roles of the labels of a * b -> c and the stored orders. Every label must be in at
/// least two of the three. `units`: labels of dimensions of extent 1, which have no role.
constexpr Contraction contraction(const Term& a, const Term& b, const Term& c,
                                  const Term& units = {}) {
  Contraction result;
  for (char label : c) {
    const bool left = a.contains(label);
    const bool right = b.contains(label);
    (left && right ? result.batch : left ? result.m : result.n).push_back(label);
  }
  for (char label : a)
    if (!c.contains(label)) result.k.push_back(label);
  const auto counted = [&](const Term& all) { return letters_without(all, units); };
  const auto stored = [&](const Term& given, const Term& rows, const Term& columns) {
    return is_matrix(counted(given), counted(rows), counted(columns))
               ? given
               : joined(result.batch, rows, columns);
  };
  result.a = stored(a, result.m, result.k);
  result.b = stored(b, result.k, result.n);
  result.c = stored(c, result.m, result.n);
  for (Term* group : {&result.batch, &result.m, &result.n, &result.k}) *group = counted(*group);
  return result;
}

/// Panels narrower than this are not worth separate products: they are unpacked.
inline constexpr Index least_panel = 64;
/// Panels along a dimension that is summed are at least this wide. Each panel is one more pass over
/// the result, which libraries make for every 256 to 384 of the sum anyhow; unpacking passes twice
/// over the operand alone, which is small beside the result where the sum is short. Half types have
/// no such panels: their sums are rounded once.
inline constexpr Index least_summed_panel = 256;

/// Returns true when a product may read or write the block of `given` as panels along dimension d
/// of local extent n: when it is stored as given, the panels are wide enough, and the dimension
/// comes first in its role, so that a panel is a run in the other blocks.
constexpr bool takes_panels(const Contraction& roles, DType type, const Term& given,
                            const Term& stored, int d, Index n, int panels) {
  const bool loops_fit = roles.batch.size() + 4 <= max_dims;  // two for m, two for n
  if (!(given == stored) || !loops_fit) return false;
  const char label = given[d];
  const auto leads = [&](const Term& group) { return !group.empty() && group[0] == label; };
  if (leads(roles.k)) return !is_short(type) && n / panels >= least_summed_panel;
  return (leads(roles.m) || leads(roles.n)) && n / panels >= least_panel;
}

/// One block of a product: its labels, its local extents, and the dimension of its panels, if any;
/// its strides, if it is not contiguous.
struct ContractionBlock {
  Term labels;
  Extents extents;
  int panel_dim = -1;
  int panels = 1;
  Extents strides{};       ///< in a part of a larger block in panels, those within a panel, and
  Index panel_stride = 0;  ///< the distance from one panel to the next
};

/// Returns the block of a slot without dimensions that have extent 1 in the whole tensor. (Where
/// this process has none of such a dimension it stays, so that the block is empty.) In a plan with
/// halos all stay, as for the planner (plan/op/product/product_of_two.hpp): there the elements
/// along the dimension before one of extent 1 may lie apart.
constexpr ContractionBlock without_units(const ContractionBlock& block, const Slot& slot,
                                         const Plan& plan) {
  if (!plan.halos.empty()) return block;
  const Extents& whole = slot.desc.extents;
  ContractionBlock left{{}, {}, -1, block.panels, {}, block.panel_stride};
  for (int d = 0; d < block.labels.size(); ++d) {
    if (whole[d] == 1 && block.extents[d] == 1 && d != block.panel_dim) continue;
    if (d == block.panel_dim) left.panel_dim = left.labels.size();
    left.labels.push_back(block.labels[d]);
    left.extents.push_back(block.extents[d]);
    if (!block.strides.empty()) left.strides.push_back(block.strides[d]);
  }
  return left;
}

/// A product of blocks as GEMMs: `gemm` once for each of k_panels, adding up, the operands
/// advancing by k_step.
struct ContractionWork {
  Gemm gemm;
  bool swapped =
      false;  ///< the operands are multiplied in reverse order: the result has m innermost
  int k_panels = 1;
  Index k_step_a = 0;  ///< elements, of the first and the second operand as given
  Index k_step_b = 0;
  constexpr bool operator==(const ContractionWork&) const = default;
};

/// The storage of one block, and the distance to the next panel along a label.
struct StoredBlock {
  Term labels;
  Extents extents;  ///< of one panel
  Extents strides;  ///< within a panel
  char panelled = 0;
  int panels = 1;
  Index panel_stride = 0;

  constexpr explicit StoredBlock(const ContractionBlock& block)
      : labels(block.labels), extents(block.extents) {
    if (block.panel_dim >= 0) {
      panelled = labels[block.panel_dim];
      panels = block.panels;
      extents[block.panel_dim] /= block.panels;
    }
    strides = block.strides.empty() ? row_major_strides(extents) : block.strides;
    panel_stride = block.panel_stride > 0 ? block.panel_stride : volume(extents);
  }
  /// Returns how many leading labels of `group` are not in one strided run with the labels after
  /// them.
  constexpr int apart(const Term& group) const {
    for (int i = group.size() - 1; i > 0; --i) {
      const int inner = labels.find(group[i]), outer = labels.find(group[i - 1]);
      if (strides[outer] != strides[inner] * extents[inner]) return i;
    }
    return 0;
  }
  /// Returns the distance covered by `count` panels of `width` along `label`, when `label` has
  /// `all` such panels; 0 when this block lacks the label. One of this block's own panels may be as
  /// wide as several of these.
  constexpr Index step(char label, Index width, int count, int all) const {
    const int d = labels.find(label);
    if (d < 0) return 0;
    const int own = label == panelled ? all / panels : all;
    return label == panelled && count % own == 0 ? count / own * panel_stride
                                                 : count * width * strides[d];
  }
};

/// Returns the work of the product of two blocks.
constexpr ContractionWork contraction_work(const ContractionBlock& a, const ContractionBlock& b,
                                           const ContractionBlock& c) {
  Contraction roles = contraction(a.labels, b.labels, c.labels);
  const StoredBlock sa(a), sb(b), sc(c);
  const auto panels_of =
      [&](char label) {  // the fewest and the most panels of a block along the label
        FixedVector<int, 2> parts{1, 1};
        for (const ContractionBlock* block : {&a, &b, &c})
          if (block->panel_dim >= 0 && block->labels[block->panel_dim] == label) {
            parts[0] = parts[0] == 1 || block->panels < parts[0] ? block->panels : parts[0];
            parts[1] = block->panels > parts[1] ? block->panels : parts[1];
          }
        return parts;
      };
  // Row-major A (m x k): k innermost is plain, m innermost is transposed; likewise B (k x n) and C
  // (m x n).
  const bool a_plain = roles.m.empty() ? !roles.k.empty() : ends_with(roles.a, roles.k);
  const bool b_plain = roles.k.empty() ? !roles.n.empty() : ends_with(roles.b, roles.n);
  const bool c_plain = roles.m.empty() || ends_with(roles.c, roles.n);
  const Index a_lead = stride_of(sa.labels, sa.strides, a_plain ? roles.m : roles.k);
  const Index b_lead = stride_of(sb.labels, sb.strides, b_plain ? roles.k : roles.n);
  const Index c_lead = stride_of(sc.labels, sc.strides, c_plain ? roles.m : roles.n);

  ContractionWork work;
  Gemm& gemm = work.gemm;
  for (char label : roles.batch) {
    gemm.batch.push_back(sa.extents[sa.labels.find(label)]);
    gemm.batch_a.push_back(sa.strides[sa.labels.find(label)]);
    gemm.batch_b.push_back(sb.strides[sb.labels.find(label)]);
    gemm.batch_c.push_back(sc.strides[sc.labels.find(label)]);
  }
  // Rows (or columns) that are not in one run are separate products.
  for (const bool left : {true, false}) {
    Term& group = left ? roles.m : roles.n;
    const StoredBlock& given = left ? sa : sb;
    Term run;
    const int first = static_cast<int>(max_of(given.apart(group), sc.apart(group)));
    for (int i = 0; i < group.size(); ++i) {
      if (i >= first) {
        run.push_back(group[i]);
        continue;
      }
      const int d = given.labels.find(group[i]);
      gemm.batch.push_back(given.extents[d]);
      gemm.batch_a.push_back(left ? given.strides[d] : 0);
      gemm.batch_b.push_back(left ? 0 : given.strides[d]);
      gemm.batch_c.push_back(sc.strides[sc.labels.find(group[i])]);
    }
    group = run;
  }
  Index m = extent_of(a.labels, a.extents, roles.m);
  Index n = extent_of(b.labels, b.extents, roles.n);
  gemm.k = extent_of(a.labels, a.extents, roles.k);
  for (const Term* group : {&roles.m, &roles.n}) {
    if (group->empty()) continue;
    const char label = (*group)[0];
    const FixedVector<int, 2> parts = panels_of(label);
    const int all = parts[1];
    if (all == 1) continue;
    const Index width = c.extents[c.labels.find(label)] / all;
    const int within = all / parts[0];
    const auto loop = [&](int times, int count) {
      gemm.batch.push_back(times);
      gemm.batch_a.push_back(sa.step(label, width, count, all));
      gemm.batch_b.push_back(sb.step(label, width, count, all));
      gemm.batch_c.push_back(sc.step(label, width, count, all));
    };
    loop(parts[0], within);           // from one of the wider panels to the next
    if (within > 1) loop(within, 1);  // and within it
    (group == &roles.m ? m : n) /= all;
  }
  if (const int parts = roles.k.empty() ? 1 : panels_of(roles.k[0])[1]; parts > 1) {
    const Index width = a.extents[a.labels.find(roles.k[0])] / parts;
    work.k_panels = parts;
    work.k_step_a = sa.step(roles.k[0], width, 1, parts);
    work.k_step_b = sb.step(roles.k[0], width, 1, parts);
    gemm.k /= parts;
  }
  const Index lda = max_of(a_lead, a_plain ? gemm.k : m);
  const Index ldb = max_of(b_lead, b_plain ? n : gemm.k);
  gemm.ldc = max_of(1, max_of(c_lead, c_plain ? n : m));
  work.swapped = !c_plain;
  gemm.m = work.swapped ? n : m;
  gemm.n = work.swapped ? m : n;
  gemm.transpose_a = work.swapped ? b_plain : !a_plain;
  gemm.transpose_b = work.swapped ? a_plain : !b_plain;
  gemm.lda = max_of(1, work.swapped ? ldb : lda);
  gemm.ldb = max_of(1, work.swapped ? lda : ldb);
  if (work.swapped) {
    const Extents other = gemm.batch_a;
    gemm.batch_a = gemm.batch_b;
    gemm.batch_b = other;
  }
  return work;
}

}  // namespace tessera::detail
