# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs or fetches missing dependencies. Called only under TESSERA_PROVISION, which only the presets set; the cached Kokkos prefix,
# once made, is found without it.

# ---- the distribution's packages ------------------------------------------------------------------------------

# Those of the named packages that the distribution has in a sufficient version.
function(tessera_installable result)
  set(usable)
  foreach(package IN LISTS ARGN)
    execute_process(COMMAND apt-cache policy ${package} OUTPUT_VARIABLE policy ERROR_QUIET)
    if(NOT policy MATCHES "Candidate: ([0-9][^\n]*)")
      continue()
    endif()
    if(package STREQUAL "libkokkos-dev" AND CMAKE_MATCH_1 VERSION_LESS 5)  # Debian 12 has an older one
      continue()
    endif()
    list(APPEND usable ${package})
  endforeach()
  set(${result} ${usable} PARENT_SCOPE)
endfunction()

# Installs the Debian packages of the named dependencies, as far as the distribution has them and we are root.
function(tessera_install_packages)
  find_program(TESSERA_APT_GET apt-get)
  mark_as_advanced(TESSERA_APT_GET)
  execute_process(COMMAND id -u OUTPUT_VARIABLE user OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT TESSERA_APT_GET OR NOT user STREQUAL "0")
    message(STATUS "Nothing is installed from the distribution: that takes apt-get and root")
    return()
  endif()
  set(packages)
  foreach(dependency IN LISTS ARGN)
    list(APPEND packages ${${dependency}_debian})
  endforeach()

  tessera_installable(known ${packages})
  list(LENGTH known have)
  list(LENGTH packages want)
  if(have LESS want)  # a bare machine has no list of packages yet
    message(STATUS "apt-get update")
    execute_process(COMMAND "${TESSERA_APT_GET}" -qq update RESULT_VARIABLE failed ERROR_VARIABLE error)
    if(failed)
      message(STATUS "apt-get update failed: ${error}")
    endif()
    tessera_installable(known ${packages})
  endif()
  if(NOT known)
    return()
  endif()
  # ccache makes the next build from scratch cheap; nothing depends on it.
  find_program(TESSERA_CCACHE ccache)
  if(NOT TESSERA_CCACHE)
    tessera_installable(ccache ccache)
    list(APPEND known ${ccache})
  endif()

  list(JOIN known " " words)
  foreach(attempt RANGE 1 2)
    message(STATUS "apt-get install ${words}")
    execute_process(
      COMMAND "${CMAKE_COMMAND}" -E env DEBIAN_FRONTEND=noninteractive "${TESSERA_APT_GET}" -qq -y
        -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 install --no-install-recommends ${known}
      RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT failed)
      break()
    endif()
    if(attempt EQUAL 1)  # old lists name versions that the mirror has since replaced
      message(STATUS "That failed; apt-get update and once more")
      execute_process(COMMAND "${TESSERA_APT_GET}" -qq update OUTPUT_QUIET ERROR_QUIET)
    endif()
  endforeach()
  if(failed)
    message(STATUS "apt-get install failed:\n${output}")
  endif()
endfunction()

# ---- Kokkos where the distribution has none: a prefix in the user's cache ---------------------------------------

# The folder of the cached prefixes, and a name for this recipe on this system: a change of either makes a new prefix.
function(tessera_kokkos_cache folder recipe)
  if(DEFINED ENV{XDG_CACHE_HOME} AND IS_ABSOLUTE "$ENV{XDG_CACHE_HOME}")
    set(cache "$ENV{XDG_CACHE_HOME}")
  else()
    set(cache "$ENV{HOME}/.cache")
  endif()
  set(text "${CMAKE_SYSTEM_PROCESSOR}")
  foreach(file IN ITEMS /etc/debian_version "${PROJECT_SOURCE_DIR}/cmake/kokkos/make_prefix.sh"
      "${PROJECT_SOURCE_DIR}/cmake/kokkos/relax.cpp" "${PROJECT_SOURCE_DIR}/cmake/kokkos/shim.cpp")
    if(EXISTS "${file}")
      file(SHA256 "${file}" hash)
      string(APPEND text " ${hash}")
    endif()
  endforeach()
  string(SHA256 hash "${text}")
  string(SUBSTRING "${hash}" 0 12 hash)
  set(${folder} "${cache}/tessera" PARENT_SCOPE)
  set(${recipe} "${hash}" PARENT_SCOPE)
endfunction()

function(tessera_cached_kokkos result)
  tessera_kokkos_cache(folder recipe)
  file(GLOB prefixes "${folder}/kokkos-5*-${recipe}")
  list(SORT prefixes COMPARE NATURAL ORDER DESCENDING)
  list(POP_FRONT prefixes newest)
  set(${result} "${newest}" PARENT_SCOPE)
endfunction()

function(tessera_make_kokkos_prefix)
  find_program(TESSERA_APT_GET apt-get)
  find_program(TESSERA_DPKG dpkg)
  find_program(TESSERA_BASH bash)
  mark_as_advanced(TESSERA_APT_GET TESSERA_DPKG TESSERA_BASH)
  if(NOT TESSERA_APT_GET OR NOT TESSERA_DPKG OR NOT TESSERA_BASH OR NOT EXISTS /etc/debian_version)
    return()
  endif()
  tessera_kokkos_cache(folder recipe)
  message(STATUS "Kokkos: making a prefix in ${folder}, for this and later builds")
  execute_process(
    COMMAND "${TESSERA_BASH}" "${PROJECT_SOURCE_DIR}/cmake/kokkos/make_prefix.sh" "${folder}" "${recipe}" "${CMAKE_CXX_COMPILER}"
    RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE error)
  string(STRIP "${output}\n${error}" text)
  string(REPLACE "\n" "\n-- " text "${text}")
  message(STATUS "${text}")
endfunction()

# ---- upstream -------------------------------------------------------------------------------------------------

# A small dependency that builds with CMake alone comes from its own repository, pinned by the hash of the release's commit.
set(fmt_upstream https://github.com/fmtlib/fmt.git e69e5f977d458f2650bb346dadf2ad30c5320281)              # 10.2.1
set(doctest_upstream https://github.com/doctest/doctest.git ae7a13539fb71f270b87eb2e874fbac80bc8dda2)      # 2.4.11
set(benchmark_upstream https://github.com/google/benchmark.git 344117638c8ff7e239044fd0fa7085839fc03021)  # 1.8.3

set(kokkos_upstream https://github.com/kokkos/kokkos.git 5.2.2)  # only where a device is wanted: the distribution's has none

function(tessera_fetch_upstream dependency)
  find_package(Git QUIET)
  if(NOT ${dependency}_upstream OR NOT Git_FOUND)
    return()
  endif()
  list(GET ${dependency}_upstream 0 url)
  list(GET ${dependency}_upstream 1 commit)
  # The server is asked first, since a download that fails in FetchContent ends the configuration with a page of text.
  execute_process(COMMAND "${GIT_EXECUTABLE}" ls-remote --exit-code "${url}" HEAD TIMEOUT 30
    RESULT_VARIABLE unreachable OUTPUT_QUIET ERROR_QUIET)
  if(unreachable)
    message(STATUS "${${dependency}_name}: upstream is out of reach")
    return()
  endif()
  message(STATUS "${${dependency}_name}: fetching upstream's commit ${commit}")
  include(FetchContent)
  set(BENCHMARK_ENABLE_TESTING OFF)
  set(BENCHMARK_ENABLE_INSTALL OFF)
  set(DOCTEST_WITH_TESTS OFF)
  set(DOCTEST_NO_INSTALL ON)
  set(FMT_INSTALL ON)  # our own installation needs it
  if(dependency STREQUAL "kokkos")
    string(TOUPPER "${TESSERA_DEVICE}" device)
    set(Kokkos_ENABLE_${device} ON CACHE BOOL "The device that TESSERA_DEVICE names")
    set(Kokkos_ENABLE_OPENMP ON CACHE BOOL "The host's threads")
    if(TESSERA_DEVICE STREQUAL "cuda")
      set(Kokkos_ARCH_HOPPER90 ON CACHE BOOL "sm_90: H100, H200")
    endif()
  endif()
  FetchContent_Declare(${dependency} GIT_REPOSITORY "${url}" GIT_TAG ${commit})
  FetchContent_MakeAvailable(${dependency})
  # Set by a property, since cmake 3.25.1 mistakes the word SYSTEM in FetchContent_Declare for an argument of git's.
  set_target_properties(${dependency} PROPERTIES SYSTEM ON)
endfunction()

# ---- the one sentence -----------------------------------------------------------------------------------------

function(tessera_say_what_is_missing)
  set(names)
  set(packages)
  foreach(dependency IN LISTS ARGN)
    set(name "${${dependency}_name}")
    if(dependency IN_LIST TESSERA_BROKEN)
      string(APPEND name " (what there is of it does not compile and link: ${PROJECT_BINARY_DIR}/trial/${dependency}/output.txt)")
    elseif(dependency STREQUAL "mpi" AND TESSERA_MPI_BROKEN)
      string(APPEND name " (${TESSERA_MPI_BROKEN} is here and cannot compile and link a program)")
    endif()
    list(APPEND names "${name}")
    list(APPEND packages ${${dependency}_debian})
  endforeach()
  tessera_installable(kokkos ${kokkos_debian})
  if(NOT kokkos)  # of no use to advise
    list(REMOVE_ITEM packages ${kokkos_debian})
  endif()
  list(JOIN names ", " names)
  list(JOIN packages " " packages)

  set(ways)
  if(NOT TESSERA_PROVISION AND PROJECT_IS_TOP_LEVEL)
    list(APPEND ways "configure with `cmake --preset test`, which gets them")
  endif()
  if(packages)
    list(APPEND ways "run `apt-get install ${packages}` as root")
  endif()
  list(APPEND ways "name where they are in CMAKE_PREFIX_PATH")
  if(dnnl IN_LIST ARGN)
    list(APPEND ways "do without oneDNN (TESSERA_WITH_DNNL=OFF)")
  endif()
  list(APPEND ways "take the plans alone (TESSERA_PLAN_ONLY=ON), which need none of it")
  list(JOIN ways ", or " ways)
  message(FATAL_ERROR "Tessera needs what is not here: ${names}; ${ways}.")
endfunction()
