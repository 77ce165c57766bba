// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What things cost, in integers: the same on every process, at compile time and at run time.
///
///     Machine{}.transfer(1 << 20, 1)        // picoseconds to move 1 MiB in one message
///
/// Laws: costs saturate and never overflow; a larger payload never costs less.
#include <cstdint>

#include <tessera/base/dtype.hpp>
#include <tessera/base/math.hpp>

namespace tessera {

/// A machine model. The defaults are of the order of one node with shared memory; `calibrate`
/// measures them.
struct Machine {
  std::int64_t message_ps = 1'000'000;  ///< latency of one message, picoseconds
  std::int64_t payload_ps_per_kib =
      200'000;  ///< 1 / bandwidth between processes, picoseconds per KiB (5 GiB/s)
  std::int64_t copy_ps_per_kib =
      100'000;  ///< 1 / bandwidth of a local copy, picoseconds per KiB (10 GiB/s)
  std::int64_t kiloflop_ps_f32 =
      10'000;  ///< 1000 operations in single precision (half types too), picoseconds (100 GFLOP/s)
  std::int64_t kiloflop_ps_f64 =
      20'000;  ///< 1000 double-precision (and integer) operations, picoseconds

  constexpr std::int64_t transfer(Index bytes, Index messages) const {
    return saturating_add(saturating_mul(messages, message_ps),
                          scaled(bytes, payload_ps_per_kib, 1024));
  }
  constexpr std::int64_t copy(Index bytes) const { return scaled(bytes, copy_ps_per_kib, 1024); }
  constexpr std::int64_t compute(Index flops, DType type) const {
    // A complex product and sum are eight real operations where a real one is two.
    const DType real =
        is_complex(type) ? (size_of(type) == 8 ? DType::f32 : DType::f64) : facts_of(type).compute;
    return scaled(saturating_mul(flops, is_complex(type) ? 4 : 1),
                  real == DType::f32 ? kiloflop_ps_f32 : kiloflop_ps_f64, 1000);
  }
  constexpr bool operator==(const Machine&) const = default;

 private:
  static constexpr std::int64_t scaled(Index amount, std::int64_t price, std::int64_t unit) {
    const std::int64_t units = amount / unit;
    return saturating_add(saturating_mul(units, price), (amount - units * unit) * price / unit);
  }
};

}  // namespace tessera
