// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: within
// Windows, rows and shapes of tensors that lie within halos, sampled as those of others are.
#include <doctest/doctest.h>

#include "op/row_cases.hpp"
#include "op/shape_cases.hpp"
#include "op/window_cases.hpp"
#include "support/every_mesh.hpp"

using namespace tessera;
using namespace support;

namespace {
int few(const MeshShape& shape) { return (shape.processes() > 4 ? 40 : 80) / share; }
}  // namespace

TEST_CASE("windows over what lies within a halo") {
  on_every_mesh_so_often("windows within halos", 25, 3, few,
                         [](const std::shared_ptr<MeshCore>& mesh, Random& random) {
                           return some_window_case(mesh, random, true);
                         });
}

TEST_CASE("rows of what lies within a halo") {
  on_every_mesh_so_often("rows within halos", 26, 3, few,
                         [](const std::shared_ptr<MeshCore>& mesh, Random& random) {
                           return some_row_case(mesh, random, true);
                         });
}

TEST_CASE("shapes of what lies within a halo") {
  on_every_mesh_so_often("shapes within halos", 27, 3, few,
                         [](const std::shared_ptr<MeshCore>& mesh, Random& random) {
                           return some_shape_case(mesh, random, true);
                         });
}
