// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What each policy of the update communicates, on paper from 2 to 2,048 processes, and what it
// keeps in memory, on paper and by the arena.
#include <doctest/doctest.h>

#include <mutex>
#include <vector>

#include <tessera/nn.hpp>
#include <tessera/tessera.hpp>

#include "../../benchmarks/support/weight_tables.hpp"

using namespace tessera;

namespace {
namespace axes {
struct data_outer : Axis<> {};
struct data_inner : Axis<> {};
}  // namespace axes
using axes::data_inner, axes::data_outer;
using Replicas = Mesh<data_outer, data_inner>;
using Data = Axes<data_outer, data_inner>;
template <class... D> using Tensor = ShardedTensor<float, Replicas, P<D...>>;

/// Two layers, whose weights every process has.
struct Model {
  Tensor<_, _> first;
  Tensor<_> bias;
  Tensor<_, _> second;
  static constexpr auto fields = Fields<&Model::first, &Model::bias, &Model::second>{};
};
constexpr Index inputs = 512, hidden = 2048, outputs = 256;
constexpr Index weight_bytes = 4 * (inputs * hidden + hidden + hidden * outputs);

Model make_model(const ProcessMesh<Replicas>& mesh) {
  return {zeros<Tensor<_, _>>(mesh, {inputs, hidden}), zeros<Tensor<_>>(mesh, {hidden}),
          zeros<Tensor<_, _>>(mesh, {hidden, outputs})};
}
const auto loss_of = [](const Model& m, const Tensor<Data, _>& x) {
  return mean<"bo->">(
      square(einsum<"bh,ho->bo">(relu(einsum<"bi,ih->bh">(x, m.first) + m.bias), m.second)));
};

/// Returns the program of one step.
template <class Policy> Program step_of(int outer, int inner, int process = 0) {
  const auto mesh = dry_mesh<Replicas>(sizes<Replicas>(outer, inner), process);
  Model weights = make_model(mesh);
  Optimizer<Adam, Policy> optimizer(Adam{}, weights, {.clip = 1});
  const auto x = zeros<Tensor<Data, _>>(mesh, {Index{4096} * outer * inner, inputs});
  Recording recording(mesh);
  const auto [loss, gradients] = optimizer.value_and_grad(loss_of)(weights, x);
  optimizer.step(weights, gradients);
  return recording.take();
}
/// Bytes of calls of one kind without those of scalars: the loss, and the norm of gradients.
Index payload(const Program& program, Collective kind) {
  Index bytes = 0;
  for (const ProgramEntry& e : program.entries())
    if (e.plan->result_desc().rank() > 0) bytes += e.plan->own_payload_bytes(kind);
  return bytes;
}
int scalar_calls(const Program& program) {
  int calls = 0;
  for (const ProgramEntry& e : program.entries())
    if (e.plan->result_desc().rank() == 0) calls += e.plan->count(Collective::all_reduce);
  return calls;
}
}  // namespace

TEST_CASE("a sharded update reduce-scatters gradients: no all-reduce but of scalars") {
  using All = ShardedUpdate<data_outer, data_inner>;
  for (const int n : {2, 8, 64, 256, 2048}) {
    CAPTURE(n);
    const Program replicated = step_of<ReplicatedUpdate>(1, n);
    const Index share = weight_bytes / n;  // all extents are multiples of n, or ragged below
    const bool even = inputs % n == 0 || hidden % n == 0;
    REQUIRE(even);
    CHECK(payload(replicated, Collective::all_reduce) == 2 * (weight_bytes - share));
    CHECK(payload(replicated, Collective::reduce_scatter) == 0);
    CHECK(payload(replicated, Collective::all_gather) == 0);
    CHECK(scalar_calls(replicated) == 1);  // the loss; gradients are whole

    const Program sharded = step_of<All>(1, n);
    CHECK(payload(sharded, Collective::all_reduce) == 0);
    CHECK(payload(sharded, Collective::reduce_scatter) == weight_bytes - share);
    CHECK(payload(sharded, Collective::all_gather) == weight_bytes - share);
    CHECK(scalar_calls(sharded) == 2);  // the loss, and one for the norm of all gradients
    // The same of shares that are even to one element.
    const Program flat = step_of<FlatUpdate<All>>(1, n);
    CHECK(payload(flat, Collective::all_reduce) == 0);
    CHECK(payload(flat, Collective::reduce_scatter) == weight_bytes - share);
    CHECK(payload(flat, Collective::all_gather) == weight_bytes - share);
    // Three tensors are gathered in one call, where that is cheaper, or in three.
    CHECK(sharded.count(Collective::all_gather) <= 3);
  }
}

TEST_CASE("an update in subgroups: reduce-scatter within, all-reduce across (section 5.1)") {
  for (const auto& groups : {std::pair{2, 4}, {4, 8}, {32, 64}}) {
    const int outer = groups.first, inner = groups.second;
    const Program program = step_of<ShardedUpdate<data_inner>>(outer, inner);
    const Index part = weight_bytes / inner;
    CAPTURE(outer);
    CAPTURE(inner);
    CHECK(payload(program, Collective::reduce_scatter) == weight_bytes - part);
    CHECK(payload(program, Collective::all_gather) == weight_bytes - part);
    CHECK(payload(program, Collective::all_reduce) == 2 * (part - part / outer));
  }
}

TEST_CASE("by price: large weights are sharded, small ones stay replicated (section 3.2)") {
  const auto mesh = dry_mesh<Replicas>(1, 64);
  const Model weights = make_model(mesh);
  const Optimizer<Adam, CheapestUpdate<data_outer, data_inner>> optimizer(Adam{}, weights);
  CHECK(optimizer.place(0).sharding != Sharding::replicated(2));
  const auto place = [](Index n) {
    constexpr UpdatePolicy by_price{UpdatePolicy::Kind::cheapest, {0, 1}};
    return update_place({DType::f32, {n}, Sharding::replicated(1)}, by_price, {8}, {1, 64})
        .sharding;
  };
  CHECK(place(512) == Sharding::replicated(1));
  CHECK(place(32768) == Sharding{{1}});
  CHECK(optimizer.place(2).sharding != Sharding::replicated(2));
  // Pure, and the same while compiling.
  constexpr UpdatePolicy policy{UpdatePolicy::Kind::sharded, {0, 1}};
  constexpr TensorDesc weight{DType::f32, {3, 3, 256, 256}, Sharding::replicated(4)};
  constexpr UpdatePlace while_compiling = update_place(weight, policy, {8}, MeshShape{1, 8});
  static_assert(while_compiling == UpdatePlace{Sharding{{}, {}, {1}, {}}, false});
}

TEST_CASE("bfloat16 is gathered where the master stays sharded (section 4.2)") {
  const int n = 8;
  const auto mesh = dry_mesh<Replicas>(1, n);
  using Wide = Tensor<Data, _>;
  using Narrow = ShardedTensor<bfloat16, Replicas, P<_, _>>;
  const auto x = zeros<ShardedTensor<bfloat16, Replicas, P<Data, _>>>(mesh, {4096 * n, inputs});
  const auto loss_by = [&](const Narrow& w) { return sum<"bh->">(einsum<"bi,ih->bh">(x, w)); };
  const auto gathered = [&](const auto& recorded) {
    return std::pair(payload(recorded, Collective::all_gather),
                     payload(recorded, Collective::reduce_scatter));
  };
  const Index narrow = 2 * inputs * hidden, moved = narrow - narrow / n;
  const std::pair wanted(moved, 2 * moved);  // parts of sums of half types travel as floats
  {  // Weights in float, split over all processes, which the function casts and gathers.
    Wide weight = zeros<Wide>(mesh, {inputs, hidden});
    Optimizer<Adam, ShardedUpdate<data_outer, data_inner>> optimizer(Adam{}, weight);
    Recording recording(mesh);
    const auto made = optimizer.value_and_grad(
        [&](const Wide& w) { return loss_by(replicate(cast<bfloat16>(w))); })(weight);
    optimizer.step(weight, made.gradient);
    const Program program = recording.take();
    CHECK(gathered(program) == wanted);
    CHECK(payload(program, Collective::all_reduce) == 0);
  }
  {  // Weights in bfloat16, whole everywhere; their masters are the optimizer's.
    Narrow weight = zeros<Narrow>(mesh, {inputs, hidden});
    Optimizer<Adam, ShardedUpdate<data_outer, data_inner>> optimizer(Adam{}, weight);
    Recording recording(mesh);
    const auto made = optimizer.value_and_grad(loss_by)(weight);
    optimizer.step(weight, made.gradient);
    CHECK(gathered(recording.take()) == wanted);
    std::vector<std::string> state;
    optimizer.for_each_state([&](const std::string& path, const DynamicTensor& one) {
      state.push_back(path);
      CHECK(one.type() == DType::f32);
      CHECK(one.sharding() == optimizer.place(0).sharding);
    });
    CHECK(state == std::vector<std::string>{"0", "1", "master"});
  }
}

TEST_CASE("flat shares are even to one element (section 4.1)") {
  const TensorDesc weight{DType::f32, {3, 3, 256, 256}, Sharding::replicated(4)};
  const UpdatePolicy by_dimension{UpdatePolicy::Kind::sharded, {0}},
      flat{UpdatePolicy::Kind::sharded, {0}, true};
  const auto largest = [&](const UpdatePolicy& policy, int n) {
    const MeshShape mesh{n};
    const UpdatePlace place = update_place(weight, policy, {8}, mesh);
    return place.flat ? detail::largest_block({volume(weight.extents)}, place.sharding, mesh)
                      : detail::largest_block(weight.extents, place.sharding, mesh);
  };
  CHECK(largest(flat, 8) == 73728);           // 589,824 / 8
  CHECK(largest(flat, 10) == 58983);          // 58,982.4, rounded up
  CHECK(largest(by_dimension, 10) == 59904);  // 26 of 256 rows: 1.6 % more
  CHECK(largest(by_dimension, 2048) == 2304);
  CHECK(largest(flat, 2048) == 288);
  // A weight of which an inner dimension is split is no line of its blocks.
  const TensorDesc split{DType::f32, {64, 64}, Sharding{{}, {1}}};
  CHECK(!update_place(split, flat, {8}, MeshShape{2, 2}).flat);
  CHECK(update_place({DType::f32, {64, 63}, Sharding{{1}, {}}}, flat, {8}, MeshShape{2, 2}).flat);
}

TEST_CASE("ResNet-50, the Transformer and NCF on paper, on 2 to 2,048 processes") {
  struct Model {
    const char* name;
    std::vector<Extents> shapes;
    double millions;  // of elements
    Index auxiliary;  // bytes an element
  };
  const Model models[] = {{"ResNet-50, LARS", tessera_bench::resnet_50(), 25.56, 4},
                          {"Transformer, Adam", tessera_bench::transformer_big(), 210.80, 8},
                          {"NCF, Adam", tessera_bench::ncf(), 31.83, 8}};
  constexpr UpdatePolicy policies[] = {
      {}, {UpdatePolicy::Kind::sharded, {0}}, {UpdatePolicy::Kind::cheapest, {0}}};
  for (const Model& model : models) {
    const std::string name = model.name;
    CAPTURE(name);
    for (const int n : {2, 8, 32, 128, 512, 2048}) {
      CAPTURE(n);
      const MeshShape mesh{n};
      PlanOptions options;
      options.machine.processes_per_node = 8;
      Index elements = 0, payload[3] = {}, state[3] = {}, time[3] = {};
      for (const Extents& shape : model.shapes) {
        const Sharding whole = Sharding::replicated(shape.size());
        const TensorDesc weight{DType::f32, shape, whole},
            open{DType::f32, shape, whole.with_partial({0}, Reduction::sum)};
        elements += volume(shape);
        for (int k = 0; k < 3; ++k) {
          const Sharding to =
              update_place(weight, policies[k], {model.auxiliary}, mesh, options).sharding;
          const Plan there = ops::Reshard{to}.plan({open}, {mesh, 0, options}),
                     back = ops::Reshard{whole}.plan({TensorDesc{DType::f32, shape, to}},
                                                     {mesh, 0, options});
          payload[k] += there.payload_bytes() + back.payload_bytes();
          state[k] += model.auxiliary * detail::largest_block(shape, to, mesh);
          time[k] += detail::update_cost(weight, to, {0}, {model.auxiliary}, mesh, options);
        }
      }
      CHECK(double(elements) * 1e-6 == doctest::Approx(model.millions).epsilon(1e-3));
      // The same payload, but for what the few short weights are uneven by; a part of the state.
      CHECK(double(payload[1]) < 1.002 * double(payload[0]));
      CHECK(double(payload[2]) < 1.002 * double(payload[0]));
      CHECK(state[0] == model.auxiliary * elements);
      if (n <= 128) CHECK(double(state[1]) < 1.06 * double(state[0]) / n);
      CHECK(state[2] <= state[0]);
      // Time, by the machine model: what a price chose is never the dearer.
      CHECK(time[1] < time[0]);
      CHECK(time[2] <= time[1]);
    }
  }
}

// ---- memory

namespace {
using Line = Mesh<data_inner>;
template <class... D> using Real = ShardedTensor<float, Line, P<D...>>;
constexpr Index width = 64, layers = 6;
constexpr Index layer_bytes = 4 * width * width, all_weights = layers * layer_bytes,
                state = 2 * all_weights;  // Adam

/// A deep network of which each layer's weight is gathered where it is used, if it is split.
template <class Weight> struct Deep {
  std::vector<Weight> weight;
  static constexpr auto fields = Fields<&Deep::weight>{};
};
const auto deep_loss = [](const auto& model, const Real<data_inner, _>& x) {
  Real<data_inner, _> y = x;
  for (const auto& w : model.weight) {
    const auto layer = recompute([](const auto& v, const auto& u) {
      return Real<data_inner, _>(tanh(einsum<"bi,ij->bj">(v, replicate(u))));
    });
    y = layer(y, w);
  }
  return mean<"bj->">(y * y);
};

struct Peak {
  Index measured = 0, planned = 0;
};
/// Trains for two steps; `whole_state`: and gathers the state afterwards.
template <class Policy, class Weight>
Index train(const ProcessMesh<Line>& mesh, bool whole_state, Program* program = nullptr) {
  Recording recording(mesh);
  const Index before = mesh.arena().in_use();
  mesh.arena().reset_peak();
  {
    Deep<Weight> weights;
    for (Index i = 0; i < layers; ++i)
      weights.weight.push_back(random_normal<Weight>(mesh, {width, width}, 7));
    Optimizer<Adam, Policy> optimizer(Adam{}, weights, {.finite = false});
    const auto x = zeros<Real<data_inner, _>>(mesh, {16, width});
    for (int t = 0; t < 2; ++t) {
      auto [loss, gradients] = optimizer.value_and_grad(deep_loss)(weights, x);
      optimizer.step(weights, gradients);
    }
    if (whole_state) {
      std::vector<DynamicTensor> all;
      optimizer.for_each_state(
          [&](const std::string&, DynamicTensor& one) { all.push_back(one = replicate(one)); });
    }
  }
  Program taken = recording.take();
  if (program != nullptr) *program = std::move(taken);
  return mesh.arena().peak() - before;
}
template <class Policy, class Weight> Peak peak_of(int n, bool whole_state = false) {
  Peak made;
  Program program;
  (void)train<Policy, Weight>(dry_mesh<Line>(n), whole_state, &program);
  made.planned = program.peak_bytes();
  run_loopback(n, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Line>(world, n);
    const Index peak = train<Policy, Weight>(mesh, whole_state);
    if (mesh.process() == 0) made.measured = peak;
  });
  return made;
}
}  // namespace

TEST_CASE("four ways to keep weights and state: their memory, on paper and measured") {
  for (const int n : {2, 4}) {
    CAPTURE(n);
    const Peak replicated = peak_of<ReplicatedUpdate, Real<_, _>>(n),
               outside = peak_of<ShardedUpdate<data_inner>, Real<_, _>>(n, true),
               shards = peak_of<ShardedUpdate<data_inner>, Real<_, _>>(n),
               all = peak_of<ShardedUpdate<data_inner>, Real<data_inner, _>>(n);
    for (const Peak& one : {replicated, outside, shards, all}) CHECK(one.measured == one.planned);
    MESSAGE(n << ": W " << all_weights << ", V " << state << ": " << replicated.measured << " "
              << outside.measured << " " << shards.measured << " " << all.measured);
    const Index rest = replicated.measured - all_weights - state;  // P
    CHECK(rest > 0);
    CHECK(shards.measured >= all_weights + state / n);
    CHECK(shards.measured <= all_weights + state / n + rest);
    CHECK(outside.measured >= all_weights + state);
    CHECK(outside.measured <= std::max(shards.measured, all_weights + state + 2 * layer_bytes));
    CHECK(all.measured <= all_weights / n + state / n + rest + layer_bytes);
    CHECK(all.measured <= shards.measured - (all_weights - all_weights / n) + layer_bytes);
  }
}
