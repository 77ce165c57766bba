// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One where an index says, zero elsewhere.
///
///     auto h = one_hot<float, "bsv", 'v'>(ids, 1000);   // h[b,s,v] = ids[b,s] == v
///
/// Laws: sums to 1 along the new dimension, to 0 where the index lies outside it; an einsum with it
/// is a take with OutOfRange::drop.
#include <tessera/op/indexed_operators.hpp>
#include <tessera/op/result.hpp>
#include <tessera/op/take.hpp>

namespace tessera {
namespace detail {
template <class T, Equation Labels, char Along, class Out, class I> struct OneHotCall {
  using mesh = typename I::mesh_type;
  static_assert(demand_indices<I>());
  static_assert(demand_out<mesh, Out>());
  static constexpr Terms terms = same_terms(Labels.view());
  static constexpr Shardings operands{I::sharding()};
  static constexpr Sharding make_value() {
    if constexpr (!std::is_same_v<Out, Deduced>) {
      return lower<mesh, Out>();
    } else {
      Sharding out = Sharding::replicated(terms.result.size());
      for (int d = 0, at = 0; d < out.rank() && at < operands[0].rank(); ++d)
        if (terms.result[d] != Along) out[d] = operands[0][at++];
      return out;
    }
  }
  static constexpr Sharding value = make_value();
  static constexpr Verdict verdict = check_one_hot(terms, Along, operands, value);
  static constexpr bool sound = verdict.ok() && founded<I>;
  static_assert(demand<OneHotCall, I>());
  static constexpr Contract needs(const MeshShape& on, const Contract& contract) {
    return verdict.ok() ? needs_of_one_hot(terms.result, Along, operands[0], value, on, contract)
                        : Contract::nothing();
  }
  using result = Result<T, mesh, OneHotCall>;
};
}  // namespace detail

/// Returns elements T with the letters `Labels`, of which the indices have all but `Along`; that
/// dimension has `extent`. Communication: none, unless `Out` asks for the indices in another way.
/// Collective over the mesh.
template <Element T, Equation Labels, char Along, class Out = Deduced, class Bound = NoContract,
          TypedTensor I>
typename detail::OneHotCall<T, Labels, Along, Out, I>::result one_hot(const I& indices,
                                                                      Index extent,
                                                                      Where where = Where::here()) {
  using Typed = detail::OneHotCall<T, Labels, Along, Out, I>;
  detail::use_indexed<T>();
  return typename Typed::result(detail::one_hot(Typed::terms, Along, dtype_of<T>, indices.core(),
                                                extent, Typed::value,
                                                {"one_hot", where, detail::bound<Typed, Bound>()}));
}

/// The same with everything but the element type known at run time.
template <Element T>
DynamicTensor one_hot(std::string_view labels, char along, const DynamicTensor& indices,
                      Index extent, const Sharding& out, Where where = Where::here()) {
  detail::use_indexed<T>();
  return DynamicTensor(detail::one_hot(same_terms(labels), along, dtype_of<T>, indices.core(),
                                       extent, out, {"one_hot", where}));
}

}  // namespace tessera
