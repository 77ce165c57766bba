// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: show
// Texts of tensors and of every public value, asked for by one process alone.
#include <doctest/doctest.h>

#include <tessera/tessera.hpp>

#include "support/grid.hpp"

using namespace tessera;

namespace {
template <class T, class... Dims> using Of = ShardedTensor<T, Grid, P<Dims...>>;

struct Place {
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i) const {
    return static_cast<double>(10 * i[0] + i[1]);
  }
};
}  // namespace

TEST_CASE("a tensor's text is what one process sees, and needs no other process") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto x = from_function<Of<float, data, model>>(mesh, {5, 6}, Place{});
    if (mesh.process() != 3) return;  // the others are not waited for
    CHECK(fmt::format("{}", x) ==
          "float 5x6 P<data,model> on data=2 x model=2, process 3 has [3,5) x [3,6): [33, 34, 35, "
          "43, 44, 45]");
    CHECK(fmt::format("{:s}", x) == "float 5x6 P<data,model> on data=2 x model=2");
    CHECK(fmt::format("{:b}", DynamicTensor(x)) ==
          "float 5x6 P<data,model> on data=2 x model=2, process 3 has [3,5) x [3,6):\n[[33, 34, "
          "35],\n [43, 44, 45]]");
    CHECK(fmt::format("{}", zeros<Of<std::int32_t, _>>(mesh, 9)) ==
          "int32 9 P<_> on data=2 x model=2, process 3 has [0,9): [0, 0, 0, 0, 0, 0, ...]");
    CHECK(fmt::format("{}", zeros<Of<double, data>>(mesh, 1)) ==
          "double 1 P<data> on data=2 x model=2, process 3 has [1,1): []");
    CHECK(fmt::format("{}", full<Of<double>>(mesh, {}, 2.5)) ==
          "double scalar P<> on data=2 x model=2, process 3 has everything: [2.5]");
    CHECK(fmt::format("{}", Of<float, data>()) == "an empty tensor");
    CHECK(fmt::format("{}", mesh) == "data=2 x model=2, process 3");
    CHECK_THROWS_AS(static_cast<void>(fmt::format(fmt::runtime("{:x}"), x)), fmt::format_error);
  });
  CHECK(fmt::format("{}", zeros<Of<float, data>>(dry_mesh<Grid>(2, 2), 8)) ==
        "float 8 P<data> on data=2 x model=2, process 0 has [0,4) (dry)");
}

TEST_CASE("every public value has a text") {
  const Sharding s{{0}, {}, {1}};
  const TensorDesc desc{DType::f32, {8, 6, 4}, s};
  CHECK(fmt::format("{}", s) == "P<axis0,_,axis1>");
  CHECK(fmt::format("{:>18}", with_names<Grid>(s)) == "   P<data,_,model>");
  CHECK(fmt::format("{}", with_names<Grid>(desc)) == "float 8x6x4 P<data,_,model>");
  CHECK(fmt::format("{}", desc) == "float 8x6x4 P<axis0,_,axis1>");
  CHECK(fmt::format("{} {}", MeshShape{2, 4}, with_names<Grid>(MeshShape{2, 4})) ==
        "axis0=2 x axis1=4 data=2 x model=4");
  CHECK(fmt::format("{}", sizes<Grid>(2, 4)) == "data=2 x model=4");
  CHECK(fmt::format("{} {}", whole({3, 4}), Interval{1, 2}) == "[0,3) x [0,4) [1,2)");
  CHECK(fmt::format("{} {}", Extents{3, 4}, Extents{}) == "3x4 scalar");
  CHECK(fmt::format("{} {} {}", DType::i64, Reduction::sum, all_gather) == "int64 sum all-gather");
  CHECK(fmt::format("{} {}", DType::u16, DType::u64) == "uint16 uint64");
  CHECK(to_string(HostTensor<std::uint64_t>{{1}, {~std::uint64_t{0}}}) == "[18446744073709551615]");
  CHECK(fmt::format("{}", Machine{}) ==
        "message 1 us, payload 4.7 GiB/s, copy 9.5 GiB/s, 1000 flop 10 ns in single and 20 ns in "
        "double precision");
  const Plan plan =
      ops::Reshard{Sharding{{}}}.plan({TensorDesc{DType::f32, {8}, Sharding{{0}}}}, {MeshShape{2}});
  CHECK(fmt::format("{}", plan) == explain(plan, {}));
  using Rows = ShardedTensor<float, Grid, P<data, _>>;
  const auto typed = tessera::plan<P<_, data>>(like<Rows>(8, 6), sizes<Grid>(2, 4));
  CHECK(fmt::format("{}", typed) == explain(typed, {"data", "model"}));
  CHECK(fmt::format("{}", typed).find("all-to-all over data") != std::string::npos);
  CHECK(fmt::format("{}", with_names<Grid>(typed)) == fmt::format("{}", typed));
  const Program program = tessera::plan([](const Rows& x) { return reshard<P<_, data>>(x); })(
      like<Rows>(8, 6), sizes<Grid>(2, 4));
  CHECK(to_string(program) == explain(program));
}

TEST_CASE("value reads a scalar, typed or dynamic, and refuses what is none") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, std::vector<int>{2, 1});
    const auto x = from_function<Of<float, data, _>>(mesh, {3, 2}, Place{});
    const DynamicTensor total = sum(x);
    CHECK(value<float>(total) == value(sum(x)));
    CHECK(value<float>(total) == 63);
    CHECK_THROWS_WITH_AS(value<float>(DynamicTensor(x)),
                         doctest::Contains("the tensor is 3x2; value takes a scalar tensor"),
                         ShapeError);
    CHECK_THROWS_WITH_AS(value<double>(total), doctest::Contains("of float and is read as double"),
                         UsageError);
  });
}
