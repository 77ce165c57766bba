// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compiled functions over several parts of one world.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include <tessera/program/network/timing.hpp>
#include <tessera/program/trace.hpp>

#include "op/compiled_parts_case.hpp"
#include "op/texts_of.hpp"
#include "support/grid.hpp"

using namespace support;

TEST_CASE("a random function over parts of a mesh is the same compiled") {
  const std::uint64_t seed = seed_for("compiled functions over parts", 390);
  for (int processes = 1; processes <= 8; ++processes) {
    const auto texts = texts_of(processes, [&](const std::shared_ptr<Transport>& world) {
      for (int round = 0; round < cases_of(4, 60); ++round) {
        Random random(seed + static_cast<std::uint64_t>(100 * processes + round));
        if (const std::string text = compiled_parts_case(world, random, 6); !text.empty())
          return "round " + std::to_string(round) + ", " + text;
      }
      return std::string();
    });
    CHECK(quiet(texts));
  }
}

TEST_CASE("gradients and a step over two parts, with a weight on both, are the same compiled") {
  const std::uint64_t seed = seed_for("compiled gradients over parts", 391);
  for (int processes = 1; processes <= 8; ++processes) {
    const auto texts = texts_of(processes, [&](const std::shared_ptr<Transport>& world) {
      for (int round = 0; round < cases_of(3, 30); ++round) {
        Random random(seed + static_cast<std::uint64_t>(100 * processes + round));
        if (const std::string text = compiled_parts_gradient_case(world, random, 3); !text.empty())
          return "round " + std::to_string(round) + ", " + text;
      }
      return std::string();
    });
    CHECK(quiet(texts));
  }
}

namespace {
struct stage : Axis<> {};
using Two = Mesh<stage, data>;
using OnPart = ShardedTensor<double, Mesh<data>, P<data, _>>;
}  // namespace

TEST_CASE(
    "what a Program over parts says: parts, moves, contracts, memory, and all of it recorded") {
  CHECK(quiet(texts_of(4, [&](const std::shared_ptr<Transport>& world) -> std::string {
    const auto mesh = make_mesh<Two>(world, 2, 2);
    const auto first = mesh.part<stage>(0), second = mesh.part<stage>(1);
    const auto x = from_function<OnPart>(first, {8, 6}, Numbered{1});
    const auto f = [&](const OnPart& a) {
      return sum<"ij->", P<>>(reshard<OnPart>(a * a, second));
    };
    auto compiled = compile(f);
    const auto y = compiled(x);
    const Program program = compiled.program();
    const std::string text = explain(compiled);
    for (const char* part :
         {"program on stage=2 x data=2", "  stage=0\n", "  the mesh\n", "  stage=1\n",
          "P<data,_> on stage=1", "all-reduce over data", "exchange over stage,data"})
      if (text.find(part) == std::string::npos) return "no " + std::string(part) + " in " + text;
    REQUIRE_THAT(program.payload_bytes() == 4 * 6 * 8);  // a block goes once
    REQUIRE_THAT(check(program, payload_at_most(4 * 6 * 8)).kept);
    const auto broken = check(program, payload_at_most(8));
    REQUIRE_THAT(!broken.kept && broken.text.find("process 0") != std::string::npos);
    REQUIRE_THAT(!check(program, only(over<Two, data>(all_reduce))).kept);
    REQUIRE_THAT(check(program, only({over<Two, data>(all_reduce),
                                      over(Collective::exchange, AxisSet{0, 1})}))
                     .kept);
    REQUIRE_THAT(simulate(program).fault.empty());
    // A block of 192 bytes to the other stage, and there a sum of 8 in two rounds of 4.
    const Network network = Network::nodes(4, 1, {1000, 0}, {1000, 0});
    REQUIRE_THAT(std::abs(simulate(program, network, {.computes = false}).seconds - 0.2) < 1e-9);
    for (int p = 0; p < 4; ++p) REQUIRE_THAT(on_process(program, p).payload_bytes() == 192);
    REQUIRE_THAT(!explain_memory(program).empty() && !explain_all(program).empty());
    REQUIRE_THAT(!simulated_trace(program).events.empty());
    (void)compiled(from_function<OnPart>(first, {10, 6}, Numbered{1}));
    REQUIRE_THAT(compiled.explain_structures().find("call 2 differs from call 1") !=
                 std::string::npos);
    (void)compiled(x);
    Recording recording(mesh.core());
    (void)f(x);
    const Program recorded = recording.take();
    REQUIRE_THAT(recorded.size() == compiled.listed().size());
    for (int i = 0; i < recorded.size(); ++i) {
      const ProgramEntry &a = recorded.entry(i), &b = compiled.listed().entry(i);
      REQUIRE_THAT(a.label == b.label);
      REQUIRE_THAT(recorded.part_at(a.part).name == compiled.listed().part_at(b.part).name);
    }
    REQUIRE_THAT(recorded.own_payload_bytes() == program.own_payload_bytes());
    REQUIRE_THAT(recorded.peak_bytes() - recorded.held_by_others() ==
                 compiled.listed().peak_bytes() - compiled.listed().held_by_others());
    if (second.takes_part()) REQUIRE_THAT(value(y) > 0);
    return "";
  })));
}

TEST_CASE("parts that are mixed are named, and a process that lists other calls is found out") {
  CHECK(quiet(texts_of(4, [&](const std::shared_ptr<Transport>& world) -> std::string {
    const auto mesh = make_mesh<Two>(world, sizes<Two>(2, 2), {.check = Check::light});
    const auto first = mesh.part<stage>(0), second = mesh.part<stage>(1);
    const auto x = from_function<OnPart>(first, {8, 6}, Numbered{1});
    const auto y = from_function<OnPart>(second, {8, 6}, Numbered{2});
    const std::string mixed = complaint_of([&] { (void)compile([&] { return x + y; })(); });
    REQUIRE_THAT(mixed.find("data=2 (stage=0 of stage=2 x data=2)") != std::string::npos);
    REQUIRE_THAT(mixed.find("data=2 (stage=1 of stage=2 x data=2)") != std::string::npos);
    const std::string chosen = complaint_of([&] {
      (void)compile([&] { return std::pair(x + x, y + y); }, {.choose = ChooseOptions{}})();
    });
    REQUIRE_THAT(chosen.find("shardings are chosen for a function whose operators are all on one "
                             "mesh") != std::string::npos);
    const bool odd = world->process() == 3;
    const auto f = [&](const OnPart& a) {
      const OnPart there = reshard<OnPart>(odd ? a + a : a * a, second);
      return there * y;
    };
    const std::string text = complaint_of([&] { (void)compile(f)(x); });
    REQUIRE_THAT(text.find("the compiled function of 3 operators") != std::string::npos);
    return "";
  })));
}

TEST_CASE("what a later part reads lives until then, and an argument that is given away ends") {
  CHECK(quiet(texts_of(2, [&](const std::shared_ptr<Transport>& world) -> std::string {
    const auto mesh = make_mesh<Two>(world, 2, 1);
    const auto first = mesh.part<stage>(0), second = mesh.part<stage>(1);
    auto x = from_function<OnPart>(first, {64, 64}, Numbered{1});
    const auto steps = [&](OnPart a) {
      OnPart b = a + 1.0;
      a = OnPart();
      const OnPart c = b * 2.0;
      b = OnPart();
      OnPart there = reshard<OnPart>(c, second);
      for (int i = 0; i < 3; ++i) there = there + there;
      return there;
    };
    auto compiled = compile(steps);
    const Index block = 64 * 64 * 8;
    (void)compiled(x);
    REQUIRE_THAT(compiled.program().peak_bytes() == (first.takes_part() ? 3 : 2) * block);
    const auto y = compiled(std::move(x));
    x = OnPart();
    // The first sum lies where the argument ends; what is seen by the move has memory of its own.
    REQUIRE_THAT(compiled.program().peak_bytes() == 2 * block);
    REQUIRE_THAT(mesh.core()->arena().together().now == (second.takes_part() ? block : 0));
    return "";
  })));
}

TEST_CASE("tensors of a part are numbered alike where it works and where it does not") {
  CHECK(quiet(texts_of(4, [](const std::shared_ptr<Transport>& world) -> std::string {
    const auto mesh = make_mesh<Two>(world, 2, 2);
    const auto first = mesh.part<stage>(0);
    std::vector<OnPart> many;
    for (int i = 0; i < 100; ++i) many.push_back(zeros<OnPart>(first, {4, 2}));
    REQUIRE_THAT(mesh.core()->arena().together().now ==
                 (first.takes_part() ? 100 * detail::arena_charge(64) : 0));
    Recording recording(mesh.core());
    const OnPart y = many.back() + many.back();
    const OnPart z = y + many.front();
    const Program program = recording.take();
    REQUIRE_THAT(program.size() == 2);
    for (const ProgramTensor& t : program.tensors())
      REQUIRE_THAT(t.first == (t.made < 0 ? 0 : t.made));
    REQUIRE_THAT(program.tensor(program.entry(1).result).made == 1);
    return "";
  })));
}

TEST_CASE("a move that finds no memory for its result says which, compiled too") {
  std::vector<std::string> texts[2];
  for (const bool compiles : {false, true})
    texts[compiles] = texts_of(2, [&](const std::shared_ptr<Transport>& world) -> std::string {
      const auto mesh = make_mesh<Two>(world, sizes<Two>(2, 1), {.memory_limit = 40'000});
      const auto first = mesh.part<stage>(0), second = mesh.part<stage>(1);
      const auto x = from_function<OnPart>(first, {64, 64}, Numbered{1});
      const auto held = from_function<OnPart>(second, {64, 64}, Numbered{1});
      const auto move = [&](const OnPart& a) { return reshard<OnPart>(a, second); };
      if (compiles)
        (void)compile(move)(x);
      else
        (void)move(x);
      return "";
    });
  CHECK(all_say(texts[0], "reshard: the arena is full: 32768 bytes were asked for"));
  CHECK(texts[0] == texts[1]);
}

TEST_CASE("structures of a mesh are kept alike by its processes, whatever some call elsewhere") {
  CHECK(quiet(texts_of(4, [&](const std::shared_ptr<Transport>& world) -> std::string {
    const auto mesh = make_mesh<Two>(world, 2, 2);
    const auto first = mesh.part<stage>(0);
    auto f = compile(
        [](const DynamicTensor& a) { return reduce<Sum>("ij->", a + a, Sharding::replicated(0)); },
        {.most_structures = 1});
    const DynamicTensor part = from_function<OnPart>(first, {8, 6}, Numbered{1});
    const auto on_mesh = [&](Index rows) -> DynamicTensor {
      return from_function<ShardedTensor<double, Two, P<data, _>>>(mesh, {rows, 6}, Numbered{1});
    };
    const DynamicTensor x = on_mesh(8), wide = on_mesh(10);
    for (int round = 0; round < 2; ++round) {
      (void)f(x);
      if (first.takes_part()) (void)f(part);
      (void)f(x);
    }
    REQUIRE_THAT(f.structures() == (first.takes_part() ? 2 : 1));
    for (const DynamicTensor& one : {wide, x}) (void)f(one);
    REQUIRE_THAT(f.structures() == (first.takes_part() ? 4 : 3));  // one of a mesh is kept
    if (first.takes_part()) (void)f(part);
    REQUIRE_THAT(f.structures() == (first.takes_part() ? 4 : 3));
    return "";
  })));
}

TEST_CASE("meshes of a function are taken or refused alike in every order") {
  CHECK(quiet(texts_of(4, [&](const std::shared_ptr<Transport>& world) -> std::string {
    const auto mesh = make_mesh<Two>(world, 2, 2);
    const auto first = mesh.part<stage>(0);
    const DynamicTensor part = from_function<OnPart>(first, {8, 6}, Numbered{1});
    const DynamicTensor whole =
        from_function<ShardedTensor<double, Two, P<data, _>>>(mesh, {8, 6}, Numbered{1});
    const auto alone = make_mesh<Mesh<data>>(world->among({world->process()}), 1);
    const DynamicTensor own = from_function<OnPart>(alone, {8, 6}, Numbered{1});
    // A function that catches what refuses a mesh goes on without that mesh.
    std::string refused;
    const DynamicTensor kept = compile([&] {
      const DynamicTensor y = whole + whole;
      refused = complaint_of([&] { (void)(own + own); });
      return y * y;
    })();
    REQUIRE_THAT(refused.find("of other processes") != std::string::npos);
    REQUIRE_THAT(to_host<double>(kept) == to_host<double>((whole + whole) * (whole + whole)));
    if (!first.takes_part()) return "";
    const auto independent = make_mesh<Mesh<data>>(world->among({0, 1}), 2);
    const DynamicTensor other = from_function<OnPart>(independent, {8, 6}, Numbered{1});
    for (const bool turned : {false, true}) {
      const auto [a, b] = compile([&] {
        const DynamicTensor y = turned ? other + other : part + part;
        return std::pair(y, turned ? part + part : other + other);
      })();
      REQUIRE_THAT(to_host<double>(a) == to_host<double>(b));
      REQUIRE_THAT(to_host<double>(a) == to_host<double>(part + part));
    }
    std::vector<int> order{0, 1, 2};
    do {
      detail::Listing calls(detail::ListsOn::one_world);
      std::string said;
      {
        const detail::TakenBy scope(&calls);
        for (const int i : order) {
          const DynamicTensor& x = i == 0 ? part : i == 1 ? other : whole;
          said += complaint_of([&] { (void)(x + x); });
        }
      }
      REQUIRE_THAT(calls.meshes().size() == 2);
      REQUIRE_THAT(said.find("stage=2 x data=2") != std::string::npos);
      REQUIRE_THAT(said.find("(stage=0 of") == std::string::npos);
    } while (std::next_permutation(order.begin(), order.end()));
    return "";
  })));
}

TEST_CASE("a recorded operator is in the layers that are open around its mesh") {
  CHECK(quiet(texts_of(4, [&](const std::shared_ptr<Transport>& world) -> std::string {
    const auto mesh = make_mesh<Two>(world, 2, 2);
    const auto first = mesh.part<stage>(0);
    const auto x = from_function<OnPart>(first, {8, 6}, Numbered{1});
    const Layer before(mesh, "before");
    Recording of_part(first.core()), of_mesh(mesh.core());
    {
      const Layer outer(mesh, "outer");
      (void)(x + x);
      {
        const Layer inner(first, "inner");
        (void)(x * x);
      }
      (void)(x - x);
    }
    (void)(x + x);
    {
      const Layer outer(first, "outer");
      (void)(x + x);
    }
    for (const Program& p : {of_part.take(), of_mesh.take()}) {
      std::string paths;
      for (const ProgramEntry& e : p.entries()) paths += p.layer_path(e.layer) + ";";
      if (paths != "outer;outer/inner;outer;;outer;") return paths;
      REQUIRE_THAT(p.layers().size() == 3);
    }
    return "";
  })));
}

TEST_CASE("a tensor that begins later takes up no memory beside an earlier piece") {
  CHECK(quiet(texts_of(4, [&](const std::shared_ptr<Transport>& world) -> std::string {
    const auto mesh = make_mesh<Two>(world, 2, 2);
    const auto first = mesh.part<stage>(0), second = mesh.part<stage>(1);
    const auto x = from_function<OnPart>(first, {8, 6}, Numbered{1});
    Recording recording(mesh.core());
    (void)(reshard<P<_, _>>(x) + reshard<P<_, _>>(x));  // one would do
    const OnPart late(TensorCore::make(second.core(), {DType::f64, {64, 64}, OnPart::sharding()}));
    (void)(late + late);
    const Program program = recording.take();
    REQUIRE_THAT(program.size() == 4);
    const Index block = 32 * 64 * 8;  // of what is late
    REQUIRE_THAT(tessera::share(program, plan_options(*mesh.core()), block / 2).moves.size() == 1);
    return "";
  })));
}
