// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The encoder at work on a batch.
///
///     const Run<Here> run(mesh, kind, true, false);          // finds letters, gives the last states
///     const Answer<Here> answer = run(run.model(), given<Here>(mesh, batch));
#include <optional>
#include <vector>

#include "sequences.hpp"

namespace protein_encoder {

/// What a batch gives: its sequences' means, (rows, members of a row, width), the words'
/// probabilities where letters are masked, and states, the last ones or all.
template <class U> struct Answer {
  typename U::template Tensor<logical::batch, _, logical::embed> means;
  std::optional<typename U::template Tensor<logical::batch, logical::sequence, logical::vocabulary>>
      probabilities;
  std::vector<States<U>> states;
};
/// A batch on a mesh: ids are (rows, length), weights (rows, members of a row, length).
template <class U> struct Given {
  Ids<U> ids;
  typename U::template Tensor<logical::batch, _, logical::sequence> weights;
  std::optional<Documents<Ids<U>>> documents;  ///< where rows have several members
  static constexpr auto fields = Fields<&Given::ids, &Given::weights, &Given::documents>{};
};

template <class U> class Run {
 public:
  Run(const ProcessMesh<Grid>& mesh, const Kind& kind, bool finds, bool all_states)
      : kind_(with_head(kind, finds)),
        all_states_(all_states),
        model_(read_model<U>(mesh, kind_)) {}

  const Encoder<U>& model() const { return model_; }

  Answer<U> operator()(const Encoder<U>& model, const Given<U>& given) const {
    const auto states = [&](const auto& mask) -> std::vector<States<U>> {
      if (all_states_) return hidden_states(model, given.ids, kind_.options, mask);
      return {encode(model, given.ids, kind_.options, mask)};
    };
    Answer<U> answer;
    answer.states = given.documents ? states(*given.documents)
                                    : states(not_equal(given.ids, kind_.vocabulary.padding));
    const States<U>& last = answer.states.back();
    {
      const Layer scope(given.ids, "means");
      answer.means = einsum<"bsm,bns->bnm">(last, given.weights);
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

template <class U> Given<U> given(const ProcessMesh<Grid>& mesh, const Batch& batch) {
  const Packing& rows = batch.rows;
  Given<U> to{from_host<Ids<U>>(mesh, rows.extents(), batch.ids),
              from_host<decltype(Given<U>::weights)>(mesh, {rows.rows, batch.most(), rows.length},
                                                     batch.weights),
              {}};
  if (batch.packed) to.documents = documents_of<U>(mesh, rows);
  return to;
}

}  // namespace protein_encoder
