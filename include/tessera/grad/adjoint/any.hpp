// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The adjoint of a call of any kind. Each header below says of which operators it makes adjoints.
///
///     detail::adjoint(call, wanted)
#include <string>

#include <tessera/grad/adjoint.hpp>
#include <tessera/grad/adjoint/convolve.hpp>
#include <tessera/grad/adjoint/dynamic_slice.hpp>
#include <tessera/grad/adjoint/einsum.hpp>
#include <tessera/grad/adjoint/halo_exchange.hpp>
#include <tessera/grad/adjoint/map.hpp>
#include <tessera/grad/adjoint/moments.hpp>
#include <tessera/grad/adjoint/normalize.hpp>
#include <tessera/grad/adjoint/reduce_window.hpp>
#include <tessera/grad/adjoint/scan.hpp>
#include <tessera/grad/adjoint/scatter.hpp>
#include <tessera/grad/adjoint/shape.hpp>
#include <tessera/grad/adjoint/softmax.hpp>
#include <tessera/grad/adjoint/sort.hpp>
#include <tessera/grad/adjoint/take.hpp>

namespace tessera::detail {

TESSERA_FUNCTION Adjoint adjoint(const AdjointCall& call, unsigned wanted) {
  AdjointBuilder build(call, wanted);
  if (!call.operation.make_adjoint(build))
    build.miss(
        "the operator " + std::string(call.operation.name()) +
        " has no gradient yet; call it outside the function, or keep its operands out of the "
        "gradient with stop_gradient");
  return build.take();
}

}  // namespace tessera::detail
