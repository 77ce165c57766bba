// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Tensors put together: one behind the other, or a block into a larger one.
///
///     auto a = concatenate<1>(x, y, x);             // columns of x, then of y, then of x again
///     auto b = update(x, block, {4, 0});            // x with the block in place of rows 4, 5, ...
///
/// Laws: the slices of a concatenation are the operands; update(x, slice(x, s, l), s) == x.
#include <vector>

#include <tessera/op/dynamic_call.hpp>
#include <tessera/op/shape_result.hpp>

namespace tessera {

/// Returns the tensors, of which all extents but those of dimension D are equal, one behind the
/// other along D, under the spec of the first that is split, or `Out`; unfinished where all are
/// alike. Communication: one exchange of what has a new owner, all operands together; none where
/// none has D split and all are split alike. Collective over the mesh. Throws ShapeError when
/// extents disagree.
template <int D, class Out = Deduced, class Bound = NoContract, TypedTensor... A>
  requires(sizeof...(A) >= 1 && sizeof...(A) <= max_operands)
auto concatenate(const A&... x) {
  using Typed = detail::TakeCall<OperatorKind::concatenate, detail::Along<D>, Out, A...>;
  return typename Typed::result(
      detail::concatenate(D, detail::OperandList{&x.core()...}, Typed::value,
                          {"concatenate", {}, detail::bound<Typed, Bound>()}));
}

/// Returns x with the elements of `block` in place of its own from `start` on, under x's spec or
/// `Out`. `D`: dimensions for which start has an entry; along the others the block begins at 0;
/// without any, all have one. Communication: one exchange of the block's elements, and of x's where
/// `Out` is another spec. Collective over the mesh. Throws ShapeError unless the block lies within
/// x.
template <class Out = Deduced, class Bound = NoContract, int... D, TypedTensor A, TypedTensor B>
auto update(const A& x, const B& block, const Extents& start, Where where = Where::here()) {
  using Dims = detail::Along<D...>;
  static_assert(detail::demand_dimensions<A::rank, Dims, A>());
  using Typed = detail::TakeCall<OperatorKind::update, detail::Along<>, Out, A, B>;
  const CallSite site{"update", where, detail::bound<Typed, Bound>()};
  return typename Typed::result(detail::update(
      x.core(), block.core(),
      sizeof...(D) == 0 ? start
                        : detail::spread("start", start, Dims::named(), Extents(A::rank, 0), site),
      Typed::value, site));
}
template <int First, int... D, TypedTensor A, TypedTensor B>
auto update(const A& x, const B& block, const Extents& start, Where where = Where::here()) {
  return update<Deduced, NoContract, First, D...>(x, block, start, where);
}

/// The same with everything known at run time; without `out` the result is sharded as the first
/// operand that is split.
inline DynamicTensor concatenate(int dim, const std::vector<DynamicTensor>& x, const Sharding& out,
                                 const DynamicCall& call = Where::here()) {
  if (x.empty() || x.size() > max_operands)
    throw UsageError("concatenate: there are " + std::to_string(x.size()) +
                         " operands; give one to " + std::to_string(max_operands) +
                         " tensors, and more of them in turn",
                     call.where());
  detail::OperandList operands;
  for (const DynamicTensor& one : x) operands.push_back(&one.core());
  return DynamicTensor(detail::concatenate(dim, operands, out, call.site("concatenate")));
}
inline DynamicTensor concatenate(int dim, const std::vector<DynamicTensor>& x,
                                 const DynamicCall& call = Where::here()) {
  Shardings shardings;
  for (std::size_t k = 0; k < x.size() && k < max_operands; ++k)
    shardings.push_back(x[k].sharding());
  return concatenate(dim, x, shardings.empty() ? Sharding() : taken_sharding(shardings), call);
}
inline DynamicTensor update(const DynamicTensor& x, const DynamicTensor& block,
                            const Extents& start, const Sharding& out,
                            const DynamicCall& call = Where::here()) {
  return DynamicTensor(detail::update(x.core(), block.core(), start, out, call.site("update")));
}
inline DynamicTensor update(const DynamicTensor& x, const DynamicTensor& block,
                            const Extents& start, const DynamicCall& call = Where::here()) {
  return update(x, block, start, x.sharding(), call);
}

}  // namespace tessera
