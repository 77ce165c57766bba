# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# How this build starts programs: under mpiexec, and in what environment.

# OpenBLAS asks the processor which kernels to use; one that it does not know gets those of 2004 ("Prescott"),
# a fifth of the speed. Where that happens our own runs name the kernels; a user's own runs are the user's.
function(tessera_probe_blas result)
  if(NOT DEFINED TESSERA_OPENBLAS_CORETYPE)
    file(WRITE "${PROJECT_BINARY_DIR}/probe/blas.cpp" [[
#include <cstdio>
#include <cstring>
extern "C" char* openblas_get_corename();
int main() {
  std::printf("%s;", openblas_get_corename());
  if (std::strcmp(openblas_get_corename(), "Prescott") != 0) return 0;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw"))
    std::printf("SkylakeX");
  else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    std::printf("Haswell");
#endif
}
]])
    try_run(ran compiled "${PROJECT_BINARY_DIR}/probe" "${PROJECT_BINARY_DIR}/probe/blas.cpp"
      LINK_LIBRARIES "${TESSERA_BLAS_LIBRARY}" RUN_OUTPUT_VARIABLE answer)
    set(core)
    if(compiled AND ran EQUAL 0)
      list(GET answer 0 knows)
      list(GET answer 1 core)
      message(STATUS "OpenBLAS takes this processor for: ${knows}")
    endif()
    set(TESSERA_OPENBLAS_CORETYPE "${core}" CACHE STRING "OPENBLAS_CORETYPE of our own runs; empty: not set")
    mark_as_advanced(TESSERA_OPENBLAS_CORETYPE)
    if(core)
      message(STATUS "Our own runs set OPENBLAS_CORETYPE=${core}")
    endif()
  endif()
  set(${result} "${TESSERA_OPENBLAS_CORETYPE}" PARENT_SCOPE)
endfunction()

tessera_probe_blas(core)
set(TESSERA_ENVIRONMENT
  OMP_NUM_THREADS=1     # the processes are the parallelism
  OMP_PROC_BIND=false)  # else each process binds its threads to the same cores
if(core)
  list(APPEND TESSERA_ENVIRONMENT OPENBLAS_CORETYPE=${core})
endif()

# For long runs: MPICH's large collectives allocate on each call, which is slow where every allocation is a mapping.
set(TESSERA_LONG_RUN_ENVIRONMENT ${TESSERA_ENVIRONMENT} MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=1073741824)
# Short runs, whose bits and texts are compared with others', measure nothing.
list(APPEND TESSERA_ENVIRONMENT TESSERA_PRODUCTS=fixed)

# Open MPI's launcher refuses root and more processes than cores unless told otherwise, and ties processes to cores.
execute_process(COMMAND "${MPIEXEC_EXECUTABLE}" --version OUTPUT_VARIABLE launcher ERROR_QUIET)
set(TESSERA_OPENMPI_FLAGS --allow-run-as-root --oversubscribe --bind-to none)
set(TESSERA_MPIEXEC_FLAGS)
if(launcher MATCHES "Open ?MPI|OpenRTE|PRTE")
  set(TESSERA_MPIEXEC_FLAGS ${TESSERA_OPENMPI_FLAGS})
endif()

# tessera_mpi_command(RESULT PROCESSES): the words that start a program on that many processes.
function(tessera_mpi_command result processes)
  set(${result} "${MPIEXEC_EXECUTABLE}" ${TESSERA_MPIEXEC_FLAGS} ${MPIEXEC_NUMPROC_FLAG} ${processes} ${MPIEXEC_PREFLAGS} PARENT_SCOPE)
endfunction()

# tessera_read_commit(RESULT): the commit of the sources, for what a benchmark writes.
function(tessera_read_commit result)
  find_package(Git QUIET)
  set(commit unknown)
  if(Git_FOUND)
    execute_process(COMMAND "${GIT_EXECUTABLE}" describe --always --dirty
      WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  set(${result} "${commit}" PARENT_SCOPE)
endfunction()

# tessera_read_comment(RESULT FILE WORD): the text of the comment `// WORD: …` in the first lines of a source.
# Such a comment gives the processes and arguments with which an example or a benchmark is run.
function(tessera_read_comment result file word)
  file(STRINGS "${file}" line REGEX "^// ${word}:" LIMIT_COUNT 1)
  string(REGEX REPLACE "^// ${word}: *" "" line "${line}")
  separate_arguments(line UNIX_COMMAND "${line}")
  set(${result} "${line}" PARENT_SCOPE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
endfunction()
