// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What the kernel tests share: memory where kernels run, random small extents, and loops over
/// boxes.
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <Kokkos_Core.hpp>

#include <tessera/base/box.hpp>
#include <tessera/kernel/fence.hpp>

namespace test {
using tessera::Extents;
using tessera::Index;

/// Elements in the memory of the kernels.
template <class T> class Buffer {
 public:
  explicit Buffer(const std::vector<T>& values) : view_("buffer", values.size()) {
    const auto host = Kokkos::create_mirror_view(view_);
    for (std::size_t i = 0; i < values.size(); ++i) host(i) = values[i];
    if constexpr (!tessera::kernels_on_host) Kokkos::deep_copy(view_, host);
  }
  T* data() const { return view_.data(); }
  std::vector<T> values() const {
    tessera::detail::fence();
    const auto host = Kokkos::create_mirror_view(view_);
    if constexpr (!tessera::kernels_on_host) Kokkos::deep_copy(host, view_);
    return std::vector<T>(host.data(), host.data() + host.size());
  }

 private:
  Kokkos::View<T*, tessera::KernelMemory> view_;
};

using Random = std::mt19937;

inline Index pick(Random& random, Index lo, Index hi) {
  return std::uniform_int_distribution<Index>(lo, hi)(random);
}

/// Small whole numbers, so that sums in any order and type are exact.
template <class T> std::vector<T> small_numbers(Random& random, Index n) {
  std::vector<T> values(static_cast<std::size_t>(n));
  for (T& value : values) value = static_cast<T>(static_cast<std::int8_t>(pick(random, -9, 9)));
  return values;
}

/// Extents with 1 and, now and then, 0 among them.
inline Extents some_extents(Random& random, int dims, Index longest) {
  Extents extents;
  for (int d = 0; d < dims; ++d)
    extents.push_back(pick(random, 0, 30) == 0 ? 0 : pick(random, 1, longest));
  return extents;
}

/// Strides of a dense block whose dimensions lie in random order, now and then with gaps.
inline Extents some_strides(Random& random, const Extents& extents) {
  std::vector<int> order;
  for (int d = 0; d < extents.size(); ++d)
    order.insert(order.begin() +
                     static_cast<std::ptrdiff_t>(pick(random, 0, static_cast<Index>(order.size()))),
                 d);
  Extents strides(extents.size(), 0);
  Index next = 1;
  for (const int d : order) {
    strides[d] = next;
    next *= tessera::max_of(1, extents[d]) + (pick(random, 0, 3) == 0 ? 1 : 0);
  }
  return strides;
}

/// How many elements a block with these strides spans.
inline Index span(const Extents& extents, const Extents& strides) {
  Index last = 0;
  for (int d = 0; d < extents.size(); ++d) last += tessera::max_of(0, extents[d] - 1) * strides[d];
  return last + 1;
}

/// Calls f(index) for every index of a box, in row-major order.
template <class F> void for_each_index(const Extents& extents, F f) {
  if (tessera::volume(extents) == 0) return;
  Extents index(extents.size(), 0);
  for (;;) {
    f(static_cast<const Extents&>(index));
    int d = extents.size() - 1;
    for (; d >= 0; --d) {
      if (++index[d] < extents[d]) break;
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

inline std::size_t at(const Extents& index, const Extents& strides, Index offset = 0) {
  for (int d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
  return static_cast<std::size_t>(offset);
}

}  // namespace test
