// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: plan_operators
// Slice, pad, reverse, roll, shift, concatenate, update and reshape in a dry run: conformance cases
// at their stated sizes, and random ones carried out for all processes and compared with plain
// loops.
#include <doctest/doctest.h>

#include <functional>
#include <map>

#include "support/dry_run.hpp"
#include "support/least_payload.hpp"
#include "support/shapes.hpp"

#include <tessera/plan/check/contract.hpp>
#include <tessera/plan/op/shape/reshape.hpp>
#include <tessera/plan/op/shape/shape.hpp>
#include <tessera/program/payload_bound.hpp>

using namespace tessera;
using namespace support;

namespace {

TensorDesc tensor(const Extents& extents, const Sharding& s, DType type = DType::f32) {
  return {type, extents, s};
}

/// What a plan communicates at most: so many exchanges (or permutes and all-to-alls), gathers, and
/// messages of a process.
void check_row(const std::string& name, const Plan& plan, int moves, int gathers = 0,
               Index messages = max_int64) {
  CAPTURE(name);
  CAPTURE(describe(plan));
  CHECK(plan.count(all_gather) <= gathers);
  CHECK(plan.count(all_reduce) + plan.count(reduce_scatter) == 0);
  CHECK(plan.communications() - plan.count(all_gather) <= moves);
  const PlanSpread all = over_processes(plan);
  CHECK(all.messages.most <= messages);
  Index calls = 0;
  CHECK(detail::fault_of(plan, calls) == "");
}
ops::Slicing part(const Extents& start, const Extents& limit, const Extents& stride = {}) {
  return {{Slice{start, limit, stride}}};
}
template <class How>
Plan take(const How& how, const TensorDescs& x, const Sharding& out, const MeshShape& mesh) {
  return planned(ops::Moving<How>{how, out}, x, mesh);
}
template <class How>
Plan take(const How& how, const TensorDesc& x, const Sharding& out, const MeshShape& mesh) {
  return take(how, TensorDescs{x}, out, mesh);
}
Plan reshape(const TensorDesc& x, const Extents& to, const Sharding& out, const MeshShape& mesh) {
  return planned(ops::Reshape{to, out}, {x}, mesh);
}

}  // namespace

TEST_CASE("conformance: pads") {
  const TensorDesc a1 = tensor({128, 14, 257}, {{}, {}, {0}});
  check_row("A1", take(ops::Padding{{0, 1, 0}, {0, 2, 0}}, a1, a1.sharding, {2}), 0);
  const TensorDesc a3 = tensor({14, 257}, {{0}, {1}});
  const Plan wide = take(ops::Padding{{0, 0}, {0, 2000}}, a3, a3.sharding, {2, 4});
  check_row("A3", wide, 1, 1);
  CHECK(wide.communications() == 1);
  const TensorDesc a5 = tensor({11, 7}, {{}, {0}});
  const ops::Padding pad{{2, 2}, {4, 1}, {1, 2}};
  CHECK(ops::Pad{pad, a5.sharding}.results({a5})[0].extents == Extents{27, 22});
  const Plan plan = take(pad, a5, a5.sharding, {2, 2});
  check_row("A5", plan, 1, 0, 1);
  CHECK(plan.steps[0].group == AxisSet{0});
  const TensorDesc a7 = tensor({16}, {{0}});
  check_row("A7", take(ops::Padding{{16}, {-16}}, a7, a7.sharding, {16}), 0);
  const TensorDesc a9 = tensor({128, 13, 257}, {{}, {0}, {}});
  check_row("A9", take(ops::Padding{{0, 0, 0}, {0, 1, 0}}, a9, a9.sharding, {2}), 0);
}

TEST_CASE("conformance: slices and shifts") {
  const TensorDesc s1 = tensor({128, 14, 257}, {{}, {}, {0}});
  check_row("S1", take(part({0, 2, 0}, {128, 13, 257}), s1, s1.sharding, {2}), 0);
  const TensorDesc four = tensor({4}, {{0}});
  check_row("S3", take(part({3}, {4}), four, four.sharding, {4}), 1, 0, 1);
  const Plan s5 = take(part({300}, {302}), tensor({512}, {{0}}), {{0}}, {8});
  check_row("S5", s5, 1, 0, 2);
  CHECK(over_processes(s5).messages.process == 4);
  CHECK(over_processes(s5).payload.total == 2 * 4);
  const Plan s7 = take(part({0, 0}, {6, 2}), tensor({100, 2}, {{0}, {}}), {{0}, {}}, {2});
  check_row("S7", s7, 1, 0, 1);
  CHECK(over_processes(s7).payload.total == 3 * 2 * 4);
  // A pad by 1_0 and the slice [0:4] of it are a shift, and a pad by 1_-1.
  const Sharding s{{0}};
  for (const Operation& op :
       {Operation(ops::Shift{{1, 0}, s}), Operation(ops::Pad{{{1}, {-1}}, s})}) {
    const Plan h1 = planned(op, {four}, {4});
    check_row("H1", h1, 1, 0, 1);
    CHECK(over_processes(h1).messages.total == 3);
  }
  for (const Operation& op :
       {Operation(ops::Shift{{-2, 0}, s}), Operation(ops::Pad{{{-2}, {2}}, s})}) {
    const Plan h3 = planned(op, {four}, {4});
    check_row("H3", h3, 1, 0, 1);
    CHECK(over_processes(h3).messages.total == 2);
  }
}

TEST_CASE("a slice of one block that all need is broadcast, where that costs less") {
  const auto planned = [](const Extents& start, const Extents& limit, const Sharding& from,
                          const Sharding& to, const MeshShape& mesh, int process = 0,
                          const Machine& machine = {}) {
    PlanOptions options;
    options.machine = machine;
    return ops::Slice{part(start, limit), to}.plan({tensor({64, 24}, from)},
                                                   {mesh, process, options});
  };
  const MeshShape eight{8}, grid{2, 4};
  const Sharding rows{{0}, {}}, whole{{}, {}};
  for (int process = 0; process < 8; ++process) {  // process 2 has rows 16 to 23
    const Plan p = planned({17, 3}, {22, 20}, rows, whole, eight, process);
    CHECK(p.count(Collective::broadcast) == 1);
    CHECK(p.communications() == 1);
    CHECK(p.own_payload_bytes() == (process == 2 ? 0 : 5 * 17 * 4));
  }
  // A slice of two blocks, or into a split result, is no broadcast.
  CHECK(planned({17, 3}, {25, 20}, rows, whole, eight).count(Collective::broadcast) == 0);
  CHECK(planned({17, 3}, {22, 20}, rows, {{}, {0}}, eight).count(Collective::broadcast) == 0);
  CHECK(planned({40, 0}, {50, 24}, rows, whole, MeshShape{2}).count(Collective::broadcast) == 0);
  // Each row of the mesh by itself; the columns stay where they are.
  const Plan columns = planned({17, 0}, {30, 24}, {{1}, {0}}, {{}, {0}}, grid);
  CHECK(columns.count(Collective::broadcast) == 1);
  CHECK(columns.communications() == 1);
  CHECK(columns.steps[0].group == AxisSet{1});
  const auto layer = [&](Index rows_each, const Sharding& from, const Sharding& to,
                         const MeshShape& mesh) {
    return ops::Slice{part({3 * rows_each, 0, 0}, {4 * rows_each, 512, 1024}), to}.plan(
        {tensor({64 * rows_each, 512, 1024}, from)}, {mesh, 0, {}});
  };
  // One layer of a stack: what its process must send is what each of the others receives.
  const Index one = 512 * 1024 * 4;
  for (const int p : {4, 8, 64})
    CHECK(layer(1, {{0}, {}, {}}, {{}, {}, {}}, {p}).payload_bytes() == one);
  // A layer of which each process of a group has a part: the parts are broadcast, and gathered.
  const Plan parts = layer(1, {{0}, {1}, {}}, {{}, {}, {}}, {8, 4});
  CHECK(parts.count(Collective::broadcast) == 1);
  CHECK(parts.payload_bytes() == one);
  CHECK(layer(2, {{0}, {1}, {}}, {{}, {1}, {}}, {8, 4}).payload_bytes() == 2 * one / 4);
}

TEST_CASE("conformance: four slices that overlap share one exchange") {
  ops::Slicing parts;
  for (Index k = 6; k <= 9; ++k) parts.parts.push_back({{k}, {1520 + k}, {}});
  const Plan plan = take(parts, tensor({1536}, {{0}}, DType::f64), {{0}}, {2});
  check_row("S9", plan, 1, 0, 1);
  CHECK(plan.also.size() == 3);
  CHECK(over_processes(plan).payload.total == (2 + 1 + 1) * 8);
}

TEST_CASE("several slices on every mesh give what plain loops give") {
  Random random(seed_for("slices, dry", 78));
  long wrong = 0;
  for (const MeshShape& mesh : meshes(8, 3))
    for (int i = 0; i < 40 / share; ++i) {
      const int rank = 1 + random.below(2);
      TensorDesc x{
          DType::i64, {}, some_sharding(random, rank, mesh.rank(), random.chance(30) ? 40 : 0)};
      for (int d = 0; d < rank; ++d) x.extents.push_back(random.below(12));
      const Whole<DryRun::Value> whole = whole_input<DryRun::Value>(x, mesh, 0);
      ops::Slice several;
      std::vector<Whole<DryRun::Value>> expected;
      for (int k = 1 + random.below(8); k > 0; --k) {
        Extents start, limit, stride;
        for (Index n : x.extents) {
          start.push_back(random.below(static_cast<int>(n) + 1));
          limit.push_back(start.back() + random.below(static_cast<int>(n - start.back()) + 1));
          stride.push_back(1 + random.below(2));
        }
        several.parts.push_back({start, limit, stride});
        expected.push_back(support::slice(whole, start, limit, stride));
      }
      several.out = random.chance(50) ? x.sharding : some_sharding(random, rank, mesh.rank());
      PlanOptions options;
      options.machine = some_machine(random, mesh.rank());
      DryRun dry([&](int process) { return planned(several, {x}, mesh, process, options); }, mesh,
                 options.machine);
      std::string text = dry.broken_law();
      if (text.empty()) text = dry.wrong_results({0}, expected);
      Index calls = 0;
      if (text.empty()) text = detail::fault_of(dry.plan(), calls);
      if (!text.empty() && ++wrong <= 5)
        MESSAGE(text << "\n"
                     << support::describe(x, mesh) << "\n"
                     << support::describe(dry.plan()));
    }
  CHECK(wrong == 0);
}

TEST_CASE("a shift is one message to one neighbour, whatever the number of stages") {
  for (const int stages : {2, 3, 5, 8, 64, 2048}) {
    const TensorDesc x = tensor({4 * stages, 128}, {{0}, {}});
    for (const Index by : {1, 4, -3}) {
      const Plan plan = take(ops::Shifting{by, 0}, x, x.sharding, MeshShape{stages});
      REQUIRE(plan.steps.size() == 1);
      const PlanSpread all = over_processes(plan);
      CHECK(all.messages.most == 1);
      CHECK(all.messages.total == stages - 1);
      CHECK(all.payload.most == (by < 0 ? -by : by) * 128 * 4);
      Plan middle = on_process(plan, stages / 2);
      const detail::MoveWork work = detail::move_work(middle, middle.steps[0]);
      for (const Piece& piece : work.call.send) CHECK(piece.peer == stages / 2 + (by > 0 ? 1 : -1));
    }
  }
}

TEST_CASE("conformance: rolls, reverses and concatenations") {
  check_row("Q1", take(ops::Rolling{2, 0}, tensor({12}, {{0}}), {{0}}, {4}), 1, 0, 1);
  check_row("Q3", take(ops::Rolling{6, 0}, tensor({10}, {{0}}), {{0}}, {4}), 1, 0, 3);
  for (const Sharding& s :
       {Sharding{{0}, {}}, Sharding{{}, {0}}}) {  // the last row, all rows, the first row
    const TensorDesc x = tensor({16, 16}, s), row = tensor({1, 16}, s);
    const int moves = s[0].empty() ? 0 : 1;
    check_row("Q5", take(part({15, 0}, {16, 16}), x, s, {2}), moves);
    // To gather a row is the same message.
    const Plan rows = take(ops::Concatenating{0}, {row, x, row}, s, {2});
    check_row("Q5", rows, moves, moves, 1);
    CHECK(rows.communications() == moves);
    CHECK(over_processes(rows).payload.total <= 16 * 4);
  }
  const auto both = [](const Sharding& s) {
    const TensorDesc x = tensor({14, 257}, s), y = tensor({14, 116}, s);
    return take(ops::Concatenating{1}, {x, y}, s, {2, 2});
  };
  check_row("Q7", both({{0}, {}}), 0);
  check_row("Q9", both({{0}, {1}}), 1, 0, 1);
  const TensorDesc v1 = tensor({3, 3}, {{0}, {}}), v3 = tensor({4}, {{0}});
  check_row("V1", take(ops::Reversing{{1}}, v1, v1.sharding, {2}), 0);
  const Plan v = take(ops::Reversing{{0}}, v3, v3.sharding, {2});
  check_row("V3", v, 1, 0, 1);
}

TEST_CASE("conformance: reshapes") {
  for (const MeshShape& mesh : {MeshShape{2}, MeshShape{2, 2}})
    check_row(
        "T1",
        reshape(tensor({38, 38, 324}, {{0}, {}, {}}), {38, 38, 4, 81}, {{0}, {}, {}, {}}, mesh), 0);
  check_row("T3",
            reshape(tensor({4, 14, 4}, {{0}, {1}, {2}}), {2, 2, 2, 7, 2, 2},
                    {{0}, {}, {1}, {}, {2}, {}}, {2, 4, 2}),
            1, 0, 3);
  const TensorDesc t5 =
      tensor({80, 64, 2, 2, 2, 2, 2}, {{0}, {1}, {}, {}, {}, {}, {}}, DType::bf16);
  const Plan gathered = reshape(t5, {5120, 4, 8}, {{0, 1}, {}, {}}, {16, 8});
  Index calls = 0;
  CHECK(detail::fault_of(gathered, calls) == "");
  CAPTURE(describe(gathered));
  // A gather of the eight parts and a cut take 7/8 of 5 x 64 x 32 elements; two moves that take
  // less are welcome.
  CHECK((gathered.communications() == 1 ||
         (gathered.communications() == 2 && gathered.payload_bytes() < 5 * 56 * 32 * 2)));
  check_row("T7", reshape(tensor({24}, {{0}}), {6, 4}, {{0}, {}}, {4}), 1, 0, 2);
}

TEST_CASE("what is made elsewhere than it was asked for goes each way once") {
  const auto row = [](const std::string& name, const Plan& plan, Index payload) {
    check_row(name, plan, 1, 1);
    CHECK_MESSAGE(plan.payload_bytes() <= payload, name << ": " << plan.payload_bytes()
                                                        << " bytes\n"
                                                        << describe(plan));
  };
  // Inner dimensions of a reshape: it is made where it lies, and one all-to-all brings it to its
  // place; the same backwards.
  const TensorDesc whole = tensor({38, 38, 324}, {{0}, {}, {}}),
                   inner = tensor({38, 38, 2, 162}, {{}, {}, {}, {0}});
  for (const int p : {2, 8}) {
    const Index block = ceil_div(38, p) * 38 * 324 * 4;
    const Index stays = ceil_div(38, p) * 38 * 2 * (162 / p) * 4;
    row("T13", reshape(whole, inner.extents, inner.sharding, MeshShape{p}), block - stays);
    const Index slab = 38 * 38 * 2 * ceil_div(162, p) * 4;
    row("T15", reshape(inner, whole.extents, whole.sharding, MeshShape{p}),
        slab - 38 / p / p * 38 * 2 * (162 / p) * 4);
  }
  CHECK(reshape(whole, inner.extents, inner.sharding, {2}).payload_bytes() == 19 * 38 * 162 * 4);
  // Inner before and after, and no leading dimension of the group is long enough.
  const Plan transit = reshape(inner, {38, 38, 4, 81}, {{}, {}, {}, {0}}, MeshShape{8});
  CHECK(transit.payload_bytes() < 2 * 38 * 38 * 2 * 21 * 4);
  // A part of a tensor goes to all: every process gets a share of it, and the shares are gathered.
  const TensorDesc x = tensor({4096, 1024}, {{0}, {}}, DType::f64);
  const Index line = 1024 * 8;
  const auto to_all = [&](Index lo, Index hi) {
    return take(part({lo, 0}, {hi, 1024}), x, {{}, {}}, MeshShape{8});
  };
  row("S11", to_all(1024, 2048), (4 * 128 + 896) * line);  // two blocks of eight
  row("S13", to_all(1536, 2048), 512 * line);              // one block
  row("S15", to_all(1536, 1537), line);                    // a line of it
  row("S17", to_all(1024, 3072), (2 * 256 + 2048) * line);
  // To fewer axes, where the rest is gathered.
  const TensorDesc y = tensor({4096, 1024}, {{0, 1}, {}}),
                   z = tensor({1000, 30, 64}, {{0, 1}, {}, {}});
  const MeshShape mesh{2, 4};
  row("S19", take(part({1024, 0}, {2048, 1024}), y, {{1}, {}}, mesh), 5 * 128 * 1024 * 4);
  row("Q11", take(ops::Rolling{5, 0}, y, {{}, {}}, mesh), (3584 + 5) * 1024 * 4);
  row("T17", reshape(z, {30000, 64}, {{0}, {}}, mesh), 375 * 30 * 64 * 4);
  row("T19", reshape(z, {30000, 64}, {{}, {}}, mesh), 875 * 30 * 64 * 4);
}

TEST_CASE("slices are put together from where they lie, by one exchange") {
  // The rows at both ends on the other's side, of one tensor: what Q5 makes of three.
  const Sharding s{{0}, {}};
  const TensorDesc x = tensor({16, 16}, s);
  const auto rows = [](Index lo, Index hi) { return Slice{{lo, 0}, {hi, 16}, {}}; };
  const Plan ring =
      take(ops::Concatenating{0, {rows(15, 16), std::nullopt, rows(0, 1)}}, {x, x, x}, s, {2});
  check_row("Q13", ring, 1, 0, 1);
  CHECK(ring.communications() == 1);
  CHECK(over_processes(ring).payload.most == 16 * 4);
  // Halves changed: slices and a concatenation are two exchanges more, and move as much each time.
  const TensorDesc wide = tensor({4096, 64}, s);
  const auto half = [](Index lo) { return Slice{{lo, 0}, {lo + 2048, 64}, {}}; };
  const MeshShape four{4};
  const Plan changed = take(ops::Concatenating{0, {half(2048), half(0)}}, {wide, wide}, s, four);
  CHECK(changed.communications() == 1);
  CHECK(changed.payload_bytes() == 1024 * 64 * 4);
  const TensorDesc piece = tensor({2048, 64}, s);
  const Plan first = take(part({2048, 0}, {4096, 64}), wide, s, four),
             second = take(part({0, 0}, {2048, 64}), wide, s, four),
             joined = take(ops::Concatenating{0}, {piece, piece}, s, four);
  CHECK(changed.payload_bytes() < first.payload_bytes() + joined.payload_bytes());
  CHECK(changed.cost < first.cost + second.cost + joined.cost);
  // A slice that stays where its elements are.
  const Plan still =
      take(ops::Updating{{1024, 0}, {std::nullopt, Slice{{1024, 0}, {2048, 64}, {}}}}, {wide, wide},
           s, four);
  CHECK(still.communications() == 0);
}

TEST_CASE("dimensions that hold the same elements") {
  const auto text = [](const Extents& from, const Extents& to) {
    std::string s;
    const auto list = [](const Dimensions& dims) {
      std::string one;
      for (int d : dims) one += std::to_string(d);
      return one;
    };
    for (const detail::ReshapeGroup& g : detail::groups_of(from, to).groups)
      s += list(g.from) + "-" + list(g.to) + " ";
    return s;
  };
  CHECK(text({5, 6, 4}, {5, 3, 8}) == "0-0 12-12 ");
  CHECK(text({5, 24}, {5, 4, 6}) == "0-0 1-12 ");
  CHECK(text({1, 8, 1, 3}, {24, 1}) == "13-0 ");
  CHECK(text({2, 3, 4}, {4, 3, 2}) == "012-012 ");
  CHECK(text({2, 6, 2}, {4, 3, 2}) == "01-01 2-2 ");
  CHECK(text({}, {1, 1}) == "");
  CHECK(text({1}, {}) == "");
  CHECK(detail::groups_of({3, 0}, {0}).empty);
  const Sharding heads =
      detail::reshaped_sharding(tensor({8, 16, 32}, {{0}, {}, {1}}), {8, 16, 4, 8});
  CHECK(heads == Sharding{{0}, {}, {1}, {}});
  CHECK(detail::reshaped_sharding(tensor({8, 16, 4, 8}, {{0}, {}, {1}, {2}}), {8, 16, 32}) ==
        Sharding{{0}, {}, {1}});
  CHECK(detail::reshaped_sharding(tensor({1, 6}, {{0}, {1}}), {3, 2, 1}) == Sharding{{1}, {}, {0}});
}

TEST_CASE("heads are split from features and merged again without communication") {
  const MeshShape mesh{2, 4};
  const TensorDesc x = tensor({8, 16, 32}, {{0}, {}, {1}}),
                   y = tensor({8, 16, 8, 4}, {{0}, {}, {1}, {}});
  CHECK(reshape(x, y.extents, y.sharding, mesh).communications() == 0);
  CHECK(reshape(y, x.extents, x.sharding, mesh).communications() == 0);
  const TensorDesc rows = tensor({128, 32}, {{0}, {1}});
  CHECK(reshape(x, rows.extents, rows.sharding, mesh).communications() == 0);
}

namespace {

struct Case {
  std::string text;
  TensorDescs operands;
  Sharding out;
  Whole<DryRun::Value> expected;
  std::function<Plan(const MeshShape&, int, const PlanOptions&)> plan;
  std::function<Contract(const MeshShape&, const Contract&)> needs;      // of these numbers
  std::function<Contract(const MeshShape&, const Contract&)> needs_all;  // of whatever numbers
  /// Asks for `op`; `stand_in` stands for it where numbers are not known.
  template <class Op> void ask(const Op& op, const Op& stand_in) {
    text = std::string(name_of(op.kind())) + " to " + to_string(op.results(operands)[0].extents);
    plan = [op, x = operands](const MeshShape& m, int p, const PlanOptions& o) {
      return planned(op, x, m, p, o);
    };
    needs = [op, x = operands](const MeshShape& m, const Contract& k) {
      return tessera::needs(op, x, m, k);
    };
    needs_all = [stand_in, x = detail::shardings_of(operands)](const MeshShape& m,
                                                               const Contract& k) {
      return tessera::needs(stand_in, x, m, k);
    };
  }
};

Index some_extent(Random& random) {
  return random.of<Index>({1, 2, 3, 4, 5, 7, 8, 9, 13, random.chance(20) ? 0 : 6});
}

/// Some slice of a tensor of these extents.
Slice some_slice(Random& random, const Extents& extents) {
  Slice slice;
  for (Index n : extents) {
    slice.start.push_back(random.below(static_cast<int>(n) + 1));
    slice.limit.push_back(slice.start.back() +
                          random.below(static_cast<int>(n - slice.start.back()) + 1));
    slice.stride.push_back(1 + random.below(3));
  }
  return slice;
}
Whole<DryRun::Value> cut(const Whole<DryRun::Value>& x, const std::optional<Slice>& slice) {
  return slice ? support::slice(x, slice->start, slice->limit, slice->stride) : x;
}

/// Numbers that tell all elements of all operands apart.
Whole<DryRun::Value> numbers_of(const TensorDesc& desc, std::uint64_t operand) {
  Whole<DryRun::Value> x(desc.extents);
  for (Index i = 0; i < x.size(); ++i)
    x[i] = static_cast<DryRun::Value>(operand + 1) * 1'000'000 + i;
  return x;
}
/// Some operator on tensors that are split over axes of `mesh`. Unfinished ones are sums.
Case some_case(Random& random, const MeshShape& mesh, DryRun::Value outside,
               bool numbered = false) {
  const int axes = mesh.rank();
  const auto input_of = [&](const TensorDesc& desc, std::uint64_t k) {
    return numbered ? numbers_of(desc, k) : whole_input<DryRun::Value>(desc, mesh, k);
  };
  const auto alike = [&](const Sharding& x, int rank) {
    Sharding s = some_sharding(random, rank, axes);
    for (int d = 0; d < rank; ++d) s[d] = s[d].without(x.partial);
    return s.with_partial(x.partial, x.reduction);
  };
  const auto result = [&](const Sharding& x, int rank) {
    if (random.chance(30) && x.rank() == rank) return x;
    return random.chance(50) ? some_sharding(random, rank, axes) : alike(x, rank);
  };
  const bool open = outside == 0 && random.chance(30);
  const int which = random.below(8);
  Case c;
  if (which == 7) {
    const auto [from, to] = some_reshape(random);
    const TensorDesc x{DType::i64, from, some_sharding(random, from.size(), axes, open ? 40 : 0)};
    c.operands.push_back(x);
    c.out = random.chance(40) ? detail::reshaped_sharding(x, to) : result(x.sharding, to.size());
    c.expected = support::reshape(input_of(x, 0), to);
    c.ask(ops::Reshape{to, c.out}, ops::Reshape{{}, c.out});
    return c;
  }
  const int rank = 1 + random.below(3);
  TensorDesc x{DType::i64, {}, some_sharding(random, rank, axes, open ? 40 : 0)};
  for (int d = 0; d < rank; ++d) x.extents.push_back(some_extent(random));
  const Whole<DryRun::Value> whole = input_of(x, 0);
  const int dim = random.below(rank);
  c.operands.push_back(x);
  c.out = result(x.sharding, rank);
  Extents start, limit, stride, interior;
  const Extents none(rank, 0), ones(rank, 1), many(rank, 5040);
  const Slice but_one{ones, many, {}};
  Slices slices;
  const bool sliced = random.chance(50);
  switch (which) {
    case 0:
      for (Index n : x.extents) {
        start.push_back(random.below(static_cast<int>(n) + 1));
        limit.push_back(start.back() + random.below(static_cast<int>(n - start.back()) + 1));
        stride.push_back(1 + random.below(3));
      }
      c.ask(ops::Slice{part(start, limit, stride), c.out}, ops::Slice{part(ones, many), c.out});
      c.expected = support::slice(whole, start, limit, stride);
      break;
    case 1:
      for (Index n : x.extents) {
        interior.push_back(random.below(3));
        const Index wide = n + (n > 1 ? (n - 1) * interior.back() : 0);
        start.push_back(random.below(7) - 3);
        limit.push_back(random.below(7) - 3);
        if (start.back() + limit.back() + wide < 0) start.back() = limit.back() = 1;
      }
      c.ask(ops::Pad{{start, limit, interior}, c.out}, ops::Pad{{ones, none}, c.out});
      c.expected = support::pad(whole, start, limit, interior, outside);
      break;
    case 2:
      c.ask(ops::Reverse{{{dim}}, c.out}, ops::Reverse{{{dim}}, c.out});
      c.expected = support::reverse(whole, {dim});
      break;
    case 3:
    case 4: {
      const Index by = random.below(31) - 15;
      if (which == 3)
        c.ask(ops::Roll{{by, dim}, c.out}, ops::Roll{{1, dim}, c.out});
      else
        c.ask(ops::Shift{{by, dim}, c.out}, ops::Shift{{1, dim}, c.out});
      c.expected =
          which == 3 ? support::roll(whole, by, dim) : support::shift(whole, by, dim, outside);
      break;
    }
    case 5: {
      if (sliced) slices.push_back(some_slice(random, x.extents));
      std::vector<Whole<DryRun::Value>> wholes{cut(whole, sliced ? slices[0] : std::nullopt)};
      for (std::uint64_t k = 1; k < static_cast<std::uint64_t>(1 + random.below(4)); ++k) {
        TensorDesc one = x;
        one.extents = wholes[0].extents;
        one.extents[dim] = some_extent(random);
        std::optional<Slice> slice;
        if (sliced && random.chance(60)) {  // as much of a larger one
          slice = Slice{};
          for (int d = 0; d < rank; ++d) {
            const Index step = 1 + random.below(2), count = one.extents[d];
            slice->start.push_back(random.below(3));
            slice->stride.push_back(step);
            slice->limit.push_back(slice->start.back() + (count > 0 ? (count - 1) * step + 1 : 0));
            one.extents[d] = slice->limit.back() + random.below(3);
          }
        }
        if (random.chance(50)) one.sharding = alike(x.sharding, rank);
        c.operands.push_back(one);
        slices.push_back(slice);
        wholes.push_back(cut(input_of(one, k), slice));
      }
      if (!sliced) slices = {};
      const Slices off = sliced ? Slices(c.operands.size(), but_one) : Slices();
      c.ask(ops::Concatenate{{dim, slices}, c.out}, ops::Concatenate{{dim, off}, c.out});
      c.expected = support::concatenate(wholes, dim);
      break;
    }
    default: {
      TensorDesc block{DType::i64, {}, alike(x.sharding, rank)};
      slices = {std::nullopt, std::nullopt};
      if (sliced && random.chance(60)) slices[0] = some_slice(random, x.extents);
      for (Index n : cut(whole, slices[0]).extents) {
        start.push_back(random.below(static_cast<int>(n) + 1));
        block.extents.push_back(random.below(static_cast<int>(n - start.back()) + 1));
      }
      if (sliced) slices[1] = some_slice(random, block.extents);
      c.operands.push_back(block);
      Slices off{std::nullopt, Slice{none, Extents(rank, 2520), {}}};
      if (slices[0]) off[0] = but_one;
      c.ask(ops::Update{{start, slices}, c.out}, ops::Update{{ones, off}, c.out});
      c.expected =
          support::update(cut(whole, slices[0]), cut(input_of(block, 1), slices[1]), start);
      break;
    }
  }
  return c;
}
std::string describe(const Case& c, const MeshShape& mesh) {
  std::string text = c.text + " of";
  for (const TensorDesc& x : c.operands) text += " " + support::describe(x, mesh);
  return text + " as " + support::describe(c.out, mesh) + " on " + support::describe(mesh);
}
std::string wrong_case(const Case& c, const MeshShape& mesh, const PlanOptions& options,
                       DryRun::Value outside) {
  DryRun dry([&](int process) { return c.plan(mesh, process, options); }, mesh, options.machine);
  dry.fill_with(outside);
  std::vector<std::uint64_t> seeds;
  for (int k = 0; k < c.operands.size(); ++k) seeds.push_back(static_cast<std::uint64_t>(k));
  std::string text = dry.broken_law();
  if (text.empty()) text = dry.wrong_result(seeds, c.expected);
  Index calls = 0;
  if (text.empty()) text = detail::fault_of(dry.plan(), calls);
  if (text.empty() && mesh.processes() > 1 &&
      !(on_process(dry.plan(), 1) == c.plan(mesh, 1, options)))
    text = "the plan of process 1 is another when it is told from that of process 0";
  return text.empty() ? "" : describe(c, mesh) + ": " + text + "\n" + support::describe(dry.plan());
}

}  // namespace

TEST_CASE("plans on every mesh of up to 8 processes give what plain loops give") {
  Random random(seed_for("shapes, dry", 71));
  long cases = 0, wrong = 0;
  for (const MeshShape& mesh : meshes(8, 3))
    for (int i = 0; i < 300 / share; ++i) {
      const DryRun::Value outside = random.chance(50) ? 0 : 77;
      const Case c = some_case(random, mesh, outside);
      PlanOptions options;
      options.machine = some_machine(random, mesh.rank());
      if (random.chance(20)) options.workspace_limit = 200;
      ++cases;
      const std::string text = wrong_case(c, mesh, options, outside);
      if (!text.empty() && ++wrong <= 5) MESSAGE(text);
      if (wrong > 5) break;
    }
  MESSAGE(cases << " cases");
  CHECK(wrong == 0);
}

/// The least payload of a case of numbered elements, element by element.
Index least_of(const Case& c, const MeshShape& mesh) {
  Holders has, needs;
  std::map<DryRun::Value, std::size_t> places;
  for (int k = 0; k < c.operands.size(); ++k) {
    const auto numbers = numbers_of(c.operands[k], static_cast<std::uint64_t>(k));
    for (Index i = 0; i < numbers.size(); ++i)
      places[numbers[i]] = has.size() + static_cast<std::size_t>(i);
    const Holders held = holders(c.operands[k], mesh);
    has.insert(has.end(), held.begin(), held.end());
  }
  needs.resize(has.size());
  const Holders made = holders({DType::i64, c.expected.extents, c.out}, mesh);
  for (std::size_t i = 0; i < made.size(); ++i)
    if (const auto at = places.find(c.expected[static_cast<Index>(i)]); at != places.end())
      needs[at->second] |= made[i];
  return least_payload(has, needs, mesh, 8);
}

TEST_CASE("moves of positions send no less than their bound, which is that of their elements") {
  Random random(seed_for("moves and their bound", 73));
  PlanOptions bytes_alone;
  bytes_alone.machine = {.message_ps = 0, .copy_ps_per_kib = 0, .network_message_ps = 0};
  int cases = 0, counted = 0, at_the_bound = 0;
  for (const MeshShape& mesh : {MeshShape{4}, MeshShape{2, 3}, MeshShape{2, 2, 2}})
    for (int i = 0; i < 600 / share; ++i) {
      const Case c = some_case(random, mesh, 77, true);
      const Plan plan = c.plan(mesh, 0, bytes_alone);
      if (plan.kind == OperatorKind::update || plan.kind == OperatorKind::reshape) continue;
      const Index least = least_of(c, mesh), bound = payload_bound(plan);
      CAPTURE(describe(c, mesh));
      CAPTURE(support::describe(plan));
      Index sent = 0;
      for (int p = 0; p < mesh.processes(); ++p)
        sent = max_of(sent, on_process(plan, p).payload_bytes());
      CHECK(sent >= bound);
      CHECK(bound <= least);
      ++cases;
      counted += bound == least;
      at_the_bound += sent == least;
    }
  MESSAGE(counted << " bounds of " << cases << " are those of elements; " << at_the_bound
                  << " plans are at them");
  CHECK(counted >= cases * 9 / 10);
}

TEST_CASE(
    "a contract that is kept for stand-in sizes is kept on every mesh, whatever the extents") {
  Random random(seed_for("contracts of shapes", 72));
  const MeshShape stand_in{2, 3, 4};
  long cases = 0, kept = 0, wrong = 0;
  for (int i = 0; i < 6000 / share; ++i) {
    Contract contract = Contract::nothing();
    for (int kind = 0; kind < detail::collective_kinds; ++kind) {
      const int which = random.below(4);
      if (which == 1)
        contract.accept(static_cast<Collective>(kind),
                        AxisSet::from_bits(static_cast<std::uint32_t>(random.below(8))));
      if (which == 2) contract.accept(static_cast<Collective>(kind), AxisSet{0, 1, 2});
    }
    const MeshShape mesh{1 + random.below(3), 1 + random.below(3), 1 + random.below(3)};
    const Case c = some_case(random, mesh, 0);
    ++cases;
    const bool all = contract.covers(c.needs_all(stand_in, contract));
    if (!all && !contract.covers(c.needs(stand_in, contract))) continue;
    kept += all;
    PlanOptions options;
    options.contract = contract;
    options.machine = some_machine(random, 3);
    const Plan plan = c.plan(mesh, 0, options);
    if (!contract.covers(plan.needs) && ++wrong <= 5)
      MESSAGE(describe(c, mesh) << " under " << to_string(contract, axis_names(3))
                                << "\nits stand-in "
                                << to_string(c.needs(stand_in, contract), axis_names(3)) << "\n"
                                << support::describe(plan));
    if (random.chance(20)) {
      const std::string text = wrong_case(c, mesh, options, 0);
      if (!text.empty() && ++wrong <= 5) MESSAGE(text);
    }
  }
  MESSAGE(kept << " of " << cases << " contracts are kept");
  CHECK(kept > 500 / share);
  CHECK(kept < cases - 500 / share);
  CHECK(wrong == 0);
}

TEST_CASE("reshape: extents by which dimensions correspond do not break a contract") {
  // The second dimensions hold the same elements, so that b could arrive with them; but then a,
  // which is combined at the end, would come behind b.
  const TensorDesc x =
      tensor({15, 5, 3}, Sharding{{}, {}, {}}.with_partial(AxisSet{0}, Reduction::sum));
  const ops::Reshape op{{15, 15}, {{2}, {0, 1}}};
  PlanOptions options;
  options.contract = Contract::nothing();
  options.contract.accept(Collective::reduce_scatter, AxisSet{0});
  CHECK(options.contract.covers(op.needs({x}, {2, 3, 4}, options)));
  for (const MeshShape& mesh : {MeshShape{2, 2, 1}, MeshShape{2, 3, 2}, MeshShape{3, 1, 1}}) {
    const Plan plan = op.plan({x}, {mesh, 0, options});
    CAPTURE(support::describe(plan));
    CHECK(options.contract.covers(plan.needs));
  }
}

TEST_CASE("what is wrong with extents and places is said with the numbers") {
  const auto says = [](const auto& op, const TensorDescs& x, Rule rule, const char* part) {
    const Verdict v = op.check(x);
    CHECK(v.rule == rule);
    const std::string text = detail::OperationView(op).explain(v, x, axis_names(1));
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  const auto whole = [](const Extents& extents) {
    return tensor(extents, Sharding::replicated(extents.size()));
  };
  const auto slice = [&](const Extents& x, const ops::Slicing& how, Rule rule, const char* part) {
    says(ops::Slice{how, whole(x).sharding}, {whole(x)}, rule, part);
  };
  const auto pad = [&](const Extents& x, const ops::Padding& how, Rule rule, const char* part) {
    says(ops::Pad{how, whole(x).sharding}, {whole(x)}, rule, part);
  };
  CHECK(ops::Slice{part({0, 14}, {128, 14}), {{}, {}}}.check({whole({128, 14})}).ok());
  slice({128, 14}, part({0, 2}, {128, 17}), Rule::slice_within,
        "the slice is [2, 17) in dimension 1, which has 14 elements; 0 <= start");
  slice({4}, part({3}, {2}), Rule::slice_within,
        "the slice is [3, 2) in dimension 0, which has 4 elements");
  slice({1}, part({-1}, {1}), Rule::slice_within, "[-1, 1) in dimension 0, which has 1 element;");
  slice({4}, part({0}, {4}, {0}), Rule::stride_positive,
        "the stride is 0 in dimension 0, which has 4 elements; a stride");
  slice({4, 4}, part({0}, {4, 4}), Rule::number_each, "start has 1 entry for 2 dimensions; give");
  slice({4}, part({0}, {}), Rule::number_each, "limit has 0 entries for 1 dimension; give");
  slice({4, 4}, part({0, 0}, {4, 4}, {1, 1, 1}), Rule::number_each,
        "stride has 3 entries for 2 dimensions; give");
  slice({4}, {}, Rule::slice_named, "name at least one");
  CHECK(ops::Pad{{{-2}, {-3}}, {{}}}.check({whole({5})}).ok());
  pad({5}, {{-4}, {-3}}, Rule::crop_within,
      "the padding is -4_-3 in dimension 0, which has 5 elements; negative padding crops");
  pad({3}, {{-4}, {-3}, {1}}, Rule::crop_within,
      "-4_-3 in dimension 0, which has 3 elements (5 with the interior padding); negative");
  pad({5}, {{0}, {0}, {-1}}, Rule::interior_not_negative, "the interior padding is -1 in dim");
  pad({5}, {{0}, {max_int64}}, Rule::padding_countable, "fewer than 2^61");
  pad({5}, {{0}, {0}, {max_int64}}, Rule::padding_countable,
      "the padding is 0_0_9223372036854775807 in dimension 0, which has 5 elements; a padded");
  pad({5}, {{0}, {0, 0}}, Rule::number_each, "high has 2 entries for 1 dimension");
  const Sharding lines{{}, {}};
  CHECK(ops::Concatenate{{0}, lines}.check({whole({2, 3}), whole({4, 3})}).ok());
  says(ops::Concatenate{{0}, lines}, {whole({2, 3}), whole({2, 4})}, Rule::extents_beside,
       "operand 1 is 2x3 and operand 2 is 2x4: dimension 1 has 3 elements in one and 4 in the "
       "other; all extents but that of dimension 0 are equal");
  says(ops::Concatenate{{0, {std::nullopt, Slice{{0}, {2, 3}, {}}}}, lines},
       {whole({2, 3}), whole({2, 4})}, Rule::number_each,
       "of operand 2, start has 1 entry for 2 dimensions");
  says(ops::Concatenate{{0}, lines}, {whole({2, 3}), whole({2})}, Rule::ranks_alike,
       "(operand 2, 2 against 1)");
  CHECK(ops::Update{{{4}}, {{}}}.check({whole({4}), whole({0})}).ok());
  says(ops::Update{{{2}}, {{}}}, {whole({4}), whole({3})}, Rule::block_within,
       "the block, of 3 elements, begins at 2 in dimension 0, which has 4 elements; a block lies");
  says(ops::Update{{{0}, {Slice{{1}, {3}, {}}}}, {{}}}, {whole({4}), whole({5})},
       Rule::block_within, "of 5 elements, begins at 0 in dimension 0, which has 2 elements");
  CHECK(ops::Reshape{{24}, {{}}}.check({whole({4, 6})}).ok());
  says(ops::Reshape{{5, 5}, lines}, {whole({4, 6})}, Rule::volume_stays,
       "a tensor of 4x6 has 24 elements and one of 5x5 has 25; reshape keeps");
  says(ops::Reshape{{-2, -2}, lines}, {whole({4})}, Rule::extents_not_negative,
       "the new extents are -2x-2: dimension 0 has -2 elements; extents are not negative; give 0 "
       "or more");
  CHECK(ops::Reshape{{-2, -2}}.deduced({whole({4})}) == lines);
  // Far rolls and shifts are what they are round and round, and nothing.
  const Index least = -max_int64 - 1;
  for (const Index by : {least, max_int64}) {
    CHECK(detail::roll_dim(7, by).offset == ((-(by % 7)) % 7 + 7) % 7);
    CHECK(detail::needs_filling({detail::shift_dim(7, by)}));
  }
}

TEST_CASE("what lies outside unfinished values joins to itself") {
  const auto with = [](Reduction kind, Outside value) {
    const Sharding open = Sharding{{}}.with_partial(AxisSet{0}, kind);
    const Rule padded = ops::Pad{{{1}, {0}, {}, value}, open}.check({tensor({4}, open)}).rule;
    CHECK(padded == ops::Shift{{1, 0, value}, open}.check({tensor({4}, open)}).rule);
    return padded == Rule::ok;
  };
  CHECK(with(Reduction::sum, Outside::zero));
  CHECK_FALSE(with(Reduction::sum, Outside::one));
  CHECK_FALSE(with(Reduction::sum, Outside::other));
  CHECK(with(Reduction::product, Outside::one));
  CHECK_FALSE(with(Reduction::product, Outside::other));
  CHECK(with(Reduction::max, Outside::other));
  CHECK(ops::Pad{{{1}, {0}, {}, Outside::other}, {{0}}}.check({tensor({4}, {{0}})}).ok());
}

TEST_CASE("verdicts") {
  const Sharding x{{0}, {}}, open = Sharding{{0}, {}}.with_partial(AxisSet{1}, Reduction::sum);
  CHECK(detail::check_shape({x, x}, 2, {{}, {1}}).ok());
  CHECK(detail::check_shape({open}, 2, open).ok());
  CHECK(detail::check_shape({open}, 2, x).ok());
  CHECK(detail::check_shape({x}, 2, {{0}}).rule == Rule::entry_each);
  CHECK(detail::check_shape({x, Sharding{{}}}, 2, x) ==
        Verdict{.rule = Rule::ranks_alike, .operand = 1, .left = 2, .right = 1});
  CHECK(detail::check_shape({x, open}, 2, x).rule == Rule::unfinished_alike);
  CHECK(detail::check_shape({x}, 2, open).rule == Rule::open_operand);
  CHECK(detail::check_shape({open}, 2, open.with_partial(AxisSet{1}, Reduction::max)).rule ==
        Rule::open_operand);
  CHECK(detail::check_dimensions({0, 1}, 2).ok());
  CHECK(detail::check_dimensions({0, 2}, 2).rule == Rule::dimension_known);
  CHECK(detail::check_dimensions({-1}, 2).rule == Rule::dimension_known);
  CHECK(detail::check_dimensions({1, 1}, 2).rule == Rule::dimension_once);
  CHECK(detail::taken_sharding({Sharding{{}, {}}, x, Sharding{{1}, {}}}) == x);
}
