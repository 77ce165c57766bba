// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Optimizers against what PyTorch's do with the same weights and gradients
// (tests/nn/optimizers/generate.py).
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <mutex>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <tessera/nn.hpp>
#include <tessera/tessera.hpp>

#include "support/larger.hpp"

using namespace tessera;

namespace {
using Tree = std::vector<DynamicTensor>;
const std::vector<Extents> shapes{{3, 5}, {4}};
constexpr int steps = 6;

struct Case {
  std::string kind;
  bool groups;  // the matrix alone decays
  std::vector<double> numbers, elements;
};
std::vector<Case> cases() {
  std::string path = __FILE__;
  path = path.substr(0, path.rfind('/')) + "/optimizers/cases.txt";
  std::ifstream file(path);
  REQUIRE_MESSAGE(file, path);
  std::vector<Case> all;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Case c;
    words >> c.kind;
    c.groups = c.kind.ends_with("+groups");
    c.kind = c.kind.substr(0, c.kind.find('+'));
    for (int i = c.kind == "sgd" ? 4 : 5; i > 0; --i) words >> c.numbers.emplace_back();
    for (double x; words >> x;) c.elements.push_back(x);
    REQUIRE(c.elements.size() == 19 * (1 + 2 * steps));
    all.push_back(c);
  }
  return all;
}
Tree tree_at(const DynamicMesh& mesh, const Case& c, int at) {
  std::span<const double> from(c.elements);
  from = from.subspan(static_cast<std::size_t>(19 * at), 19);
  return {from_host<double>(mesh, shapes[0], Sharding{{}, {1}}, from.first(15)),
          from_host<double>(mesh, shapes[1], Sharding{{}}, from.last(4))};
}
/// Returns the greatest difference, relative to the larger of the element and 1.
template <class Rule>
double worst_of(const DynamicMesh& mesh, const Case& c, const Rule& rule,
                const UpdatePolicy& policy) {
  Tree weights = tree_at(mesh, c, 0);
  OptimizerOptions options;
  if (c.groups) options.decays = matrices_only;
  Optimizer<Rule, UpdatePolicy> optimizer(rule, weights, options, policy);
  double worst = 0;
  for (int t = 0; t < steps; ++t) {
    optimizer.step(weights, tree_at(mesh, c, 2 * t + 1));
    const Tree wanted = tree_at(mesh, c, 2 * t + 2);
    for (std::size_t k = 0; k < 2; ++k) {
      const auto got = to_host<double>(weights[k]).values, want = to_host<double>(wanted[k]).values;
      for (std::size_t i = 0; i < got.size(); ++i)
        worst =
            support::larger(worst, std::abs(got[i] - want[i]) / std::max(1.0, std::abs(want[i])));
    }
  }
  return worst;
}
}  // namespace

TEST_CASE("SGD, Adam and AdamW are PyTorch's, with a group of parameters that does not decay too") {
  const std::vector<Case> all = cases();
  REQUIRE(all.size() == 12);
  std::mutex mutex;
  using Kind = UpdatePolicy::Kind;
  for (const auto& [rows, columns] : {std::pair{1, 1}, {3, 2}})
    run_loopback(
        rows * columns, [&, rows = rows, columns = columns](std::shared_ptr<Transport> world) {
          const auto mesh = make_mesh(world, {rows, columns}, {"data", "model"});
          for (const UpdatePolicy& policy : {UpdatePolicy{}, UpdatePolicy{Kind::sharded, {0}},
                                             UpdatePolicy{Kind::sharded, {0}, true}})
            for (const Case& c : all) {
              const std::vector<double>& n = c.numbers;
              double worst = 1;
              if (c.kind == "sgd")
                worst = worst_of(mesh, c, Sgd{n[0], n[1], n[2], n[3] != 0}, policy);
              else if (c.kind == "adam")
                worst = worst_of(mesh, c, Adam{n[0], n[1], n[2], n[3], n[4]}, policy);
              else
                worst = worst_of(mesh, c, AdamW{n[0], n[1], n[2], n[3], n[4]}, policy);
              const std::lock_guard lock(mutex);
              CHECK_MESSAGE(worst < 1e-14, c.kind << (c.groups ? ", groups" : ""));
            }
        });
}
