// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: types
// A block as a View and as an mdspan: the tensor's own memory, in the tensor's dimensions.
#include <doctest/doctest.h>

#include <type_traits>

#include <tessera/tessera.hpp>

#include "support/grid.hpp"

using namespace tessera;

namespace {
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;

template <class T> void views(const ProcessMesh<Grid>& mesh) {
  for (const Extents& e : {Extents{7, 5, 3}, Extents{1, 0, 4}, Extents{2, 1, 9}}) {
    auto x = from_function<Tensor<T, data, _, model>>(
        mesh, e, [](const GlobalIndex& i) { return static_cast<T>(i.linear() % 100); });
    const auto& fixed = x;
    const auto m = block_mdspan(x);
    const auto c = block_mdspan(fixed);
    const auto d = block_mdspan<T, 3>(DynamicTensor(x));
    static_assert(std::is_same_v<typename decltype(m)::element_type, T>);
    static_assert(std::is_same_v<typename decltype(c)::element_type, const T>);
    static_assert(std::is_same_v<typename decltype(m)::layout_type, Kokkos::layout_right>);
    const Box box = x.box();
    const auto v = local_view(fixed);
    CHECK(m.data_handle() == x.data());
    CHECK(static_cast<Index>(c.size()) == x.local_size());
    for (int r = 0; r < 3; ++r) CHECK(m.extent(static_cast<std::size_t>(r)) == box[r].size());
    for (Index i = 0; i < box[0].size(); ++i)
      for (Index j = 0; j < box[1].size(); ++j)
        for (Index k = 0; k < box[2].size(); ++k) {
          const Index at = ((box[0].lo + i) * e[1] + box[1].lo + j) * e[2] + box[2].lo + k;
          CHECK(c(i, j, k) == static_cast<T>(at % 100));
          CHECK(v(i, j, k) == c(i, j, k));
          CHECK(&d(i, j, k) == &c(i, j, k));
          m(i, j, k) = T(3);  // writes the tensor
        }
    CHECK(to_host(x) == to_host(full_like(x, T(3))));
    CHECK_THROWS_AS((block_mdspan<T, 2>(DynamicTensor(x))), UsageError);
    CHECK_THROWS_AS((block_mdspan<std::int16_t, 3>(DynamicTensor(x))), UsageError);
  }
  auto scalar = zeros<Tensor<T>>(mesh);
  *block_mdspan(scalar).data_handle() = T(2);
  CHECK(value(scalar) == T(2));
}
}  // namespace

TEST_CASE("a block is viewed where it lies") {
  for (const auto& shape : {std::pair{1, 1}, {3, 2}})
    run_loopback(shape.first * shape.second, [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(world, shape.first, shape.second);
      views<float>(mesh);
      views<double>(mesh);
      views<std::int8_t>(mesh);
      views<std::int64_t>(mesh);
    });
}
