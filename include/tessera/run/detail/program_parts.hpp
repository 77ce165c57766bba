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
  const std::shared_ptr<MeshCore> whole = home == nullptr ? nullptr : home->whole.lock();
  return whole == nullptr ? mesh : *whole;
}

/// Returns "stage=0", or "manual model" of each process's own part.
inline std::string name_of(const PartHome& home, const MeshCore& world) {
  AxisSet fixed = world.shape().axes();
  for (int i = 0; i < home.axes.size(); ++i) fixed.erase(home.axes[i]);
  const Coordinates at = world.shape().coordinates(home.members[0]);
  std::string text = home.own ? "manual " : "";
  bool first = true;
  for (int a = 0; a < world.shape().rank(); ++a) {
    if (!fixed.contains(a)) continue;
    text += (first ? "" : ", ") + std::string(world.names()[a]) +
            (home.own ? "" : "=" + std::to_string(at[a]));
    first = false;
  }
  return text;
}

TESSERA_FUNCTION std::string text_of_mesh(const MeshCore& mesh) {
  const PartHome* const home = mesh.attached<PartHome>();
  const MeshCore& whole = whole_mesh(mesh);
  if (home == nullptr || &whole == &mesh) return mesh.to_string();
  return mesh.to_string() + " (" + name_of(*home, whole) + " of " + whole.to_string() + ")";
}

TESSERA_FUNCTION std::vector<ProgramPart> program_parts(MeshCore& world,
                                                        const std::vector<MeshCore*>& meshes) {
  std::vector<ProgramPart> parts;
  const MeshShape& shape = world.shape();
  for (MeshCore* const mesh : meshes) {
    ProgramPart& part = parts.emplace_back();
    part.mesh = mesh->shape();
    for (int a = 0; a < mesh->names().size(); ++a) part.axis_names.emplace_back(mesh->names()[a]);
    part.machine = mesh->machine();
    part.workspace_limit = mesh->workspace_limit();
    part.places.assign(static_cast<std::size_t>(shape.processes()), -1);
    part.other = &whole_mesh(*mesh) != &world;
    const PartHome* const home = part.other ? nullptr : mesh->attached<PartHome>();
    if (home == nullptr) {
      if (part.other) part.name = "mesh " + mesh->to_string();
      if (!part.other) part.axes = axes_in_whole(world);
      std::unordered_map<int, int> there;
      for (const int process : mesh->processes())
        there.emplace(process, static_cast<int>(there.size()));
      for (std::size_t p = 0; p < part.places.size(); ++p)
        if (const auto found = there.find(world.processes()[p]); found != there.end())
          part.places[p] = found->second;
      continue;
    }
    part.name = name_of(*home, world);
    part.axes = home->axes;
    const auto place = [&](int process) {
      const Coordinates at = shape.coordinates(process);
      Coordinates within;
      for (int i = 0; i < home->axes.size(); ++i) within.push_back(at[home->axes[i]]);
      if (within.empty()) within.push_back(0);
      part.places[static_cast<std::size_t>(process)] = part.mesh.process(within);
    };
    for (int p = 0; home->own && p < shape.processes(); ++p) place(p);
    for (const int member : home->members) place(member);
  }
  return parts;
}

}  // namespace tessera::detail
