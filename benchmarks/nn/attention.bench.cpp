// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 1
// Attention without its matrices: 4 texts, 8 heads of 64 floats, on one process; by all scores
// (causal ones by tiles of queries), and by blocks of keys of which one has all keys; forward, and
// with gradients.
#include <cmath>
#include <cstdio>
#include <string>
#include <tuple>
#include <utility>

#include <tessera/nn.hpp>
#include <tessera/tessera.hpp>

#include "support/turns.hpp"

namespace {
using namespace tessera;

namespace grid {
struct data : Axis<> {};
}  // namespace grid
using Grid = Mesh<grid::data>;
using U = Under<float, Grid, LayerRules<>>;
using Q = U::Tensor<logical::batch, logical::sequence, logical::groups, logical::repeats,
                    logical::head_dim>;
using K = U::Tensor<logical::batch, logical::sequence, logical::groups, logical::head_dim>;

struct Heads {
  Q queries;
  K keys, values;
  static constexpr auto fields = Fields<&Heads::queries, &Heads::keys, &Heads::values>{};
};

/// A score, where its query sees the key.
struct SeenScore {
  template <class T> KOKKOS_FUNCTION T operator()(const GlobalIndex& i, T x) const {
    return i[4] > i[3] ? -INFINITY : x;
  }
  template <class T> KOKKOS_FUNCTION T derivative(const GlobalIndex&, T) const { return 1; }
};
Q composed(const Heads& given, bool causal) {
  auto scores = einsum<"bsgrd,btgd->bgrst">(given.queries, given.keys);
  if (causal) scores = map_with_index(SeenScore{}, scores);
  return einsum<"bgrst,btgd->bsgrd">(softmax<"bgrst", 't'>(scores), given.values);
}
Q attended(const Heads& given, const AttentionOptions& options) {
  return blocked_attention(given.queries, given.keys, given.values, options);
}

void measure(Environment& env, Index length, bool causal) {
  const auto mesh = make_mesh<Grid>(env.world(), 1);
  Parameters<Grid> make(mesh, 1);
  const auto normal = Initializer::normal(1);
  const Heads given{make.tensor<Q>({4, length, 8, 1, 64}, normal),
                    make.tensor<K>({4, length, 8, 64}, normal),
                    make.tensor<K>({4, length, 8, 64}, normal)};
  const AttentionOptions all{.causal = causal}, one{.causal = causal, .block = length},
      blocks{.causal = causal, .block = 256};
  for (const bool back : {false, true}) {
    const std::string name = "attention/" + std::to_string(length) +
                             (causal ? ", causal" : ", all keys") +
                             (back ? ", with gradients" : "");
    if (!tessera_bench::wanted(name)) continue;
    const auto timed = [&](const auto& heads) {
      return [&given, heads, back] {
        if (back)
          (void)value_and_grad([&](const Heads& by) { return sum(heads(by) * by.queries); })(given);
        else
          (void)heads(given);
      };
    };
    const auto by = [&](const AttentionOptions& options) {
      return timed([options](const Heads& heads) { return attended(heads, options); });
    };
    const auto t = tessera_bench::in_turns(
        {by(all), by(one), by(blocks),
         timed([causal](const Heads& heads) { return composed(heads, causal); })},
        {4.0});
    tessera_bench::note(
        name,
        {{"tessera", t[0]}, {"one block", t[1]}, {"blocks of 256", t[2]}, {"composed", t[3]}});
    std::printf("%-40s %8.2f ms, one block %.2f, blocks of 256 %.2f, composed %.2f of it\n",
                name.c_str(), t[0] * 1e3, t[1] / t[0], t[2] / t[0], t[3] / t[0]);
    std::fflush(stdout);
  }
}
}  // namespace

int main(int argc, char** argv) {
  Environment env(argc, argv);
  tessera_bench::start(argc, argv);
  for (const Index length : {128, 512, 2048})
    for (const bool causal : {false, true}) measure(env, length, causal);
  return tessera_bench::finish();
}
