# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Target `build_complete`, the last of `all`, and CTest `build.complete`: red unless the last build was of everything and
# succeeded. A failed build fails its command by itself; should a driver still go on to the tests
# (a workflow of cmake 3.25 once did), programs of an earlier build must not pass for the new ones.

function(tessera_programs result directory)
  get_property(targets DIRECTORY "${directory}" PROPERTY BUILDSYSTEM_TARGETS)
  get_property(folders DIRECTORY "${directory}" PROPERTY SUBDIRECTORIES)
  set(programs)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    get_target_property(apart ${target} EXCLUDE_FROM_ALL)
    if(type MATCHES "EXECUTABLE|OBJECT_LIBRARY" AND NOT apart)
      list(APPEND programs ${target})
    endif()
  endforeach()
  foreach(folder IN LISTS folders)
    tessera_programs(more "${folder}")
    list(APPEND programs ${more})
  endforeach()
  set(${result} ${programs} PARENT_SCOPE)
endfunction()

set(stamp "${PROJECT_BINARY_DIR}/build_complete")
tessera_programs(programs "${PROJECT_SOURCE_DIR}")
add_custom_target(build_begun COMMAND "${CMAKE_COMMAND}" -E rm -f "${stamp}" VERBATIM)
foreach(program IN LISTS programs)
  add_dependencies(${program} build_begun)
endforeach()
add_custom_target(build_complete ALL COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}" VERBATIM)
add_dependencies(build_complete ${programs})
add_test(NAME build.complete COMMAND "${CMAKE_COMMAND}" -E cat "${stamp}")
set_tests_properties(build.complete PROPERTIES LABELS build TIMEOUT 30)
