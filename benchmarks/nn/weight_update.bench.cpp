// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 1 2
// The update of the weights of ResNet-50 (LARS), the Transformer (Adam) and NCF (Adam), each
// process with all of it beside each with its share: measured, from gradients whose sum over
// processes is open, on as many processes as there are; and on paper on 2 to 2,048, of which 8
// share a node: payload of a step, memory for weights and state, and modelled time, for each
// process.
#include <cstdio>
#include <string>
#include <vector>

#include <tessera/nn.hpp>
#include <tessera/tessera.hpp>

#include "support/turns.hpp"
#include "support/weight_tables.hpp"

namespace {
using namespace tessera;

bool first_process() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank == 0;
}

constexpr UpdatePolicy all_have{}, shares{UpdatePolicy::Kind::sharded, {0}},
    by_price{UpdatePolicy::Kind::cheapest, {0}};

/// A model on paper: what a step of each policy costs a process.
void on_paper(const char* name, const std::vector<Extents>& shapes, Index auxiliary) {
  if (!tessera_bench::wanted("modelled/" + std::string(name))) return;
  Index elements = 0;
  for (const Extents& shape : shapes) elements += volume(shape);
  const auto mib = [](Index bytes) { return double(bytes) / (1 << 20); };
  std::printf("%s: %zu weights of %.2f million elements; W %.1f MiB, V %.1f MiB, a process\n", name,
              shapes.size(), double(elements) / 1e6, mib(4 * elements), mib(auxiliary * elements));
  std::printf("  %9s  %12s %12s %12s  %12s %12s %12s  %10s %10s %10s  %s\n", "processes",
              "payload: all", "shares", "by price", "V: all", "shares", "by price", "time: all",
              "shares", "by price", "sharded by price");
  for (const int n : {2, 8, 32, 128, 512, 2048}) {
    const MeshShape mesh{n};
    PlanOptions options;
    options.machine.processes_per_node = 8;
    Index payload[3] = {}, state[3] = {}, time[3] = {}, sharded = 0;
    for (const Extents& shape : shapes) {
      const TensorDesc weight{DType::f32, shape, Sharding::replicated(shape.size())};
      int column = 0;
      for (const UpdatePolicy& policy : {all_have, shares, by_price}) {
        const UpdatePlace place = update_place(weight, policy, {auxiliary}, mesh, options);
        const TensorDesc open{weight.type, shape,
                              weight.sharding.with_partial({0}, Reduction::sum)};
        payload[column] +=
            detail::plan_reshard(open, place.sharding, mesh, 0, options).payload_bytes() +
            detail::plan_reshard({weight.type, shape, place.sharding}, weight.sharding, mesh, 0,
                                 options)
                .payload_bytes();
        state[column] += auxiliary * detail::largest_block(shape, place.sharding, mesh);
        time[column] +=
            detail::update_cost(weight, place.sharding, {0}, {auxiliary}, mesh, options);
        sharded += column == 2 && !(place.sharding == weight.sharding);
        ++column;
      }
    }
    const auto ms = [](Index ps) { return double(ps) / 1e9; };
    tessera_bench::note("modelled/" + std::string(name) + ", " + std::to_string(n) + " processes",
                        {{"tessera", ms(time[1]) * 1e-3}, {"all have all", ms(time[0]) * 1e-3}},
                        {{"state, MiB", mib(state[1])},
                         {"state, MiB, all have all", mib(state[0])},
                         {"sent, MiB", mib(payload[1])},
                         {"sent, MiB, all have all", mib(payload[0])}});
    std::printf(
        "  %9d  %8.1f MiB %8.1f MiB %8.1f MiB  %8.1f MiB %8.1f MiB %8.1f MiB  %7.2f ms %7.2f ms "
        "%7.2f ms  %ld of %zu\n",
        n, mib(payload[0]), mib(payload[1]), mib(payload[2]), mib(state[0]), mib(state[1]),
        mib(state[2]), ms(time[0]), ms(time[1]), ms(time[2]), static_cast<long>(sharded),
        shapes.size());
  }
}

/// Weights, gradients whose sums over processes are open, and an optimizer of a policy.
template <class Rule> struct Training {
  std::vector<DynamicTensor> weights, gradients;
  Optimizer<Rule, UpdatePolicy> optimizer;

  Training(const DynamicMesh& mesh, const Rule& rule, const std::vector<Extents>& shapes,
           const UpdatePolicy& policy)
      : weights(tensors(mesh, shapes)),
        gradients(open(mesh, shapes)),
        optimizer(rule, weights, {}, policy) {}
  void step() { optimizer.step(weights, gradients); }

 private:
  static std::vector<DynamicTensor> tensors(const DynamicMesh& mesh,
                                            const std::vector<Extents>& shapes) {
    std::vector<DynamicTensor> made;
    for (const Extents& shape : shapes)
      made.push_back(random_normal<float>(mesh, shape, Sharding::replicated(shape.size()), 1));
    return made;
  }
  /// Each process has its batch's part of the sum.
  static std::vector<DynamicTensor> open(const DynamicMesh& mesh,
                                         const std::vector<Extents>& shapes) {
    std::vector<DynamicTensor> made;
    for (const Extents& shape : shapes) {
      Extents batches{mesh.shape()[0]};
      Sharding split{{0}};
      std::string letters = "z", kept;
      for (int d = 0; d < shape.size(); ++d) {
        batches.push_back(shape[d]);
        split.dims.push_back({});
        kept += static_cast<char>('a' + d);
      }
      const DynamicTensor parts = random_normal<float>(mesh, batches, split, 2, 0, 1e-3f);
      made.push_back(
          reduce<Sum>(letters + kept + "->" + kept, parts,
                      Sharding::replicated(shape.size()).with_partial({0}, Reduction::sum)));
    }
    return made;
  }
};

template <class Rule>
void measured(Environment& env, const std::string& model, const Rule& rule,
              const std::vector<Extents>& shapes) {
  const std::string name = "weight update/" + model;
  if (!tessera_bench::wanted(name)) return;
  const auto mesh = make_mesh(env.world(), {env.world()->size()}, {"data"});
  Training<Rule> whole(mesh, rule, shapes, all_have), split(mesh, rule, shapes, shares),
      priced(mesh, rule, shapes, by_price);
  const auto t = tessera_bench::in_turns(
      {[&] { whole.step(); }, [&] { split.step(); }, [&] { priced.step(); }}, {.seconds = 3});
  tessera_bench::note(name, {{"tessera", t[1]}, {"by price", t[2]}, {"replicated", t[0]}});
  if (first_process())
    std::printf("%s: shares %.2f ms, by price %.2f ms, replicated %.2f ms, ratio %.3f\n",
                name.c_str(), t[1] * 1e3, t[2] * 1e3, t[0] * 1e3, t[1] / t[0]);
}
}  // namespace

int main(int argc, char** argv) {
  Environment env(argc, argv);
  tessera_bench::start(argc, argv);
  if (first_process() && env.world()->size() == 1) {
    on_paper("ResNet-50, LARS", tessera_bench::resnet_50(), 4);
    on_paper("Transformer (big), Adam", tessera_bench::transformer_big(), 8);
    on_paper("NCF, Adam", tessera_bench::ncf(), 8);
  }
  std::vector<Extents> layer;
  tessera_bench::transformer_layer(layer, 1);
  measured(env, "ResNet-50, LARS", Lars{}, tessera_bench::resnet_50());
  measured(env, "a layer of the Transformer, Adam", Adam{}, layer);
  measured(env, "NCF, Adam", Adam{}, tessera_bench::ncf());
  return tessera_bench::finish();
}
