# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Finds MPI, BLAS, BLIS, oneDNN, cuBLAS and cuDNN, for Tessera's own build and, installed beside the package, for its users.
# Each macro sets <name>_here. It makes the imported targets tessera::blas, tessera::blis, tessera::dnnl and tessera::cudnn.

# Sets `kind` to openmpi, mpich (also for its descendants and any other MPI) or nothing for a compiler wrapper.
macro(tessera_mpi_kind kind wrapper)
  execute_process(COMMAND "${wrapper}" --showme:version RESULT_VARIABLE not_open_mpi OUTPUT_QUIET ERROR_QUIET)
  if(not_open_mpi EQUAL 0)
    set(${kind} openmpi)
  else()
    set(${kind} mpich)
  endif()
endmacro()

# Sets `result` to whether the wrapper compiles and links a program: packages that hold the wrapper and not the headers
# (Debian's openmpi-bin) are installed along with others. A good outcome is kept.
function(tessera_try_mpi result wrapper)
  set(key "${wrapper} ${CMAKE_CXX_COMPILER}")
  if(NOT TESSERA_MPICXX_TRIED STREQUAL key)
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/trial/mpi")
    file(WRITE "${folder}/mpi.cpp" "#include <mpi.h>\nint main(int argc, char** argv) { return MPI_Init(&argc, &argv); }\n")
    execute_process(COMMAND "${CMAKE_COMMAND}" -E env "OMPI_CXX=${CMAKE_CXX_COMPILER}" "MPICH_CXX=${CMAKE_CXX_COMPILER}"
        "${wrapper}" -DMPICH_SKIP_MPICXX -DOMPI_SKIP_MPICXX mpi.cpp -o mpi
      WORKING_DIRECTORY "${folder}" RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
    file(WRITE "${folder}/output.txt" "${wrapper}\n${output}")
    if(NOT failed EQUAL 0)
      set(${result} FALSE PARENT_SCOPE)
      return()
    endif()
    set(TESSERA_MPICXX_TRIED "${key}" CACHE INTERNAL "The wrapper that has compiled and linked a program")
  endif()
  set(${result} TRUE PARENT_SCOPE)
endfunction()

# SimGrid's MPI, whose processes are simulated in one. It loads a program once for each: a variable of an inline function, which the
# loader would share among these, must not be unique.
macro(tessera_find_simgrid)
  find_path(TESSERA_SIMGRID_INCLUDE NAMES smpi_helpers.h PATH_SUFFIXES smpi DOC "The folder of SimGrid's mpi.h")
  find_library(TESSERA_SIMGRID_LIBRARY NAMES simgrid DOC "SimGrid")
  tessera_import_found(simgrid)
  if(simgrid_here AND NOT TARGET MPI::MPI_CXX)
    add_library(MPI::MPI_CXX INTERFACE IMPORTED GLOBAL)
    target_link_libraries(MPI::MPI_CXX INTERFACE tessera::simgrid)
    target_compile_options(MPI::MPI_CXX INTERFACE -fPIC $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>)
  endif()
endmacro()

macro(tessera_find_mpi)
  if(TESSERA_MPI STREQUAL "simgrid")
    tessera_find_simgrid()
    set(mpi_here ${simgrid_here})
  else()
    tessera_find_other_mpi()
  endif()
endmacro()

macro(tessera_find_other_mpi)
  # A project that has found its MPI keeps it. Else TESSERA_MPI says which is looked for: mpich, openmpi, or (empty) the
  # one there is, MPICH first. Their own names come first: where both are installed, plain mpicxx may be either's. One that
  # compiles nothing is skipped, and named in TESSERA_MPI_BROKEN.
  set(TESSERA_MPI_BROKEN)
  if(NOT TARGET MPI::MPI_CXX AND NOT MPI_CXX_COMPILER)
    if(TESSERA_MPI)
      set(tessera_mpi_names mpicxx.${TESSERA_MPI} mpicxx)
    else()
      set(tessera_mpi_names mpicxx.mpich mpicxx mpicxx.openmpi)
    endif()
    foreach(tessera_mpi_name IN LISTS TESSERA_MPICXX tessera_mpi_names)
      unset(tessera_mpi_wrapper)
      find_program(tessera_mpi_wrapper NAMES ${tessera_mpi_name} NO_CACHE)
      if(NOT tessera_mpi_wrapper)
        continue()
      endif()
      tessera_mpi_kind(tessera_mpi_found "${tessera_mpi_wrapper}")
      if(TESSERA_MPI AND NOT tessera_mpi_found STREQUAL TESSERA_MPI)
        continue()
      endif()
      tessera_try_mpi(tessera_mpi_whole "${tessera_mpi_wrapper}")
      if(tessera_mpi_whole)
        set(TESSERA_MPICXX "${tessera_mpi_wrapper}" CACHE FILEPATH "The compiler wrapper of MPI" FORCE)
        mark_as_advanced(TESSERA_MPICXX)
        set(MPI_CXX_COMPILER "${tessera_mpi_wrapper}" CACHE FILEPATH "MPI's compiler wrapper" FORCE)
        set(TESSERA_MPI_BROKEN)
        break()
      endif()
      set(TESSERA_MPI_BROKEN "${tessera_mpi_wrapper}")
    endforeach()
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
  elseif(MPI_CXX_COMPILER OR NOT (TESSERA_MPI OR TESSERA_MPI_BROKEN))
    set(MPI_CXX_SKIP_MPICXX TRUE)  # the C++ bindings that MPI 3 removed
    find_package(MPI QUIET COMPONENTS CXX)
    set(mpi_here ${MPI_CXX_FOUND})
  endif()
endmacro()

# Sets dnnl_here for dnnl: whether TESSERA_DNNL_LIBRARY and _INCLUDE were found. If so, makes tessera::dnnl from them.
macro(tessera_import_found name)
  string(TOUPPER "TESSERA_${name}" tessera_prefix)
  mark_as_advanced(${tessera_prefix}_LIBRARY ${tessera_prefix}_INCLUDE)
  set(${name}_here FALSE)
  if(${tessera_prefix}_LIBRARY AND ${tessera_prefix}_INCLUDE)
    set(${name}_here TRUE)
    if(NOT TARGET tessera::${name})
      add_library(tessera::${name} UNKNOWN IMPORTED GLOBAL)
      set_target_properties(tessera::${name} PROPERTIES
        IMPORTED_LOCATION "${${tessera_prefix}_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${${tessera_prefix}_INCLUDE}")
    endif()
  endif()
endmacro()

macro(tessera_find_blas)
  # OpenBLAS's OpenMP variant first: it uses as many threads as Kokkos, and many threads may call it at once. The serial one
  # uses one thread; the other counts its threads by itself.
  find_library(TESSERA_BLAS_LIBRARY NAMES openblas DOC "A BLAS library with the C interface, OpenBLAS for choice"
    PATH_SUFFIXES openblas-openmp openblas-serial openblas-pthread openblas)
  set(variants openblas-openmp openblas-serial openblas-pthread)
  list(TRANSFORM variants PREPEND "${CMAKE_LIBRARY_ARCHITECTURE}/" OUTPUT_VARIABLE here)
  find_path(TESSERA_BLAS_INCLUDE NAMES cblas.h PATH_SUFFIXES ${here} ${variants} openblas DOC "The folder of cblas.h")
  tessera_import_found(blas)
endmacro()

macro(tessera_find_blis)
  # Its header is not needed. Tessera's own threads share its work, so its serial variant comes first.
  find_library(TESSERA_BLIS_LIBRARY NAMES blis DOC "BLIS" PATH_SUFFIXES blis-serial blis-pthread blis-openmp blis)
  mark_as_advanced(TESSERA_BLIS_LIBRARY)
  set(blis_here FALSE)
  if(TESSERA_BLIS_LIBRARY)
    set(blis_here TRUE)
    if(NOT TARGET tessera::blis)
      add_library(tessera::blis UNKNOWN IMPORTED GLOBAL)
      set_target_properties(tessera::blis PROPERTIES IMPORTED_LOCATION "${TESSERA_BLIS_LIBRARY}")
    endif()
  endif()
endmacro()

macro(tessera_find_dnnl)
  # Without the package file of Debian's oneDNN, which requires OpenCL's headers; its C++ interface does not need them.
  find_library(TESSERA_DNNL_LIBRARY NAMES dnnl DOC "oneDNN")
  find_path(TESSERA_DNNL_INCLUDE NAMES oneapi/dnnl/dnnl.hpp DOC "The folder of oneapi/dnnl/dnnl.hpp")
  tessera_import_found(dnnl)
endmacro()

# Where Kokkos has CUDA: the toolkit, for CUDA::cublas.
macro(tessera_find_cublas)
  find_package(CUDAToolkit QUIET)
  set(cublas_here FALSE)
  if(TARGET CUDA::cublas)
    set(cublas_here TRUE)
  endif()
endmacro()

# cudnn_cnn.h is version 9's; older versions name it differently.
macro(tessera_find_cudnn)
  find_package(CUDAToolkit QUIET)
  find_library(TESSERA_CUDNN_LIBRARY NAMES cudnn HINTS ${CUDAToolkit_LIBRARY_DIR} ENV CUDNN_ROOT PATH_SUFFIXES lib64 lib
    DOC "cuDNN 9")
  find_path(TESSERA_CUDNN_INCLUDE NAMES cudnn_cnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV CUDNN_ROOT PATH_SUFFIXES include
    DOC "The folder of cudnn_cnn.h")
  tessera_import_found(cudnn)
endmacro()
