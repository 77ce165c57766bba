// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 1 2
// GShard's mixture of experts, top-2: 8 groups of 256 tokens, M 256, 8 experts, H 1024, capacity
// 64, single precision, groups and experts over all processes: forward, and forward and backward,
// with rows that are taken and with products by zeros and ones, beside the layer's parts computed
// without communication: gating and dispatch, experts, combination, each on tensors that lie where
// it needs them.
#include <cstdio>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include <tessera/nn.hpp>
#include <tessera/op/compile.hpp>
#include <tessera/tessera.hpp>

#include "support/turns.hpp"

namespace {
using namespace tessera;

namespace grid {
struct data : Axis<> {};
}  // namespace grid
using grid::data;
using Grid = Mesh<data>;
template <class... D> using Tensor = ShardedTensor<float, Grid, P<D...>>;
using Tokens = Tensor<data, _, _>;
using ByGroup = Tensor<_, data, _, _>;
using ByExpert = Tensor<data, _, _, _>;
using Weights = ExpertWeights<Tensor<_, _>, Tensor<data, _, _>, Tensor<data, _, _>>;

// On a device: 8 groups of 2048 tokens, M 1024, H 4096, capacity 512, which fill it.
constexpr Index large = kernels_on_host ? 1 : 4;
constexpr Index groups = 8, tokens = kernels_on_host ? 256 : 2048, embed = 256 * large, experts = 8,
                hidden = 1024 * large, capacity = tokens / 4;

struct Problem {
  ProcessMesh<Grid> mesh;
  Tokens x = random_normal<Tokens>(mesh, {groups, tokens, embed}, 1);
  Weights weights{random_normal<Tensor<_, _>>(mesh, {embed, experts}, 2, 0, 0.05),
                  random_normal<Tensor<data, _, _>>(mesh, {experts, embed, hidden}, 3, 0, 0.05),
                  random_normal<Tensor<data, _, _>>(mesh, {experts, hidden, embed}, 4, 0, 0.05)};
  ByGroup by_group = random_normal<ByGroup>(mesh, {experts, groups, capacity, embed}, 5);
  ByExpert by_expert = random_normal<ByExpert>(mesh, {experts, groups, capacity, embed}, 6);

  /// The parts without communication.
  template <Dispatch How> static auto sent(const Tokens& t, const Tensor<_, _>& gate) {
    const auto gating = top2_gating(einsum<"gsm,me->gse">(t, gate), capacity);
    return std::tuple(to_buffers<How>(t, gating), gating);
  }
  static auto made(const ByExpert& b, const Tensor<data, _, _>& in, const Tensor<data, _, _>& out) {
    return einsum<"egch,ehm->egcm">(einsum<"egcm,emh->egch">(b, in, then(fn::Relu{})), out);
  }
  template <Dispatch How> void parts() {
    const auto [buffers, gating] = sent<How>(x, weights.gate);
    (void)made(by_expert, weights.in, weights.out);
    (void)from_buffers<Tokens, How>(by_group, gating);
  }
};

template <Dispatch How> void measure(Problem& layer, const std::string& form) {
  const auto loss = [](const Tokens& t, const Weights& w) {
    const auto made = mixture_of_experts<How>(t, w);
    return sum<"gsm->">(square(made.output)) + 0.01f * made.gating.auxiliary_loss;
  };
  auto forward = compile(
      [](const Tokens& t, const Weights& w) { return mixture_of_experts<How>(t, w).output; });
  auto step = compile(value_and_grad<0, 1>(loss));
  const auto before = [&](const Tokens& t, const Tensor<_, _>& gate) {
    const auto [buffers, gating] = Problem::sent<How>(t, gate);
    return sum<"egcm->">(square(buffers)) + gating.auxiliary_loss;
  };
  const auto between = [&](const ByExpert& b, const auto& in, const auto& out) {
    return sum<"egcm->">(square(Problem::made(b, in, out)));
  };
  const auto gating = std::get<1>(Problem::sent<How>(layer.x, layer.weights.gate));
  const auto after = [&](const ByGroup& b, const auto& first, const auto& second) {
    auto weighed = gating;
    weighed.first_weight = first;
    weighed.second_weight = second;
    return sum<"gsm->">(square(from_buffers<Tokens, How>(b, weighed)));
  };
  const auto parts_of_step = [&] {
    (void)value_and_grad<0, 1>(before)(layer.x, layer.weights.gate);
    (void)value_and_grad<0, 1, 2>(between)(layer.by_expert, layer.weights.in, layer.weights.out);
    (void)value_and_grad<0, 1, 2>(after)(layer.by_group, gating.first_weight, gating.second_weight);
  };
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto tell = [&](const std::string& what, const std::vector<std::function<void()>>& bodies) {
    const std::string name = "mixture_of_experts/" + what + "/" + form;
    if (!tessera_bench::wanted(name)) return;
    const auto t = tessera_bench::in_turns(bodies, {2.0});
    tessera_bench::note(name, {{"tessera", t[0]}, {"not compiled", t[1]}, {"parts", t[2]}});
    if (rank == 0)
      std::printf("%s: %.2f ms, not compiled %.2f ms, its parts without communication %.2f ms\n",
                  name.c_str(), t[0] * 1e3, t[1] * 1e3, t[2] * 1e3);
  };
  tell("forward", {[&] { (void)forward(layer.x, layer.weights); },
                   [&] { (void)mixture_of_experts<How>(layer.x, layer.weights); },
                   [&] { layer.parts<How>(); }});
  tell("forward and backward",
       {[&] { (void)step(layer.x, layer.weights); },
        [&] { (void)value_and_grad<0, 1>(loss)(layer.x, layer.weights); }, parts_of_step});
}
}  // namespace

int main(int argc, char** argv) {
  Environment env(argc, argv);
  tessera_bench::start(argc, argv);
  {
    Problem layer{make_mesh<Grid>(env.world(), env.world()->size())};
    measure<Dispatch::take>(layer, "rows that are taken");
    measure<Dispatch::one_hot>(layer, "products");
  }
  return tessera_bench::finish();
}
