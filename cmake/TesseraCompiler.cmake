# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Before the project begins: finds the compiler that a preset names (clang++), else installs it where TESSERA_PROVISION
# says so, else says in one sentence that it is missing, in place of CMake's page of text.

if(CMAKE_CXX_COMPILER AND NOT IS_ABSOLUTE "${CMAKE_CXX_COMPILER}")
  find_program(TESSERA_COMPILER "${CMAKE_CXX_COMPILER}" NO_CACHE)
  if(NOT TESSERA_COMPILER AND TESSERA_PROVISION AND CMAKE_CXX_COMPILER STREQUAL "clang++")
    message(STATUS "Missing: clang++")
    set(clang_debian clang libomp-dev)  # -fopenmp wants the latter, as Kokkos does
    include("${CMAKE_CURRENT_SOURCE_DIR}/cmake/TesseraProvision.cmake")
    tessera_install_packages(clang)
    find_program(TESSERA_COMPILER "${CMAKE_CXX_COMPILER}" NO_CACHE)
  endif()
  if(NOT TESSERA_COMPILER)
    message(FATAL_ERROR "Tessera is to be compiled with '${CMAKE_CXX_COMPILER}' (CMAKE_CXX_COMPILER), which is not in PATH; "
      "install it (clang++: run `apt-get install clang libomp-dev` as root), or name another compiler.")
  endif()
endif()
