// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What one process has communicated: calls, messages and payload, by kind and by group. The
/// numbers are a function of the calls (mesh/call.hpp), so that they can be compared exactly with a
/// plan's.
///
///     ledger.payload_bytes(all_gather);   ledger.payload_bytes(AxisSet{1});
///     ledger.count(all_reduce)
///
/// Laws: totals are the sums over kinds and groups; a dry run and a real run of the same program
/// have the same ledger, except for shared_bytes(), the payload that went through a node's shared
/// memory (comm/shared/setting.hpp).
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tessera/mesh/call.hpp>

namespace tessera {

struct Traffic {
  Index calls = 0;
  Index messages = 0;
  Index payload_bytes = 0;
  Index network_bytes = 0;  ///< the part of the payload that goes between nodes

  constexpr Traffic& operator+=(const Traffic& other) {
    calls += other.calls;
    messages += other.messages;
    payload_bytes += other.payload_bytes;
    network_bytes += other.network_bytes;
    return *this;
  }
  constexpr bool operator==(const Traffic&) const = default;
};

class Ledger {
 public:
  void add(const Call& call) {
    cell(call.kind, call.group.spanned()) +=
        Traffic{1, detail::message_count(call), tessera::detail::payload_bytes(call),
                tessera::detail::network_bytes(call)};
    if (recording_) calls_.push_back(call);
  }

  void add_shared_bytes(Index bytes) { shared_bytes_ += bytes; }

  /// Starts or stops keeping a copy of every call; copies stay until reset().
  void record_calls(bool on) { recording_ = on; }
  const std::vector<Call>& calls() const { return calls_; }

  /// Forgets everything; recording stays on or off.
  void reset() {
    for (auto& row : cells_) row.fill({});
    calls_.clear();
    shared_bytes_ = 0;
  }

  const Traffic& of(Collective kind, AxisSet group) const {
    return cells_[static_cast<std::size_t>(kind)][group.bits % groups];
  }
  Traffic of(Collective kind) const {
    Traffic sum;
    for (const Traffic& traffic : cells_[static_cast<std::size_t>(kind)]) sum += traffic;
    return sum;
  }
  /// Returns the traffic over exactly the axes of `group`; a part of an axis counts as the axis.
  Traffic of(AxisSet group) const {
    Traffic sum;
    for (const auto& row : cells_) sum += row[group.bits % groups];
    return sum;
  }
  /// Returns the traffic of all groups that span `axis`, those over several axes included.
  Traffic over_axis(int axis) const {
    Traffic sum;
    for (std::uint32_t bits = 0; bits < groups; ++bits)
      if (AxisSet::from_bits(bits).contains(axis)) sum += of(AxisSet::from_bits(bits));
    return sum;
  }
  Traffic total() const {
    Traffic sum;
    for (int kind = 0; kind < detail::collective_kinds; ++kind)
      sum += of(static_cast<Collective>(kind));
    return sum;
  }

  Index count(Collective kind) const { return of(kind).calls; }
  Index payload_bytes() const { return total().payload_bytes; }
  Index payload_bytes(Collective kind) const { return of(kind).payload_bytes; }
  Index payload_bytes(AxisSet group) const { return of(group).payload_bytes; }
  Index payload_bytes(Collective kind, AxisSet group) const {
    return of(kind, group).payload_bytes;
  }
  /// Returns the bytes of payload that went between nodes, by the machine model.
  Index network_bytes() const { return total().network_bytes; }
  /// Returns the bytes of payload that went through shared memory.
  Index shared_bytes() const { return shared_bytes_; }

 private:
  static constexpr std::uint32_t groups = 1u << max_axes;
  Traffic& cell(Collective kind, AxisSet group) {
    return cells_[static_cast<std::size_t>(kind)][group.bits % groups];
  }

  std::array<std::array<Traffic, groups>, detail::collective_kinds> cells_{};
  std::vector<Call> calls_;
  Index shared_bytes_ = 0;
  bool recording_ = false;
};

}  // namespace tessera
