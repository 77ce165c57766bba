// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The last argument of every operator, of typed and of dynamic tensors alike: how the result is
/// sharded, what the call may communicate, the tensor that takes the result, and the place of the
/// call. Each part turns into it by itself; braces join several, in any order.
///
///     const Contract contract = contract_of<Grid, Only<gathers<data>>>();
///     DynamicTensor y = transpose("ij->ji", x, Sharding{{}, {}});
///     DynamicTensor z = transpose("ij->ji", x, {Sharding{{}, {}}, contract});
///     transpose("ij->ji", x, {y.sharding(), into(y)});   // into y, whose memory stays where it is
///
/// Laws: a call with a contract runs a plan that keeps it, or throws ContractError on every process
/// before it communicates; without one it may do anything, on a Strict mesh nothing. A call into y
/// gives y what the call returns without it, made there by its last operator; a call whose result
/// is not one tensor refuses it before it communicates. A typed call keeps its type's contract and
/// this one, and refuses a sharding other than its type's.
#include <concepts>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/base/error.hpp>
#include <tessera/run/call_site.hpp>
#include <tessera/run/into_last.hpp>
#include <tessera/tensor/sharded_tensor.hpp>

namespace tessera {

class CallOptions;
namespace detail {
/// A tensor whose sharding is part of its type, or known when the program runs.
template <class A>
concept AnyTensor = TypedTensor<A> || std::same_as<A, DynamicTensor>;

/// What a call can be given, beside the place where it stands.
template <class P>
concept CallPart =
    std::same_as<P, Sharding> || std::same_as<P, Contract> || std::same_as<P, CallOptions>;
}  // namespace detail

/// What a call may say beside its operands and settings. Made where the call stands from a
/// Sharding, a Contract, into(y), or several of them in braces; without any, from the place alone.
class CallOptions {
 public:
  // Templates, so that braces are not taken for a part.
  template <std::same_as<Where> W>
  CallOptions(W where) : where_(where) {}  // NOLINT: a place is enough
  template <detail::CallPart P>
    requires(!std::same_as<P, CallOptions>)
  CallOptions(const P& part, Where where = Where::here())  // NOLINT: and so is one part
      : where_(where) {
    add(part);
  }
  /// Throws UsageError when two parts are of one kind.
  template <detail::CallPart P, detail::CallPart Q>
  CallOptions(const P& first, const Q& second, Where where = Where::here()) : where_(where) {
    add(first);
    add(second);
  }
  template <detail::CallPart P, detail::CallPart Q, detail::CallPart R>
  CallOptions(const P& first, const Q& second, const R& third, Where where = Where::here())
      : where_(where) {
    add(first);
    add(second);
    add(third);
  }

  Where where() const { return where_; }
  const std::optional<Contract>& contract() const { return contract_; }
  /// Returns how the result is to be sharded; null: as the operator deduces it.
  const Sharding* out() const { return sharded_ ? &out_ : nullptr; }
  /// Returns the same, or the sharding of x.
  const Sharding& out_or(const DynamicTensor& x) const { return sharded_ ? out_ : x.sharding(); }
  /// Returns the tensor that takes the result; null: a new one does.
  const TensorCore* destination() const { return into_ ? &*into_ : nullptr; }

  /// Returns the call as operators take it, under the name that messages give it. The operator
  /// gives its result the sharding out().
  detail::CallSite sharded_site(std::string_view label) const {
    return {label, where_, contract_, destination()};
  }
  /// Returns the same of a call whose result has no sharding to choose. Throws UsageError when it
  /// is given one.
  detail::CallSite site(std::string_view label) const {
    refuse_out(label);
    return sharded_site(label);
  }
  /// Returns the same of a call whose result is not one tensor. Throws UsageError when it has a
  /// destination.
  detail::CallSite fresh_sharded_site(std::string_view label) const {
    if (into_)
      throw UsageError(std::string(label) +
                           ": the result of the call is not one tensor, so it takes no "
                           "destination; call it without one, and copy what it returns with "
                           "reshard_into",
                       where_);
    return {label, where_, contract_};
  }
  detail::CallSite fresh_site(std::string_view label) const {
    refuse_out(label);
    return fresh_sharded_site(label);
  }
  /// Returns the same of a call that on a Strict mesh too needs no contract: it is held to the one
  /// that it is given.
  detail::CallSite free_site(std::string_view label) const { return freed(site(label)); }
  detail::CallSite free_fresh_site(std::string_view label) const {
    return freed(fresh_site(label));
  }

  /// Returns the same options without a destination.
  CallOptions without_destination() const {
    CallOptions call = *this;
    call.into_.reset();
    return call;
  }
  /// Returns the same options with a sharding, where they have none.
  CallOptions or_sharded(const Sharding& out) const {
    CallOptions call = *this;
    if (!sharded_) call.add(out);
    return call;
  }
  /// Returns the options of a step on the way to the result: the same contract and place, neither a
  /// sharding nor a destination.
  CallOptions step() const {
    CallOptions call(where_);
    call.contract_ = contract_;
    return call;
  }

 private:
  friend CallOptions into(const DynamicTensor& y, Where where);

  void add(const Sharding& out) {
    refuse_second(sharded_, "sharding of its result");
    out_ = out;
    sharded_ = true;
  }
  void add(const Contract& contract) {
    refuse_second(contract_.has_value(), "contract");
    contract_ = contract;
  }
  void add(const CallOptions& options) {
    if (options.where_.known()) where_ = options.where_;
    if (options.sharded_) add(options.out_);
    if (options.contract_) add(*options.contract_);
    if (options.into_) {
      refuse_second(into_.has_value(), "destination");
      into_ = options.into_;
    }
  }
  void refuse_second(bool given, const char* part) const {
    if (given)
      throw UsageError("a call is given a " + std::string(part) +
                           " twice, in one pair of braces; it has one; leave one out",
                       where_);
  }
  void refuse_out(std::string_view label) const {
    if (sharded_)
      throw UsageError(std::string(label) +
                           ": the call is given the sharding of its result, which follows from "
                           "its other arguments; call it without one, and reshard what it returns",
                       where_);
  }
  detail::CallSite freed(detail::CallSite site) const {
    site.contract = contract_.value_or(Contract{});
    return site;
  }

  Sharding out_;
  bool sharded_ = false;  ///< out_ is the sharding of the result
  std::optional<Contract> contract_;
  std::optional<TensorCore> into_;
  Where where_;
};

/// Returns the options of a call that writes its result to y: a tensor of the result's element
/// type, extents and sharding that shares no memory with an operand, but that a map may read y
/// itself. The call throws ShapeError when y is another tensor than its result, UsageError when y
/// shares memory or the call takes no destination. Communication: none of its own.
inline CallOptions into(const DynamicTensor& y, Where where = Where::here()) {
  CallOptions call(where);
  call.into_ = y.core();
  return call;
}

namespace detail {
/// Returns make(call), of a call that may be several operators: the last one writes the
/// destination, where the call has one.
template <class Make> auto of_several(const CallOptions& call, const Make& make) {
  const TensorCore* const into = call.destination();
  if (into == nullptr) return make(call);
  write_last(*into, call.where(), [&] { return make(call.without_destination()).core(); });
  return decltype(make(call))(*into);
}
}  // namespace detail

}  // namespace tessera
