// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The portable convolution: all layouts, element types and settings of a window. On the host,
/// blocks of results that read the same taps are gathered and multiplied in tiles
/// (convolve_tile.hpp); on a device a result is a thread.
///
///     convolve_portable<float>(shape, in, kernel, out);
///
/// Laws: a result is the sum, from zero on, over taps in row-major order and, for each, input
/// features in order; taps that read no element add nothing. So its bits do not depend on which
/// other results are computed with it, nor on threads. Half types are summed in float, integers
/// wrap.
#include <algorithm>
#include <memory>
#include <vector>

#include <tessera/kernel/detail/convolve_shape.hpp>
#include <tessera/kernel/detail/convolve_tile.hpp>
#include <tessera/kernel/detail/gemm_tiles.hpp>
#include <tessera/kernel/detail/launch.hpp>

namespace tessera::detail {

/// How kernels are packed: panels of `width` output features, all taps and input features of one
/// after those of the other.
struct KernelPanels {
  Index width, panels, depth;  // depth: taps times input features
};

/// Host: an index is one tap of one panel.
template <class T> struct PackKernel {
  using Sum = ProductSum<T>;
  const ConvolveShape* shape;
  KernelPanels to;
  const T* kernel;
  Sum* packed;

  void run(Index begin, Index end) const {
    const ConvolveShape& s = *shape;
    const Index taps = s.taps();
    for (Index i = begin; i < end; ++i) {
      const Index tap = i % taps, panel = i / taps % to.panels, group = i / taps / to.panels;
      const Index c = tap % s.dim[2].taps, b = tap / s.dim[2].taps % s.dim[1].taps,
                  a = tap / s.dim[2].taps / s.dim[1].taps;
      const T* from = kernel + s.kernel_offset + group * s.kernel_group +
                      panel * to.width * s.kernel_out + a * s.kernel_stride[0] +
                      b * s.kernel_stride[1] + c * s.kernel_stride[2];
      const Index count = min_of(to.width, s.out_features - panel * to.width);
      Sum* row = packed + ((group * to.panels + panel) * to.depth + tap * s.in_features) * to.width;
      for (Index f = 0; f < s.in_features; ++f, from += s.kernel_in, row += to.width) {
        for (Index o = 0; o < count; ++o) row[o] = static_cast<Sum>(from[o * s.kernel_out]);
        for (Index o = count; o < to.width; ++o) row[o] = Sum{};
      }
    }
  }
};

/// Host: an index is a block of at most 64 results along the last dimension, of all output
/// features of a group.
template <class T, int Rows> struct ConvolveBlocks {
  using Sum = ProductSum<T>;
  using Tile = ConvolveTile<Sum, Rows>;
  static constexpr Index most = 64, deepest = 256;

  const ConvolveShape* shape;
  const Stretch* stretch;
  const Index* first_block;  // of each stretch
  Index stretches, blocks;   // in a row of results
  bool kernel_lanes;
  KernelPanels panels;
  const Sum* packed;
  const T* in;
  T* out;

  Index x_width() const { return kernel_lanes ? Rows : Tile::lanes; }

  void run(Index begin, Index end) const {
    const Index size = Tile::lanes * Rows;
    const Index x_panels = ceil_div(most, x_width());
    std::vector<Sum> x(static_cast<std::size_t>(x_panels * x_width() * deepest));
    std::vector<Sum> sums(static_cast<std::size_t>(x_panels * panels.panels * size));
    for (Index i = begin; i < end; ++i) block(i, x.data(), sums.data());
  }

  void block(Index i, Sum* x, Sum* sums) const {
    const ConvolveShape& s = *shape;
    Index row = i / blocks;
    const Stretch* along =
        stretch +
        (std::upper_bound(first_block, first_block + stretches, i % blocks) - first_block - 1);
    const Index from = (i % blocks - first_block[along - stretch]) * most;
    const Index count = min_of(most, along->count - from);
    const Index b = row % s.dim[1].results, a = row / s.dim[1].results % s.dim[0].results;
    row /= s.dim[1].results * s.dim[0].results;
    const Index group = row % s.groups, n = row / s.groups;

    const Progression taps[3] = {s.dim[0].taps_of(a), s.dim[1].taps_of(b), along->taps};
    const T* base = in + s.in_offset + n * s.in_batch + group * s.in_group +
                    (taps[2].value + from * along->hop) * s.in_stride[2];
    const Index x_panels = ceil_div(count, x_width());
    std::fill_n(sums, x_panels * panels.panels * Tile::lanes * Rows, Sum{});
    if (count % x_width() != 0)  // lanes beside the last result
      std::fill_n(x + (x_panels - 1) * deepest * x_width(), deepest * x_width(), Sum{});

    KernelRun runs[deepest];
    Index at[3] = {0, 0, 0}, feature = 0;
    bool done = taps[0].count * taps[1].count * taps[2].count * s.in_features == 0;
    while (!done) {
      Index filled = 0, used = 0;
      while (!done && filled < deepest) {
        const Index length = min_of(s.in_features - feature, deepest - filled);
        Index tap = 0, offset = 0;
        for (int d = 0; d < 3; ++d) {
          tap = tap * s.dim[d].taps + taps[d].first + at[d] * s.dim[d].by_tap.step;
          const Index start = d < 2 ? taps[d].value : 0;
          offset += (start + at[d] * s.dim[d].by_tap.hop) * s.in_stride[d];
        }
        const Index k = tap * s.in_features + feature;
        if (used > 0 && runs[used - 1].at + runs[used - 1].length == k)
          runs[used - 1].length += length;
        else
          runs[used++] = {k, length};
        gather(base + offset + feature * s.in_feature, along->hop * s.in_stride[2], count, length,
               x + filled * x_width());
        filled += length;
        feature += length;
        if (feature < s.in_features) continue;
        feature = 0;
        int d = 2;
        for (; d >= 0; --d) {
          if (++at[d] < taps[d].count) break;
          at[d] = 0;
        }
        done = d < 0;
      }
      for (Index p = 0; p < panels.panels; ++p)
        for (Index q = 0; q < x_panels; ++q)
          Tile::add(runs, used, packed + (group * panels.panels + p) * panels.depth * panels.width,
                    x + q * deepest * x_width(), kernel_lanes,
                    sums + (p * x_panels + q) * Tile::lanes * Rows);
    }
    T* to = out + s.out_offset + n * s.out_batch + group * s.out_group + a * s.out_stride[0] +
            b * s.out_stride[1] + (along->at + from * along->step) * s.out_stride[2];
    put(sums, x_panels, count, to, along->step * s.out_stride[2]);
  }

  /// Copies `length` input features of `count` results to rows of panels.
  void gather(const T* from, Index across, Index count, Index length, Sum* x) const {
    if (kernel_lanes)
      gather_panels<Rows>(from, across, count, length, x);
    else
      gather_panels<Tile::lanes>(from, across, count, length, x);
  }
  template <Index Width>
  void gather_panels(const T* from, Index across, Index count, Index length, Sum* x) const {
    const Index down = shape->in_feature;
    for (Index j = 0; j < count; j += Width, from += Width * across, x += deepest * Width) {
      const Index here = min_of(Width, count - j);
      if (here == Width && across == 1) {
        for (Index k = 0; k < length; ++k) {
          TESSERA_SIMD
          for (Index w = 0; w < Width; ++w) x[k * Width + w] = static_cast<Sum>(from[k * down + w]);
        }
      } else if (here == Width) {
        for (Index k = 0; k < length; ++k)
          for (Index w = 0; w < Width; ++w)
            x[k * Width + w] = static_cast<Sum>(from[k * down + w * across]);
      } else {
        for (Index k = 0; k < length; ++k)
          for (Index w = 0; w < here; ++w)
            x[k * Width + w] = static_cast<Sum>(from[k * down + w * across]);
      }
    }
  }

  void put(const Sum* sums, Index x_panels, Index count, T* to, Index across) const {
    const ConvolveShape& s = *shape;
    const Index rows_step = kernel_lanes ? across : s.out_feature;
    const Index lanes_step = kernel_lanes ? s.out_feature : across;
    for (Index p = 0; p < panels.panels; ++p)
      for (Index q = 0; q < x_panels; ++q) {
        const Sum* tile = sums + (p * x_panels + q) * Tile::lanes * Rows;
        const Index features = min_of(panels.width, s.out_features - p * panels.width);
        const Index results = min_of(x_width(), count - q * x_width());
        const Index rows = kernel_lanes ? results : features;
        const Index lanes = kernel_lanes ? features : results;
        T* corner = to + p * panels.width * s.out_feature + q * x_width() * across;
        for (Index r = 0; r < rows; ++r)
          for (Index l = 0; l < lanes; ++l)
            corner[r * rows_step + l * lanes_step] = static_cast<T>(tile[r * Tile::lanes + l]);
      }
  }
};

/// Device: an index is a result.
template <class T> struct ConvolveEach {
  using Sum = ProductSum<T>;
  ConvolveShape s;
  const T* in;
  const T* kernel;
  T* out;

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      Index rest = i, at[3];
      for (int d = 2; d >= 0; --d) {
        at[d] = rest % s.dim[d].results;
        rest /= s.dim[d].results;
      }
      const Index o = rest % s.out_features, group = rest / s.out_features % s.groups,
                  n = rest / s.out_features / s.groups;
      const Progression ta = s.dim[0].taps_of(at[0]), tb = s.dim[1].taps_of(at[1]),
                        tc = s.dim[2].taps_of(at[2]);
      const T* x = in + s.in_offset + n * s.in_batch + group * s.in_group;
      const T* w = kernel + s.kernel_offset + group * s.kernel_group + o * s.kernel_out;
      Sum sum{};
      for (Index a = 0; a < ta.count; ++a)
        for (Index b = 0; b < tb.count; ++b)
          for (Index c = 0; c < tc.count; ++c) {
            const T* p = x + (ta.value + a * s.dim[0].by_tap.hop) * s.in_stride[0] +
                         (tb.value + b * s.dim[1].by_tap.hop) * s.in_stride[1] +
                         (tc.value + c * s.dim[2].by_tap.hop) * s.in_stride[2];
            const T* q = w + (ta.first + a * s.dim[0].by_tap.step) * s.kernel_stride[0] +
                         (tb.first + b * s.dim[1].by_tap.step) * s.kernel_stride[1] +
                         (tc.first + c * s.dim[2].by_tap.step) * s.kernel_stride[2];
            for (Index f = 0; f < s.in_features; ++f)
              sum += static_cast<Sum>(q[f * s.kernel_in]) * static_cast<Sum>(p[f * s.in_feature]);
          }
      out[s.out_offset + n * s.out_batch + group * s.out_group + o * s.out_feature +
          at[0] * s.out_stride[0] + at[1] * s.out_stride[1] + at[2] * s.out_stride[2]] =
          static_cast<T>(sum);
    }
  }
};

template <class T, int Rows>
void convolve_blocks(const ConvolveShape& s, const T* in, const T* kernel, T* out) {
  using Blocks = ConvolveBlocks<T, Rows>;
  using Sum = typename Blocks::Sum;
  constexpr Index lanes = Blocks::Tile::lanes;
  const std::vector<Stretch> list = stretches(s.dim[2]);
  std::vector<Index> first;
  Index blocks = 0;
  for (const Stretch& stretch : list) {
    first.push_back(blocks);
    blocks += ceil_div(stretch.count, Blocks::most);
  }
  // Complex products are not quite symmetric once a compiler fuses them, so they have one form.
  const bool kernel_lanes = Blocks::Tile::has_vectors && Rows > 1 && s.out_features * 2 > lanes;
  const Index width = kernel_lanes ? lanes : Rows;
  const KernelPanels panels{width, ceil_div(s.out_features, width), s.taps() * s.in_features};
  const auto size = static_cast<std::size_t>(s.groups * panels.panels * panels.depth * width);
  const std::unique_ptr<Sum[]> packed(new Sum[size]);
  launch("tessera::convolve", s.groups * panels.panels * s.taps(),
         max_of(1, 32768 / max_of(1, s.in_features * width)),
         PackKernel<T>{&s, panels, kernel, packed.get()});
  const Index work =
      saturating_mul(min_of(Blocks::most, s.dim[2].results), s.out_features * panels.depth);
  launch("tessera::convolve", s.batch * s.groups * s.dim[0].results * s.dim[1].results * blocks,
         max_of(1, 65536 / max_of(1, work)),
         Blocks{&s, list.data(), first.data(), static_cast<Index>(list.size()), blocks,
                kernel_lanes, panels, packed.get(), in, out});
}

/// Convolves by the kernel that has all settings.
template <class T>
void convolve_portable(const ConvolveShape& s, const T* in, const T* kernel, T* out) {
  if constexpr (!kernels_on_host)
    launch("tessera::convolve", s.batch * s.groups * s.out_features * s.results(), 1,
           ConvolveEach<T>{s, in, kernel, out});
  else if (s.batch * s.groups * s.out_features * s.results() == 0)
    return;
  else if (s.out_features == 1)
    convolve_blocks<T, 1>(s, in, kernel, out);
  else
    convolve_blocks<T, 4>(s, in, kernel, out);
}

}  // namespace tessera::detail
