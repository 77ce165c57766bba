// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: plan_operators
// Takes, scatters, one-hots and windows that begin anywhere over sampled shardings, all processes
// in a dry run; and what the collection of conformance cases says about their communication.
#include <doctest/doctest.h>
#include <tessera/plan/op/indexed/dynamic_slice.hpp>
#include <tessera/plan/op/indexed/one_hot.hpp>
#include <tessera/plan/op/indexed/scatter.hpp>
#include <tessera/plan/op/indexed/take.hpp>

#include "support/dry_cases.hpp"

using namespace tessera;
using namespace support;

namespace {

using Value = DryRun::Value;

/// The letters of an operator with extents, and shardings of its tensors.
struct Chooser {
  Random& random;
  const MeshShape& mesh;
  Term letters;
  Extents extents;
  Index extent(char letter) {
    if (!letters.contains(letter)) {
      letters.push_back(letter);
      extents.push_back(random.of<Index>({1, 2, 3, 4, 5, 7, 8, 3, 5, random.chance(20) ? 0 : 6}));
    }
    return extents[letters.find(letter)];
  }
  TensorDesc tensor(const Term& term, DType type, int partial = 0,
                    Reduction kind = Reduction::sum) {
    TensorDesc desc{type, {}, some_sharding(random, term.size(), mesh.rank(), partial, kind)};
    for (char letter : term) desc.extents.push_back(extent(letter));
    return desc;
  }
  /// Gives a tensor of indices as many columns as it needs.
  void columns(const detail::IndexTerms& indices) {
    for (const char letter : indices.column_letters()) {
      letters.push_back(letter);
      extents.push_back(indices.columns());
    }
  }
  /// Chooses the extents of windows, some longer than their dimensions, and returns them.
  Extents windows(const detail::IndexTerms& indices, OutOfRange& out_of_range) {
    Extents chosen;
    for (const char letter : indices.windows()) {
      const Index all = extent(detail::other_case(letter));
      chosen.push_back(random.below(static_cast<int>(all) + 2));
      if (chosen.back() > all) out_of_range = OutOfRange::drop;  // there is no place to clamp it to
      letters.push_back(letter);
      extents.push_back(chosen.back());
    }
    return chosen;
  }
  Whole<Value> whole(const TensorDesc& desc, int operand) {
    return whole_input<Value>(desc, mesh, static_cast<std::uint64_t>(5 + operand));
  }
};

template <class Op> bool legal(const Op& op, const TensorDescs& operands) {
  return tessera::detail::check_stand_in(op, operands).ok();
}

constexpr const char* takes[] = {
    "vm,bs->bsm",  "v,a->a",         "v,->",          "vm,b->mb",      "bv,bs->bs",
    "bvm,bs->bsm", "vbm,sb->bsm",    "xyc,n,n->nc",   "xyc,a,b->abc",  "xyc,bn,n->ncb",
    "mv,bs->mbs",  "xyz,n,mn,m->mn", "abvc,bs->sabc", "xyc,nk->nc",    "xyzc,kbn,n->nbc",
    "v,->V",       "vm,b->bVm",      "bv,bs->sVb",    "xyc,n,n->YncX", "xyc,kn->nXc"};
constexpr const char* scatters[] = {
    "vm,bs,bsm->vm",  "v,a,a->v",          "v,,->v",          "mv,b,mb->mv",
    "bv,bs,bs->bv",   "bvm,bs,bsm->vbm",   "xyc,n,n,nc->xyc", "xyc,a,b,abc->xyc",
    "v,a,ab->v",      "vm,a,abm->vm",      "bs,bsm->vm",      "n,n->v",
    "n,n,nc->xcy",    "xyc,bn,n,ncb->xyc", "bn,nb->bv",       "abvc,bs,sabc->abvc",
    "xyc,nk,nc->yxc", "n,bkn,nbc->xyczb",  "v,,V->v",         "vm,b,bVm->vm",
    "bv,bs,sVb->bv",  "xyc,n,n,YncX->cyx", "kn,nXc->xyc",     "a,aVb->v"};

}  // namespace

TEST_CASE("takes: table, indices and result under any sharding, finished or open") {
  Random random(seed_for("take", 61));
  Tally tally;
  for (const MeshShape& mesh : meshes(8, 3))
    for (const char* equation : takes) {
      const Terms terms = parse(equation);
      for (int i = 0; i < 30 / share; ++i) {
        Chooser choose{random, mesh, {}, {}};
        choose.columns(detail::indices_of_take(terms));
        const Reduction kind =
            random.of<Reduction>({Reduction::sum, Reduction::sum, Reduction::max, Reduction::min});
        OutOfRange out_of_range = random.chance(50) ? OutOfRange::clamp : OutOfRange::drop;
        const Extents windows = choose.windows(detail::indices_of_take(terms), out_of_range);
        TensorDescs descs{
            choose.tensor(terms.operands[0], DType::i64, random.chance(30) ? 40 : 0, kind)};
        for (int t = 1; t < terms.operands.size(); ++t)
          descs.push_back(
              choose.tensor(terms.operands[t], random.chance(50) ? DType::i32 : DType::i64));
        std::vector<WholeIndices> indices;
        for (int t = 1; t < descs.size(); ++t) indices.push_back(choose.whole(descs[t], t));
        Sharding out = some_sharding(random, terms.result.size(), mesh.rank(), 40, kind);
        if (!legal(ops::Take{terms, out_of_range, out}, descs))
          out = some_sharding(random, terms.result.size(), mesh.rank());
        if (random.chance(20)) out = ops::Take{terms}.deduced(descs);
        REQUIRE(legal(ops::Take{terms, out_of_range, out}, descs));
        const PlanOptions options{some_machine(random), max_int64};
        tally.add(wrong_operator(
            "take " + std::string(equation), descs, out, mesh,
            [&](int p) {
              return ops::Take{terms, out_of_range, out, windows}.plan(descs, {mesh, p, options});
            },
            support::take(terms, choose.whole(descs[0], 0), indices, out_of_range, windows),
            options.machine));
      }
    }
}

TEST_CASE("scatters: operand, indices, updates and result under any sharding, finished or open") {
  Random random(seed_for("scatter", 62));
  Tally tally;
  for (const MeshShape& mesh : meshes(8, 3))
    for (const char* equation : scatters) {
      const Terms terms = parse(equation);
      for (int i = 0; i < 30 / share; ++i) {
        Chooser choose{random, mesh, {}, {}};
        choose.columns(detail::indices_of_scatter(terms));
        const Reduction kind = random.of<Reduction>(
            {Reduction::sum, Reduction::sum, Reduction::max, Reduction::min, Reduction::none});
        OutOfRange out_of_range = random.chance(50) ? OutOfRange::clamp : OutOfRange::drop;
        choose.windows(detail::indices_of_scatter(terms), out_of_range);
        const int open = kind != Reduction::none && random.chance(40) ? 40 : 0;
        const int last = terms.operands.size() - 1, first = detail::has_operand(terms) ? 1 : 0;
        TensorDescs descs;
        for (int t = 0; t <= last; ++t) {
          const bool values = t == last || t < first;
          descs.push_back(choose.tensor(terms.operands[t],
                                        values              ? DType::i64
                                        : random.chance(50) ? DType::i32
                                                            : DType::i64,
                                        values ? open : 0, kind));
        }
        Extents result, indexed;
        for (char letter : terms.result) result.push_back(choose.extent(letter));
        for (char letter : detail::letters_without(terms.result, terms.operands.back()))
          indexed.push_back(choose.extent(letter));
        std::vector<WholeIndices> indices;
        for (int t = first; t < last; ++t) indices.push_back(choose.whole(descs[t], t));
        Sharding out = some_sharding(random, terms.result.size(), mesh.rank(), 40, kind);
        ops::Scatter scatter{terms, kind, out_of_range, indexed, false, out};
        if (!legal(scatter, descs)) out = some_sharding(random, terms.result.size(), mesh.rank());
        if (random.chance(20)) out = scatter.deduced(descs);
        scatter.out = out;
        REQUIRE(legal(scatter, descs));
        Whole<Value> begin(result, start_of<Value>(kind));
        if (first == 1) {  // the operand's letters may stand in another order
          const Whole<Value> x = choose.whole(descs[0], 0);
          begin = support::transpose(Terms{{terms.operands[0]}, terms.result}, x);
        }
        const PlanOptions options{some_machine(random), max_int64};
        tally.add(wrong_operator(
            "scatter " + std::string(name_of(kind)) + " " + equation, descs, out, mesh,
            [&](int p) {
              return ops::Scatter{terms, kind, out_of_range, indexed, false, out}.plan(
                  descs, {mesh, p, options});
            },
            support::scatter(terms, kind, begin, indices, choose.whole(descs[last], last),
                             out_of_range),
            options.machine));
      }
    }
}

TEST_CASE("one-hot, and windows that are read and written, wherever they begin") {
  Random random(seed_for("windows anywhere", 63));
  Tally tally;
  for (const MeshShape& mesh : meshes(8, 3))
    for (int i = 0; i < 120 / share; ++i) {
      const PlanOptions options{some_machine(random), max_int64};
      const Terms terms = detail::same_terms(random.of<std::string>({"a", "ab", "abc"}));
      const Term& labels = terms.result;
      Chooser choose{random, mesh, {}, {}};
      {
        const char along = labels[random.below(labels.size())];
        const TensorDesc indices =
            choose.tensor(detail::letters_without(labels, Term{along}), DType::i32);
        const Sharding out = some_sharding(random, labels.size(), mesh.rank());
        const Index extent = choose.extent(along);
        REQUIRE(legal(ops::OneHot{terms, along, DType::i64, extent, out}, {indices}));
        tally.add(wrong_operator(
            "one-hot", {indices}, out, mesh,
            [&](int p) {
              return detail::plan_one_hot(labels, along, DType::i64, indices, extent, out, mesh, p,
                                          options);
            },
            support::one_hot<Value>(labels, along, choose.whole(indices, 0), extent),
            options.machine));
      }
      const Reduction kind = random.of<Reduction>({Reduction::sum, Reduction::max, Reduction::min});
      Terms along;
      for (char letter : labels)
        if (along.result.empty() || random.chance(50)) along.result.push_back(letter);
      const TensorDesc x = choose.tensor(labels, DType::i64, random.chance(30) ? 40 : 0, kind);
      Extents size = x.extents, start, sizes;
      for (int d = 0; d < labels.size(); ++d) {
        const bool moves = along.result.contains(labels[d]);
        if (moves) size[d] = random.below(static_cast<int>(x.extents[d]) + 1);
        if (moves) sizes.push_back(size[d]);
        start.push_back(moves ? random.below(13) - 3 : 0);
      }
      Sharding out = some_sharding(random, labels.size(), mesh.rank(), 40, kind);
      if (!legal(ops::DynamicSlice{terms, along, sizes, out}, {x}))
        out = some_sharding(random, labels.size(), mesh.rank());
      REQUIRE(legal(ops::DynamicSlice{terms, along, sizes, out}, {x}));
      tally.add(wrong_operator(
          "dynamic slice", {x}, out, mesh,
          [&](int p) {
            return detail::plan_dynamic_slice(labels, along.result, x, sizes, out, mesh, p,
                                              options);
          },
          support::dynamic_slice(choose.whole(x, 0), start, size), options.machine,
          [&](DryRun& dry) { dry.start(start); }));
      TensorDesc update{DType::i64, size, some_sharding(random, labels.size(), mesh.rank())};
      for (int d = 0; d < labels.size(); ++d)
        update.sharding[d] = update.sharding[d].without(x.sharding.partial);
      update.sharding = update.sharding.with_partial(x.sharding.partial, x.sharding.reduction);
      Sharding into = some_sharding(random, labels.size(), mesh.rank());
      if (random.chance(40)) into = x.sharding;
      Terms two = terms;
      two.operands.push_back(labels);
      REQUIRE(legal(ops::DynamicUpdateSlice{two, along, false, into}, {x, update}));
      const Whole<Value> expected =
          support::dynamic_update(choose.whole(x, 0), choose.whole(update, 1), start);
      tally.add(wrong_operator(
          "dynamic update slice", {x, update}, into, mesh,
          [&](int p) {
            return detail::plan_dynamic_update(labels, along.result, x, update, into, mesh, p,
                                               options);
          },
          expected, options.machine, [&](DryRun& dry) { dry.start(start); }));
    }
}

namespace {
void check_take_row(const char* name, const char* equation, const Extents& x, const Sharding& sx,
                    const Extents& i, const Sharding& si, const Sharding& out,
                    const MeshShape& mesh, int reduces, int gathers = 0, int moves = 0,
                    const Extents& windows = {}) {
  const TensorDescs descs{{DType::f32, x, sx}, {DType::i32, i, si}};
  const Plan p = ops::Take{parse(equation), OutOfRange::clamp, out, windows}.plan(
      descs, {mesh, 0, PlanOptions{}});
  const int combined = p.count(all_reduce) + p.count(reduce_scatter);
  const bool fits = combined <= reduces && p.count(all_gather) <= gathers &&
                    p.communications() - combined - p.count(all_gather) <= moves;
  CHECK_MESSAGE(fits, name << " communicates more than it may:\n" << describe(p));
}
}  // namespace

TEST_CASE("gathers of the conformance collection") {
  const MeshShape two{2}, pairs{2, 2};
  check_take_row("G1", "vm,b->bm", {2, 9}, {{}, {0}}, {3}, {{}}, {{}, {0}}, two, 0);
  check_take_row("G1, r2", "vm,b->bm", {2, 9}, {{}, {0}}, {3}, {{}}, {{}, {0}}, pairs, 0);
  check_take_row("G3", "vm,bs->bsm", {17, 9}, {{0}, {}}, {2, 3}, {{}, {}}, {{}, {}, {}}, two, 1);
  check_take_row("G3, r2", "vm,bs->bsm", {17, 9}, {{0}, {}}, {2, 3}, {{}, {}}, {{}, {}, {}}, pairs,
                 1);
  check_take_row("G7", "vm,abc->abcm", {250112, 4096}, {{0}, {}}, {64, 1, 1}, {{}, {}, {}},
                 {{}, {}, {}, {}}, MeshShape{32}, 1);
  const Plan g7 = ops::Take{parse("vm,abc->abcm"), OutOfRange::clamp, {{}, {}, {}, {}}}.plan(
      {{DType::f32, {250112, 4096}, {{0}, {}}}, {DType::i32, {64, 1, 1}, {{}, {}, {}}}},
      {MeshShape{32}});
  CHECK(g7.slots[0].bytes == Index{7816} * 4096 * 4);
  CHECK(g7.payload_bytes() == 2 * 64 * 4096 * 31 / 32 * 4);
  // Index-parallel: a letter of table and indices; what is not aligned is moved, and no more.
  const MeshShape eight{8}, half{4, 2};
  const char* both = "abcd,ae->aecd";
  const Extents x{8, 4, 2, 2}, i{8, 4};
  check_take_row("G5a", both, x, {{0}, {}, {}, {}}, i, {{0}, {}}, {{0}, {}, {}, {}}, eight, 0);
  check_take_row("G5b", both, x, {{0}, {}, {}, {}}, i, {{0}, {}}, {{}, {}, {}, {}}, eight, 0, 1);
  check_take_row("G5c", both, x, {{}, {}, {}, {}}, i, {{0}, {}}, {{0}, {}, {}, {}}, eight, 0);
  check_take_row("G5d", both, x, {{0}, {}, {}, {}}, i, {{}, {}}, {{0}, {}, {}, {}}, eight, 0);
  check_take_row("G5e", both, x, {{0}, {}, {}, {}}, i, {{}, {}}, {{}, {}, {}, {}}, eight, 0, 1);
  check_take_row("G5f", both, x, {{0}, {}, {}, {}}, i, {{0}, {}}, {{0}, {}, {}, {}}, half, 0);
  check_take_row("G5g", both, x, {{0}, {1}, {}, {}}, i, {{0}, {}}, {{0}, {}, {}, {}}, half, 0, 1);
  check_take_row("G5h", "abcd,be->aecd", x, {{}, {0}, {}, {}}, i, {{}, {}}, {{}, {}, {}, {}}, half,
                 0, 1);
  check_take_row("G5i", "bacd,ae->aecd", {4, 8, 2, 2}, {{}, {0}, {}, {}}, i, {{1}, {}},
                 {{0}, {}, {}, {}}, half, 0, 0, 1);
}

TEST_CASE("windows that begin at an index, and updates of them") {
  const MeshShape four{4}, grid{2, 2};
  const Extents table{4096, 64}, ids{6}, three{3};
  const char* rows = "vm,b->bVm";
  check_take_row("table whole", rows, table, {{}, {}}, ids, {{0}}, {{0}, {}, {}}, four, 0, 0, 0,
                 three);
  check_take_row("columns split", rows, table, {{}, {0}}, ids, {{}}, {{}, {}, {0}}, four, 0, 0, 0,
                 three);
  check_take_row("windows split", rows, table, {{}, {}}, ids, {{}}, {{}, {0}, {}}, four, 0, 0, 0,
                 three);
  check_take_row("rows split", rows, table, {{0}, {}}, ids, {{}}, {{}, {}, {}}, four, 1, 0, 0,
                 three);
  check_take_row("rows split, then windows", rows, table, {{0}, {}}, ids, {{}}, {{}, {0}, {}}, four,
                 1, 0, 0, three);
  check_take_row("rows by one axis, windows by another", rows, table, {{0}, {}}, ids, {{}},
                 {{}, {1}, {}}, grid, 1, 0, 0, three);
  const auto scattered = [&](const Sharding& x, const Sharding& i, const Sharding& updates,
                             const Sharding& out) {
    return ops::Scatter{parse("vm,b,bVm->vm"), Reduction::sum, OutOfRange::drop, {}, false, out}
        .plan({{DType::f32, table, x}, {DType::i32, ids, i}, {DType::f32, {6, 3, 64}, updates}},
              {four});
  };
  CHECK(scattered({{0}, {}}, {{}}, {{}, {}, {}}, {{0}, {}}).communications() == 0);
  CHECK(scattered({{}, {0}}, {{}}, {{}, {}, {0}}, {{}, {0}}).communications() == 0);
  // A few updates are gathered, a letter of the batch or of the window.
  const Plan few = scattered({{0}, {}}, {{}}, {{}, {0}, {}}, {{0}, {}});
  CHECK(few.count(all_gather) == 1);
  CHECK(few.communications() == 1);
  CHECK(few.payload_bytes() == 6 * 3 * 64 * 4);  // the last process has none of the three
  const ops::Scatter left_open{parse("b,bVm->vm"),
                               Reduction::sum,
                               OutOfRange::drop,
                               {4096},
                               false,
                               Sharding{{}, {}}.with_partial(AxisSet{0}, Reduction::sum)};
  const TensorDescs split{{DType::i32, ids, {{}}}, {DType::f32, {6, 3, 64}, {{}, {0}, {}}}};
  REQUIRE(left_open.check(split).ok());
  CHECK(left_open.plan(split, {four, 0, PlanOptions{}}).communications() == 0);
}

TEST_CASE("scatters of the conformance collection") {
  const MeshShape two{2};
  const Terms rows = parse("vm,bs,bsm->vm");
  const auto plan = [&](const Sharding& x, const Sharding& i, const Sharding& u,
                        const Sharding& out) {
    return ops::Scatter{rows, Reduction::sum, OutOfRange::drop, {}, false, out}.plan(
        {{DType::f32, {17, 9}, x}, {DType::i32, {2, 3}, i}, {DType::f32, {2, 3, 9}, u}}, {two});
  };
  CHECK(plan({{}, {0}}, {{}, {}}, {{}, {}, {0}}, {{}, {0}}).communications() == 0);  // SC1
  CHECK(plan({{0}, {}}, {{}, {}}, {{}, {}, {}}, {{0}, {}}).communications() == 0);   // SC3
  // The gradient of an embedding, batch split: what is left open costs nothing, the whole table one
  // collective. For a table that is split, each process makes some columns of all rows, so that
  // updates travel and no sums of whole tables.
  const Terms gradient = parse("bs,bsm->vm");
  const TensorDescs batch{{DType::i32, {256, 512}, {{0}, {}}},
                          {DType::f32, {256, 512, 1024}, {{0}, {}, {}}}};
  const auto gradient_to = [&](const Sharding& out) {
    return ops::Scatter{gradient, Reduction::sum, OutOfRange::drop, {32000}, false, out}.plan(
        batch, {MeshShape{8}});
  };
  CHECK(gradient_to(Sharding{{}, {}}.with_partial(AxisSet{0}, Reduction::sum)).communications() ==
        0);
  CHECK(gradient_to({{}, {}}).count(all_reduce) == 1);
  CHECK(gradient_to({{}, {}}).communications() == 1);
  CHECK(gradient_to({{0}, {}}).count(all_to_all) == 2);
  CHECK(gradient_to({{0}, {}}).payload_bytes() < Index{7} * 32000 * 1024 * 4 / 8);
  // A few updates into a large table that is split: they are gathered, not the table reduced.
  const Plan few = ops::Scatter{rows, Reduction::sum, OutOfRange::drop, {}, false, {{0}, {}}}.plan(
      {{DType::f32, {32000, 1024}, {{0}, {}}},
       {DType::i32, {8, 1}, {{0}, {}}},
       {DType::f32, {8, 1, 1024}, {{0}, {}, {}}}},
      {MeshShape{8}});
  CHECK(few.payload_bytes() == 7 * 4 + 7 * 1024 * 4);
}

TEST_CASE("dynamic slices of the conformance collection") {
  const MeshShape two{2}, four{4};
  const auto s32 = [](const Extents& e, const Sharding& s) { return TensorDesc{DType::i32, e, s}; };
  // Y1: along a dimension that is not split.
  CHECK(
      detail::plan_dynamic_slice({'a', 'b'}, {'b'}, s32({128, 64}, {{0}, {}}), {10}, {{0}, {}}, two)
          .communications() == 0);
  // Y3: [128,64]{1/2} <- [128,2] at column 60.
  CHECK(ops::DynamicUpdateSlice{parse("ab,ab->ab"), parse("b->b"), false, {{}, {0}}}
            .plan({s32({128, 64}, {{}, {0}}), s32({128, 2}, {{}, {}})}, {two})
            .communications() == 0);
  const Plan y3 = ops::DynamicUpdateSlice{parse("ab,ab->ab"), parse("b->b"), false, {{}, {0}}}.plan(
      {s32({128, 64}, {{}, {0}}), s32({128, 2}, {{}, {0}})}, {two});
  CHECK(y3.count(all_gather) == 1);
  CHECK(y3.communications() == 1);
  CHECK(y3.payload_bytes() == 128 * 4);
  // Y5: [16]/4 <- [8]/4: the update alone is gathered, six elements a process; three permutes of
  // two would be as much.
  const Plan y5 = ops::DynamicUpdateSlice{parse("a,a->a"), parse("a->a"), false, {{0}}}.plan(
      {s32({16}, {{0}}), s32({8}, {{0}})}, {four});
  CHECK(y5.count(all_gather) == 1);
  CHECK(y5.communications() == 1);
  CHECK(y5.payload_bytes() == 6 * 4);
  // Y7: both dimensions move.
  CHECK(ops::DynamicUpdateSlice{parse("ab,ab->ab"), parse("ab->ab"), false, {{}, {0}}}
            .plan({s32({128, 64}, {{}, {0}}), s32({10, 10}, {{}, {}})}, {two})
            .communications() == 0);
  // A window read across a split dimension: one reduction of its size.
  const Plan read = detail::plan_dynamic_slice({'a', 'b'}, {'a'}, s32({4096, 64}, {{0}, {}}), {16},
                                               {{}, {}}, four);
  CHECK(read.count(all_reduce) == 1);
  CHECK(read.communications() == 1);
  CHECK(read.payload_bytes() == 2 * 16 * 64 * 3 / 4 * 4);
  CHECK(detail::plan_dynamic_slice({'a', 'b'}, {'a'}, s32({4096, 64}, {{0}, {}}), {16}, {{0}, {}},
                                   four)
            .count(reduce_scatter) == 1);
}

TEST_CASE("a small table is gathered, a large one is not, and a contract may ask for it") {
  const MeshShape mesh{8};
  const Terms terms = parse("vm,n->nm");
  const TensorDescs small{{DType::f32, {100, 16}, {{0}, {}}}, {DType::i32, {1'000'000}, {{}}}};
  const TensorDescs large{{DType::f32, {1'000'000, 16}, {{0}, {}}}, {DType::i32, {100}, {{}}}};
  CHECK(ops::Take{terms, OutOfRange::clamp, {{}, {}}}.plan(small, {mesh}).count(all_gather) >= 1);
  CHECK(ops::Take{terms, OutOfRange::clamp, {{}, {}}}.plan(small, {mesh}).payload_bytes() <=
        100 * 16 * 4);
  CHECK(ops::Take{terms, OutOfRange::clamp, {{}, {}}}.plan(large, {mesh}).count(all_reduce) == 1);
  PlanOptions options;
  options.contract = Contract::nothing();
  options.contract.accept(all_gather, AxisSet{0});
  const Plan bound = ops::Take{terms, OutOfRange::clamp, {{}, {}}}.plan(large, {mesh, 0, options});
  CHECK(options.contract.covers(bound.needs));
}

TEST_CASE("what is refused") {
  const Sharding whole{{}}, plain{{}, {}};
  const auto of_integers = [](const Shardings& shardings) {
    TensorDescs descs;
    for (const Sharding& s : shardings) descs.push_back({DType::i32, Extents(s.rank(), 8), s});
    return descs;
  };
  const auto rule = [&](const char* e, const Shardings& s, const Sharding& out) {
    return ops::Take{parse(e), OutOfRange::clamp, out}.check(of_integers(s)).rule;
  };
  CHECK(rule("vm,b->bm", {plain, whole}, plain) == Rule::ok);
  CHECK(rule("vm,b->b", {plain, whole}, whole) == Rule::indices_match);
  CHECK(rule("vm,b->bvm", {plain, whole}, {{}, {}, {}}) == Rule::indices_match);
  CHECK(rule("vm,b->m", {plain, whole}, whole) == Rule::index_letter_kept);
  CHECK(rule("vm,v->m", {plain, whole}, whole) == Rule::index_letter_kept);
  CHECK(rule("vm,b->bz", {plain, whole}, plain) == Rule::result_label_known);
  CHECK(rule("vm,b->bm", {plain, whole.with_partial(AxisSet{0}, Reduction::sum)}, plain) ==
        Rule::finished);
  CHECK(rule("vm,b->bm", {plain, whole}, plain.with_partial(AxisSet{0}, Reduction::sum)) ==
        Rule::open_axis_contracted);
  CHECK(rule("vm,b->bm", {{{0}, {}}, whole}, plain.with_partial(AxisSet{0}, Reduction::sum)) ==
        Rule::ok);
  CHECK(rule("vm,b->bm", {plain.with_partial(AxisSet{0}, Reduction::max), whole},
             plain.with_partial(AxisSet{0}, Reduction::sum)) == Rule::reduction_alike);
  CHECK(rule("vm->m", {plain}, whole) == Rule::indices_match);
  // Columns: as many as letters have no tensor of their own, two at least, in one tensor.
  CHECK(rule("vm,bk->b", {plain, plain}, whole) == Rule::index_column_each);  // there are 8
  CHECK(rule("vm,bk->bm", {plain, plain}, plain) == Rule::index_letter_kept);
  CHECK(rule("vm,bkl->b", {plain, {{}, {}, {}}}, whole) == Rule::index_letter_kept);
  CHECK(rule("vmxz,bk,bl->b", {{{}, {}, {}, {}}, plain, plain}, whole) == Rule::indices_match);
  // Windows: of indexed letters, one extent for each, in the result's order.
  const auto windows_rule = [&](const char* e, const Sharding& out, const Extents& windows,
                                OutOfRange out_of_range = OutOfRange::clamp) {
    return ops::Take{parse(e), out_of_range, out, windows}.check(of_integers({plain, whole})).rule;
  };
  const Sharding rank3{{}, {}, {}};
  CHECK(windows_rule("vm,b->bVm", rank3, {3}) == Rule::ok);
  CHECK(windows_rule("vm,b->bVm", rank3, {8}) == Rule::ok);
  CHECK(windows_rule("vm,b->bVm", rank3, {}) == Rule::indexed_window_each);
  CHECK(windows_rule("vm,b->bVm", rank3, {3, 2}) == Rule::indexed_window_each);
  CHECK(windows_rule("vm,b->bm", plain, {3}) == Rule::indexed_window_each);
  CHECK(windows_rule("vm,b->bVm", rank3, {9}) == Rule::indexed_window_within);
  CHECK(windows_rule("vm,b->bVm", rank3, {9}, OutOfRange::drop) == Rule::ok);
  CHECK(windows_rule("vm,b->bVm", rank3, {-1}) == Rule::extent_not_negative);
  CHECK(windows_rule("vm,b->bMm", rank3, {3}) == Rule::result_label_known);  // m is not indexed
  CHECK(windows_rule("vm,b->bVV", rank3, {3, 3}) == Rule::label_once);
  CHECK(windows_rule("vm,V->Vm", plain, {}) == Rule::ok);  // V is a letter of the indices
  CHECK(ops::Take{parse("vm,b->bVm"), OutOfRange::clamp, rank3, {3}}
            .check(of_integers({plain}))
            .rule == Rule::operand_count);
  CHECK(ops::Take{parse("vm,b->bVm")}.deduced(
            {{DType::f32, {8, 8}, {{}, {1}}}, {DType::i32, {8}, {{0}}}}) == Sharding{{0}, {}, {1}});
  const auto scatter_rule = [&](const char* e, Reduction kind, const Shardings& s,
                                const Sharding& out) {
    const ops::Scatter scatter{parse(e), kind, OutOfRange::drop, {8}, false, out};
    return scatter.check(of_integers(s)).rule;
  };
  CHECK(scatter_rule("vm,b,bm->vm", Reduction::sum, {plain, whole, plain}, plain) == Rule::ok);
  CHECK(scatter_rule("b,bm->vm", Reduction::none, {whole, plain}, plain) == Rule::ok);
  CHECK(scatter_rule("vm,b,bm->v", Reduction::sum, {plain, whole, plain}, whole) ==
        Rule::label_kept);
  CHECK(scatter_rule("v,b,bm->vm", Reduction::sum, {whole, whole, plain}, plain) ==
        Rule::result_label_known);
  CHECK(scatter_rule("vm,b,m->vm", Reduction::sum, {plain, whole, whole}, plain) ==
        Rule::index_letter_kept);
  CHECK(scatter_rule("vm,bm->vm", Reduction::sum, {plain, plain}, plain) ==
        Rule::index_letter_kept);
  CHECK(scatter_rule("vm,b,b,bm->vm", Reduction::sum, {plain, whole, whole, plain}, plain) ==
        Rule::indices_match);
  CHECK(scatter_rule("vm,b,bm->vm", Reduction::none, {plain, whole, {{}, {}}},
                     plain.with_partial(AxisSet{0}, Reduction::sum)) == Rule::finished);
  CHECK(scatter_rule("vm,b,bm->vm", Reduction::max,
                     {plain.with_partial(AxisSet{0}, Reduction::sum), whole, plain},
                     plain) == Rule::finished);
  const auto window_rule = [&](const char* labels, const char* along, const Extents& size) {
    return ops::DynamicSlice{detail::same_terms(labels), detail::same_terms(along), size, plain}
        .check(of_integers({plain}))
        .rule;
  };
  CHECK(window_rule("ab", "b", {8}) == Rule::ok);
  CHECK(window_rule("ab", "c", {1}) == Rule::along_known);
  CHECK(window_rule("ab", "aa", {1, 1}) == Rule::label_once);
  CHECK(window_rule("abc", "a", {1}) == Rule::rank_matches);
  CHECK(window_rule("ab", "b", {9}) == Rule::moving_window_within);
  CHECK(window_rule("ab", "ba", {1}) == Rule::moving_window_each);
  const Sharding open = plain.with_partial(AxisSet{0}, Reduction::sum);
  const ops::DynamicUpdateSlice update{parse("ab,ab->ab"), parse("a->a"), false, plain};
  TensorDescs both = of_integers({plain, plain});
  CHECK(update.check(of_integers({open, plain})).rule == Rule::finished);
  CHECK(update.check(both).ok());
  both[1].extents = {8, 7};
  CHECK(update.check(both).rule == Rule::update_extents_alike);
  const auto one_hot_rule = [&](char along, Index extent, DType type) {
    return ops::OneHot{parse("ab->ab"), along, DType::f32, extent, plain}
        .check({{type, {8}, whole}})
        .rule;
  };
  CHECK(one_hot_rule('b', 3, DType::i64) == Rule::ok);
  CHECK(one_hot_rule('c', 3, DType::i64) == Rule::along_known);
  CHECK(one_hot_rule('b', -3, DType::i64) == Rule::extent_not_negative);
  CHECK(one_hot_rule('b', 3, DType::f32) == Rule::indices_of_integers);
}

TEST_CASE("contracts are kept on every mesh where they are kept for stand-in sizes") {
  Random random(seed_for("contracts of takes", 64));
  const Terms terms = parse("vm,bs->bsm");
  for (int i = 0; i < 200; ++i) {
    const Sharding x = some_sharding(random, 2, 2), ids = some_sharding(random, 2, 2),
                   out = some_sharding(random, 3, 2);
    Contract contract = Contract::nothing();
    for (Collective kind : {all_gather, all_reduce, reduce_scatter, all_to_all})
      if (random.chance(40)) contract.accept(kind, AxisSet{random.below(2)});
    const MeshShape stand_in{2, 3};
    const ops::Take take{terms, OutOfRange::clamp, out};
    if (!contract.covers(needs(take, Shardings{x, ids}, stand_in, contract))) continue;
    for (const MeshShape& mesh : meshes(8, 2)) {
      if (mesh.rank() != 2) continue;
      PlanOptions options;
      options.contract = contract;
      const Plan p = ops::Take{terms, OutOfRange::clamp, out}.plan(
          {{DType::f32, {random.below(9) + 1, 6}, x}, {DType::i32, {7, 4}, ids}},
          {mesh, 0, options});
      CHECK_MESSAGE(contract.covers(p.needs), describe(p));
    }
  }
}
