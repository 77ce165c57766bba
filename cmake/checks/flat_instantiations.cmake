# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Compiles SOURCE with -DPROCESSES=2 and with -DPROCESSES=4096 and compares how many functions and objects each defines.
#   cmake -D COMPILER=… -D NM=… -D FLAGS=file -D SOURCE=… -D OUT=folder -P flat_instantiations.cmake
foreach(processes IN ITEMS 2 4096)
  set(object "${OUT}/instantiations_${processes}.o")
  execute_process(COMMAND "${COMPILER}" -std=c++20 -O0 -fopenmp "@${FLAGS}" -DPROCESSES=${processes} -c "${SOURCE}" -o "${object}"
    RESULT_VARIABLE failed ERROR_VARIABLE said)
  if(failed)
    message(FATAL_ERROR "${SOURCE} does not compile for ${processes} processes:\n${said}")
  endif()
  execute_process(COMMAND "${NM}" --defined-only "${object}" OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "\n" lines "${symbols}")
  list(LENGTH lines count_${processes})
  file(REMOVE "${object}")
endforeach()
if(count_2 LESS 100)
  message(FATAL_ERROR "only ${count_2} symbols were counted: the check does not see what is instantiated")
endif()
if(NOT count_2 EQUAL count_4096)
  message(FATAL_ERROR "${count_2} symbols for 2 processes, but ${count_4096} for 4096: something is instantiated by the size of the mesh")
endif()
message(STATUS "${count_2} symbols, for 2 processes and for 4096")
