// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The portable convolution: all layouts, element types and settings of a window. On the host,
/// blocks of results that read the same taps are copied together and multiplied in tiles
/// (convolve_tile.hpp); on a device each result is a thread.
///
///     convolve_portable<float>(shape, in, kernel, out);
///
/// Laws: a result is the sum, starting from zero, over taps in row-major order and, for each tap,
/// input features in order; taps that read no element add nothing. So its bits do not depend on
/// which other results are computed with it, nor on threads. Half types are summed in float,
/// integers wrap.
#include <algorithm>
#include <memory>
#include <vector>

#include <tessera/kernel/convolve/detail/block_walk.hpp>
#include <tessera/kernel/convolve/detail/convolve_tile.hpp>
#include <tessera/kernel/detail/gemm_tiles.hpp>
#include <tessera/kernel/detail/launch.hpp>

namespace tessera::detail {

/// Host: an index is one tap of one panel of the packed kernel.
template <class T> struct PackKernel {
  using Sum = ProductSum<T>;
  const ConvolveShape* shape;
  KernelPanels to;
  const T* kernel;
  Sum* packed;

  void run(Index begin, Index end) const {
    const ConvolveShape& s = *shape;
    for (Index i = begin; i < end; ++i) {
      const T* from = kernel + s.kernel_offset + to.source(s, i);
      const Index count = min_of(to.width, s.out_features - to.panel_of(s, i) * to.width);
      Sum* row = packed + to.target(s, i);
      for (Index f = 0; f < s.in_features; ++f, from += s.kernel_in, row += to.width) {
        for (Index o = 0; o < count; ++o) row[o] = static_cast<Sum>(from[o * s.kernel_out]);
        for (Index o = count; o < to.width; ++o) row[o] = Sum{};
      }
    }
  }
};

/// Host: an index is a block of results along the last dimension, with all output features of a
/// group.
template <class T> struct ConvolveBlocks {
  using Sum = ProductSum<T>;
  using One = ConvolveTile<Sum, 1>;
  using Four = ConvolveTile<Sum, 4>;
  static constexpr Index lanes = Four::lanes;

  const ConvolveShape* shape;
  const Blocks* blocks;
  bool kernel_lanes;  // output features lie in a tile's lanes, results in its rows
  Index rows;         // of a tile: 1 or 4
  KernelPanels panels;
  const Sum* packed;
  const T* in;
  T* out;

  Index width() const { return kernel_lanes ? rows : lanes; }  // results in a tile

  void run(Index begin, Index end) const {
    const Index tiles = ceil_div(Blocks::most, width());
    std::vector<Sum> x(static_cast<std::size_t>(tiles * width() * BlockWalk::deepest));
    std::vector<Sum> sums(static_cast<std::size_t>(tiles * panels.panels * lanes * rows));
    for (Index i = begin; i < end; ++i) block(i, x.data(), sums.data());
  }

  void block(Index i, Sum* x, Sum* sums) const {
    BlockWalk walk(*shape, *blocks, i);
    const Index tiles = ceil_div(walk.count, width()), depth = BlockWalk::deepest * width();
    std::fill_n(sums, tiles * panels.panels * lanes * rows, Sum{});
    if (walk.count % width() != 0)  // after the last result
      std::fill_n(x + (tiles - 1) * depth, depth, Sum{});
    const Sum* kernel = packed + walk.group * panels.panels * panels.depth * panels.width;
    while (walk.next()) {
      for (Index g = 0; g < walk.gathers; ++g) gather(walk, walk.gather[g], x);
      for (Index p = 0; p < panels.panels; ++p)
        for (Index q = 0; q < tiles; ++q) {
          const Sum* of_panel = kernel + p * panels.depth * panels.width;
          Sum* tile = sums + (p * tiles + q) * lanes * rows;
          if (rows == 1)
            One::add(walk.run, walk.runs, of_panel, x + q * depth, kernel_lanes, tile);
          else
            Four::add(walk.run, walk.runs, of_panel, x + q * depth, kernel_lanes, tile);
        }
    }
    put(sums, tiles, walk);
  }

  /// Copies the input features that a block reads at one tap to rows of tiles.
  void gather(const BlockWalk& walk, const BlockWalk::Gather& g, Sum* x) const {
    const T* from = in + walk.in_offset + g.from;
    x += g.row * width();
    for (Index j = 0; j < walk.count; j += width()) {
      const Index here = min_of(width(), walk.count - j);
      if (here == lanes)
        gather_rows(from, walk.across, g.length, std::integral_constant<Index, lanes>{}, x);
      else if (here == 4)
        gather_rows(from, walk.across, g.length, std::integral_constant<Index, 4>{}, x);
      else
        gather_rows(from, walk.across, g.length, here, x);
      from += width() * walk.across;
      x += BlockWalk::deepest * width();
    }
  }
  template <class Count>
  void gather_rows(const T* from, Index across, Index length, Count count, Sum* x) const {
    const Index down = shape->in_feature, step = width();
    for (Index k = 0; k < length; ++k, from += down, x += step) {
      if (across == 1) {
        TESSERA_SIMD
        for (Index w = 0; w < count; ++w) x[w] = static_cast<Sum>(from[w]);
      } else {
        for (Index w = 0; w < count; ++w) x[w] = static_cast<Sum>(from[w * across]);
      }
    }
  }

  void put(const Sum* sums, Index tiles, const BlockWalk& walk) const {
    const ConvolveShape& s = *shape;
    const Index row_step = kernel_lanes ? walk.out_across : s.out_feature;
    const Index lane_step = kernel_lanes ? s.out_feature : walk.out_across;
    for (Index p = 0; p < panels.panels; ++p)
      for (Index q = 0; q < tiles; ++q) {
        const Sum* tile = sums + (p * tiles + q) * lanes * rows;
        const Index features = min_of(panels.width, s.out_features - p * panels.width);
        const Index results = min_of(width(), walk.count - q * width());
        const Index used_rows = kernel_lanes ? results : features;
        const Index used_lanes = kernel_lanes ? features : results;
        T* to = out + walk.out_offset + p * panels.width * s.out_feature +
                q * width() * walk.out_across;
        for (Index r = 0; r < used_rows; ++r)
          for (Index l = 0; l < used_lanes; ++l)
            to[r * row_step + l * lane_step] = static_cast<T>(tile[r * lanes + l]);
      }
  }
};

template <class T>
void convolve_blocks(const ConvolveShape& s, const T* in, const T* kernel, T* out) {
  using Body = ConvolveBlocks<T>;
  using Sum = typename Body::Sum;
  const Blocks blocks(s);
  // Complex products are not symmetric once a compiler fuses them, so they always use the same
  // form.
  const bool kernel_lanes = Body::Four::has_vectors && s.out_features * 2 > Body::lanes;
  const Index rows = s.out_features == 1 ? 1 : 4;
  const Index width = kernel_lanes ? Body::lanes : rows;
  const KernelPanels panels{width, ceil_div(s.out_features, width), s.taps() * s.in_features};
  const std::unique_ptr<Sum[]> packed(
      new Sum[static_cast<std::size_t>(s.groups * panels.panels * panels.depth * width)]);
  launch("tessera::convolve", s.groups * panels.panels * s.taps(),
         max_of(1, 32768 / max_of(1, s.in_features * width)),
         PackKernel<T>{&s, panels, kernel, packed.get()});
  const Index work =
      saturating_mul(min_of(Blocks::most, s.dim[2].results), s.out_features * panels.depth);
  launch("tessera::convolve",
         s.batch * s.groups * s.dim[0].results * s.dim[1].results * blocks.in_row,
         max_of(1, 65536 / max_of(1, work)),
         Body{&s, &blocks, kernel_lanes, rows, panels, packed.get(), in, out});
}

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

/// Convolves by the kernel that supports all settings.
template <class T>
void convolve_portable(const ConvolveShape& s, const T* in, const T* kernel, T* out) {
  const Index results = s.batch * s.groups * s.out_features * s.results();
  if constexpr (!kernels_on_host)
    launch("tessera::convolve", results, 1, ConvolveEach<T>{s, in, kernel, out});
  else if (results > 0)
    convolve_blocks(s, in, kernel, out);
}

}  // namespace tessera::detail
