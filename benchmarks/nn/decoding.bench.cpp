// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 1 2
// What a step takes in which a decoder writes a token of each text, the reading of the beginnings
// counted in: 6 layers, d 512, 8 heads, feed-forward 2048, vocabulary
// 8192, single precision, texts that begin with 32 tokens and go on for 64; and beam searches with
// hypotheses as rows, whose keys and values are reordered, and flat. On two processes with the
// batch split, and with heads, hidden elements and the vocabulary. benchmarks/decoding_peers.py
// measures the same model in PyTorch.
#include <cstdio>
#include <string>
#include <vector>

#include <tessera/nn.hpp>
#include <tessera/nn/decoding/beam_search.hpp>
#include <tessera/nn/decoding/generate.hpp>
#include <tessera/tessera.hpp>

#include "support/turns.hpp"

namespace {
using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
using U = Under<float, Grid, TensorParallel<data, model>>;

constexpr Index begins = 32, writes = 64, vocabulary = 8192;

std::vector<std::int32_t> beginning(std::size_t text) {
  std::vector<std::int32_t> ids;
  for (Index i = 0; i < begins; ++i)
    ids.push_back(
        static_cast<std::int32_t>((static_cast<Index>(text) + 3) * (i + 5) * 37 % vocabulary));
  return ids;
}

void measure(Environment& env, int over_data, int over_model) {
  const auto mesh = make_mesh<Grid>(env.world(), over_data, over_model);
  const std::string on = std::to_string(over_data) + "x" + std::to_string(over_model);
  Parameters<Grid> make(mesh, 1);
  const auto decoder = Decoder<U>::like(make, {.vocabulary = vocabulary,
                                               .places = begins + writes,
                                               .embed = 512,
                                               .heads = 8,
                                               .head_dim = 64,
                                               .hidden = 2048,
                                               .layers = 6});
  /// Returns the bytes that a process sends in a call of f, in KiB, divided by its steps.
  const auto sent = [&](Index steps, const auto& f) {
    mesh.ledger().reset();
    f();
    return static_cast<double>(mesh.ledger().payload_bytes()) / 1024 / static_cast<double>(steps);
  };
  for (const std::size_t texts : {1, 8, 32}) {
    if (static_cast<int>(texts) < over_data) continue;
    const std::string name = "decoding/" + on + ", " + std::to_string(texts) + " texts";
    if (!tessera_bench::wanted(name)) continue;
    std::vector<TextRequest> requests;
    for (std::size_t text = 0; text < texts; ++text)
      requests.push_back({.begin = beginning(text), .most = writes});
    const auto write = [&] {
      (void)generate(mesh, decoder, requests,
                     {.batch = static_cast<Index>(texts), .sampling = {.temperature = 0}});
    };
    const double kib = sent(writes, write);
    const auto t = tessera_bench::in_turns({write}, {3.0, 3});
    tessera_bench::note(name, {{"tessera, a step", t[0] / writes}}, {{"sent a step, KiB", kib}});
    if (env.world()->process() == 0)
      std::printf("%s: %.3f ms\n", name.c_str(), 1e3 * t[0] / writes);
  }
  struct Search {
    std::size_t texts;
    Index beams, most;
  };
  for (const Search& one :
       {Search{1, 4, 32}, Search{1, 16, 32}, Search{4, 4, 32}, Search{4, 4, 64}}) {
    if (static_cast<int>(one.texts) < over_data) continue;
    const std::string name = "decoding/" + on + ", " + std::to_string(one.texts) + " x " +
                             std::to_string(one.beams) + " beams, " + std::to_string(one.most) +
                             " tokens";
    if (!tessera_bench::wanted(name)) continue;
    std::vector<std::vector<std::int32_t>> texts;
    for (std::size_t text = 0; text < one.texts; ++text) texts.push_back(beginning(text));
    const auto search = [&](bool flat) {
      return [&, flat] {
        (void)beam_search(mesh, decoder, texts,
                          {.beams = one.beams, .most = one.most, .flat = flat});
      };
    };
    const double rows_kib = sent(one.most, search(false)), flat_kib = sent(one.most, search(true));
    const auto t = tessera_bench::in_turns({search(true), search(false)}, {3.0, 3});
    const auto steps = static_cast<double>(one.most);
    tessera_bench::note(name, {{"tessera, flat, a step", t[0] / steps}, {"rows", t[1] / steps}},
                        {{"sent a step, KiB", flat_kib}, {"as rows", rows_kib}});
    if (env.world()->process() == 0)
      std::printf("%s: flat %.3f ms, rows %.3f ms\n", name.c_str(), 1e3 * t[0] / steps,
                  1e3 * t[1] / steps);
  }
}
}  // namespace

int main(int argc, char** argv) {
  Environment env(argc, argv);
  tessera_bench::start(argc, argv);
  const int n = env.world()->size();
  measure(env, n, 1);
  if (n > 1) measure(env, 1, n);
  return tessera_bench::finish();
}
