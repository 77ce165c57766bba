// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 1
// The functions that kernel/functions/detail/ has by hand, on 16,384 elements in cache, in turns
// with SLEEF's vector functions where it is installed (Debian: libsleef-dev): of 256 and 512 bits,
// with errors of 1.0 ulp and, where it has them, 3.5. Times are of 16,384 elements; "ulp" are the
// largest errors at them, beside libm's long double.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/kernel/functions.hpp>
#include <tessera/kernel/map/map.hpp>

#include "support/kernel_rows.hpp"
#ifdef TESSERA_HAVE_SLEEF
#include "support/sleef.hpp"
#endif

namespace {
using namespace tessera_bench;

constexpr Index count = 1 << 14;

/// The largest error of y, in units of the last place of the exact result.
template <class T>
double ulps(const Buffer<T>& y, const std::function<long double(std::size_t)>& exact) {
  double most = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const long double right = exact(i);
    const T near = std::fabs(static_cast<T>(right));
    const T unit = std::max(std::nextafter(near, std::numeric_limits<T>::infinity()) - near,
                            std::numeric_limits<T>::denorm_min());
    const long double error = std::fabs(static_cast<long double>(y[i]) - right);
    const double units = static_cast<double>(error / static_cast<long double>(unit));
    most = std::isnan(units) ? INFINITY : std::max(most, units);
  }
  return most;
}

/// Measures f, of x or of x and z.
template <class T, class F, class Exact, class... Z>
void function(const char* name, const F& f, const Exact& exact, const Buffer<T>& x, const Z&... z) {
  const std::string whole =
      std::string("vector functions/") + name + (sizeof(T) == 4 ? ", float" : ", double");
  if (!wanted(whole)) return;
  const std::vector<Extents> strides(1 + sizeof...(Z), Extents{1});
  LocalMap work{.extents = {count}, .strides = {}, .flat = true};
  for (const Extents& one : strides) work.strides.push_back(one);
  Buffer<T> y(x.size());
  std::vector<std::string> ways{"tessera"};
  std::vector<std::function<void()>> bodies{
      [&] { detail::map<T>(f, work, y.data(), x.data(), z.data()...); }};
#ifdef TESSERA_HAVE_SLEEF
  const T* second = std::get<sizeof...(Z)>(std::tuple(x.data(), z.data()...));
  for (const int tenths : {10, 35}) {
    const sleef::Function* other = sleef::find(name, tenths);
    if (other == nullptr) continue;
    const auto add = [&](const char* bits, bool has, sleef::Loop<T> loop) {
      if (!has) return;
      ways.push_back(std::string("SLEEF ") + bits + (tenths == 10 ? "" : ", 3.5 ulp"));
      bodies.push_back([&, loop] { loop(x.data(), second, y.data(), count); });
    };
    const bool wide = __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if constexpr (std::is_same_v<T, float>) {
      add("256", __builtin_cpu_supports("avx2"), other->floats_of_256);
      add("512", wide, other->floats_of_512);
    } else {
      add("256", __builtin_cpu_supports("avx2"), other->doubles_of_256);
      add("512", wide, other->doubles_of_512);
    }
  }
#endif
  const std::vector<double> t =
      in_turns(bodies, {.seconds = 0.3, .least = 51, .most = 20'001, .clock = &now});
  Numbers times, errors;
  std::printf("%-24s", (whole.substr(whole.find('/') + 1)).c_str());
  for (std::size_t i = 0; i < ways.size(); ++i) {
    bodies[i]();
    const double error = ulps<T>(y, [&](std::size_t k) {
      return exact(static_cast<long double>(x[k]), static_cast<long double>(z[k])...);
    });
    times.push_back({ways[i], t[i]});
    if (i == 0 || ways[i] == "SLEEF 256") errors.push_back({i == 0 ? "ulp" : "ulp, SLEEF", error});
    std::printf("  %s %.3f ns, %.2f ulp", ways[i].c_str(), t[i] * 1e9 / count, error);
  }
  std::printf("\n");
  std::fflush(stdout);
  note(whole, times, errors);
}

template <class T> void functions() {
  using L = long double;
  const Buffer<T> x = numbers<T>(count);
  Buffer<T> positive = x;
  for (T& value : positive) value += T(4.125);
  Buffer<T> within = x;  // [-1, 1]
  for (T& value : within) value /= T(4);
  function(
      "exp", fn::Exp{}, [](L a) { return std::exp(a); }, x);
  function(
      "exp2", fn::Exp2{}, [](L a) { return std::exp2(a); }, x);
  function(
      "expm1", fn::Expm1{}, [](L a) { return std::expm1(a); }, x);
  function(
      "log", fn::Log{}, [](L a) { return std::log(a); }, positive);
  function(
      "log1p", fn::Log1p{}, [](L a) { return std::log1p(a); }, positive);
  function(
      "log2", fn::Log2{}, [](L a) { return std::log2(a); }, positive);
  function(
      "log10", fn::Log10{}, [](L a) { return std::log10(a); }, positive);
  function(
      "cbrt", fn::Cbrt{}, [](L a) { return std::cbrt(a); }, x);
  function(
      "sin", fn::Sin{}, [](L a) { return std::sin(a); }, x);
  function(
      "cos", fn::Cos{}, [](L a) { return std::cos(a); }, x);
  function(
      "tan", fn::Tan{}, [](L a) { return std::tan(a); }, x);
  function(
      "asin", fn::Asin{}, [](L a) { return std::asin(a); }, within);
  function(
      "acos", fn::Acos{}, [](L a) { return std::acos(a); }, within);
  function(
      "atan", fn::Atan{}, [](L a) { return std::atan(a); }, x);
  function(
      "sinh", fn::Sinh{}, [](L a) { return std::sinh(a); }, x);
  function(
      "cosh", fn::Cosh{}, [](L a) { return std::cosh(a); }, x);
  function(
      "tanh", fn::Tanh{}, [](L a) { return std::tanh(a); }, x);
  function(
      "erf", fn::Erf{}, [](L a) { return std::erf(a); }, x);
  function(
      "pow", fn::Pow{}, [](L a, L b) { return std::pow(a, b); }, positive, x);
}

void measure_all() {
  detail::use_tensor_of<float>();
  detail::use_tensor_of<double>();
  functions<float>();
  functions<double>();
}
}  // namespace

int main(int argc, char** argv) { return tessera_bench::measure_rows(argc, argv, measure_all); }
