// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The adjoint of a halo exchange: operators read the elements that processes own, and these are
/// the tensor's.
///
///     // h = halo_exchange(x), y = 2 h: dx = 2 dy
///
/// Laws: what kernels of the caller read in a halo no adjoint sees: custom_gradient states theirs.
#include <tessera/grad/adjoint/parts.hpp>
#include <tessera/plan/op/halo/halo_exchange.hpp>

namespace tessera::detail {

inline void adjoint_of(const ops::HaloExchange& op, AdjointBuilder& build) {
  if (op.adjoint)
    return build.miss(
        "halo_adjoint reads halos, whose gradient no operator gives; put the exchange, your kernel "
        "and the adjoint into custom_gradient");
  for (int i = 0; i < build.call().operands.size(); ++i)
    if (build.wants(i)) build.set(i, build.cotangent(i));
}

inline const bool halo_exchange_has_adjoint = have_adjoints<ops::HaloExchange>();

}  // namespace tessera::detail
