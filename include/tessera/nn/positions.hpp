// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Positions of tokens: learned, a row of a table added to each; rotary, each pair of elements of
/// queries and keys turned by an angle; or relative, a number for each head and distance added to
/// scores.
///
///     auto places = Embedding<Here, logical::positions>::like(make, 5, 6);
///     auto h = add_positions(places, x);              // x is (batch, sequence, embed)
///     auto packed = add_positions(places, x, at);     // at is (batch, sequence), int32
///     auto q = rotary(queries);                       // (batch, sequence, heads, head_dim)
///     auto bias = RelativeBias<Here>::like(make, {.buckets = 8, .groups = 3});   // for attention
///
/// Laws: the product of a turned query and a turned key depends on the distance of their places
/// alone; rotary keeps the length of each pair.
#include <array>
#include <string>

#include <tessera/base/error.hpp>
#include <tessera/nn/detail/relative_bucket.hpp>
#include <tessera/nn/embedding.hpp>
#include <tessera/op/create/create.hpp>
#include <tessera/op/create/create_like.hpp>
#include <tessera/op/elements/arithmetic.hpp>
#include <tessera/op/elements/map.hpp>
#include <tessera/op/shape/roll.hpp>
#include <tessera/op/shape/slice.hpp>

namespace tessera {
namespace fn {
/// The cosine of the angle of place i[0] + first and element i[1], or the sine, negative for the
/// first of a pair.
template <class T> struct RotaryAngle {
  bool sine;
  Index first, pairs;
  double base;
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    const Index pair = i[1] < pairs ? i[1] : i[1] - pairs;
    const double angle = static_cast<double>(i[0] + first) *
                         Kokkos::pow(base, -static_cast<double>(pair) / static_cast<double>(pairs));
    const double value = sine ? Kokkos::sin(angle) : Kokkos::cos(angle);
    return tessera::detail::from_double<T>(sine && i[1] < pairs ? -value : value);
  }
};
/// The cosine of an angle, place times frequency, or the sine; of a negative frequency, minus it.
template <class T> struct RotaryAngleAt {
  static constexpr std::string_view name = "rotary angle";
  bool sine;
  KOKKOS_FUNCTION T operator()(std::int32_t place, double frequency) const {
    const double angle = static_cast<double>(place) * frequency;
    return tessera::detail::from_double<T>(sine ? Kokkos::sin(angle) : Kokkos::cos(angle));
  }
};
/// base^(-j / pairs) of element j of the first half, negative, and of the second.
struct RotaryFrequency {
  Index pairs;
  double base;
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i) const {
    const Index pair = i[0] < pairs ? i[0] : i[0] - pairs;
    const double f = Kokkos::pow(base, -static_cast<double>(pair) / static_cast<double>(pairs));
    return i[0] < pairs ? -f : f;
  }
};
/// x cosine + partner sine.
struct Rotated {
  static constexpr std::string_view name = "rotary";
  template <class T> KOKKOS_FUNCTION T operator()(T x, T partner, T cosine, T sine) const {
    return x * cosine + partner * sine;
  }
  template <int I, class T> KOKKOS_FUNCTION T derivative(T x, T partner, T cosine, T sine) const {
    if constexpr (I == 0) return cosine;
    if constexpr (I == 1) return sine;
    return I == 2 ? x : partner;
  }
};
}  // namespace fn

/// Returns x with the rows first, first + 1, ... of the table added to its places: x is (...,
/// sequence, embed), the result like x. Communication: none, unless table and x are split
/// differently: then the rows that are used are moved. Collective over the mesh. Throws ShapeError
/// when the table has fewer rows. Source: Gehring et al. (2017).
template <class U, class Rows, TypedTensor A>
A add_positions(const Embedding<U, Rows>& table, const A& x, Index first = 0,
                Where where = Where::here()) {
  const Index n = x.extent(A::rank - 2), there = table.weight.extent(0);
  if (first < 0 || first + n > there)
    throw ShapeError("add_positions: a text of " + std::to_string(n) + " places from place " +
                         std::to_string(first) + " on, and the table has " + std::to_string(there) +
                         " rows; make a longer table, or a shorter text",
                     where);
  const auto rows = slice<0>(table.weight, {first}, {first + n}, {}, where);
  return A(map<detail::equation_of(A::rank - 2, "*xy,xy->*xy"), typename A::spec>(fn::Add{}, x,
                                                                                  rows, where));
}

/// The same with a place for each token: x is (batch, sequence, embed), `places` (batch, sequence),
/// integers, whose rows of the table begin at row `first`; those outside are clamped.
/// Communication: that of look_up. Collective over the mesh.
template <class U, class Rows, TypedTensor A, TypedTensor I>
A add_positions(const Embedding<U, Rows>& table, const A& x, const I& places, Index first = 0,
                Where where = Where::here()) {
  const auto rows = [&](const I& at) { return look_up<typename A::spec>(table, at, where); };
  using Place = typename I::value_type;
  return x + (first == 0 ? rows(places) : rows(places + static_cast<Place>(first)));
}

namespace detail {
/// Returns how many pairs the elements of a head have. Throws ShapeError for an odd number.
inline Index rotary_pairs(Index size, Where where) {
  if (size % 2 == 0) return size / 2;
  throw ShapeError("rotary: the last dimension has " + std::to_string(size) +
                       " elements, and they are turned in pairs; give an even number",
                   where);
}

/// Returns x turned by tables of cosines and sines that it is multiplied by as the letters say.
template <Equation letters, TypedTensor A, class Table>
A turned(const A& x, Index pairs, const Table& table, Where where) {
  return A(map<letters, typename A::spec>(
      at(where), fn::Rotated{}, x, roll<A::rank - 1>(x, pairs, where), table(false), table(true)));
}

/// Returns the cosines and the sines, (batch, sequence, head_dim), by which places turn tensors
/// like x.
template <TypedTensor A, TypedTensor I>
auto rotary_tables(const A& x, const I& places, double base, Where where) {
  using T = typename A::value_type;
  using M = typename A::mesh_type;
  const Index size = x.extent(A::rank - 1), pairs = rotary_pairs(size, where);
  const auto frequencies = from_function<ShardedTensor<double, M, P<_>>>(
      mesh_like(x), {size}, fn::RotaryFrequency{max_of(pairs, Index{1}), base}, where);
  const auto table = [&](bool sine) {
    return map<"ab,y->aby">(fn::RotaryAngleAt<T>{sine}, places, frequencies, where);
  };
  return std::array<decltype(table(false)), 2>{table(false), table(true)};
}
/// Returns x, (batch, sequence, ..., head_dim), turned by these.
template <TypedTensor A, class Tables> A turned_by(const A& x, const Tables& tables, Where where) {
  return turned<equation_of(A::rank - 1, "*y,*y,aby,aby->*y")>(
      x, rotary_pairs(x.extent(A::rank - 1), where),
      [&](bool sine) { return tables[sine ? 1 : 0]; }, where);
}
}  // namespace detail

/// Returns x with elements j and j + half of its last dimension turned by the angle p base^(-j /
/// half), where half is half of their number, and p the place along dimension 1 plus `first`: x is
/// (batch, sequence, ..., head_dim), the result like x. Communication: none where the last
/// dimension is whole. Collective over the mesh. Throws ShapeError when the last dimension is odd.
/// Source: Su et al., "RoFormer" (2021), section 3.2, with the pairs of GPT-NeoX.
template <TypedTensor A>
A rotary(const A& x, Index first = 0, double base = 10000, Where where = Where::here()) {
  static_assert(A::rank >= 3,
                "[tessera] rotary takes a tensor (batch, sequence, ..., head_dim); give it these "
                "dimensions");
  using T = typename A::value_type;
  using M = typename A::mesh_type;
  const Index size = x.extent(A::rank - 1), pairs = detail::rotary_pairs(size, where);
  const auto table = [&](bool sine) {
    return from_function<ShardedTensor<T, M, P<_, _>>>(
        detail::mesh_like(x), {x.extent(1), size},
        fn::RotaryAngle<T>{sine, first, max_of(pairs, Index{1}), base}, where);
  };
  return detail::turned<detail::equation_of(A::rank - 1, "*y,*y,by,by->*y")>(x, pairs, table,
                                                                             where);
}

/// The same with a place for each token: x is (batch, sequence, ..., head_dim), `places` (batch,
/// sequence), int32. Communication: none where the last dimension is whole and both are split
/// alike. Collective over the mesh. Throws ShapeError when the last dimension is odd.
template <TypedTensor A, TypedTensor I>
A rotary(const A& x, const I& places, double base = 10000, Where where = Where::here()) {
  static_assert(
      A::rank >= 3 && I::rank == 2,
      "[tessera] rotary takes a tensor (batch, sequence, ..., head_dim) and places (batch, "
      "sequence); give them these dimensions");
  return detail::turned_by(x, detail::rotary_tables(x, places, base, where), where);
}

/// Distances that are told apart, of so many heads: groups times repeats.
struct RelativeSizes {
  Index buckets = 32, groups = 1, repeats = 1;
};

/// What is added to the score of a key, by its distance from the query and by the head: a number
/// for each bucket of distances (nn/detail/relative_bucket.hpp), half of which are for keys that
/// come after the query, where attention is not causal. Layers may share one. Source: Raffel et
/// al. (T5, 2020), section 2.1.
template <class U> struct RelativeBias {
  using Table = typename U::template Tensor<_, logical::groups, logical::repeats>;
  Table table;
  static constexpr auto fields = Fields<&RelativeBias::table>{};

  /// Throws UsageError unless there are at least 4 buckets, an even number.
  static RelativeBias like(Parameters<typename U::mesh_type>& make, const RelativeSizes& n,
                           Where where = Where::here()) {
    if (n.buckets < 4 || n.buckets % 2 != 0)
      throw UsageError("relative positions: " + std::to_string(n.buckets) +
                           " buckets of distances, of which half may be for keys after the query; "
                           "give an even number, and at least 4",
                       where);
    return {make.template tensor<Table>({n.buckets, n.groups, n.repeats}, Initializer::normal(1),
                                        where)};
  }
};

}  // namespace tessera
