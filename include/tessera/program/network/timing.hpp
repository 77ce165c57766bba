// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How long a Program takes on a network: every process's work by the machine's rates, or by a
/// trace, and every call as the messages that it is made of, which share links with those of other
/// processes.
///
///     const NetworkTimes t = simulate(program, Network::torus({16, 16, 16}, {}));
///     t.seconds;   t.exposed;   t.busiest
///     std::string text = explain(t);
///     simulate(trace, Network::torus({16, 16, 16}, {}));      // each operator's work takes its time in a run
///
/// An operator on a part of the mesh takes time on the part's processes alone; in a manual function
/// all parts carry it out at once.
///
/// Laws: the times do not depend on the process whose Program it is, those of a trace on its work;
/// communication that is hidden by other operators costs no time. Assumes that all groups of a call
/// set out together, that the rounds of a call follow one another, and that the calls of a process
/// do, too, even where several are under way.
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/network/network.hpp>
#include <tessera/program/network/options.hpp>
#include <tessera/program/program.hpp>
#include <tessera/program/trace.hpp>

namespace tessera {

/// What the time of a Program is made of.
struct NetworkTimes {
  struct Operator {
    std::string name;
    double seconds = 0;  ///< by which it makes the Program longer
    double exposed = 0;  ///< by which the process that waits least waits longer
  };
  double seconds = 0;  ///< until the last process has ended
  double exposed = 0;  ///< that the process waits which waits least
  std::vector<Operator> operators;
  int traced = 0;         ///< operators whose work takes what a trace says, and not what plans do
  int busiest = -1;       ///< a link of the network; -1: nothing went through any
  std::string link;       ///< its name
  double busy = 0;        ///< seconds for which messages went through it
  double link_bytes = 0;  ///< that it carried
};

/// Returns the times of a Program on a network. The processes 0, 1, … of the communicator take its
/// first places. Communication: none. Throws UsageError where the network has fewer places
/// than the Program has processes, for a machine whose order is of another mesh, and where
/// processes make different calls.
TESSERA_FUNCTION NetworkTimes simulate(const Program& program, const Network& network,
                                       const NetworkOptions& options = {});

/// Returns the times of a trace's Program where the traced process's work on operators, and what it
/// did between them, takes the time that it took, and that of every other process the same; in the
/// trace's order, so that a call hides what ran while it was under way. Operators of which the
/// trace has nothing take what their plans say. A part's trace is simulated as if its processes
/// took the first places. Trace a call that has run before, so that nothing is planned in it; time
/// between operators holds waits for others, where processes exchange facts. Communication: none.
/// Throws UsageError as above, and for a trace of several processes.
TESSERA_FUNCTION NetworkTimes simulate(const Trace& trace, const Network& network,
                                       const NetworkOptions& options = {});

/// Returns a table of the operators that take longest, and the busiest link.
TESSERA_FUNCTION std::string explain(const NetworkTimes& times, int rows = 12);

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/network/detail/timing.hpp>
#endif
