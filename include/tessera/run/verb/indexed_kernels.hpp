// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The kernels of verbs whose indices or beginnings are known only when they run.
///
///     kernel_of_verb<step::Take>(run);        // rows of run.in(0) at run.in(1) into run.out()
///
/// Laws: see run/verb/verb_run.hpp.
#include <array>
#include <cstddef>

#include <tessera/kernel/copy/copy.hpp>
#include <tessera/kernel/indexed/one_hot.hpp>
#include <tessera/kernel/indexed/scatter.hpp>
#include <tessera/kernel/indexed/take.hpp>
#include <tessera/plan/step/indexed.hpp>
#include <tessera/run/verb/verb_run.hpp>

namespace tessera::detail {

/// Where the indices of each indexed letter begin: the tensors of indices are the inputs of a step
/// from `first` on.
struct IndexInputs {
  std::array<const void*, max_indices> data{};
  std::array<DType, max_indices> types{};
  IndexInputs(const LocalIndexed& work, const KernelData& of, int first) {
    for (int k = 0; k < work.indices.size(); ++k) {
      const auto from = static_cast<std::size_t>(first + work.indices[k].tensor);
      const auto to = static_cast<std::size_t>(k);
      const auto* const begin = static_cast<const std::byte*>(of.in[from]);
      types[to] = of.types[from];
      if (begin != nullptr) data[to] = begin + work.indices[k].offset * size_of(types[to]);
    }
  }
};

inline const bool take_runs = runs(kernel_of_verb<step::Take>, [](const VerbRun& run) {
  const auto& work = run.work<LocalIndexed>();
  const IndexInputs indices(work, run.at, 1);
  tessera::detail::take(run.made().desc.type, work, run.in(0), indices.data.data(),
                        indices.types.data(), run.plan.reduction, run.out());
});
inline const bool scatter_runs = runs(kernel_of_verb<step::Scatter>, [](const VerbRun& run) {
  const auto& work = run.work<LocalScatter>();
  const IndexInputs indices(work.rows, run.at, scatters_into(run.plan, run.step()) ? 1 : 0);
  tessera::detail::scatter(run.made().desc.type, run.plan.reduction, work, run.in(0),
                           indices.data.data(), indices.types.data(),
                           run.in(run.step().in.size() - 1), run.at.scratch, run.out());
});
inline const bool one_hot_runs = runs(kernel_of_verb<step::OneHot>, [](const VerbRun& run) {
  tessera::detail::one_hot(run.made().desc.type, run.work<LocalOneHot>(), run.in(0),
                           run.at.types[0], run.out());
});
inline const bool slide_runs = runs(kernel_of_verb<step::Slide>, [](const VerbRun& run) {
  const DType type = run.made().desc.type;
  const StridedCopy part = slide_copy(run.work<LocalSlide>(), *run.extras.starts, false);
  if (volume(part.extents) != run.elements())
    fill_neutral(type, run.plan.reduction, run.out(), run.elements());
  copy(type, run.in(0), run.out(), &part, 1);
});
inline const bool put_runs = runs(kernel_of_verb<step::Put>, [](const VerbRun& run) {
  const DType type = run.made().desc.type;
  const StridedCopy part = slide_copy(run.work<LocalSlide>(), *run.extras.starts, true);
  const StridedCopy rest{{run.elements()}, 0, {1}, 0, {1}};
  if (run.in(0) != run.out()) copy(type, run.in(0), run.out(), &rest, 1);
  copy(type, run.in(1), run.out(), &part, 1);
});

}  // namespace tessera::detail
