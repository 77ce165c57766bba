// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Numbers with their units, and tensors, as text.
///
///     detail::bytes_text(1536) == "1.5 KiB";
///     to_string(desc, names)                  // "f32 8x512x5120 P<data,_,model>"
#include <cstdint>
#include <string>

#include <tessera/mesh/mesh_text.hpp>
#include <tessera/spec/verdict.hpp>

namespace tessera {
namespace detail {

/// Returns n in the largest unit that is not above n, with at most one decimal, rounded down; "at
/// least ..." where n is saturated.
template <int N>
std::string scaled_text(std::int64_t n, std::int64_t step, const char* const (&units)[N]) {
  int unit = 0;
  std::int64_t scale = 1;
  while (unit + 1 < N && n / scale >= step) {
    scale *= step;
    ++unit;
  }
  const std::int64_t whole = n / scale;
  const std::int64_t tenths = (n - whole * scale) * 10 / scale;
  return (saturated(n) ? "at least " : "") + std::to_string(whole) +
         (tenths > 0 ? "." + std::to_string(tenths) : "") + " " + units[unit];
}

/// Returns bytes as "768 B", "1.5 KiB", "80 MiB".
inline std::string bytes_text(Index bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  return detail::scaled_text(bytes, 1024, units);
}
/// Returns an operation count as "12.5 Gflop".
inline std::string flops_text(Index flops) {
  static constexpr const char* units[] = {"flop", "kflop", "Mflop", "Gflop", "Tflop", "Pflop"};
  return detail::scaled_text(flops, 1000, units);
}
/// Returns a model time in picoseconds as "3.2 us".
inline std::string time_text(std::int64_t picoseconds) {
  static constexpr const char* units[] = {"ps", "ns", "us", "ms", "s"};
  return detail::scaled_text(picoseconds, 1000, units);
}
}  // namespace detail

/// Returns "f32 8x512x5120 P<data,_,model>".
inline std::string to_string(const TensorDesc& desc, const AxisNames& names) {
  return std::string(name_of(desc.type)) + " " + to_string(desc.extents) + " " +
         to_string(desc.sharding, names);
}
}  // namespace tessera
