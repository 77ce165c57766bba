# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Compiles all headers in one source, those that include the fewest others first: what they declare is then there when the others are
# read, which no order by rooms shows. Found are names that shadow, overloads that are ambiguous and what is declared twice.
#   cmake -D ROOT=<repository> -D OUT=folder -P header_order.cmake -- COMPILER OPTIONS…
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/command_line.cmake")

file(GLOB_RECURSE headers RELATIVE "${ROOT}/include" "${ROOT}/include/*.hpp")
list(LENGTH headers count)
if(count LESS 500)
  message(FATAL_ERROR "only ${count} headers are under ${ROOT}/include")
endif()
set(numbered)
foreach(header IN LISTS headers)
  file(STRINGS "${ROOT}/include/${header}" includes REGEX "^#include <tessera/")
  list(LENGTH includes needs)
  list(APPEND numbered "${needs} ${header}")
endforeach()
list(SORT numbered COMPARE NATURAL)
list(TRANSFORM numbered REPLACE "^[0-9]+ (.*)" "#include <\\1>\n")
set(source "${OUT}/header_order.cpp")
file(WRITE "${source}" ${numbered})
execute_process(COMMAND ${command} -fsyntax-only "${source}" RESULT_VARIABLE failed ERROR_VARIABLE said)
if(failed)
  message(FATAL_ERROR "${count} headers do not compile in the order of ${source}:\n${said}")
endif()
message(STATUS "${count} headers compile in another order")
