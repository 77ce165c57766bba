// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Embedding: rows of a table at ids. A table that is split by vocabulary is never gathered: each
/// process gives the rows that it has, and one reduction of the result's size puts them together.
///
///     auto table = Embedding<Here>::like(make, 1000, 6);
///     auto rows = look_up(table, ids);              // (batch, sequence, embed)
///     auto scores = logits(table, rows);          // (batch, sequence, vocabulary), with the same table
///
/// Laws: look_up(table, ids)[..., m] == weight[ids[...], m], to the bit. Errors: those of the
/// operators that it is made of.
#include <tessera/nn/detail/letters.hpp>
#include <tessera/nn/parameters.hpp>
#include <tessera/nn/under.hpp>
#include <tessera/op/indexed/take.hpp>
#include <tessera/op/product/einsum.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {

template <class U, class Rows = logical::vocabulary> struct Embedding {
  typename U::template Tensor<Rows, logical::embed> weight;
  static constexpr auto fields = Fields<&Embedding::weight>{};

  /// Returns a table of `rows` rows of `embed` elements, of deviation `deviation`.
  static Embedding like(Parameters<typename U::mesh_type>& make, Index rows, Index embed,
                        double deviation = 1) {
    return {make.template tensor<typename U::template Tensor<Rows, logical::embed>>(
        {rows, embed}, Initializer::normal(deviation))};
  }
};

/// Returns the rows at the ids: ids is (...), integers, the result (..., embed) under `Spec` or as
/// deduced. Ids outside are clamped. Communication: where the table is split by vocabulary one
/// all-reduce of the result over those axes, or a reduce-scatter by `Spec`; what the ids are does
/// not matter. The gradient of the table is scattered where its rows are, without communication
/// over those axes. Collective over the mesh. Source: Megatron-LM (Shoeybi et al. 2019), section 3.
template <class Spec = Deduced, class U, class Rows, TypedTensor I>
auto look_up(const Embedding<U, Rows>& table, const I& ids, Where where = Where::here()) {
  return take<detail::equation_of(I::rank, "yz,*->*z"), Spec>(table.weight, ids, OutOfRange::clamp,
                                                              where);
}

/// Returns x times the table: x is (..., embed), the result (..., vocabulary), split by vocabulary
/// as the table is. Communication: that of the einsum. Collective over the mesh. Source: Press and
/// Wolf, "Using the output embedding to improve language models" (2017).
template <class Spec = Deduced, class U, class Rows, TypedTensor A>
auto logits(const Embedding<U, Rows>& table, const A& x, Where where = Where::here()) {
  return einsum<detail::equation_of(A::rank - 1, "*z,yz->*y"), Spec>(x, table.weight, where);
}

}  // namespace tessera
