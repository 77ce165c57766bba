// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Functions of tensors of which each uses an operator that has a gradient, for tests on loopback
/// and under MPI.
///
///     for (const gradient_test::GradientCase& c : gradient_test::gradient_cases()) …
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <tessera/grad.hpp>
#include <tessera/tessera.hpp>

#include "support/larger.hpp"

namespace gradient_test {
using namespace tessera;
using Dynamic = std::vector<DynamicTensor>;
using Function = std::function<DynamicTensor(const DynamicMesh&, const Dynamic&)>;

struct GradientCase {
  const char* name;
  std::vector<Extents> inputs;
  Function f;
  double low = -1.5, high = 1.5;  ///< of the inputs' elements
};

inline std::string letters(int rank) {
  return std::string("abcdefgh").substr(0, static_cast<std::size_t>(rank));
}
/// A scalar on which every element of x counts differently.
inline DynamicTensor weighed(const DynamicMesh& mesh, const DynamicTensor& x) {
  const int rank = x.core().rank();
  const auto weights =
      random_normal<double>(mesh, x.extents(), Sharding::replicated(rank), 77, 0.5, 1.0);
  return reduce<Sum>(letters(rank) + "->", x * weights);
}
inline DynamicTensor whole(const DynamicMesh& mesh, const Extents& extents,
                           const std::vector<double>& values, const Sharding& s) {
  return from_host<double>(mesh, extents, s, std::span<const double>(values));
}
inline DynamicTensor indices(const DynamicMesh& mesh, const Extents& extents,
                             const std::vector<std::int32_t>& values) {
  return from_host<std::int32_t>(mesh, extents, Sharding::replicated(extents.size()),
                                 std::span<const std::int32_t>(values));
}

struct Softplus {
  template <class T> KOKKOS_FUNCTION T operator()(T x) const { return fn::Log1p{}(fn::Exp{}(x)); }
  template <class T> KOKKOS_FUNCTION T derivative(T x) const { return fn::Sigmoid{}(x); }
};
struct Mix {
  template <class T> KOKKOS_FUNCTION T operator()(T x, T y) const { return x * y * y; }
  template <int I, class T> KOKKOS_FUNCTION T derivative(T x, T y) const {
    return I == 0 ? y * y : T(2) * x * y;
  }
};
/// A product whose derivatives each read one operand.
struct StatedProduct {
  template <int I> using slope_by = SlopeBy<fn::Same, 1 - I>;
  template <class T> KOKKOS_FUNCTION T operator()(T x, T y) const { return x * y; }
};
/// y = f(x...), weighed.
template <class F> Function of(const F& f) {
  return [f](const DynamicMesh& mesh, const Dynamic& x) { return weighed(mesh, f(x)); };
}
/// y = f(x, indices), weighed.
template <class F>
Function of_indices(const Extents& extents, const std::vector<std::int32_t>& values, const F& f) {
  return [=](const DynamicMesh& mesh, const Dynamic& x) {
    return weighed(mesh, f(x, indices(mesh, extents, values)));
  };
}

inline const std::vector<GradientCase>& gradient_cases() {
  using V = const Dynamic&;
  static const std::vector<GradientCase> all{
      {"product", {{5, 4}, {4, 6}}, of([](V x) { return einsum("ik,kj->ij", x[0], x[1]); })},
      {"product with itself", {{4, 4}}, of([](V x) { return einsum("ik,kj->ij", x[0], x[0]); })},
      {"batched product, transposed", {{2, 5, 3}, {2, 3, 4}}, of([](V x) {
         return einsum("bik,bkj->jbi", x[0], x[1]);
       })},
      {"a letter that one factor has alone", {{3, 4, 2}, {4, 5}}, of([](V x) {
         return einsum("ikm,kj->ij", x[0], x[1]);
       })},
      {"dot", {{7}, {7}}, of([](V x) { return einsum("i,i->", x[0], x[1]); })},
      {"trace", {{5, 5}}, of([](V x) { return einsum("ii->", {x[0]}); })},
      {"diagonal of a factor", {{4, 4}, {4, 3}}, of([](V x) {
         return einsum("ii,ij->ij", x[0], x[1]);
       })},
      {"three factors", {{3, 4}, {4, 5}, {5, 2}}, of([](V x) {
         return einsum("ij,jk,kl->il", {x[0], x[1], x[2]});
       })},
      {"sum", {{4, 5, 3}}, of([](V x) { return reduce<Sum>("ijk->kj", x[0]); })},
      {"mean", {{4, 5, 3}}, of([](V x) { return reduce<Mean>("ijk->i", x[0]); })},
      {"largest", {{4, 5}}, of([](V x) { return reduce<Max>("ij->j", x[0]); })},
      {"least", {{4, 5}}, of([](V x) { return reduce<Min>("ij->", x[0]); })},
      {"product of elements", {{3, 2, 4}}, of([](V x) { return reduce<Product>("ijk->j", x[0]); })},
      {"elementwise", {{4, 5}, {4, 5}}, of([](V x) {
         return tanh(x[0]) * x[1] - x[0] / exp(x[1]);
       })},
      {"broadcast row", {{4, 5}, {5}}, of([](V x) { return x[0] * x[1] + x[1]; })},
      {"broadcast column", {{4, 5}, {4, 1}}, of([](V x) { return x[0] / exp(x[1]) - x[1]; })},
      {"numbers beside", {{6}}, of([](V x) { return 2.0 * x[0] + 1.0 / exp(x[0]) - 3.0; })},
      {"a functor with a derivative", {{4, 5}}, of([](V x) {
         return map_dynamic<double>("ij->ij", Softplus{}, x[0].sharding(), x[0]);
       })},
      {"one of two operands", {{4, 5}, {4, 5}}, of([](V x) {
         return map_dynamic<double>("ij,ij->ij", Mix{}, x[1].sharding(), x[0], x[1]);
       })},
      {"a functor that states its slopes", {{4, 5}, {4, 5}}, of([](V x) {
         return map_dynamic<double>("ij,ij->ij", StatedProduct{}, x[1].sharding(), x[0], x[1]);
       })},
      {"triangle", {{5, 5}}, of([](V x) { return tril(x[0], 1); })},
      {"upper triangle", {{2, 4, 5}}, of([](V x) { return triu(x[0], -1) * x[0]; })},
      {"clamped between tensors", {{4, 5}, {4, 5}, {5}}, of([](V x) {
         return clamp(x[0], x[1], x[1] + exp(x[2]));
       })},
      {"one or the other", {{4, 5}, {4, 5}}, of([](V x) {
         return where(x[0] > 0.0, x[0] * x[1], maximum(x[1], x[0]));
       })},
      {"transpose", {{3, 4, 5}}, of([](V x) { return transpose("ijk->kij", x[0]); })},
      {"reshape", {{4, 6}}, of([](V x) {
         return reshape(x[0], {8, 3});
       })},
      {"expand and squeeze", {{4, 1, 3}}, of([](V x) { return expand_dims(squeeze(x[0]), {0}); })},
      {"stack of views", {{4, 3}, {4, 3}}, of([](V x) {
         return stack(0, {x[0], x[1], x[0]});
       })},
      {"broadcast_to", {{4, 1}}, of([](V x) {
         return broadcast_to(x[0], {3, 4, 5}, Sharding{{}, {0}, {}});
       })},
      {"slice", {{7, 5}}, of([](V x) {
         return slice(x[0], {1, 0}, {6, 5}, {2, 3});
       })},
      {"pad", {{4, 3}}, of([](V x) {
         return pad(x[0], {1, -1}, {2, 3}, {2, 0}, 5.0);
       })},
      {"reverse", {{5, 4}}, of([](V x) { return reverse(x[0], {0}); })},
      {"roll", {{5, 4}}, of([](V x) { return roll(x[0], 2, 0); })},
      {"shift", {{5, 4}}, of([](V x) { return shift(x[0], -2, 1, 4.0); })},
      {"concatenate", {{2, 4}, {3, 4}}, of([](V x) {
         return concatenate(0, {x[0], x[1]});
       })},
      {"update", {{6, 4}, {2, 3}}, of([](V x) {
         return update(x[0], x[1], {3, 1});
       })},
      {"variance", {{4, 5}}, of([](V x) { return variance<double>("ij->i", x[0]); })},
      {"mean and variance", {{4, 5}}, of([](V x) {
         const auto [mean, variance] = mean_and_variance<double>("ij->j", x[0], 1);
         return mean * mean + mean * variance;
       })},
      {"standard deviation", {{4, 5}}, of([](V x) {
         return standard_deviation<double>("ij->j", x[0]);
       })},
      {"norms", {{4, 5}}, of([](V x) {
         return norm<1, double>("ij->i", x[0]) + norm<2, double>("ij->i", x[0]) +
                norm<infinite_norm, double>("ij->i", x[0]);
       })},
      {"log-sum-exp", {{4, 5}}, of([](V x) { return logsumexp<double>("ij->i", x[0]); })},
      {"layer norm", {{4, 5}, {5}, {5}}, of([](V x) {
         return layer_norm<double>(x[0], x[1], x[2], 0.1);
       })},
      {"RMS norm", {{3, 2, 5}, {5}}, of([](V x) { return rms_norm<double>(x[0], x[1], 0.1); })},
      {"softmax", {{4, 5}}, of([](V x) { return softmax<double>("ij", 'j', x[0]); })},
      {"log-softmax", {{4, 5}}, of([](V x) { return log_softmax<double>("ij", 'i', x[0]); })},
      {"running sum", {{4, 6}}, of([](V x) { return cumulative<Sum>("ij", 'j', x[0]); })},
      {"running sum from the end", {{4, 6}}, of([](V x) {
         return cumulative<Sum>("ij", 'i', x[0], {.reverse = true, .exclusive = true});
       })},
      {"take",
       {{6, 3}},
       of_indices({4}, {5, 0, 5, 2},
                  [](V x, const DynamicTensor& at) { return take("vm,b->bm", x[0], at); })},
      {"scatter",
       {{6, 3}, {4, 3}},
       of_indices({4}, {5, 0, 5, 2},
                  [](V x, const DynamicTensor& at) {
                    return scatter<Sum>("vm,b,bm->vm", x[0], at, x[1]);
                  })},
      {"take along an axis",
       {{3, 5}},
       of_indices(
           {3, 2}, {4, 0, 1, 1, 2, 3},
           [](V x, const DynamicTensor& at) { return take_along_axis("bv", 'v', x[0], at); })},
      {"take of windows",
       {{7, 2}},
       of_indices({3}, {4, 0, 1},
                  [](V x, const DynamicTensor& at) {
                    return take("vm,b->bVm", x[0], at, WindowSizes(3));
                  })},
      {"scatter into zeros, updates of their own",
       {{4, 3, 2}},
       of_indices({4}, {5, 0, 9, 5},
                  [](V x, const DynamicTensor& at) {
                    return scatter<Sum>("b,bsm->vm", {at, x[0]}, {6});
                  })},
      {"set at indices",
       {{6, 3}, {4, 3}},
       of_indices({4}, {5, 0, 5, 2},
                  [](V x, const DynamicTensor& at) {
                    return scatter<Set>("vm,b,bm->vm", x[0], at, x[1]);
                  })},
      {"largest at indices",
       {{6, 3}, {4, 3}},
       of_indices({4}, {5, 0, 5, 7},
                  [](V x, const DynamicTensor& at) {
                    return scatter<Max>("vm,b,bm->vm", x[0], at, x[1]);
                  })},
      {"least at indices, into nothing",
       {{5, 3}},
       of_indices({5}, {1, 0, 2, 7, 1},
                  [](V x, const DynamicTensor& at) {
                    return scatter<Min>("b,bm->vm", {at, x[0]}, {3});
                  })},
      {"set at indices, into zeros",
       {{5, 3}},
       of_indices({5}, {1, 0, 2, 7, 1},
                  [](V x, const DynamicTensor& at) {
                    return scatter<Set>("b,bm->vm", {at, x[0]}, {4});
                  })},
      {"running largest", {{4, 6}}, of([](V x) { return cumulative<Max>("ij", 'j', x[0]); })},
      {"running largest of others", {{4, 6}}, of([](V x) {
         const auto y = cumulative<Max>("ij", 'j', x[0], {.exclusive = true});
         return slice(y, {0, 1}, {4, 6});  // the first is minus infinity
       })},
      {"running least from the end", {{4, 6}}, of([](V x) {
         return cumulative<Min>("ij", 'i', x[0], {.reverse = true});
       })},
      {"running product", {{4, 6}}, of([](V x) { return cumulative<Product>("ij", 'j', x[0]); })},
      {"running product of others, from the end", {{5, 3}}, of([](V x) {
         return cumulative<Product>("ij", 'i', x[0], {.reverse = true, .exclusive = true});
       })},
      {"running product with zeros", {{3, 6}}, of([](V x) {
         return cumulative<Product>("ij", 'j', relu(x[0]) + 0.0 * x[0]);
       })},
      {"sort", {{4, 6}}, of([](V x) { return sort("ij", 'j', x[0], {.descending = true}); })},
      {"sort with positions", {{6, 4}}, of([](V x) {
         return sort_with_indices("ij", 'i', x[0]).values;
       })},
      {"sort by keys", {{4, 6}, {4, 6}}, of([](V x) {
         const Dynamic sorted = sort_by_key("ij", 'j', {x[0], x[1]});
         return sorted[0] * sorted[1];
       })},
      {"first of each line", {{4, 6}}, of([](V x) { return top_k("ij", 'j', x[0], 2).values; })},
      {"window read anywhere", {{7, 4}}, of([](V x) {
         return dynamic_slice("ij", "ij", x[0], {3, 9}, {2, 3});
       })},
      {"window written anywhere", {{7, 4}, {2, 4}}, of([](V x) {
         return dynamic_update_slice("ij", "i", x[0], x[1], {4});
       })},
      {"window written in place", {{7, 4}, {2, 4}}, of([](V x) {
         DynamicTensor y = 2.0 * x[0];
         dynamic_update_slice_into("ij", "i", y, x[1], {1});
         return y;
       })},
      {"convolution", {{2, 6, 7, 3}, {3, 2, 3, 4}}, of([](V x) {
         return convolve(
             "bhwi,hwio->bhwo", x[0], x[1],
             {.stride = {2, 1}, .low = {1, 0}, .high = {0, 2}, .window_dilation = {1, 2}});
       })},
      {"convolution in groups", {{2, 6, 4}, {3, 2, 6}}, of([](V x) {
         return convolve("bwi,wio->bwo", x[0], x[1], {.base_dilation = {2}, .feature_groups = 2});
       })},
      {"gradient of a convolution by its input", {{2, 4, 5}, {3, 3, 5}}, of([](V x) {
         return convolve_input_gradient("bwi,wio->bwo", x[0], x[1], {2, 6, 3}, Convolution{});
       })},
      {"gradient of a convolution by its kernel", {{2, 6, 3}, {2, 4, 5}}, of([](V x) {
         return convolve_kernel_gradient("bwi,wio->bwo", x[0], x[1], {3, 3, 5}, Convolution{});
       })},
      {"sum of windows", {{6, 5}}, of([](V x) {
         return reduce_window<Sum>(x[0], {.size = {3, 2}, .stride = {2, 1}, .low = {1, 0}});
       })},
      {"mean of windows, and its gradient", {{6, 5}}, of([](V x) {
         const WindowSettings windows{.size = {2, 3}};
         return reduce_window_gradient<Mean>(x[0], reduce_window<Mean>(x[0], windows), windows);
       })},
      {"largest of windows", {{6, 5}}, of([](V x) {
         return reduce_window<Max>(x[0], {.size = {3, 2}, .stride = {1, 2}});
       })},
      {"least of windows", {{6, 5}}, of([](V x) {
         return reduce_window<Min>(x[0], {.size = {2, 2}, .stride = {2, 2}});
       })},
      {"windows that overlap, padded and dilated", {{7, 6}}, of([](V x) {
         return reduce_window<Max>(x[0], {.size = {3, 3},
                                          .stride = {2, 1},
                                          .low = {1, 2},
                                          .high = {2, 0},
                                          .window_dilation = {1, 2}});
       })},
      {"sources at the largest of windows", {{6, 5}, {5, 3}}, of([](V x) {
         return select_and_scatter<Max>(x[0], x[1], {.size = {2, 3}});
       })},
      {"values at the least of windows", {{6, 5}, {6, 5}}, of([](V x) {
         return select_and_gather<Min>(x[0], x[1], {.size = {2, 3}, .stride = {3, 1}});
       })},
      {"elements with a halo", {{6, 5}}, of([](V x) {
         const auto u = halo_exchange(x[0] * 2.0, {{1, 1, Boundary::periodic}, {}});
         return DynamicTensor(u) * x[0];
       })},
      {"complex numbers", {{4, 3}, {4, 3}}, of([](V x) {
         const DynamicTensor z = make_complex(x[0], x[1]),
                             w = z * z + conj(z) * z - z / (z + z * z);
         return real(w) * imag(w) + abs(w) + arg(z);
       })},
      {"complex product", {{3, 4}, {4, 2}}, of([](V x) {
         const DynamicTensor z = make_complex(x[0], exp(x[0])), w = make_complex(x[1], sin(x[1]));
         const DynamicTensor y = einsum("ij,jk->ik", z, w);
         return real(y) - 2.0 * imag(y);
       })},
      {"reshard", {{5, 4}}, of([](V x) {
         return reshard(x[0], Sharding{{1}, {}}) * x[0];
       })},
      {"used twice on the way", {{4, 4}}, of([](V x) {
         const DynamicTensor y = tanh(x[0]);
         return einsum("ij,jk->ik", y, y) + y;
       })},
      {"written in place", {{4, 4}}, of([](V x) {
         DynamicTensor y = x[0] * x[0];
         y += tanh(x[0]);
         y -= x[0];
         return y;
       })},
  };
  return all;
}

inline std::vector<double> values_of(const GradientCase& c, std::size_t input,
                                     std::mt19937& random) {
  std::uniform_real_distribution<double> number(c.low, c.high);
  std::vector<double> values(static_cast<std::size_t>(volume(c.inputs[input])));
  for (double& v : values) v = number(random);
  return values;
}
/// Each dimension split over one axis or none; no axis twice.
inline Sharding random_sharding(int rank, std::mt19937& random) {
  Sharding s = Sharding::replicated(rank);
  for (int axis = 0; axis < 2; ++axis) {
    const int d = static_cast<int>(random() % static_cast<unsigned>(rank + 1));
    if (d < rank) s[d].push_back(axis);
  }
  return s;
}

/// The largest difference of two gradients, relative to the wanted elements above 1.
inline double worst_difference(const std::vector<double>& got, const std::vector<double>& wanted) {
  double worst = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    worst = support::larger(worst, std::fabs(got[i] - wanted[i]) / (1 + std::fabs(wanted[i])));
  return worst;
}

}  // namespace gradient_test
