// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Runs a body over [0, n) on this thread's lane. A body has run(begin, end), which any number of
/// threads call on disjoint ranges. On the host there is one Kokkos functor for all bodies (a
/// functor costs 0.1 s to compile), one range for each thread, and no Kokkos call at all where one
/// thread suffices; on a device each index is a thread that calls run(i, i + 1).
///
///     struct Zero { float* p; KOKKOS_FUNCTION void run(Index begin, Index end) const; };
///     launch("tessera::zero", n, 4096, Zero{p});
#include <tessera/base/math.hpp>
#include <tessera/kernel/detail/simd.hpp>
#include <tessera/kernel/lane.hpp>

namespace tessera::detail {

/// Returns the instance of host kernels: the lane's own where kernels run on the host.
template <class Space = Kokkos::DefaultHostExecutionSpace> Space host_space() {
  if constexpr (std::is_same_v<Space, KernelSpace>)
    return lane().space();
  else
    return Space();
}
/// Returns how many threads host kernels use.
inline Index host_threads() {
  if constexpr (kernels_on_host) return lane().threads();
  static const Index threads = max_of(1, host_space().concurrency());
  return threads;
}

/// A range of a body whose type has been erased.
struct HostRange {
  void (*run)(const void* body, Index begin, Index end);
  const void* body;
  Index n;
  Index parts;
  void operator()(Index part) const {
    const Index each = ceil_div(n, parts);
    const Index begin = min_of(n, part * each);
    const Index end = min_of(n, begin + each);
    if (begin < end) run(body, begin, end);
  }
};

inline void launch_host(const char* label, Index n, Index grain, const void* body,
                        void (*run)(const void* body, Index begin, Index end)) {
  const Index parts = n < 2 * grain ? 1 : min_of(host_threads(), n / grain);
  if (parts == 1) return run(body, 0, n);
  using Policy = Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace, Kokkos::IndexType<Index>>;
  Kokkos::parallel_for(label, Policy(host_space(), 0, parts), HostRange{run, body, n, parts});
}

/// Not inlined, so that a body is compiled once for all the ways in which it is launched.
template <class Body> [[gnu::noinline]] void run_erased(const void* body, Index begin, Index end) {
  static_cast<const Body*>(body)->run(begin, end);
}

/// Runs body over [0, n) on the host's threads, wherever kernels run: for bodies that call a
/// library of the host.
template <class Body>
void launch_on_host(const char* label, Index n, Index grain, const Body& body) {
  if (n > 0) launch_host(label, n, grain, &body, &run_erased<Body>);
}

/// One index of a body, as a device kernel.
template <class Body> struct DeviceIndex {
  Body body;
  KOKKOS_FUNCTION void operator()(Index i) const { body.run(i, i + 1); }
};

/// Runs body over [0, n); a host thread gets at least `grain` indices.
template <class Body> void launch(const char* label, Index n, Index grain, const Body& body) {
  if (n <= 0) return;
  if constexpr (kernels_on_host) {
    launch_on_host(label, n, grain, body);
  } else {
    using Policy = Kokkos::RangePolicy<KernelSpace, Kokkos::IndexType<Index>>;
    Kokkos::parallel_for(label, Policy(lane().space(), 0, n), DeviceIndex<Body>{body});
  }
}

}  // namespace tessera::detail
