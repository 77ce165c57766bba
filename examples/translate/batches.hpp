// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Batches of about equally many tokens, of sentences of one length and of all languages.
///
///     const Batches batches(text, {.tokens = 2048, .group = 512});
///     Batch batch = batches.at(step);                   // batch.rows sentences of batch.length
///
/// Laws: the same text, settings and step give the same batch, on any mesh. Over many steps a
/// language has its share of the tokens, and its sentences are drawn alike.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "text.hpp"

namespace translation {

/// Sentences and their translations: matrices (rows, length), row-major.
struct Batch {
  Index rows = 0, length = 0;
  std::vector<Id> source, target, next;            ///< target is next behind a token that begins
  std::vector<Id> source_lengths, target_lengths;  ///< without padding
  Index tokens = 0;                                ///< of next, without padding

  /// Adds row `row` of some.
  void add(const Rows& some, Index row, const Text& text) {
    const auto copy = [&](const std::vector<Id>& from, std::vector<Id>& to, Index skipped) {
      const auto begin = from.begin() + row * length;
      to.insert(to.end(), begin, begin + (length - skipped));
    };
    copy(some.source, source, 0);
    copy(some.english, next, 0);
    target.push_back(text.begin);
    copy(some.english, target, 1);
    source_lengths.push_back(static_cast<Id>(tokens_of(some.source, row, length, text.padding)));
    target_lengths.push_back(static_cast<Id>(tokens_of(some.english, row, length, text.padding)));
    tokens += target_lengths.back();
    ++rows;
  }
};

struct BatchSizes {
  Index tokens = 2048;     ///< of a batch's English, padding too, about
  Index group = 512;       ///< tokens that compete for places of experts, about
  double temperature = 1;  ///< a language's share is (its tokens)^(1 / temperature); 1: what it has
  std::uint64_t seed = 1;
};

class Batches {
 public:
  Batches(const Text& text, const BatchSizes& sizes) : text_(text), sizes_(sizes) {
    double all = 0;
    std::vector<double> languages;
    for (const Language& language : text.languages) {
      double tokens = 0;
      for (const Rows& rows : language.rows) tokens += static_cast<double>(rows.source.size());
      languages.push_back(tokens);
      all += tokens;
    }
    for (std::size_t l = 0; l < languages.size(); ++l) {
      const double share = std::pow(languages[l] / all, 1 / sizes.temperature);
      for (const Rows& rows : text.languages[l].rows) {
        Length& own = of_length(rows.length);
        own.weight += share * static_cast<double>(rows.source.size()) / languages[l];
        own.rows.push_back(&rows);
        own.until.push_back(own.weight);
      }
    }
    if (lengths_.empty()) throw UsageError("the text has no sentence; give another one");
  }

  /// Returns how many texts of this length compete for places of experts.
  Index texts(Index length) const { return std::max<Index>(1, sizes_.group / length); }
  /// Returns the sentences of a batch of this length: as many groups in a batch of any.
  Index rows(Index length) const {
    return std::max<Index>(1, sizes_.tokens / sizes_.group) * texts(length);
  }
  Batch at(Index step) const {
    const auto number = [&](Index i) {
      return support::mixed(support::mixed(sizes_.seed) ^
                            support::mixed(static_cast<std::uint64_t>(step * 65536 + i)));
    };
    const auto part = [&](Index i) { return static_cast<double>(number(i) >> 11) * 0x1p-53; };
    double all = 0;
    for (const Length& one : lengths_) all += one.weight;
    double left = part(0) * all;
    std::size_t picked = 0;
    while (picked + 1 < lengths_.size() && (left -= lengths_[picked].weight) > 0) ++picked;
    const Length& one = lengths_[picked];
    Batch batch;
    batch.length = one.length;
    for (Index i = 0; i < rows(one.length); ++i) {
      const auto found =
          std::upper_bound(one.until.begin(), one.until.end() - 1, part(2 * i + 1) * one.weight);
      const Rows& some = *one.rows[static_cast<std::size_t>(found - one.until.begin())];
      batch.add(some,
                static_cast<Index>(number(2 * i + 2) % static_cast<std::uint64_t>(some.count())),
                text_);
    }
    return batch;
  }

 private:
  /// What there is of a length, and its languages' shares, added up.
  struct Length {
    Index length = 0;
    double weight = 0;
    std::vector<const Rows*> rows = {};
    std::vector<double> until = {};
  };
  Length& of_length(Index length) {
    for (Length& one : lengths_)
      if (one.length == length) return one;
    lengths_.push_back({length});
    return lengths_.back();
  }

  const Text& text_;
  BatchSizes sizes_;
  std::vector<Length> lengths_;
};

}  // namespace translation
