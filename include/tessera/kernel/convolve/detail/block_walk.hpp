// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How the portable convolution goes through its work, whatever the element type: blocks of results
/// side by side, and for each the pieces of the sum over taps and input features that fit the first
/// cache.
///
///     BlockWalk walk(shape, blocks, i);
///     while (walk.next())
///       for (Index g = 0; g < walk.gathers; ++g) ...   // then multiply by walk.run
///
/// Laws: all pieces together are the taps that read an element, in row-major order, and for each
/// tap the input features in order.
#include <algorithm>
#include <vector>

#include <tessera/kernel/detail/convolve_shape.hpp>

namespace tessera::detail {

/// How kernels are packed: panels of `width` output features, each with all its taps and input
/// features before the next panel.
struct KernelPanels {
  Index width, panels, depth;  // depth: taps times input features

  // Index i is tap i % taps of panel i / taps % panels of a group.
  Index panel_of(const ConvolveShape& s, Index i) const { return i / s.taps() % panels; }
  Index source(const ConvolveShape& s, Index i) const {
    Index at = i / s.taps() / panels * s.kernel_group + panel_of(s, i) * width * s.kernel_out;
    i %= s.taps();
    for (int d = max_spatial - 1; d >= 0; --d) {
      at += i % s.dim[d].taps * s.kernel_stride[d];
      i /= s.dim[d].taps;
    }
    return at;
  }
  Index target(const ConvolveShape& s, Index i) const {
    return (i / s.taps() * depth + i % s.taps() * s.in_features) * width;
  }
};

/// `length` rows of a packed kernel, starting at row `at`.
struct KernelRun {
  Index at, length;
};

/// The blocks of one row of results: pieces of stretches.
struct Blocks {
  static constexpr Index most = 64;
  std::vector<Stretch> list;
  std::vector<Index> first;  // block of each stretch
  Index in_row = 0;

  explicit Blocks(const ConvolveShape& shape) : list(stretches(shape.dim[2])) {
    for (const Stretch& stretch : list) {
      first.push_back(in_row);
      in_row += ceil_div(stretch.count, most);
    }
  }
};

class BlockWalk {
 public:
  /// Rows of a packed kernel that are multiplied at once.
  static constexpr Index deepest = 256;

  struct Gather {
    Index from, row, length;  // input features from an element on, copied to rows
  };

  Index group = 0, count = 0;  // number of results in the block
  Index in_offset = 0, across = 0, out_offset = 0, out_across = 0;
  KernelRun run[deepest];
  Gather gather[deepest];
  Index runs = 0, gathers = 0;

  BlockWalk(const ConvolveShape& shape, const Blocks& blocks, Index i) : s_(shape) {
    Index rest = i / blocks.in_row;
    i %= blocks.in_row;
    const auto along =
        std::upper_bound(blocks.first.begin(), blocks.first.end(), i) - blocks.first.begin() - 1;
    const Stretch& stretch = blocks.list[static_cast<std::size_t>(along)];
    const Index from = (i - blocks.first[static_cast<std::size_t>(along)]) * Blocks::most;
    count = min_of(Blocks::most, stretch.count - from);
    across = stretch.hop * s_.in_stride[2];
    out_across = stretch.step * s_.out_stride[2];
    out_offset = s_.out_offset + (stretch.at + from * stretch.step) * s_.out_stride[2];
    for (int d = 1; d >= 0; --d) {
      taps_[d] = s_.dim[d].taps_of(rest % s_.dim[d].results);
      out_offset += rest % s_.dim[d].results * s_.out_stride[d];
      rest /= s_.dim[d].results;
    }
    taps_[2] = stretch.taps;
    group = rest % s_.groups;
    rest /= s_.groups;
    out_offset += rest * s_.out_batch + group * s_.out_group;
    in_offset = s_.in_offset + rest * s_.in_batch + group * s_.in_group + from * across;
    done_ = s_.in_features == 0;
    for (const Progression& taps : taps_) done_ = done_ || taps.count == 0;
  }

  /// Finds the next piece of the sum; false when there is none.
  bool next() {
    runs = gathers = 0;
    for (Index filled = 0; !done_ && filled < deepest;) {
      const Index length = min_of(s_.in_features - feature_, deepest - filled);
      Index tap = 0, from = feature_ * s_.in_feature;
      for (int d = 0; d < max_spatial; ++d) {
        tap = tap * s_.dim[d].taps + taps_[d].first + at_[d] * s_.dim[d].by_tap.step;
        from += (taps_[d].value + at_[d] * s_.dim[d].by_tap.hop) * s_.in_stride[d];
      }
      gather[gathers++] = {from, filled, length};
      const Index row = tap * s_.in_features + feature_;
      if (runs > 0 && run[runs - 1].at + run[runs - 1].length == row)
        run[runs - 1].length += length;
      else
        run[runs++] = {row, length};
      filled += length;
      feature_ += length;
      if (feature_ < s_.in_features) continue;
      feature_ = 0;
      int d = max_spatial - 1;
      for (; d >= 0; --d) {
        if (++at_[d] < taps_[d].count) break;
        at_[d] = 0;
      }
      done_ = d < 0;
    }
    return runs > 0;
  }

 private:
  const ConvolveShape& s_;
  Progression taps_[max_spatial];
  Index at_[max_spatial] = {}, feature_ = 0;
  bool done_ = false;
};

}  // namespace tessera::detail
