// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names of environment variables that nothing reads, and what a launcher says of a job.
#include <doctest/doctest.h>

#include <cstdlib>

#include <tessera/comm/detail/launcher.hpp>
#include <tessera/comm/detail/variables.hpp>

using namespace tessera;

TEST_CASE("edits between two names are counted") {
  CHECK(detail::edits_between("", "") == 0);
  CHECK(detail::edits_between("abc", "") == 3);
  CHECK(detail::edits_between("", "abc") == 3);
  CHECK(detail::edits_between("kitten", "sitting") == 3);
  CHECK(detail::edits_between("abcdef", "bcdefa") == 2);
}

TEST_CASE("a variable that nothing reads is told with the nearest that is read") {
  struct Misspelt {
    const char* entry;
    const char* nearest;
  };
  for (const Misspelt& m : {Misspelt{"TESSERA_CHEK=heavy", "TESSERA_CHECK"},
                            {"TESSERA_SHARE=off", "TESSERA_SHARED"},
                            {"TESSERA_TIMELIMIT=3", "TESSERA_TIME_LIMIT"},
                            {"TESSERA_TIMEOUT=", "TESSERA_TIME_LIMIT"},
                            {"TESSERA_ARENA_BYTE", "TESSERA_ARENA_BYTES"},
                            {"TESSERA_wait=nap", "TESSERA_WAIT"}}) {
    const char* const environment[] = {"PATH=/bin", m.entry, "TESSERA_WAIT=nap", nullptr};
    const auto said = detail::unknown_variables(environment);
    REQUIRE(said.size() == 1);
    const std::string name = std::string(m.entry).substr(0, std::string(m.entry).find('='));
    CHECK_MESSAGE(said[0] == "the environment sets " + name +
                                 ", which nothing reads; the nearest that is read is " + m.nearest +
                                 ": set that, or unset " + name,
                  said[0]);
  }
  for (const std::string_view known : detail::known_variables) {
    const std::string entry = std::string(known) + "=1";
    const char* const environment[] = {entry.c_str(), nullptr};
    CHECK(detail::unknown_variables(environment).empty());
  }
  const char* const others[] = {
      "TESSERA_ROOT=/opt",       "TESSERA_DIR=/opt", "MY_TESSERA_X=1", "TESSERA_TEST_SEED=1",
      "TESSERA_BENCH_SECONDS=9", "TESSERA=1",        nullptr};
  CHECK(detail::unknown_variables(others).empty());
  CHECK(detail::unknown_variables(nullptr).empty());
}

TEST_CASE("a launcher that has started several is told apart from one that has started one") {
  const auto forget = [] {
    for (const detail::LauncherVariables& v : detail::launcher_variables) {
      if (v.size != nullptr) unsetenv(v.size);
      unsetenv(v.process);
    }
  };
  forget();
  CHECK(detail::wrong_launcher().fault.empty());
  setenv("PMI_SIZE", "1", 1);
  setenv("PMI_RANK", "0", 1);
  setenv("PMIX_RANK", "0", 1);
  CHECK(detail::wrong_launcher().fault.empty());
  setenv("PMI_SIZE", "16", 1);
  setenv("PMI_RANK", "5", 1);
  CHECK(detail::wrong_launcher().fault.find("PMI_SIZE is 16") != std::string::npos);
  CHECK(detail::wrong_launcher().process == 5);
  forget();
  setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  setenv("OMPI_COMM_WORLD_RANK", "3", 1);
  CHECK(detail::wrong_launcher().fault.find("Open MPI's mpiexec has started") != std::string::npos);
  CHECK(detail::wrong_launcher().process == 3);
  forget();
  setenv("PMIX_RANK", "2", 1);
  CHECK(detail::wrong_launcher().fault.find("PMIX_RANK is 2") != std::string::npos);
  forget();
  const std::string library = detail::mpi_library();
  CHECK_MESSAGE((library.find("MPI") != std::string::npos && library.size() < 80), library);
}
