# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Warnings, in a target that only our own tests, examples and benchmarks link: a user's warnings are the user's.
set(TESSERA_WARNINGS
  -Wall                 # what nobody disputes
  -Wextra               # and a little more
  -Wpedantic            # other compilers must take it too
  -Wshadow              # a shadowed extent is a wrong extent
  -Wconversion          # indices lose bits silently
  -Wno-sign-conversion  # which clang counts to the last one and g++ does not: std:: counts unsigned, MPI and Kokkos signed
  -Wnon-virtual-dtor    # transports are deleted through their interface
  -Woverloaded-virtual) # an override that overrides nothing
if(TESSERA_WERROR)      # where Tessera is developed: a warning that stays is not read
  list(APPEND TESSERA_WARNINGS -Werror)
endif()
add_library(tessera_warnings INTERFACE)
target_compile_options(tessera_warnings INTERFACE ${TESSERA_WARNINGS})
