// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Sums and means with the same bits for any number of processes, any mesh and any spec.
///
///     auto s = sum<"bsv->bs">(x, deterministic);
///     auto m = reduce<Deterministic<Mean>, "bsv->bs">(x);
///
/// Laws: the bits are a function of the row's elements alone, not even of their order; the error is
/// at most half a unit in the last place of the sum (a mean's: one) and 2^-(mantissa bits + 9) of
/// the row's largest magnitude; NaN and infinities give what their sum is. Source: the idea of
/// Demmel & Nguyen, Parallel Reproducible Summation, IEEE TC 2015, and of fixed-point
/// superaccumulators; plan/deterministic.hpp says what is done.
#include <tessera/op/reduce.hpp>
#include <tessera/op/row_operators.hpp>

namespace tessera {

/// Asks for the same bits for any number of processes.
struct DeterministicTag {};
inline constexpr DeterministicTag deterministic{};

namespace detail {
/// Integer sums and truth values, and maxima and minima of any numbers, are exact as they are.
template <class Kind, class A>
inline constexpr bool needs_limbs = Kind::reduction == Reduction::sum &&
                                    (RealElement<typename A::value_type> ||
                                     ComplexElement<typename A::value_type>);

template <class Kind, Equation E, class Out, class A, bool = needs_limbs<Kind, A>>
struct DeterministicCall : ReduceCall<Kind, E, Out, A> {};

template <class Kind, Equation E, class Out, class A>
struct DeterministicCall<Kind, E, Out, A, true> {
  using mesh = typename A::mesh_type;
  static_assert(demand_out<mesh, Out>());
  static constexpr bool mean = std::is_same_v<Kind, Mean>;
  static constexpr Terms terms = parse(E.view());
  static constexpr Shardings operands{A::sharding()};
  static constexpr Sharding value = OutSharding<mesh, Out>::make(terms, operands);
  static constexpr Verdict verdict = check_deterministic(terms, operands, value);
  static_assert(demand<DeterministicCall, A>());
  static constexpr Contract needs(const MeshShape& on, const Contract& contract) {
    return verdict.ok() ? needs_of_deterministic(terms, operands[0], value, on, contract)
                        : Contract::nothing();
  }
  static constexpr Plan plan(const TensorDesc& x, const MeshShape& on, int process,
                             const PlanOptions& options) {
    return plan_deterministic_sum(terms, x, value, on, process, options);
  }
  static TensorCore run(const TensorCore& x, CallSite site, const Extras& extras = {}) {
    use_rows_of<typename A::value_type>();
    use_tensor_of<std::int64_t>();
    return deterministic_sum(terms, mean, x, value, site, extras);
  }
  using result = Result<typename A::value_type, mesh, DeterministicCall>;
};

template <class Kind, Equation E, class Out, class A>
struct ReduceCall<Deterministic<Kind>, E, Out, A> : DeterministicCall<Kind, E, Out, A> {
  static_assert(sizeof(Deterministic<Kind>) > 0);  // there is such a kind
};

template <class Kind> struct DynamicReduce<Deterministic<Kind>> {
  static_assert(sizeof(Deterministic<Kind>) > 0);
  static TensorCore run(const Terms& terms, const TensorCore& x, const Sharding& out, CallSite site,
                        const Extras& extras = {}) {
    return run(terms, x, out, site, extras, KindType<Kind>::of(x.type()));
  }
  static TensorCore run(const Terms& terms, const TensorCore& x, const Sharding& out, CallSite site,
                        const Extras& extras, DType type) {
    if (Kind::reduction != Reduction::sum || !(tessera::is_real(x.type()) || is_complex(x.type())))
      return DynamicReduce<Kind>::run(terms, x, out, site, extras, type);
    use_element<std::int64_t>();
    return deterministic_sum(terms, std::is_same_v<Kind, Mean>, x, out, site, extras);
  }
};
}  // namespace detail

/// Returns the sum, or mean, of x over the dimensions that E drops. Communication: over the axes
/// that split those dimensions, an all-reduce of an exponent for each row, and a reduce-scatter or
/// all-reduce of its limbs (two to eight 64-bit integers for each element of the result); none when
/// they are not split. Collective over the mesh. Throws ShapeError for rows of more than 2^48
/// elements.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto sum(const A& x, DeterministicTag, Where where = Where::here()) {
  return reduce<Deterministic<Sum>, E, Out, Bound>(x, where);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto mean(const A& x, DeterministicTag, Where where = Where::here()) {
  return reduce<Deterministic<Mean>, E, Out, Bound>(x, where);
}
template <TypedTensor A> auto sum(const A& x, DeterministicTag, Where where = Where::here()) {
  return reduce<Deterministic<Sum>, detail::total_equation(A::rank)>(x, where);
}
template <TypedTensor A> auto mean(const A& x, DeterministicTag, Where where = Where::here()) {
  return reduce<Deterministic<Mean>, detail::total_equation(A::rank)>(x, where);
}

}  // namespace tessera
