// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Real cases on whatever space the kernels run on, checked against loops on the host: what a
/// device must get right. Here operators, the user's own kernels and memory, and files;
/// rows.cpp and training.cpp have the rest. tests/CMakeLists.txt runs them on a device that is
/// pretended (support/late_space.hpp).
///
///     device_cases                  mpiexec -n 4 device_cases
///     device_cases touch            the host reads a block, which must end the program
///
// says: the host touches device memory: byte [0-9]+ of [0-9]+, "tessera arena"
#include <algorithm>
#include <numeric>

#include "check.hpp"

namespace device_test {
namespace {

struct Blend {
  template <class T> KOKKOS_FUNCTION T operator()(T a, T b, T c) const { return a * b + c; }
};
struct Both {
  KOKKOS_FUNCTION Several<double, double> operator()(double a, double b) const {
    return several(a + b, a - b);
  }
};
struct AddIndex {
  template <class T> KOKKOS_FUNCTION T operator()(const GlobalIndex& i, T x) const {
    return x + static_cast<T>(i[0]) - static_cast<T>(i[1]);
  }
};

void creation(Cases& c) {
  const Extents n{7, 10};
  c.run("creation", [&] {
    c.near(wave_of<Real<data, model>>(c.mesh, n), waves(70), 0);
    c.near(full<Of<float, model, data>>(c.mesh, n, 2.5f), each(70, [](Index) { return 2.5; }), 0);
    c.near(iota<Of<std::int32_t, data, _>>(c.mesh, n, 1), each(70, [](Index i) { return i % 10; }),
           0);
    c.near(eye<Real<data, model>>(c.mesh, n, 1),
           each(70, [](Index i) { return i % 10 == i / 10 + 1; }), 0);
    c.near(linspace<Real<data>>(c.mesh, 0, 4, 5), {0, 1, 2, 3, 4}, 1e-15);
    const Values host = waves(70, 5);
    c.near(from_host<Real<_, data>>(c.mesh, n, host), host, 0, "from_host");
    c.near(from_root<Real<data, model>>(c.mesh, n, 0, host), host, 0, "from_root");
    const auto x = from_host<Real<model, data>>(c.mesh, n, host);
    const std::vector<double> root = to_root(x).values;
    if (c.mesh.process() == 0) c.near(root, host, 0, "to_root");
    c.near(from_blocks<Real<model, data>>(c.mesh, n, to_block(x).values), host, 0, "blocks");
    c.near(full_like(x, 3.0) + ones_like(x), each(70, [](Index) { return 4; }), 0);
  });
  c.run("random", [&] {
    const auto host = [&](const auto& f) {
      return each(70, [&](Index i) { return f(GlobalIndex{{i / 10, i % 10}, i, 2}); });
    };
    c.near(random_uniform<Real<data, model>>(c.mesh, n, 7, -1, 2),
           host(detail::Uniform<double>{7, -1, 2}), 1e-15, "uniform");
    c.near(random_normal<Real<model, _>>(c.mesh, n, 9, 1, 3), host(detail::Normal<double>{9, 1, 3}),
           1e-12, "normal");
  });
}

void maps(Cases& c) {
  const Extents n{6, 9};
  const auto x = wave_of<Real<data, model>>(c.mesh, n),
             y = wave_of<Real<data, model>>(c.mesh, n, 9);
  const auto row = wave_of<Real<model>>(c.mesh, {9}, 2);
  const auto of = [&](const auto& f) {
    return each(54, [&](Index i) { return f(wave(i), wave(i + 9), wave(i % 9 + 2)); });
  };
  c.run("maps", [&] {
    c.near(x * y + 2.0 * x - y / 4.0,
           of([](double a, double b, double) { return a * b + 2 * a - b / 4; }), 1e-15);
    c.near(exp(x) + sin(y) + tanh(x) + erf(x) + log1p(square(y)) + sqrt(abs(x)) + pow(abs(x), y),
           of([](double a, double b, double) {
             return std::exp(a) + std::sin(b) + std::tanh(a) + std::erf(a) + std::log1p(b * b) +
                    std::sqrt(std::abs(a)) + std::pow(std::abs(a), b);
           }),
           1e-13);
    c.near(map(Blend{}, x, y, row), of([](double a, double b, double r) { return a * b + r; }),
           1e-15);
    c.near(map_with_index(AddIndex{}, x),
           each(54, [](Index i) { return wave(i) + double(i / 9) - double(i % 9); }), 1e-15);
    const auto [up, down] = map_several(Both{}, x, y);
    c.near(up, of([](double a, double b, double) { return a + b; }), 0);
    c.near(down, of([](double a, double b, double) { return a - b; }), 0);
    c.near(where(less(x, y), x, 0.5),
           of([](double a, double b, double) { return a < b ? a : 0.5; }), 0);
    c.near(cast<double>(cast<float>(x)), of([](double a, double, double) { return a; }), 0);
    c.near(cast<double>(cast<tessera::half>(exp(x))),
           of([](double a, double, double) { return std::exp(a); }), 1e-3);
  });
  c.run("in place", [&] {
    auto z = wave_of<Real<data, model>>(c.mesh, n);
    z += y;
    z *= 2.0;
    axpy(-0.5, y, z);
    c.near(z, of([](double a, double b, double) { return 2 * (a + b) - 0.5 * b; }), 1e-15);
    map_into(z, fn::Multiply{}, x, y);
    c.near(z, of([](double a, double b, double) { return a * b; }), 1e-15);
    into(z, [&] { return x - y; });
    c.near(z, of([](double a, double b, double) { return a - b; }), 0);
    auto q = zeros<Real<_, model>>(c.mesh, n);
    reshard_into(q, x);
    c.near(q, waves(54), 0);
  });
}

void reductions(Cases& c) {
  const Extents n{5, 130};
  const auto x = wave_of<Real<data, model>>(c.mesh, n);
  const auto rows = [&](double start, const auto& join) {
    return each(5, [&](Index i) {
      double sum = start;
      for (Index j = 0; j < 130; ++j) sum = join(sum, wave(i * 130 + j));
      return sum;
    });
  };
  const Values sums = rows(0, [](double a, double b) { return a + b; });
  const Values squares = rows(0, [](double a, double b) { return a + b * b; });
  c.run("reductions", [&] {
    c.near(sum<"ij->i">(x), sums, 1e-13);
    c.near(max<"ij->i">(x), rows(-9, [](double a, double b) { return std::max(a, b); }), 0);
    c.near(min<"ij->i">(x), rows(9, [](double a, double b) { return std::min(a, b); }), 0);
    c.near(mean<"ij->i">(x), each(5, [&](Index i) { return at(sums, i) / 130; }), 1e-13);
    c.near(variance<"ij->i">(x),
           each(5,
                [&](Index i) {
                  const double m = at(sums, i) / 130;
                  return at(squares, i) / 130 - m * m;
                }),
           1e-13, "variance");
    c.near(norm<2, "ij->i">(x), each(5, [&](Index i) { return std::sqrt(at(squares, i)); }), 1e-13,
           "norm");
    c.near(Values{value(sum(x)), value(dot(x, x))},
           {std::accumulate(sums.begin(), sums.end(), 0.0),
            std::accumulate(squares.begin(), squares.end(), 0.0)},
           1e-13, "whole sums");
    c.near(sum<"ij->i">(x, deterministic), sums, 1e-13, "the deterministic sum");
    c.near(reshard<P<data>>(reduce<Sum, "ij->i", P<data, Unreduced<Sum, model>>>(x)), sums, 1e-13,
           "the finished sum");
    c.near(logsumexp<"ij->i">(x),
           each(5,
                [&](Index i) {
                  double sum = 0;
                  for (Index j = 0; j < 130; ++j) sum += std::exp(wave(i * 130 + j));
                  return std::log(sum);
                }),
           1e-13);
    c.near(argmax<"ij->i">(x),
           each(5,
                [&](Index i) {
                  Index best = 0;
                  for (Index j = 0; j < 130; ++j)
                    if (wave(i * 130 + j) > wave(i * 130 + best)) best = j;
                  return best;
                }),
           0, "argmax");
  });
  c.run("running sums", [&] {
    Values running = waves(650);
    for (Index i = 0; i < 650; ++i)
      if (i % 130 > 0) running[std::size_t(i)] += running[std::size_t(i - 1)];
    c.near(cumsum<"ij", 'j'>(x), running, 1e-13);
    c.near(associative_scan<"ij", 'j'>(fn::Add{}, 0.0, x), running, 1e-13, "associative_scan");
  });
  c.run("sorts", [&] {
    Values sorted = waves(650), places(650);
    for (Index i = 0; i < 5; ++i) {
      const auto begin = sorted.begin() + i * 130;
      const auto place = places.begin() + i * 130;
      std::iota(place, place + 130, 0.0);
      std::stable_sort(place, place + 130, [&](double a, double b) {
        return wave(i * 130 + Index(a)) < wave(i * 130 + Index(b));
      });
      std::sort(begin, begin + 130);
    }
    c.near(tessera::sort<"ij", 'j'>(x), sorted, 0, "sort");
    c.near(argsort<"ij", 'j'>(x), places, 0, "argsort");
    const auto [most, where] = top_k<"ij", 'j'>(x, 3);
    c.near(most, each(15, [&](Index i) { return at(sorted, i / 3 * 130 + 129 - i % 3); }), 0,
           "top_k");
    c.near(take_along_axis<"ij", 'j'>(x, where), values_of(most), 0, "take_along_axis");
  });
  c.run("softmax and norms", [&] {
    const auto soft = [&](bool log) {
      return each(650, [&](Index i) {
        double sum = 0;
        for (Index j = 0; j < 130; ++j) sum += std::exp(wave(i / 130 * 130 + j));
        return log ? wave(i) - std::log(sum) : std::exp(wave(i)) / sum;
      });
    };
    c.near(softmax<"ij", 'j'>(x), soft(false), 1e-13, "softmax");
    c.near(log_softmax<"ij", 'j'>(x), soft(true), 1e-13, "log_softmax");
    const auto scale = wave_of<Real<model>>(c.mesh, {130}, 3);
    const auto bias = wave_of<Real<model>>(c.mesh, {130}, 4);
    const auto normed = [&](bool centred) {
      return each(650, [&](Index i) {
        const double m = centred ? at(sums, i / 130) / 130 : 0;
        const double v = at(squares, i / 130) / 130 - m * m;
        return (wave(i) - m) / std::sqrt(v + 1e-5) * wave(i % 130 + 3) +
               (centred ? wave(i % 130 + 4) : 0);
      });
    };
    c.near(layer_norm(x, scale, bias, 1e-5), normed(true), 1e-12, "layer_norm");
    c.near(rms_norm(x, scale, 1e-5), normed(false), 1e-12, "rms_norm");
  });
}

void products(Cases& c) {
  const auto a = wave_of<Real<data, model>>(c.mesh, {9, 12});
  const auto b = wave_of<Real<model, data>>(c.mesh, {12, 7}, 5);
  const Values want = each(63, [](Index i) {
    double sum = 0;
    for (Index k = 0; k < 12; ++k) sum += wave(i / 7 * 12 + k) * wave(k * 7 + i % 7 + 5);
    return sum;
  });
  c.run("products", [&] {
    c.near(einsum<"ik,kj->ij", P<data, model>>(a, b), want, 1e-14);
    c.near(einsum<"ik,kj->ij", P<model, data>>(a, reshard<P<_, data>>(b)), want, 1e-14);
    const auto bias = wave_of<Real<_>>(c.mesh, {7}, 3);
    c.near(einsum<"ik,kj->ij", P<data, _>>(a, b, epilogue(fn::Square{}).scale(2.0).bias(bias)),
           each(63, [&](Index i) { return std::pow(2 * at(want, i) + wave(i % 7 + 3), 2); }), 1e-13,
           "the epilogue");
    auto sum = full<Real<data, model>>(c.mesh, {9, 7}, 1.0);
    einsum_into<"ik,kj->ij">(sum, a, b, 2.0, 3.0);
    c.near(sum, each(63, [&](Index i) { return 2 * at(want, i) + 3; }), 1e-13, "einsum_into");
    c.near(einsum<"ij->ji">(a), each(108, [](Index i) { return wave(i % 9 * 12 + i / 9); }), 0,
           "the transpose");
    const auto f = cast<float>(a);
    const auto g = cast<float>(reshard<P<model, _>>(b));
    c.near(einsum<"ik,kj->ij">(f, g), want, 1e-6, "the product of floats");
    c.near(einsum<"ik,kj->ij">(cast<bfloat16>(a), cast<bfloat16>(b)), want, 3e-2,
           "the product of bfloat16");
  });
  c.run("convolutions", [&] {
    const auto x = wave_of<Real<data, model, _, _>>(c.mesh, {2, 8, 7, 3});
    const auto k = wave_of<Real<_, _, _, _>>(c.mesh, {3, 3, 3, 4}, 5);
    const Convolution settings{.stride = {1, 2}, .low = {1, 1}, .high = {1, 1}};
    const auto in = [](Index n, Index h, Index w, Index i) {
      return h < 0 || h >= 8 || w < 0 || w >= 7 ? 0.0 : wave(((n * 8 + h) * 7 + w) * 3 + i);
    };
    const auto y = convolve<nhwc>(x, k, settings);
    c.near(y,
           each(2 * 8 * 4 * 4,
                [&](Index r) {
                  const Index o = r % 4, w = r / 4 % 4, h = r / 16 % 8, n = r / 128;
                  double sum = 0;
                  for (Index t = 0; t < 27; ++t)
                    sum += in(n, h + t / 9 - 1, 2 * w + t / 3 % 3 - 1, t % 3) * wave(t * 4 + o + 5);
                  return sum;
                }),
           1e-13);
    // <convolve(x, k), y> is <x, its gradient> and <k, its gradient>.
    const double square = value(dot(y, y));
    c.near(Values{value(dot(x, convolve_input_gradient<nhwc, P<data, model, _, _>>(
                                   y, k, x.extents(), settings))),
                  value(dot(k, convolve_kernel_gradient<nhwc>(x, y, k.extents(), settings)))},
           {square, square}, 1e-12, "the gradients");
    const WindowSettings pool{.size = {1, 2, 2, 1}, .stride = {1, 2, 2, 1}};
    const auto most = reduce_window<Max>(x, pool);
    c.near(most,
           each(2 * 4 * 3 * 3,
                [&](Index r) {
                  const Index i = r % 3, w = r / 3 % 3, h = r / 9 % 4, n = r / 36;
                  double best = -9;
                  for (Index t = 0; t < 4; ++t)
                    best = std::max(best, in(n, 2 * h + t / 2, 2 * w + t % 2, i));
                  return best;
                }),
           0, "the pool");
    c.near(Values{value(sum(reduce_window_gradient<Max>(x, most, pool)))}, {value(sum(most))},
           1e-12, "the pool's gradient");
  });
}

void indices(Cases& c) {
  const auto table = wave_of<Real<model, _>>(c.mesh, {16, 5});
  const auto id = [](Index i) { return (i * 7 + 3) % 16; };
  std::vector<std::int32_t> host;
  for (Index i = 0; i < 12; ++i) host.push_back(static_cast<std::int32_t>(id(i)));
  const auto ids = from_host<Of<std::int32_t, data, _>>(c.mesh, {4, 3}, host);
  const auto rows = take<"vm,bs->bsm">(table, ids);
  c.run("indices", [&] {
    c.near(rows, each(60, [&](Index i) { return wave(id(i / 5) * 5 + i % 5); }), 0, "take");
    Values sums(80);
    for (Index i = 0; i < 60; ++i)
      sums[std::size_t(id(i / 5) * 5 + i % 5)] += wave(id(i / 5) * 5 + i % 5);
    c.near(scatter<Sum, "bs,bsm->vm">(ids, rows, {16}), sums, 1e-14, "scatter");
    c.near(bincount<"bs->v">(ids, 16),
           each(16,
                [&](Index v) {
                  return std::count(host.begin(), host.end(), static_cast<std::int32_t>(v));
                }),
           0, "bincount");
    c.near(one_hot<double, "bsv", 'v'>(ids, 16),
           each(192, [&](Index i) { return id(i / 16) == i % 16; }), 0, "one_hot");
    c.near(dynamic_slice<"bsm", 'm'>(rows, {2}, {3}),
           each(36, [&](Index i) { return wave(id(i / 3) * 5 + i % 3 + 2); }), 0, "dynamic_slice");
    auto bins = each(8, [](Index) { return 0; });
    for (Index i = 0; i < 80; ++i) bins[std::size_t((wave(i) + 1) * 4)] += 1;
    c.near(histogram<"vm->b">(table, 8, -1.0, 1.0), bins, 0, "histogram");
  });
  c.run("shapes", [&] {
    const auto x = wave_of<Real<data, model>>(c.mesh, {6, 8});
    c.near(reshape<P<data, _, model>>(x, {6, 4, 2}), waves(48), 0, "reshape");
    c.near(roll<0>(x, 2), each(48, [](Index i) { return wave((i + 32) % 48); }), 0, "roll");
    c.near(slice(x, {1, 2}, {5, 7}),
           each(20, [](Index i) { return wave((i / 5 + 1) * 8 + i % 5 + 2); }), 0, "slice");
    c.near(pad(x, {1, 0}, {0, 0}, {}, 3.0),
           each(56, [](Index i) { return i < 8 ? 3 : wave(i - 8); }), 0, "pad");
    c.near(concatenate<0>(x, x), each(96, [](Index i) { return wave(i % 48); }), 0, "concatenate");
    c.near(flip<1>(x), each(48, [](Index i) { return wave(i / 8 * 8 + 7 - i % 8); }), 0, "flip");
    const auto [u, v] = reshard_together<P<_, data>, P<model, _>>(x, x);
    c.near(u + v, each(48, [](Index i) { return 2 * wave(i); }), 0, "reshard_together");
    auto moved = async([&] { return reshard<P<_, data>>(x + x); });
    const auto doubled = x * 2.0;
    c.near(moved.wait(), values_of(doubled), 0, "async");
    const auto other = make_mesh<Grid>(c.mesh.core()->transport().first(c.mesh.processes()), 1,
                                       c.mesh.processes());
    c.near(reshard<Real<_, model>>(x, other), waves(48), 0, "another mesh");
    const Of<double, data, model> copy = reshard<P<data, model>>(reshard<P<_, data>>(replicate(x)));
    c.near(copy, waves(48), 0, "reshard of a replica");
  });
}

/// A stencil on a halo, as a user's kernel.
struct FivePoints {
  GlobalView<LocalView<double, 2>> in, out;
  Box box;
  KOKKOS_FUNCTION void operator()(Index n) const {
    const Index columns = box[1].hi - box[1].lo;
    const Index i = box[0].lo + n / columns, j = box[1].lo + n % columns;
    out(i, j) =
        in(i, j) + 2 * in(i - 1, j) + 3 * in(i + 1, j) + 5 * in(i, j - 1) + 7 * in(i, j + 1);
  }
};
/// Adds a number to a block, as a user's kernel.
struct AddNumber {
  double* x;
  double number;
  KOKKOS_FUNCTION void operator()(Index i) const { x[i] += number; }
};
template <class F> void on_lane(Index n, const F& f) {
  Kokkos::parallel_for(
      "device_test",
      Kokkos::RangePolicy<KernelSpace, Kokkos::IndexType<Index>>(detail::lane().space(), 0, n), f);
}

void halos(Cases& c) {
  const Index rows = 11, columns = 7;
  using Field = Real<data, model>;
  c.run("a stencil while its halo travels", [&] {
    auto u = make_halo<Field, 0, 1>(c.mesh, {rows, columns}, 1, 1, Boundary::periodic);
    auto v = u.like();
    u.assign(wave_of<Field>(c.mesh, {rows, columns}));
    Values x = waves(rows * columns), y(x.size());
    const auto place = [&](Index i, Index j) {
      return std::size_t((i + rows) % rows * columns + (j + columns) % columns);
    };
    for (int step = 0; step < 3; ++step) {
      auto pending = u.exchange_async();
      const auto points = [&](const Box& box) {
        on_lane(box.size(), FivePoints{u.global(), v.global(), box});
      };
      points(u.inner_box());
      pending.wait();
      for (const Box& box : u.border()) points(box);
      std::swap(u, v);
      for (Index i = 0; i < rows; ++i)
        for (Index j = 0; j < columns; ++j)
          y[place(i, j)] = x[place(i, j)] + 2 * x[place(i - 1, j)] + 3 * x[place(i + 1, j)] +
                           5 * x[place(i, j - 1)] + 7 * x[place(i, j + 1)];
      std::swap(x, y);
    }
    c.near(u.tensor(), x, 1e-14);
  });
  c.run("halos", [&] {
    const auto x = wave_of<Field>(c.mesh, {rows, columns});
    const auto wide = halo_exchange<0>(x, 2, 1, Boundary::constant, 4.0);
    c.near(halo_adjoint(wide), each(rows * columns, [&](Index n) { return wave(n) * 1.0; }), 9,
           "the adjoint");  // only that it runs: how often an element counts, the mesh says
    auto kept = make_halo<Field, 0>(c.mesh, {rows, columns}, 1, 1, Boundary::symmetric);
    kept.assign(x);
    kept.exchange();
    kept *= 3.0;
    c.near(kept.tensor(), each(rows * columns, [](Index n) { return 3 * wave(n); }), 1e-15);
  });
}

void own_memory(Cases& c) {
  c.run("the user's kernels and memory", [&] {
    using Tensor = Real<data, _>;
    auto x = wave_of<Tensor>(c.mesh, {9, 4});
    on_lane(x.box().size(), AddNumber{local_view(x).data(), 2});
    c.near(x, each(36, [](Index i) { return wave(i) + 2; }), 0, "the user's kernel");
    using View = Kokkos::View<double**, Kokkos::LayoutRight, KernelMemory>;
    const Box box = x.box();
    const View mine("mine", std::size_t(box[0].size()), 4);
    auto y = adopt<Tensor>(c.mesh, {9, 4}, mine);
    reshard_into(y, x);
    on_lane(box.size(), AddNumber{mine.data(), 1});
    c.near(y, each(36, [](Index i) { return wave(i) + 3; }), 0, "the adopted View");
    // Rows in another cut: all on the last process.
    const bool last = c.mesh.process() == c.mesh.processes() - 1;
    const Box all{{{0, last ? 9 : 0}, {0, 4}}};
    const View whole("whole", last ? 9 : 0, 4);
    to_irregular(y, all, whole);
    on_lane(all.size(), AddNumber{whole.data(), 1});
    c.near(from_irregular<Real<data, model>>(c.mesh, {9, 4}, all, whole),
           each(36, [](Index i) { return wave(i) + 4; }), 0, "an irregular cut");
  });
}

void files(Cases& c) {
  c.run("files", [&] {
    const auto x = wave_of<Real<data, model>>(c.mesh, {9, 5});
    write_npy(x, "device_cases.npy");
    c.near(read_npy<Real<_, data>>(c.mesh, "device_cases.npy"), waves(45), 0, "npy");
    c.require(fmt::format("{}", x).size() > 40, "a tensor is text");
    c.require(allclose(x, read_npy<Real<data, model>>(c.mesh, "device_cases.npy")),
              "they are close");
  });
  c.run("a search for NaN", [&] {
    MeshOptions options;
    options.find = Find::nan;
    const auto mesh = make_mesh<Grid>(c.mesh.core()->transport().first(c.mesh.processes()),
                                      c.mesh.sizes(), options);
    const auto x = wave_of<Real<data, model>>(mesh, {9, 5});
    bool found = false;
    try {
      (void)value(sum(log(x)));
    } catch (const ValueError&) {
      found = true;
    }
    c.require(found, "a logarithm of what is below 0 is found");
  });
}

void operators(Cases& cases) {
  creation(cases);
  maps(cases);
  reductions(cases);
  products(cases);
  indices(cases);
  halos(cases);
  own_memory(cases);
  files(cases);
}
}  // namespace
}  // namespace device_test

int main(int argc, char** argv) {
  tessera::Environment env(argc, argv);
  const int processes = env.world()->size();
  const int rows = processes % 2 == 0 ? 2 : 1;
  const auto mesh = tessera::make_mesh<Grid>(env, rows, processes / rows);
  if (argc > 1) {
    const auto x = device_test::wave_of<device_test::Real<tessera::_>>(mesh, {4});
    return local_view(x)(0) < 2 ? 0 : 1;
  }
  device_test::Cases cases(mesh);
  device_test::operators(cases);
  device_test::long_rows(cases);
  device_test::training(cases);
  return cases.finish("device") == 0 ? 0 : 1;
}
