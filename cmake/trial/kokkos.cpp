// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <Kokkos_Core.hpp>
int main() { return Kokkos::is_initialized() ? 1 : 0; }
