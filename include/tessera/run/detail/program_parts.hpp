// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How meshes are told as parts of a Program.
///
///     program_parts(world, meshes)
///
/// Laws: those of run/program_parts.hpp.
#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/run/program_parts.hpp>
#include <tessera/tensor/part_core.hpp>

namespace tessera::detail {

TESSERA_FUNCTION const MeshCore& whole_mesh(const MeshCore& mesh) {
  const PartHome* const home = mesh.attached<PartHome>();
  const std::shared_ptr<MeshCore> outer = home == nullptr ? nullptr : home->outer.lock();
  return outer == nullptr ? mesh : whole_mesh(*outer);
}

/// Returns "stage=0", or "manual model" of each process's own part, as a part of `world` is called;
/// of one in another "stage=0, manual model".
inline std::string name_in(const MeshCore& mesh, const MeshCore& world) {
  if (&mesh == &world) return "";
  const PartHome& home = *mesh.attached<PartHome>();
  const std::shared_ptr<MeshCore> outer = outer_mesh(mesh);
  const AxisSet left = home.axes.set();
  const Coordinates at = outer->shape().coordinates(home.members[0]);
  std::string text;
  for (int a = 0; a < outer->shape().rank(); ++a)
    if (!left.contains(a))
      text += (text.empty() ? (home.own ? "manual " : "") : ", ") + std::string(outer->names()[a]) +
              (home.own ? "" : "=" + std::to_string(at[a]));
  const std::string before = name_in(*outer, world);
  return before.empty() ? text : before + ", " + text;
}

TESSERA_FUNCTION std::string text_of_mesh(const MeshCore& mesh) {
  const MeshCore& whole = whole_mesh(mesh);
  if (&whole == &mesh) return mesh.to_string();
  return mesh.to_string() + " (" + name_in(mesh, whole) + " of " + whole.to_string() + ")";
}

/// Returns for each process of `world` its number in a mesh that lies in it; -1: it is not in the
/// mesh.
inline std::vector<int> places_in(const MeshCore& mesh, const MeshCore& world) {
  if (&mesh == &world) return all_members(world.shape().processes());
  const PartHome& home = *mesh.attached<PartHome>();
  const std::shared_ptr<MeshCore> outer = outer_mesh(mesh);
  std::vector<int> there(static_cast<std::size_t>(outer->shape().processes()), -1);
  const auto place = [&](int process) {
    const Coordinates at = outer->shape().coordinates(process);
    Coordinates within;
    for (int i = 0; i < home.axes.size(); ++i) within.push_back(at[home.axes[i]]);
    if (within.empty()) within.push_back(0);
    there[static_cast<std::size_t>(process)] = mesh.shape().process(within);
  };
  for (int p = 0; home.own && p < outer->shape().processes(); ++p) place(p);
  for (const int member : home.members) place(member);
  std::vector<int> places = places_in(*outer, world);
  for (int& p : places)
    if (p >= 0) p = there[static_cast<std::size_t>(p)];
  return places;
}

TESSERA_FUNCTION std::vector<ProgramPart> program_parts(MeshCore& world,
                                                        const std::vector<MeshCore*>& meshes) {
  std::vector<ProgramPart> parts;
  for (MeshCore* const mesh : meshes) {
    ProgramPart& part = parts.emplace_back();
    part.mesh = mesh->shape();
    for (int a = 0; a < mesh->names().size(); ++a) part.axis_names.emplace_back(mesh->names()[a]);
    part.machine = mesh->machine();
    part.workspace_limit = mesh->workspace_limit();
    if (lies_in(*mesh, world)) {
      part.name = name_in(*mesh, world);
      part.axes = axes_in(*mesh, world);
      part.places = places_in(*mesh, world);
      continue;
    }
    part.other = true;
    part.name = "mesh " + mesh->to_string();
    part.places.assign(static_cast<std::size_t>(world.shape().processes()), -1);
    std::unordered_map<int, int> there;
    for (const int process : mesh->processes())
      there.emplace(process, static_cast<int>(there.size()));
    for (std::size_t p = 0; p < part.places.size(); ++p)
      if (const auto found = there.find(world.processes()[p]); found != there.end())
        part.places[p] = found->second;
  }
  return parts;
}

}  // namespace tessera::detail
