// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gradients of maps are made where the map's operands lie: the cotangent moves once, and nothing
// moves twice.
#include <doctest/doctest.h>

#include <mutex>
#include <vector>

#include <tessera/grad.hpp>
#include <tessera/tessera.hpp>

#include "grad/gradient_cases.hpp"

using namespace tessera;

namespace {
struct ProductOfThree {
  template <class T> KOKKOS_FUNCTION T operator()(T x, T y, T z) const { return x * y * z; }
  template <int I, class T> KOKKOS_FUNCTION T derivative(T x, T y, T z) const {
    return I == 0 ? y * z : I == 1 ? x * z : x * y;
  }
};
}  // namespace

TEST_CASE("the gradient of a map is made where its operands lie") {
  std::mutex mutex;
  run_loopback(4, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh(world, {4}, {"a"});
    const Extents extents{64, 32};
    const Sharding rows{{0}, {}}, columns{{}, {0}};
    std::vector<DynamicTensor> x;
    for (std::uint64_t seed = 1; seed < 4; ++seed)
      x.push_back(random_normal<double>(mesh, extents, rows, seed, 0.0, 1.0));
    const auto weights = random_normal<double>(mesh, extents, columns, 9, 0.0, 1.0);
    const auto f = [&](const std::vector<DynamicTensor>& in) {
      const auto y =
          map_dynamic<double>("ij,ij,ij->ij", ProductOfThree{}, columns, in[0], in[1], in[2]);
      return reduce<Sum>("ij->", y * weights);
    };
    Recording recording(mesh);
    const auto made = value_and_grad(f)(x);
    const Program program = recording.take();
    std::vector<std::vector<double>> values;
    for (const DynamicTensor& one : x) values.push_back(to_host<double>(one).values);
    const auto w = to_host<double>(weights).values;
    for (std::size_t k = 0; k < 3; ++k) {
      const auto got = to_host<double>(made.gradient[k]).values;
      const std::lock_guard lock(mutex);
      CHECK(made.gradient[k].sharding() == rows);
      bool same = got.size() == w.size();
      for (std::size_t i = 0; same && i < got.size(); ++i)
        same = got[i] == doctest::Approx(w[i] * values[(k + 1) % 3][i] * values[(k + 2) % 3][i]);
      CHECK(same);
    }
    // The product's move, the cotangent's for each of three operands, and the sum of one number.
    const Index move = 64 * 32 * 8 / 4 * 3 / 4;
    const std::lock_guard lock(mutex);
    CHECK(program.payload_bytes() <= 4 * move + 64);
  });
}

TEST_CASE("the gradient of a function of the index is made for the place of its own element") {
  std::mutex mutex;
  run_loopback(4, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh(world, {2, 2}, {"a", "b"});
    for (const Sharding& s : {Sharding{{0}, {1}}, Sharding{{1, 0}, {}}, Sharding{{}, {0}}}) {
      const auto x = random_normal<double>(mesh, {7, 5}, s, 3, 0.0, 1.0);
      const auto f = [&](const DynamicTensor& in) {
        return reduce<Sum>("ij->", square(reshard(tril(in), {{}, {1}})));
      };
      const auto made = value_and_grad(f)(x);
      const auto got = to_host<double>(made.gradient).values, at = to_host<double>(x).values;
      const std::lock_guard lock(mutex);
      for (std::size_t i = 0; i < at.size(); ++i)
        CHECK(got[i] == (i % 5 <= i / 5 ? 2 * at[i] : 0.0));
    }
  });
}
