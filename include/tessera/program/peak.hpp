// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The memory that a Program holds at once, on the process that holds most: one of the numbers of
/// program/over_processes.hpp, where many Programs are compared by it.
///
///     const Index most = peak_over_processes(program);
///
/// Laws: equals over_processes(program).peak.most.
#include <tessera/base/compiled.hpp>
#include <tessera/program/program.hpp>

namespace tessera {

/// Returns the most bytes of tensors and workspace that a process holds at once. Where no tensor
/// and no operator takes more on a process than on the Program's own, its operators are not walked
/// through again.
TESSERA_FUNCTION Index peak_over_processes(const Program& program);

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/detail/peak.hpp>
#endif
