// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Options of planning.
///
///     PlanOptions options{.machine = node, .contract = Contract::nothing()};
#include <tessera/plan/region/stored.hpp>

namespace tessera {

/// The inputs of planning besides the tensors; equal on every process.
struct PlanOptions {
  Machine machine;
  Index workspace_limit =
      max_int64;  ///< bytes of temporaries a process may hold, where there is a choice
  Destination destination = Destination::fresh;
  Contract contract{};  ///< plans that keep it come before all that do not
  /// The caller wants only the plan's communication: any plan that keeps the contract will do, and
  /// exchanges of regions get no numbers. This takes a compiler few steps.
  bool needs_alone = false;
  /// During its local work an operator may split over an axis what the axis splits in no tensor,
  /// where that saves a ninth of the price or keeps the contract.
  bool free_choice = true;
  const detail::StoredWithin* stored =
      nullptr;  ///< the storage of operands, where some are not contiguous
  /// Parts of sums of half types are rounded, and sent as half types, in place of float: half the
  /// bytes, and an error of up to half a unit in the last place for each part.
  bool narrow_parts = false;

  /// Returns the type in which parts of a result with elements `type` are kept, and sent, until the
  /// last is joined.
  constexpr DType parts_of(Reduction reduction, DType type) const {
    return detail::is_short(type) && !narrow_parts ? detail::partial_type(reduction, type) : type;
  }
  constexpr bool operator==(const PlanOptions&) const = default;
};

}  // namespace tessera
