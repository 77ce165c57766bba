// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What manual mode is for: attention in a ring, the dispatch of tokens to experts by a local
// gather, and products whose operands or sums travel while they are multiplied; each beside its
// automatic form, with gradients.
#include <doctest/doctest.h>

#include <tessera/program/overlap.hpp>

#include "manual/uses.hpp"
#include "op/texts_of.hpp"

using namespace tessera;
using namespace support;

namespace {
template <class... D> using Tensor = InGrid<D...>;

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
}  // namespace

TEST_CASE("attention in a ring is attention") {
  CHECK(on_meshes([](const ProcessMesh<Grid>& mesh, int m) -> std::string {
    using Q = RingQueries;
    using K = RingKeys;
    const Index n = 3;
    const auto q = from_function<Q>(mesh, {3, n * m, 2, 2, 5}, Waves{0.1});
    const auto k = from_function<K>(mesh, {3, n * m, 2, 5}, Waves{0.7});
    const auto v = from_function<K>(mesh, {3, n * m, 2, 5}, Waves{1.9});
    const auto weights = from_function<Q>(mesh, {3, n * m, 2, 2, 5}, Waves{2.3});
    for (const bool causal : {false, true}) {
      const auto loss_of = [&](const auto& heads) {
        return [&weights, heads](const Q& a, const K& b, const K& c) {
          return sum(heads(a, b, c) * weights);
        };
      };
      const auto ring = loss_of(ring_on(mesh, n, causal, false));
      const auto again = loss_of(ring_on(mesh, n, causal, true));
      const auto blocked = loss_of([causal](const Q& a, const K& b, const K& c) {
        return blocked_attention(a, b, c, {.causal = causal, .block = 2});
      });
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
  using Q = RingQueries;
  using K = RingKeys;
  struct Peaks {
    Index forward, again, kept;
  };
  const auto peaks = [](int m) -> Peaks {
    const auto mesh = dry_mesh<Grid>(1, m);
    const Index n = 16;  // queries of each process
    const auto q = zeros<Q>(mesh, {2, n * m, 2, 2, 8});
    const auto k = zeros<K>(mesh, {2, n * m, 2, 8}), v = zeros<K>(mesh, {2, n * m, 2, 8});
    const auto attend = [&](bool again) {
      const auto heads = ring_on(mesh, n, true, again);
      return [heads](const Q& a, const K& b, const K& c) { return sum(heads(a, b, c)); };
    };
    const auto again = attend(true), kept = attend(false);
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
    const auto squares = [](const auto& product) {
      return [product](const auto& a, const auto& b) {
        const auto y = product(a, b);
        return sum(y * y);
      };
    };
    {
      const auto x = from_function<Tensor<model, data>>(mesh, {n, k}, Waves{0.3});
      const auto w = from_function<Tensor<data, model>>(mesh, {k, columns}, Waves{0.5});
      const auto whole = [](const auto& a, const auto& b) {
        return einsum<"ik,kj->ij", P<_, model>>(a, b);
      };
      if (const auto text = unlike<0, 1>(squares(rows_travel), squares(whole), x, w); !text.empty())
        return "rows: " + text;
    }
    const auto x = from_function<Tensor<_, model>>(mesh, {n, k}, Waves{0.3});
    const auto w = from_function<Tensor<model, data>>(mesh, {k, columns}, Waves{0.5});
    const auto whole = [](const auto& a, const auto& b) {
      return einsum<"ik,kj->ij", P<model, data>>(a, b);
    };
    const auto text = unlike<0, 1>(squares(sums_travel), squares(whole), x, w);
    return text.empty() ? text : "sums: " + text;
  }));
}

TEST_CASE("by the model's price a product by hand is as good as the planner's, and never better") {
  struct Shape {
    int data, model;
    Index n, k, columns;
  };
  int alike = 0;  // where the planner takes the same steps; elsewhere it finds another split
  for (const std::int64_t hidden : {0, 50, 100})
    for (const Shape& s : {Shape{1, 2, 512, 512, 512},
                           {1, 4, 4096, 1024, 1024},
                           {1, 8, 1024, 4096, 512},
                           {2, 4, 4096, 2048, 1024},
                           {4, 4, 256, 8192, 256}}) {
      MeshOptions options;
      options.machine.hidden_percent = hidden;
      const auto mesh = dry_mesh<Grid>(std::vector<int>{s.data, s.model}, 0, options);
      const auto price = [&](const auto& product, const auto& x, const auto& w) {
        Recording recording(mesh.core());
        (void)product(x, w);
        Program program = recording.take();
        PlanOptions by;
        by.machine = options.machine;
        return overlap(program, by).program.cost();
      };
      const auto against = [&](const auto& planned, const auto& in_turn, const auto& travels,
                               const auto& x, const auto& w) {
        const std::int64_t automatic = price(planned, x, w), plain = price(in_turn, x, w);
        CAPTURE(hidden);
        CAPTURE(s.data);
        CAPTURE(s.model);
        CAPTURE(s.n);
        CHECK(automatic <= plain);
        CHECK(automatic < price(travels, x, w));
        if (hidden > 0)
          CHECK(automatic < plain);  // it multiplies in rounds, and hides what travels
        alike += automatic == plain;
      };
      against([](const auto& x, const auto& w) { return einsum<"ik,kj->ij", P<_, model>>(x, w); },
              rows_gathered, rows_travel, zeros<Tensor<model, data>>(mesh, {s.n, s.k}),
              zeros<Tensor<data, model>>(mesh, {s.k, s.columns}));
      against(
          [](const auto& x, const auto& w) { return einsum<"ik,kj->ij", P<model, data>>(x, w); },
          sums_scattered, sums_travel, zeros<Tensor<_, model>>(mesh, {s.n, s.k}),
          zeros<Tensor<model, data>>(mesh, {s.k, s.columns}));
    }
  CHECK(alike == 6);  // of ten, of which nothing hides
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
