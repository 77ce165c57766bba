// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The distribution of a tensor while a file is read or written: each process has one piece, in
/// long runs of the file's elements, and as few processes as possible have nothing. Files hold a
/// tensor row-major.
///
///     const Sharding s = detail::file_sharding({DType::f32, {1000, 600}, Sharding{{}, {1}}}, mesh);
///     detail::for_each_run({1000, 600}, box, [](Index in_file, Index in_block, Index count) {});
///
/// Laws: the runs of the boxes of all processes with writes_file() are disjoint and cover the file.
#include <tessera/plan/op/move/place.hpp>

namespace tessera::detail {

/// Runs with fewer bytes are not worth one system call each.
inline constexpr Index least_run_bytes = Index{64} << 10;

/// Calls visit(place in the whole, place in the box, elements) for the runs of a row-major tensor
/// that make up a box, in order.
template <class Visit>
constexpr void for_each_run(const Extents& extents, const Box& box, const Visit& visit) {
  if (box.empty()) return;
  const Extents strides = row_major_strides(extents);
  Index start = 0, run = 1;
  for (int d = 0; d < box.rank(); ++d) start += box[d].lo * strides[d];
  int inner = box.rank() - 1;  // dimensions after it are whole
  for (; inner >= 0; --inner) {
    run *= box[inner].size();
    if (box[inner].size() != extents[inner]) break;
  }
  Extents at(box.rank(), 0);
  for (Index done = 0; done < box.size(); done += run) {
    Index offset = start;
    for (int d = 0; d < inner; ++d) offset += at[d] * strides[d];
    visit(offset, done, run);
    for (int d = inner - 1; d >= 0; --d) {
      if (++at[d] < box[d].size()) break;
      at[d] = 0;
    }
  }
}

/// Returns the sharding of a tensor while it goes to or from a file: its own, finished and also
/// split over its unused axes, when its runs are long; else a split of the leading dimensions.
inline Sharding file_sharding(const TensorDesc& desc, const MeshShape& mesh) {
  const AxisSet axes = mesh.axes() - mesh.unit_axes();
  const auto long_runs = [&](const Sharding& s) {
    const Box box = block(desc.extents, s, mesh, Coordinates(mesh.rank(), 0));
    Index shortest = max_int64;
    for_each_run(desc.extents, box, [&](Index, Index, Index count) {
      shortest = count == box.size() ? max_int64 : min_of(shortest, count);
    });
    return saturating_mul(shortest, static_cast<Index>(size_of(desc.type))) >= least_run_bytes;
  };
  const Sharding own = desc.sharding.finished();
  const Sharding finer = detail::split_further(desc.extents, own, axes - own.used(), mesh);
  if (long_runs(finer)) return finer;
  if (long_runs(own)) return own;
  return detail::split_further(desc.extents, Sharding::replicated(desc.rank()), axes, mesh);
}

/// Returns whether the process at `at` writes its block, as one of all processes with that block
/// does.
constexpr bool writes_file(const Sharding& s, const MeshShape& mesh, const Coordinates& at) {
  for (int axis = 0; axis < mesh.rank(); ++axis)
    if (!s.used().contains(axis) && at[axis] != 0) return false;
  return true;
}
}  // namespace tessera::detail
