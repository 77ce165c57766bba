# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The library: two INTERFACE targets, their headers, and their installation.

# The rooms, in the order in which they may include each other; the table of their includes is in cmake/checks/rooms.cmake.
set(TESSERA_PLAN_ROOMS base solve mesh spec plan program)
set(TESSERA_RUN_ROOMS kernel comm tensor run op manual grad pipeline nn io show)
set(TESSERA_ROOMS ${TESSERA_PLAN_ROOMS} ${TESSERA_RUN_ROOMS})

# CMake's version is the header's.
file(STRINGS include/tessera/version.hpp version REGEX "Version version{")
string(REPLACE "." ", " numbers "${PROJECT_VERSION}")
if(NOT version MATCHES "{${numbers}}")
  message(FATAL_ERROR "include/tessera/version.hpp says '${version}' but CMakeLists.txt says ${PROJECT_VERSION}; make them one.")
endif()

# tessera::plan: meshes, specs and plans. The standard library is all it needs.
add_library(tessera_plan INTERFACE)
add_library(tessera::plan ALIAS tessera_plan)
set_target_properties(tessera_plan PROPERTIES EXPORT_NAME plan)
target_compile_features(tessera_plan INTERFACE cxx_std_20)

# tessera::tessera: everything.
if(NOT TESSERA_PLAN_ONLY)
  add_library(tessera INTERFACE)
  add_library(tessera::tessera ALIAS tessera)
  set_target_properties(tessera PROPERTIES EXPORT_NAME tessera)
  target_link_libraries(tessera INTERFACE tessera_plan Kokkos::kokkos MPI::MPI_CXX fmt::fmt tessera::blas)
  # Where a square root sets errno, g++ makes no vectors of a loop over it. Nothing here reads errno after mathematics.
  target_compile_options(tessera INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>:-fno-math-errno>)
  # Of a function of the caller's that one source alone knows, g++ makes copies with fewer parameters, which it cannot inline where
  # a loop is compiled for wide vectors (kernel/detail/simd.hpp): a map by a lambda then takes 10 to 50 times as long.
  target_compile_options(tessera INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-ipa-cp$<SEMICOLON>-fno-ipa-sra>)
  if(TESSERA_WITH_DNNL)
    target_link_libraries(tessera INTERFACE tessera::dnnl)
    target_compile_definitions(tessera INTERFACE TESSERA_HAVE_DNNL=1)
  endif()
  if(blis_here)  # after BLAS, whose C interface it has too
    target_link_libraries(tessera INTERFACE tessera::blis)
    target_compile_definitions(tessera INTERFACE TESSERA_HAVE_BLIS=1)
  endif()
  if(Kokkos_ENABLE_CUDA)
    target_compile_options(tessera INTERFACE --expt-relaxed-constexpr)  # kernels call constexpr functions
    target_link_libraries(tessera INTERFACE CUDA::cublas)
  endif()
  if(cudnn_here)
    target_link_libraries(tessera INTERFACE tessera::cudnn)
    target_compile_definitions(tessera INTERFACE TESSERA_HAVE_CUDNN=1)
  endif()
endif()

if(NOT TESSERA_PLAN_ONLY)
  include(cmake/tessera-compiled.cmake)
  tessera_add_compiled("${PROJECT_BINARY_DIR}")
endif()

# A room's headers are those of its folder; a header directly in include/tessera that needs more than the plan is the umbrella's.
function(tessera_headers target)
  set(headers)
  foreach(room IN LISTS ARGN)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/tessera/${room}/*.hpp")
    list(APPEND headers ${found})
  endforeach()
  if(target STREQUAL "tessera_plan")
    list(APPEND headers "${PROJECT_SOURCE_DIR}/include/tessera/version.hpp")
    if(EXISTS "${PROJECT_SOURCE_DIR}/include/tessera/plan.hpp")
      list(APPEND headers "${PROJECT_SOURCE_DIR}/include/tessera/plan.hpp")
    endif()
  else()
    file(GLOB found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/tessera/*.hpp")
    list(REMOVE_ITEM found "${PROJECT_SOURCE_DIR}/include/tessera/version.hpp" "${PROJECT_SOURCE_DIR}/include/tessera/plan.hpp")
    list(APPEND headers ${found})
  endif()
  target_sources(${target} INTERFACE FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${headers})
endfunction()
tessera_headers(tessera_plan ${TESSERA_PLAN_ROOMS})
set(libraries tessera_plan)
if(NOT TESSERA_PLAN_ONLY)
  tessera_headers(tessera ${TESSERA_RUN_ROOMS})
  list(APPEND libraries tessera)
endif()

if(PROJECT_IS_TOP_LEVEL)
  # Target `all_verify_interface_header_sets`: each header compiles by itself. Only our own tree asks for it. Code is made of none:
  # that takes twice as long, and the programs make it. g++ warns of functions that are used and stand in another header; clang reads
  # what a program with tessera::compiled does (base/compiled.hpp), so that the two presets read each header both ways.
  set(alone -fsyntax-only)
  if(TESSERA_WERROR AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND alone -Wall -Werror)
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    list(APPEND alone -DTESSERA_COMPILED)
  endif()
  foreach(library IN LISTS libraries)
    set_target_properties(${library} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
    target_compile_options(${library} INTERFACE
      "$<BUILD_INTERFACE:$<$<STREQUAL:$<TARGET_PROPERTY:NAME>,${library}_verify_interface_header_sets>:${alone}>>")
  endforeach()
endif()

# ---- installation ---------------------------------------------------------------------------------------------

# Each library has an export of its own, so that a user of the plan alone needs nothing else.
if(TESSERA_INSTALL)
  include(GNUInstallDirs)
  include(CMakePackageConfigHelpers)
  set(place "${CMAKE_INSTALL_LIBDIR}/cmake/tessera")
  foreach(library IN LISTS libraries)
    get_target_property(name ${library} EXPORT_NAME)
    install(TARGETS ${library} EXPORT ${name}-targets FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
    install(EXPORT ${name}-targets NAMESPACE tessera:: FILE tessera-target-${name}.cmake DESTINATION "${place}")
  endforeach()
  configure_package_config_file(cmake/tessera-config.cmake.in "${PROJECT_BINARY_DIR}/tessera-config.cmake" INSTALL_DESTINATION "${place}")
  # Before 1.0 a minor version may break its users.
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/tessera-config-version.cmake" COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
  install(FILES "${PROJECT_BINARY_DIR}/tessera-config.cmake" "${PROJECT_BINARY_DIR}/tessera-config-version.cmake"
    cmake/tessera-find.cmake cmake/tessera-compiled.cmake DESTINATION "${place}")
  # Messages name their rules' places there.
  install(FILES docs/errors.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
endif()
