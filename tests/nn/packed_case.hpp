// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Texts of several lengths, each in a row of its own, padded, or several in a row; and a model's
/// numbers for them, text by text.
///
///     packed_numbers<R>(mesh, weights, packed_rows, true, run)   // equals
///     packed_numbers<R>(mesh, weights, own_rows, false, run)
#include <tessera/nn/documents/documents.hpp>

#include "nn/layer_cases.hpp"

namespace nn_test {

inline const std::vector<Index> text_lengths{5, 2, 4, 6, 3, 1, 5};
/// Each text in a row of its own.
inline Packing own_rows() {
  Packing packing{static_cast<Index>(text_lengths.size()), 6, {}};
  for (std::size_t d = 0; d < text_lengths.size(); ++d)
    packing.documents.push_back({static_cast<Index>(d), 0, text_lengths[d], 1});
  return packing;
}
inline Packing shared_rows() { return pack_documents(text_lengths, 9); }

/// Tokens of texts, below n.
inline std::vector<std::vector<std::int32_t>> texts_below(std::int32_t n, std::int32_t step) {
  std::vector<std::vector<std::int32_t>> texts;
  for (std::size_t d = 0; d < text_lengths.size(); ++d) {
    texts.emplace_back();
    for (Index i = 0; i < text_lengths[d]; ++i)
      texts.back().push_back(
          (static_cast<std::int32_t>(d) * 3 + static_cast<std::int32_t>(i) * step) % n);
  }
  return texts;
}

/// What run(weights, ids, mask) gives at each place of each text, and the gradients of the mean of
/// its cross-entropy to other tokens: the mask is Documents, or bool.
template <class R, class Weights, class Run>
Values packed_numbers(const ProcessMesh<Grid>& mesh, const Weights& weights, const Packing& packing,
                      bool documents, std::int32_t vocabulary, const Run& run) {
  using U = On<R>;
  const auto laid = [&](std::int32_t step, std::int32_t padding) {
    return from_host<TokenIds<U>>(mesh, packing.extents(),
                                  packing.laid(texts_below(vocabulary, step), padding));
  };
  const auto ids = laid(5, 1), targets = laid(4, 0);
  const auto mask = documents_of<U>(mesh, packing);
  const auto valid = detail::valid_of(mask.numbers, Where{});
  const auto made = value_and_grad([&](const Weights& w) {
    const auto scores = documents ? run(w, ids, mask) : run(w, ids, valid);
    return std::tuple(mean_where(cross_entropy(scores, targets), valid), scores);
  })(weights);
  const auto scores = to_host(std::get<1>(made.value)).values;
  Values values;
  for (const Packing::Document& one : packing.documents) {
    const auto from = scores.begin() + (one.row * packing.length + one.first) * vocabulary;
    values.emplace_back(from, from + one.length * vocabulary);
  }
  for (auto& gradient : values_of(made.gradient)) values.push_back(std::move(gradient));
  return values;
}

}  // namespace nn_test
