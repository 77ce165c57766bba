// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Random functions that are compiled around manual functions, with their gradients: they return
/// what they return alone, send what their Program says, and take up the memory that it says.
///
///     std::string wrong = support::compiled_manual_case(world, random, 4);
#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <tessera/op/compile.hpp>

#include "manual/program_case.hpp"
#include "op/compiled_parts.hpp"

namespace support {

/// Runs some functions of random steps, each compiled and alone.
inline std::string compiled_manual_case(const std::shared_ptr<Transport>& world, Random& random,
                                        int count) {
  const SomeGrid on = some_grid(world, random, options_watched(random));
  const ProcessMesh<Grid>& mesh = on.mesh;
  const auto within = manual_mesh<model>(mesh);
  const Index p = mesh.size<model>();
  for (int k = 0; k < count; ++k) {
    const ManualProgram program = some_manual_program(on, random);
    const Index n = program.n;
    const int before = random.below(3), after = random.below(3);
    const bool twice = random.chance(30), gradient = random.chance(70), exact = random.chance(50);
    const auto once = [&](const InGrid<model, data>& a, const InGrid<_, data>& b) {
      return manual<model>([&](const VaryingBlock<_, data>& v, const EqualBlock<_, data>& e) {
        ManualPool<InManual::E, InManual::V> pool{{e}, {v}};
        for (const ManualStep& s : program.steps) InManual::step(s, pool);
        return std::tuple(InManual::loss(pool), along<0, model>(pool.varying.back()),
                          pool.equal.back());
      })(a, b);
    };
    const auto whole = [&](const InGrid<model, data>& given, const InGrid<_, data>& b) {
      InGrid<model, data> a = given;
      for (int i = 0; i < before; ++i) a = sin(a) + a;
      auto [loss, varying, equal] = once(a, b);
      if (twice) loss = loss + std::get<0>(once(varying * 0.25, equal * 0.5));
      InGrid<> sum_of = loss;
      for (int i = 0; i < after; ++i) sum_of = sum_of + sum<"ij->", P<>>(equal * b);
      return sum_of;
    };
    const auto alone = [&](const InGrid<model, data>& a, const InGrid<_, data>& b) {
      std::vector<DynamicTensor> made;
      if (gradient) {
        const auto [value, by] = value_and_grad<0, 1>(whole)(a, b);
        made = {value, std::get<0>(by), std::get<1>(by)};
      } else {
        made = {whole(a, b)};
      }
      return made;
    };
    const bool all_call = random.chance(50);
    if (!all_call && !mesh.takes_part()) continue;  // and nobody waits for it
    auto compiled = exact ? compile(alone, {.share = false, .join = false}) : compile(alone);
    for (int call = 0; call < 2; ++call) {
      const auto x = from_function<InGrid<model, data>>(mesh, {p * n, n}, Sines{0.3 + call});
      const auto w = from_function<InGrid<_, data>>(mesh, {n, n}, Sines{1.1 + call});
      const std::string text = compiled_alike(
          {mesh.core(), within.core()}, compiled, [&] { return compiled(x, w); }, alone(x, w),
          exact ? 0 : 1e-12);
      if (!text.empty()) return program.text + " " + text;
    }
    if (compiled.structures() != 1) return program.text + compiled.explain_structures();
  }
  return "";
}

/// Runs some functions over two parts of a mesh with a manual function on each, compiled and alone:
/// what the first one makes goes to the second part, and gradients come back.
inline std::string compiled_stages_case(const std::shared_ptr<Transport>& world, Random& random,
                                        int count) {
  using Stages = Mesh<fixed::stage, data, model>;
  const MeshShape shape = random.of(meshes_of(world->size(), 3));
  const auto whole = make_mesh<Stages>(world, MeshSizes<Stages>(shape), options_watched(random));
  const int i = random.below(shape[0]), j = random.below(shape[0]);
  const auto first = whole.part<fixed::stage>(i), second = whole.part<fixed::stage>(j);
  const SomeGrid on{
      whole.core(), first,
      std::to_string(i) + " and " + std::to_string(j) + " of " + whole.core()->to_string()};
  std::vector<std::shared_ptr<MeshCore>> meshes{first.core(), manual_mesh<model>(first).core(),
                                                second.core(), manual_mesh<model>(second).core()};
  if (i == j)
    meshes.resize(2);
  else
    meshes.insert(meshes.begin(), whole.core());
  const Index p = shape[2];
  for (int k = 0; k < count; ++k) {
    const ManualProgram program = some_manual_program(on, random);
    const std::vector<ManualStep> later = some_manual_program(on, random).steps;
    const Index n = program.n;
    const bool gradient = random.chance(70), exact = random.chance(50);
    const auto run = [](const std::vector<ManualStep>& steps, const InGrid<model, data>& a,
                        const InGrid<_, data>& b) {
      return manual<model>([&](const VaryingBlock<_, data>& v, const EqualBlock<_, data>& e) {
        ManualPool<InManual::E, InManual::V> pool{{e}, {v}};
        for (const ManualStep& s : steps) InManual::step(s, pool);
        return std::tuple(InManual::loss(pool), along<0, model>(pool.varying.back()),
                          pool.equal.back());
      })(a, b);
    };
    const auto loss = [&](const InGrid<model, data>& a, const InGrid<_, data>& b) {
      const auto [sum_of, varying, equal] = run(program.steps, a, b);
      const auto there = reshard<InGrid<model, data>>(varying, second);
      const auto read = reshard<InGrid<_, data>>(equal + b, second);
      const auto made = run(later, there * 0.25, read * 0.5);
      return std::get<0>(made) + reshard<InGrid<>>(sum_of, second);
    };
    const auto alone = [&](const InGrid<model, data>& a, const InGrid<_, data>& b) {
      if (!gradient) return std::vector<DynamicTensor>{loss(a, b)};
      const auto [value, by] = value_and_grad<0, 1>(loss)(a, b);
      return std::vector<DynamicTensor>{value, std::get<0>(by), std::get<1>(by)};
    };
    auto compiled = exact ? compile(alone, {.share = false, .join = false}) : compile(alone);
    for (int call = 0; call < 2; ++call) {
      const auto x = from_function<InGrid<model, data>>(first, {p * n, n}, Sines{0.3 + call});
      const auto w = from_function<InGrid<_, data>>(first, {n, n}, Sines{1.1 + call});
      const std::string text = compiled_alike(
          meshes, compiled, [&] { return compiled(x, w); }, alone(x, w), exact ? 0 : 1e-12);
      if (!text.empty()) return program.text + " " + text;
    }
    if (compiled.structures() != 1) return program.text + compiled.explain_structures();
  }
  return "";
}

}  // namespace support
