// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: sums
// Sums, products and running ones of integers are uint64 or, of signed ones and of truth values,
// int64: finished, scattered or open, typed, dynamic and dry; they wrap in their own type
// where the call names that.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/grid.hpp"

namespace {
using namespace tessera;
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;

constexpr Index rows = 5, columns = 300;

/// Near the ends of the range, so that the sum of two already wraps.
template <class T> T element(Index i, Index j) {
  const auto top = static_cast<std::int64_t>(std::numeric_limits<T>::max());
  const auto low = static_cast<std::int64_t>(std::numeric_limits<T>::lowest());
  return static_cast<T>((i + j) % 3 == 0 ? low + j % 7
                                         : top - (i * j) % 11);  // or, of bool, 0 or 1
}
template <class T> struct Values {
  T operator()(const GlobalIndex& i) const { return element<T>(i[0], i[1]); }
};

template <class F> void on_every_mesh(const F& f) {
  for (const MeshSizes<Grid> size :
       {sizes<Grid>(1, 1), sizes<Grid>(2, 2), sizes<Grid>(3, 2), sizes<Grid>(1, 5)})
    run_loopback(size.shape.processes(), [&](std::shared_ptr<Transport> world) {
      f(make_mesh<Grid>(std::move(world), size));
    });
}

/// What sums of T are.
template <class T>
using Wide =
    std::conditional_t<std::is_signed_v<T> || std::is_same_v<T, bool>, std::int64_t, std::uint64_t>;
/// The type that has these bits with the other sign.
template <class T>
using Other = std::conditional_t<std::is_signed_v<Wide<T>>, std::uint64_t, std::int64_t>;

template <class V> std::uint64_t bits(V v) { return static_cast<std::uint64_t>(v); }
template <class To, class V> std::vector<To> as(const std::vector<V>& values) {
  std::vector<To> converted;
  for (const V v : values) converted.push_back(static_cast<To>(v));
  return converted;
}

template <class T> void sums(const ProcessMesh<Grid>& mesh) {
  using W = Wide<T>;
  std::vector<W> by_row(rows, 0), by_column(columns, 0), products(rows, 1), running;
  for (Index i = 0; i < rows; ++i) {
    std::uint64_t row = 0, product = 1;
    for (Index j = 0; j < columns; ++j) {
      const std::uint64_t v = bits(static_cast<W>(element<T>(i, j)));
      row += v, product *= v;
      W& column = by_column[static_cast<std::size_t>(j)];
      column = static_cast<W>(bits(column) + v);
      running.push_back(static_cast<W>(row));
    }
    by_row[static_cast<std::size_t>(i)] = static_cast<W>(row);
    products[static_cast<std::size_t>(i)] = static_cast<W>(product);
  }
  const auto q = from_function<Tensor<T, data, model>>(mesh, {rows, columns}, Values<T>{});
  const auto s = sum<"ij->i">(q);
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(s)>, Tensor<W, data>>);
  CHECK(to_host(s).values == by_row);
  CHECK(to_host(sum<"ij->j", P<Axes<data, model>>>(q)).values == by_column);
  CHECK(to_host(product<"ij->i">(q)).values == products);
  CHECK(to_host(sum<"ij->i">(q, deterministic)).values == by_row);
  // Left open, it is open in its 64 bits.
  const auto open = sum<"ij->i", P<data, Unreduced<Sum, model>>>(q);
  static_assert(std::is_same_v<typename decltype(open)::value_type, W>);
  CHECK(to_host(reshard<P<_>>(open)).values == by_row);
  // Running, either way.
  const auto along = cumsum<"ij", 'j'>(q);
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(along)>, Tensor<W, data, model>>);
  CHECK(to_host(along).values == running);
  const auto back = to_host(cumsum<"ij", 'j'>(q, {.reverse = true, .exclusive = true})).values;
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j) {
      const auto at = static_cast<std::size_t>(i * columns + j);
      const auto rest =
          static_cast<W>(bits(by_row[static_cast<std::size_t>(i)]) - bits(running[at]));
      if (back[at] != rest) CHECK(back[at] == rest);
    }
  CHECK(to_host(cumprod<"ij", 'j'>(q)).values.back() == products.back());
  // The call may name 64 bits of the other sign; so may a destination.
  const auto other = reduce<As<Sum, Other<T>>, "ij->i">(q);
  static_assert(std::is_same_v<typename decltype(other)::value_type, Other<T>>);
  CHECK(to_host(other).values == as<Other<T>>(by_row));
  CHECK(to_host(cumulative<As<Sum, Other<T>>, "ij", 'j'>(q)).values == as<Other<T>>(running));
  auto wide = zeros<Tensor<W, data>>(mesh, {rows});
  auto wide_too = zeros<Tensor<Other<T>, data>>(mesh, {rows});
  reduce_into<Sum, "ij->i">(wide, q);
  reduce_into<Sum, "ij->i">(wide_too, q);
  CHECK(to_host(wide).values == by_row);
  CHECK(to_host(wide_too).values == as<Other<T>>(by_row));
  CHECK(to_host(async([&] { return reduce<Sum, "ij->i">(q); }).wait()).values == by_row);
  // Dynamic tensors have the same.
  const DynamicTensor d(q);
  CHECK(to_host<W>(reduce<Sum>("ij->i", d)).values == by_row);
  CHECK(to_host<W>(reduce<Product>("ij->i", d)).values == products);
  CHECK(to_host<W>(reduce<Deterministic<Sum>>("ij->i", d)).values == by_row);
  CHECK(to_host<Other<T>>(reduce<As<Sum, Other<T>>>("ij->i", d)).values == as<Other<T>>(by_row));
  CHECK(to_host<W>(cumulative<Sum>("ij", 'j', d)).values == running);
  CHECK(to_host<W>(async([&] { return reduce<Sum>("ij->i", d, Sharding{{0}}); }).wait()).values ==
        by_row);
  const DynamicTensor there(wide), there_too(wide_too);
  reduce_into<Product>("ij->i", there, d);
  reduce_into<Product>("ij->i", there_too, d);
  CHECK(to_host<W>(there).values == products);
  CHECK(to_host<Other<T>>(there_too).values == as<Other<T>>(products));
}

/// The call, or a destination, may name the elements' own type; maxima and matrix products have it.
template <class T> void own_sums(const ProcessMesh<Grid>& mesh) {
  std::vector<T> wrapped(rows, 0);
  for (Index i = 0; i < rows; ++i) {
    std::uint64_t row = 0;
    for (Index j = 0; j < columns; ++j) row += bits(element<T>(i, j));
    wrapped[static_cast<std::size_t>(i)] = static_cast<T>(row);
  }
  const auto q = from_function<Tensor<T, data, model>>(mesh, {rows, columns}, Values<T>{});
  const auto own = reduce<As<Sum, T>, "ij->i">(q);
  static_assert(std::is_same_v<typename decltype(own)::value_type, T>);
  CHECK(to_host(own).values == wrapped);
  CHECK(to_host(cumulative<As<Sum, T>, "ij", 'j'>(q)).values.back() == wrapped.back());
  auto narrow = zeros<Tensor<T, data>>(mesh, {rows});
  reduce_into<Sum, "ij->i">(narrow, q);
  CHECK(to_host(narrow).values == wrapped);
  const DynamicTensor d(q), there(zeros<Tensor<T, data>>(mesh, {rows}));
  CHECK(to_host<T>(reduce<As<Sum, T>>("ij->i", d)).values == wrapped);
  reduce_into<Sum>("ij->i", there, d);
  CHECK(to_host<T>(there).values == wrapped);
  static_assert(std::is_same_v<typename decltype(max<"ij->i">(q))::value_type, T>);
  static_assert(std::is_same_v<typename decltype(cummax<"ij", 'j'>(q))::value_type, T>);
  const auto product_of = einsum<"ij,kj->ik">(q, q);
  static_assert(std::is_same_v<typename decltype(product_of)::value_type, T>);
  T expected{};
  for (Index j = 0; j < columns; ++j)
    expected = fn::Add{}(expected, fn::Multiply{}(element<T>(0, j), element<T>(1, j)));
  CHECK(to_host(product_of)(0, 1) == expected);
}
template <class T> void all_sums(const ProcessMesh<Grid>& mesh) {
  sums<T>(mesh);
  own_sums<T>(mesh);
}
}  // namespace

TEST_CASE("sums, products and running ones of narrow integers do not wrap, unless they are told") {
  on_every_mesh([](const ProcessMesh<Grid>& mesh) {
    all_sums<std::int8_t>(mesh);
    all_sums<std::uint8_t>(mesh);
    all_sums<std::int16_t>(mesh);
    all_sums<std::uint32_t>(mesh);
    all_sums<std::int64_t>(mesh);
    all_sums<std::uint64_t>(mesh);
  });
}

TEST_CASE("truth values are counted") {
  on_every_mesh([](const ProcessMesh<Grid>& mesh) { sums<bool>(mesh); });
}

TEST_CASE("300 ones of int8 are 300") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(std::move(world), sizes<Grid>(1, 2));
    const auto ones = full<Tensor<std::int8_t, model>>(mesh, {300}, 1);
    CHECK(to_host(sum(ones)).values[0] == 300);
    CHECK(to_host(reduce<As<Sum, std::int8_t>, "i->">(ones)).values[0] == 44);
  });
}

/// What process 0 sends.
constexpr Index sent(const Plan& plan) {
  Index bytes = 0;
  for (const Step& step : plan.steps) bytes += step.payload;
  return bytes;
}

// Dry: what is sent is the wide type's.
constexpr Plan dry =
    plan<Sum, "ij->i">(like<Tensor<std::int8_t, data, model>>(8, 64), sizes<Grid>(2, 2));
static_assert(dry.result_desc().type == DType::i64 && sent(dry) == 2 * 4 * 8 / 2);
constexpr Plan narrow_dry = plan<As<Sum, std::int8_t>, "ij->i">(
    like<Tensor<std::int8_t, data, model>>(8, 64), sizes<Grid>(2, 2));
static_assert(narrow_dry.result_desc().type == DType::i8 && sent(narrow_dry) == 2 * 4 / 2);

TEST_CASE("what the wide sums of an open narrow one would be is refused, and other types") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(std::move(world), sizes<Grid>(1, 2));
    const auto q = full<Tensor<std::int8_t, _, model>>(mesh, {4, 6}, 1);
    const auto open = einsum<"ij,kj->ik", P<_, _, Unreduced<Sum, model>>>(q, q);
    const DynamicTensor d(open);
    const auto text = [](auto f) -> std::string {
      try {
        f();
      } catch (const UsageError& error) {
        return error.what();
      }
      return "";
    };
    CHECK(text([&] { reduce<Sum>("ik->i", d); }).find("which wraps in their own type") !=
          std::string::npos);
    CHECK(text([&] { cumulative<Sum>("ik", 'k', d); }).find("which wraps in their own type") !=
          std::string::npos);
    CHECK(text([&] {
            reduce<As<Sum, std::int16_t>>("ij->i", DynamicTensor(q));
          }).find("of integers and truth values int64 or uint64") != std::string::npos);
    CHECK(to_host(reduce<As<Sum, std::int8_t>, "ik->i">(open)).values ==
          std::vector<std::int8_t>(4, 24));
  });
}
