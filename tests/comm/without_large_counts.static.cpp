// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The transport as an MPI before 4.0 compiles it, which has no functions for large counts.
#define TESSERA_MPI_LARGE_COUNTS 0
#include <tessera/comm/mpi/detail/group.hpp>

static_assert(sizeof(tessera::detail::MpiGroup) > 0);
