// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How the elements of an exact sum are cut into limbs (plan/op/rows/deterministic.hpp).
///
///     detail::bin_format(DType::f32, 1000).limbs == 2
///
/// Laws: bits * limbs suffice for the mantissa, the number of elements and 10 bits more; count *
/// 2^bits <= 2^62, so that no sum overflows.
#include <tessera/base/dtype.hpp>
#include <tessera/base/math.hpp>

namespace tessera::detail {

/// The label, in a slot, of a dimension that no operand has: the parts of a scanned dimension, the
/// limbs of an exact sum.
inline constexpr char parts_label = '#';

inline constexpr int most_limbs = 8;

/// How the elements of a row are cut into limbs.
struct BinFormat {
  int bits = 62;  ///< in one limb
  int limbs = 0;  ///< for a real number; 0: the row is too long
  int parts = 1;  ///< numbers in an element: 2 for complex types
};

/// Returns the bits of a floating type's mantissa.
constexpr int mantissa_bits(DType type) {
  switch (type) {
    case DType::f16:
      return 11;
    case DType::bf16:
      return 8;
    case DType::f32:
    case DType::c64:
      return 24;
    default:
      return 53;
  }
}

/// Returns how the elements of rows of `count` elements are cut.
constexpr BinFormat bin_format(DType type, Index count) {
  int log = 0;
  while (log < 62 && (Index{1} << log) < count) ++log;
  BinFormat format;
  format.bits = 62 - log;
  format.parts = is_complex(type) ? 2 : 1;
  for (int limbs = 2; limbs <= most_limbs; ++limbs)
    if (limbs * format.bits >= mantissa_bits(type) + log + 10) {
      format.limbs = limbs;
      break;
    }
  return format;
}
}  // namespace tessera::detail
