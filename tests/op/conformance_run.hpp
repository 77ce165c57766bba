// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Runs a row of the conformance table at shrunk extents and compares it with plain loops and with
/// its plan.
///
///     std::string wrong = support::run_row(mesh, row);        // collective over the mesh
#include "cases.hpp"
#include "support/conformance.hpp"
#include "support/rows.hpp"

namespace support {

/// The product of what broadcasts together.
struct Multiplied {
  template <class T> KOKKOS_FUNCTION T operator()(T x, T y) const { return x * y; }
};

/// Returns what is wrong with the row on this mesh, which has as many axes as the row's, or
/// nothing. Integers, so that results are equal to the last bit.
inline std::string run_row(const std::shared_ptr<MeshCore>& mesh, const Conformance& full) {
  using T = std::int64_t;
  Conformance row = shrunk(full);
  for (int t = 0; t < row.operands.size(); ++t) row.operands[t].type = DType::i64;
  const Terms terms = row.terms();
  const MeshShape& shape = mesh->shape();
  std::vector<DynamicTensor> x;
  std::vector<Whole<T>> whole;
  for (const TensorDesc& desc : row.operands) {
    x.push_back(make_input<T>(mesh, desc, 70 + x.size()));
    whole.push_back(whole_input<T>(desc, shape, 70 + whole.size()));
  }
  Whole<T> expected = whole[0];
  const auto run = [&]() -> DynamicTensor {
    if (row.kind == OperatorKind::reshard) return tessera::reshard(x[0], row.out);
    if (row.kind == OperatorKind::reduce)
      return row.reduction == Reduction::max ? tessera::reduce<Max>(row.equation, x[0], row.out)
                                             : tessera::reduce<Sum>(row.equation, x[0], row.out);
    if (row.kind == OperatorKind::arg) return argmax(row.equation, x[0], row.out);
    if (row.kind == OperatorKind::transpose) return tessera::transpose(row.equation, x[0]);
    if (row.kind == OperatorKind::map)
      return map_dynamic<T>(row.equation, Multiplied{}, row.out, x[0], x[1]);
    if (x.size() == 3) return tessera::einsum(row.equation, {x[0], x[1], x[2]}, row.out);
    return tessera::einsum(row.equation, x[0], x[1], row.out);
  };
  if (row.kind == OperatorKind::einsum) expected = support::einsum(terms, whole);
  if (row.kind == OperatorKind::reduce) expected = support::reduce(terms, row.reduction, whole[0]);
  if (row.kind == OperatorKind::arg) expected = support::arg(terms, row.reduction, whole[0]);
  if (row.kind == OperatorKind::transpose) expected = support::transpose(terms, whole[0]);
  if (row.kind == OperatorKind::map)
    expected = support::map<T>(terms, whole, [](const std::vector<T>& v) { return v[0] * v[1]; });

  const std::string label = row.name + " on " + describe(shape) + ": ";
  const std::vector<Plan> plans = plans_of(row, shape, mesh->process(), plan_options(*mesh));
  if (plans.size() == 1) return Trial<T>(mesh, label)(run, plans[0], expected, 0);
  mesh->ledger().reset();
  const DynamicTensor y = run();
  Index payload = 0;
  for (const Plan& plan : plans) payload += plan.own_payload_bytes();
  if (mesh->ledger().payload_bytes() != payload) return label + "the ledger differs from the plans";
  if (!(y.sharding() == row.out)) return label + "the result is sharded otherwise";
  const std::string differs = difference(to_host<T>(y).values, expected.values, 0);
  return differs.empty() ? "" : label + differs;
}

}  // namespace support
