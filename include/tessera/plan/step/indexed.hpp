// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The verbs whose indices or beginnings are known only when they run: take, scatter, one-hot, and
/// slices whose start the call gives, read and written.
///
///     step.set(step::Take{.out_of_range = OutOfRange::fill});
#include <tessera/plan/work/indexed_work.hpp>
#include <tessera/plan/work/instruction.hpp>

namespace tessera::step {

/// Rows of a table at indices.
struct Take : Verb {
  static constexpr std::string_view name = "take";
  static constexpr bool reads_gaps = true;
  OutOfRange out_of_range = OutOfRange::clamp;
  detail::LocalIndexed work(const Plan& plan, const Step& step, const Coordinates& at) const {
    return detail::take_work(plan, step, out_of_range, at);
  }
  template <class Self, class Visit> static constexpr void members(Self& self, const Visit& visit) {
    visit(self.out_of_range);
  }
};
/// Updates into rows of a table.
struct Scatter : Verb {
  static constexpr std::string_view name = "scatter";
  OutOfRange out_of_range = OutOfRange::clamp;
  constexpr Index flops(const Plan& plan, const Step& step, const Coordinates& at) const {
    const TensorDesc& updates = plan.slots[step.in.back()].desc;
    return detail::block_volume(updates.extents, updates.sharding, plan.mesh, at);
  }
  constexpr Index scratch(const Plan& plan, const Step& step, const Coordinates& at) const {
    return detail::saturating_mul(work(plan, step, at).integers(), 8);
  }
  constexpr detail::LocalScatter work(const Plan& plan, const Step& step,
                                      const Coordinates& at) const {
    return detail::scatter_work(plan, step, out_of_range, at);
  }
  template <class Self, class Visit> static constexpr void members(Self& self, const Visit& visit) {
    visit(self.out_of_range);
  }
};
/// One at the position given by an index.
struct OneHot : Verb {
  static constexpr std::string_view name = "one-hot";
  static constexpr bool reads_gaps = true;
  detail::LocalOneHot work(const Plan& plan, const Step& step, const Coordinates& at) const {
    return detail::one_hot_work(plan, step, at);
  }
};
/// A slice whose start the call gives.
struct Slide : Verb {
  static constexpr std::string_view name = "slide";
  static constexpr bool reads_gaps = true;
  detail::LocalSlide work(const Plan& plan, const Step& step, const Coordinates& at) const {
    return detail::slide_work(plan, step.in[0], step.out, at);
  }
};
/// A slice that is written, whose start the call gives.
struct Put : Verb {
  static constexpr std::string_view name = "put";
  detail::LocalSlide work(const Plan& plan, const Step& step, const Coordinates& at) const {
    return detail::slide_work(plan, step.out, step.in[1], at);
  }
};

}  // namespace tessera::step
