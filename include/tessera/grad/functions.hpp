// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The derivatives of the functions of kernel/functions/, found by a function's identity when its
/// type has been erased. They are compiled once, not with every call of a function.
///
///     detail::PullBack back = detail::pull_back(kernel, 0);
///
/// Laws: a function that brings a derivative of its own needs none here.
#include <tessera/base/compiled.hpp>
#include <tessera/run/pull_back.hpp>

namespace tessera::detail {

/// Returns how a gradient goes back through a map's function to an operand, or the
/// function of a NormPull; unknown where the function has no derivative.
TESSERA_FUNCTION PullBack pull_back(const MapKernel& kernel, int asked);

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/grad/detail/pull_back_table.hpp>
#endif
#if TESSERA_DERIVATIVES
#include <tessera/grad/detail/known_functions.hpp>
#endif
