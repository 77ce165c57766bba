// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The life of MPI beside Tessera's: which errors its waits return, what closes before it ends, and
/// whether its world is complete.
///
///     close_meshes_with_mpi();
///     const Waiting waiting;      // errors of MPI_Test and MPI_Wait come back while it lives
///
/// Laws: each of these is done once in a program.
#include <mpi.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include <tessera/base/error.hpp>
#include <tessera/comm/detail/closing.hpp>
#include <tessera/comm/detail/launcher.hpp>
#include <tessera/comm/mpi/detail/error.hpp>

namespace tessera::detail {

/// Whether processes and their clock are simulated (SimGrid's SMPI): all are in one process of the
/// system and take turns, which end where MPI is called.
#if defined(SMPI_H)
inline constexpr bool simulated_processes = true;
#else
inline constexpr bool simulated_processes = false;
#endif

/// Leaves the least of all processes' numbers in place: begins a call, and calls wait(request) for
/// it. Simulated processes would each send to each in such a call.
template <class Wait>
void join_numbers(void* numbers, int count, MPI_Datatype type, MPI_Comm comm, const Wait& wait) {
  if (simulated_processes)
    return check(MPI_Allreduce(MPI_IN_PLACE, numbers, count, type, MPI_MIN, comm), "MPI_Allreduce");
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallreduce(MPI_IN_PLACE, numbers, count, type, MPI_MIN, comm, &request),
        "MPI_Iallreduce");
  wait(request);
}

/// Open MPI gives the error of a nonblocking collective to the handler of MPI_COMM_WORLD, which by
/// default ends the program without Tessera's message. There Tessera sets its own handler, which
/// returns from Tessera's waits and in all other cases ends the program as before.
struct Waiting {
#if defined(OPEN_MPI)
  Waiting() { now() = true; }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() { now() = false; }
  static bool& now() {
    static thread_local bool waits = false;
    return waits;
  }
#else
  Waiting() {}
#endif
};
#if defined(OPEN_MPI)
inline void answer_error(MPI_Comm*, int* code, ...) {
  if (Waiting::now()) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(*code, text, &length);
  std::fprintf(stderr, "*** An error occurred in MPI, on MPI_COMM_WORLD: %s\n", text);
  MPI_Abort(MPI_COMM_WORLD, *code);
}
#endif
inline void answer_errors_of_waits() {
#if defined(OPEN_MPI)
  static const bool once = [] {
    MPI_Errhandler present = MPI_ERRHANDLER_NULL;
    check(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &present), "MPI_Comm_get_errhandler");
    if (present != MPI_ERRORS_ARE_FATAL) return false;  // the user's own
    MPI_Errhandler ours = MPI_ERRHANDLER_NULL;
    check(MPI_Comm_create_errhandler(&answer_error, &ours), "MPI_Comm_create_errhandler");
    check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, ours), "MPI_Comm_set_errhandler");
    return MPI_Errhandler_free(&ours) == MPI_SUCCESS;
  }();
  static_cast<void>(once);
#endif
}
/// Whether MPI has begun to end.
inline bool& mpi_ended() {
  static bool ended = false;
  return ended;
}
/// Closes all open meshes, with a reason, when the user finalizes MPI. MPI frees the attributes of
/// MPI_COMM_SELF before all else (MPI 4.0, section 11.2.4).
inline void close_meshes_with_mpi() {
  static const bool once = [] {
    int key = MPI_KEYVAL_INVALID;
    const auto end = [](MPI_Comm, int, void*, void*) -> int {
      Closing::all().reason() =
          "it was closed when MPI was finalized, since nothing can be communicated after that; "
          "finalize MPI after the last operator, or leave it to tessera::Environment";
      mpi_ended() = true;
      Closing::all().run(false);
      return MPI_SUCCESS;
    };
    check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end, &key, nullptr),
          "MPI_Comm_create_keyval");
    check(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), "MPI_Comm_set_attr");
    return true;
  }();
  static_cast<void>(once);
}
/// Ends all processes. Where MPI_Abort does not return (MPICH 4.0.2 was once seen to wait in it)
/// this process ends alone, and the launcher ends the others.
[[noreturn]] inline void abort_world(int exit_code) {
  static int code = exit_code;
  const auto end_alone = [](void*) -> void* {
    ::sleep(5);
    std::_Exit(code);
  };
  pthread_t thread;  // a std::thread of it costs every source fifty templates
  ::pthread_create(&thread, nullptr, end_alone, nullptr);
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}
/// Throws UsageError where a launcher has started several processes and each is its own world.
inline void require_whole_world() {
  int size = 0;
  check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  if (size > 1) return;
  if (const WrongLauncher wrong = wrong_launcher(); !wrong.fault.empty())
    throw UsageError(wrong.fault);
}

}  // namespace tessera::detail
