# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# tessera::compiled: for programs of many sources, the same as tessera::tessera with the bodies below the operators compiled once;
# see include/tessera/base/compiled.hpp. It is built in the build tree of the project that links it, and only for targets that do.

# tessera_add_compiled(directory): its sources are written there.
function(tessera_add_compiled directory)
  if(TARGET tessera_compiled)  # found before
    return()
  endif()
  set(sources)
  # source(name lines…): NAME.cpp; they take about as long each.
  macro(source name)
    set(lines ${ARGN})
    list(JOIN lines "\n#" lines)
    file(CONFIGURE OUTPUT "${directory}/${name}.cpp" CONTENT "#define TESSERA_KERNEL_PARTS 2\n#@lines@\n" @ONLY)
    list(APPEND sources "${directory}/${name}.cpp")
  endmacro()
  source(tessera "define TESSERA_IMPLEMENTATION" "include <tessera/tessera.hpp>")
  foreach(part IN ITEMS 0 1)
    source(tessera_derivatives_${part} "define TESSERA_DERIVATIVES_PART ${part}" "include <tessera/grad/functions.hpp>")
    source(tessera_kernels_${part} "define TESSERA_KERNEL_PART ${part}" "include <tessera/kernel/use_element.hpp>")
  endforeach()
  add_library(tessera_compiled STATIC EXCLUDE_FROM_ALL ${sources})
  add_library(tessera::compiled ALIAS tessera_compiled)
  target_compile_definitions(tessera_compiled PUBLIC TESSERA_COMPILED)
  target_link_libraries(tessera_compiled PUBLIC tessera::tessera)
  set(TESSERA_COMPILED_SOURCES ${sources} PARENT_SCOPE)
endfunction()
