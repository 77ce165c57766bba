// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a process waits for the others: spin (the blocking MPI form) when each process of the node
/// has a core, nap (poll, then sleep 20 microseconds at a time) when there are more processes than
/// cores. Measured with 8 processes on 2 cores, a small blocking all-reduce takes 24 ms and a
/// napping one 0.5 to 1 ms.
///
///     detail::choose_wait(Wait::automatic, 8, 2) == Wait::nap
///
/// Laws: how a process waits changes neither results computed from integers nor any exchange of
/// data.
#include <sched.h>
#include <time.h>

#include <array>
#include <bit>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include <tessera/comm/detail/variables.hpp>

namespace tessera {

enum class Wait : std::uint8_t { automatic, spin, nap };

/// Returns "spin", "nap" or "automatic".
constexpr std::string_view name_of(Wait wait) {
  return wait == Wait::spin ? "spin" : wait == Wait::nap ? "nap" : "automatic";
}

namespace detail {
/// Returns the policy named by the environment variable TESSERA_WAIT (spin, nap or automatic), else
/// `otherwise`. Throws UsageError for any other text.
inline Wait wait_from_environment(Wait otherwise = Wait::automatic) {
  const int chosen = detail::choice_variable("TESSERA_WAIT", {"automatic", "spin", "nap"});
  return chosen < 0 ? otherwise : static_cast<Wait>(chosen);
}

/// One bit for each processor that a process may run on.
using ProcessorMask = std::array<std::uint64_t, 16>;

/// Returns the processors that this process may use (its affinity).
inline ProcessorMask usable_processors() {
  ProcessorMask mask{};
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return mask;
  for (unsigned i = 0; i < 64 * mask.size(); ++i)
    if (CPU_ISSET(i, &set)) mask[i / 64] |= std::uint64_t{1} << (i % 64);
  return mask;
}

/// Returns the number of cores in a mask, at most as many as the container's control group grants.
inline int core_count(const ProcessorMask& mask) {
  int count = 0;
  for (const std::uint64_t word : mask) count += std::popcount(word);
  double quota = 0;
  double period = 0;
  if (std::ifstream file("/sys/fs/cgroup/cpu.max"); file >> quota >> period && period > 0) {
    const int granted = static_cast<int>(quota / period + 0.5);
    if (granted >= 1 && granted < count) count = granted;
  }
  return count < 1 ? 1 : count;
}

/// Returns the policy for `processes` processes that share `cores` cores.
constexpr Wait choose_wait(Wait asked, int processes, int cores) {
  if (asked != Wait::automatic) return asked;
  return processes <= cores ? Wait::spin : Wait::nap;
}

/// What a napping process does between two polls: nothing the first hundred times, then it sleeps.
class Nap {
 public:
  void operator()() {
    if (++polls_ <= 100) return;
    const timespec pause{0, 20'000};
    nanosleep(&pause, nullptr);
  }
  bool asleep() const { return polls_ > 100; }

 private:
  int polls_ = 0;
};
}  // namespace detail
}  // namespace tessera
