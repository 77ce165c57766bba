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
