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
  CHECK(quiet(texts_of(4, [&](const std::shared_ptr<Transport>& world) -> std::string {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
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

namespace {
struct stage : Axis<> {};
}  // namespace

TEST_CASE("a manual function on tensors of a part says the way out, on every process") {
  using OnPart = ShardedTensor<double, Mesh<data>, P<data, _>>;
  const auto texts = texts_of(4, [](const std::shared_ptr<Transport>& world) -> std::string {
    const auto mesh = make_mesh<Mesh<stage, data>>(world, 2, 2);
    const auto part = mesh.part<stage>(0);
    const auto x = from_function<OnPart>(part, {4, 3}, Sines{0.1});
    const auto twice = manual<data>([](const auto& a) { return along<0, data>(a + a); });
    const std::string own = complaint_of([&] { (void)manual_mesh<data>(part); });
    return own.find("Transport::among") == std::string::npos
               ? "manual_mesh says: " + own
               : complaint_of([&] { (void)twice(x); });
  });
  CHECK(all_say(texts,
                "manual: a manual function is called on the mesh data=2 (stage=0 of stage=2 x "
                "data=2), a part of a mesh"));
}
