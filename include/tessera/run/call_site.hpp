// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The call of an operator as the user wrote it.
///
///     detail::reshard(x, sharding, {"reshard", where});
#include <optional>
#include <string_view>

#include <tessera/base/where.hpp>
#include <tessera/mesh/contract.hpp>

namespace tessera {

class TensorCore;

namespace detail {
/// The call of an operator as the user wrote it.
struct CallSite {
  std::string_view label;
  Where where;
  std::optional<Contract> contract = {};  ///< none: the mesh's own, on a strict mesh Only<>
  const TensorCore* into = nullptr;       ///< the tensor that takes the result; none: a new one
};
}  // namespace detail
}  // namespace tessera
