// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Sorts along one dimension, sharded or not: values, indices, and tensors carried along.
/// op/rows/top_k.hpp has the first k.
///
///     auto s = sort<"bv", 'v'>(x);
///     auto i = argsort<"bv", 'v'>(x, {.descending = true});        // int64 indices along v
///     auto [values, indices] = sort_with_indices<"bv", 'v'>(x);
///     auto [keys, w] = sort_by_key<"bv", 'v'>(x, weights);
///
/// Laws: equals std::stable_sort of each line, for every mesh and spec, in either direction: equal
/// elements keep their order, and -0 equals 0; NaNs come last (as in NumPy), in either direction.
/// Where the keys alone are asked for, they move without indices: then -0 comes before 0 (behind
/// it in a descending order), and NaNs are in the order of their bits, on every mesh alike.
#include <tuple>

#include <tessera/op/call/call_options.hpp>
#include <tessera/op/call/operators.hpp>
#include <tessera/op/call/result.hpp>
#include <tessera/plan/op/rows/sort.hpp>

namespace tessera {

struct SortOptions {
  bool descending = false;  ///< from the largest to the least
};

/// The sorted values, and the indices where they were.
template <class Values, class Indices> struct Sorted {
  Values values;
  Indices indices;  ///< int64, along the whole dimension
};

namespace detail {
/// How a sort is made; `Few`: only the first elements of each line, as many as the call says.
template <Equation Labels, char Along, bool Few, bool Keys, bool Indices, int Operands>
struct SortBy {
  static consteval bool said() {
    static_assert(Operands < 8,
                  "[tessera] a sort carries at most six tensors beside the keys; sort indices, and "
                  "take the others by them");
    return true;
  }
  static_assert(said());
  static constexpr ops::Sort make(const TensorDescs&) {
    return {same_terms(Labels.view(), Operands),
            Along,
            {.keys = Keys,
             .positions = Indices,
             .limit = Few ? 2 : -1,
             .kind = Few ? OperatorKind::top_k : OperatorKind::sort}};
  }
};
template <Equation Labels, char Along, class Out, bool Few, bool Keys, bool Indices, class... A>
using TypedSort =
    Typed<SortBy<Labels, Along, Few, Keys, Indices, static_cast<int>(sizeof...(A))>, Out, A...>;

/// Indices are int64, and int32 in messages.
template <int = dtypes> void use_indices() {
  use_tensor_of<std::int32_t>();
  use_sort_of<std::int32_t>();
  use_tensor_of<std::int64_t>();
  use_sort_of<std::int64_t>();
}
template <class Call, class... A>
std::vector<TensorCore> run_sort(bool descending, Index limit, CallSite site, const A&... x) {
  (use_sort_of<typename A::value_type>(), ...);
  use_indices();
  ops::Sort operation = Call::operation;
  operation.task.descending = descending;
  if (operation.task.limit >= 0) operation.task.limit = limit;
  return run_all(operation, {&x.core()...}, site);
}

template <class Call, std::size_t... I>
std::tuple<typename ResultOf<Call, static_cast<int>(I)>::type...> sorted_tuple(
    const std::vector<TensorCore>& all, std::index_sequence<I...>) {
  return {typename ResultOf<Call, static_cast<int>(I)>::type(all[I])...};
}

template <int = dtypes>
std::vector<TensorCore> sort(std::string_view labels, char along, const SortTask& task,
                             const OperandList& tensors, const CallOptions& call, CallSite site) {
  use_indices();
  ops::Sort operation{same_terms(labels, tensors.size()), along, task};
  mesh_of(*tensors[0], site);
  operation.out = call.out() != nullptr ? *call.out() : operation.deduced(descs_of(tensors));
  return run_all(operation, tensors, site);
}
}  // namespace detail

/// Returns the lines of x along dimension `Along` sorted: with "bv" and 'v' x and the result are
/// (b, v), under x's spec or `Out`. Communication, where `Along` is split: an all-to-all of x to
/// other dimensions and one back, or, where no other dimension can be split so, the cheaper of an
/// all-gather and rounds of merging between pairs of processes (log2(p) (log2(p) + 1) / 2 exchanges
/// of a block); the plan says which. None when it is not split. Collective over the mesh. Throws
/// nothing of its own.
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto sort(const A& x, SortOptions options = {}, const CallOptions& call = Where::here()) {
  using Typed = detail::TypedSort<Labels, Along, Out, false, true, false, A>;
  return typename Typed::result(detail::run_sort<Typed>(
      options.descending, -1, detail::typed_site<Typed, Bound>(Labels.view(), call, x.core()),
      x)[0]);
}

/// Returns the indices of the elements of each line of x in order, of x's shape, as int64.
/// Communication: as sort, with indices on the way back. Errors: as sort. Collective over the
/// mesh.
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto argsort(const A& x, SortOptions options = {}, const CallOptions& call = Where::here()) {
  using Typed = detail::TypedSort<Labels, Along, Out, false, false, true, A>;
  return typename Typed::result(detail::run_sort<Typed>(
      options.descending, -1, detail::typed_site<Typed, Bound>(Labels.view(), call, x.core()),
      x)[0]);
}

/// Returns both, each of x's shape. Communication: as sort, with values and indices on the way
/// back. Errors: as sort. Collective over the mesh.
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto sort_with_indices(const A& x, SortOptions options = {},
                       const CallOptions& call = Where::here()) {
  using Typed = detail::TypedSort<Labels, Along, Out, false, true, true, A>;
  using Indices = typename detail::ResultOf<Typed, 1>::type;
  const auto both = detail::run_sort<Typed>(
      options.descending, -1, detail::fresh_typed_site<Typed, Bound>(Labels.view(), call, x.core()),
      x);
  return Sorted<typename Typed::result, Indices>{typename Typed::result(both[0]), Indices(both[1])};
}

/// Returns the keys sorted, and each carried tensor (one to six, of any element types and of the
/// keys' extents) in the keys' order, as a tuple; all with the keys' spec or `Out`. Communication:
/// as sort, for each tensor. Collective over the mesh. Throws ShapeError when extents disagree.
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A,
          TypedTensor... B>
  requires(sizeof...(B) >= 1)
auto sort_by_key(SortOptions options, const A& keys, const B&... carried) {
  using Typed = detail::TypedSort<Labels, Along, Out, false, true, false, A, B...>;
  const auto all = detail::run_sort<Typed>(
      options.descending, -1, detail::typed_site<Typed, Bound>(Labels.view(), Where{}, keys.core()),
      keys, carried...);
  return detail::sorted_tuple<Typed>(all, std::make_index_sequence<1 + sizeof...(B)>{});
}
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A,
          TypedTensor B>
auto sort_by_key(const A& keys, const B& carried, SortOptions options = {},
                 const CallOptions& call = Where::here()) {
  using Typed = detail::TypedSort<Labels, Along, Out, false, true, false, A, B>;
  const auto all = detail::run_sort<Typed>(
      options.descending, -1,
      detail::fresh_typed_site<Typed, Bound>(Labels.view(), call, keys.core()), keys, carried);
  return detail::sorted_tuple<Typed>(all, std::make_index_sequence<2>{});
}

namespace detail {
constexpr SortTask positions_task(SortOptions options, bool keys) {
  return {.descending = options.descending, .keys = keys, .positions = true};
}
inline Sorted<DynamicTensor, DynamicTensor> as_sorted(const std::vector<TensorCore>& both) {
  return {DynamicTensor(both[0]), DynamicTensor(both[1])};
}
}  // namespace detail

/// These overloads take everything at run time; without a sharding the results are sharded as x is.
template <int = dtypes>
DynamicTensor sort(std::string_view labels, char along, const DynamicTensor& x,
                   SortOptions options = {}, const CallOptions& call = Where::here()) {
  return DynamicTensor(detail::sort(labels, along, {.descending = options.descending}, {&x.core()},
                                    call, call.sharded_site(labels))[0]);
}
template <int = dtypes>
DynamicTensor argsort(std::string_view labels, char along, const DynamicTensor& x,
                      SortOptions options = {}, const CallOptions& call = Where::here()) {
  return DynamicTensor(detail::sort(labels, along, detail::positions_task(options, false),
                                    {&x.core()}, call, call.sharded_site(labels))[0]);
}
template <int = dtypes>
Sorted<DynamicTensor, DynamicTensor> sort_with_indices(std::string_view labels, char along,
                                                       const DynamicTensor& x,
                                                       SortOptions options = {},
                                                       const CallOptions& call = Where::here()) {
  return detail::as_sorted(detail::sort(labels, along, detail::positions_task(options, true),
                                        {&x.core()}, call, call.fresh_sharded_site(labels)));
}
template <int = dtypes>
std::vector<DynamicTensor> sort_by_key(std::string_view labels, char along,
                                       const std::vector<DynamicTensor>& tensors,
                                       SortOptions options = {},
                                       const CallOptions& call = Where::here()) {
  if (tensors.empty() || tensors.size() > 7)
    throw UsageError("sort_by_key of " + std::to_string(tensors.size()) +
                         " tensors; it takes the keys, and at most six tensors that are carried "
                         "with them; sort indices, and take the others by them",
                     call.where());
  detail::OperandList operands;
  for (const DynamicTensor& tensor : tensors) operands.push_back(&tensor.core());
  std::vector<DynamicTensor> results;
  for (TensorCore& result : detail::sort(labels, along, {.descending = options.descending},
                                         operands, call, call.fresh_sharded_site(labels)))
    results.emplace_back(std::move(result));
  return results;
}

}  // namespace tessera
