// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: program
// Compiled functions against the same functions alone.
#include <doctest/doctest.h>

#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include <tessera/op/compile.hpp>
#include <tessera/tessera.hpp>

#include "op/program_cases.hpp"
#include "support/every_mesh.hpp"
#include "support/grid.hpp"

using namespace tessera;

namespace {
template <class... D> using Real = ShardedTensor<double, Grid, P<D...>>;
template <class... D> using Float = ShardedTensor<float, Grid, P<D...>>;

/// A step of training whose optimizer keeps its state on the host and on the mesh.
struct Trainer {
  Real<data, model> weight, momentum;
  int steps = 0;

  Real<> operator()(const Real<data, _>& x) {
    const Layer scope(x, "step");
    const double rate = 0.5 / ++steps;
    const auto y = einsum<"bi,ij->bj", P<data, model>>(x, weight);
    const auto error = layer("loss", [](const auto& e) { return tanh(e); })(y);
    const auto gradient = einsum<"bi,bj->ij", P<data, model>>(x, error);
    map_into(momentum, fn::Add{}, 0.9 * momentum, gradient);
    weight = weight - rate * momentum;
    return sum(error * error);
  }
};
Trainer trainer(const ProcessMesh<Grid>& mesh) {
  return {random_normal<Real<data, model>>(mesh, {6, 10}, 1),
          zeros<Real<data, model>>(mesh, 6, 10)};
}
template <class F> void on_meshes(F f) {
  for (const MeshSizes<Grid> size : {sizes<Grid>(1, 1), sizes<Grid>(2, 2), sizes<Grid>(3, 2)})
    run_loopback(size.shape.processes(),
                 [&](std::shared_ptr<Transport> world) { f(make_mesh<Grid>(world, size)); });
}
std::mutex mutex;
}  // namespace

TEST_CASE("a trainer, compiled: the same losses and weights, one structure") {
  on_meshes([](const ProcessMesh<Grid>& mesh) {
    const auto x = random_normal<Real<data, _>>(mesh, {12, 6}, 3);
    Trainer eager = trainer(mesh), state = trainer(mesh);
    auto step = compile([&](const auto& batch) { return state(batch); });
    bool same = true;
    for (int i = 0; i < 4; ++i) same = same && value(eager(x)) == value(step(x));
    same = same && to_host(eager.weight) == to_host(state.weight) &&
           to_host(eager.momentum) == to_host(state.momentum);
    const std::lock_guard lock(mutex);
    CHECK(same);
    CHECK(step.structures() == 1);
    CHECK(step.program().layer_path(step.program().entry(1).layer) == "step/loss");
  });
}

namespace {
/// Two products with one weight, which both have whole.
struct TwoUses {
  auto operator()(const Real<data, _>& x, const Real<model, data>& w) const {
    const auto y = einsum<"bi,ij->bj", P<data, _>>(x, w);
    return einsum<"bj,ij->bi", P<data, _>>(tanh(y), w);
  }
};
/// What a run sends, by the ledger, and the most memory that it takes beyond what was there.
struct Measured {
  Index payload = 0, peak = 0;
};
template <class F> Measured measured(const ProcessMesh<Grid>& mesh, const F& f) {
  Ledger& ledger = mesh.ledger();
  ledger.reset();
  const Index before = mesh.arena().in_use();
  mesh.arena().reset_peak();
  f();
  return {ledger.payload_bytes(), mesh.arena().peak() - before};
}
}  // namespace

TEST_CASE("a weight that two products have whole is gathered once") {
  on_meshes([](const ProcessMesh<Grid>& mesh) {
    const auto x = random_normal<Real<data, _>>(mesh, {600, 40}, 3);
    const auto w = random_normal<Real<model, data>>(mesh, {40, 60}, 4);
    auto f = compile(TwoUses{});
    const auto expected = to_host(TwoUses{}(x, w));
    const Measured eager = measured(mesh, [&] { (void)TwoUses{}(x, w); });
    const auto got = to_host(f(x, w));
    const Measured compiled = measured(mesh, [&] { (void)f(x, w); });
    const Program& program = f.program();
    const std::lock_guard lock(mutex);
    CHECK(got == expected);
    CHECK(f.structures() == 1);
    CHECK(compiled.payload == program.own_payload_bytes());
    if (mesh.processes() > 1) {
      REQUIRE(f.sharing().moves.size() == 1);
      CHECK(f.sharing().moves[0].users == 2);
      CHECK(compiled.payload < eager.payload);
    }
    CHECK(compiled.peak == program.peak_bytes() - program.entry(0).held_before);
  });
}

TEST_CASE("a move is shared with no operator that, planned again, brings its operand elsewhere") {
  const auto f = [](const Float<model>& x, const Float<data, _>& v, const Float<model, _>& y) {
    const auto whole = reshard<P<_>>(x);
    const auto z = map<"i,ji,ji->ji", P<_, _>>(
        [](float p, float q, float r) -> double { return p * q + r; }, x, v, y);
    const auto moved = reshard<P<model, _>>(v);
    return std::tuple(z, moved + moved, whole + whole);
  };
  int planned_anew = 0;
  for (Index limit = 1024; limit <= 8192; limit += 512)
    run_loopback(8, [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(world, sizes<Grid>(2, 4), {.workspace_limit = limit});
      const auto x = random_normal<Float<model>>(mesh, {16}, 1);
      const auto v = random_normal<Float<data, _>>(mesh, {8, 16}, 2);
      const auto y = random_normal<Float<model, _>>(mesh, {8, 16}, 3);
      auto compiled = compile(f);
      const auto [z, moved, whole] = compiled(x, v, y);
      const auto [z_alone, moved_alone, whole_alone] = f(x, v, y);
      const bool same = to_host(z) == to_host(z_alone) && to_host(moved) == to_host(moved_alone) &&
                        to_host(whole) == to_host(whole_alone);
      const std::lock_guard lock(mutex);
      CHECK_MESSAGE(same, limit);
      if (compiled.sharing().moves.size() == 1 && compiled.sharing().moves[0].rounds)
        ++planned_anew;
    });
  CHECK(planned_anew > 0);  // with one of the limits
}

TEST_CASE("what every process has is sliced, and not moved, until it is written") {
  on_meshes([](const ProcessMesh<Grid>& mesh) {
    const auto x = from_function<Real<data, model>>(mesh, {12, 8}, support::Numbered{1});
    const auto f = [&](bool writes) {
      auto y = x + x;
      const auto whole = reshard<P<_, _>>(y);
      if (writes) y += whole * whole;
      const auto turned = reshard<P<model, data>>(y);
      const auto square = einsum<"ij,kj->ik", P<data, _>>(y, y);
      return std::tuple(sum(whole), turned, square);
    };
    for (const bool writes : {false, true}) {
      auto compiled = compile(f, {.reuse = false});
      const auto [a, b, c] = f(writes);
      const auto expected = std::tuple(to_host(a), to_host(b), to_host(c));
      const Measured run = measured(mesh, [&] { (void)compiled(writes); });
      const auto [d, e, g] = compiled(writes);
      const bool same = expected == std::tuple(to_host(d), to_host(e), to_host(g));
      const std::lock_guard lock(mutex);
      CHECK(same);
      CHECK(run.payload == compiled.program().own_payload_bytes());
      if (mesh.processes() == 1) continue;
      int read = 0;
      for (const SharedMove& move : compiled.sharing().moves) read += move.users == 1;
      CHECK((read > 0) == !writes);
      if (writes) continue;
      int sends = 0;  // but for the reshard that brings y to all
      for (const ProgramEntry& entry : compiled.program().entries())
        sends += entry.plan->payload_bytes() > 0;
      CHECK(sends == 1);
      CHECK(explain(compiled).find("read in its place") != std::string::npos);
    }
  });
}

TEST_CASE("a shared move says whether the bits are the same") {
  on_meshes([](const ProcessMesh<Grid>& mesh) {
    // With a long sum, products read their own part of the gathered w where it lies.
    for (const Index n : {24, 60, 600})
      for (const Index sum : {40, 2048}) {
        const auto x = random_normal<Real<data, _>>(mesh, {n, sum}, 3);
        const auto w = random_normal<Real<model, data>>(mesh, {sum, 60}, 4);
        auto f = compile(TwoUses{}, {.join = false});
        const auto expected = to_host(TwoUses{}(x, w));
        const bool same = to_host(f(x, w)) == expected;
        const std::lock_guard lock(mutex);
        for (const SharedMove& move : f.sharing().moves) {
          CHECK((same || move.rounds));
          CHECK(explain(f).find(move.rounds ? "to rounding" : "the same bits") !=
                std::string::npos);
        }
      }
  });
}

TEST_CASE("results lie where operands end: weights that a step makes anew, and what lies between") {
  on_meshes([](const ProcessMesh<Grid>& mesh) {
    auto weight = random_normal<Real<data, model>>(mesh, {600, 400}, 1);
    const auto gradient = random_normal<Real<data, model>>(mesh, {600, 400}, 2);
    const auto expected = to_host(weight - 0.5 * tanh(gradient + gradient));
    const void* const lay = weight.data();
    const auto lies_there = [&](const auto& x) { return x.local_size() == 0 || x.data() == lay; };
    auto step = compile([&] { weight = weight - 0.5 * tanh(gradient + gradient); });
    const Measured compiled = measured(mesh, [&] { step(); });
    const auto got = to_host(weight);
    const bool stays = lies_there(weight);
    const auto kept = weight;  // another holds it now, so that it stays as it is
    step();
    const auto held = to_host(kept);
    const std::lock_guard lock(mutex);
    CHECK(got == expected);
    CHECK(stays);
    CHECK(weight.data() != kept.data());
    CHECK(lies_there(kept));
    CHECK(held == expected);
    CHECK(step.structures() == 2);
    CHECK(step.reuse().changes.size() == 3);
    const Index block =
        detail::arena_charge(static_cast<Index>(sizeof(double)) * gradient.local_size());
    CHECK(compiled.peak == block);  // the sum's; the rest lies in it, or in the weight
    CHECK(explain(step).find("where an operand ends") != std::string::npos);
  });
}

TEST_CASE("an argument that is moved is given away") {
  on_meshes([](const ProcessMesh<Grid>& mesh) {
    auto twice = compile([](const auto& x) { return tanh(x + x); });
    auto x = random_normal<Real<data, model>>(mesh, {60, 40}, 1);
    const auto expected = to_host(tanh(x + x));
    const auto kept = to_host(twice(x));
    const Measured borrowed = measured(mesh, [&] { (void)twice(x); });
    const void* const lay = x.data();
    const Measured given = measured(mesh, [&] { x = twice(std::move(x)); });
    const bool there = x.local_size() == 0 || x.data() == lay;
    const auto got = to_host(x);
    auto pieces = compile([](std::vector<Real<data, model>> all) { return all[0] + all[1]; });
    std::vector<Real<data, model>> two{x, full<Real<data, model>>(mesh, {60, 40}, 0.0)};
    const auto sum = to_host(pieces(std::move(two)));
    const std::lock_guard lock(mutex);
    CHECK(kept == expected);
    CHECK(got == expected);
    CHECK(sum == expected);
    CHECK(there);
    CHECK(given.peak == 0);
    CHECK((borrowed.peak > 0 || x.local_size() == 0));
    CHECK(twice.structures() == 2);
  });
}

TEST_CASE("what did not run has no values, and says so") {
  run_loopback(1, [](std::shared_ptr<Transport> world) {
    const auto mesh =
        make_mesh<Grid>(world, sizes<Grid>(1, 1), MeshOptions{.memory_limit = 20'000});
    const auto x = full<Real<data, _>>(mesh, {16, 16}, 1.0);  // 2 KiB
    auto y = zeros_like(x), z = zeros_like(x);
    auto f = compile([&] {
      y = x + x;
      z += x;
      const auto wide = einsum<"ij,kl->ijkl", P<data, _, _, _>>(x, y);  // too large
      return sum(wide);
    });
    CHECK_THROWS_AS((void)f(), Error);
    CHECK(to_host(z) == to_host(x));  // what had run, has
    CHECK(to_host(y) == to_host(2.0 * x));
    auto g = compile([&] {
      const auto wide = einsum<"ij,kl->ijkl", P<data, _, _, _>>(x, x);
      y = x * x;
      return sum(wide);
    });
    CHECK_THROWS_AS((void)g(), Error);
    CHECK_THROWS_WITH_AS((void)to_host(y), doctest::Contains("did not run, since the async"),
                         UsageError);
    CHECK_THROWS_WITH_AS((void)(y + x), doctest::Contains("call that again"), UsageError);
    y = x + x;
    CHECK(to_host(y) == to_host(2.0 * x));
  });
}

TEST_CASE("gradients are reduced in one call, those that are read late") {
  on_meshes([](const ProcessMesh<Grid>& mesh) {
    const auto x = from_function<Real<data, _>>(mesh, {12, 6}, support::Numbered{1});
    const auto y = from_function<Real<data, _>>(mesh, {12, 5}, support::Numbered{2});
    const auto f = [&] {
      const Layer scope(mesh, "backward");
      const auto weights = einsum<"bi,bj->ij", P<_, _>>(x, y);
      const auto bias = reduce<Sum, "bj->j", P<_>>(y);
      const auto scale = reduce<Sum, "bi->i", P<_>>(x);
      return std::tuple(2.0 * weights, 3.0 * bias, 4.0 * scale, reduce<Max, "bi->i", P<_>>(x));
    };
    auto compiled = compile(f);
    const auto [a, b, c, d] = f();
    const auto expected = std::tuple(to_host(a), to_host(b), to_host(c), to_host(d));
    const Measured run = measured(mesh, [&] { (void)compiled(); });
    const auto [e, g, h, i] = compiled();
    const bool same = expected == std::tuple(to_host(e), to_host(g), to_host(h), to_host(i));
    const Joining& joined = compiled.joining();
    const std::lock_guard lock(mutex);
    CHECK(same);
    CHECK(run.payload == compiled.program().own_payload_bytes());
    if (mesh.core()->shape()[0] == 1) {
      CHECK(joined.calls.empty());
      return;
    }
    REQUIRE(joined.calls.size() == 1);
    CHECK(joined.calls[0].tensors == 3);
    CHECK(joined.calls[0].collective == all_reduce);
    CHECK(compiled.listed().count(all_reduce) == 4);
    CHECK(compiled.program().count(all_reduce) == 2);
    CHECK(explain(compiled).find("backward  3 tensors in one  all-reduce  over data") !=
          std::string::npos);
    auto tight = compile(f, {.memory_limit = joined.peak_before});
    CHECK(joined.peak_after > joined.peak_before);
  });
}

TEST_CASE("a gather starts before the products that hide it, and is waited for by its reader") {
  MeshOptions options;
  options.machine.hidden_percent = 50;
  const auto f = [](const Real<_, _>& x, const Real<data, _>& w) {
    const auto y = tanh(einsum<"bi,ij->bj">(x, x));
    const auto whole = reshard<P<_, _>>(w);
    const auto z = einsum<"bi,ij->bj">(y, y);
    return einsum<"bi,ij->bj">(z, whole);
  };
  for (const int n : {1, 2, 4})
    run_loopback(n, [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(world, sizes<Grid>(n, 1), options);
      const auto x = from_function<Real<_, _>>(mesh, {40, 40}, support::Numbered{1});
      const auto w = from_function<Real<data, _>>(mesh, {40, 40}, support::Numbered{2});
      auto compiled = compile(f);
      const auto expected = to_host(f(x, w));
      const Measured eager = measured(mesh, [&] { (void)f(x, w); });
      (void)compiled(x, w);
      const Measured run = measured(mesh, [&] { (void)compiled(x, w); });
      const bool same = expected == to_host(compiled(x, w));
      const Overlap& early = compiled.overlap();
      const Program& program = compiled.program();
      const std::lock_guard lock(mutex);
      CHECK(same);
      CHECK(run.payload == eager.payload);
      CHECK(run.peak == program.peak_bytes() - program.entry(0).held_before);
      CHECK(early.moves.size() == (n > 1 ? 1u : 0u));
      if (n == 1) return;
      CHECK(early.moves[0].operators > 0);
      CHECK(program.cost() == compiled.listed().cost() - early.moves[0].hidden);
      CHECK(explain(compiled).find("overlap: 1 move started early") != std::string::npos);
    });
  MeshOptions plain;
  plain.machine.hidden_percent = 0;
  const auto dry = dry_mesh<Grid>(sizes<Grid>(4, 1), 0, plain);
  auto compiled = compile(f);
  (void)compiled(zeros<Real<_, _>>(dry, 40, 40), zeros<Real<data, _>>(dry, 40, 40));
  CHECK(compiled.overlap().moves.empty());
}

TEST_CASE("a move that reads what another move makes starts when that has ended") {
  MeshOptions options;
  options.machine.hidden_percent = 100;
  const auto f = [](const Real<_, _>& x, const Real<Axes<data, model>, _>& w) {
    const auto turned = reshard<P<data, _>>(w);  // hidden by the product below
    const auto y = einsum<"bi,ij->bj">(x, x);
    const auto z = tanh(y);
    const auto first = sum(turned);               // waits for it
    const auto whole = reshard<P<_, _>>(turned);  // may be hidden by what follows `first` alone
    return std::tuple(einsum<"bi,ij->bj">(z, whole), first);
  };
  for (const int n : {2, 3})
    run_loopback(2 * n, [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(world, sizes<Grid>(n, 2), options);
      const auto x = from_function<Real<_, _>>(mesh, {96, 96}, support::Numbered{1});
      const auto w =
          from_function<Real<Axes<data, model>, _>>(mesh, {96, 96}, support::Numbered{2});
      auto compiled = compile(f);
      (void)compiled(x, w);
      const bool same = to_host(std::get<0>(f(x, w))) == to_host(std::get<0>(compiled(x, w)));
      const Program& program = compiled.program();
      const std::lock_guard lock(mutex);
      CHECK(same);
      CHECK(compiled.overlap().moves.size() >= 1);
      for (int i = 0; i < program.size(); ++i)  // nothing reads what is under way
        for (int j = i + 1; j <= i + program.entry(i).meanwhile && j < program.size(); ++j)
          CHECK(!program.entry(j).operands.contains(program.entry(i).result));
    });
}

TEST_CASE("random functions, compiled: values, payload and memory") {
  support::on_every_mesh("compiled programs", 90, 120, 3, support::some_program_case);
}

TEST_CASE("random gradients, compiled, of operators of several results too") {
  support::on_every_mesh("compiled gradients", 93, 12, 2, support::some_gradient_case);
}

TEST_CASE("functions of every form: tensors, tuples, structs, nothing, and what is called within") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto x = random_normal<Real<data, model>>(mesh, {6, 8}, 1);
    const DynamicTensor erased = x;
    const HostTensor<double> ones = to_host(ones_like(x));
    struct Both {
      Real<data, model> first;
      DynamicTensor second;
    };
    auto pair = compile([&] { return std::tuple(x + x, 3); });
    auto both = compile([&](const DynamicTensor& y) {
      return Both{2.0 * x, reshard(y, Sharding{{}, {0}})};
    });
    auto y = zeros_like(x);
    auto nothing = compile([&](double by) { y += by * x; });
    auto reference = compile([&]() -> Real<data, model>& { return y = y + y; });
    auto nested = compile([&] {
      auto pending = async([&] { return reshard<P<model, data>>(x); });
      const auto inner = compile([](const auto& z) { return z + z; })(x);
      into(y, [&] { return exp(inner); });
      return pending.wait();
    });
    auto hosts = compile([&] {  // the host's memory is read at once
      const std::vector<double> local(48, 1.0);
      return from_host<Real<data, model>>(mesh, {6, 8}, local) * ones_like(x);
    });
    auto empty = compile([](int i) { return i + 1; });

    CHECK(to_host(std::get<0>(pair())) == to_host(2.0 * x));
    CHECK(std::get<1>(pair()) == 3);
    const Both got = both(erased);
    CHECK(to_host(got.first) == to_host(2.0 * x));
    CHECK(to_host<double>(got.second) == to_host(x));
    nothing(2.0);
    nothing(3.0);
    CHECK(nothing.structures() == 1);
    CHECK(to_host(y) == to_host(2.0 * x + 3.0 * x));
    CHECK(&reference() == &y);
    CHECK(to_host(y) == to_host(2.0 * (2.0 * x + 3.0 * x)));
    CHECK(to_host(nested()) == to_host(x));
    CHECK(nested.program().size() == 3);
    CHECK(to_host(y) == to_host(exp(x + x)));
    CHECK(to_host(hosts()) == ones);
    CHECK(empty(4) == 5);
    CHECK(empty.structures() == 0);
    CHECK_THROWS_WITH_AS((void)empty.program(), doctest::Contains("call it first"), UsageError);
  });
}

TEST_CASE("of an operator that writes a tensor, further results are tensors of their own") {
  on_meshes([](const ProcessMesh<Grid>& mesh) {
    const auto x = random_normal<Real<data, _>>(mesh, {12, 6}, 1);
    const auto scale = random_normal<Real<_>>(mesh, {6}, 2), bias = ones<Real<_>>(mesh, 6);
    auto y = zeros_like(x), z = zeros_like(x);
    auto norm =
        compile([&](const auto& of) { into(y, [&] { return layer_norm(of, scale, bias); }); });
    norm(x);
    norm(2.0 * x);
    async([&] {
      const auto twice = x + x;
      into(z, [&] { return layer_norm(twice, scale, bias); });
      return 0;
    }).wait();
    const auto made = layer_norm(2.0 * x, scale, bias);
    bool own = true;
    for (const Program* program : {&norm.listed(), &norm.program()}) {
      const ProgramEntry& e = program->entry(program->size() - 1);
      own = own && program->tensor(e.result).made < 0 && e.also.size() == 2;
      for (const int t : e.also)
        own = own && t != e.result && program->tensor(t).made == program->size() - 1 &&
              program->tensor(t).desc.extents == Extents{12};
    }
    const bool same = to_host(y) == to_host(made) && to_host(z) == to_host(made);
    const std::lock_guard lock(mutex);
    CHECK(own);
    CHECK(same);
  });
}

TEST_CASE("what a compiled function may not do is said where it does it") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto other = make_mesh<Grid>(world, 4, 1);
    const auto x = random_normal<Real<data, model>>(mesh, {6, 8}, 1);
    const auto far = random_normal<Real<data, model>>(other, {6, 8}, 1);
    auto y = zeros_like(x);
    auto halo = make_halo<Real<data, model>, 0>(mesh, {6, 8}, 1, 1, Boundary::periodic, 0.5);
    const auto says = [](auto f, const char* part) {
      CHECK_THROWS_WITH_AS((void)compile(std::move(f))(), doctest::Contains(part), Error);
    };
    says([&] { return value(sum(x)); }, "inside async or a compiled function, give the tensor");
    says([&] { return to_host(x + x); }, "started at compile.loopback.cpp");
    const auto dry = zeros<Real<data, model>>(dry_mesh<Grid>(2, 2), 6, 8);
    says([&] { return std::pair(x + x, dry + dry); }, "calls operators on two meshes");
    says([&] { return x + far; }, "operators take tensors of one mesh object");
    says([&] { return (void)halo.exchange_async(), 1; }, "the call is made at once");
    says([&] { return halo.exchange(), 1; }, "the call is made at once");
    says([&] { return einsum<"ij,jk->ik">(x, x); }, "compile.loopback.cpp");
    says([&]() -> int { throw UsageError("of the user"); }, "of the user");
    says(
        [&] {
          reshard_into(y, x);
          return to_root(x);
        },
        "or a compiled function has tensors for its operands");
    CHECK(to_host(y) == to_host(zeros_like(x)));  // nothing ran, and y can be read again
    CHECK(to_host(compile([&] { return x + x; })()) == to_host(2.0 * x));
    const auto [here, there] = compile([&] { return std::pair(x + x, far + far); })();
    CHECK(to_host(here) == to_host(2.0 * x));
    CHECK(to_host(there) == to_host(2.0 * far));
  });
}

TEST_CASE("new structures are counted, compared between processes, and explained") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    auto f = compile([&](Index n, bool twice) {
      const auto x = full<Real<data, _>>(mesh, {n, 3}, 2.0);
      return twice ? sum(x * x) : sum(x);
    });
    for (const Index n : {4, 6, 4, 6, 4}) CHECK(value(f(n, false)) == 6.0 * static_cast<double>(n));
    CHECK(f.structures() == 2);
    CHECK(value(f(6, true)) == 72.0);
    CHECK(f.structures() == 3);
    const std::string text = f.explain_structures();
    CHECK(text.find("3 structures in 6 calls") == 0);
    CHECK(text.find("call 2 differs from call 1") != std::string::npos);
    CHECK(text.find("Multiply") != std::string::npos);
    std::vector<Real<data, _>> kept;  // what the caller keeps is part of the structure
    auto g = compile([&](bool keep) {
      const auto y = full<Real<data, _>>(mesh, {4, 3}, 2.0);
      if (keep) kept.push_back(y);
      return sum(y);
    });
    CHECK(value(g(false)) == value(g(true)));
    CHECK(g.structures() == 2);
    CHECK(to_host(kept[0]).values == std::vector<double>(12, 2.0));
    // Another mesh has plans of its own: there a process may be another one.
    MeshOptions turned;
    turned.device_assignment = DeviceAssignment{1, 0};
    auto on = compile([](const auto& x) { return reshard<P<_, _>>(x + x); });
    for (const auto& there : {mesh, make_mesh<Grid>(world, sizes<Grid>(2, 1), turned)}) {
      const auto x = from_function<Real<data, _>>(there, {5, 3}, support::Numbered{1});
      CHECK(to_host(on(x)) == to_host(2.0 * x));
    }
    CHECK(on.structures() == 2);
  });
  CHECK_THROWS_WITH_AS(
      run_loopback(2,
                   [](std::shared_ptr<Transport> world) {
                     const auto mesh = make_mesh<Grid>(world, 2, 1);
                     const auto x = full<Real<data, _>>(mesh, {4, 3}, 2.0);
                     auto f = compile([&] { return mesh.process() == 0 ? sum(x) : sum(x + x); });
                     (void)f();
                   }),
      doctest::Contains("the compiled function of"), MismatchError);
}

TEST_CASE("what differs between structures is said of the nearest, whatever it is") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    const auto x = full<Real<data, _>>(mesh, {4, 3}, 2.0);
    const auto y = full<Real<data, _>>(mesh, {4, 3}, 3.0);
    std::vector<Real<data, _>> kept;
    auto f = compile([&](int what) {
      const auto a = x + x, b = roll<0>(y, what == 2 ? 2 : 1);
      if (what == 3) kept.push_back(a);
      const auto c = what == 1 ? a * a : a * b;
      return what == 4 ? sum<"ij->", P<>>(c) : sum<"ij->", P<>>(c + x);
    });
    for (const int what : {0, 1, 2, 3, 4, 0}) (void)f(what);
    CHECK(f.structures() == 5);
    const std::string text = f.explain_structures();
    const auto says = [&](const char* part) {
      CHECK_MESSAGE(text.find(part) != std::string::npos, text << "\nlacks " << std::string(part));
    };
    says(
        "operand 2 is the result of operator 0 (Add), and was the result of operator 1 (roll) "
        "there");
    says("operator 1, roll roll: it is by 2");
    says("its result is kept, and was not");
    says("call 5 differs from call 1:");
    // The structures that each mesh called last are kept.
    auto g = compile([](const auto& z) { return z + z; }, {.most_structures = 2});
    const auto on = [&](const ProcessMesh<Grid>& there, Index n) {
      CHECK(to_host(g(full<Real<data, _>>(there, {n, 2}, 2.0))).values.size() ==
            static_cast<std::size_t>(2 * n));
    };
    on(make_mesh<Grid>(world, 2, 1), 3);
    for (const Index n : {3, 4, 3, 5, 3, 4}) on(mesh, n);
    CHECK(g.structures() == 5);  // 3 there; 3, 4, 5 here, and 4 again
    CHECK(g.explain_structures().find("2 are forgotten") != std::string::npos);
    on(mesh, 3);
    CHECK(g.structures() == 5);
  });
}

TEST_CASE("what one process throws while it lists ends the others too") {
  CHECK_THROWS_WITH_AS(
      run_loopback(3,
                   [](std::shared_ptr<Transport> world) {
                     const auto mesh = make_mesh<Grid>(world, 3, 1);
                     const auto x = full<Real<data, _>>(mesh, {4, 3}, 2.0);
                     auto f = compile([&](bool fails) {
                       if (fails) throw UsageError("what one process says");
                       return sum(x);
                     });
                     (void)f(false);
                     (void)f(mesh.process() == 1);  // the structure is known to the others
                   }),
      doctest::Contains("what one process says"), UsageError);
}

TEST_CASE("a memory limit keeps moves apart, and says so") {
  const auto mesh = dry_mesh<Grid>(4, 4);
  const auto x = zeros<Real<data, _>>(mesh, 4000, 400);
  const auto w = zeros<Real<model, data>>(mesh, 400, 600);
  auto free = compile(TwoUses{});
  (void)free(x, w);
  const Sharing& shared = free.sharing();
  REQUIRE(shared.moves.size() == 1);
  CHECK(shared.peak_after > shared.peak_before);
  auto tight = compile(TwoUses{}, {.memory_limit = shared.peak_after - 1});
  (void)tight(x, w);
  CHECK(tight.sharing().moves.empty());
  CHECK(tight.sharing().refused == 1);
  CHECK(tight.program().payload_bytes() > free.program().payload_bytes());
  CHECK(explain(tight).find("1 more would exceed the memory limit") != std::string::npos);
}

TEST_CASE("of two moves that a limit does not allow together the one that saves more stays") {
  const auto mesh = dry_mesh<Grid>(4, 4);
  const auto x = zeros<Real<data, _>>(mesh, 4000, 400);
  const auto large = zeros<Real<model, data>>(mesh, 400, 600);
  const auto small = zeros<Real<model, data>>(mesh, 400, 400);
  const auto f = [&] {
    const auto y = einsum<"bi,ij->bj", P<data, _>>(x, large);
    const auto z = einsum<"bi,ij->bj", P<data, _>>(x, small);
    const auto back = einsum<"bj,ij->bi", P<data, _>>(tanh(y), large);
    const auto again = einsum<"bj,ij->bi", P<data, _>>(cos(y), large);
    return std::tuple(back, again, einsum<"bj,ij->bi", P<data, _>>(tanh(z), small));
  };
  auto free = compile(f);
  (void)free();
  REQUIRE(free.sharing().moves.size() == 2);
  const Index limit = free.sharing().peak_after - 1;
  auto tight = compile(f, {.memory_limit = limit});
  (void)tight();
  CHECK(tight.sharing().refused == 1);
  REQUIRE(tight.sharing().moves.size() == 1);
  CHECK(tight.sharing().moves[0].users == 3);
  CHECK(over_processes(tight.program()).peak.most <= limit);
  CHECK(tight.program().payload_bytes() < tight.listed().payload_bytes());
}

TEST_CASE("random functions on dry meshes") {
  const std::uint64_t seed = support::seed_for("compiled programs, dry", 91);
  std::uint64_t number = 0;
  std::vector<std::string> wrong;
  for (const MeshShape& shape : support::meshes(16, 3)) {
    support::Random random(seed + ++number);
    MeshOptions options;  // some limits are small, and bring operands by other ways
    options.workspace_limit = random.of<Index>({max_int64, max_int64, 4000, 500});
    const auto mesh = detail::dry_mesh_core(shape, support::axis_names(shape.rank()),
                                            random.below(shape.processes()), options, {});
    for (int i = 0; i < support::cases_of(80); ++i)
      if (const std::string text = support::some_program_case(mesh, random); !text.empty())
        wrong.push_back(text);
  }
  for (std::size_t i = 0; i < wrong.size() && i < 3; ++i) MESSAGE(wrong[i]);
  CHECK(wrong.empty());
}
