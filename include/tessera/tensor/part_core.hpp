// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The part of a mesh, at run time. On a process that is in no part of it a mesh is dry: operators
/// on it are planned there, as they are everywhere, and do nothing.
///
///     std::shared_ptr<MeshCore> first = detail::part_of(mesh.core(), {{2, 2}, {0, -1}});
///     detail::whole_of(first) == mesh.core();             // where mesh is 2x2
///
/// Laws: a mesh has one part for each list of coordinates, which lives as long as the mesh.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/comm/dry.hpp>
#include <tessera/comm/mesh_core.hpp>
#include <tessera/mesh/part.hpp>

namespace tessera::detail {

/// Where a part lies in the mesh that it is a part of.
struct PartHome {
  std::weak_ptr<MeshCore> whole;
  std::vector<int> members;  ///< the number in the whole mesh of each of its processes
  AxisList axes;             ///< the axis of the whole mesh that each of its own is
  bool own = false;          ///< each process of the whole mesh is in a part of these axes: its own
};

/// The parts of a mesh that have been asked for.
struct PartsMade {
  struct Entry {
    Coordinates at;
    bool own;
    std::shared_ptr<MeshCore> core;
  };
  std::vector<Entry> entries;
};

/// Returns the mesh that a mesh is a part of: itself, where it is a part of none. Throws MeshError
/// when that has ended.
inline std::shared_ptr<MeshCore> whole_of(const std::shared_ptr<MeshCore>& mesh, Where where = {}) {
  const PartHome* part = mesh->attached<PartHome>();
  if (part == nullptr) return mesh;
  const std::shared_ptr<MeshCore> whole = part->whole.lock();
  if (whole == nullptr)
    throw MeshError("the mesh " + mesh->to_string() +
                        " is a part of a mesh that has ended, and tensors go to other parts by the "
                        "whole mesh; keep that as long as its parts",
                    where);
  return whole;
}
/// Returns the numbers of a mesh's processes in that mesh, in the order of their own.
inline std::vector<int> members_of(const MeshCore& mesh) {
  const PartHome* part = mesh.attached<PartHome>();
  return part == nullptr ? all_members(mesh.shape().processes()) : part->members;
}
/// Returns the axis of that mesh that each axis of a mesh is, but for `alone`.
inline AxisList axes_in_whole(const MeshCore& mesh) {
  if (const PartHome* part = mesh.attached<PartHome>()) return part->axes;
  AxisList own;
  for (int a = 0; a < mesh.shape().rank(); ++a) own.push_back(a);
  return own;
}
/// Returns the options of a mesh for one of some of its processes, whose order is their own.
inline MeshOptions options_within(const MeshCore& mesh) {
  MeshOptions options = mesh.options();
  options.device_assignment = {};
  options.machine.order = {};
  return options;
}

/// Returns a coordinate at which an axis is fixed. Throws MeshError for a negative one.
inline int coordinate(int at, Where where = {}) {
  if (at < 0)
    throw MeshError(
        "part: coordinate " + std::to_string(at) + " is asked for; coordinates are numbered from 0",
        where);
  return at;
}
/// Throws MeshError unless a mesh has the coordinates at which it is fixed.
inline void require_part(const MeshCore& mesh, const MeshPart& part, Where where) {
  bool any = false;
  for (int a = 0; a < part.whole.rank(); ++a) {
    any = any || part.fixes(a);
    if (part.at[a] >= part.whole[a])
      throw MeshError("part: axis " + std::string(mesh.names()[a]) + " has " +
                          std::to_string(part.whole[a]) +
                          " processes, and the part at coordinate " + std::to_string(part.at[a]) +
                          " of it is asked for; coordinates are numbered from 0",
                      where);
  }
  if (!any) throw MeshError("part: no axis is fixed; name one of " + mesh.to_string(), where);
}

/// Returns the part, made at the first request; `own`: every process asks for its own, in manual
/// mode, so that processes tell it apart from a part that all name alike. Communication: as
/// make_mesh, between its processes. Collective over: these. Throws MeshError.
inline std::shared_ptr<MeshCore> part_of(const std::shared_ptr<MeshCore>& mesh,
                                         const MeshPart& part, Where where = {}, bool own = false) {
  require_part(*mesh, part, where);
  PartsMade& made = mesh->attachment<PartsMade>();
  for (const PartsMade::Entry& entry : made.entries)
    if (entry.at == part.at && entry.own == own) return entry.core;
  AxisNames names;
  for (int a = 0; a < part.whole.rank(); ++a)
    if (!part.fixes(a)) names.push_back(mesh->names()[a]);
  if (names.empty()) names.push_back(axis_name<alone>());
  const std::vector<int> members = part.members();
  const bool absent = mesh->absent() || !part.has(mesh->coordinates());
  std::vector<int> processes;
  for (const int p : members) processes.push_back(mesh->processes()[static_cast<std::size_t>(p)]);
  const std::shared_ptr<Transport> among =
      absent ? std::make_shared<DryTransport>(std::move(processes), 0, TransportSettings{}, true)
             : mesh->transport().among(members, where);
  const std::shared_ptr<MeshCore> core =
      make_mesh_core(among, part.shape(), names, options_within(*mesh), where);
  PartHome home{whole_of(mesh, where), {}, {}, own};
  const AxisList axes = axes_in_whole(*mesh);
  for (int a = 0; a < axes.size(); ++a)
    if (!part.fixes(a)) home.axes.push_back(axes[a]);
  const std::vector<int> there = members_of(*mesh);
  for (const int p : members) home.members.push_back(there[static_cast<std::size_t>(p)]);
  core->attachment<PartHome>() = std::move(home);
  core->arena().count_with(mesh->arena(), !absent);
  made.entries.push_back({part.at, own, core});
  return core;
}

}  // namespace tessera::detail
