// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Adds elements around and between those of a tensor, or removes elements at its ends.
///
///     auto a = pad(x, {1, 0}, {1, 2});                 // a row of 0 on either side, two columns behind
///     auto b = pad<1>(x, {2}, {-1}, {}, -1.0f);        // two columns of -1 before, the last one cut off
///     auto c = pad<0>(x, {0}, {0}, {1});               // a row of 0 between any two
///
/// Laws: equals the pad of the whole tensor, for every mesh and spec; slice(pad(x)) by what was
/// padded is x; <pad(x), y> == <x, slice(y)>.
#include <tessera/op/call/shape_result.hpp>

namespace tessera {
namespace detail {
/// How pad<D...> is made.
template <int... D> struct PadBy {
  static constexpr ops::Pad make(const TensorDescs& x) {
    return {{Along<D...>::marks(x[0].rank()), Extents(x[0].rank(), 0)}};
  }
};
}  // namespace detail

/// Returns x with low elements before, high ones behind and interior ones between any two of each
/// dimension, all `value`, under x's spec or `Out`; unfinished where x is. Negative low and high
/// crop, after the interior. `D`: the dimensions, counted from 0, for which low, high and interior
/// have an entry each, all where none is named; the others stay. Communication: one exchange over
/// the axes that split the dimensions, of the elements with a new owner. Collective over the mesh.
/// Throws ShapeError where more is cropped than there is, ShardingError where x is unfinished and
/// its parts would join `value` several times, UsageError where `value` is no element of x's type.
template <class Out = Deduced, class Bound = NoContract, int... D, TypedTensor A,
          Scalar S = typename A::value_type>
auto pad(const A& x, const Extents& low, const Extents& high, const Extents& interior = {},
         S value = S{}, const CallOptions& call = Where::here()) {
  using Typed = detail::Typed<detail::PadBy<D...>, Out, A>;
  const detail::CallSite site = detail::typed_site<Typed, Bound>("pad", call, x.core());
  const auto of_all = [&](std::string_view name, const Extents& numbers) {
    return detail::spread<D...>(x, name, numbers, Extents(A::rank, 0), site);
  };
  const detail::FillValue fill(detail::scalar_as<typename A::value_type>(value, site));
  const ops::Pad operation{
      {of_all("low", low), of_all("high", high),
       interior.empty() ? interior : of_all("interior", interior), fill.outside()},
      Typed::value};
  return typename Typed::result(detail::run({operation, {&x.core()}, site, {.fill = fill.data()}}));
}
template <int First, int... D, TypedTensor A, Scalar S = typename A::value_type>
auto pad(const A& x, const Extents& low, const Extents& high, const Extents& interior = {},
         S value = S{}, const CallOptions& call = Where::here()) {
  return pad<Deduced, NoContract, First, D...>(x, low, high, interior, value, call);
}

/// This overload takes everything at run time; without a sharding the result is sharded as x is.
inline DynamicTensor pad(const DynamicTensor& x, const Extents& low, const Extents& high,
                         const Extents& interior = {}, detail::OutsideValue value = {},
                         const CallOptions& call = Where::here()) {
  const detail::FillValue fill = value.as(x.type(), call.sharded_site("pad"));
  return detail::run_dynamic("pad", call, ops::Pad{{low, high, interior, fill.outside()}},
                             {&x.core()}, {.fill = fill.data()});
}

}  // namespace tessera
