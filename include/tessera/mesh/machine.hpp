// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The costs of computation and communication, in integers: the same on every process, at compile
/// time and at run time.
///
///     Machine{}.transfer(1 << 20, 1)        // picoseconds to move 1 MiB in one message
///     Machine{.processes_per_node = 8}.transfer(1 << 20, 1, Level::network)
///
/// mesh/levels.hpp tells which level a group of axes spans.
///
/// Laws: costs saturate and never overflow; a larger payload never costs less.
#include <array>
#include <cstdint>
#include <utility>

#include <tessera/base/dtype.hpp>
#include <tessera/base/math.hpp>
#include <tessera/mesh/device_order.hpp>

namespace tessera {

/// How far data travel: within a process, between processes of one node, between nodes.
enum class Level : std::uint8_t { core, node, network };

/// A machine model. The defaults roughly describe one node with shared memory; `calibrate` measures
/// them.
struct Machine {
  std::int64_t message_ps = 1'000'000;  ///< latency of one message within a node, picoseconds
  std::int64_t payload_ps_per_kib =
      200'000;  ///< 1 / bandwidth between processes of a node, picoseconds per KiB (5 GiB/s)
  std::int64_t copy_ps_per_kib =
      100'000;  ///< 1 / bandwidth of a local copy, picoseconds per KiB (10 GiB/s)
  std::int64_t kiloflop_ps_f32 =
      10'000;  ///< 1000 operations in single precision (half types too), picoseconds (100 GFLOP/s)
  std::int64_t kiloflop_ps_f64 =
      20'000;  ///< 1000 double-precision (and integer) operations, picoseconds
  std::int64_t network_message_ps = 2'000'000;  ///< latency of one message between nodes
  std::int64_t network_payload_ps_per_kib =
      800'000;  ///< 1 / bandwidth of one process to other nodes while all processes of its node
                ///< send
  std::int64_t processes_per_node =
      0;  ///< processes 0 ... n - 1 of the communicator share a node, and so on; 0: all share one
  /// Percent of the lesser of a transfer and a product that runs meanwhile that costs no time: 0
  /// where the same cores copy the messages, so that the times add; then the calls of products in
  /// rounds on one node are waited for at once. On devices `calibrate` finds it.
  std::int64_t hidden_percent = 0;
  /// Percent of the time of a transfer that it takes with one half going each way around a ring.
  std::int64_t two_way_percent = 100;
  /// Percent of the time of a ring's bytes that as many take which a move between shardings sends
  /// by an all-to-all or point to point: more than 100 where ways are long and share links, as on a
  /// torus or in a thin tree. Network::machine() finds it; `calibrate` says 100.
  std::int64_t all_to_all_percent = 100;
  DeviceOrder order{};  ///< how the mesh lies on the processes; a mesh sets it, files do not

  /// Returns whether all processes of the mesh share one node.
  constexpr bool one_node(const MeshShape& mesh) const {
    return processes_per_node <= 0 || processes_per_node >= mesh.processes();
  }
  constexpr std::int64_t transfer(Index bytes, Index messages, Level level = Level::node) const {
    if (level == Level::core) return copy(bytes);
    const bool far = level == Level::network;
    return detail::saturating_add(
        detail::saturating_mul(messages, far ? network_message_ps : message_ps),
        scaled(bytes, far ? network_payload_ps_per_kib : payload_ps_per_kib, 1024));
  }
  /// Returns the bytes of a ring that take as long as `bytes` that go from all processes to any.
  constexpr Index spread(Index bytes) const {
    return scaled(bytes, max_of(std::int64_t{100}, all_to_all_percent), 100);
  }
  constexpr std::int64_t copy(Index bytes) const { return scaled(bytes, copy_ps_per_kib, 1024); }
  constexpr std::int64_t compute(Index flops, DType type) const {
    // A complex multiply-add takes eight real operations where a real one takes two.
    const DType real = is_complex(type) ? (size_of(type) == 8 ? DType::f32 : DType::f64)
                                        : detail::facts_of(type).compute;
    return scaled(detail::saturating_mul(flops, is_complex(type) ? 4 : 1),
                  real == DType::f32 ? kiloflop_ps_f32 : kiloflop_ps_f64, 1000);
  }
  /// Returns the price of local work: that of its operations or, where memory is slower, of reading
  /// each operand and writing each result once, `bytes` together. Source: Williams, Waterman,
  /// Patterson, "Roofline" (2009).
  constexpr std::int64_t work(Index flops, Index bytes, DType type) const {
    return max_of(compute(flops, type), copy(bytes / 2));
  }
  constexpr bool operator==(const Machine&) const = default;

 private:
  static constexpr std::int64_t scaled(Index amount, std::int64_t price, std::int64_t unit) {
    const std::int64_t units = amount / unit;
    return detail::saturating_add(detail::saturating_mul(units, price),
                                  (amount - units * unit) * price / unit);
  }
};

namespace detail {
/// The numbers of a Machine in the order of their declaration, with their names in files.
inline constexpr std::array<std::pair<const char*, std::int64_t Machine::*>, 11> machine_fields{{
    {"message_ps", &Machine::message_ps},
    {"payload_ps_per_kib", &Machine::payload_ps_per_kib},
    {"copy_ps_per_kib", &Machine::copy_ps_per_kib},
    {"kiloflop_ps_f32", &Machine::kiloflop_ps_f32},
    {"kiloflop_ps_f64", &Machine::kiloflop_ps_f64},
    {"network_message_ps", &Machine::network_message_ps},
    {"network_payload_ps_per_kib", &Machine::network_payload_ps_per_kib},
    {"processes_per_node", &Machine::processes_per_node},
    {"hidden_percent", &Machine::hidden_percent},
    {"two_way_percent", &Machine::two_way_percent},
    {"all_to_all_percent", &Machine::all_to_all_percent},
}};
/// Returns the least value of a number of a Machine that is measured.
constexpr std::int64_t least_value(std::int64_t Machine::*field) {
  return field == &Machine::processes_per_node || field == &Machine::hidden_percent ? 0 : 1;
}
}  // namespace detail

}  // namespace tessera
