// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A LocalConvolve in the form its kernels use: three spatial dimensions, the leading ones perhaps
/// of extent 1, reversal expressed in the kernel's strides, and the stretches of the last dimension
/// along which all results read the same taps.
///
///     const ConvolveShape shape = convolve_shape(work);
///     for (const Stretch& s : stretches(shape.dim[2])) ...
#include <vector>

#include <tessera/kernel/detail/window_reads.hpp>

namespace tessera::detail {

struct ConvolveShape {
  Index batch, groups, in_features, out_features;
  WindowReads dim[max_spatial];
  Index in_stride[max_spatial], kernel_stride[max_spatial], out_stride[max_spatial];
  Index in_offset, in_batch, in_group, in_feature;
  Index kernel_offset, kernel_group, kernel_in, kernel_out;
  Index out_offset, out_batch, out_group, out_feature;

  KOKKOS_FUNCTION Index taps() const { return dim[0].taps * dim[1].taps * dim[2].taps; }
  KOKKOS_FUNCTION Index results() const { return dim[0].results * dim[1].results * dim[2].results; }
};

inline ConvolveShape convolve_shape(const LocalConvolve& c) {
  ConvolveShape s;
  s.batch = c.batch;
  s.groups = c.groups;
  s.in_features = c.in_features;
  s.out_features = c.out_features;
  s.in_offset = c.in.offset;
  s.in_batch = c.in.first;
  s.in_feature = c.in.second;
  s.in_group = c.in.group;
  s.kernel_offset = c.kernel.offset;
  s.kernel_in = c.kernel.first;
  s.kernel_out = c.kernel.second;
  s.kernel_group = c.kernel.group;
  s.out_offset = c.out.offset;
  s.out_batch = c.out.first;
  s.out_feature = c.out.second;
  s.out_group = c.out.group;
  const int absent = max_spatial - c.windows.size();
  for (int d = 0; d < max_spatial; ++d) {
    const int from = d - absent;
    s.dim[d] = from < 0 ? window_reads(1, 1, {})
                        : window_reads(c.input[from], c.result[from], c.windows[from]);
    s.in_stride[d] = from < 0 ? 0 : c.in.spatial[from];
    s.kernel_stride[d] = from < 0 ? 0 : c.kernel.spatial[from];
    s.out_stride[d] = from < 0 ? 0 : c.out.spatial[from];
    if (from >= 0 && c.windows[from].reversed && c.windows[from].size > 0) {
      s.kernel_offset += (c.windows[from].size - 1) * s.kernel_stride[d];
      s.kernel_stride[d] = -s.kernel_stride[d];
    }
  }
  return s;
}

/// Results at + j * step, j < count, that read through the same taps (`taps`, by_tap.step apart),
/// where each reads `hop` elements further than the one before it.
struct Stretch {
  Index at, step, count, hop;
  Progression taps;
};

/// Returns the stretches that make up a dimension's results: one for each residue of a dilated
/// base, and more at both ends, where windows lie over the padding.
inline std::vector<Stretch> stretches(const WindowReads& dim) {
  std::vector<Stretch> list;
  const Index step = dim.by_result.step, hop = dim.by_result.hop, reach = dim.by_tap.hop;
  for (Index residue = 0; residue < min_of(step, dim.results); ++residue) {
    Index left = ceil_div(dim.results - residue, step);
    for (Index at = residue; left > 0;) {
      const Progression taps = dim.taps_of(at);
      Stretch next{at, step, 1, hop, taps};
      const Index last = taps.value + (taps.count - 1) * reach;
      const bool least = taps.first < dim.by_tap.step;  // no tap was left out before the first
      const bool most = taps.first + taps.count * dim.by_tap.step >= dim.taps;
      if (taps.count > 0 && least && most)
        next.count = min_of(left, (dim.elements - 1 - last) / hop + 1);
      at += next.count * step;
      left -= next.count;
      Stretch* before = list.empty() ? nullptr : &list.back();
      if (before != nullptr && before->at % step == residue && before->taps.count == taps.count &&
          (taps.count == 0 || before->taps.first == taps.first))
        before->count += next.count;
      else
        list.push_back(next);
    }
  }
  return list;
}

}  // namespace tessera::detail
