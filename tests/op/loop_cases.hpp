// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Products in rounds, or in parts of a gathered operand, on one mesh, chosen by a seed: run, and
/// compared with plain loops, with their plans, ledger and arena included.
///
///     std::string wrong = support::some_product(mesh, random, {.count = &loops});   // counts the loops
///
/// The mesh's options say why products loop: a limit of workspace, or transfers that hide.
#include <algorithm>
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

/// The options of meshes on which an own part stays even where it is small.
inline MeshOptions parts_options() {
  MeshOptions options;
  options.machine.message_ps = 1;
  return options;
}

/// Which products are played, and how many there were.
struct ProductKind {
  std::atomic<int>* count = nullptr;
  bool halos = false;     ///< operands may lie within some
  bool in_parts = false;  ///< one side is long, and an own part stays where it is; else in rounds
  bool has(const Plan& plan) const {
    if (!in_parts) return loop_of(plan) != nullptr && (!halos || !plan.halos.empty());
    return std::any_of(plan.slots.begin(), plan.slots.end(),
                       [](const Slot& slot) { return slot.own_part >= 0; });
  }
};

template <class T>
std::string product_case(const std::shared_ptr<MeshCore>& mesh, Random& random,
                         const ProductKind& kind) {
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
  if (kind.in_parts)
    extents[random.below(extents.size())] = random.of<Index>({128, 130, 256, 512, 521, 1024});
  const auto desc = [&](const Term& term) {
    TensorDesc x{dtype_of<T>, {}, some_sharding(random, term.size(), shape.rank())};
    for (char label : term) x.extents.push_back(extents[letters.find(label)]);
    return x;
  };
  const TensorDesc a = desc(terms.operands[0]), b = desc(terms.operands[1]);
  const Sharding out = some_sharding(random, terms.result.size(), shape.rank());
  if (!tessera::detail::check_einsum(terms, {a.sharding, b.sharding}, out).ok()) return "";
  WithinHalos within = kind.halos ? WithinHalos(random) : WithinHalos();
  const DynamicTensor x = within.put(make_input<T>(mesh, a, 1));
  const DynamicTensor y = within.put(make_input<T>(mesh, b, 2));
  const Plan plan =
      ops::Einsum{terms, out}.plan({a, b}, {shape, mesh->process(), within.options(mesh)});
  if (!kind.has(plan)) return "";
  if (mesh->process() == 0) ++*kind.count;
  const Whole<T> expected =
      support::einsum(terms, whole_input<T>(a, shape, 1), whole_input<T>(b, shape, 2));
  const double tolerance = std::is_integral_v<T> ? 0 : sizeof(T) == 8 ? 1e-9 : 1e-3;
  return Trial<T>(mesh, std::string(equation) + ", " + describe(a, shape) + ", " +
                            describe(b, shape) + " to " + describe(out, shape) + within.text())(
      [&] { return tessera::einsum(equation, x, y, out); }, plan, expected, tolerance);
}

inline std::string some_product(const std::shared_ptr<MeshCore>& mesh, Random& random,
                                const ProductKind& kind) {
  const int type = random.below(3);
  return type == 0   ? product_case<double>(mesh, random, kind)
         : type == 1 ? product_case<float>(mesh, random, kind)
                     : product_case<std::int64_t>(mesh, random, kind);
}

/// Plays a row on a mesh of its shape.
inline std::string played_row(const std::shared_ptr<MeshCore>& mesh, const LoopRow& row) {
  const TensorDesc a{row.type, row.a, row.sa}, b{row.type, row.b, row.sb};
  const Terms terms = parse(row.equation);
  const Plan plan =
      ops::Einsum{terms, row.out}.plan({a, b}, {row.mesh, mesh->process(), plan_options(*mesh)});
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
    PlanOptions planning{options.machine, options.workspace_limit};
    planning.narrow_parts = options.narrow_parts;
    return ops::Einsum{parse(row.equation), row.out}.plan({a, b}, {row.mesh, 0, planning});
  };
  MeshOptions limited;
  limited.narrow_parts = true;  // the limit has no room for floats
  limited.workspace_limit = tessera::detail::workspace_of_origin(planned(limited)) - 1;
  if (row.limit > 0) return limited;
  for (const MeshOptions& options : looping_options())
    if (loop_of(planned(options)) != nullptr) return options;
  return limited;
}

}  // namespace support
