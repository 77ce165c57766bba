// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A named region of the run for the loaded Kokkos Tools library, if there is one.
///
///     const ToolRegion region([] { return std::string("tessera::einsum ij,jk->ik"); });
///
/// Laws: regions nest, also when an exception is thrown; without a tool no name is made.
#include <Kokkos_Core.hpp>

namespace tessera::detail {

class ToolRegion {
 public:
  /// Opens the region that name() returns, a string, unless `on` is false.
  template <class Name>
  explicit ToolRegion(const Name& name, bool on = true)
      : open_(on && Kokkos::Tools::profileLibraryLoaded()) {
    if (open_) Kokkos::Tools::pushRegion(name());
  }
  ToolRegion(const ToolRegion&) = delete;
  ToolRegion& operator=(const ToolRegion&) = delete;
  ~ToolRegion() {
    if (open_) Kokkos::Tools::popRegion();
  }

 private:
  bool open_;
};

}  // namespace tessera::detail
