// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Means and variances over some dimensions of a local block, in one pass over memory; or squared
/// distances to means that are known, summed.
///
///     // of the rows of a 2 x 3 matrix
///     const detail::LocalReduce rows{.kept = {2}, .kept_strides = {3}, .reduced = {3}, .reduced_strides = {1}};
///     detail::moments(DType::f32, rows, from, nullptr, 1.0 / 3, mean, variance);
///
/// Laws: the bits depend only on the shape, not on threads; no digits cancel where means are large
/// beside deviations; half types are computed in float, which their results are.
#include <tessera/kernel/detail/reduce_host.hpp>
#include <tessera/kernel/device/reduce.hpp>
#include <tessera/kernel/elements.hpp>
#include <tessera/kernel/rows/detail/moments_loops.hpp>
#include <tessera/kernel/scratch.hpp>

namespace tessera::detail {

/// The memory of elements T and of what is made of them; `mean` may be null. With no `centre`
/// distances are to the mean, or to zero.
template <class T> struct MomentsMemory {
  using C = ComputeType<T>;
  using Square = PartType<C>;
  const T* x;
  const C* centre;
  C* mean;
  Square* variance;
  double scale;

  void put(Index output, C base, const Moments<TotalType<T>>& made) const {
    if (mean != nullptr) mean[output] = made.mean(base, scale);
    variance[output] = static_cast<Square>(made.variance(scale));
  }
};

/// Does the part of a thread, as reduce_part.
template <class T, bool About>
[[gnu::noinline]] void moments_part(const HostReduce& work, Index begin, Index end) {
  using Made = Moments<TotalType<T>>;
  using C = ComputeType<T>;
  const ReduceShape& shape = work.shape;
  const auto& memory = *static_cast<const MomentsMemory<T>*>(work.from);
  const auto at = [&](Index output) {
    return memory.x == nullptr ? memory.x : memory.x + shape.kept.offset(output);
  };
  const auto centre = [&](Index output) -> const C* {
    return memory.centre == nullptr ? nullptr : memory.centre + output;
  };
  const auto base = [&](Index output) {
    if constexpr (About) return memory.centre == nullptr ? C{} : memory.centre[output];
    return shape.reduced.size > 0 ? base_of(at(output)) : C{};
  };
  with_wide_vectors<computes_much>([&]() TESSERA_INLINE {
    reduce_items<moments_strip>(
        work, begin, end, Made{}, [](Made& a, const Made& b) TESSERA_INLINE { a.join(b, About); },
        [&](Index output, Index count, Index top, Index bottom, Made* made) TESSERA_INLINE {
          strip_moments<T, About>(shape.reduced, at(output), shape.kept.stride[shape.kept.rank - 1],
                                  count, top, bottom, centre(output), made);
        },
        [&](Index output, Index chunk) TESSERA_INLINE {
          return line_moments<T, About>(shape.reduced, at(output), chunk, base(output));
        },
        [&](Index output, const Made& made)
            TESSERA_INLINE { memory.put(output, base(output), made); });
  });
}

/// On a device: rows whose elements follow each other, by a team each.
template <class T> struct MomentsRow {
  using C = ComputeType<T>;
  using Memory = MomentsMemory<T>;
  struct Found {
    TotalType<T> sum;
    double squares;
  };
  static constexpr int phases = 2;
  OffsetBox kept;
  Index n;
  bool own_mean;
  Memory at;

  KOKKOS_FUNCTION C centre(Index row, const Found& known) const {
    if (own_mean) return scaled<C>(known.sum, at.scale);
    return at.centre == nullptr ? C{} : at.centre[row];
  }
  template <int K>
  KOKKOS_FUNCTION Found find(Index row, Index lane, Index lanes, const Found& known) const {
    const T* const x = at.x + kept.offset(row);
    Found found{known.sum, 0};
    if constexpr (K == 0) {
      if (own_mean)
        found.sum = long_sum_of_lane<TotalType<T>>(x, n, lane, lanes,
                                                   [](T e) { return static_cast<C>(e); });
    } else {
      const C here = centre(row, known);
      found.squares = long_sum_of_lane<double>(
          x, n, lane, lanes, [&](T e) { return squared_size(static_cast<C>(e) - here); });
    }
    return found;
  }
  template <int K> KOKKOS_FUNCTION static Found join(const Found& a, const Found& b) {
    return {K == 0 ? a.sum + b.sum : a.sum, a.squares + b.squares};
  }
  KOKKOS_FUNCTION void finish(Index row, Index lane, Index, const Found& known) const {
    if (lane != 0) return;
    if (own_mean && at.mean != nullptr) at.mean[row] = centre(row, known);
    at.variance[row] = scaled<typename Memory::Square>(known.squares, at.scale);
  }
};

/// On a device: `lanes` threads for each output, as ReduceLanes.
template <class T> struct SquareLanes {
  using C = ComputeType<T>;
  ReduceShape shape;
  Index lanes;
  const T* from;
  const C* centre;
  double* to;
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      const Index output = i % shape.kept.size;
      const T* p = from + shape.kept.offset(output);
      double total = 0;
      const C from_here = centre == nullptr ? C{} : centre[output];
      for (Index e = i / shape.kept.size; e < shape.reduced.size; e += lanes)
        total += static_cast<double>(
            squared_size(static_cast<C>(p[shape.reduced.offset(e)]) - from_here));
      to[i] = total;
    }
  }
};

template <class T>
void moments_on_device(const ReduceShape& shape, bool centred, const MomentsMemory<T>& at) {
  using C = ComputeType<T>;
  const OffsetBox& reduced = shape.reduced;
  const Index outputs = shape.kept.size, length = reduced.size;
  const bool own_mean = at.centre == nullptr && centred;
  if (reduced.rank == 1 && reduced.stride[0] == 1 && row_parts(outputs, length) == 1)
    return launch_rows<T>("tessera::moments", outputs, length,
                          MomentsRow<T>{shape.kept, length, own_mean, at});
  const Scratch<C> made(own_mean && at.mean == nullptr ? outputs : 1);
  const C* centre = at.centre;
  if (own_mean) {
    C* const mean = at.mean != nullptr ? at.mean : made.data();
    reduce_device<Reduction::sum, TotalType<T>>(shape, at.x, mean, at.scale);
    centre = mean;
  }
  const Index lanes = max_of(1, min_of(length / 16, max_of(32, device_threads / outputs)));
  const Scratch<double> squares(outputs * lanes);
  launch("tessera::moments", outputs * lanes, 1,
         SquareLanes<T>{shape, lanes, at.x, centre, squares.data()});
  const ReduceShape next{{1, outputs, {outputs}, {1}}, {1, lanes, {lanes}, {outputs}}};
  reduce_device<Reduction::sum, double>(next, squares.data(), at.variance, at.scale);
}

template <class T>
void moments_elements(const LocalReduce& work, bool centred, const void* from, const void* centre,
                      double scale, void* mean, void* variance) {
  const ReduceShape shape = reduce_shape(work);
  if (shape.kept.size == 0) return;
  using Memory = MomentsMemory<T>;
  const Memory memory{static_cast<const T*>(from), static_cast<const typename Memory::C*>(centre),
                      static_cast<typename Memory::C*>(mean),
                      static_cast<typename Memory::Square*>(variance), scale};
  if constexpr (kernels_on_host)
    reduce_host(shape, &memory, nullptr, scale,
                centred && centre == nullptr ? moments_part<T, false> : moments_part<T, true>,
                sizeof(Moments<TotalType<T>>), moments_strip);
  else
    moments_on_device<T>(shape, centred, memory);
}

/// The kernel of means and variances, of real and complex elements.
struct MomentsKernels {
  void (*run)(const LocalReduce& work, bool centred, const void* from, const void* centre,
              double scale, void* mean, void* variance);
  template <class T> static constexpr bool has = RealElement<T> || ComplexElement<T>;
  template <class T> static constexpr MomentsKernels of() { return {&moments_elements<T>}; }
};

TESSERA_KERNEL_KIND(MomentsKernels)

/// Writes, for each element that is kept, the sum of what is reduced to it times `scale` (1 / n
/// makes a mean), and the sum of squared distances to the mean, times `scale`. With `centre`, which
/// has an element for each that is kept, the distances are to it; where they are not `centred`, to
/// zero. `mean` may be null, and is not written in these two cases. Both are of the type that
/// elements are computed in; squares are real. Communication: none.
inline void moments(DType type, const LocalReduce& work, const void* from, const void* centre,
                    double scale, void* mean, void* variance, bool centred = true) {
  kernels_of<MomentsKernels>(type).run(work, centred, from, centre, scale, mean, variance);
}
}  // namespace tessera::detail
