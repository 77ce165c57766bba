// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Google Benchmark on several processes: all run the same number of iterations, an iteration takes
/// as long as its slowest process, and process 0 alone reports and writes. A benchmark's name ends
/// in the way that it measures: "layer/2x2/tessera" stands beside "layer/2x2/by hand", and
/// benchmarks/plot.py draws them so.
///
///     start(argc, argv);                               // Google Benchmark's flags
///     benchmark::RegisterBenchmark("layer/tessera", timed([&] { layer(); }))->UseManualTime();
///     if (wanted("copy")) note("copy", {{"tessera", t[0]}, {"memcpy", t[1]}});  // from turns.hpp
///     return finish();                                 // runs, prints and writes all of them
#include <benchmark/benchmark.h>
#include <mpi.h>
#include <time.h>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "support/processor.hpp"

extern "C" char* openblas_get_corename();

namespace tessera_bench {

/// The seconds that a case measured in turns takes; negative: what the program says.
inline double& seconds_in_turns() {
  static double seconds = -1;
  return seconds;
}

/// Returns the seconds of this process's processor time, which other programs prolong less.
inline double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Returns whether TESSERA_BENCH_CLOCK=processor asks for that time where a case is measured in
/// turns: for one process, on a machine that does other work.
inline bool by_processor_time() {
  static const char* const asked = std::getenv("TESSERA_BENCH_CLOCK");
  return asked != nullptr && std::string(asked) == "processor";
}

/// The clock of what is measured in turns.
inline double seconds_now() { return by_processor_time() ? processor_seconds() : MPI_Wtime(); }

/// Returns a benchmark function whose manual time is the maximum over processes of each call of
/// `body`.
template <class Body> auto timed(Body body) {
  return [body = std::move(body)](benchmark::State& state) {
    body();  // caches, communicators and plans are made outside the measurement
    for (auto unused : state) {
      (void)unused;
      MPI_Barrier(MPI_COMM_WORLD);
      const auto start = std::chrono::steady_clock::now();
      body();
      double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      state.SetIterationTime(seconds);
    }
  };
}

/// Says nothing: what the processes other than 0 report with.
class Silence : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

/// Returns the command that was given to every process, but for the file that it writes.
inline std::string command(int argc, char** argv) {
  int processes = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  const std::string program = argv[0];
  std::string text = std::string(by_processor_time() ? "TESSERA_BENCH_CLOCK=processor " : "") +
                     "mpiexec -n " + std::to_string(processes) + " " +
                     program.substr(program.rfind('/') + 1);
  for (int i = 1; i < argc; ++i)
    if (const std::string flag = argv[i]; flag.rfind("--benchmark_out", 0) != 0)
      text += flag.find(' ') == std::string::npos ? " " + flag : " '" + flag + "'";
  return text;
}

/// What a row of numbers is worth nothing without.
inline std::vector<std::pair<const char*, std::string>> context() {
  int processes = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(mpi, &length);
  const std::string library(mpi, static_cast<std::size_t>(length));
  return {
      {"commit", TESSERA_BENCH_COMMIT},
      {"compiler", TESSERA_BENCH_COMPILER},
      {"mpi", library.substr(0, library.find('\n'))},
      {"kokkos", std::string(Kokkos::DefaultExecutionSpace::name()) + " " +
                     std::to_string(KOKKOS_VERSION) + ", " +
                     std::to_string(Kokkos::DefaultExecutionSpace().concurrency()) + " thread(s)"},
      {"blas", std::string("OpenBLAS ") + openblas_get_corename()},
      {"processor", processor()},
      {"processes", std::to_string(processes)},
      {"turns", by_processor_time() ? "processor time" : "by the clock"}};
}
inline void print_context() {
  for (const auto& [name, value] : context()) std::printf("%s: %s\n", name, value.c_str());
}

/// Returns the largest difference of two blocks of n numbers, over all processes; infinity where
/// one is NaN. Collective over all processes.
template <class T> double most_apart(const T* a, const T* b, std::ptrdiff_t n) {
  double most = 0;
  for (std::ptrdiff_t i = 0; i < n; ++i) {
    const double apart = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    most = std::isnan(apart) ? INFINITY : std::max(most, apart);
  }
  MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

/// Returns whether the program may begin another case, which process 0 decides: while fewer seconds
/// have gone by than TESSERA_BENCH_SECONDS says, if it says any. Collective over all processes.
inline bool time_is_left() {
  static const char* const limit = std::getenv("TESSERA_BENCH_SECONDS");
  static const double began = MPI_Wtime();
  if (limit == nullptr) return true;
  int left = MPI_Wtime() - began < std::atof(limit) ? 1 : 0;
  MPI_Bcast(&left, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return left != 0;
}

/// Takes Google Benchmark's flags. What is measured in turns takes --benchmark_min_time as the
/// seconds for all ways of a case together.
inline void start(int argc, char** argv) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<char*> flags;
  for (int i = 0; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag.rfind("--benchmark_min_time=", 0) == 0)
      seconds_in_turns() = std::atof(flag.c_str() + flag.find('=') + 1);
    // A file has one writer.
    if (rank == 0 || flag.rfind("--benchmark_out", 0) != 0) flags.push_back(argv[i]);
  }
  int count = static_cast<int>(flags.size());
  flags.push_back(nullptr);
  benchmark::Initialize(&count, flags.data());
  if (rank == 0 && benchmark::ReportUnrecognizedArguments(count, flags.data()))
    MPI_Abort(MPI_COMM_WORLD, 1);
  for (const auto& [name, value] : context()) benchmark::AddCustomContext(name, value);
  benchmark::AddCustomContext("command", command(argc, argv));
  (void)time_is_left();  // from now on
}

/// Returns whether --benchmark_filter asks for Tessera's way of a case, and time is left for it;
/// "-regex", for others, is left to the end. Collective over all processes.
inline bool wanted(const std::string& name) {
  const std::string filter = benchmark::GetBenchmarkFilter();
  const bool all = filter.empty() || filter == "all" || filter[0] == '-';
  if (!all && !std::regex_search(name + "/tessera", std::regex(filter))) return false;
  if (time_is_left()) return true;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::printf("%s: left out, since TESSERA_BENCH_SECONDS are over\n", name.c_str());
  return false;
}

using Numbers = std::vector<std::pair<std::string, double>>;

/// Adds a case that has been measured, in seconds: finish() reports it as if it had been measured
/// then. `facts` are other numbers of the case, with their units in their names, which are reported
/// with the first way. A name that begins with "modelled/" is of a plan: nothing was run.
inline void note(const std::string& name, const Numbers& ways, const Numbers& facts = {}) {
  for (const auto& [way, seconds] : ways)
    benchmark::RegisterBenchmark(
        (name + "/" + way).c_str(),
        [seconds = seconds,
         facts = way == ways.front().first ? facts : Numbers{}](benchmark::State& state) {
          for (auto unused : state) {
            (void)unused;
            state.SetIterationTime(seconds);
          }
          for (const auto& [fact, number] : facts) state.counters[fact] = number;
        })
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMicrosecond);
}

/// Runs what is registered, and returns main's result.
inline int finish() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Silence silence;
  if (rank == 0)
    benchmark::RunSpecifiedBenchmarks();
  else
    benchmark::RunSpecifiedBenchmarks(&silence);
  benchmark::Shutdown();
  return 0;
}

}  // namespace tessera_bench
