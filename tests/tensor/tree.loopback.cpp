// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Trees of tensors: paths, trees that are walked together, and what says that their structures
// differ.
#include <doctest/doctest.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <tessera/tensor/tree.hpp>
#include <tessera/tessera.hpp>

#include "support/grid.hpp"

using namespace tessera;

namespace {
template <class T, class... D> using Of = ShardedTensor<T, Grid, P<D...>>;

namespace deep::within {
template <class T, class... Unused> struct Dense {
  Of<T, data, model> weight;
  Of<T, model> bias_2;
  int kept = 0;  // no tensor
  static constexpr auto fields = Fields<&Dense::weight, &Dense::bias_2>{};
  struct Scale {
    Of<T> by;
    static constexpr auto fields = Fields<&Scale::by>{};
  };
};
}  // namespace deep::within
template <class T> using Dense = deep::within::Dense<T, std::array<int, 3>, int (*)(char), int[2]>;

struct Named {
  Of<float> operator_;
};
struct Derived : Named {
  Of<float> own;
  static constexpr auto fields = Fields<&Derived::own, &Derived::operator_>{};
};

struct Running {
  Of<float> mean;
  std::vector<Dense<float>> counts;
  static constexpr auto fields = Fields<&Running::mean, &Running::counts>{};
  static constexpr auto untrained = Fields<&Running::counts>{};
};
struct Followed {
  Running trained, followed;
  static constexpr auto fields = Fields<&Followed::trained, &Followed::followed>{};
  static constexpr auto untrained = Fields<&Followed::followed>{};
};

template <class T> struct Model {
  Of<T, model, _> table;
  std::vector<Dense<T>> layers;
  std::pair<Of<T, _>, DynamicTensor> both;
  std::array<std::vector<typename Dense<T>::Scale>, 2> scales;
  std::optional<Dense<T>> head;
  std::variant<Of<T>, Dense<T>> last;
  static constexpr auto fields = Fields<&Model::table, &Model::layers, &Model::both, &Model::scales,
                                        &Model::head, &Model::last>{};
};

constexpr auto names = Dense<float>::fields.names;
static_assert(names[0] == "weight" && names[1] == "bias_2");
static_assert(Dense<double>::Scale::fields.names[0] == "by");
static_assert(Derived::fields.names[0] == "own" && Derived::fields.names[1] == "operator_");

Model<float> some_model() {
  Model<float> m;
  m.layers.resize(2);
  m.scales[1].resize(1);
  m.last.emplace<1>();
  return m;
}
template <class Tree> std::string paths(const Tree& tree) {
  std::string all;
  for_each_named_tensor([&](const std::string& path, const auto&) { all += path + " "; }, tree);
  return all;
}
}  // namespace

TEST_CASE("every tensor of a tree has a path") {
  Model<float> m = some_model();
  CHECK(paths(m) ==
        "table layers.0.weight layers.0.bias_2 layers.1.weight layers.1.bias_2 both.0 both.1 "
        "scales.1.0.by last.weight last.bias_2 ");
  m.head.emplace();
  m.last.emplace<0>();
  m.layers.clear();
  CHECK(paths(m) == "table both.0 both.1 scales.1.0.by head.weight head.bias_2 last ");
  CHECK(paths(Derived{}) == "own operator_ ");
  CHECK(paths(Of<float>{}) == " ");
  CHECK(paths(std::vector<Of<float>>(2)) == "0 1 ");
}

TEST_CASE("a tensor is untrained where a field on its path is") {
  Followed tree;
  tree.trained.counts.resize(1);
  std::string trained, others;
  const auto tell = [&](const detail::TreePlace& place, const auto&) {
    (place.trained() ? trained : others) += place.path() + " ";
  };
  detail::walk({}, tell, tree);
  CHECK(trained == "trained.mean ");
  CHECK(others == "trained.counts.0.weight trained.counts.0.bias_2 followed.mean ");
}

TEST_CASE("trees that are walked together") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    using Weight = Of<float, data, model>;
    const auto layer = [&](float value) {
      return Dense<float>{full<Weight>(mesh, {3, 2}, value),
                          full<Of<float, model>>(mesh, {2}, value), 7};
    };
    std::vector<Dense<float>> weights{layer(1), layer(2)};
    const std::vector<Dense<float>> gradients{layer(10), layer(20)};
    const std::vector<Dense<float>> before = weights;
    // Written in place; the copy keeps its tensors.
    for_each_tensor([](auto& w, const auto& g) { w = w + g; }, weights, gradients);
    CHECK(to_host(weights[1].bias_2).values == std::vector<float>{22, 22});
    CHECK(to_host(before[1].bias_2).values == std::vector<float>{2, 2});
    // A tree of other types, and a map of two trees.
    std::vector<Dense<double>> moments(2);
    for_each_tensor([](auto& m, const auto& w) { m = cast<double>(w); }, moments, weights);
    CHECK(to_host(moments[0].weight).values == std::vector<double>(6, 11));
    const auto sum =
        map_tensors([](const auto& a, const auto& b) { return a - b; }, weights, before);
    static_assert(std::is_same_v<decltype(sum), const std::vector<Dense<float>>>);
    CHECK(to_host(sum[1].weight).values == std::vector<float>(6, 20));
    CHECK(sum[0].kept == 7);
    std::map<std::string, Index> sizes;
    for_each_named_tensor([&](const std::string& path, const auto& w,
                              const auto& m) { sizes[path] = w.size() + m.size(); },
                          weights, moments);
    CHECK(sizes.at("1.bias_2") == 4);
  });
}

TEST_CASE("trees whose structures differ") {
  const Model<float> m = some_model();
  const auto says = [&](const Model<float>& other, const char* text) {
    CHECK_THROWS_WITH_AS(for_each_tensor([](const auto&, const auto&, const auto&) {}, m, m, other),
                         doctest::Contains(text), UsageError);
  };
  Model<float> other = m;
  other.layers.resize(5);
  says(other, "at layers the first has elements: 2 and tree 3 has elements: 5;");
  other = m;
  other.scales[1].clear();
  says(other, "at scales.1 the first has elements: 1 and tree 3 has elements: 0;");
  other = m;
  other.head.emplace();
  says(other, "at head the first has trees: 0 and tree 3 has trees: 1;");
  other = m;
  other.last.emplace<0>();
  says(other, "at last the first has alternative 1 and tree 3 has alternative 0;");
  CHECK_THROWS_WITH_AS(
      for_each_tensor([](const auto&, const auto&) {}, m.layers, std::vector<Dense<float>>(1)),
      doctest::Contains("at their root the first has elements: 2 and tree 2 has elements: 1"),
      UsageError);
}
