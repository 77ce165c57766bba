// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The tables of kernels, a type each, as kernel/elements.hpp holds them; naming `registered<T>`
/// compiles the kernels and puts them there.
///
///     static_cast<void>(&registered<std::int8_t>);
///
/// Laws: those of kernel/use_element.hpp.
#include <cstdint>
#include <type_traits>

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

namespace tessera::detail {

/// The type that replaces T where only sums, products and copies are formed: signed integers have
/// the same bits as unsigned ones, so that one kernel serves both.
template <class T> struct Modular { using type = T; };
template <IntegerElement T> struct Modular<T> { using type = std::make_unsigned_t<T>; };
template <class T> using ModularType = typename Modular<T>::type;

template <class T> constexpr auto gemm_kernel() -> decltype(ElementKernels::gemm) {
  if constexpr (NumberElement<T>)
    return &gemm_elements<ModularType<T>>;
  else
    return nullptr;
}

/// The kernels of exact sums, which floating and complex elements have.
template <class T, bool = RealElement<T> || ComplexElement<T>> struct BinKernels {
  static constexpr decltype(RowKernels::exponent) exponent = nullptr;
  static constexpr decltype(RowKernels::bins) bins = nullptr;
  static constexpr decltype(RowKernels::unbin) unbin = nullptr;
};
template <class T> struct BinKernels<T, true> {
  static constexpr decltype(RowKernels::exponent) exponent = &exponent_elements<T>;
  static constexpr decltype(RowKernels::bins) bins = &bin_elements<T>;
  static constexpr decltype(RowKernels::unbin) unbin = &unbin_elements<T>;
};

template <class T>
inline constexpr ElementKernels kernels_for{&copy_elements<sizeof(T)>, &reduce_elements<T>,
                                            gemm_kernel<T>(),          &join_elements<T>,
                                            convert_kernel<T>(true),   convert_kernel<T>(false)};
template <class T>
inline constexpr RowKernels row_kernels_for{&find_elements<T>,   &find_extreme_elements<T>,
                                            &scan_elements<T>,   BinKernels<T>::exponent,
                                            BinKernels<T>::bins, BinKernels<T>::unbin};
template <class T>
inline constexpr IndexedKernels indexed_kernels_for{&take_elements<sizeof(T)>,
                                                    &fill_words<sizeof(T)>, &scatter_elements<T>,
                                                    &one_hot_elements<ModularType<T>>};

/// Elements without an order are only moved.
template <class T, bool = ComplexElement<T>>
inline constexpr SortKernels sort_kernels_for{&sort_elements<T>, &order_elements<T>,
                                              &arrange_elements<sizeof(T)>, &merge_elements<T>};
template <class T>
inline constexpr SortKernels sort_kernels_for<T, true>{nullptr, nullptr,
                                                       &arrange_elements<sizeof(T)>, nullptr};

template <class T>
inline const bool registered = [] {
  element_kernels[static_cast<int>(dtype_of<T>)] = &kernels_for<T>;
  return true;
}();
template <class T>
inline const bool registered_rows = [] {
  row_kernels[static_cast<int>(dtype_of<T>)] = &row_kernels_for<T>;
  return true;
}();
// The kernels of windows are added one by one.
template <class T>
inline const bool registered_convolve = [] {
  if constexpr (NumberElement<T>)
    window_kernels[static_cast<int>(dtype_of<T>)].convolve = &convolve_elements<ModularType<T>>;
  return true;
}();
template <class T>
inline const bool registered_reduce_window = [] {
  window_kernels[static_cast<int>(dtype_of<T>)].reduce_window = &reduce_window_elements<T>;
  return true;
}();
template <class T>
inline const bool registered_select_scatter = [] {
  if constexpr (OrderedElement<T>) {
    WindowKernels& kernels = window_kernels[static_cast<int>(dtype_of<T>)];
    kernels.select_scatter = &select_scatter_elements<T>;
    kernels.select_gather = &select_gather_elements<T>;
  }
  return true;
}();
template <class T>
inline const bool registered_indexed = [] {
  indexed_kernels[static_cast<int>(dtype_of<T>)] = &indexed_kernels_for<T>;
  return true;
}();

template <class T>
inline const bool registered_sort = [] {
  sort_kernels[static_cast<int>(dtype_of<T>)] = &sort_kernels_for<T>;
  return true;
}();

}  // namespace tessera::detail
