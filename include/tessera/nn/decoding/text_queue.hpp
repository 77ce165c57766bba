// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Texts that are written at once: what is asked for, and which tokens are read at each step.
///
///     detail::TextQueue queue({{.begin = {1, 2, 3}, .most = 2}}, {.batch = 1, .chunk = 2}, Where::here());
///     const auto step = queue.next_step();
///     step.ids == std::vector<std::int32_t>{1, 2};      // at places 0 and 1
///
/// Laws: a text that ends leaves its row to the next one. Nothing here depends on a process.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/base/math.hpp>
#include <tessera/nn/attention_options.hpp>
#include <tessera/nn/decoding/sampling.hpp>

namespace tessera {

/// One text to write.
struct TextRequest {
  std::vector<std::int32_t> begin;  ///< at least one token
  Index most = 16;                  ///< tokens to write at most
};

struct GenerateOptions {
  Index batch = 8;        ///< texts under way at once
  Index chunk = 32;       ///< tokens of a beginning that are read at once
  std::int32_t end = -1;  ///< the token that ends a text; it is the last one written; -1: none does
  Sampling sampling = {};
  AttentionOptions attention = {};  ///< rotary, rotary_base and window alone have a meaning here
  Index first = 0;                  ///< the number of the first text, by which tokens are drawn
  /// Told the number of each text and its new token, as they come; on every process.
  std::function<void(Index, std::int32_t)> written = {};
};

namespace detail {
/// What the texts under way read at each step. Pure: every process has the same.
class TextQueue {
 public:
  /// Throws UsageError for an empty beginning, and options below 1.
  TextQueue(std::vector<TextRequest> requests, const GenerateOptions& options, Where where);

  /// One step: a row for each place of the batch, all equally long.
  struct Step {
    std::vector<std::vector<Index>> places;
    std::vector<std::int32_t> ids;   ///< row after row
    std::vector<std::int32_t> last;  ///< of each row: its last token that is one
    std::vector<std::int32_t> text;  ///< of each row: the request; that of an idle row is 0
    std::vector<std::int32_t> next;  ///< of each row: the place of the token after it
    Index count = 0;                 ///< tokens of each row
  };
  /// Returns whether a text is under way or waits.
  bool any() const { return left_ > 0; }
  /// Returns the tokens to be read now.
  Step next_step();
  /// Takes the tokens that follow the rows of the last step; calls written(text, token) for those
  /// that belong to a text.
  void take(const std::vector<std::int32_t>& following);
  /// Returns how many places the longest text needs, with those that fill a row up.
  Index places() const;
  const std::vector<std::vector<std::int32_t>>& written() const { return written_; }

 private:
  struct Row {
    Index text = -1;  ///< -1: none
    Index read = 0;   ///< of its tokens
    Index count = 0;  ///< that the last step read
  };
  void fill_rows();
  Index length(Index text) const;
  std::int32_t token(Index text, Index place) const;

  std::vector<TextRequest> requests_;
  GenerateOptions options_;
  std::vector<std::vector<std::int32_t>> written_;
  std::vector<Row> rows_;
  Index waiting_ = 0;  ///< the next request
  Index left_ = 0;     ///< texts that have not ended
};

inline TextQueue::TextQueue(std::vector<TextRequest> requests, const GenerateOptions& options,
                            Where where)
    : requests_(std::move(requests)), options_(options), written_(requests_.size()) {
  if (options.batch < 1 || options.chunk < 1)
    throw UsageError("generate: " + std::to_string(options.batch) + " texts at once, and " +
                         std::to_string(options.chunk) +
                         " tokens of a beginning at once; give at least one of each",
                     where);
  for (std::size_t r = 0; r < requests_.size(); ++r) {
    if (requests_[r].begin.empty() && requests_[r].most > 0)
      throw UsageError("generate: text " + std::to_string(r) +
                           " has no beginning, and a model needs a token to go on from; give at "
                           "least one, such as that which begins all texts",
                       where);
    if (requests_[r].most > 0) ++left_;
  }
  rows_.resize(static_cast<std::size_t>(options.batch));
  fill_rows();
}

inline void TextQueue::fill_rows() {
  for (Row& row : rows_) {
    const auto count = static_cast<Index>(requests_.size());
    while (row.text < 0 && waiting_ < count) {
      if (requests_[static_cast<std::size_t>(waiting_)].most > 0) row = {waiting_, 0, 0};
      ++waiting_;
    }
  }
}
inline Index TextQueue::length(Index text) const {
  const auto t = static_cast<std::size_t>(text);
  return static_cast<Index>(requests_[t].begin.size() + written_[t].size());
}
inline std::int32_t TextQueue::token(Index text, Index place) const {
  const std::vector<std::int32_t>& begin = requests_[static_cast<std::size_t>(text)].begin;
  const auto p = static_cast<std::size_t>(place);
  return p < begin.size() ? begin[p] : written_[static_cast<std::size_t>(text)][p - begin.size()];
}

inline Index TextQueue::places() const {
  Index most = 1;
  for (const TextRequest& r : requests_)
    if (r.most > 0)
      most = std::max(most, saturating_add(static_cast<Index>(r.begin.size()), r.most));
  return saturating_add(most, options_.chunk - 1);
}

inline TextQueue::Step TextQueue::next_step() {
  Step step;
  for (Row& row : rows_) {
    row.count = row.text < 0 ? 0 : std::min(options_.chunk, length(row.text) - row.read);
    step.count = std::max(step.count, row.count);
  }
  for (const Row& row : rows_) {
    std::vector<Index> places;
    for (Index i = 0; i < step.count; ++i) {
      places.push_back(row.read + i);
      step.ids.push_back(i < row.count ? token(row.text, row.read + i) : 0);
    }
    step.places.push_back(std::move(places));
    step.last.push_back(static_cast<std::int32_t>(std::max<Index>(row.count, 1) - 1));
    step.text.push_back(static_cast<std::int32_t>(options_.first + std::max<Index>(row.text, 0)));
    step.next.push_back(static_cast<std::int32_t>(row.read + row.count));
  }
  return step;
}

inline void TextQueue::take(const std::vector<std::int32_t>& following) {
  for (std::size_t b = 0; b < rows_.size(); ++b) {
    Row& row = rows_[b];
    if (row.text < 0) continue;
    row.read += row.count;
    if (row.read < length(row.text)) continue;  // more of its beginning comes first
    std::vector<std::int32_t>& text = written_[static_cast<std::size_t>(row.text)];
    text.push_back(following[b]);
    if (options_.written) options_.written(row.text, following[b]);
    const Index most = requests_[static_cast<std::size_t>(row.text)].most;
    if (following[b] != options_.end && static_cast<Index>(text.size()) < most) continue;
    row = {};
    --left_;
  }
  fill_rows();
}

}  // namespace detail

}  // namespace tessera
