// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: typed
// Products with epilogues, and operators that write into tensors that are there already.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <mutex>

#include <tessera/tessera.hpp>

#include "op/texts_of.hpp"
#include "support/grid.hpp"
#include "support/reference.hpp"

using namespace tessera;

namespace {
template <class... D> using Real = ShardedTensor<double, Grid, P<D...>>;
template <class... D> using Int = ShardedTensor<std::int64_t, Grid, P<D...>>;

struct Ramp {
  double scale = 0.25;
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    double value = 1;
    for (int d = 0; d < i.size(); ++d) value = value * 1.7 + static_cast<double>(i[d]);
    return scale * (value - 7.0);
  }
};
struct Clip {
  template <class T> KOKKOS_FUNCTION T operator()(T x, T limit) const {
    return x > limit ? limit : x;
  }
};
struct Count {
  template <class I> KOKKOS_FUNCTION std::int64_t operator()(const I& i) const {
    return i[0] * 10 + i[1];
  }
};
struct IsLarge {
  KOKKOS_FUNCTION std::int64_t operator()(double x) const { return x > 3 ? 1 : 0; }
};

/// Takes three element types, and returns a fourth.
struct Weigh {
  KOKKOS_FUNCTION float operator()(double x, std::int64_t n, bool counts) const {
    return counts ? static_cast<float>(x) * static_cast<float>(n) : 0.5f;
  }
};

template <class T> bool alike(const HostTensor<T>& x, const HostTensor<T>& y) {
  if (!(x.extents == y.extents)) return false;
  for (std::size_t i = 0; i < x.values.size(); ++i)
    if (x.values[i] != y.values[i] && !(std::fabs(static_cast<double>(x.values[i] - y.values[i])) <=
                                        1e-12 * (1 + std::fabs(static_cast<double>(y.values[i])))))
      return false;
  return true;
}

/// Returns the text of a call's error, or nothing.
template <class Call> std::string text_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

template <class F> void on_meshes(F f) {
  for (const MeshSizes<Grid> size : {sizes<Grid>(1, 1), sizes<Grid>(2, 2), sizes<Grid>(3, 2),
                                     sizes<Grid>(1, 4), sizes<Grid>(4, 1)}) {
    std::mutex mutex;
    std::string first;
    run_loopback(size.shape.processes(), [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(world, size);
      const std::string text = f(mesh);
      const std::lock_guard lock(mutex);
      if (first.empty()) first = text;
    });
    CHECK_MESSAGE(first.empty(), to_string(size.shape, Grid::names()) << ": " << first);
  }
}
}  // namespace

TEST_CASE("an epilogue equals its functions one after the other, and makes no tensor on the way") {
  on_meshes([](const ProcessMesh<Grid>& mesh) -> std::string {
    for (const Index n : {7, 1, 0, 12}) {
      const auto x = from_function<Real<data, _, model>>(mesh, {5, n, 6}, Ramp{});
      const auto w = from_function<Real<model, data>>(mesh, {6, 9}, Ramp{0.125});
      const auto bias = from_function<Real<model>>(mesh, {9}, Ramp{0.5});
      const auto residual = from_function<Real<_, _, data>>(mesh, {5, n, 9}, Ramp{2});
      const auto product = einsum<"bsm,mh->bsh">(x, w);

      REQUIRE_THAT(alike(to_host(einsum<"bsm,mh->bsh">(x, w, epilogue(fn::Gelu{}).bias(bias))),
                         to_host(gelu(product + bias))));
      REQUIRE_THAT(
          alike(to_host(einsum<"bsm,mh->bsh">(x, w, epilogue().scale(0.5).residual(residual))),
                to_host(residual + product * 0.5)));
      REQUIRE_THAT(alike(to_host(einsum<"bsm,mh->bsh">(
                             x, w, epilogue(fn::Relu{}).scale(-2.0).bias(bias).residual(residual))),
                         to_host(residual + relu(product * -2.0 + bias))));
      REQUIRE_THAT(alike(to_host(einsum<"bsm,mh->bsh">(x, w, epilogue(fn::Tanh{}))),
                         to_host(tanh(product))));
      REQUIRE_THAT(alike(to_host(einsum<"bsm,mh->bsh">(x, w, epilogue())), to_host(product)));
      REQUIRE_THAT(alike(to_host(einsum<"bsm,mh->bsh">(x, w, then(Clip{}, bias))),
                         to_host(map(Clip{}, product, bias))));
      // Under a spec of its own, where the sum is finished by a reduce-scatter before the function
      // acts.
      const auto scattered =
          einsum<"bsm,mh->bsh", P<_, _, model>>(x, w, epilogue(fn::Gelu{}).bias(bias));
      static_assert(std::is_same_v<decltype(scattered), const Real<_, _, model>>);
      REQUIRE_THAT(alike(to_host(scattered), to_host(gelu(product + bias))));
      // A function may return another element type.
      const auto large = einsum<"bsm,mh->bsh">(x, w, then(IsLarge{}));
      REQUIRE_THAT(std::is_same_v<typename decltype(large)::value_type, std::int64_t>);
      REQUIRE_THAT(to_host(large).values == to_host(map(IsLarge{}, product)).values);
    }
    // The peak is the plain product's: bias and activation need nothing of their own.
    const auto x = from_function<Real<data, model>>(mesh, {64, 32}, Ramp{});
    const auto w = from_function<Real<model, _>>(mesh, {32, 48}, Ramp{});
    const auto b = from_function<Real<_>>(mesh, {48}, Ramp{});
    detail::Arena& arena = mesh.arena();
    const auto peak_of = [&](const auto& run) {
      const Index held = arena.in_use();
      arena.reset_peak();
      (void)run();
      return arena.peak() - held;
    };
    const Index plain = peak_of([&] { return einsum<"ik,kj->ij">(x, w); });
    const Index fused =
        peak_of([&] { return einsum<"ik,kj->ij">(x, w, epilogue(fn::Gelu{}).bias(b)); });
    REQUIRE_THAT(plain == fused);
    return "";
  });
}

TEST_CASE("an epilogue that does not fit is an error with both facts") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    const auto x = zeros<Real<data, _>>(mesh, 4, 6);
    const auto w = zeros<Real<_, _>>(mesh, 6, 9);
    const auto short_bias = zeros<Real<_>>(mesh, 8);
    CHECK_THROWS_WITH_AS((void)(einsum<"ik,kj->ij">(x, w, epilogue().bias(short_bias))),
                         doctest::Contains("operand 3, letter j, 9 against 8"), ShapeError);
  });
}

TEST_CASE("operators write into tensors that are there, and leave them where they are") {
  on_meshes(
      [](const ProcessMesh<Grid>& mesh) -> std::
                                            string {
                                              for (const Index n : {7, 1, 0}) {
                                                const auto x = from_function<Real<data, model>>(
                                                    mesh, {n, 6}, Ramp{});
                                                const auto w = from_function<Real<model, data>>(
                                                    mesh, {6, 5}, Ramp{0.125});
                                                const auto product =
                                                    to_host(einsum<"ik,kj->ij">(x, w));
                                                const auto into =
                                                    [&](auto c, const auto& wanted,
                                                        const auto& write) -> std::string {
                                                  const void* const before = c.data();
                                                  const auto copy = c;
                                                  write(c);
                                                  REQUIRE_THAT(c.data() == before);
                                                  REQUIRE_THAT(copy.data() == before);
                                                  REQUIRE_THAT(alike(to_host(c), wanted));
                                                  const Index held = mesh.arena().in_use();
                                                  write(c);
                                                  REQUIRE_THAT(mesh.arena().in_use() == held);
                                                  return "";
                                                };
                                                const double nan =
                                                    std::numeric_limits<double>::quiet_NaN();
                                                for (const double old : {2.0, nan}) {
                                                  for (const std::string& text :
             {into(full<Real<data, _>>(mesh, {n, 5}, old), product,
                   [&](auto& c) { einsum_into<"ik,kj->ij">(c, x, w); }),
              into(full<Real<_, model>>(mesh, {n, 5}, old), product,
                   [&](auto& c) { einsum_into<"ik,kj->ij">(c, x, w); }),
              into(full<Real<Axes<model, data>, _>>(mesh, {n, 5}, old), product,
                   [&](auto& c) { einsum_into<"ik,kj->ij">(c, x, w, 1, 0); }),
              into(full<Real<_, _>>(mesh, {n, 5}, old), to_host(einsum<"ik,kj->ij">(x, w) * 3.0),
                   [&](auto& c) { einsum_into<"ik,kj->ij">(c, x, w, 3, 0); }),
              into(full<Real<model, _>>(mesh, {n, 6}, old), to_host(x),
                   [&](auto& c) { reshard_into(c, x); }),
              into(full<Real<data, model>>(mesh, {n, 6}, old), to_host(x),
                   [&](auto& c) { reshard_into(c, x); }),
              into(full<Real<model>>(mesh, {n}, old), to_host(sum<"ij->i">(x)),
                   [&](auto& c) { reduce_into<Sum, "ij->i">(c, x); }),
              into(full<Real<>>(mesh, {}, old), to_host(max(x)),
                   [&](auto& c) { reduce_into<Max, "ij->">(c, x); }),
              into(full<Real<_, data>>(mesh, {6, n}, old), to_host(transpose<"ij->ji">(x)),
                   [&](auto& c) { transpose_into<"ij->ji">(c, x); }),
              into(full<Real<_, model>>(mesh, {n, 6}, old), to_host(exp(x)),
                   [&](auto& c) { map_into(c, fn::Exp{}, x); })})
                                                    if (!text.empty()) return text;
                                                }
                                              }
                                              return "";
                                            });
}

TEST_CASE("alpha a b + beta c, finished, scattered and left open") {
  on_meshes([](const ProcessMesh<Grid>& mesh) -> std::string {
    for (const Index n : {7, 1, 0}) {
      const auto x = from_function<Real<data, model>>(mesh, {n, 6}, Ramp{});
      const auto w = from_function<Real<model, data>>(mesh, {6, 5}, Ramp{0.125});
      const auto start = from_function<Real<_, _>>(mesh, {n, 5}, Ramp{3});
      const auto wanted = to_host(einsum<"ik,kj->ij">(x, w) * 0.5 + start * -2.0);
      auto kept = reshard<P<data, _>>(start * 1.0);
      einsum_into<"ik,kj->ij">(kept, x, w, 0.5, -2);
      REQUIRE_THAT(alike(to_host(kept), wanted));
      auto scattered = reshard<P<data, model>>(start);
      einsum_into<"ik,kj->ij">(scattered, x, w, 0.5, -2);
      REQUIRE_THAT(alike(to_host(scattered), wanted));
      REQUIRE_THAT(
          alike(to_host(start), to_host(from_function<Real<_, _>>(mesh, {n, 5}, Ramp{3}))));
      // Twice the product: the first left open over model, the second added to it.
      auto open =
          einsum<"ik,kj->ij", P<data, _, Unreduced<Sum, model>>>(x, reshard<P<model, _>>(w));
      einsum_into<"ik,kj->ij">(open, x, w, 1, 1);
      REQUIRE_THAT(alike(to_host(open), to_host(einsum<"ik,kj->ij">(x, w) * 2.0)));
    }
    const auto i = from_function<Int<_, model>>(mesh, {4, 6}, Count{});
    auto c = full<Int<_, _>>(mesh, {4, 4}, 7);
    einsum_into<"ik,jk->ij">(c, i, i, 2, 3);
    const auto product = to_host(einsum<"ik,jk->ij">(i, i));
    for (std::size_t k = 0; k < product.values.size(); ++k)
      REQUIRE_THAT(to_host(c).values[k] == 2 * product.values[k] + 21);
    return "";
  });
}

TEST_CASE("a destination that is wrong, or shares memory with an operand, is refused") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    auto x = full<Real<data, _>>(mesh, {4, 4}, 1);
    const auto w = full<Real<_, _>>(mesh, {4, 4}, 1);
    auto wrong = zeros<Real<data, _>>(mesh, 4, 5);
    CHECK_THROWS_WITH_AS(einsum_into<"ik,kj->ij">(x, x, w),
                         doctest::Contains("shares its memory with operand 1"), UsageError);
    CHECK_THROWS_WITH_AS(einsum_into<"ik,kj->ij">(x, x, w, 1, 1),
                         doctest::Contains("shares its memory with operand 1"), UsageError);
    CHECK_THROWS_WITH_AS(einsum_into<"ik,kj->ij">(wrong, x, w),
                         doctest::Contains("the result is double 4x4"), ShapeError);
    CHECK_THROWS_WITH_AS(reshard_into(x, x), doctest::Contains("shares its memory"), UsageError);
    const auto other = make_mesh<Grid>(world, 2, 1);
    auto elsewhere = zeros<Real<data, _>>(other, 4, 4);
    CHECK_THROWS_WITH_AS(einsum_into<"ik,kj->ij">(elsewhere, x, w),
                         doctest::Contains("another mesh"), MeshError);
    Real<data, _> empty;
    CHECK_THROWS_AS(einsum_into<"ik,kj->ij">(empty, x, w), UsageError);
  });
}

TEST_CASE("any typed operator with one result writes into a tensor that is there") {
  on_meshes([](const ProcessMesh<Grid>& mesh) -> std::string {
    const auto x = from_function<Real<data, model>>(mesh, {7, 12}, Ramp{});
    const auto kernel = from_function<Real<_>>(mesh, {3}, Ramp{});
    const auto ids = iota<ShardedTensor<std::int32_t, Grid, P<model>>>(mesh, {5});
    const auto larger = x + 1.0;
    const HostTensor<double> to_host_of_x = to_host(x);
    int number = 0, first = 0;
    const auto same = [&](const auto& f) {
      const auto expected = f();
      auto y = zeros_like(expected);
      const void* const memory = y.core().data();
      into(y, f);
      ++number;
      if (y.core().data() != memory || !(to_host(y).values == to_host(expected).values))
        first = first == 0 ? number : first;
    };
    same([&] { return cumsum<"ij", 'j', P<_, model>>(x); });
    same([&] { return tessera::sort<"ij", 'i', P<data, model>>(x); });
    same([&] { return roll<0, P<model, data>>(x, 2); });
    same([&] { return pad<P<data, _>>(x, {1, 0}, {0, 2}); });
    same([&] { return slice<P<_, data>>(x, {1, 2}, {6, 9}); });
    same([&] { return reshape<P<data>>(x, {84}); });
    same([&] { return concatenate<0, P<data, model>>(x, x); });
    same([&] { return argmax<"ij->i", P<model>>(x); });
    same([&] { return take<"ij,k->ik", P<_, model>>(x, ids); });
    same([&] { return maximum(x, larger); });
    same([&] { return map<"ij->ji", P<data, model>>(fn::Exp{}, x); });
    same([&] { return reshard<P<data, model>>(x); });
    same([&] { return full<Real<data, model>>(mesh, {7, 12}, 3); });
    same([&] { return random_normal<Real<_, model>>(mesh, {7, 12}, 5); });
    same([&] { return from_function<Real<model, data>>(mesh, {7, 12}, Ramp{}); });
    same([&] { return from_host<Real<_, data>>(mesh, {7, 12}, to_host_of_x.values); });
    same([&] { return arange<ShardedTensor<std::int32_t, Grid, P<model>>>(mesh, 5, 17, 2); });
    same([&] { return ones_like(x); });
    return first == 0 ? std::string() : "operator " + std::to_string(first);
  });
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    const auto x = full<Real<data, _>>(mesh, {4, 4}, 1);
    auto y = zeros_like(x);
    into(y, [&] { return exp(exp(x)); });
    CHECK(to_host(y).values == to_host(exp(exp(x))).values);
    const auto before = to_host(y).values;
    CHECK_THROWS_WITH_AS(into(y,
                              [&] {
                                const auto z = exp(x);
                                (void)(z + z);
                                return z;
                              }),
                         doctest::Contains("its last operator has not made"), UsageError);
    auto other = zeros_like(x);
    CHECK_THROWS_WITH_AS(into(y,
                              [&] {
                                map_into(other, fn::Exp{}, x);
                                return exp(x);
                              }),
                         doctest::Contains("a destination of its own"), UsageError);
    CHECK(to_host(y).values == before);
    CHECK(to_host(other).values == to_host(zeros_like(x)).values);
    Real<data, _> kept;
    into(y, [&] { return (kept = exp(x)) * 2.0; });
    CHECK(to_host(kept).values == to_host(exp(x)).values);
    into(y, [&] { return exp(exp(x)); });
    into(y, [&] {  // read by an operator on the way, and by the last, a map
      return map(fn::Add{}, y, exp(y * 0.0));
    });
    CHECK(to_host(y).values[0] == before[0] + 1);
    CHECK_THROWS_WITH_AS(into(y, [&] { return x; }), doctest::Contains("calls no operator"),
                         UsageError);
    CHECK_THROWS_WITH_AS(into(y, [&] { return top_k<"ij", 'j'>(x, 4).values; }),
                         doctest::Contains("several tensors"), UsageError);
    into(y, [&] { return exp(x); });
    CHECK(to_host(y).values == to_host(exp(x)).values);
    CHECK_THROWS_WITH_AS(into(y,
                              [&] {
                                return full<Real<data, _>>(mesh, {4, 5}, 1);
                              }),
                         doctest::Contains("give a tensor of the result's element type, extents"),
                         ShapeError);
  });
}

TEST_CASE("a map on dynamic tensors of several element types is the typed map") {
  on_meshes([](const ProcessMesh<Grid>& mesh) -> std::string {
    const auto x = from_function<Real<data, model>>(mesh, {7, 6}, Ramp{});
    const auto n = from_function<Int<_, model>>(mesh, {7, 6}, Count{});
    const auto counts = less(from_function<Real<model>>(mesh, {6}, Ramp{}), 0.5);
    const auto y = map<"ij,ij,j->ij", P<model, _>>(Weigh{}, x, n, counts);
    const Sharding out{{1}, {}};
    const DynamicTensor a = x, b = n, c = counts;
    const DynamicTensor z =
        map_dynamic<double, std::int64_t, bool>("ij,ij,j->ij", Weigh{}, out, a, b, c);
    REQUIRE_THAT(to_host<float>(z) == to_host(y));
    const DynamicTensor there = zeros<float>(mesh, {7, 6}, out);
    map_into<double, std::int64_t, bool>("ij,ij,j->ij", there, Weigh{}, a, b, c);
    REQUIRE_THAT(to_host<float>(there) == to_host(y));
    try {
      (void)map_dynamic<double, std::int32_t, bool>("ij,ij,j->ij", Weigh{}, out, a, b, c);
      return "a tensor of int64 is read as int32";
    } catch (const UsageError& error) {
      REQUIRE_THAT(std::string(error.what())
                       .find("operand 2 is of int64 and the function is "
                             "called on int32") != std::string::npos);
    }
    return "";
  });
}

TEST_CASE(
    "a call on dynamic tensors writes into the tensor it is given, or refuses before it runs") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const DynamicTensor x = from_function<Real<data, model>>(mesh, {6, 8}, Ramp{});
    const DynamicTensor w = from_function<Real<model, _>>(mesh, {8, 6}, Ramp{});
    const Sharding rows{{0}, {}};
    const auto says = [&](const auto& call, const char* part) {
      return text_of(call).find(part) != std::string::npos;
    };
    // With three operands the last product goes there, whichever operands the first ones had.
    const DynamicTensor y = zeros<double>(mesh, {6, 8}, rows);
    (void)einsum("ij,jk,kl->il", {x, w, x}, {rows, into(y)});
    CHECK(alike(to_host<double>(y), to_host<double>(einsum("ij,jk,kl->il", {x, w, x}, rows))));
    // A map's destination may be an operand.
    const DynamicTensor z = from_function<Real<data, model>>(mesh, {6, 8}, Ramp{});
    (void)maximum(z, -1 * x, into(z));
    CHECK(to_host<double>(z) == to_host<double>(maximum(x, -1 * x)));
    // Lines that are merged between processes.
    const DynamicTensor lines = from_function<Real<Axes<data, model>>>(mesh, {37}, Ramp{});
    const DynamicTensor sorted = zeros_like(lines);
    (void)sort("i", 'i', lines, {}, into(sorted));
    CHECK(to_host<double>(sorted) == to_host<double>(sort("i", 'i', lines)));
    CHECK(sorted.core().storage() != lines.core().storage());
    // A contract goes with it.
    CHECK(says([&] { (void)reshard(x, rows, {into(y), Contract::nothing()}); }, "accepts Only<>"));

    const auto before = to_host<double>(y);
    CHECK(says([&] { (void)roll(x, 1, 0, into(y)); }, "the result is double 6x8"));
    CHECK(says([&] { (void)roll(y, 1, 0, into(y)); }, "shares its memory"));
    CHECK(says([&] { (void)variance<double>("ij->i", y, 1, into(y)); }, "the result is double 6"));
    CHECK(says([&] { (void)norm<2, double>("ij->i", y, into(y)); }, "the result is double 6"));
    CHECK(says([&] { (void)standard_deviation<double>("ij->i", y, 0, into(y)); },
               "the result is double 6"));
    CHECK(says([&] { (void)logsumexp<double>("ij->i", y, into(y)); }, "the result is double 6"));
    CHECK(says([&] { (void)top_k("ij", 'j', x, 2, into(y)); },
               "ij: the result of the call is not one tensor"));
    CHECK(says(
        [&] {
          (void)reshard_together({x, w}, {rows, rows}, into(y));
        },
        "returns several tensors"));
    CHECK(says([&] { (void)to_root<double>(x, 0, into(y)); },
               "to_root: the result of the call is not one tensor"));
    CHECK(to_host<double>(y) == before);
  });
}

TEST_CASE("a typed call takes the same options as a dynamic one") {
  using Careful = Strict<Grid>;
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto x = from_function<Real<data, model>>(mesh, {6, 8}, Ramp{});
    const auto says = [&](const auto& call, const char* part) {
      return text_of(call).find(part) != std::string::npos;
    };
    // A destination: of one operator, of several, and of a map that reads it.
    const auto rolled = zeros_like(x);
    const void* const memory = rolled.core().data();
    const auto same = roll<0>(x, 1, into(rolled));
    CHECK(same.core().storage() == rolled.core().storage());
    CHECK(rolled.core().data() == memory);
    CHECK(to_host(rolled) == to_host(roll<0>(x, 1)));
    const Real<data> rows = zeros<Real<data>>(mesh, 6);
    (void)variance<"ij->i">(x, 1, into(rows));
    CHECK(to_host(rows) == to_host(variance<"ij->i">(x, 1)));
    (void)logsumexp<"ij->i">(x, into(rows));
    CHECK(to_host(rows) == to_host(logsumexp<"ij->i">(x)));
    (void)norm<1, "ij->i">(x, into(rows));
    CHECK(to_host(rows) == to_host(norm<1, "ij->i">(x)));
    const auto z = from_function<Real<data, model>>(mesh, {6, 8}, Ramp{});
    (void)maximum(z, -1.0 * x, into(z));
    CHECK(to_host(z) == to_host(maximum(x, -1.0 * x)));
    (void)ones_like(x, into(z));
    CHECK(to_host(z) == to_host(ones_like(x)));
    CHECK(says([&] { (void)sum<"ij->i">(x, into(rolled)); }, "the result is double 6"));
    CHECK(says([&] { (void)top_k<"ij", 'j'>(x, 2, into(z)); }, "is not one tensor"));
    // A contract, beside the one of its type.
    CHECK(says([&] { (void)sum<"ij->i">(x, Contract::nothing()); }, "accepts Only<>"));
    CHECK(says([&] { (void)sum<"ij->i", Deduced, Only<all_reduces<>>>(x, Contract::nothing()); },
               "accepts Only<>"));
    CHECK(to_host(sum<"ij->i">(x, contract_of<Grid, Only<all_reduces<model>>>())) ==
          to_host(sum<"ij->i">(x)));
    // The sharding of its type, or none.
    CHECK(to_host(roll<0>(x, 1, x.sharding())) == to_host(rolled));
    CHECK(says(
        [&] {
          (void)roll<0>(x, 1, Sharding{{}, {1}});
        },
        "roll: the call asks for a result that is sharded P<_,model>, and its type says "
        "P<data,model>"));
    // Parts of one kind are refused, and a sharding where none is to choose.
    const Sharding whole{{}, {}};
    const DynamicTensor d = x;
    CHECK(says([&] { (void)roll(d, 1, 0, {whole, CallOptions(whole)}); }, "twice"));
    CHECK(says([&] { (void)reshard(d, whole, whole); }, "reshard: the call is given the sharding"));
    // All at once, where the mesh is strict.
    const auto strict = make_mesh<Careful>(world, 2, 2);
    const DynamicTensor s =
        from_function<ShardedTensor<double, Careful, P<data, model>>>(strict, {6, 8}, Ramp{});
    const DynamicTensor y = zeros<double>(strict, {8, 6}, whole);
    (void)transpose("ij->ji", s, {into(y), whole, Contract{}});
    CHECK(to_host<double>(y) == to_host<double>(transpose("ij->ji", s)));
    CHECK(says([&] { (void)transpose("ij->ji", s, whole); }, "the mesh is strict"));
  });
}

TEST_CASE("memory of the application goes to a tensor that is there, and a tensor to such memory") {
  on_meshes([](const ProcessMesh<Grid>& mesh) -> std::string {
    const Extents extents{7, 6};
    const auto x = from_function<Real<data, model>>(mesh, extents, Ramp{});
    const auto whole = to_host(x);
    // Boxes that are the tensor's own blocks are copied, not adopted.
    auto y = zeros_like(x);
    const Box own = block(extents, x.sharding(), mesh.shape(), mesh.coordinates());
    const Kokkos::View<double**, Kokkos::LayoutRight> rows(
        "rows", static_cast<std::size_t>(own.extents()[0]),
        static_cast<std::size_t>(own.extents()[1]));
    to_irregular(x, own, rows);
    const void* const memory = y.core().data();
    (void)from_irregular(mesh, extents, y.sharding(), own, rows, into(y));
    REQUIRE_THAT(y.core().data() == memory && to_host(y) == whole);
    auto z = zeros_like(x);
    into(z, [&] { return from_root<Real<data, model>>(mesh, extents, 0, whole.values); });
    REQUIRE_THAT(to_host(z) == whole);
    // What lies there already is no source; no block is empty.
    REQUIRE_THAT(mesh.shape()[1] == 4 || text_of([&] {
                                           (void)from_irregular(
                                               mesh, extents, y.sharding(), own,
                                               Kokkos::View<double**, Kokkos::LayoutRight>(
                                                   y.data(), rows.extent(0), rows.extent(1)),
                                               into(y));
                                         }).find("shares its memory") != std::string::npos);
    std::vector<double> there(mesh.process() == 0 ? whole.values.size() : 1);
    to_root_into(std::span(there), x);
    REQUIRE_THAT(mesh.process() != 0 || there == whole.values);
    if (mesh.process() == 0) there.pop_back();
    REQUIRE_THAT(text_of([&] {
                   to_root_into(std::span(there), x);
                 }).find("42 elements and the root's memory 41") != std::string::npos);
    REQUIRE_THAT(to_host(finish(x)) == whole && finish(x).core().storage() == x.core().storage());
    return "";
  });
  // To another mesh, into a tensor of that mesh.
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto other = make_mesh<Grid>(world->among({3, 1, 0, 2}), sizes<Grid>(4, 1));
    const DynamicTensor x = from_function<Real<data, model>>(mesh, {7, 6}, Ramp{});
    const Sharding rows{{0}, {}};
    const DynamicTensor y = zeros<double>(other, {7, 6}, rows);
    (void)reshard(x, rows, other, into(y));
    CHECK(to_host<double>(y) == to_host<double>(x));
    CHECK_THROWS_WITH_AS((void)reshard(x, Sharding{{}, {0}}, other, into(y)),
                         doctest::Contains("the result is double 7x6"), ShapeError);
    CHECK_THROWS_WITH_AS((void)reshard(x, rows, other, into(x)),
                         doctest::Contains("lies on another mesh than the one to go to"),
                         MeshError);
    auto goes = async([&] { return reshard(x, rows, other, into(y)); });
    CHECK_THROWS_WITH_AS((void)to_host<double>(y), doctest::Contains("started at"), UsageError);
    CHECK(to_host<double>(goes.wait()) == to_host<double>(x));
  });
}
