// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Sorts along one dimension, sharded or not: values, positions, and what is carried along. The
/// first k are top_k.hpp's.
///
///     auto s = sort<"bv", 'v'>(x);
///     auto i = arg_sort<"bv", 'v'>(x, {.descending = true});        // int64 positions along v
///     auto [values, positions] = sort_with_positions<"bv", 'v'>(x);
///     auto [keys, w] = sort_by_key<"bv", 'v'>(x, weights);
///
/// Laws: equals std::stable_sort of each line, for every mesh and spec, in either direction: equal
/// elements keep their order, and -0 equals 0; NaNs come last (as in NumPy), in either direction.
#include <tuple>

#include <tessera/op/result.hpp>
#include <tessera/op/row_operators.hpp>

namespace tessera {

struct SortOptions {
  bool descending = false;  ///< from the largest to the least
};

/// What is sorted, and where it was.
template <class Values, class Positions> struct Sorted {
  Values values;
  Positions positions;  ///< int64, along the whole dimension
};

namespace detail {
/// `few`: the results are short, so that what split the dimension is left out, not kept.
template <Equation Labels, char Along, class Out, bool Few, class A, class... B> struct SortCall {
  using mesh = typename CommonMesh<A, B...>::type;
  using key = typename A::value_type;
  static_assert(demand_elements<check_sort_type(dtype_of<key>).rule, key>());
  static consteval bool said() {
    static_assert(
        sizeof...(B) < 7,
        "[tessera] a sort carries at most six tensors beside the keys; sort positions, and "
        "take the others by them");
    return true;
  }
  static_assert(said());
  static_assert(demand_out<mesh, Out>());
  static constexpr Terms terms = same_terms(Labels.view(), 1 + static_cast<int>(sizeof...(B)));
  static constexpr int along = terms.result.find(Along);
  static constexpr Shardings operands{A::sharding(), B::sharding()...};
  static constexpr Sharding make_value() {
    if constexpr (std::is_same_v<Out, Deduced>) {
      Sharding same = operands[0];
      if (Few && along >= 0 && along < same.rank()) same[along] = {};
      return same;
    } else {
      return lower<mesh, Out>();
    }
  }
  static constexpr Sharding value = make_value();
  static constexpr Verdict verdict = check_sort(terms, Along, operands, value);
  static_assert(demand<SortCall, A, B...>());
  static constexpr Contract needs(const MeshShape& on, const Contract& contract) {
    return verdict.ok() ? needs_of_sort(terms.result, along, {.limit = Few ? 2 : -1}, operands,
                                        value, on, contract)
                        : Contract::nothing();
  }
  /// Not an alias, which nvcc 13.0 does not expand in a pack.
  template <class T> struct Made { using type = Result<T, mesh, SortCall>; };

  template <class Bound>
  static std::vector<TensorCore> run(const SortTask& task, const OperandList& tensors,
                                     Where where) {
    use_sort_of<key>();
    (use_sort_of<typename B::value_type>(), ...);
    use_tensor_of<std::int64_t>();
    use_sort_of<std::int64_t>();
    return sort(terms, Along, task, tensors, value,
                {Labels.view(), where, bound<SortCall, Bound>()});
  }
};

/// Returns the results of a call as tensors of elements T.
template <class Typed, class... T, std::size_t... I>
std::tuple<typename Typed::template Made<T>::type...> sorted_tuple(
    const std::vector<TensorCore>& all, std::index_sequence<I...>) {
  return {typename Typed::template Made<T>::type(all[I])...};
}

inline std::vector<TensorCore> sort(std::string_view labels, char along, const SortTask& task,
                                    const OperandList& tensors, const Sharding& out, Where where) {
  use_tensor_of<std::int64_t>();
  use_sort_of<std::int64_t>();
  return sort(same_terms(labels, tensors.size()), along, task, tensors, out, {labels, where});
}
}  // namespace detail

/// Returns the lines of x along dimension `Along` sorted, with x's spec or `Out`. Labels are the
/// letters of x. Communication, where `Along` is split: an all-to-all of x to other dimensions and
/// one back, or, where no other dimension can be split so, what is cheaper of an all-gather and
/// rounds of merging between pairs of processes (log2(p) (log2(p) + 1) / 2 exchanges of a block);
/// the plan says which. None when it is not split. Collective over the mesh.
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto sort(const A& x, SortOptions options = {}, Where where = Where::here()) {
  using Typed = detail::SortCall<Labels, Along, Out, false, A>;
  return typename Typed::template Made<typename A::value_type>::type(Typed::template run<Bound>(
      SortTask{.descending = options.descending}, {&x.core()}, where)[0]);
}

/// Returns the positions of the elements of each line of x in order, as int64. Communication: as
/// sort, with positions on the way back.
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto arg_sort(const A& x, SortOptions options = {}, Where where = Where::here()) {
  using Typed = detail::SortCall<Labels, Along, Out, false, A>;
  return typename Typed::template Made<std::int64_t>::type(Typed::template run<Bound>(
      SortTask{.descending = options.descending, .keys = false, .positions = true}, {&x.core()},
      where)[0]);
}

/// Returns both. Communication: as sort, with values and positions on the way back.
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto sort_with_positions(const A& x, SortOptions options = {}, Where where = Where::here()) {
  using Typed = detail::SortCall<Labels, Along, Out, false, A>;
  using Values = typename Typed::template Made<typename A::value_type>::type;
  using Positions = typename Typed::template Made<std::int64_t>::type;
  const auto both = Typed::template run<Bound>(
      SortTask{.descending = options.descending, .positions = true}, {&x.core()}, where);
  return Sorted<Values, Positions>{Values(both[0]), Positions(both[1])};
}

/// Returns the keys sorted, and each carried tensor (one to six, of any element types and of the
/// keys' extents) in the keys' order, as a tuple; all with the keys' spec or `Out`. Communication:
/// as sort, for each tensor. Collective over the mesh. Throws ShapeError when extents disagree.
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A,
          TypedTensor... B>
  requires(sizeof...(B) >= 1)
auto sort_by_key(SortOptions options, const A& keys, const B&... carried) {
  using Typed = detail::SortCall<Labels, Along, Out, false, A, B...>;
  const auto all = Typed::template run<Bound>(SortTask{.descending = options.descending},
                                              {&keys.core(), &carried.core()...}, Where{});
  return detail::sorted_tuple<Typed, typename A::value_type, typename B::value_type...>(
      all, std::make_index_sequence<1 + sizeof...(B)>{});
}
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A,
          TypedTensor B>
auto sort_by_key(const A& keys, const B& carried, SortOptions options = {},
                 Where where = Where::here()) {
  using Typed = detail::SortCall<Labels, Along, Out, false, A, B>;
  const auto all = Typed::template run<Bound>(SortTask{.descending = options.descending},
                                              {&keys.core(), &carried.core()}, where);
  return detail::sorted_tuple<Typed, typename A::value_type, typename B::value_type>(
      all, std::make_index_sequence<2>{});
}

/// The same with everything known at run time; without `out` the results are sharded as x is.
inline DynamicTensor sort(std::string_view labels, char along, const DynamicTensor& x,
                          const Sharding& out, SortOptions options = {},
                          Where where = Where::here()) {
  return DynamicTensor(
      detail::sort(labels, along, {.descending = options.descending}, {&x.core()}, out, where)[0]);
}
inline DynamicTensor sort(std::string_view labels, char along, const DynamicTensor& x,
                          SortOptions options = {}, Where where = Where::here()) {
  return sort(labels, along, x, x.sharding(), options, where);
}
inline DynamicTensor arg_sort(std::string_view labels, char along, const DynamicTensor& x,
                              const Sharding& out, SortOptions options = {},
                              Where where = Where::here()) {
  return DynamicTensor(detail::sort(
      labels, along, {.descending = options.descending, .keys = false, .positions = true},
      {&x.core()}, out, where)[0]);
}
inline DynamicTensor arg_sort(std::string_view labels, char along, const DynamicTensor& x,
                              SortOptions options = {}, Where where = Where::here()) {
  return arg_sort(labels, along, x, x.sharding(), options, where);
}
inline Sorted<DynamicTensor, DynamicTensor> sort_with_positions(std::string_view labels, char along,
                                                                const DynamicTensor& x,
                                                                const Sharding& out,
                                                                SortOptions options = {},
                                                                Where where = Where::here()) {
  const auto both =
      detail::sort(labels, along, {.descending = options.descending, .positions = true},
                   {&x.core()}, out, where);
  return {DynamicTensor(both[0]), DynamicTensor(both[1])};
}
inline Sorted<DynamicTensor, DynamicTensor> sort_with_positions(std::string_view labels, char along,
                                                                const DynamicTensor& x,
                                                                SortOptions options = {},
                                                                Where where = Where::here()) {
  return sort_with_positions(labels, along, x, x.sharding(), options, where);
}
/// Of several tensors, at most seven: the first holds the keys. Throws UsageError for more.
inline std::vector<DynamicTensor> sort_by_key(std::string_view labels, char along,
                                              const std::vector<DynamicTensor>& tensors,
                                              const Sharding& out, SortOptions options = {},
                                              Where where = Where::here()) {
  if (tensors.empty() || tensors.size() > 7)
    throw UsageError("sort_by_key of " + std::to_string(tensors.size()) +
                         " tensors; it takes the keys, and at most six tensors that are carried "
                         "with them; sort positions, and take the others by them",
                     where);
  detail::OperandList operands;
  for (const DynamicTensor& tensor : tensors) operands.push_back(&tensor.core());
  std::vector<DynamicTensor> results;
  for (TensorCore& result :
       detail::sort(labels, along, {.descending = options.descending}, operands, out, where))
    results.emplace_back(std::move(result));
  return results;
}
inline std::vector<DynamicTensor> sort_by_key(std::string_view labels, char along,
                                              const std::vector<DynamicTensor>& tensors,
                                              SortOptions options = {},
                                              Where where = Where::here()) {
  return sort_by_key(labels, along, tensors, tensors.empty() ? Sharding() : tensors[0].sharding(),
                     options, where);
}

}  // namespace tessera
