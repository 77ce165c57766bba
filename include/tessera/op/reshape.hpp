// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Dimensions split and merged; elements keep their row-major order.
///
///     auto heads = reshape<P<data, _, model, _>>(x, {8, 16, 4, 8});   // x is 8 x 16 x 32
///     auto rows = reshape<P<Axes<data, model>, _>>(x, {128, 32});
///
/// Laws: gather(reshape(x)) has the elements of gather(x) in order; reshape there and back gives x;
/// a process that keeps its elements communicates nothing.
#include <tessera/op/dynamic_call.hpp>
#include <tessera/op/shape_result.hpp>

namespace tessera {
namespace detail {
template <class Out, class A> struct ReshapeCall {
  using mesh = typename A::mesh_type;
  static_assert(demand_spec<mesh, Out>());
  static constexpr Sharding value = lower<mesh, Out>();
  static constexpr Verdict verdict = check_shape({A::sharding()}, value.rank(), value);
  static constexpr bool sound = verdict.ok() && founded<A>;
  static_assert(demand_shape<verdict.rule, verdict.operand, A>());
  static constexpr Contract needs(const MeshShape& on, const Contract& contract) {
    return verdict.ok() ? needs_of_reshape(A::sharding(), value, on, contract)
                        : Contract::nothing();
  }
  using result = Result<typename A::value_type, mesh, ReshapeCall>;
};
}  // namespace detail

/// Returns x with the extents given, under the spec `Out`. Communication: none where each process
/// keeps its elements, as when the leading dimension of what is split or merged carries the axes
/// and divides; else one exchange of what has a new owner, and what gathers or moves axes that
/// split inner dimensions, as plan_reshape says. Collective over the mesh. Throws ShapeError unless
/// the number of elements stays. Source: GShard, section 3.3.3.
template <class Out, class Bound = NoContract, TypedTensor A>
typename detail::ReshapeCall<Out, A>::result reshape(const A& x, const Extents& extents,
                                                     Where where = Where::here()) {
  using Typed = detail::ReshapeCall<Out, A>;
  return typename Typed::result(detail::reshape(x.core(), extents, Typed::value,
                                                {"reshape", where, detail::bound<Typed, Bound>()}));
}

/// The same with everything known at run time; without `out` the leading dimension of each group
/// that is split or merged is split as it was, and inner ones are whole.
inline DynamicTensor reshape(const DynamicTensor& x, const Extents& extents, const Sharding& out,
                             const DynamicCall& call = Where::here()) {
  return DynamicTensor(detail::reshape(x.core(), extents, out, call.site("reshape")));
}
inline DynamicTensor reshape(const DynamicTensor& x, const Extents& extents,
                             const DynamicCall& call = Where::here()) {
  const CallSite site = call.site("reshape");
  detail::mesh_of(x.core(), site);
  detail::require_no(reshape_text(x.extents(), extents), site);
  return reshape(x, extents, reshaped_sharding(x.desc(), extents), call);
}

}  // namespace tessera
