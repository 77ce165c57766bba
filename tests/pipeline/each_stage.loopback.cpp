// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocks of a Transformer as stages of a pipeline, from one source: as a sharding, within which
// data and model axes split each stage, and by a schedule on parts of the mesh.
#include <doctest/doctest.h>

#include <cmath>

#include <tessera/grad.hpp>
#include <tessera/nn.hpp>
#include <tessera/nn/experts/expert_layer.hpp>
#include <tessera/nn/on_stages.hpp>
#include <tessera/pipeline.hpp>
#include <tessera/tessera.hpp>

#include "op/texts_of.hpp"

using namespace tessera;
using support::quiet, support::texts_of;

namespace {

struct stage : Axis<> {};
struct data : Axis<> {};
struct model : Axis<> {};
using Whole = Mesh<stage, data, model>;
using Part = Without<Whole, stage>;
constexpr Index stages = 4, texts = 3, places = 3, embed = 4;

/// The library's block.
struct PlainBlock {
  using Rules = TensorParallel<data, model>;
  template <class U> using Layer = DecoderBlock<U>;
  template <class U> static Layer<U> like(Parameters<typename U::mesh_type>& make) {
    return Layer<U>::like(make, {.embed = embed, .heads = 2, .hidden = 5});
  }
  template <class L, class X> static X run(const L& block, const X& x) {
    return decoder_block(block, x, {.dropout = {.rate = 0.1, .seed = 8, .step = 3}});
  }
};
/// A block of one's own, with experts that lie over the axis of the batch.
template <class U> struct ExpertBlock {
  LayerNorm<U> attention_norm;
  Attention<U> attention;
  LayerNorm<U> expert_norm;
  Experts<U> experts;
  static constexpr auto fields = Fields<&ExpertBlock::attention_norm, &ExpertBlock::attention,
                                        &ExpertBlock::expert_norm, &ExpertBlock::experts>{};
};
struct MixedBlock {
  using Rules = ExpertTensorParallel<data, model>;
  template <class U> using Layer = ExpertBlock<U>;
  template <class U> static Layer<U> like(Parameters<typename U::mesh_type>& make) {
    return {LayerNorm<U>::like(make, embed), Attention<U>::like(make, {.embed = embed, .heads = 2}),
            LayerNorm<U>::like(make, embed),
            Experts<U>::like(make, {.embed = embed, .experts = 2, .hidden = 3})};
  }
  template <class L, class X> static X run(const L& block, const X& x) {
    const auto seen = layer_norm(block.attention_norm, x);
    const X first = x + attention(block.attention, seen, seen, {.causal = true});
    return first + expert_layer(block.experts, layer_norm(block.expert_norm, first)).output;
  }
};

struct Wavy {
  Index leading;  ///< stands before the index
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    double at = static_cast<double>(leading >= 0 ? leading : 0);
    for (int d = 0; d < i.size(); ++d) at = 5.0 * at + static_cast<double>(i[d]);
    return Kokkos::sin(1.7 + 0.73 * at);
  }
};

template <class Block, class U> struct Blocks {
  std::vector<typename Block::template Layer<U>> blocks;
  static constexpr auto fields = Fields<&Blocks::blocks>{};
};

template <class Block> struct BothWays {
  using OnWhole = Under<double, Whole, typename Block::Rules>;
  using OnPart = Under<double, Part, typename Block::Rules>;
  using Stacked = typename Block::template Layer<OfStages<OnWhole, stage>>;
  using Batches = ShardedTensor<double, Whole, P<_, data, _, _>>;
  using Rows = ShardedTensor<double, Part, P<data, _, _>>;
  using Model = Blocks<Block, OnPart>;

  static auto as_sharding(const ProcessMesh<Whole>& mesh, Index m) {
    Parameters<Whole> make(mesh, 7);
    const auto all = of_all_stages(make, {stages}, [](Parameters<Whole>& each) {
      return Block::template like<OfStages<OnWhole, stage>>(each);
    });
    const auto x = from_function<Batches>(mesh, {m, texts, places, embed}, Wavy{-1});
    return value_and_grad([&](const Stacked& w) {
      return sum(square(shifted<stage>(
          each_stage<stage>([](const auto& own, const auto& s) { return Block::run(own, s); }), w,
          x, stages)));
    })(all);
  }
  static auto by_schedule(const ProcessMesh<Whole>& mesh, const PipelineSchedule& schedule,
                          Index m) {
    const int parts = schedule.stages();
    const auto stage_of_block = [&](int l) { return l * parts / static_cast<int>(stages); };
    const Model w = on_stages<stage>(
        mesh, 7, schedule, [&](std::string_view path) { return stage_of_block(path[7] - '0'); },
        [](Parameters<Part>& make) {
          Model made;
          for (Index l = 0; l < stages; ++l)
            made.blocks.push_back(Block::template like<OnPart>(make));
          return made;
        });
    StageMap map{{"head", parts - 1}};
    for (int l = 0; l < stages; ++l) map.add("block " + std::to_string(l), stage_of_block(l));
    std::vector<Rows> batches;
    for (Index b = 0; b < m; ++b)
      batches.push_back(
          from_function<Rows>(mesh.part<stage>(schedule.part(0)), {texts, places, embed}, Wavy{b}));
    auto step = pipelined<stage>(
        mesh,
        [](const Model& all, const Rows& given) {
          Rows y = given;
          for (std::size_t l = 0; l < all.blocks.size(); ++l)
            y = layer("block " + std::to_string(l), [](const Rows& s, const auto& own) {
              return Block::run(own, s);
            })(y, all.blocks[l]);
          return layer("head", [](const Rows& s) { return sum(square(s)); })(y);
        },
        map, schedule);
    return step(w, batches);
  }

  static std::string unlike(const ProcessMesh<Whole>& mesh, Index m) {
    const auto far = [](double a, double b) {
      return !(std::abs(a - b) <= 1e-12 * (1 + std::abs(b)));
    };
    const int parts = mesh.size<stage>();
    const auto ours = as_sharding(mesh, m);
    const auto theirs = by_schedule(mesh, one_f_one_b(parts, static_cast<int>(m)), m);
    if (!theirs.value.core().mesh()->absent() && far(value(theirs.value), value(ours.value)))
      return "the value differs";
    std::string text;
    for (std::size_t l = 0; l < theirs.gradient.blocks.size(); ++l)
      for_each_named_tensor(
          [&](const std::string& path, const auto& all, const auto& one) {
            const auto u = to_host(all);
            if (one.core().mesh()->absent()) return;
            const auto v = to_host(one);
            for (std::size_t i = 0; i < v.values.size(); ++i)
              if (far(u.values[l * v.values.size() + i], v.values[i]))
                text = "the gradient of " + path + " of block " + std::to_string(l) + " differs";
          },
          ours.gradient, theirs.gradient.blocks[l]);
    return text;
  }
};

template <class Block> void goes_both_ways() {
  for (const std::array<int, 3>& shape : {std::array{1, 1, 1},
                                          {2, 1, 1},
                                          {1, 2, 1},
                                          {4, 1, 1},
                                          {2, 1, 2},
                                          {2, 2, 1},
                                          {2, 2, 2},
                                          {4, 2, 1}})
    CHECK(quiet(texts_of(shape[0] * shape[1] * shape[2], [&](const std::shared_ptr<Transport>& t) {
      const auto mesh = make_mesh<Whole>(t, shape[0], shape[1], shape[2]);
      const std::string text = BothWays<Block>::unlike(mesh, 3);
      return text.empty() ? text : mesh.core()->to_string() + ": " + text;
    })));
}

}  // namespace

TEST_CASE("pipeline: one decoder block, as a sharding and by a schedule") {
  goes_both_ways<PlainBlock>();
}
TEST_CASE("pipeline: one block with experts, as a sharding and by a schedule") {
  goes_both_ways<MixedBlock>();
}

TEST_CASE("pipeline: weights of more or fewer stages than the state has are refused") {
  for (const int processes : {1, 2})
    for (const Index given : {1, 2, 8})
      if (given >= processes)
        CHECK(quiet(texts_of(processes, [&](const std::shared_ptr<Transport>& t) -> std::string {
          const auto mesh = make_mesh<Whole>(t, processes, 1, 1);
          const auto weights =
              full<ShardedTensor<double, Whole, P<stage, _>>>(mesh, {given, embed}, 2);
          const auto x = full<ShardedTensor<double, Whole, P<_, data, _>>>(mesh, {2, 3, embed}, 1);
          try {
            (void)shifted<stage>(each_stage<stage>([](const auto& w, const auto& s) {
                                   using S = std::remove_cvref_t<decltype(s)>;
                                   return S(map<"be,e->be">(fn::Multiply{}, s, w));
                                 }),
                                 weights, x, stages);
          } catch (const ShapeError& error) {
            const std::string text = error.what();
            return text.find("has " + std::to_string(given / processes) + " stages on this") !=
                               std::string::npos &&
                           text.find("the state has " + std::to_string(stages / processes)) !=
                               std::string::npos
                       ? ""
                       : text;
          }
          return "nothing was thrown";
        })));
}
