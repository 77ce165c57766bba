// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The types of the results of operators that move elements and compute nothing; see
/// op/result.hpp. Dimensions, where a call names some, are template arguments: they say what may
/// be communicated.
///
///     slice<1>(x, {2}, {13});            // dimension 1 alone
///     slice<P<data, _>>(x, {0, 2}, {8, 13});
#include <tessera/op/result.hpp>
#include <tessera/op/shape_operators.hpp>

namespace tessera::detail {

/// The dimensions that a call names; none: all.
template <int... D> struct Along {
  static constexpr Dimensions named() {
    Dimensions dims;
    (dims.push_back(D), ...);
    return dims;
  }
  static constexpr Dimensions of(int rank) {
    Dimensions dims = named();
    for (int d = 0; dims.size() < rank && sizeof...(D) == 0; ++d) dims.push_back(d);
    return dims;
  }
};

/// Numbers for all dimensions, given those for the named ones; the others have `others`.
inline Extents spread(std::string_view name, const Extents& values, const Dimensions& dims,
                      const Extents& others, CallSite site) {
  require_no(entries_text(name, values.size(), dims.size()), site);
  Extents all = others;
  for (int i = 0; i < dims.size(); ++i) all[dims[i]] = values[i];
  return all;
}

template <class First, class... Rest> struct CommonElement {
  static_assert(demand_one_type<Rule::joined_types_alike, First, Rest...>());
  using type = typename First::value_type;
};

template <Rule R, int Which, class... Tensors> consteval bool demand_shape() {
  if constexpr (R != Rule::ok && (founded<Tensors> && ...))
    return InvalidOperator<R, Operand<Which + 1>, Given<Tensors...>>::said();
  return true;
}

/// Demands that the dimensions that a call names are those of a tensor of `Rank`.
template <int Rank, class Dims, class... Tensors> consteval bool demand_dimensions() {
  constexpr Verdict v = check_dimensions(Dims::named(), Rank);
  return demand_shape<v.rule, v.operand, Tensors...>();
}

/// A call on operands A..., all of one rank, that takes elements from elsewhere along `Dims`. Where
/// no spec is asked for, the result has the first operand's; of a concatenation that of the first
/// that is split.
template <OperatorKind Kind, class Dims, class Out, class... A> struct TakeCall {
  using mesh = typename CommonMesh<A...>::type;
  static_assert(demand_out<mesh, Out>());
  static constexpr Shardings operands{A::sharding()...};
  static constexpr int rank = operands[0].rank();
  static_assert(demand_dimensions<rank, Dims, A...>());
  static constexpr Sharding make_value() {
    if constexpr (std::is_same_v<Out, Deduced>)
      return Kind == OperatorKind::concatenate ? taken_sharding(operands) : operands[0];
    else
      return lower<mesh, Out>();
  }
  static constexpr Sharding value = make_value();
  static constexpr Verdict verdict = check_shape(operands, rank, value);
  static constexpr bool sound = verdict.ok() && (founded<A> && ...);
  static_assert(demand_shape<verdict.rule, verdict.operand, A...>());
  static constexpr Contract needs(const MeshShape& on, const Contract& contract) {
    return verdict.ok() && check_dimensions(Dims::named(), rank).ok()
               ? needs_of_regions(Kind, operands, Dims::of(rank), value, on, contract)
               : Contract::nothing();
  }
  using result = Result<typename CommonElement<A...>::type, mesh, TakeCall>;
};

}  // namespace tessera::detail
