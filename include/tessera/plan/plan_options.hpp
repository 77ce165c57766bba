// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What planning is told beside the tensors.
///
///     PlanOptions options{.machine = node, .contract = Contract::nothing()};
#include <tessera/plan/region/stored.hpp>

namespace tessera {

/// What planning depends on besides the tensors; equal on every process.
struct PlanOptions {
  Machine machine;
  Index workspace_limit =
      max_int64;  ///< bytes of temporaries a process may hold, where there is a choice
  Destination destination = Destination::fresh;
  Contract contract{};  ///< plans that keep it come before all that do not
  /// Only what the plan needs is asked: any that keeps the contract will do, and exchanges of
  /// regions have no numbers. So an answer takes few steps of a compiler.
  bool needs_alone = false;
  const StoredWithin* stored = nullptr;  ///< how operands lie, where some do not lie by themselves
  constexpr bool operator==(const PlanOptions&) const = default;
};

}  // namespace tessera
