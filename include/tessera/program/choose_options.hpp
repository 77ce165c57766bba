// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What is asked of a choice of shardings (program/choice.hpp).
///
///     ChooseOptions options{.objective = Objective::payload, .flops_limit = program.flops()};
#include <cstdint>
#include <vector>

#include <tessera/base/math.hpp>
#include <tessera/program/program.hpp>

namespace tessera {

/// What a choice makes least: modelled time, in picoseconds; or the payload of the process with
/// most, in bytes, and of equal payloads the shorter time.
enum class Objective : std::uint8_t { time, payload };

struct ChooseOptions {
  Objective objective = Objective::time;
  /// The tensors of the Program, among those that no operator makes, whose sharding is open too.
  std::vector<int> open = {};
  /// What tensors of the Program shall be split like, beside what constrain states in the function.
  std::vector<TensorPin> pins = {};
  bool open_arguments = false;     ///< all tensors that no operator makes are open
  bool open_results = false;       ///< the tensors that outlive the Program are open
  Index flops_limit = max_int64;   ///< of process 0, in all operators
  Index memory_limit = max_int64;  ///< bytes of tensors and workspace that a process may hold
  /// How many steps the search may take where the network is too large to be solved exactly: more
  /// narrow the gap.
  std::uint64_t steps = 2000;
};

}  // namespace tessera
