// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Arg-max, running sums, sorts and deterministic sums on erased tensors: what op/operators.hpp is
/// for the others.
///
///     TensorCore i = detail::arg(parse("bsv->bs"), Reduction::max, x, out, {"bsv->bs", where});
#include <tessera/op/operators.hpp>
#include <tessera/plan/arg.hpp>
#include <tessera/plan/deterministic.hpp>
#include <tessera/plan/row_verdict.hpp>
#include <tessera/plan/scan.hpp>
#include <tessera/plan/sort.hpp>

namespace tessera::detail {

inline TensorCore arg(const Terms& terms, Reduction reduction, const TensorCore& x,
                      const Sharding& out, CallSite site) {
  MeshCore& mesh = mesh_of(x, site);
  PlanKey key(OperatorKind::arg, reduction, x.type());
  key.add(terms);
  key.add(x.desc());
  key.add(out);
  return run_operator(key, {&x}, site, {}, [&](const PlanOptions& options) {
    require(check_arg(terms, {x.sharding()}, out), terms, mesh, site);
    require_sharding(out, mesh, site);
    require_elements(check_arg_type(x.type()), site);
    Index results = 1;
    for (int d = 0; d < x.rank(); ++d)
      if (terms.result.contains(terms.operands[0][d])) results *= x.extents()[d];
    if (results > 0 && reduced_count(terms, x.extents()) == 0)
      throw ShapeError(std::string(site.label) + ": rows of a tensor of extents " +
                           to_string(x.extents()) +
                           " have no element, so that none is the largest or least; a dimension "
                           "that is searched has an extent of at least 1",
                       site.where);
    return plan_arg(terms, reduction, x.desc(), out, mesh.shape(), mesh.process(), options);
  });
}

/// To elements `type`.
inline TensorCore scan(const Terms& terms, char along, Reduction reduction, ScanOptions scan,
                       const TensorCore& x, const Sharding& out, CallSite site, DType type,
                       const Extras& extras = {}) {
  MeshCore& mesh = mesh_of(x, site);
  PlanKey key(OperatorKind::scan, reduction, type);
  key.add(terms);
  key.add(static_cast<std::uint64_t>(along) << 2 | static_cast<std::uint64_t>(scan.reverse) << 1 |
          static_cast<std::uint64_t>(scan.exclusive));
  key.add(x.desc());
  key.add(out);
  return run_operator(key, {&x}, site, extras, [&](const PlanOptions& options) {
    require(check_scan(terms, along, reduction, {x.sharding()}, out), terms, mesh, site);
    require_sharding(out, mesh, site);
    require_elements(check_reduced_type(reduction, false, x.type(), type, x.sharding()), site);
    return plan_scan_as(type, terms.operands[0], terms.operands[0].find(along), reduction, scan,
                        x.desc(), out, mesh.shape(), mesh.process(), options);
  });
}

/// Throws unless each line of x has k elements.
inline void require_first(Index k, const TensorCore& x, int along, CallSite site) {
  if (k >= 0 && k <= x.extents()[along]) return;
  throw ShapeError(std::string(site.label) + ": the first " + std::to_string(k) +
                       " elements along dimension " + std::to_string(along) +
                       " of a tensor of extents " + to_string(x.extents()) +
                       " are asked for; ask for 0 to " + std::to_string(x.extents()[along]),
                   site.where);
}

/// Returns what the task asks for: keys, what is carried with them, positions.
inline std::vector<TensorCore> sort(const Terms& terms, char along, const SortTask& task,
                                    const OperandList& operands, const Sharding& out,
                                    CallSite site) {
  MeshCore& mesh = mesh_of(*operands[0], site);
  PlanKey key(task.kind, Reduction::none, operands[0]->type());
  key.add(terms);
  key.add(static_cast<std::uint64_t>(along) << 3 |
          static_cast<std::uint64_t>(task.descending) << 2 |
          static_cast<std::uint64_t>(task.keys) << 1 | static_cast<std::uint64_t>(task.positions));
  key.add(static_cast<std::uint64_t>(task.limit));
  for (const TensorCore* operand : operands) key.add(operand->desc());
  key.add(out);
  if (!task.keys && operands.size() == 1) key.name("arg-sort");
  const int count = operands.size() - !task.keys + task.positions;
  const Shardings targets(count, out);
  std::vector<TensorCore> results(1);
  std::vector<TensorCore> also;
  Extras extras;
  extras.targets = &targets;
  if (count > 1) extras.also = &also;
  results[0] = run_operator(key, operands, site, extras, [&](const PlanOptions& options) {
    Shardings shardings;
    for (const TensorCore* operand : operands) shardings.push_back(operand->sharding());
    require(check_sort(terms, along, shardings, out), terms, mesh, site);
    require_extents(terms, descs_of(operands), false, mesh, site);
    require_elements(check_sort_type(operands[0]->type()), site);
    require_sharding(out, mesh, site);
    const int d = terms.result.find(along);
    if (task.kind == OperatorKind::top_k) require_first(task.limit, *operands[0], d, site);
    return plan_sort(terms.result, d, task, descs_of(operands), out, mesh.shape(), mesh.process(),
                     options);
  });
  for (TensorCore& result : also) results.push_back(std::move(result));
  return results;
}

}  // namespace tessera::detail
