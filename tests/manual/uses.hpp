// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What manual mode is for: attention in a ring, and products whose operands or sums travel while
/// they are multiplied; each beside its automatic form. Used on loopback and under MPI.
///
///     std::string wrong = support::unlike<0, 1, 2>(ring, blocked, q, k, v);
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>

#include <tessera/grad.hpp>
#include <tessera/manual.hpp>
#include <tessera/nn/blocked_attention.hpp>
#include <tessera/tessera.hpp>

#include "manual/program_case.hpp"

namespace support {
template <class... D> using Ints = ShardedTensor<std::int64_t, Grid, P<D...>>;
template <class... D>
using EqualInts = ShardedTensor<std::int64_t, ManualMesh<Grid, model>, P<D...>>;

struct Waves {
  double first;
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    return Kokkos::sin(first + 1.37 * static_cast<double>(i.linear()));
  }
};
/// Says where two functions of the same arguments differ, or their gradients.
template <int... I, class F, class G, class... A>
std::string unlike(const F& f, const G& g, const A&... x) {
  const auto [mine, by_mine] = value_and_grad<I...>(f)(x...);
  const auto [other, by_other] = value_and_grad<I...>(g)(x...);
  if (!(std::fabs(value(mine) - value(other)) <= 1e-12 * (1 + std::fabs(value(other)))))
    return "values " + std::to_string(value(mine)) + " and " + std::to_string(value(other));
  std::string text;
  const auto& a = by_mine;
  const auto& b = by_other;
  ((text = text.empty() ? apart(to_host(std::get<I>(a)), to_host(std::get<I>(b)), "a gradient")
                        : text),
   ...);
  return text;
}

/// The scores of queries and the keys that have travelled `step` processes.
template <class Q, class K, class I>
auto ring_scores(const Q& q, const K& block, const I& places, int step, bool causal) {
  const int steps = axis_size<model>(q);
  const auto n = static_cast<std::int64_t>(q.extent(1));
  const auto own = axis_index<model>(q);
  const auto s = einsum<"bqgrd,bkgd->bgrqk">(q, block);
  const auto from = own - static_cast<std::int64_t>(step);
  const auto source = where(less(from, 0), from + static_cast<std::int64_t>(steps), from);
  const auto seen =
      less_equal(expand_dims<0>(places + source * n), expand_dims<1>(places + own * n));
  return causal ? where(seen, s, -1e300) : s;
}
/// Attention whose keys and values travel around the axis `model`, a step for each block; and the
/// logarithm of each row's sum of exponentials.
template <class Q, class K, class I>
auto ring_attention(const Q& q, const K& keys, const K& values, const I& places, bool causal) {
  const int steps = axis_size<model>(q);
  auto k = keys, v = values;
  auto s = ring_scores(q, k, places, 0, causal);
  auto most = stop_gradient(reduce<Max, "bgrqk->bgrq">(s));
  auto weights = exp(s - expand_dims<4>(most));
  auto total = sum<"bgrqk->bgrq">(weights);
  auto heads = einsum<"bgrqk,bkgd->bgrqd">(weights, v);
  for (int step = 1; step < steps; ++step) {
    k = permute_over<model, Shift<1>>(k);
    v = permute_over<model, Shift<1>>(v);
    s = ring_scores(q, k, places, step, causal);
    const auto greater = maximum(most, stop_gradient(reduce<Max, "bgrqk->bgrq">(s)));
    const auto kept = exp(most - greater);
    weights = exp(s - expand_dims<4>(greater));
    total = total * kept + sum<"bgrqk->bgrq">(weights);
    heads = heads * expand_dims<4>(kept) + einsum<"bgrqk,bkgd->bgrqd">(weights, v);
    most = greater;
  }
  return std::tuple(transpose<"bgrqd->bqgrd">(heads / expand_dims<4>(total)), most + log(total));
}
/// The same, of whose steps nothing is kept: on the way back keys and values travel once more,
/// beside their gradients, which come home.
template <class Q, class K, class I>
auto ring_attention_again(const Q& q, const K& keys, const K& values, const I& places,
                          bool causal) {
  return custom_gradient(
      [&](const Q& a, const K& k, const K& v) {
        const auto [y, sums] = ring_attention(a, k, v, places, causal);
        return with_saved(Q(y), a, k, v, Q(y), sums);
      },
      [places, causal](const Q& dy, const Q& a, const K& own_keys, const K& own_values, const Q& y,
                       const auto& sums) {
        const int steps = axis_size<model>(a);
        const auto d = transpose<"bqgrd->bgrqd">(dy);
        const auto along = sum<"bqgrd->bgrq">(dy * y);
        auto k = own_keys, v = own_values;
        Q by_q = a * 0.0;
        K by_k = k * 0.0, by_v = v * 0.0;
        for (int step = 0; step < steps; ++step) {
          const auto p = exp(ring_scores(a, k, places, step, causal) - expand_dims<4>(sums));
          const auto ds = p * (einsum<"bgrqd,bkgd->bgrqk">(d, v) - expand_dims<4>(along));
          by_v = by_v + einsum<"bgrqk,bgrqd->bkgd">(p, d);
          by_q = by_q + einsum<"bgrqk,bkgd->bqgrd">(ds, k);
          by_k = by_k + einsum<"bgrqk,bqgrd->bkgd">(ds, a);
          for (K* travels : {&k, &v, &by_k, &by_v})
            *travels = permute_over<model, Shift<1>>(*travels);
        }
        return std::tuple(by_q, by_k, by_v);
      })(q, keys, values);
}

using RingQueries = InGrid<data, model, _, _, _>;
using RingKeys = InGrid<data, model, _, _>;
/// Returns attention in a ring of whole queries, keys and values, of `n` places on each process.
inline auto ring_on(const ProcessMesh<Grid>& mesh, Index n, bool causal, bool again) {
  const auto places = iota<EqualInts<_>>(manual_mesh<model>(mesh), {n});
  return [=](const RingQueries& q, const RingKeys& k, const RingKeys& v) {
    const RingQueries heads = manual<model>([&](const auto& x, const auto& y, const auto& z) {
      using Q = std::remove_cvref_t<decltype(x)>;
      return along<1, model>(again ? Q(ring_attention_again(x, y, z, places, causal))
                                   : Q(std::get<0>(ring_attention(x, y, z, places, causal))));
    })(q, k, v);
    return heads;
  };
}

/// Returns places along the axis, of which those before the first are counted from the last.
template <class A> auto around(const A& place, Index many) {
  return where(less(place, 0), place + static_cast<std::int64_t>(many), place);
}
/// x w, whose rows travel, and are multiplied on their way by each process's own columns.
inline InGrid<_, model> rows_travel(const InGrid<model, data>& x, const InGrid<data, model>& w) {
  const ProcessMesh<Grid> mesh(x.core().mesh());
  const int m = mesh.size<model>();
  const auto steps = iota<EqualInts<_>>(manual_mesh<model>(mesh), {m});
  const InGrid<_, model> y = manual<model>([&](const auto& block, const auto& own) {
    auto there = block;
    auto all = expand_dims<0>(einsum<"ik,kj->ij", P<_, _>>(there, own));
    for (int step = 1; step < m; ++step) {
      there = permute_over<model, Shift<1>>(there);
      all = concatenate<0>(all, expand_dims<0>(einsum<"ik,kj->ij", P<_, _>>(there, own)));
    }
    // What came at step t is of the process t before: in its place.
    const auto sorted = take<"tij,s->sij">(all, around(axis_index<model>(block) - steps, m));
    return along<1, model>(reshape<P<_, _>>(sorted, {m * block.extent(0), own.extent(1)}));
  })(x, w);
  return y;
}
/// x w, whose sums travel: each process adds its part of what goes to another one.
inline InGrid<model, data> sums_travel(const InGrid<_, model>& x, const InGrid<model, data>& w) {
  const ProcessMesh<Grid> mesh(x.core().mesh());
  const int m = mesh.size<model>();
  const Index own_rows = x.extent(0) / m;
  const auto rows = iota<EqualInts<_>>(manual_mesh<model>(mesh), {own_rows});
  const InGrid<model, data> y = manual<model>([&](const auto& block, const auto& own) {
    const auto part = [&](int step) {  // of the process that the sum is on its way to
      const auto to = axis_index<model>(block) - static_cast<std::int64_t>(step + 1);
      const auto mine = rows + around(to, m) * static_cast<std::int64_t>(own_rows);
      return einsum<"ik,kj->ij", P<_, data>>(take<"nk,i->ik">(block, mine), own);
    };
    auto sum = part(0);
    for (int step = 1; step < m; ++step) sum = permute_over<model, Shift<1>>(sum) + part(step);
    return along<0, model>(sum);
  })(x, w);
  return y;
}

/// The first of these products with all rows gathered, and then multiplied.
inline InGrid<_, model> rows_gathered(const InGrid<model, data>& x, const InGrid<data, model>& w) {
  const InGrid<_, model> y = manual<model>([](const auto& block, const auto& own) {
    return along<1, model>(einsum<"ik,kj->ij", P<_, _>>(all_gather_over<model, 0>(block), own));
  })(x, w);
  return y;
}
/// The second one, multiplied, and then summed and scattered.
inline InGrid<model, data> sums_scattered(const InGrid<_, model>& x, const InGrid<model, data>& w) {
  const InGrid<model, data> y = manual<model>([](const auto& block, const auto& own) {
    return along<0, model>(
        reduce_scatter_over<model, 0>(einsum<"ik,kj->ij", P<_, data>>(block, own)));
  })(x, w);
  return y;
}

}  // namespace support
