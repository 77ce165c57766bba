// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The verbs of an exact sum (plan/work/bin_format.hpp): the exponent of a row's largest magnitude,
/// the row's sum as integers, and these back to an element.
///
///     step.is<step::Bins>()
#include <tessera/plan/work/instruction.hpp>
#include <tessera/plan/work/row_work.hpp>

namespace tessera::step {

struct Exponent : Verb {
  static constexpr std::string_view name = "exponent";
  static constexpr Operations operations = Operations::read;
  static constexpr bool reads_gaps = true;
  detail::LocalBins work(const Plan& plan, const Step& step, const Coordinates& at) const {
    return detail::bins_work(plan, step, false, at);
  }
};
struct Bins : Verb {
  static constexpr std::string_view name = "bins";
  static constexpr bool reads_gaps = true;
  /// Two operations for each limb of each element.
  constexpr Index flops(const Plan& plan, const Step& step, const Coordinates& at) const {
    const TensorDesc& first = plan.slots[step.in[0]].desc;
    return detail::saturating_mul(
        detail::saturating_mul(2, plan.slots[step.out].desc.extents.back()),
        detail::block_volume(first.extents, first.sharding, plan.mesh, at));
  }
  detail::LocalBins work(const Plan& plan, const Step& step, const Coordinates& at) const {
    return detail::bins_work(plan, step, false, at);
  }
};
struct Unbin : Verb {
  static constexpr std::string_view name = "unbin";
  static constexpr Operations operations = Operations::read;
  detail::LocalBins work(const Plan& plan, const Step& step, const Coordinates& at) const {
    return detail::bins_work(plan, step, true, at);
  }
};

}  // namespace tessera::step
