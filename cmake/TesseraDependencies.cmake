# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Finds what Tessera builds on. What is missing is, if TESSERA_PROVISION says so, installed from the distribution
# (as root), else fetched from upstream; else one sentence names every missing thing and how to get it.
#
# Each dependency is a macro tessera_find_<name> that sets <name>_here, and is named in the list below with the
# Debian packages that hold it.

include(TesseraProvision)

# ---- how each one is found -------------------------------------------------------------------------------------

include(tessera-find)  # MPI, BLAS, oneDNN and CUDA's libraries, which the installed package finds in the same way

macro(tessera_find_fmt)
  set(fmt_here TRUE)
  if(NOT TARGET fmt::fmt)  # not fetched already
    find_package(fmt CONFIG QUIET)
    if(NOT fmt_FOUND OR fmt_VERSION VERSION_LESS 9)
      set(fmt_here FALSE)
    endif()
  endif()
endmacro()

macro(tessera_find_doctest)
  set(doctest_here TRUE)
  if(NOT TARGET doctest::doctest)  # not fetched already
    find_package(doctest CONFIG QUIET)
    set(doctest_here ${doctest_FOUND})
  endif()
endmacro()

macro(tessera_find_benchmark)
  set(benchmark_here TRUE)
  if(NOT TARGET benchmark::benchmark)  # not fetched already
    find_package(benchmark CONFIG QUIET)
    set(benchmark_here ${benchmark_FOUND})
  endif()
endmacro()

macro(tessera_find_kokkos)
  # What the project around us uses comes first, then what the user names (Kokkos_DIR, Kokkos_ROOT, CMAKE_PREFIX_PATH) or the system has comes first, then the cached prefix.
  if(NOT TARGET Kokkos::kokkos)
    find_package(Kokkos 5 CONFIG QUIET)
  endif()
  if(NOT TARGET Kokkos::kokkos)
    tessera_cached_kokkos(kokkos_prefix)
    if(kokkos_prefix)
      find_package(Kokkos 5 CONFIG QUIET PATHS "${kokkos_prefix}" NO_DEFAULT_PATH)
    endif()
  endif()
  set(kokkos_here FALSE)
  if(TARGET Kokkos::kokkos)
    set(kokkos_here TRUE)
    if(Kokkos_VERSION AND Kokkos_VERSION VERSION_LESS 5)
      message(FATAL_ERROR "Tessera needs Kokkos 5, and this project has found ${Kokkos_VERSION} in ${Kokkos_DIR}; set Kokkos_DIR to a later one.")
    endif()
  endif()
endmacro()

# ---- which ones this build needs ------------------------------------------------------------------------------

set(wanted mpi blas fmt kokkos)
set(mpi_name "MPICH")
set(mpi_debian mpich libmpich-dev)
if(TESSERA_MPI STREQUAL "openmpi")
  set(mpi_name "Open MPI")
  set(mpi_debian openmpi-bin libopenmpi-dev)
endif()
set(blas_name "OpenBLAS")
set(blas_debian libopenblas-serial-dev)
set(fmt_name "fmt 9")
set(fmt_debian libfmt-dev)
set(kokkos_name "Kokkos 5")
set(kokkos_debian libkokkos-dev)
if(TESSERA_WITH_DNNL)
  list(APPEND wanted dnnl)
  set(dnnl_name "oneDNN")
  set(dnnl_debian libdnnl-dev)
endif()
if(TESSERA_TESTS)
  list(APPEND wanted doctest)
  set(doctest_name "doctest")
  set(doctest_debian doctest-dev)
endif()
if(TESSERA_BENCHMARKS)
  list(APPEND wanted benchmark)
  set(benchmark_name "Google Benchmark")
  set(benchmark_debian libbenchmark-dev)
endif()

# ---- find, install, find again, fetch, give up in one sentence ------------------------------------------------

macro(tessera_find_all)
  set(missing)
  foreach(dependency IN LISTS wanted)
    cmake_language(CALL tessera_find_${dependency})
    if(NOT ${dependency}_here)
      list(APPEND missing ${dependency})
    endif()
  endforeach()
endmacro()

tessera_find_all()
if(missing AND TESSERA_PROVISION)
  set(names)
  foreach(dependency IN LISTS missing)
    list(APPEND names ${${dependency}_name})
  endforeach()
  list(JOIN names ", " names)
  message(STATUS "Missing: ${names}")

  tessera_install_packages(${missing})
  tessera_use_ccache()
  tessera_find_all()
  if(kokkos IN_LIST missing)
    tessera_make_kokkos_prefix()
    tessera_find_all()
  endif()
  if(missing AND NOT "mpi" IN_LIST missing AND NOT "blas" IN_LIST missing AND NOT "kokkos" IN_LIST missing)
    # Fetched only if that completes the list: what upstream cannot give is asked for first.
    foreach(dependency IN LISTS missing)
      tessera_fetch_upstream(${dependency})
    endforeach()
  endif()
  tessera_find_all()
endif()

if(missing)
  tessera_say_what_is_missing(${missing})
endif()

# Where Kokkos has CUDA, products are cuBLAS's, which comes with CUDA, and convolutions cuDNN's if it is there.
set(cudnn_here FALSE)
if(Kokkos_ENABLE_CUDA)
  tessera_find_cublas()
  if(NOT cublas_here)
    message(FATAL_ERROR "Kokkos computes with CUDA here, and cuBLAS was not found; name the CUDA toolkit's place in CUDAToolkit_ROOT.")
  endif()
  if(TESSERA_WITH_CUDNN)
    tessera_find_cudnn()
  endif()
endif()

# Nothing depends on libpng: the examples without it write PPM pictures in place of PNG.
if(TESSERA_EXAMPLES)
  find_package(PNG 1.6 QUIET)
  if(NOT PNG_FOUND AND TESSERA_PROVISION)
    set(png_debian libpng-dev)
    tessera_install_packages(png)
    find_package(PNG 1.6 QUIET)
  endif()
endif()

# Nor on clang-format, with which the test `format` is one more.
if(TESSERA_TESTS AND TESSERA_PROVISION)
  find_program(TESSERA_CLANG_FORMAT NAMES clang-format-14 clang-format)
  if(NOT TESSERA_CLANG_FORMAT)
    set(clang_format_debian clang-format-14)
    tessera_install_packages(clang_format)
  endif()
endif()

if(MPI_CXX_COMPILER)
  message(STATUS "MPI: ${MPI_CXX_COMPILER}, started by ${MPIEXEC_EXECUTABLE}")
endif()
message(STATUS "BLAS: ${TESSERA_BLAS_LIBRARY}")
if(Kokkos_DIR)
  message(STATUS "Kokkos ${Kokkos_VERSION}: ${Kokkos_DIR}")
endif()
if(fmt_DIR)
  message(STATUS "fmt ${fmt_VERSION}: ${fmt_DIR}")
endif()
if(TESSERA_WITH_DNNL)
  message(STATUS "oneDNN: ${TESSERA_DNNL_LIBRARY}")
endif()
if(cudnn_here)
  message(STATUS "cuDNN: ${TESSERA_CUDNN_LIBRARY}")
elseif(Kokkos_ENABLE_CUDA)
  message(STATUS "cuDNN: none; convolutions on the device are Tessera's own")
endif()
if(PNG_FOUND)
  message(STATUS "libpng ${PNG_VERSION_STRING}, for the examples")
endif()
