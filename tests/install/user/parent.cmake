# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What the project around us has found is used, and nothing else is looked for.
foreach(target IN ITEMS Kokkos::kokkos MPI::MPI_CXX fmt::fmt)
  add_library(${target} INTERFACE IMPORTED)
endforeach()
set(CMAKE_DISABLE_FIND_PACKAGE_Kokkos ON)
set(CMAKE_DISABLE_FIND_PACKAGE_MPI ON)
set(CMAKE_DISABLE_FIND_PACKAGE_fmt ON)
