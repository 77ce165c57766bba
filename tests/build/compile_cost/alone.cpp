// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a program pays without Tessera.
#include <Kokkos_Core.hpp>

#include <mpi.h>
