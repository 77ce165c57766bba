// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The choice of libraries for products, for benchmarks of kernels: as a mesh has it.
///
///     detail::gemm(DType::f32, work, a, b, c, 0, false, &product_table());
#include <tessera/comm/detail/product_cache.hpp>

namespace tessera_bench {

inline const tessera::detail::ProductTable& product_table() {
  static const auto table =
      tessera::detail::own_products(tessera::detail::products_from_environment());
  return table;
}

}  // namespace tessera_bench
