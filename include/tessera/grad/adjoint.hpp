// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The adjoint of an operator as a value: the operators that turn the gradient of its result into
/// those of its operands. grad/adjoint/ has one header for each kind of operator.
///
///     Adjoint a = detail::adjoint(call, wanted);      // of x and w, an einsum of two other tensors
///     a.steps[0].operation;                           // the einsum of the cotangent and w
///
/// Laws: pure: it depends on descriptions and the call's function alone; the gradient of an operand
/// has the operand's element type and extents, and its sharding, finished, or the one that is
/// wanted. Source: Griewank and Walther,
/// "Evaluating Derivatives" (2008), section 3.2; for sharded tensors GSPMD (Xu et al. 2021),
/// section 3.6: the adjoint of a reshard is the reshard back, and of a partial sum a replicated
/// tensor.
#include <tessera/base/compiled.hpp>
#include <tessera/grad/adjoint_builder.hpp>

namespace tessera::detail {

/// Returns the adjoint of a call, for the operands of the bits in `wanted`.
TESSERA_FUNCTION Adjoint adjoint(const AdjointCall& call, unsigned wanted);

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/grad/adjoint/any.hpp>
#endif
