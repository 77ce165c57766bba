// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The main of the tests that run under mpiexec: doctest inside one tessera::Environment
/// (support/world.hpp).
///
///     mpiexec.mpich -n 4 test_mpi --processes=4 [doctest's own options]
///
/// Red if the world is not of the declared size. A REQUIRE that fails, or an exception, on one
/// process would leave the others waiting in a collective: the process says who and where, and ends
/// the job. What other processes than the first print appears only if one of their checks failed.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <mpi.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>

#include "count_tests.hpp"
#include "world.hpp"

namespace {

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

tessera::Environment* the_environment = nullptr;

std::ostringstream muted;  // what a process other than the first has printed

/// Ends the job as soon as one process cannot go on with a test that the others go on with.
struct AbortOnFatal : doctest::IReporter {
  const doctest::TestCaseData* test = nullptr;

  explicit AbortOnFatal(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_start(const doctest::TestCaseData& t) override { test = &t; }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

  void test_case_exception(const doctest::TestCaseException& e) override {
    // log_assert has told of a REQUIRE that failed already; doctest ends the test case with an
    // exception of its own.
    end_job(test->m_file.c_str(), test->m_line,
            e.is_crash ? "crash: " : "exception: ", e.error_string.c_str(), "");
  }
  void log_assert(const doctest::AssertData& a) override {
    if (!a.m_failed || (a.m_at & doctest::assertType::is_require) == 0) return;
    end_job(a.m_file, a.m_line, a.m_expr, a.m_threw ? " threw " : " with values ",
            a.m_threw ? a.m_exception.c_str() : a.m_decomp.c_str());
  }

 private:
  void end_job(const char* file, int line, const char* what, const char* verb,
               const char* facts) const {
    if (world_size() == 1) return;  // doctest's own report will do
    std::cout << std::flush;
    std::cerr << muted.str() << "\nprocess " << world_rank() << " of " << world_size() << ", \""
              << test->m_name << "\", " << file << ':' << line << ": " << what << verb << facts
              << "\nending the job" << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
};
REGISTER_LISTENER("abort_on_fatal", 1, AbortOnFatal);

int declared_processes(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (std::strncmp(argv[i], "--processes=", 12) == 0) return std::atoi(argv[i] + 12);
  return 0;
}

int run_tests(int argc, char** argv) {
  const int rank = world_rank();
  const int size = world_size();
  if (declared_processes(argc, argv) != size) {
    if (rank == 0)
      std::cerr << "the world has " << size << " processes, but the test was declared for "
                << declared_processes(argc, argv) << " (--processes=N)\n";
    return 1;
  }
  doctest::Context context;
  context.applyCommandLine(argc, argv);
  if (rank != 0) context.setCout(&muted);
  int failed = context.run();
  if (failed == 0 && !context.shouldExit()) failed = support::red_if_nothing_ran();

  for (int turn = 1; turn < size; ++turn) {  // one after the other, so that reports do not mix
    MPI_Barrier(MPI_COMM_WORLD);
    if (turn == rank && failed != 0)
      std::cerr << "---- process " << rank << " of " << size << " ----\n"
                << muted.str() << std::flush;
  }
  int any = 0;
  MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return any;
}

}  // namespace

tessera::Environment& support::environment() { return *the_environment; }

int main(int argc, char** argv) {
  tessera::Environment environment(argc, argv);
  the_environment = &environment;
  return run_tests(argc, argv);
}
