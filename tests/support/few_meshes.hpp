// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Runs a check of typed tensors on meshes of 1, 2 and 6 processes, as threads.
///
///     support::on_few_meshes([](const ProcessMesh<Grid>& mesh) { ... });
#include <memory>
#include <utility>

#include <tessera/tessera.hpp>

#include "grid.hpp"

namespace support {

template <class Run> void on_few_meshes(const Run& run) {
  for (const auto& shape : {std::pair{1, 1}, {2, 1}, {3, 2}})
    tessera::run_loopback(shape.first * shape.second,
                          [&](std::shared_ptr<tessera::Transport> world) {
                            run(tessera::make_mesh<Grid>(world, shape.first, shape.second));
                          });
}

}  // namespace support
