// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Puts the kernels of element types into the program (kernel/elements.hpp). A ShardedTensor does
/// so for its own type; a program that has tensors of a type only as DynamicTensors calls
/// use_element.
///
///     detail::use_element<std::int8_t>();
///     detail::use_all_elements();                 // compiles the kernels of all of them
///
/// Laws: it does not matter where the call stands, nor whether it is reached: compiling it
/// suffices. So a function that calls it is a template, if only by `template <int = dtypes>`: a
/// source that includes it and does not use it compiles none.
#include <cstdint>
#include <type_traits>
#include <utility>

#include <tessera/base/compiled.hpp>
#include <tessera/base/dtype.hpp>
#if TESSERA_KERNELS
#include <tessera/kernel/accumulate.hpp>
#include <tessera/kernel/convolve/convolve.hpp>
#include <tessera/kernel/copy/copy.hpp>
#include <tessera/kernel/elements.hpp>
#include <tessera/kernel/indexed/one_hot.hpp>
#include <tessera/kernel/indexed/scatter.hpp>
#include <tessera/kernel/indexed/take.hpp>
#include <tessera/kernel/join.hpp>
#include <tessera/kernel/narrow.hpp>
#include <tessera/kernel/product/gemm.hpp>
#include <tessera/kernel/reduce.hpp>
#include <tessera/kernel/rows/bins.hpp>
#include <tessera/kernel/rows/find.hpp>
#include <tessera/kernel/rows/scan.hpp>
#include <tessera/kernel/sort/arrange.hpp>
#include <tessera/kernel/sort/merge.hpp>
#include <tessera/kernel/sort/sort.hpp>
#include <tessera/kernel/window/reduce_window.hpp>
#include <tessera/kernel/window/select_scatter.hpp>
#endif

namespace tessera::detail {

// Whether this source compiles kernels (base/compiled.hpp).
#if TESSERA_KERNELS
#define TESSERA_REGISTER(K, T) static_cast<void>(&registered_kernels<K, T>)
#else
#define TESSERA_REGISTER(K, T) static_cast<void>(0)
#endif

/// Has the kernels of kind K compiled for elements T (kernel/elements.hpp).
template <class K, Element T> void use_kernels() { TESSERA_REGISTER(K, T); }
/// The kinds that every tensor has.
template <Element T> void use_tensor_kernels() {
  TESSERA_REGISTER(CopyKernels, T);
  TESSERA_REGISTER(ReduceKernels, T);
  TESSERA_REGISTER(GemmKernels, T);
  TESSERA_REGISTER(JoinKernels, T);
  TESSERA_REGISTER(NarrowKernels, T);
}
/// Has the kernels compiled that a ShardedTensor of elements T needs, those of parts of their sums
/// too.
template <Element T> void use_tensor_of() {
  use_tensor_kernels<T>();
  use_tensor_kernels<ComputeType<T>>();
  if constexpr (ComplexElement<T>) use_tensor_kernels<PartType<T>>();
}
/// Has kernels compiled for the result R of a function of tensors of elements T..., whose kernels,
/// and those of their parts, are there already.
template <Element R, Element... T> void use_result_of() {
  if constexpr (!((std::is_same_v<R, T> || std::is_same_v<R, PartType<T>> ||
                   std::is_same_v<R, ComputeType<T>>) ||
                  ...))
    use_tensor_of<R>();
}
/// Has kernels compiled for running products of elements T, whose gradients are recurrences of two
/// numbers (grad/adjoint/scan.hpp); T is void where it is known only at run time.
template <class T> void use_running_products_of() {
  if constexpr (std::is_void_v<T>) {
    use_tensor_of<complex<float>>();
    use_tensor_of<complex<double>>();
  } else if constexpr (RealElement<T>) {
    use_tensor_of<complex<ComputeType<T>>>();
  }
}
/// Has kernels compiled for the result types of integer sums, where the type is known only at run
/// time.
template <int = dtypes> void use_tensors_of_sums() {
  use_tensor_of<std::int64_t>();
  use_tensor_of<std::uint64_t>();
}
template <Element T> void use_indexed_kernels() {
  TESSERA_REGISTER(TakeKernels, T);
  TESSERA_REGISTER(ScatterKernels, T);
  TESSERA_REGISTER(OneHotKernels, T);
}
/// Has kernels compiled for a take or scatter of elements T.
template <Element T> void use_indexed() {
  use_tensor_of<T>();
  use_indexed_kernels<T>();
  use_indexed_kernels<ComputeType<T>>();
}
/// These have kernels compiled for calls that run along rows of elements T, one by one or all, and
/// for sorts.
template <Element T> void use_find_of() {
  TESSERA_REGISTER(FindKernels, T);
  TESSERA_REGISTER(FindKernels, ComputeType<T>);
}
template <Element T> void use_scan_of() {
  TESSERA_REGISTER(ScanKernels, T);
  TESSERA_REGISTER(ScanKernels, ComputeType<T>);
}
template <Element T> void use_bins_of() {
  TESSERA_REGISTER(BinKernels, T);
  TESSERA_REGISTER(BinKernels, ComputeType<T>);
}
template <Element T> void use_rows_of() {
  use_find_of<T>();
  use_scan_of<T>();
  use_bins_of<T>();
}
template <Element T> void use_sort_of() {
  TESSERA_REGISTER(SortKernels, T);
  TESSERA_REGISTER(ArrangeKernels, T);
  TESSERA_REGISTER(MergeKernels, T);
}
/// These have kernels compiled for each operator of windows, and for sums into a halo's owners.
template <Element T> void use_convolve_of() {
  TESSERA_REGISTER(ConvolveKernels, T);
  TESSERA_REGISTER(ConvolveKernels, ComputeType<T>);
}
template <Element T> void use_reduce_window_of() { TESSERA_REGISTER(ReduceWindowKernels, T); }
template <Element T> void use_select_scatter_of() { TESSERA_REGISTER(SelectScatterKernels, T); }
template <Element T> void use_accumulate() { TESSERA_REGISTER(AccumulateKernels, T); }
#undef TESSERA_REGISTER

/// Has the kernels of elements T compiled into this program, but for those of kinds that only calls
/// of known element types have (TESSERA_KERNEL_KIND).
template <Element T> void use_element() {
  detail::use_indexed<T>();
  detail::use_rows_of<T>();
  detail::use_sort_of<T>();
  detail::use_convolve_of<T>();
  detail::use_reduce_window_of<T>();
  detail::use_select_scatter_of<T>();
  detail::use_accumulate<T>();
}

/// Has those kernels compiled for all element types.
template <int Count = dtypes> void use_all_elements() {
  for (int type = 0; type < Count; ++type)
    with_type(static_cast<DType>(type), [](auto element) { use_element<decltype(element)>(); });
}

#if defined(TESSERA_KERNEL_PARTS)
/// Puts the kernels of a part of the element types into the program (base/compiled.hpp).
template <int Part> bool use_elements_of_part();
#endif
#if defined(TESSERA_KERNEL_PART)
template <> bool use_elements_of_part<TESSERA_KERNEL_PART>() {
  for (int type = 0; type < dtypes; ++type)
    with_type(static_cast<DType>(type), [](auto element) {
      using T = decltype(element);
      if constexpr (static_cast<int>(dtype_of<T>) % TESSERA_KERNEL_PARTS == TESSERA_KERNEL_PART)
        use_element<T>();
    });
  return true;
}
#elif defined(TESSERA_IMPLEMENTATION) && defined(TESSERA_KERNEL_PARTS)
/// The call has a linker take the sources of kernels out of their library.
template <int... Part> bool use_elements_of_parts(std::integer_sequence<int, Part...>) {
  return (use_elements_of_part<Part>() && ...);
}
static const bool all_kernels =
    use_elements_of_parts(std::make_integer_sequence<int, TESSERA_KERNEL_PARTS>());
#elif defined(TESSERA_IMPLEMENTATION)
/// Other sources compile none.
static const bool all_kernels = (use_all_elements(), true);
#endif
}  // namespace tessera::detail

namespace tessera {
/// Have kernels compiled for elements of T, or of every type, which no ShardedTensor of a program
/// names: those of its DynamicTensors.
using detail::use_all_elements;
using detail::use_element;
}  // namespace tessera
