// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The verbs of sliding windows: the join of the elements under each, its gradient where a window
/// selects one, and the gradient of that.
///
///     step.is<step::ReduceWindow>()
///
/// Laws: each counts one operation for each element under each window.
#include <tessera/plan/work/instruction.hpp>
#include <tessera/plan/work/window_work.hpp>

namespace tessera::step {

struct OfWindows : Verb {
  constexpr Index flops(const Plan& plan, const Step& step, const Coordinates& at) const {
    const TensorDesc& out = plan.slots[step.out].desc;
    Index under = detail::block_volume(out.extents, out.sharding, plan.mesh, at);
    for (const Window& w : plan.windows) under = detail::saturating_mul(under, w.size);
    return under;
  }
};
struct ReduceWindow : OfWindows {
  static constexpr std::string_view name = "reduce-window";
  static constexpr bool reads_gaps = true;
  detail::LocalReduceWindow work(const Plan& plan, const Step& step, const Coordinates& at) const {
    return detail::reduce_window_work(plan, step, at);
  }
};
struct SelectAndGather : OfWindows {
  static constexpr std::string_view name = "select and gather";
  detail::LocalReduceWindow work(const Plan& plan, const Step& step, const Coordinates& at) const {
    return detail::reduce_window_work(plan, step, at);
  }
};
struct SelectAndScatter : OfWindows {
  static constexpr std::string_view name = "select and scatter";
  /// What each window selects.
  constexpr Index scratch(const Plan& plan, const Step& step, const Coordinates& at) const {
    return detail::saturating_mul(volume(detail::select_work(plan, step, at).source), 8);
  }
  detail::LocalSelectScatter work(const Plan& plan, const Step& step, const Coordinates& at) const {
    return detail::select_work(plan, step, at);
  }
};

}  // namespace tessera::step
