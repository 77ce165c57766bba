// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Evenly spaced numbers, and ones on a diagonal: NumPy's arange, linspace and eye.
/// op/create/create.hpp makes other tensors.
///
///     auto i = arange<Ints<data>>(mesh, 3, 20, 4);            // 3, 7, 11, 15, 19
///     auto x = linspace<Tensor<data>>(mesh, 0.0, 1.0, 101);   // 0, 0.01, ..., 1
///     auto e = eye<Tensor<data, _>>(mesh, {8, 6}, 1);         // ones above the diagonal
///     DynamicTensor j = arange<float>(mesh.core(), Sharding{{0}}, 0, 1, 0.25);
///
/// Laws: arange(a, b, s)[i] == a + i s for 0 <= i < ceil((b - a) / s); linspace(a, b, n) begins
/// with a and ends with b. Every process fills its own block, so nothing is communicated.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include <tessera/op/create/create_dynamic.hpp>

namespace tessera {
namespace detail {

/// A number at an end of a line of integers: a whole one exactly, and any other.
struct LineEnd {
  double real;
  WholeNumber whole = 0;
  bool is_whole;
  template <class S>
    requires std::is_convertible_v<S, double>
  constexpr explicit LineEnd(S s)
      : real(static_cast<double>(s)),
        is_whole(std::is_integral_v<S> ||
                 (std::floor(real) == real && real >= -0x1p63 && real < 0x1p64)) {
    if (is_whole) whole = static_cast<WholeNumber>(s);
  }
};

/// The type of a sequence's arguments: whole numbers for integers, double for real numbers; for a
/// line of integers its ends, of complex numbers complex ones.
template <class T, bool Line>
using SequenceNumber =
    std::conditional_t<IntegerElement<T>, std::conditional_t<Line, LineEnd, WholeNumber>,
                       std::conditional_t<ComplexElement<T> && Line, complex<double>, double>>;

/// One argument of a call that makes a sequence of elements T; nothing is converted silently.
template <class T, bool Line> struct SequenceArgument {
  using Number = SequenceNumber<T, Line>;
  Number value;
  template <class S>
    requires((std::is_arithmetic_v<S> || Element<S>)&&std::is_constructible_v<Number, S>)
  SequenceArgument(S s) : value(static_cast<Number>(s)) {  // NOLINT: a number
    static_assert(!IntegerElement<T> || Line || std::is_integral_v<S>,
                  "[tessera] a fraction is given for a sequence of integers; nothing is converted "
                  "in silence; write whole numbers, or make a tensor of double");
  }
};
template <class T> using RangeArgument = SequenceArgument<T, false>;
template <class T> using LineArgument = SequenceArgument<T, true>;

template <class T> constexpr bool demand_numbers() {
  static_assert(NumberElement<T>,
                "[tessera] truth values do not count; make a sequence of int32 or int64");
  return true;
}

/// The element `start + i step`; of integers all three modulo 2^64.
template <class T> struct AtStep {
  std::conditional_t<IntegerElement<T>, std::uint64_t, double> start, step;
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    if constexpr (IntegerElement<T>)
      return static_cast<T>(start + static_cast<std::uint64_t>(i[0]) * step);
    else
      return from_double<T>(start + static_cast<double>(i[0]) * step);
  }
};

inline std::string number_text(double x) { return std::to_string(x); }
inline std::string number_text(complex<double> x) {
  return std::to_string(x.re) + " + " + std::to_string(x.im) + "i";
}

/// ceil((stop - start) / step), and 0 where that is negative; -1 where it is more than an Index.
inline Index range_length(WholeNumber start, WholeNumber stop, WholeNumber step) {
  if (step > 0 ? stop <= start : stop >= start) return 0;
  const WholeNumber length =
      (step > 0 ? (stop - start - 1) / step : (start - stop - 1) / -step) + 1;
  return length > std::numeric_limits<Index>::max() ? -1 : static_cast<Index>(length);
}
inline Index range_length(double start, double stop, double step) {
  const double length = std::ceil((stop - start) / step);
  if (!(length < 9.2e18)) return -1;  // NaN too
  return length > 0 ? static_cast<Index>(length) : 0;
}

template <class T> void require_in_range(const char* name, WholeNumber x, Where where) {
  if (!(x >= std::numeric_limits<T>::lowest() && x <= std::numeric_limits<T>::max()))
    throw UsageError(std::string(name) + ": the sequence has " + number_text(x) + ", which " +
                         std::string(name_of(dtype_of<T>)) +
                         " cannot hold; use an element type that holds all its numbers",
                     where);
}
template <class T> void require_in_range(const char* name, const LineEnd& x, Where where) {
  if (x.is_whole) return require_in_range<T>(name, x.whole, where);
  const double least = std::floor(x.real);
  if (!(least >= static_cast<double>(std::numeric_limits<T>::lowest()) && least < beyond<T>))
    throw UsageError(std::string(name) + ": the sequence has " + number_text(x.real) + ", which " +
                         std::string(name_of(dtype_of<T>)) +
                         " cannot hold; use an element type that holds all its numbers",
                     where);
}

template <class T> struct Range {
  AtStep<T> at;
  Index length;
};
template <class T>
Range<T> make_range(RangeArgument<T> start, RangeArgument<T> stop, RangeArgument<T> step,
                    Where where) {
  static_assert(demand_numbers<T>());
  const Index length = step.value == 0 ? -1 : range_length(start.value, stop.value, step.value);
  if (length < 0)
    throw UsageError("arange: there is no length from " + number_text(start.value) + " to " +
                         number_text(stop.value) + " at steps of " + number_text(step.value) +
                         "; a sequence has fewer than 2^63 numbers; give a step other than 0",
                     where);
  if constexpr (IntegerElement<T>)
    if (length > 0) {
      require_in_range<T>("arange", start.value, where);
      require_in_range<T>("arange", start.value + (length - 1) * step.value, where);
    }
  using Number = decltype(AtStep<T>::start);
  return {{static_cast<Number>(start.value), static_cast<Number>(step.value)}, length};
}

/// Element i of n on the line from start to stop, computed in double; for integers, its floor.
template <class T> struct OnLine {
  using Number = std::conditional_t<ComplexElement<T>, complex<double>, double>;
  Number start, way, step, stop;
  double parts;  ///< the number of parts of the line
  Index last;    ///< the index of the element that is `stop` itself; -1: none
  bool small;    ///< the step is too small to be represented
  OnLine(Number from, Number to, Index parts_, bool endpoint)
      : start(from),
        way(to - from),
        step(way / Number(static_cast<double>(parts_))),
        stop(to),
        parts(static_cast<double>(parts_)),
        last(endpoint ? parts_ : -1),
        small(step == Number(0.0)) {}
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    const Number along(static_cast<double>(i[0]));
    Number x = (small ? along / Number(parts) * way : along * step) + start;
    if (i[0] == last) x = stop;
    if constexpr (ComplexElement<T>)
      return T(x);
    else if constexpr (IntegerElement<T>)
      return from_double<T>(Kokkos::floor(x));
    else
      return from_double<T>(x);
  }
  /// What the processes compare: the object is too large for its bytes.
  template <class Told> void numbers(Told& told) const {
    for (const Number& x : {start, way}) told.add(x);
    told.add(parts);
    told.add(last);
  }
};
/// A whole way as so many steps: parts quotient + rest, with 0 <= rest < parts.
struct WholeStep {
  WholeNumber quotient, rest;
  constexpr WholeStep(WholeNumber way, Index parts)
      : quotient(way / parts - (way % parts < 0 ? 1 : 0)), rest(way - quotient * parts) {}
};
/// The number before the stop, of `count` without it.
inline LineEnd last_before(const LineEnd& start, const LineEnd& stop, Index count) {
  if (!start.is_whole || !stop.is_whole)
    return LineEnd(stop.real - (stop.real - start.real) / static_cast<double>(count));
  const WholeStep step(stop.whole - start.whole, count);
  return LineEnd(start.whole + (count - 1) * step.quotient + (count - 1) * step.rest / count);
}
/// Makes integers between whole numbers, exactly: floor(start + i (stop - start) / parts) is start
/// + i quotient + floor(i rest / parts).
template <IntegerElement T> struct OnWholeLine {
  OnLine<T> line;  ///< where an end has a fraction
  bool whole;
  std::uint64_t start, quotient, rest, parts;  ///< the first two modulo 2^64
  OnWholeLine(const LineEnd& from, const LineEnd& to, Index parts_, bool endpoint)
      : line(from.real, to.real, parts_, endpoint),
        whole(from.is_whole && to.is_whole),
        start(static_cast<std::uint64_t>(from.whole)),
        parts(static_cast<std::uint64_t>(parts_)) {
    const WholeStep step(to.whole - from.whole, parts_);
    rest = static_cast<std::uint64_t>(step.rest);
    quotient = static_cast<std::uint64_t>(step.quotient);
  }
  KOKKOS_FUNCTION T operator()(const GlobalIndex& index) const {
    if (!whole) return line(index);
    const auto i = static_cast<std::uint64_t>(index[0]);
    const std::uint64_t beside =
        rest == 0 ? 0 : static_cast<std::uint64_t>(static_cast<WholeNumber>(i) * rest / parts);
    return static_cast<T>(start + i * quotient + beside);
  }
  template <class Told> void numbers(Told& told) const {
    line.numbers(told);
    for (const std::uint64_t x : {start, quotient, rest}) told.add(x);
  }
};
template <class T>
using Line =
    std::conditional_t<IntegerElement<T>,
                       OnWholeLine<std::conditional_t<IntegerElement<T>, T, int>>, OnLine<T>>;

template <class T>
Line<T> make_line(LineArgument<T> start, LineArgument<T> stop, Index count, bool endpoint,
                  Where where) {
  static_assert(demand_numbers<T>());
  if (count < 0)
    throw UsageError("linspace: the count is " + std::to_string(count) +
                         "; a sequence has 0 or more numbers; give such a count",
                     where);
  if constexpr (IntegerElement<T>) {
    if (count > 0) require_in_range<T>("linspace", start.value, where);
    if (count > 1)
      require_in_range<T>(
          "linspace", endpoint ? stop.value : last_before(start.value, stop.value, count), where);
  }
  return {start.value, stop.value, max_of(Index{1}, endpoint ? count - 1 : count),
          endpoint && count > 1};
}

/// 1 on one diagonal, else 0.
template <class T> struct OnDiagonal {
  Index diagonal;
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    return i[1] - i[0] == diagonal ? T(1) : T{};
  }
};
}  // namespace detail

/// Returns 0, 1, ... below `stop`, or start, start + step, ... before `stop`: x is (ceil((stop -
/// start) / step)). Real numbers are computed in double and rounded once. For integers the
/// arguments are whole numbers. Communication: none. Throws UsageError when the step is 0 or the
/// element type cannot represent one of the numbers.
template <TypedTensor Tensor>
Tensor arange(const ProcessMesh<typename Tensor::mesh_type>& mesh,
              detail::RangeArgument<typename Tensor::value_type> start,
              detail::RangeArgument<typename Tensor::value_type> stop,
              detail::RangeArgument<typename Tensor::value_type> step = 1,
              Where where = Where::here()) {
  static_assert(Tensor::rank == 1, "[tessera] a sequence has one dimension; reshape it afterwards");
  const auto range = detail::make_range<typename Tensor::value_type>(start, stop, step, where);
  return detail::create_from<Tensor>(mesh, {range.length}, range.at, {"arange", where});
}
template <TypedTensor Tensor>
Tensor arange(const ProcessMesh<typename Tensor::mesh_type>& mesh,
              detail::RangeArgument<typename Tensor::value_type> stop,
              Where where = Where::here()) {
  return arange<Tensor>(mesh, 0, stop, 1, where);
}

/// Returns `count` evenly spaced numbers from start to stop, the last of them stop itself or, with
/// `endpoint` false, one step before it: x is (count). Computed in double; integers are the floor,
/// exactly where both ends are whole numbers. Communication: none. Throws UsageError when the count
/// is negative or the element type cannot represent one of the numbers.
template <TypedTensor Tensor>
Tensor linspace(const ProcessMesh<typename Tensor::mesh_type>& mesh,
                detail::LineArgument<typename Tensor::value_type> start,
                detail::LineArgument<typename Tensor::value_type> stop, Index count,
                bool endpoint = true, Where where = Where::here()) {
  static_assert(Tensor::rank == 1, "[tessera] a sequence has one dimension; reshape it afterwards");
  const auto line =
      detail::make_line<typename Tensor::value_type>(start, stop, count, endpoint, where);
  return detail::create_from<Tensor>(mesh, {count}, line, {"linspace", where});
}

/// Returns a matrix of zeros with ones where column - row == `diagonal`: x is the extents, or
/// (n, n). Communication: none. Throws nothing of its own.
template <TypedTensor Tensor>
Tensor eye(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
           Index diagonal = 0, Where where = Where::here()) {
  static_assert(Tensor::rank == 2, "[tessera] eye makes a matrix; name a spec of two dimensions");
  return detail::create_from<Tensor>(
      mesh, extents, detail::OnDiagonal<typename Tensor::value_type>{diagonal}, {"eye", where});
}
template <TypedTensor Tensor, std::convertible_to<Index> N>
Tensor eye(const ProcessMesh<typename Tensor::mesh_type>& mesh, N n, Where where = Where::here()) {
  return eye<Tensor>(mesh, Extents{static_cast<Index>(n), static_cast<Index>(n)}, 0, where);
}

/// These overloads take a sharding that is known only at run time.
template <Element T>
DynamicTensor arange(const DynamicMesh& mesh, const Sharding& sharding,
                     detail::RangeArgument<T> start, detail::RangeArgument<T> stop,
                     detail::RangeArgument<T> step = 1, const CallOptions& call = Where::here()) {
  const auto range = detail::make_range<T>(start, stop, step, call.where());
  return detail::create_from<T>(mesh, {range.length}, sharding, range.at, call.site("arange"));
}
template <Element T>
DynamicTensor arange(const DynamicMesh& mesh, const Sharding& sharding,
                     detail::RangeArgument<T> stop, const CallOptions& call = Where::here()) {
  return arange<T>(mesh, sharding, 0, stop, 1, call);
}
template <Element T>
DynamicTensor linspace(const DynamicMesh& mesh, const Sharding& sharding,
                       detail::LineArgument<T> start, detail::LineArgument<T> stop, Index count,
                       bool endpoint = true, const CallOptions& call = Where::here()) {
  const auto line = detail::make_line<T>(start, stop, count, endpoint, call.where());
  return detail::create_from<T>(mesh, {count}, sharding, line, call.site("linspace"));
}
template <Element T>
DynamicTensor eye(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                  Index diagonal = 0, const CallOptions& call = Where::here()) {
  if (extents.size() != 2)
    throw ShapeError("eye: a tensor of " + std::to_string(extents.size()) +
                         " dimensions is asked for; eye makes a matrix; give two extents",
                     call.where());
  return detail::create_from<T>(mesh, extents, sharding, detail::OnDiagonal<T>{diagonal},
                                call.site("eye"));
}

}  // namespace tessera
