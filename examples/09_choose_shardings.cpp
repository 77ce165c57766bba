// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 4
//
// Lesson 9: a block of a Transformer of which two tensors are annotated, the batch and the hidden
// elements, and everything else follows: its weights, what lies between, and their gradients. You
// will see what was chosen and why, the choice as a file and as C++, and that the step computes
// what it computes without.
#include <tessera/grad.hpp>
#include <tessera/io/choice_file.hpp>
#include <tessera/op/compile.hpp>
#include <tessera/run/choose_of.hpp>
#include <tessera/tessera.hpp>

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;

/// The weights, of which nothing is said: their shardings are values.
struct Block {
  DynamicTensor query, key, value, out;  // (embed, heads, dim) three times, (heads, dim, embed)
  DynamicTensor up, down;                // (embed, hidden), (hidden, embed)
  static constexpr auto fields =
      Fields<&Block::query, &Block::key, &Block::value, &Block::out, &Block::up, &Block::down>{};
};

/// x is (batch, sequence, embed). The batch, its first dimension, is split where x is made.
DynamicTensor apply(const Block& w, const DynamicTensor& x) {
  const auto q = einsum("bsm,mnd->bsnd", x, w.query), k = einsum("bsm,mnd->bsnd", x, w.key),
             v = einsum("bsm,mnd->bsnd", x, w.value);
  const auto weights = softmax<float>("bnst", 't', einsum("bsnd,btnd->bnst", q, k));
  const auto y = x + einsum("bsnd,ndm->bsm", einsum("bnst,btnd->bsnd", weights, v), w.out);
  // The second annotation: hidden elements lie over model, and the rest is left open.
  const auto h = constrain(gelu(einsum("bsm,mh->bsh", y, w.up)), {Open{}, Open{}, {1}});
  return y + einsum("bsh,hm->bsm", h, w.down);
}
const auto train_step = [](const Block& w, const DynamicTensor& x) {
  return value_and_grad<0>([](const Block& weights, const DynamicTensor& given) {
    const auto y = apply(weights, given);
    return reduce<Sum>("bsm->", y * y);
  })(w, x);
};

/// Makes a weight of these extents as the choice says, or whole.
struct Make {
  const ProcessMesh<Grid>& mesh;
  const Choice* choice = nullptr;
  DynamicTensor operator()(const char* path, const Extents& extents, std::uint64_t seed) const {
    Sharding s = Sharding::replicated(extents.size());
    if (choice != nullptr) s = choice->argument(std::string("0.") + path);
    return random_normal<float>(mesh, extents, s, seed, 0, 0.125);
  }
};
Block born(const Make& make, Index embed, Index heads, Index hidden) {
  const Index dim = embed / heads;
  return {make("query", {embed, heads, dim}, 1), make("key", {embed, heads, dim}, 2),
          make("value", {embed, heads, dim}, 3), make("out", {heads, dim, embed}, 4),
          make("up", {embed, hidden}, 5),        make("down", {hidden, embed}, 6)};
}

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment& env) {
    const bool speaks = env.process() == 0;
    // What follows, at a real size, on a mesh of 2 x 4 that is not there.
    const auto large = dry_mesh<Grid>(2, 4);
    const TensorDesc batch{DType::f32, {16, 128, 512}, {{0}, {}, {}}};
    const ChooseOptions options{.open_paths = {"0"}, .open_results = true};
    const Choice choice = choose(train_step, options)(born({large}, 512, 8, 2048), batch, large);
    if (speaks) {
      fmt::print("{}\nWhy the first product's weight lies so:\n", explain(choice));
      for (const ProgramArgument& argument : choice.given().arguments())
        if (argument.path == "0.up") fmt::print("{}\n", explain(choice, argument.tensor));
      fmt::print("As C++:\n{}\n", specs_of(choice));
    }

    // A small one runs on processes: chosen once, kept as text, and run as the text says.
    const auto mesh = make_mesh<Grid>(env, 2, 2);
    const DynamicTensor x = random_normal<float>(mesh, {8, 6, 16}, Sharding{{0}, {}, {}}, 7);
    const Block whole = born({mesh}, 16, 4, 32);
    const Choice small = choose(train_step, options)(whole, x, mesh);
    const ChoiceTable kept = parse_choice(to_string(table_of(small)));
    auto chosen = compile(train_step, kept);
    const auto [loss, gradient] = chosen(born({mesh, &small}, 16, 4, 32), x);
    const auto [expected, unused] = train_step(whole, x);
    const float one = value<float>(loss), other = value<float>(expected);
    if (speaks) fmt::print("The loss is {} as chosen, and {} as it is written\n", one, other);
    if (!(std::abs(one - other) <= 1e-5f * std::abs(other)))
      throw Error("the choice changes the loss");
  });
}
