// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Which open layers of a Program are alike: their operators are, and read each other's results
/// alike.
///
///     alike_layers(program) == std::vector<int>{0, 1, 0, 1}     // of four layers, two kinds in turn
///
/// Laws: a layer whose operators the recording does not have is alike to none.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <tessera/plan/operation.hpp>
#include <tessera/program/program.hpp>

namespace tessera::detail {

/// Returns what stands for a layer's operators on the way forward.
inline std::uint64_t digest_of(const Program& program, const ProgramOpenLayer& layer) {
  Digest digest;
  std::unordered_map<int, std::uint64_t> number;  // of tensors, as the layer has them first
  const auto add = [&](int t) {
    if (t < 0) return digest.add(0);
    digest.add(number.try_emplace(t, number.size() + 1).first->second);
    add_to(digest, program.tensor(t).desc);
  };
  for (int i = layer.begin; i < layer.end; ++i) {
    const ProgramEntry& e = program.entry(i);
    add_to(digest, e.plan->kind);
    digest.add(e.operation == nullptr ? 0 : e.operation->digest());
    digest.add(static_cast<std::uint64_t>(e.plan->cost));
    for (const int t : e.operands) add(t);
    add(e.result);
    for (const int t : e.also) add(t);
  }
  return digest.value();
}

/// Returns a number for each open layer, which those that are alike share: from 0, as they run.
inline std::vector<int> alike_layers(const Program& program) {
  std::vector<int> kinds;
  std::unordered_map<std::uint64_t, int> known;
  int next = 0;
  for (const ProgramOpenLayer& layer : program.open_layers()) {
    if (layer.begin == layer.end) {
      kinds.push_back(next++);
      continue;
    }
    const auto [at, fresh] = known.try_emplace(digest_of(program, layer), next);
    if (fresh) ++next;
    kinds.push_back(at->second);
  }
  return kinds;
}

}  // namespace tessera::detail
