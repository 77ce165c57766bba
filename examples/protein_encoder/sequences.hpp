// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Sequences of letters or of numbers: read, and put into batches, of about equal lengths or
/// packed.
///
///     std::vector<Text> all = texts_in(vocabulary, read_sequences("antibodies.fasta"));
///     for (const Batch& batch : batches(all, vocabulary, 32, 512)) ...          // the longest first
///     for (const Batch& batch : packed_batches(all, vocabulary, 8, 512, 512)) ...   // rows of 512 places
///
/// Laws: each sequence is in one batch. Where it has a row of its own, a batch is as long as its
/// longest sequence, rounded up to a multiple of 8; where it shares one, a batch is as long as was
/// asked for. Other places have the padding's id.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>
#include <numeric>
#include <sstream>
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

/// A sequence as the encoder reads it.
struct Text {
  std::string name, letters;  ///< no letters where it came as numbers
  std::vector<Id> ids;        ///< with those that begin and end it
  Index words() const { return static_cast<Index>(ids.size()); }
};

/// Returns a sequence's words, between those that begin and end one.
inline std::vector<Id> words_of(const std::string& letters, const Vocabulary& words) {
  std::vector<Id> ids{words.begin};
  for (const char c : letters) ids.push_back(words.letter(c));
  ids.push_back(words.end);
  return ids;
}
inline std::vector<Text> texts_in(const Vocabulary& words, const std::vector<Sequence>& all) {
  std::vector<Text> texts;
  for (const Sequence& one : all)
    texts.push_back({one.name, one.letters, words_of(one.letters, words)});
  return texts;
}

/// Returns the sequences of a file with one a line, as numbers of words. Throws UsageError for a
/// file that cannot be read or has none, and for what is no word's number.
inline std::vector<Text> read_ids(const std::string& path, const Vocabulary& words) {
  std::ifstream file(path);
  if (!file)
    throw UsageError("--ids: " + path + " cannot be read; give a file of lines of numbers");
  std::vector<Text> all;
  Index number = 0;
  for (std::string line; std::getline(file, line);) {
    Text text{"line " + std::to_string(++number), {}, {words.begin}};
    std::istringstream parts(line);
    for (std::string part; parts >> part;) {
      Id id = -1;
      const char* const end = part.data() + part.size();
      const auto read = std::from_chars(part.data(), end, id);
      if (read.ec != std::errc{} || read.ptr != end || id < 0 || id >= words.size() ||
          id == words.padding)
        throw UsageError(fmt::format(
            "--ids: {} of {} has \"{}\"; give numbers of the encoder's words, 0 to {} without its "
            "padding, {}",
            text.name, path, part, words.size() - 1, words.padding));
      text.ids.push_back(id);
    }
    if (text.words() == 1) continue;  // an empty line
    text.ids.push_back(words.end);
    all.push_back(std::move(text));
  }
  if (all.empty())
    throw UsageError("--ids: " + path + " has no sequence; give a file with at least one");
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

/// Returns the batch of such members, which lie so.
inline Batch batch_of(const std::vector<Text>& all, std::vector<Index> members, Packing rows,
                      const Vocabulary& words) {
  Batch batch{std::move(members), std::move(rows), false, {}, {}};
  std::vector<std::vector<Id>> ids;
  batch.weights.assign(static_cast<std::size_t>(batch.rows.rows * batch.most() * batch.rows.length),
                       0.0f);
  for (std::size_t m = 0; m < batch.members.size(); ++m) {
    ids.push_back(all[static_cast<std::size_t>(batch.members[m])].ids);
    const auto begin = batch.weights.begin() + batch.mean(m) * batch.rows.length +
                       batch.rows.documents[m].first + 1;
    const std::size_t within = ids.back().size() - 2;
    std::fill_n(begin, within, 1.0f / static_cast<float>(within));
  }
  batch.ids = batch.rows.laid(ids, words.padding);
  return batch;
}

/// Returns the numbers of all sequences, the longest first. Throws UsageError for one that is
/// longer than `most` allows, words that begin and end it counted.
inline std::vector<Index> longest_first(const std::vector<Text>& all, Index most) {
  std::vector<Index> order(all.size());
  std::iota(order.begin(), order.end(), Index{0});
  const auto text = [&](Index i) -> const Text& { return all[static_cast<std::size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return text(a).words() > text(b).words(); });
  const Text& longest = text(order.front());
  if (longest.words() > most) {
    const bool ids = longest.letters.empty();
    throw UsageError(fmt::format(
        "{}: \"{}\" has {} {}, and there are {} places for them, in the encoder or in a row of "
        "--pack; cut it",
        ids ? "--ids" : "--sequences", longest.name, longest.words() - 2, ids ? "words" : "letters",
        most - 2));
  }
  return order;
}
inline Index words_in(const std::vector<Text>& all, Index sequence) {
  return all[static_cast<std::size_t>(sequence)].words();
}

/// Returns the sequences in batches of `rows`, each in a row of its own. Throws as longest_first.
inline std::vector<Batch> batches(const std::vector<Text>& all, const Vocabulary& words, Index rows,
                                  Index most) {
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
inline std::vector<Batch> packed_batches(const std::vector<Text>& all, const Vocabulary& words,
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
