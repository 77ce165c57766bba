// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Rows of sequences in which letters are masked, and which letters stood there.
///
///     const Texts texts = texts_of(read_sequences("antibodies.fasta"), vocabulary);
///     MaskedRows rows = masked_rows(texts, random_texts(texts, 32, seed, step), 144, vocabulary, key);
///
/// Laws: a letter is to be found with a chance of 15 %, and then the mask stands in its place with
/// a chance of 80 %, any letter with one of 10 %, itself else; words that are no letters are left
/// alone. The same key gives the same rows. Source: Devlin et al., "BERT" (2019), section 3.1,
/// which ESM2 follows.
#include <algorithm>
#include <string>
#include <vector>

#include "../protein_encoder/sequences.hpp"

namespace train_protein_encoder {

using namespace protein_encoder;

/// Texts as ids, between the words that begin and end one.
using Texts = std::vector<std::vector<Id>>;

inline Texts texts_of(const std::vector<Sequence>& all, const Vocabulary& words) {
  Texts texts;
  for (const Sequence& one : all) texts.push_back(words_of(one.letters, words));
  return texts;
}
inline Index longest_of(const Texts& texts) {
  std::size_t longest = 0;
  for (const auto& text : texts) longest = std::max(longest, text.size());
  return static_cast<Index>(longest);
}

/// Returns sequences that repeat three letters, so that a masked one follows from the others.
inline std::vector<Sequence> made_sequences(Index count, std::uint64_t seed) {
  const std::string parts[] = {"ACD", "EFG", "HIK", "LMN", "PQR", "STV"};
  std::vector<Sequence> all;
  for (Index i = 0; i < count; ++i) {
    const std::uint64_t drawn = Dropout::mixed(seed ^ static_cast<std::uint64_t>(i));
    const std::string& part = parts[drawn % 6];
    std::string letters;
    for (std::uint64_t p = 0; p < 10 + drawn / 64 % 8; ++p) letters += part[(drawn / 8 + p) % 3];
    all.push_back({"made " + std::to_string(i + 1), letters});
  }
  return all;
}

/// Numbers that follow from a key, for a place and a purpose.
class Draw {
 public:
  explicit Draw(std::uint64_t key) : key_(Dropout::mixed(key)) {}
  std::uint64_t at(Index place, std::uint64_t purpose) const {
    return Dropout::mixed(Dropout::mixed(key_ ^ static_cast<std::uint64_t>(place)) + purpose);
  }
  Index below(Index n, Index place, std::uint64_t purpose) const {
    return static_cast<Index>(at(place, purpose) % static_cast<std::uint64_t>(n));
  }

 private:
  std::uint64_t key_;
};

/// Numbers of texts, drawn for a step.
inline std::vector<Index> random_texts(const Texts& texts, Index rows, std::uint64_t seed,
                                       Index step) {
  const Draw draw(seed ^ Dropout::mixed(static_cast<std::uint64_t>(step)));
  std::vector<Index> drawn;
  for (Index r = 0; r < rows; ++r) drawn.push_back(draw.below(std::ssize(texts), r, 0));
  return drawn;
}

/// Ids are (rows, length), with masks; targets the letters that are to be found, -1 elsewhere.
struct MaskedRows {
  Index rows = 0, length = 0;
  std::vector<Id> ids, targets;
  std::vector<Index> texts, firsts;  ///< of each row, and at which of the text's words it begins

  Extents extents() const { return {rows, length}; }
  Index counted() const {
    return static_cast<Index>(
        std::count_if(targets.begin(), targets.end(), [](Id id) { return id >= 0; }));
  }
};

/// Returns some texts with letters masked by the key: a row each, padded, or a part of a text that
/// is longer than a row.
inline MaskedRows masked_rows(const Texts& texts, const std::vector<Index>& some, Index length,
                              const Vocabulary& words, std::uint64_t key) {
  MaskedRows made{std::ssize(some), length, {}, {}, some, {}};
  made.ids.assign(static_cast<std::size_t>(made.rows * length), words.padding);
  made.targets.assign(made.ids.size(), -1);
  std::vector<Id> letters;
  for (const char c : amino_acids) letters.push_back(words.letter(c));
  const Draw draw(key);
  for (Index r = 0; r < made.rows; ++r) {
    const auto& text = texts[static_cast<std::size_t>(some[static_cast<std::size_t>(r)])];
    const Index spare = max_of(std::ssize(text) - length, Index{0});
    made.firsts.push_back(draw.below(spare + 1, r * length, 3));
    for (Index p = 0; p < min_of(length, std::ssize(text)); ++p) {
      const auto at = static_cast<std::size_t>(r * length + p);
      const Id word = text[static_cast<std::size_t>(made.firsts.back() + p)];
      made.ids[at] = word;
      const bool is_letter = std::find(letters.begin(), letters.end(), word) != letters.end();
      if (!is_letter || draw.below(100, r * length + p, 0) >= 15) continue;
      made.targets[at] = word;
      const Index what = draw.below(10, r * length + p, 1);
      if (what < 8) made.ids[at] = words.mask;
      if (what == 8)
        made.ids[at] =
            letters[static_cast<std::size_t>(draw.below(std::ssize(letters), r * length + p, 2))];
    }
  }
  return made;
}

}  // namespace train_protein_encoder
