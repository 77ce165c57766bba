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
  const int p = [&] {
    std::vector<int> parts;
    for (int q = 1; q <= world->size(); ++q)
      if (world->size() % q == 0) parts.push_back(q);
    return random.of(parts);
  }();
  const MeshOptions options = options_watched(random);
  const auto mesh = make_mesh<Grid>(world, sizes<Grid>(world->size() / p, p), options);
  const auto within = manual_mesh<model>(mesh);
  for (int k = 0; k < count; ++k) {
    const Index n = p * (1 + random.below(3));
    std::vector<ManualStep> steps;
    for (int i = 2 + random.below(7); i > 0; --i)
      steps.push_back(
          {random.below(manual_steps), random.below(9), random.below(9), random.below(5)});
    std::string label = "n " + std::to_string(n) + " on " + std::to_string(world->size() / p) +
                        "x" + std::to_string(p) + ":";
    for (const ManualStep& s : steps)
      label += " " + std::to_string(s.kind) + "(" + std::to_string(s.a) + "," +
               std::to_string(s.b) + "," + std::to_string(s.by) + ")";
    const int before = random.below(3), after = random.below(3);
    const bool twice = random.chance(30), gradient = random.chance(70), exact = random.chance(50);
    const auto once = [&](const InGrid<model, data>& a, const InGrid<_, data>& b) {
      return manual<model>([&](const VaryingBlock<_, data>& v, const EqualBlock<_, data>& e) {
        ManualPool<InManual::E, InManual::V> pool{{e}, {v}};
        for (const ManualStep& s : steps) InManual::step(s, pool);
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
    auto compiled = exact ? compile(alone, {.share = false, .join = false}) : compile(alone);
    for (int call = 0; call < 2; ++call) {
      const auto x = from_function<InGrid<model, data>>(mesh, {p * n, n}, Sines{0.3 + call});
      const auto w = from_function<InGrid<_, data>>(mesh, {n, n}, Sines{1.1 + call});
      const std::string text = compiled_alike(
          {mesh.core(), within.core()}, compiled, [&] { return compiled(x, w); }, alone(x, w),
          exact ? 0 : 1e-12);
      if (!text.empty()) return label + " " + text;
    }
    if (compiled.structures() != 1) return label + compiled.explain_structures();
  }
  return "";
}

}  // namespace support
