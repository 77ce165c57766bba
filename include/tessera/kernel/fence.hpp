// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Waiting for kernels. On a host backend they are done when the call returns, on a device after
/// fence().
///
///     detail::copy(DType::f32, from, to, &box, 1);
///     detail::fence();                                // MPI may read `to` now
#include <tessera/kernel/lane.hpp>

namespace tessera::detail {

/// Returns when all kernels that were launched on this thread's lane are done. Costs nothing on a
/// host backend.
inline void fence() {
  if constexpr (!kernels_on_host) lane().wait();
}
}  // namespace tessera::detail
