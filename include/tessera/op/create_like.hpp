// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Tensors of another's element type, extents, sharding and mesh.
///
///     auto velocity = zeros_like(x);
///     auto mask = full_like(x, 0.5f);
///     DynamicTensor same = ones_like(dynamic);
///
/// Laws: full_like(x, v) has x's description and every element v; no element of x is read. x is
/// finished. Communication: none.
#include <concepts>

#include <tessera/op/outside.hpp>
#include <tessera/run/copy_between.hpp>
#include <tessera/run/request.hpp>
#include <tessera/run/require_operands.hpp>
#include <tessera/tensor/create.hpp>

namespace tessera {
namespace detail {
template <TypedTensor A> ProcessMesh<typename A::mesh_type> mesh_like(const A& x) {
  return ProcessMesh<typename A::mesh_type>(x.core().mesh());
}
inline DynamicTensor make_like(const DynamicTensor& x, CallSite site) {
  const TensorCore& core = x.core();
  MeshCore& mesh = mesh_of(core, site);
  require_made_finished(mesh, core.sharding(), std::string(site.label) + ": ", site.where);
  return DynamicTensor(TensorCore::make(core.mesh(), core.desc(), site.where));
}
inline DynamicTensor filled_like(const DynamicTensor& x, const OutsideValue& value, CallSite site) {
  const DynamicTensor t = make_like(x, site);
  const FillValue element = value.as(x.type(), site);
  const Index n = t.local_size();
  if (x.core().dry() || n == 0) return t;
  if (element.data() == nullptr) {
    fill_zeros(t.core().data(), n * static_cast<Index>(size_of(x.type())));
  } else {
    const StridedCopy all{{n}, 0, {0}, 0, {1}};
    copy_between(x.type(), {const_cast<void*>(element.data()), true}, {t.core().data(), false},
                 &all, 1);
  }
  return t;
}
}  // namespace detail

/// Returns a tensor of x's description, with every element `value`.
template <TypedTensor A>
TensorOf<A> full_like(const A& x, typename A::value_type value, Where where = Where::here()) {
  return full<TensorOf<A>>(detail::mesh_like(x), x.extents(), value, where);
}
template <TypedTensor A> TensorOf<A> zeros_like(const A& x, Where where = Where::here()) {
  return full<TensorOf<A>>(detail::mesh_like(x), x.extents(), typename A::value_type{}, where);
}
template <TypedTensor A> TensorOf<A> ones_like(const A& x, Where where = Where::here()) {
  return full<TensorOf<A>>(detail::mesh_like(x), x.extents(), typename A::value_type(1), where);
}
/// Its elements are unspecified: for code that writes them all.
template <TypedTensor A> TensorOf<A> empty_like(const A& x, Where where = Where::here()) {
  return empty<TensorOf<A>>(detail::mesh_like(x), x.extents(), where);
}

/// The same for dynamic tensors. Throws UsageError when the value is no element of x's type. (They
/// are templates so that they are compiled where they are used.)
template <std::same_as<DynamicTensor> X>
DynamicTensor full_like(const X& x, detail::OutsideValue value, Where where = Where::here()) {
  return detail::filled_like(x, value, {"full_like", where});
}
template <std::same_as<DynamicTensor> X>
DynamicTensor zeros_like(const X& x, Where where = Where::here()) {
  return detail::filled_like(x, {}, {"zeros_like", where});
}
template <std::same_as<DynamicTensor> X>
DynamicTensor ones_like(const X& x, Where where = Where::here()) {
  return detail::filled_like(
      x, is_boolean(x.type()) ? detail::OutsideValue(true) : detail::OutsideValue(1),
      {"ones_like", where});
}
template <std::same_as<DynamicTensor> X>
DynamicTensor empty_like(const X& x, Where where = Where::here()) {
  return detail::make_like(x, {"empty_like", where});
}

}  // namespace tessera
