// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Typed tensors for tests of gradients: smooth elements, a layer, and whether two are close.
///
///     const auto x = from_function<Real<data, _>>(mesh, {6, 4}, Ramp{});
#include <cmath>

#include <tessera/tensor/tree.hpp>
#include <tessera/tessera.hpp>

#include "support/grid.hpp"

namespace gradient_test {
using namespace tessera;

template <class... D> using Real = ShardedTensor<double, Grid, P<D...>>;
struct Ramp {
  double scale = 0.1;
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i) const {
    double v = 0.3;
    for (int d = 0; d < i.size(); ++d) v = v * 1.7 + static_cast<double>(i[d]);
    return scale * v - 1;
  }
};
/// Weights and bias of a layer.
struct Dense {
  Real<_, model> weight;
  Real<model> bias;
  static constexpr auto fields = Fields<&Dense::weight, &Dense::bias>{};
};
template <class T> bool close(const T& a, const T& b) {
  const auto x = to_host(a), y = to_host(b);
  for (std::size_t i = 0; i < x.values.size(); ++i)
    if (!(std::fabs(x.values[i] - y.values[i]) <= 1e-12 * (1 + std::fabs(y.values[i]))))
      return false;
  return x.values.size() == y.values.size();
}

}  // namespace gradient_test
