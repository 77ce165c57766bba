// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Products in rounds on one mesh, chosen by a seed: run, and compared with plain loops, with their
/// plans, ledger and arena included, and with the plain form of the product.
///
///     std::string wrong = support::some_looped_case(mesh, random, loops);   // counts the loops
///
/// The mesh's options say why products loop: a limit of workspace, or transfers that hide.
#include <atomic>
#include <string>
#include <vector>

#include "cases.hpp"
#include "support/loop_rows.hpp"

namespace support {

/// The options of meshes on which products loop.
inline std::vector<MeshOptions> looping_options() {
  std::vector<MeshOptions> all(3);
  all[0].workspace_limit = 512;
  all[1].machine.hidden_percent = 100;
  all[1].machine.kiloflop_ps_f64 = 1'000'000'000;
  all[2].machine.hidden_percent = 100;
  all[2].machine.two_way_percent = 50;
  all[2].machine.payload_ps_per_kib = 1'000'000'000;
  all[2].machine.kiloflop_ps_f32 = all[2].machine.kiloflop_ps_f64 = 1'000'000'000;
  return all;
}

/// With `halos` its operands may lie within some.
template <class T>
std::string looped_case(const std::shared_ptr<MeshCore>& mesh, Random& random,
                        std::atomic<int>& loops, bool halos) {
  static const char* const equations[] = {"ik,kj->ij",     "ki,kj->ij",    "ik,jk->ji",
                                          "bik,bkj->bij",  "ikl,klj->ij",  "ik,kjc->ijc",
                                          "iak,kcj->aijc", "bik,bjk->bijk"};
  const MeshShape& shape = mesh->shape();
  const char* equation = equations[random.below(static_cast<int>(std::size(equations)))];
  const Terms terms = parse(equation);
  Term letters;
  Extents extents;
  for (const Term& term : terms.operands)
    for (char label : term)
      if (!letters.contains(label)) {
        letters.push_back(label);
        extents.push_back(random.of<Index>({1, 4, 6, 7, 8, 12}));
      }
  const auto desc = [&](const Term& term) {
    TensorDesc x{dtype_of<T>, {}, some_sharding(random, term.size(), shape.rank())};
    for (char label : term) x.extents.push_back(extents[letters.find(label)]);
    return x;
  };
  const TensorDesc a = desc(terms.operands[0]), b = desc(terms.operands[1]);
  const Sharding out = some_sharding(random, terms.result.size(), shape.rank());
  if (!tessera::detail::check_einsum(terms, {a.sharding, b.sharding}, out).ok()) return "";
  WithinHalos within = halos ? WithinHalos(random) : WithinHalos();
  const DynamicTensor x = within.put(make_input<T>(mesh, a, 1));
  const DynamicTensor y = within.put(make_input<T>(mesh, b, 2));
  const Plan plan =
      tessera::detail::plan_einsum(terms, a, b, out, shape, mesh->process(), within.options(mesh));
  if (loop_of(plan) == nullptr || (halos && plan.halos.empty())) return "";
  if (mesh->process() == 0) ++loops;
  const Whole<T> expected =
      support::einsum(terms, whole_input<T>(a, shape, 1), whole_input<T>(b, shape, 2));
  const double tolerance = std::is_integral_v<T> ? 0 : sizeof(T) == 8 ? 1e-9 : 1e-3;
  return Trial<T>(mesh, std::string(equation) + ", " + describe(a, shape) + ", " +
                            describe(b, shape) + " to " + describe(out, shape) + within.text())(
      [&] { return tessera::einsum(equation, x, y, out); }, plan, expected, tolerance);
}

inline std::string some_looped_case(const std::shared_ptr<MeshCore>& mesh, Random& random,
                                    std::atomic<int>& loops, bool halos = false) {
  const int kind = random.below(3);
  return kind == 0   ? looped_case<double>(mesh, random, loops, halos)
         : kind == 1 ? looped_case<float>(mesh, random, loops, halos)
                     : looped_case<std::int64_t>(mesh, random, loops, halos);
}

/// Plays a row on a mesh of its shape.
inline std::string played_row(const std::shared_ptr<MeshCore>& mesh, const LoopRow& row) {
  const TensorDesc a{row.type, row.a, row.sa}, b{row.type, row.b, row.sb};
  const Terms terms = parse(row.equation);
  const Plan plan = tessera::detail::plan_einsum(terms, a, b, row.out, row.mesh, mesh->process(),
                                                 plan_options(*mesh));
  if (loop_of(plan) == nullptr) return std::string(row.name) + " does not loop:\n" + describe(plan);
  const DynamicTensor x = make_input<double>(mesh, a, 1), y = make_input<double>(mesh, b, 2);
  const Whole<double> expected = support::einsum(terms, whole_input<double>(a, row.mesh, 1),
                                                 whole_input<double>(b, row.mesh, 2));
  return Trial<double>(mesh, row.name)([&] { return tessera::einsum(row.equation, x, y, row.out); },
                                       plan, expected, 1e-9);
}
/// Options under which a row loops: less workspace than the plain form takes, or transfers that
/// hide.
inline MeshOptions looping_options(const LoopRow& row) {
  const TensorDesc a{row.type, row.a, row.sa}, b{row.type, row.b, row.sb};
  const auto planned = [&](const MeshOptions& options) {
    return tessera::detail::plan_einsum(parse(row.equation), a, b, row.out, row.mesh, 0,
                                        {options.machine, options.workspace_limit});
  };
  MeshOptions limited;
  limited.workspace_limit = tessera::detail::workspace_of_origin(planned(limited)) - 1;
  if (row.limit > 0) return limited;
  for (const MeshOptions& options : looping_options())
    if (loop_of(planned(options)) != nullptr) return options;
  return limited;
}

}  // namespace support
