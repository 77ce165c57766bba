// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The steps of a plan that compute: from a step's work to its kernel. op/execute.hpp moves and
/// copies.
///
///     detail::compute(plan, step, work, {scale, kernel}, data);
#include <array>

#include <tessera/kernel/bins.hpp>
#include <tessera/kernel/convolve.hpp>
#include <tessera/kernel/find.hpp>
#include <tessera/kernel/gemm.hpp>
#include <tessera/kernel/reduce.hpp>
#include <tessera/kernel/reduce_window.hpp>
#include <tessera/kernel/scan.hpp>
#include <tessera/kernel/select_scatter.hpp>
#include <tessera/plan/step_work.hpp>

namespace tessera {

/// The elementwise kernel of a map step, erased: run(context, map, out, inputs).
struct MapKernel {
  void (*run)(const void* context, const LocalMap& map, void* out, const void* const* in) = nullptr;
  const void* context = nullptr;
};

namespace detail {

/// What computing takes besides a plan and data: the factor of a sum, the function of a map.
struct ComputeExtras {
  double scale = 1;
  MapKernel kernel = {};
  bool portable = false;
  bool begins = false;  ///< only what needs nothing of the exchange that is under way
  bool begun = false;   ///< only what is left then
};

inline void contract(const ContractionWork& work, DType type, const void* a, const void* b,
                     void* c) {
  const auto at = [&](const void* data, Index elements) {
    return static_cast<const char*>(data) + elements * static_cast<Index>(size_of(type));
  };
  for (int panel = 0; panel < work.k_panels; ++panel) {
    const void* first = at(a, panel * work.k_step_a);
    const void* second = at(b, panel * work.k_step_b);
    tessera::gemm(type, work.gemm, work.swapped ? second : first, work.swapped ? first : second, c,
                  panel > 0 ? 1 : 0);
  }
}

/// Carries out a step that computes; `data` has the block of every slot.
inline void compute(const Plan& plan, const Step& step, const StepWork& work,
                    const ComputeExtras& extras, const std::array<void*, Plan::max_slots>& data) {
  const void* in = data[static_cast<std::size_t>(step.in[0])];
  const void* second = step.in.size() > 1 ? data[static_cast<std::size_t>(step.in[1])] : nullptr;
  void* out = data[static_cast<std::size_t>(step.out)];
  const DType type = plan.slots[step.in[0]].desc.type;
  const auto* integers = static_cast<const std::int64_t*>(second);
  switch (step.kind) {
    case StepKind::contract:
      return contract(work.contract, type, in, second, out);
    case StepKind::reduce:
      return tessera::reduce(type, plan.reduction, work.reduce, in, out, extras.scale);
    case StepKind::find:
      return tessera::find(type, work.find, in, second, static_cast<std::int64_t*>(out));
    case StepKind::scan:
      return tessera::scan(type, plan.reduction, work.scan, in, second, out);
    case StepKind::exponent:
      return tessera::exponents(type, work.bins, in, static_cast<std::int64_t*>(out));
    case StepKind::bins:
      return tessera::bins(type, work.bins, in, integers, static_cast<std::int64_t*>(out));
    case StepKind::unbin:
      return tessera::unbin(plan.slots[step.out].desc.type, work.bins, extras.scale != 1,
                            static_cast<const std::int64_t*>(in), integers, out);
    case StepKind::map: {
      std::array<const void*, max_operands> inputs{};
      for (int k = 0; k < step.in.size(); ++k)
        inputs[static_cast<std::size_t>(k)] = data[static_cast<std::size_t>(step.in[k])];
      return extras.kernel.run(extras.kernel.context, work.map, out, inputs.data());
    }
    case StepKind::convolve:
      for (const ConvolvePart& part : work.convolve)
        if (part.input == 0 ? !extras.begun : !extras.begins)
          tessera::convolve(type, part.work, data[static_cast<std::size_t>(step.in[part.input])],
                            second, out,
                            extras.portable ? Convolver::portable : Convolver::fastest);
      return;
    case StepKind::reduce_window:
      return tessera::reduce_window(type, plan.reduction, work.reduce_window, in, out,
                                    extras.scale);
    case StepKind::select_and_scatter:
      return tessera::select_and_scatter(type, plan.reduction == Reduction::max, work.select, in,
                                         second, out);
    default:
      return;  // it moves or copies
  }
}

}  // namespace detail
}  // namespace tessera
