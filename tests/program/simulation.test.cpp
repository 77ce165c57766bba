// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: program_lists
// Plans of other processes, and thousands of processes at once, in a dry run.
#include <doctest/doctest.h>

#include <tessera/plan/op/halo/halo_exchange.hpp>
#include <tessera/plan/op/move/place.hpp>
#include <tessera/plan/op/move/together.hpp>
#include <tessera/plan/op/shape/reshape.hpp>
#include <tessera/plan/op/shape/shape.hpp>
#include <tessera/plan/op/shape/transpose.hpp>
#include <tessera/plan/op/window/reduce_window.hpp>

#include "support/enumerate.hpp"

using namespace tessera;
using namespace support;

namespace {

struct Tally {
  long cases = 0;
  long wrong = 0;
  /// make(process) is a plan; all are compared with that of process `from`, moved.
  template <class Make> void compare(const MeshShape& mesh, int from, const Make& make) {
    const Plan start = make(from);
    const PlanSpread all = over_processes(start);
    Spread payload, network, messages, flops, peak;
    std::vector<Spread> steps(static_cast<std::size_t>(start.steps.size()));
    for (int process = 0; process < mesh.processes(); ++process) {
      ++cases;
      const Plan there = make(process);
      payload.add(there.own_payload_bytes(), process);
      network.add(there.network_bytes(), process);
      messages.add(there.messages(), process);
      flops.add(there.flops(), process);
      peak.add(there.peak_bytes, process);
      for (int k = 0; k < there.steps.size(); ++k)
        steps[static_cast<std::size_t>(k)].add(there.steps[k].payload, process);
      if (start.payload_bytes_on(process) != there.own_payload_bytes()) ++wrong;
      for (const Step& step : there.steps)
        if (step.region >= 0 &&
            !(detail::region_numbers(there, step, process) ==
              detail::RegionNumbers(detail::RegionWork(there, step, process).make())) &&
            ++wrong <= 3)
          MESSAGE("process " << process << " counts by dimension otherwise than by pieces:\n"
                             << describe(there));
      if (on_process(start, process) == there) continue;
      if (++wrong <= 3)
        MESSAGE("process " << process << " from " << from << ":\n"
                           << describe(on_process(start, process)) << describe(there));
    }
    bool same = all.payload == payload && all.network == network && all.messages == messages &&
                all.flops == flops && all.peak == peak && start.payload_bytes() == payload.most;
    for (std::size_t k = 0; k < steps.size(); ++k) same = same && all.steps[k].payload == steps[k];
    if (!same && ++wrong <= 3) MESSAGE("over all processes:\n" << describe(start));
    Index calls = 0;
    const std::string fault = detail::fault_of(start, calls);
    if (!fault.empty() && ++wrong <= 3) MESSAGE(fault << "\n" << describe(start));
  }
};

TensorDesc desc_of(Random& random, const Term& term, int axes, const Extents& extents,
                   const Term& letters, int open = 0) {
  TensorDesc d{random.of<DType>({DType::f32, DType::f64, DType::i32}),
               {},
               some_sharding(random, term.size(), axes, open)};
  for (char label : term) d.extents.push_back(extents[letters.find(label)]);
  return d;
}

/// The feed-forward layer of GSPMD's "2D finalized", forward and backward: what it multiplies.
struct Products {
  MeshShape mesh;
  Index batch, sequence, embed, hidden;
  TensorDesc x{DType::f32, {batch, sequence, embed}, {{0}, {}, {1}}};
  TensorDesc h{DType::f32, {batch, sequence, hidden}, {{0}, {}, {1}}};
  TensorDesc w_in{DType::f32, {embed, hidden}, {{0}, {1}}};
  TensorDesc w_out{DType::f32, {hidden, embed}, {{1}, {0}}};

  Program program(int process) const {
    Program p;
    p.mesh = mesh;
    p.process = process;
    const auto run = [&](const char* equation, const TensorDesc& a, const TensorDesc& b,
                         const Sharding& out) {
      p.record({std::make_shared<const Plan>(
                    ops::Einsum{parse(equation), out}.plan({a, b}, {mesh, process})),
                equation,
                {},
                0});
    };
    run("bsm,mh->bsh", x, w_in, h.sharding);
    run("bsh,hm->bsm", h, w_out, x.sharding);
    run("bsm,hm->bsh", x, w_out, h.sharding);
    run("bsh,bsm->hm", h, x, w_out.sharding);
    run("bsh,mh->bsm", h, w_in, x.sharding);
    run("bsm,bsh->mh", x, h, w_in.sharding);
    return p;
  }
};

}  // namespace

TEST_CASE("the plan of a process, told from another's, is the one that is planned there") {
  Random random(seed_for("on_process", 41));
  Tally tally;
  std::vector<MeshShape> all_meshes = meshes(12, 3);
  for (const MeshShape& wide : {MeshShape{37}, MeshShape{16, 3}, MeshShape{2, 25}})
    all_meshes.push_back(wide);
  for (const MeshShape& mesh : all_meshes)
    for (int i = 0; i < 12; ++i) {
      PlanOptions options{some_machine(random), max_int64};
      if (i % 3 == 0) {
        options.machine.processes_per_node = random.of<std::int64_t>({2, 3, 4});
        options.machine.network_message_ps = 50'000'000;
      }
      const Terms terms = parse(random.of<const char*>(
          {"ik,kj->ij", "bsm,mh->bsh", "abc,dca->bd", "ij,ij->j", "ia,jb->ij", "iij,jk->ik"}));
      Extents extents;
      Term letters;
      for (const Term& term : terms.operands)
        for (char label : term)
          if (!letters.contains(label)) {
            letters.push_back(label);
            extents.push_back(random.of<Index>({0, 1, 3, 5, 7, 16, 24, 130, 256}));
          }
      const int axes = mesh.rank();
      const int from = random.below(mesh.processes());
      TensorDesc a = desc_of(random, terms.operands[0], axes, extents, letters);
      const TensorDesc b = desc_of(random, terms.operands[1], axes, extents, letters);
      a.type = b.type;
      const Sharding out = some_sharding(random, terms.result.size(), axes);
      if (detail::check_einsum(terms, {a.sharding, b.sharding}, out).ok())
        tally.compare(mesh, from, [&](int p) {
          return ops::Einsum{terms, out}.plan({a, b}, {mesh, p, options});
        });

      TensorDesc x = desc_of(random, parse("abc->").operands[0], axes, {5, 8, 3},
                             parse("abc->").operands[0], i % 2 == 0 ? 40 : 0);
      const Sharding to = some_sharding(random, 3, axes);
      tally.compare(mesh, from, [&](int p) {
        return ops::Reshard{to}.plan({x}, {mesh, p, options});
      });
      x.sharding = x.sharding.finished();
      const Sharding reduced = some_sharding(random, 2, axes);
      tally.compare(mesh, from, [&](int p) {
        return ops::Reduce{
            .terms = parse("abc->ca"), .reduction = Reduction::sum, .type = x.type, .out = reduced}
            .plan({x}, {mesh, p, options});
      });
      tally.compare(mesh, from, [&](int p) {
        return ops::Transpose{parse("abc->bca"), to}.plan({x}, {mesh, p, options});
      });
      tally.compare(mesh, from, [&](int p) {
        return ops::Map{
            .terms = parse("abc,abc->abc"), .type = x.type, .out = to, .reads_index = false}
            .plan({x, {x.type, x.extents, to}}, {mesh, p, options});
      });

      TensorDescs several{x,
                          {x.type, {3}, some_sharding(random, 1, axes)},
                          {x.type, {4, 2}, some_sharding(random, 2, axes, 40)}};
      const Shardings targets{to, some_sharding(random, 1, axes), some_sharding(random, 2, axes)};
      tally.compare(mesh, from, [&](int p) {
        return ops::Together{targets}.plan(several, {mesh, p, options});
      });

      const int root = random.below(mesh.processes());
      options.workspace_limit = random.of<Index>({max_int64, 64});
      tally.compare(mesh, from,
                    [&](int p) { return detail::plan_from_root(x, root, mesh, p, options); });
      tally.compare(mesh, from,
                    [&](int p) { return detail::plan_to_root(x, root, mesh, p, options); });
    }
  MESSAGE(tally.cases << " plans");
  CHECK(tally.wrong == 0);
}

TEST_CASE("numbers over all processes are those of each") {
  const MeshShape mesh{3, 3};
  const TensorDesc x{DType::f32, {7, 9}, {{0}, {1}}};
  const Plan swapped = ops::Reshard{{{1}, {0}}}.plan({x}, {mesh});
  const PlanSpread s = over_processes(swapped);
  Index least = max_int64, most = 0, total = 0;
  for (int p = 0; p < 9; ++p) {
    const Index payload = ops::Reshard{{{1}, {0}}}.plan({x}, {mesh, p}).own_payload_bytes();
    least = min_of(least, payload);
    most = max_of(most, payload);
    total += payload;
  }
  CHECK(s.payload.least == least);
  CHECK(s.payload.most == most);
  CHECK(s.payload.total == total);
  CHECK(ops::Reshard{{{1}, {0}}}.plan({x}, {mesh, s.payload.process}).own_payload_bytes() == most);
  // Process 0 is a fixed point of the permutation: its own numbers say nothing of what the others
  // send, so that plans speak of the process with most.
  CHECK(swapped.own_payload_bytes() == 0);
  CHECK(swapped.payload_bytes_on(0) == 0);
  CHECK(swapped.payload_bytes() == most);
  CHECK(swapped.payload_bytes(Collective::collective_permute) +
            swapped.payload_bytes(Collective::exchange) ==
        most);
  CHECK(explain(swapped, axis_names(2)).find("; payload 36 B (process 1), workspace") !=
        std::string::npos);
  CHECK(explain_own(swapped, axis_names(2)).find("; payload 0 B, workspace") != std::string::npos);
  CHECK(explain_all(swapped, axis_names(2)).find("0 B to ") != std::string::npos);
}

TEST_CASE("the feed-forward layer, forward and backward, on 4096 processes") {
  // A batch of 130 makes the last blocks short, and the last processes' empty.
  for (const Index batch : {Index{512}, Index{130}}) {
    const Products layer{MeshShape{64, 64}, batch, 512, 5120, 20480};
    const Program p = layer.program(0);
    const Simulation s = simulate(p);
    CHECK(s.fault == "");
    CHECK(s.processes == 4096);
    CHECK(s.flops.total ==
          6 * 2 * batch * layer.sequence * layer.embed * layer.hidden);  // nothing is done twice
    Index calls = 0;
    for (const ProgramEntry& e : p.entries()) calls += e.plan->communications();
    CHECK(s.calls == 4096 * calls);
    Random random(seed_for("processes of 4096", 43));
    for (int i = 0; i < 60; ++i) {
      const int process = i == 0 ? 4095 : i == 1 ? s.payload.process : random.below(4096);
      const Program there = layer.program(process);
      const Program moved = on_process(p, process);
      for (int k = 0; k < p.size(); ++k) {
        CHECK(*moved.entry(k).plan == *there.entry(k).plan);
        CHECK(there.entry(k).plan->own_payload_bytes() <=
              s.entries[static_cast<std::size_t>(k)].payload.most);
        CHECK(there.entry(k).plan->own_payload_bytes() >=
              s.entries[static_cast<std::size_t>(k)].payload.least);
      }
      CHECK(there.own_payload_bytes() <= s.payload.most);
      CHECK(there.own_payload_bytes() >= s.payload.least);
      if (i == 1) CHECK(there.own_payload_bytes() == s.payload.most);
    }
    if (batch == 512) {  // everything divides: all processes are alike
      CHECK(s.payload.even());
      CHECK(s.payload.total == 4096 * p.payload_bytes());
      CHECK(s.peak.most == p.peak_bytes());
    } else {
      CHECK(!s.payload.even());
    }
  }
}

TEST_CASE("a misfit of two processes' calls is found, whichever") {
  const MeshShape mesh{2, 3};
  const Sharding open = Sharding{{}, {}}.with_partial(AxisSet{1}, Reduction::sum);
  const TensorDesc sharded{DType::f32, {7, 9}, {{0}, {1}}};
  long planted = 0;
  for (const Plan& plan :
       {ops::Reshard{{{0}, {}}}.plan({sharded}, {mesh}),
        ops::Reshard{{{}, {1}}}.plan({sharded}, {mesh}),
        ops::Reshard{{{}, {1}}}.plan({TensorDesc{DType::f32, {7, 9}, {{1}, {}}}}, {mesh}),
        ops::Reshard{{{1}, {0}}}.plan({sharded}, {mesh}),
        ops::Reshard{{{1}, {}}}.plan({TensorDesc{DType::f32, {7, 9}, open}}, {mesh}),
        ops::Reshard{{{}, {}}}.plan({TensorDesc{DType::f32, {7, 9}, open}}, {mesh}),
        ops::Reshard{{{1}, {0}}}.plan({TensorDesc{DType::f32, {9, 9}, {{0}, {1}}}},
                                      {MeshShape{3, 3}})}) {
    REQUIRE(plan.steps.size() == 1);
    std::vector<Call> calls;
    for (int p = 0; p < plan.mesh.processes(); ++p)
      calls.push_back(detail::move_work(on_process(plan, p), plan.steps[0]).call);
    CHECK(detail::Meeting(plan.mesh, calls).fault() == "");
    for (std::size_t p = 0; p < calls.size(); ++p)
      for (auto side : {&Call::send, &Call::receive})
        for (std::size_t k = 0; k < (calls[p].*side).size(); ++k)
          for (const Index change : {Index{1}, Index{-1}}) {
            std::vector<Call> wrong = calls;
            (wrong[p].*side)[k].count += change;
            // In an all-reduce the two sides of one process are one number.
            if (calls[p].kind == Collective::all_reduce)
              wrong[p].send[k].count = wrong[p].receive[k].count = calls[p].send[k].count + change;
            ++planted;
            CHECK(detail::Meeting(plan.mesh, wrong).fault() != "");
          }
    if (plan.mesh.processes() > 1) {
      std::vector<Call> wrong = calls;
      wrong[1].type = DType::f64;
      CHECK(detail::Meeting(plan.mesh, wrong).fault().find("different calls") != std::string::npos);
    }
  }
  MESSAGE(planted << " planted misfits");
}

TEST_CASE("the numbers of all processes that exchange parts of blocks, from a few of them") {
  Random random(seed_for("numbers of regions", 44));
  Tally tally;
  std::vector<MeshShape> all_meshes = meshes(12, 3);
  for (const MeshShape& wide : {MeshShape{37}, MeshShape{16, 3}, MeshShape{5, 9}})
    all_meshes.push_back(wide);
  for (const MeshShape& mesh : all_meshes)
    for (int i = 0; i < 6; ++i) {
      PlanOptions options{some_machine(random), max_int64};
      if (i % 3 == 0) options.machine.processes_per_node = random.of<std::int64_t>({2, 3, 4});
      const int axes = mesh.rank(), from = random.below(mesh.processes());
      const TensorDesc x{DType::f32,
                         {random.of<Index>({5, 16, 24, 37}), random.of<Index>({1, 7, 12, 40})},
                         some_sharding(random, 2, axes)};
      const Sharding out = random.chance(50) ? x.sharding : some_sharding(random, 2, axes);
      const auto compare = [&](const auto& op) {
        tally.compare(mesh, from, [&](int p) { return op.plan({x}, {mesh, p, options}); });
      };
      compare(ops::Roll{{random.below(40) - 20, random.below(2)}, out});
      compare(ops::Shift{{random.below(12) - 6, random.below(2)}, out});
      compare(ops::Slice{{{Slice{{1, 0}, {x.extents[0], x.extents[1]}, {2, 1}}}}, out});
      compare(ops::Reverse{{{0, 1}}, out});
      compare(ops::Reshape{{x.extents[1], x.extents[0]}, out});
      const Window window{.size = 3, .low = 1, .high = random.below(2)};
      compare(ops::ReduceWindow{Reduction::sum, false, {window, window}, out});
      for (const bool adjoint : {false, true})
        compare(ops::HaloExchange{{Halo{{1, 2}, {2, 0}, {}}}, adjoint});
    }
  MESSAGE(tally.cases << " cases");
  CHECK(tally.wrong == 0);
}
