// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What an environment begins and ends: MPI, Kokkos, and the handlers of a failure outside of main.
///
///     EnvironmentParts parts(argc, argv);
///
/// Laws: those of comm/environment.hpp.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include <Kokkos_Core.hpp>

#include <tessera/base/compiled.hpp>
#include <tessera/base/error.hpp>
#include <tessera/comm/detail/closing.hpp>
#include <tessera/comm/detail/launcher.hpp>
#include <tessera/comm/device_memory.hpp>
#include <tessera/comm/environment.hpp>
#include <tessera/comm/mpi/detail/last_words.hpp>
#include <tessera/comm/mpi/detail/transport.hpp>

namespace tessera {
namespace detail {

TESSERA_FUNCTION std::string failure_text(int process, const std::exception_ptr& error) {
  std::string text = "an exception that is not a std::exception";
  bool named = false;
  try {
    if (error != nullptr) std::rethrow_exception(error);
    text = "std::terminate was called without an exception";
  } catch (const Error& e) {
    text = e.what();
    named = e.names_process();
  } catch (const std::exception& e) {
    text = e.what();
  } catch (...) {
  }
  if (text.starts_with("[tessera] ")) text.erase(0, 10);
  const std::string who = "process " + std::to_string(process);
  return "[tessera] " + (named || text.starts_with(who + " ") ? text : who + ": " + text);
}

/// Reports the exception and ends the job, so that the other processes do not wait forever.
[[noreturn]] inline void end_job_on_terminate() {
  if (MpiContext* context = std::exchange(environment_context(), nullptr);
      context != nullptr && mpi_is_up())
    context->abort(failure_text(context->process(), std::current_exception()), 1);
  std::fprintf(stderr, "%s\n", failure_text(0, std::current_exception()).c_str());
  std::abort();
}

/// Handles std::exit during the environment's lifetime: the other processes would wait forever, or
/// a launcher such as MPICH's would end them with success.
inline void end_job_on_exit() {
  MpiContext* context = std::exchange(environment_context(), nullptr);
  if (context != nullptr && context->size() > 1 && mpi_is_up())
    context->abort("[tessera] process " + std::to_string(context->process()) +
                       ": the program has called exit while tessera::Environment is alive, and "
                       "the other processes would wait for it; return from main, or throw",
                   1);
}

/// MPICH's UCX ends the program where the node's shared memory is too small for it, or cannot be
/// written: lets it go without, and one process says so.
inline void do_without_small_shared_memory() {
  constexpr Index each = Index{8} << 20;  // of a process; UCX takes about 4.3 MB and a little
  if (std::getenv("UCX_TLS") != nullptr) return;
  int processes = launcher_number("MPI_LOCALNRANKS"), own = 0;
  for (const LauncherVariables& said : launcher_variables) {
    if (processes <= 0) processes = launcher_number(said.size);
    own = std::max(own, launcher_number(said.process));
  }
  processes = std::max(1, processes);
  const Index wanted = each * processes;
  const bool writable = ::access(shared_folder, W_OK) == 0;
  if (writable && shared_memory_free() >= wanted) return;
  setenv("UCX_TLS", "^posix", 0);
  if (own > 0) return;
  const auto megabytes = [](Index bytes) { return std::to_string(bytes >> 20) + " MB"; };
  std::fprintf(
      stderr,
      "[tessera] warning: %s %s, and MPI's shared memory takes up to %s for the %d "
      "processes of a node; they go without it (UCX_TLS=^posix), which is slower; give it "
      "more room (docker run --shm-size=1g), or set UCX_TLS\n",
      shared_folder,
      writable ? ("has " + megabytes(shared_memory_free()) + " free").c_str() : "cannot be written",
      megabytes(wanted).c_str(), processes);
}

/// Initializes MPI, unless it is initialized.
class MpiSession {
 public:
  MpiSession(int& argc, char**& argv) {
    int up = 0;
    MPI_Initialized(&up);
    int level = MPI_THREAD_FUNNELED;
    if (up == 0) do_without_small_shared_memory();
    if (up == 0)
      check(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread");
    ours_ = up == 0;
    require_mpi();
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &job_process());
    if (size == 1) job_process() = wrong_launcher().process;  // of the intended job
    if (level < MPI_THREAD_FUNNELED && !simulated_processes)
      throw CommunicationError(
          "this MPI cannot be used from a program with threads (MPI_THREAD_FUNNELED); install one "
          "that can");
  }
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  ~MpiSession() {
    if (ours_ && mpi_is_up()) MPI_Finalize();
  }

 private:
  bool ours_ = false;
};

/// Runs f, which may throw, on every process of the job. Where it throws on some of them, all
/// throw: these what it threw, the others an error that says it of the first of these, since they
/// would wait for it. It is the user's where the first one's is.
template <class F> void begin_together(const F& f) {
  std::exception_ptr own;
  std::string text;
  char users = 0;
  try {
    f();
  } catch (const std::exception& error) {
    own = std::current_exception();
    text = error.what();
    users = dynamic_cast<const UsageError*>(&error) != nullptr;
  } catch (...) {
    own = std::current_exception();
    text = "an exception that is not a std::exception";
  }
  int size = 0, process = 0;
  check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  check(MPI_Comm_rank(MPI_COMM_WORLD, &process), "MPI_Comm_rank");
  int first = own != nullptr ? process : size;
  check(MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD), "MPI_Allreduce");
  if (first == size) return;
  char words[1024] = {users};
  text.copy(words + 1, sizeof words - 2);
  check(MPI_Bcast(words, sizeof words, MPI_CHAR, first, MPI_COMM_WORLD), "MPI_Bcast");
  if (own != nullptr) std::rethrow_exception(own);
  text = words + 1;
  if (text.starts_with("[tessera] ")) text.erase(0, 10);
  text = "process " + std::to_string(first) +
         " of the job cannot start, and the others would wait for it: " + text;
  if (words[0] != 0) throw UsageError(text);
  throw CommunicationError(text);
}

/// Returns the settings that the environment's variables give. Collective over the job.
inline TransportSettings settings_of_job() {
  TransportSettings settings;
  begin_together([&] { settings = settings_from_environment(); });
  return settings;
}

/// Initializes Kokkos, unless it is initialized; with this process's share of the node's cores,
/// unless the user sets the number of threads.
class KokkosSession {
 public:
  KokkosSession() = default;
  /// Where another process cannot start, its end ends what has begun here.
  KokkosSession(int& argc, char** argv, int threads) : KokkosSession() {
    begin_together([&] { begin(argc, argv, threads); });
  }
  KokkosSession(const KokkosSession&) = delete;
  KokkosSession& operator=(const KokkosSession&) = delete;
  ~KokkosSession() {
    if (ours_ && Kokkos::is_initialized()) Kokkos::finalize();
  }

 private:
  void begin(int& argc, char** argv, int threads) {
    if (Kokkos::is_initialized()) return;
    if (Kokkos::is_finalized()) require_kokkos({});
    setenv("OMP_PROC_BIND", "false",
           0);  // else OpenMP binds all processes of a node to the same first cores
    if (std::getenv("OMP_NUM_THREADS") == nullptr)
      setenv("KOKKOS_NUM_THREADS", std::to_string(threads).c_str(), 0);
    setenv("KOKKOS_DISABLE_WARNINGS", "true",
           0);  // else each process prints a page about binding and oversubscription
    Kokkos::initialize(argc, argv);
    ours_ = !simulated_processes;  // else all share it, and it lasts as long as the simulation
  }

  bool ours_ = false;
};

/// In the order in which they begin.
struct EnvironmentParts {
  MpiSession mpi;
  TransportSettings settings;
  std::shared_ptr<MpiContext> context;
  KokkosSession kokkos;
  std::shared_ptr<Transport> world;
  std::terminate_handler previous = nullptr;

  EnvironmentParts(int& argc, char**& argv)
      : mpi(argc, argv),
        settings(settings_of_job()),
        context(std::make_shared<MpiContext>(MPI_COMM_WORLD, settings.time_limit)),
        kokkos(argc, argv, context->threads_per_process()),
        world(std::make_shared<MpiTransport>(context, settings)) {
    if (environment_context() != nullptr)
      throw UsageError("there is a tessera::Environment already; a program has one");
    environment_context() = context.get();
    if (!simulated_processes)
      watch_ends(context->node(), context->process(), *context->blackboard());
    previous = std::set_terminate(end_job_on_terminate);
    static const bool registered =
        std::atexit(end_job_on_exit) == 0 && std::at_quick_exit(end_job_on_exit) == 0;
    static_cast<void>(registered);
  }
};

}  // namespace detail

TESSERA_FUNCTION Environment::Environment(int& argc, char**& argv)
    : parts_(new detail::EnvironmentParts(argc, argv)) {}

TESSERA_FUNCTION Environment::~Environment() {
  if (std::uncaught_exceptions() > depth_ && size() > 1)
    context().abort("[tessera] process " + std::to_string(process()) +
                        ": an exception leaves the scope of tessera::Environment; catch it "
                        "inside, or use tessera::run_main, which says what it is",
                    1);
  if (depth_ == std::uncaught_exceptions()) detail::MpiContext::end_calls();
  parts_->world.reset();
  detail::Closing::all().run();
  detail::environment_context() = nullptr;
  std::set_terminate(parts_->previous);
}

TESSERA_FUNCTION const std::shared_ptr<Transport>& Environment::world() const {
  return parts_->world;
}
TESSERA_FUNCTION int Environment::process() const { return parts_->context->process(); }
TESSERA_FUNCTION int Environment::size() const { return parts_->context->size(); }
TESSERA_FUNCTION detail::MpiContext& Environment::context() { return *parts_->context; }

}  // namespace tessera
