// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The adjoints of running joins: of a running sum the running sum from the other end; of a running
/// largest or least element a sum at the elements that were it; of a running product a linear
/// recurrence.
///
///     // y = cumulative<Sum> "bv" along v of x: dx is the running sum of dy in reverse
///
/// Laws: of equal elements the first was the largest or the least, and the first NaN before all
/// others; no element is divided by, so that a running product may have zeros. Source: Blelloch,
/// "Prefix Sums and Their Applications" (1990), section 1.4: a recurrence is a scan of pairs.
#include <tessera/grad/adjoint/scatter.hpp>
#include <tessera/grad/derivatives/complex.hpp>
#include <tessera/kernel/functions/complex.hpp>
#include <tessera/op/rows/cumulative.hpp>
#include <tessera/plan/op/rows/scan.hpp>
#include <tessera/plan/op/shape/shape.hpp>

namespace tessera {
namespace fn {
/// The index of an element that is beyond all before it, or the first, or the first NaN; else
/// `none`.
template <bool Greatest> struct RecordIndex {
  std::int64_t first, none;
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t operator()(const T& x, const T& before,
                                                      const std::int64_t& i) const {
    const bool beyond = Greatest ? x > before : x < before;
    return i == first || (before == before && (beyond || !(x == x))) ? i : none;
  }
};
/// s -> a s + b as one element (a, b): the later map after the earlier ones.
struct ComposeAffine {
  template <class C> KOKKOS_FORCEINLINE_FUNCTION C operator()(const C& before, const C& f) const {
    return {f.re * before.re, f.re * before.im + f.im};
  }
};
}  // namespace fn

namespace detail {

/// A running largest or least: each gradient goes to the element that was it.
inline void adjoint_of_extreme(const ops::Scan& op, AdjointBuilder& build) {
  const bool greatest = op.reduction == Reduction::max, reverse = op.options.reverse;
  const Terms same{{op.terms.result}, op.terms.result};
  const int d = op.terms.result.find(op.along);
  const AdjointValue x = build.finish(build.operand(0));
  const TensorDesc to = build.desc(x);
  const TensorDesc places{DType::i64, to.extents, to.sharding};
  const AdjointValue before = build.add(
      ops::Scan{same, op.along, op.reduction, {reverse, true}, to.type, to.sharding}, {x});
  const AdjointValue at = from_index<std::int64_t>(build, places, IndexAlong<std::int64_t>{d});
  const auto record = [&](auto f) {
    return with_real_type(to.type, [&](auto zero) {
      using T = decltype(zero);
      return std::make_shared<const OwnedFunction>(
          LoopRunner<std::int64_t, decltype(f), T, T, std::int64_t>::kernel(f));
    });
  };
  const std::int64_t n = to.extents[d], first = reverse ? n - 1 : 0, none = reverse ? n : -1;
  const AdjointValue records = mapped(build, {{same.result, same.result, same.result}, same.result},
                                      {x, before, at}, DType::i64, to.sharding,
                                      greatest ? record(fn::RecordIndex<true>{first, none})
                                               : record(fn::RecordIndex<false>{first, none}));
  // Indices only grow in the direction of the scan: the last record is the greatest of them.
  const AdjointValue last =
      build.add(ops::Scan{same, op.along, reverse ? Reduction::min : Reduction::max, op.options,
                          DType::i64, to.sharding},
                {records});
  build.set(0, scattered_along(build, build.cotangent(), last, d, to));
}

/// Returns s[j] = v[j] + a[j] s[i], i being the element before j along a dimension; elements T.
template <class T>
AdjointValue recurrence(AdjointBuilder& build, const ops::Scan& op, bool reverse, AdjointValue a,
                        AdjointValue v, const Sharding& out) {
  using C = complex<T>;  // whose kernels come with the product's: use_running_products_of
  const Term& letters = op.terms.result;
  const ScanRunner<fn::ComposeAffine, C> compose{{}, C{1, 0}};
  const AdjointValue maps =
      mapped(build, {{letters, letters}, letters}, {a, v}, dtype_of<C>, out,
             std::make_shared<OwnedFunction>(LoopRunner<C, fn::MakeComplex, T, T>::kernel({})));
  const AdjointValue sums = build.add(
      ops::Scan{
          {{letters}, letters}, op.along, Reduction::none, {reverse, false}, dtype_of<C>, out},
      {maps}, std::make_shared<OwnedFunction>(compose.extras().kernel));
  return mapped(build, {{letters}, letters}, {sums}, dtype_of<T>, out,
                std::make_shared<OwnedFunction>(LoopRunner<T, fn::Imag, C>::kernel({})));
}
/// v, moved by one element against the direction of a scan: what comes after each element; then 0.
inline AdjointValue next_along(AdjointBuilder& build, const ops::Scan& op, AdjointValue v,
                               const Sharding& out) {
  const int d = op.terms.result.find(op.along), next = op.options.reverse ? 1 : -1;
  return build.add(ops::Shift{{next, d}, out}, {v});
}

/// A running product: dx[j] = p[j] s[j], where p is the product of what is before j, and
/// s[j] = dy[j] + x[j + 1] s[j + 1]; exclusively s[j] = dy[j + 1] + x[j + 1] s[j + 1].
inline void adjoint_of_product(const ops::Scan& op, AdjointBuilder& build) {
  const TensorDesc to = build.gradient_of(0);
  if (is_complex(to.type))
    return build.miss(
        "a running product of complex numbers has no gradient yet; keep its operand out of the "
        "gradient with stop_gradient");
  const DType wide = to.type == DType::f64 ? DType::f64 : DType::f32;
  const AdjointValue x = converted(build, build.finish(build.operand(0)), wide);
  AdjointValue g = build.reshard(converted(build, build.cotangent(), wide), to.sharding);
  if (op.options.exclusive) g = next_along(build, op, g, to.sharding);
  const AdjointValue after = next_along(build, op, x, to.sharding);
  const bool back = !op.options.reverse;
  const AdjointValue s = wide == DType::f64
                             ? recurrence<double>(build, op, back, after, g, to.sharding)
                             : recurrence<float>(build, op, back, after, g, to.sharding);
  const AdjointValue p = build.add(ops::Scan{{{op.terms.result}, op.terms.result},
                                             op.along,
                                             Reduction::product,
                                             {op.options.reverse, true},
                                             wide,
                                             to.sharding},
                                   {x});
  build.set(0,
            converted(build, mapped(build, {p, s}, function_of<2>(wide, fn::Multiply{})), to.type));
}

/// The recurrence itself, for gradients of gradients: of maps (a, b) whose compositions are (A, S),
/// da[j] = r[j] A[j - 1] + s[j] S[j - 1] and db[j] = s[j], where r and s are the recurrences of dA
/// and dS from the other end.
template <class T> void adjoint_of_recurrence(const ops::Scan& op, AdjointBuilder& build) {
  using C = complex<T>;
  const TensorDesc to = build.gradient_of(0);
  const Term& letters = op.terms.result;
  const auto part = [&](AdjointValue v, const auto& f) {
    using F = std::decay_t<decltype(f)>;
    return mapped(build, {{letters}, letters}, {v}, dtype_of<T>, to.sharding,
                  std::make_shared<OwnedFunction>(LoopRunner<T, F, C>::kernel(f)));
  };
  const AdjointValue maps = build.finish(build.operand(0));
  const AdjointValue g = build.reshard(build.cotangent(), to.sharding);
  const AdjointValue after = next_along(build, op, part(maps, fn::Real{}), to.sharding);
  const bool back = !op.options.reverse;
  const AdjointValue r = recurrence<T>(build, op, back, after, part(g, fn::Real{}), to.sharding);
  const AdjointValue s =
      recurrence<T>(build, op, back, after, part(g, fn::NegativeImag{}), to.sharding);
  ops::Scan others = op;
  others.options.exclusive = true;
  others.out = to.sharding;
  const ScanRunner<fn::ComposeAffine, C> compose{{}, C{1, 0}};
  const AdjointValue before =
      build.add(others, {maps}, std::make_shared<OwnedFunction>(compose.extras().kernel));
  const auto product = [&](AdjointValue a, AdjointValue b) {
    return mapped(build, {a, b}, function_of<2>(dtype_of<T>, fn::Multiply{}));
  };
  const AdjointValue by_factor =
      mapped(build, {product(r, part(before, fn::Real{})), product(s, part(before, fn::Imag{}))},
             function_of<2>(dtype_of<T>, fn::Add{}));
  const AdjointValue by_sum = mapped(build, {s}, function_of<1>(dtype_of<T>, fn::Negate{}));
  build.set(
      0, mapped(build, {{letters, letters}, letters}, {by_factor, by_sum}, dtype_of<C>, to.sharding,
                std::make_shared<OwnedFunction>(LoopRunner<C, fn::MakeComplex, T, T>::kernel({}))));
}
template <class T> bool is_recurrence(const AdjointCall& call) {
  return call.kernel.fold == &ScanRunner<fn::ComposeAffine, complex<T>>::fold;
}

inline void adjoint_of(const ops::Scan& op, AdjointBuilder& build) {
  if (op.reduction == Reduction::max || op.reduction == Reduction::min)
    return adjoint_of_extreme(op, build);
  if (op.reduction == Reduction::product) return adjoint_of_product(op, build);
  if (is_recurrence<float>(build.call())) return adjoint_of_recurrence<float>(op, build);
  if (is_recurrence<double>(build.call())) return adjoint_of_recurrence<double>(op, build);
  if (op.reduction != Reduction::sum)
    return build.miss(
        "a running join by a function has no gradient yet; give it one with custom_gradient, or "
        "keep its operand out of the gradient with stop_gradient");
  const TensorDesc to = build.gradient_of(0);
  const AdjointValue g = converted(build, build.cotangent(), to.type);
  ScanOptions back = op.options;
  back.reverse = !back.reverse;
  build.set(0, build.add(ops::Scan{op.terms, op.along, Reduction::sum, back, to.type,
                                   build.desc(g).sharding},
                         {g}));
}

inline const bool scan_has_adjoint = have_adjoints<ops::Scan>();

}  // namespace detail
}  // namespace tessera
