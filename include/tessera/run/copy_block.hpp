// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Copies a process's block from one tensor to another, with or without halos.
///
///     copy_block(x, y);   const TensorCore z = by_itself(x);
///
/// Laws: nothing is communicated; a halo is neither read nor written.
#include <tessera/kernel/copy/copy.hpp>
#include <tessera/plan/move/layout.hpp>
#include <tessera/tensor/tensor_core.hpp>

namespace tessera::detail {

/// Copies this process's block of `from` to that of `to`, of the same description.
inline void copy_block(const TensorCore& from, const TensorCore& to) {
  const Box own = from.box();
  if (from.dry() || own.empty()) return;
  const auto memory_of = [&](const TensorCore& x) {
    return x.halo() == nullptr ? own : extended_box(own, x.extents(), *x.halo());
  };
  const StridedCopy copy = copy_between(box_at(own, memory_of(from)), box_at(own, memory_of(to)));
  tessera::detail::copy(from.type(), from.read(), to.data(), &copy, 1);
}

/// Returns the tensor without a halo: x, or a copy made on this process alone.
inline TensorCore by_itself(const TensorCore& x) {
  if (x.halo() == nullptr) return x;
  const TensorCore result(x.mesh(), x.desc(),
                          make_storage(x.mesh(), TensorCore::local_bytes(*x.mesh(), x.desc())));
  copy_block(x, result);
  return result;
}

}  // namespace tessera::detail
