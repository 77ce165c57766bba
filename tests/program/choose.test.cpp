// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: choose
// Choosing shardings with limits, and for models whose bytes XLA's partitioners were measured for.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "program/listed_program.hpp"

#include <tessera/program/peak.hpp>

using namespace tessera;
using support::Random;

namespace {

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

/// A chain of operators on matrices of various extents, the last of which is kept.
Program some_program(Random& random, const MeshShape& mesh, int operators) {
  support::ListedProgram list(mesh);
  const auto extent = [&] { return Index{4} << random.below(8); };
  const auto fresh = [&](const Extents& extents) {
    return list.given(extents, support::some_placement(random, extents, mesh));
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

/// A decoder of two layers, forward: attention without a mask, a feed-forward layer, and the table
/// at both ends.
struct DecoderRules {
  const char* name;
  Sharding q, o, in, out, table;
};
Program decoder(const DecoderRules& rules) {
  constexpr Index B = 16, T = 128, M = 512, H = 2048, N = 8, D = 64, V = 1024;
  support::ListedProgram list(MeshShape{2, 4});
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

TEST_CASE("a sharding is a placement where the list of them has it") {
  for (const MeshShape& mesh : support::meshes(8, 3))
    for (const Extents& extents : {Extents{6, 4}, Extents{1, 5}, Extents{3, 0}}) {
      const std::vector<Sharding> all = detail::placements(extents, mesh);
      for (const Reduction kind : {Reduction::none, Reduction::sum})
        for (const Sharding& s : support::shardings(2, mesh.rank(), kind)) {
          CAPTURE(to_string(s, AxisNames{"data", "model", "third"}));
          const bool listed = std::find(all.begin(), all.end(), s) != all.end();
          CHECK(detail::is_placement(s, extents, mesh) == listed);
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
  for (int i = 0; i < support::cases_of(4, 12); ++i) {
    const Program program = some_program(random, i % 4 == 0 ? MeshShape{2, 2} : MeshShape{4}, 3);
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
