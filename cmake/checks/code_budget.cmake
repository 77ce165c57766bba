# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# How much machine code a program that includes Tessera has: bytes of code and constants in the object of one source, made of headers
# alone, against a budget. Most of what compiling takes goes with them. One number for one compiler: g++ 12 at -O2 on x86-64.
#   cmake -D COMPILER=… -D SIZE=… -D FLAGS=file -D SOURCES=folder -D PROGRAM=name -D OUT=folder -P code_budget.cmake
# To see which functions they are: nm -S -C --size-sort program.o

set(budget_stencil 1150)  # KiB
set(budget_conjugate_gradient 1460)
set(budget_small_cnn 3180)
set(budget_transformer_block 3610)

set(object "${OUT}/code_of_${PROGRAM}.o")
execute_process(COMMAND "${COMPILER}" -std=c++20 -O2 -fopenmp -fno-math-errno -fno-ipa-cp -fno-ipa-sra "@${FLAGS}"
  -c "${SOURCES}/${PROGRAM}.cpp" -o "${object}" RESULT_VARIABLE failed ERROR_VARIABLE said)
if(failed)
  message(FATAL_ERROR "${PROGRAM}.cpp does not compile:\n${said}")
endif()
execute_process(COMMAND "${SIZE}" "${object}" OUTPUT_VARIABLE sizes COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE "${object}")
if(NOT sizes MATCHES "\n *([0-9]+)")
  message(FATAL_ERROR "size says of an object:\n${sizes}")
endif()
math(EXPR code "${CMAKE_MATCH_1} / 1024")
set(budget ${budget_${PROGRAM}})
message(STATUS "${PROGRAM}: ${code} KiB of code, of ${budget}")
if(code LESS 100)
  message(FATAL_ERROR "only ${code} KiB were counted: the check does not see the code")
endif()
if(code GREATER budget)
  message(FATAL_ERROR "${PROGRAM} has ${code} KiB of code, and the budget is ${budget}: compiling has become dearer. Compile what is rare "
    "once and small (kernel/detail/simd.hpp, run_small), and register kernels for the types that a call has; the budgets stand in "
    "cmake/checks/code_budget.cmake.")
endif()
