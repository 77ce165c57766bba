// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Plans alone: built without Kokkos and without MPI.
#include <tessera/plan.hpp>
#include <tessera/version.hpp>

int main() { return tessera::version == tessera::Version{0, 1, 0} ? 0 : 1; }
