// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The memories of a plan on one process, by number: its slots, then staging memory.
///
///     instruction.to == plan.result;    instruction.from == detail::receive_staging;
///
/// Laws: a number below Plan::max_slots is a slot of the plan; every other number is staging
/// memory, which a step allocates and releases.
#include <cstdint>

#include <tessera/base/local_work.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera::detail {

using MemoryNumber = std::int8_t;
inline constexpr MemoryNumber no_memory = -1;
inline constexpr MemoryNumber send_staging = Plan::max_slots;  ///< what leaves, packed
inline constexpr MemoryNumber receive_staging = send_staging + 1;
inline constexpr MemoryNumber wide_sums =
    send_staging + 2;  ///< half types are summed here in float
inline constexpr MemoryNumber kernel_scratch = send_staging + 3;
inline constexpr MemoryNumber first_loop_buffer = send_staging + 4;  ///< blocks that travel
inline constexpr int max_memories = first_loop_buffer + 4;

/// A copy between two memories.
struct MemoryCopy {
  MemoryNumber from = no_memory;
  MemoryNumber to = no_memory;
  DType type = DType::f32;
  std::int8_t tensor = 0;  ///< the input of the step that it belongs to
  StridedCopy copy;
};

}  // namespace tessera::detail
