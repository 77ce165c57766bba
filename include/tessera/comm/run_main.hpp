// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A main function: an environment, the program, and an orderly end in any case.
///
///     int main(int argc, char** argv) {
///       return tessera::run_main(argc, argv, [&](tessera::Environment& env) {});
///     }
///
/// Laws: one message, whichever process fails; exit code 2 when all failures are the user's
/// (UsageError, MeshError), else 1. When all processes have failed or returned, MPI ends in order;
/// when some have failed and others go on, the job is aborted.
#include <cstdio>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include <tessera/base/compiled.hpp>
#include <tessera/base/error.hpp>
#include <tessera/comm/environment.hpp>

namespace tessera {
namespace detail {

/// How a process's part of the program ended.
struct Ending {
  int code = 0;         ///< 0: success; else the exit code
  bool failed = false;  ///< an exception left the program
  std::string text;
  bool mismatch = false;  ///< other processes called something else
};

template <class F> Ending ending_of(F&& program, int process) {
  try {
    program();
    return {};
  } catch (const UsageError&) {
    return {2, true, failure_text(process, std::current_exception())};
  } catch (const MeshError&) {
    return {2, true, failure_text(process, std::current_exception())};
  } catch (const MismatchError&) {
    return {1, true, failure_text(process, std::current_exception()), true};
  } catch (...) {
    return {1, true, failure_text(process, std::current_exception())};
  }
}

/// Waits for all processes; a process that failed waits only a second, or less when it found that
/// the others call something else, since they may wait for it elsewhere. Returns the exit code of
/// the job. Collective over: all processes.
TESSERA_FUNCTION int agree_on_ending(MpiContext& context, const Ending& own);

}  // namespace detail

/// Runs f(Environment&) on each process and returns the exit code for main: f's own, if it returns
/// an int and no process failed. Collective over: all processes of the job.
template <class F> int run_main(int argc, char** argv, F f) {
  int result = 0;
  detail::Ending start;
  try {
    Environment env(argc, argv);
    const detail::Ending ending = detail::ending_of(
        [&] {
          if constexpr (std::is_convertible_v<decltype(f(env)), int>)
            result = f(env);
          else
            f(env);
        },
        env.process());
    const int code = detail::agree_on_ending(env.context(), ending);
    return code != 0 ? code : result;
  } catch (...) {  // the environment itself could not start; it has ended by now
    start = detail::ending_of([] { throw; }, detail::job_process());
  }
  if (detail::job_process() == 0) std::fprintf(stderr, "%s\n", start.text.c_str());
  return start.code;
}

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/comm/mpi/detail/ending.hpp>
#endif
