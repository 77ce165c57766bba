// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 1
// threads: 1 2
// Kernels of elements on one process's memory, each beside its roofline: functions, casts, choices,
// norms and complex numbers (bench_kernels has the others). benchmarks/peers.py measures the same
// rows with PyTorch, NumPy and JAX, in turns with this program.
#include <cstdint>
#include <string>

#include <tessera/kernel/functions.hpp>
#include <tessera/kernel/map/map.hpp>
#include <tessera/kernel/rows/moments.hpp>
#include <tessera/kernel/rows/normalize.hpp>

#include "support/kernel_rows.hpp"

namespace {
using namespace tessera_bench;

template <class T, class F> void function(const std::string& name, const F& f) {
  const Buffer<T> x = numbers<T>(many);
  Buffer<T> y(x.size());
  const LocalMap work{.extents = {many}, .strides = {{1}}, .flat = true};
  row(name, {.bytes = 2.0 * many * sizeof(T)},
      [&] { detail::map<T>(f, work, y.data(), x.data()); });
}
template <class T> void elementwise(const std::string& type) {
  function<T>("exp, " + type, fn::Exp{});
  function<T>("tanh, " + type, fn::Tanh{});
  function<T>("erf, " + type, fn::Erf{});
  function<T>("gelu, " + type, fn::Gelu{});
  function<T>("gelu by tanh, " + type, fn::GeluTanh{});
  function<T>("silu, " + type, fn::Silu{});
  function<T>("relu, " + type, fn::Relu{});
  function<T>("sin, " + type, fn::Sin{});
  function<T>("rsqrt of squares, " + type, [](auto x) { return fn::Rsqrt{}(x * x); });
  const Buffer<T> x = numbers<T>(many), z = x;
  Buffer<T> y(x.size());
  const auto add = [&](const char* name, const Extents& strides) {
    const LocalMap work{.extents = {1024, 1024}, .strides = {{1024, 1}, strides}};
    row(name + type, {.bytes = 2.0 * many * sizeof(T)},
        [&] { detail::map<T>(fn::Add{}, work, y.data(), x.data(), z.data()); });
  };
  add("add a row, ", {0, 1});
  add("add a column, ", {1, 0});
}
template <class From, class To> void cast(const std::string& name) {
  const Buffer<From> x = numbers<From>(many);
  Buffer<To> y(x.size());
  const LocalMap work{.extents = {many}, .strides = {{1}}, .flat = true};
  row("cast, " + name, {.bytes = 1.0 * many * (sizeof(From) + sizeof(To))},
      [&] { detail::map<To>(fn::Cast<To>{}, work, y.data(), x.data()); });
}

/// Measures functions of positive numbers, and their powers.
template <class T> void of_positive(const std::string& type) {
  Buffer<T> x = numbers<T>(many), y(x.size());
  const Buffer<T> z = x;
  for (T& value : x) value += T(4.125);
  const LocalMap one{.extents = {many}, .strides = {{1}}, .flat = true};
  const auto measure = [&](const char* name, const auto& f) {
    row(name + type, {.bytes = 2.0 * many * sizeof(T)},
        [&] { detail::map<T>(f, one, y.data(), x.data()); });
  };
  measure("exp2, ", fn::Exp2{});
  measure("log, ", fn::Log{});
  measure("log1p, ", fn::Log1p{});
  measure("sqrt, ", fn::Sqrt{});
  const LocalMap two{.extents = {many}, .strides = {{1}, {1}}, .flat = true};
  row("pow, " + type, {.bytes = 3.0 * many * sizeof(T)},
      [&] { detail::map<T>(fn::Pow{}, two, y.data(), x.data(), z.data()); });
  Buffer<std::uint8_t> mask(x.size());
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = i * 2654435761 % 7 < 3;
  const LocalMap three{.extents = {many}, .strides = {{1}, {1}, {1}}, .flat = true};
  row("where, " + type, {.bytes = many * (3.0 * sizeof(T) + 1)}, [&] {
    detail::map<T>(fn::Select{}, three, y.data(), reinterpret_cast<const bool*>(mask.data()),
                   x.data(), z.data());
  });
}

/// Means and variances of rows, and layer norms, as variance() and layer_norm() compute them.
template <class T> void norms(const std::string& type) {
  constexpr DType D = dtype_of<T>;
  detail::use_kernels<detail::MomentsKernels, T>();
  detail::use_kernels<detail::NormalizeKernels, T>();
  const Buffer<T> x = numbers<T>(side * side), scale = numbers<T>(side), bias = scale;
  Buffer<T> y(x.size()), mean(side), spread(side);
  const LocalReduce rows{{side}, {side}, {side}, {1}};
  const double size = 1.0 * side * side * sizeof(T);
  row("mean and variance of rows, " + type, {.bytes = size},
      [&] { detail::moments(D, rows, x.data(), nullptr, 1.0 / side, mean.data(), spread.data()); });
  const detail::LocalNormalize whole{.rows = side, .n = side, .epsilon = 1e-5, .biased = true};
  const detail::NormalizeMemory memory{.x = x.data(),
                                       .scale = scale.data(),
                                       .bias = bias.data(),
                                       .y = y.data(),
                                       .inverse = spread.data(),
                                       .mean = mean.data()};
  row("layer norm, " + type, {.bytes = 2 * size},
      [&] { detail::normalize(D, whole, 1.0 / side, memory); });
}

template <class T> void of_complex(const std::string& type) {
  using C = complex<T>;
  constexpr DType D = dtype_of<C>;
  constexpr Index n = 512;
  const Buffer<T> parts = numbers<T>(2 * many);
  Buffer<C> x, y(many), r(1024);
  for (std::size_t i = 0; i < many; ++i) x.push_back({parts[2 * i], parts[2 * i + 1]});
  const Buffer<C> z = x;
  Buffer<T> size(many);
  const LocalMap one{.extents = {many}, .strides = {{1}}, .flat = true};
  const LocalMap two{.extents = {many}, .strides = {{1}, {1}}, .flat = true};
  row("add, " + type, {.bytes = 3.0 * many * sizeof(C)},
      [&] { detail::map<C>(fn::Add{}, two, y.data(), x.data(), z.data()); });
  row("multiply, " + type, {.bytes = 3.0 * many * sizeof(C)},
      [&] { detail::map<C>(fn::Multiply{}, two, y.data(), x.data(), z.data()); });
  row("size, " + type, {.bytes = 1.5 * many * sizeof(C)},
      [&] { detail::map<T>(fn::Abs{}, one, size.data(), x.data()); });
  const LocalReduce rows{{1024}, {1024}, {1024}, {1}};
  row("sum of rows, " + type, {.bytes = 1.0 * many * sizeof(C)},
      [&] { detail::reduce(D, Reduction::sum, rows, x.data(), r.data()); });
  const detail::Gemm product{.m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n};
  row("product of 512^3, " + type,
      {.flops = 4.0 * static_cast<double>(product.flops()), .type = dtype_of<T>},
      [&] { detail::gemm(D, product, x.data(), z.data(), y.data(), 0, false, &product_table()); });
}

void measure_all() {
  detail::use_tensor_of<float>();
  detail::use_tensor_of<double>();
  detail::use_tensor_of<complex<float>>();
  detail::use_tensor_of<complex<double>>();
  elementwise<float>("float");
  elementwise<double>("double");
  elementwise<half>("half");
  elementwise<bfloat16>("bfloat16");
  cast<float, double>("float to double");
  cast<double, float>("double to float");
  cast<float, half>("float to half");
  cast<half, float>("half to float");
  cast<float, bfloat16>("float to bfloat16");
  cast<bfloat16, float>("bfloat16 to float");
  of_positive<float>("float");
  of_positive<double>("double");
  norms<float>("float");
  norms<double>("double");
  of_complex<float>("complex float");
  of_complex<double>("complex double");
}
}  // namespace

int main(int argc, char** argv) { return tessera_bench::measure_rows(argc, argv, measure_all); }
