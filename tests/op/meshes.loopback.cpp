// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: cases
// Several meshes in one program: over some of the processes, within another, in another order; and
// tensors that go from one to the other.
#include <doctest/doctest.h>

#include <mutex>

#include "op/between_case.hpp"
#include "op/texts_of.hpp"
#include "support/grid.hpp"

using namespace tessera;
using namespace support;

namespace {
struct expert : Axis<> {};
struct line : Axis<> {};
using Row = Mesh<line>;
template <class... D> using Tensor = ShardedTensor<double, Grid, P<D...>>;
template <class... D> using InRow = ShardedTensor<double, Row, P<D...>>;

struct Ramp {
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    double value = 1;
    for (int d = 0; d < i.size(); ++d) value = value * 10 + static_cast<double>(i[d]);
    return value;
  }
};
}  // namespace

TEST_CASE("a tensor goes to any other mesh over the same processes, and back") {
  const std::uint64_t seed = seed_for("between meshes", 70);
  for (int processes = 1; processes <= 8; ++processes)
    for (int round = 0; round < 12; ++round)
      CHECK(quiet(texts_of(processes, [&](const std::shared_ptr<Transport>& world) {
        Random random(seed + static_cast<std::uint64_t>(100 * processes + round));
        return between_case(world, random, 30);
      })));
}

TEST_CASE("a device assignment says who stands where, and changes no result") {
  const std::uint64_t seed = seed_for("device assignments", 71);
  for (const MeshShape& shape : meshes(8, 2))
    CHECK(quiet(
        texts_of(shape.processes(), [&](const std::shared_ptr<Transport>& world) -> std::string {
          Random random(seed);
          for (int i = 0; i < 4; ++i) {
            const DeviceAssignment assignment = some_assignment(random, shape);
            MeshOptions options;
            options.device_assignment = assignment;
            const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()), options);
            REQUIRE_THAT(mesh->process() == assignment.position(world->process()));
            for (int p = 0; p < shape.processes(); ++p)
              REQUIRE_THAT(mesh->processes()[static_cast<std::size_t>(p)] == assignment[p]);
            for (int k = 0; k < 10; ++k)
              if (const std::string text = some_case(mesh, random); !text.empty()) return text;
          }
          return "";
        })));
}

TEST_CASE("a mesh lies on its processes as its machine model says") {
  CHECK(quiet(texts_of(6, [](const std::shared_ptr<Transport>& world) -> std::string {
    MeshOptions options;
    options.machine.order = {{1, 0}};
    const auto mesh = make_mesh<Grid>(world, sizes<Grid>(2, 3), options);
    REQUIRE_THAT(device({{1, 0}}, mesh.shape(), mesh.coordinates()) == world->process());
    const auto dry = dry_mesh<Grid>(sizes<Grid>(2, 3), mesh.process(), options);
    REQUIRE_THAT(dry.process() == mesh.process() &&
                 dry.core()->processes() == mesh.core()->processes());
    return "";
  })));
}

TEST_CASE("some processes have a mesh of their own while the others do something else") {
  CHECK(quiet(texts_of(5, [](const std::shared_ptr<Transport>& world) -> std::string {
    const auto whole = make_mesh<Row>(world, 5);
    if (world->process() < 2) {
      const auto mesh = make_mesh<Grid>(world->first(2), 1, 2);
      for (int i = 0; i < 5; ++i) {
        const auto x = from_function<Tensor<data, model>>(mesh, {3, 4}, Ramp{});
        REQUIRE_THAT(to_host(einsum<"ik,jk->ij">(x, x)).values[0] ==
                     100 * 100 + 101 * 101 + 102 * 102 + 103 * 103);
      }
    } else if (world->process() != 3) {  // 4 before 2
      const auto mesh = make_mesh<Row>(world->among({4, 2}), 2);
      REQUIRE_THAT(mesh.process() == (world->process() == 4 ? 0 : 1));
      REQUIRE_THAT((mesh.core()->processes() == std::vector<int>{4, 2}));
      REQUIRE_THAT(value(sum(from_function<InRow<line>>(mesh, {3}, Ramp{}))) == 33);
      const auto alone = make_mesh<Row>(world->among({world->process()}), 1);
      REQUIRE_THAT(value(sum(from_function<InRow<line>>(alone, {3}, Ramp{}))) == 33);
    }
    REQUIRE_THAT(value(sum(from_function<InRow<line>>(whole, {7}, Ramp{}))) == 7 * 10 + 21);
    return "";
  })));
}

TEST_CASE("slices of a mesh work on their own") {
  using Cube = Mesh<data, model, expert>;
  CHECK(quiet(texts_of(8, [](const std::shared_ptr<Transport>& world) -> std::string {
    MeshOptions options;
    options.device_assignment = as_snake(MeshShape{2, 2, 2});
    const auto cube = make_mesh<Cube>(world, sizes<Cube>(2, 2, 2), options);
    const auto slice = submesh<Mesh<expert, data>>(cube);  // in another order
    REQUIRE_THAT(slice.coordinate<data>() == cube.coordinate<data>() &&
                 slice.coordinate<expert>() == cube.coordinate<expert>());
    for (int p = 0; p < 4; ++p) {
      Coordinates at = cube.coordinates();
      at[2] = slice.shape().coordinates(p)[0];
      at[0] = slice.shape().coordinates(p)[1];
      REQUIRE_THAT(slice.core()->processes()[static_cast<std::size_t>(p)] ==
                   cube.core()->processes()[static_cast<std::size_t>(cube.shape().process(at))]);
    }
    // Slices differ in what they do: as many operators as their coordinate says.
    using Part = ShardedTensor<double, Mesh<expert, data>, P<expert, data>>;
    auto x = from_function<Part>(slice, {3, 5}, Ramp{});
    const double before = value(sum(x));
    for (int i = 0; i < cube.coordinate<model>(); ++i)
      x = reshard<P<expert, data>>(reshard<P<data, expert>>(x)) * 2.0;
    REQUIRE_THAT(value(sum(x)) == (cube.coordinate<model>() == 1 ? 2 * before : before));
    if (cube.coordinate<model>() == 0) {
      const auto row = submesh<Mesh<expert>>(slice);
      REQUIRE_THAT(row.processes() == 2 && row.coordinate<expert>() == cube.coordinate<expert>());
    }
    const auto guarded = submesh<Strict<Mesh<model>>>(cube);
    static_assert(detail::is_strict<decltype(guarded)::mesh_type>);
    REQUIRE_THAT(guarded.core()->strict() && !slice.core()->strict());
    return "";
  })));
}

TEST_CASE("typed: another mesh, its own types") {
  CHECK(quiet(texts_of(6, [](const std::shared_ptr<Transport>& world) -> std::string {
    const auto mesh = make_mesh<Grid>(world, 2, 3);
    MeshOptions options;
    options.device_assignment = DeviceAssignment{5, 3, 1, 0, 2, 4};
    const auto row = make_mesh<Row>(world, sizes<Row>(6), options);
    const auto x = from_function<Tensor<data, model>>(mesh, {7, 5}, Ramp{});
    const auto y = reshard<InRow<_, line>>(x, row);
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(y)>, InRow<_, line>>);
    REQUIRE_THAT(to_host(y) == to_host(x));
    REQUIRE_THAT(to_host(y + y) == to_host(x * 2.0));
    REQUIRE_THAT(to_host(reshard<Tensor<_, Axes<model, data>>>(y, mesh)) == to_host(x));
    const auto open = einsum<"ik,jk->ij", P<data, _, Unreduced<Sum, model>>>(x, x);
    REQUIRE_THAT(to_host(reshard<InRow<line, _>>(open, row)) == to_host(einsum<"ik,jk->ij">(x, x)));
    REQUIRE_THAT(to_host(reshard<Tensor<model, data>>(x, mesh)) ==
                 to_host(x));  // to its own mesh: a reshard
    // Where the blocks are the same on the same processes, nothing is sent.
    const auto again = make_mesh<Grid>(world, 2, 3);
    mesh.ledger().reset();
    const auto copy = reshard<Tensor<data, model>>(x, again);
    REQUIRE_THAT(mesh.ledger().payload_bytes() == 0 && mesh.ledger().total().calls == 0);
    REQUIRE_THAT(copy.data() != x.data() && to_host(copy) == to_host(x));
    return "";
  })));
}

TEST_CASE("a mesh whose axes are known when the program runs") {
  CHECK(quiet(texts_of(4, [](const std::shared_ptr<Transport>& world) -> std::string {
    const std::vector<std::string> given{"rows", "columns"};  // which the mesh copies
    const DynamicMesh mesh = make_mesh(world, {2, 2}, {given[0], given[1]});
    REQUIRE_THAT(mesh.processes() == 4 && mesh.names() == (AxisNames{"rows", "columns"}));
    REQUIRE_THAT(mesh.process() == mesh.shape().process(mesh.coordinates()));
    const Sharding both{{0}, {1}}, rows{{0}, {}};
    Recording recording(mesh);
    {
      const Layer layer(mesh, "first");
      const DynamicTensor x = from_function<double>(mesh, {7, 5}, both, Ramp{});
      const DynamicTensor y = reshard(x, rows);
      REQUIRE_THAT(x.mesh().core() == mesh.core() && to_host<double>(x) == to_host<double>(y));
    }
    const std::string text = explain(recording.take());
    REQUIRE_THAT(text.find("columns") != std::string::npos);
    REQUIRE_THAT(text.find("first") != std::string::npos);

    // A dynamic mesh of a typed one is that mesh: what is made on either mixes.
    const auto typed = make_mesh<Grid>(world, 2, 2);
    const DynamicMesh same = typed;
    const auto x = from_function<Tensor<data, model>>(typed, {7, 5}, Ramp{});
    for (const DynamicTensor& y : {from_function<double>(same, {7, 5}, both, Ramp{}),
                                   from_function<double>(typed, {7, 5}, both, Ramp{}),
                                   from_function<double>(typed.core(), {7, 5}, both, Ramp{})})
      REQUIRE_THAT(to_host<double>(map_dynamic<double>("ij,ij->ij", fn::Add{}, both,
                                                       DynamicTensor(x), y)) == to_host(x + x));
    REQUIRE_THAT(to_host<double>(reshard(x, both, mesh)) == to_host(x));
    REQUIRE_THAT(to_host<double>(reshard(x, rows, same)) == to_host(x));
    return "";
  })));
  const DynamicMesh dry = dry_mesh({2, 3}, {"rows", "columns"}, 4);
  CHECK(dry.dry());
  CHECK(dry.process() == 4);
  const DynamicTensor x = zeros<double>(dry, {4, 6}, Sharding{{0}, {1}});
  CHECK(x.box() == Box{{{2, 4}, {2, 4}}});
  const auto says = [](const auto& f, const std::string& part) {
    const std::string text = complaint_of(f);
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
  };
  says([] { (void)dry_mesh({2, 3}, {"rows"}); }, "a mesh of 2 axes is made with 1 names");
  says([] { (void)dry_mesh({2, 3}, {"rows", "rows"}); }, "two axes of a mesh are called rows");
  says([] { (void)zeros<double>(DynamicMesh(), {4}, Sharding{{}}); }, "an empty mesh is used");
  says([] { (void)Recording(ProcessMesh<Grid>()); }, "an empty mesh is used");
  says([&] { (void)reshard(x, Sharding{{}, {}}, DynamicMesh()); }, "the mesh to go to is empty");
}

TEST_CASE("a dry mesh as a mesh of processes") {
  CHECK(quiet(texts_of(4, [](const std::shared_ptr<Transport>& world) -> std::string {
    MeshOptions snake;
    snake.device_assignment = as_snake(MeshShape{2, 2});
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto other = make_mesh<Grid>(world, sizes<Grid>(2, 2), snake);
    const auto run = [](const ProcessMesh<Grid>& from, const ProcessMesh<Grid>& to) {
      const auto x = zeros<Tensor<data, model>>(from, 6, 5);
      Recording recording(from);
      (void)reshard<Tensor<model, _>>(x, to);
      return recording.take();
    };
    const Program ran = run(mesh, other);
    const Program dry = run(dry_mesh<Grid>(mesh.sizes(), mesh.process()),
                            dry_mesh<Grid>(mesh.sizes(), other.process(), snake));
    REQUIRE_THAT(explain(ran) == explain(dry) && *ran.entries()[0].plan == *dry.entries()[0].plan);
    return "";
  })));
}

TEST_CASE("what does not fit is said on every process") {
  const auto on_grid = [](const std::shared_ptr<Transport>& world) {
    return from_function<Tensor<data, model>>(make_mesh<Grid>(world, 2, 2), {4, 4}, Ramp{});
  };
  CHECK(all_say(texts_of(4,
                         [&](const std::shared_ptr<Transport>& world) -> std::string {
                           const auto x = on_grid(world);
                           const auto y = from_function<Tensor<data, model>>(
                               make_mesh<Grid>(world, 2, 2), {4, 4}, Ramp{});
                           (void)(x + y);
                           return "";
                         }),
                "lives on a mesh data=2 x model=2 and operand 2 on another one"));
  CHECK(all_say(texts_of(4,
                         [&](const std::shared_ptr<Transport>& world) -> std::string {
                           const auto x = on_grid(world);
                           if (world->process() > 1) return "over different processes";
                           (void)reshard<InRow<line, _>>(x, make_mesh<Row>(world->first(2), 2));
                           return "";
                         }),
                "over"));
  const auto half = texts_of(2, [](const std::shared_ptr<Transport>& world) -> std::string {
    const auto alone = make_mesh<Row>(world->among({world->process()}), 1);
    const auto x = from_function<InRow<line, _>>(alone, {4, 4}, Ramp{});
    (void)reshard<InRow<line, _>>(x, make_mesh<Row>(world, 2));
    return "";
  });
  CHECK(all_say(half, "a tensor moves between meshes over the same processes"));
  CHECK(half[0].find("the tensor's mesh line=1 is over the processes 0 (loopback) and the mesh "
                     "line=2 over 0, 1") != std::string::npos);
  CHECK(all_say(
      texts_of(
          2,
          [](const std::shared_ptr<Transport>& world) -> std::string {
            const auto x = from_function<InRow<line, _>>(make_mesh<Row>(world, 2), {4, 4}, Ramp{});
            (void)reshard<InRow<line, _>>(x, dry_mesh<Row>(2));
            return "";
          }),
      "(loopback) and the mesh line=2 over 0, 1 (dry)"));

  const auto assigned = [](DeviceAssignment assignment) {
    return texts_of(4, [&](const std::shared_ptr<Transport>& world) -> std::string {
      MeshOptions options;
      options.device_assignment = assignment;
      (void)make_mesh<Grid>(world, sizes<Grid>(2, 2), options);
      return "";
    });
  };
  CHECK(all_say(assigned({0, 1, 2}), "lists 3 processes and the mesh has 4"));
  CHECK(all_say(assigned({0, 1, 2, 4}),
                "puts process 4 at position 3, but processes are numbered 0 to 3"));
  CHECK(all_say(assigned({0, 1, 2, 1}), "puts process 1 at positions 1 and 3"));
  CHECK(all_say(texts_of(4,
                         [](const std::shared_ptr<Transport>& world) -> std::string {
                           MeshOptions options;
                           if (world->process() == 2)
                             options.device_assignment = DeviceAssignment{3, 2, 1, 0};
                           (void)make_mesh<Grid>(world, sizes<Grid>(2, 2), options);
                           return "";
                         }),
                "all processes must call the same operators"));
  CHECK(all_say(texts_of(2,
                         [](const std::shared_ptr<Transport>& world) {
                           return (void)world->among({0, 0}), std::string();
                         }),
                "is listed twice"));
  CHECK(all_say(texts_of(2,
                         [](const std::shared_ptr<Transport>& world) {
                           return (void)world->among({2}), std::string();
                         }),
                "there is no process 2"));
  CHECK(all_say(texts_of(2,
                         [](const std::shared_ptr<Transport>& world) {
                           return (void)world->among({1 - world->process()}), std::string();
                         }),
                "is not listed"));
  CHECK(all_say(texts_of(1,
                         [](const std::shared_ptr<Transport>&) {
                           return (void)make_mesh<Row>(std::shared_ptr<Transport>(), 1),
                                  std::string();
                         }),
                "a mesh is made from no transport"));
}
