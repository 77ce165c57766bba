// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What all batches have given, in the order of the sequences, on every process.
///
///     Results results(sequences, kind, longest, false);
///     results.add(batch, answer);
///     write(mesh, "means.npy", results.means());
#include <span>
#include <string>
#include <vector>

#include <tessera/io/npy.hpp>

#include "run.hpp"

namespace protein_encoder {

/// Numbers, row-major.
struct Rows {
  Extents extents;
  std::vector<float> values;
};

/// Writes rows that every process has. Communication, errors: as write_npy.
inline void write(const ProcessMesh<Grid>& mesh, const std::string& path, const Rows& rows) {
  const DynamicTensor whole =
      from_host(mesh, rows.extents, Sharding::replicated(static_cast<int>(rows.extents.size())),
                std::span<const float>(rows.values));
  write_npy(whole, path, {.progress = progress_bar("writing", mesh.process() == 0)});
}

class Results {
 public:
  /// Of states, (layers + 1, sequences, longest, width), there are none unless all_states.
  Results(const std::vector<Text>& all, const Kind& kind, Index longest, bool all_states)
      : all_(all),
        vocabulary_(kind.vocabulary),
        means_{{static_cast<Index>(all.size()), kind.sizes.embed}, {}},
        states_{{kind.sizes.layers + 1, means_.extents[0], longest, kind.sizes.embed}, {}},
        found_(all.size()) {
    means_.values.resize(static_cast<std::size_t>(volume(means_.extents)));
    if (all_states) states_.values.resize(static_cast<std::size_t>(volume(states_.extents)));
  }

  /// Communication: that of to_host. Collective over the answer's mesh.
  template <class U> void add(const Batch& batch, const Answer<U>& answer) {
    const auto means = to_host(answer.means);
    for (std::size_t m = 0; m < batch.members.size(); ++m) {
      copy(means.values, batch.mean(m), means_, batch.members[m]);
      words_ += text(batch.members[m]).words() - 2;
    }
    if (answer.probabilities) add_found(batch, to_host(*answer.probabilities).values);
    if (states_.values.empty()) return;
    for (std::size_t layer = 0; layer < answer.states.size(); ++layer)
      add_states(batch, static_cast<Index>(layer), to_host(answer.states[layer]).values);
  }

  /// Words of sequences that have been answered, without those that begin and end them.
  Index words() const { return words_; }
  const Rows& means() const { return means_; }
  const Rows& states() const { return states_; }
  /// The words' probabilities at each mask, sequence by sequence: (places, words).
  Rows found() const {
    Rows all{{0, vocabulary_.size()}, {}};
    for (const std::vector<float>& one : found_)
      all.values.insert(all.values.end(), one.begin(), one.end());
    all.extents[0] = static_cast<Index>(all.values.size()) / vocabulary_.size();
    return all;
  }
  /// Returns a sequence with the letter of the largest probability at each '_' that was found.
  std::string filled(std::size_t sequence) const {
    std::string text = all_[sequence].letters;
    const std::vector<float>& own = found_[sequence];
    auto at = own.begin();
    for (char& c : text) {
      if (c != '_' || at == own.end()) continue;
      Index best = -1;
      for (Index v = 0; v < vocabulary_.size(); ++v)
        if (vocabulary_.word(v).size() == 1 && (best < 0 || at[v] > at[best])) best = v;
      c = vocabulary_.word(best)[0];
      at += vocabulary_.size();
    }
    return text;
  }

 private:
  const Text& text(Index sequence) const { return all_[static_cast<std::size_t>(sequence)]; }
  /// Copies a row of the last dimension.
  static void copy(const std::vector<float>& from, Index row, Rows& to, Index to_row) {
    const Index width = to.extents[to.extents.size() - 1];
    std::copy_n(from.begin() + row * width, width, to.values.begin() + to_row * width);
  }
  void add_found(const Batch& batch, const std::vector<float>& values) {
    for (std::size_t m = 0; m < batch.members.size(); ++m) {
      const std::vector<Id>& ids = text(batch.members[m]).ids;
      std::vector<float>& own = found_[static_cast<std::size_t>(batch.members[m])];
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] != vocabulary_.mask) continue;
        const auto at =
            values.begin() + (batch.first(m) + static_cast<Index>(i)) * vocabulary_.size();
        own.insert(own.end(), at, at + vocabulary_.size());
      }
    }
  }
  /// Where a sequence has ended, zeros stay.
  void add_states(const Batch& batch, Index layer, const std::vector<float>& values) {
    for (std::size_t m = 0; m < batch.members.size(); ++m) {
      const Index from = batch.first(m),
                  to = (layer * states_.extents[1] + batch.members[m]) * states_.extents[2],
                  words = batch.rows.documents[m].length;
      for (Index s = 0; s < words; ++s) copy(values, from + s, states_, to + s);
    }
  }

  const std::vector<Text>& all_;
  const Vocabulary& vocabulary_;
  Index words_ = 0;
  Rows means_, states_;
  std::vector<std::vector<float>> found_;  ///< of each sequence's masked places, in order
};

}  // namespace protein_encoder
