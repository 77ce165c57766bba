// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A small decoder, of sizes that no mesh divides evenly: its loss and gradients.
///
///     Numbers all = nn_test::decoder_numbers<TensorParallel<data, model>>(mesh);
#include <vector>

#include "nn/layer_cases.hpp"

namespace nn_test {

using Numbers = std::vector<double>;

/// The loss of a step with dropout, its scores' greatest place aside, and all gradients.
template <class R> Numbers decoder_numbers(const ProcessMesh<Grid>& mesh) {
  using U = On<R>;
  Parameters<Grid> make(mesh, 3);
  const auto weights = Decoder<U>::like(
      make, {.vocabulary = 11, .places = 5, .embed = 6, .heads = 3, .hidden = 7, .layers = 2});
  const auto ids = from_function<TokenIds<U>>(mesh, {5, 4}, Ids{11});
  const auto targets = from_function<TokenIds<U>>(mesh, {5, 4}, Ids{9});
  const auto loss = [&](const auto& w) {
    return mean(cross_entropy(next_tokens(w, ids, {.rate = 0.1, .seed = 8, .step = 3}), targets));
  };
  const auto [value_of, gradient] = value_and_grad(loss)(weights);
  Numbers all{value(value_of)};
  append(all, gradient);
  return all;
}

}  // namespace nn_test
