// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 4
//
// Lesson 5: a model names its dimensions by what they mean, and rules say which mesh axes split
// them. You will see one feed-forward layer under two sets of rules: what each communicates at a
// real size, and that both compute the same.
#include <tessera/tessera.hpp>

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
namespace name {  // of dimensions: any types
struct batch;
struct sequence;
struct embed;
struct hidden;
}  // namespace name
using grid::data, grid::model;
using name::batch, name::sequence, name::embed, name::hidden;
using Grid = Mesh<data, model>;

// The model. It does not know the mesh axes.
template <class R> struct FeedForward {
  template <class... Dims> using Tensor = ShardedTensor<float, Grid, Logical<R, Dims...>>;
  using Activations = Tensor<batch, sequence, embed>;
  using In = Tensor<embed, hidden>;
  using Out = Tensor<hidden, embed>;

  static Activations apply(const Activations& x, const In& w_in, const Out& w_out) {
    const auto h = gelu(einsum<"bsm,mh->bsh", Logical<R, batch, sequence, hidden>>(x, w_in));
    return einsum<"bsh,hm->bsm", Logical<R, batch, sequence, embed>>(h, w_out);
  }
};

// The first rule that fits wins. Megatron's way: weights split over model, activations whole.
using Megatron = Rules<AxisRule<batch, data>, AxisRule<hidden, model>, AxisRule<sequence, _>,
                       AxisRule<embed, _>>;
// Everything split over both axes; where batch has taken data, embed and hidden fall back.
using FullySplit = Rules<AxisRule<batch, data>, AxisRule<hidden, model>, AxisRule<embed, model>,
                         AxisRule<embed, data>, AxisRule<sequence, _>>;
static_assert(std::is_same_v<Logical<Megatron, embed, hidden>, P<_, model>>);
static_assert(std::is_same_v<Logical<FullySplit, embed, hidden>, P<data, model>>);
static_assert(std::is_same_v<Logical<FullySplit, batch, sequence, embed>, P<data, _, model>>);

/// Prints what the layer does under rules R at a real size; runs it small; returns its result
/// whole.
template <class R> HostTensor<float> run(const char* rules, Environment& env) {
  using Layer = FeedForward<R>;
  const Program dry = plan(Layer::apply)(like<typename Layer::Activations>(8, 512, 5120),
                                         like<typename Layer::In>(5120, 20480),
                                         like<typename Layer::Out>(20480, 5120), sizes<Grid>(2, 4));
  if (env.process() == 0) fmt::print("{}: {}\n", rules, dry);

  const auto mesh = make_mesh<Grid>(env, 2, 2);
  const auto x = random_normal<typename Layer::Activations>(mesh, {8, 16, 64}, 1);
  const auto w_in = random_normal<typename Layer::In>(mesh, {64, 256}, 2, 0, 0.125);
  const auto w_out = random_normal<typename Layer::Out>(mesh, {256, 64}, 3, 0, 0.0625);
  return to_host(Layer::apply(x, w_in, w_out));
}

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment& env) {
    const auto first = run<Megatron>("Megatron's rules", env);
    const auto second = run<FullySplit>("fully split", env);
    float difference = 0;
    for (std::size_t i = 0; i < first.values.size(); ++i) {
      const float apart = std::abs(first.values[i] - second.values[i]);
      if (!(apart <= 1e-4f)) throw Error("two sets of rules compute different things");
      difference = std::max(difference, apart);
    }
    if (env.process() == 0) fmt::print("They differ by {:.1e} at most\n", difference);
  });
}
