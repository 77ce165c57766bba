// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gradients of every operator that has one: against central differences of the function on one
// process, on several meshes and under random shardings.
#include <doctest/doctest.h>

#include <cmath>
#include <mutex>
#include <random>
#include <set>

#include <tessera/grad.hpp>
#include <tessera/op/compile.hpp>
#include <tessera/tessera.hpp>

#include "grad/gradient_cases.hpp"
#include "grad/typed.hpp"

using namespace tessera;

namespace {
using namespace gradient_test;

struct Plain {
  template <class T> KOKKOS_FUNCTION T operator()(T x) const { return x * x; }
};

using Elements = std::vector<std::vector<double>>;  // of each input

/// The gradients by central differences, on one process.
Elements differences(const GradientCase& c, const Elements& at) {
  Elements gradients;
  run_loopback(1, [&](std::shared_ptr<Transport> world) {
    const DynamicMesh mesh = make_mesh(world, {1, 1}, {"data", "model"});
    const auto f = [&](const Elements& values) {
      Dynamic x;
      for (std::size_t k = 0; k < values.size(); ++k)
        x.push_back(whole(mesh, c.inputs[k], values[k], Sharding::replicated(c.inputs[k].size())));
      return to_host<double>(c.f(mesh, x)).values[0];
    };
    for (std::size_t k = 0; k < at.size(); ++k) {
      gradients.emplace_back();
      for (std::size_t i = 0; i < at[k].size(); ++i) {
        const double step = 1e-5;
        Elements up = at, down = at;
        up[k][i] += step;
        down[k][i] -= step;
        gradients.back().push_back((f(up) - f(down)) / (2 * step));
      }
    }
  });
  return gradients;
}

/// Runs body(mesh) on the processes of several meshes.
template <class F> void on_meshes(const F& body) {
  for (const auto& [rows, columns] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 2}})
    run_loopback(rows * columns,
                 [&, rows = rows, columns = columns](std::shared_ptr<Transport> world) {
                   body(make_mesh(world, {rows, columns}, {"data", "model"}));
                 });
}
}  // namespace

TEST_CASE("gradients equal central differences, on every mesh and sharding") {
  std::mt19937 random(20);
  for (const GradientCase& c : gradient_cases()) {
    CAPTURE(std::string(c.name));
    Elements at;
    for (std::size_t k = 0; k < c.inputs.size(); ++k) at.push_back(values_of(c, k, random));
    const Elements wanted = differences(c, at);
    const auto seed = random();
    std::mutex mutex;
    on_meshes([&](const DynamicMesh& mesh) {
      std::mt19937 shardings(seed);
      Dynamic x;
      for (std::size_t k = 0; k < at.size(); ++k)
        x.push_back(
            whole(mesh, c.inputs[k], at[k], random_sharding(c.inputs[k].size(), shardings)));
      const auto [loss, gradients] =
          value_and_grad([&](const Dynamic& in) { return c.f(mesh, in); })(x);
      for (std::size_t k = 0; k < at.size(); ++k) {
        const bool alike = gradients[k].sharding() == x[k].sharding();
        const auto got = to_host<double>(gradients[k]);
        const std::lock_guard lock(mutex);
        CHECK(alike);
        const double worst = worst_difference(got.values, wanted[k]);
        CHECK_MESSAGE(worst < 1e-7, std::string(c.name)
                                        << ", input " << k << " on "
                                        << to_string(mesh.shape(), AxisNames{"data", "model"}));
      }
    });
  }
}

TEST_CASE("gradients of gradients") {
  // f = sum(tanh(x w)^2); its gradient's own gradient along a direction, by differences of
  // gradients.
  std::mt19937 random(5);
  const Extents xs{4, 3}, ws{3, 5};
  std::vector<double> x0(12), w0(15), along(15);
  std::normal_distribution<double> normal;
  for (auto* v : {&x0, &w0, &along})
    for (double& one : *v) one = normal(random);
  std::mutex mutex;
  std::vector<double> wanted;
  on_meshes([&](const DynamicMesh& mesh) {
    const auto x = whole(mesh, xs, x0, Sharding{{0}, {}}),
               v = whole(mesh, ws, along, Sharding{{}, {1}});
    const auto at = [&](const std::vector<double>& values) {
      return whole(mesh, ws, values, Sharding{{}, {1}});
    };
    const auto f = [&](const DynamicTensor& w) {
      const DynamicTensor y = tanh(einsum("ik,kj->ij", x, w));
      return reduce<Sum>("ij->", y * y * exp(y));
    };
    const auto slope = [&](const DynamicTensor& w) {
      return reduce<Sum>("ij->", value_and_grad(f)(w).gradient * v);
    };
    const auto second = to_host<double>(value_and_grad(slope)(at(w0)).gradient);
    std::vector<double> differences;
    for (std::size_t i = 0; i < w0.size(); ++i) {
      std::vector<double> up = w0, down = w0;
      up[i] += 1e-5;
      down[i] -= 1e-5;
      differences.push_back(
          (to_host<double>(slope(at(up))).values[0] - to_host<double>(slope(at(down))).values[0]) /
          2e-5);
    }
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < w0.size(); ++i)
      CHECK(std::fabs(second.values[i] - differences[i]) < 1e-6 * (1 + std::fabs(differences[i])));
  });
}

TEST_CASE("gradients of gradients of every operator equal differences of gradients") {
  // The loss is squared, so that the second derivative goes through the adjoint by what comes back.
  // Functors that bring no second derivative are refused, and what the table of gradients lacks.
  const std::set<std::string> refused{"a functor with a derivative", "one of two operands"};
  std::mt19937 random(23);
  std::normal_distribution<double> normal;
  for (const GradientCase& c : gradient_cases()) {
    CAPTURE(std::string(c.name));
    Elements at, to, by;
    for (std::size_t k = 0; k < c.inputs.size(); ++k) {
      at.push_back(values_of(c, k, random));
      for (Elements* along : {&to, &by}) {
        along->push_back(at[k]);
        for (double& v : along->back()) v = normal(random);
      }
    }
    const auto seed = random();
    // Returns the slope of the gradient along `by` and, unless `only`, its own slope along `to`.
    const auto slopes = [&](const DynamicMesh& mesh, double step, bool only) {
      std::mt19937 shardings(seed);
      Dynamic x, u, v;
      for (std::size_t k = 0; k < at.size(); ++k) {
        Elements::value_type moved = at[k];
        for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += step * to[k][i];
        const Sharding s = random_sharding(c.inputs[k].size(), shardings);
        x.push_back(whole(mesh, c.inputs[k], moved, s));
        u.push_back(whole(mesh, c.inputs[k], to[k], s));
        v.push_back(whole(mesh, c.inputs[k], by[k], s));
      }
      const auto along = [&](const Dynamic& gradient, const Dynamic& direction) {
        DynamicTensor sum;
        for (std::size_t k = 0; k < at.size(); ++k) {
          const std::string all = letters(gradient[k].core().rank());
          const DynamicTensor one = einsum(all + "," + all + "->", gradient[k], direction[k]);
          sum = k == 0 ? one : sum + one;
        }
        return sum;
      };
      const auto loss = [&](const Dynamic& in) {
        const DynamicTensor y = c.f(mesh, in);
        return y * y;
      };
      const auto slope = [&](const Dynamic& in) {
        return along(value_and_grad(loss)(in).gradient, v);
      };
      if (only) return std::pair(to_host<double>(slope(x)).values[0], 0.0);
      const auto [first, second] = value_and_grad(slope)(x);
      return std::pair(to_host<double>(first).values[0],
                       to_host<double>(along(second, u)).values[0]);
    };
    double wanted = 0;
    run_loopback(1, [&](std::shared_ptr<Transport> world) {
      const DynamicMesh mesh = make_mesh(world, {1, 1}, {"data", "model"});
      wanted = (slopes(mesh, 1e-5, true).first - slopes(mesh, -1e-5, true).first) / 2e-5;
    });
    for (const int rows : {1, 2})
      run_loopback(2 * rows, [&](std::shared_ptr<Transport> world) {
        double got = 0;
        std::string wrong;
        try {
          got = slopes(make_mesh(world, {rows, 2}, {"data", "model"}), 0, false).second;
        } catch (const UsageError& error) {
          wrong = error.what();
        }
        static std::mutex mutex;
        const std::lock_guard lock(mutex);
        CHECK_MESSAGE(wrong.empty() != refused.contains(c.name), std::string(c.name)
                                                                     << ": " << wrong);
        if (wrong.empty())
          CHECK_MESSAGE(std::fabs(got - wanted) < 1e-5 * (1 + std::fabs(wanted)),
                        std::string(c.name) << ": " << got << ", and by differences " << wanted);
      });
  }
}

TEST_CASE("gradients of gradients pass through casts") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto x = from_function<Real<data, model>>(mesh, {6, 4}, Ramp{});
    const auto f = [](const auto& v) {
      const auto y = cast<double>(cast<float>(v));
      return sum<"ij->">(y * y * y);
    };
    const auto slope = [&](const auto& v) { return sum<"ij->">(value_and_grad(f)(v).gradient); };
    const auto got = to_host(value_and_grad(slope)(x).gradient).values, at = to_host(x).values;
    for (std::size_t i = 0; i < at.size(); ++i)
      CHECK(std::fabs(got[i] - 6 * at[i]) <= 1e-5 * (1 + std::fabs(at[i])));
  });
}

TEST_CASE("typed functions, structs, compiled functions, layers, and what is sent") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto x = from_function<Real<data, _>>(mesh, {6, 4}, Ramp{});
    const Dense layer{from_function<Real<_, model>>(mesh, {4, 3}, Ramp{0.05}),
                      from_function<Real<model>>(mesh, {3}, Ramp{0.2})};
    const auto f = [&](const Dense& l) {
      const Layer scope(mesh, "dense");
      return sum<"ij->">(square(tanh(einsum<"ik,kj->ij">(x, l.weight) + l.bias)));
    };
    const auto step = value_and_grad(f);
    const auto [loss, gradient] = step(layer);
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(gradient)>, Dense>);
    CHECK(close(loss, f(layer)));
    auto compiled = compile(step);
    for (int i = 0; i < 2; ++i) {
      const auto again = compiled(layer);
      CHECK(close(again.value, loss));
      CHECK(close(again.gradient.weight, gradient.weight));
      CHECK(close(again.gradient.bias, gradient.bias));
    }
    CHECK(compiled.structures() == 1);
    auto inner = compile(f);  // within, its operators are the outer function's
    const auto outer = value_and_grad([&](const Dense& l) { return inner(l); });
    auto within = compile(outer);
    CHECK(close(outer(layer).gradient.weight, gradient.weight));
    CHECK(close(within(layer).gradient.weight, gradient.weight));
    CHECK(inner.structures() == 0);
    CHECK(within.program().size() == compiled.program().size());
    // By hand: the weight's gradient is reduced over data alone, as its spec says.
    const auto h = tanh(einsum<"ik,kj->ij">(x, layer.weight) + layer.bias);
    const auto back = 2.0 * h * (1.0 - square(h));
    CHECK(close(gradient.weight, einsum<"ik,ij->kj", P<_, model>>(x, back)));
    CHECK(close(gradient.bias, sum<"ij->j", P<model>>(back)));
    // What a dry run states is what the run sends.
    Recording recording(mesh);
    const Index before = mesh.core()->ledger().payload_bytes();
    (void)step(layer);
    const Index sent = mesh.core()->ledger().payload_bytes() - before;
    const Program program = recording.take();
    CHECK(program.own_payload_bytes() == sent);
    bool layered = true, named = false;
    for (const ProgramEntry& e : program.entries()) {
      if (e.label.rfind("gradient of ", 0) != 0) continue;
      named = true;
      layered = layered && program.layer_path(e.layer) == "dense";
    }
    CHECK(named);
    CHECK(layered);
    // One argument of several, a tuple beside the loss, a constant.
    const auto g = [&](const auto& a, const auto& w) {
      const auto y = einsum<"ik,kj->ij">(a, w);
      return std::tuple(sum<"ij->">(y * stop_gradient(y)), y);
    };
    const auto [both, by] = value_and_grad<0, 1>(g)(x, layer.weight);
    const auto y = einsum<"ik,kj->ij">(x, layer.weight);
    CHECK(close(std::get<1>(both), y));
    CHECK(close(std::get<0>(by), einsum<"ij,kj->ik", P<data, _>>(y, layer.weight)));
    CHECK(close(std::get<1>(by), einsum<"ij,ik->kj", P<_, model>>(y, x)));
    auto [made, pull] = vjp([&](const auto& w) { return einsum<"ik,kj->ij">(x, w); }, layer.weight);
    CHECK(close(pull(ones_like(made)), einsum<"ij,ik->kj", P<_, model>>(ones_like(made), x)));
    CHECK_THROWS_WITH_AS(pull(made), doctest::Contains("called twice"), UsageError);
    // What does not depend on an argument gives it zero.
    const auto none = value_and_grad([&](const auto&) { return sum<"ij->">(x); })(layer.bias);
    CHECK(close(none.gradient, zeros_like(layer.bias)));
  });
}

TEST_CASE("epilogues, and tensors that are written") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto x = from_function<Real<data, _>>(mesh, {6, 4}, Ramp{});
    const auto w = from_function<Real<_, model>>(mesh, {4, 3}, Ramp{0.05});
    const auto b = from_function<Real<model>>(mesh, {3}, Ramp{0.2});
    const auto plain = value_and_grad<0, 1>([&](const auto& w1, const auto& b1) {
      return sum<"ij->">(2.0 * map(Mix{}, einsum<"ik,kj->ij">(x, w1), b1) +
                         0.5 * einsum<"ik,kj->ij">(x, w1));
    })(w, b);
    const auto fused = value_and_grad<0, 1>([&](const auto& w1, const auto& b1) {
      const auto h = einsum<"ik,kj->ij">(x, w1, then(Mix{}, b1));
      return sum<"ij->">(2.0 * h + 0.5 * einsum<"ik,kj->ij">(x, w1));
    })(w, b);
    CHECK(close(fused.value, plain.value));
    CHECK(close(std::get<0>(fused.gradient), std::get<0>(plain.gradient)));
    CHECK(close(std::get<1>(fused.gradient), std::get<1>(plain.gradient)));
    const auto into = value_and_grad([&](const auto& w1) {
      auto y = einsum<"ik,kj->ij">(x, w1);
      const auto z = 3.0 * y;
      y += z;
      y -= 2.0 * z;
      return sum<"ij->">(y);
    })(w);
    const auto ones = ones_like(einsum<"ik,kj->ij">(x, w));
    CHECK(close(into.gradient, -2.0 * einsum<"ik,ij->kj", P<_, model>>(x, ones)));
    const auto overwritten = value_and_grad([&](const auto& w1) {
      auto y = exp(w1);
      y *= w1;
      return sum<"ij->">(y);
    });
    CHECK_THROWS_WITH_AS(overwritten(w), doctest::Contains("was overwritten after the call"),
                         UsageError);
  });
}

TEST_CASE("what has no gradient says so") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    const auto x = from_function<Real<data, _>>(mesh, {4, 4}, Ramp{});
    const auto says = [&](const auto& f, const char* text) {
      CHECK_THROWS_WITH_AS(value_and_grad(f)(x), doctest::Contains(text), UsageError);
    };
    says([](const auto& y) { return sum<"ij->">(map(Plain{}, y)); }, "Plain");
    says([](const auto& y) { return sum<"ij->">(map(Plain{}, y)); }, "gradients.loopback.cpp");
    says([](const auto& y) { return y + y; }, "4x4");
    says([](const auto& y) { return sum<"ij->">(associative_scan<"ij", 'j'>(fn::Add{}, 0.0, y)); },
         "by a function has no gradient");
    CHECK_THROWS_WITH_AS(
        value_and_grad([](const auto& n) { return sum<"ij->">(n); })(cast<std::int32_t>(x)),
        doctest::Contains("int32"), UsageError);
    CHECK_THROWS_WITH_AS((value_and_grad<0, 1>([](const auto& a, const auto& c) {
                           return sum<"ij->">(a * c);
                         })(x, x)),
                         doctest::Contains("given twice"), UsageError);
    // Indices and comparisons end the path: they are constants.
    const auto got =
        value_and_grad([](const auto& y) { return sum<"ij->">(where(y > 0.0, y, -y)); })(x);
    CHECK(close(got.gradient, where(x > 0.0, ones_like(x), -ones_like(x))));
  });
}
