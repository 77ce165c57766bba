// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: program
// Traces: of runs, alone, in async and compiled; of simulations; as files.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include <tessera/comm/fake.hpp>
#include <tessera/grad.hpp>
#include <tessera/manual.hpp>
#include <tessera/op/compile.hpp>
#include <tessera/program/network/timing.hpp>
#include <tessera/program/overlap.hpp>
#include <tessera/program/trace.hpp>
#include <tessera/run/calibrate.hpp>
#include <tessera/tessera.hpp>

#include "op/trace_cases.hpp"
#include "support/grid.hpp"
#include "support/instances.hpp"

using namespace tessera;

namespace {
template <class... D> using Real = ShardedTensor<double, Grid, P<D...>>;

template <class F> void on_meshes(F f) {
  for (const MeshSizes<Grid> size : {sizes<Grid>(1, 1), sizes<Grid>(2, 2), sizes<Grid>(3, 2)})
    run_loopback(size.shape.processes(),
                 [&](std::shared_ptr<Transport> world) { f(make_mesh<Grid>(world, size)); });
}
std::mutex mutex;

/// A product over both axes, in a layer, then a sum and a sort.
struct Model {
  Real<data, model> weight;
  auto operator()(const Real<data, _>& x) const {
    const auto y = layer("encoder \"0\"", [&](const auto& batch) {
      const Layer scope(batch, "project");
      return einsum<"bi,ij->bj", P<data, model>>(batch, weight);
    })(x);
    const auto z = layer("head", [](const auto& v) { return tanh(v); })(y);
    return sum(tessera::sort<"ab", 'a'>(reshard<P<_, data>>(z)));
  }
};
}  // namespace

TEST_CASE("a trace has the operators of the program and the calls of the ledger") {
  on_meshes([](const ProcessMesh<Grid>& mesh) {
    const Model f{random_normal<Real<data, model>>(mesh, {6, 10}, 1)};
    const auto x = random_normal<Real<data, _>>(mesh, {7, 6}, 3);
    std::string faults;
    const Trace eager = support::traced(mesh, faults, [&] { (void)f(x); });
    const Trace overlapped = support::traced(mesh, faults, [&] {
      auto y = async([&] { return einsum<"bi,ij->bj", P<data, model>>(x, f.weight); });
      auto z = async([&] { return reshard<P<_, model>>(x); });
      (void)y.wait();
      (void)z.wait();
    });
    auto compiled = compile(f);
    const Trace listed = support::traced(mesh, faults, [&] { (void)compiled(x); });
    const std::lock_guard lock(mutex);
    CHECK(faults == "");
    REQUIRE(eager.program.size() > 3);
    CHECK(eager.program.layer_path(eager.program.entry(0).layer) == "encoder \"0\"/project");
    CHECK(listed.program.layer_path(listed.program.entry(0).layer) == "encoder \"0\"/project");
    const std::string json = to_json(overlapped);
    CHECK(support::count_of(json, "\"ph\":\"b\"") == support::count_of(json, "\"ph\":\"e\""));
    if (mesh.processes() > 1) CHECK(support::count_of(json, "\"ph\":\"b\"") > 0);
    CHECK(support::count_of(to_json(eager), "\"cat\":\"layer\"") == 3);
    const TraceSummary sums = summary(eager);
    REQUIRE(sums.layers.size() == 4);
    CHECK(sums.layers[2].path == "encoder \"0\"/project");
    CHECK(sums.layers[1].time == sums.layers[2].time);
    CHECK(sums.layers[1].time + sums.layers[3].time <= sums.layers[0].time);
    CHECK(explain(sums).find("project") != std::string::npos);
    if (mesh.processes() > 1) CHECK(!sums.collectives.empty());
  });
}

TEST_CASE("a halo's repeated exchanges are in a trace") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto u = make_halo<Real<data, model>, 0, 1>(mesh, {12, 12}, 1, 1, Boundary::periodic);
    std::string faults;
    const Trace trace = support::traced(mesh, faults, [&] {
      for (int i = 0; i < 3; ++i) u.exchange();
    });
    const std::lock_guard lock(mutex);
    CHECK(faults == "");
    CHECK(trace.program.size() == 3);
  });
}

TEST_CASE("operators on two instances are on two tracks of their process, compiled too") {
  const auto folder =
      std::filesystem::temp_directory_path() / ("tessera_lanes_" + std::to_string(std::rand()));
  std::filesystem::create_directory(folder);
  run_loopback(2, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    const auto x = random_normal<Real<data, _>>(mesh, {6, 10}, 1);
    const auto f = [&] {
      const auto y = x + x;
      const auto there = mesh.on(support::instance(mesh.process(), 1));
      return einsum<"bi,bj->ij", P<_, _>>(y, y);
    };
    auto compiled = compile(f);
    for (const bool together : {false, true}) {
      std::string faults;
      const Trace trace =
          support::traced(mesh, faults, [&] { together ? (void)compiled() : (void)f(); });
      std::map<int, std::set<int>> lanes;  // of each operator
      for (const TraceEvent& e : trace.events) lanes[e.entry].insert(e.lane);
      const std::string path = (folder / (together ? "b.json" : "a.json")).string();
      write_trace(mesh, path, trace);
      const std::lock_guard lock(mutex);
      CHECK(faults == "");
      REQUIRE(lanes.size() > 1);  // a move that a pass has added is on the first instance
      for (const auto& on : lanes) CHECK(on.second.size() == 1);
      CHECK(lanes.begin()->second != lanes.rbegin()->second);
      CHECK(support::count_of(to_json(trace), "thread_name") == 2);
    }
  });
  for (const char* name : {"a.json", "b.json"}) {
    const std::string text = support::text_of((folder / name).string());
    CHECK(support::is_json(text));
    CHECK(support::count_of(text, "process_name") == 2);
    CHECK(support::count_of(text, "thread_name") == 4);
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("a simulated trace: all processes, waits where blocks are ragged, the model's cost") {
  const auto f = [](const auto& x, const auto& w) {
    const auto y = layer("project", [](const auto& a, const auto& b) {
      return einsum<"bi,ij->bj", P<data, model>>(a, b);
    })(x, w);
    return sum(tanh(y));
  };
  for (const Index rows : {64, 61, 3}) {
    const Program program =
        plan(f)(like<Real<data, _>>(rows, 32), like<Real<data, model>>(32, 48), sizes<Grid>(4, 2));
    const Trace trace = simulated_trace(program);
    const TraceSummary sums = summary(trace);
    CHECK(support::is_json(to_json(trace)));
    CHECK(support::count_of(to_json(trace), "process_name") == 8);
    CHECK(sums.processes == 8);
    CHECK(sums.layers.at(1).path == "project");
    int calls = 0, waits = 0, steps = 0;
    for (const TraceEvent& e : trace.events) {
      calls += e.kind == TraceKind::call;
      waits += e.kind == TraceKind::wait;
    }
    for (const ProgramEntry& e : program.entries()) steps += e.plan->communications();
    CHECK(calls == 8 * steps);
    if (rows > 3) CHECK((waits > 0) == (rows == 61));
    if (rows != 64) continue;
    const auto cost = program.cost() / 1000;
    CHECK(sums.elapsed <= cost + 1);
    CHECK(sums.elapsed >= cost - 1);
  }
}

TEST_CASE("the traces of all processes are one file, and what cannot be is said on all") {
  const auto folder =
      std::filesystem::temp_directory_path() / ("tessera_trace_" + std::to_string(std::rand()));
  std::filesystem::create_directory(folder);
  const std::string path = (folder / "run.json").string();
  run_loopback(4, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const Model f{random_normal<Real<data, model>>(mesh, {6, 10}, 1)};
    const auto x = random_normal<Real<data, _>>(mesh, {7, 6}, 3);
    Tracing tracing(mesh);
    bool twice = false;
    try {
      const Tracing again(mesh);
    } catch (const UsageError&) {
      twice = true;
    }
    (void)f(x);
    const Trace trace = tracing.take();
    try {
      (void)tracing.take();
      twice = false;
    } catch (const UsageError&) {
    }
    write_trace(mesh, path, trace);
    bool refused = false;
    try {
      write_trace(mesh, folder.string(), trace);
    } catch (const FileError&) {
      refused = true;
    }
    const std::lock_guard lock(mutex);
    CHECK(twice);
    CHECK(refused);
  });
  const std::string text = support::text_of(path);
  CHECK(support::is_json(text));
  CHECK(support::count_of(text, "process_name") == 4);
  CHECK(text.find("(data 1, model 0)") != std::string::npos);
  write_trace(path, simulated_trace(Program()));
  CHECK(support::is_json(support::text_of(path)));
  std::filesystem::remove_all(folder);
  const auto dry = dry_mesh<Grid>(2, 2);
  CHECK_THROWS_AS([&] { const Tracing tracing(dry); }(), UsageError);
}

TEST_CASE("a process without the others runs what it would among them, and sends as much") {
  for (const int number : {0, 5, 1023}) {
    const auto run = [&](const ProcessMesh<Grid>& mesh) {
      const auto x = random_normal<Real<data, _>>(mesh, {70, 61}, 3);
      const Model f{random_normal<Real<data, model>>(mesh, {61, 33}, 1)};
      const auto ids = from_function<ShardedTensor<std::int32_t, Grid, P<data>>>(
          mesh, {70},
          [](const GlobalIndex& i) { return static_cast<std::int32_t>(i[0] * 7 % 61); });
      const auto table = random_normal<Real<model, _>>(mesh, {61, 9}, 4);
      auto step = compile(value_and_grad([](const Real<data, model>& w, const auto& rows) {
        return mean(square(einsum<"bi,ij->bj", P<data, model>>(rows, w)));
      }));
      Recording recording(mesh);
      (void)f(x);
      (void)roll<0>(x, 3);
      (void)take<0, P<data, _>>(table, ids);
      (void)sum<"bi->b">(x);
      (void)step(f.weight, x);
      return recording.take();
    };
    const auto alone = make_mesh<Grid>(fake_transport(1024, number), 64, 16);
    const Program program = run(alone);
    CHECK(program.own_payload_bytes() == alone.ledger().payload_bytes());
    CHECK(program.own_payload_bytes() ==
          run(dry_mesh<Grid>(sizes<Grid>(64, 16), number)).own_payload_bytes());
  }
}

TEST_CASE("a traced program takes its work's time, and its calls what the network says") {
  const auto network = Network::fat_tree({8, 8}, {1, 2}, {}, 16);
  const auto mesh = make_mesh<Grid>(fake_transport(1024), 64, 16);
  const auto x = random_normal<Real<data, _>>(mesh, {70, 61}, 3);
  const Model f{random_normal<Real<data, model>>(mesh, {61, 33}, 1)};
  auto compiled = compile(f);
  for (const bool together : {false, true}) {
    (void)compiled(x);
    Tracing tracing(mesh);
    together ? (void)compiled(x) : (void)f(x);
    const Trace trace = tracing.take();
    const NetworkTimes calls = simulate(trace, network, {.computes = false}),
                       planned = simulate(trace.program, network, {.computes = false}),
                       whole = simulate(trace, network);
    CHECK(calls.seconds == planned.seconds);
    CHECK(calls.exposed == planned.exposed);
    CHECK(calls.link == planned.link);
    CHECK(planned.traced == 0);
    CHECK(whole.traced == trace.program.size());
    double work = 0;  // all but the calls, since nothing is under way meanwhile
    for (const TraceEvent& e : trace.events)
      if (e.communicates()) work -= 1e-9 * static_cast<double>(e.time());
    work += 1e-9 * static_cast<double>(trace.events.back().end);
    CHECK(whole.seconds == doctest::Approx(work + calls.seconds).epsilon(1e-9));
    CHECK(explain(whole).find("work: as traced of ") != std::string::npos);
    CHECK(explain(planned).find("as traced") == std::string::npos);
  }
}

TEST_CASE("a trace of several processes, and one whose events fit no plan, are refused") {
  const auto network = Network::nodes(2, 2, {}, {});
  const Program program =
      plan([](const auto& x) { return sum(x); })(like<Real<data, _>>(8, 8), sizes<Grid>(2, 2));
  CHECK_THROWS_WITH_AS((void)simulate(simulated_trace(program), network),
                       doctest::Contains("has events of the processes 0 and 1"), UsageError);
  Trace trace{program, {}};
  CHECK(simulate(trace, network).seconds == simulate(program, network).seconds);
  TraceEvent call;
  call.kind = TraceKind::call;
  call.call = 4;
  TraceEvent part;
  part.end = 5'000'000;
  trace.events = {call, part};
  CHECK_THROWS_WITH_AS((void)simulate(trace, network), doctest::Contains("the trace has call 4 of"),
                       UsageError);
  call.kind = TraceKind::wait;
  call.call = 0;
  trace.events = {call, part};
  CHECK_THROWS_WITH_AS((void)simulate(trace, network),
                       doctest::Contains("the trace has a wait for call 0 of"), UsageError);
  for (const int entry : {-1, program.size()}) {
    part.entry = entry;
    trace.events = {part};
    CHECK_THROWS_WITH_AS((void)simulate(trace, network),
                         doctest::Contains("the trace has an event of operator"), UsageError);
  }
  part.entry = 0;
  trace.events = {part};
  CHECK(simulate(trace, network).seconds >= 0.005);
}

TEST_CASE("a call that is under way in a trace hides what runs meanwhile") {
  const auto mesh = make_mesh<Grid>(fake_transport(4), 2, 2);
  const auto x = random_normal<Real<data, model>>(mesh, {96, 96}, 1);
  const auto y = random_normal<Real<_, _>>(mesh, {96, 96}, 2);
  Tracing tracing(mesh);
  auto moved = async([&] { return reshard<P<_, _>>(x); });
  for (int i = 0; i < 4; ++i) (void)einsum<"ij,jk->ik">(y, y);
  (void)moved.wait();
  const Trace trace = tracing.take();
  double work = 0;
  for (const TraceEvent& e : trace.events)
    if (e.communicates()) work -= 1e-9 * static_cast<double>(e.time());
  work += 1e-9 * static_cast<double>(trace.events.back().end);
  const double alone =
      simulate(trace.program, Network::nodes(1, 4, {1e9, 1e-9}, {}), {.computes = false}).seconds;
  // Links so fast that the call ends before the products do, and so slow that it does not.
  const NetworkTimes hidden = simulate(trace, Network::nodes(1, 4, {1e12, 1e-9}, {}));
  CHECK(hidden.exposed == doctest::Approx(0));
  CHECK(hidden.seconds == doctest::Approx(work).epsilon(1e-6));
  const double slow = 1e9 * alone / (10 * work);  // the call takes ten times as long as the work
  const NetworkTimes waits = simulate(trace, Network::nodes(1, 4, {slow, 1e-9}, {}));
  CHECK(waits.exposed > 8 * work);
  CHECK(waits.seconds < waits.exposed + work + 1e-9);
  CHECK(waits.seconds < 11 * work);
}

namespace {
struct stage : Axis<> {};
using Two = Mesh<stage, data>;
using OnPart = ShardedTensor<double, Mesh<data>, P<data, _>>;
}  // namespace

TEST_CASE("a trace of a mesh has what its parts do, and that of a part has its own") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Two>(world, 2, 2);
    const auto first = mesh.part<stage>(0), second = mesh.part<stage>(1);
    const auto x = random_normal<OnPart>(first, {8, 6}, 1);
    const auto all = random_normal<ShardedTensor<double, Two, P<stage, data>>>(mesh, {8, 6}, 2);
    std::string faults;
    const bool last = mesh.coordinate<stage>() == 1;
    Trace own;
    const auto f = [&] {
      const auto moved = reshard<OnPart>(x * x, second);
      (void)sum<"ij->", P<>>(moved);
    };
    const Trace trace = support::traced(
        mesh, faults, [&] { last ? (void)(own = support::traced(second, faults, f)) : f(); },
        {first, second});
    std::string manual_faults;
    const Trace within = support::traced(mesh, manual_faults, [&] {
      (void)manual<stage>([](const auto& xs) { return all_reduce_over<stage>(xs + xs); })(all);
    });
    const std::lock_guard lock(mutex);
    CHECK(faults == "");
    CHECK(manual_faults == "");
    CHECK(own.program.size() == (last ? 1 : 0));
    REQUIRE(trace.program.size() == 3);
    CHECK(summary(trace).collectives.size() == (last ? 2 : 1));
    for (const CollectiveTime& sums : summary(trace).collectives)
      CHECK(sums.axes ==
            (sums.collective == Collective::all_reduce ? AxisSet{{1}} : AxisSet{{0, 1}}));
    if (last) CHECK(to_json(trace).find("all-reduce over data") != std::string::npos);
    CHECK(within.program.size() == 2);
    const auto network = Network::nodes(2, 2, {}, {});
    CHECK(simulate(trace, network, {.computes = false}).seconds ==
          simulate(trace.program, network, {.computes = false}).seconds);
    CHECK(simulate(within, network).traced == 2);
  });
}

TEST_CASE("moves that start early hide on a network what their Program says, and it ends earlier") {
  const auto step = [](const Real<data, _>& x, const Real<_, model>& w,
                       const Real<data, model>& v) {
    auto y = einsum<"ij,jk->ik", P<data, model>>(x, w);
    for (int l = 0; l < 3; ++l) {
      const auto even = reshard<P<_, model>>(v), odd = reshard<P<_, model>>(v + v);
      const auto z = reshard<P<data, _>>(tanh(y));  // products wait for these
      const auto next = einsum<"ij,jk->ik", P<data, model>>(z, even);
      y = einsum<"ij,jk->ik", P<data, model>>(reshard<P<data, _>>(next), odd);
    }
    return y;
  };
  for (const MeshSizes<Grid> size : {sizes<Grid>(2, 4), sizes<Grid>(4, 4), sizes<Grid>(3, 2)})
    for (const Index n : {1024, 2999})
      for (const int per_node : {1, 2}) {
        MeshOptions options;
        options.machine.hidden_percent = 100;
        options.machine.processes_per_node = per_node;
        options.machine.kiloflop_ps_f64 = 1000;
        PlanOptions by;
        by.machine = options.machine;
        const auto mesh = dry_mesh<Grid>(size, 0, options);
        const Program program = plan(step)(like<Real<data, _>>(n, n), like<Real<_, model>>(n, n),
                                           like<Real<data, model>>(n, n), mesh);
        const Overlap early = overlap(program, by);
        const Network network = Network::nodes(options.machine, size.shape.processes());
        const NetworkOptions on{.machine = options.machine};
        const double before = simulate(program, network, on).seconds,
                     after = simulate(early.program, network, on).seconds;
        CAPTURE(size.shape.processes());
        CAPTURE(n);
        CAPTURE(per_node);
        CAPTURE(before);
        CHECK(early.moves.size() == 6);
        CHECK(before == doctest::Approx(1e-12 * static_cast<double>(program.cost())).epsilon(0.01));
        CHECK(after ==
              doctest::Approx(1e-12 * static_cast<double>(early.program.cost())).epsilon(0.05));
        CHECK(after < 0.95 * before);
      }
}

TEST_CASE("an operator that is under way when a trace ends is in no later one") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto x = random_normal<Real<data, model>>(mesh, {9, 6}, 1);
    std::optional<Tracing> tracing(mesh);
    auto moved = async([&] { return reshard<P<_, _>>(x); });
    const Trace before = tracing->take();
    tracing.reset();
    auto added = async([&] { return reshard<P<_, _>>(x); });
    tracing.emplace(mesh);
    (void)tanh(x);
    (void)moved.wait();
    (void)added.wait();
    const Trace after = tracing->take();
    const std::lock_guard lock(mutex);
    REQUIRE(!before.events.empty());
    for (const TraceEvent& e : before.events) CHECK(e.kind != TraceKind::wait);
    CHECK(after.program.size() == 1);
    for (const TraceEvent& e : after.events) CHECK(e.entry == 0);
    for (const TraceEvent& e : after.events) CHECK(!e.communicates());
  });
}

TEST_CASE(
    "a process without the others checks nothing with them, and writes and measures nothing") {
  for (const Check check : {Check::normal, Check::communicating, Check::heavy}) {
    MeshOptions options;
    options.check = check;
    options.find = Find::nan;
    const auto mesh = make_mesh<Grid>(fake_transport(6, 4), sizes<Grid>(3, 2), options);
    const auto x = random_normal<Real<data, model>>(mesh, {7, 5}, 1);
    (void)roll<0>(x + x, 1);
    (void)tessera::sort<"ab", 'a'>(x);
    CHECK_THROWS_WITH_AS(write_npy(x, "never.npy"),
                         doctest::Contains("on a fake mesh, where this process is alone"),
                         UsageError);
    CHECK(!std::filesystem::exists("never.npy"));
    CHECK_THROWS_WITH_AS((void)calibrate(mesh), doctest::Contains("alone on a fake transport"),
                         UsageError);
    CHECK(mesh.core()->gather_facts({7}, {}) == std::vector<std::int64_t>(6, 7));
  }
}
