// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decoding with kept keys and values: the scores of whole texts, however they are read, under rules
// that split heads, batch or places.
#include <tessera/nn/decoding/decode.hpp>

#include "nn/decoder_case.hpp"
#include "support/few_meshes.hpp"

namespace {
using namespace nn_test;

using ByHeads = TensorParallel<data, model>;
using ByBatch = DataParallel<Axes<data, model>>;
using ByPlaces = LayerRules<AxisRule<logical::batch, data>, AxisRule<logical::cache, model>>;
using InTwo = TwoDimensional<data, model>;
template <class Run> void under_each_rules(const Run& run) {
  run.template operator()<ByHeads>();
  run.template operator()<ByBatch>();
  run.template operator()<ByPlaces>();
  run.template operator()<InTwo>();
}

/// The scores of whole texts, (batch, sequence, vocabulary), and those of the same texts read in
/// steps; each row of `steps` are the numbers of tokens that are read at once.
template <class R> std::string read_on(const ProcessMesh<Grid>& mesh, bool rotary) {
  using U = On<R>;
  const Index batch = 5, sequence = 7, places = 9;
  Parameters<Grid> make(mesh, 3);
  DecoderSizes sizes = ragged_decoder;
  sizes.places = places;
  const auto model = Decoder<U>::like(make, sizes);
  using Tokens = TokenIds<U>;
  const auto ids = from_function<Tokens>(mesh, {batch, sequence}, ::nn_test::Ids{sizes.vocabulary});
  const auto numbers = to_host(ids);
  const auto whole = to_host(next_tokens(model, ids, {.attention = {.rotary = rotary}}));
  for (const std::vector<Index>& steps :
       {std::vector<Index>{1, 1, 1, 1, 1, 1, 1}, {7}, {3, 1, 3}, {2, 5}}) {
    auto kept = DecoderCache<U>::like(mesh, model, batch, places);
    Index from = 0;
    for (const Index count : steps) {
      std::vector<std::int32_t> some,
          last(static_cast<std::size_t>(batch), static_cast<std::int32_t>(count - 1));
      std::vector<std::vector<Index>> at(static_cast<std::size_t>(batch));
      for (Index b = 0; b < batch; ++b)
        for (Index i = 0; i < count; ++i) {
          some.push_back(static_cast<std::int32_t>(numbers(b, from + i)));
          at[static_cast<std::size_t>(b)].push_back(from + i);
        }
      using Row = typename U::template Of<std::int32_t, logical::batch>;
      using Block = typename U::template Of<std::int32_t, logical::batch, logical::sequence>;
      const auto scores = to_host(decode(model, kept, from_host<Block>(mesh, {batch, count}, some),
                                         NewPlaces<U>::at(mesh, at, places),
                                         from_host<Row>(mesh, {batch}, last), {.rotary = rotary}));
      from += count;
      for (Index b = 0; b < batch; ++b)
        for (Index v = 0; v < sizes.vocabulary; ++v)
          if (const double by = std::abs(static_cast<double>(scores(b, v)) -
                                         static_cast<double>(whole(b, from - 1, v)));
              !(by < 1e-12))
            return "text " + std::to_string(b) + " at " + std::to_string(from) + " differs by " +
                   std::to_string(by);
    }
  }
  return "";
}
}  // namespace

TEST_CASE("decoding: tokens one by one, or some at once, have the scores of whole texts") {
  for (const bool rotary : {false, true})
    under_each_rules([&]<class R> {
      support::on_few_meshes([&](const ProcessMesh<Grid>& mesh) {
        const std::string wrong = read_on<R>(mesh, rotary);
        CHECK_MESSAGE(wrong.empty(), wrong);
      });
    });
}
