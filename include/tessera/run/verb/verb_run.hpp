// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What a verb's kernel is given when it runs. The header that has a verb's kernel says so, once:
/// run/detail/ for those of several operators, else the operator's own.
///
///     inline const bool find_runs = detail::runs(detail::kernel_of_verb<step::Find>, [](const detail::VerbRun& run) {
///       tessera::detail::find(run.type(), run.work<LocalFind>(), run.in(0), run.in(1), run.out());
///     });
///
/// Laws: the kernels of verbs do not change after main has begun.
#include <array>
#include <cstddef>
#include <variant>

#include <tessera/base/error.hpp>
#include <tessera/kernel/product/product_table.hpp>
#include <tessera/plan/work/instruction.hpp>
#include <tessera/run/copy_between.hpp>
#include <tessera/run/extras.hpp>

namespace tessera::detail {

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

struct VerbRun {
  const Plan& plan;
  const KernelCall& kernel;
  const Extras& extras;
  double scale;  ///< the factor of a sum
  const ProductTable& products;
  KernelData at;

  const Step& step() const { return plan.steps[kernel.step]; }
  const Slot& made() const { return plan.slots[step().out]; }
  const void* in(int k) const { return at.in[static_cast<std::size_t>(k)]; }
  /// Returns the memory of a further output; those follow the inputs.
  void* also(int k) const { return const_cast<void*>(in(step().in.size() + k)); }
  void* out() const { return at.out; }
  /// Returns the element type of the first input, and whether the output has another.
  DType type() const { return at.types[0]; }
  bool wide() const { return made().desc.type != type(); }
  /// Returns the elements of the output.
  Index elements() const { return made().bytes / static_cast<Index>(size_of(made().desc.type)); }
  template <class Work> const Work& work() const { return *std::get_if<Work>(&kernel.work); }
};

/// Sets what carries out the steps of a verb; returns true.
inline bool runs(RunKernel& verb, RunKernel kernel) {
  verb = kernel;
  return true;
}

}  // namespace tessera::detail
