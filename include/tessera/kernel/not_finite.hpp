// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The first elements of a block that are no finite numbers.
///
///     const detail::NotFinite found = detail::first_not_finite(DType::f32, block, 4);
///     found.nan == 2                   // -1 where there is none
///
/// Laws: an element is NaN or infinite as its bits say; a complex one as either of its parts;
/// integers and bools are finite.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <tessera/base/dtype.hpp>
#include <tessera/base/math.hpp>

namespace tessera::detail {

/// The index of the first NaN and of the first infinity; -1: there is none.
struct NotFinite {
  Index nan = -1;
  Index infinite = -1;
};

/// Looks through `count` numbers at `data`, host memory, whose exponent is `exponent` and whose
/// sign is the highest bit.
template <class Bits>
NotFinite first_not_finite_bits(const void* data, Index count, Bits exponent) {
  constexpr Index block = 4096;
  constexpr Bits magnitude = static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1);
  const auto* const bytes = static_cast<const std::byte*>(data);
  const auto at = [&](Index i) {
    Bits bits;
    std::memcpy(&bits, bytes + i * static_cast<Index>(sizeof bits), sizeof bits);
    return static_cast<Bits>(bits & magnitude);
  };
  NotFinite found;
  for (Index begin = 0; begin < count; begin += block) {
    const Index end = min_of(count, begin + block);
    Bits most = 0;
    for (Index i = begin; i < end; ++i) most = at(i) > most ? at(i) : most;
    if (most < exponent) continue;
    for (Index i = begin; i < end; ++i) {
      if (found.nan < 0 && at(i) > exponent) found.nan = i;
      if (found.infinite < 0 && at(i) == exponent) found.infinite = i;
    }
    if (found.nan >= 0 && found.infinite >= 0) break;
  }
  return found;
}

/// Looks through `count` elements at `data`, which the host may read.
inline NotFinite first_not_finite(DType type, const void* data, Index count) {
  const auto halved = [](NotFinite found) {  // from parts to complex elements
    return NotFinite{found.nan < 0 ? -1 : found.nan / 2,
                     found.infinite < 0 ? -1 : found.infinite / 2};
  };
  switch (type) {
    case DType::f16:
      return first_not_finite_bits<std::uint16_t>(data, count, 0x7c00);
    case DType::bf16:
      return first_not_finite_bits<std::uint16_t>(data, count, 0x7f80);
    case DType::f32:
      return first_not_finite_bits<std::uint32_t>(data, count, 0x7f80'0000);
    case DType::f64:
      return first_not_finite_bits<std::uint64_t>(data, count, 0x7ff0'0000'0000'0000);
    case DType::c64:
      return halved(first_not_finite_bits<std::uint32_t>(data, 2 * count, 0x7f80'0000));
    case DType::c128:
      return halved(first_not_finite_bits<std::uint64_t>(data, 2 * count, 0x7ff0'0000'0000'0000));
    default:
      return {};
  }
}

}  // namespace tessera::detail
