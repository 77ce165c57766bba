// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The hypotheses of a beam search over one text, and which of them go on.
///
///     detail::Beams beams({.beams = 2, .most = 3, .end = 0});
///     beams.begin({{-0.1f, -2.5f, -3.0f}}, {{7, 2, 4}});    // log-probabilities and tokens, the likeliest first
///     beams.tokens() == std::vector<std::int32_t>{7, 2};
///
/// Laws: plain host code, the same on every process. Source: the score of a hypothesis of n tokens
/// is its log-probability divided by ((5 + n) / 6)^alpha, Wu et al., "Google's Neural Machine
/// Translation System" (2016), section 7.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/base/math.hpp>

namespace tessera {

struct BeamOptions {
  Index beams = 4;            ///< hypotheses that go on
  Index most = 32;            ///< tokens to write at most
  std::int32_t end = -1;      ///< the token that ends a text; -1: none does
  double length_penalty = 0;  ///< alpha: more favours longer texts
  bool flat = false;          ///< hypotheses interleaved in one text: nothing that is kept moves
};

/// A text that a beam search has found.
struct Hypothesis {
  std::vector<std::int32_t> tokens;  ///< after the beginning; with `end`, where it has ended
  double log_probability = 0;
  double score = 0;
};

namespace detail {
class Beams {
 public:
  explicit Beams(const BeamOptions& options) : options_(options) {}

  /// Each row has log-probabilities of tokens that may follow, the likeliest first.
  using Scores = std::vector<std::vector<double>>;
  using Tokens = std::vector<std::vector<std::int32_t>>;
  /// Begins with the tokens that may follow the beginning: one row.
  void begin(const Scores& scores, const Tokens& tokens) {
    going_ = {{}};
    next(scores, tokens);
  }
  /// Takes one row for each hypothesis that goes on.
  void next(const Scores& scores, const Tokens& tokens) {
    struct Candidate {
      std::size_t parent;
      std::int32_t token;
      double log_probability;
    };
    std::vector<Candidate> all;
    for (std::size_t h = 0; h < going_.size(); ++h)
      for (std::size_t i = 0; i < scores[h].size(); ++i)
        if (std::isfinite(scores[h][i]))  // a token that is left out is none
          all.push_back({h, tokens[h][i], going_[h].log_probability + scores[h][i]});
    std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
      return a.log_probability > b.log_probability;
    });
    std::vector<Hypothesis> going;
    parents_.clear();
    const auto beams = static_cast<std::size_t>(options_.beams);
    for (std::size_t c = 0; c < std::min(all.size(), 2 * beams) && going.size() < beams; ++c) {
      Hypothesis h = going_[all[c].parent];
      h.tokens.push_back(all[c].token);
      h.log_probability = all[c].log_probability;
      h.score = score(h.log_probability, static_cast<Index>(h.tokens.size()));
      const bool ends = all[c].token == options_.end;
      if (ends || static_cast<Index>(h.tokens.size()) == options_.most) {
        if (c < beams || !ends) ended_.push_back(std::move(h));  // an unlikely end is none
        continue;
      }
      going.push_back(std::move(h));
      parents_.push_back(static_cast<int>(all[c].parent));
    }
    going_ = std::move(going);
    std::stable_sort(ended_.begin(), ended_.end(),
                     [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    if (ended_.size() > beams) ended_.resize(beams);
    if (!may_improve()) going_.clear(), parents_.clear();
  }
  /// Returns how many hypotheses go on; none: the search has ended.
  std::size_t going() const { return going_.size(); }
  /// Of each hypothesis that goes on: its last token, and which one before the last step it was.
  std::vector<std::int32_t> tokens() const {
    std::vector<std::int32_t> last;
    for (const Hypothesis& h : going_) last.push_back(h.tokens.back());
    return last;
  }
  const std::vector<int>& parents() const { return parents_; }
  /// Returns those that have ended, the best first.
  const std::vector<Hypothesis>& found() const { return ended_; }

 private:
  double score(double log_probability, Index length) const {
    return log_probability /
           std::pow((5 + static_cast<double>(length)) / 6, options_.length_penalty);
  }
  /// Whether a hypothesis that goes on could still be among the best: its log-probability does not
  /// grow, and its length is at most `most`.
  bool may_improve() const {
    if (static_cast<Index>(ended_.size()) < options_.beams) return true;
    for (const Hypothesis& h : going_) {
      const Index length =
          options_.length_penalty > 0 ? options_.most : static_cast<Index>(h.tokens.size()) + 1;
      if (score(h.log_probability, length) > ended_.back().score) return true;
    }
    return false;
  }

  BeamOptions options_;
  std::vector<Hypothesis> going_, ended_;
  std::vector<int> parents_;
};
}  // namespace detail

}  // namespace tessera
