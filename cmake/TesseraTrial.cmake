# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A dependency counts as found only when it is found without an error, and a program that uses it compiles and links.
# This is tried in a project of its own (cmake/trial/), whose errors do not end this one: all dependencies together,
# which takes a few seconds, and one by one when that fails. A good outcome is kept until a place changes.

# Sets `places`, where dependencies are looked for, and `key`, on which the outcome depends.
macro(tessera_trial_key)
  tessera_cached_kokkos(prefix)
  set(places)
  foreach(name IN ITEMS CMAKE_PREFIX_PATH CMAKE_CXX_FLAGS fmt_DIR fmt_ROOT doctest_DIR doctest_ROOT benchmark_DIR benchmark_ROOT
      Kokkos_DIR Kokkos_ROOT TESSERA_BLAS_LIBRARY TESSERA_BLAS_INCLUDE TESSERA_BLIS_LIBRARY TESSERA_DNNL_LIBRARY TESSERA_DNNL_INCLUDE)
    if(${name})
      list(JOIN ${name} ";" value)
      string(APPEND places "set(${name} [==[${value}]==])\n")
    endif()
  endforeach()
  string(SHA256 key "${wanted} ${CMAKE_CXX_COMPILER} ${prefix} ${places} $ENV{CMAKE_PREFIX_PATH} $ENV{Kokkos_ROOT}")
endmacro()

# Sets TESSERA_BROKEN to the named dependencies that are installed in part.
function(tessera_try_all)
  set(TESSERA_BROKEN "" PARENT_SCOPE)
  tessera_trial_key()
  if(TESSERA_TRIED STREQUAL key OR NOT ARGN)
    return()
  endif()
  tessera_try(whole ${ARGN})
  if(whole)
    return()
  endif()
  set(broken)
  foreach(dependency IN LISTS ARGN)
    tessera_try(whole ${dependency})
    if(NOT whole)
      list(APPEND broken ${dependency})
    endif()
  endforeach()
  set(TESSERA_BROKEN "${broken}" PARENT_SCOPE)
endfunction()

# Called when nothing is missing: the next time, found dependencies are not tried again.
function(tessera_trial_passed)
  tessera_trial_key()
  set(TESSERA_TRIED "${key}" CACHE INTERNAL "What was found whole")
endfunction()

function(tessera_try result)
  list(JOIN ARGN "_" folder)
  set(folder "${PROJECT_BINARY_DIR}/trial/${folder}")
  file(REMOVE_RECURSE "${folder}")
  list(JOIN ARGN " " dependencies)
  set(text "set(dependencies ${dependencies})\nset(cached_kokkos [==[${prefix}]==])\n${places}")
  file(WRITE "${folder}/settings.cmake" "${text}")
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -S "${PROJECT_SOURCE_DIR}/cmake/trial" -B "${folder}/build" -G "${CMAKE_GENERATOR}"
      "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}" "-DSETTINGS=${folder}/settings.cmake"
    COMMAND_ECHO NONE RESULT_VARIABLE failed OUTPUT_VARIABLE found ERROR_VARIABLE found)
  set(built)
  if(failed EQUAL 0)
    execute_process(COMMAND "${CMAKE_COMMAND}" --build "${folder}/build" RESULT_VARIABLE failed OUTPUT_VARIABLE built ERROR_VARIABLE built)
  endif()
  file(WRITE "${folder}/output.txt" "${found}${built}")
  set(whole FALSE)
  if(failed EQUAL 0)
    set(whole TRUE)
  endif()
  set(${result} ${whole} PARENT_SCOPE)
endfunction()
