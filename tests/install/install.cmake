# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs the package under WORK, builds tests/install/user against it, and runs that on two processes.
cmake_minimum_required(VERSION 3.25)

function(step)
  list(JOIN ARGV " " words)
  message(STATUS "${words}")
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "failed: ${words}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}/prefix" "${WORK}/user")
step("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/prefix")
step("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/user" -B "${WORK}/user" -G "${GENERATOR}"
  "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${WORK}/prefix" "-DKokkos_DIR=${Kokkos_DIR}" "-Dfmt_DIR=${fmt_DIR}")
step("${CMAKE_COMMAND}" --build "${WORK}/user")
step("${WORK}/user/plan_only")
separate_arguments(MPIEXEC UNIX_COMMAND "${MPIEXEC}")
step(${MPIEXEC} "${WORK}/user/user")
