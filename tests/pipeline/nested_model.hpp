// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The Transformer of GSPMD's blog: X splits the batch of the embedding and the softmax layers, and
/// is the pipeline's stages of encoder and decoder; Y splits the vocabulary, the batch, and the
/// experts. Used on loopback and under MPI.
///
///     std::vector<double> all = nested_test::blog::numbers_on(mesh, {}, by_turns);   // x, y
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <tessera/comm/loopback/loopback.hpp>
#include <tessera/run/recording.hpp>

#include "pipeline/nested_stages.hpp"

namespace nested_test::blog {

struct x : Axis<> {};
struct y : Axis<> {};
using Grid = Mesh<x, y>;
using Stages = Nested<Grid, x, Axes<y>, _, y>;
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;

struct Shape {
  Sizes layer;
  Index vocabulary = 12, micro_batches = 3, rows = 4, tokens = 3;
};

struct Model {
  Tensor<double, y, _> table;  ///< (vocabulary, embed), of both languages
  Stages::Layer encoder, decoder;
  Tensor<double, _, y> head;  ///< (embed, vocabulary)
  static constexpr auto fields =
      Fields<&Model::table, &Model::encoder, &Model::decoder, &Model::head>{};

  static Model like(const ProcessMesh<Grid>& mesh, const Shape& n) {
    Parameters<Grid> make(mesh, 7);
    Model m;
    m.table = make.tensor<decltype(table)>({n.vocabulary, n.layer.embed}, Initializer::normal(1));
    m.encoder = Stages::Layer::like(make, n.layer);
    m.decoder = Stages::Layer::like(make, n.layer);
    m.head = make.tensor<decltype(head)>({n.layer.embed, n.vocabulary},
                                         Initializer::fan_in(n.layer.embed));
    return m;
  }
};
/// (micro-batches, rows, tokens): the batch is split by X.
using Ids = Tensor<std::int32_t, _, x, _>;
struct Numbers {
  Index n, salt;
  KOKKOS_FUNCTION std::int32_t operator()(const GlobalIndex& i) const {
    return static_cast<std::int32_t>((i.linear() * 7 + salt + i.linear() / 4) % n);
  }
};
inline Ids ids_on(const ProcessMesh<Grid>& mesh, const Shape& n, Index salt) {
  return from_function<Ids>(mesh, {n.micro_batches, n.rows, n.tokens}, Numbers{n.vocabulary, salt});
}

/// The mean loss; stages(f, weights, rows) runs the stages of a layer.
template <class Run>
auto loss_of(const Model& m, const Ids& source, const Ids& target, const Ids& next,
             const Run& stages) {
  const Index tokens = target.extent(2);
  const auto embedded = [&](const Ids& ids) {  // rows over X, and then over Y
    const Layer scope(ids, "embedding");
    return reshard<P<_, Axes<y>, _, _>>(take<"ve,mbt->mbte", P<_, x, _, _>>(m.table, ids));
  };
  const auto texts = embedded(source), begun = embedded(target);
  const auto memory = [&] {
    const Layer scope(source, "encoder");
    return stages(
        [](const auto& w, const auto& s, Index stage) { return Stages::encoder(w, s, stage); },
        m.encoder, texts);
  }();
  const auto read = [&] {
    const Layer scope(source, "decoder");
    return stages([tokens](const auto& w, const auto& s,
                           Index stage) { return Stages::decoder(w, s, tokens, stage); },
                  m.decoder, Stages::Rows(concatenate<2>(begun, memory)));
  }();
  const Layer scope(source, "softmax");
  const auto rows = reshard<P<_, x, _, _>>(slice<2>(read, {0}, {tokens}));
  const auto scores = einsum<"mbte,ev->mbtv", P<_, x, _, y>>(rows, m.head);
  return mean<"mbt->">(cross_entropy(scores, next));
}
inline const auto by_turns = [](const auto& f, const auto& w, const auto& rows) {
  return shifted<x>([&](const auto& all, const auto& s) { return f(all, s, 0); }, w, rows,
                    w.gate.extent(0));
};
inline const auto in_order = [](const auto& f, const auto& w, const auto& rows) {
  return Stages::in_order(f, w, rows, w.gate.extent(0));
};

/// The loss and all gradients on a mesh.
template <class Run>
std::vector<double> numbers_on(const ProcessMesh<Grid>& mesh, const Shape& n, const Run& run) {
  const Ids source = ids_on(mesh, n, 3), target = ids_on(mesh, n, 4), next = ids_on(mesh, n, 9);
  const auto [loss, gradient] = value_and_grad(
      [&](const Model& m) { return loss_of(m, source, target, next, run); })(Model::like(mesh, n));
  std::vector<double> all{value(loss)};
  append(all, gradient);
  return all;
}

inline std::vector<double> of_one_process(const Shape& n) {
  std::vector<double> all;
  run_loopback(1, [&](std::shared_ptr<Transport> world) {
    all = numbers_on(make_mesh<Grid>(world, 1, 1), n, in_order);
  });
  return all;
}

}  // namespace nested_test::blog
