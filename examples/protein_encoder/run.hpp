// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The encoder at work on a batch.
///
///     const Run<Here> run(mesh, kind, true, false);          // finds letters, gives the last states
///     const Answer<Here> answer = run(run.model(), ids_of<Here>(mesh, batch), weights_of<Here>(mesh, batch));
#include <optional>
#include <vector>

#include "sequences.hpp"

namespace protein_encoder {

/// What a batch gives: its sequences' means, the words' probabilities where letters are masked, and
/// states, the last ones or all.
template <class U> struct Answer {
  typename U::template Tensor<logical::batch, logical::embed> means;
  std::optional<typename U::template Tensor<logical::batch, logical::sequence, logical::vocabulary>>
      probabilities;
  std::vector<States<U>> states;
};
template <class U> using Weights = typename U::template Tensor<logical::batch, logical::sequence>;

template <class U> class Run {
 public:
  Run(const ProcessMesh<Grid>& mesh, const Kind& kind, bool finds, bool all_states)
      : kind_(with_head(kind, finds)),
        all_states_(all_states),
        model_(read_model<U>(mesh, kind_)) {}

  const Encoder<U>& model() const { return model_; }

  /// ids and weights are (batch, length).
  Answer<U> operator()(const Encoder<U>& model, const Ids<U>& ids,
                       const Weights<U>& weights) const {
    const auto valid = not_equal(ids, kind_.vocabulary.padding);
    Answer<U> answer;
    if (all_states_)
      answer.states = hidden_states(model, ids, kind_.options, valid);
    else
      answer.states = {encode(model, ids, kind_.options, valid)};
    const States<U>& last = answer.states.back();
    {
      const Layer scope(ids, "means");
      answer.means = einsum<"bsm,bs->bm">(last, weights);
    }
    if (kind_.sizes.head)
      answer.probabilities = softmax<"bsv", 'v'>(masked_scores(model, last, kind_.options));
    return answer;
  }

 private:
  /// Weights that nothing reads are not read from the file either.
  static Kind with_head(Kind kind, bool finds) {
    kind.sizes.head = kind.sizes.head && finds;
    return kind;
  }

  Kind kind_;
  bool all_states_;
  Encoder<U> model_;
};

template <class U> Ids<U> ids_of(const ProcessMesh<Grid>& mesh, const Batch& batch) {
  return from_host<Ids<U>>(mesh, {static_cast<Index>(batch.members.size()), batch.length},
                           batch.ids);
}
template <class U> Weights<U> weights_of(const ProcessMesh<Grid>& mesh, const Batch& batch) {
  return from_host<Weights<U>>(mesh, {static_cast<Index>(batch.members.size()), batch.length},
                               batch.weights);
}

}  // namespace protein_encoder
