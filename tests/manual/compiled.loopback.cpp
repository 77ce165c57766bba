// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions that are compiled around manual functions.
#include <doctest/doctest.h>

#include "manual/compiled_case.hpp"
#include "op/texts_of.hpp"

using namespace support;

TEST_CASE("a random function around manual functions is the same compiled, and so its gradients") {
  const std::uint64_t seed = seed_for("compiled manual programs", 724);
  for (const int processes : {1, 2, 3, 4, 6, 8}) {
    const auto texts = texts_of(processes, [&](const std::shared_ptr<Transport>& world) {
      for (int round = 0; round < cases_of(4, 40); ++round) {
        Random random(seed + static_cast<std::uint64_t>(100 * processes + round));
        if (const std::string text = compiled_manual_case(world, random, 4); !text.empty())
          return text;
      }
      return std::string();
    });
    CHECK(quiet(texts));
  }
}

TEST_CASE("manual functions within one another, of other axes, compiled with their gradients") {
  const auto on = [](const ProcessMesh<Grid>& mesh) -> std::string {
    const auto f = [](const InGrid<model, data>& a) {
      return sum(manual<model>([](const auto& rows) {
        const auto inner = manual<data>([](const auto& block) {
          return along<1, data>(block * all_reduce_over<data>(sin(block)));
        })(rows);
        return along<0, model>(inner + all_reduce_over<model>(inner));
      })(a));
    };
    const auto step = [&](const InGrid<model, data>& a) {
      const auto [value, by] = value_and_grad(f)(a);
      return std::vector<DynamicTensor>{value, by};
    };
    const auto x = from_function<InGrid<model, data>>(mesh, {6, 4}, Sines{0.4});
    auto compiled = compile(step, {.share = false, .join = false});
    for (int call = 0; call < 2; ++call)
      if (const auto text = results_apart(compiled(x), step(x), 0); !text.empty()) return text;
    REQUIRE_THAT(compiled.structures() == 1);
    REQUIRE_THAT(compiled.program().parts().size() == 3);
    REQUIRE_THAT(explain(compiled).find("manual data, model\n") != std::string::npos);
    return "";
  };
  CHECK(quiet(texts_of(4, [&](const std::shared_ptr<Transport>& world) {
    return on(make_mesh<Grid>(world, 2, 2));
  })));
  CHECK(quiet(texts_of(8, [&](const std::shared_ptr<Transport>& world) {
    const auto mesh = make_mesh<Mesh<data, fixed::stage, model>>(world, 2, 2, 2);
    return on(mesh.part<fixed::stage>(1));
  })));
}

TEST_CASE("a block that leaves under two shardings is two values") {
  for (const auto& [d, m] : {std::pair{2, 2}, {1, 4}, {4, 1}})
    CHECK(quiet(texts_of(
        d * m, [rows = d, columns = m](const std::shared_ptr<Transport>& world) -> std::string {
          const auto mesh = make_mesh<Grid>(world, rows, columns);
          using X = InGrid<Axes<data, model>, _>;
          const auto f = [](const X& x) {
            const auto both = manual<data, model>([](const auto& block) {
              const auto y = block * 2.0;
              return std::tuple(along<0, data, model>(y), along<0, model, data>(y));
            })(x);
            const InGrid<_, _> a = reshard<P<_, _>>(std::get<0>(both));
            return std::vector<DynamicTensor>{a + reshard<P<_, _>>(std::get<1>(both)) * 3.0};
          };
          const auto x = from_function<X>(mesh, {8, 3}, Sines{0.2});
          auto compiled = compile(f);
          return results_apart(compiled(x), f(x), 1e-15);
        })));
}

TEST_CASE("a function within manual mode is the same compiled") {
  CHECK(quiet(texts_of(4, [](const std::shared_ptr<Transport>& world) -> std::string {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto twice = [](const EqualBlock<_, data>& e) {
      const auto v = varying<model>(e * 2.0);
      const auto sum = v + v;
      return std::tuple(sum, e * 5.0);  // which takes memory that has ended
    };
    auto compiled = compile(twice);
    const auto x = from_function<InGrid<_, data>>(mesh, {3, 4}, Sines{0.7});
    const auto whole = [&](auto& f) {
      const auto both = manual<model>([&](const auto& e) {
        const auto made = f(e);
        return std::tuple(along<0, model>(std::get<0>(made)), std::get<1>(made));
      })(x);
      return std::vector<DynamicTensor>{std::get<0>(both), std::get<1>(both)};
    };
    for (int call = 0; call < 2; ++call)
      if (const auto text = results_apart(whole(compiled), whole(twice), 0); !text.empty())
        return text;
    return "";
  })));
}

TEST_CASE(
    "a broken promise is found where values are there, and passes where they are made later") {
  CHECK(quiet(texts_of(4, [](const std::shared_ptr<Transport>& world) -> std::string {
    MeshOptions options;
    options.check = Check::communicating;
    const auto mesh = make_mesh<Grid>(world, sizes<Grid>(2, 2), options);
    const auto x = from_function<InGrid<_, data>>(mesh, {3, 4}, Sines{0.7});
    const auto breaks = [](const InGrid<_, data>& a) {
      return manual<model>([](const auto& e) {
        const auto total = all_reduce_over<model>(varying<model>(e));  // under way, in async
        return equal_by_promise<model>(total * (cast<double>(axis_index<model>(e)) + 1.0));
      })(a);
    };
    const std::string now = complaint_of([&] { (void)breaks(x); });
    REQUIRE_THAT(now.find("the call promises that they are equal") != std::string::npos);
    const auto own = [&](const auto& y) {  // each process has what it has made
      const auto block = to_host(manual<model>(
          [](const auto& e) { return all_gather_over<model>(varying<model>(e)); })(y));
      return block(1, 2, 3) == 2 * block(0, 2, 3) && block(0, 2, 3) != 0;
    };
    REQUIRE_THAT(own(compile(breaks)(x)));
    auto pending = async([&] { return breaks(x); });
    REQUIRE_THAT(own(pending.wait()));
    return "";
  })));
}

TEST_CASE("calls that differ in what leaves last are of two structures") {
  CHECK(quiet(texts_of(4, [](const std::shared_ptr<Transport>& world) -> std::string {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    bool leaves = false;
    const auto f = [&](const InGrid<_, data>& x) {
      const InGrid<_, data> y = x * 2.0;
      if (!leaves) return std::vector<DynamicTensor>{y};
      return std::vector<DynamicTensor>{y, manual<model>([](const auto& e) { return e; })(y)};
    };
    auto compiled = compile(f);
    const auto x = from_function<InGrid<_, data>>(mesh, {3, 4}, Sines{0.7});
    for (int call = 0; call < 4; ++call) {
      leaves = call % 2 == 1;
      if (const auto text = results_apart(compiled(x), f(x), 0); !text.empty()) return text;
    }
    REQUIRE_THAT(compiled.structures() == 2);
    return "";
  })));
}

TEST_CASE("manual functions on two parts, with moves between, are the same compiled") {
  const std::uint64_t seed = seed_for("compiled manual programs on parts", 726);
  for (const int processes : {1, 2, 3, 4, 6, 8}) {
    const auto texts = texts_of(processes, [&](const std::shared_ptr<Transport>& world) {
      for (int round = 0; round < cases_of(3, 30); ++round) {
        Random random(seed + static_cast<std::uint64_t>(100 * processes + round));
        if (const std::string text = compiled_stages_case(world, random, 3); !text.empty())
          return text;
      }
      return std::string();
    });
    CHECK(quiet(texts));
  }
}

TEST_CASE("what a Program says of a manual function on a part, and a Recording of the part") {
  using fixed::stage;
  CHECK(quiet(texts_of(8, [](const std::shared_ptr<Transport>& world) -> std::string {
    const auto mesh = make_mesh<Mesh<stage, data, model>>(world, 2, 2, 2);
    const auto part = mesh.part<stage>(1);
    const auto x = from_function<InGrid<model, data>>(part, {4, 6}, Sines{0.1});
    const auto f = [](const InGrid<model, data>& a) {
      return manual<model>([](const auto& block) {
        const Layer scope(block, "block");
        return all_reduce_over<model>(layer("square", [](const auto& b) { return b * b; })(block));
      })(a);
    };
    auto compiled = compile(f);
    const auto y = compiled(x);
    const std::string text = explain(compiled);
    for (const char* words : {"program on data=2 x model=2", "manual model\n", "block/square"})
      if (text.find(words) == std::string::npos) return "no " + std::string(words) + " in " + text;
    const Program& listed = compiled.listed();
    REQUIRE_THAT(listed.parts().size() == 2);
    REQUIRE_THAT(listed.mesh.processes() == 4);
    REQUIRE_THAT(check(listed, only(over<Grid, model>(all_reduce))).kept);
    REQUIRE_THAT(!check(listed, only(over<Grid, data>(all_reduce))).kept);
    Recording of_part(part.core()), of_mesh(mesh.core());
    (void)f(x);
    const Program whole = of_mesh.take(), own = of_part.take();
    REQUIRE_THAT(whole.size() == own.size() && own.size() == listed.size());
    for (int i = 0; i < own.size(); ++i) {
      const ProgramEntry &a = own.entry(i), &b = listed.entry(i), &c = whole.entry(i);
      REQUIRE_THAT(a.label == b.label && a.label == c.label);
      const std::string& name = own.part_at(a.part).name;
      REQUIRE_THAT(name == listed.part_at(b.part).name);
      REQUIRE_THAT(whole.part_at(c.part).name == (name.empty() ? "stage=1" : "stage=1, " + name));
      REQUIRE_THAT(own.layer_path(a.layer) == listed.layer_path(b.layer));
      REQUIRE_THAT(whole.layer_path(c.layer) == listed.layer_path(b.layer));
    }
    for (int p = 0; p < 8; ++p)
      REQUIRE_THAT(on_process(whole, p).own_payload_bytes() ==
                   (p < 4 ? 0 : on_process(own, p - 4).own_payload_bytes()));
    REQUIRE_THAT(whole.own_payload_bytes() == (part.takes_part() ? listed.own_payload_bytes() : 0));
    REQUIRE_THAT(whole.peak_bytes() == (part.takes_part() ? own.peak_bytes() : 0));
    if (part.takes_part()) REQUIRE_THAT(value(sum(y)) > 0);
    const auto other = from_function<InGrid<model, data>>(mesh.part<stage>(0), {4, 6}, Sines{0.1});
    const std::string mixed = complaint_of([&] {
      (void)manual<model>(
          [](const auto& a, const auto& b) { return all_reduce_over<model>(a + b); })(x, other);
    });
    for (const char* words : {"(stage=1, manual model of stage=2 x data=2 x model=2)",
                              "(stage=0, manual model of stage=2 x data=2 x model=2)"})
      if (mixed.find(words) == std::string::npos)
        return "no " + std::string(words) + " in " + mixed;
    return "";
  })));
}
