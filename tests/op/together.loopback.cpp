// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: cases
// Groups of tensors resharded together: values, memory and calls.
#include <doctest/doctest.h>

#include <mutex>

#include <tessera/plan/work/work.hpp>

#include "op/cases.hpp"

using namespace tessera;
using namespace support;

TEST_CASE("tensors resharded together are what they are alone; the plan, ledger and arena agree") {
  const std::uint64_t seed = seed_for("together", 31);
  std::mutex mutex;
  std::vector<std::string> wrong;
  int joined = 0;
  std::uint64_t number = 0;
  for (const MeshShape& shape : meshes(8, 3))
    for (int round = 0; round < 6; ++round) {
      ++number;
      run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
        Random random(seed + number);
        MeshOptions options;
        options.machine = some_machine(random);
        options.machine.message_ps *=
            random.of<int>({1, 1000});  // messages dear enough to be saved
        const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()), options);
        std::vector<DynamicTensor> x;
        std::vector<Sharding> targets;
        std::vector<Whole<std::int64_t>> whole;
        std::string text = describe(shape);
        const bool alike = random.chance(50);  // as gradients are: one spec for all
        const int many = 1 + random.below(random.chance(20) ? 13 : 6);
        Sharding from, to;
        for (int i = 0; i < many; ++i) {
          const int rank = alike ? 2 : random.below(4);
          const Reduction kind = random.of<Reduction>({Reduction::sum, Reduction::max});
          if (!alike || i == 0) {
            from = some_sharding(random, rank, shape.rank(), 40, kind);
            to = some_sharding(random, rank, shape.rank());
            if (alike && random.chance(50)) to = from.finished();
          }
          Extents extents;
          for (int d = 0; d < rank; ++d) extents.push_back(random.of<Index>({1, 2, 3, 4, 5, 8, 0}));
          const TensorDesc desc{DType::i64, extents, from};
          x.push_back(make_input<std::int64_t>(mesh, desc, 70 + x.size()));
          whole.push_back(whole_input<std::int64_t>(desc, shape, 70 + whole.size()));
          targets.push_back(to);
          text += ", " + describe(desc, shape) + " to " + describe(to, shape);
        }
        std::string problem;
        try {
          mesh->ledger().reset();
          mesh->ledger().record_calls(true);
          mesh->arena().reset_peak();
          Recording recording(mesh);
          const std::vector<DynamicTensor> y = reshard_together(x, targets);
          const Program program = recording.take();
          const std::vector<Call> calls = mesh->ledger().calls();
          mesh->ledger().record_calls(false);
          if (program.own_payload_bytes() != mesh->ledger().payload_bytes())
            problem = "the ledger differs from the program";
          if (program.peak_bytes() != mesh->arena().peak())
            problem = "the arena differs from the program";
          std::vector<Call> planned;
          for (const ProgramEntry& entry : program.entries()) {
            for (const Call& call : instructions_of(*entry.plan).calls) planned.push_back(call);
            for (const Step& step : entry.plan->steps)
              if (step.kind == StepKind::communicate) {
                if (step.payload !=
                        detail::payload_bytes(detail::move_work(*entry.plan, step).call) &&
                    step.near.empty())
                  problem = "a step's payload is not its call's";
                const std::lock_guard lock(mutex);
                if (world->process() == 0) joined += step.also.size();
              }
          }
          if (!(planned == calls)) problem = "other calls than planned";
          for (std::size_t i = 0; i < x.size(); ++i) {
            if (!(y[i].sharding() == targets[i]))
              problem = "tensor " + std::to_string(i) + " is sharded otherwise";
            const auto all = to_host<std::int64_t>(y[i]);
            if (const std::string differs = difference(all.values, whole[i].values, 0);
                !differs.empty())
              problem = "tensor " + std::to_string(i) + ": " + differs;
            const auto mine = host_block<std::int64_t>(y[i]);
            if (const std::string differs = difference(mine, block_of(whole[i], y[i].box()), 0);
                !differs.empty())
              problem = "block of tensor " + std::to_string(i) + ": " + differs;
          }
        } catch (const std::exception& error) {
          problem = error.what();
        }
        const std::lock_guard lock(mutex);
        if (!problem.empty()) wrong.push_back(text + ": " + problem);
      });
    }
  for (std::size_t i = 0; i < wrong.size() && i < 5; ++i) MESSAGE(wrong[i]);
  CHECK(wrong.empty());
  MESSAGE(joined << " tensors went in another's call");
  CHECK(joined > 100);
}

TEST_CASE("gradients are finished in one all-reduce, large ones by themselves") {
  const MeshShape mesh{4};
  const Sharding open = Sharding::replicated(1).with_partial(AxisSet{0}, Reduction::sum);
  const Sharding done = Sharding::replicated(1);
  const auto gradient = [&](Index n) { return TensorDesc{DType::f32, {n}, open}; };
  const Plan small =
      ops::Together{{done, done, done}}.plan({gradient(10), gradient(3), gradient(100)}, {mesh});
  CHECK(small.count(all_reduce) == 1);
  CHECK(small.own_payload_bytes() == 4 * 2 * (113 - 29));
  CHECK(small.payload_bytes() == 4 * 2 * (113 - 26));  // of the process with the short block
  CHECK(small.also.size() == 2);
  const Plan large = ops::Together{{done, done, done}}.plan(
      {gradient(10), gradient(1 << 24), gradient(100)}, {mesh});
  CHECK(large.count(all_reduce) == 2);
  const TensorDesc other{DType::f64, {10}, open};
  CHECK(ops::Together{{done, done}}.plan({gradient(10), other}, {mesh}).count(all_reduce) == 2);
}
