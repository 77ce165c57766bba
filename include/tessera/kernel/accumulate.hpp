// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Adds boxes of elements to elements elsewhere, between strided layouts. The adjoint of a halo
/// adds the elements that come back with it.
///
///     detail::use_accumulate<float>();
///     detail::accumulate(DType::f32, from, to, boxes.data(), 2);    // to += from, box after box
///
/// Laws: boxes are added in their order, also where their targets overlap: the same bits every
/// time.
#include <tessera/base/local_work.hpp>
#include <tessera/kernel/copy/copy_box.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/elements.hpp>

namespace tessera::detail {

/// Rows of a box: all dimensions but the last.
template <class From, class T> struct AccumulateRows {
  const From* from;
  T* to;
  CopyBox box;
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    const CopyDim inner = box.dim[box.rank - 1];
    using F = Fold<Reduction::sum, ComputeType<T>>;
    for (Index row = begin; row < end; ++row) {
      Index f, t;
      box.locate(row * inner.extent, f, t);
      for (Index i = 0; i < inner.extent; ++i)
        to[t + i * inner.to] =
            static_cast<T>(F::join(static_cast<ComputeType<T>>(to[t + i * inner.to]),
                                   static_cast<ComputeType<T>>(from[f + i * inner.from])));
    }
  }
};

template <class From, class T>
void accumulate_elements(const void* from, void* to, const StridedCopy* copies, int count) {
  for (int c = 0; c < count; ++c) {
    const CopyBox box = collapse_copy(copies[c]);
    if (box.size == 0) continue;
    const Index inner = box.dim[box.rank - 1].extent;
    launch("tessera::accumulate", box.size / inner, max_of(1, 32768 / inner),
           AccumulateRows<From, T>{static_cast<const From*>(from), static_cast<T*>(to), box});
  }
}

struct AccumulateKernels {
  void (*run)(const void* from, void* to, const StridedCopy* copies, int count);
  template <class T> static constexpr bool has = NumberElement<T>;
  template <class T> static constexpr AccumulateKernels of() {
    return {&accumulate_elements<T, ComputeType<T>>};
  }
};

/// Adds `count` boxes of one buffer to another, one after the other; boxes of half types go to a
/// buffer of floats. Communication: none. Throws UsageError when the program has no such kernel for
/// elements of `type`.
inline void accumulate(DType type, const void* from, void* to, const StridedCopy* copies,
                       int count) {
  kernels_of<AccumulateKernels>(type).run(from, to, copies, count);
}
}  // namespace tessera::detail
