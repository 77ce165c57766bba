// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Making tensors whose sharding is known only at run time; op/create/create.hpp makes typed ones.
///
///     DynamicTensor x = zeros<float>(mesh, {8, 512}, Sharding{{0}, {1}});      // a DynamicMesh
///     DynamicTensor w = random_normal<float>(mesh, {512, 96}, Sharding{{1}, {}}, 7);
///
/// Laws: each function makes the same tensor as the typed function of the same name, for the same
/// elements and sharding.
#include <span>

#include <tessera/op/call/call_options.hpp>
#include <tessera/op/create/create.hpp>

namespace tessera {
namespace detail {
template <class T>
DynamicTensor create(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                     const MapKernel& kernel, CallSite site) {
  use_element<T>();
  require_made_finished(*mesh.core(), sharding, "", site.where);
  return DynamicTensor(create(mesh.core(), {dtype_of<T>, extents, sharding}, kernel, site));
}
template <class T>
DynamicTensor filled(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                     const T& value, CallSite site) {
  return create<T>(mesh, extents, sharding, FillRunner<T>::kernel(value), site);
}
template <class T, class F>
DynamicTensor create_from(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                          const F& f, CallSite site) {
  return create<T>(mesh, extents, sharding, IndexFunctionRunner<T, F>::kernel(f), site);
}
}  // namespace detail

/// Returns a tensor of the given extents and sharding with every element `value`, of zeros 0.
/// Communication: none. Throws ShardingError when the sharding does not fit the mesh or the
/// extents, or is unfinished; so do the functions below. `call`: a tensor that takes it
/// (op/call/call_options.hpp). The elements are T or, where the call names none, the number's own
/// type. Throws UsageError when the number is no T.
template <class T = void, Scalar S>
  requires Element<detail::NamedOrOwn<T, S>> DynamicTensor
  full(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding, S value,
       const CallOptions& call = Where::here()) {
    using E = detail::NamedOrOwn<T, S>;
    const detail::CallSite site = call.site("full");
    return detail::filled<E>(mesh, extents, sharding, detail::scalar_as<E>(value, site), site);
  }
template <Element T>
DynamicTensor zeros(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                    const CallOptions& call = Where::here()) {
  return detail::filled<T>(mesh, extents, sharding, T{}, call.site("zeros"));
}

/// Returns a tensor of the given extents with every element 1. Communication: none. Errors: as
/// full.
template <Element T>
DynamicTensor ones(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                   const CallOptions& call = Where::here()) {
  return detail::filled<T>(mesh, extents, sharding, T(1), call.site("ones"));
}
/// Returns a tensor with unspecified elements, for a caller that writes them all. Communication:
/// none. Errors: as full.
template <Element T>
DynamicTensor empty(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                    const CallOptions& call = Where::here()) {
  return detail::create<T>(mesh, extents, sharding, {}, call.site("empty"));
}

/// Returns the tensor whose element at global index i is f(i). Communication: none. Errors: as
/// full.
template <Element T, class F>
DynamicTensor from_function(const DynamicMesh& mesh, const Extents& extents,
                            const Sharding& sharding, const F& f,
                            const CallOptions& call = Where::here()) {
  return detail::create_from<T>(mesh, extents, sharding, f, call.site("from_function"));
}

/// Returns the tensor whose elements are their own indices along dimension `dim`: 0, 1, 2, ...
/// Communication: none. Errors: as full.
template <Element T>
DynamicTensor iota(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                   int dim = 0, const CallOptions& call = Where::here()) {
  static_assert(NumberElement<T>,
                "[tessera] truth values do not count; make indices of int32 or int64");
  detail::require_indices<T>(extents, dim, call.where());
  return detail::create_from<T>(mesh, extents, sharding, detail::IndexAlong<T>{dim},
                                call.site("iota"));
}

/// Returns random numbers that depend only on the seed and the global index, uniform or normal.
/// Communication: none. Errors: as full.
template <Element T>
DynamicTensor random_uniform(const DynamicMesh& mesh, const Extents& extents,
                             const Sharding& sharding, std::uint64_t seed, double lo = 0,
                             double hi = 1, const CallOptions& call = Where::here()) {
  const detail::CallSite site = call.site("random_uniform");
  detail::require_bounds<T>(lo, hi, site);
  return detail::create_from<T>(mesh, extents, sharding, detail::Uniform<T>{seed, lo, hi}, site);
}
template <Element T>
DynamicTensor random_normal(const DynamicMesh& mesh, const Extents& extents,
                            const Sharding& sharding, std::uint64_t seed, double mean = 0,
                            double deviation = 1, const CallOptions& call = Where::here()) {
  static_assert(NumberElement<T>,
                "[tessera] truth values have no normal distribution; use random_uniform");
  return detail::create_from<T>(mesh, extents, sharding, detail::Normal<T>{seed, mean, deviation},
                                call.site("random_normal"));
}

/// Returns a tensor from all its elements, row-major, which every process has on its host; each
/// keeps its block. Communication: none. Throws ShapeError when the number of values is not the
/// number of elements.
template <Element T>
DynamicTensor from_host(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                        std::span<const T> values, const CallOptions& call = Where::here()) {
  detail::require_all_elements(extents, values.size(), call.where());
  const detail::HostElements elements{dtype_of<T>, values.data()};
  return detail::create<T>(mesh, extents, sharding, elements.kernel(), call.site("from_host"));
}
template <std::same_as<bool> T>
DynamicTensor from_host(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                        std::span<const std::uint8_t> bytes,
                        const CallOptions& call = Where::here()) {
  const detail::Truths truths(bytes);
  return from_host<bool>(mesh, extents, sharding, truths.span(), call);
}

}  // namespace tessera
