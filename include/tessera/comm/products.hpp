// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Who decides which library makes the matrix products of a mesh.
///
///     MeshOptions options{.products = Products::fixed};
///
/// Laws: all processes of a mesh decide alike.
#include <cstdint>
#include <string_view>

#include <tessera/comm/detail/variables.hpp>

namespace tessera {

/// Libraries add in different orders, so the last bits of a product depend on its library.
///
/// - `measured`: for each element type and class of shape the library that was fastest. The first
///   mesh of a user on a kind of processor, with these libraries and so many threads, measures them
///   on its process 0, which takes about 0.15 s an element type, and keeps the result in a file
///   that later runs read. Where no such file can be written nothing is measured, and the rule is
///   fixed.
/// - `fixed`: a rule that depends on the shape and the number of threads alone.
/// - `blas`, `onednn`, `blis`: that library, where this program has it for the element type; else
///   as fixed.
///
/// Products with a vector, of integers and on a device know no choice.
enum class Products : std::uint8_t { measured, fixed, blas, onednn, blis };

/// Returns the name that TESSERA_PRODUCTS accepts.
constexpr std::string_view name_of(Products products) {
  constexpr std::string_view names[] = {"measured", "fixed", "blas", "onednn", "blis"};
  return names[static_cast<int>(products)];
}

namespace detail {
/// Returns what the environment variable TESSERA_PRODUCTS says, else measured. Throws UsageError
/// for other words.
inline Products products_from_environment() {
  const int chosen =
      choice_variable("TESSERA_PRODUCTS", {"measured", "fixed", "blas", "onednn", "blis"});
  return chosen < 0 ? Products::measured : static_cast<Products>(chosen);
}
}  // namespace detail

}  // namespace tessera
