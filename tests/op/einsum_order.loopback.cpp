// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: sums
// Products of one and of three to eight tensors: equal to plain loops, in the cheapest order.
#include <doctest/doctest.h>

#include <vector>

#include <tessera/tessera.hpp>

#include "support/enumerate.hpp"
#include "support/grid.hpp"

namespace {
using namespace tessera;
template <class... D> using Ints = ShardedTensor<std::int64_t, Grid, P<D...>>;

/// Returns the product of whole tensors by looping over all labels.
std::vector<std::int64_t> plain(std::string_view equation, const std::vector<Extents>& extents,
                                const std::vector<std::vector<std::int64_t>>& values) {
  const Terms terms = parse(equation);
  std::vector<char> labels;
  std::vector<Index> sizes, index;
  const auto place = [&](char label) {
    return static_cast<std::size_t>(std::find(labels.begin(), labels.end(), label) -
                                    labels.begin());
  };
  for (int i = 0; i < terms.operands.size(); ++i)
    for (int d = 0; d < terms.operands[i].size(); ++d)
      if (place(terms.operands[i][d]) == labels.size()) {
        labels.push_back(terms.operands[i][d]);
        sizes.push_back(extents[static_cast<std::size_t>(i)][d]);
      }
  const auto offset = [&](const Term& term) {
    Index at = 0;
    for (char label : term) at = at * sizes[place(label)] + index[place(label)];
    return static_cast<std::size_t>(at);
  };
  Index total = 1;
  for (char label : terms.result) total *= sizes[place(label)];
  std::vector<std::int64_t> out(static_cast<std::size_t>(total), 0);
  index.assign(labels.size(), 0);
  for (;;) {
    std::int64_t product = 1;
    for (int i = 0; i < terms.operands.size(); ++i)
      product *= values[static_cast<std::size_t>(i)][offset(terms.operands[i])];
    out[offset(terms.result)] += product;
    std::size_t l = labels.size();
    while (l > 0 && ++index[l - 1] == sizes[l - 1]) index[--l] = 0;
    if (l == 0) return out;
  }
}

TEST_CASE("einsum of one and of many tensors equals plain loops") {
  for (const auto& [a, b] : {std::pair{1, 1}, {2, 2}, {3, 2}, {1, 4}})
    run_loopback(a * b, [a = a, b = b](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(world, a, b);
      const auto make = [&]<class T>(const Extents& e, std::uint64_t seed) {
        return random_uniform<T>(mesh, e, seed, -4, 4);
      };
      const auto p = make.template operator()<Ints<data, model>>({5, 7}, 1);
      const auto q = make.template operator()<Ints<model, _>>({7, 3}, 2);
      const auto r = make.template operator()<Ints<_, data>>({3, 6}, 3);
      const auto s = make.template operator()<Ints<data>>({6}, 4);
      const auto P_ = to_host(p), Q = to_host(q), R = to_host(r), S = to_host(s);

      CHECK(to_host(einsum<"ij->j">(p)).values == plain("ij->j", {{5, 7}}, {P_.values}));
      CHECK(to_host(einsum<"ij->ji">(p)).values == plain("ij->ji", {{5, 7}}, {P_.values}));
      CHECK(to_host(einsum<"ij,jk,kl->il">(p, q, r)).values ==
            plain("ij,jk,kl->il", {{5, 7}, {7, 3}, {3, 6}}, {P_.values, Q.values, R.values}));
      CHECK(to_host(einsum<"ij,jk,kl,l->ik", P<_, model>>(p, q, r, s)).values ==
            plain("ij,jk,kl,l->ik", {{5, 7}, {7, 3}, {3, 6}, {6}},
                  {P_.values, Q.values, R.values, S.values}));
      CHECK(to_host(einsum<"ij,jk,kl,l,ij,jk->">(p, q, r, s, p, q)).values ==
            plain("ij,jk,kl,l,ij,jk->", {{5, 7}, {7, 3}, {3, 6}, {6}, {5, 7}, {7, 3}},
                  {P_.values, Q.values, R.values, S.values, P_.values, Q.values}));
      const DynamicTensor eight =
          einsum("ij,jk,kl,l,ij,jk,kl,l->k", {p, q, r, s, p, q, r, s}, Sharding{AxisList{1}});
      CHECK(to_host<std::int64_t>(eight).values ==
            plain("ij,jk,kl,l,ij,jk,kl,l->k",
                  {{5, 7}, {7, 3}, {3, 6}, {6}, {5, 7}, {7, 3}, {3, 6}, {6}},
                  {P_.values, Q.values, R.values, S.values, P_.values, Q.values, R.values,
                   S.values}));
      CHECK_THROWS_AS(einsum("ij,jk->ik", {p, q, r}, Sharding{{}, {}}), ShardingError);
      CHECK_THROWS_AS(einsum("ij,kj,kl->il", {p, q, r}, Sharding{{}, {}}), ShapeError);
    });
}

TEST_CASE("an order is found whatever is split, and left open") {
  // Each product finishes what it sums, but for the axes that the whole result leaves open: of
  // those at most one tensor on the way is a sum, since no product takes two.
  support::Random random(support::seed_for("orders of products", 41));
  int found = 0, legal = 0;
  const AxisSet axis[] = {Sharding{{0}}[0].set(), Sharding{{1}}[0].set()};
  for (int trial = 0; trial < 250; ++trial) {
    const int n = 3 + random.below(6);
    Terms terms;
    TensorDescs operands;
    std::string used;
    for (int k = 0; k < n; ++k) {
      Term term;
      for (int d = 0, rank = 1 + random.below(2); d < rank; ++d) {
        const char letter = "abcde"[random.below(5)];
        if (!term.contains(letter)) term.push_back(letter);
        used += letter;
      }
      terms.operands.push_back(term);
      operands.push_back(
          {DType::f64, Extents(term.size(), 50), support::some_sharding(random, term.size(), 2)});
    }
    for (const char letter : std::string("abcde"))
      if (used.find(letter) != std::string::npos && random.chance(30))
        terms.result.push_back(letter);
    AxisSet open;
    for (const AxisSet a : axis)
      if (random.chance(50)) open = open | a;
    Sharding out = Sharding::replicated(terms.result.size());
    if (!open.empty()) out = out.with_partial(open, Reduction::sum);
    const Shardings shardings = detail::shardings_of(operands);
    if (!detail::check_einsum(terms, shardings, out).ok()) continue;
    ++legal;
    found += detail::einsum_order(terms, operands, out, MeshShape{2, 2}).products.size() == n - 1;
  }
  CHECK(legal > 50);
  CHECK(found == legal);
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    const auto u = random_uniform<Ints<data>>(mesh, {7}, 1, -4, 4);
    const auto v = random_uniform<Ints<data>>(mesh, {5}, 2, -4, 4);
    const auto sum = einsum<"a,a,a,b,b,b->", P<Unreduced<Sum, data>>>(u, u, u, v, v, v);
    CHECK(to_host(finish(sum)).values ==
          plain("a,a,a,b,b,b->", {{7}, {7}, {7}, {5}, {5}, {5}},
                {to_host(u).values, to_host(u).values, to_host(u).values, to_host(v).values,
                 to_host(v).values, to_host(v).values}));
  });
}

TEST_CASE("a chain of products is multiplied from its cheap end") {
  const MeshShape one{1};
  const TensorDescs chain{{DType::f32, {1000, 1000}, Sharding{{}, {}}},
                          {DType::f32, {1000, 1000}, Sharding{{}, {}}},
                          {DType::f32, {1000}, Sharding{AxisList{}}}};
  const detail::EinsumOrder order =
      detail::einsum_order(parse("ij,jk,k->i"), chain, Sharding{AxisList{}}, one);
  REQUIRE(order.products.size() == 2);
  CHECK(order.products[0].left == 1);
  CHECK(order.products[0].right == 2);
}
}  // namespace
