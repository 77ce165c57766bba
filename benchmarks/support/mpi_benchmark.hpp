// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Google Benchmark on several processes: all run the same number of iterations, an iteration takes
/// as long as its slowest process, and process 0 alone reports.
///
///     benchmark::RegisterBenchmark("layer/tessera", timed([&] { layer(); }))->UseManualTime();
///     return run_benchmarks(argc, argv);
#include <benchmark/benchmark.h>
#include <mpi.h>

#include <Kokkos_Core.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

extern "C" char* openblas_get_corename();

namespace tessera_bench {

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
      {"processes", std::to_string(processes)}};
}
inline void print_context() {
  for (const auto& [name, value] : context()) std::printf("%s: %s\n", name, value.c_str());
}

inline int run_benchmarks(int argc, char** argv) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  benchmark::Initialize(&argc, argv);
  for (const auto& [name, value] : context()) benchmark::AddCustomContext(name, value);
  Silence silence;
  if (rank == 0)
    benchmark::RunSpecifiedBenchmarks();
  else
    benchmark::RunSpecifiedBenchmarks(&silence);
  benchmark::Shutdown();
  return 0;
}

}  // namespace tessera_bench
