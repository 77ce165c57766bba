// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Times of several ways to do the same, taken in turns, on all processes alike: what disturbs one
/// disturbs the others as well. On a device a body's time ends when its kernels have ended.
///
///     const std::vector<double> t = in_turns({[&] { mpi(); }, [&] { ours(); }});   // t[1] / t[0]
///
/// Laws: all processes make the same number of rounds; a round takes as long as its slowest
/// process.
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <tessera/kernel/fence.hpp>

#include "support/mpi_benchmark.hpp"

namespace tessera_bench {

/// How long to measure: as many rounds as `seconds` allow, within bounds.
struct Rounds {
  double seconds = 0.25;
  int least = 11;
  int most = 401;
  bool take_least = false;  ///< times in place of medians: for kernels alone, beside other work
  double (*clock)() = &seconds_now;
};

/// Returns the median (or least) time in seconds of each body, called in turns, there and back.
/// `prepare` is called before each, outside the measurement, with the number of the round.
inline std::vector<double> in_turns(
    const std::vector<std::function<void()>>& bodies, Rounds rounds = {},
    const std::function<void(int)>& prepare = [](int) {}) {
  if (seconds_in_turns() >= 0) rounds.seconds = seconds_in_turns(), rounds.least = 3;
  std::vector<std::vector<double>> times(bodies.size());
  const auto begin = MPI_Wtime();
  double spent = 0;  // of the slowest process, so that all stop together
  for (int round = -2; round < rounds.least || (round < rounds.most && spent < rounds.seconds);
       ++round) {
    for (std::size_t turn = 0; turn < bodies.size(); ++turn) {
      const std::size_t i = round % 2 == 0 ? turn : bodies.size() - 1 - turn;
      prepare(round);
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = rounds.clock();
      bodies[i]();
      tessera::detail::fence();
      double seconds[2] = {rounds.clock() - start, MPI_Wtime() - begin};
      MPI_Allreduce(MPI_IN_PLACE, seconds, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      if (round >= 0) times[i].push_back(seconds[0]);
      spent = seconds[1];
    }
  }
  std::vector<double> medians;
  for (auto& t : times) {
    const auto middle =
        t.begin() + (rounds.take_least ? 0 : static_cast<std::ptrdiff_t>(t.size() / 2));
    std::nth_element(t.begin(), middle, t.end());
    medians.push_back(*middle);
  }
  return medians;
}

/// Returns "4 KiB", "1 MiB", "100 B".
inline std::string size_text(long bytes) {
  if (bytes >= 1 << 20 && bytes % (1 << 20) == 0) return std::to_string(bytes >> 20) + " MiB";
  if (bytes >= 1 << 10 && bytes % (1 << 10) == 0) return std::to_string(bytes >> 10) + " KiB";
  return std::to_string(bytes) + " B";
}

}  // namespace tessera_bench
