# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# How a test is made from a file: by its suffix. A new file is found automatically, and joins the program of its kind;
# there are few programs, since each costs a link and large headers cost more than the tests.
#
#   tests/<room>/x.static.cpp     static_asserts; compiling it is passing           object library static_<room>
#   tests/<room>/x.test.cpp       doctest, one process, no mpiexec                  program test_<room>
#   tests/<room>/x.loopback.cpp   doctest, one process playing all processes        program test_loopback
#   tests/<room>/x.mpi.cpp        doctest, at 1, 2, 3, 4, 6 and 8 processes         program test_mpi
#   tests/<room>/planted/x.cpp    must end with a failure and say so, see cmake/checks/must_fail.cmake; together a program
#   tests/golden/x.golden.cpp     doctest, texts compared with tests/golden/*.txt   program test_golden

set(TESSERA_TEST_ENVIRONMENT ${TESSERA_ENVIRONMENT}
  TESSERA_CHECK=communicating  # all processes of a test call the same operators, or the test says where they do not
  UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
  # MPICH and OpenMP are not built with ThreadSanitizer, which reports races in them; its history and memory are bounded.
  TSAN_OPTIONS=ignore_noninstrumented_modules=1:history_size=1:memory_limit_mb=4096)
if(TESSERA_SANITIZE STREQUAL "thread")  # UCX, which MPICH sends with, hooks functions that a thread calls as it ends, and crashes there
  list(APPEND TESSERA_TEST_ENVIRONMENT UCX_MEM_MMAP_HOOK_MODE=none)
endif()

# The libraries that a test of ours is compiled with, by the room it tests: the rooms up to plan see neither Kokkos nor MPI.
function(tessera_test_target target room)
  if(room IN_LIST TESSERA_PLAN_ROOMS)
    target_link_libraries(${target} PRIVATE tessera::plan)
  else()
    target_link_libraries(${target} PRIVATE tessera::tessera)
    target_compile_definitions(${target} PRIVATE TESSERA_TEST_WITH_KOKKOS)
  endif()
  target_link_libraries(${target} PRIVATE tessera_warnings tessera_sanitize doctest::doctest)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
endfunction()

# The number of ctest's jobs that a program with this many processes counts as. Where they outnumber the cores they nap while
# they wait, and leave enough time for another test.
cmake_host_system_information(RESULT TESSERA_CORES QUERY NUMBER_OF_LOGICAL_CORES)
function(tessera_processors result processes)
  set(${result} ${processes} PARENT_SCOPE)
  if(processes GREATER TESSERA_CORES)
    set(${result} 1 PARENT_SCOPE)
  endif()
endfunction()

# tessera_test(NAME COMMAND … [TIMEOUT s] [LABELS …] [PROCESSES n] [COST n] [PROPERTIES …]): a CTest that can only be red or green.
# With PROCESSES the command is started by mpiexec and waits for the launcher's own test. The tests of the highest
# COST (in seconds, about) begin first.
function(tessera_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT;PROCESSES;COST" "COMMAND;LABELS;PROPERTIES")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
    if(TESSERA_SANITIZE)  # which takes up to 20 times as long
      set(arg_TIMEOUT 1800)
    endif()
  endif()
  set(environment ${TESSERA_TEST_ENVIRONMENT})
  set(mpiexec)
  set(more)
  if(arg_PROCESSES)
    tessera_mpi_command(mpiexec ${arg_PROCESSES})
    # Under mpiexec the leak checker would report what MPICH itself never frees.
    list(APPEND environment ASAN_OPTIONS=detect_leaks=0 MPIEXEC_TIMEOUT=${arg_TIMEOUT})
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} + 10")  # mpiexec ends its processes itself; ctest would only end mpiexec
    tessera_processors(processors ${arg_PROCESSES})
    list(APPEND more PROCESSORS ${processors} FIXTURES_REQUIRED launcher)
  endif()
  if(arg_COST)
    list(APPEND more COST ${arg_COST})
  endif()
  add_test(NAME ${name} COMMAND ${mpiexec} ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}" ENVIRONMENT "${environment}"
    ${more} ${arg_PROPERTIES})
endfunction()

# The sources tests/<room>/*.<suffix>.cpp of the named rooms.
function(tessera_test_sources result suffix)
  set(sources)
  foreach(room IN LISTS ARGN)
    file(GLOB found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${room}/*.${suffix}.cpp")
    list(APPEND sources ${found})
  endforeach()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

# tessera_together(RESULT SOURCES…): the sources as they are compiled. Those with the same line `// together: name` are one source,
# each in a namespace of its own after all their includes, since tests share most of the code that they compile. Such a source
# includes its folder's headers by their paths from tests/ ("op/cases.hpp"), and specializes no template of the library. With AS name
# all are one source.
function(tessera_together result)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "AS" "")
  set(sources)
  set(groups)
  foreach(source IN LISTS arg_UNPARSED_ARGUMENTS)
    set(group ${arg_AS})
    if(NOT group)
      tessera_read_comment(group "${source}" together)
    endif()
    if(NOT group)
      list(APPEND sources "${source}")
      continue()
    endif()
    cmake_path(GET source FILENAME name)
    string(MAKE_C_IDENTIFIER "${name}" name)
    file(STRINGS "${source}" lines REGEX "^#include ")
    list(APPEND groups ${group})
    list(APPEND includes_${group} ${lines})
    string(APPEND bodies_${group} "namespace ${name} {\n#include \"${source}\"\n}\n")
    string(REGEX MATCH "[^.]+\\.cpp$" suffix_${group} "${source}")
  endforeach()
  list(REMOVE_DUPLICATES groups)
  foreach(group IN LISTS groups)
    list(REMOVE_DUPLICATES includes_${group})
    list(JOIN includes_${group} "\n" includes)
    set(bodies "${bodies_${group}}")
    set(file "${CMAKE_CURRENT_BINARY_DIR}/together_${group}.${suffix_${group}}")
    file(CONFIGURE OUTPUT "${file}" CONTENT "@includes@\n@bodies@" @ONLY)
    list(APPEND sources "${file}")
  endforeach()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

# The flags of tessera::plan and of tessera::tessera for a compiler that a test starts itself: the files flags_plan and
# flags_tessera (as in `g++ @flags_plan x.cpp`), since a test's command cannot evaluate all properties of targets.
set(TESSERA_FLAGS "${CMAKE_CURRENT_BINARY_DIR}/flags")
set(known ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES} "${PROJECT_SOURCE_DIR}/include")  # named again they would change the order
list(TRANSFORM known REPLACE "([][+.*()^$?|])" "\\\\\\1")
list(JOIN known "|" known)
foreach(pair IN ITEMS plan:tessera_plan tessera:tessera)
  string(REGEX MATCH "(.*):(.*)" pair "${pair}")
  set(includes "$<FILTER:$<TARGET_PROPERTY:${CMAKE_MATCH_2},INTERFACE_INCLUDE_DIRECTORIES>,EXCLUDE,^(${known})$>")
  set(includes "$<REMOVE_DUPLICATES:${includes}>")
  set(definitions "$<TARGET_PROPERTY:${CMAKE_MATCH_2},INTERFACE_COMPILE_DEFINITIONS>")
  string(CONCAT content "-I${PROJECT_SOURCE_DIR}/include\n" "-I${PROJECT_SOURCE_DIR}/tests\n"
    "$<$<BOOL:${includes}>:-isystem\n$<JOIN:${includes},\n-isystem\n>\n>"
    "$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},\n-D>\n>")
  file(GENERATE OUTPUT "${TESSERA_FLAGS}_${CMAKE_MATCH_1}" CONTENT "${content}")
endforeach()

# tessera_precompile(name plan|tessera gcc|clang COMPILER flags… [HEADERS …]): a fixture, precompiled.${name}, in which a
# compiler that a test starts itself precompiles the umbrella header after HEADERS: tests that only read sources read mostly
# that header. Sets ${name}_headers to the arguments that put it in front of a source.
function(tessera_precompile name target kind compiler)
  cmake_parse_arguments(PARSE_ARGV 4 arg "" "" "HEADERS")
  set(umbrella_plan tessera/plan.hpp)
  set(umbrella_tessera tessera/tessera.hpp)
  list(TRANSFORM arg_HEADERS PREPEND "#include <" OUTPUT_VARIABLE includes)
  list(APPEND includes "#include <${umbrella_${target}}")
  list(JOIN includes ">\n" includes)
  set(header "${CMAKE_CURRENT_BINARY_DIR}/precompiled/${name}.hpp")
  file(GENERATE OUTPUT "${header}" CONTENT "${includes}>\n")
  set(options "-include" "${header}")  # g++ takes x.hpp.gch for x.hpp by itself
  set(made "${header}.gch")
  if(kind STREQUAL "clang")
    set(made "${header}.pch")
    set(options -include-pch "${made}")
  endif()
  add_test(NAME precompile.${name} COMMAND "${compiler}" ${arg_UNPARSED_ARGUMENTS} "@${TESSERA_FLAGS}_${target}"
    -x c++-header "${header}" -o "${made}")
  set_tests_properties(precompile.${name} PROPERTIES LABELS build TIMEOUT 300 FIXTURES_SETUP precompiled.${name})
  set(${name}_headers ${options} PARENT_SCOPE)
endfunction()
