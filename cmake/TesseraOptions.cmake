# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The options of the build, each in one spelling, and the combinations that are errors.

# A project that adds Tessera wants the library only, and decides itself what it installs.
option(TESSERA_PLAN_ONLY "Only tessera::plan, for which neither Kokkos nor MPI is looked for" OFF)
set(all_of_it ${PROJECT_IS_TOP_LEVEL})
if(TESSERA_PLAN_ONLY)
  set(all_of_it OFF)
endif()
option(TESSERA_TESTS "Build the tests" ${all_of_it})
option(TESSERA_EXAMPLES "Build the examples" ${all_of_it})
option(TESSERA_BENCHMARKS "Build the benchmarks" ${all_of_it})
option(TESSERA_DOCS "Have a target `docs`, which builds the site" OFF)
option(TESSERA_INSTALL "Install the package" ${PROJECT_IS_TOP_LEVEL})

# Only the presets switch this on: a plain `cmake -B build` changes nothing outside its build tree.
option(TESSERA_PROVISION "Install what is missing: from the distribution, or from upstream" OFF)

set(TESSERA_MPI "" CACHE STRING "Which MPI: mpich, openmpi, simgrid (simulated processes), or empty for the one there is")
set_property(CACHE TESSERA_MPI PROPERTY STRINGS "" mpich openmpi simgrid)

# Only the presets of the tests switch this on: a warning of another compiler, or of another level of optimisation, must not
# end a user's build.
option(TESSERA_WERROR "Treat warnings of our own tests, examples and benchmarks as errors" OFF)

option(TESSERA_WITH_DNNL "Use oneDNN for local contractions and convolutions" ON)
option(TESSERA_WITH_BLIS "Use BLIS, where it is found, for local contractions with all threads" ON)
option(TESSERA_WITH_CUDNN "Use cuDNN for local convolutions where Kokkos has CUDA and cuDNN 9 is found" ON)

set(TESSERA_DEVICE "" CACHE STRING "The device that Kokkos must have: empty (whatever there is), cuda or hip")
set_property(CACHE TESSERA_DEVICE PROPERTY STRINGS "" cuda hip)

set(TESSERA_SANITIZE "" CACHE STRING "Sanitizer of the tests: empty, address (with undefined behaviour) or thread")
set_property(CACHE TESSERA_SANITIZE PROPERTY STRINGS "" address thread)

if(TESSERA_PLAN_ONLY AND (TESSERA_TESTS OR TESSERA_EXAMPLES OR TESSERA_BENCHMARKS OR TESSERA_DOCS))
  message(FATAL_ERROR "TESSERA_PLAN_ONLY=ON leaves out what tests, examples, benchmarks and the site's lessons run; set TESSERA_TESTS, "
    "TESSERA_EXAMPLES, TESSERA_BENCHMARKS and TESSERA_DOCS OFF.")
endif()
if(NOT TESSERA_MPI MATCHES "^(mpich|openmpi|simgrid)?$")
  message(FATAL_ERROR "TESSERA_MPI is '${TESSERA_MPI}'; it may be empty, 'mpich', 'openmpi' or 'simgrid'.")
endif()
if(TESSERA_MPI STREQUAL "simgrid" AND (TESSERA_TESTS OR TESSERA_EXAMPLES OR TESSERA_BENCHMARKS OR TESSERA_DOCS))
  message(FATAL_ERROR "TESSERA_MPI is 'simgrid', whose programs are libraries that smpirun loads, and mpiexec starts tests, examples and "
    "benchmarks; set TESSERA_TESTS, TESSERA_EXAMPLES, TESSERA_BENCHMARKS and TESSERA_DOCS OFF.")
endif()
if(NOT TESSERA_DEVICE MATCHES "^(cuda|hip)?$")
  message(FATAL_ERROR "TESSERA_DEVICE is '${TESSERA_DEVICE}'; it may be empty, 'cuda' or 'hip'.")
endif()
if(NOT TESSERA_SANITIZE MATCHES "^(address|thread)?$")
  message(FATAL_ERROR "TESSERA_SANITIZE is '${TESSERA_SANITIZE}'; it may be empty, 'address' or 'thread'.")
endif()
if(TESSERA_SANITIZE AND NOT TESSERA_TESTS)
  message(FATAL_ERROR "TESSERA_SANITIZE=${TESSERA_SANITIZE} concerns the tests only; set TESSERA_TESTS=ON too.")
endif()
if(TESSERA_SANITIZE AND TESSERA_BENCHMARKS)
  message(FATAL_ERROR "A benchmark under TESSERA_SANITIZE=${TESSERA_SANITIZE} measures the sanitizer; set TESSERA_BENCHMARKS=OFF.")
endif()
if(TESSERA_PROVISION AND NOT PROJECT_IS_TOP_LEVEL)
  message(FATAL_ERROR "TESSERA_PROVISION installs packages, which only Tessera's own presets may ask for; set it OFF.")
endif()

if(PROJECT_IS_TOP_LEVEL)
  get_property(multiple GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(NOT CMAKE_BUILD_TYPE AND NOT multiple)
    message(STATUS "Build type: Release, since none was given")
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

  # g++ collects its garbage from 128 MiB on, which takes a tenth of the time of our sources; here from 1 GiB on, where there
  # is memory for that.
  cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY) # MiB
  if(memory GREATER 8000)
    add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576>)
  endif()

  include(TesseraCcache)
else()
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)  # else what is found here would not be known where tessera::tessera is linked
endif()
