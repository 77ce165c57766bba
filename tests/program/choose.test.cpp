// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: choose
// Choosing shardings: against every assignment of small programs, against what a plain deduction
// costs, with limits, and for models whose bytes XLA's partitioners were measured for.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <tessera/plan.hpp>
#include <tessera/plan/op/broadcast.hpp>
#include <tessera/plan/op/einsum.hpp>
#include <tessera/plan/op/map.hpp>
#include <tessera/plan/op/normalize.hpp>
#include <tessera/plan/op/reshape.hpp>
#include <tessera/plan/op/scan.hpp>
#include <tessera/plan/op/shape.hpp>
#include <tessera/plan/op/softmax.hpp>
#include <tessera/plan/op/take.hpp>
#include <tessera/plan/op/transpose.hpp>
#include <tessera/program/choice.hpp>
#include <tessera/program/detail/ways.hpp>
#include <tessera/program/peak.hpp>

#include "support/enumerate.hpp"

using namespace tessera;
using support::Random;

namespace {

/// Lists operators as a dry run does: each result has the sharding that follows from its operands.
class Lister {
 public:
  explicit Lister(const MeshShape& mesh) {
    program.mesh = mesh;
    program.set_names({"data", "model"});
  }
  int given(const Extents& extents, const Sharding& s, DType type = DType::f32) {
    const TensorDesc desc{type, extents, s};
    return program.add({desc, bytes_of(desc), -1, 0, 0});
  }
  int run(const Operation& any, const FixedVector<int, max_operands>& operands,
          const char* label = "operator") {
    TensorDescs descs;
    for (const int t : operands) descs.push_back(program.tensor(t).desc);
    const Operation op = any.with_result(any.view().deduced(descs));
    REQUIRE(op.check(descs).ok());
    const PlanOptions options;
    ProgramEntry entry{
        std::make_shared<const Plan>(op.plan(descs, {program.mesh, 0, options})), label, {}};
    entry.operands = operands;
    entry.operation = std::make_shared<const Operation>(op);
    const TensorDescs made = op.view().results(descs);
    const int i = program.size();
    for (int k = 0; k < made.size(); ++k) {
      const int t = program.add({made[k], bytes_of(made[k]), i, i, i});
      if (k == 0)
        entry.result = t;
      else
        entry.also.push_back(t);
    }
    const int result = entry.result;
    program.record(std::move(entry));
    for (const int t : operands) program.tensor_to_change(t).last = i;
    return result;
  }
  int einsum(const char* equation, int a, int b) {
    return run(ops::Einsum{parse(equation), {}}, {a, b}, equation);
  }
  int add(int a, int b) {
    const int rank = program.tensor(a).desc.rank();
    return run(ops::Map{detail::broadcast_terms({rank, program.tensor(b).desc.rank()}),
                        program.tensor(a).desc.type,
                        Linearity::pointwise,
                        {}},
               {a, b}, "add");
  }
  int relu(int x) {
    return run(ops::Map{detail::broadcast_terms({program.tensor(x).desc.rank()}),
                        program.tensor(x).desc.type,
                        Linearity::pointwise,
                        {}},
               {x}, "relu");
  }
  Program take(int kept) {
    program.tensor_to_change(kept).last = program.size();
    program.relist(program.entries());
    return program;
  }

  Program program;

 private:
  Index bytes_of(const TensorDesc& x) const {
    return detail::arena_charge(
        detail::block_volume(x.extents, x.sharding, program.mesh, program.mesh.coordinates(0)) *
        static_cast<Index>(size_of(x.type)));
  }
};

/// Returns the least cost of planning each operator on every assignment of shardings to the tensors
/// that are free.
Cost least_of_all(const Program& program, const std::vector<bool>& free) {
  std::vector<int> which;
  for (std::size_t t = 0; t < free.size(); ++t)
    if (free[t]) which.push_back(static_cast<int>(t));
  std::vector<std::vector<Sharding>> domains;
  for (const int t : which)
    domains.push_back(detail::placements(program.tensor(t).desc.extents, program.mesh));
  std::vector<std::size_t> at(which.size(), 0);
  Cost least = infeasible;
  const PlanOptions options;
  for (;;) {
    std::vector<Sharding> shardings;
    for (const ProgramTensor& t : program.tensors()) shardings.push_back(t.desc.sharding);
    for (std::size_t i = 0; i < which.size(); ++i)
      shardings[static_cast<std::size_t>(which[i])] = domains[i][at[i]];
    Cost cost = 0;
    for (const ProgramEntry& e : program.entries()) {
      TensorDescs descs;
      for (const int t : e.operands) {
        descs.push_back(program.tensor(t).desc);
        descs.back().sharding = shardings[static_cast<std::size_t>(t)];
      }
      const Operation op = e.operation->with_result(shardings[static_cast<std::size_t>(e.result)]);
      cost = op.check(descs).ok() ? add_costs(cost, op.plan(descs, {program.mesh, 0, options}).cost)
                                  : infeasible;
      if (!is_feasible(cost)) break;
    }
    least = std::min(least, cost);
    std::size_t i = 0;
    while (i < at.size() && ++at[i] == domains[i].size()) at[i++] = 0;
    if (i == at.size()) return least;
  }
}

/// Calls visit with pins of the free tensors, for every assignment of shardings to them.
template <class Visit>
void for_each_sharding(const Program& program, const std::vector<bool>& free, const Visit& visit) {
  std::vector<TensorPin> pins;
  std::vector<std::vector<Sharding>> domains;
  for (std::size_t t = 0; t < free.size(); ++t) {
    if (!free[t]) continue;
    const int number = static_cast<int>(t);
    domains.push_back(detail::placements(program.tensor(number).desc.extents, program.mesh));
    pins.push_back({number, domains.back()[0]});
  }
  std::vector<std::size_t> at(pins.size(), 0);
  for (std::size_t i = 0; i < at.size();) {
    visit(pins);
    for (i = 0; i < at.size(); ++i) {
      at[i] = (at[i] + 1) % domains[i].size();
      pins[i].to = domains[i][at[i]];
      if (at[i] > 0) break;
    }
  }
}

Sharding some_sharding(Random& random, const Extents& extents, const MeshShape& mesh) {
  const std::vector<Sharding> all = detail::placements(extents, mesh);
  return all[static_cast<std::size_t>(random.below(static_cast<int>(all.size())))];
}

/// A chain of operators on matrices of various extents, the last of which is kept.
Program some_program(Random& random, const MeshShape& mesh, int operators) {
  Lister list(mesh);
  const auto extent = [&] { return Index{4} << random.below(8); };
  const auto fresh = [&](const Extents& extents) {
    return list.given(extents, some_sharding(random, extents, mesh));
  };
  int x = fresh({extent(), extent()});
  for (int i = 0; i < operators; ++i) {
    const Extents n = list.program.tensor(x).desc.extents;
    switch (random.below(7)) {
      case 0:
        x = list.einsum("ij,jk->ik", x, fresh({n[1], extent()}));
        break;
      case 1:
        x = list.add(x, fresh(n));
        break;
      case 2:
        x = list.run(ops::Softmax{parse("ij->ij"), 'j', false, {}}, {x});
        break;
      case 3:
        x = list.run(ops::Transpose{parse("ij->ji"), {}}, {x});
        break;
      case 4:
        x = list.run(ops::Scan{parse("ij->ij"), 'j', Reduction::sum, {}, DType::f32, {}}, {x});
        break;
      case 5:
        x = list.run(ops::Roll{{3, 1}, {}}, {x});
        break;
      default:
        x = list.run(ops::Normalize{parse("ij,j,j->ij"), true, 1e-5, {}},
                     {x, fresh({n[1]}), fresh({n[1]})});
    }
  }
  return list.take(x);
}

Cost price_of(const Program& program) {
  Cost cost = 0;
  for (const ProgramEntry& e : program.entries()) cost += e.plan->cost;
  return cost;
}

/// A decoder of two layers, forward: attention without a mask, a feed-forward layer, and the table
/// at both ends.
struct DecoderRules {
  const char* name;
  Sharding q, o, in, out, table;
};
Program decoder(const DecoderRules& rules) {
  constexpr Index B = 16, T = 128, M = 512, H = 2048, N = 8, D = 64, V = 1024;
  Lister list(MeshShape{2, 4});
  const int table = list.given({V, M}, rules.table),
            ids = list.given({B, T}, Sharding{{0}, {}}, DType::i32);
  const int one = list.given({M}, Sharding{{}}), nil = list.given({M}, Sharding{{}});
  const auto norm = [&](int x) {
    return list.run(ops::Normalize{parse("btm,m,m->btm"), true, 1e-5, {}}, {x, one, nil});
  };
  int x = list.run(ops::Take{parse("vm,bt->btm"), OutOfRange::clamp, {}, {}}, {table, ids});
  for (int layer = 0; layer < 2; ++layer) {
    const int a = norm(x);
    int heads[3];
    for (int& one_of : heads)
      one_of = list.einsum("btm,mnd->btnd", a, list.given({M, N, D}, rules.q));
    const int scores = list.einsum("btnd,bsnd->bnts", heads[0], heads[1]);
    const int weights = list.run(ops::Softmax{parse("bnts->bnts"), 's', false, {}}, {scores});
    const int mixed = list.einsum("bnts,bsnd->btnd", weights, heads[2]);
    x = list.add(x, list.einsum("btnd,ndm->btm", mixed, list.given({N, D, M}, rules.o)));
    const int wide = list.relu(list.einsum("btm,mh->bth", norm(x), list.given({M, H}, rules.in)));
    x = list.add(x, list.einsum("bth,hm->btm", wide, list.given({H, M}, rules.out)));
  }
  return list.take(list.einsum("btm,vm->btv", norm(x), table));
}

}  // namespace

TEST_CASE("of all shardings of a small program none costs less than the choice") {
  Random random(36);
  int better = 0;
  for (int i = 0; i < 60; ++i) {
    const MeshShape mesh = random.below(2) == 0 ? MeshShape{2, 2} : MeshShape{4, 2};
    const Program program = some_program(random, mesh, 3);
    const Choice choice = choose(program);
    CAPTURE(i);
    CAPTURE(explain(choice));
    REQUIRE(choice.cost == price_of(choice.program));
    REQUIRE(choice.cost <= choice.before);
    REQUIRE(choice.solution.optimal());
    // A product may hide a part of a move, which the choice prices by itself.
    const Cost least = least_of_all(program, choice.free);
    CHECK(choice.cost <= least + least / 50);
    better += choice.cost < choice.before ? 1 : 0;
  }
  CHECK(better > 10);
}

TEST_CASE(
    "a choice never costs more than plain deduction, keeps what is stated, and is found again") {
  Random random(37);
  for (int i = 0; i < 150; ++i) {
    const MeshShape mesh = random.below(2) == 0 ? MeshShape{2, 4} : MeshShape{2, 2, 2};
    const Program program = some_program(random, mesh, 2 + random.below(8));
    ChooseOptions options;
    if (random.below(2) == 0) options.objective = Objective::payload;
    options.open_arguments = random.below(4) == 0;
    const Choice choice = choose(program, {}, options), again = choose(program, {}, options);
    CAPTURE(i);
    CHECK(choice.cost <= choice.before);
    CHECK(choice.chosen == again.chosen);
    if (options.objective == Objective::time) CHECK(choice.cost == price_of(choice.program));
    for (std::size_t t = 0; t < choice.chosen.size(); ++t)
      if (!choice.free[t])
        CHECK(choice.chosen[t] == program.tensor(static_cast<int>(t)).desc.sharding);
    for (const ProgramEntry& e : choice.program.entries()) {  // each operator reads what is there
      REQUIRE(e.plan != nullptr);
      for (int k = 0; k < e.operands.size(); ++k)
        CHECK(e.plan->slots[k].desc == choice.program.tensor(e.operands[k]).desc);
    }
  }
}

TEST_CASE("a limit on flops or memory is kept where a choice can keep it") {
  Random random(38);
  int kept = 0;
  for (int i = 0; i < 40; ++i) {
    const Program program = some_program(random, MeshShape{2, 4}, 6);
    const Choice free = choose(program);
    ChooseOptions options;
    options.memory_limit = free.program.peak_bytes() * 9 / 10;
    const Choice choice = choose(program, {}, options);
    const bool within = choice.program.peak_bytes() <= options.memory_limit;
    kept += within ? 1 : 0;
    CAPTURE(i);
    if (within) CHECK(choice.cost >= free.cost);
    options = {};
    options.objective = Objective::payload;
    options.flops_limit = program.flops();
    CHECK(choose(program, {}, options).program.flops() <= options.flops_limit);
  }
  CHECK(kept > 5);
}

TEST_CASE(
    "of all shardings of a small program that keep a limit on memory, the choice costs least") {
  Random random(40);
  for (int i = 0; i < 12; ++i) {
    const Program program = some_program(random, MeshShape{2, 2}, 3);
    struct Known {
      Index peak;
      Cost cost;
    };
    std::vector<Known> all;
    for_each_sharding(program, choose(program).free, [&](const std::vector<TensorPin>& pins) {
      const Choice one = choose(program, {}, {.pins = pins});
      all.push_back({peak_over_processes(one.program), one.cost});
    });
    std::sort(all.begin(), all.end(),
              [](const Known& a, const Known& b) { return a.peak < b.peak; });
    for (const std::size_t at : {std::size_t{0}, all.size() / 8, all.size() / 2}) {
      const ChooseOptions options{.memory_limit = all[at].peak};
      const Choice choice = choose(program, {}, options);
      CAPTURE(i);
      CAPTURE(at);
      CAPTURE(explain(choice));
      CHECK(choice.found);
      CHECK(peak_over_processes(choice.program) <= options.memory_limit);
      Cost least = infeasible;
      for (const Known& one : all)
        if (one.peak <= options.memory_limit) least = std::min(least, one.cost);
      CHECK(choice.cost <= least + least / 50);
    }
  }
}

TEST_CASE("where no choice keeps a limit, it is said what was least") {
  Random random(41);
  const Program program = some_program(random, MeshShape{2, 2}, 4);
  const Choice choice = choose(program, {}, {.memory_limit = 1});
  CHECK_FALSE(choice.found);
  CHECK(choice.least_peak > 0);
  CHECK(choice.gap() > 1);
  CHECK(explain(choice).find("the least peak of memory that was seen") != std::string::npos);
  CHECK(explain(choice).find("gap") == std::string::npos);
}

TEST_CASE("what a tensor's sharding costs the whole program is what forcing it costs") {
  Random random(39);
  const Program program = some_program(random, MeshShape{2, 2}, 4);
  const Choice choice = choose(program);
  for (std::size_t t = 0; t < choice.free.size(); ++t) {
    const std::string text = explain(choice, static_cast<int>(t));
    CHECK(text.find(choice.free[t] ? "chosen" : "stated") != std::string::npos);
  }
}

TEST_CASE("decoder forward on 2 x 4: fewer bytes than XLA's partitioners, and no more flops") {
  // Payload in KiB a process of Shardy and GSPMD (jax 0.11, ring units), flops of a process in
  // millions of the better one.
  struct Row {
    DecoderRules rules;
    Index xla_kib;
    Index mflops;
    double most;
  };
  const Row rows[] = {
      {{"two-dimensional", {{0}, {1}, {}}, {{1}, {}, {0}}, {{0}, {1}}, {{1}, {0}}, {{1}, {0}}},
       21832,
       3656,
       0.7},
      {{"Megatron", {{}, {1}, {}}, {{1}, {}, {}}, {{}, {1}}, {{1}, {}}, {{1}, {}}},
       15360,
       3656,
       1.0},
      {{"ZeRO-3", {{0}, {}, {}}, {{}, {}, {0}}, {{0}, {}}, {{}, {0}}, {{}, {0}}},
       29444,
       15159,
       0.7},
      {{"whole", {{}, {}, {}}, {{}, {}, {}}, {{}, {}}, {{}, {}}, {{}, {}}}, 0, 14560, 1.0}};
  for (const Row& row : rows) {
    const Program program = decoder(row.rules);
    ChooseOptions options;
    options.objective = Objective::payload;
    options.open_results = true;
    options.flops_limit = row.mflops * 1000 * 1000;
    const Choice choice = choose(program, {}, options);
    CAPTURE(row.rules.name);
    CAPTURE(choice.program.payload_bytes() / 1024);
    CHECK(static_cast<double>(choice.program.payload_bytes()) <=
          row.most * 1024 * static_cast<double>(row.xla_kib));
    CHECK(choice.program.flops() <= options.flops_limit);
  }
}
