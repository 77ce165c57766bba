// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Sorts many lines of middling length on a CUDA device: each by a block of threads, in its shared
/// memory, by CUB's radix sort of a block, which is stable.
///
///     if (sort_by_blocks(work, from, values, positions)) return;
///
/// Laws: equal keys keep their order.
#include <Kokkos_Core.hpp>

#if defined(KOKKOS_ENABLE_CUDA)
#include <cstdint>
#include <string>

#include <cub/block/block_radix_sort.cuh>

#include <tessera/base/error.hpp>
#include <tessera/base/local_work.hpp>
#include <tessera/kernel/detail/position_array.hpp>
#include <tessera/kernel/detail/sort_key.hpp>
#include <tessera/kernel/lane.hpp>

namespace tessera::detail {

/// A line by a block, each thread of which has Items of its keys and their places.
template <class T, int Items> struct SortBlock {
  static constexpr int threads = 256, most = threads * Items;
  using Key = SortKey<T>;
  using Sort = cub::BlockRadixSort<Key, threads, Items, std::uint16_t>;
  LocalSort work;
  const T* from;
  T* values;
  PositionArray positions;

  __device__ void run(Index line, typename Sort::TempStorage& memory) const {
    const T* const x = from + line / work.inner * work.n * work.inner + line % work.inner;
    const Index to = line / work.inner * work.limit * work.inner + line % work.inner;
    const int thread = static_cast<int>(threadIdx.x), n = static_cast<int>(work.n);
    Key key[Items];
    std::uint16_t place[Items];
    for (int j = 0; j < Items; ++j) {
      const int k = thread * Items + j;
      place[j] = static_cast<std::uint16_t>(k);  // elements beyond the line come after all others
      key[j] = static_cast<Key>(~Key{0});
      if (k < n) {
        const T e = x[k * work.inner];
        key[j] = values != nullptr ? total_key(e, work.descending) : sort_key(e, work.descending);
      }
    }
    Sort(memory).SortBlockedToStriped(key, place);
    for (int j = 0; j < Items; ++j) {
      const Index rank = j * threads + thread;
      if (rank >= work.limit) break;
      const bool there = rank < work.n;
      const Index at = to + rank * work.inner;
      if (values != nullptr) values[at] = there ? x[place[j] * work.inner] : T{};
      if (positions.there())
        positions.set(at, there ? work.first + static_cast<Index>(place[j]) : no_position);
    }
  }
};

template <class Block> __global__ void __launch_bounds__(Block::threads) sort_block(Block block) {
  __shared__ typename Block::Sort::TempStorage memory;
  block.run(static_cast<Index>(blockIdx.x), memory);
}

template <class Block> void launch_block(const Block& block) {
  const auto lines = static_cast<unsigned>(block.work.outer * block.work.inner);
  sort_block<<<lines, Block::threads, 0, lane().space().cuda_stream()>>>(block);
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess)
    throw Error(std::string("sorting on the device failed: ") + cudaGetErrorString(status));
}

/// Sorts lines whose elements are all there. Returns false where lines are not many, or too short
/// or too long.
template <class T>
bool sort_by_blocks(const LocalSort& work, const T* from, T* values, PositionArray positions) {
  using Short = SortBlock<T, 4>;
  using Long = SortBlock<T, 16>;
  if (work.n < 256 || work.n > Long::most || work.limit > work.n || work.outer * work.inner < 64)
    return false;
  if (work.n <= Short::most)
    launch_block(Short{work, from, values, positions});
  else
    launch_block(Long{work, from, values, positions});
  return true;
}

}  // namespace tessera::detail
#endif
