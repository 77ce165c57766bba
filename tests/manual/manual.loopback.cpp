// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Manual functions: what enters and leaves them, promises, functions within functions, and what
// they communicate. Where a number stands beside a case, users of JAX met the situation in that
// issue of jax-ml/jax.
#include <doctest/doctest.h>

#include <tessera/grad.hpp>
#include <tessera/manual.hpp>
#include <tessera/op/async.hpp>
#include <tessera/op/compile.hpp>
#include <tessera/program/network/timing.hpp>
#include <tessera/run/tracing.hpp>
#include <tessera/tessera.hpp>

#include "op/texts_of.hpp"
#include "support/grid.hpp"

using namespace tessera;
using namespace support;

namespace {
template <class... D> using Tensor = ShardedTensor<double, Grid, P<D...>>;
template <class... D> using Equal = ShardedTensor<double, ManualMesh<Grid, model>, P<D...>>;
template <class... D>
using Block = ShardedTensor<double, Manual<Grid, ManualAxes<model>, Varies<model>>, P<D...>>;

double ramp(Index i, Index j) { return static_cast<double>(10 * i + j + 1); }
struct Ramp {
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    return static_cast<double>(10 * i[0] + i[1] + 1);
  }
};
/// Runs f(mesh, data, model) on meshes of both shapes, with checks that compare all calls.
template <class F> bool on_meshes(const F& f) {
  bool all = true;
  for (const auto& [d, m] : {std::pair{1, 1}, {1, 2}, {2, 1}, {2, 2}, {3, 2}, {2, 3}})
    all = quiet(texts_of(
              d * m,
              [&, rows = d, columns = m](const std::shared_ptr<Transport>& w) {
                MeshOptions options;
                options.check = Check::communicating;
                const std::string text =
                    f(make_mesh<Grid>(w, sizes<Grid>(rows, columns), options), rows, columns);
                return text.empty()
                           ? text
                           : std::to_string(rows) + "x" + std::to_string(columns) + ": " + text;
              })) &&
          all;
  return all;
}
template <class F> std::string says(const F& f, const std::string& part) {
  const std::string text = complaint_of(f);
  return text.find(part) != std::string::npos ? std::string() : "says: " + text;
}
}  // namespace

TEST_CASE("what enters leaves as it was, and nothing is sent") {
  CHECK(on_meshes([](const ProcessMesh<Grid>& mesh, int d, int m) -> std::string {
    const auto same = [](const auto& x) { return x; };
    const auto x = from_function<Tensor<Axes<model, data>, _>>(mesh, {5 * m, 3}, Ramp{});
    const auto w = from_function<Tensor<_, data>>(mesh, {2, 7}, Ramp{});
    const auto u = einsum<"ij,ik->jk", P<_, _, Unreduced<Sum, model>>>(
        from_function<Tensor<model, _>>(mesh, {2 * m, 3}, Ramp{}),
        from_function<Tensor<model, _>>(mesh, {2 * m, 4}, Ramp{}));
    mesh.ledger().reset();
    const Tensor<Axes<model, data>, _> y =
        manual<model>([](const auto& b) { return along<0, model>(b); })(x);
    const Tensor<_, data> v = manual<model>(same)(w);
    const Tensor<_, _, Unreduced<Sum, model>> t = manual<model>(same)(u);
    // Over both axes: each process's block.
    const auto z = manual<model, data>([](const auto& b) {
      static_assert(std::is_same_v<typename std::decay_t<decltype(b)>::mesh_type,
                                   Manual<Grid, ManualAxes<data, model>, Varies<data, model>>>);
      return along<0, model, data>(b + b);
    });
    REQUIRE_THAT(mesh.ledger().total().calls == 0);
    REQUIRE_THAT(y.core().memory() == x.core().memory());
    REQUIRE_THAT(to_host(y) == to_host(x) && to_host(v) == to_host(w));
    REQUIRE_THAT(to_host(finish(t)) == to_host(finish(u)));
    const auto even = from_function<Tensor<Axes<model, data>, _>>(mesh, {4 * m * d, 3}, Ramp{});
    const auto doubled = to_host(z(even));
    REQUIRE_THAT(doubled(4 * m * d - 1, 2) == 2 * ramp(4 * m * d - 1, 2));
    return "";
  }));
}

TEST_CASE("tuples and vectors enter and leave") {
  CHECK(on_meshes([](const ProcessMesh<Grid>& mesh, int, int m) -> std::string {
    const auto x = from_function<Tensor<model, data>>(mesh, {2 * m, 3}, Ramp{});
    const std::vector<Tensor<_, data>> list{from_function<Tensor<_, data>>(mesh, {2, 3}, Ramp{}),
                                            from_function<Tensor<_, data>>(mesh, {2, 3}, Ramp{})};
    const auto [sums, blocks] = manual<model>([](const auto& pair, const auto& more) {
      const auto y = std::get<0>(pair) * std::get<1>(pair) + more[1];
      return std::tuple(std::vector{more[0] * more[1]}, along<0, model>(y));
    })(std::tuple(x, list[0]), list);
    static_assert(std::is_same_v<std::decay_t<decltype(sums)>, std::vector<Tensor<_, data>>>);
    REQUIRE_THAT(to_host(sums[0])(1, 2) == ramp(1, 2) * ramp(1, 2));
    REQUIRE_THAT(to_host(blocks)(2 * m - 1, 1) == ramp(2 * m - 1, 1) * ramp(1, 1) + ramp(1, 1));
    return "";
  }));
}

TEST_CASE("the gradient of what is equal is summed once, for all its readers, and where it goes") {
  CHECK(on_meshes([](const ProcessMesh<Grid>& mesh, int, int m) -> std::string {
    const Index n = 4 * m;
    const auto x = from_function<Tensor<model, data>>(mesh, {n * m, 5}, Ramp{});
    const auto w = from_function<Tensor<_, data>>(mesh, {n, 5}, Ramp{});
    const auto shares = from_function<Tensor<model, data>>(mesh, {n, 5}, Ramp{});
    const auto body = [](const auto& a, const auto& b) {
      const auto y = a * b + b * a * a + b;  // four readers, with the next line's
      return along<0, model>(y + b * a);
    };
    const auto loss = [&](const Tensor<model, data>& a, const Tensor<_, data>& b) {
      return sum(manual<model>(body)(a, b));
    };
    const auto value_alone = value(loss(x, w));
    const auto [v, g] = value_and_grad<1>(loss)(x, w);
    REQUIRE_THAT(value(v) == value_alone);
    // One all-reduce of w's gradient over model; the loss is a sum over both axes.
    if (m > 1) {  // one all-reduce of w's gradient; the loss is the other
      Recording recording(mesh.core());
      (void)value_and_grad<1>(loss)(x, w);
      const Program program = recording.take();
      int sums = 0;
      for (const auto& entry : program.entries()) sums += entry.plan->count(all_reduce);
      REQUIRE_THAT(sums == 2);
    }
    const auto by_w = to_host(g);
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < 5; ++j) {
        double wanted = static_cast<double>(m);
        for (int p = 0; p < m; ++p) wanted += ramp(p * n + i, j) * (2 + ramp(p * n + i, j));
        REQUIRE_THAT(std::fabs(by_w(i, j) - wanted) <= 1e-9 * std::fabs(wanted));
      }
    // A weight that is gathered within: its gradient is reduce-scattered, not all-reduced.
    const auto gathers = [&](const Tensor<model, data>& a, const Tensor<model, data>& b) {
      return sum(manual<model>([&](const auto& c, const auto& part) {
        return along<0, model>(c * all_gather_over<model, 0>(part));
      })(a, b));
    };
    mesh.ledger().reset();
    const auto by_share = value_and_grad<1>(gathers)(x, shares).gradient;
    if (m > 1) {
      REQUIRE_THAT(mesh.ledger().count(reduce_scatter) == 1);
      REQUIRE_THAT(mesh.ledger().count(all_reduce) == 1);  // the loss
    }
    const auto host = to_host(by_share);
    for (Index i = 0; i < n; ++i) {
      double wanted = 0;
      for (int p = 0; p < m; ++p) wanted += ramp(p * n + i, 1);
      REQUIRE_THAT(host(i, 1) == wanted);
    }
    return "";
  }));
}

TEST_CASE(
    "a gradient within a manual function: of an equal value the sum, of a varying one its own") {
  CHECK(on_meshes([](const ProcessMesh<Grid>& mesh, int, int m) -> std::string {
    const auto x = from_function<Tensor<model, data>>(mesh, {3 * m, 5}, Ramp{});
    const auto w = from_function<Tensor<_, data>>(mesh, {3, 5}, Ramp{});
    const auto [all, own] = manual<model>([](const Block<_, data>& a, const Equal<_, data>& b) {
      const Equal<_, data> summed =
          value_and_grad([&](const auto& v) { return sum(a * v); })(b).gradient;
      const Block<_, data> mine =
          value_and_grad([&](const auto& v) { return sum(a * v * v); })(varying<model>(b)).gradient;
      return std::tuple(summed, along<0, model>(mine));
    })(x, w);
    const auto sums = to_host(all), parts = to_host(own);
    for (Index i = 0; i < 3; ++i)
      for (Index j = 0; j < 5; ++j) {
        double wanted = 0;
        for (int p = 0; p < m; ++p) {
          wanted += ramp(3 * p + i, j);
          REQUIRE_THAT(parts(3 * p + i, j) == 2 * ramp(3 * p + i, j) * ramp(i, j));
        }
        REQUIRE_THAT(sums(i, j) == wanted);
      }
    return "";
  }));
}

TEST_CASE("gradients of gradients") {
  CHECK(on_meshes([](const ProcessMesh<Grid>& mesh, int, int m) -> std::string {
    const auto x = from_function<Tensor<model, data>>(mesh, {2 * m, 3}, Ramp{});
    const auto w = from_function<Tensor<_, data>>(mesh, {2, 3}, Ramp{});
    const auto loss = [&](const Tensor<_, data>& b) {
      return sum(manual<model>([](const auto& a, const auto& v) {
        return all_reduce_over<model>(a * v * v * v);
      })(x, b));
    };
    const auto of_gradient = [&](const Tensor<_, data>& b) {
      return sum(value_and_grad(loss)(b).gradient * b);
    };
    const auto g = to_host(value_and_grad(of_gradient)(w).gradient);
    for (Index i = 0; i < 2; ++i)
      for (Index j = 0; j < 3; ++j) {
        double wanted = 0;  // of 3 x w^3
        for (int p = 0; p < m; ++p) wanted += 9 * ramp(2 * p + i, j) * ramp(i, j) * ramp(i, j);
        REQUIRE_THAT(std::fabs(g(i, j) - wanted) <= 1e-12 * wanted);
      }
    return "";
  }));
}

TEST_CASE("the gradient of a gradient that is taken within a function") {
  CHECK(on_meshes([](const ProcessMesh<Grid>& mesh, int, int m) -> std::string {
    const auto x = from_function<Tensor<model, data>>(mesh, {2 * m, 3}, Ramp{});
    const auto w = from_function<Tensor<_, data>>(mesh, {2, 3}, Ramp{});
    const auto loss = [&](const Tensor<_, data>& b) {
      return sum(manual<model>([](const Block<_, data>& a, const Equal<_, data>& c) {
        const auto cubed = [&](const auto& v) { return sum(a * v * v * v); };
        return value_and_grad(cubed)(c).gradient * c;  // 3 (sum of a) c^3
      })(x, b));
    };
    const auto g = to_host(value_and_grad(loss)(w).gradient);
    for (Index i = 0; i < 2; ++i)
      for (Index j = 0; j < 3; ++j) {
        double wanted = 0;
        for (int p = 0; p < m; ++p) wanted += 9 * ramp(2 * p + i, j) * ramp(i, j) * ramp(i, j);
        REQUIRE_THAT(std::fabs(g(i, j) - wanted) <= 1e-12 * wanted);
      }
    return "";
  }));
}

TEST_CASE("a promise is compared, and kept or reported on every process") {
  CHECK(on_meshes([](const ProcessMesh<Grid>& mesh, int, int m) -> std::string {
    const auto x = from_function<Tensor<model, data>>(mesh, {3 * m, 5}, Ramp{});
    const auto w = from_function<Tensor<_, data>>(mesh, {3, 5}, Ramp{});
    const auto keeps = [](const auto& a, const auto& b) {
      return equal_by_promise<model>(b + (a - a));
    };
    REQUIRE_THAT(to_host(manual<model>(keeps)(x, w)) == to_host(w));
    const auto loss = [&](const Tensor<_, data>& b) { return sum(manual<model>(keeps)(x, b)); };
    REQUIRE_THAT(to_host(value_and_grad(loss)(w).gradient)(2, 4) == 1);
    if (m == 1) return "";
    const auto breaks = [](const auto& a) { return equal_by_promise<model>(a); };
    return says([&] { (void)manual<model>(breaks)(x); }, "the call promises that they are equal");
  }));
}

TEST_CASE("a user's own kernel on the block, with its gradient, in the middle of a function") {
  CHECK(on_meshes([](const ProcessMesh<Grid>& mesh, int, int m) -> std::string {
    const auto x = from_function<Tensor<model, data>>(mesh, {3 * m, 5}, Ramp{});
    const auto w = from_function<Tensor<_, data>>(mesh, {3, 5}, Ramp{});
    const auto cubed = [](const Block<_, data>& a) {
      Block<_, data> y = zeros_like(a);
      const auto in = local_view(a);
      const auto out = local_view(y);
      Kokkos::parallel_for(
          Kokkos::MDRangePolicy<Kokkos::Rank<2>>(
              {0, 0}, {static_cast<long>(in.extent(0)), static_cast<long>(in.extent(1))}),
          KOKKOS_LAMBDA(long i, long j) { out(i, j) = in(i, j) * in(i, j) * in(i, j); });
      Kokkos::fence();
      return y;
    };
    const auto own = custom_gradient(
        cubed, [](const Block<_, data>& dy, const Block<_, data>& a) { return dy * a * a * 3.0; });
    const auto loss = [&](const Tensor<model, data>& a, const Tensor<_, data>& b) {
      return sum(manual<model>([&](const Block<_, data>& c, const Equal<_, data>& d) {
        return along<0, model>(own(c * d) * 0.5);
      })(a, b));
    };
    const auto [v, g] = value_and_grad<0, 1>(loss)(x, w);
    const auto by_x = to_host(std::get<0>(g)), by_w = to_host(std::get<1>(g));
    for (Index i = 0; i < 3; ++i)
      for (Index j = 0; j < 5; ++j) {
        double wanted = 0;
        for (int p = 0; p < m; ++p) {
          const double a = ramp(3 * p + i, j), b = ramp(i, j);
          wanted += 1.5 * a * a * a * b * b;
          REQUIRE_THAT(std::fabs(by_x(3 * p + i, j) - 1.5 * a * a * b * b * b) <=
                       1e-12 * a * a * b * b * b);
        }
        REQUIRE_THAT(std::fabs(by_w(i, j) - wanted) <= 1e-12 * wanted);
      }
    return "";
  }));
}

// 23019, 31799: within a function of one axis another of the other axis, in loops over slices; and
// a mesh with an axis that nothing uses.
TEST_CASE("functions within functions, in loops over slices, with an axis that nothing uses") {
  CHECK(on_meshes([](const ProcessMesh<Grid>& mesh, int d, int m) -> std::string {
    const Index n = 2 * m, k = 3 * d;
    const auto x = from_function<Tensor<model, data>>(mesh, {n, k}, Ramp{});
    const auto outer = [&](const Tensor<model, data>& t) {
      return manual<model>([&](const auto& rows) {
        auto all = slice<0>(rows, {0}, {1}) * 0.0;
        for (Index i = 0; i < rows.extent(0); ++i)
          all = all + manual<data>([](const auto& row) {
                  auto y = row * row;
                  for (Index j = 1; j < 3; ++j) y = y + roll<1>(row, j);
                  return along<1, data>(y + all_reduce_over<data, model>(row));
                })(slice<0>(rows, {i}, {i + 1}));
        return along<0, model>(all);
      })(t);
    };
    const auto host = to_host(outer(x));
    for (int p = 0; p < m; ++p)
      for (Index j = 0; j < k; ++j) {
        double wanted = 0;
        for (Index i = 2 * p; i < 2 * p + 2; ++i) {
          wanted += ramp(i, j) * ramp(i, j);
          for (Index other = j / 3 * 3; other < j / 3 * 3 + 3; ++other)
            if (other != j) wanted += ramp(i, other);
          for (int q = 0; q < m; ++q)
            for (int e = 0; e < d; ++e) wanted += ramp(2 * q + i % 2, 3 * e + j % 3);
        }
        REQUIRE_THAT(host(p, j) == wanted);
      }
    const auto g = to_host(
        value_and_grad([&](const Tensor<model, data>& t) { return sum(outer(t)); })(x).gradient);
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < k; ++j)
        REQUIRE_THAT(g(i, j) == 2 * ramp(i, j) + 2 + static_cast<double>(d * m));
    const auto unused = from_function<Tensor<model, _>>(mesh, {n, 4}, Ramp{});
    const auto sums = to_host(manual<model>(
        [](const auto& rows) { return along<0, model>(einsum<"ij,ij->i">(rows, rows)); })(unused));
    REQUIRE_THAT(sums(n - 1) > 0);
    return "";
  }));
}

// 28334: the place of the greatest element, whose indices come from nowhere, within a function.
TEST_CASE("where the greatest element is, within a function") {
  CHECK(on_meshes([](const ProcessMesh<Grid>& mesh, int, int m) -> std::string {
    const auto x = from_function<Tensor<model, data>>(mesh, {3 * m, 5}, Ramp{});
    const auto i = manual<model>([](const auto& a) {
      const auto place = argmax<"ij->i">(sin(a));
      static_assert(std::is_same_v<typename std::decay_t<decltype(place)>::mesh_type,
                                   typename std::decay_t<decltype(a)>::mesh_type>);
      return along<0, model>(place);
    })(x);
    const auto host = to_host(i);
    for (Index r = 0; r < 3 * m; ++r) {
      Index best = 0;
      for (Index j = 1; j < 5; ++j)
        if (std::sin(ramp(r, j)) > std::sin(ramp(r, best))) best = j;
      REQUIRE_THAT(host(r) == best);
    }
    return "";
  }));
}

// 40907, 26890: checks of values before a function and within it.
TEST_CASE("numbers that are none are found before a function, and within it on one process alone") {
  CHECK(quiet(texts_of(4, [&](const std::shared_ptr<Transport>& world) -> std::string {
    MeshOptions options;
    options.check = Check::communicating;
    options.find = Find::nan_and_infinity;
    const auto mesh = make_mesh<Grid>(world, sizes<Grid>(2, 2), options);
    const auto x = from_function<Tensor<model, data>>(mesh, {4, 3}, Ramp{});
    const auto within = [](const auto& a) {
      return along<0, model>(log(cast<double>(axis_index<model>(a)) - 0.5 + a * 0.0));
    };
    if (auto text = says([&] { (void)manual<model>(within)(log(x - 100.0)); }, "log");
        !text.empty())
      return text;
    const std::string text = complaint_of([&] { (void)manual<model>(within)(x); });
    return mesh.coordinate<model>() == 0 && text.find("log") == std::string::npos
               ? "nothing is said"
               : "";
  })));
}

// 15982: gradients through an all-to-all whose dimensions are no multiples of each other.
TEST_CASE("the gradient of an all-to-all") {
  CHECK(on_meshes([](const ProcessMesh<Grid>& mesh, int, int m) -> std::string {
    const auto x = from_function<Tensor<data, _, model>>(mesh, {3, 2 * m, 3 * m}, Ramp{});
    const auto weights = from_function<Tensor<data, model, _>>(mesh, {3, 2 * m, 3 * m}, Ramp{});
    const auto f = [&](const Tensor<data, _, model>& t) {
      const Tensor<data, model, _> turned = manual<model>(
          [](const auto& a) { return along<1, model>(all_to_all_over<model, 1, 2>(a)); })(t);
      return sum(turned * weights);
    };
    const auto [v, g] = value_and_grad(f)(x);
    REQUIRE_THAT(to_host(g) == to_host(weights));
    return "";
  }));
}

// 21236: a function that is called again is planned as it was.
TEST_CASE("a call that is repeated makes no new plan, forward or backward") {
  CHECK(on_meshes([](const ProcessMesh<Grid>& mesh, int, int m) -> std::string {
    const auto x = from_function<Tensor<model, data>>(mesh, {4 * m, 5}, Ramp{});
    const auto loss = [&](const Tensor<model, data>& a) {
      return sum(manual<model>([](const auto& c) {
        return along<0, model>(c * all_reduce_over<model>(c) + permute_over<model, Shift<1>>(c));
      })(a));
    };
    const auto record = [&] {
      Recording recording(mesh.core());
      (void)value_and_grad(loss)(x);
      return recording.take();
    };
    (void)record();
    const Program first = record(), second = record();
    REQUIRE_THAT(first.entries().size() == second.entries().size());
    for (std::size_t i = 0; i < first.entries().size(); ++i)
      REQUIRE_THAT(first.entries()[i].plan == second.entries()[i].plan);
    return "";
  }));
}

TEST_CASE("a program of a manual function names its collectives, and says what they send") {
  const auto mesh = dry_mesh<Grid>(4, 8);
  const auto x = zeros<Tensor<model, data>>(mesh, 64, 16);
  Recording recording(mesh.core());
  (void)manual<model>([](const auto& a) { return all_gather_over<model, 0>(a); })(x);
  const Program program = recording.take();
  REQUIRE(program.entries().size() == 1);
  CHECK(program.entries()[0].label == "all_gather_over");
  CHECK(program.entries()[0].plan->count(all_gather) == 1);
  CHECK(program.entries()[0].plan->payload_bytes() == 7 * 8 * 4 * 8);
}

TEST_CASE("what runs within a function is recorded with its collectives, and on what is left") {
  const auto mesh = dry_mesh<Grid>(4, 8);
  const auto x = zeros<Tensor<model, data>>(mesh, 64, 16);
  Recording outside(mesh.core());
  Recording within(manual_mesh<model>(mesh).core());
  (void)manual<model>(
      [](const auto& a) { return all_reduce_over<model>(einsum<"ij,kj->ik", P<_, _>>(a, a)); })(x);
  const Program all = outside.take(), operators = within.take();
  REQUIRE(all.entries().size() == 2);
  REQUIRE(all.parts().size() == 2);
  CHECK(all.part_at(all.entry(0).part).name == "manual model");
  CHECK(all.entry(0).plan == operators.entry(0).plan);
  CHECK(all.part_at(all.entry(1).part).name.empty());
  CHECK(all.entry(1).plan->count(all_reduce) == 1);
  CHECK(all.payload_bytes(AxisSet{0}) == operators.payload_bytes());  // over data
  // Where every process has a link of its own, all parts take as long as one.
  const auto times = [](const Program& program) {
    return simulate(program, Network::nodes(program.mesh.processes(), 1, {}, {}));
  };
  CHECK(times(all).operators[0].seconds == times(operators).seconds);
  CHECK(times(all).seconds > times(operators).seconds);
  CHECK(all.payload_bytes(AxisSet{1}) == all.entry(1).plan->payload_bytes());
  const std::string text = explain(all);
  CHECK(text.find("manual model\n") != std::string::npos);
  CHECK(text.find("over model  all-reduce") != std::string::npos);
  CHECK_FALSE(check(all, only(over<Grid, model>(all_reduce))).kept);
  CHECK(check(all, only({over<Grid, model>(all_reduce), over<Grid, data>(all_reduce)})).kept);
  REQUIRE(operators.entries().size() == 1);
  CHECK(operators.entries()[0].label == "ij,kj->ik");
  CHECK(operators.entries()[0].plan->count(all_reduce) == 1);  // over data, of four processes
}

TEST_CASE("within a function, one of the mesh that is left is compiled, or left under way") {
  CHECK(on_meshes([](const ProcessMesh<Grid>& mesh, int, int m) -> std::string {
    const auto x = from_function<Tensor<model, data>>(mesh, {3 * m, 5}, Ramp{});
    const auto w = from_function<Tensor<_, data>>(mesh, {3, 5}, Ramp{});
    const auto body = [](const auto& a, const auto& b) { return (a * b + zeros_like(a)) * b; };
    const auto run = [&](const auto& how) {
      return to_host(value_and_grad([&](const Tensor<_, data>& t) {
                       return sum(manual<model>([&](const auto& a, const auto& b) {
                         return along<0, model>(how(a, b));
                       })(x, t));
                     })(w)
                         .gradient);
    };
    const auto plain = run(body);
    const auto compiled = [&](const auto& a, const auto& b) {
      auto call = compile(body);
      return call(a, b);
    };
    REQUIRE_THAT(run(compiled) == plain);
    const auto waited = [&](const auto& a, const auto& b) {
      return async([&] { return body(a, b); }).wait();
    };
    REQUIRE_THAT(run(waited) == plain);
    double wanted = 0;
    for (int p = 0; p < m; ++p) wanted += 2 * ramp(3 * p + 1, 2) * ramp(1, 2);
    REQUIRE_THAT(plain(1, 2) == wanted);
    return "";
  }));
}

TEST_CASE("a trace has the collectives by their names") {
  CHECK(quiet(texts_of(4, [&](const std::shared_ptr<Transport>& world) -> std::string {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto x = from_function<Tensor<model, data>>(mesh, {6, 4}, Ramp{});
    Tracing tracing(mesh);
    (void)manual<model>([](const auto& a) {
      const auto before = permute_over<model, Shift<1>>(a);
      return along<0, model>(before + all_reduce_over<model>(a));
    })(x);
    const Trace trace = tracing.take();
    REQUIRE_THAT(trace.program.entries().size() == 3);  // and the sum of both
    REQUIRE_THAT(trace.program.entries()[0].label == "permute_over");
    REQUIRE_THAT(trace.program.entries()[1].label == "all_reduce_over");
    bool moves = false;
    for (const TraceEvent& event : trace.events) moves = moves || event.entry == 0;
    REQUIRE_THAT(moves);
    return "";
  })));
}

TEST_CASE("what manual functions cannot do, they say") {
  CHECK(quiet(texts_of(4, [&](const std::shared_ptr<Transport>& world) -> std::string {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto x = from_function<Tensor<model, data>>(mesh, {5, 3}, Ramp{});
    const auto y = from_function<Tensor<model, data>>(mesh, {6, 3}, Ramp{});
    const auto same = [](const auto& a) { return along<0, model>(a); };
    std::string all =
        says([&] { (void)manual<model>(same)(x); },
             "dimension 0 of double 5x3 P<model,data> has extent 5, and is split into 2");
    all += says([&] { (void)manual<model>(same)(Tensor<model, data>()); }, "empty");
    all += says(
        [&] {
          (void)manual<model>(
              [](const auto& a) { return along<0, model>(reduce_scatter_over<model, 0>(a)); })(y);
        },
        "dimension 0 of double 3x3 P<_,data> has extent 3 and is cut into 2 parts");
    struct Both {
      static constexpr int to(int, int) { return 0; }
    };
    all += says(
        [&] {
          (void)manual<model>(
              [](const auto& a) { return along<0, model>(permute_over<model, Both>(a)); })(y);
        },
        "coordinate 1 sends to 0 along axis model, and so does coordinate 0");
    all += says(
        [&] {
          (void)manual<model>([](const auto& a) {
            return along<0, model>(permute_over<model, Sends<0, 2>>(a));
          })(y);
        },
        "which has 2 processes");
    all += says(
        [&] {
          (void)manual<model>([](const auto& a) {
            const auto equal = all_reduce_over<model>(a);
            DynamicTensor erased = equal;
            erased += DynamicTensor(a);
            return equal;
          })(y);
        },
        "the result differs over an axis over which the destination is equal");
    for (const DynamicMesh& to : {DynamicMesh(mesh), DynamicMesh(make_mesh<Grid>(world, 2, 2))})
      all += says(
          [&] {
            (void)manual<model>([&](const auto& a) {
              (void)reshard(DynamicTensor(a), Sharding::replicated(2), to);
              return along<0, model>(a);
            })(y);
          },
          "it leaves the function as its result");
    all += says(
        [&] { (void)reshard(DynamicTensor(y), Sharding::replicated(2), manual_mesh<model>(mesh)); },
        "it leaves the function as its result");
    const auto whole = manual<model>([](const auto& a) { return all_reduce_over<model>(a * a); });
    all += says(
        [&] {
          (void)async([&] {
            return manual<model>(
                [](const auto& a) { return along<0, model>(permute_over<model, Shift<1>>(a)); })(y);
          }).wait();
        },
        "another mesh's inside async");
    const auto same_as = [&](const auto& z) {
      return to_host(z) == to_host(whole(y)) ? std::string() : std::string("other values");
    };
    return all + same_as(compile(whole)(y)) + same_as(async([&] { return whole(y); }).wait());
  })));
}

TEST_CASE("a tensor that a manual function reads first is itself in a recording") {
  run_loopback(4, [](std::shared_ptr<Transport> w) {
    const auto mesh = make_mesh<Grid>(w, 2, 2);
    const auto x = random_normal<Tensor<data, model>>(mesh, {6, 4}, 1);
    Recording recording(mesh.core());
    (void)manual<model>([](const auto& xs) { return along<1, model>(xs + xs); })(x);
    (void)(x * x);
    const Program program = recording.take();
    bool same = program.size() > 1;  // operators
    for (const ProgramEntry& entry : program.entries())
      if (entry.part == 0)
        for (int k = 0; k < entry.operands.size(); ++k)
          same = same && program.tensor(entry.operands[k]).desc == entry.plan->slots[k].desc &&
                 program.tensor(entry.operands[k]).part == 0;
    if (!same) throw Error("an operand is described otherwise than in its plan");
  });
}
