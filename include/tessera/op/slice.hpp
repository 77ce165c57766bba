// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Parts of tensors: every stride-th element from start up to limit.
///
///     auto a = slice(x, {0, 2}, {8, 6});               // rows 0 to 7, columns 2 to 5
///     auto b = slice<1>(x, {2}, {6}, {2});             // columns 2 and 4, all rows
///     auto c = slice<P<data, _>>(x, {4, 0}, {8, 6});
///     auto halves = slices<1>(x, {{0}, {3}}, {{3}, {6}});      // two tensors, by one exchange
///
/// Laws: equals the slice of the whole tensor, for every mesh and spec; slice(pad(x)) by what was
/// padded is x; a dimension that is not split is cut without communication.
#include <vector>

#include <tessera/op/dynamic_call.hpp>
#include <tessera/op/shape_result.hpp>

namespace tessera {

/// Returns elements start, start + stride, ... before limit of each dimension, under x's spec or
/// `Out`; unfinished where x is. `D`: dimensions, counted from 0, for which start, limit and stride
/// have an entry each; the others stay whole; without any, all have one. Communication: one
/// exchange over the axes that split the dimensions, of what has a new owner; none where nothing
/// has. Collective over the mesh. Throws ShapeError unless 0 <= start <= limit <= extent and
/// stride > 0.
template <class Out = Deduced, class Bound = NoContract, int... D, TypedTensor A>
auto slice(const A& x, const Extents& start, const Extents& limit, const Extents& stride = {},
           Where where = Where::here()) {
  using Dims = detail::Along<D...>;
  using Typed = detail::TakeCall<OperatorKind::slice, Dims, Out, A>;
  const CallSite site{"slice", where, detail::bound<Typed, Bound>()};
  if constexpr (sizeof...(D) == 0)
    return
        typename Typed::result(detail::slice(x.core(), start, limit, stride, Typed::value, site));
  else
    return typename Typed::result(detail::slice(
        x.core(), detail::spread("start", start, Dims::named(), Extents(A::rank, 0), site),
        detail::spread("limit", limit, Dims::named(), x.extents(), site),
        stride.empty() ? stride
                       : detail::spread("stride", stride, Dims::named(), Extents(A::rank, 1), site),
        Typed::value, site));
}
template <int First, int... D, TypedTensor A>
auto slice(const A& x, const Extents& start, const Extents& limit, const Extents& stride = {},
           Where where = Where::here()) {
  return slice<Deduced, NoContract, First, D...>(x, start, limit, stride, where);
}

/// Returns several slices of x, of one stride, which may overlap: what carries the gradient of a
/// concatenation back. Communication: that of slice for all together: one exchange, and one message
/// from a process to another, for eight at a time. Otherwise as slice.
template <class Out = Deduced, class Bound = NoContract, int... D, TypedTensor A>
auto slices(const A& x, const std::vector<Extents>& starts, const std::vector<Extents>& limits,
            const Extents& stride = {}, Where where = Where::here()) {
  using Dims = detail::Along<D...>;
  using Typed = detail::TakeCall<OperatorKind::slice, Dims, Out, A>;
  const CallSite site{"slices", where, detail::bound<Typed, Bound>()};
  const auto of_all = [&](std::string_view name, std::vector<Extents> numbers,
                          const Extents& others) {
    if constexpr (sizeof...(D) > 0)
      for (Extents& one : numbers) one = detail::spread(name, one, Dims::named(), others, site);
    return numbers;
  };
  std::vector<typename Typed::result> results;
  for (TensorCore& core :
       detail::slices(x.core(), of_all("start", starts, Extents(A::rank, 0)),
                      of_all("limit", limits, x.extents()),
                      stride.empty() ? stride : of_all("stride", {stride}, Extents(A::rank, 1))[0],
                      Typed::value, site))
    results.emplace_back(std::move(core));
  return results;
}
template <int First, int... D, TypedTensor A>
auto slices(const A& x, const std::vector<Extents>& starts, const std::vector<Extents>& limits,
            const Extents& stride = {}, Where where = Where::here()) {
  return slices<Deduced, NoContract, First, D...>(x, starts, limits, stride, where);
}

/// The same with everything known at run time; without `out` the result is sharded as x is.
inline DynamicTensor slice(const DynamicTensor& x, const Extents& start, const Extents& limit,
                           const Extents& stride, const Sharding& out,
                           const DynamicCall& call = Where::here()) {
  return DynamicTensor(detail::slice(x.core(), start, limit, stride, out, call.site("slice")));
}
inline DynamicTensor slice(const DynamicTensor& x, const Extents& start, const Extents& limit,
                           const Extents& stride = {}, const DynamicCall& call = Where::here()) {
  return slice(x, start, limit, stride, x.sharding(), call);
}
inline std::vector<DynamicTensor> slices(const DynamicTensor& x, const std::vector<Extents>& starts,
                                         const std::vector<Extents>& limits, const Extents& stride,
                                         const Sharding& out,
                                         const DynamicCall& call = Where::here()) {
  std::vector<DynamicTensor> results;
  for (TensorCore& core :
       detail::slices(x.core(), starts, limits, stride, out, call.site("slices")))
    results.emplace_back(std::move(core));
  return results;
}
inline std::vector<DynamicTensor> slices(const DynamicTensor& x, const std::vector<Extents>& starts,
                                         const std::vector<Extents>& limits,
                                         const Extents& stride = {},
                                         const DynamicCall& call = Where::here()) {
  return slices(x, starts, limits, stride, x.sharding(), call);
}

}  // namespace tessera
