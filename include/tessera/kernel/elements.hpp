// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The kernels that this program has, by element type: a table of functions for each type. It is
/// filled before main, for the element types of the program's ShardedTensors, so that nothing is
/// compiled for other types. Erased code (reduce(DType, ...), the executor, the transports) finds
/// its kernels here. use_element.hpp fills the table.
///
///     detail::use_element<bfloat16>();            // a program that names no tensor of them by type
///     detail::kernels_of(DType::bf16);
///
/// Laws: the table does not change after main has begun.
#include <cstdint>
#include <string>

#include <tessera/base/dtype.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/local_index.hpp>
#include <tessera/base/local_window.hpp>
#include <tessera/base/local_work.hpp>
#include <tessera/base/reduction.hpp>

namespace tessera::detail {

struct ReduceShape;
struct GemmShape;
struct ElementBytes;

/// The kernels of one element type; a kernel that its values do not have is null.
struct ElementKernels {
  void (*copy)(const void* from, void* to, const StridedCopy* copies, int count);
  void (*reduce)(Reduction reduction, const ReduceShape& shape, const void* from, void* to,
                 double scale, bool wide);
  void (*gemm)(const GemmShape& shape, double beta, const void* a, const void* b, void* c,
               bool wide);  ///< of half types to parts in float, where `wide`
  void (*join)(Reduction reduction, const void* const* from, int members, Index n, void* to,
               void* also);
  void (*widen)(const void* from, void* to, Index n);   ///< from half types to float
  void (*narrow)(const void* from, void* to, Index n);  ///< and back
};

/// The kernels of arg-max, running sums and deterministic sums: compiled for the element types of
/// calls of these operators, and of use_element.
struct RowKernels {
  void (*find)(const LocalFind& work, const void* from, const void* best, std::int64_t* out);
  void (*find_extreme)(Reduction reduction, const LocalFind& work, const void* from, void* best,
                       std::int64_t* out);
  void (*scan)(Reduction reduction, const LocalScan& work, const void* from, const void* earlier,
               void* to, bool wide);
  void (*exponent)(const LocalBins& work, const void* from, std::int64_t* out);
  void (*bins)(const LocalBins& work, const void* from, const std::int64_t* exponents,
               std::int64_t* out);
  void (*unbin)(const LocalBins& work, bool mean, const std::int64_t* limbs,
                const std::int64_t* exponents, void* to);
};

/// The kernels of windows: each compiled for the element types of calls of its operator, and of
/// use_element.
struct WindowKernels {
  void (*convolve)(const LocalConvolve& work, bool portable, const void* in, const void* kernel,
                   void* out);
  void (*reduce_window)(Reduction reduction, const LocalReduceWindow& work, const void* in,
                        void* out, double scale);
  void (*select_scatter)(bool greatest, const LocalSelectScatter& work, const void* input,
                         const void* source, void* scratch, void* result);
  void (*select_gather)(bool greatest, const LocalReduceWindow& work, const void* input,
                        const void* values, void* result);
};

/// The kernels of takes, scatters and similar operators, compiled in the same way.
struct IndexedKernels {
  void (*take)(const LocalIndexed& work, const void* table, const void* const* indices,
               const DType* types, const ElementBytes& missing, void* out);
  void (*fill)(void* out, Index n, const ElementBytes& value);
  void (*scatter)(Reduction reduction, const LocalScatter& work, const void* operand,
                  const void* const* indices, const DType* types, const void* updates,
                  void* integers, void* out);
  void (*one_hot)(const LocalOneHot& work, const void* indices, DType type, void* out);
};

struct MergeRuns;

/// The kernels of sorting, compiled in the same way. Elements without an order can be moved along.
struct SortKernels {
  void (*sort)(const LocalSort& work, const void* from, void* to, void* words);
  void (*order)(const LocalSort& work, const void* from, const void* places, void* to, void* words);
  void (*arrange)(const LocalSort& work, const void* from, const void* positions, void* to);
  void (*merge)(const LocalMerge& work, const MergeRuns& runs);
};

inline const ElementKernels* element_kernels[dtypes] = {};
inline const RowKernels* row_kernels[dtypes] = {};
inline WindowKernels window_kernels[dtypes] = {};
inline const IndexedKernels* indexed_kernels[dtypes] = {};
inline const SortKernels* sort_kernels[dtypes] = {};

[[noreturn]] inline void no_kernels(DType type) {
  const std::string name(name_of(type));
  throw UsageError("this program has no kernels for elements of " + name +
                   ": they are compiled for the element types of its ShardedTensors; call "
                   "tessera::use_element<" +
                   (name == "half" || name == "bfloat16" || is_complex(type) ? "tessera::" : "") +
                   (tessera::is_integer(type) ? "std::" + name + "_t" : name) +
                   ">() or tessera::use_all_elements() somewhere in it");
}

inline const ElementKernels& kernels_of(DType type) {
  const ElementKernels* kernels = element_kernels[static_cast<int>(type)];
  if (kernels == nullptr) no_kernels(type);
  return *kernels;
}

inline const RowKernels& row_kernels_of(DType type) {
  const RowKernels* kernels = row_kernels[static_cast<int>(type)];
  if (kernels == nullptr) no_kernels(type);
  return *kernels;
}

/// The kernels of kind K, by element type. K is a struct of functions, declared with the kernels;
/// it has K::has<T>, whether elements T have them, and K::of<T>(), which gives them.
template <class K> inline const K* kernel_table[dtypes] = {};
template <class K> const K& kernels_of(DType type) {
  const K* kernels = kernel_table<K>[static_cast<int>(type)];
  if (kernels == nullptr) no_kernels(type);
  return *kernels;
}

template <class K, class T> inline constexpr K kernels_made = K::template of<T>();
/// To name it compiles the kernels of kind K for elements T, and puts them there.
template <class K, class T>
inline const bool registered_kernels = [] {
  if constexpr (K::template has<T>)
    kernel_table<K>[static_cast<int>(dtype_of<T>)] = &kernels_made<K, T>;
  return true;
}();
template <class K, int Count = dtypes> bool compile_kind() {
  for (int type = 0; type < Count; ++type)
    with_type(static_cast<DType>(type),
              [](auto element) { static_cast<void>(&registered_kernels<K, decltype(element)>); });
  return true;
}
/// Follows a kind of kernels that only calls of known element types have: the source that compiles
/// what a program of many sources shares compiles them for all types (base/compiled.hpp).
#if defined(TESSERA_IMPLEMENTATION)
#define TESSERA_KERNEL_KIND(K) inline const bool compiled_##K = compile_kind<K>();
#else
#define TESSERA_KERNEL_KIND(K)
#endif

/// Returns one of a type's window kernels, window_kernel_of(type, &WindowKernels::convolve).
template <class Kernel> Kernel window_kernel_of(DType type, Kernel WindowKernels::*which) {
  const Kernel kernel = window_kernels[static_cast<int>(type)].*which;
  if (kernel == nullptr) no_kernels(type);
  return kernel;
}

inline const IndexedKernels& indexed_kernels_of(DType type) {
  const IndexedKernels* kernels = indexed_kernels[static_cast<int>(type)];
  if (kernels == nullptr) no_kernels(type);
  return *kernels;
}

inline const SortKernels& sort_kernels_of(DType type) {
  const SortKernels* kernels = sort_kernels[static_cast<int>(type)];
  if (kernels == nullptr) no_kernels(type);
  return *kernels;
}

}  // namespace tessera::detail
