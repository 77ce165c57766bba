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
# At -O3 g++ 12 takes a FixedVector's size for -1, and std::string's copy for one onto itself: both are false, and no other level says so.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13 AND CMAKE_CXX_FLAGS_RELEASE MATCHES "-O3")
  target_compile_options(tessera_warnings INTERFACE -Wno-array-bounds -Wno-restrict)
endif()
