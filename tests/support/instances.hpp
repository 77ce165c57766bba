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

/// The threads of an instance of OpenMP. ThreadSanitizer does not see how OpenMP's threads wait for
/// each other, and takes what two of them do for races.
#if defined(__SANITIZE_THREAD__)
inline constexpr int instance_threads = 1;
#else
inline constexpr int instance_threads = 2;
#endif

template <class Space = tessera::KernelSpace> Space new_instance() {
  if constexpr (requires { Space::new_instance; })
    return Space(Space::new_instance);  // late_space.hpp
  else if constexpr (std::is_constructible_v<Space, int>)
    return Space(instance_threads);  // OpenMP
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
