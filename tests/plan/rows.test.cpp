// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: plan_rows
// Arg-max, running sums and deterministic sums over enumerated shardings, all processes in a dry
// run.
#include <doctest/doctest.h>

#include "support/dry_cases.hpp"
#include "support/rows.hpp"

using namespace tessera;
using namespace support;

namespace {

using Value = DryRun::Value;

/// Returns a tensor of some extents; with `full`, those that are reduced are not empty.
TensorDesc some_desc(Random& random, DType type, const Terms& terms, const Sharding& s, bool full) {
  TensorDesc x{type, {}, s};
  for (char label : terms.operands[0]) {
    Index extent = random.of<Index>({1, 2, 3, 4, 5, 7, 8, 9, 0});
    if (full && extent == 0 && !terms.result.contains(label)) extent = 3;
    x.extents.push_back(extent);
  }
  return x;
}

constexpr const char* equations[] = {"a->",     "ab->a",  "ab->b",  "ab->",     "abc->ac",
                                     "abc->ca", "abc->b", "abc->c", "abcd->db", "a->a"};

}  // namespace

TEST_CASE("arg-max and arg-min: the first place, indices finished, scattered or left open") {
  Random random(seed_for("arg", 31));
  Tally tally;
  for (const MeshShape& mesh : meshes(8, 3))
    for (const char* equation : equations) {
      const Terms terms = parse(equation);
      for (int i = 0; i < 20 / share; ++i) {
        const Reduction kind = random.chance(50) ? Reduction::max : Reduction::min;
        const Shardings s{some_sharding(random, terms.operands[0].size(), mesh.rank())};
        Sharding out = some_sharding(random, terms.result.size(), mesh.rank(), 40, Reduction::min);
        if (!detail::check_arg(terms, s, out).ok())
          out = some_sharding(random, terms.result.size(), mesh.rank());
        REQUIRE(detail::check_arg(terms, s, out).ok());
        const TensorDesc x = some_desc(random, DType::i32, terms, s[0], true);
        const PlanOptions options{some_machine(random), max_int64};
        tally.add(wrong_operator(
            "arg " + std::string(equation), {x}, out, mesh,
            [&](int p) {
              return ops::Arg{terms, kind, out}.plan({x}, {mesh, p, options});
            },
            support::arg(terms, kind, whole_input<Value>(x, mesh, 5)), options.machine));
      }
    }
}

TEST_CASE(
    "running sums, maxima and joins by a function: forward, reverse, exclusive, of finished and "
    "unfinished tensors") {
  Random random(seed_for("scan", 32));
  Tally tally;
  for (const MeshShape& mesh : meshes(8, 3))
    for (const char* labels : {"a", "ab", "abc", "abcd"}) {
      const Terms terms = detail::same_terms(labels);
      const int rank = terms.result.size();
      for (int i = 0; i < 40 / share; ++i) {
        const int along = random.below(rank);
        const Reduction kind =
            random.of<Reduction>({Reduction::sum, Reduction::max, Reduction::min, Reduction::none});
        const bool by_function = kind == Reduction::none;
        const ScanOptions scan{random.chance(50), random.chance(50)};
        const Sharding s = some_sharding(random, rank, mesh.rank(),
                                         random.chance(30) && !by_function ? 40 : 0, kind);
        Sharding out = random.chance(50) ? s : some_sharding(random, rank, mesh.rank());
        REQUIRE(detail::check_scan(terms, terms.result[along], kind, {s}, out).ok());
        const TensorDesc x = some_desc(random, DType::i32, terms, s, false);
        const PlanOptions options{some_machine(random), max_int64};
        tally.add(wrong_operator(
            std::string("scan ") + labels + " along " + terms.result[along], {x}, out, mesh,
            [&](int p) {
              return detail::plan_scan(terms.result, along, kind, scan, x, out, mesh, p, options);
            },
            by_function
                ? support::scan_by(along, Compose{}, scan, whole_input<Value>(x, mesh, 5), Value{0})
                : support::scan(along, kind, scan, whole_input<Value>(x, mesh, 5)),
            options.machine));
      }
    }
}

TEST_CASE("deterministic sums: limbs reach every process, whole and in order") {
  Random random(seed_for("deterministic", 33));
  Tally tally;
  for (const MeshShape& mesh : meshes(8, 3))
    for (const char* equation : equations) {
      const Terms terms = parse(equation);
      for (int i = 0; i < 12; ++i) {
        const Shardings s{some_sharding(random, terms.operands[0].size(), mesh.rank())};
        const Sharding out = some_sharding(random, terms.result.size(), mesh.rank());
        REQUIRE(detail::check_deterministic(terms, s, out).ok());
        const TensorDesc x = some_desc(
            random, random.of<DType>({DType::f16, DType::f32, DType::f64}), terms, s[0], false);
        const PlanOptions options{some_machine(random), max_int64};
        tally.add(wrong_operator(
            "deterministic " + std::string(equation), {x}, out, mesh,
            [&](int p) { return detail::plan_deterministic_sum(terms, x, out, mesh, p, options); },
            reduce(terms, Reduction::sum, whole_input<Value>(x, mesh, 5)), options.machine));
      }
    }
}

TEST_CASE("what they communicate") {
  const MeshShape mesh{4, 2};
  const Terms rows = parse("bv->b");
  const Sharding whole{{0}, {}}, cut{{}, {0, 1}}, row{{}}, part{{0}};
  const TensorDesc x{DType::f32, {16, 4096}, cut};
  // Not split: nothing.
  CHECK(ops::Arg{rows, Reduction::max, part}
            .plan({TensorDesc{DType::f32, {16, 4096}, whole}}, {mesh})
            .communications() == 0);
  CHECK(detail::plan_deterministic_sum(rows, {DType::f32, {16, 4096}, whole}, part, mesh)
            .communications() == 0);
  CHECK(ops::Scan{.terms = parse("bv->bv"), .along = 'v', .reduction = Reduction::sum, .out = whole}
            .plan({TensorDesc{DType::f32, {16, 4096}, whole}}, {mesh})
            .communications() == 0);
  // Split: a row's size of values and of indices, nothing of x's size.
  const Plan arg = ops::Arg{rows, Reduction::max, row}.plan({x}, {mesh});
  CHECK(arg.count(Collective::all_reduce) == 2);
  CHECK(arg.communications() == 2);
  CHECK(arg.payload_bytes() == 2 * (16 - 2) * 4 + 2 * (16 - 2) * 8);
  CHECK(arg.peak_bytes < 1024);
  // One element of each row from one other part in each of three rounds.
  const Plan scan = ops::Scan{.terms = parse("bv->bv"),
                              .along = 'v',
                              .reduction = Reduction::sum,
                              .type = x.type,
                              .out = cut}
                        .plan({x}, {mesh});
  CHECK(scan.count(Collective::exchange) == 3);
  CHECK(scan.communications() == 3);
  CHECK(scan.payload_bytes() == 3 * 16 * 4);
  // A softmax needs the largest element of each row and its sum of exponentials.
  CHECK(ops::Softmax{parse("bv->bv"), 'v', false, whole}
            .plan({TensorDesc{DType::f32, {16, 4096}, whole}}, {mesh})
            .steps.size() == 1);
  const TensorDesc halves{DType::f16, {16, 4096}, cut};
  const Plan soft = ops::Softmax{parse("bv->bv"), 'v', true, cut}.plan({halves}, {mesh});
  CHECK(soft.count(Collective::all_reduce) == 2);
  CHECK(soft.communications() == 2);
  CHECK(soft.payload_bytes() == 2 * (16 - 2) * 2 + 2 * (16 - 2) * 4);  // the sums are floats
  CHECK(soft.peak_bytes < 16 * 512 * 2 + 1024);
  // A variance needs the means and the squares; it is one step where rows are whole.
  const Plan spread = ops::Moments{rows, true, row}.plan({halves}, {mesh});
  CHECK(spread.count(Collective::all_reduce) == 2);
  CHECK(spread.communications() == 2);
  CHECK(spread.payload_bytes() == 2 * 2 * (16 - 2) * 4);  // floats
  CHECK(spread.peak_bytes < 1024);
  const Sharding along_rows{{0, 1}, {}};
  const Plan local = ops::Moments{rows, true, Sharding{{0, 1}}}.plan(
      {TensorDesc{DType::f32, {16, 4096}, along_rows}}, {mesh});
  CHECK(local.steps.size() == 1);
  CHECK(local.also.size() == 1);
  CHECK(ops::Moments{rows, false, Sharding{{0, 1}}}
            .plan({x}, {mesh})
            .count(Collective::reduce_scatter) == 1);
  // A layer norm needs both, as floats, and an RMS norm the squares alone; scale and bias are cut
  // where they lie.
  const Terms norm = parse("bv,v,v->bv");
  const Sharding one{{}};
  const TensorDesc factor{DType::f16, {4096}, one};
  const Plan centred = ops::Normalize{norm, true, 1e-5, cut}.plan({halves, factor, factor}, {mesh});
  CHECK(centred.count(Collective::all_reduce) == 2);
  CHECK(centred.communications() == 2);
  CHECK(centred.payload_bytes() == 2 * 2 * (16 - 2) * 4);
  CHECK(centred.peak_bytes < 16 * 512 * 2 + 2 * 512 * 2 + 1024);
  CHECK(centred.also.size() == 2);
  const Plan squares =
      ops::Normalize{parse("bv,v->bv"), false, 1e-5, cut}.plan({halves, factor}, {mesh});
  CHECK(squares.communications() == 1);
  CHECK(squares.payload_bytes() == 2 * (16 - 2) * 4);
  CHECK(squares.also.size() == 1);
  CHECK(ops::Normalize{norm, true, 1e-5, along_rows}
            .plan({{DType::f32, {16, 4096}, along_rows},
                   {DType::f32, {4096}, one},
                   {DType::f32, {4096}, one}},
                  {mesh})
            .steps.size() == 1);
  // Exponents, and two limbs of integers that are scattered where the result is.
  const Plan sum = detail::plan_deterministic_sum(rows, x, row, mesh);
  CHECK(sum.count(Collective::all_reduce) == 2);
  CHECK(sum.payload_bytes() == 2 * (16 - 2) * 8 + 2 * (32 - 4) * 8);
  CHECK(detail::plan_deterministic_sum(rows, x, Sharding{{0, 1}}, mesh)
            .count(Collective::reduce_scatter) == 1);
}

TEST_CASE(
    "totals of running sums travel in as many rounds as a scan needs, or by the cheaper way") {
  Contract gathers = Contract::nothing(), exchanges = Contract::nothing();
  for (const int parts : {3, 4, 5, 8, 13, 16, 31, 64}) {
    const MeshShape mesh{parts};
    gathers.accept(Collective::all_gather, mesh.axes());
    exchanges.accept(Collective::exchange, mesh.axes());
    const Sharding cut{{}, {0}};
    for (const Index rows : {1, 100, 10000, 1000000})
      for (const bool reverse : {false, true}) {
        const TensorDesc x{DType::f32, {rows, 4 * parts}, cut};
        const auto planned = [&](const PlanOptions& options) {
          return ops::Scan{.terms = parse("bv->bv"),
                           .along = 'v',
                           .reduction = Reduction::sum,
                           .options = {.reverse = reverse},
                           .type = x.type,
                           .out = cut}
              .plan({x}, {mesh, 0, options});
        };
        PlanOptions options;
        const Plan best = planned(options);
        options.contract = gathers;
        const Plan gathered = planned(options);
        options.contract = exchanges;
        const Plan doubled = planned(options);
        // What a process knows at most doubles in a round.
        int rounds = 0;
        while ((1 << rounds) < parts) ++rounds;
        CHECK(doubled.communications() == rounds);
        CHECK(doubled.payload_bytes() == rounds * rows * 4);
        CHECK(gathered.payload_bytes() == (parts - 1) * rows * 4);
        CHECK(best.cost == std::min(gathered.cost, doubled.cost));
        CHECK((parts < 8 || rows < 10000 || best.payload_bytes() == rounds * rows * 4));
      }
  }
}

TEST_CASE("running sums over more parts than a plan has rounds for gather their totals") {
  for (const int parts : {4096, 4097}) {
    const TensorDesc x{DType::f32, {1000000, 4 * parts}, {{}, {0}}};
    const Plan plan = ops::Scan{.terms = parse("bv->bv"),
                                .along = 'v',
                                .reduction = Reduction::sum,
                                .type = x.type,
                                .out = x.sharding}
                          .plan({x}, {MeshShape{parts}});
    CHECK(plan.count(Collective::exchange) == (parts == 4096 ? 12 : 0));
    CHECK(plan.count(Collective::all_gather) == (parts == 4096 ? 0 : 1));
  }
}

TEST_CASE("limbs: as many bits as the law says, and no overflow") {
  for (DType type : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::c64, DType::c128})
    for (int log = 0; log <= 48; ++log)
      for (Index count : {(Index{1} << log), (Index{1} << log) + 1}) {
        const detail::BinFormat format = detail::bin_format(type, count);
        if (count > Index{1} << 48) continue;
        int needed = 0;
        while ((Index{1} << needed) < count) ++needed;
        CHECK(format.limbs >= 2);
        CHECK(format.limbs * format.bits >= detail::mantissa_bits(type) + needed + 10);
        CHECK(count <= (Index{1} << (62 - format.bits)));
      }
  CHECK(detail::bin_format(DType::f64, Index{1} << 50).limbs == 0);
}
