// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 4
//
// Lesson 4: a Transformer's feed-forward layer, every weight and activation split over both axes
// (GSPMD, Table 1, "2D finalized"). You will see the program of the README, its plan at a real
// model's size on a real machine's mesh, checked while it compiles, and its run on four processes.
#include <tessera/tessera.hpp>

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
template <class... Dims> using Tensor = ShardedTensor<float, Grid, P<Dims...>>;

Tensor<data, _, model> feed_forward(const Tensor<data, _, model>& x,     // batch, sequence, embed
                                    const Tensor<data, model>& w_in,     // embed, hidden
                                    const Tensor<model, data>& w_out) {  // hidden, embed
  auto h = gelu(einsum<"bsm,mh->bsh">(x, w_in));              // P<data, _, model>, deduced
  return einsum<"bsh,hm->bsm", P<data, _, model>>(h, w_out);  // reduce-scatter over model
}

// What the first product does at the article's size: two all-gathers, no sum to finish.
constexpr Plan first_product =
    plan<"bsm,mh->bsh">(like<Tensor<data, _, model>>(8, 512, 5120),
                        like<Tensor<data, model>>(5120, 20480), sizes<Grid>(2, 4));
static_assert(first_product.count(all_gather) == 2 && first_product.communications() == 2);

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment& env) {
    const Program dry = plan(feed_forward)(
        like<Tensor<data, _, model>>(8, 512, 5120), like<Tensor<data, model>>(5120, 20480),
        like<Tensor<model, data>>(20480, 5120), sizes<Grid>(2, 4));
    if (env.process() == 0) fmt::print("{}\nIts {}", with_names<Grid>(first_product), dry);
    if (dry.duplicated_flops() != 0) throw Error("some work is done twice");

    const auto mesh = make_mesh<Grid>(env, 2, 2);
    const auto x = random_normal<Tensor<data, _, model>>(mesh, {8, 16, 64}, 1);
    const auto w_in = random_normal<Tensor<data, model>>(mesh, {64, 256}, 2, 0, 0.125);
    const auto w_out = random_normal<Tensor<model, data>>(mesh, {256, 64}, 3, 0, 0.0625);
    const auto y = feed_forward(x, w_in, w_out);

    const auto alone = einsum<"bsh,hm->bsm">(
        gelu(einsum<"bsm,mh->bsh">(replicate(x), replicate(w_in))), replicate(w_out));
    const float difference = value(max(abs(y - alone)));
    if (env.process() == 0)
      fmt::print("\nOn {}: split and whole differ by {:.1e} at most\n",
                 to_string(mesh.shape(), Grid::names()), difference);
    if (!(difference <= 1e-4f)) throw Error("the split layer computes something else");
  });
}
