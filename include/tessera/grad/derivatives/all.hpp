// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The derivatives of all functions of kernel/functions/.
///
///     Derivative<fn::Sin, 0>::of(f)(x)     // cos(x)
#include <tessera/grad/derivatives/activation.hpp>
#include <tessera/grad/derivatives/comparison.hpp>
#include <tessera/grad/derivatives/complex.hpp>
#include <tessera/grad/derivatives/fixed.hpp>
#include <tessera/grad/derivatives/statistics.hpp>
#include <tessera/grad/derivatives/times.hpp>
#include <tessera/grad/derivatives/trigonometry.hpp>
