// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Several documents in a row of a batch, one behind the other: attention within each document
/// alone, and positions that begin with each. nn/documents/pack.hpp says which document goes where.
///
///     const Packing packing = pack_documents({5, 3, 4, 2}, 8);
///     const auto documents = documents_of<Here>(mesh, packing);                      // (rows, sequence) each
///     auto y = attention(layer, x, x, {.causal = true}, documents);                  // x is (rows, sequence, embed)
///     auto same = attention(layer, x, x, {.causal = true}, documents.numbers);       // without positions
///     auto z = attention(layer, x, memory, {}, CrossDocuments{documents.numbers, sources});   // to other rows
///
/// Laws: a place whose number is below 1 belongs to no document, whatever it holds: nothing sees
/// it, and it sees nothing; a query sees a key exactly when both have one number, and no other
/// option of attention hides it. So a document gives what it gives alone, to rounding. Windows, and
/// biases by distance, count places in the row: with them the places of a document follow one
/// another.
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <tessera/base/error.hpp>
#include <tessera/nn/documents/pack.hpp>
#include <tessera/nn/positions.hpp>
#include <tessera/nn/under.hpp>
#include <tessera/op/create/create.hpp>
#include <tessera/op/elements/map.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {

/// Stands for no mask of keys.
struct AllValid {};

/// Numbers of documents: X is a tensor of int32.
template <class X>
concept DocumentNumbers = TypedTensor<X> && std::is_same_v<typename X::value_type, std::int32_t>;

/// The number of the document to which each place belongs, and the place within that document, from
/// 0 on, by which rotary and tables of positions go; both (batch, sequence).
template <DocumentNumbers I> struct Documents {
  I numbers, places;
  static constexpr auto fields = Fields<&Documents::numbers, &Documents::places>{};
};
/// Attention to other rows: the documents of queries, (batch, queries), and of keys, (batch, keys).
/// Places in two rows have no distance, so it goes without causal masks, windows, rotary and
/// biases.
template <DocumentNumbers Q, DocumentNumbers K> struct CrossDocuments {
  Q queries;
  K keys;
  static constexpr auto fields = Fields<&CrossDocuments::queries, &CrossDocuments::keys>{};
};
template <class Q, class K> CrossDocuments(Q, K) -> CrossDocuments<Q, K>;

/// Returns the documents of packed rows, (rows, length). Every process gives the same.
/// Communication: none. Collective over the mesh. Errors: as from_host, and those of Packing.
template <class U>
auto documents_of(const ProcessMesh<typename U::mesh_type>& mesh, const Packing& packing,
                  Where where = Where::here()) {
  using I = typename U::template Of<std::int32_t, logical::batch, logical::sequence>;
  return Documents<I>{from_host<I>(mesh, packing.extents(), packing.numbers(where), where),
                      from_host<I>(mesh, packing.extents(), packing.places(where), where)};
}

namespace fn {
/// Whether a place belongs to a document.
struct InDocument {
  static constexpr std::string_view name = "in a document";
  KOKKOS_FORCEINLINE_FUNCTION bool operator()(std::int32_t number) const { return number > 0; }
};
}  // namespace fn

namespace detail {
template <class M> inline constexpr bool with_places = false;
template <class I> inline constexpr bool with_places<Documents<I>> = true;
template <class M> inline constexpr bool across = false;
template <class Q, class K> inline constexpr bool across<CrossDocuments<Q, K>> = true;
/// Whether a mask is by documents, and not by keys alone.
template <class M>
inline constexpr bool by_documents = DocumentNumbers<M> || with_places<M> || across<M>;

/// Returns a mask without the places of documents.
template <class M> const auto& without_places(const M& mask) {
  if constexpr (with_places<M>)
    return mask.numbers;
  else
    return mask;
}
/// Returns the part of a mask that is the queries'.
template <class M> const auto& mask_of_queries(const M& mask) {
  if constexpr (across<M>)
    return mask.queries;
  else
    return without_places(mask);
}
/// Returns the part of a mask that is the keys'.
template <class M> const auto& mask_of_keys(const M& mask) {
  if constexpr (across<M>)
    return mask.keys;
  else
    return without_places(mask);
}
/// Returns which places of queries or keys count, bool or AllValid.
template <class M> auto valid_of(const M& mask, Where where) {
  if constexpr (DocumentNumbers<M>)
    return map(fn::InDocument{}, mask, where);
  else
    return mask;
}

/// Returns x with rows of a table of positions added, those of the places in documents if a mask
/// has them. Throws UsageError for documents without places, and as add_positions.
template <class Table, TypedTensor A, class M>
A with_positions(const Table& table, const A& x, const M& mask, Index first, Where where) {
  if constexpr (with_places<M>) {
    return add_positions(table, x, mask.places, first, where);
  } else {
    if constexpr (by_documents<M>)
      throw UsageError(
          "positions: the numbers of documents are given without the places in them, and the model "
          "has a table of positions; give Documents{numbers, places}",
          where);
    return add_positions(table, x, first, where);
  }
}

/// Throws UsageError where attention between rows is given what goes by places.
inline void require_no_places(const char* what, bool given, Where where) {
  if (given)
    throw UsageError(
        "attention: the documents of queries and keys lie in different rows, whose "
        "places have no distance, and " +
            std::string(what) + " goes by distances; leave it out, or give Documents of one row",
        where);
}
/// Throws ShapeError unless a mask of queries or keys is (texts, places).
inline void require_mask(const char* of, const Extents& mask, Index texts, Index places,
                         Where where) {
  if (!(mask == Extents{texts, places}))
    throw ShapeError("attention: the mask is " + to_string(mask) + ", and there are " +
                         std::to_string(texts) + " texts of " + std::to_string(places) + " " + of +
                         "; give an element for each",
                     where);
}
/// Throws ShapeError unless every part of a mask has an element for each place.
template <class M>
void require_mask(const M& mask, Index texts, Index queries, Index keys, Where where) {
  if constexpr (!std::is_same_v<M, AllValid>) {
    using K = std::decay_t<decltype(mask_of_keys(mask))>;
    static_assert(by_documents<M> || std::is_same_v<typename K::value_type, bool>,
                  "[tessera] a mask of keys is bool, or int32, the numbers of documents; use "
                  "cast<bool> or cast<std::int32_t>");
    require_mask("keys", mask_of_keys(mask).extents(), texts, keys, where);
    if constexpr (by_documents<M>)
      require_mask("queries", mask_of_queries(mask).extents(), texts, queries, where);
    if constexpr (with_places<M>)
      require_mask("places in documents", mask.places.extents(), texts, queries, where);
  }
}
}  // namespace detail

}  // namespace tessera
