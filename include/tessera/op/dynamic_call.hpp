// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What a call on dynamic tensors is held to: its contract, as a value. (Those of typed calls are
/// types, checked while the program compiles.)
///
///     const Contract contract = contract_of<Grid, Only<gathers<data>>>();
///     DynamicTensor y = reshard(x, Sharding{{}, {}}, contract);
///
/// Laws: a call with a contract runs a plan that keeps it, or throws ContractError on every process
/// before it communicates; without one it may do anything, on a Strict mesh nothing.
#include <concepts>
#include <optional>
#include <string_view>

#include <tessera/run/call_site.hpp>

namespace tessera {

/// The contract of a call on dynamic tensors, if it has one, and the place of the call. Made where
/// the call stands from a Contract, a Where, or both.
class DynamicCall {
 public:
  // Templates, so that braces are not taken for either.
  template <std::same_as<Where> W>
  DynamicCall(W where) : where_(where) {}  // NOLINT: a place is enough
  template <std::same_as<Contract> C>
  DynamicCall(C contract, Where where = Where::here())  // NOLINT: and so is a contract
      : contract_(contract), where_(where) {}

  Where where() const { return where_; }
  const std::optional<Contract>& contract() const { return contract_; }
  /// Returns the same as operators take it, under the name that messages give the call.
  CallSite site(std::string_view label) const { return {label, where_, contract_}; }
  /// The same of a call that on a Strict mesh too needs no contract: held to the one it is given.
  CallSite free_site(std::string_view label) const {
    return {label, where_, contract_.value_or(Contract{})};
  }

 private:
  std::optional<Contract> contract_;
  Where where_;
};

}  // namespace tessera
