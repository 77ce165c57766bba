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

#include <tessera/op/call/call_options.hpp>
#include <tessera/op/call/outside.hpp>
#include <tessera/op/create/create.hpp>
#include <tessera/run/copy_between.hpp>
#include <tessera/run/request.hpp>
#include <tessera/run/require_operands.hpp>

namespace tessera {
namespace detail {
template <TypedTensor A> ProcessMesh<typename A::mesh_type> mesh_like(const A& x) {
  return ProcessMesh<typename A::mesh_type>(x.core().mesh());
}
inline DynamicTensor make_like(const DynamicTensor& x, const MapKernel& kernel, CallSite site) {
  const TensorCore& core = x.core();
  MeshCore& mesh = mesh_of(core, site);
  require_made_finished(mesh, core.sharding(), std::string(site.label) + ": ", site.where);
  return DynamicTensor(create(core.mesh(), core.desc(), kernel, site));
}
/// One element for a whole block.
struct OneElement {
  DType type;
  FillValue element;

  template <class Told> void numbers(Told& told) const {
    if (element.data() != nullptr) told.add_bytes(element.data(), size_of(type), false);
  }
  static void make(const void* one, const Box& block, const Extents&, void* out) {
    const auto& from = *static_cast<const OneElement*>(one);
    const Index n = block.size();
    if (from.element.data() == nullptr)
      return fill_zeros(out, n * static_cast<Index>(size_of(from.type)));
    const StridedCopy all{{n}, 0, {0}, 0, {1}};
    if (n > 0)
      copy_between(from.type, {const_cast<void*>(from.element.data()), true}, {out, false}, &all,
                   1);
  }
};
inline DynamicTensor filled_like(const DynamicTensor& x, const OutsideValue& value, CallSite site) {
  const OneElement one{x.type(), value.as(x.type(), site)};
  return make_like(x,
                   {.context = &one,
                    .keep = &keep_function<OneElement>,
                    .make = &OneElement::make,
                    .numbers = numbers_of<OneElement>()},
                   site);
}
}  // namespace detail

/// Returns a tensor of x's element type, extents (n, m, ...), sharding and mesh, with every element
/// `value`; of zeros_like 0, of ones_like 1. Communication: none. Collective over the mesh. Throws
/// UsageError when the number is no element of x's type. (Those of dynamic tensors are compiled
/// where they are used.)
template <TypedTensor A>
TensorOf<A> full_like(const A& x,
                      std::type_identity_t<detail::GivenElement<typename A::value_type>> value,
                      const CallOptions& call = Where::here()) {
  const detail::CallSite site = call.site("full_like");
  return detail::filled<TensorOf<A>>(detail::mesh_like(x), x.extents(), value.at(site), site);
}
template <std::same_as<DynamicTensor> X>
DynamicTensor full_like(const X& x, detail::OutsideValue value,
                        const CallOptions& call = Where::here()) {
  return detail::filled_like(x, value, call.site("full_like"));
}
template <detail::AnyTensor A>
auto zeros_like(const A& x, const CallOptions& call = Where::here()) {
  if constexpr (TypedTensor<A>)
    return detail::filled<TensorOf<A>>(detail::mesh_like(x), x.extents(), typename A::value_type{},
                                       call.site("zeros_like"));
  else
    return detail::filled_like(x, {}, call.site("zeros_like"));
}
template <detail::AnyTensor A> auto ones_like(const A& x, const CallOptions& call = Where::here()) {
  if constexpr (TypedTensor<A>)
    return detail::filled<TensorOf<A>>(detail::mesh_like(x), x.extents(), typename A::value_type(1),
                                       call.site("ones_like"));
  else
    return detail::filled_like(
        x, is_boolean(x.type()) ? detail::OutsideValue(true) : detail::OutsideValue(1),
        call.site("ones_like"));
}
/// Returns such a tensor with unspecified elements: for code that writes them all. Communication:
/// none. Throws nothing of its own.
template <detail::AnyTensor A>
auto empty_like(const A& x, const CallOptions& call = Where::here()) {
  if constexpr (TypedTensor<A>)
    return detail::create<TensorOf<A>>(detail::mesh_like(x), x.extents(), {},
                                       call.site("empty_like"));
  else
    return detail::make_like(x, {}, call.site("empty_like"));
}

}  // namespace tessera
