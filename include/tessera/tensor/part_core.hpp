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

/// Where a part lies in the mesh that it is a part of, which may be a part itself.
struct PartHome {
  std::weak_ptr<MeshCore> outer;
  std::vector<int> members;  ///< the number in that mesh of each of its processes
  AxisList axes;             ///< the axis of that mesh that each of its own is
  bool own = false;          ///< each process of that mesh is in a part of these axes: its own
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

/// Returns the mesh that a part was asked of; null for a mesh that is no part. Throws MeshError
/// when that has ended.
inline std::shared_ptr<MeshCore> outer_mesh(const MeshCore& mesh, Where where = {}) {
  const PartHome* const home = mesh.attached<PartHome>();
  if (home == nullptr) return nullptr;
  std::shared_ptr<MeshCore> outer = home->outer.lock();
  if (outer == nullptr)
    throw MeshError("the mesh " + mesh.to_string() +
                        " is a part of a mesh that has ended, and tensors go to other parts by the "
                        "whole mesh; keep that as long as its parts",
                    where);
  return outer;
}
/// Returns the mesh that a mesh is a part of, and that is a part of none: itself, where it is one.
/// Throws MeshError when that has ended.
inline std::shared_ptr<MeshCore> whole_of(const std::shared_ptr<MeshCore>& mesh, Where where = {}) {
  std::shared_ptr<MeshCore> whole = mesh;
  while (std::shared_ptr<MeshCore> outer = outer_mesh(*whole, where)) whole = std::move(outer);
  return whole;
}
/// Calls visit for a mesh, and for those that it lies in, from the innermost on, as far as they
/// have not ended.
template <class Visit> void visit_around(MeshCore& mesh, const Visit& visit) {
  visit(mesh);
  const PartHome* const home = mesh.attached<PartHome>();
  if (home == nullptr) return;
  if (const std::shared_ptr<MeshCore> outer = home->outer.lock()) visit_around(*outer, visit);
}
/// Returns the mesh on which the manual functions around a mesh are called; a mesh itself, where
/// there are none. Throws MeshError when that has ended.
inline std::shared_ptr<MeshCore> manual_whole_of(const std::shared_ptr<MeshCore>& mesh,
                                                 Where where = {}) {
  const PartHome* const home = mesh->attached<PartHome>();
  return home != nullptr && home->own ? outer_mesh(*mesh, where) : mesh;
}
/// Returns whether a mesh is `whole`, or a part of it, or of a part of it.
inline bool lies_in(const MeshCore& mesh, const MeshCore& whole) {
  if (&mesh == &whole) return true;
  const PartHome* const home = mesh.attached<PartHome>();
  const std::shared_ptr<MeshCore> outer = home == nullptr ? nullptr : home->outer.lock();
  return outer != nullptr && lies_in(*outer, whole);
}
/// Returns the smallest mesh that two meshes lie in; null where there is none. Throws MeshError
/// when one that they are parts of has ended.
inline std::shared_ptr<MeshCore> mesh_of_both(const std::shared_ptr<MeshCore>& a,
                                              const std::shared_ptr<MeshCore>& b,
                                              Where where = {}) {
  std::shared_ptr<MeshCore> both = a;
  while (both != nullptr && !lies_in(*b, *both)) both = outer_mesh(*both, where);
  return both;
}
/// Returns the numbers in `whole` of a mesh's processes, in the order of their own. Precondition:
/// the mesh lies in it.
inline std::vector<int> members_in(const MeshCore& mesh, const MeshCore& whole) {
  if (&mesh == &whole) return all_members(mesh.shape().processes());
  const std::vector<int> there = members_in(*outer_mesh(mesh), whole);
  std::vector<int> members;
  for (const int p : mesh.attached<PartHome>()->members)
    members.push_back(there[static_cast<std::size_t>(p)]);
  return members;
}
/// Returns the axis of `whole` that each axis of a mesh is, but for `alone`. Precondition: the mesh
/// lies in it.
inline AxisList axes_in(const MeshCore& mesh, const MeshCore& whole) {
  AxisList axes;
  if (&mesh == &whole) {
    for (int a = 0; a < mesh.shape().rank(); ++a) axes.push_back(a);
    return axes;
  }
  const AxisList there = axes_in(*outer_mesh(mesh), whole);
  const AxisList& own = mesh.attached<PartHome>()->axes;
  for (int i = 0; i < own.size(); ++i) axes.push_back(there[own[i]]);
  return axes;
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
  PartHome home{mesh, members, {}, own};
  for (int a = 0; a < part.whole.rank(); ++a)
    if (!part.fixes(a)) home.axes.push_back(a);
  core->attachment<PartHome>() = std::move(home);
  core->arena().count_with(mesh->arena(), !absent);
  made.entries.push_back({part.at, own, core});
  return core;
}

}  // namespace tessera::detail
