// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// An MPI call in progress, with everything to which its requests refer.
///
///     auto pending = std::make_unique<MpiPending>(handles, context, settings);
///     pending->requests.push_back(request);
///
/// Laws: counts and displacements live as long as the requests.
#include <mpi.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <tessera/comm/mpi/detail/calls.hpp>
#include <tessera/comm/mpi/detail/context.hpp>

namespace tessera::detail {

/// Counts and displacements of the v-forms, kept so that a call allocates nothing.
template <class Calls> struct MpiRows {
  std::vector<typename Calls::Count> send_counts;
  std::vector<typename Calls::Shift> send_shifts;
  std::vector<typename Calls::Count> receive_counts;
  std::vector<typename Calls::Shift> receive_shifts;
};

/// Sets them from the pieces of a call, for a group of `size`.
template <class Count, class Shift>
void fill_rows(const std::vector<Piece>& pieces, int size, std::vector<Count>& counts,
               std::vector<Shift>& shifts) {
  counts.assign(static_cast<std::size_t>(size), 0);
  shifts.assign(static_cast<std::size_t>(size), 0);
  for (const Piece& piece : pieces) {
    counts[static_cast<std::size_t>(piece.peer)] = static_cast<Count>(piece.count);
    shifts[static_cast<std::size_t>(piece.peer)] = static_cast<Shift>(piece.offset);
  }
}

/// Whether a count or an offset of a call is more than `most`. The answer is the same on all
/// members, which must make the same calls: for an uneven all-to-all without a known bound, the
/// caller must ensure that.
inline bool is_large(const Call& call, Index most) {
  if (call.bound > 0) return call.bound > most;
  for (const auto* pieces : {&call.send, &call.receive})
    for (const Piece& piece : *pieces)
      if (piece.count > most || piece.offset > most) return true;
  return false;
}

/// Requests in progress, with everything to which they refer.
struct MpiPending final : PendingCall {
  MpiPending(std::shared_ptr<MpiHandles> handles, std::shared_ptr<MpiContext> context,
             const TransportSettings& settings)
      : handles_(std::move(handles)), context_(std::move(context)), settings_(settings) {}
  bool done() override {
    if (!MpiContext::done(requests.data(), static_cast<int>(requests.size()), "MPI_Test"))
      return false;
    requests.clear();
    return true;
  }
  void wait() override {
    if (requests.empty()) return;
    const MpiContext::Watched watched(*context_, settings_.time_limit);
    context_->wait(requests.data(), static_cast<int>(requests.size()), settings_.wait, "MPI_Wait");
    requests.clear();
  }
  std::vector<MPI_Request> requests;
  MpiRows<SmallCalls> small;
#if TESSERA_MPI_LARGE_COUNTS
  MpiRows<LargeCalls> large;
#endif

 private:
  std::shared_ptr<MpiHandles> handles_;
  std::shared_ptr<MpiContext> context_;
  TransportSettings settings_;
};

}  // namespace tessera::detail
