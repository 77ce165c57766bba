// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How layers are tested: whole tensors on one process against plain loops and central differences;
/// then values and gradients under many rules and on many meshes against these.
///
///     nn_test::check_layer<DenseCase>();
///
/// A case has arguments<U>(make), a tuple of trees; run(arguments), a tensor or a number; and
/// loops(values), the same in plain loops from the arguments' elements in their trees' order.
#include <doctest/doctest.h>

#include <cmath>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <tessera/nn.hpp>
#include <tessera/tessera.hpp>

#include "support/grid.hpp"
#include "support/larger.hpp"
#include "support/nudge.hpp"

namespace nn_test {
using namespace tessera;

using BothAxes = Axes<data, model>;
using Whole = LayerRules<>;
template <class R> using On = Under<double, Grid, R>;
using Values = std::vector<std::vector<double>>;

/// An argument of elements of deviation 1.
template <class X> X normal(Parameters<Grid>& make, const Extents& extents) {
  return make.tensor<X>(extents, Initializer::normal(1));
}
/// Indices below `n`, the same on every mesh.
struct Ids {
  Index n;
  KOKKOS_FUNCTION std::int32_t operator()(const GlobalIndex& i) const {
    return static_cast<std::int32_t>((i.linear() * 7 + 3 + i.linear() / 4) % n);
  }
};
struct SomeTrue {
  KOKKOS_FUNCTION bool operator()(const GlobalIndex& i) const { return i.linear() % 5 != 1; }
};
template <class A> ProcessMesh<Grid> mesh_of(const A& x) {
  return ProcessMesh<Grid>(x.core().mesh());
}

/// A scalar that depends on every element of y.
template <class Y> auto loss_of(const Y& y) {
  if constexpr (Y::rank == 0) {
    return y;
  } else {
    const auto weights = random_normal<Y>(mesh_of(y), y.extents(), 99);
    return sum(y * weights);
  }
}

template <class Tree> void append(std::vector<double>& to, const Tree& tree) {
  for_each_tensor(
      [&](const auto& x) {
        const auto all = to_host(x).values;
        to.insert(to.end(), all.begin(), all.end());
      },
      tree);
}
template <class Tree> Values values_of(const Tree& tree) {
  Values values;
  for_each_tensor([&](const auto& x) { values.push_back(to_host(x).values); }, tree);
  return values;
}
inline double worst(const std::vector<double>& a, const std::vector<double>& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    most = support::larger(most, std::fabs(a[i] - b[i]) / (1 + std::fabs(b[i])));
  return most;
}

/// The largest difference, as a part of the largest value of its tensor and of 1.
inline double farthest_apart(const Values& a, const Values& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    double largest = 1;
    for (const double x : b[i]) largest = std::max(largest, std::fabs(x));
    if (a[i].size() != b[i].size()) return INFINITY;
    for (std::size_t k = 0; k < a[i].size(); ++k)
      most = support::larger(most, std::fabs(a[i][k] - b[i][k]) / largest);
  }
  return most;
}

template <class Case, class R> auto arguments_on(const ProcessMesh<Grid>& mesh) {
  Parameters<Grid> make(mesh, 5);
  return Case::template arguments<On<R>>(make);
}
/// The result's elements, and those of all gradients.
template <class Case, class R>
std::pair<std::vector<double>, std::vector<double>> numbers(const ProcessMesh<Grid>& mesh) {
  const auto all = arguments_on<Case, R>(mesh);
  const auto f = [](const auto& given) {
    const auto y = Case::run(given);
    return std::tuple(loss_of(y), y);
  };
  const auto [values, gradient] = value_and_grad(f)(all);
  std::pair<std::vector<double>, std::vector<double>> made;
  append(made.first, std::get<1>(values));
  append(made.second, gradient);
  return made;
}

/// The gradients by central differences of the loss, of whole tensors.
template <class Case> std::vector<double> differences(const ProcessMesh<Grid>& mesh) {
  auto all = arguments_on<Case, Whole>(mesh);
  std::vector<double> slopes;
  for_each_tensor(
      [&]<class X>(X& x) {
        const X kept = x;
        const auto at = [&](Index place, double by) {
          x = kept + from_function<X>(mesh, kept.extents(), support::Nudge{place, by});
          return static_cast<double>(value(loss_of(Case::run(all))));
        };
        const double step = 1e-5;
        for (Index place = 0; place < kept.size(); ++place)
          slopes.push_back((at(place, step) - at(place, -step)) / (2 * step));
        x = kept;
      },
      all);
  return slopes;
}

template <class F> void on_mesh(int rows, int columns, const F& f) {
  run_loopback(rows * columns,
               [&](std::shared_ptr<Transport> world) { f(make_mesh<Grid>(world, rows, columns)); });
}

template <class Case> void check_layer() {
  CAPTURE(std::string(Case::name));
  std::pair<std::vector<double>, std::vector<double>> whole;
  on_mesh(1, 1, [&](const ProcessMesh<Grid>& mesh) {
    whole = numbers<Case, Whole>(mesh);
    CHECK(worst(whole.first, Case::loops(values_of(arguments_on<Case, Whole>(mesh)))) < 1e-12);
    CHECK(worst(whole.second, differences<Case>(mesh)) < 2e-8);
  });
  std::mutex mutex;
  for (const auto& [rows, columns] : {std::pair{2, 1}, {1, 2}, {2, 2}, {3, 2}})
    on_mesh(rows, columns, [&](const ProcessMesh<Grid>& mesh) {
      const auto check = [&]<class R>(const char* rules, std::type_identity<R>) {
        const auto split = numbers<Case, R>(mesh);
        const std::lock_guard lock(mutex);
        CAPTURE(rules);
        CAPTURE(mesh.processes());
        CHECK(worst(split.first, whole.first) < 1e-11);
        CHECK(worst(split.second, whole.second) < 1e-10);
      };
      check("data parallel", std::type_identity<DataParallel<BothAxes>>{});
      check("tensor parallel", std::type_identity<TensorParallel<data, model>>{});
      check("two-dimensional", std::type_identity<TwoDimensional<data, model>>{});
      check("fully sharded", std::type_identity<FullySharded<BothAxes>>{});
      check("sequence", std::type_identity<SequenceSplit<data, model>>{});
    });
}

template <class U>
using Activations = typename U::template Tensor<logical::batch, logical::sequence, logical::embed>;
template <class U>
using TokenIds = typename U::template Of<std::int32_t, logical::batch, logical::sequence>;

/// Queries, keys and values of heads, as attention has them.
template <class U> struct Projected {
  using Q = typename U::template Tensor<logical::batch, logical::sequence, logical::groups,
                                        logical::repeats, logical::head_dim>;
  using K = typename U::template Tensor<logical::batch, logical::sequence, logical::groups,
                                        logical::head_dim>;
  Q q;
  K k, v;
  static constexpr auto fields = Fields<&Projected::q, &Projected::k, &Projected::v>{};
};
/// The elements of heads over model, beside texts over data.
using SplitElements =
    LayerRules<AxisRule<logical::batch, data>, AxisRule<logical::head_dim, model>>;

}  // namespace nn_test
