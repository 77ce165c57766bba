// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Plans and Programs as short tables of text. show/format.hpp has fmt formatters that call these
/// functions.
///
///     std::string text = explain(plan, names);
///
/// Laws: the text is a function of the plan and the axis names alone, so that it can be compared as
/// a golden file.
#include <string>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/text.hpp>
#include <tessera/program/program.hpp>

namespace tessera {

/// Returns the plan as a table: the operands; one row for each step, with the most that it moves
/// and computes on one process; which operands' sharding was overruled, and by what; the totals,
/// each the most on one process, and which process has it where processes differ.
TESSERA_FUNCTION std::string explain(const Plan& plan, const AxisNames& names);
/// Returns the same with the numbers of the plan's own process.
TESSERA_FUNCTION std::string explain_own(const Plan& plan, const AxisNames& names);

/// Returns a Program as a table: one row for each operator; then its layers, the payload of each
/// group of axes and collective, the duplicated work (the `most` largest), and totals. Each number
/// is the most on one process; totals also name the process, where processes differ.
TESSERA_FUNCTION std::string explain(const Program& program, int most = 8);
/// Returns the same as explain.
inline std::string to_string(const Program& program) { return explain(program); }
/// Returns the same with the numbers of the program's own process.
TESSERA_FUNCTION std::string explain_own(const Program& program, int most = 8);

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/detail/explain.hpp>
#endif
