// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: program
// Programs of functions of every form, dry and recorded: layers, tensors' lifetimes, and that
// both are one.
#include <doctest/doctest.h>

#include <mutex>
#include <tuple>

#include <tessera/op/compile.hpp>
#include <tessera/tessera.hpp>

#include "support/grid.hpp"

using namespace tessera;

namespace {
template <class... D> using Real = ShardedTensor<double, Grid, P<D...>>;

/// Two layers of one kind and a head; what is not needed any more goes.
Real<data, model> network(const Real<data, model>& x, const std::vector<Real<model, data>>& weights,
                          double scale) {
  Real<data, model> h = x;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Layer scope(x, "layer." + std::to_string(i));
    const auto wide = layer("product", [](const auto& a, const auto& w) {
      return einsum<"ik,kj->ij", P<data, model>>(a, w);
    })(h, weights[i]);
    const Layer inner(x, "activation");
    h = gelu(wide);
  }
  return scale * h;
}
const auto x_like = like<Real<data, model>>(6, 10);
const std::vector<Like<Real<model, data>>> weight_likes(2, like<Real<model, data>>(10, 10));

bool same(const Program& a, const Program& b) {
  if (explain(a) != explain(b) || explain_memory(a) != explain_memory(b)) return false;
  if (a.tensors().size() != b.tensors().size() || a.size() != b.size() || !diff(a, b).same())
    return false;
  for (std::size_t t = 0; t < a.tensors().size(); ++t) {
    const ProgramTensor &x = a.tensors()[t], &y = b.tensors()[t];
    if (!(x.desc == y.desc) || x.bytes != y.bytes || x.made != y.made || x.first != y.first ||
        x.last != y.last)
      return false;
  }
  for (int i = 0; i < a.size(); ++i)
    if (!(a.entry(i).operands == b.entry(i).operands) || a.entry(i).result != b.entry(i).result ||
        a.entry(i).held_before != b.entry(i).held_before ||
        a.layer_path(a.entry(i).layer) != b.layer_path(b.entry(i).layer) ||
        a.entry(i).where.line != b.entry(i).where.line)
      return false;
  return true;
}
/// Returns what is wrong with the lifetimes: at every operator the tensors alive make up what is
/// held.
std::string wrong_lifetimes(const Program& p) {
  for (int i = 0; i < p.size(); ++i) {
    Index alive = 0;
    for (const ProgramTensor& t : p.tensors()) alive += t.alive_at(i) ? t.bytes : 0;
    if (alive != p.entry(i).held_before)
      return "operator " + std::to_string(i) + ": " + std::to_string(alive) +
             " bytes of tensors, " + std::to_string(p.entry(i).held_before) + " held";
    for (int t : p.entry(i).operands)
      if (!p.tensor(t).alive_at(i))
        return "operator " + std::to_string(i) + " reads a tensor that is not there";
    if (p.entry(i).result < 0) return "operator " + std::to_string(i) + " has no result";
  }
  return "";
}

struct Functor {
  Real<data, model> operator()(const Real<data, model>& x) const { return x + x; }
};
Real<data, model> twice(const Real<data, model>& x) { return x + x; }
void nothing(const Real<data, model>& x) { (void)(x + x); }

}  // namespace

TEST_CASE("a function with layers, dry and recorded: one program on every process") {
  for (const auto& [d, m] : {std::pair{1, 1}, {2, 2}, {3, 2}, {1, 4}}) {
    std::mutex mutex;
    run_loopback(d * m, [&, d = d, m = m](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(world, d, m);
      const auto x = random_normal<Real<data, model>>(mesh, {6, 10}, 1);
      const std::vector<Real<model, data>> weights{
          random_normal<Real<model, data>>(mesh, {10, 10}, 2),
          random_normal<Real<model, data>>(mesh, {10, 10}, 3)};
      const Program ran = record(mesh, network, x, weights, 0.5);
      const Program dry = plan(network)(x_like, weight_likes, 0.5, mesh.sizes(), mesh.process());
      const Program like_mesh = plan(network)(x_like, weight_likes, 0.5, mesh);
      const std::lock_guard lock(mutex);
      CHECK(ran.size() == 5);
      CHECK(same(ran, dry));
      CHECK(same(ran, like_mesh));
      CHECK(wrong_lifetimes(ran) == "");
      CHECK(wrong_lifetimes(dry) == "");
      const std::vector<LayerTotal> layers = by_layer(ran);
      REQUIRE(layers.size() == 7);
      CHECK(layers[1].path == "layer.0");
      CHECK(layers[2].path == "layer.0/product");
      CHECK(layers[3].path == "layer.0/activation");
      CHECK(layers[4].path == "layer.1");
      CHECK(layers[1].operators == 2);
      CHECK(layers[1].payload + layers[4].payload == ran.own_payload_bytes());
      CHECK(ran.entry(4).layer == 0);
      CHECK(ran.tensor(ran.entry(4).result).last == 5);        // what f returns outlives it
      CHECK(!ran.tensor(ran.entry(0).result).alive_at(2));     // the first product does not
      CHECK(ran.tensor(ran.entry(0).operands[1]).made == -1);  // weights are given
      CHECK(ran.entry(2).operands[0] == ran.entry(1).result);
    });
  }
}

namespace {
/// Makes tensors in every way, and uses them.
auto made_inside(const ProcessMesh<Grid>& mesh, const Real<data, model>& x) {
  const auto zero = zeros<Real<data, model>>(mesh, 6, 10);
  const auto noise = random_normal<Real<data, model>>(mesh, {6, 10}, 7);
  const auto like = ones_like(x);
  (void)empty<Real<data, model>>(mesh, 6, 10);
  (void)iota<double>(mesh, {6, 10}, Sharding{{0}, {1}}, 1);
  const auto sum = zero + noise;
  return sum * (like + x);
}
}  // namespace

TEST_CASE("a tensor that a function makes is an entry without operands") {
  run_loopback(6, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 3, 2);
    const auto x = random_normal<Real<data, model>>(mesh, {6, 10}, 1);
    const Program ran = record(mesh, made_inside, x);
    const Program dry = plan(made_inside)(x_like, mesh);
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    CHECK(same(ran, dry));
    CHECK(wrong_lifetimes(ran) == "");
    REQUIRE(ran.size() == 8);
    constexpr std::string_view labels[] = {"zeros", "random_normal", "ones_like", "empty", "iota"};
    for (int i = 0; i < 5; ++i) {
      const ProgramEntry& made = ran.entry(i);
      CHECK(made.label == labels[i]);
      CHECK(made.plan->kind == OperatorKind::create);
      CHECK(made.operands.empty());
      CHECK(made.plan->payload_bytes() == 0);
      CHECK(made.plan->peak_bytes == ran.tensor(made.result).bytes);
      CHECK(ran.tensor(made.result).made == i);
    }
    CHECK(!ran.tensor(ran.entry(3).result).alive_at(4));
    CHECK(ran.entry(5).operands[1] == ran.entry(1).result);
  });
}

TEST_CASE("functions, lambdas, functors, with whatever arguments and results") {
  const MeshSizes<Grid> two = sizes<Grid>(2, 2);
  for (const Program& p : {plan(twice)(x_like, two), plan(&twice)(x_like, two),
                           plan(Functor{})(x_like, two), plan(nothing)(x_like, two, 3),
                           plan([](const auto&x) { return std::tuple(x + x, 7); })(x_like, two),
                           plan([](int n, const auto&x, const char*) {
                             for (int i = 0; i < n; ++i) (void)(x + x);
                           })(1, x_like, "text", two),
                           plan([](const ProcessMesh<Grid>&, const Real<data, model>&x) {
                             return x + x;
                           })(x_like, dry_mesh<Grid>(2, 2)),
                           plan([](const DynamicTensor&x) {
                             return map_dynamic<double>("ij,ij->ij", fn::Add{}, x.sharding(), x, x);
                           })(TensorDesc{DType::f64, {6, 10}, {{0}, {1}}}, two)}) {
    CHECK(p.size() == 1);
    CHECK(p.entry(0).plan->kind == OperatorKind::map);
    CHECK(wrong_lifetimes(p) == "");
    CHECK(p.entry(0).operands[0] == p.entry(0).operands[1]);
  }
  CHECK(plan([] {})(two).empty());
  const Program alone = plan([](const ProcessMesh<Grid>& mesh) {
    const auto x = zeros<Real<data, model>>(mesh, 6, 10);
    return x + x;
  })(two);
  REQUIRE(alone.size() == 2);
  CHECK(alone.entry(1).operands[0] == alone.entry(0).result);
  for (int process = 0; process < 6; ++process) {  // the program of a process, told from another's
    const MeshSizes<Grid> six = sizes<Grid>(3, 2);
    CHECK(same(on_process(plan(network)(x_like, weight_likes, 0.5, six), process),
               plan(network)(x_like, weight_likes, 0.5, six, process)));
  }
  const Simulation all = simulate(plan(network)(x_like, weight_likes, 0.5, sizes<Grid>(3, 2)));
  CHECK(all.fault == "");
  CHECK(all.peak.most ==
        plan(network)(x_like, weight_likes, 0.5, sizes<Grid>(3, 2), all.peak.process).peak_bytes());
  CHECK(plan(nothing)(x_like, two, 3).process == 3);

  // A mesh that is handed over is not touched, and says which machine and limits to plan for.
  MeshOptions options;
  options.machine.message_ps = 77'000'000;
  options.workspace_limit = 5;
  const auto mesh = dry_mesh<Grid>(sizes<Grid>(2, 2), 2, options);
  const Program p = plan([&](const ProcessMesh<Grid>& m) {
    CHECK(m.core() != mesh.core());
    CHECK(m.core()->machine() == options.machine);
    CHECK(m.core()->workspace_limit() == 5);
    return gelu(zeros<Real<data, model>>(m, 6, 10));
  })(mesh);
  CHECK(p.process == 2);
  CHECK(plan([](const ProcessMesh<Grid>& m) { return gelu(zeros<Real<data, model>>(m, 6, 10)); })(
            mesh, 1)
            .process == 1);
}

TEST_CASE(
    "layers: entered again they are one; outside a recording, and around one, they are nothing") {
  const auto mesh = dry_mesh<Grid>(2, 2);
  const auto x = zeros<Real<data, model>>(mesh, 6, 10);
  const Layer before(mesh, "before");
  const Program p = record(mesh, [&] {
    const Layer outer(mesh, "a");
    for (int i = 0; i < 2; ++i) {
      const Layer inner(x, "b");
      (void)(x + x);
    }
    const Layer last(mesh, "c");
    (void)(x + x);
  });
  CHECK(p.layers().size() == 4);
  CHECK(p.part("a/b").size() == 2);
  CHECK(p.part("a/c").size() == 1);
  CHECK(p.part("a").size() == 3);
  CHECK(p.part("before").empty());

  {  // a layer that outlives its recording leaves the next one alone
    auto recording = std::make_unique<Recording>(mesh);
    const Layer stale(mesh, "stale");
    recording = nullptr;
    recording = std::make_unique<Recording>(mesh);
    const Layer fresh(mesh, "fresh");
    { const Layer other(mesh, "other"); }
    (void)(x + x);
    const Program q = recording->take();
    CHECK(q.layer_path(q.entry(0).layer) == "fresh");
  }
  CHECK_THROWS_AS(layer("throws", [](const Real<data, model>&) { throw 1; })(x), int);
  const Recording first(mesh);
  CHECK_THROWS_AS(Recording{mesh}, UsageError);
}

TEST_CASE("tensors that no operator made: given before, made in between, adopted, written into") {
  const auto mesh = dry_mesh<Grid>(2, 2);
  const auto x = zeros<Real<data, model>>(mesh, 60, 100);
  const Program p = record(mesh, [&] {
    (void)(x + x);
    // As what is read from blocks is made.
    const auto made = [&](const Extents& extents) {
      return Real<data, model>(
          TensorCore::make(mesh.core(), {DType::f64, extents, Real<data, model>::sharding()}));
    };
    const auto late = made({60, 100}), unused = made({200, 100});
    const auto y = x + late;
    const auto z = reshard<P<data, model>>(y);  // the same tensor, no second one
    (void)(z + late);
  });
  REQUIRE(p.size() == 4);
  const int late = p.entry(1).operands[1];
  CHECK(p.tensor(late).made == -1);
  CHECK(p.tensor(late).first == 1);
  CHECK(!p.tensor(late).alive_at(0));
  CHECK(p.tensor(late).alive_at(3));
  CHECK(p.tensor(p.entry(0).operands[0]).first == 0);
  CHECK(p.entry(2).result == p.entry(1).result);
  CHECK(p.entry(3).operands[0] == p.entry(1).result);
  const PeakMoment peak = peak_moment(p);
  CHECK(peak.unnamed == detail::arena_charge(100 * 50 * 8));  // `unused`
  CHECK(explain_memory(p).find("in tensors that no operator touched") != std::string::npos);
}

TEST_CASE("an operator with several results, and one that ends after its recording") {
  const auto mesh = dry_mesh<Grid>(2, 2);
  const DynamicTensor x = zeros<Real<data, model>>(mesh, 6, 10),
                      y = zeros<Real<data, model>>(mesh, 4, 4);
  const Program p = record(mesh, [&] {
    return reshard_together({x, y}, {Sharding{{}, {1}}, Sharding{{}, {1}}});
  });
  REQUIRE(p.size() == 1);
  CHECK(p.entry(0).also.size() == 1);
  CHECK(p.tensor(p.entry(0).also[0]).desc.extents == Extents{4, 4});
  CHECK(p.tensor(p.entry(0).also[0]).made == 0);

  Recording first(mesh);
  auto pending = async([&] { return reshard(x, Sharding{{}, {1}}); });
  CHECK(first.take().size() == 1);
  const Program q = record(mesh, [&] {
    const DynamicTensor late = pending.wait();  // belongs to the recording that has ended
    (void)(map_dynamic<double>("ij,ij->ij", fn::Add{}, y.sharding(), y, y));
  });
  REQUIRE(q.size() == 1);
  CHECK(q.entry(0).also.empty());
  CHECK(q.tensor(q.entry(0).result).desc.extents == Extents{4, 4});
}

TEST_CASE("passes work on Programs that were planned and recorded") {
  const auto f = [](const auto& x, const auto& w) {
    const auto y = einsum<"bi,ij->bj", P<data, _>>(x, w);
    const auto z = einsum<"bj,ij->bi", P<data, _>>(tanh(y), w);
    return std::tuple(reduce<Sum, "bi->i", P<_>>(z), reduce<Sum, "bj->j", P<_>>(y));
  };
  std::mutex mutex;
  run_loopback(4, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto x = random_normal<Real<data, _>>(mesh, {600, 40}, 3);
    const auto w = random_normal<Real<model, data>>(mesh, {40, 60}, 4);
    auto compiled = compile(f);
    (void)compiled(x, w);
    const Program ran = record(mesh, f, x, w);
    const Program dry =
        plan(f)(like<Real<data, _>>(600, 40), like<Real<model, data>>(40, 60), mesh);
    const PlanOptions options = plan_options(*mesh.core());
    // What is brought to a root, or refreshed, passes leave alone.
    const auto u = make_halo<Real<data, model>, 0, 1>(mesh, {12, 12}, 1, 1, Boundary::periodic);
    const Program mixed = record(mesh, [&] {
      const auto v = reshard<P<_, _>>(u.tensor());
      u.exchange();
      (void)to_root(u.tensor());
      return std::tuple(v, reshard<P<_, _>>(u.tensor()));
    });
    const std::lock_guard lock(mutex);
    for (const Program& program : {ran, dry}) {
      const Sharing shared = share(program, options);
      const Joining joined = join(shared.program, options);
      CHECK(shared.moves.size() == 1);
      CHECK(joined.calls.size() == compiled.joining().calls.size());
      CHECK(joined.calls.size() == 1);
      CHECK(joined.program.payload_bytes() == compiled.program().payload_bytes());
      CHECK(shared.program.payload_bytes() < program.payload_bytes());
      CHECK(explain(shared) == explain(share(compiled.listed(), options)));
    }
    CHECK(share(mixed, options).moves.empty());
    CHECK(join(mixed, options).calls.empty());
    CHECK(reuse(mixed, options).changes.empty());
  });
}
