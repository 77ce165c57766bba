// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Initializes MPI and Kokkos for its own lifetime: MPI first, Kokkos second, ended in reverse.
/// comm/run_main.hpp is the main function to go with it.
///
///     int main(int argc, char** argv) {
///       tessera::Environment env(argc, argv);
///       auto mesh = make_mesh_core(env.world(), MeshShape{env.world()->size()}, {"data"});
///     }
///
/// Laws: MPI or Kokkos, if initialized before, is not finalized nor given settings; open meshes are
/// closed first; an uncaught exception on one process, or a call of exit, ends the whole job with
/// one message.
#include <exception>
#include <memory>
#include <string>

#include <tessera/base/compiled.hpp>
#include <tessera/base/owned.hpp>
#include <tessera/comm/mpi/transport.hpp>
#include <tessera/comm/transport.hpp>

namespace tessera {
namespace detail {

class MpiContext;
struct EnvironmentParts;

/// Returns the text of a failure, after Tessera's mark and, unless the exception names the process,
/// "process 3: ".
TESSERA_FUNCTION std::string failure_text(int process, const std::exception_ptr& error);

/// This process's number in the job, known once MPI is initialized: an error at the start of one is
/// one of all processes, and the first of them reports it.
inline int& job_process() {
  static int process = 0;
  return process;
}

}  // namespace detail

class Environment {
 public:
  /// Communication: MPI's start and a few small collectives. Collective over: all processes of the
  /// job. Throws UsageError when an environment exists already, MPI or Kokkos has been finalized,
  /// the launcher belongs to another MPI, or TESSERA_WAIT or TESSERA_TIME_LIMIT has a wrong value,
  /// on this process or another; CommunicationError where another cannot start for other reasons.
  Environment(int& argc, char**& argv);
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  /// Closes the meshes and transports that are open, then Kokkos, then MPI. Collective over: all
  /// processes of the job; so when an exception leaves its scope on several processes, this ends
  /// the job, since the others may wait elsewhere.
  ~Environment();

  /// Returns the transport between all processes of the job.
  const std::shared_ptr<Transport>& world() const;
  int process() const;
  int size() const;
  /// For comm/run_main.hpp.
  detail::MpiContext& context();

 private:
  int depth_ = std::uncaught_exceptions();
  detail::Owned<detail::EnvironmentParts> parts_;
};

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/comm/mpi/detail/environment.hpp>
#endif
