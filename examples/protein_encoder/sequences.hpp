// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Sequences of letters: read, and put into batches of about equal lengths.
///
///     std::vector<Sequence> all = read_sequences("antibodies.fasta");
///     for (const Batch& batch : batches(all, vocabulary, 32)) ...       // the longest first
///
/// Laws: each sequence is in one batch; a batch is as long as its longest sequence, rounded up to a
/// multiple of 8, and what is shorter ends with the padding's id.
#include <algorithm>
#include <cctype>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "../support/sequences.hpp"
#include "model.hpp"

namespace protein_encoder {

using support::Sequence;

/// Two antibodies' chains and what a part of them may look like, with letters that are to be found.
inline const std::vector<Sequence> some_antibodies{
    {"heavy",
     "EVQLVQSGPEVKKPGTSVKVSCKASGFTFMSSAVQWVRQARGQRLEWIGWIVIGSGNTNYAQKFQERVTITRDMSTSTAYMELSSLRSEDTAV"
     "YYCA"
     "APYCSSISCNDGFDIWGQGTMVTVS"},
    {"light",
     "DVVMTQTPFSLPVSLGDQASISCRSSQSLVHSNGNTYLHWYLQKPGQSPKLLIYKVSNRFSGVPDRFSGSGSGTDFTLKISRVEAEDLGVYFC"
     "SQST"
     "HVPYTFGGGTKLEIK"},
    {"heavy, masked",
     "____VQSGPEVKKPGTSVKVSCKASGFTFMSSAVQWVRQARGQRLEWIGWIVIGSGN_NYAQKFQERVTITRDM__"
     "STAYMELSSLRSEDTAVYYCA"
     "APYCSSISCNDGFD____GTMVTVS"},
    {"light, masked",
     "DVVMTQTPFSLPV__GDQASISCRSSQSLVHSNGNTY_HWYLQKPGQSPKLLIYKVSNRFSGVPDRFSG_"
     "GSGTDFTLKISRVEAEDLGVYFCSQST"
     "HVPYTFGG__KLEIK"}};

/// Returns the sequences of a file, in large letters (support::read_sequences).
inline std::vector<Sequence> read_sequences(const std::string& path) {
  std::vector<Sequence> all = support::read_sequences("--sequences", path);
  for (Sequence& one : all)
    for (char& c : one.letters) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return all;
}

/// Rows of ids, (members, length).
struct Batch {
  std::vector<Index> members;  ///< of the sequences
  Index length = 0;
  std::vector<Id> ids;
  /// One over a sequence's number of letters at each of them, else 0: a product with states is
  /// their mean.
  std::vector<float> weights;
};

/// Returns the sequences in batches of `rows`, between the words that begin and end one. Throws
/// UsageError for a sequence that is longer than `most` allows.
inline std::vector<Batch> batches(const std::vector<Sequence>& all, const Vocabulary& words,
                                  Index rows, Index most) {
  std::vector<Index> order(all.size());
  std::iota(order.begin(), order.end(), Index{0});
  const auto letters = [&](Index i) -> const std::string& {
    return all[static_cast<std::size_t>(i)].letters;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return letters(a).size() > letters(b).size(); });
  const auto longest = static_cast<Index>(letters(order.front()).size());
  if (longest + 2 > most)
    throw UsageError("--sequences: \"" + all[static_cast<std::size_t>(order.front())].name +
                     "\" has " + std::to_string(longest) + " letters, and the encoder has " +
                     std::to_string(most - 2) + " places for letters; cut it");
  std::vector<Batch> made;
  for (std::size_t first = 0; first < order.size(); first += static_cast<std::size_t>(rows)) {
    const auto end = order.begin() + static_cast<Index>(std::min(
                                         order.size(), first + static_cast<std::size_t>(rows)));
    Batch batch{{order.begin() + static_cast<Index>(first), end}, 0, {}, {}};
    const auto size = static_cast<Index>(letters(batch.members.front()).size()) + 2;
    batch.length = std::min(most, ceil_div(size, 8) * 8);
    const auto count = batch.members.size() * static_cast<std::size_t>(batch.length);
    batch.ids.assign(count, words.padding);
    batch.weights.assign(count, 0.0f);
    for (std::size_t row = 0; row < batch.members.size(); ++row) {
      const std::string& text = letters(batch.members[row]);
      std::size_t at = row * static_cast<std::size_t>(batch.length);
      batch.ids[at++] = words.begin;
      for (const char c : text) {
        batch.weights[at] = 1.0f / static_cast<float>(text.size());
        batch.ids[at++] = words.letter(c);
      }
      batch.ids[at] = words.end;
    }
    made.push_back(std::move(batch));
  }
  return made;
}

}  // namespace protein_encoder
