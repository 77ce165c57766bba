// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Pods of TPU v3 and v4 by their published numbers, and the times of programs on them.
///
///     const auto mesh = dry_mesh<Grid>(sizes<Grid>(32, 64), 0, {.machine = pods::tpu_v3(2048)});
///     pods::milliseconds(pods::times_of(program).seconds)       // of a program of that mesh
#include <cstdint>
#include <vector>

#include <tessera/program/network/timing.hpp>

namespace pods {
using namespace tessera;

/// A Machine counts whole picoseconds, and a core of a TPU does 61 operations in one: here all
/// times are a thousand times as long.
inline constexpr double finer = 1000;
inline double milliseconds(double simulated) { return 1e3 * simulated / finer; }

/// What a process runs on: bytes of memory; operations in bfloat16, and bytes of memory and of a
/// link of its torus each way, a second. The latency of a link is not published: none is counted.
struct Core {
  Index capacity;
  double flops, memory, link;
};
/// Half of a chip of TPU v3, which does 123e12 operations a second and has 32 GiB at 900 GB/s
/// (cloud.google.com/tpu/docs/v3), and its links (Jouppi et al., "TPU v4: An Optically
/// Reconfigurable Supercomputer", 2023, table 4).
inline constexpr Core v3{Index{16} << 30, 123e12 / 2, 900e9 / 2, 70e9};
/// A chip of TPU v4, whose two cores are one device (the same table).
inline constexpr Core v4{Index{32} << 30, 275e12, 1200e9, 50e9};

/// Plans count all devices as one node's: they send as over the torus.
inline Machine machine_of(const Core& core, const Network& network) {
  const auto picoseconds = [](double seconds) {
    return static_cast<std::int64_t>(finer * 1e12 * seconds + 0.5);
  };
  const Machine between = network.machine({}, CollectiveWays::links);
  Machine machine;
  machine.kiloflop_ps_f32 = machine.kiloflop_ps_f64 = picoseconds(1000 / core.flops);
  machine.copy_ps_per_kib = picoseconds(2 * 1024 / core.memory);  // read and written
  machine.payload_ps_per_kib = between.network_payload_ps_per_kib;
  machine.all_to_all_percent = between.all_to_all_percent;
  machine.message_ps = 1;
  return machine;
}
/// The times of a program whose mesh has this machine.
inline NetworkTimes simulated(const Program& program, const Machine& machine,
                              const Network& network, bool computes = true) {
  return simulate(program, network,
                  {.computes = computes, .machine = machine, .ways = CollectiveWays::links});
}
/// A slice of a pod of 32 x 32 chips of TPU v3.
inline Network slice(int cores) {
  std::vector<int> sides{1, 1};
  while (sides[0] * sides[1] < cores / 2) (sides[0] > sides[1] ? sides[1] : sides[0]) *= 2;
  return Network::torus(sides, {v3.link / finer, 0}, 2, {v3.memory / finer, 0});
}
inline Machine tpu_v3(int cores) { return machine_of(v3, slice(cores)); }
inline NetworkTimes times_of(const Program& program, bool computes = true) {
  const Network network = slice(program.mesh.processes());
  return simulated(program, machine_of(v3, network), network, computes);
}

}  // namespace pods
