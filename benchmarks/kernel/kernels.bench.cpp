// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 1
// threads: 1 2
// Kernels along rows, those that move elements, products and convolutions, on one process's memory
// (bench_functions has those of elements), each beside its roofline. benchmarks/peers.py measures
// the same rows with PyTorch, NumPy and JAX, in turns with this program.
#include <cstdint>
#include <string>
#include <utility>

#include <tessera/kernel/rows/softmax.hpp>

#include "support/kernel_rows.hpp"

namespace {
using namespace tessera_bench;

template <class T> void along_rows(const std::string& type) {
  constexpr DType D = dtype_of<T>;
  const Buffer<T> x = numbers<T>(side * side);
  Buffer<T> y(x.size()), r(side);
  Buffer<std::int64_t> at(side);
  const double size = 1.0 * side * side * sizeof(T);
  const LocalReduce rows{{side}, {side}, {side}, {1}}, columns{{side}, {1}, {side}, {side}};
  for (const bool along : {true, false}) {
    const LocalReduce& work = along ? rows : columns;
    const std::string of = (along ? " of rows, " : " of columns, ") + type;
    const LocalScan lines{.outer = along ? side : 1, .n = side, .inner = along ? 1 : side};
    row("sum" + of, {.bytes = size},
        [&] { detail::reduce(D, Reduction::sum, work, x.data(), r.data()); });
    row("max" + of, {.bytes = size},
        [&] { detail::reduce(D, Reduction::max, work, x.data(), r.data()); });
    row("arg-max" + of, {.bytes = size}, [&] {
      detail::find_extreme(D, Reduction::max, {work, 0, {1}}, x.data(), r.data(), at.data());
    });
    row("running sum" + of, {.bytes = 2 * size},
        [&] { detail::scan(D, Reduction::sum, lines, x.data(), nullptr, y.data()); });
    for (const bool logarithm : {false, true})
      row((logarithm ? "log-softmax" : "softmax") + of, {.bytes = 2 * size},
          [&] { detail::softmax(D, logarithm, lines, x.data(), nullptr, nullptr, y.data()); });
  }
}

template <class T> void moves(const std::string& type) {
  constexpr DType D = dtype_of<T>;
  constexpr Index n = 8 * 512 * 16 * 64;
  const Buffer<T> x = numbers<T>(n);
  Buffer<T> y(x.size());
  const auto copy = [&](const std::string& name, const StridedCopy& work) {
    row(name + type, {.bytes = 2.0 * static_cast<double>(volume(work.extents)) * sizeof(T)},
        [&] { detail::copy(D, x.data(), y.data(), &work, 1); });
  };
  copy("transpose, ",
       {.extents = {side, side}, .from_strides = {1, side}, .to_strides = {side, 1}});
  copy("split heads, ", {.extents = {8, 16, 512, 64},
                         .from_strides = {512 * 1024, 64, 1024, 1},
                         .to_strides = {512 * 1024, 512 * 64, 64, 1}});
  copy("reverse rows, ", {.extents = {side, side},
                          .from_offset = (side - 1) * side,
                          .from_strides = {-side, 1},
                          .to_strides = {side, 1}});

  constexpr Index rows = 50000, width = 256, taken = 8192;
  Buffer<T> table = numbers<T>(rows * width), some(taken * width);
  Buffer<std::int64_t> places;
  for (Index i = 0; i < taken; ++i) places.push_back(i * 2654435761 % rows);
  const void* const indices[] = {places.data()};
  const DType types[] = {DType::i64};
  detail::LocalIndexed work{.tuples = {taken}, .strides = {width}, .in_table = {0}, .row = {width}};
  work.row_strides = work.row_in_table = {1};
  work.indices.push_back({.extent = rows, .held = {0, rows}, .step = width, .strides = {1}});
  row("take rows, " + type, {.bytes = 2.0 * taken * width * sizeof(T)},
      [&] { detail::take(D, work, table.data(), indices, types, Reduction::sum, some.data()); });
  work.indices[0].step = 1;
  const detail::LocalScatter scatter{.rows = work, .table = {rows}, .table_strides = {width}};
  Buffer<std::int64_t> integers(static_cast<std::size_t>(scatter.integers()));
  row("scatter-add rows, " + type, {.bytes = 3.0 * taken * width * sizeof(T)}, [&] {
    detail::scatter(D, Reduction::sum, scatter, table.data(), indices, types, some.data(),
                    integers.data(), table.data());
  });
  const Buffer<T> keys = numbers<T>(256 * 4096);
  Buffer<std::int64_t> order(keys.size());
  for (const Index limit : {16, 4096}) {
    const detail::LocalSort sort{.outer = 256, .n = 4096, .limit = limit, .descending = true};
    Buffer<std::int64_t> words(static_cast<std::size_t>(sort.scratch_bytes(sizeof(T), false) / 8));
    row((limit == 16 ? "top 16, " : "sort, ") + type, {.bytes = 1.0 * many * (sizeof(T) + 8)},
        [&] { detail::order(D, sort, keys.data(), nullptr, order.data(), words.data()); });
  }
}

template <class T>
void product(const std::string& name, Index batch, Index m, Index n, Index k, bool turned = false) {
  const Buffer<T> a = numbers<T>(batch * m * k), b = numbers<T>(batch * k * n);
  Buffer<T> c(static_cast<std::size_t>(batch * m * n));
  detail::Gemm work{.m = m, .n = n, .k = k, .transpose_b = turned, .lda = k};
  work.ldb = turned ? k : n;
  work.ldc = n;
  work.batch = {batch};
  work.batch_a = {m * k};
  work.batch_b = {k * n};
  work.batch_c = {m * n};
  row(name,
      {.bytes = 1.0 * static_cast<double>(batch * (m * k + k * n + m * n)) * sizeof(T),
       .flops = static_cast<double>(work.flops()),
       .type = dtype_of<T>},
      [&] {
        detail::gemm(dtype_of<T>, work, a.data(), b.data(), c.data(), 0, false, &product_table());
      });
}
template <class T> void products(const std::string& type) {
  product<T>("512 products of 64^3, " + type, 512, 64, 64, 64);
  product<T>("4096 products of 16^3, " + type, 4096, 16, 16, 16);
  product<T>("128 products of queries and keys, " + type, 128, 512, 512, 64, true);
  product<T>("matrix times vector, " + type, 1, side, 1, side);
  product<T>("vector times matrix, " + type, 1, 1, side, side);
  product<T>("outer product, " + type, 1, side, side, 1);
}

/// Images and the windows over them; results are as large as the images.
struct Layer {
  Index batch, in, out;
  FixedVector<Index, detail::max_spatial> extents;
  bool features_last = false;

  Index positions() const {
    Index n = 1;
    for (const Index extent : extents) n *= extent;
    return n;
  }
  Index taps() const { return extents.size() == 2 ? 9 : 27; }
  detail::ConvolveLayout images(Index features) const {
    const Index inner = features_last ? features : 1;
    return {.first = positions() * features,
            .second = features_last ? 1 : positions(),
            .spatial = steps(extents, inner)};
  }
  /// Its `first` is the input feature.
  detail::ConvolveLayout kernel() const {
    FixedVector<Index, detail::max_spatial> threes;
    for (int d = 0; d < extents.size(); ++d) threes.push_back(3);
    if (features_last) return {.first = out, .second = 1, .spatial = steps(threes, in * out)};
    return {.first = taps(), .second = taps() * in, .spatial = steps(threes, 1)};
  }

 private:
  static FixedVector<Index, detail::max_spatial> steps(FixedVector<Index, detail::max_spatial> of,
                                                       Index inner) {
    for (int d = of.size() - 1; d >= 0; --d) {
      const Index extent = of[d];
      of[d] = inner;
      inner *= extent;
    }
    return of;
  }
};

detail::ConvolveLayout turned(detail::ConvolveLayout x) {
  std::swap(x.first, x.second);
  return x;
}

/// A convolution of 3 x 3 (x 3) taps, and its gradients, each a convolution of its own.
void convolution(const std::string& name, const Layer& l) {
  const Buffer<float> x = numbers<float>(l.batch * l.in * l.positions()),
                      y = numbers<float>(l.batch * l.out * l.positions()),
                      w = numbers<float>(l.in * l.out * l.taps());
  Buffer<float> dx = x, made = y, dw = w;
  detail::LocalConvolve forward{.batch = l.batch,
                                .in_features = l.in,
                                .out_features = l.out,
                                .input = l.extents,
                                .result = l.extents,
                                .in = l.images(l.in),
                                .kernel = l.kernel(),
                                .out = l.images(l.out)};
  for (int d = 0; d < l.extents.size(); ++d)
    forward.windows.push_back({.size = 3, .low = 1, .high = 1});
  detail::LocalConvolve by_data = forward, by_kernel = forward;
  std::swap(by_data.in_features, by_data.out_features);
  std::swap(by_data.in, by_data.out);
  by_data.kernel = turned(by_data.kernel);
  for (Window& window : by_data.windows) window.reversed = true;
  by_kernel.batch = l.in;
  by_kernel.in_features = l.batch;
  by_kernel.in = turned(forward.in);
  by_kernel.kernel = forward.out;
  by_kernel.out = forward.kernel;
  for (int d = 0; d < l.extents.size(); ++d) {
    by_kernel.result[d] = 3;
    by_kernel.windows[d].size = l.extents[d];
  }
  const auto make = [&](const char* title, const detail::LocalConvolve& work, const float* in,
                        const float* kernel, float* out) {
    row(name + title,
        {.bytes = 4.0 * static_cast<double>(x.size() + y.size() + w.size()),
         .flops = static_cast<double>(work.flops())},
        [&] { detail::convolve(DType::f32, work, in, kernel, out); });
  };
  make("forward", forward, x.data(), w.data(), made.data());
  make("gradient by data", by_data, y.data(), w.data(), dx.data());
  make("gradient by kernel", by_kernel, x.data(), y.data(), dw.data());
}

template <class T> void use_rows() {
  detail::use_tensor_of<T>();
  detail::use_rows_of<T>();
  detail::use_kernels<detail::SoftmaxKernels, T>();
}

void measure_all() {
  detail::use_indexed<float>();
  detail::use_indexed<double>();
  detail::use_sort_of<float>();
  detail::use_sort_of<double>();
  detail::use_convolve_of<float>();
  use_rows<half>();
  use_rows<bfloat16>();
  use_rows<float>();
  use_rows<double>();
  along_rows<float>("float");
  along_rows<double>("double");
  along_rows<half>("half");
  along_rows<bfloat16>("bfloat16");
  moves<float>("float");
  moves<double>("double");
  products<float>("float");
  products<double>("double");
  convolution("convolution, 4 x 32 x 256 x 256, ", {4, 32, 32, {256, 256}});
  convolution("convolution, features last, ", {4, 32, 32, {256, 256}, true});
  convolution("convolution, 1 x 16 x 64^3, ", {1, 16, 16, {64, 64, 64}});
}
}  // namespace

int main(int argc, char** argv) { return tessera_bench::measure_rows(argc, argv, measure_all); }
