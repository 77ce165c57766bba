// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What mixtures of experts communicate and hold, on paper: their Programs forward and backward, on
// meshes of 2 to 2,048 processes.
#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include <tessera/nn.hpp>
#include <tessera/program/summary.hpp>
#include <tessera/tessera.hpp>

#include "support/grid.hpp"

using namespace tessera;

namespace {

struct group;
struct embed;
struct expert;
struct hidden;

/// The layer's tensors under a list of rules.
template <class R> struct ExpertLayer {
  template <class... D> using Real = ShardedTensor<float, Grid, Logical<R, D...>>;
  using Tokens = Real<group, _, embed>;
  using Weights = ExpertWeights<Real<_, _>, Real<expert, _, hidden>, Real<expert, hidden, _>>;
  struct Sizes {
    Index groups, tokens, embed, experts, hidden;
  };
  template <Dispatch How> static auto output(const Tokens& x, const Weights& w) {
    return mixture_of_experts<How>(x, w);
  }
  template <Dispatch How> static auto loss(const Tokens& x, const Weights& w) {
    const auto made = mixture_of_experts<How>(x, w);
    return sum<"gsm->">(made.output) + made.gating.auxiliary_loss;
  }
  /// f(x, weights) of dry tensors.
  template <class F> static Program program(const F& f, const Sizes& z, MeshSizes<Grid> mesh) {
    const auto of_each = [&](const Tokens& x, const auto& gate, const auto& in, const auto& out) {
      return f(x, Weights{gate, in, out});
    };
    return plan(of_each)(like<Tokens>(z.groups, z.tokens, z.embed),
                         like<Real<_, _>>(z.embed, z.experts),
                         like<Real<expert, _, hidden>>(z.experts, z.embed, z.hidden),
                         like<Real<expert, hidden, _>>(z.experts, z.hidden, z.embed), mesh);
  }
  template <Dispatch How> static Program forward(const Sizes& z, MeshSizes<Grid> mesh) {
    return program([](const Tokens& x, const Weights& w) { return output<How>(x, w); }, z, mesh);
  }
  template <Dispatch How> static Program step(const Sizes& z, MeshSizes<Grid> mesh) {
    return program(
        value_and_grad<0, 1>([](const Tokens& x, const Weights& w) { return loss<How>(x, w); }), z,
        mesh);
  }
};

using Whole = AxisRule<embed, _>;  // of the tokens' features
using ByExperts = Rules<AxisRule<group, data>, AxisRule<expert, data>, AxisRule<hidden, _>, Whole>;

/// "dispatch: all-to-all", for each collective in the order of its operator.
std::string calls_of(const Program& program) {
  std::string text;
  for (const ProgramEntry& e : program.entries())
    for (const Step& s : e.plan->steps)
      if (s.communicates())
        text += program.layer_path(e.layer) + ": " + std::string(name_of(s.collective)) + "; ";
  return text;
}
/// "all-to-all over data: 2 of 1024 B", for each collective and group of axes.
std::string totals_of(const Program& program) {
  std::ostringstream text;
  for (const CollectiveTotal& t : by_axes(program)) {
    text << (text.tellp() > 0 ? ", " : "") << t.steps << " " << name_of(t.collective) << " over";
    for (int axis = 0; axis < program.mesh.rank(); ++axis)
      if (t.axes.contains(axis)) text << " " << program.names()[axis];
    text << " " << t.payload;
  }
  return text.str();
}
}  // namespace

TEST_CASE_TEMPLATE("one all-to-all before the experts and one after, forward and backward", How,
                   std::integral_constant<Dispatch, Dispatch::take>,
                   std::integral_constant<Dispatch, Dispatch::one_hot>) {
  using Layer = ExpertLayer<ByExperts>;
  for (const Index n : {2, 3, 4, 6, 8, 16, 32, 64}) {
    const Index experts = 2 * n, tokens = 4 * n, embed_ = 24;
    const Layer::Sizes z{2 * n, tokens, embed_, experts, 40};
    const Program forward = Layer::forward<How::value>(z, sizes<Grid>(n, 1));
    CHECK(calls_of(forward) == "gating: all-reduce; dispatch: all-to-all; combine: all-to-all; ");
    // Of its part of the buffers, (E, 2, C, M), a process keeps what its own experts get.
    const Index capacity = expert_capacity(tokens, experts);
    const Index sent = experts * 2 * capacity * embed_ * 4 / n * (n - 1);
    CHECK(forward.own_payload_bytes(Collective::all_to_all) == 2 * sent);
    const Program step = Layer::step<How::value>(z, sizes<Grid>(n, 1));
    CHECK(step.count(Collective::all_to_all) == 4);
    CHECK(step.own_payload_bytes(Collective::all_to_all) == 4 * sent);
    // Beside these the gate's gradient is summed, and two numbers: no tensor is gathered.
    CHECK(step.count(Collective::all_reduce) == 3);
    CHECK(by_axes(step).size() == 2);
  }
}

TEST_CASE("experts and groups that the mesh does not divide are exchanged once, too") {
  using Layer = ExpertLayer<ByExperts>;
  const Program step = Layer::step<Dispatch::take>({7, 12, 8, 5, 6}, sizes<Grid>(3, 1));
  CHECK(step.count(Collective::all_to_all) == 4);
  CHECK(by_axes(step).size() == 2);
}

TEST_CASE("rules, collectives and payload") {
  const auto row = [](auto rules, MeshSizes<Grid> mesh) {
    using Layer = ExpertLayer<decltype(rules)>;
    const typename Layer::Sizes z{8, 16, 32, 8, 64};
    return totals_of(Layer::template forward<Dispatch::take>(z, mesh)) + " | " +
           totals_of(Layer::template step<Dispatch::take>(z, mesh));
  };
  // Forward | forward and backward, of process 0. The buffers (8, 8, 4, 32) have 32 KiB, each
  // weight 64 KiB and the gate 1 KiB; of a sum of one number process 0 sends nothing. Whole
  // experts: no token moves, and the gradients of all weights are summed.
  CHECK(row(Rules<AxisRule<group, data>, AxisRule<expert, _>, AxisRule<hidden, _>, Whole>{},
            sizes<Grid>(4, 1)) == "1 all-reduce over data 0 | 5 all-reduce over data 198144");
  // Experts where groups are: of its 8 KiB of the buffers each process sends 3/4.
  CHECK(row(ByExperts{}, sizes<Grid>(4, 1)) ==
        "2 all-to-all over data 12288, 1 all-reduce over data 0 | "
        "4 all-to-all over data 24576, 3 all-reduce over data 1536");
  // Experts over the minor axis of the groups: tokens move within it, 1/2 of 8 KiB, and weights
  // are summed over the other.
  CHECK(row(Rules<AxisRule<group, Axes<data, model>>, AxisRule<expert, model>, AxisRule<hidden, _>,
                  Whole>{},
            sizes<Grid>(2, 2)) ==
        "2 all-to-all over model 8192, 1 all-reduce over data model 0 | "
        "2 all-reduce over data 65536, 4 all-to-all over model 16384, "
        "3 all-reduce over data model 1536");
  // Hidden features over the other axis: what the experts make is summed over it, and so is the
  // gradient of what they get.
  CHECK(row(Rules<AxisRule<group, data>, AxisRule<expert, data>, AxisRule<hidden, model>, Whole>{},
            sizes<Grid>(2, 2)) ==
        "2 all-to-all over data 16384, 1 all-reduce over data 0, 1 all-reduce over model 16384 | "
        "4 all-to-all over data 32768, 3 all-reduce over data 1024, "
        "2 all-reduce over model 32768");
  // The tokens' features over that axis, too: half as much moves between experts, and is gathered
  // there; their results are scattered.
  CHECK(row(Rules<AxisRule<group, data>, AxisRule<expert, data>, AxisRule<hidden, model>,
                  AxisRule<embed, model>>{},
            sizes<Grid>(2, 2)) ==
        "2 all-to-all over data 8192, 1 all-reduce over data 0, 1 all-gather over model 8192, "
        "1 reduce-scatter over model 8192, 1 all-reduce over model 2048 | "
        "4 all-to-all over data 16384, 2 all-reduce over data 512, 5 all-gather over model 33280, "
        "2 reduce-scatter over model 16384, 3 all-reduce over model 2560, "
        "1 all-reduce over data model 0");
  // Whole groups, experts over all: a process slices its experts' rows, and gathers their results.
  CHECK(row(Rules<AxisRule<group, _>, AxisRule<expert, data>, AxisRule<hidden, _>, Whole>{},
            sizes<Grid>(4, 1)) == "1 all-gather over data 24576 | 2 all-gather over data 49152");
}

TEST_CASE("memory for each process stays as processes and experts grow: GShard's figure 7") {
  using Layer = ExpertLayer<ByExperts>;
  // One expert and two groups of 1,024 tokens for each process, M 1024, H 8192 (its A.2). The
  // capacity falls from 16 to 1.
  Index of_weights = 0, of_buffers = 0, peak = 0, peak_of_step = 0;
  for (const Index n : {128, 512, 2048}) {
    const Layer::Sizes z{2 * n, 1024, 1024, n, 8192};
    const Program forward = Layer::forward<Dispatch::take>(z, sizes<Grid>(n, 1));
    const Program step = Layer::step<Dispatch::take>(z, sizes<Grid>(n, 1));
    Index weights = 0, buffers = 0;
    for (const ProgramTensor& t : forward.tensors()) {
      if (t.made < 0 && t.desc.extents[0] == n) weights += t.bytes;
      if (t.desc.rank() == 4) buffers += t.bytes;
    }
    if (n == 128) {
      of_weights = weights, of_buffers = buffers;
      peak = forward.peak_bytes(), peak_of_step = step.peak_bytes();
    }
    CHECK(weights == 2 * 1024 * 8192 * 4);
    CHECK(weights == of_weights);
    CHECK(buffers == of_buffers);
    // What grows are gates of one group, (S, E), and the gate itself.
    CHECK(forward.peak_bytes() < peak + peak / 10);
    CHECK(step.peak_bytes() < peak_of_step + peak_of_step / 20);
  }
}
