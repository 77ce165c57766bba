// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What manual mode is for: attention in a ring, the dispatch of tokens to experts by a local
// gather, and products whose operands or sums travel while they are multiplied; each beside its
// automatic form, with gradients.
#include <doctest/doctest.h>

#include <tessera/grad.hpp>
#include <tessera/manual.hpp>
#include <tessera/nn/blocked_attention.hpp>
#include <tessera/tessera.hpp>

#include "manual/program_case.hpp"
#include "op/texts_of.hpp"

using namespace tessera;
using namespace support;

namespace {
template <class... D> using Tensor = ShardedTensor<double, Grid, P<D...>>;
template <class... D> using Ints = ShardedTensor<std::int64_t, Grid, P<D...>>;
template <class... D>
using EqualInts = ShardedTensor<std::int64_t, ManualMesh<Grid, model>, P<D...>>;

struct Waves {
  double first;
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    return Kokkos::sin(first + 1.37 * static_cast<double>(i.linear()));
  }
};
template <class F> bool on_meshes(const F& f) {
  bool all = true;
  for (const auto& [d, m] : {std::pair{1, 1}, {1, 2}, {2, 1}, {2, 2}, {1, 4}, {2, 3}})
    all = quiet(texts_of(d * m,
                         [&, rows = d, columns = m](const std::shared_ptr<Transport>& w) {
                           MeshOptions options;
                           options.check = Check::communicating;
                           const std::string text =
                               f(make_mesh<Grid>(w, sizes<Grid>(rows, columns), options), columns);
                           return text.empty() ? text
                                               : std::to_string(rows) + "x" +
                                                     std::to_string(columns) + ": " + text;
                         })) &&
          all;
  return all;
}
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
}  // namespace

TEST_CASE("attention in a ring is attention") {
  CHECK(on_meshes([](const ProcessMesh<Grid>& mesh, int m) -> std::string {
    using Q = Tensor<data, model, _, _, _>;
    using K = Tensor<data, model, _, _>;
    const Index n = 3;
    const auto q = from_function<Q>(mesh, {3, n * m, 2, 2, 5}, Waves{0.1});
    const auto k = from_function<K>(mesh, {3, n * m, 2, 5}, Waves{0.7});
    const auto v = from_function<K>(mesh, {3, n * m, 2, 5}, Waves{1.9});
    const auto weights = from_function<Q>(mesh, {3, n * m, 2, 2, 5}, Waves{2.3});
    const auto places = iota<EqualInts<_>>(manual_mesh<model>(mesh), {n});
    for (const bool causal : {false, true}) {
      const auto ring = [&](const Q& a, const K& b, const K& c) {
        const Q heads = manual<model>([&](const auto& x, const auto& y, const auto& z) {
          return along<1, model>(std::get<0>(ring_attention(x, y, z, places, causal)));
        })(a, b, c);
        return sum(heads * weights);
      };
      const auto again = [&](const Q& a, const K& b, const K& c) {
        const Q heads = manual<model>([&](const auto& x, const auto& y, const auto& z) {
          return along<1, model>(ring_attention_again(x, y, z, places, causal));
        })(a, b, c);
        return sum(heads * weights);
      };
      const auto blocked = [&](const Q& a, const K& b, const K& c) {
        return sum(blocked_attention(a, b, c, {.causal = causal, .block = 2}) * weights);
      };
      if (const auto text = unlike<0, 1, 2>(ring, blocked, q, k, v); !text.empty())
        return (causal ? "causal: " : "all keys: ") + text;
      if (const auto text = unlike<0, 1, 2>(again, blocked, q, k, v); !text.empty())
        return (causal ? "causal, by its own gradient: " : "by its own gradient: ") + text;
      if (m > 1) {  // what travels: keys and values, and their gradients, to the neighbour alone
        Recording recording(mesh.core());
        (void)ring(q, k, v);
        const Program program = recording.take();
        int moves = 0;
        const Index bytes = k.local_size() * static_cast<Index>(sizeof(double));
        for (const auto& entry : program.entries())
          if (entry.label == "permute_over") {
            ++moves;
            REQUIRE_THAT(entry.plan->own_payload_bytes() == bytes);
          }
        REQUIRE_THAT(moves == 2 * (m - 1));
      }
    }
    return "";
  }));
}

TEST_CASE("attention in a ring needs no more memory where there are more processes") {
  using Q = Tensor<data, model, _, _, _>;
  using K = Tensor<data, model, _, _>;
  struct Peaks {
    Index forward, again, kept;
  };
  const auto peaks = [](int m) -> Peaks {
    const auto mesh = dry_mesh<Grid>(1, m);
    const Index n = 16;  // queries of each process
    const auto q = zeros<Q>(mesh, {2, n * m, 2, 2, 8});
    const auto k = zeros<K>(mesh, {2, n * m, 2, 8}), v = zeros<K>(mesh, {2, n * m, 2, 8});
    const auto places = iota<EqualInts<_>>(manual_mesh<model>(mesh), {n});
    const auto attend = [&](const auto& f) {
      return [&places, f](const Q& a, const K& b, const K& c) {
        const Q heads = manual<model>([&](const auto& x, const auto& y, const auto& z) {
          return along<1, model>(f(x, y, z, places));
        })(a, b, c);
        return sum(heads);
      };
    };
    const auto again = attend([](const auto& x, const auto& y, const auto& z, const auto& at) {
      return ring_attention_again(x, y, z, at, true);
    });
    const auto kept = attend([](const auto& x, const auto& y, const auto& z, const auto& at) {
      return std::get<0>(ring_attention(x, y, z, at, true));
    });
    const auto peak = [&](const auto& f) {
      Recording recording(mesh.core());
      f();
      return recording.take().peak_bytes();
    };
    return {peak([&] { (void)again(q, k, v); }),
            peak([&] { (void)value_and_grad<0, 1, 2>(again)(q, k, v); }),
            peak([&] { (void)value_and_grad<0, 1, 2>(kept)(q, k, v); })};
  };
  const Peaks two = peaks(2), four = peaks(4), eight = peaks(8);
  CHECK(four.forward == two.forward);
  CHECK(eight.forward == two.forward);
  CHECK(four.again == two.again);
  CHECK(eight.again == two.again);
  CHECK(eight.kept > 2 * two.kept);  // the scores of all steps
}

namespace {
constexpr Index tokens = 6, capacity = 2;
/// Token s of group g goes to this expert, and gets the next of its places.
KOKKOS_FUNCTION inline Index expert_of(Index g, Index s, Index experts) {
  return (5 * s + g * s * s) % experts;
}
KOKKOS_FUNCTION inline Index place_of(Index g, Index s, Index experts) {
  Index place = 0;
  for (Index before = 0; before < s; ++before)
    place += expert_of(g, before, experts) == expert_of(g, s, experts);
  return place;
}
struct TokenAt {  // of (group, expert, place); past the last where there is none
  Index experts;
  template <class I> KOKKOS_FUNCTION std::int64_t operator()(const I& i) const {
    for (Index s = 0; s < tokens; ++s)
      if (expert_of(i[0], s, experts) == i[1] && place_of(i[0], s, experts) == i[2]) return s;
    return tokens;
  }
};
struct SlotOf {  // of (group, token), among all experts' places
  Index experts;
  template <class I> KOKKOS_FUNCTION std::int64_t operator()(const I& i) const {
    const Index place = place_of(i[0], i[1], experts);
    return place < capacity ? expert_of(i[0], i[1], experts) * capacity + place
                            : experts * capacity;
  }
};
struct Sent {  // 1 where (group, token) is at (expert, place)
  Index experts;
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    return expert_of(i[0], i[1], experts) == i[2] && place_of(i[0], i[1], experts) == i[3] ? 1 : 0;
  }
};
}  // namespace

TEST_CASE("tokens are dispatched to experts by a local gather: automatic, manual, automatic") {
  CHECK(on_meshes([](const ProcessMesh<Grid>& mesh, int m) -> std::string {
    using X = Tensor<model, _, data>;
    using W = Tensor<model, _, _>;
    const Index groups = 2 * m, experts = 2 * m;
    const auto x = from_function<X>(mesh, {groups, tokens, 5}, Waves{0.2});
    const auto w = from_function<W>(mesh, {experts, 5, 7}, Waves{0.4});
    const auto u = from_function<W>(mesh, {experts, 7, 5}, Waves{0.6});
    const auto places =
        from_function<Ints<model, _, _>>(mesh, {groups, experts, capacity}, TokenAt{experts});
    const auto slots = from_function<Ints<model, _>>(mesh, {groups, tokens}, SlotOf{experts});
    const auto sent = from_function<Tensor<model, _, _, _>>(
        mesh, {groups, tokens, experts, capacity}, Sent{experts});
    const auto through_experts = [](const Tensor<model, _, _, data>& given, const W& a,
                                    const W& b) {
      const auto at_experts = reshard<P<_, model, _, _>>(given);
      const auto h = relu(einsum<"gecm,emh->gech">(at_experts, a));
      return reshard<P<model, _, _, data>>(einsum<"gech,ehm->gecm">(h, b));
    };
    const auto gathered = [&](const X& t, const W& a, const W& b) {
      const Tensor<model, _, _, data> given = manual<model>([](const auto& block, const auto& at) {
        return along<0, model>(take<"gsm,gec->gecm">(block, at, OutOfRange::drop));
      })(t, places);
      const X y = manual<model>([&](const auto& made, const auto& at) {
        const auto rows = reshape<P<_, _, data>>(
            made, {made.extent(0), made.extent(1) * made.extent(2), made.extent(3)});
        return along<0, model>(take<"gfm,gs->gsm">(rows, at, OutOfRange::drop));
      })(through_experts(given, a, b), slots);
      return sum(y * t);
    };
    const auto masked = [&](const X& t, const W& a, const W& b) {
      const auto given = einsum<"gsec,gsm->gecm", P<model, _, _, data>>(sent, t);
      const auto y =
          einsum<"gsec,gecm->gsm", P<model, _, data>>(sent, through_experts(given, a, b));
      return sum(y * t);
    };
    return unlike<0, 1, 2>(gathered, masked, x, w, u);
  }));
}

TEST_CASE("a product whose rows travel, and one whose sums do") {
  CHECK(on_meshes([](const ProcessMesh<Grid>& mesh, int m) -> std::string {
    const Index n = 3 * m, k = 4 * m, columns = 2 * m;
    const auto inner = manual_mesh<model>(mesh);
    const auto steps = iota<EqualInts<_>>(inner, {m});
    const auto rows = iota<EqualInts<_>>(inner, {n / m});
    const auto wrapped = [m](const auto& place) {
      return where(less(place, 0), place + static_cast<std::int64_t>(m), place);
    };
    {
      using X = Tensor<model, data>;
      using W = Tensor<data, model>;
      const auto x = from_function<X>(mesh, {n, k}, Waves{0.3});
      const auto w = from_function<W>(mesh, {k, columns}, Waves{0.5});
      const auto travels = [&](const X& a, const W& b) {
        const Tensor<_, model> y = manual<model>([&](const auto& block, const auto& own) {
          auto there = block;
          auto all = expand_dims<0>(einsum<"ik,kj->ij", P<_, _>>(there, own));
          for (int step = 1; step < m; ++step) {
            there = permute_over<model, Shift<1>>(there);
            all = concatenate<0>(all, expand_dims<0>(einsum<"ik,kj->ij", P<_, _>>(there, own)));
          }
          // What came at step t is of the process t before: in its place.
          const auto order = wrapped(axis_index<model>(block) - steps);
          const auto sorted = take<"tij,s->sij">(all, order);
          return along<1, model>(reshape<P<_, _>>(sorted, {n, own.extent(1)}));
        })(a, b);
        return sum(y * y);
      };
      const auto whole = [](const X& a, const W& b) {
        const auto y = einsum<"ik,kj->ij", P<_, model>>(a, b);
        return sum(y * y);
      };
      if (const auto text = unlike<0, 1>(travels, whole, x, w); !text.empty())
        return "rows: " + text;
    }
    using X = Tensor<_, model>;
    using W = Tensor<model, data>;
    const auto x = from_function<X>(mesh, {n, k}, Waves{0.3});
    const auto w = from_function<W>(mesh, {k, columns}, Waves{0.5});
    const auto travels = [&](const X& a, const W& b) {
      const Tensor<model, data> y = manual<model>([&](const auto& block, const auto& own) {
        const auto part = [&](int step) {  // of the process that the sum is on its way to
          const auto to = axis_index<model>(block) - static_cast<std::int64_t>(step + 1);
          const auto mine = rows + wrapped(to) * static_cast<std::int64_t>(n / m);
          return einsum<"ik,kj->ij", P<_, data>>(take<"nk,i->ik">(block, mine), own);
        };
        auto sum = part(0);
        for (int step = 1; step < m; ++step) sum = permute_over<model, Shift<1>>(sum) + part(step);
        return along<0, model>(sum);
      })(a, b);
      return sum(y * y);
    };
    const auto whole = [](const X& a, const W& b) {
      const auto y = einsum<"ik,kj->ij", P<model, data>>(a, b);
      return sum(y * y);
    };
    if (const auto text = unlike<0, 1>(travels, whole, x, w); !text.empty()) return "sums: " + text;
    return "";
  }));
}

TEST_CASE("what processes along another axis have alike goes to a neighbour on the same line") {
  using Rows = Tensor<model, _>;
  for (int process = 0; process < 8; ++process) {
    const auto mesh = dry_mesh<Grid>(std::vector<int>{2, 4}, process);
    const auto x = zeros<Rows>(mesh, {64, 64});
    Recording recording(mesh.core());
    const Rows y = manual<model>(
        [](const auto& block) { return along<0, model>(permute_over<model, Shift<1>>(block)); })(x);
    const Program program = recording.take();
    CHECK(program.own_payload_bytes() == 16 * 64 * 8);
    CHECK(program.entry(0).plan->messages() == 1);
  }
}
