// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <complex>
#include <limits>
#include <type_traits>

#include <tessera/base/box.hpp>
#include <tessera/base/dtype.hpp>
#include <tessera/base/local_work.hpp>
#include <tessera/base/memory.hpp>
#include <tessera/base/reduction.hpp>
#include <tessera/base/text/type_name.hpp>

using namespace tessera;

// ---- integers that saturate
// --------------------------------------------------------------------------------------

static_assert(ceil_div(7, 2) == 4 && ceil_div(8, 2) == 4 && ceil_div(0, 3) == 0);
static_assert(detail::round_up(1, 256) == 256 && detail::round_up(256, 256) == 256 &&
              detail::round_up(0, 256) == 0);
static_assert(detail::saturating_add(max_int64, 1) == max_int64 &&
              detail::saturating_add(max_int64 - 1, 1) == max_int64);
static_assert(detail::saturating_mul(max_int64, 2) == max_int64 &&
              detail::saturating_mul(0, max_int64) == 0 &&
              detail::saturating_mul(max_int64, 0) == 0);
static_assert(detail::saturating_mul(Index{1} << 31, Index{1} << 31) == Index{1} << 62);
static_assert(detail::saturating_mul(Index{1} << 32, Index{1} << 31) == max_int64);

// ---- vectors of fixed capacity
// -----------------------------------------------------------------------------------

consteval bool vectors_compare_what_they_hold() {
  FixedVector<int, 4> a{1, 2, 3};
  FixedVector<int, 4> b{1, 2, 9};
  a.pop_back();
  b.pop_back();
  return a == b && a.find(2) == 1 && a.find(9) == -1 && !a.contains(3) && a.back() == 2;
}
static_assert(vectors_compare_what_they_hold());
consteval bool growing_again_overwrites_what_was_there() {
  FixedVector<int, 4> a{1, 2, 3};
  a.resize(1);
  a.resize(3, 7);
  return a == FixedVector<int, 4>{1, 7, 7};
}
static_assert(growing_again_overwrites_what_was_there());

// ---- boxes
// -------------------------------------------------------------------------------------------------------

static_assert(detail::intersect(Interval{0, 4}, Interval{2, 9}) == Interval{2, 4});
static_assert(detail::intersect(Interval{0, 2}, Interval{5, 9}).size() == 0);
static_assert(whole(Extents{}).size() == 1 && whole(Extents{3, 0}).size() == 0 &&
              whole(Extents{3, 0}).empty());
static_assert(volume(Extents{}) == 1 && volume(Extents{2, 3, 4}) == 24);
static_assert(detail::row_major_strides(Extents{2, 3, 4}) == Extents{12, 4, 1});
static_assert(detail::row_major_strides(Extents{2, 0, 4}) == Extents{0, 4, 1});

consteval bool intersection_commutes_and_associates() {
  for (Index a = 0; a <= 4; ++a)
    for (Index b = a; b <= 4; ++b)
      for (Index c = 0; c <= 4; ++c)
        for (Index d = c; d <= 4; ++d) {
          const Interval x{a, b}, y{c, d}, z{1, 3};
          if (detail::intersect(x, y).size() != detail::intersect(y, x).size()) return false;
          if (detail::intersect(detail::intersect(x, y), z).size() !=
              detail::intersect(x, detail::intersect(y, z)).size())
            return false;
        }
  return true;
}
static_assert(intersection_commutes_and_associates());

// ---- element types and names
// -------------------------------------------------------------------------------------

static_assert(Element<float> && Element<std::int64_t> && Element<std::uint64_t> && Element<bool> &&
              Element<half> && Element<complex<double>> && !Element<char> && !Element<char16_t> &&
              !Element<long double> && !Element<float*>);
consteval bool the_table_says_what_the_types_are() {
  for (int i = 0; i < dtypes; ++i) {
    const DType type = static_cast<DType>(i);
    const bool right = detail::with_type(type, [&]<class T>(T) {
      using Limits = std::numeric_limits<T>;
      const detail::DTypeFacts& facts = detail::facts_of(type);
      const bool whole = std::is_integral_v<T> && !std::is_same_v<T, bool>;
      const bool real = Limits::is_specialized && !Limits::is_integer;
      return dtype_of<T> == type && std::is_same_v<element_of<dtype_of<T>>, T> &&
             facts.size == sizeof(T) && is_integer(type) == whole && is_real(type) == real &&
             is_boolean(type) == std::is_same_v<T, bool> &&
             is_complex(type) == (!whole && !real && !is_boolean(type)) &&
             facts.is_signed == (is_complex(type) || Limits::is_signed) &&
             is_unsigned(type) == (whole && !Limits::is_signed) &&
             size_of(facts.total) >= size_of(facts.compute) &&
             size_of(facts.compute) >= sizeof(T) && RealElement<T> == real &&
             IntegerElement<T> == whole && NumberElement<T> == !is_boolean(type) &&
             OrderedElement<T> == (real || whole) && !facts.name.empty();
    });
    for (int j = 0; j < i; ++j)
      if (name_of(static_cast<DType>(j)) == name_of(type)) return false;
    if (!right) return false;
  }
  return true;
}
static_assert(the_table_says_what_the_types_are());
static_assert(name_of(DType::f32) == "float" && name_of(DType::i64) == "int64" &&
              name_of(DType::boolean) == "bool");
static_assert(std::is_same_v<ComputeType<half>, float> &&
              std::is_same_v<TotalType<bfloat16>, double> &&
              std::is_same_v<TotalType<complex<float>>, complex<double>> &&
              std::is_same_v<TotalType<std::int8_t>, std::int8_t>);
static_assert(std::is_same_v<PartType<complex<double>>, double> &&
              std::is_same_v<PartType<half>, half> && part_type(DType::c64) == DType::f32);

consteval bool narrower_dispatch_gives_the_same_type() {
  for (int i = 0; i < dtypes; ++i) {
    const DType type = static_cast<DType>(i);
    const auto given = []<class T>(T) { return dtype_of<T>; };
    if (is_real(type) && detail::with_real_type(type, given) != type) return false;
    if (is_integer(type) && detail::with_integer_type(type, given) != type) return false;
    if (is_ordered(type) && detail::with_ordered_type(type, given) != type) return false;
    if (is_number(type) && detail::with_number_type(type, given) != type) return false;
  }
  return true;
}
static_assert(narrower_dispatch_gives_the_same_type());

// ---- reductions
// --------------------------------------------------------------------------------------------------

static_assert(defined(Reduction::sum, DType::c64) && !defined(Reduction::sum, DType::boolean) &&
              defined(Reduction::product, DType::u8));
static_assert(defined(Reduction::max, DType::bf16) && !defined(Reduction::max, DType::c128) &&
              !defined(Reduction::min, DType::boolean));
static_assert(defined(Reduction::any, DType::boolean) && !defined(Reduction::all, DType::i8));
static_assert(name_of(Reduction::product) == "product" &&
              detail::tag_name(Any::reduction) == "Any" &&
              detail::tag_name(All::reduction) == "All");

// ---- complex numbers
// ---------------------------------------------------------------------------------------------

using C = complex<double>;
static_assert(C{1, 2} * C{3, -1} == C{5, 5} && C{-5, 10} / C{3, 4} == C{1, 2} &&
              -C{1, 2} == C{-1, -2} && conj(C{1, 2}) == C{1, -2});
static_assert(2 * C{1, 2} - 1 == C{1, 4} && C{1} + C{0, 1} == C{1, 1} && C{4, 2} / 2 == C{2, 1});
static_assert(C{1e300, 1e300} / C{1e300, 1e300} == C{1, 0},
              "the square of a divisor is not formed");
static_assert(C(complex<float>{1, 2}) == C{1, 2} &&
              complex<float>(C{1, 2}) == complex<float>{1, 2});
static_assert(std::is_convertible_v<complex<float>, C> &&
              !std::is_convertible_v<C, complex<float>>);
static_assert(C(std::complex<double>(1, 2)) == C{1, 2} &&
              std::is_convertible_v<C, std::complex<double>> &&
              !std::is_convertible_v<C, std::complex<float>>);
static_assert(sizeof(C) == sizeof(std::complex<double>) && std::is_trivial_v<C> &&
              std::is_standard_layout_v<C>);

// ---- 16-bit floating point: see also short_float.test.cpp
// -------------------------------------------------------

static_assert(half(1.0f).bits() == 0x3c00 && half(65519.0).bits() == 0x7bff &&
              half(65520.0).bits() == 0x7c00 && half(-1e300).bits() == 0xfc00);
static_assert(half(0x1p-24).bits() == 1 && half(0x1p-25).bits() == 0 &&
              half(0x1.8p-25).bits() == 1 && half(-0.0).bits() == 0x8000);
static_assert(std::is_same_v<decltype(half{} + half{}), half> &&
              std::is_same_v<decltype(half{} * 2), half> &&
              std::is_same_v<decltype(half{} * 2.0f), float> &&
              std::is_same_v<decltype(2.0 - half{}), double> &&
              std::is_same_v<decltype(half{} + bfloat16{}), float>);
static_assert(half(1) < 2 && half(1) == 1.0 && !(half(1) != half{1}) && -half(1) < half(0));
static_assert(std::is_trivial_v<half> && sizeof(bfloat16) == 2);

namespace names {
struct plain {};
template <class T> struct of {};
namespace inner {
struct deep {};
}  // namespace inner
}  // namespace names
namespace {
struct hidden {};
}  // namespace
struct top {};
static_assert(detail::type_name<names::plain>() == "plain" &&
              detail::type_name<names::inner::deep>() == "deep" &&
              detail::type_name<hidden>() == "hidden" && detail::type_name<top>() == "top");
static_assert(detail::type_name<names::of<names::inner::deep>>() == "of" &&
              detail::type_name<names::of<names::of<int>>>() == "of");
static_assert(detail::type_name<int>() == "int");

static_assert(Sum::reduction == Reduction::sum && Mean::reduction == Reduction::sum &&
              name_of(Max::reduction) == "max");

// ---- what a block costs
// ------------------------------------------------------------------------------------------

consteval bool charges_are_multiples_and_never_fall() {
  Index last = 0;
  for (Index n = 0; n <= 2000; ++n) {
    const Index charge = detail::arena_charge(n);
    if (charge < n || charge % detail::arena_alignment != 0 || charge < last) return false;
    last = charge;
  }
  return detail::arena_charge(0) == 0 && detail::arena_charge(1) == 256 &&
         detail::arena_charge(256) == 256 && detail::arena_charge(257) == 512;
}
static_assert(charges_are_multiples_and_never_fall());

consteval Index flops_of(Index m, Index n, Index k, Extents batch) {
  detail::Gemm gemm;
  gemm.m = m;
  gemm.n = n;
  gemm.k = k;
  gemm.batch = batch;
  return gemm.flops();
}
static_assert(flops_of(2, 3, 4, {5}) == 2 * 2 * 3 * 4 * 5 && flops_of(2, 3, 0, {}) == 0);
