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
#include "support/larger.hpp"

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

double apart(const auto& a, const auto& b) {
  const auto u = to_host(a), v = to_host(b);
  double most = 0, scale = 1e-300;
  for (std::size_t i = 0; i < u.values.size(); ++i) {
    most = larger(most, std::abs(u.values[i] - v.values[i]));
    scale = larger(scale, std::abs(v.values[i]));
  }
  if (!std::isfinite(scale)) return INFINITY;
  return most / scale;
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

/// The weights of stages in rounds: (rounds, stages, k, k), and (rounds, stages, k).
struct InRounds {
  ShardedTensor<double, Grid, P<_, stage, _, _>> matrix;
  ShardedTensor<double, Grid, P<_, stage, _>> bias;
  static constexpr auto fields = Fields<&InRounds::matrix, &InRounds::bias>{};
};

/// Stages in rounds, whose turns without a micro-batch make numbers that are none, against one
/// stage after the other.
std::string rounds_case(const std::shared_ptr<Transport>& transport, int parts, Index stages,
                        Index rounds, Index m, Index rows) {
  const auto mesh = make_mesh<Grid>(transport, parts, transport->size() / parts);
  const InRounds w{
      random_normal<decltype(InRounds::matrix)>(mesh, {rounds, stages, width, width}, 1),
      random_normal<decltype(InRounds::bias)>(mesh, {rounds, stages, width}, 4)};
  const auto x = random_normal<Batches>(mesh, {m, rows, width}, 2);
  const auto target = random_normal<Batches>(mesh, {m, rows, width}, 3);
  const auto ours = value_and_grad<0, 1>([&](const InRounds& v, const Batches& given) {
    const auto f = [](const InRounds& own, const State& s) {
      const auto biased = map<"sij,sj->sij">(fn::Add{}, einsum<"sik,rskj->sij">(s, own.matrix),
                                             reduce<Sum, "rsj->sj">(own.bias));
      return State(tanh(biased) + stop_gradient(map(OnlyOfZeros{}, s * 0.0, abs(s))));
    };
    return sum(square(shifted_in_rounds<stage>(f, v, given, stages, rounds) - target));
  })(w, x);
  const auto theirs = value_and_grad<0, 1>([&](const InRounds& v, const Batches& given) {
    const auto matrices = reshard<P<_, _, _, _>>(v.matrix);
    const auto biases = reshard<P<_, _, _>>(v.bias);
    ShardedTensor<double, Grid, P<_, _, _>> y = reshard<P<_, _, _>>(given);
    for (Index r = 0; r < rounds; ++r)
      for (Index s = 0; s < stages; ++s) {
        const auto matrix =
            reshape<P<_, _>>(slice<0, 1>(matrices, {r, s}, {r + 1, s + 1}), {width, width});
        const auto bias = reshape<P<_>>(slice<0, 1>(biases, {r, s}, {r + 1, s + 1}), {width});
        y = tanh(einsum<"bik,kj->bij">(y, matrix) + bias);
      }
    return sum(square(y - reshard<P<_, _, _>>(target)));
  })(w, x);
  const std::string label = std::to_string(rounds) + " rounds of " + std::to_string(stages) +
                            " stages on " + std::to_string(parts) + ", " + std::to_string(m) +
                            " micro-batches of " + std::to_string(rows) + " rows: ";
  if (apart(ours.value, theirs.value) > 1e-12) return label + "the value differs";
  const auto& [a, by_x] = ours.gradient;
  const auto& [b, by_x_then] = theirs.gradient;
  if (apart(a.matrix, b.matrix) > 1e-12 || apart(a.bias, b.bias) > 1e-12)
    return label + "the gradient of the weights differs";
  if (apart(by_x, by_x_then) > 1e-12) return label + "the gradient of the batches differs";
  return "";
}

/// The stages of a process by themselves (each_stage), against all at once; each has two tensors.
std::string each_stage_case(const std::shared_ptr<Transport>& transport, int parts, Index rounds) {
  const Index stages = 2 * parts, m = 3, rows = 4;
  const auto mesh = make_mesh<Grid>(transport, parts, transport->size() / parts);
  const InRounds w{
      random_normal<decltype(InRounds::matrix)>(mesh, {rounds, stages, width, width}, 1),
      random_normal<decltype(InRounds::bias)>(mesh, {rounds, stages, width}, 4)};
  const auto x = random_normal<Batches>(mesh, {m, rows, width}, 2);
  using Both = std::tuple<decltype(InRounds::matrix), decltype(InRounds::bias)>;
  const auto ours = value_and_grad<0, 1>([&](const Both& v, const Batches& given) {
    const auto f = each_stage<stage>([](const auto& own, const auto& s) {
      const auto& [matrix, bias] = own;
      return tanh(einsum<"ij,jk->ik">(s, matrix) + bias);
    });
    return sum(square(shifted_in_rounds<stage>(f, v, given, stages, rounds)));
  })(Both{w.matrix, w.bias}, x);
  const auto theirs = value_and_grad<0, 1>([&](const Both& v, const Batches& given) {
    const auto f = [](const Both& own, const State& s) {
      return State(tanh(map<"sij,sj->sij">(fn::Add{}, einsum<"sik,rskj->sij">(s, std::get<0>(own)),
                                           reduce<Sum, "rsj->sj">(std::get<1>(own)))));
    };
    return sum(square(shifted_in_rounds<stage>(f, v, given, stages, rounds)));
  })(Both{w.matrix, w.bias}, x);
  const auto& [by_w, by_x] = ours.gradient;
  const auto& [by_w_then, by_x_then] = theirs.gradient;
  const bool alike = apart(ours.value, theirs.value) <= 1e-12 && apart(by_x, by_x_then) <= 1e-12 &&
                     apart(std::get<0>(by_w), std::get<0>(by_w_then)) <= 1e-12 &&
                     apart(std::get<1>(by_w), std::get<1>(by_w_then)) <= 1e-12;
  return alike ? "" : std::to_string(rounds) + " rounds on " + std::to_string(parts) + " differ";
}

}  // namespace

TEST_CASE("pipeline: as a sharding, in rounds, any stages and micro-batches on any mesh") {
  const std::uint64_t seed = seed_for("shifted pipelines in rounds", 384);
  for (const int processes : {1, 2, 3, 4, 6, 8})
    for (int round = 0; round < cases_of(3, 20); ++round) {
      Random random(seed + static_cast<std::uint64_t>(100 * processes + round));
      const int parts = some_divisor(random, processes);
      const Index stages = 1 + random.below(4), rounds = 1 + random.below(3),
                  m = 1 + random.below(6), rows = 1 + random.below(4);
      CHECK(quiet(texts_of(processes, [&](const std::shared_ptr<Transport>& t) {
        return rounds_case(t, parts, stages, rounds, m, rows);
      })));
    }
}

TEST_CASE(
    "pipeline: as a sharding, in rounds, weights move nowhere, and idle turns are as stated") {
  const auto mesh = dry_mesh<Grid>(4, 1);
  const auto w = zeros<ShardedTensor<double, Grid, P<_, stage, _, _>>>(mesh, {3, 4, 5, 5});
  const auto x = zeros<Batches>(mesh, {8, 2, 5});
  int turns = 0;
  Recording recording(mesh);
  (void)shifted_in_rounds<stage>(
      [&](const auto& own, const State& s) {
        ++turns;
        CHECK(own.extents() == Extents{1, 4, 5, 5});
        return State(tanh(einsum<"sik,rskj->sij">(s, own)));
      },
      w, x, 4, 3);
  CHECK(turns == 3 * 8 + 4 - 1);
  const Program program = recording.take();
  int taken = 0;
  for (const ProgramEntry& entry : program.entries())
    if (entry.label.find("rp") == 0) {
      ++taken;
      CHECK(entry.plan->payload_bytes() == 0);
    }
  CHECK(taken == turns);
  CHECK_THROWS_WITH_AS(
      (void)shifted_in_rounds<stage>([](const auto&, const State& s) { return s; }, w, x, 3, 4),
      doctest::Contains("and there are 4 rounds of 3 stages; a weight has both as its first "
                        "dimensions"),
      ShapeError);
}

TEST_CASE("pipeline: as a sharding, any stages and micro-batches on any mesh") {
  const std::uint64_t seed = seed_for("shifted pipelines", 383);
  for (const int processes : {1, 2, 3, 4, 6, 8})
    for (int round = 0; round < cases_of(3, 20); ++round) {
      Random random(seed + static_cast<std::uint64_t>(100 * processes + round));
      const int parts = some_divisor(random, processes);
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

TEST_CASE("pipeline: as a sharding, each stage by itself is as all at once") {
  for (const int processes : {1, 2, 3, 4, 6})
    for (const int parts : {1, 2, 3})
      for (const Index rounds : {1, 2})
        if (processes % parts == 0)
          CHECK(quiet(texts_of(processes, [&](const std::shared_ptr<Transport>& t) {
            return each_stage_case(t, parts, rounds);
          })));
  const auto mesh = dry_mesh<Grid>(4, 1);
  const auto f = each_stage<stage>([](const auto&, const auto& s) { return s; });
  CHECK_THROWS_WITH_AS((void)shifted<stage>(f, zeros<Weights>(mesh, {6, width, width}),
                                            zeros<Batches>(mesh, {2, 4, width}), 6),
                       doctest::Contains("extent 6, and is split into 4 parts"), ShapeError);
}
