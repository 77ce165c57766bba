// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitized: preset address
// Sums, products and running ones of narrow integers are int64, finished, scattered or open, typed,
// dynamic and on paper; they wrap in their own type where the call names that.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/tessera.hpp>

namespace {
using namespace tessera;
namespace grid {
struct x : Axis<> {};
struct y : Axis<> {};
}  // namespace grid
using grid::x, grid::y;
using Grid = Mesh<x, y>;
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;

constexpr Index rows = 5, columns = 300;

/// Near the ends of the range, so that the sum of two already wraps.
template <class T> T element(Index i, Index j) {
  const auto top = static_cast<std::int64_t>(std::numeric_limits<T>::max());
  const auto low = static_cast<std::int64_t>(std::numeric_limits<T>::lowest());
  return static_cast<T>((i + j) % 3 == 0 ? low + j % 7 : top - (i * j) % 11);
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

std::uint64_t bits(std::int64_t v) { return static_cast<std::uint64_t>(v); }

template <class T> void sums(const ProcessMesh<Grid>& mesh) {
  std::vector<std::int64_t> by_row(rows, 0), by_column(columns, 0), products(rows, 1), running;
  std::vector<T> wrapped(rows, 0);
  for (Index i = 0; i < rows; ++i) {
    std::uint64_t row = 0, product = 1;
    for (Index j = 0; j < columns; ++j) {
      const auto v = static_cast<std::int64_t>(element<T>(i, j));
      row += bits(v), product *= bits(v);
      by_column[static_cast<std::size_t>(j)] += v;
      running.push_back(static_cast<std::int64_t>(row));
    }
    by_row[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(row);
    wrapped[static_cast<std::size_t>(i)] = static_cast<T>(row);
    products[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(product);
  }
  const auto q = from_function<Tensor<T, x, y>>(mesh, {rows, columns}, Values<T>{});
  const auto s = sum<"ij->i">(q);
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(s)>, Tensor<std::int64_t, x>>);
  CHECK(gather(s).values == by_row);
  CHECK(gather(sum<"ij->j", P<Axes<x, y>>>(q)).values == by_column);
  CHECK(gather(product<"ij->i">(q)).values == products);
  CHECK(gather(sum<"ij->i">(q, deterministic)).values == by_row);
  // Left open, it is an open int64.
  const auto open = sum<"ij->i", P<x, Unreduced<Sum, y>>>(q);
  static_assert(std::is_same_v<typename decltype(open)::value_type, std::int64_t>);
  CHECK(gather(reshard<P<_>>(open)).values == by_row);
  // Running, either way.
  const auto along = cumsum<"ij", 'j'>(q);
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(along)>, Tensor<std::int64_t, x, y>>);
  CHECK(gather(along).values == running);
  const auto back = gather(cumsum<"ij", 'j'>(q, {.reverse = true, .exclusive = true})).values;
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j) {
      const auto at = static_cast<std::size_t>(i * columns + j);
      const std::int64_t rest = by_row[static_cast<std::size_t>(i)] - running[at];
      if (back[at] != rest) CHECK(back[at] == rest);
    }
  CHECK(gather(cumprod<"ij", 'j'>(q)).values.back() == products.back());
  // The call may name the elements' own type; maxima have it.
  const auto own = reduce<As<Sum, T>, "ij->i">(q);
  static_assert(std::is_same_v<typename decltype(own)::value_type, T>);
  CHECK(gather(own).values == wrapped);
  CHECK(gather(cumulative<As<Sum, T>, "ij", 'j'>(q)).values.back() == wrapped.back());
  static_assert(std::is_same_v<typename decltype(max<"ij->i">(q))::value_type, T>);
  static_assert(std::is_same_v<typename decltype(cummax<"ij", 'j'>(q))::value_type, T>);
  // So may a destination.
  auto wide = zeros<Tensor<std::int64_t, x>>(mesh, {rows});
  auto narrow = zeros<Tensor<T, x>>(mesh, {rows});
  reduce_into<Sum, "ij->i">(wide, q);
  reduce_into<Sum, "ij->i">(narrow, q);
  CHECK(gather(wide).values == by_row);
  CHECK(gather(narrow).values == wrapped);
  CHECK(gather(reduce_async<Sum, "ij->i">(q).wait()).values == by_row);
  // Dynamic tensors have the same.
  const DynamicTensor d(q);
  CHECK(gather<std::int64_t>(reduce<Sum>("ij->i", d)).values == by_row);
  CHECK(gather<std::int64_t>(reduce<Product>("ij->i", d)).values == products);
  CHECK(gather<std::int64_t>(reduce<Deterministic<Sum>>("ij->i", d)).values == by_row);
  CHECK(gather<T>(reduce<As<Sum, T>>("ij->i", d)).values == wrapped);
  CHECK(gather<std::int64_t>(cumulative<Sum>("ij", 'j', d)).values == running);
  CHECK(gather<std::int64_t>(reduce_async<Sum>("ij->i", d, Sharding{{0}}).wait()).values == by_row);
  const DynamicTensor there(wide), there_too(narrow);
  reduce_into<Sum>("ij->i", there, d);
  reduce_into<Sum>("ij->i", there_too, d);
  CHECK(gather<std::int64_t>(there).values == by_row);
  CHECK(gather<T>(there_too).values == wrapped);
  // A product of matrices keeps its elements.
  const auto product_of = einsum<"ij,kj->ik">(q, q);
  static_assert(std::is_same_v<typename decltype(product_of)::value_type, T>);
}
}  // namespace

TEST_CASE("sums, products and running ones of narrow integers do not wrap, unless they are told") {
  on_every_mesh([](const ProcessMesh<Grid>& mesh) {
    sums<std::int8_t>(mesh);
    sums<std::uint8_t>(mesh);
    sums<std::int16_t>(mesh);
    sums<std::int32_t>(mesh);
  });
}

TEST_CASE("300 ones of int8 are 300") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(std::move(world), sizes<Grid>(1, 2));
    const auto ones = full<Tensor<std::int8_t, y>>(mesh, {300}, 1);
    CHECK(gather(sum(ones)).values[0] == 300);
    CHECK(gather(reduce<As<Sum, std::int8_t>, "i->">(ones)).values[0] == 44);
  });
}

/// What process 0 sends.
constexpr Index sent(const Plan& plan) {
  Index bytes = 0;
  for (const Step& step : plan.steps) bytes += step.payload;
  return bytes;
}

// On paper: what is sent is the wide type's.
constexpr Plan paper =
    plan<Sum, "ij->i">(like<Tensor<std::int8_t, x, y>>(8, 64), sizes<Grid>(2, 2));
static_assert(paper.result_desc().type == DType::i64 && sent(paper) == 2 * 4 * 8 / 2);
constexpr Plan narrow_paper =
    plan<As<Sum, std::int8_t>, "ij->i">(like<Tensor<std::int8_t, x, y>>(8, 64), sizes<Grid>(2, 2));
static_assert(narrow_paper.result_desc().type == DType::i8 && sent(narrow_paper) == 2 * 4 / 2);

TEST_CASE("what the wide sums of an open narrow one would be is refused, and other types") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(std::move(world), sizes<Grid>(1, 2));
    const auto q = full<Tensor<std::int8_t, _, y>>(mesh, {4, 6}, 1);
    const auto open = einsum<"ij,kj->ik", P<_, _, Unreduced<Sum, y>>>(q, q);
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
          }).find("the tensor's own element type, or of integers int64") != std::string::npos);
    CHECK(gather(reduce<As<Sum, std::int8_t>, "ik->i">(open)).values ==
          std::vector<std::int8_t>(4, 24));
  });
}
