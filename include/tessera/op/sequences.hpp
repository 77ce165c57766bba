// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Evenly spaced numbers, and ones on a diagonal: NumPy's arange, linspace and eye.
/// op/create.hpp makes other tensors.
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
#include <utility>

#include <tessera/op/create_dynamic.hpp>

namespace tessera {
namespace detail {

/// A whole number from -2^63 to 2^64 - 1: an argument of a sequence of uint64.
struct WholeNumber {
  std::uint64_t bits = 0;  ///< modulo 2^64
  bool negative = false;
  WholeNumber() = default;
  template <class S>
    requires std::is_convertible_v<S, double>
  constexpr WholeNumber(S s) : bits(static_cast<std::uint64_t>(s)) {  // NOLINT: a number
    if constexpr (std::is_signed_v<S>) negative = s < S{};
  }
  KOKKOS_FUNCTION constexpr explicit operator std::uint64_t() const { return bits; }
  constexpr bool operator==(const WholeNumber&) const = default;
  constexpr bool operator<(const WholeNumber& other) const {
    return negative != other.negative ? negative : bits < other.bits;
  }
};

/// The type of a sequence's arguments: whole numbers for integers, double for real numbers; for a
/// line of complex numbers, complex ones.
template <class T, bool Complex>
using SequenceNumber = std::conditional_t<
    IntegerElement<T> && !Complex,
    std::conditional_t<std::is_same_v<T, std::uint64_t>, WholeNumber, std::int64_t>,
    std::conditional_t<ComplexElement<T> && Complex, complex<double>, double>>;

/// One argument of a call that makes a sequence of elements T; nothing is converted silently.
template <class T, bool Complex> struct SequenceArgument {
  using Number = SequenceNumber<T, Complex>;
  Number value;
  template <class S>
    requires((std::is_arithmetic_v<S> || Element<S>)&&std::is_constructible_v<Number, S>)
  SequenceArgument(S s) : value(static_cast<Number>(s)) {  // NOLINT: a number
    static_assert(!IntegerElement<T> || Complex || std::is_integral_v<S>,
                  "[tessera] a fraction is given for a sequence of integers; nothing is converted "
                  "in silence; write whole numbers, or make a tensor of double");
    if constexpr (std::is_same_v<Number, std::int64_t> && std::is_integral_v<S>)
      if (!std::is_same_v<S, bool> && s > S{} && value < 0)
        throw UsageError("a sequence of integers is given the number " + std::to_string(s) +
                         ", which int64 cannot hold; give a smaller one");
  }
};
template <class T> using RangeArgument = SequenceArgument<T, false>;
template <class T> using LineArgument = SequenceArgument<T, true>;

template <class T> constexpr bool demand_numbers() {
  static_assert(NumberElement<T>,
                "[tessera] truth values do not count; make a sequence of int32 or int64");
  return true;
}

/// The element `start + i step`.
template <class T> struct AtStep {
  SequenceNumber<T, false> start, step;
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    if constexpr (IntegerElement<T>)
      return static_cast<T>(static_cast<std::uint64_t>(start) +
                            static_cast<std::uint64_t>(i[0]) * static_cast<std::uint64_t>(step));
    else
      return from_double<T>(start + static_cast<double>(i[0]) * step);
  }
};

inline std::string number_text(std::int64_t x) { return std::to_string(x); }
inline std::string number_text(WholeNumber x) {
  return x.negative ? std::to_string(static_cast<std::int64_t>(x.bits)) : std::to_string(x.bits);
}
inline std::string number_text(double x) { return std::to_string(x); }
inline std::string number_text(complex<double> x) {
  return std::to_string(x.re) + " + " + std::to_string(x.im) + "i";
}

/// ceil((stop - start) / step), and 0 where that is negative.
inline Index range_length(std::int64_t start, std::int64_t stop, std::int64_t step) {
  const auto a = static_cast<std::uint64_t>(start), b = static_cast<std::uint64_t>(stop);
  const auto s = static_cast<std::uint64_t>(step);
  if (step > 0 ? stop <= start : stop >= start) return 0;
  const std::uint64_t length = (step > 0 ? (b - a - 1) / s : (a - b - 1) / (0 - s)) + 1;
  return length > static_cast<std::uint64_t>(std::numeric_limits<Index>::max())
             ? -1
             : static_cast<Index>(length);
}
/// The same; 1 where `start` is negative, and at most one element beyond the last nonnegative one.
inline Index range_length(WholeNumber start, WholeNumber stop, WholeNumber step) {
  const bool up = !step.negative;
  if (up ? !(start < stop) : !(stop < start)) return 0;
  if (start.negative) return 1;
  const std::uint64_t s = up ? step.bits : 0 - step.bits;
  const bool below = stop.negative;  // 0
  const std::uint64_t before = (up      ? stop.bits - start.bits - 1
                                : below ? start.bits
                                        : start.bits - stop.bits - 1) /
                               s;
  if (before >= static_cast<std::uint64_t>(std::numeric_limits<Index>::max()) - 1) return -1;
  const auto length = static_cast<Index>(before) + 1;
  return below && stop < WholeNumber(static_cast<std::int64_t>(start.bits - (before + 1) * s))
             ? length + 1
             : length;
}
inline Index range_length(double start, double stop, double step) {
  const double length = std::ceil((stop - start) / step);
  if (!(length < 9.2e18)) return -1;  // NaN too
  return length > 0 ? static_cast<Index>(length) : 0;
}

/// Returns the last of `length` numbers, given that all before it are in range.
inline std::int64_t last_of_range(std::int64_t start, std::int64_t step, Index length) {
  // Without a sign: the steps may be more than an int64 holds, where start is negative.
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(start) +
                                   static_cast<std::uint64_t>(length - 1) *
                                       static_cast<std::uint64_t>(step));
}
inline WholeNumber last_of_range(WholeNumber start, WholeNumber step, Index length) {
  const auto steps = static_cast<std::uint64_t>(length - 1);
  WholeNumber last(start.bits + steps * step.bits);
  last.negative = step.negative && steps > start.bits / (0 - step.bits);
  return last;
}

template <class T, class Number> void require_in_range(const char* name, Number x, Where where) {
  if constexpr (IntegerElement<T>) {
    using Limits = std::numeric_limits<T>;
    const bool fits = [&] {
      if constexpr (std::is_same_v<Number, WholeNumber>)
        return !x.negative;
      else if constexpr (std::is_integral_v<Number>)
        return x >= static_cast<Number>(Limits::lowest()) &&
               x <= static_cast<Number>(Limits::max());
      else  // the largest int64 is no double; the power of two above it is
        return std::floor(x) >= static_cast<double>(Limits::lowest()) && x < beyond<T>;
    }();
    if (!fits)
      throw UsageError(std::string(name) + ": the sequence has " + number_text(x) + ", which " +
                           std::string(name_of(dtype_of<T>)) +
                           " cannot hold; use an element type that holds all its numbers",
                       where);
  }
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
      require_in_range<T>("arange", last_of_range(start.value, step.value, length), where);
    }
  return {{start.value, step.value}, length};
}

/// Element i of n on the line from start to stop; for integers, its floor.
template <class T> struct OnLine {
  using Number = SequenceNumber<T, true>;
  Number start, way, step, stop;
  double parts;  ///< the number of parts of the line
  Index last;    ///< the index of the element that is `stop` itself; -1: none
  bool small;    ///< the step is too small to be represented
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
};
template <class T>
OnLine<T> make_line(LineArgument<T> start, LineArgument<T> stop, Index count, bool endpoint,
                    Where where) {
  static_assert(demand_numbers<T>());
  if (count < 0)
    throw UsageError("linspace: the count is " + std::to_string(count) +
                         "; a sequence has 0 or more numbers; give such a count",
                     where);
  if (count > 0) {
    require_in_range<T>("linspace", start.value, where);
    if (count > 1) require_in_range<T>("linspace", stop.value, where);
  }
  using Number = typename OnLine<T>::Number;
  const Index parts = endpoint ? count - 1 : count;
  const Number way = stop.value - start.value;
  const Number step = parts > 0 ? way / Number(static_cast<double>(parts)) : way;
  return {start.value,
          way,
          step,
          stop.value,
          static_cast<double>(parts > 0 ? parts : 1),
          endpoint && count > 1 ? count - 1 : -1,
          step == Number(0.0)};
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
/// `endpoint` false, one step before it: x is (count). Computed in double; integers are the floor.
/// Communication: none. Throws UsageError when the count is negative or the element type cannot
/// represent one of the numbers.
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
/// (n, n). Communication: none.
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

/// The same with a sharding that is known only at run time.
template <Element T>
DynamicTensor arange(const DynamicMesh& mesh, const Sharding& sharding,
                     detail::RangeArgument<T> start, detail::RangeArgument<T> stop,
                     detail::RangeArgument<T> step = 1, const DynamicCall& call = Where::here()) {
  const auto range = detail::make_range<T>(start, stop, step, call.where());
  return detail::create_from<T>(mesh, {range.length}, sharding, range.at, call.site("arange"));
}
template <Element T>
DynamicTensor arange(const DynamicMesh& mesh, const Sharding& sharding,
                     detail::RangeArgument<T> stop, const DynamicCall& call = Where::here()) {
  return arange<T>(mesh, sharding, 0, stop, 1, call);
}
template <Element T>
DynamicTensor linspace(const DynamicMesh& mesh, const Sharding& sharding,
                       detail::LineArgument<T> start, detail::LineArgument<T> stop, Index count,
                       bool endpoint = true, const DynamicCall& call = Where::here()) {
  const auto line = detail::make_line<T>(start, stop, count, endpoint, call.where());
  return detail::create_from<T>(mesh, {count}, sharding, line, call.site("linspace"));
}
template <Element T>
DynamicTensor eye(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                  Index diagonal = 0, const DynamicCall& call = Where::here()) {
  if (extents.size() != 2)
    throw ShapeError("eye: a tensor of " + std::to_string(extents.size()) +
                         " dimensions is asked for; eye makes a matrix; give two extents",
                     call.where());
  return detail::create_from<T>(mesh, extents, sharding, detail::OnDiagonal<T>{diagonal},
                                call.site("eye"));
}

}  // namespace tessera
