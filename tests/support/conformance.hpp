// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Cases that a partitioner must get right, as a table: tests plan them at full size
/// (tests/plan/conformance.test.cpp) and run them at shrunk extents
/// (tests/op/conformance.loopback.cpp and .mpi.cpp).
///
///     for (const Conformance& row : support::conformance()) plans_of(row, row.mesh) ...
///
/// The names are those of the collection of such cases that the design works with (D and RD:
/// products, R: reductions, T: transposes, B: broadcasts, X: changes of sharding, U: results left
/// open). A layout that a row leaves open is chosen here. What is no operator of its own is written
/// as one: products of ragged groups with a tensor that says who belongs where, what one process
/// alone has as a sum with zeros. An arg-max, which the collection has as a reduction of pairs, is
/// both the operator and the largest of integers that hold value and place.
#include <string>
#include <utility>
#include <vector>

#include <tessera/plan/op/product/einsum_order.hpp>
#include <tessera/plan/op/shape/transpose.hpp>

#include "enumerate.hpp"

namespace support {

/// The most that a plan may communicate. `moves` counts all-to-alls, permutes and exchanges
/// together; a reduce-scatter may stand wherever an all-reduce may. Another plan of no more steps
/// must be cheaper than the row's own, which takes `payload` bytes a process.
struct Most {
  int all_reduces = 0;
  int all_gathers = 0;
  int reduce_scatters = 0;
  int moves = 0;
  Index payload = -1;
};

struct Conformance {
  std::string name;
  OperatorKind kind = OperatorKind::einsum;
  std::string equation;  ///< empty for a reshard
  TensorDescs operands;
  Sharding out;
  MeshShape mesh;
  Most most;
  Reduction reduction = Reduction::sum;
  MeshShape small = {};  ///< the mesh to run on where `mesh` has more than 8 processes
  bool runs() const { return mesh.processes() <= 8 || small.rank() > 0; }
  Terms terms() const {
    if (kind != OperatorKind::reshard) return parse(equation);
    Terms same;
    same.operands = {detail::default_labels(operands[0].rank())};
    same.result = same.operands[0];
    return same;
  }
};

namespace rows_of {
inline TensorDesc tensor(const Extents& extents, const Sharding& s) {
  return {DType::f32, extents, s};
}
inline Conformance product(const char* name, const char* equation, const Extents& a,
                           const Sharding& sa, const Extents& b, const Sharding& sb,
                           const Sharding& out, const MeshShape& mesh, const Most& most,
                           const MeshShape& small = {}) {
  return {name, OperatorKind::einsum, equation, {tensor(a, sa), tensor(b, sb)}, out, mesh,
          most, Reduction::sum,       small};
}
inline Conformance reduction(const char* name, const char* equation, Reduction kind,
                             const Extents& x, const Sharding& s, const Sharding& out,
                             const MeshShape& mesh, const Most& most) {
  return {name, OperatorKind::reduce, equation, {tensor(x, s)}, out, mesh, most, kind};
}
inline Conformance place_of_largest(const char* name, const char* equation, const Extents& x,
                                    const Sharding& s, const Sharding& out, const MeshShape& mesh,
                                    const Most& most) {
  return {name, OperatorKind::arg, equation, {tensor(x, s)}, out, mesh, most, Reduction::max};
}
inline Conformance transposition(const char* name, const char* equation, const Extents& x,
                                 const Sharding& s, const Sharding& out, const MeshShape& mesh) {
  return {name, OperatorKind::transpose, equation, {tensor(x, s)}, out, mesh, {}};
}
inline Conformance mapping(const char* name, const char* equation, const TensorDescs& x,
                           const Sharding& out, const MeshShape& mesh, const Most& most) {
  return {name, OperatorKind::map, equation, x, out, mesh, most};
}
inline Conformance change(const char* name, const Extents& extents, const Sharding& from,
                          const Sharding& to, const MeshShape& mesh, const Most& most,
                          const MeshShape& small = {}) {
  return {name, OperatorKind::reshard, "",   {tensor(extents, from)}, to, mesh,
          most, Reduction::sum,        small};
}
}  // namespace rows_of

inline std::vector<Conformance> conformance_products() {
  using rows_of::product, rows_of::tensor;
  const MeshShape two{2}, square{2, 2}, cube{2, 2, 2};
  const Most nothing{};
  return {
      product("D1", "mk,kn->mn", {128, 64}, {{}, {0}}, {64, 256}, {{0}, {}}, {{}, {}}, two,
              {.all_reduces = 1}),
      product("D3", "mk,nk->mn", {24, 64}, {{}, {}}, {39296, 64}, {{0}, {}}, {{}, {0}}, two,
              nothing),
      product("D5", "abm,abn->mn", {16, 32, 7}, {{0}, {}, {}}, {16, 32, 64}, {{0}, {1}, {}},
              {{}, {0}}, MeshShape{4, 2}, {.all_reduces = 2}),
      product("D7", "bmk,bnk->bmn", {32, 24, 64}, {{0}, {}, {}}, {32, 39296, 64}, {{0}, {}, {}},
              {{0}, {}, {}}, two, nothing),
      product("D9", "bmk,bnk->bmn", {32, 24, 64}, {{}, {0}, {}}, {32, 39296, 64}, {{0}, {}, {}},
              {{0}, {}, {}}, two, {.moves = 1}),
      product("D11", "bmkl,bnkl->bmn", {32, 24, 64, 128}, {{}, {}, {0}, {1}}, {32, 39296, 64, 128},
              {{}, {}, {0}, {1}}, {{}, {}, {}}, square, {.all_reduces = 2}),
      product("D13", "bmpk,bnk->bmpn", {32, 24, 64, 128}, {{}, {0}, {1}, {}}, {32, 39296, 128},
              {{}, {}, {}}, {{}, {0}, {1}, {}}, square, nothing),
      product("D13 mirrored", "bnk,bmpk->bnmp", {32, 39296, 128}, {{}, {}, {}}, {32, 24, 64, 128},
              {{}, {0}, {1}, {}}, {{}, {}, {0}, {1}}, square, nothing),
      product("D15", "mk,nk->mn", {48, 12}, {{0}, {1}}, {32, 12}, {{1}, {0}}, {{0}, {1}}, square,
              {.all_gathers = 2}),
      product("D17", "mk,nk->mn", {48, 100}, {{}, {}}, {32, 100}, {{0}, {1}}, {{0}, {1}}, square,
              {.all_gathers = 1, .moves = 1, .payload = 2 * 16 * 50 * 4}),
      product("D19", "bmk,bnk->bmn", {4, 24, 100}, {{0}, {1}, {}}, {4, 32, 100}, {{0}, {1}, {}},
              {{0}, {1}, {}}, square, {.all_gathers = 1}),
      product("D21", "bmk,bnk->bmn", {4, 24, 100}, {{0}, {}, {1}}, {4, 32, 100}, {{}, {}, {}},
              {{0}, {1}, {}}, square, {.moves = 1, .payload = 2 * 12 * 50 * 4}),
      product("D23", "acmk,acnk->acmn", {4, 8, 24, 100}, {{0}, {}, {1}, {}}, {4, 8, 32, 100},
              {{0}, {}, {1}, {}}, {{}, {0}, {1}, {}}, square, {.all_gathers = 1, .moves = 1}),
      product("D25", "mk,nk->mn", {24, 100}, {{}, {0}}, {32, 100}, {{}, {0}}, {{}, {}}, square,
              {.all_reduces = 1}),
      product("D27", "mk,nk->mn", {24, 100}, {{}, {0}}, {32, 100}, {{}, {0}}, {{}, {1}}, cube,
              {.all_reduces = 1, .moves = 1}),
      product("D29", "mpk,nk->mpn", {24, 8, 100}, {{0}, {}, {}}, {32, 100}, {{1}, {0}},
              {{0}, {}, {1}}, square, {.all_gathers = 1}),
      product("D31", "mpk,kn->mpn", {24, 8, 100}, {{0}, {}, {1}}, {100, 50}, {{1}, {0}},
              {{0}, {1}, {}}, square, {.all_gathers = 1, .reduce_scatters = 1}),
      // Both operands move to where the result is: the whole left one, and the right one from {8,
      // 4} to {4, 8}.
      product("D33", "mk,npk->npm", {32, 97}, {{1, 0}, {}}, {48, 64, 97}, {{0}, {1}, {}},
              {{1}, {0}, {}}, MeshShape{8, 4}, {.all_gathers = 1, .moves = 1}, MeshShape{4, 2}),
      product("D35", "ik,kj->ij", {4000, 4000}, {{0}, {1}}, {4000, 4000}, {{0}, {1}}, {{0}, {1}},
              MeshShape{2, 4}, {.all_gathers = 2}),
      product("D37", "bsxk,xkno->bsno", {8, 1024, 2, 1536}, {{0, 1}, {}, {2}, {}},
              {2, 1536, 512, 1}, {{2}, {}, {1}, {}}, {{0, 1}, {}, {2}, {}}, cube,
              {.all_reduces = 1, .all_gathers = 1}),
      product("D39", "mk,knp->mnp", {64, 64}, {{0}, {1}}, {64, 64, 64}, {{}, {0}, {1, 2}},
              {{0}, {1}, {}}, cube,
              {.all_reduces = 1, .all_gathers = 1, .moves = 1, .payload = (64 + 128 + 256) * 1024}),
      // The window is as large as the image: a product over batch, height and width.
      product("D41", "bhwf,bhwg->fg", {128, 56, 56, 64}, {{}, {0}, {}, {}}, {128, 56, 56, 256},
              {{0}, {}, {}, {}}, {{}, {}}, two, {.all_reduces = 1, .moves = 1}),
      {"RD1",
       OperatorKind::einsum,
       "bmk,gbkn,bmg->bmn",
       {tensor({16, 32, 64}, {{0}, {}, {1}}), tensor({4, 16, 64, 8}, {{}, {0}, {1}, {}}),
        tensor({16, 32, 4}, {{0}, {}, {}})},
       {{0}, {}, {}},
       cube,
       {.all_reduces = 1}},
      {"RD3",
       OperatorKind::einsum,
       "mk,kn,kg->gmn",
       {tensor({11, 63}, {{}, {0}}), tensor({63, 5}, {{0}, {}}), tensor({63, 3}, {{0}, {}})},
       {{}, {}, {}},
       two,
       {.all_reduces = 1}},
      {"RD3, even",
       OperatorKind::einsum,
       "mk,kn,kg->gmn",
       {tensor({11, 64}, {{}, {0}}), tensor({64, 5}, {{0}, {}}), tensor({64, 3}, {{0}, {}})},
       {{}, {}, {}},
       two,
       {.all_reduces = 1}},
      product("U1", "mk,kn->mn", {8, 1024}, {{}, {0}}, {1024, 256}, {{0}, {}},
              Sharding{{}, {}}.with_partial(AxisSet{0}, Reduction::sum), two, nothing),
  };
}

inline std::vector<Conformance> conformance_others() {
  using rows_of::mapping, rows_of::place_of_largest, rows_of::reduction, rows_of::tensor,
      rows_of::transposition;
  const MeshShape two{2}, square{2, 2};
  const Most nothing{};
  std::vector<Conformance> rows{
      reduction("R1", "ab->", Reduction::sum, {3, 3}, {{0}, {}}, {}, two, {.all_reduces = 1}),
      reduction("R3", "bhwf->f", Reduction::sum, {4, 32, 32, 128}, {{}, {0}, {}, {}}, {{0}}, two,
                {.reduce_scatters = 1}),
      // Local reduce, then the partial maxima of 14 rows over the 4 columns of processes.
      reduction("R5", "ab->a", Reduction::max, {28, 12}, {{0}, {1}}, {{0}}, MeshShape{2, 4},
                {.all_reduces = 1}),
      reduction("R5 to all", "ab->a", Reduction::max, {28, 12}, {{0}, {1}}, {{}}, MeshShape{2, 4},
                {.all_reduces = 1, .all_gathers = 1}),
      // The row's own plan gathers both of a pair, of 14 rows from 3 other processes.
      place_of_largest("R5, places", "ab->a", {28, 12}, {{0}, {1}}, {{0}}, MeshShape{2, 4},
                       {.all_gathers = 2, .payload = 3 * 14 * (4 + 8)}),
      place_of_largest("R5, places to all", "ab->a", {28, 12}, {{0}, {1}}, {{}}, MeshShape{2, 4},
                       {.all_gathers = 3, .payload = 3 * 14 * (4 + 8) + 14 * 8}),
      place_of_largest("R5, places of columns", "ab->b", {28, 12}, {{0}, {1}}, {{1}},
                       MeshShape{2, 4}, {.all_reduces = 2}),
      place_of_largest("R5, rows whole", "ab->a", {28, 12}, {{0}, {}}, {{0}}, MeshShape{2, 4},
                       nothing),
      reduction("U3", "ab->a", Reduction::max, {8, 1024}, {{}, {0}},
                Sharding{{}}.with_partial(AxisSet{0}, Reduction::max), two, nothing),
      transposition("T9", "abcd->acbd", {16, 38, 38, 4}, {{}, {0}, {}, {}}, {{}, {}, {0}, {}}, two),
      transposition("T9 on two axes", "abcd->bcad", {16, 38, 38, 4}, {{0}, {1}, {}, {}},
                    {{1}, {}, {0}, {}}, MeshShape{4, 2}),
      transposition("T9 with replicas", "abcd->acbd", {16, 38, 38, 4}, {{}, {0}, {}, {}},
                    {{}, {}, {0}, {}}, square),
  };
  for (const Index n : {19, 5}) {
    const TensorDesc x = tensor({n, n}, {{0}, {1}});
    rows.push_back(mapping(n == 19 ? "T11" : "T11, of 5", "ij,ji->ij", {x, x}, {{0}, {1}},
                           MeshShape{4, 2}, {.moves = n == 19 ? 1 : 3}));
  }
  for (const Sharding& out : {Sharding{{0}, {}, {}}, Sharding{{}, {0}, {}}, Sharding{{0}, {1}, {}}})
    rows.push_back(mapping("B1", "bc,a->abc", {tensor({4, 3}, {{}, {}}), tensor({3}, {{}})}, out,
                           square, nothing));
  // Stretched, and from one process to all: a gather is no more than a select and an all-reduce.
  rows.push_back(mapping("B3", "ab,cd->abcd",
                         {tensor({1, 1}, {{0}, {1}}), tensor({2, 3}, {{}, {}})}, {{}, {}, {}, {}},
                         square, {.all_gathers = 1}));
  rows.push_back(
      rows_of::change("B3, alone", {1, 1}, {{0}, {1}}, {{}, {}}, square, {.all_gathers = 1}));
  rows.push_back(
      rows_of::change("B3, of two", {1, 2}, {{0}, {1}}, {{}, {}}, square, {.all_gathers = 1}));
  return rows;
}

inline std::vector<Conformance> conformance_changes() {
  using rows_of::change;
  const MeshShape two{2}, square{2, 2}, cube{2, 2, 2};
  return {
      change("X1", {2, 3}, {{0}, {}}, {{}, {}}, two, {.all_gathers = 1}),
      change("X3", {7, 31, 128}, {{}, {0}, {}}, {{0}, {}, {}}, two, {.moves = 1}),
      change("X5", {64, 64, 64, 64, 64, 64}, {{0}, {1}, {2}, {}, {}, {}},
             {{}, {}, {}, {1}, {2}, {0}}, cube, {.moves = 2}),
      change("X7", {8, 8}, {{0}, {1, 2}}, {{0, 1}, {2}}, cube, {.moves = 2}),
      change("X7 in device order", {8, 8}, {{0}, {1, 2}}, {{1, 2}, {0}}, cube, {.moves = 2}),
      change("X9", {8, 8}, {{0}, {1}}, {{}, {0}}, MeshShape{2, 3}, {.all_gathers = 1, .moves = 1}),
      change("X9 reversed", {8, 8}, {{}, {0}}, {{0}, {1}}, MeshShape{2, 3}, {.moves = 1}),
      change("X11", {8, 8}, {{0}, {1}}, {{}, {0}}, cube, {.all_gathers = 1, .moves = 1}),
      change("X11 reversed", {8, 8}, {{}, {0}}, {{0}, {1}}, cube, {.moves = 1}),
      change("X13", {6, 3}, {{0, 1}, {}}, {{0}, {}}, cube, {.all_gathers = 1}),
      change("X13 reversed", {6, 3}, {{0}, {}}, {{0, 1}, {}}, cube, {}),
      change("X15", {4, 15, 4, 16}, {{}, {}, {}, {0}}, {{}, {0, 1, 2}, {}, {}}, cube, {.moves = 1}),
      change("X15 to replicas", {4, 15, 4, 16}, {{}, {0, 1}, {2}, {}}, {{}, {}, {}, {2}}, cube,
             {.all_gathers = 1, .moves = 1}),
      change("X17", {8, 32}, {{0, 1}, {}}, {{0}, {1}}, MeshShape{2, 4}, {.moves = 1}),
      change("X17, columns", {8, 32}, {{}, {0, 1}}, {{0}, {1}}, MeshShape{2, 4}, {.moves = 1}),
      change("X17, ragged", {5, 32}, {{}, {0, 1, 2}}, {{0, 1}, {2}}, cube, {.moves = 1}),
      change("X19", {8, 32}, {{0, 1}, {2}}, {{0}, {1, 2}}, MeshShape{2, 4, 4}, {.moves = 1}, cube),
      change("X21", {8, 8}, Sharding{{}, {}}.with_partial(AxisSet{0}, Reduction::sum), {{0}, {}},
             two, {.reduce_scatters = 1}),
      change("X21 reversed", {8, 8}, {{0}, {}}, {{}, {}}, two, {.all_gathers = 1}),
      change("X23", {8, 8}, {{0}, {1, 2}}, {{0, 2}, {1}}, cube, {.moves = 1}),
      change("X23, swapped", {8, 8}, {{0}, {1}}, {{1}, {0}}, square, {.moves = 1}),
      change("X25", {256, 256, 256}, {{0}, {}, {1}}, {{}, {0}, {}}, cube,
             {.all_gathers = 1, .moves = 1}),
      change("X27", {8, 8, 8}, {{}, {0}, {1, 2, 3}}, {{1, 2}, {0}, {3}}, MeshShape{2, 2, 2, 2},
             {.moves = 2}, MeshShape{2, 2, 1, 2}),
  };
}

inline std::vector<Conformance> conformance() {
  std::vector<Conformance> rows = conformance_products();
  for (const auto& more : {conformance_others(), conformance_changes()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

/// Returns what a row does on a process: one plan, or of a product of three, two.
inline std::vector<Plan> plans_of(const Conformance& row, const MeshShape& mesh, int process = 0,
                                  const PlanOptions& options = {}) {
  const Terms terms = row.terms();
  const TensorDesc& x = row.operands[0];
  if (row.kind == OperatorKind::reshard)
    return {ops::Reshard{row.out}.plan({x}, {mesh, process, options})};
  if (row.kind == OperatorKind::reduce)
    return {ops::Reduce{.terms = terms, .reduction = row.reduction, .type = x.type, .out = row.out}
                .plan({x}, {mesh, process, options})};
  if (row.kind == OperatorKind::arg)
    return {ops::Arg{terms, row.reduction, row.out}.plan({x}, {mesh, process, options})};
  if (row.kind == OperatorKind::transpose)
    return {ops::Transpose{terms, row.out}.plan({x}, {mesh, process, options})};
  if (row.kind == OperatorKind::map)
    return {ops::Map{.terms = terms, .type = x.type, .out = row.out, .reads_index = false}.plan(
        row.operands, {mesh, process, options})};
  if (row.operands.size() == 2)
    return {ops::Einsum{terms, row.out}.plan({x, row.operands[1]}, {mesh, process, options})};
  std::vector<Plan> plans;
  TensorDescs tensors = row.operands;
  for (const detail::PairProduct& one :
       detail::einsum_order(terms, row.operands, row.out, mesh, options).products) {
    plans.push_back(ops::Einsum{one.terms, one.out}.plan({tensors[one.left], tensors[one.right]},
                                                         {mesh, process, options}));
    tensors.push_back(plans.back().result_desc());
  }
  return plans;
}

/// Returns the row with extents that leave the same remainders on its own mesh, but are as small as
/// may be.
inline Conformance shrunk(Conformance row) {
  const Terms terms = row.terms();
  for (int t = 0; t < row.operands.size(); ++t)
    for (int d = 0; d < row.operands[t].rank(); ++d) {
      AxisSet axes;
      const auto collect = [&](const Term& term, const Sharding& s) {
        for (int i = 0; i < term.size(); ++i)
          if (term[i] == terms.operands[t][d]) axes = axes | s[i].set();
      };
      for (int u = 0; u < row.operands.size(); ++u)
        collect(terms.operands[u], row.operands[u].sharding);
      collect(terms.result, row.out);
      const Index parts = row.mesh.group_size(axes);
      Index& n = row.operands[t].extents[d];
      if (parts == 1) n = min_of(n, 3);
      if (parts > 1 && n > 2 * parts) n = parts + n % parts + (n % parts == 0 ? parts : 0);
    }
  return row;
}

}  // namespace support
