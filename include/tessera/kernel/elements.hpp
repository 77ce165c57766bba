// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The kernels that this program has, by kind and element type. They are put there before main, for
/// the element types of the program's ShardedTensors, so that nothing is compiled for other types.
/// Erased code (reduce(DType, ...), the executor, the transports) finds its kernels here.
/// use_element.hpp says which kinds a call needs.
///
///     detail::use_element<bfloat16>();            // a program that names no tensor of them by type
///     detail::kernels_of<detail::CopyKernels>(DType::bf16).run;
///
/// Laws: the tables do not change after main has begun.
#include <string>
#include <type_traits>

#include <tessera/base/dtype.hpp>
#include <tessera/base/error.hpp>

namespace tessera::detail {

/// The type that replaces T where only sums, products and copies are formed: signed integers have
/// the same bits as unsigned ones, so that one kernel serves both.
template <class T> struct Modular { using type = T; };
template <IntegerElement T> struct Modular<T> { using type = std::make_unsigned_t<T>; };
template <class T> using ModularType = typename Modular<T>::type;

[[noreturn]] inline void no_kernels(DType type) {
  const std::string name(name_of(type));
  throw UsageError("this program has no kernels for elements of " + name +
                   ": they are compiled for the element types of its ShardedTensors; call "
                   "tessera::use_element<" +
                   (name == "half" || name == "bfloat16" || is_complex(type) ? "tessera::" : "") +
                   (tessera::is_integer(type) ? "std::" + name + "_t" : name) +
                   ">() or tessera::use_all_elements() somewhere in it");
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

}  // namespace tessera::detail
