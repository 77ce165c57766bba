# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Sets `command` to what follows `--` on the command line of a script.
set(command)
set(beyond FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(beyond)
    list(APPEND command "${CMAKE_ARGV${i}}")
  elseif(CMAKE_ARGV${i} STREQUAL "--")
    set(beyond TRUE)
  endif()
endforeach()
