// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The verbs of a sort: each line in order; the positions of its elements in order; and a line in
/// the order given by positions.
///
///     step.set(step::Order{{.along = 1, .descending = true}});
///
/// Laws: positions count from the beginning of the whole line.
#include <tessera/plan/work/instruction.hpp>
#include <tessera/plan/work/sort_work.hpp>

namespace tessera::detail {
constexpr Index sort_scratch(const LocalSort& work, const Plan& plan, const Step& step) {
  return work.scratch_bytes(static_cast<Index>(size_of(plan.slots[step.in[0]].desc.type)),
                            step.in.size() > 1);
}
}  // namespace tessera::detail

namespace tessera::step {

struct Sort : Verb {
  static constexpr std::string_view name = "sort";
  std::int8_t along = -1;
  bool descending = false;
  /// One operation for each comparison.
  constexpr Index flops(const Plan& plan, const Step& step, const Coordinates& at) const {
    const Slot &first = plan.slots[step.in[0]], &out = plan.slots[step.out];
    const auto length = [&](const Slot& slot) {
      return block(slot.desc.extents[along], slot.desc.sharding[along], plan.mesh, at).size();
    };
    return detail::comparisons(
        detail::block_volume(first.desc.extents, first.desc.sharding, plan.mesh, at), length(first),
        length(out));
  }
  constexpr Index scratch(const Plan& plan, const Step& step, const Coordinates& at) const {
    return detail::sort_scratch(work(plan, step, at), plan, step);
  }
  constexpr detail::LocalSort work(const Plan& plan, const Step& step,
                                   const Coordinates& at) const {
    return detail::sort_work(plan, step, along, descending, -1, at);
  }
  template <class Self, class Visit> static constexpr void members(Self& self, const Visit& visit) {
    visit(self.along);
    visit(self.descending);
  }
};
struct Order : Sort {
  static constexpr std::string_view name = "order";
  constexpr Index scratch(const Plan& plan, const Step& step, const Coordinates& at) const {
    return detail::sort_scratch(work(plan, step, at), plan, step);
  }
  constexpr detail::LocalSort work(const Plan& plan, const Step& step,
                                   const Coordinates& at) const {
    return detail::sort_work(plan, step, along, descending, step.out, at);
  }
};
struct Arrange : Verb {
  static constexpr std::string_view name = "arrange";
  static constexpr Operations operations = Operations::made;
  std::int8_t along = -1;
  bool descending = false;
  constexpr detail::LocalSort work(const Plan& plan, const Step& step,
                                   const Coordinates& at) const {
    return detail::sort_work(plan, step, along, descending, step.in.back(), at);
  }
  template <class Self, class Visit> static constexpr void members(Self& self, const Visit& visit) {
    visit(self.along);
    visit(self.descending);
  }
};

}  // namespace tessera::step
