// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The adjoint of a call of any kind.
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

/// Tries one kind of operator after the other.
template <class... Op> bool adjoint_of_any(const AdjointCall& call, AdjointBuilder& build) {
  const auto is = [&](const auto* op) {
    if (op != nullptr) adjoint_of(*op, build);
    return op != nullptr;
  };
  return (is(call.operation.get_if<Op>()) || ...);
}

TESSERA_FUNCTION Adjoint adjoint(const AdjointCall& call, unsigned wanted) {
  AdjointBuilder build(call, wanted);
  if (!adjoint_of_any<ops::Einsum, ops::Reduce, ops::Map, ops::Reshard, ops::Transpose,
                      ops::Reshape, ops::Broadcast, ops::Slice, ops::Pad, ops::Reverse, ops::Roll,
                      ops::Shift, ops::Concatenate, ops::Update, ops::Softmax, ops::Moments,
                      ops::Normalize, ops::Scan, ops::Take, ops::Scatter, ops::Sort,
                      ops::DynamicSlice, ops::DynamicUpdateSlice, ops::Convolve, ops::ReduceWindow,
                      ops::SelectAndScatter, ops::HaloExchange>(call, build))
    build.miss(
        "the operator " + std::string(call.operation.name()) +
        " has no gradient yet; call it outside the function, or keep its operands out of the "
        "gradient with stop_gradient");
  return build.take();
}

}  // namespace tessera::detail
