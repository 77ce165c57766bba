// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The kernels of a list: from a kernel's description to its function. run/execute.hpp moves and
/// copies.
///
///     detail::compute(plan, kernel, extras, scale, memory, mesh.products());
#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>

#include <tessera/kernel/bins.hpp>
#include <tessera/kernel/convolve/convolve.hpp>
#include <tessera/kernel/copy/copy.hpp>
#include <tessera/kernel/find.hpp>
#include <tessera/kernel/gemm.hpp>
#include <tessera/kernel/moments.hpp>
#include <tessera/kernel/narrow.hpp>
#include <tessera/kernel/normalize.hpp>
#include <tessera/kernel/one_hot.hpp>
#include <tessera/kernel/reduce.hpp>
#include <tessera/kernel/reduce_window.hpp>
#include <tessera/kernel/scan.hpp>
#include <tessera/kernel/scatter.hpp>
#include <tessera/kernel/select_scatter.hpp>
#include <tessera/kernel/softmax.hpp>
#include <tessera/kernel/sort/arrange.hpp>
#include <tessera/kernel/sort/merge.hpp>
#include <tessera/kernel/sort/sort.hpp>
#include <tessera/kernel/take.hpp>
#include <tessera/plan/work/indexed_work.hpp>
#include <tessera/plan/work/instruction.hpp>
#include <tessera/run/copy_between.hpp>
#include <tessera/run/extras.hpp>

namespace tessera {

namespace detail {

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

/// The memory of a kernel's inputs and output, with the element types of the inputs.
struct KernelData {
  std::array<const void*, KernelCall::most_inputs> in{};
  std::array<DType, KernelCall::most_inputs> types{};
  void* out = nullptr;
  void* scratch = nullptr;

  KernelData(const Plan& plan, const KernelCall& kernel, const Side* all) {
    const auto at = [&](MemoryNumber memory, int k) -> void* {
      void* const begin = all[memory].data;
      const Index offset = kernel.offsets.empty() ? 0 : kernel.offsets[static_cast<std::size_t>(k)];
      return offset == 0 || begin == nullptr
                 ? begin
                 : static_cast<std::byte*>(begin) +
                       offset * static_cast<Index>(size_of(type_of(plan, kernel, memory)));
    };
    for (int k = 0; k < kernel.in.size(); ++k) {
      in[static_cast<std::size_t>(k)] = at(kernel.in[k], k);
      types[static_cast<std::size_t>(k)] = type_of(plan, kernel, kernel.in[k]);
    }
    if (kernel.out != no_memory) out = at(kernel.out, kernel.in.size());
    if (kernel.scratch != no_memory) scratch = all[kernel.scratch].data;
  }
  /// Buffers of a loop hold elements of the plan's first operand.
  /// Blocks that travel have the type of the step's operands, or of its result.
  static DType type_of(const Plan& plan, const KernelCall& kernel, MemoryNumber memory) {
    const Step& step = plan.steps[kernel.step];
    const int other = memory == kernel.out ? step.out : step.in[0];
    return plan.slots[memory < Plan::max_slots ? memory : other].desc.type;
  }
};

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

/// Carries out a kernel whose indices or beginnings are known only when it runs.
inline void compute_indexed(const Plan& plan, const KernelCall& kernel, const Extras& extras,
                            const KernelData& at) {
  const Step& step = plan.steps[kernel.step];
  const Slot& made = plan.slots[step.out];
  const DType type = made.desc.type;
  const Index elements = made.bytes / static_cast<Index>(size_of(type));
  const void* const* data = at.in.data();
  switch (kernel.kind) {
    case StepKind::take: {
      const auto& work = *std::get_if<LocalIndexed>(&kernel.work);
      const IndexInputs indices(work, at, 1);
      return tessera::detail::take(type, work, data[0], indices.data.data(), indices.types.data(),
                                   plan.reduction, at.out);
    }
    case StepKind::scatter: {
      const auto& work = *std::get_if<LocalScatter>(&kernel.work);
      const IndexInputs indices(work.rows, at, scatters_into(plan, step) ? 1 : 0);
      return tessera::detail::scatter(type, plan.reduction, work, data[0], indices.data.data(),
                                      indices.types.data(), data[step.in.size() - 1], at.scratch,
                                      at.out);
    }
    case StepKind::one_hot:
      return tessera::detail::one_hot(type, *std::get_if<LocalOneHot>(&kernel.work), data[0],
                                      at.types[0], at.out);
    case StepKind::slide: {
      const StridedCopy part =
          slide_copy(*std::get_if<LocalSlide>(&kernel.work), *extras.starts, false);
      if (volume(part.extents) != elements) fill_neutral(type, plan.reduction, at.out, elements);
      return copy(type, data[0], at.out, &part, 1);
    }
    case StepKind::put: {
      const StridedCopy part =
          slide_copy(*std::get_if<LocalSlide>(&kernel.work), *extras.starts, true);
      const StridedCopy rest{{elements}, 0, {1}, 0, {1}};
      if (data[0] != at.out) copy(type, data[0], at.out, &rest, 1);
      return copy(type, data[1], at.out, &part, 1);
    }
    default:
      return;
  }
}

/// Merges two messages into the tensors of a step.
inline void compute_merge(const Plan& plan, const KernelCall& kernel, const KernelData& at) {
  const auto& work = *std::get_if<MergeWork>(&kernel.work);
  const auto in = [](const void* message, Index bytes) {
    return static_cast<const std::byte*>(message) + bytes;
  };
  MergeRuns runs;
  for (int k = 0; k < work.tensors.size(); ++k) {
    const MergedTensor& tensor = work.tensors[k];
    runs.add(in(at.in[0], tensor.own), in(at.in[1], tensor.other),
             const_cast<void*>(at.in[static_cast<std::size_t>(k + 2)]), size_of(tensor.type));
  }
  tessera::detail::merge(plan.slots[plan.steps[kernel.step].in[0]].desc.type, work.lines, runs);
}

/// Normalizes rows: the inputs of the step are x, its scale, perhaps a bias, and then what is known
/// of the rows. (A bias has the letter of the scale, which no row has.)
inline void normalize_rows(const Plan& plan, const KernelCall& kernel, double over_n,
                           const KernelData& at) {
  const Step& step = plan.steps[kernel.step];
  const auto& lines = *std::get_if<LocalScan>(&kernel.work);
  LocalNormalize work{lines.outer, lines.n, step.epsilon, step.centred};
  work.biased =
      step.in.size() > 2 && plan.slots[step.in[2]].labels == plan.slots[step.in[1]].labels;
  work.known = step.in.size() > (work.biased ? 3 : 2);
  NormalizeMemory rows{.x = at.in[0], .scale = at.in[1], .y = at.out};
  std::size_t k = 2;
  if (work.biased) rows.bias = at.in[k++];
  if (work.known) rows.known_variance = at.in[k++];
  if (work.known && work.centred) rows.known_mean = at.in[k++];
  rows.inverse = const_cast<void*>(at.in[k++]);  // and what else it writes
  if (!work.known && work.centred) rows.mean = const_cast<void*>(at.in[k]);
  tessera::detail::normalize(at.types[0], work, over_n, rows);
}

/// Lets the user's function write a block.
inline void make_block(const Plan& plan, const Slot& made, const MapKernel& kernel, void* out) {
  if (kernel.make == nullptr) return;
  const TensorDesc& desc = made.desc;
  kernel.make(kernel.context,
              block(desc.extents, desc.sharding, plan.mesh, plan.mesh.coordinates(plan.process)),
              desc.extents, out);
}

/// Carries out a kernel of a list; `scale`: the factor of a sum.
inline void compute(const Plan& plan, const KernelCall& kernel, const Extras& extras, double scale,
                    const Side* memory, const ProductTable& products) {
  const KernelData at(plan, kernel, memory);
  const void *const in = at.in[0], *const second = at.in[1];
  void* const out = at.out;
  const Slot& made = plan.slots[plan.steps[kernel.step].out];
  const DType type = at.types[0];
  const bool wide = made.desc.type != type;  // of a reduction or a product
  const auto* integers = static_cast<const std::int64_t*>(second);
  switch (kernel.kind) {
    case StepKind::contract:
      return contract(*std::get_if<ContractionWork>(&kernel.work), type, in, second, out,
                      kernel.adds, wide, products);
    case StepKind::reduce: {
      const LocalReduce& work = *std::get_if<LocalReduce>(&kernel.work);
      tessera::detail::reduce(type, plan.reduction, work, in, out, scale, wide);
      if (plan.kind == OperatorKind::scan && plan.reduction == Reduction::sum &&
          (is_real(type) || is_complex(type)))
        tessera::detail::sign_zero_sums(type, work, in, out, wide);
      return;
    }
    case StepKind::moments: {  // with a mean that is known, or one to write, or neither
      const Step& step = plan.steps[kernel.step];
      void* const mean = step.also.empty() ? nullptr : const_cast<void*>(at.in[1]);
      return tessera::detail::moments(type, *std::get_if<LocalReduce>(&kernel.work), in,
                                      step.in.size() > 1 ? second : nullptr, scale, mean, out,
                                      step.centred);
    }
    case StepKind::normalize:
      return normalize_rows(plan, kernel, scale, at);
    case StepKind::round:
      return tessera::detail::narrow(made.desc.type, in, out,
                                     made.bytes / static_cast<Index>(size_of(made.desc.type)));
    case StepKind::find:
      if (kernel.in.size() == 1)
        return tessera::detail::find_extreme(type, plan.reduction,
                                             *std::get_if<LocalFind>(&kernel.work), in, at.scratch,
                                             static_cast<std::int64_t*>(out));
      return tessera::detail::find(type, *std::get_if<LocalFind>(&kernel.work), in, second,
                                   static_cast<std::int64_t*>(out));
    case StepKind::fold:
      return extras.kernel.fold(extras.kernel.context, *std::get_if<LocalScan>(&kernel.work), in,
                                out);
    case StepKind::scan:
      if (plan.reduction == Reduction::none)
        return extras.kernel.scan(extras.kernel.context, *std::get_if<LocalScan>(&kernel.work), in,
                                  second, out);
      return tessera::detail::scan(type, plan.reduction, *std::get_if<LocalScan>(&kernel.work), in,
                                   second, out, wide);
    case StepKind::exp_sum:
      return tessera::detail::exp_sums(type, *std::get_if<LocalScan>(&kernel.work), in, second,
                                       out);
    case StepKind::softmax:
    case StepKind::log_softmax:
      return tessera::detail::softmax(type, kernel.kind == StepKind::log_softmax,
                                      *std::get_if<LocalScan>(&kernel.work), in, second, at.in[2],
                                      out);
    case StepKind::communicate:
      return compute_merge(plan, kernel, at);
    case StepKind::sort:
      return tessera::detail::sort(type, *std::get_if<LocalSort>(&kernel.work), in, out,
                                   at.scratch);
    case StepKind::order:
      return tessera::detail::order(type, *std::get_if<LocalSort>(&kernel.work), in, second, out,
                                    at.scratch);
    case StepKind::arrange:
      return tessera::detail::arrange(type, *std::get_if<LocalSort>(&kernel.work), in, second, out);
    case StepKind::widen:
      if (is_short(type))
        return tessera::detail::widen(type, in, out,
                                      made.bytes / static_cast<Index>(size_of(made.desc.type)));
      return convert_elements<std::int32_t, std::int64_t>(
          in, out, made.bytes / static_cast<Index>(sizeof(std::int64_t)));
    case StepKind::exponent:
      return tessera::detail::exponents(type, *std::get_if<LocalBins>(&kernel.work), in,
                                        static_cast<std::int64_t*>(out));
    case StepKind::bins:
      return tessera::detail::bins(type, *std::get_if<LocalBins>(&kernel.work), in, integers,
                                   static_cast<std::int64_t*>(out));
    case StepKind::unbin:
      return tessera::detail::unbin(made.desc.type, *std::get_if<LocalBins>(&kernel.work),
                                    scale != 1, static_cast<const std::int64_t*>(in), integers,
                                    out);
    case StepKind::map: {
      const MapKernel& f = extras.kernel;
      const auto run = type == DType::f32 && f.run_wide != nullptr ? f.run_wide : f.run;
      return run(f.context, *std::get_if<LocalMap>(&kernel.work), out, at.in.data());
    }
    case StepKind::create:
      return make_block(plan, made, extras.kernel, out);
    case StepKind::convolve:
      return tessera::detail::convolve(type, *std::get_if<LocalConvolve>(&kernel.work), in, second,
                                       out,
                                       extras.portable ? Convolver::portable : Convolver::fastest);
    case StepKind::reduce_window:
      return tessera::detail::reduce_window(
          type, plan.reduction, *std::get_if<LocalReduceWindow>(&kernel.work), in, out, scale);
    case StepKind::select_and_scatter:
      return tessera::detail::select_and_scatter(type, plan.reduction == Reduction::max,
                                                 *std::get_if<LocalSelectScatter>(&kernel.work), in,
                                                 second, at.scratch, out);
    case StepKind::select_and_gather:
      return tessera::detail::select_and_gather(type, plan.reduction == Reduction::max,
                                                *std::get_if<LocalReduceWindow>(&kernel.work), in,
                                                second, out);
    default:  // else it moves or copies
      return compute_indexed(plan, kernel, extras, at);
  }
}

}  // namespace detail
}  // namespace tessera
