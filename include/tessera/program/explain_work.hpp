// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What the process of a plan does, instruction by instruction, as a table of text.
///
///     std::string text = explain_work(plan, names);
///
/// Laws: one row for each instruction of instructions_of(plan), in order; of a plan of more bytes
/// than 64 bits count one sentence.
#include <string>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// Returns the instructions of the plan's process as a table: what is done, from which memory to
/// which, and how much. A memory is an operand, a result, another tensor of the plan, or staging:
/// what is packed to be sent, what is received, blocks of a loop that travel, scratch of a kernel.
TESSERA_FUNCTION std::string explain_work(const Plan& plan, const AxisNames& names);

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/detail/explain_work.hpp>
#endif
