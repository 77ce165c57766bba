// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The adjoints of reductions: a sum's is a repetition; a largest or least element's goes to the
/// elements that equal it, in equal shares (as JAX's); a product's is the product of the others.
///
///     // sum "ij->i" of x: dx[i,j] = dy[i]
///
/// Laws: the gradient of a mean is that of the sum over the number of elements. Equal elements are
/// counted and shares are made as half types are computed, in float.
#include <tessera/grad/adjoint/parts.hpp>
#include <tessera/plan/op/rows/scan.hpp>

namespace tessera {
namespace fn {
/// One where two elements are equal, or both NaN.
struct OneWhereEqual {
  static constexpr std::string_view name = "gradient";
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(const T& x, const T& y) const {
    return x == y || (!(x == x) && !(y == y)) ? T(1) : T{};
  }
};
/// One on a diagonal, else zero: where the indices of dimensions with one letter are equal.
template <class T> struct OnDiagonal {
  int same[max_dims];  ///< the first dimension with each one's letter
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    for (int d = 0; d < i.size(); ++d)
      if (i[d] != i[same[d]]) return T{};
    return T(1);
  }
};
/// x where a mask is not zero, else zero.
struct Masked {
  static constexpr std::string_view name = "gradient";
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(const T& x, const T& mask) const {
    return mask == T{} ? T{} : x;
  }
};
struct NotZero {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION bool operator()(const T& x) const {
    return !(x == T{});
  }
};
}  // namespace fn
template <int I> struct Derivative<fn::OneWhereEqual, I> : ZeroSlope {};
template <> struct Derivative<fn::Masked, 0> : SlopeBy<fn::NotZero, 1> {};
template <> struct Derivative<fn::Masked, 1> : ZeroSlope {};

namespace detail {

/// v with distinct letters `from`, as the gradient of a tensor `to` whose letters are `letters`,
/// some of them perhaps twice: then it lies on the diagonal, and all else is zero.
inline AdjointValue on_diagonal(AdjointBuilder& build, AdjointValue v, const Term& from,
                                const Term& letters, const TensorDesc& to) {
  v = repeated(build, v, from, letters, to);  // over the further dimensions of a letter, too
  if (distinct(letters).size() == letters.size()) return v;
  const AdjointValue mask = with_gradient_type(to.type, [&](auto zero) {
    fn::OnDiagonal<decltype(zero)> f{};
    for (int d = 0; d < letters.size(); ++d) f.same[d] = letters.find(letters[d]);
    return from_index<decltype(zero)>(build, to, f);
  });
  return mapped(build, {v, mask}, function_of<2>(to.type, fn::Masked{}));
}

/// Multiplied along `letter` by the product of all other elements: those before and those after.
inline AdjointValue times_others(AdjointBuilder& build, AdjointValue v, AdjointValue x,
                                 const Term& letters, char letter) {
  const TensorDesc all = build.desc(x);
  for (const bool reverse : {false, true}) {
    const ops::Scan others{{{letters}, letters}, letter,   Reduction::product,
                           {reverse, true},      all.type, all.sharding};
    v = mapped(build, {v, build.add(others, {x})}, function_of<2>(all.type, fn::Multiply{}));
  }
  return v;
}

/// Returns 1 / the number of elements in each mean; 1 of none, whose gradients are empty.
inline double share_of_mean(const Terms& terms, const Extents& extents) {
  return 1 / static_cast<double>(max_of(1, reduced_count(terms, extents)));
}

/// Returns v / count, of v's type; half types are divided in float, which the count's elements are.
inline AdjointValue share_of(AdjointBuilder& build, AdjointValue v, AdjointValue count) {
  const DType type = build.desc(v).type, wide = build.desc(count).type;
  return converted(
      build, mapped(build, {converted(build, v, wide), count}, function_of<2>(wide, fn::Divide{})),
      type);
}

inline void adjoint_of(const ops::Reduce& op, AdjointBuilder& build) {
  if (!build.wants(0)) return;
  const Term &own = op.terms.operands[0], &made = op.terms.result;
  const TensorDesc to = build.gradient_of(0);
  if (op.reduction == Reduction::sum) {
    const AdjointValue g = scaled(build, converted(build, build.cotangent(), to.type),
                                  op.mean ? share_of_mean(op.terms, to.extents) : 1);
    return build.set(0, on_diagonal(build, g, made, own, to));
  }
  const AdjointValue x = build.finish(build.operand(0));
  if (op.reduction == Reduction::max || op.reduction == Reduction::min) {
    const AdjointValue y = build.finish(build.result());
    const AdjointValue equal = mapped(build, {{own, made}, own}, {x, y}, to.type, to.sharding,
                                      function_of<2>(to.type, fn::OneWhereEqual{}));
    const TensorDesc sum = build.desc(y);
    const DType wide = facts_of(to.type).compute;
    const AdjointValue count =
        build.add(ops::Reduce{op.terms, Reduction::sum, false, false, wide, sum.sharding},
                  {converted(build, equal, wide)});
    const AdjointValue share = share_of(build, build.cotangent(), count);
    return build.set(0, mapped(build, {{made, own}, own}, {share, equal}, to.type, to.sharding,
                               function_of<2>(to.type, fn::Masked{})));
  }
  if (op.reduction != Reduction::product) return;  // of truth values
  // One letter after the other: the products on the way, then the way back.
  std::vector<Term> letters{own};
  std::vector<AdjointValue> values{x};
  for (int d = own.size() - 1; d >= 0; --d) {
    if (made.contains(own[d])) continue;
    Term rest;
    for (char letter : letters.back())
      if (letter != own[d]) rest.push_back(letter);
    const TensorDesc all = build.desc(values.back());
    const ops::Reduce product{{{letters.back()}, rest},
                              Reduction::product,
                              false,
                              false,
                              all.type,
                              sharding_of(rest, letters.back(), all.sharding)};
    values.push_back(build.add(product, {values.back()}));
    letters.push_back(rest);
  }
  AdjointValue g = converted(build, build.cotangent(), to.type);
  if (!(letters.back() == made)) {  // in another order
    const Terms back{{made}, letters.back()};
    g = build.add(ops::Transpose{back, sharding_of(letters.back(), own, to.sharding)}, {g});
  }
  for (std::size_t k = values.size() - 1; k > 0; --k) {
    const TensorDesc wide = build.desc(values[k - 1]);
    char along = 0;
    for (char letter : letters[k - 1])
      if (!letters[k].contains(letter)) along = letter;
    g = repeated(build, g, letters[k], letters[k - 1], wide);
    g = times_others(build, g, values[k - 1], letters[k - 1], along);
  }
  build.set(0, g);
}

inline const bool reduce_has_adjoint = have_adjoints<ops::Reduce>();

}  // namespace detail
}  // namespace tessera
