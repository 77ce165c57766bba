// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Rows on a device, each by a team of threads (a block of a GPU), which share what they find: the
/// row is read from memory once, and from a cache after that. A body has `phases` things to find,
/// one after the other, and finishes the row when it knows them all. Its lanes take elements that
/// lie side by side: lane l of a team of `lanes` takes l, l + lanes, and so on.
///
///     struct Body {
///       struct Found { float greatest; };
///       static constexpr int phases = 1;
///       template <int K> KOKKOS_FUNCTION Found find(Index row, Index lane, Index lanes, const Found& known) const;
///       template <int K> static KOKKOS_FUNCTION Found join(const Found& a, const Found& b);
///       KOKKOS_FUNCTION void finish(Index row, Index lane, Index lanes, const Found& known) const;
///     };
///     launch_rows<float>("tessera::rows", rows, n, Body{x, y});
///
/// Laws: the bytes of a row alone give the number of lanes, so the order of joins is fixed. Where
/// the device has no teams, or rows are short, a thread does the work of all lanes of a row.
#include <limits>

#include <tessera/kernel/detail/launch.hpp>

namespace tessera::detail {

/// Whether a team of the space's threads runs on one processor with a cache of its own.
template <class Space> inline constexpr bool has_teams = false;
#if defined(KOKKOS_ENABLE_CUDA)
template <> inline constexpr bool has_teams<Kokkos::Cuda> = true;
#endif
#if defined(KOKKOS_ENABLE_HIP)
template <> inline constexpr bool has_teams<Kokkos::HIP> = true;
#endif

/// Returns the largest power of two that is not above n, from 32 to 256.
inline Index lanes_within(Index n) {
  Index lanes = 32;
  while (lanes < 256 && 2 * lanes <= n) lanes *= 2;
  return lanes;
}
/// Returns how many lanes share a row of n elements of `size` bytes, which is read `times` times: a
/// lane has as many bytes as joining its finds with the others' is worth; a processor's cache holds
/// fewer of the rows that are read again.
inline Index row_lanes(Index n, Index size, int times) {
  return n < 64 ? 1 : lanes_within(n * size / (times > 1 ? 64 : 128));
}

/// What Kokkos joins over a team in phase K.
template <class Body, int K> struct FoundJoin {
  using reducer = FoundJoin;
  using value_type = typename Body::Found;
  using result_view_type = Kokkos::View<value_type, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  value_type* found;
  KOKKOS_FUNCTION void join(value_type& a, const value_type& b) const {
    a = Body::template join<K>(a, b);
  }
  KOKKOS_FUNCTION void init(value_type& value) const { value = *found; }
  KOKKOS_FUNCTION value_type& reference() const { return *found; }
};

/// The phases of a row, by its team.
template <class Body> struct RowTeams {
  Body body;
  Index first;
  template <class Member> KOKKOS_FUNCTION void operator()(const Member& team) const {
    typename Body::Found found{};
    find_from<0>(team, first + team.league_rank(), found);
    body.finish(first + team.league_rank(), team.team_rank(), team.team_size(), found);
  }
  template <int K, class Member>
  KOKKOS_FUNCTION void find_from(const Member& team, Index row, typename Body::Found& found) const {
    if constexpr (K < Body::phases) {
      found = body.template find<K>(row, team.team_rank(), team.team_size(), found);
      team.team_reduce(FoundJoin<Body, K>{&found});
      find_from<K + 1>(team, row, found);
    }
  }
};

/// Runs the body on one thread, which does the work of all lanes.
template <class Body> struct RowAlone {
  Body body;
  Index lanes;
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index row = begin; row < end; ++row) {
      typename Body::Found found{};
      find_from<0>(row, found);
      for (Index lane = 0; lane < lanes; ++lane) body.finish(row, lane, lanes, found);
    }
  }
  template <int K> KOKKOS_FUNCTION void find_from(Index row, typename Body::Found& found) const {
    if constexpr (K < Body::phases) {
      found = all_of<K>(row, 0, lanes, found);
      find_from<K + 1>(row, found);
    }
  }
  /// Joins the lanes in pairs, as a team does. (Where there are teams a row here has one lane.)
  template <int K>
  KOKKOS_FUNCTION typename Body::Found all_of(Index row, Index first, Index count,
                                              const typename Body::Found& known) const {
    if constexpr (!has_teams<KernelSpace>)
      if (count > 1)
        return Body::template join<K>(all_of<K>(row, first, count / 2, known),
                                      all_of<K>(row, first + count / 2, count - count / 2, known));
    return body.template find<K>(row, first, lanes, known);
  }
};

/// Runs a kernel by so many teams of `lanes` threads that share `scratch` bytes: kernel(team),
/// whose member `first` is the number of the launch's first team.
template <class Kernel, class Space = KernelSpace>
void launch_teams(const char* label, Index teams, Index lanes, Index scratch, Kernel kernel) {
  constexpr Index most = std::numeric_limits<int>::max();  // of a launch
  for (kernel.first = 0; kernel.first < teams; kernel.first += most) {
    Kokkos::TeamPolicy<Space> policy(lane().space(),
                                     static_cast<int>(min_of(most, teams - kernel.first)),
                                     static_cast<int>(lanes));
    if (scratch > 0)  // and what aligning it takes
      policy.set_scratch_size(0, Kokkos::PerTeam(static_cast<int>(scratch + 16)));
    Kokkos::parallel_for(label, policy, kernel);
  }
}

/// Runs a body over `rows` rows of n elements T.
template <class T, class Body>
void launch_rows(const char* label, Index rows, Index n, const Body& body) {
  const Index lanes = row_lanes(n, Index{sizeof(T)}, Body::phases);
  if constexpr (has_teams<KernelSpace>)
    if (lanes > 1) return launch_teams(label, rows, lanes, 0, RowTeams<Body>{body, 0});
  launch(label, rows, 1, RowAlone<Body>{body, lanes});
}

}  // namespace tessera::detail
