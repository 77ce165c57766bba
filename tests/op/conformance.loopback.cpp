// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: cases
// The rows of the conformance table at shrunk extents: each on its own mesh (a smaller one where
// that has more than 8 processes) and on every other mesh of up to 8 processes with as many axes.
#include <doctest/doctest.h>

#include <mutex>

#include "op/conformance_run.hpp"

using namespace tessera;
using namespace support;

TEST_CASE("conformance rows equal plain loops on every mesh of up to 8 processes") {
  const std::vector<Conformance> rows = conformance();
  std::mutex mutex;
  std::vector<std::string> wrong;
  std::vector<int> on_own_mesh(rows.size(), 0);
  long runs = 0;
  std::vector<MeshShape> shapes = meshes(8, 3);
  for (const Conformance& row : rows)
    if (row.mesh.rank() > 3) shapes.push_back(row.small);
  for (const MeshShape& shape : shapes)
    run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()));
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const Conformance& row = rows[i];
        if (row.mesh.rank() != shape.rank()) continue;
        const std::string text = run_row(mesh, row);
        const std::lock_guard lock(mutex);
        if (!text.empty()) wrong.push_back(text);
        if (mesh->process() != 0) continue;
        ++runs;
        on_own_mesh[i] += shape == (row.small.rank() > 0 ? row.small : row.mesh);
      }
    });
  MESSAGE(rows.size() << " rows, run " << runs << " times");
  for (std::size_t i = 0; i < wrong.size() && i < 5; ++i) MESSAGE(wrong[i]);
  CHECK(wrong.empty());
  for (std::size_t i = 0; i < rows.size(); ++i)
    CHECK_MESSAGE(on_own_mesh[i] > 0, rows[i].name << " did not run on its own mesh");
}
