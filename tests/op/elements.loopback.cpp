// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every element type through every operator, on every mesh of up to 4 processes (and some of 6 and 8), all shardings of
// small ragged tensors, finished and partial of every kind, against plain loops over exact values.
#include <doctest/doctest.h>

#include <mutex>

#include "elements.hpp"

using namespace tessera;
using namespace support;

TEST_CASE("operators on elements of every type equal plain loops") {
  const std::uint64_t seed = seed_for("elements on loopback", 31);
  std::mutex mutex;
  std::vector<std::string> wrong;
  long cases = 0;
  std::vector<MeshShape> shapes = meshes(4, 2);
  for (const MeshShape& more : {MeshShape{3, 2}, MeshShape{2, 2, 2}, MeshShape{7}}) shapes.push_back(more);
  for (const MeshShape& shape : shapes)
    run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
      Random random(seed + static_cast<std::uint64_t>(shape.processes()));
      const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()));
      ElementCases all(mesh, random);
      all.enumerate();
      const std::lock_guard lock(mutex);
      wrong.insert(wrong.end(), all.wrong.begin(), all.wrong.end());
      if (mesh->process() == 0) cases += all.cases;
    });
  MESSAGE(cases << " cases");
  for (std::size_t i = 0; i < wrong.size() && i < 5; ++i) MESSAGE(wrong[i]);
  CHECK(wrong.empty());
}
