// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Says which process of a node ended without a word (by a signal, _exit or abort), and what it did
/// last. The launcher kills the others at once, so that none of them can tell: a child process of
/// the node's first process, which does nothing but wait, does.
///
///     watch_ends(context.node(), context.process(), *context.blackboard());
///
/// Laws: the child makes no call of MPI and ends with the last process; what ends in order, or has
/// been reported, is not reported. Price: one process of the node that sleeps.
#include <fcntl.h>
#include <mpi.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tessera/comm/blackboard.hpp>
#include <tessera/comm/mpi/detail/error.hpp>

namespace tessera::detail {

/// The processes of a node, and what tells that they end.
struct WatchedProcesses {
  std::vector<std::int64_t> facts;  ///< the pid of each, and its number on the board
  std::vector<int>
      pipes;  ///< whose other ends they hold: closed before a process's memory is freed

  std::size_t size() const { return pipes.size(); }
  pid_t pid(std::size_t i) const { return static_cast<pid_t>(facts[2 * i]); }
  int number(std::size_t i) const { return static_cast<int>(facts[2 * i + 1]); }
  /// Does not watch process i: its number and its pipe mean something else here.
  void leave_out(std::size_t i) {
    ::close(std::exchange(pipes[i], -1));
    facts[2 * i] = -1;  // no process has that number
  }
};

/// Returns which process ended first, where it was `first` as far as the order of events tells: the
/// launcher kills the others within a millisecond, and who waits ends faster than who has used much
/// memory. So where `first` waited, and one alone did not, it was that one.
inline std::size_t first_of(const WatchedProcesses& processes, std::size_t first,
                            const Blackboard& board) {
  const auto waits = [&](std::size_t i) {
    return board.read(processes.number(i)).activity == Activity::waits;
  };
  std::size_t busy = first;
  int count = 0;
  for (std::size_t i = 0; i < processes.size(); ++i)
    if (processes.pid(i) > 0 && !waits(i)) busy = i, ++count;
  return waits(first) && count == 1 ? busy : first;
}

/// Waits for the processes of this node to end.
[[noreturn]] inline void wait_for_ends(const WatchedProcesses& processes, Blackboard& board) {
  // What is open here would stay open for the launcher, but for stderr.
  const auto most = static_cast<int>(::sysconf(_SC_OPEN_MAX));
  for (int file = 0; file < (most < 4096 ? most : 4096); ++file) {
    bool used = file == STDERR_FILENO;
    for (const int pipe : processes.pipes) used = used || file == pipe;
    if (!used) ::close(file);
  }
  const int events = ::epoll_create1(EPOLL_CLOEXEC);
  int awaited = 0;
  const auto await = [&](int file, std::size_t i) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLONESHOT;
    event.data.u64 = i;
    if (file >= 0 && ::epoll_ctl(events, EPOLL_CTL_ADD, file, &event) == 0) ++awaited;
  };
  for (std::size_t i = 0; i < processes.size(); ++i) {
    await(processes.pipes[i], i);
#if defined(SYS_pidfd_open)
    await(static_cast<int>(::syscall(SYS_pidfd_open, processes.pid(i), 0)), i);
#endif
  }
  for (; awaited > 0; --awaited) {
    epoll_event event{};  // they come in the order in which they happen
    while (::epoll_wait(events, &event, 1, -1) != 1) {
    }
    if (board.read(processes.number(event.data.u64)).activity == Activity::ended) continue;
    const std::size_t one = first_of(processes, event.data.u64, board);
    if (!board.claim_report()) break;
    const std::string text = "[tessera] process " + std::to_string(processes.number(one)) +
                             " (pid " + std::to_string(processes.pid(one)) +
                             ") ended first on its node, without a word: by a signal, _exit or "
                             "abort, as the launcher may "
                             "say below. What each did last:" +
                             board.report() + "\n";
    if (::write(STDERR_FILENO, text.data(), text.size()) < 0) break;
    break;
  }
  ::_exit(0);
}

/// An end of a pipe, as a file of a process and as what it is.
struct PipeEnd {
  std::int64_t file = -1, device = 0, node = 0;
};
inline PipeEnd pipe_end(int file) {
  struct stat facts = {};
  if (file < 0 || ::fstat(file, &facts) != 0) return {};
  return {file, static_cast<std::int64_t>(facts.st_dev), static_cast<std::int64_t>(facts.st_ino)};
}
/// Opens an end of process `pid` here, until this process ends. Returns whether that was it:
/// another container's process may have that number.
inline bool hold(const PipeEnd& end, pid_t pid) {
  if (end.file < 0) return false;
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(end.file);
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  const PipeEnd here = pipe_end(file);
  if (here.file >= 0 && here.device == end.device && here.node == end.node) return true;
  if (file >= 0) ::close(file);
  return false;
}

/// Starts the child that does so, on the first process of `node`. Its parent is no process of the
/// job, so that waiting for children finds none. Collective over: the processes of `node`.
inline void watch_ends(MPI_Comm node, int process, Blackboard& board) {
  int own = 0, size = 0;
  check(MPI_Comm_rank(node, &own), "MPI_Comm_rank");
  check(MPI_Comm_size(node, &size), "MPI_Comm_size");
  if (size == 1) return;
  WatchedProcesses processes;
  processes.pipes.assign(static_cast<std::size_t>(size), -1);
  std::vector<PipeEnd> ends(processes.size());  // for writing, which the processes hold
  for (std::size_t i = 0; own == 0 && i < ends.size(); ++i)
    if (int both[2]; ::pipe2(both, O_CLOEXEC) == 0) {
      processes.pipes[i] = both[0];
      ends[i] = pipe_end(both[1]);
    }
  constexpr int words = sizeof(PipeEnd) / sizeof(std::int64_t);
  check(MPI_Bcast(ends.data(), words * size, MPI_INT64_T, 0, node), "MPI_Bcast");
  const std::int64_t facts[2] = {::getpid(), process};
  processes.facts.assign(2 * ends.size(), 0);
  check(MPI_Allgather(facts, 2, MPI_INT64_T, processes.facts.data(), 2, MPI_INT64_T, node),
        "MPI_Allgather");
  const PipeEnd& end = ends[static_cast<std::size_t>(own)];
  // 1: this process does not hold its end. It is in another container, where numbers are of other
  // processes, or may not look at the first one.
  const int apart = own == 0 || hold(end, processes.pid(0)) ? 0 : 1;
  std::vector<int> all_apart(ends.size(), 0);
  check(MPI_Gather(&apart, 1, MPI_INT, all_apart.data(), 1, MPI_INT, 0, node), "MPI_Gather");
  if (own != 0) return;
  for (std::size_t i = 0; i < ends.size(); ++i)
    if (all_apart[i] != 0) processes.leave_out(i);
  bool shared = true;  // else the node has no memory for a board
  for (std::size_t i = 0; i < ends.size(); ++i) {
    shared = shared && board.slot(processes.number(i)) >= 0;
    if (i > 0 && ends[i].file >= 0) ::close(static_cast<int>(ends[i].file));
  }
  const pid_t first = shared ? ::fork() : -1;
  if (first == 0) {
    ::setsid();
    if (::fork() != 0) ::_exit(0);
    wait_for_ends(processes, board);
  }
  if (first > 0) ::waitpid(first, nullptr, 0);
  for (const int pipe : processes.pipes)
    if (pipe >= 0) ::close(pipe);
}

}  // namespace tessera::detail
