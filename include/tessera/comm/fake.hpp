// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The transport of one process of many without the others: it computes its own blocks, and takes
/// what it sends for what it would receive. So one core measures how long a process of a thousand
/// works.
///
///     const auto mesh = make_mesh<Grid>(fake_transport(1024, 17), 64, 16);   // process 17 of 1024
///     Tracing tracing(mesh);
///     step(weights, batch);
///     simulate(tracing.take(), network)      // program/network/timing.hpp: the step on a network
///
/// Laws: no call waits. Elements that are received are some of those that this process sends in the
/// call, again and again where it sends fewer, and zeros where it sends none; a reduction gives
/// this process's own part. So numbers mean nothing, but indices stay in range. What processes say
/// of themselves is what this one says; files of all processes are not written. Source: the fake
/// process group of PyTorch's distributed tests, whose collectives touch no buffers.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/dtype.hpp>
#include <tessera/comm/dry.hpp>

namespace tessera {
namespace detail {

class FakeGroup final : public Group {
 public:
  FakeGroup(int own, int size) : own_(own), size_(size) {}
  int own() const override { return own_; }
  int size() const override { return size_; }
  void run(const Call& call, const void* send, void* receive) override {
    if (call.in_place) return;
    const auto size = static_cast<Index>(size_of(call.type));
    for (const Piece& piece : call.receive) {
      if (call.own_stays && piece.peer == own_) continue;
      const Piece* from = source(call, piece);
      repeat(static_cast<std::byte*>(receive) + piece.offset * size, piece.count * size,
             from == nullptr ? nullptr : static_cast<const std::byte*>(send) + from->offset * size,
             from == nullptr ? 0 : from->count * size);
    }
  }

 private:
  /// Returns the piece that is received in place of `piece`: what this process sends to the same
  /// member, in a reduction its own part, else the first that it sends; null: it sends nothing.
  const Piece* source(const Call& call, const Piece& piece) const {
    const int member = reduces(call.kind) ? own_ : piece.peer;
    const Piece* first = nullptr;
    for (const Piece& sent : call.send) {
      if (sent.count == 0) continue;
      if (sent.peer == member) return &sent;
      if (first == nullptr) first = &sent;
    }
    return first;
  }
  /// Fills `to` with `count` bytes at `from`, again and again.
  static void repeat(std::byte* to, Index bytes, const std::byte* from, Index count) {
    if (count == 0) std::memset(to, 0, static_cast<std::size_t>(bytes));
    for (Index done = 0; count > 0 && done < bytes; done += count)
      std::memcpy(to + done, from, static_cast<std::size_t>(std::min(count, bytes - done)));
  }

  int own_;
  int size_;
};

class FakeTransport final : public DryTransport {
 public:
  using DryTransport::DryTransport;
  std::string name() const override { return "fake"; }
  bool dry() const override { return false; }
  bool alone() const override { return true; }
  std::shared_ptr<Group> group(const std::vector<int>& members, std::uint64_t) override {
    return std::make_shared<FakeGroup>(own_among(members), static_cast<int>(members.size()));
  }

 protected:
  std::shared_ptr<Transport> among_these(std::vector<int> processes, int process,
                                         const TransportSettings& settings) override {
    return std::make_shared<FakeTransport>(std::move(processes), process, settings);
  }
};

}  // namespace detail

/// Returns the transport of process `process` of `size`, without the others. Communication: none.
/// Throws UsageError when there is no such process.
inline std::shared_ptr<Transport> fake_transport(int size, int process = 0,
                                                 Where where = Where::here()) {
  detail::require_process("fake", size, process, where);
  return std::make_shared<detail::FakeTransport>(detail::all_members(size), process,
                                                 TransportSettings{});
}

}  // namespace tessera
