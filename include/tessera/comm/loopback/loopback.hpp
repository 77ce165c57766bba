// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// All processes of a mesh as threads of one program, without MPI: the same programs, for
/// exhaustive tests, sanitizers, debuggers, and machines without MPI.
///
///     run_loopback(4, [](std::shared_ptr<Transport> transport) {
///       auto mesh = make_mesh_core(transport, MeshShape{2, 2}, {"data", "model"});
///     });
///
/// Laws: reductions add in the order of the members: the same bits in every run. When one process
/// fails, no other waits forever: each wait ends with an error that names the first failure.
#include <memory>
#include <utility>

#include <tessera/base/compiled.hpp>
#include <tessera/comm/transport.hpp>

namespace tessera {

/// Most processes of a loopback run.
inline constexpr int max_loopback_processes = 64;

struct LoopbackOptions {
  /// Seconds that a call may wait for the others; 0: no limit. Negative: TESSERA_TIME_LIMIT, else
  /// 600.
  double time_limit = -1;
};

namespace detail {

/// Calls the user's function f on a thread.
using LoopbackProgram = void (*)(void* f, std::shared_ptr<Transport> transport);
/// A template, so that it is compiled where it is used.
template <class = void> struct LoopbackRun {
  static void threads(int processes, LoopbackProgram program, void* f,
                      const LoopbackOptions& options);
};

}  // namespace detail

/// Calls f(std::shared_ptr<Transport>) on `processes` threads, one for each process, and returns
/// when all have returned. The first failure ends the others' waits (CommunicationError) and is
/// thrown again here. A call waits for its members no longer than the time limit; then all waits
/// end with an error that says what each process did last. A thread that still computes when the
/// limit has passed after a failure cannot be stopped: then the program ends with that message.
/// Throws UsageError unless 1 <= processes <= 64; the first exception of f; CommunicationError and
/// MismatchError as above.
template <class F> void run_loopback(int processes, F f, LoopbackOptions options = {}) {
  detail::LoopbackRun<>::threads(
      processes,
      [](void* program, std::shared_ptr<Transport> transport) {
        (*static_cast<F*>(program))(std::move(transport));
      },
      &f, options);
}

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/comm/loopback/detail/run.hpp>
#endif
