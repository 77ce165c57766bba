// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How much more memory the machine can give this process. It is asked before large allocations,
/// since Linux promises more memory than it has, and kills a process that uses what was promised.
///
///     detail::memory_left() >= Index{8} << 30
///
/// Laws: never more than is left of the machine's available memory, the control group's limit, or
/// the process's own limit of address space; max_int64 where none of these is known.
#include <sys/resource.h>

#include <fstream>
#include <string>

#include <tessera/base/math.hpp>

namespace tessera::detail {

/// Returns the number after `word` in a file of lines like "MemAvailable:   123 kB", or -1.
inline Index number_after(const char* path, const std::string& word) {
  std::ifstream file(path);
  Index number = 0;
  for (std::string first; file >> first;)
    if (first == word && file >> number) return number;
  return -1;
}
/// Returns the number that a file begins with, or -1.
inline Index number_in(const char* path) {
  std::ifstream file(path);
  Index number = 0;
  return file >> number ? number : -1;
}

/// Returns the bytes that this process may still take, as far as the system tells; else max_int64.
inline Index memory_left() {
  Index left = max_int64;
  const auto at_most = [&](Index bytes) { left = min_of(left, max_of(bytes, 0)); };
  if (const Index kib = detail::number_after("/proc/meminfo", "MemAvailable:"); kib >= 0)
    at_most(kib * 1024);
  const Index granted = detail::number_in("/sys/fs/cgroup/memory.max");
  const Index used = detail::number_in("/sys/fs/cgroup/memory.current");
  if (granted >= 0 && used >= 0) {  // pages of files count as used, but are given up
    const Index files = detail::number_after("/sys/fs/cgroup/memory.stat", "inactive_file");
    at_most(granted - used + max_of(files, 0));
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    if (const Index kib = detail::number_after("/proc/self/status", "VmSize:"); kib >= 0)
      at_most(static_cast<Index>(limit.rlim_cur) - kib * 1024);
  return left;
}
}  // namespace tessera::detail
