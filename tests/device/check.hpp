// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What the cases for devices share: a mesh, elements that host and device compute alike, and
/// comparisons with what the host computes.
///
///     Cases cases(mesh);
///     cases.run("sums", [&] { cases.near(sum<"ij->i">(x), rows, 1e-12); });
///     return cases.failed();
///
/// All that a kernel calls is a functor, and results are read by to_host, so that any compiler of
/// device code takes the cases.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/grid.hpp"

namespace device_test {
using namespace tessera;

template <class T, class... D> using Of = ShardedTensor<T, Grid, P<D...>>;
template <class... D> using Real = Of<double, D...>;
using Values = std::vector<double>;
using Mesh2 = ProcessMesh<Grid>;

/// Element i of every tensor of the cases: multiples of 1/64 between -1 and 1, in no order.
KOKKOS_INLINE_FUNCTION double wave(Index i) {
  return static_cast<double>((i * 37 + 11) % 127 - 63) / 64.0;
}
struct Wave {
  Index shift = 0;
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i) const { return wave(i.linear() + shift); }
};
inline Values waves(Index count, Index shift = 0) {
  Values values;
  for (Index i = 0; i < count; ++i) values.push_back(wave(i + shift));
  return values;
}
template <class X> X wave_of(const Mesh2& mesh, const Extents& extents, Index shift = 0) {
  return from_function<X>(mesh, extents, Wave{shift});
}

/// f(0), f(1), ..., f(count - 1).
template <class F> Values each(Index count, const F& f) {
  Values values;
  for (Index i = 0; i < count; ++i) values.push_back(static_cast<double>(f(i)));
  return values;
}
inline double at(const Values& values, Index i) { return values[static_cast<std::size_t>(i)]; }

template <class A> Values values_of(const A& x) {
  Values values;
  for (const auto v : to_host(x).values) values.push_back(static_cast<double>(v));
  return values;
}

class Cases {
 public:
  explicit Cases(const Mesh2& on) : mesh(on) {}

  template <class F> void run(const char* name, const F& f) {
    ++cases_;
    name_ = name;
    try {
      f();
    } catch (const std::exception& error) {
      fail(std::string("it throws: ") + error.what());
    }
  }
  void require(bool right, const char* what) {
    if (!right) fail(what);
  }
  /// Compares the elements with what the host has computed; differences grow with 1 + |want|.
  void near(const Values& got, const Values& want, double tolerance, const char* what = "it") {
    ++comparisons_;
    if (got.size() != want.size())
      return fail(std::string(what) + " has " + std::to_string(got.size()) + " elements, not " +
                  std::to_string(want.size()));
    for (std::size_t i = 0; i < got.size(); ++i)
      if (got[i] != want[i] && !(std::abs(got[i] - want[i]) <= tolerance * (1 + std::abs(want[i]))))
        return fail(std::string(what) + " has " + std::to_string(got[i]) + " at " +
                    std::to_string(i) + ", the host " + std::to_string(want[i]));
  }
  template <TypedTensor A>
  void near(const A& got, const Values& want, double tolerance, const char* what = "it") {
    near(values_of(got), want, tolerance, what);
  }
  /// Says how it went, on process 0. Returns how much was wrong.
  int finish(const char* program) const {
    if (mesh.process() == 0)
      std::printf("%s: %d cases, %d comparisons, %d wrong\n", program, cases_, comparisons_,
                  failed_);
    return failed_;
  }
  const Mesh2& mesh;

 private:
  void fail(const std::string& text) {
    ++failed_;
    std::fprintf(stderr, "%s, process %d: %s\n", name_, mesh.process(), text.c_str());
  }
  const char* name_ = "";
  int cases_ = 0, comparisons_ = 0, failed_ = 0;
};

void long_rows(Cases& cases);  ///< rows.cpp
void training(Cases& cases);   ///< training.cpp

}  // namespace device_test
