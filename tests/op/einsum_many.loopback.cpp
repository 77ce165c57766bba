// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: cases
// Einsums of one to five tensors, in whatever order they are multiplied.
#include <doctest/doctest.h>

#include <mutex>

#include "op/cases.hpp"

using namespace tessera;
using namespace support;

TEST_CASE(
    "einsum of one to five tensors equals plain loops; what is communicated is in the program") {
  const std::uint64_t seed = seed_for("einsum of many", 30);
  const char* const equations[] = {
      "ij->ji",         "ij->",         "ijk->kj",         "ij,jk,kl->il",    "ij,jk,kl->",
      "b,bi,bij,j->bi", "ij,j,i->ij",   "ab,bc,cd,de->ae", "a,b,c->cab",      "ij,ij,ij->j",
      "bij,bjk,bk->bi", "ia,jb,ab->ij", "x,x,x,x,x->",     "ij,jk,lk,ml->mi", "ab,ac,ad->bcd",
      "ii->",           "ii->i",        "iij->ji",         "iijj->ij",        "ijij->",
      "iij,jk,kk->ik",  "ijj,jl,li->il"};
  std::mutex mutex;
  std::vector<std::string> wrong;
  std::uint64_t number = 0;
  for (const MeshShape& shape : meshes(8, 3)) {
    if (++number % 2 == 0 && shape.rank() == 3) continue;
    run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
      Random random(seed + number);
      MeshOptions options;
      options.machine = some_machine(random);
      const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()), options);
      for (const char* equation : equations) {
        const Terms terms = parse(equation);
        Term letters;
        Extents of_letter;
        std::vector<DynamicTensor> x;
        std::vector<Whole<std::int64_t>> whole;
        Shardings shardings;
        std::string text = std::string(equation) + " on " + describe(shape);
        const int open = random.below(2 * terms.operands.size());
        for (int t = 0; t < terms.operands.size(); ++t) {
          TensorDesc desc{
              DType::i64,
              {},
              some_sharding(random, terms.operands[t].size(), shape.rank(), open == t ? 40 : 0)};
          for (char label : terms.operands[t]) {
            if (!letters.contains(label)) {
              letters.push_back(label);
              of_letter.push_back(random.of<Index>({1, 2, 3, 4, 5, random.chance(10) ? 0 : 3}));
            }
            desc.extents.push_back(of_letter[letters.find(label)]);
          }
          shardings.push_back(desc.sharding);
          x.push_back(make_input<std::int64_t>(mesh, desc, 50 + x.size()));
          whole.push_back(whole_input<std::int64_t>(desc, shape, 50 + whole.size()));
          text += ", " + describe(desc, shape);
        }
        Sharding out = some_sharding(random, terms.result.size(), shape.rank(), 30);
        if (!detail::check_einsum(terms, shardings, out).ok()) out = out.finished();
        text += " to " + describe(out, shape) + ": ";
        std::string problem;
        try {
          mesh->ledger().reset();
          mesh->arena().reset_peak();
          Recording recording(mesh);
          DynamicTensor y;
          switch (x.size()) {
            case 1:
              y = tessera::einsum(equation, {x[0]}, out);
              break;
            case 3:
              y = tessera::einsum(equation, {x[0], x[1], x[2]}, out);
              break;
            case 4:
              y = tessera::einsum(equation, {x[0], x[1], x[2], x[3]}, out);
              break;
            default:
              y = tessera::einsum(equation, {x[0], x[1], x[2], x[3], x[4]}, out);
          }
          const Program program = recording.take();
          if (program.own_payload_bytes() != mesh->ledger().payload_bytes())
            problem = "the ledger differs from the program";
          if (program.peak_bytes() != mesh->arena().peak())
            problem = "the arena differs from the program";
          if (!(y.sharding() == out)) problem = "the result is sharded otherwise";
          const auto all = to_host<std::int64_t>(y);
          if (const std::string differs =
                  difference(all.values, support::einsum(terms, whole).values, 0);
              !differs.empty())
            problem = differs;
        } catch (const std::exception& error) {
          problem = error.what();
        }
        const std::lock_guard lock(mutex);
        if (!problem.empty()) wrong.push_back(text + problem);
      }
    });
  }
  for (std::size_t i = 0; i < wrong.size() && i < 5; ++i) MESSAGE(wrong[i]);
  CHECK(wrong.empty());
}
