// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <tessera/base/box.hpp>
#include <tessera/base/dtype.hpp>
#include <tessera/base/local_work.hpp>
#include <tessera/base/memory.hpp>
#include <tessera/base/reduction.hpp>
#include <tessera/base/type_name.hpp>

using namespace tessera;

// ---- integers that saturate --------------------------------------------------------------------------------------

static_assert(ceil_div(7, 2) == 4 && ceil_div(8, 2) == 4 && ceil_div(0, 3) == 0);
static_assert(round_up(1, 256) == 256 && round_up(256, 256) == 256 && round_up(0, 256) == 0);
static_assert(saturating_add(max_int64, 1) == max_int64 && saturating_add(max_int64 - 1, 1) == max_int64);
static_assert(saturating_mul(max_int64, 2) == max_int64 && saturating_mul(0, max_int64) == 0 && saturating_mul(max_int64, 0) == 0);
static_assert(saturating_mul(Index{1} << 31, Index{1} << 31) == Index{1} << 62);
static_assert(saturating_mul(Index{1} << 32, Index{1} << 31) == max_int64);

// ---- vectors of fixed capacity -----------------------------------------------------------------------------------

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

// ---- boxes -------------------------------------------------------------------------------------------------------

static_assert(intersect(Interval{0, 4}, Interval{2, 9}) == Interval{2, 4});
static_assert(intersect(Interval{0, 2}, Interval{5, 9}).size() == 0);
static_assert(whole(Extents{}).size() == 1 && whole(Extents{3, 0}).size() == 0 && whole(Extents{3, 0}).empty());
static_assert(volume(Extents{}) == 1 && volume(Extents{2, 3, 4}) == 24);
static_assert(row_major_strides(Extents{2, 3, 4}) == Extents{12, 4, 1});
static_assert(row_major_strides(Extents{2, 0, 4}) == Extents{0, 4, 1});

consteval bool intersection_commutes_and_associates() {
  for (Index a = 0; a <= 4; ++a)
    for (Index b = a; b <= 4; ++b)
      for (Index c = 0; c <= 4; ++c)
        for (Index d = c; d <= 4; ++d) {
          const Interval x{a, b}, y{c, d}, z{1, 3};
          if (intersect(x, y).size() != intersect(y, x).size()) return false;
          if (intersect(intersect(x, y), z).size() != intersect(x, intersect(y, z)).size()) return false;
        }
  return true;
}
static_assert(intersection_commutes_and_associates());

// ---- element types and names -------------------------------------------------------------------------------------

static_assert(dtype_of<float> == DType::f32 && dtype_of<double> == DType::f64 && dtype_of<std::int32_t> == DType::i32 &&
              dtype_of<std::int64_t> == DType::i64);
static_assert(size_of(DType::f32) == 4 && size_of(DType::f64) == 8 && size_of(DType::i32) == 4 && size_of(DType::i64) == 8);
static_assert(Element<float> && Element<std::int64_t> && !Element<char> && !Element<bool> && !Element<unsigned>);
static_assert(name_of(DType::f32) == "float" && name_of(DType::i64) == "int64");
static_assert(with_type(DType::f64, [](auto x) { return sizeof(x); }) == 8 && with_type(DType::i32, [](auto x) { return sizeof(x); }) == 4);

namespace names {
struct plain {};
template <class T>
struct of {};
namespace inner {
struct deep {};
}  // namespace inner
}  // namespace names
namespace {
struct hidden {};
}  // namespace
struct top {};
static_assert(type_name<names::plain>() == "plain" && type_name<names::inner::deep>() == "deep" && type_name<hidden>() == "hidden" &&
              type_name<top>() == "top");
static_assert(type_name<names::of<names::inner::deep>>() == "of" && type_name<names::of<names::of<int>>>() == "of");
static_assert(type_name<int>() == "int");

static_assert(Sum::reduction == Reduction::sum && Mean::reduction == Reduction::sum && name_of(Max::reduction) == "max");

// ---- what a block costs ------------------------------------------------------------------------------------------

consteval bool charges_are_multiples_and_never_fall() {
  Index last = 0;
  for (Index n = 0; n <= 2000; ++n) {
    const Index charge = arena_charge(n);
    if (charge < n || charge % arena_alignment != 0 || charge < last) return false;
    last = charge;
  }
  return arena_charge(0) == 0 && arena_charge(1) == 256 && arena_charge(256) == 256 && arena_charge(257) == 512;
}
static_assert(charges_are_multiples_and_never_fall());

consteval Index flops_of(Index m, Index n, Index k, Extents batch) {
  Gemm gemm;
  gemm.m = m;
  gemm.n = n;
  gemm.k = k;
  gemm.batch = batch;
  return gemm.flops();
}
static_assert(flops_of(2, 3, 4, {5}) == 2 * 2 * 3 * 4 * 5 && flops_of(2, 3, 0, {}) == 0);
