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
