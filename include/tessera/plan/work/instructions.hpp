// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Expands a plan's steps to instructions, for the plan's process.
///
///     const Instructions list = instructions_of(plan);
///
/// Laws: those of plan/work/instruction.hpp.
#include <tessera/base/compiled.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/plan/work/instruction.hpp>

namespace tessera {

/// Returns the instructions of a plan for its process.
TESSERA_FUNCTION Instructions instructions_of(const Plan& plan);

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/plan/work/instruction_list.hpp>
#endif
