// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Running joins on a device: lines are cut into pieces until there is work for all threads. The
/// pieces' totals are found, and run along in turn; then each piece is run along from what comes
/// before it: by a team where elements of a line follow each other, else by a thread.
///
///     scan_device("tessera::scan", join, {.outer = 2, .n = 3}, from, earlier, to);
///
/// Laws: the shape alone gives the pieces, so the order of joins is fixed.
#include <tessera/base/local_work.hpp>
#include <tessera/kernel/device/packs.hpp>
#include <tessera/kernel/device/reduce.hpp>
#include <tessera/kernel/scratch.hpp>

namespace tessera::detail {

/// How the elements of a line follow each other.
struct ScanOrder {
  Index n;
  bool backwards;  ///< the last comes first
  bool exclusive;  ///< an element's result is the join of those before it
};

/// An index is a piece of a line. Writes results, from `starts` or from what is earlier than the
/// line; or, where `totals` is not null, the join of the piece alone.
template <class Join, class T, class Early, class Out> struct ScanPieces {
  using Total = typename Join::Total;
  Join join;
  LocalScan work;
  ScanOrder order;
  Index pieces, length;
  const T* from;
  const Early* earlier;
  const Total* starts;
  Out* to;
  Total* totals;

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      const Index column = i % work.inner, outer = i / work.inner / pieces;
      const Index first = i / work.inner % pieces * length, last = min_of(order.n, first + length);
      Total total = start(i);
      for (Index k = first; k < last; ++k) {
        const Index row = order.backwards ? order.n - 1 - k : k;
        const Index at = (outer * order.n + row) * work.inner + column;
        const Total joined = join(total, static_cast<Total>(from[at]));
        if (totals == nullptr) to[at] = static_cast<Out>(order.exclusive ? total : joined);
        total = joined;
      }
      if (totals != nullptr) totals[i] = total;
    }
  }
  /// Returns what comes before piece i: of totals nothing.
  KOKKOS_FUNCTION Total start(Index i) const {
    if (starts != nullptr) return starts[i];
    return totals != nullptr ? join.start() : before(i / work.inner / pieces, i % work.inner);
  }
  KOKKOS_FUNCTION Total before(Index outer, Index column) const {
    Total total = join.start();
    for (Index k = work.earlier.lo; k < work.earlier.hi; ++k) {
      const Index part = work.reverse ? work.earlier.lo + work.earlier.hi - 1 - k : k;
      total = join(total,
                   static_cast<Total>(earlier[(outer * work.parts + part) * work.inner + column]));
    }
    return total;
  }
};

/// A team runs along a piece in chunks: each thread along a few elements, then all along the
/// threads' totals (Hillis and Steele, "Data parallel algorithms", 1986).
template <class Join, class T, class Early, class Out> struct ScanTeams {
  using Pieces = ScanPieces<Join, T, Early, Out>;
  using Total = typename Join::Total;
  static constexpr int width = sizeof(T) > 8 ? 4 : 8;  ///< elements of a thread, of some packs
  static constexpr int some = pack_size<T> < width ? pack_size<T> : width;
  Pieces all;
  Index first;

  template <class Member> KOKKOS_FUNCTION void operator()(const Member& team) const {
    const Index lane = team.team_rank(), lanes = team.team_size();
    const std::size_t bytes = 2 * static_cast<std::size_t>(lanes) * sizeof(Total);
    Total* shared =
        static_cast<Total*>(team.team_scratch(0).get_shmem_aligned(bytes, alignof(Total)));
    const Index i = first + team.league_rank();
    const Index line = i / all.pieces, begin = i % all.pieces * all.length;
    const Index end = min_of(all.order.n, begin + all.length);
    Total running = all.start(i);
    Total* next = shared + lanes;
    for (Index chunk = begin; chunk < end; chunk += lanes * width) {
      const Index own = chunk + lane * width, count = min_of(width, end - own);
      Total made[width];
      read(line, own, count, made);
      for (int j = 1; j < width; ++j) made[j] = all.join(made[j - 1], made[j]);
      Total whole = made[width - 1];
      shared[lane] = whole;
      for (Index apart = 1; apart < lanes;
           apart *= 2) {  // from one half of the memory to the other
        team.team_barrier();
        if (lane >= apart) whole = all.join(shared[lane - apart], whole);
        next[lane] = whole;
        swap(shared, next);
      }
      team.team_barrier();
      const Total before = lane > 0 ? all.join(running, shared[lane - 1]) : running;
      if (all.totals == nullptr) write(line, own, count, before, made);
      running = all.join(running, shared[lanes - 1]);
      swap(shared, next);  // all have read the other half
    }
    if (all.totals != nullptr && lane == 0) all.totals[i] = running;
  }

 private:
  KOKKOS_FUNCTION static void swap(Total*& a, Total*& b) {
    Total* const was = a;
    a = b;
    b = was;
  }
  KOKKOS_FUNCTION Index at(Index line, Index k) const {
    return line * all.order.n + (all.order.backwards ? all.order.n - 1 - k : k);
  }
  /// Elements beyond the piece are the identity.
  KOKKOS_FUNCTION void read(Index line, Index own, Index count, Total (&made)[width]) const {
    const T* const x = all.from + at(line, own);
    if (!all.order.backwards && count == width && is_packed<some>(x)) {
      for (int p = 0; p < width; p += some) {
        const Pack<T, some> pack = load_pack<some>(x + p);
        for (int j = 0; j < some; ++j) made[p + j] = static_cast<Total>(pack.of[j]);
      }
      return;
    }
    for (int j = 0; j < width; ++j)
      made[j] = j < count ? static_cast<Total>(all.from[at(line, own + j)]) : all.join.start();
  }
  /// Writes what the elements make with those before them.
  KOKKOS_FUNCTION void write(Index line, Index own, Index count, const Total& before,
                             const Total (&made)[width]) const {
    Out* const y = all.to + at(line, own);
    const int earlier = all.order.exclusive ? 1 : 0;
    if (!all.order.backwards && count == width && is_packed<some>(y)) {
      for (int p = 0; p < width; p += some) {
        Pack<Out, some> pack;
        for (int j = 0; j < some; ++j) pack.of[j] = result(before, made, p + j, earlier);
        store_pack<some>(y + p, pack);
      }
      return;
    }
    for (int j = 0; j < width; ++j)
      if (j < count) all.to[at(line, own + j)] = result(before, made, j, earlier);
  }
  KOKKOS_FUNCTION Out result(const Total& before, const Total (&made)[width], int j,
                             int earlier) const {
    if (earlier == 0) return static_cast<Out>(all.join(before, made[j]));
    return static_cast<Out>(j == 0 ? before : all.join(before, made[j - 1]));
  }
};

/// Runs along all pieces, by teams if there are some and they pay.
template <class Join, class T, class Early, class Out>
void launch_pieces(const char* label, const ScanPieces<Join, T, Early, Out>& pieces) {
  const Index count = pieces.work.outer * pieces.work.inner * pieces.pieces;
  if constexpr (has_teams<KernelSpace>) {
    using Teams = ScanTeams<Join, T, Early, Out>;
    const Index lanes = lanes_within(pieces.length / Teams::width);
    if (pieces.work.inner == 1 && pieces.length >= 32 * Teams::width)
      return launch_teams(label, count, lanes, 2 * lanes * Index{sizeof(typename Join::Total)},
                          Teams{pieces, 0});
  }
  launch(label, count, 1, pieces);
}

/// Returns into how many pieces each line is cut.
inline Index scan_pieces(const LocalScan& work, Index n) {
  const Index lines = work.outer * work.inner;
  if (has_teams<KernelSpace> && work.inner == 1 && n >= 1024) return row_parts(lines, n);
  return max_of(1, min_of(n / 64, device_threads / lines));
}

template <class Join, class T, class Early, class Out>
void scan_device(const char* label, const Join& join, const LocalScan& work, const ScanOrder& order,
                 const T* from, const Early* earlier, Out* to) {
  using Total = typename Join::Total;
  using Pieces = ScanPieces<Join, T, Early, Out>;
  const Index lines = work.outer * work.inner;
  if (lines == 0 || order.n == 0) return;
  Index pieces = scan_pieces(work, order.n);
  if (pieces == 1)
    return launch_pieces(
        label, Pieces{join, work, order, 1, order.n, from, earlier, nullptr, to, nullptr});
  const Index length = ceil_div(order.n, pieces);
  pieces = ceil_div(order.n, length);
  const Scratch<Total> totals(lines * pieces), starts(lines * pieces);
  launch_pieces(
      label, Pieces{join, work, order, pieces, length, from, earlier, nullptr, to, totals.data()});
  scan_device(label, join, work, ScanOrder{pieces, false, true}, totals.data(), earlier,
              starts.data());
  launch_pieces(
      label, Pieces{join, work, order, pieces, length, from, earlier, starts.data(), to, nullptr});
}

}  // namespace tessera::detail
