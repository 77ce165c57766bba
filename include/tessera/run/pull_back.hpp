// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How the gradient of a function's result becomes that of an operand, for functions whose types
/// have been erased.
///
///     const PullBack back = kernel.pull(kernel.context, 0);
///     // back.slope is Slope::function: back.function of (cotangent, the values back.reads)
///
/// Laws: an OwnedFunction ends with its last copy.
#include <memory>

#include <tessera/kernel/functions/derivative.hpp>
#include <tessera/run/extras.hpp>

namespace tessera::detail {

/// The kernel of a function that lives as long as its owner.
class OwnedFunction {
 public:
  /// Copies the function.
  explicit OwnedFunction(const MapKernel& kernel) : kernel_(kernel) {
    if (kernel.keep != nullptr) kernel_.context = kernel.keep(kernel.context, nullptr);
  }
  OwnedFunction(const OwnedFunction&) = delete;
  OwnedFunction& operator=(const OwnedFunction&) = delete;
  ~OwnedFunction() {
    if (kernel_.keep != nullptr) (void)kernel_.keep(nullptr, const_cast<void*>(kernel_.context));
  }
  const MapKernel& kernel() const { return kernel_; }

 private:
  MapKernel kernel_;
};

struct PullBack {
  bool known = false;  ///< the function has a derivative
  Slope slope = Slope::zero;
  Reads reads = {};
  std::shared_ptr<const OwnedFunction> function =
      nullptr;  ///< of the cotangent and the values read
};

}  // namespace tessera::detail
