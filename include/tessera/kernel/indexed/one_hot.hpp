// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Writes one where an index says, and zero elsewhere.
///
///     detail::one_hot(DType::f32, work, indices, DType::i64, out);
///
/// Laws: a row whose index lies outside its dimension is all zeros.
#include <tessera/base/local_index.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/elements.hpp>
#include <tessera/kernel/functions/number.hpp>

namespace tessera::detail {
template <class T> struct OneHot {
  int rank, along;
  Index first;
  Index extent[max_dims], stride[max_dims];
  const void* indices;
  bool wide;
  T* out;

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      Index rest = i, at = first, where = 0;
      for (int d = rank - 1; d >= 0; --d) {
        const Index c = rest % extent[d];
        if (d == along) at += c;
        where += c * stride[d];
        rest /= extent[d];
      }
      const Index index = wide ? static_cast<const std::int64_t*>(indices)[where]
                               : static_cast<const std::int32_t*>(indices)[where];
      out[i] = index == at ? T(1) : T(0);
    }
  }
};

template <class T>
void one_hot_elements(const LocalOneHot& work, const void* indices, DType type, void* out) {
  OneHot<T> kernel{work.extents.size(), work.along,          work.first, {}, {}, indices,
                   type == DType::i64,  static_cast<T*>(out)};
  for (int d = 0; d < kernel.rank; ++d) {
    kernel.extent[d] = work.extents[d];
    kernel.stride[d] = work.strides[d];
  }
  launch("tessera::one_hot", volume(work.extents), 8192, kernel);
}

struct OneHotKernels {
  void (*run)(const LocalOneHot& work, const void* indices, DType type, void* out);
  template <class T> static constexpr bool has = true;
  template <class T> static constexpr OneHotKernels of() {
    return {&one_hot_elements<ModularType<T>>};
  }
};

/// Writes a contiguous block. `index_type` is int32 or int64. Communication: none.
inline void one_hot(DType type, const LocalOneHot& work, const void* indices, DType index_type,
                    void* out) {
  kernels_of<OneHotKernels>(type).run(work, indices, index_type, out);
}
}  // namespace tessera::detail
