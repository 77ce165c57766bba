// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A pipeline as a sharding: values and gradients are those of the stages one after the other, on
// any mesh, and no stage reads what it has in a turn without a micro-batch.
#include <doctest/doctest.h>

#include <cmath>

#include <tessera/grad.hpp>
#include <tessera/op/compile.hpp>
#include <tessera/pipeline.hpp>

#include "op/cases.hpp"
#include "op/texts_of.hpp"

using namespace support;

namespace {

struct stage : Axis<> {};
struct data : Axis<> {};
using Grid = Mesh<stage, data>;
using Weights = ShardedTensor<double, Grid, P<stage, _, _>>;
using Batches = ShardedTensor<double, Grid, P<_, data, _>>;
using State = ShardedTensor<double, Grid, P<stage, data, _>>;
constexpr Index width = 3;

/// x, and where zeros are given a number that is none.
struct OnlyOfZeros {
  template <class T> KOKKOS_FUNCTION T operator()(T x, T norm) const {
    return norm == T{} ? static_cast<T>(NAN) : x;
  }
};
State of_stages(const Weights& w, const State& s) {
  return State(tanh(einsum<"sik,skj->sij">(s, w)));
}

std::string shifted_case(const std::shared_ptr<Transport>& transport, int parts, Index stages,
                         Index m, Index rows, bool compiled) {
  const auto mesh = make_mesh<Grid>(transport, parts, transport->size() / parts);
  const auto w = random_normal<Weights>(mesh, {stages, width, width}, 1);
  const auto x = random_normal<Batches>(mesh, {m, rows, width}, 2);
  const auto target = random_normal<Batches>(mesh, {m, rows, width}, 3);
  const auto loss = [&](const Weights& v, const Batches& given) {
    const Batches y = shifted<stage>(
        [](const Weights& all, const State& s) { return of_stages(all, s); }, v, given, stages);
    return sum(square(y - target));
  };
  const auto expected = [&](const Weights& v, const Batches& given) {
    using Whole = ShardedTensor<double, Grid, P<_, _, _>>;
    const Whole all = reshard<P<_, _, _>>(v);
    Whole y = reshard<P<_, _, _>>(given);
    for (Index s = 0; s < stages; ++s) {
      const auto one = reshape<P<_, _>>(slice<0>(all, {s}, {s + 1}), {width, width});
      y = Whole(tanh(einsum<"bik,kj->bij">(y, one)));
    }
    return sum(square(y - reshard<P<_, _, _>>(target)));
  };
  const auto both = value_and_grad<0, 1>(loss);
  auto step = compile([&](const Weights& v, const Batches& given) { return both(v, given); });
  const auto ours = compiled ? step(w, x) : both(w, x);
  const auto theirs = value_and_grad<0, 1>(expected)(w, x);
  const auto apart = [](const auto& a, const auto& b) {
    const auto u = to_host(a), v = to_host(b);
    double most = 0, scale = 1e-300;
    for (std::size_t i = 0; i < u.values.size(); ++i) {
      most = std::max(most,
                      std::abs(u.values[i] - v.values[i]) + (std::isfinite(u.values[i]) ? 0 : 1e9));
      scale = std::max(scale, std::abs(v.values[i]));
    }
    return most / scale;
  };
  const std::string label = std::to_string(stages) + " stages on " + std::to_string(parts) + ", " +
                            std::to_string(m) + " micro-batches of " + std::to_string(rows) +
                            " rows: ";
  if (apart(ours.value, theirs.value) > 1e-12) return label + "the value differs";
  if (apart(std::get<0>(ours.gradient), std::get<0>(theirs.gradient)) > 1e-12)
    return label + "the gradient of the weights differs";
  if (apart(std::get<1>(ours.gradient), std::get<1>(theirs.gradient)) > 1e-12)
    return label + "the gradient of the batches differs";
  return "";
}

}  // namespace

TEST_CASE("pipeline: as a sharding, any stages and micro-batches on any mesh") {
  const std::uint64_t seed = seed_for("shifted pipelines", 383);
  for (const int processes : {1, 2, 3, 4, 6, 8})
    for (int round = 0; round < cases_of(3, 20); ++round) {
      Random random(seed + static_cast<std::uint64_t>(100 * processes + round));
      int parts;
      do {
        parts = 1 + random.below(processes);
      } while (processes % parts != 0);
      const Index stages = 1 + random.below(5), m = 1 + random.below(10),
                  rows = 1 + random.below(5);
      const bool compiled = random.chance(30);
      CHECK(quiet(texts_of(processes, [&](const std::shared_ptr<Transport>& t) {
        return shifted_case(t, parts, stages, m, rows, compiled);
      })));
    }
}

TEST_CASE("pipeline: as a sharding, what stages make of no micro-batch is in no result") {
  CHECK(quiet(texts_of(4, [](const std::shared_ptr<Transport>& transport) -> std::string {
    const auto mesh = make_mesh<Grid>(transport, 2, 2);
    const auto w = random_normal<Weights>(mesh, {4, width, width}, 1);
    const auto x = random_normal<Batches>(mesh, {3, 4, width}, 2);
    const auto made = [&](bool spoilt) {
      return to_host(shifted<stage>(
          [spoilt](const Weights& all, const State& s) {
            const State y = of_stages(all, s);
            return spoilt ? State(map(OnlyOfZeros{}, y, abs(s))) : y;
          },
          w, x, 4));
    };
    const auto clean = made(false);
    for (const double v : clean.values) REQUIRE_THAT(std::isfinite(v));
    REQUIRE_THAT(made(true) == clean);
    return "";
  })));
}
