// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A pipeline as a sharding within which data, tensor and expert axes split its layers, and whose
// turns without a micro-batch make numbers that are none: the results and all gradients are those
// of one process.
#include <doctest/doctest.h>

#include <array>

#include "op/texts_of.hpp"
#include "pipeline/nested_stages.hpp"

using namespace nested_test;
using support::quiet, support::texts_of;

namespace {

struct stage : Axis<> {};
struct data : Axis<> {};
struct tensor : Axis<> {};
struct expert : Axis<> {};
using Grid = Mesh<stage, data, tensor, expert>;
using Layers = Nested<Grid, stage, Axes<data, expert>, tensor, expert>;
using State = Layers::State;

/// The sum of squares of what the stages make, and all gradients. `spoilt`: what a stage makes of
/// zeros alone is no number.
std::vector<double> numbers_on(const ProcessMesh<Grid>& mesh, const Sizes& n, const Extents& rows,
                               bool turns, bool spoilt) {
  Parameters<Grid> make(mesh, 7);
  const auto w = Layers::Layer::like(make, n);
  const auto x = random_normal<Layers::Rows>(mesh, rows, 8);
  const auto loss = [&](const Layers::Layer& all, const Layers::Rows& given) {
    if (!turns)
      return sum(square(Layers::in_order(
          [](const auto& own, const State& s, Index z) { return Layers::encoder(own, s, z); }, all,
          given, n.stages)));
    return sum(square(shifted<stage>(
        [&](const auto& own, const State& s) {
          const State y = Layers::encoder(own, s);
          return spoilt ? State(y + stop_gradient(map(NoneOfZero{}, s))) : y;
        },
        all, given, n.stages)));
  };
  const auto [value_of, gradient] = value_and_grad<0, 1>(loss)(w, x);
  std::vector<double> all{value(value_of)};
  append(all, std::get<0>(gradient));
  append(all, std::get<1>(gradient));
  return all;
}

}  // namespace

TEST_CASE(
    "pipeline: as a sharding, with data, tensor and expert axes, and idle turns of no number") {
  struct Case {
    Sizes n;
    Extents rows;
  };
  for (const Case& c :
       {Case{{.stages = 4}, {3, 4, 3, 8}},
        Case{{.stages = 3, .embed = 5, .heads = 3, .each = 2, .hidden = 7, .experts = 3},
             {2, 3, 2, 5}}}) {
    std::vector<double> wanted;
    run_loopback(1, [&](std::shared_ptr<Transport> world) {
      wanted = numbers_on(make_mesh<Grid>(world, 1, 1, 1, 1), c.n, c.rows, false, false);
    });
    for (const std::array<int, 4>& shape : {std::array{1, 1, 1, 1},
                                            {2, 1, 1, 1},
                                            {4, 1, 1, 1},
                                            {2, 2, 1, 1},
                                            {2, 1, 1, 2},
                                            {3, 1, 2, 1},
                                            {2, 1, 2, 2},
                                            {2, 2, 1, 2},
                                            {2, 2, 2, 1},
                                            {1, 2, 2, 2},
                                            {4, 1, 1, 2}}) {
      const int processes = shape[0] * shape[1] * shape[2] * shape[3];
      CHECK(quiet(texts_of(processes, [&](const std::shared_ptr<Transport>& world) {
        const auto mesh = make_mesh<Grid>(world, shape[0], shape[1], shape[2], shape[3]);
        const double by = apart(numbers_on(mesh, c.n, c.rows, true, true), wanted);
        return by <= 1e-12
                   ? std::string()
                   : "on " + mesh.core()->to_string() + " they differ by " + std::to_string(by);
      })));
    }
  }
}
