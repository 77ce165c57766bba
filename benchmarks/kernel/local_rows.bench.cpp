// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 1
// threads: 1 2
// Running sums, softmax and functions of one process's memory, in turns with plain loops on one
// thread, softmax and the functions with libm's. Times are the least of many.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <mpi.h>

#include <tessera/kernel/functions.hpp>
#include <tessera/kernel/map/map.hpp>
#include <tessera/kernel/rows/softmax.hpp>
#include <tessera/kernel/use_element.hpp>

#include "support/mpi_benchmark.hpp"
#include "support/turns.hpp"

namespace {
using namespace tessera;

void row(const std::string& name, const std::function<void()>& ours,
         const std::function<void()>& plain) {
  std::string whole = "local rows/";
  whole += name;
  if (!tessera_bench::wanted(whole)) return;
  const std::vector<double> t = tessera_bench::in_turns(
      {ours, plain}, {.seconds = 1, .least = 7, .most = 1001, .take_least = true});
  tessera_bench::note(whole, {{"tessera", t[0]}, {"a plain loop", t[1]}});
  std::printf("%-40s %9.3f ms, a plain loop %9.3f ms, ratio %.2f\n", name.c_str(), t[0] * 1e3,
              t[1] * 1e3, t[0] / t[1]);
}

template <class T> void sums(const std::string& type, Index lines, Index n) {
  const auto size = static_cast<std::size_t>(lines * n);
  const std::vector<T> x(size, T(0.5));
  std::vector<T> y(size), z(size);
  const detail::LocalScan work{.outer = lines, .n = n};
  row(
      "running sum, " + std::to_string(lines) + " x " + std::to_string(n) + " " + type,
      [&] { detail::scan(dtype_of<T>, Reduction::sum, work, x.data(), nullptr, y.data()); },
      [&] {
        for (std::size_t line = 0; line < static_cast<std::size_t>(lines); ++line) {
          double sum = 0;
          const std::size_t end = (line + 1) * static_cast<std::size_t>(n);
          for (std::size_t i = end - static_cast<std::size_t>(n); i < end; ++i)
            z[i] = static_cast<T>(sum += static_cast<double>(x[i]));
        }
      });
}

template <class T>
void softmax(const std::string& type, Index outer, Index n, Index inner, bool logarithm) {
  const auto size = static_cast<std::size_t>(outer * n * inner);
  std::vector<T> x, y(size), z(size);
  for (std::size_t i = 0; i < size; ++i)
    x.push_back(static_cast<T>(static_cast<float>(i * 2654435761u % 1000) * 0.01f - 5));
  const detail::LocalScan work{.outer = outer, .n = n, .inner = inner};
  std::string name = logarithm ? "log-softmax, " : "softmax, ";
  name += std::to_string(outer) + " x " + std::to_string(n);
  if (inner > 1) name += " x " + std::to_string(inner);
  row(
      name + " " + type,
      [&] { detail::softmax(dtype_of<T>, logarithm, work, x.data(), nullptr, nullptr, y.data()); },
      [&] {
        using C = ComputeType<T>;
        const auto step = static_cast<std::size_t>(inner);
        for (std::size_t line = 0; line < static_cast<std::size_t>(outer * inner); ++line) {
          const std::size_t begin = line / step * static_cast<std::size_t>(n) * step + line % step;
          const std::size_t end = begin + static_cast<std::size_t>(n) * step;
          C greatest = static_cast<C>(x[begin]), sum = 0;
          for (std::size_t i = begin; i < end; i += step)
            greatest = std::max(greatest, static_cast<C>(x[i]));
          for (std::size_t i = begin; i < end; i += step)
            sum += std::exp(static_cast<C>(x[i]) - greatest);
          for (std::size_t i = begin; i < end; i += step) {
            const C below = static_cast<C>(x[i]) - greatest;
            z[i] = static_cast<T>(logarithm ? below - std::log(sum) : std::exp(below) / sum);
          }
        }
      });
}

template <class T, class F, class G> void function(const char* name, const F& f, const G& libm) {
  constexpr Index n = Index{1} << 20;
  std::vector<T> x, y(static_cast<std::size_t>(n)), z(y.size());
  for (Index i = 0; i < n; ++i) x.push_back(static_cast<T>(i) * T(2e-5) - T(10));
  const detail::LocalMap work{.extents = {n}, .strides = {{1}}, .flat = true};
  row(
      std::string(name) + " of 2^20", [&] { detail::map(f, work, y.data(), x.data()); },
      [&] {
        for (std::size_t i = 0; i < x.size(); ++i) z[i] = libm(x[i]);
      });
}

void measure_all() {
  tessera_bench::print_context();
  sums<float>("float", 2048, 2048);
  sums<double>("double", 2048, 2048);
  sums<float>("float", 1, Index{1} << 22);
  sums<double>("double", 1, Index{1} << 22);
  for (const bool logarithm : {false, true}) {
    softmax<float>("float", 2048, 2048, 1, logarithm);
    softmax<double>("double", 2048, 2048, 1, logarithm);
    softmax<half>("half", 2048, 2048, 1, logarithm);
    softmax<bfloat16>("bfloat16", 2048, 2048, 1, logarithm);
    softmax<float>("float", 2048, 32, 64, logarithm);
    softmax<float>("float", 1 << 18, 10, 1, logarithm);
  }
  function<float>("exp, float,", fn::Exp{}, [](float x) { return std::exp(x); });
  function<double>("exp, double,", fn::Exp{}, [](double x) { return std::exp(x); });
  function<float>("tanh, float,", fn::Tanh{}, [](float x) { return std::tanh(x); });
  function<double>("tanh, double,", fn::Tanh{}, [](double x) { return std::tanh(x); });
  function<double>("erf, double,", fn::Erf{}, [](double x) { return std::erf(x); });
  function<double>("log, double,", fn::Log{}, [](double x) { return std::log(x); });
}
}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    const Kokkos::ScopeGuard kokkos(argc, argv);
    detail::use_element<float>();
    detail::use_kernels<detail::SoftmaxKernels, float>();
    detail::use_element<double>();
    detail::use_kernels<detail::SoftmaxKernels, double>();
    detail::use_kernels<detail::SoftmaxKernels, half>();
    detail::use_kernels<detail::SoftmaxKernels, bfloat16>();
    tessera_bench::start(argc, argv);
    measure_all();
    tessera_bench::finish();
  }
  MPI_Finalize();
  return 0;
}
