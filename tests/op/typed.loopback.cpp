// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: typed
// The typed surface: what types come out, what values, and which sentences a wrong call is answered
// with.
#include <doctest/doctest.h>

#include <mutex>

#include <tessera/tessera.hpp>

#include "op/texts_of.hpp"
#include "support/grid.hpp"
#include "support/reference.hpp"

using namespace tessera;

namespace {
template <class... D> using Real = ShardedTensor<double, Grid, P<D...>>;
template <class... D> using Int = ShardedTensor<std::int64_t, Grid, P<D...>>;

/// A value that depends on the global index.
struct Ramp {
  double scale = 0.25;
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    double value = 1;
    for (int d = 0; d < i.size(); ++d) value = value * 1.7 + static_cast<double>(i[d]);
    return scale * (value - 7.0);
  }
};
struct Count {
  template <class I> KOKKOS_FUNCTION std::int64_t operator()(const I& i) const {
    std::int64_t value = 3;
    for (int d = 0; d < i.size(); ++d) value = value * 5 % 17 + i[d];
    return value % 11 - 5;
  }
};

template <class T> support::Whole<T> whole_of(const HostTensor<T>& x) {
  support::Whole<T> result(x.extents);
  result.values = x.values;
  return result;
}
template <class T>
bool close(const HostTensor<T>& x, const support::Whole<T>& y, double tolerance = 1e-12) {
  if (!(x.extents == y.extents)) return false;
  for (std::size_t i = 0; i < x.values.size(); ++i)
    if (!(std::fabs(static_cast<double>(x.values[i] - y.values[i])) <=
          tolerance * (1 + std::fabs(static_cast<double>(y.values[i])))))
      return false;
  return true;
}

/// Runs f on meshes of several shapes; f returns what is wrong.
template <class F> void on_meshes(F f) {
  for (const MeshSizes<Grid> size : {sizes<Grid>(1, 1), sizes<Grid>(2, 2), sizes<Grid>(3, 2),
                                     sizes<Grid>(1, 4), sizes<Grid>(4, 1), sizes<Grid>(2, 4)}) {
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
using support::map, support::Whole;

}  // namespace

TEST_CASE("the type of a result follows from the types of the operands") {
  on_meshes([](const ProcessMesh<Grid>& mesh) -> std::string {
    const auto x = from_function<Real<data, _, model>>(mesh, {4, 3, 6}, Ramp{});
    const auto w = from_function<Real<data, model>>(mesh, {6, 5}, Ramp{0.5});
    const auto h = einsum<"bsm,mh->bsh">(x, w);
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(h)>, Real<data, _, model>>);
    const auto y = einsum<"bsm,mh->bsh", P<_, Axes<model, data>, _>>(x, w);
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(y)>, Real<_, Axes<model, data>, _>>);
    static_assert(std::is_same_v<decltype(sum<"bsm->bm">(x)), Real<data, model>>);
    static_assert(std::is_same_v<decltype(sum(x)), Real<>>);
    static_assert(std::is_same_v<decltype(transpose<"bsm->msb">(x)), Real<model, _, data>>);
    static_assert(std::is_same_v<decltype(replicate(x)), Real<_, _, _>>);
    static_assert(std::is_same_v<decltype(split<1, data>(x)), Real<_, data, _>>);
    static_assert(
        std::is_same_v<decltype(split<0, Axes<data, model>>(x)), Real<Axes<data, model>, _, _>>);
    static_assert(
        std::is_same_v<decltype(reshard<P<_, Axes<model>, data>>(x)), Real<_, model, data>>);
    static_assert(std::is_same_v<decltype(gelu(x)), Real<data, _, model>>);
    static_assert(std::is_same_v<decltype(softmax<"bsv", 'v'>(x)), Real<data, _, model>>);
    REQUIRE_THAT(close(to_host(h), support::einsum(parse("bsm,mh->bsh"), whole_of(to_host(x)),
                                                   whole_of(to_host(w)))));
    REQUIRE_THAT(close(to_host(y), whole_of(to_host(h))));
    REQUIRE_THAT(to_host(split<1, data>(x)) == to_host(x));
    REQUIRE_THAT(to_host(reshard<P<_, model, data>>(x)) == to_host(x));
    REQUIRE_THAT(to_host(replicate(x)) == to_host(x));
    REQUIRE_THAT(reshard<P<data, _, model>>(x).data() ==
                 x.data());  // nothing to do: the same block
    REQUIRE_THAT(to_host(transpose<"mb->bm">(transpose<"bm->mb">(w))) == to_host(w));
    return "";
  });
}

TEST_CASE("creation makes the same tensor on every mesh") {
  HostTensor<double> normal, uniform;
  on_meshes([&](const ProcessMesh<Grid>& mesh) -> std::string {
    const auto f = to_host(from_function<Int<model, data>>(mesh, {5, 7}, Count{}));
    for (Index i = 0; i < 5; ++i)
      for (Index j = 0; j < 7; ++j)
        REQUIRE_THAT(f(i, j) == ((3 * 5 % 17 + i) * 5 % 17 + j) % 11 - 5);
    const auto n = to_host(random_normal<Real<data, model>>(mesh, {5, 7}, 3, 1.0, 2.0));
    const auto u = to_host(random_uniform<Real<Axes<model, data>, _>>(mesh, {5, 7}, 3, -1.0, 1.0));
    {
      static std::mutex mutex;
      const std::lock_guard lock(mutex);
      if (normal.values.empty()) {
        normal = n;
        uniform = u;
      }
    }
    REQUIRE_THAT(n == normal);
    REQUIRE_THAT(u == uniform);
    const auto z = to_host(zeros<Real<data, _>>(mesh, 3, 4));
    REQUIRE_THAT(z.values == std::vector<double>(12, 0.0));
    REQUIRE_THAT(to_host(full<Int<_, model>>(mesh, {3, 4}, 7)).values ==
                 std::vector<std::int64_t>(12, 7));
    REQUIRE_THAT(to_host(from_host<Real<model, data>>(mesh, {5, 7}, normal.values)) == normal);
    REQUIRE_THAT(to_host(zeros<Real<data, model>>(mesh, 0, 4)).values.empty());
    return "";
  });
}

TEST_CASE("an adopted view is the tensor's block") {
  on_meshes([](const ProcessMesh<Grid>& mesh) -> std::string {
    const Box box =
        block({5, 6}, named_sharding<Grid, P<data, model>>(), mesh.shape(), mesh.coordinates());
    Kokkos::View<double**, Kokkos::LayoutRight> view(
        "mine", static_cast<std::size_t>(box[0].size()), static_cast<std::size_t>(box[1].size()));
    Kokkos::deep_copy(view, 2.5);
    const auto x = adopt<Real<data, model>>(mesh, {5, 6}, view);
    REQUIRE_THAT(x.data() == view.data());
    REQUIRE_THAT(to_host(x + 1.0).values == std::vector<double>(30, 3.5));
    return "";
  });
}

TEST_CASE("softmax along a dimension, split or whole") {
  const auto check = [](auto x) -> std::string {
    const auto whole = whole_of(to_host(x));
    const Terms rows = parse("bsv->bs");
    const auto row_max = support::reduce(rows, Reduction::max, whole);
    const auto e = map<double>(parse("bsv,bs->bsv"), {whole, row_max},
                               [](const auto& v) { return std::exp(v[0] - v[1]); });
    const auto row_sum = support::reduce(rows, Reduction::sum, e);
    const auto p =
        map<double>(parse("bsv,bs->bsv"), {e, row_sum}, [](const auto& v) { return v[0] / v[1]; });
    const auto soft = softmax<"bsv", 'v'>(x);
    REQUIRE_THAT(close(to_host(soft), p));
    REQUIRE_THAT(close(to_host(exp(log_softmax<"bsv", 'v'>(x))), p, 1e-10));
    for (const double total : to_host(sum<"bsv->bs">(soft)).values)
      REQUIRE_THAT(std::fabs(total - 1) < 1e-13);
    const auto large = softmax<"bsv", 'v'>(x + 1000.0);  // does not overflow
    REQUIRE_THAT(close(to_host(large), p, 1e-10));
    return "";
  };
  on_meshes([&](const ProcessMesh<Grid>& mesh) -> std::string {
    std::string text = check(from_function<Real<data, _, model>>(mesh, {3, 2, 7}, Ramp{}));
    if (text.empty())
      text = check(from_function<Real<_, _, Axes<model, data>>>(mesh, {2, 2, 5}, Ramp{}));
    if (text.empty()) text = check(from_function<Real<data, model, _>>(mesh, {3, 2, 4}, Ramp{}));
    return text;
  });
}

TEST_CASE("arithmetic and named functions are one function of each element") {
  on_meshes([](const ProcessMesh<Grid>& mesh) -> std::string {
    const auto x = from_function<Real<data, model>>(mesh, {5, 7}, Ramp{0.2});
    const auto y = from_function<Real<model, _>>(mesh, {5, 7}, Ramp{-0.11});
    const auto a = whole_of(to_host(x)), b = whole_of(to_host(y));
    const auto both = [&](auto f) {
      return map<double>(parse("ij,ij->ij"), {a, b}, [f](const auto& v) { return f(v[0], v[1]); });
    };
    const auto one = [&](auto f) {
      return map<double>(parse("ij->ij"), {a}, [f](const auto& v) { return f(v[0]); });
    };
    REQUIRE_THAT(close(to_host(x + y), both([](double p, double q) { return p + q; })));
    REQUIRE_THAT(close(to_host(x - y), both([](double p, double q) { return p - q; })));
    REQUIRE_THAT(close(to_host(x * y), both([](double p, double q) { return p * q; })));
    REQUIRE_THAT(close(to_host(x / y), both([](double p, double q) { return p / q; })));
    REQUIRE_THAT(
        close(to_host(maximum(x, y)), both([](double p, double q) { return std::max(p, q); })));
    REQUIRE_THAT(
        close(to_host(minimum(x, y)), both([](double p, double q) { return std::min(p, q); })));
    REQUIRE_THAT(close(to_host(-x), one([](double p) { return -p; })));
    REQUIRE_THAT(close(to_host(x + 2), one([](double p) { return p + 2; })));
    REQUIRE_THAT(close(to_host(2 + x), one([](double p) { return 2 + p; })));
    REQUIRE_THAT(close(to_host(x - 2), one([](double p) { return p - 2; })));
    REQUIRE_THAT(close(to_host(2 - x), one([](double p) { return 2 - p; })));
    REQUIRE_THAT(close(to_host(x * 3), one([](double p) { return p * 3; })));
    REQUIRE_THAT(close(to_host(3 * x), one([](double p) { return p * 3; })));
    REQUIRE_THAT(close(to_host(x / 4), one([](double p) { return p / 4; })));
    REQUIRE_THAT(close(to_host(4 / (x + 20)), one([](double p) { return 4 / (p + 20); })));
    REQUIRE_THAT(close(to_host(exp(x)), one([](double p) { return std::exp(p); })));
    REQUIRE_THAT(close(to_host(log(abs(x) + 0.1)),
                       one([](double p) { return std::log(std::fabs(p) + 0.1); })));
    REQUIRE_THAT(close(to_host(tanh(x)), one([](double p) { return std::tanh(p); })));
    REQUIRE_THAT(
        close(to_host(sqrt(abs(x))), one([](double p) { return std::sqrt(std::fabs(p)); })));
    REQUIRE_THAT(close(to_host(relu(x)), one([](double p) { return p > 0 ? p : 0; })));
    REQUIRE_THAT(close(to_host(gelu(x)),
                       one([](double p) { return 0.5 * p * (1 + std::erf(p / std::sqrt(2.0))); })));
    return "";
  });
}

TEST_CASE("dimensions line up from the right and an extent of 1 stretches") {
  on_meshes([](const ProcessMesh<Grid>& mesh) -> std::string {
    const auto x = from_function<Real<data, _, model>>(mesh, {3, 4, 5}, Ramp{});
    const auto bias = from_function<Real<model>>(mesh, {5}, Ramp{});
    const auto flat = from_function<Real<data, model>>(mesh, {4, 1}, Ramp{});
    const auto thin = from_function<Real<model, data, _>>(mesh, {3, 1, 1}, Ramp{});
    const auto wx = whole_of(to_host(x)), wb = whole_of(to_host(bias)),
               wf = whole_of(to_host(flat)), wt = whole_of(to_host(thin));
    const auto add = [](const auto& v) { return v[0] + v[1]; };
    REQUIRE_THAT(close(to_host(x + bias), map<double>(parse("abc,c->abc"), {wx, wb}, add)));
    REQUIRE_THAT(close(to_host(bias + x), map<double>(parse("c,abc->abc"), {wb, wx}, add)));
    REQUIRE_THAT(close(to_host(x + flat), map<double>(parse("abc,bc->abc"), {wx, wf}, add)));
    REQUIRE_THAT(close(to_host(thin + x), map<double>(parse("abc,abc->abc"), {wt, wx}, add)));
    REQUIRE_THAT(close(to_host(thin + bias), map<double>(parse("abc,c->abc"), {wt, wb}, add)));
    REQUIRE_THAT(close(
        to_host(x * sum(bias)),
        map<double>(parse("abc,->abc"), {wx, support::reduce(parse("c->"), Reduction::sum, wb)},
                    [](const auto& v) { return v[0] * v[1]; })));
    return "";
  });
}

TEST_CASE("reductions, means of ragged blocks, values") {
  on_meshes([](const ProcessMesh<Grid>& mesh) -> std::string {
    const auto x = from_function<Real<data, model>>(mesh, {5, 7}, Ramp{});
    const auto whole = whole_of(to_host(x));
    const auto total = support::reduce(parse("ij->"), Reduction::sum, whole);
    REQUIRE_THAT(std::fabs(value(sum(x)) - total[0]) < 1e-10);
    REQUIRE_THAT(std::fabs(value(mean(x)) - total[0] / 35) < 1e-12);
    REQUIRE_THAT(value(max(x)) == support::reduce(parse("ij->"), Reduction::max, whole)[0]);
    REQUIRE_THAT(value(min(x)) == support::reduce(parse("ij->"), Reduction::min, whole)[0]);
    REQUIRE_THAT(close(to_host(sum<"ij->j", P<Axes<data, model>>>(x)),
                       support::reduce(parse("ij->j"), Reduction::sum, whole)));
    REQUIRE_THAT(to_host(max<"ij->i">(x)).values ==
                 support::reduce(parse("ij->i"), Reduction::max, whole).values);
    const auto means = to_host(mean<"ij->i">(x));
    for (Index i = 0; i < 5; ++i)
      REQUIRE_THAT(std::fabs(means(i) - support::reduce(parse("ij->i"), Reduction::sum, whole)[i] /
                                            7) < 1e-12);
    const auto n = from_function<Int<data, model>>(mesh, {5, 7}, Count{});
    REQUIRE_THAT(value(sum(n)) ==
                 support::reduce(parse("ij->"), Reduction::sum, whole_of(to_host(n)))[0]);
    const auto empty = zeros<Real<data, model>>(mesh, 0, 7);
    REQUIRE_THAT(value(sum(empty)) == 0);
    REQUIRE_THAT(value(max(empty)) == -std::numeric_limits<double>::infinity());
    REQUIRE_THAT(std::isnan(value(mean(empty))));
    return "";
  });
}

TEST_CASE("sums may stay unfinished, be scaled and added, and be finished once") {
  on_meshes([](const ProcessMesh<Grid>& mesh) -> std::string {
    const auto a = from_function<Int<data, model>>(mesh, {5, 7}, Count{});
    const auto b = from_function<Int<model, _>>(mesh, {7, 3}, Count{});
    using Open = Int<data, _, Unreduced<Sum, model>>;
    const auto open = einsum<"ik,kj->ij", P<data, _, Unreduced<Sum, model>>>(a, b);
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(open)>, Open>);
    mesh.ledger().reset();
    const auto twice = open + open * 3 - -open;
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(twice)>, Open>);
    REQUIRE_THAT(mesh.ledger().payload_bytes() == 0);
    const auto finished = reshard<P<data, model>>(twice);
    const auto product =
        support::einsum(parse("ik,kj->ij"), whole_of(to_host(a)), whole_of(to_host(b)));
    const auto expected =
        map<std::int64_t>(parse("ij->ij"), {product}, [](const auto& v) { return 5 * v[0]; });
    REQUIRE_THAT(to_host(finished).values == expected.values);
    REQUIRE_THAT(to_host(twice).values == expected.values);
    const auto further = einsum<"ij,jl->il", P<data, _>>(
        twice, b.extent(1) == 3 ? from_function<Int<_, _>>(mesh, {3, 2}, Count{}) : Int<_, _>{});
    REQUIRE_THAT(to_host(further).values ==
                 support::einsum(parse("ij,jl->il"), expected,
                                 whole_of(to_host(from_function<Int<_, _>>(mesh, {3, 2}, Count{}))))
                     .values);
    const auto times = twice * from_function<Int<data, _>>(
                                   mesh, {5, 3}, Count{});  // linear in the one that is open
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(times)>, Open>);
    REQUIRE_THAT(
        to_host(times).values ==
        map<std::int64_t>(
            parse("ij,ij->ij"),
            {expected, whole_of(to_host(from_function<Int<data, _>>(mesh, {5, 3}, Count{})))},
            [](const auto& v) { return v[0] * v[1]; })
            .values);
    const auto rows = sum<"ij->i">(twice);
    static_assert(!std::remove_cvref_t<decltype(rows)>::unfinished);
    REQUIRE_THAT(to_host(rows).values ==
                 support::reduce(parse("ij->i"), Reduction::sum, expected).values);

    const auto top = max<"ij->i", P<data, Unreduced<Max, model>>>(
        from_function<Real<data, model>>(mesh, {5, 7}, Ramp{}));
    const auto monotone = exp(top);  // e to the largest is the largest e
    static_assert(std::remove_cvref_t<decltype(monotone)>::unfinished);
    const auto larger = maximum(monotone, monotone);
    REQUIRE_THAT(
        close(to_host(larger), whole_of(to_host(exp(max<"ij->i">(
                                   from_function<Real<data, model>>(mesh, {5, 7}, Ramp{})))))));
    return "";
  });
}

TEST_CASE("a dry plan is the plan that runs") {
  on_meshes([](const ProcessMesh<Grid>& mesh) -> std::string {
    const auto layer = [](const Real<data, _, model>& x, const Real<data, model>& w_in,
                          const Real<model, data>& w_out) {
      const auto h = gelu(einsum<"bsm,mh->bsh">(x, w_in));
      return einsum<"bsh,hm->bsm", P<data, _, model>>(h, w_out);
    };
    const Program dry =
        plan(layer)(like<Real<data, _, model>>(4, 3, 6), like<Real<data, model>>(6, 10),
                    like<Real<model, data>>(10, 6), mesh.sizes(), mesh.process());
    const auto x = from_function<Real<data, _, model>>(mesh, {4, 3, 6}, Ramp{});
    const auto w_in = from_function<Real<data, model>>(mesh, {6, 10}, Ramp{});
    const auto w_out = from_function<Real<model, data>>(mesh, {10, 6}, Ramp{});
    mesh.arena().reset_peak();
    mesh.ledger().reset();
    Recording recording(mesh);
    layer(x, w_in, w_out);
    const Program ran = recording.take();
    REQUIRE_THAT(ran.entries().size() == 3);
    REQUIRE_THAT(dry.entries().size() == 3);
    for (std::size_t i = 0; i < 3; ++i)
      REQUIRE_THAT(*ran.entries()[i].plan == *dry.entries()[i].plan);
    REQUIRE_THAT(explain(ran) == explain(dry));
    REQUIRE_THAT(ran.own_payload_bytes() == mesh.ledger().payload_bytes());
    REQUIRE_THAT(ran.own_payload_bytes(AxisSet{1}) == mesh.ledger().payload_bytes(AxisSet{1}));
    REQUIRE_THAT(ran.peak_bytes() == dry.peak_bytes());
    REQUIRE_THAT(ran.peak_bytes() == mesh.arena().peak());
    return "";
  });
}

namespace {
/// Returns whether `text` holds the parts of the pattern, which are separated by "...", in their
/// order.
bool holds(std::string_view text, std::string_view pattern) {
  while (true) {
    const auto end = pattern.find("...");
    const std::string_view part = pattern.substr(0, end);
    const auto at = text.find(part);
    if (at == std::string_view::npos) return false;
    if (end == std::string_view::npos) return true;
    text.remove_prefix(at + part.size());
    pattern.remove_prefix(end + 3);
  }
}
/// Returns whether f throws an E whose text holds the pattern.
template <class E, class F> bool throws(const char* pattern, F f) {
  try {
    f();
  } catch (const E& error) {
    const bool found = holds(error.what(), pattern);
    if (!found) MESSAGE("\"" << pattern << "\" is not in: " << error.what());
    return found;
  } catch (const std::exception& error) {
    MESSAGE("another exception: " << error.what());
  }
  return false;
}
}  // namespace

TEST_CASE("wrong calls are answered with the rule and the way out") {
  const auto mesh = dry_mesh<Grid>(2, 4);
  const auto a = zeros<Real<data, model>>(mesh, 5, 7);
  const auto b = zeros<Real<model, _>>(mesh, 6, 3);
  const DynamicTensor x = a, y = b;
  const DynamicTensor n = zeros<Int<data, model>>(mesh, 7, 7);

  CHECK(throws<ShapeError>(
      "\"ik,kj->ij\": k is 7 in operand 1 (dimension 1 of double 5x7 P<data,model>, split over "
      "model) and 6 in operand 2 (dimension 0 of double 6x3 P<model,_>, split over model); one "
      "letter stands for one extent...typed.loopback.cpp:",
      [&] { einsum<"ik,kj->ij">(a, b); }));
  CHECK(throws<ShapeError>("k is 7 in operand 1", [&] { einsum("ik,kj->ij", x, y); }));
  CHECK(throws<ShapeError>("operand 1, 3 against 2", [&] { einsum("ikl,kj->ij", x, y); }));
  CHECK(throws<ShapeError>("a product takes one; cast one of them (operand 2, double and int64)",
                           [&] { einsum("ik,kj->ij", x, n); }));
  CHECK(throws<ShapeError>(
      "Add: an extent is 5 in operand 1 (dimension 0 of double 5x7 P<data,model>, split over data) "
      "and 6 in operand 2 (dimension 0 of double 6x3 P<model,_>, split over model); dimensions "
      "line up from the right",
      [&] { (void)(a + b); }));
  CHECK(throws<ShapeError>(
      "Less: an extent is 7 in operand 1 (dimension 1 of double 5x7 P<data,model>, split over "
      "model) and 3 in operand 2 (dimension 0 of double 3 P<_>, not split)...typed.loopback.cpp:",
      [&] { less(a, zeros<Real<_>>(mesh, 3)); }));
  CHECK(
      throws<ShapeError>("Maximum: \"ij,jk->ijk\": j is 7 in operand 1 (dimension 1 of...and 6 in "
                         "operand 2 (dimension 0 of...one letter stands for one extent, or 1",
                         [&] { map<"ij,jk->ijk">(fn::Maximum{}, a, b); }));
  CHECK(throws<ShapeError>("give one extent for each dimension",
                           [&] { zeros<Real<data, model>>(mesh, Extents{5}); }));
  CHECK(throws<ShapeError>("dimension 1 has extent -2; extents are not negative",
                           [&] { zeros<Real<data, model>>(mesh, 5, -2); }));
  CHECK(throws<ShapeError>("3x4 has 12 elements and 5 are given", [&] {
    from_host<Real<data, _>>(mesh, {3, 4}, std::vector<double>(5));
  }));
  CHECK(
      throws<ShapeError>("has 2 dimensions and P<data> has 1", [&] { reshard(x, Sharding{{0}}); }));

  CHECK(throws<ShardingError>("the equation cannot be read", [&] { einsum("ik,kj", x, y); }));
  CHECK(throws<ShardingError>("letter that no operand has...letter z",
                              [&] { einsum("ik,kj->iz", x, y); }));
  CHECK(throws<ShardingError>("another number of operands than the call",
                              [&] { einsum("ik,kj,jl->il", x, y); }));
  CHECK(throws<ShardingError>("a letter stands twice...letter i",
                              [&] { einsum("ik,kj->ii", x, y); }));
  CHECK(
      throws<ShardingError>("uses a mesh axis twice...axis data, dimension 1 of P<data,data>", [&] {
        reshard(x, Sharding{{0}, {0}});
      }));
  CHECK(throws<ShardingError>(
      "names an axis that its Mesh does not have...axis number 2...a mesh of 2 axes", [&] {
        reshard(x, Sharding{{0}, {2}});
      }));
  CHECK(throws<ShardingError>("cannot become ...finished values do not become partial", [&] {
    reshard(x, Sharding{{0}, {}}.with_partial(AxisSet{1}, Reduction::sum));
  }));
  CHECK(throws<ShardingError>("read as double sharded P<_,_>; reshard it first",
                              [&] { as<Real<_, _>>(x); }));
  CHECK(throws<ShardingError>(
      "Unreduced over an axis that splits no reduced dimension...axis data", [&] {
        einsum("ij,ij->ij", n, n, Sharding{{}, {}}.with_partial(AxisSet{0}, Reduction::sum));
      }));
  CHECK(throws<ShardingError>("drops a dimension", [&] { transpose("ij->i", x); }));

  const DynamicTensor open =
      einsum("ik,kj->ij", n, n, Sharding{{0}, {}}.with_partial(AxisSet{1}, Reduction::sum));
  const Sharding same = open.sharding();
  map_dynamic<std::int64_t>("ij,ij->ij", fn::Add{}, same, open,
                            open);  // allowed, and its plan is cached
  CHECK(throws<ShardingError>("both operands of a product are unfinished", [&] {
    map_dynamic<std::int64_t>("ij,ij->ij", fn::Multiply{}, same, open, open);
  }));
  CHECK(throws<ShardingError>("unfinished partial value is used as a value", [&] {
    map_dynamic<std::int64_t>("ij->ij", fn::Square{}, same, open);
  }));
  CHECK(throws<ShardingError>("both operands of a product are unfinished",
                              [&] { einsum("ik,kj->ij", open, open); }));
  CHECK(throws<ShardingError>("cannot be read", [&] {
    einsum("ik,kj->ij!", n, n, Sharding{{0}, {}}.with_partial(AxisSet{1}, Reduction::sum));
  }));
  CHECK(throws<UsageError>("of int64: the mean of integers", [&] { reduce<Mean>("ij->i", n); }));
  CHECK(throws<UsageError>("the tensor is dry", [&] { to_host(a); }));
  CHECK(throws<UsageError>("an empty tensor is used",
                           [&] { einsum<"ik,kj->ij">(Real<data, _>{}, b); }));
  CHECK(throws<UsageError>("is read as float", [&] { to_host<float>(x); }));

  const auto other = dry_mesh<Grid>(2, 4);
  CHECK(throws<MeshError>("operand 1 lives on a mesh data=2 x model=4 and operand 2 on another one",
                          [&] { einsum<"ik,kj->ij">(a, zeros<Real<model, _>>(other, 7, 3)); }));
  CHECK(throws<MeshError>("axis model has size 0; every mesh axis has at least one process",
                          [&] { sizes<Grid>(2, 0); }));
  run_loopback(3, [](std::shared_ptr<Transport> world) {
    CHECK(throws<MeshError>("has 4 processes but the communicator has 3",
                            [&] { make_mesh<Grid>(world, 2, 2); }));
  });
}
