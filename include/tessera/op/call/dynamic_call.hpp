// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What a call on dynamic tensors is held to, its contract, as a value (those of typed calls are
/// types, checked while the program compiles), and the tensor that takes its result.
///
///     const Contract contract = contract_of<Grid, Only<gathers<data>>>();
///     DynamicTensor y = reshard(x, Sharding{{}, {}}, contract);
///     reshard(x, y.sharding(), DynamicCall::into(y));   // into y, whose memory stays where it is
///
/// Laws: a call with a contract runs a plan that keeps it, or throws ContractError on every process
/// before it communicates; without one it may do anything, on a Strict mesh nothing. A call into y
/// gives y what the call returns without it, made there by its last operator; a call whose result
/// is not one tensor refuses it before it communicates.
#include <concepts>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/base/error.hpp>
#include <tessera/run/call_site.hpp>
#include <tessera/run/into_last.hpp>
#include <tessera/tensor/sharded_tensor.hpp>

namespace tessera {

/// The contract of a call on dynamic tensors and its destination, if it has them, and the place of
/// the call. Made where the call stands from a Contract, a Where, or both, or by into().
class DynamicCall {
 public:
  // Templates, so that braces are not taken for either.
  template <std::same_as<Where> W>
  DynamicCall(W where) : where_(where) {}  // NOLINT: a place is enough
  template <std::same_as<Contract> C>
  DynamicCall(C contract, Where where = Where::here())  // NOLINT: and so is a contract
      : contract_(contract), where_(where) {}

  /// Returns a call that writes its result to y: a tensor of the result's element type, extents and
  /// sharding that shares no memory with an operand, but that a map may read y itself. The call
  /// throws ShapeError when y is another tensor than its result, UsageError when y shares memory or
  /// the call takes no destination.
  static DynamicCall into(const DynamicTensor& y, std::optional<Contract> contract = {},
                          Where where = Where::here()) {
    DynamicCall call(where);
    call.contract_ = contract;
    call.into_ = y.core();
    return call;
  }

  Where where() const { return where_; }
  const std::optional<Contract>& contract() const { return contract_; }
  /// Returns the same as operators take it, under the name that messages give the call.
  detail::CallSite site(std::string_view label) const {
    return {label, where_, contract_, destination()};
  }
  /// The same of a call whose result is not one sharded tensor. Throws UsageError when it has a
  /// destination.
  detail::CallSite fresh_site(std::string_view label) const {
    if (into_)
      throw UsageError(std::string(label) +
                           ": the result of the call is not one tensor, so it takes no "
                           "destination; call it without one, and copy what it returns with "
                           "reshard_into",
                       where_);
    return {label, where_, contract_};
  }
  /// Returns the tensor that takes the result; null: a new one does.
  const TensorCore* destination() const { return into_ ? &*into_ : nullptr; }
  /// Returns the same without a destination.
  DynamicCall without_destination() const {
    DynamicCall call = *this;
    call.into_.reset();
    return call;
  }
  /// The same of calls that on a Strict mesh too need no contract: held to the one they are given.
  detail::CallSite free_site(std::string_view label) const { return freed(site(label)); }
  detail::CallSite free_fresh_site(std::string_view label) const {
    return freed(fresh_site(label));
  }

 private:
  detail::CallSite freed(detail::CallSite site) const {
    site.contract = contract_.value_or(Contract{});
    return site;
  }

  std::optional<Contract> contract_;
  std::optional<TensorCore> into_;
  Where where_;
};

namespace detail {
/// Returns make(call), of a call that may be several operators: the last one writes the
/// destination, where the call has one.
template <class Make> DynamicTensor of_several(const DynamicCall& call, const Make& make) {
  const TensorCore* const into = call.destination();
  if (into == nullptr) return make(call);
  write_last(*into, call.where(), [&] { return make(call.without_destination()).core(); });
  return DynamicTensor(*into);
}
}  // namespace detail

}  // namespace tessera
