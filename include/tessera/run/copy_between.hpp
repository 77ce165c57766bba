// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Copies between kernel memory and host memory, in any direction, for tensors that one process has
/// whole on its host. Where the kernels run on the host, both are the same memory and nothing here
/// costs anything.
///
///     copy_between(DType::f32, {pointer, true}, {block, false}, &box, 1);   // host to device
///
/// Laws: the same elements arrive whichever memory each side lies in.
#include <cstdint>
#include <cstring>
#include <vector>

#include <tessera/comm/device_memory.hpp>
#include <tessera/kernel/copy/copy.hpp>
#include <tessera/kernel/fill.hpp>
#include <tessera/kernel/scratch.hpp>
#include <tessera/tensor/host_copy.hpp>

namespace tessera::detail {

/// One end of a copy: memory, and whether it is always host memory.
struct Side {
  void* data = nullptr;
  bool host = false;
};

/// Copies one box between two strided layouts in host memory.
inline void copy_on_host(Index unit, const char* from, char* to, const StridedCopy& box) {
  const Index count = volume(box.extents);
  if (count == 0) return;
  const int last = box.extents.size() - 1;
  const Index row = last < 0 ? 1 : box.extents[last];
  const bool runs = last < 0 || (box.from_strides[last] == 1 && box.to_strides[last] == 1);
  Extents at(box.extents.size(), 0);
  for (Index done = 0; done < count; done += row) {
    Index f = box.from_offset, t = box.to_offset;
    for (int d = 0; d < last; ++d) {
      f += at[d] * box.from_strides[d];
      t += at[d] * box.to_strides[d];
    }
    if (runs)
      std::memcpy(to + t * unit, from + f * unit, static_cast<std::size_t>(row * unit));
    else
      for (Index i = 0; i < row; ++i)
        std::memcpy(to + (t + i * box.to_strides[last]) * unit,
                    from + (f + i * box.from_strides[last]) * unit, static_cast<std::size_t>(unit));
    for (int d = last - 1; d >= 0; --d) {
      if (++at[d] < box.extents[d]) break;
      at[d] = 0;
    }
  }
}

/// Copies where one side is in kernel memory: the box is packed on one side, copied across, and
/// unpacked.
inline void copy_across(DType type, Side from, Side to, const StridedCopy& box) {
  const Index unit = static_cast<Index>(size_of(type));
  const Index bytes = volume(box.extents) * unit;
  if (bytes == 0) return;
  StridedCopy pack = box, unpack = box;
  pack.to_offset = unpack.from_offset = 0;
  pack.to_strides = unpack.from_strides = row_major_strides(box.extents);
  std::vector<char> packed(static_cast<std::size_t>(bytes));
  const Scratch<char> carried(bytes);
  if (from.host) {
    copy_on_host(unit, static_cast<const char*>(from.data), packed.data(), pack);
    copy_from_host(carried.data(), packed.data(), bytes);
    copy(type, carried.data(), to.data, &unpack, 1);
  } else {
    copy(type, from.data, carried.data(), &pack, 1);
    copy_to_host(packed.data(), carried.data(), bytes);
    copy_on_host(unit, packed.data(), static_cast<char*>(to.data), unpack);
  }
}

/// Copies boxes between any two memories. The targets are disjoint.
inline void copy_between(DType type, Side from, Side to, const StridedCopy* copies, int count) {
  if (kernels_on_host || (!from.host && !to.host))
    return copy(type, from.data, to.data, copies, count);
  for (int i = 0; i < count; ++i)
    if (const StridedCopy& box = copies[i]; from.host && to.host)
      copy_on_host(static_cast<Index>(size_of(type)), static_cast<const char*>(from.data),
                   static_cast<char*>(to.data), box);
    else
      copy_across(type, from, to, box);
}

/// Copies one element of host memory, of at most 16 bytes, to all that the copies name; what they
/// read has strides 0. Nothing waits for a device.
inline void copy_element(DType type, const void* element, Side to, const StridedCopy* copies,
                         int count) {
  if constexpr (kernels_on_host) {
    copy(type, element, to.data, copies, count);
  } else {
    if (to.host) return copy_between(type, {const_cast<void*>(element), true}, to, copies, count);
    std::uint64_t words[2] = {};
    std::memcpy(words, element, size_of(type));
    const Scratch<std::uint64_t> carried(2);
    for (int k = 0; k < 2; ++k) fill(carried.data() + k, 1, words[k]);
    copy(type, carried.data(), to.data, copies, count);
  }
}

}  // namespace tessera::detail
