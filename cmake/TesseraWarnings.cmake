# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Warnings, in a target that only our own tests, examples and benchmarks link: a user's warnings are the user's.
add_library(tessera_warnings INTERFACE)
target_compile_options(tessera_warnings INTERFACE
  -Wall                  # what nobody disputes
  -Wextra                # and a little more
  -Wpedantic             # other compilers must take it too
  -Wshadow               # a shadowed extent is a wrong extent
  -Wconversion           # indices lose bits silently
  -Wnon-virtual-dtor     # transports are deleted through their interface
  -Woverloaded-virtual   # an override that overrides nothing
  -Werror                # a warning that stays is not read
  $<$<CXX_COMPILER_ID:GNU>:-Wno-psabi>)  # a note on an ABI change of GCC 4.6; nothing here to act on
