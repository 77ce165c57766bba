// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Beam search: the best texts that there are, by trying all of them; and the same hypotheses
// whether they are rows that are reordered or lie interleaved in one.
#include <algorithm>
#include <cmath>

#include <tessera/nn/decoding/beam_search.hpp>

#include "nn/decoder_case.hpp"
#include "support/few_meshes.hpp"

namespace {
using namespace nn_test;

constexpr DecoderSizes few_tokens{
    .vocabulary = 5, .places = 9, .embed = 6, .heads = 3, .hidden = 7, .layers = 2};
const std::vector<std::vector<std::int32_t>> begins{{3, 1, 4}, {2}, {1, 1, 2, 3}};

/// All texts of at most `most` tokens that follow a beginning, the best first.
template <class U>
std::vector<Hypothesis> all_texts(const ProcessMesh<Grid>& mesh, const Decoder<U>& model,
                                  const std::vector<std::int32_t>& begin, const BeamOptions& how) {
  std::vector<Hypothesis> going{{}}, found;
  while (!going.empty()) {
    std::vector<Hypothesis> next;
    for (const Hypothesis& h : going) {
      std::vector<std::int32_t> text = begin;
      text.insert(text.end(), h.tokens.begin(), h.tokens.end());
      const auto n = static_cast<Index>(text.size());
      const auto scores = to_host(next_tokens(model, from_host<TokenIds<U>>(mesh, {1, n}, text)));
      double sum = 0;
      for (Index v = 0; v < scores.extents[2]; ++v) sum += std::exp(scores(0, n - 1, v));
      for (Index v = 0; v < scores.extents[2]; ++v) {
        Hypothesis longer = h;
        longer.tokens.push_back(static_cast<std::int32_t>(v));
        longer.log_probability += scores(0, n - 1, v) - std::log(sum);
        const auto length = static_cast<double>(longer.tokens.size());
        longer.score = longer.log_probability / std::pow((5 + length) / 6, how.length_penalty);
        const bool ends = v == how.end || static_cast<Index>(longer.tokens.size()) == how.most;
        (ends ? found : next).push_back(longer);
      }
    }
    going = std::move(next);
  }
  std::sort(found.begin(), found.end(),
            [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  return found;
}

bool same(const std::vector<Hypothesis>& a, const std::vector<Hypothesis>& b, std::size_t count) {
  if (a.size() < count || b.size() < count) return false;
  for (std::size_t i = 0; i < count; ++i)
    if (a[i].tokens != b[i].tokens || !(std::abs(a[i].score - b[i].score) <= 1e-11) ||
        !(std::abs(a[i].log_probability - b[i].log_probability) <= 1e-11))
      return false;
  return true;
}
}  // namespace

TEST_CASE("beam search: with enough beams the best of all texts are found") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 1, 2);
    using U = On<TensorParallel<data, model>>;
    Parameters<Grid> make(mesh, 4);
    const auto weights = Decoder<U>::like(make, few_tokens);
    for (const double alpha : {0.0, 1.0, -0.5})
      for (const bool flat : {false, true}) {
        const BeamOptions how{
            .beams = 30, .most = 3, .end = 2, .length_penalty = alpha, .flat = flat};
        const auto found = beam_search(mesh, weights, begins, how);
        for (std::size_t t = 0; t < begins.size(); ++t)
          CHECK(same(found[t], all_texts(mesh, weights, begins[t], how), 8));
      }
  });
}

namespace {
template <class R> void check_both_ways() {
  support::on_few_meshes([](const ProcessMesh<Grid>& mesh) {
    using U = On<R>;
    Parameters<Grid> make(mesh, 4);
    const auto weights = Decoder<U>::like(make, few_tokens);
    for (const Index beams : {1, 2, 3, 4})
      for (const std::int32_t end : {-1, 3})
        for (const double alpha : {0.0, 0.7}) {
          BeamOptions how{.beams = beams, .most = 5, .end = end, .length_penalty = alpha};
          const auto rows = beam_search(mesh, weights, begins, how);
          how.flat = true;
          const auto flat = beam_search(mesh, weights, begins, how);
          for (std::size_t t = 0; t < begins.size(); ++t) {
            CHECK(rows[t].size() == static_cast<std::size_t>(beams));
            CHECK(same(rows[t], flat[t], rows[t].size()));
          }
        }
  });
}
}  // namespace

TEST_CASE("beam search: hypotheses in rows and interleaved are the same") {
  check_both_ways<TensorParallel<data, model>>();
  check_both_ways<DataParallel<Axes<data, model>>>();
  check_both_ways<LayerRules<AxisRule<logical::batch, data>, AxisRule<logical::cache, model>>>();
}

TEST_CASE("beam search: what cannot be searched is refused in words") {
  run_loopback(1, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 1, 1);
    using U = On<DataParallel<data>>;
    Parameters<Grid> make(mesh, 4);
    const auto weights = Decoder<U>::like(make, few_tokens);
    CHECK(beam_search(mesh, weights, {}).empty());
    CHECK_THROWS_WITH_AS((void)beam_search(mesh, weights, {{1}, {}}, {.most = 3}),
                         doctest::Contains("text 1 has no beginning"), UsageError);
    CHECK_THROWS_WITH_AS((void)beam_search(mesh, weights, {{1}}, {.beams = 0}),
                         doctest::Contains("0 beams, and 32 tokens to write"), UsageError);
    CHECK_THROWS_WITH_AS((void)beam_search(mesh, weights, {{1, 2}}, {.most = 9}),
                         doctest::Contains("text 0 has 2 tokens, and 9 more are asked for"),
                         ShapeError);
  });
}
