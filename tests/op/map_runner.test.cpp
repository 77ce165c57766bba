// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is compiled small makes the same bits as what is compiled for speed: loops of half types in
// float, of rare element types, and of derivatives of derivatives.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/grad/derivatives/all.hpp>
#include <tessera/kernel/functions.hpp>
#include <tessera/op/elements/map_runner.hpp>

#include "kernel/buffer.hpp"

using namespace tessera;
using detail::LocalMap;

namespace {

constexpr Index patterns = 1 << 16;

/// Elements of all bit patterns of two bytes, in an order of their own for each operand.
template <class T> std::vector<T> elements(Index operand) {
  std::vector<T> all;
  for (Index i = 0; i < patterns; ++i) {
    const auto bits = static_cast<std::uint16_t>((2 * operand + 1) * i + 77 * operand);
    if constexpr (sizeof(T) == 2 && !std::is_integral_v<T>)
      all.push_back(T::from_bits(bits));
    else if constexpr (ComplexElement<T>)
      all.push_back({static_cast<PartType<T>>(bits) / 512 - 60, static_cast<PartType<T>>(i % 257)});
    else if constexpr (std::is_integral_v<T>)
      all.push_back(static_cast<T>(bits));
    else
      all.push_back(static_cast<T>(static_cast<double>(bits) / 512 - 60));
  }
  return all;
}

/// Whether the elements have the same bits, or are both NaN.
template <class T> bool same(const T& a, const T& b) {
  if constexpr (!ComplexElement<T>)
    if (!(a == a) && !(b == b)) return true;
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// Where a loop and a map of f differ, on operands that lie as the result, and on a first one that
/// lies across it.
template <class R, class F, class... T> Index differences(const F& f) {
  constexpr Index side = 256;
  Index different = 0;
  const auto compare = [&]<std::size_t... K>(std::index_sequence<K...>) {
    const std::tuple<test::Buffer<T>...> operands{
        test::Buffer<T>(elements<T>(static_cast<Index>(K)))...};
    const void* const in[] = {std::get<K>(operands).data()...};
    for (const bool across : {false, true}) {
      LocalMap work;
      work.extents = {side, side};
      work.strides = {((void)K, Extents{side, 1})...};
      if (across) work.strides[0] = {1, side};
      const test::Buffer<R> mapped(elements<R>(0)), looped(elements<R>(0));
      detail::MapRunner<R, F, T...>::run(&f, work, mapped.data(), in);
      detail::LoopRunner<R, F, T...>::run(&f, work, looped.data(), in);
      const std::vector<R> a = mapped.values(), b = looped.values();
      for (std::size_t i = 0; i < a.size(); ++i) different += !same<R>(a[i], b[i]);
    }
  };
  compare(std::index_sequence_for<T...>{});
  return different;
}

template <class T> void check_halves() {
  CHECK(differences<T, fn::Add, T, T>({}) == 0);
  CHECK(differences<T, fn::Exp, T>({}) == 0);
  CHECK(differences<T, fn::Tanh, T>({}) == 0);
  CHECK(differences<T, fn::Sin, T>({}) == 0);
  CHECK(differences<T, fn::Gelu, T>({}) == 0);
  CHECK(differences<T, fn::Fixed<fn::Multiply, 1, T>, T>({{}, T(0.3f)}) == 0);
  CHECK(differences<T, fn::Select, bool, T, T>({}) == 0);
  CHECK(differences<bool, fn::Less, T, T>({}) == 0);
  CHECK(differences<float, fn::AddAs<float>, float, T>({}) == 0);
  CHECK(differences<T, fn::AddAs<T>, float, T>({}) == 0);
  CHECK(differences<T, fn::Times<fn::Cos, 1>, T, T>({}) == 0);
  using Second = fn::Times<fn::Times<fn::SlopeWithin<fn::Cos, 0>, 1>, 2>;
  CHECK(differences<T, Second, T, T, T>({}) == 0);
}
}  // namespace

TEST_CASE("a loop in float makes what a map of half types makes") {
  check_halves<half>();
  check_halves<bfloat16>();
}
TEST_CASE("loops of rare element types make what maps make") {
  CHECK(differences<std::uint8_t, fn::Multiply, std::uint8_t, std::uint8_t>({}) == 0);
  CHECK(differences<std::uint64_t, fn::Maximum, std::uint64_t, std::uint64_t>({}) == 0);
  CHECK(differences<std::int16_t, fn::Square, std::int16_t>({}) == 0);
  CHECK(differences<complex<float>, fn::Multiply, complex<float>, complex<float>>({}) == 0);
  CHECK(differences<double, fn::Abs, complex<double>>({}) == 0);
}
TEST_CASE("loops of derivatives of derivatives make what maps make") {
  using Second = fn::Times<fn::Times<fn::SlopeWithin<fn::Cos, 0>, 1>, 2>;
  static_assert(detail::is_seldom_run<Second>);
  CHECK(differences<float, Second, float, float, float>({}) == 0);
  CHECK(differences<double, Second, double, double, double>({}) == 0);
}
