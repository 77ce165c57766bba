// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Deep halos: one exchange for several steps of a stencil, in which each process also updates the
/// neighbours' elements that it will need. This saves messages and duplicates work.
///
///     const Halo halo{{1, 1, Boundary::periodic}, {1, 1, Boundary::periodic}};
///     const TensorDesc x{DType::f64, {512, 512}, Sharding{{0}, {1}}};
///     const DeepHalo d = plan_deep_halo(x, halo, 4, 6, mesh, process);     // 4 steps, 6 flop each
///     explain(d, {"a", "b"})         // the exchange; messages and payload a step, redundant flop
///     best_depth(x, halo, 6, 16, mesh)                    // the number of steps that costs least
///
/// Step j of k updates the process's own block and (k - 1 - j) halo widths around it: all of the
/// tensor's elements there, also across a periodic border, and mirror images (correct for stencils
/// that are symmetric under mirroring). A constant outside stays as it is. By default the exchange
/// is in place (op/halo/halo_tensor.hpp).
///
/// Laws: one step is an exchange in place; an update is redundant when the process does not own the
/// element.
#include <string>

#include <tessera/plan/op/halo/halo_exchange.hpp>
#include <tessera/program/explain.hpp>

namespace tessera {

/// Several steps from one exchange, on one process.
struct DeepHalo {
  Index steps = 1;
  Plan plan;            ///< of the exchange, steps times as wide as one step needs
  Index updates = 0;    ///< of elements, in all steps together
  Index redundant = 0;  ///< updates of elements that another process owns
  Index flops = 0;
  Index redundant_flops = 0;
  std::int64_t cost = 0;  ///< of exchange and steps by the machine model; the same on every process
};

namespace detail {
/// Returns the halo of `times` steps.
constexpr Halo deepened(Halo halo, Index times) {
  for (HaloDim& d : halo) {
    d.low = saturating_mul(d.low, times);
    d.high = saturating_mul(d.high, times);
  }
  return halo;
}

/// Returns the element updates of a process in `steps` steps after an exchange.
constexpr Index deep_updates(const TensorDesc& x, Halo halo, Index steps, const MeshShape& mesh,
                             int process) {
  for (HaloDim& d : halo)
    if (d.boundary == Boundary::constant) d.boundary = Boundary::none;  // nothing there to update
  const Coordinates at = mesh.coordinates(process);
  Index updates = 0;
  for (Index left = steps - 1; left >= 0; --left)
    updates = saturating_add(
        updates, needed(halo_region(x.extents, x.sharding, deepened(halo, left)), mesh, at).size());
  return updates;
}
}  // namespace detail

/// Plans `steps` steps from one exchange; `flops`: the operations of one element's update.
/// Preconditions: steps >= 1; check_halo() of the deepened halo is ok.
constexpr DeepHalo plan_deep_halo(const TensorDesc& x, const Halo& halo, Index steps, Index flops,
                                  const MeshShape& mesh, int process = 0,
                                  const PlanOptions& options = {},
                                  const HaloOptions& how = {Corners::cheaper, true}) {
  DeepHalo deep;
  deep.steps = steps;
  deep.plan = detail::plan_halo(x, detail::deepened(halo, steps), mesh, process, options, how);
  deep.updates = detail::deep_updates(x, halo, steps, mesh, process);
  deep.redundant =
      deep.updates - detail::saturating_mul(steps, detail::block_volume(x.extents, x.sharding, mesh,
                                                                        mesh.coordinates(process)));
  deep.flops = detail::saturating_mul(deep.updates, flops);
  deep.redundant_flops = detail::saturating_mul(deep.redundant, flops);
  Index most = 0;
  for (const int other : {0, mesh.processes() / 2})
    most = max_of(most, detail::deep_updates(x, halo, steps, mesh, other));
  deep.cost = detail::saturating_add(
      deep.plan.cost,
      options.machine.work(detail::saturating_mul(most, flops),
                           detail::saturating_mul(most, 2 * static_cast<Index>(size_of(x.type))),
                           x.type));
  return deep;
}

/// Returns the number of steps, 1 to `most`, from one exchange that costs least per step.
constexpr Index best_depth(const TensorDesc& x, const Halo& halo, Index flops, Index most,
                           const MeshShape& mesh, const PlanOptions& options = {},
                           const HaloOptions& how = {Corners::cheaper, true}) {
  Index best = 1;
  std::int64_t least = max_int64;
  for (Index steps = 1;
       steps <= most && detail::check_halo(x.extents, detail::deepened(halo, steps)).ok();
       ++steps) {
    const std::int64_t cost =
        plan_deep_halo(x, halo, steps, flops, mesh, 0, options, how).cost / steps;
    if (cost < least) {
      least = cost;
      best = steps;
    }
  }
  return best;
}

/// Returns the exchange's plan as text, and a line with the numbers of one step.
inline std::string explain(const DeepHalo& deep, const AxisNames& names) {
  const auto each = [&](Index amount) { return ceil_div(amount, deep.steps); };
  const PlanSpread all = over_processes(deep.plan);
  return explain(deep.plan, names) + "  " + std::to_string(deep.steps) +
         (deep.steps == 1 ? " step: " : " steps from one exchange; a step: ") +
         detail::bytes_text(each(all.payload.most)) + ", " +
         std::to_string(all.messages.most / deep.steps) +
         (all.messages.most % deep.steps == 0
              ? ""
              : "." + std::to_string(all.messages.most % deep.steps * 10 / deep.steps)) +
         " messages, " + detail::flops_text(each(deep.flops)) + " of which " +
         detail::flops_text(each(deep.redundant_flops)) + " redundant, model time " +
         detail::time_text(deep.cost / deep.steps) + "\n";
}
}  // namespace tessera
