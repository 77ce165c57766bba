// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Sequences of letters: read, and put into batches, of about equal lengths or packed.
///
///     std::vector<Sequence> all = read_sequences("antibodies.fasta");
///     for (const Batch& batch : batches(all, vocabulary, 32, 512)) ...          // the longest first
///     for (const Batch& batch : packed_batches(all, vocabulary, 8, 512, 512)) ...   // rows of 512 places
///
/// Laws: each sequence is in one batch. Where it has a row of its own, a batch is as long as its
/// longest sequence, rounded up to a multiple of 8; where it shares one, a batch is as long as was
/// asked for. Other places have the padding's id.
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

/// Rows of ids, (rows, length).
struct Batch {
  std::vector<Index> members;  ///< of the sequences
  Packing rows;                ///< where each member lies
  bool packed = false;         ///< whether rows have several
  std::vector<Id> ids;
  /// (rows, members of a row, length): one over a sequence's number of letters at each of them,
  /// else 0: a product with states is their mean.
  std::vector<float> weights;

  Index most() const { return max_of(rows.most(), Index{1}); }
  /// Where a member's first word lies among all places.
  Index first(std::size_t member) const {
    const Packing::Document& at = rows.documents[member];
    return at.row * rows.length + at.first;
  }
  /// Which row of (rows, members of a row) is a member's.
  Index mean(std::size_t member) const {
    const Packing::Document& at = rows.documents[member];
    return at.row * most() + at.number - 1;
  }
};

/// Returns a batch without ids, for a plan: so many rows of one sequence of `words`, or, of `pack`
/// places, of as many as fit.
inline Batch empty_batch(Index rows, Index words, Index pack) {
  Batch batch;
  batch.packed = pack > 0;
  batch.rows = {rows, batch.packed ? pack : words, {}};
  for (Index row = 0; row < rows; ++row)
    for (Index first = 0, number = 1; first + words <= batch.rows.length; first += words, ++number)
      batch.rows.documents.push_back({row, first, words, number});
  batch.ids.resize(static_cast<std::size_t>(rows * batch.rows.length));
  batch.weights.resize(batch.ids.size() * static_cast<std::size_t>(batch.most()));
  return batch;
}

/// Returns a sequence's words, between those that begin and end one.
inline std::vector<Id> words_of(const std::string& letters, const Vocabulary& words) {
  std::vector<Id> ids{words.begin};
  for (const char c : letters) ids.push_back(words.letter(c));
  ids.push_back(words.end);
  return ids;
}
/// Returns the batch of such members, which lie so.
inline Batch batch_of(const std::vector<Sequence>& all, std::vector<Index> members, Packing rows,
                      const Vocabulary& words) {
  Batch batch{std::move(members), std::move(rows), false, {}, {}};
  std::vector<std::vector<Id>> ids;
  batch.weights.assign(static_cast<std::size_t>(batch.rows.rows * batch.most() * batch.rows.length),
                       0.0f);
  for (std::size_t m = 0; m < batch.members.size(); ++m) {
    const std::string& letters = all[static_cast<std::size_t>(batch.members[m])].letters;
    ids.push_back(words_of(letters, words));
    const auto begin = batch.weights.begin() + batch.mean(m) * batch.rows.length +
                       batch.rows.documents[m].first + 1;
    std::fill_n(begin, letters.size(), 1.0f / static_cast<float>(letters.size()));
  }
  batch.ids = batch.rows.laid(ids, words.padding);
  return batch;
}

/// Returns the numbers of all sequences, the longest first. Throws UsageError for one that is
/// longer than `most` allows, words that begin and end it counted.
inline std::vector<Index> longest_first(const std::vector<Sequence>& all, Index most) {
  std::vector<Index> order(all.size());
  std::iota(order.begin(), order.end(), Index{0});
  const auto size = [&](Index i) { return all[static_cast<std::size_t>(i)].letters.size(); };
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return size(a) > size(b); });
  const auto longest = static_cast<Index>(size(order.front()));
  if (longest + 2 > most)
    throw UsageError("--sequences: \"" + all[static_cast<std::size_t>(order.front())].name +
                     "\" has " + std::to_string(longest) + " letters, and there are " +
                     std::to_string(most - 2) +
                     " places for letters, in the encoder or in a row of --pack; cut it");
  return order;
}
inline Index words_in(const std::vector<Sequence>& all, Index sequence) {
  return static_cast<Index>(all[static_cast<std::size_t>(sequence)].letters.size()) + 2;
}

/// Returns the sequences in batches of `rows`, each in a row of its own. Throws as longest_first.
inline std::vector<Batch> batches(const std::vector<Sequence>& all, const Vocabulary& words,
                                  Index rows, Index most) {
  const std::vector<Index> order = longest_first(all, most);
  std::vector<Batch> made;
  for (auto begin = order.begin(); begin != order.end();) {
    const auto end = begin + min_of(rows, static_cast<Index>(order.end() - begin));
    Packing own{static_cast<Index>(end - begin),
                min_of(most, ceil_div(words_in(all, *begin), Index{8}) * 8),
                {}};
    for (auto one = begin; one != end; ++one)
      own.documents.push_back({static_cast<Index>(one - begin), 0, words_in(all, *one), 1});
    made.push_back(batch_of(all, {begin, end}, std::move(own), words));
    begin = end;
  }
  return made;
}

/// Returns the sequences in batches of `rows` of `length` places, several in a row. Throws as
/// longest_first.
inline std::vector<Batch> packed_batches(const std::vector<Sequence>& all, const Vocabulary& words,
                                         Index rows, Index length, Index most) {
  (void)longest_first(all, min_of(length, most));
  std::vector<Index> lengths;
  for (Index i = 0; i < static_cast<Index>(all.size()); ++i) lengths.push_back(words_in(all, i));
  const Packing packing = pack_documents(lengths, length);
  std::vector<std::vector<Index>> members(static_cast<std::size_t>(ceil_div(packing.rows, rows)));
  std::vector<Packing> parts(members.size(), Packing{0, length, {}});
  for (std::size_t i = 0; i < all.size(); ++i) {
    Packing::Document at = packing.documents[i];
    const auto b = static_cast<std::size_t>(at.row / rows);
    at.row %= rows;
    parts[b].rows = max_of(parts[b].rows, at.row + 1);
    parts[b].documents.push_back(at);
    members[b].push_back(static_cast<Index>(i));
  }
  std::vector<Batch> made;
  for (std::size_t b = 0; b < parts.size(); ++b) {
    made.push_back(batch_of(all, std::move(members[b]), std::move(parts[b]), words));
    made.back().packed = true;
  }
  return made;
}

}  // namespace protein_encoder
