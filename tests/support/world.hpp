// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The one environment of a test program that runs under mpiexec, made by its main.
///
///     const auto mesh = make_mesh_core(support::world(), MeshShape{support::world()->size()}, {"data"});
#include <tessera/comm/environment.hpp>

#include <memory>

namespace support {

tessera::Environment& environment();

/// The transport between all processes of the job.
inline const std::shared_ptr<tessera::Transport>& world() { return environment().world(); }

}  // namespace support
