// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Slices as operands of concatenate and update (op/shape/concatenate.hpp), which read them from
/// the whole tensor, so that a slice needs no exchange of its own.
///
///     auto ring = concatenate<0>(slice_of<0>(x, {7}, {8}), x, slice_of<0>(x, {0}, {1}));
///
/// Laws: concatenate and update of slices equal those of slice(x, ...), by one exchange.
#include <utility>

#include <tessera/op/call/shape_result.hpp>

namespace tessera {

/// A slice of a typed tensor, whose memory it shares; `Dims` are the dimensions that are cut.
template <TypedTensor A, class Dims> class TensorSlice {
 public:
  static constexpr int rank = A::rank;

  TensorSlice(A tensor, Slice slice) : tensor_(std::move(tensor)), slice_(std::move(slice)) {}
  const A& tensor() const { return tensor_; }
  const Slice& slice() const { return slice_; }

 private:
  A tensor_;
  Slice slice_;
};

/// A dynamic tensor, or a slice of one, whose memory it shares.
class DynamicSlice {
 public:
  DynamicSlice(DynamicTensor tensor) : tensor_(std::move(tensor)) {}  // NOLINT: all of it
  template <TypedTensor A>
  DynamicSlice(const A& tensor) : tensor_(tensor) {}  // NOLINT: as a typed tensor is a dynamic one
  template <class A, class Dims>
  DynamicSlice(const TensorSlice<A, Dims>& typed)  // NOLINT: and so is its slice
      : tensor_(typed.tensor()), slice_(typed.slice()) {}
  DynamicSlice(DynamicTensor tensor, Slice slice)
      : tensor_(std::move(tensor)), slice_(std::move(slice)) {}
  const DynamicTensor& tensor() const { return tensor_; }
  const std::optional<Slice>& slice() const { return slice_; }

 private:
  DynamicTensor tensor_;
  std::optional<Slice> slice_;
};

namespace detail {
/// The part of an operand that is used, and the dimensions along which it is cut.
template <class X> struct OperandOf {
  using tensor = X;
  static constexpr bool known = TypedTensor<X>;
  static constexpr bool sliced = false;
  static constexpr Dimensions cut() { return {}; }
  static const X& whole(const X& x) { return x; }
  static std::optional<Slice> slice(const X&) { return {}; }
};
template <class A, class Dims> struct OperandOf<TensorSlice<A, Dims>> {
  using tensor = A;
  static constexpr bool known = true;
  static constexpr bool sliced = true;
  static constexpr Dimensions cut() { return Dims::of(A::rank); }
  static const A& whole(const TensorSlice<A, Dims>& x) { return x.tensor(); }
  static std::optional<Slice> slice(const TensorSlice<A, Dims>& x) { return x.slice(); }
};

/// X is some ShardedTensor, or a slice of one that is an operand.
template <class X>
concept TypedOperand = detail::OperandOf<X>::known;
}  // namespace detail

/// Returns the slice of x as an operand: elements start, start + stride, ... before limit of each
/// dimension. `D`: the dimensions for which start, limit and stride have an entry each, all where
/// none is named; the others stay whole. Communication: none, but for the operator that it is given
/// to. Throws ShapeError unless there are as many entries; the operator checks the numbers.
template <int... D, TypedTensor A>
TensorSlice<A, detail::Along<D...>> slice_of(const A& x, const Extents& start, const Extents& limit,
                                             const Extents& stride = {},
                                             Where where = Where::here()) {
  return {x, detail::spread_slice<D...>(x, start, limit, stride, {"slice_of", where})};
}
/// This overload takes everything at run time.
inline DynamicSlice slice_of(const DynamicTensor& x, const Extents& start, const Extents& limit,
                             const Extents& stride = {}) {
  return {x, {start, limit, stride}};
}
}  // namespace tessera
