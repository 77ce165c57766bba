// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The main of the tests that run as one process: doctest, with Kokkos alive where the tested room
/// uses it.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#ifdef TESSERA_TEST_WITH_KOKKOS
#include <Kokkos_Core.hpp>
#endif

#include "count_tests.hpp"

int main(int argc, char** argv) {
#ifdef TESSERA_TEST_WITH_KOKKOS
  const Kokkos::ScopeGuard kokkos(argc, argv);
#endif
  doctest::Context context;
  context.applyCommandLine(argc, argv);
  const int failed = context.run();
  if (context.shouldExit()) return failed;  // it was asked to list its tests, not to run them
  return failed != 0 ? failed : support::red_if_nothing_ran();
}
