// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The adjoints of running joins: of a running sum the running sum from the other end; of a running
/// largest or least element a sum at the elements that were it; of a running product a linear
/// recurrence.
///
///     // y = cumulative<Sum> "bv" along v of x: dx is the running sum of dy in reverse
///
/// Laws: no element is divided by, so that a running product may have zeros. Source: Blelloch,
/// "Prefix Sums and Their Applications" (1990), section 1.4: a recurrence is a scan of pairs.
#include <tessera/grad/adjoint/scatter.hpp>
#include <tessera/kernel/functions/complex.hpp>
#include <tessera/op/cumulative.hpp>
#include <tessera/plan/op/scan.hpp>
#include <tessera/plan/op/shape.hpp>

namespace tessera {
namespace fn {
/// The index of an element that is beyond all before it, or the first; else `none`.
template <bool Greatest> struct RecordIndex {
  std::int64_t first, none;
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t operator()(const T& x, const T& before,
                                                      const std::int64_t& i) const {
    return i == first || (Greatest ? x > before : x < before) ? i : none;
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

/// A running product: dx[j] = p[j] s[j], where p is the product of what is before j, and
/// s[j] = dy[j] + x[j + 1] s[j + 1]; exclusively s[j] = dy[j + 1] + x[j + 1] s[j + 1].
inline void adjoint_of_product(const ops::Scan& op, AdjointBuilder& build) {
  const TensorDesc to = build.gradient_of(0);
  if (is_complex(to.type))
    return build.miss(
        "a running product of complex numbers has no gradient yet; keep its operand out of the "
        "gradient with stop_gradient");
  const Terms same{{op.terms.result}, op.terms.result};
  const int d = op.terms.result.find(op.along), next = op.options.reverse ? 1 : -1;
  const DType wide = to.type == DType::f64 ? DType::f64 : DType::f32;
  const DType pairs = wide == DType::f64 ? DType::c128 : DType::c64;
  const AdjointValue x = converted(build, build.finish(build.operand(0)), wide);
  const AdjointValue g = build.reshard(converted(build, build.cotangent(), wide), to.sharding);
  const auto shifted = [&](AdjointValue v) {
    return build.add(ops::Shift{{next, d}, to.sharding}, {v});
  };
  const auto recurrence = [&](auto zero) {
    using T = decltype(zero);
    using C = complex<T>;
    use_tensor_of<C>();
    const ScanRunner<fn::ComposeAffine, C> compose{{}, C{1, 0}};
    const AdjointValue maps =
        mapped(build, {{same.result, same.result}, same.result},
               {shifted(x), op.options.exclusive ? shifted(g) : g}, pairs, to.sharding,
               std::make_shared<OwnedFunction>(LoopRunner<C, fn::MakeComplex, T, T>::kernel({})));
    const AdjointValue sums = build.add(
        ops::Scan{
            same, op.along, Reduction::none, {!op.options.reverse, false}, pairs, to.sharding},
        {maps}, std::make_shared<OwnedFunction>(compose.extras().kernel));
    return mapped(build, same, {sums}, wide, to.sharding,
                  std::make_shared<OwnedFunction>(LoopRunner<T, fn::Imag, C>::kernel({})));
  };
  const AdjointValue s = wide == DType::f64 ? recurrence(double{}) : recurrence(float{});
  const AdjointValue p = build.add(
      ops::Scan{same, op.along, Reduction::product, {op.options.reverse, true}, wide, to.sharding},
      {x});
  build.set(0,
            converted(build, mapped(build, {p, s}, function_of<2>(wide, fn::Multiply{})), to.type));
}

inline void adjoint_of(const ops::Scan& op, AdjointBuilder& build) {
  if (op.reduction == Reduction::max || op.reduction == Reduction::min)
    return adjoint_of_extreme(op, build);
  if (op.reduction == Reduction::product) return adjoint_of_product(op, build);
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

}  // namespace detail
}  // namespace tessera
