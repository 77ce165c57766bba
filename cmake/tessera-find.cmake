# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Finds MPI, BLAS, oneDNN, cuBLAS and cuDNN, for Tessera's own build and, installed beside the package, for its users.
# Each macro sets <name>_here. It makes the imported targets tessera::blas, tessera::dnnl and tessera::cudnn.

# Sets `kind` to openmpi, mpich (and what descends from it, or anything else) or nothing for a compiler wrapper.
macro(tessera_mpi_kind kind wrapper)
  execute_process(COMMAND "${wrapper}" --showme:version RESULT_VARIABLE not_open_mpi OUTPUT_QUIET ERROR_QUIET)
  if(not_open_mpi EQUAL 0)
    set(${kind} openmpi)
  else()
    set(${kind} mpich)
  endif()
endmacro()

macro(tessera_find_mpi)
  # A project that has found its MPI keeps it. Else TESSERA_MPI says which is looked for: mpich, openmpi, or (empty) the
  # one there is, MPICH for choice. By their own names first: where both are installed, plain mpicxx is either's.
  if(NOT TARGET MPI::MPI_CXX AND NOT MPI_CXX_COMPILER)
    if(TESSERA_MPI)
      set(names mpicxx.${TESSERA_MPI} mpicxx)
    else()
      set(names mpicxx.mpich mpicxx mpicxx.openmpi)
    endif()
    find_program(TESSERA_MPICXX NAMES ${names} DOC "The compiler wrapper of MPI")
    mark_as_advanced(TESSERA_MPICXX)
    if(TESSERA_MPICXX)
      tessera_mpi_kind(kind "${TESSERA_MPICXX}")
      if(TESSERA_MPI AND NOT kind STREQUAL TESSERA_MPI)
        unset(TESSERA_MPICXX CACHE)
      else()
        set(MPI_CXX_COMPILER "${TESSERA_MPICXX}" CACHE FILEPATH "MPI's compiler wrapper" FORCE)
      endif()
    endif()
  endif()
  if(MPI_CXX_COMPILER AND NOT MPIEXEC_EXECUTABLE)  # the launcher beside it, and of the same name
    string(REGEX REPLACE "mpi(cxx|c\\+\\+|CC)([^/]*)$" "mpiexec\\2" mpiexec "${MPI_CXX_COMPILER}")
    if(mpiexec MATCHES "mpiexec[^/]*$" AND EXISTS "${mpiexec}")
      set(MPIEXEC_EXECUTABLE "${mpiexec}" CACHE FILEPATH "MPI's launcher" FORCE)
    endif()
  endif()
  set(mpi_here FALSE)
  if(TARGET MPI::MPI_CXX)
    set(mpi_here TRUE)
  elseif(MPI_CXX_COMPILER OR NOT TESSERA_MPI)
    set(MPI_CXX_SKIP_MPICXX TRUE)  # the C++ bindings that MPI 3 removed
    find_package(MPI QUIET COMPONENTS CXX)
    set(mpi_here ${MPI_CXX_FOUND})
  endif()
endmacro()

macro(tessera_find_blas)
  # OpenBLAS's serial variant first: the processes are the parallelism, and its OpenMP variant is three times slower then.
  find_library(TESSERA_BLAS_LIBRARY NAMES openblas DOC "A BLAS library with the C interface, OpenBLAS for choice"
    PATH_SUFFIXES openblas-serial openblas-pthread openblas-openmp openblas)
  set(variants openblas-serial openblas-pthread openblas-openmp)
  list(TRANSFORM variants PREPEND "${CMAKE_LIBRARY_ARCHITECTURE}/" OUTPUT_VARIABLE here)
  find_path(TESSERA_BLAS_INCLUDE NAMES cblas.h PATH_SUFFIXES ${here} ${variants} openblas DOC "The folder of cblas.h")
  mark_as_advanced(TESSERA_BLAS_LIBRARY TESSERA_BLAS_INCLUDE)
  set(blas_here FALSE)
  if(TESSERA_BLAS_LIBRARY AND TESSERA_BLAS_INCLUDE)
    set(blas_here TRUE)
    if(NOT TARGET tessera::blas)
      add_library(tessera::blas UNKNOWN IMPORTED GLOBAL)
      set_target_properties(tessera::blas PROPERTIES
        IMPORTED_LOCATION "${TESSERA_BLAS_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${TESSERA_BLAS_INCLUDE}")
    endif()
  endif()
endmacro()

macro(tessera_find_dnnl)
  # By hand, since the package file of Debian's oneDNN insists on OpenCL's headers, which its C++ interface does not need.
  find_library(TESSERA_DNNL_LIBRARY NAMES dnnl DOC "oneDNN")
  find_path(TESSERA_DNNL_INCLUDE NAMES oneapi/dnnl/dnnl.hpp DOC "The folder of oneapi/dnnl/dnnl.hpp")
  mark_as_advanced(TESSERA_DNNL_LIBRARY TESSERA_DNNL_INCLUDE)
  set(dnnl_here FALSE)
  if(TESSERA_DNNL_LIBRARY AND TESSERA_DNNL_INCLUDE)
    set(dnnl_here TRUE)
    if(NOT TARGET tessera::dnnl)
      add_library(tessera::dnnl UNKNOWN IMPORTED GLOBAL)
      set_target_properties(tessera::dnnl PROPERTIES
        IMPORTED_LOCATION "${TESSERA_DNNL_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${TESSERA_DNNL_INCLUDE}")
    endif()
  endif()
endmacro()

# Where Kokkos has CUDA: the toolkit, for CUDA::cublas.
macro(tessera_find_cublas)
  find_package(CUDAToolkit QUIET)
  set(cublas_here FALSE)
  if(TARGET CUDA::cublas)
    set(cublas_here TRUE)
  endif()
endmacro()

# cudnn_cnn.h is version 9's; the older ones call it otherwise.
macro(tessera_find_cudnn)
  find_package(CUDAToolkit QUIET)
  find_library(TESSERA_CUDNN_LIBRARY NAMES cudnn HINTS ${CUDAToolkit_LIBRARY_DIR} ENV CUDNN_ROOT PATH_SUFFIXES lib64 lib
    DOC "cuDNN 9")
  find_path(TESSERA_CUDNN_INCLUDE NAMES cudnn_cnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV CUDNN_ROOT PATH_SUFFIXES include
    DOC "The folder of cudnn_cnn.h")
  mark_as_advanced(TESSERA_CUDNN_LIBRARY TESSERA_CUDNN_INCLUDE)
  set(cudnn_here FALSE)
  if(TESSERA_CUDNN_LIBRARY AND TESSERA_CUDNN_INCLUDE)
    set(cudnn_here TRUE)
    if(NOT TARGET tessera::cudnn)
      add_library(tessera::cudnn UNKNOWN IMPORTED GLOBAL)
      set_target_properties(tessera::cudnn PROPERTIES
        IMPORTED_LOCATION "${TESSERA_CUDNN_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${TESSERA_CUDNN_INCLUDE}")
    endif()
  endif()
endmacro()
