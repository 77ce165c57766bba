// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The steps of a plan that compute: from a step's work to its kernel. run/execute.hpp moves and
/// copies.
///
///     detail::compute(plan, step, work, {scale, kernel}, data);
#include <array>

#include <tessera/kernel/bins.hpp>
#include <tessera/kernel/convolve/convolve.hpp>
#include <tessera/kernel/copy/copy.hpp>
#include <tessera/kernel/find.hpp>
#include <tessera/kernel/gemm.hpp>
#include <tessera/kernel/narrow.hpp>
#include <tessera/kernel/one_hot.hpp>
#include <tessera/kernel/reduce.hpp>
#include <tessera/kernel/reduce_window.hpp>
#include <tessera/kernel/scan.hpp>
#include <tessera/kernel/scatter.hpp>
#include <tessera/kernel/select_scatter.hpp>
#include <tessera/kernel/sort/arrange.hpp>
#include <tessera/kernel/sort/sort.hpp>
#include <tessera/kernel/take.hpp>
#include <tessera/plan/work/indexed_work.hpp>
#include <tessera/plan/work/step_work.hpp>

namespace tessera {

/// The type-erased kernels of a function that the user gives: run(context, map, out, inputs) for a
/// map step, fold and scan for a running join.
struct MapKernel {
  void (*run)(const void* context, const LocalMap& map, void* out, const void* const* in) = nullptr;
  const void* context = nullptr;
  void (*fold)(const void* context, const LocalScan& work, const void* from, void* to) = nullptr;
  void (*scan)(const void* context, const LocalScan& work, const void* from, const void* earlier,
               void* to) = nullptr;
};

namespace detail {

/// What a computing step needs besides a plan and data: the factor of a sum, the function of a map,
/// where a window begins, the memory in which a scatter orders its updates.
struct ComputeExtras {
  double scale = 1;
  MapKernel kernel = {};
  bool portable = false;
  bool begins = false;  ///< only the part that needs no data of the exchange
  bool begun = false;   ///< only the rest, after the exchange
  const Extents* starts = nullptr;
  void* scratch = nullptr;
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

/// The blocks of a step's inputs, with their element types.
struct StepInputs {
  std::array<const void*, max_operands> data{};
  std::array<DType, max_operands> types{};
  StepInputs(const Plan& plan, const Step& step, const std::array<void*, Plan::max_slots>& blocks) {
    for (int k = 0; k < step.in.size(); ++k) {
      data[static_cast<std::size_t>(k)] = blocks[static_cast<std::size_t>(step.in[k])];
      types[static_cast<std::size_t>(k)] = plan.slots[step.in[k]].desc.type;
    }
  }
};

/// Where the indices of each indexed letter begin: the tensors of indices are the inputs of a step
/// from `first` on.
struct IndexInputs {
  std::array<const void*, max_indices> data{};
  std::array<DType, max_indices> types{};
  IndexInputs(const LocalIndexed& work, const StepInputs& in, int first) {
    for (int k = 0; k < work.indices.size(); ++k) {
      const auto from = static_cast<std::size_t>(first + work.indices[k].tensor);
      const auto to = static_cast<std::size_t>(k);
      const auto* const begin = static_cast<const std::byte*>(in.data[from]);
      types[to] = in.types[from];
      if (begin != nullptr) data[to] = begin + work.indices[k].offset * size_of(types[to]);
    }
  }
};

/// Carries out a step whose indices or beginnings are known only when it runs. `in` are the step's
/// inputs in order.
inline void compute_indexed(const Plan& plan, const Step& step, const StepWork& work,
                            const ComputeExtras& extras, const StepInputs& in, void* out) {
  const Slot& made = plan.slots[step.out];
  const DType type = made.desc.type;
  const Index elements = made.bytes / static_cast<Index>(size_of(type));
  const void* const* data = in.data.data();
  switch (step.kind) {
    case StepKind::take: {
      const IndexInputs indices(work.take, in, 1);
      return tessera::take(type, work.take, data[0], indices.data.data(), indices.types.data(),
                           plan.reduction, out);
    }
    case StepKind::scatter: {
      const IndexInputs indices(work.scatter.rows, in, scatters_into(plan, step) ? 1 : 0);
      return tessera::scatter(type, plan.reduction, work.scatter, data[0], indices.data.data(),
                              indices.types.data(), data[step.in.size() - 1], extras.scratch, out);
    }
    case StepKind::one_hot:
      return tessera::one_hot(type, work.one_hot, data[0], in.types[0], out);
    case StepKind::slide: {
      const StridedCopy part = slide_copy(work.slide, *extras.starts, false);
      if (volume(part.extents) != elements) fill_neutral(type, plan.reduction, out, elements);
      return copy(type, data[0], out, &part, 1);
    }
    case StepKind::put: {
      const StridedCopy part = slide_copy(work.slide, *extras.starts, true);
      const StridedCopy rest{{elements}, 0, {1}, 0, {1}};
      if (data[0] != out) copy(type, data[0], out, &rest, 1);
      return copy(type, data[1], out, &part, 1);
    }
    default:
      return;
  }
}

/// Carries out a step that computes; `data` has the block of every slot.
inline void compute(const Plan& plan, const Step& step, const StepWork& work,
                    const ComputeExtras& extras, const std::array<void*, Plan::max_slots>& data) {
  const void* in = data[static_cast<std::size_t>(step.in[0])];
  const void* second = step.in.size() > 1 ? data[static_cast<std::size_t>(step.in[1])] : nullptr;
  void* out = data[static_cast<std::size_t>(step.out)];
  const DType type = plan.slots[step.in[0]].desc.type;
  const bool wide = plan.slots[step.out].desc.type != type;  // of a reduction
  const auto* integers = static_cast<const std::int64_t*>(second);
  switch (step.kind) {
    case StepKind::contract:
      return contract(work.contract, type, in, second, out);
    case StepKind::reduce:
      return tessera::reduce(type, plan.reduction, work.reduce, in, out, extras.scale, wide);
    case StepKind::round: {
      const DType result = plan.slots[step.out].desc.type;
      return tessera::narrow(result, in, out,
                             plan.slots[step.out].bytes / static_cast<Index>(size_of(result)));
    }
    case StepKind::find:
      return tessera::find(type, work.find, in, second, static_cast<std::int64_t*>(out));
    case StepKind::fold:
      return extras.kernel.fold(extras.kernel.context, work.scan, in, out);
    case StepKind::scan:
      if (plan.reduction == Reduction::none)
        return extras.kernel.scan(extras.kernel.context, work.scan, in, second, out);
      return tessera::scan(type, plan.reduction, work.scan, in, second, out, wide);
    case StepKind::sort:
      return tessera::sort(type, work.sort, in, out);
    case StepKind::order:
      return tessera::order(type, work.sort, in, second, out);
    case StepKind::arrange:
      return tessera::arrange(type, work.sort, in, second, out);
    case StepKind::widen:
      return convert_elements<std::int32_t, std::int64_t>(
          in, out, plan.slots[step.out].bytes / static_cast<Index>(sizeof(std::int64_t)));
    case StepKind::exponent:
      return tessera::exponents(type, work.bins, in, static_cast<std::int64_t*>(out));
    case StepKind::bins:
      return tessera::bins(type, work.bins, in, integers, static_cast<std::int64_t*>(out));
    case StepKind::unbin:
      return tessera::unbin(plan.slots[step.out].desc.type, work.bins, extras.scale != 1,
                            static_cast<const std::int64_t*>(in), integers, out);
    case StepKind::map:
      return extras.kernel.run(extras.kernel.context, work.map, out,
                               StepInputs(plan, step, data).data.data());
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
    default:  // else it moves or copies
      return compute_indexed(plan, step, work, extras, StepInputs(plan, step, data), out);
  }
}

}  // namespace detail
}  // namespace tessera
