// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The kernels of the verbs that plans of every operator have: products, reductions, maps, and
/// changes of type.
///
///     kernel_of_verb<step::Contract>(run);    // run.out() of run.in(0) and run.in(1)
///
/// Laws: see run/verb/verb_run.hpp.
#include <cstdint>

#include <tessera/kernel/narrow.hpp>
#include <tessera/kernel/product/gemm.hpp>
#include <tessera/kernel/reduce.hpp>
#include <tessera/plan/step/create.hpp>
#include <tessera/run/verb/verb_run.hpp>

namespace tessera::detail {

inline void contract(const ContractionWork& work, DType type, const void* a, const void* b, void* c,
                     bool adds, bool wide, const ProductTable& products) {
  const auto at = [&](const void* data, Index elements) {
    return static_cast<const char*>(data) + elements * static_cast<Index>(size_of(type));
  };
  for (int panel = 0; panel < work.k_panels; ++panel) {
    const void* first = at(a, panel * work.k_step_a);
    const void* second = at(b, panel * work.k_step_b);
    tessera::detail::gemm(type, work.gemm, work.swapped ? second : first,
                          work.swapped ? first : second, c, panel > 0 || adds ? 1 : 0, wide,
                          &products);
  }
}

inline const bool contract_runs = runs(kernel_of_verb<step::Contract>, [](const VerbRun& run) {
  tessera::detail::contract(run.work<ContractionWork>(), run.type(), run.in(0), run.in(1),
                            run.out(), run.kernel.adds, run.wide(), run.products);
});
inline const bool reduce_runs = runs(kernel_of_verb<step::Reduce>, [](const VerbRun& run) {
  const auto& work = run.work<LocalReduce>();
  const DType type = run.type();
  tessera::detail::reduce(type, run.plan.reduction, work, run.in(0), run.out(), run.scale,
                          run.wide());
  if (run.plan.kind == OperatorKind::scan && run.plan.reduction == Reduction::sum &&
      (is_real(type) || is_complex(type)))
    tessera::detail::sign_zero_sums(type, work, run.in(0), run.out(), run.wide());
});
inline const bool map_runs = runs(kernel_of_verb<step::Map>, [](const VerbRun& run) {
  const MapKernel& f = run.extras.kernel;
  const auto apply = run.type() == DType::f32 && f.run_wide != nullptr ? f.run_wide : f.run;
  apply(f.context, run.work<LocalMap>(), run.out(), run.at.in.data());
});
inline const bool round_runs = runs(kernel_of_verb<step::Round>, [](const VerbRun& run) {
  tessera::detail::narrow(run.made().desc.type, run.in(0), run.out(), run.elements());
});
inline const bool widen_runs = runs(kernel_of_verb<step::Widen>, [](const VerbRun& run) {
  if (is_short(run.type()))
    return tessera::detail::widen(run.type(), run.in(0), run.out(), run.elements());
  convert_elements<std::int32_t, std::int64_t>(
      run.in(0), run.out(), run.made().bytes / static_cast<Index>(sizeof(std::int64_t)));
});

/// Lets the user's function write a block.
inline void make_block(const Plan& plan, const Slot& made, const MapKernel& kernel, void* out) {
  if (kernel.make == nullptr) return;
  const TensorDesc& desc = made.desc;
  kernel.make(kernel.context,
              block(desc.extents, desc.sharding, plan.mesh, plan.mesh.coordinates(plan.process)),
              desc.extents, out);
}
inline const bool create_runs = runs(kernel_of_verb<step::Create>, [](const VerbRun& run) {
  make_block(run.plan, run.made(), run.extras.kernel, run.out());
});

}  // namespace tessera::detail
