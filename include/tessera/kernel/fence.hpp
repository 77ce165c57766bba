// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Where kernels run, and waiting for them. Kernels are launched on Kokkos' default execution
/// space; on a host backend they are done when the call returns, on a device after fence().
///
///     copy(DType::f32, from, to, &box, 1);
///     fence();                                // MPI may read `to` now
#include <type_traits>

#include <Kokkos_Core.hpp>

namespace tessera {

/// Whether kernels run on the host, where they are synchronous.
inline constexpr bool kernels_on_host =
    std::is_same_v<Kokkos::DefaultExecutionSpace, Kokkos::DefaultHostExecutionSpace>;

/// Returns when all kernels launched so far are done. Costs nothing on a host backend.
inline void fence() {
  if constexpr (!kernels_on_host) Kokkos::DefaultExecutionSpace{}.fence("tessera::fence");
}

}  // namespace tessera
