// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The sum of the products of all elements of two tensors.
///
///     auto energy = dot(u, v);          // einsum<"ij,ij->">(u, v): a scalar, on every process
///     float e = value(dot(u, v));
///
/// Laws: dot(x, y) == sum(x * y), without the product in memory, summed wide
/// (kernel/product/gemm.hpp); complex numbers are not conjugated: dot(conj(x), y) does.
#include <tessera/op/product/einsum.hpp>
#include <tessera/op/reduce.hpp>

namespace tessera {
namespace detail {
/// "ab,ab->" for tensors of `rank` dimensions.
constexpr Equation dot_equation(int rank) {
  Equation e;
  for (int operand = 0; operand < 2; ++operand) {
    for (int d = 0; d < rank; ++d) e.text[e.length++] = static_cast<char>('a' + d);
    if (operand == 0) e.text[e.length++] = ',';
  }
  e.text[e.length++] = '-';
  e.text[e.length++] = '>';
  return e;
}
template <class X, class Y> consteval bool demand_equal_ranks() {
  static_assert(X::rank == Y::rank,
                "[tessera] dot takes two tensors of one shape and their numbers of dimensions "
                "differ; write the product as an einsum, or use matmul");
  return true;
}
}  // namespace detail

/// Returns the sum of x * y over all elements: a scalar tensor, the same on every process. x and y
/// are of equal extents. Communication: an all-reduce of one element over the axes that split them,
/// and y's resharding where it is split otherwise, within the contract `Bound`. Collective over the
/// mesh. Throws ShapeError when extents disagree.
template <class Bound = NoContract, TypedTensor X, TypedTensor Y>
  requires(detail::demand_equal_ranks<X, Y>())
auto dot(const X& x, const Y& y, const CallOptions& call = Where::here()) {
  if constexpr (X::rank == Y::rank)
    return einsum<detail::dot_equation(X::rank), Deduced, Bound>(x, y, call);
  else
    return detail::Unknown<X>();
}
/// This overload takes everything at run time.
inline DynamicTensor dot(const DynamicTensor& x, const DynamicTensor& y,
                         const CallOptions& call = Where::here()) {
  const detail::CallSite site = call.sharded_site("dot");
  detail::mesh_of(x.core(), site);
  detail::mesh_of(y.core(), site);
  if (!(x.extents() == y.extents()))
    throw ShapeError("dot: the tensors are " + to_string(x.extents()) + " and " +
                         to_string(y.extents()) +
                         "; a dot product takes two of equal extents; use matmul or einsum",
                     call.where());
  return einsum(detail::dot_equation(x.core().rank()).view(), x, y, call);
}

}  // namespace tessera
