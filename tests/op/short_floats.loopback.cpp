// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: sums
// Everything that sums half and bfloat16 sums wide and rounds once: each operator against plain
// loops in double, on data whose sums in the type itself would stall or overflow.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/grid.hpp"

namespace {
using namespace tessera;
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;
using Values = std::vector<double>;

constexpr Index rows = 4, columns = 3001;

/// Positive, so that the size of a sum is that of its parts, and past 2000 halves would stall.
template <class T> double element(Index i, Index j) {
  return static_cast<double>(
      static_cast<T>(0.3f + 0.1f * static_cast<float>((i * 7 + j * 3) % 11)));
}
template <class T> struct Data {
  T operator()(const GlobalIndex& i) const { return static_cast<T>(element<T>(i[0], i[1])); }
};

template <class F> void on_every_mesh(const F& f) {
  for (const MeshSizes<Grid> size : {sizes<Grid>(1, 1), sizes<Grid>(2, 2), sizes<Grid>(1, 5)})
    run_loopback(size.shape.processes(), [&](std::shared_ptr<Transport> world) {
      f(make_mesh<Grid>(std::move(world), size));
    });
}

/// Within `roundings` of half a unit in the last place, and what float itself loses on the way:
/// 2e-6 of the largest number that is added.
template <class A>
void near(const std::string& what, const A& t, const Values& exact, double largest,
          double roundings = 1) {
  using T = typename A::value_type;
  const auto got = to_host(t).values;
  REQUIRE(got.size() == exact.size());
  const double eps = static_cast<double>(std::numeric_limits<T>::epsilon());
  const double least = static_cast<double>(std::numeric_limits<T>::denorm_min());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::fabs(static_cast<double>(got[i]) - exact[i]);
    if (error <= roundings * (eps / 2 * std::fabs(exact[i]) * 1.01 + least / 2) + 2e-6 * largest)
      continue;
    INFO(what << " of " << name_of(dtype_of<T>) << ", element " << i);
    CHECK(static_cast<double>(got[i]) == doctest::Approx(exact[i]).epsilon(eps / 2));
    return;
  }
  CHECK(got.size() == exact.size());
}

template <class T> Values by_row(double start, double (*join)(double, double)) {
  Values all;
  for (Index i = 0; i < rows; ++i) {
    double v = start;
    for (Index j = 0; j < columns; ++j) v = join(v, element<T>(i, j));
    all.push_back(v);
  }
  return all;
}

template <class T> void sums_of(const ProcessMesh<Grid>& mesh) {
  const auto q = from_function<Tensor<T, data, model>>(mesh, {rows, columns}, Data<T>{});
  const Values sums = by_row<T>(0, [](double a, double b) { return a + b; });
  const Values squares = by_row<T>(0, [](double a, double b) { return a + b * b; });
  Values means, spreads, deviations, roots, largest, logs, running, soft, log_soft;
  for (Index i = 0; i < rows; ++i) {
    const auto r = static_cast<std::size_t>(i);
    means.push_back(sums[r] / columns);
    roots.push_back(std::sqrt(squares[r]));
    double spread = 0, top = 0, exps = 0, sum = 0;
    for (Index j = 0; j < columns; ++j) {
      const double v = element<T>(i, j);
      spread += (v - means[r]) * (v - means[r]), top = std::max(top, v), exps += std::exp(v);
      running.push_back(sum += v);
    }
    spreads.push_back(spread / (columns - 1));
    deviations.push_back(std::sqrt(spread / (columns - 1)));
    largest.push_back(top);
    logs.push_back(std::log(exps));
    for (Index j = 0; j < columns; ++j) {
      soft.push_back(std::exp(element<T>(i, j)) / exps);
      log_soft.push_back(element<T>(i, j) - std::log(exps));
    }
  }
  near("sum", sum<"ij->i">(q), sums, 1);
  near("scattered sum", sum<"ij->i", P<Axes<data, model>>>(q), sums, 1);
  near(
      "sum, reordered",
      sum<"ijk->ki">(from_function<Tensor<T, data, model, _>>(mesh, {rows, columns, 1}, Data<T>{})),
      sums, 1);
  near("sum, started", async([&] { return reduce<Sum, "ij->i">(q); }).wait(), sums, 1);
  near("mean", mean<"ij->i">(q), means, 1);
  near("deterministic sum", sum<"ij->i">(q, deterministic), sums, 1);
  near("deterministic mean", mean<"ij->i">(q, deterministic), means, 1, 2);
  near("variance", variance<"ij->i">(q, 1), spreads, 1);
  near("standard deviation", standard_deviation<"ij->i">(q, 1), deviations, 1);
  near("norm 1", norm<1, "ij->i">(q), sums, 1);
  near("norm 2", norm<2, "ij->i">(q), roots, 1);
  near("infinite norm", norm<infinite_norm, "ij->i">(q), largest, 0);
  near("log-sum-exp", logsumexp<"ij->i">(q), logs, 10);
  near("softmax", softmax<"ij", 'j'>(q), soft, 1e-3);
  near("log-softmax", log_softmax<"ij", 'j'>(q), log_soft, 10);
  // A running sum starts from the rounded sum of each part of the row before it.
  near("cumulative sum", cumsum<"ij", 'j'>(q), running, 1, mesh.core()->shape()[1]);
  // What is left open is rounded on each process, and once when it is finished.
  near("open sum", reshard<P<data>>(sum<"ij->i", P<data, Unreduced<Sum, model>>>(q)), sums, 1, 2);

  const DynamicTensor d(q);
  const auto typed = [](const DynamicTensor& t) { return Tensor<T, data>(t.core()); };
  near("dynamic sum", typed(reduce<Sum>("ij->i", d)), sums, 1);
  near("dynamic variance", typed(variance<T>("ij->i", d, 1)), spreads, 1);
  near("dynamic deviation", typed(standard_deviation<T>("ij->i", d, 1)), deviations, 1);
  near("dynamic norm 1", typed(norm<1, T>("ij->i", d)), sums, 1);
  near("dynamic log-sum-exp", typed(logsumexp<T>("ij->i", d)), logs, 10);
  near("dynamic softmax", Tensor<T, data, model>(softmax<T>("ij", 'j', d).core()), soft, 1e-3);
  near("dynamic log-softmax", Tensor<T, data, model>(log_softmax<T>("ij", 'j', d).core()), log_soft,
       10);

  // Products: a factor that is split over processes is rounded on each of them.
  Values gram;
  for (Index i = 0; i < rows; ++i)
    for (Index k = 0; k < rows; ++k) {
      double v = 0;
      for (Index j = 0; j < columns; ++j) v += element<T>(i, j) * element<T>(k, j);
      gram.push_back(v);
    }
  near("einsum", einsum<"ij,kj->ik">(reshard<P<data, _>>(q), reshard<P<model, _>>(q)), gram, 10);
  near("einsum over processes",
       einsum<"ij,kj->ik">(reshard<P<_, model>>(q), reshard<P<_, model>>(q)), gram, 10, 2);
}

template <class T> void windows(const ProcessMesh<Grid>& mesh) {
  const auto q = from_function<Tensor<T, data, model>>(mesh, {rows, columns}, Data<T>{});
  constexpr Index size = 1501, made = columns - size + 1;
  Values sums, means;
  for (Index i = 0; i < rows; ++i) {
    double v = 0;
    for (Index j = 0; j < size; ++j) v += element<T>(i, j);
    for (Index j = 0; j < made; ++j) {
      sums.push_back(v), means.push_back(v / size);
      if (j + 1 < made) v += element<T>(i, j + size) - element<T>(i, j);
    }
  }
  const WindowSettings pool{.size = {1, size}};
  near("reduce_window sum", reduce_window<Sum>(q, pool), sums, 2);
  near("reduce_window mean", reduce_window<Mean>(q, pool), means, 1);
  // Convolution: (batch, width, in), (width, in, out).
  constexpr Index wide = 7, taps = 3, channels = 401, out = 3;
  const auto image = from_function<Tensor<T, data, model, _>>(
      mesh, {2, wide, channels},
      [](const GlobalIndex& i) { return static_cast<T>(element<T>(i[0] + i[1], i[2])); });
  const auto kernel = from_function<Tensor<T, _, _, _>>(
      mesh, {taps, channels, out},
      [](const GlobalIndex& i) { return static_cast<T>(element<T>(i[0] * 5 + i[2], i[1])); });
  Values convolved;
  for (Index b = 0; b < 2; ++b)
    for (Index w = 0; w + taps <= wide; ++w)
      for (Index o = 0; o < out; ++o) {
        double v = 0;
        for (Index t = 0; t < taps; ++t)
          for (Index c = 0; c < channels; ++c)
            v += element<T>(b + w + t, c) * element<T>(t * 5 + o, c);
        convolved.push_back(v);
      }
  near("convolve", convolve<"bwi,wio->bwo">(image, kernel), convolved, 10);
  near("portable convolve", convolve<"bwi,wio->bwo">(image, kernel, {.portable = true}), convolved,
       10);
  // All of 2999 windows select the same element.
  const auto peak = from_function<Tensor<T, model>>(mesh, {columns}, [](const GlobalIndex& i) {
    return static_cast<T>(i[0] == 1500 ? 2.f : 0.f);
  });
  const auto source = from_function<Tensor<T, model>>(
      mesh, {made}, [](const GlobalIndex& i) { return static_cast<T>(element<T>(0, i[0])); });
  Values selected(columns, 0);
  for (Index j = 0; j < made; ++j) selected[1500] += element<T>(0, j);
  near("select_and_scatter", select_and_scatter<Max>(peak, source, {.size = {size}}), selected, 1);
  // Scatter: 3001 updates to 3 places.
  const auto places = from_function<Tensor<std::int64_t, _>>(
      mesh, {columns}, [](const GlobalIndex& i) { return i[0] % 3; });
  const auto updates = from_function<Tensor<T, _>>(
      mesh, {columns}, [](const GlobalIndex& i) { return static_cast<T>(element<T>(0, i[0])); });
  Values scattered(3, 0);
  for (Index j = 0; j < columns; ++j)
    scattered[static_cast<std::size_t>(j % 3)] += element<T>(0, j);
  near("scatter", scatter<Sum, "b,b->v">(places, updates, {3}), scattered, 1);
  // Hundreds of images of each of 7 elements, on each process, added back.
  constexpr Index few = 7, reach = 980;
  const auto threes = full<Tensor<T, model>>(mesh, {few}, static_cast<T>(3.f));
  const auto halo = halo_exchange<0>(threes, reach, reach, Boundary::periodic);
  Values images(few, 0);
  const Index parts = mesh.core()->shape()[1];
  for (Index part = 0; part < parts; ++part) {
    const Index b = (few + parts - 1) / parts, lo = std::min(few, part * b),
                hi = std::min(few, lo + b);
    for (Index i = lo - reach; lo < hi && i < hi + reach; ++i)
      images[static_cast<std::size_t>((i % few + few) % few)] += 3;
  }
  near("halo_adjoint", halo_adjoint(halo), images, 0);
}
}  // namespace

TEST_CASE("sums of half and bfloat16 are rounded once: reductions, statistics, products") {
  on_every_mesh([](const ProcessMesh<Grid>& mesh) {
    sums_of<half>(mesh);
    sums_of<bfloat16>(mesh);
  });
}

TEST_CASE("sums of half and bfloat16 are rounded once: windows, scatters, halos") {
  on_every_mesh([](const ProcessMesh<Grid>& mesh) {
    windows<half>(mesh);
    windows<bfloat16>(mesh);
  });
}

TEST_CASE("what overflows or stalls in half on the way does not") {
  for (const int processes : {1, 2, 4})
    run_loopback(processes, [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(std::move(world), sizes<Grid>(1, processes));
      const std::vector<half> four{half(300.f), half(-300.f), half(0.f), half(10.f)};
      const auto x4 = from_host<Tensor<half, model>>(mesh, {4}, std::span<const half>(four));
      CHECK(static_cast<double>(to_host(standard_deviation(x4)).values[0]) == 212.125);
      const std::vector<half> large{half(60000.f), half(60000.f), half(-60000.f), half(-59904.f)};
      const auto sums = from_host<Tensor<half, model>>(mesh, {4}, std::span<const half>(large));
      CHECK(static_cast<double>(to_host(sum(sums)).values[0]) == 96);
      const auto equal = full<Tensor<half, model>>(mesh, {100000}, half(1.f));
      const auto p = to_host(softmax<"i", 'i'>(equal)).values;
      CHECK(static_cast<double>(p[0]) == static_cast<double>(half(1e-5f)));
      CHECK(static_cast<double>(to_host(log_softmax<"i", 'i'>(equal)).values[99999]) ==
            static_cast<double>(half(-11.512925f)));
      CHECK(static_cast<double>(to_host(logsumexp(equal)).values[0]) ==
            static_cast<double>(half(12.512925f)));
    });
}

/// What process 0 sends.
constexpr Index sent(const Plan& plan) {
  Index bytes = 0;
  for (const Step& step : plan.steps) bytes += step.payload;
  return bytes;
}

// Dry: a sum of halves is sent in float where parts of it meet.
constexpr Plan dry = plan<Sum, "ij->i">(like<Tensor<half, data, model>>(8, 64), sizes<Grid>(2, 2));
static_assert(dry.result_desc().type == DType::f16 && sent(dry) == 2 * 4 * 4 / 2);
