// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Gradients: the umbrella of the room grad. It is not part of tessera/tessera.hpp, since the
/// derivatives of all functions are compiled with it (with tessera::compiled, once).
///
///     auto [loss, gradient] = value_and_grad(f)(weights);
#include <tessera/grad/custom_gradient.hpp>
#include <tessera/grad/gradient_under.hpp>
#include <tessera/grad/recompute.hpp>
#include <tessera/grad/stop_gradient.hpp>
#include <tessera/grad/value_and_grad.hpp>
#include <tessera/grad/vjp.hpp>
