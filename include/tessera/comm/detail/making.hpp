// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How processes make a mesh together, before the mesh counts their operators: each announces that
/// it makes one, and they compare the meshes.
///
///     const Publish publish = begin_making(transport, to_string(shape, names), where);
///
/// Laws: all processes of a transport count the makings of its meshes alike.
#include <cstdint>
#include <memory>
#include <string>

#include <tessera/comm/arena.hpp>
#include <tessera/comm/detail/agreement.hpp>
#include <tessera/comm/detail/mesh_history.hpp>
#include <tessera/comm/detail/mesh_text.hpp>
#include <tessera/comm/detail/mix.hpp>
#include <tessera/comm/detail/variables.hpp>
#include <tessera/comm/device_memory.hpp>
#include <tessera/comm/mesh_options.hpp>
#include <tessera/comm/transport.hpp>
#include <tessera/mesh/levels.hpp>
#include <tessera/mesh/mesh_shape.hpp>
#include <tessera/version.hpp>

namespace tessera::detail {

/// Announces that this process makes a mesh from a transport.
inline Publish begin_making(Transport& transport, const std::string& mesh, Where where) {
  CallPlace place;
  Blackboard* const board = transport.size() > 1 ? transport.blackboard() : nullptr;
  if (board != nullptr) {
    place.mesh = transport.makings_id();
    place.ordinal = transport.next_making();
    MeshHistory::mark_members(transport, place);
    board->trail(transport.seat())
        .write({place.mesh, place.ordinal, 1,
                mix(mix(1, static_cast<std::uint64_t>(where.line)), mesh) | 1, 0},
               [&] { return placed("make_mesh " + mesh, where); });
  }
  return {board, transport.seat(), {mesh, where, "the making of a mesh", "", place}};
}

/// Returns the number of processes on a node, as Machine counts them: in the order of `given` when
/// machine.order says how the mesh lies on it, else in the order of the mesh's own transport.
/// Returns 0 where both orders are changed.
inline std::int64_t found_node_size(const Transport& given, const Transport& own,
                                    const MeshShape& shape, const MeshOptions& options) {
  if (options.machine.order.over(shape) == DeviceOrder{}.over(shape))
    return consecutive_node_size(nodes_of(own));
  return options.device_assignment.natural() ? consecutive_node_size(nodes_of(given)) : 0;
}

/// Compares the meshes that the processes ask for. Communication: small all-reduces. Collective
/// over: the processes of `transport`. Throws MismatchError when they ask for different meshes,
/// MeshError when the sizes do not fit the processes.
inline void agree_on_mesh(Transport& transport, Group& control, const MeshShape& shape,
                          const AxisNames& names, const MeshOptions& options, Where where) {
  const std::string mesh = to_string(shape, names);
  std::uint64_t digest = mix(static_cast<std::uint64_t>(options.check), mesh);
  for (const int part : {version.major, version.minor, version.patch})
    digest = mix(digest, static_cast<std::uint64_t>(part));
  for (const std::int64_t value :
       {options.arena_bytes, options.workspace_limit, static_cast<std::int64_t>(options.strict),
        static_cast<std::int64_t>(options.narrow_parts), static_cast<std::int64_t>(options.find),
        static_cast<std::int64_t>(options.products),
        static_cast<std::int64_t>(options.machine.order.over(shape).bits()),
        static_cast<std::int64_t>(transport.settings().shared),
        static_cast<std::int64_t>(options.find_nodes),
        static_cast<std::int64_t>(transport.settings().processes_per_node),
        static_cast<std::int64_t>(transport.settings().large_count),
        static_cast<std::int64_t>(transport.settings().large_in_pieces)})
    digest = mix(digest, static_cast<std::uint64_t>(value));
  for (const auto& [name, field] : machine_fields)
    digest = mix(digest, static_cast<std::uint64_t>(options.machine.*field));
  for (const int process : options.device_assignment.processes())
    digest = mix(digest, static_cast<std::uint64_t>(process));
  if (!transport.dry() && transport.size() > 1) {
    if (!all_equal(control, digest))
      report_disagreement(
          control, digest,
          "for a mesh " + mesh + " (version " + std::to_string(version.major) + "." +
              std::to_string(version.minor) + "." + std::to_string(version.patch) + ", check " +
              std::string(name_of(options.check)) + ", shared memory " +
              std::string(name_of(transport.settings().shared)) + ", arena " +
              std::to_string(options.arena_bytes) + ", workspace limit " +
              std::to_string(options.workspace_limit) + ", parts of sums of half types " +
              (options.narrow_parts ? "as they are" : "in float") + ", products " +
              std::string(name_of(options.products)) + ", large count " +
              std::to_string(transport.settings().large_count) +
              "; the machine model and the device assignment count too)",
          where);
  }
  if (shape.processes() != transport.size())
    throw MeshError("the mesh " + mesh + " has " + std::to_string(shape.processes()) +
                        " processes but the communicator has " + std::to_string(transport.size()) +
                        "; the sizes of the axes must multiply to the number of processes: start " +
                        std::to_string(shape.processes()) + ", or choose other sizes",
                    where);
}

/// Returns the memory of a mesh: within its shared memory, where it has any. Processes share what a
/// node has left; each is taken to have a device of its own.
inline std::unique_ptr<Arena> open_arena(Transport& transport, const MeshOptions& options) {
  if (transport.dry()) return std::make_unique<Arena>(nullptr, nullptr, 0, options.memory_limit);
  SharedMemory shared;
  if (default_memory_is_host && options.arena_bytes != 0) {
    const double variable = number_variable("TESSERA_ARENA_BYTES", -1);
    shared = transport.reserve_shared(options.arena_bytes > 0 ? options.arena_bytes
                                      : variable < 1e18       ? static_cast<Index>(variable)
                                                              : max_int64);
  }
  return std::make_unique<Arena>(default_memory(), shared.base, shared.bytes, options.memory_limit,
                                 default_memory_is_host ? transport.sharers() : 1);
}

}  // namespace tessera::detail
