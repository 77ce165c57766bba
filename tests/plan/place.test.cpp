// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: plan_moves
// From one process and to one, from boxes of the application's choice and to them: all processes in
// a dry run.
#include <doctest/doctest.h>

#include <tessera/plan/check/check_boxes.hpp>
#include <tessera/plan/op/move/place.hpp>

#include "support/dry_cases.hpp"

using namespace tessera;
using namespace support;

namespace {

std::vector<Extents> extents_of(int rank) {
  if (rank == 0) return {Extents{}};
  if (rank == 1) return {{7}, {8}, {1}, {0}};
  if (rank == 2) return {{5, 7}, {4, 6}, {1, 9}, {0, 3}};
  return {{3, 5, 2}, {1, 6, 5}, {2, 0, 3}};
}

template <class MakePlan>
std::string wrong_plan(const TensorDesc& desc, const MeshShape& mesh, const MakePlan& make,
                       const Machine& machine = {}) {
  DryRun dry(make, mesh, machine);
  std::string text = dry.broken_law();
  if (text.empty()) text = dry.wrong_result({17}, whole_input<DryRun::Value>(desc, mesh, 17));
  if (text.empty()) return "";
  return describe(desc, mesh) + " on " + describe(mesh) + ": " + text + "\n" + describe(dry.plan());
}
/// What all processes of a mesh send in a plan, in elements.
template <class MakePlan>
Index sent_by_all(const MakePlan& make, const MeshShape& mesh, DType type) {
  Index bytes = 0;
  for (int p = 0; p < mesh.processes(); ++p) bytes += make(p).own_payload_bytes();
  return bytes / static_cast<Index>(size_of(type));
}

std::string wrong_from_root(const TensorDesc& desc, int root, const MeshShape& mesh,
                            const PlanOptions& options = {}) {
  return wrong_plan(
      desc, mesh, [&](int p) { return detail::plan_from_root(desc, root, mesh, p, options); },
      options.machine);
}
std::string wrong_to_root(const TensorDesc& desc, int root, const MeshShape& mesh,
                          const PlanOptions& options = {}) {
  const auto make = [&](int p) { return detail::plan_to_root(desc, root, mesh, p, options); };
  if (std::string text = wrong_plan(desc, mesh, make, options.machine); !text.empty()) return text;
  if (!desc.sharding.partial.empty()) return "";
  const Index own = block(desc.extents, desc.sharding, mesh, mesh.coordinates(root)).size();
  if (sent_by_all(make, mesh, desc.type) == volume(desc.extents) - own) return "";
  return describe(desc, mesh) + " on " + describe(mesh) +
         ": more or less is sent to the root than it lacks";
}

/// Cuts the tensor at random into boxes, one a process; some are empty, and with `replicas` some
/// are equal.
std::vector<Box> some_boxes(Random& random, const Extents& extents, int processes, bool replicas) {
  std::vector<Box> boxes{whole(extents)};
  const int different = replicas ? 1 + random.below(processes) : processes;
  for (int tries = 0;
       static_cast<int>(boxes.size()) < different && tries < 4 * processes && !extents.empty();
       ++tries) {
    Box& box = boxes[static_cast<std::size_t>(random.below(static_cast<int>(boxes.size())))];
    const int d = random.below(extents.size());
    if (box[d].size() < 2) continue;
    const Index cut = box[d].lo + 1 + random.below(static_cast<int>(box[d].size()) - 1);
    Box rest = box;
    box[d].hi = cut;
    rest[d].lo = cut;
    boxes.push_back(rest);
  }
  const int filled = static_cast<int>(boxes.size());
  while (static_cast<int>(boxes.size()) < processes) {
    if (replicas || extents.empty()) {
      boxes.push_back(boxes[static_cast<std::size_t>(random.below(filled))]);
    } else {
      Box nothing = whole(extents);
      nothing[0].hi = nothing[0].lo = extents[0] / 2;
      boxes.push_back(nothing);
    }
  }
  for (int p = processes - 1; p > 0; --p)
    std::swap(boxes[static_cast<std::size_t>(p)],
              boxes[static_cast<std::size_t>(random.below(p + 1))]);
  return boxes;
}
std::string describe_boxes(const std::vector<Box>& boxes) {
  std::string text = " boxes";
  for (const Box& box : boxes) text += " " + to_string(box);
  return text;
}

}  // namespace

TEST_CASE(
    "slabs are disjoint, cover the tensor in order, and are runs of every block that they cut") {
  for (const Extents& extents : {Extents{}, Extents{7}, Extents{5, 7}, Extents{3, 4, 5},
                                 Extents{2, 1, 3, 4}, Extents{4, 0, 2}, Extents{100}})
    for (const Index most : {1, 2, 3, 7, 12, 20, 35, 1000}) {
      const detail::Slabs slabs(extents, most);
      const Extents strides = detail::row_major_strides(extents);
      Index next = 0;
      for (Index i = 0; i < slabs.count(); ++i) {
        const Box box = slabs.box(i);
        CHECK(box.size() <= most);
        for_each_index(box.extents(), [&](const Extents& at) {
          Index global = 0;
          for (int d = 0; d < at.size(); ++d) global += (box[d].lo + at[d]) * strides[d];
          CHECK(global == next);
          ++next;
        });
      }
      CHECK(next == volume(extents));
    }
  CHECK(detail::Slabs({1 << 20, 1 << 20}, Index{1} << 24).count() == 1 << 16);
}

TEST_CASE(
    "from and to one process: every sharding of up to two dimensions over up to two axes, every "
    "root") {
  Tally tally;
  for (const MeshShape& mesh : meshes(6, 2))
    for (int rank = 0; rank <= 2; ++rank)
      for (const Sharding& s : shardings(rank, mesh.rank(), Reduction::sum))
        for (const Extents& extents : extents_of(rank))
          for (int root = 0; root < mesh.processes(); root += 1 + mesh.processes() / 3) {
            if (s.partial.empty()) tally.add(wrong_from_root({DType::f32, extents, s}, root, mesh));
            tally.add(wrong_to_root({DType::f32, extents, s}, root, mesh));
          }
}

TEST_CASE("from and to one process: a sample in slabs, with machines of many kinds") {
  Random random(seed_for("from and to root", 5));
  Tally tally;
  for (const MeshShape& mesh : meshes(8, 3))
    for (int i = 0; i < 6; ++i) {
      const int rank = 1 + random.below(3);
      Extents extents = rank == 1   ? Extents{3001}
                        : rank == 2 ? Extents{37, 59}
                                    : Extents{11, 13, 17};
      if (random.chance(30)) extents[random.below(rank)] = 1;
      const TensorDesc desc{DType::f64, extents,
                            some_sharding(random, rank, mesh.rank(), random.chance(30) ? 30 : 0)};
      const PlanOptions options{some_machine(random), random.of<Index>({0, 8192, max_int64})};
      const int root = random.below(mesh.processes());
      if (desc.sharding.partial.empty()) tally.add(wrong_from_root(desc, root, mesh, options));
      tally.add(wrong_to_root(desc, root, mesh, options));
    }
  const Plan rounds = detail::plan_from_root({DType::f64, {37, 59}, Sharding{{}, {0}}}, 0,
                                             MeshShape{4}, 0, {Machine{}, 0});
  CHECK(rounds.steps[0].rounds > 2);
  CHECK(rounds.steps[0].scratch <= detail::least_slab_bytes);
}

TEST_CASE("a move to one process has the same price whichever it is") {
  for (const Sharding& s : {Sharding{{0}}, Sharding{{}}.with_partial(AxisSet{0}, Reduction::sum)}) {
    const TensorDesc desc{DType::f32, {1 << 22}, s};
    const auto plan = [&](int root) {
      return detail::plan_to_root(desc, root, MeshShape{4}, 0, {});
    };
    for (const int root : {1, 3}) CHECK(plan(root).cost == plan(0).cost);
  }
}

TEST_CASE("a replicated tensor of any size is broadcast by the process that has it") {
  const MeshShape mesh{8};
  for (const Index n : {Index{1} << 20, Index{8}, Index{1}}) {
    const TensorDesc x{DType::f32, {n}, Sharding{{}}};
    for (const int root : {0, 5}) {
      const auto on = [&](int process) { return detail::plan_from_root(x, root, mesh, process); };
      CHECK(on(root).count(Collective::broadcast) == 1);
      CHECK(on(root).communications() == 1);
      CHECK(on(root).own_payload_bytes() == 0);
      CHECK(on(7).own_payload_bytes() == n * 4);
      CHECK(on(7).steps[0].scratch == 0);
      CHECK(on(7).steps[0].messages == 3);
    }
  }
  // Two processes exchange; an empty tensor is nobody's.
  CHECK(detail::plan_from_root({DType::f32, {8}, Sharding{{}}}, 0, MeshShape{2})
            .count(Collective::exchange) == 1);
  CHECK(detail::plan_from_root({DType::f32, {0}, Sharding{{}}}, 0, mesh)
            .count(Collective::broadcast) == 0);
  // Split over one axis: each block is sent once, and passed on along the other.
  const TensorDesc large{DType::f32, {1 << 20}, Sharding{{0}}};
  const Plan spread = detail::plan_from_root(large, 0, MeshShape{2, 4});
  CHECK(spread.count(all_gather) == 1);
  CHECK(spread.payload_bytes(Collective::exchange) == (Index{4} << 20) / 8 * 7);
  // Boxes of which one is the whole tensor.
  Box all = whole({6, 5}), none = all;
  none[0].hi = 0;
  const std::vector<Box> boxes{none, none, all, none};
  const TensorDesc both{DType::f32, {6, 5}, Sharding{{}, {}}};
  const Plan boxed = detail::plan_from_boxes(both, boxes, MeshShape{4}, 1);
  CHECK(boxed.count(Collective::broadcast) == 1);
  CHECK(boxed.own_payload_bytes() == 6 * 5 * 4);
  CHECK(boxed.steps[0].scratch == 0);
}

TEST_CASE("pieces above two to the thirty-first bytes are planned as one") {
  const Plan plan =
      detail::plan_from_root({DType::f64, {Index{1} << 31, 4}, Sharding{{0}, {}}}, 0, MeshShape{2});
  const detail::MoveWork work = detail::move_work(plan, plan.steps[0]);
  CHECK(plan.steps[0].rounds == 1);
  CHECK(plan.peak_bytes == plan.slots[plan.result].bytes);
  CHECK(work.call.send.size() == 1);
  CHECK(work.call.send[0].count == Index{1} << 32);
}

TEST_CASE("from boxes and to them: a sample of cuts") {
  Random random(seed_for("boxes", 6));
  Tally tally;
  for (const MeshShape& mesh : meshes(8, 2))
    for (int i = 0; i < 60; ++i) {
      const int rank = random.below(4);
      const TensorDesc desc{DType::f32, random.of(extents_of(rank)),
                            some_sharding(random, rank, mesh.rank())};
      const std::vector<Box> boxes =
          some_boxes(random, desc.extents, mesh.processes(), random.chance(40));
      const Verdict verdict = detail::check_boxes(desc.extents, boxes, mesh.processes(), true);
      tally.add(verdict.ok() ? "" : explain(verdict, desc.extents, boxes));
      std::string text = wrong_plan(
          desc, mesh, [&](int p) { return detail::plan_from_boxes(desc, boxes, mesh, p); });
      tally.add(text.empty() ? "" : text + describe_boxes(boxes));
      TensorDesc open = desc;
      if (random.chance(30)) open.sharding = some_sharding(random, rank, mesh.rank(), 40);
      std::vector<Box> wanted = boxes;
      for (Box& box : wanted)  // they may overlap and leave holes
        for (int d = 0; d < rank && random.chance(30); ++d)
          box[d].hi = min_of(desc.extents[d], box[d].hi + 1);
      text = wrong_plan(open, mesh,
                        [&](int p) { return detail::plan_to_boxes(open, wanted, mesh, p); });
      tally.add(text.empty() ? "" : text + describe_boxes(wanted));
    }
}

TEST_CASE(
    "boxes that are the blocks already cost nothing; those that differ on one process cost what it "
    "lacks") {
  const MeshShape mesh{4};
  const TensorDesc desc{DType::f32, {10, 6}, Sharding{{0}, {}}};
  std::vector<Box> boxes =
      detail::cut_boxes(desc.extents, desc.sharding, {{0, 3, 6, 9, 10}, {}}, mesh);
  const Plan adopted = detail::plan_from_boxes(desc, boxes, mesh);
  CHECK(adopted.steps.empty());
  CHECK(adopted.peak_bytes == 0);
  boxes = detail::cut_boxes(desc.extents, desc.sharding, {{0, 4, 6, 9, 10}, {}}, mesh);
  CHECK(detail::plan_from_boxes(desc, boxes, mesh, 0).own_payload_bytes() == 6 * 4);
  CHECK(detail::plan_from_boxes(desc, boxes, mesh, 2).own_payload_bytes() == 0);
}

TEST_CASE("verdicts on boxes name who collides, and the hole") {
  const auto box = [](Index a, Index b, Index c, Index d) {
    Box result;
    result.side = {Interval{a, b}, Interval{c, d}};
    return result;
  };
  const Extents extents{4, 6};
  using Boxes = std::vector<Box>;
  const auto rule = [&](const Boxes& boxes) {
    return detail::check_boxes(extents, boxes, 2, true);
  };
  CHECK(rule({box(0, 4, 0, 3), box(0, 4, 3, 6)}).ok());
  CHECK(rule({box(0, 4, 0, 6), box(0, 4, 0, 6)}).ok());  // replicas
  CHECK(rule({box(0, 4, 0, 6), box(2, 2, 1, 1)}).ok());
  CHECK(rule({box(0, 4, 0, 6)}).rule == Rule::box_each_process);
  CHECK(rule({box(0, 4, 0, 6), Box{}}).rule == Rule::box_rank_matches);
  CHECK(rule({box(0, 4, 0, 7), box(0, 0, 0, 0)}) == Verdict{Rule::box_in_bounds, 0});
  CHECK(rule({box(0, 4, 0, 6), box(-1, 0, 0, 1)}).rule == Rule::box_in_bounds);
  CHECK(rule({box(0, 4, 3, 6), box(0, 4, 0, 4)}) ==
        Verdict{.rule = Rule::boxes_disjoint, .left = 0, .right = 1});
  const Boxes short_of{box(0, 4, 0, 3), box(0, 3, 3, 6)};
  CHECK(rule(short_of) == Verdict{.rule = Rule::boxes_cover, .left = 21, .right = 24});
  CHECK(explain(rule(short_of), extents, short_of) ==
        "no process declares [3,4) x [3,6) of the tensor 4x6; together the boxes are the whole "
        "tensor; extend one of them");
  const Boxes overlapping{box(0, 4, 3, 6), box(0, 4, 0, 4)};
  CHECK(explain(rule(overlapping), extents, overlapping) ==
        "process 0 declares [0,4) x [3,6) and process 1 declares [0,4) x [0,4), which share [0,4) "
        "x [3,4); boxes are disjoint, or equal where "
        "processes have the same data; shrink one of them");
  CHECK_THROWS_AS(detail::cut_boxes(extents, Sharding{{0}, {}}, {{0, 3}, {}}, MeshShape{2}),
                  ShapeError);
  CHECK_THROWS_AS(detail::cut_boxes(extents, Sharding{{0}, {}}, {{0, 3, 5}, {}}, MeshShape{2}),
                  ShapeError);
}
