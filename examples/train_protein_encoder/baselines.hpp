// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What counting alone says of a masked letter: how often each letter stands anywhere, at its place
/// in a sequence, and between its two neighbours.
///
///     const Baselines counts(texts, vocabulary);
///     counts.add(held_out, rows);
///     counts.losses().places;      // nats a masked letter, from the counts at each place
///
/// Laws: each is the mean of -log p of the letters that are to be found, where p is of the training
/// texts alone. Counts at a place, and between neighbours, are smoothed by the letters'
/// frequencies, which count as one more letter; neighbours are the true ones, though they may be
/// masked.
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "masking.hpp"

namespace train_protein_encoder {

class Baselines {
 public:
  struct Losses {
    double letters = 0, places = 0, neighbours = 0;
  };

  Baselines(const Texts& texts, const Vocabulary& words)
      : words_(words.size()),
        letters_(empty()),
        places_(static_cast<std::size_t>(longest_of(texts)), empty()) {
    for (const auto& text : texts)
      for (std::size_t p = 1; p + 1 < text.size(); ++p) {
        const auto letter = static_cast<std::size_t>(text[p]);
        ++letters_[letter];
        ++places_[p][letter];
        ++neighbours_.try_emplace({text[p - 1], text[p + 1]}, empty()).first->second[letter];
      }
  }

  /// Counts the letters that are to be found in rows of texts.
  void add(const Texts& texts, const MaskedRows& rows) {
    for (Index r = 0; r < rows.rows; ++r) {
      const auto& text = texts[static_cast<std::size_t>(rows.texts[static_cast<std::size_t>(r)])];
      for (Index p = 0; p < rows.length; ++p) {
        const Id letter = rows.targets[static_cast<std::size_t>(r * rows.length + p)];
        if (letter < 0) continue;
        const auto at = static_cast<std::size_t>(rows.firsts[static_cast<std::size_t>(r)] + p);
        const double any = (letters_[static_cast<std::size_t>(letter)] + 1) /
                           (total(letters_) + static_cast<double>(words_));
        const auto found = neighbours_.find({text[at - 1], text[at + 1]});
        sums_.letters -= std::log(any);
        sums_.places -= std::log(at < places_.size() ? smoothed(places_[at], letter, any) : any);
        sums_.neighbours -=
            std::log(found == neighbours_.end() ? any : smoothed(found->second, letter, any));
        ++count_;
      }
    }
  }
  Losses losses() const {
    const auto n = static_cast<double>(max_of(count_, Index{1}));
    return {sums_.letters / n, sums_.places / n, sums_.neighbours / n};
  }

 private:
  using Counts = std::vector<double>;
  Counts empty() const { return Counts(static_cast<std::size_t>(words_), 0.0); }
  static double total(const Counts& counts) {
    double sum = 0;
    for (const double count : counts) sum += count;
    return sum;
  }
  static double smoothed(const Counts& counts, Id letter, double any) {
    return (counts[static_cast<std::size_t>(letter)] + any) / (total(counts) + 1);
  }

  Index words_;
  Counts letters_;
  std::vector<Counts> places_;
  std::map<std::pair<Id, Id>, Counts> neighbours_;
  Losses sums_;
  Index count_ = 0;
};

}  // namespace train_protein_encoder
