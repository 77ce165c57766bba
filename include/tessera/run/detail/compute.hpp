// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The kernels of a list: each is its verb's (run/verb/verb_run.hpp). run/execute.hpp moves and
/// copies.
///
///     detail::compute(plan, kernel, extras, scale, memory, mesh.products());
#include <string>

#include <tessera/run/verb/indexed_kernels.hpp>
#include <tessera/run/verb/plain_kernels.hpp>
#include <tessera/run/verb/row_kernels.hpp>
#include <tessera/run/verb/sort_kernels.hpp>
#include <tessera/run/verb/window_kernels.hpp>

namespace tessera::detail {

/// Carries out a kernel of a list; `scale`: the factor of a sum.
inline void compute(const Plan& plan, const KernelCall& kernel, const Extras& extras, double scale,
                    const Side* memory, const ProductTable& products) {
  const RunKernel run = *kernel.kind.verb().run;
  if (run == nullptr)
    throw UsageError("this program has no kernel for a step of kind \"" +
                     std::string(name_of(kernel.kind)) +
                     "\"; include the header of the operator whose plan has it");
  run({plan, kernel, extras, scale, products, KernelData(plan, kernel, memory)});
}

}  // namespace tessera::detail
