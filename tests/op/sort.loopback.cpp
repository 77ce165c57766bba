// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: within
// Sorts, positions, carried tensors and the first k over many meshes, shardings, extents and
// element types against std::stable_sort; the typed surface; what is refused.
#include <doctest/doctest.h>

#include <mutex>

#include "op/sort_cases.hpp"
#include "support/every_mesh.hpp"

using namespace tessera;
using namespace support;

namespace {

struct rows : Axis<> {};
struct columns : Axis<> {};
using Grid = Mesh<rows, columns>;
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;

struct Zigzag {
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i) const {
    return static_cast<double>((7 * i[0] + 5 * i[1]) % 6);
  }
};

}  // namespace

TEST_CASE("sorts equal std::stable_sort and run their plans, on every mesh") {
  on_every_mesh("sort on loopback", 52, 60 / share, 3,
                [](const std::shared_ptr<MeshCore>& mesh, Random& random) {
                  return some_sort_case(mesh, random);
                });
}

TEST_CASE("a matrix and a row under every sharding, all element types") {
  use_all_elements();
  std::mutex mutex;
  std::vector<std::string> wrong;
  for (const MeshShape& shape : {MeshShape{3}, MeshShape{2, 2}, MeshShape{2, 3}})
    run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()), {});
      int turn = 0;
      for (int t = 0; t < dtypes; ++t)
        for (int rank = 1; rank <= 2; ++rank)
          for (const Sharding& s : shardings(rank, shape.rank())) {
            if (is_complex(static_cast<DType>(t)) || ++turn % share != 0) continue;
            SortCase c;
            c.what = static_cast<SortCase::What>(turn % 6);
            c.along = turn % rank;
            c.descending = turn % 5 < 2;
            const Extents extents = rank == 1 ? Extents{240 + turn % 2} : Extents{5, 11};
            c.k = 1 + turn % 4;
            for (const DType type : {static_cast<DType>(t), DType::c64, DType::i8})
              if (c.x.empty() || c.what == SortCase::What::by_key) {
                c.x.push_back(sort_input(type, extents, 9 + c.x.size()));
                c.shardings.push_back(s);
              }
            c.out = s;
            const std::string text = wrong_sort(mesh, c);
            const std::lock_guard lock(mutex);
            if (!text.empty()) wrong.push_back(text);
          }
    });
  for (std::size_t i = 0; i < wrong.size() && i < 5; ++i) MESSAGE(wrong[i]);
  CHECK(wrong.empty());
}

TEST_CASE("the typed surface: specs of results, contracts") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, sizes<Grid>(2, 2));
    const auto x = from_function<Tensor<double, rows, columns>>(mesh, {6, 9}, Zigzag{});
    const auto n = from_function<Tensor<std::int32_t, columns, _>>(mesh, {6, 9}, Zigzag{});
    const Tensor<double, rows, columns> sorted = tessera::sort<"ab", 'b'>(x);
    const Tensor<std::int64_t, rows, columns> places = argsort<"ab", 'b'>(x);
    const auto both = sort_with_indices<"ab", 'b'>(x);
    const HostTensor<double> values = to_host(sorted), whole = to_host(x);
    const HostTensor<std::int64_t> positions = to_host(places);
    long wrong = 0;
    for (Index i = 0; i < 6; ++i)
      for (Index j = 0; j < 9; ++j) {
        wrong += values(i, j) != whole(i, positions(i, j));
        wrong +=
            j > 0 && (values(i, j - 1) > values(i, j) ||
                      (values(i, j - 1) == values(i, j) && positions(i, j - 1) > positions(i, j)));
      }
    CHECK(wrong == 0);
    CHECK(to_host(both.values).values == values.values);
    CHECK(to_host(both.indices).values == positions.values);

    const auto [keys, carried] = sort_by_key<"ab", 'b', P<_, rows>>(x, n, {.descending = true});
    static_assert(
        std::is_same_v<std::remove_cvref_t<decltype(carried)>, Tensor<std::int32_t, _, rows>>);
    CHECK(keys.sharding() == Sharding{{}, {0}});
    const HostTensor<double> k = to_host(keys);
    const HostTensor<std::int32_t> c = to_host(carried);
    for (std::size_t i = 0; i < k.values.size(); ++i)
      wrong += k.values[i] != static_cast<double>(c.values[i]);  // n has x's values
    CHECK(wrong == 0);
    const auto [a, b, d] = sort_by_key<"ab", 'a'>(SortOptions{}, x, x, n);
    CHECK(to_host(a).values == to_host(b).values);
    CHECK(d.extents() == Extents{6, 9});

    const auto [top, at] = top_k<"ab", 'b'>(x, 3);
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(top)>, Tensor<double, rows, _>>);
    const HostTensor<double> best = to_host(top);
    const HostTensor<std::int64_t> best_at = to_host(at);
    const HostTensor<double> falling = to_host(tessera::sort<"ab", 'b'>(x, {.descending = true}));
    for (Index i = 0; i < 6; ++i)
      for (Index j = 0; j < 3; ++j)
        wrong += best(i, j) != falling(i, j) || best(i, j) != whole(i, best_at(i, j));
    CHECK(wrong == 0);
    const auto least = bottom_k<"ab", 'b'>(x, 2);
    CHECK(to_host(least.values)(4, 0) == values(4, 0));

    // The contract says what is planned.
    mesh.core()->ledger().reset();
    mesh.core()->ledger().record_calls(true);
    (void)tessera::sort<"ab", 'b', Deduced, Only<all_to_alls<columns>>>(x);
    (void)top_k<"ab", 'b', Deduced, Only<gathers<columns>>>(x, 2);
    for (const Call& call : mesh.core()->ledger().calls())
      CHECK((call.kind == Collective::all_to_all || call.kind == Collective::all_gather));
    mesh.core()->ledger().record_calls(false);
  });
}

TEST_CASE("what is refused, with its numbers") {
  use_all_elements();
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh_core(world, MeshShape{2}, axis_names(1), {});
    const auto tensor = [&](DType type, const Extents& extents, const Sharding& s) {
      return DynamicTensor(TensorCore::make(mesh, {type, extents, s}));
    };
    const DynamicTensor x = tensor(DType::f32, {3, 5}, {{}, {0}});
    const DynamicTensor z = tensor(DType::c64, {3, 5}, {{}, {0}});
    const DynamicTensor open =
        tensor(DType::f32, {3, 5}, Sharding{{}, {}}.with_partial(AxisSet{0}, Reduction::sum));
    CHECK_THROWS_WITH_AS((void)tessera::sort("ab", 'c', x),
                         doctest::Contains("a letter that its operand does not have"),
                         ShardingError);
    CHECK_THROWS_WITH_AS((void)tessera::sort("ab", 'b', z),
                         doctest::Contains("complex numbers have no largest"), UsageError);
    CHECK_THROWS_WITH_AS((void)tessera::sort("ab", 'b', open), doctest::Contains("unfinished"),
                         ShardingError);
    CHECK_THROWS_WITH_AS((void)tessera::sort("ab", 'b', x, {}, open.sharding()),
                         doctest::Contains("unfinished"), ShardingError);
    CHECK_THROWS_WITH_AS((void)tessera::sort("abc", 'b', x),
                         doctest::Contains("another number of dimensions"), ShapeError);
    CHECK_THROWS_WITH_AS((void)sort_by_key("ab", 'b', {x, tensor(DType::i8, {3, 6}, {{}, {}})}),
                         doctest::Contains("6"), ShapeError);
    CHECK_THROWS_WITH_AS(
        (void)top_k("ab", 'b', x, 6),
        doctest::Contains("the first 6 elements along dimension 1 of a tensor of extents 3x5"),
        ShapeError);
    CHECK_THROWS_WITH_AS((void)bottom_k("ab", 'b', x, -1), doctest::Contains("ask for 0 to 5"),
                         ShapeError);
    CHECK_THROWS_WITH_AS((void)sort_by_key("ab", 'b', std::vector<DynamicTensor>(8, x)),
                         doctest::Contains("sort_by_key of 8 tensors"), UsageError);
    // What is carried need not have an order.
    CHECK(sort_by_key("ab", 'b', {x, z})[1].type() == DType::c64);
    CHECK(top_k("ab", 'b', x, 0).values.extents() == Extents{3, 0});
  });
}
