// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Chunks from the memory space of the kernels, which is device memory where they run on a device.
///
///     detail::Arena arena(detail::default_memory());
///
/// Laws: after Kokkos is finalized nothing is given back, since Kokkos could not take it any more.
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <tessera/base/error.hpp>
#include <tessera/comm/detail/closing.hpp>
#include <tessera/comm/memory_source.hpp>
#include <tessera/kernel/lane.hpp>

namespace tessera::detail {

/// Whether the default memory space is host memory, so that MPI's shared memory can hold its
/// blocks.
inline constexpr bool default_memory_is_host = std::is_same_v<KernelMemory, Kokkos::HostSpace>;

class DeviceMemory final : public MemorySource {
 public:
  using Space = KernelMemory;

  void* allocate(Index bytes) override {
    try {
      return Kokkos::kokkos_malloc<Space>("tessera arena", static_cast<std::size_t>(bytes));
    } catch (const std::bad_alloc&) {
      return nullptr;
    } catch (const std::runtime_error&) {  // Kokkos's own exception, with a page of text
      return nullptr;
    }
  }
  void release(void* memory, Index) noexcept override {
    if (Kokkos::is_initialized()) Kokkos::kokkos_free<Space>(memory);
  }
  Index left() const override {
#if defined(KOKKOS_ENABLE_CUDA)
    std::size_t left = 0;
    std::size_t total = 0;
    if (!default_memory_is_host)
      return cudaMemGetInfo(&left, &total) == cudaSuccess ? static_cast<Index>(left) : max_int64;
#endif
    return default_memory_is_host ? memory_left() : max_int64;
  }
};

/// Throws UsageError unless Kokkos is initialized.
inline void require_kokkos(Where where) {
  if (Kokkos::is_finalized())
    throw UsageError(
        "Kokkos has been finalized, and cannot be initialized again; finalize it after the last "
        "mesh "
        "and operator, or leave it to one tessera::Environment, which lives as long as the program "
        "needs it",
        where);
  if (!Kokkos::is_initialized())
    throw UsageError(
        "Kokkos is not initialized, and a mesh computes with it; make a tessera::Environment "
        "first, "
        "which starts MPI and Kokkos, or call Kokkos::initialize; dry meshes and plans need "
        "neither",
        where);
}

/// Closes all open meshes when Kokkos is finalized: Kokkos takes memory back only before that.
inline void close_meshes_with_kokkos() {
  static std::once_flag once;
  if (Kokkos::is_initialized())
    std::call_once(once, [] {
      (void)lane();  // lanes end after the meshes: the last hook runs first
      Kokkos::push_finalize_hook([] {
        Closing::all().reason() =
            "it was closed when Kokkos was finalized, since nothing can be computed after that; "
            "finalize Kokkos after the last operator, or leave it to tessera::Environment";
        Closing::all().run(false);
      });
    });
}

/// Returns the source of the default memory space; the plain heap when that is host memory and
/// Kokkos is not initialized.
inline std::shared_ptr<MemorySource> default_memory() {
  if (default_memory_is_host && !Kokkos::is_initialized()) return std::make_shared<HostMemory>();
  return std::make_shared<DeviceMemory>();
}
}  // namespace tessera::detail
