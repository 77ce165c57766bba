// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How the processes of a job end together.
///
///     const int code = agree_on_ending(environment.context(), ending);
///
/// Laws: those of comm/run_main.hpp.
#include <mpi.h>

#include <cstdint>
#include <cstdio>

#include <tessera/base/compiled.hpp>
#include <tessera/comm/mpi/detail/context.hpp>
#include <tessera/comm/run_main.hpp>

namespace tessera::detail {

TESSERA_FUNCTION int agree_on_ending(MpiContext& context, const Ending& own) {
  if (!own.failed) MpiContext::end_calls();  // a failed process reports itself
  if (simulated_processes && own.failed) context.abort(own.text, own.code);  // nobody is late
  // The lowest process that failed reports; codes: 0 success, 2 usage, 1 other, in rising order of
  // weight.
  std::int64_t facts[2] = {own.failed ? context.process() : context.size(), own.code == 0   ? 0
                                                                            : own.code == 2 ? -1
                                                                                            : -2};
  join_numbers(facts, 2, MPI_INT64_T, context.comm(), [&](MPI_Request& request) {
    const std::int64_t start = steady_nanoseconds();
    Nap nap;
    for (int done = 0;;) {
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (done != 0) break;
      nap();
      if (own.failed && steady_nanoseconds() - start > (own.mismatch ? 200'000'000 : 1'000'000'000))
        context.abort(own.text, own.code);
    }
  });
  if (facts[0] == context.process()) {
    std::fprintf(stderr, "%s\n", own.text.c_str());
    std::fflush(stderr);
  }
  return facts[1] == 0 ? 0 : facts[1] == -1 ? 2 : 1;
}

}  // namespace tessera::detail
