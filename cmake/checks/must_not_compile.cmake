# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake -D SOURCE=… -D CASE=… -P must_not_compile.cmake -- COMPILER ARGUMENTS…: compiling must fail, and the first
# error's text must be what the source's line `// CASE <name>: <regular expression>` says. CTest alone cannot say that:
# with PASS_REGULAR_EXPRESSION it ignores the exit code.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/command_line.cmake")

file(STRINGS "${SOURCE}" says REGEX "^// CASE ${CASE}:")
string(REGEX REPLACE "^// CASE ${CASE}: *" "" says "${says}")
if(says STREQUAL "")
  message(FATAL_ERROR "${SOURCE} does not say what case ${CASE} prints.")
endif()

execute_process(COMMAND ${command} -DCASE_${CASE} "${SOURCE}" RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(result EQUAL 0)
  message(FATAL_ERROR "Case ${CASE} compiles; it must not, and say: ${says}")
endif()
# One line of its own, so that words of two errors do not match together.
if(NOT "\n${output}" MATCHES "\n[^\n]*error: [^\n]*${says}")
  message(FATAL_ERROR "Case ${CASE} does not compile, as it should, but does not say: ${says}\nIt says:\n${output}")
endif()
