// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Tensors put together: one behind the other, or a block into a larger one.
///
///     auto a = concatenate<1>(x, y, x);             // columns of x, then of y, then of x again
///     auto b = update(x, block, {4, 0});            // x with the block in place of rows 4, 5, ...
///     auto c = concatenate<0>(slice_of<0>(x, {6}, {8}), x);    // the last rows first, one exchange
///
/// Laws: the slices of a concatenation are the operands; update(x, slice(x, s, l), s) == x.
#include <concepts>
#include <initializer_list>
#include <vector>

#include <tessera/op/shape/tensor_slice.hpp>

namespace tessera {
namespace detail {

/// How concatenate<D> of such operands is made. A dimension in which one operand is cut counts as
/// cut in all, so that they go together.
template <int D, class... X> struct ConcatenateBy {
  static constexpr ops::Concatenate make(const TensorDescs& x) {
    ops::Concatenate made{{D}};
    for (const TensorDesc& one : x) {
      Slice cut{Extents(one.rank(), 0), one.extents, {}};
      for (const Dimensions& dims : {OperandOf<X>::cut()...})
        for (int d : dims)
          if (d >= 0 && d < one.rank()) cut.start[d] = 1;
      if ((OperandOf<X>::sliced || ...)) made.slices.push_back(cut);
    }
    return made;
  }
};
/// How update is made, of a slice or of all of a tensor.
template <bool Sliced> struct UpdateBy {
  static constexpr ops::Update make(const TensorDescs& x) {
    const Extents ones(x[0].rank(), 1);
    Slices slices{std::nullopt, Slice{Extents(x[1].rank(), 0), Extents(x[1].rank(), 2520), {}}};
    if (Sliced) slices[0] = Slice{ones, x[0].extents, {}};
    return {{ones, slices}};
  }
};
}  // namespace detail

/// Returns the operands one behind the other along dimension D, under the spec of the first that is
/// split, or `Out`; unfinished where all are unfinished alike. Their other extents are equal.
/// Operands are tensors, or slices of them (op/shape/tensor_slice.hpp). Communication: one exchange
/// of the elements with a new owner, for all operands together; none where all are split alike, and
/// none along D or a dimension that is cut. Collective over the mesh. Throws ShapeError when
/// extents disagree, or a slice lies outside its tensor.
template <int D, class Out = Deduced, class Bound = NoContract, detail::TypedOperand... A>
  requires(sizeof...(A) >= 1 && sizeof...(A) <= max_operands)
auto concatenate(const A&... x) {
  using Typed =
      detail::Typed<detail::ConcatenateBy<D, A...>, Out, typename detail::OperandOf<A>::tensor...>;
  const ops::Concatenate operation{{D, Slices{detail::OperandOf<A>::slice(x)...}}, Typed::value};
  return typename Typed::result(detail::run({operation,
                                             {&detail::OperandOf<A>::whole(x).core()...},
                                             {"concatenate", {}, detail::bound<Typed, Bound>()}}));
}

/// Returns x with the elements of `block` in place of its own from `start` on, under x's spec or
/// `Out`. Both are tensors, or slices of them (op/shape/tensor_slice.hpp). `D`: the dimensions for
/// which start has an entry, all where none is named; along the others the block begins at 0.
/// Communication: one exchange of the block's elements, and of x's where `Out` is another spec or x
/// is a slice. Collective over the mesh. Throws ShapeError unless the block lies within x, and
/// slices within their tensors.
template <class Out = Deduced, class Bound = NoContract, int... D, detail::TypedOperand A,
          detail::TypedOperand B>
auto update(const A& x, const B& block, const Extents& start,
            const CallOptions& call = Where::here()) {
  using X = detail::OperandOf<A>;
  using Y = detail::OperandOf<B>;
  using Typed =
      detail::Typed<detail::UpdateBy<X::sliced>, Out, typename X::tensor, typename Y::tensor>;
  const typename X::tensor& all = X::whole(x);
  const detail::CallSite site = detail::typed_site<Typed, Bound>("update", call, all.core());
  const ops::Update operation{{detail::spread<D...>(all, "start", start, Extents(A::rank, 0), site),
                               Slices{X::slice(x), Y::slice(block)}},
                              Typed::value};
  return typename Typed::result(
      detail::run({operation, {&all.core(), &Y::whole(block).core()}, site}));
}
template <int First, int... D, detail::TypedOperand A, detail::TypedOperand B>
auto update(const A& x, const B& block, const Extents& start,
            const CallOptions& call = Where::here()) {
  return update<Deduced, NoContract, First, D...>(x, block, start, call);
}

namespace detail {
/// Dynamic tensors, or slices of them, in order.
class DynamicOperands {
 public:
  DynamicOperands(std::initializer_list<DynamicSlice> operands) : operands_(operands) {}
  template <std::convertible_to<DynamicSlice> T>
  DynamicOperands(const std::vector<T>& operands)  // NOLINT: a list of them is what it is
      : operands_(operands.begin(), operands.end()) {}
  const std::vector<DynamicSlice>& list() const { return operands_; }

 private:
  std::vector<DynamicSlice> operands_;
};
}  // namespace detail

/// These overloads take everything at run time; without a sharding the result of concatenate is
/// sharded as the first operand that is split, and that of update as x is.
inline DynamicTensor concatenate(int dim, const detail::DynamicOperands& x,
                                 const CallOptions& call = Where::here()) {
  const std::vector<DynamicSlice>& list = x.list();
  if (list.empty() || list.size() > max_operands)
    throw UsageError("concatenate: there are " + std::to_string(list.size()) +
                         " operands; give one to " + std::to_string(max_operands) +
                         " tensors, and more of them in turn",
                     call.where());
  detail::OperandList operands;
  ops::Concatenate operation{{dim}};
  for (const DynamicSlice& one : list) {
    operands.push_back(&one.tensor().core());
    operation.slices.push_back(one.slice());
  }
  return detail::run_dynamic("concatenate", call, operation, operands);
}
inline DynamicTensor update(const DynamicSlice& x, const DynamicSlice& block, const Extents& start,
                            const CallOptions& call = Where::here()) {
  return detail::run_dynamic("update", call, ops::Update{{start, Slices{x.slice(), block.slice()}}},
                             {&x.tensor().core(), &block.tensor().core()});
}
}  // namespace tessera
