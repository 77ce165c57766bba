// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Random functions over parts of a mesh, the mesh, and another mesh over the same processes, with
/// moves between them: compiled and alone they return the same, and so do their gradients. Used on
/// loopback and under MPI.
///
///     std::string wrong = support::compiled_parts_case(world, random, 4);
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/grad.hpp>

#include "op/compiled_parts.hpp"
#include "op/parts_case.hpp"
#include "op/rests.hpp"
#include "support/enumerate.hpp"

namespace support {

/// A function that `random` chooses: operators on matrices of several meshes, some in place, and
/// moves between the meshes.
struct OverParts {
  std::vector<DynamicMesh> meshes;
  Random random;
  int count;

  std::vector<DynamicTensor> operator()(std::vector<DynamicTensor>& pool) const {
    Random r = random;
    for (int i = 0; i < count; ++i) step(pool, r);
    std::vector<DynamicTensor> returned;
    for (const DynamicTensor& x : pool)
      if (r.chance(60)) returned.push_back(x);
    return returned;
  }
  static int axes_of(const DynamicTensor& x) { return x.core().mesh()->shape().rank(); }
  void step(std::vector<DynamicTensor>& pool, Random& r) const {
    const auto at = [&]() -> DynamicTensor& {
      return pool[static_cast<std::size_t>(r.below(static_cast<int>(pool.size())))];
    };
    DynamicTensor &x = at(), &y = at(), &to = at();
    const DynamicMesh mesh = r.of(meshes);
    const auto whole = [](const DynamicMesh& on) { return detail::whole_of(on.core()); };
    const auto wide = [&](const DynamicMesh& on) { return whole(on) == on.core(); };
    const bool may = whole(x.mesh()) == whole(mesh) || (wide(x.mesh()) && wide(mesh));
    const bool beside = x.core().mesh() == y.core().mesh();
    const bool alike = beside && x.extents() == y.extents();
    const Sharding out = some_sharding(r, 2, axes_of(x));
    const Sharding there = some_sharding(r, 2, mesh.shape().rank());
    switch (r.below(9)) {
      case 0:
      case 1:
      case 2:
        if (may) to = reshard(x, there, mesh);
        return;
      case 3:
        to = reshard(x, out);
        return;
      case 4:
        to = map_dynamic<double>("ij->ij", Times{static_cast<double>(r.below(9))}, out, x);
        return;
      case 5:
        if (alike) to = map_dynamic<double>("ij,ij->ij", AddRest{}, out, x, y);
        return;
      case 6:
        if (beside && x.extents()[1] == y.extents()[0])
          to = map_dynamic<double>("ij->ij", Times{2}, out, einsum("ij,jk->ik", x, y, out));
        return;
      case 7:
        if (alike && x.core().storage() != y.core().storage() && x.sharding() == y.sharding())
          reshard_into(y, x);
        return;
      default:
        to = map_dynamic<double>("ij->ij", Times{3}, out, x);
        return;
    }
  }
};

inline std::string compiled_parts_case(const std::shared_ptr<Transport>& world, Random& random,
                                       int count) {
  const MeshOptions options = options_watched(random);
  const auto made = [&](int rank) {
    const MeshShape shape = random.of(meshes_of(world->size(), rank));
    return DynamicMesh(make_mesh_core(world, shape, axis_names(shape.rank()), options));
  };
  const DynamicMesh whole = made(1 + random.below(3)), other = made(1 + random.below(2));
  other.core()->arena().count_with(whole.core()->arena());
  for (int k = 0; k < count; ++k) {
    std::vector<DynamicMesh> meshes{whole};
    for (int i = 1 + random.below(3); i > 0; --i) meshes.push_back(some_part(whole, random));
    if (random.chance(30)) meshes.push_back(other);
    const OverParts function{meshes, Random(random.next()), 2 + random.below(12)};
    const bool passes = random.chance(70);
    auto compiled = compile(function, {.share = passes,
                                       .join = passes,
                                       .reuse = random.chance(70),
                                       .memory_limit = random.chance(70) ? max_int64 : 2000});
    std::vector<std::shared_ptr<MeshCore>> cores;
    for (const DynamicMesh& mesh : meshes)
      if (std::find(cores.begin(), cores.end(), mesh.core()) == cores.end())
        cores.push_back(mesh.core());
    const Random given(random.next());
    for (int call = 0; call < 2; ++call) {
      const auto pool = [&] {
        Random r = given;
        std::vector<DynamicTensor> all;
        for (int i = 0; i < 5; ++i) {
          const DynamicMesh mesh = r.of(meshes);
          const std::vector<Index> sides{6, 6, 7};
          const Extents extents{r.of(sides), r.of(sides)};
          all.push_back(from_function<double>(mesh, extents,
                                              some_sharding(r, 2, mesh.shape().rank()),
                                              Numbered{static_cast<double>(i + call)}));
        }
        return all;
      };
      std::vector<DynamicTensor> alone = pool(), together = pool();
      const std::vector<DynamicTensor> expected = function(alone);
      std::string text = compiled_alike(
          cores, compiled, [&] { return compiled(together); }, expected, 0);
      text += results_apart(together, alone, 0);
      if (!text.empty()) return "case " + std::to_string(k) + ": " + text;
    }
    if (compiled.structures() > 1) return compiled.explain_structures();
  }
  return "";
}

/// A loss of several matrices over the parts of a mesh, of which one is read on two parts; and its
/// gradients.
inline std::string compiled_parts_gradient_case(const std::shared_ptr<Transport>& world,
                                                Random& random, int count) {
  const MeshOptions options = options_watched(random);
  const MeshShape shape = random.of(meshes_of(world->size(), 1 + random.below(3)));
  const DynamicMesh whole(make_mesh_core(world, shape, axis_names(shape.rank()), options));
  for (int k = 0; k < count; ++k) {
    const DynamicMesh a = some_part(whole, random), b = some_part(whole, random);
    Random r(random.next());
    const auto on = [&](const DynamicMesh& mesh) {
      return some_sharding(r, 2, mesh.shape().rank());
    };
    const Sharding x_on = on(a), w_on = on(a), v_on = on(b), h_on = on(a), t_on = on(b),
                   z_on = on(b), y_on = on(whole);
    const auto loss = [&](const DynamicTensor& x, const DynamicTensor& w, const DynamicTensor& v) {
      const DynamicTensor h = sin(einsum("ij,jk->ik", x, w, h_on));
      const DynamicTensor tied = reshard(w, t_on, b);  // it is read on both parts
      const DynamicTensor z = einsum("ij,kj->ik", reshard(h, z_on, b), tied, z_on);
      const DynamicTensor y = reshard(sin(einsum("ij,jk->ik", z, v, z_on)), y_on, whole);
      return einsum("ij,ij->", y, y, Sharding{});
    };
    const auto step = [&](const DynamicTensor& x, const DynamicTensor& w, const DynamicTensor& v) {
      const auto [value, by] = value_and_grad<0, 1, 2>(loss)(x, w, v);
      return std::vector<DynamicTensor>{value, std::get<0>(by), w - 0.5 * std::get<1>(by),
                                        v - 0.5 * std::get<2>(by)};
    };
    const bool exact = random.chance(50);
    auto compiled = exact ? compile(step, {.share = false, .join = false}) : compile(step);
    std::vector<std::shared_ptr<MeshCore>> cores{whole.core()};
    for (const DynamicMesh& mesh : {a, b})
      if (std::find(cores.begin(), cores.end(), mesh.core()) == cores.end())
        cores.push_back(mesh.core());
    for (int call = 0; call < 2; ++call) {
      const auto given = [&](const DynamicMesh& mesh, Index n, Index m, const Sharding& s,
                             double f) {
        return from_function<double>(mesh, {n, m}, s, Numbered{f + call}) * 0.01;
      };
      const DynamicTensor x = given(a, 5, 6, x_on, 1), w = given(a, 6, 7, w_on, 2),
                          v = given(b, 6, 4, v_on, 3);
      const std::string text = compiled_alike(
          cores, compiled, [&] { return compiled(x, w, v); }, step(x, w, v), exact ? 0 : 1e-12);
      if (!text.empty()) return "case " + std::to_string(k) + ": " + text;
    }
    if (compiled.structures() > 1) return compiled.explain_structures();
  }
  return "";
}

}  // namespace support
