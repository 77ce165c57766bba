// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: plan_moves
// Reshards between two meshes over the same processes, all processes in a dry run.
#include <doctest/doctest.h>

#include <algorithm>

#include "support/dry_cases.hpp"

#include <tessera/mesh/device_assignment.hpp>
#include <tessera/plan/op/move/between.hpp>

using namespace tessera;
using namespace support;

namespace {
/// Where process p of the one mesh stands in the other, when the processes lie in both as the
/// assignments say.
std::vector<int> places(const DeviceAssignment& here, const DeviceAssignment& there,
                        int processes) {
  std::vector<int> result;
  for (int p = 0; p < processes; ++p) result.push_back(there.position(here[p]));
  return result;
}
std::string wrong(const TensorDesc& desc, const Sharding& to, const MeshShape& from,
                  const MeshShape& other, const std::vector<int>& place) {
  const std::vector<Box> boxes = detail::boxes_between(desc.extents, to, other, place);
  DryRun dry([&](int process) { return detail::plan_reshard_between(desc, boxes, from, process); },
             from);
  std::string text = dry.broken_law();
  bool stays = desc.sharding.partial.empty();
  for (int p = 0; p < from.processes(); ++p)
    stays = stays && boxes[static_cast<std::size_t>(p)] ==
                         block(desc.extents, desc.sharding, from, from.coordinates(p));
  if (text.empty() && stays && dry.plan().communications() > 0) text = "blocks that stay are sent";
  if (text.empty() && desc.sharding.partial.empty() && dry.plan().communications() > 1)
    text = "more than one exchange";
  if (text.empty()) text = dry.wrong_result({23}, whole_input<DryRun::Value>(desc, from, 23));
  return text.empty() ? ""
                      : describe(desc, from) + " on " + describe(from) + " to " +
                            describe(to, other) + " on " + describe(other) + ": " + text;
}
}  // namespace

TEST_CASE("between meshes: every pair of shardings of two dimensions over two axes") {
  Tally tally;
  for (const MeshShape& from : {MeshShape{2, 2}, MeshShape{3, 2}, MeshShape{4, 1}})
    for (const MeshShape& other : meshes_of(from.processes(), 2))
      for (const DeviceAssignment& there :
           {DeviceAssignment{}, as_snake(other), along_axes(other, {{1, 0}})})
        for (const Sharding& a : shardings(2, 2, Reduction::sum))
          for (const Sharding& b : shardings(2, 2))
            for (const Extents& extents : {Extents{5, 7}, Extents{4, 6}, Extents{1, 3}})
              tally.add(wrong({DType::i64, extents, a}, b, from, other,
                              places({}, there, from.processes())));
}

TEST_CASE("between meshes: a sample of any order and rank") {
  Random random(seed_for("between, dry", 90));
  Tally tally;
  for (int i = 0; i < 3000 / share; ++i) {
    const int processes = 1 + random.below(12);
    const MeshShape from = random.of(meshes_of(processes, 1 + random.below(3)));
    const MeshShape other = random.of(meshes_of(processes, 1 + random.below(3)));
    std::vector<int> place(static_cast<std::size_t>(processes));
    for (int p = 0; p < processes; ++p) place[static_cast<std::size_t>(p)] = p;
    for (int p = processes - 1; p > 0; --p)
      std::swap(place[static_cast<std::size_t>(p)],
                place[static_cast<std::size_t>(random.below(p + 1))]);
    const int rank = random.below(5);
    Extents extents;
    for (int d = 0; d < rank; ++d) extents.push_back(random.of<Index>({0, 1, 2, 3, 5, 8}));
    tally.add(wrong(
        {DType::i64, extents, some_sharding(random, rank, from.rank(), random.chance(30) ? 40 : 0)},
        some_sharding(random, rank, other.rank()), from, other, place));
  }
}

TEST_CASE("between meshes: replicas give to those beside them") {
  // Two replicas of a tensor in rows: columns of each half come from the replica that shares the
  // coordinate.
  const TensorDesc desc{DType::i64, {8, 8}, {{1}, {}}};
  const MeshShape mesh{2, 4};
  const std::vector<Box> boxes =
      detail::boxes_between(desc.extents, {{}, {0}}, MeshShape{8}, places({}, {}, 8));
  for (int p = 0; p < 8; ++p) {
    const Plan plan = detail::plan_reshard_between(desc, boxes, mesh, p);
    const detail::MoveWork work = detail::move_work(plan, plan.steps[0]);
    CHECK(work.call.receive.size() == 3);
    for (const Piece& piece : work.call.receive) CHECK(piece.peer / 4 == p / 4);
  }
}
