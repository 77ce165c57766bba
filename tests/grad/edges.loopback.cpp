// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gradients of norms and standard deviations where they are 0: PyTorch's, which are 0. Gradients of
// triangles, whose other elements do not matter, and of what chooses. Gradients of half types that
// several readers give, against the same in double, rounded.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <tessera/grad.hpp>
#include <tessera/op/compile.hpp>
#include <tessera/tessera.hpp>

#include "grad/typed.hpp"

using namespace tessera;
using namespace gradient_test;

namespace {
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;

/// The gradient is 0 in the rows where x is alike (or 0), and finite and not 0 in the others.
template <class T> void rows(const ProcessMesh<Grid>& mesh, const std::vector<T>& x) {
  const auto t = from_host<Tensor<T, data, model>>(mesh, {3, 4}, x);
  const auto ends_in = [&](const auto& f, bool last) {
    const auto g = to_host(value_and_grad([&](const auto& v) { return sum(f(v)); })(t).gradient);
    double others = 0;
    for (std::size_t i = 0; i < 12; ++i) {
      const auto size = static_cast<double>(fn::Abs{}(g.values[i]));
      if (i < 8 && !(i >= 4 && last))
        CHECK(size == 0);
      else
        others += size;
    }
    CHECK(std::isfinite(others));
    CHECK(others > 0);
  };
  ends_in([](const auto& v) { return norm<2, "ij->i">(v); }, true);
  ends_in([](const auto& v) { return standard_deviation<"ij->i">(v); }, false);
}

TEST_CASE("the gradient of a norm and of a standard deviation that are 0 is 0") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto of = [&]<class T>(T) {
      std::vector<T> x(12, T(0.0));
      for (std::size_t i = 4; i < 8; ++i) x[i] = T(3.0);
      for (std::size_t i = 8; i < 12; ++i) x[i] = T(static_cast<double>(i * i) * 0.125);
      rows<T>(mesh, x);
    };
    of(double{});
    of(float{});
    of(half{});
    // The gradient has a gradient of its own: d |x|^2 / 2 is |dx|^2, whatever the way.
    const auto t = zeros<Tensor<double, data, model>>(mesh, {3, 4});
    const auto twice = value_and_grad([](const auto& v) {
      return sum(value_and_grad([](const auto& u) { return norm(u); })(v).gradient);
    })(t);
    for (const double x : to_host(twice.gradient).values) CHECK(x == 0);
  });
}

TEST_CASE("a norm of elements whose squares overflow or vanish, by the largest magnitude") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto of = [&]<class T>(T scale) {
      const auto x = full<Tensor<T, data>>(mesh, {4}, scale);
      const auto [norm_of, gradient] = value_and_grad([](const auto& v) {
        const auto m = stop_gradient(norm<infinite_norm>(v));
        return m * norm<2>(v / m);
      })(x);
      CHECK(to_host(norm_of)() == T(2) * scale);
      for (const T each : to_host(gradient).values)
        CHECK(std::fabs(each - T(0.5)) <= std::numeric_limits<T>::epsilon());
    };
    of(3e200);
    of(3e-200);
    of(3e30f);
    of(3e-30f);
  });
}

TEST_CASE("no gradient passes outside a triangle, NaN and infinite ones neither") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto of = [&]<class T>(T) {
      const auto x = full<Tensor<T, data, model>>(mesh, {3, 3}, T(2.0));
      const auto by = [&](double outside, bool lower) {
        return from_function<Tensor<T, data, model>>(
            mesh, {3, 3}, [outside, lower](const GlobalIndex& i) {
              return static_cast<T>(
                  static_cast<float>((lower ? i[1] > i[0] : i[1] < i[0]) ? outside : 3.0));
            });
      };
      for (const double outside : {double(NAN), double(INFINITY)})
        for (const bool lower : {true, false}) {
          const auto g = to_host(value_and_grad([&](const auto& v) {
                                   return sum((lower ? tril(v) : triu(v)) * by(outside, lower));
                                 })(x)
                                     .gradient);
          CHECK(g.values == to_host(by(0, lower)).values);
        }
    };
    of(double{});
    of(half{});
  });
}
/// The gradients of functions that read a tensor several times, which add `big`, ones and twos.
template <class T> std::vector<double> of_several(const ProcessMesh<Grid>& mesh, double big) {
  const auto u = full<Tensor<T, data>>(mesh, {6}, T(1.0)), one = u;
  const auto b = full<Tensor<T, data>>(mesh, {6}, T(big)), half_of_b = b * T(0.5);
  const auto thrice = from_function<Tensor<T, data>>(
      mesh, {18}, [big](const GlobalIndex& i) { return T(i[0] < 6 ? big : 1.0); });
  std::vector<double> all;
  const auto add = [&](const auto& gradient) {
    for (const T x : to_host(gradient).values) all.push_back(static_cast<double>(x));
  };
  const auto by = [&](const auto& f) {
    const auto gradient = [&](const auto& v) { return value_and_grad(f)(v).gradient; };
    add(gradient(u));
    add(compile(gradient)(u));
  };
  by([&](const auto& v) { return sum(v * b) + sum(v) + sum(v); });
  by([&](const auto& v) { return sum(concatenate<0>(v, v, v) * thrice); });
  by([&](const auto& v) {
    return einsum<"i,i->">(v, b) + einsum<"i,i->">(v, one) + einsum<"i,i->">(v, one);
  });
  by([&](const auto& v) {
    return sum(slice(v, {0}, {5}) * T(big)) + sum(slice(v, {2}, {6})) + sum(slice(v, {2}, {5}));
  });
  by([&](const auto& v) {
    const auto parts = slices<0>(v, {{0}, {2}, {2}}, {{5}, {6}, {5}});
    return sum(parts[0] * T(big)) + sum(parts[1]) + sum(parts[2]);
  });
  // The gradient by u of its own gradient's sum.
  by([&](const auto& v) {
    return sum(value_and_grad([&](const auto& w) {
                 return sum(w * w * half_of_b) + sum(w * w) + sum(w) + sum(w);
               })(v)
                   .gradient);
  });
  return all;
}
template <class T> void rounds_once(const ProcessMesh<Grid>& mesh, double big) {
  const std::vector<double> exact = of_several<double>(mesh, big), made = of_several<T>(mesh, big);
  REQUIRE(made.size() == exact.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    CAPTURE(i);
    CHECK(made[i] == static_cast<double>(static_cast<T>(exact[i])));
  }
}

TEST_CASE("gradients of half types that several readers give are added wider and rounded once") {
  for (const int processes : {1, 4})
    run_loopback(processes, [&](std::shared_ptr<Transport> world) {
      const auto mesh =
          processes == 1 ? make_mesh<Grid>(world, 1, 1) : make_mesh<Grid>(world, 2, 2);
      rounds_once<half>(mesh, 2048);
      rounds_once<bfloat16>(mesh, 256);
    });
}

TEST_CASE("what chooses passes no gradient to what it did not choose") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto of = [&]<class T>(T) {
      // The last element of each row is the largest, and the only one above 2.
      const auto x = from_function<Tensor<T, data, model>>(
          mesh, {3, 3}, [](const GlobalIndex& i) { return T(i[1] == 2 ? 3.0 : -1.0); });
      const auto two = full<Tensor<T, data, model>>(mesh, {3, 3}, T(2.0));
      const auto by = [&](double elsewhere, bool last) {
        return from_function<Tensor<T, data, model>>(
            mesh, {3, 3}, [elsewhere, last](const GlobalIndex& i) {
              return T((i[1] == 2) == last ? 5.0 : elsewhere);
            });
      };
      for (const double dead : {double(NAN), double(INFINITY)}) {
        const auto passes = [&](const auto& f, bool last) {
          const auto at = by(dead, last);
          const auto g = value_and_grad([&](const auto& v) { return sum(f(v) * at); })(x).gradient;
          CHECK(to_host(g).values == to_host(by(0, last)).values);
        };
        passes([](const auto& v) { return relu(v); }, true);
        passes([](const auto& v) { return maximum(v, T(2.0)); }, true);
        passes([](const auto& v) { return maximum(T(2.0), v); }, true);
        passes([&](const auto& v) { return maximum(v, two); }, true);
        passes([](const auto& v) { return minimum(v, T(2.0)); }, false);
        passes([&](const auto& v) { return minimum(two, v); }, false);
        // Where a row's cotangent is not finite, its largest element alone has it.
        const auto row = full<Tensor<T, data>>(mesh, {3}, T(dead));
        const auto of_max = to_host(
            value_and_grad([&](const auto& v) { return sum(reduce<Max, "ij->i">(v) * row); })(x)
                .gradient);
        for (Index i = 0; i < 3; ++i) {
          CHECK(of_max(i, 0) == T(0.0));
          CHECK(of_max(i, 1) == T(0.0));
          CHECK(!std::isfinite(static_cast<double>(of_max(i, 2))));
        }
      }
    };
    of(double{});
    of(half{});
  });
}

/// Of as many equal elements that their number is beyond half's numbers, each has its share.
template <class T> void shares_among_many(const ProcessMesh<Grid>& mesh) {
  constexpr Index n = 70'000, rows = 2;
  const auto x = zeros<Tensor<T, data>>(mesh, {n});
  const auto each_is = [](const auto& gradient, double wanted) {
    Index wrong = 0;
    for (const T g : to_host(gradient).values) wrong += g != T(wanted);
    return wrong == 0;
  };
  const auto of = [&](const auto& f) {
    return value_and_grad([&](const auto& v) { return f(v) * T(1024.0); })(x).gradient;
  };
  CHECK(each_is(of([](const auto& v) { return reduce<Max, "i->">(v); }), 1024.0 / n));
  CHECK(each_is(of([](const auto& v) { return reduce<Min, "i->">(v); }), 1024.0 / n));
  const auto ids = from_function<ShardedTensor<std::int32_t, Grid, P<data>>>(
      mesh, {n}, [](const GlobalIndex&) { return std::int32_t{1}; });
  const auto table = full<Tensor<T, _>>(mesh, {rows}, T(-1.0));
  CHECK(each_is(of([&](const auto& v) { return sum(scatter<Max, "v,b,b->v">(table, ids, v)); }),
                1024.0 / n));
}

TEST_CASE("the shares of many equal elements of half types are not lost in their number") {
  for (const int processes : {1, 4})
    run_loopback(processes, [&](std::shared_ptr<Transport> world) {
      const auto mesh =
          processes == 1 ? make_mesh<Grid>(world, 1, 1) : make_mesh<Grid>(world, 2, 2);
      shares_among_many<half>(mesh);
      shares_among_many<bfloat16>(mesh);
      shares_among_many<float>(mesh);
    });
}

TEST_CASE("a running extreme's gradient goes to the first NaN, and before to the first of equals") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    const auto of = [&]<class T>(T) {
      const auto row = [&](const std::vector<double>& values) {
        std::vector<T> x;
        for (const double v : values) x.push_back(T(v));
        return from_host<Tensor<T, data>>(mesh, {static_cast<Index>(x.size())}, x);
      };
      const auto check = [&](const std::vector<double>& x, const auto& f,
                             const std::vector<double>& wanted) {
        const auto weights = row({1, 2, 4, 8, 16});
        const auto g = to_host(
            value_and_grad([&](const auto& v) { return sum(f(v) * weights); })(row(x)).gradient);
        for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(g.values[i] == T(wanted[i]));
      };
      const auto greatest = [](const auto& v) { return cumulative<Max, "i", 'i'>(v); };
      const auto least = [](const auto& v) { return cumulative<Min, "i", 'i'>(v); };
      const auto back = [](const auto& v) {
        return cumulative<Max, "i", 'i'>(v, {.reverse = true});
      };
      check({1, NAN, 2, 0, 3}, greatest, {1, 30, 0, 0, 0});
      check({1, NAN, 2, 0, 3}, least, {1, 30, 0, 0, 0});
      check({1, NAN, 2, 0, 3}, back, {0, 3, 0, 0, 28});
      check({1, 2, NAN, NAN, 3}, greatest, {1, 2, 28, 0, 0});
      check({NAN, 2, NAN, 1, 3}, least, {31, 0, 0, 0, 0});
      check({1, 2, 2, 1, 2}, greatest, {1, 30, 0, 0, 0});
      check({2, 1, 1, 2, 1}, least, {1, 30, 0, 0, 0});
    };
    of(double{});
    of(half{});
  });
}
}  // namespace
