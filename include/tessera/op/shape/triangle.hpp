// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The triangles of the matrices in the last two dimensions of a tensor; elements outside become
/// zero.
///
///     auto l = tril(x);                  // zero above the diagonal
///     auto u = triu(x, 1);               // zero below the first diagonal above it
///
/// Laws: equals map_with_index of the same choice; tril(x, k) has the elements of x where column -
/// row <= k, triu(x, k) where column - row >= k, zero elsewhere, even for NaN and infinities; an
/// unfinished tensor stays so.
#include <string_view>

#include <tessera/op/elements/named_function.hpp>

namespace tessera {
namespace detail {
/// An element stays what it is or becomes zero, by its place alone; so it does not matter whether
/// it is joined with others before or after.
template <bool Lower> struct Triangle {
  static constexpr std::string_view name = Lower ? "tril" : "triu";
  static constexpr Linearity linearity =
      Linearity::linear | Linearity::multiplicative | Linearity::monotone;
  Index diagonal;
  template <class T> KOKKOS_FUNCTION T operator()(const GlobalIndex& i, T x) const {
    return derivative(i, x) ? x : T{};
  }
  /// Whether the element stays: a gradient outside is zero, even where it is NaN.
  template <class T> KOKKOS_FUNCTION bool derivative(const GlobalIndex& i, T) const {
    const Index above = i[i.size() - 1] - i[i.size() - 2];
    return Lower ? above <= diagonal : above >= diagonal;
  }
};

template <bool Lower>
DynamicTensor triangle(const DynamicTensor& x, Index diagonal, const CallOptions& call) {
  using F = Triangle<Lower>;
  const CallSite site = call.sharded_site(F::name);
  const OperandList operands{&x.core()};
  const DType type = common_type(operands, 0, site);
  const int rank = x.core().rank();
  if (rank < 2)
    throw_broken(
        Rule::matrices_last,
        std::string(site.label) + ": " +
            tessera::explain(Verdict{.rule = Rule::matrices_last, .operand = 0, .left = rank},
                             {.operands = 1}),
        site.where);
  ops::Map operation{broadcast_terms({rank}), type, F::linearity};
  operation.out = call.out() != nullptr ? *call.out() : operation.deduced({x.desc()});
  const F f{diagonal};
  PlacedFunction<F> placed{f, {}, {}};
  place_result(operation.terms, operands, operation.out, placed.offset, placed.extents);
  return with_type(type, [&](auto zero) {
    using T = decltype(zero);
    return DynamicTensor(
        run({operation, operands, site, {.kernel = IndexRunner<T, F, T>::kernel(placed)}}));
  });
}
template <bool Lower, class A>
auto triangle_of(const A& x, Index diagonal, const CallOptions& call) {
  if constexpr (!TypedTensor<A>) {
    return triangle<Lower>(x, diagonal, call);
  } else {
    constexpr bool matrices = A::rank >= 2;
    static_assert(demand_elements < matrices ? Rule::ok : Rule::matrices_last, A > ());
    if constexpr (matrices)
      return map_with_index(Triangle<Lower>{diagonal}, x, call);
    else
      return Unknown<A>();
  }
}
}  // namespace detail

/// Returns x with zeros where column - row is more than `diagonal` (tril), or less (triu), rows and
/// columns being the last two dimensions; of any element type. Communication: none. Collective over
/// the mesh. Throws nothing of its own.
template <detail::AnyTensor A>
auto tril(const A& x, Index diagonal = 0, const CallOptions& call = Where::here()) {
  return detail::triangle_of<true>(x, diagonal, call);
}
template <detail::AnyTensor A>
auto triu(const A& x, Index diagonal = 0, const CallOptions& call = Where::here()) {
  return detail::triangle_of<false>(x, diagonal, call);
}

}  // namespace tessera
