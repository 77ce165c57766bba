// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The verb that finds the position of a row's largest or least element.
///
///     step.is<step::Find>()          // of a row alone, or of a row and its extreme value
///
/// Laws: without an extreme value it needs memory for that of each row.
#include <tessera/plan/work/instruction.hpp>
#include <tessera/plan/work/row_work.hpp>

namespace tessera::step {

struct Find : Verb {
  static constexpr std::string_view name = "find";
  static constexpr Operations operations = Operations::read;
  static constexpr bool reads_gaps = true;
  constexpr Index scratch(const Plan& plan, const Step& step, const Coordinates& at) const {
    if (step.in.size() > 1) return 0;
    const TensorDesc& out = plan.slots[step.out].desc;
    return saturating_mul(detail::block_volume(out.extents, out.sharding, plan.mesh, at),
                          static_cast<Index>(size_of(plan.slots[step.in[0]].desc.type)));
  }
  detail::LocalFind work(const Plan& plan, const Step& step, const Coordinates& at) const {
    return detail::find_work(plan.slots[step.in[0]], plan.slots[step.out], plan, at);
  }
};

}  // namespace tessera::step
