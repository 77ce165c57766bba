// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Running joins by any associative function along one dimension, sharded or not: recurrences,
/// products of small matrices, and all joins that cumulative.hpp has no name for.
///
///     auto h = associative_scan<"bt", 't'>(Compose{}, complex<float>(1, 0), steps);
///     auto s = associative_scan<"bt", 't'>(Compose{}, complex<float>(1, 0), steps, {.reverse = true});
///
/// Laws: for every mesh and spec it equals f applied from the first element to the last (in
/// reverse: from the last to the first), with the join so far as f's first argument; f need not
/// commute. Element 0 of an exclusive scan is the identity. Floats differ between meshes by the
/// rounding of f.
#include <tessera/op/call/scalar.hpp>
#include <tessera/op/rows/cumulative.hpp>
#include <tessera/op/to_host.hpp>

namespace tessera {
namespace detail {
/// Stands, among the kinds of a running join, for a function.
struct ByFunction {
  static constexpr Reduction reduction = Reduction::none;
};

template <class F, class T> consteval bool demand_join() {
  static_assert(is_join<F, T>,
                "[tessera] the function of an associative scan cannot join two elements; its "
                "operator() is const, takes two of the tensor's elements and returns one");
  return true;
}
}  // namespace detail

/// Returns, for each element of x, the join by f of the elements up to it along dimension `Along`,
/// with x's spec or `Out`. f is associative, its operator() const and a KOKKOS_FUNCTION (or any
/// lambda on host backends), and f(identity, a) == a. Labels are the letters of x, which is
/// finished. Communication: one all-gather of an element for each row and part, over the axes that
/// split `Along`; none when it is not split. Collective over the mesh. Throws UsageError when the
/// identity is no element of x's type.
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, class F,
          TypedTensor A>
typename detail::TypedScan<detail::ByFunction, Labels, Along, Out, A>::result associative_scan(
    const F& f, detail::GivenElement<typename A::value_type> identity, const A& x,
    ScanOptions options = {}, const CallOptions& call = Where::here()) {
  using Typed = detail::TypedScan<detail::ByFunction, Labels, Along, Out, A>;
  using T = typename A::value_type;
  static_assert(detail::demand_join<F, T>());
  const detail::CallSite site =
      detail::typed_site<Typed, Bound>(detail::function_name<F>(), call, x.core());
  const detail::ScanRunner<F, T> runner{f, identity.at(site)};
  ops::Scan operation = Typed::operation;
  operation.options = options;
  return typename Typed::result(detail::run({operation, {&x.core()}, site, runner.extras()}));
}

/// This overload takes everything at run time; x has elements T or, where the call names none, the
/// identity's own type. Without a sharding the result is sharded as x is.
template <class T = void, class F, Scalar S>
  requires Element<detail::NamedOrOwn<T, S>> DynamicTensor associative_scan(
      std::string_view labels, char along, const F& f, S identity, const DynamicTensor& x,
      ScanOptions options = {}, const CallOptions& call = Where::here()) {
    using E = detail::NamedOrOwn<T, S>;
    static_assert(detail::demand_join<F, E>());
    const std::string_view name = detail::function_name<F>();
    const detail::CallSite site = call.sharded_site(name);
    detail::require_type<E>(x, site);
    const detail::ScanRunner<F, E> runner{f, detail::scalar_as<E>(identity, site)};
    return detail::run_dynamic(
        name, call,
        ops::Scan{detail::same_terms(labels), along, Reduction::none, options, x.type()},
        {&x.core()}, runner.extras());
  }

}  // namespace tessera
