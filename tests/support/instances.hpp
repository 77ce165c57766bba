// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Instances of the kernels' execution space beside the default one, made once: a program keeps
/// each until its end.
///
///     const auto there = mesh.on(support::instance(mesh.process(), 1));
#include <map>
#include <mutex>
#include <utility>

#include <tessera/kernel/lane.hpp>

namespace support {

template <class Space = tessera::KernelSpace> Space new_instance() {
  if constexpr (requires { Space::new_instance; })
    return Space(Space::new_instance);  // late_space.hpp
  else if constexpr (std::is_constructible_v<Space, int>)
    return Space(2);  // OpenMP with two threads
  else
    return Kokkos::Experimental::partition_space(Space(), 1)[0];
}

/// Returns instance i of a process that is a thread of this program.
inline tessera::KernelSpace instance(int process, int i) {
  static std::mutex mutex;
  static std::map<std::pair<int, int>, tessera::KernelSpace>& made =
      *new std::map<std::pair<int, int>, tessera::KernelSpace>;
  const std::lock_guard lock(mutex);
  if (made.empty()) Kokkos::push_finalize_hook([] { made.clear(); });
  const auto at = std::pair(process, i);
  const auto found = made.find(at);
  return found != made.end() ? found->second : made.emplace(at, new_instance()).first->second;
}

}  // namespace support
