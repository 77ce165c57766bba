// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Making tensors whose sharding is known only at run time; tensor/create.hpp makes typed ones.
///
///     DynamicTensor x = zeros<float>(mesh, {8, 512}, Sharding{{0}, {1}});      // a DynamicMesh
///     DynamicTensor w = random_normal<float>(mesh, {512, 96}, Sharding{{1}, {}}, 7);
///
/// Laws: each function makes the same tensor as the typed function of the same name, for the same
/// elements and sharding.
#include <span>

#include <tessera/tensor/create.hpp>

namespace tessera {
namespace detail {
template <class T>
DynamicTensor make_dynamic(const DynamicMesh& mesh, const Extents& extents,
                           const Sharding& sharding, Where where) {
  use_element<T>();
  require_made_finished(*mesh.core(), sharding, "", where);
  return DynamicTensor(TensorCore::make(mesh.core(), {dtype_of<T>, extents, sharding}, where));
}
}  // namespace detail

/// Returns a tensor of the given extents and sharding with every element `value`. Communication:
/// none. Throws ShardingError when the sharding does not fit the mesh or the extents, or is
/// unfinished; so do the functions below.
template <Element T>
DynamicTensor full(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                   T value, Where where = Where::here()) {
  const DynamicTensor t = detail::make_dynamic<T>(mesh, extents, sharding, where);
  if (!mesh.dry()) detail::fill(t.data<T>(), t.local_size(), value);
  return t;
}
template <Element T>
DynamicTensor zeros(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                    Where where = Where::here()) {
  return full<T>(mesh, extents, sharding, T{}, where);
}

template <Element T>
DynamicTensor ones(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                   Where where = Where::here()) {
  return full<T>(mesh, extents, sharding, T(1), where);
}
/// The same with unspecified elements: for a caller that writes them all.
template <Element T>
DynamicTensor empty(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                    Where where = Where::here()) {
  return detail::make_dynamic<T>(mesh, extents, sharding, where);
}

/// Returns the tensor whose element at global index i is f(i). Communication: none.
template <Element T, class F>
DynamicTensor from_function(const DynamicMesh& mesh, const Extents& extents,
                            const Sharding& sharding, const F& f, Where where = Where::here()) {
  const DynamicTensor t = detail::make_dynamic<T>(mesh, extents, sharding, where);
  if (!mesh.dry() && t.local_size() > 0)
    detail::fill_index(f, t.data<T>(), t.box().extents(), detail::offsets_of(t.box()), extents);
  return t;
}

/// Returns the tensor whose elements are their own indices along dimension `dim`: 0, 1, 2, ...
/// Communication: none.
template <Element T>
DynamicTensor iota(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                   int dim = 0, Where where = Where::here()) {
  static_assert(NumberElement<T>,
                "[tessera] truth values do not count; make indices of int32 or int64");
  detail::require_dim_of_iota(dim, extents.size(), where);
  return from_function<T>(mesh, extents, sharding, detail::IndexAlong<T>{dim}, where);
}

/// Returns random numbers that depend only on the seed and the global index, uniform or normal.
/// Communication: none.
template <Element T>
DynamicTensor random_uniform(const DynamicMesh& mesh, const Extents& extents,
                             const Sharding& sharding, std::uint64_t seed, double lo = 0,
                             double hi = 1, Where where = Where::here()) {
  const DynamicTensor t = detail::make_dynamic<T>(mesh, extents, sharding, where);
  if (!mesh.dry() && t.local_size() > 0)
    detail::random_uniform(t.data<T>(), t.box().extents(), detail::offsets_of(t.box()), extents,
                           seed, lo, hi);
  return t;
}
template <Element T>
DynamicTensor random_normal(const DynamicMesh& mesh, const Extents& extents,
                            const Sharding& sharding, std::uint64_t seed, double mean = 0,
                            double deviation = 1, Where where = Where::here()) {
  static_assert(NumberElement<T>,
                "[tessera] truth values have no normal distribution; use random_uniform");
  const DynamicTensor t = detail::make_dynamic<T>(mesh, extents, sharding, where);
  if (!mesh.dry() && t.local_size() > 0)
    detail::random_normal(t.data<T>(), t.box().extents(), detail::offsets_of(t.box()), extents,
                          seed, mean, deviation);
  return t;
}

/// Returns a tensor from all its elements, row-major, which every process has on its host; each
/// keeps its block. Communication: none. Throws ShapeError when the number of values is not the
/// number of elements.
template <Element T>
DynamicTensor from_host(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                        std::span<const T> values, Where where = Where::here()) {
  if (static_cast<Index>(values.size()) != volume(extents))
    throw ShapeError("from_host: a tensor of " + to_string(extents) + " has " +
                         std::to_string(volume(extents)) + " elements and " +
                         std::to_string(values.size()) +
                         " are given; give all elements of the whole tensor, row-major",
                     where);
  const DynamicTensor t = detail::make_dynamic<T>(mesh, extents, sharding, where);
  if (!mesh.dry()) detail::copy_block_in(t.core(), values.data());
  return t;
}
template <std::same_as<bool> T>
DynamicTensor from_host(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                        std::span<const std::uint8_t> bytes, Where where = Where::here()) {
  const detail::Truths truths(bytes);
  return from_host<bool>(mesh, extents, sharding, truths.span(), where);
}

}  // namespace tessera
