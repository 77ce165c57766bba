// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: plan_operators
// During an operator's work an axis may split a letter that it splits in no tensor. Such a plan is
// taken where it saves more than a ninth, so no plan is dearer than without it, and plans that
// communicate nothing stay as they are.
#include <doctest/doctest.h>

#include <tessera/plan/op/indexed/dynamic_slice.hpp>
#include <tessera/plan/op/indexed/scatter.hpp>
#include <tessera/plan/op/indexed/take.hpp>
#include <tessera/plan/op/product/einsum.hpp>
#include <tessera/plan/op/window/convolve.hpp>
#include <tessera/program/explain.hpp>
#include <tessera/program/simulation.hpp>

#include "support/enumerate.hpp"

using namespace tessera;
using namespace support;

namespace {
/// Compares the plans of one operator with and without the free choice; counts what is cheaper.
struct Comparison {
  int cases = 0, cheaper = 0;

  template <class Make> void add(PlanOptions options, const Make& make) {
    options.free_choice = true;
    const Plan freed = make(options, 0);
    options.free_choice = false;
    const Plan own = make(options, 0);
    CAPTURE(describe(own));
    CAPTURE(describe(freed));
    ++cases;
    if (freed.cost == own.cost) return;
    ++cheaper;
    const auto within = [&options](const Plan& plan) {
      return plan.kind == OperatorKind::einsum ? plan.over_limit == 0
                                               : plan.peak_bytes <= options.workspace_limit;
    };
    const bool fits = within(freed), own_fits = within(own);
    CHECK(fits >= own_fits);
    if (fits == own_fits) CHECK(freed.cost < own.cost);
    CHECK(own.communications() > 0);
    Index calls = 0;
    CHECK(detail::fault_of(freed, calls) == "");
    options.free_choice = true;
    const int last = freed.mesh.processes() - 1;
    CHECK(on_process(freed, last) == make(options, last));
    // What a plan communicates is a contract that a plan keeps.
    options.contract = freed.needs;
    const Plan again = make(options, 0);
    CHECK_MESSAGE(options.contract.covers(again.needs), describe(again));
  }
};

struct Case {
  Random& random;
  MeshShape mesh;
  PlanOptions options;
  FixedVector<char, 16> letters{};
  FixedVector<Index, 16> extents{};

  explicit Case(Random& r, bool limits) : random(r) {
    const int axes = 1 + r.below(3);
    for (int a = 0; a < axes; ++a) mesh.push_back(1 + r.below(4));
    options.machine = some_machine(r, axes);
    if (limits && r.chance(30)) options.machine.hidden_percent = 80;
    if (limits && r.chance(30)) options.workspace_limit = Index{1} << (10 + r.below(12));
  }
  Index extent(char letter) {
    int i = letters.find(letter);
    if (i < 0) {
      i = letters.size();
      letters.push_back(letter);
      extents.push_back(random.chance(40) ? 1 + random.below(30) : Index{1} << random.below(10));
    }
    return extents[i];
  }
  TensorDesc tensor(const Term& term, DType type = DType::f32, int partial = 0) {
    TensorDesc desc{type, {}, some_sharding(random, term.size(), mesh.rank(), partial)};
    for (const char letter : term) desc.extents.push_back(extent(letter));
    return desc;
  }
};
}  // namespace

TEST_CASE("a free choice of letters is never dearer: products") {
  Random random(seed_for("free products", 11));
  Comparison compared;
  const std::vector<const char*> products{"ij,jk->ik", "bij,bjk->bik", "bsm,mh->bsh",
                                          "bi,bj->ij", "ijk,jk->i",    "bqhd,bkhd->bhqk"};
  for (int i = 0; i < 1200 / share; ++i) {
    const Terms terms = parse(random.of(products));
    Case c(random, true);
    const DType type = random.chance(20) ? DType::f16 : DType::f32;
    const TensorDesc a = c.tensor(terms.operands[0], type, 15),
                     b = c.tensor(terms.operands[1], type, 15);
    const Sharding out = c.tensor(terms.result, type, 15).sharding;
    if (!detail::check_einsum(terms, {a.sharding, b.sharding}, out).ok()) continue;
    compared.add(c.options, [&](const PlanOptions& options, int process) {
      return ops::Einsum{terms, out}.plan({a, b}, {c.mesh, process, options});
    });
  }
  CHECK(compared.cheaper > compared.cases / 50);
}

TEST_CASE("a free choice of letters is never dearer: convolutions") {
  Random random(seed_for("free convolutions", 12));
  Comparison compared;
  const Terms terms = parse("bhwi,hwio->bhwo");
  for (int i = 0; i < 240 / share; ++i) {
    Case c(random, false);
    TensorDesc x = c.tensor(terms.operands[0]), k = c.tensor(terms.operands[1]);
    for (int d = 0; d < 2; ++d) {
      x.extents[1 + d] = 4 + random.below(40);
      k.extents[d] = 1 + random.below(4);
    }
    const Sharding out = c.tensor(terms.result).sharding;
    const Convolution settings;
    if (!detail::check_convolve(terms, {x.sharding, k.sharding}, out).ok()) continue;
    const auto shape = detail::shape_of(settings, detail::parts_of(terms), k.extents);
    compared.add(c.options, [&](const PlanOptions& options, int process) {
      return detail::plan_convolve(terms, shape, x, k, out, c.mesh, process, options);
    });
  }
  CHECK(compared.cheaper > compared.cases / 50);
}

TEST_CASE("a free choice of letters is never dearer: scatters, takes and slices") {
  Random random(seed_for("free scatters", 13));
  Comparison scatters, others;
  for (int i = 0; i < 1200 / share; ++i) {
    Case c(random, true);
    const bool in_place = random.chance(20);
    const TensorDesc table = c.tensor({'v', 'm'}), rows = c.tensor({'b', 's'}, DType::i64),
                     updates = c.tensor({'b', 's', 'm'});
    if (i % 3 == 0) {
      const Terms terms = parse("vm,bs,bsm->vm");
      const Sharding out = in_place ? table.sharding : c.tensor(terms.result).sharding;
      const Reduction reduction = random.of<Reduction>({Reduction::sum, Reduction::none});
      scatters.add(c.options, [&](const PlanOptions& options, int process) {
        return detail::plan_scatter(terms, reduction, {table, rows, updates}, {}, OutOfRange::drop,
                                    out, c.mesh, process, options, in_place);
      });
    } else if (i % 3 == 1) {
      const Terms terms = parse("vm,bs->bsm");
      others.add(c.options, [&](const PlanOptions& options, int process) {
        return ops::Take{terms, OutOfRange::clamp, updates.sharding}.plan(
            {table, rows}, {c.mesh, process, options});
      });
    } else {
      const Extents size{(table.extents[0] + 1) / 2};
      const Sharding out = c.tensor({'v', 'm'}).sharding;
      others.add(c.options, [&](const PlanOptions& options, int process) {
        return detail::plan_dynamic_slice({'v', 'm'}, {'v'}, table, size, out, c.mesh, process,
                                          options);
      });
    }
  }
  CHECK(scatters.cheaper > scatters.cases / 50);
  CHECK(others.cheaper > others.cases / 50);
}

TEST_CASE("an axis splits a letter that it splits nowhere") {
  // Both operands and the result are split along other letters than k, and k is the longest.
  const MeshShape mesh{8};
  const auto along = [](int d) {
    Sharding s = Sharding::replicated(2);
    s[d].push_back(0);
    return s;
  };
  const TensorDesc x{DType::f32, {8, 65536}, along(0)}, w{DType::f32, {65536, 8}, along(1)};
  PlanOptions options;
  options.free_choice = true;
  const Plan freed = ops::Einsum{parse("ik,kj->ij"), along(0)}.plan({x, w}, {mesh, 0, options});
  options.free_choice = false;
  const Plan own = ops::Einsum{parse("ik,kj->ij"), along(0)}.plan({x, w}, {mesh, 0, options});
  CHECK_MESSAGE(freed.cost * 9 < own.cost * 8, describe(own) << describe(freed));
  // Where nothing is communicated, a replicated product stays on all processes.
  const TensorDesc all{DType::f32, {512, 512}, Sharding::replicated(2)};
  CHECK(ops::Einsum{parse("ik,kj->ij"), all.sharding}.plan({all, all}, {mesh}).communications() ==
        0);
}
