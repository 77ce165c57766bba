// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Many cases of operators in a dry run: what is wrong with one, and a count of those that are.
///
///     Tally tally;
///     tally.add(wrong_operator("sum a->", {x}, out, mesh, [&](int p) { return plan_reduce(..., p); }, expected, machine));
///
/// Laws: a tally that ends fails its test if a case was wrong, and prints the first five.
#include <doctest/doctest.h>

#include <functional>

#include "dry_run.hpp"

namespace support {

struct Tally {
  long cases = 0;
  long wrong = 0;
  Tally() = default;
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;
  ~Tally() {
    MESSAGE(cases << " cases");
    CHECK(wrong == 0);
  }
  /// `text`: what is wrong, or nothing.
  void add(const std::string& text) {
    ++cases;
    if (!text.empty() && ++wrong <= 5) MESSAGE(text);
  }
};

/// Checks the laws, the numbers of every process and the result of an operator that make(process)
/// plans. The elements of operand i are those of seed 5 + i; `prepare` sets further inputs.
template <class MakePlan>
std::string wrong_operator(const std::string& name, const tessera::TensorDescs& operands,
                           const tessera::Sharding& out, const tessera::MeshShape& mesh,
                           const MakePlan& make, const Whole<DryRun::Value>& expected,
                           const tessera::Machine& machine,
                           const std::function<void(DryRun&)>& prepare = {}) {
  std::string text, steps, given;
  for (const tessera::TensorDesc& desc : operands) given += ", " + describe(desc, mesh);
  try {
    DryRun dry(make, mesh, machine);
    if (prepare) prepare(dry);
    const tessera::Plan& plan = dry.plan();
    text = dry.broken_law();
    if (text.empty() && plan.result < plan.operands)
      text = "the result is an operand, not a new tensor";
    if (text.empty() && !(plan.result_desc().sharding == out))
      text = "the result is not sharded as was asked";
    std::vector<std::uint64_t> seeds;
    for (int i = 0; i < operands.size(); ++i) seeds.push_back(static_cast<std::uint64_t>(5 + i));
    if (text.empty()) text = dry.wrong_result(seeds, expected);
    for (int p = 0; text.empty() && p < mesh.processes(); ++p)
      if (!(on_process(plan, p) == make(p)))
        text = "told from process 0 the plan is not process " + std::to_string(p) + "'s";
    if (!text.empty()) steps = describe(plan);
  } catch (const std::exception& error) {
    text = error.what();
  }
  return text.empty() ? ""
                      : name + given + " to " + describe(out, mesh) + " on " + describe(mesh) +
                            ": " + text + "\n" + steps;
}

}  // namespace support
