// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The options of a mesh.
///
///     make_mesh_core(transport, shape, names, {.check = Check::communicating, .time_limit = 30});
///
/// Laws: check level, what is looked for, machine model, arena size, choice of libraries and use of
/// shared memory are the same on all processes of a mesh; making a mesh reports any difference.
#include <tessera/base/math.hpp>
#include <tessera/comm/check.hpp>
#include <tessera/comm/detail/variables.hpp>
#include <tessera/comm/products.hpp>
#include <tessera/comm/transport.hpp>
#include <tessera/mesh/device_assignment.hpp>
#include <tessera/mesh/machine.hpp>

namespace tessera {

namespace detail {
/// Returns the bytes given by the environment variable TESSERA_PLAN_CACHE_BYTES, else 64 MiB.
/// Throws UsageError when it is not a number of bytes.
inline Index plan_cache_bytes_from_environment() {
  const double bytes = number_variable("TESSERA_PLAN_CACHE_BYTES", 64 << 20);
  return bytes < 1e18 ? static_cast<Index>(bytes) : max_int64;
}
}  // namespace detail

/// The options of a mesh; the same on all its processes, except the size of the plan cache.
struct MeshOptions {
  Check check = detail::check_from_environment();
  Find find = detail::find_from_environment();  ///< NaN and infinities in results of operators
  Machine machine{};
  bool find_nodes = true;  ///< where machine.processes_per_node is 0: as the transport knows it, if
                           ///< nodes are of one size and made of consecutive processes
  Wait wait = Wait::automatic;        ///< automatic: as the transport
  Shared shared = Shared::automatic;  ///< automatic: as the transport
  double time_limit = -1;  ///< seconds a call may wait; 0: no limit; negative: as the transport
  Index arena_bytes = -1;  ///< of shared memory on the node for each process; 0: none; negative:
                           ///< TESSERA_ARENA_BYTES, else a modest size
  Index memory_limit = max_int64;     ///< most bytes of tensors and workspace on one process
  Index workspace_limit = max_int64;  ///< bytes of temporaries that plans keep to where they can
  /// Parts of sums of half types go between processes as half types: half the bytes of float, in
  /// which they go else. Each part is rounded, and may be again whenever two are added: with n
  /// parts an error of up to n units in the last place of the largest partial sum, in place of half
  /// a unit.
  bool narrow_parts = false;
  Products products = detail::products_from_environment();  ///< which libraries multiply
  Index plan_cache_bytes =
      detail::plan_cache_bytes_from_environment();  ///< most bytes of plans
                                                    ///< that are kept for the next time; at least
                                                    ///< the last one is
  DeviceAssignment device_assignment{};  ///< the place of each process; natural: in the order of
                                         ///< their numbers, or as machine.order says
  bool strict = false;  ///< calls without a contract may not communicate; set by Strict mesh types
};

namespace detail {
/// Returns the place of each process in a mesh of `shape`.
inline DeviceAssignment assignment_of(const MeshShape& shape, const MeshOptions& options) {
  const DeviceOrder& order = options.machine.order;
  if (!options.device_assignment.natural() || order.over(shape) == DeviceOrder{}.over(shape))
    return options.device_assignment;
  return along_axes(shape, order);
}

/// Returns the settings of a mesh with these options for its duplicate of the transport `parent`.
inline TransportSettings mesh_settings(const Transport& parent, const MeshOptions& options) {
  TransportSettings settings = parent.settings();
  if (options.wait != Wait::automatic) settings.wait = options.wait;
  if (options.shared != Shared::automatic) settings.shared = options.shared;
  if (options.time_limit >= 0) settings.time_limit = options.time_limit;
  return settings;
}
}  // namespace detail

}  // namespace tessera
