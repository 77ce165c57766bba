# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake -D SOURCE=… -D LIMIT=<seconds> -P must_fail.cmake -- COMMAND…: the program must end by itself with a failure,
# and say what each line `// says: <regular expression>` of its source demands.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/command_line.cmake")

file(STRINGS "${SOURCE}" demands REGEX "^// says: *[^ ]")
if(NOT demands)
  message(FATAL_ERROR "${SOURCE} has no line `// says: regular expression`.")
endif()
execute_process(COMMAND ${command} TIMEOUT ${LIMIT} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
message("${output}")
if(result EQUAL 0)
  message(FATAL_ERROR "It ended with success; it must fail.")
endif()
if(result MATCHES "timeout")
  message(FATAL_ERROR "It did not end within ${LIMIT} seconds.")
endif()
foreach(demand IN LISTS demands)
  string(REGEX REPLACE "^// says: *" "" demand "${demand}")
  if(NOT output MATCHES "${demand}")
    message(FATAL_ERROR "It failed, as it should, but did not say: ${demand}")
  endif()
endforeach()
