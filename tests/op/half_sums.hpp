// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Everything that sums half types rounds once: operators on integers whose sums are exact in float
/// and not in the type, against the same operators in double on one block, rounded. Parts of a sum
/// that were rounded, or joined in the type, give other integers.
///
///     half_sums::check<half>(mesh, 1);
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <tessera/grad.hpp>
#include <tessera/tessera.hpp>

#include "support/enumerate.hpp"

namespace half_sums {
using namespace tessera;

/// Integers; every eighth or so is the first after which T has no odd ones.
template <class T> struct Large {
  Index seed;
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    const float big = sizeof(T) == 2 && std::is_same_v<T, bfloat16> ? 256 : 2048;
    return static_cast<T>(at(i.linear(), big));
  }
  KOKKOS_FUNCTION float at(Index n, float big) const {
    const Index k = (n * 5 + seed * 3 + n / 3) % 9;
    return k == 0 ? big : k == 4 ? -big : k % 3 == 0 ? 3 : 1;
  }
};
/// The integers that T has here, as doubles.
template <class T> struct AsDouble {
  Index seed;
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i) const {
    return static_cast<double>(static_cast<float>(Large<T>{seed}(i)));
  }
};
template <class T> struct Small {
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    return static_cast<T>(static_cast<float>(i.linear() % 4 == 1   ? -1
                                             : i.linear() % 4 == 2 ? 2
                                                                   : 1));
  }
};
struct Places {
  Index n;
  KOKKOS_FUNCTION std::int32_t operator()(const GlobalIndex& i) const {
    return static_cast<std::int32_t>(i.linear() * 3 % n);
  }
};

/// One operator: what it is given under these shardings, and its result under `out`.
struct Case {
  const char* name;
  std::vector<Extents> operands;
  int rank;
  DynamicTensor (*run)(const std::vector<DynamicTensor>& x, const Sharding& out);
};
inline const Case cases[] = {
    {"product",
     {{5, 12}, {12, 3}},
     2,
     [](const auto& x, const Sharding& out) { return einsum("ij,jk->ik", x[0], x[1], out); }},
    {"product of batches",
     {{3, 2, 12}, {3, 12, 2}},
     3,
     [](const auto& x, const Sharding& out) { return einsum("bij,bjk->bki", x[0], x[1], out); }},
    {"product with a letter of its own",
     {{7, 5}, {5}},
     0,
     [](const auto& x, const Sharding& out) { return einsum("ij,j->", x[0], x[1], out); }},
    {"product with letters of both's own",
     {{7, 5}, {5, 6}},
     1,
     [](const auto& x, const Sharding& out) { return einsum("ij,jk->j", x[0], x[1], out); }},
    {"product of diagonals",
     {{6, 6}, {6}},
     0,
     [](const auto& x, const Sharding& out) { return einsum("ii,i->", x[0], x[1], out); }},
    {"sum",
     {{6, 11}},
     1,
     [](const auto& x, const Sharding& out) { return reduce<Sum>("ij->j", x[0], out); }},
    {"running sum",
     {{5, 13}},
     2,
     [](const auto& x, const Sharding& out) { return cumulative<Sum>("ij", 'j', x[0], {}, out); }},
    {"running sum, from the end",
     {{13, 2}},
     2,
     [](const auto& x, const Sharding& out) {
       return cumulative<Sum>("ij", 'i', x[0], {.reverse = true, .exclusive = true}, out);
     }},
    {"convolution",
     {{2, 6, 4}, {3, 4, 3}},
     3,
     [](const auto& x, const Sharding& out) {
       return convolve("nwi,wio->nwo", x[0], x[1], {.low = {1}, .high = {1}}, out);
     }},
    {"gradient of a convolution's kernel",
     {{3, 8, 2}, {3, 8, 2}},
     3,
     [](const auto& x, const Sharding& out) {
       return convolve_kernel_gradient("nwi,wio->nwo", x[0], x[1], {3, 2, 2},
                                       {.low = {1}, .high = {1}}, out);
     }},
    {"scatter",
     {{4, 3}, {20, 3}},
     2,
     [](const auto& x, const Sharding& out) {
       const auto places = from_function<std::int32_t>(DynamicMesh(x[0].core().mesh()), {20},
                                                       Sharding{x[1].sharding()[0]}, Places{4});
       return scatter<Sum>("vm,n,nm->vm", x[0], places, x[1], {}, out);
     }},
};

/// Compares some of the shardings of all operators, as `draw` chooses.
template <class T>
void check(const std::shared_ptr<MeshCore>& mesh, std::uint64_t draw, int times) {
  const auto chosen = [&draw](int rank, int axes) {
    const std::vector<Sharding> all = support::shardings(rank, axes);
    draw = draw * 6364136223846793005u + 1442695040888963407u;
    return all[static_cast<std::size_t>(draw >> 33) % all.size()];
  };
  const int axes = mesh->shape().rank();
  for (const Case& one : cases) {
    std::vector<DynamicTensor> exact;
    for (std::size_t k = 0; k < one.operands.size(); ++k) {
      const Sharding whole = Sharding::replicated(one.operands[k].size());
      exact.push_back(
          k == 0 || std::string(one.name) == "scatter"
              ? from_function<double>(mesh, one.operands[k], whole, AsDouble<T>{Index(k)})
              : from_function<double>(mesh, one.operands[k], whole, Small<double>{}));
    }
    const std::vector<double> expected =
        to_host<double>(one.run(exact, Sharding::replicated(one.rank))).values;
    for (int i = 0; i < times; ++i) {
      std::vector<DynamicTensor> x;
      std::string how;
      for (std::size_t k = 0; k < exact.size(); ++k) {
        const Sharding s = chosen(one.operands[k].size(), axes);
        how += to_string(s, mesh->names()) + " ";
        x.push_back(reshard(cast<T>(exact[k]), s));
      }
      const Sharding out = chosen(one.rank, axes);
      const auto made = to_host<T>(one.run(x, out)).values;
      CAPTURE(std::string(one.name));
      CAPTURE(how + to_string(out, mesh->names()));
      CAPTURE(mesh->to_string());
      bool same = made.size() == expected.size();
      for (std::size_t n = 0; same && n < made.size(); ++n)
        same = static_cast<float>(made[n]) ==
               static_cast<float>(static_cast<T>(static_cast<float>(expected[n])));
      CHECK(same);
    }
  }
}

}  // namespace half_sums
