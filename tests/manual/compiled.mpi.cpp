// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: layers
// Functions that are compiled around manual functions, and the uses of manual mode, under MPI: what
// MPI sees is what the Program says.
#include <doctest/doctest.h>

#include <algorithm>

#include "manual/compiled_case.hpp"
#include "manual/uses.hpp"
#include "op/any_process.hpp"
#include "op/signature.hpp"
#include "support/world.hpp"

using namespace support;

TEST_CASE("a random function around manual functions is the same compiled under MPI") {
  Signature signature;
  observer = &signature;
  const std::uint64_t seed =
      seed_for("compiled manual programs under MPI", 725, world()->process() == 0);
  const int rounds = std::max(4, cases_of(4, 30));  // of fewer none may communicate
  for (int round = 0; round < rounds; ++round) {
    Random random(seed + static_cast<std::uint64_t>(round));
    const std::string text = round % 2 == 0 ? compiled_manual_case(world(), random, 4)
                                            : compiled_stages_case(world(), random, 3);
    CHECK_MESSAGE(text.empty(), text);
    if (!text.empty()) break;
  }
  CHECK((signature.calls > 0 || world()->size() == 1));
  observer = nullptr;
}

TEST_CASE("attention in a ring and products that travel under MPI are the automatic ones") {
  MeshOptions options;
  options.check = Check::normal;
  options.shared = Shared::off;
  for (const int d : {1, 2}) {
    const int n = world()->size(), m = n / d;
    if (n % d != 0) continue;
    const auto mesh = make_mesh<Grid>(world(), sizes<Grid>(d, m), options);
    const std::vector<std::shared_ptr<MeshCore>> meshes{mesh.core(),
                                                        manual_mesh<model>(mesh).core()};
    const auto squares = [](const auto& of) {
      return [of](const auto&... x) {
        const auto y = of(x...);
        return sum(y * y);
      };
    };
    std::string text;
    {
      const auto q = from_function<RingQueries>(mesh, {3, 3 * m, 2, 2, 5}, Waves{0.1});
      const auto k = from_function<RingKeys>(mesh, {3, 3 * m, 2, 5}, Waves{0.7});
      const auto v = from_function<RingKeys>(mesh, {3, 3 * m, 2, 5}, Waves{1.9});
      const auto ring = ring_on(mesh, 3, true, true);
      const auto blocked = [](const auto&... x) {
        return blocked_attention(x..., {.causal = true, .block = 2});
      };
      text += unlike<0, 1, 2>(squares(ring), squares(blocked), q, k, v);
      text += as_any_process_plans(meshes, [&] { return ring(q, k, v); });
      text += as_any_process_plans(meshes,
                                   [&] { return value_and_grad<0, 1, 2>(squares(ring))(q, k, v); });
    }
    const auto product = [&](const auto& by_hand, const auto& x, const auto& w,
                             const auto& automatic) {
      text += unlike<0, 1>(squares(by_hand), squares(automatic), x, w);
      text += as_any_process_plans(meshes, [&] { return by_hand(x, w); });
    };
    product(rows_travel, from_function<InGrid<model, data>>(mesh, {3 * m, 4 * m}, Waves{0.3}),
            from_function<InGrid<data, model>>(mesh, {4 * m, 2 * m}, Waves{0.5}),
            [](const auto& a, const auto& b) { return einsum<"ik,kj->ij", P<_, model>>(a, b); });
    product(sums_travel, from_function<InGrid<_, model>>(mesh, {3 * m, 4 * m}, Waves{0.3}),
            from_function<InGrid<model, data>>(mesh, {4 * m, 2 * m}, Waves{0.5}),
            [](const auto& a, const auto& b) { return einsum<"ik,kj->ij", P<model, data>>(a, b); });
    CHECK_MESSAGE(text.empty(), text);
  }
}
