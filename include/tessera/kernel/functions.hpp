// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// All elementwise functions as types, for map() on host and device. Each states beside its
/// definition on which element types it is defined, and how it treats unfinished values
/// (base/linearity.hpp).
///
///     detail::map(fn::Gelu{}, detail::LocalMap{{n}, {{1}}}, y, x);
///     fn::Scale{0.5}(3.0f) == 1.5f
///
/// Integers wrap instead of overflowing; division by zero gives 0 (and the least integer divided by
/// -1 gives itself).
///
/// Laws: on the host no result is further from the exact one than here, for any argument, in units
/// in the last place of float and of double (tests/kernel/laws.test.cpp); infinities, NaN, the
/// signs of zeros and denormal results are right:
///
///     exp 2, 1.5     exp2 2, 1.5   expm1 2, 3    log 2, 1      log1p 2, 2    log2 1, 1    log10 1, 1
///     sin 1.5, 1.5   cos 1.5, 1.5  tan 3.5, 1.5  asin 1, 1     acos 1, 1     atan 1, 1    atan2 2, 2
///     sinh 3, 1.5    cosh 2, 1.5   tanh 3, 3     asinh 2, 2    acosh 2, 2    atanh 2, 2   pow 1, 1
///     erf 3, 2       sigmoid 3, 3  rsqrt 1.5, 1.5              cbrt 1, 4     sqrt, square, the four operations: 0.5
///     gelu 3, 2 from 0 on; 3, 8 from -1 on; 64, 8 from -5.6 on; 4, 8 below it
///     silu 4, 4 and |x| of the least denormal numbers
///     gelu_tanh 2, 2 and 8 epsilon; log_add_exp 2, 2 and 2 epsilon; gelu's derivative 4 epsilon
///
/// Half types are computed in float and rounded once: 0.52, beside a thousandth of those epsilons.
#include <tessera/kernel/functions/activation.hpp>
#include <tessera/kernel/functions/arithmetic.hpp>
#include <tessera/kernel/functions/cast.hpp>
#include <tessera/kernel/functions/comparison.hpp>
#include <tessera/kernel/functions/complex.hpp>
#include <tessera/kernel/functions/exponential.hpp>
#include <tessera/kernel/functions/fixed.hpp>
#include <tessera/kernel/functions/logic.hpp>
#include <tessera/kernel/functions/rounding.hpp>
#include <tessera/kernel/functions/trigonometry.hpp>
