# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Compiles through ccache where it is installed and the user has named no launcher.

macro(tessera_use_ccache)
  if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
    find_program(TESSERA_CCACHE ccache DOC "Keeps what was compiled before")
    mark_as_advanced(TESSERA_CCACHE)
    if(TESSERA_CCACHE)
      message(STATUS "Compiling through ${TESSERA_CCACHE}")
      # Sources that use precompiled headers are kept too, at the price of not seeing __TIME__ change; and a source that was
      # not compiled before is not preprocessed for the look-up.
      set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 "${TESSERA_CCACHE}")
    endif()
  endif()
endmacro()
tessera_use_ccache()
