// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: program
// What a Kokkos Tools library is told: a region for each operator, and within it one for each call
// of its plan.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include <tessera/op/compile.hpp>
#include <tessera/tessera.hpp>

#include "support/grid.hpp"

using namespace tessera;

namespace {
template <class... D> using Real = ShardedTensor<double, Grid, P<D...>>;

// A tool: processes are threads, so each has its own diary.
thread_local std::vector<std::string> diary;
thread_local int depth = 0;
std::atomic<long> arena_bytes{0};

void push(const char* name) {
  diary.push_back(std::string(static_cast<std::size_t>(depth++), ' ') + name);
}
void pop() { --depth; }
void allocated(Kokkos::Tools::SpaceHandle, const char* label, const void*, std::uint64_t bytes) {
  if (std::string(label) == "tessera arena") arena_bytes += static_cast<long>(bytes);
}

/// The tool is loaded while it lives.
struct Loaded {
  Loaded() {
    Kokkos::Tools::Experimental::set_push_region_callback(push);
    Kokkos::Tools::Experimental::set_pop_region_callback(pop);
    Kokkos::Tools::Experimental::set_allocate_data_callback(allocated);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  ~Loaded() {
    Kokkos::Tools::Experimental::set_push_region_callback(nullptr);
    Kokkos::Tools::Experimental::set_pop_region_callback(nullptr);
    Kokkos::Tools::Experimental::set_allocate_data_callback(nullptr);
  }
};

/// What the diary must say of a plan that is carried out.
std::vector<std::string> regions_of(const std::string& name, const Plan& plan,
                                    const AxisNames& names) {
  std::vector<std::string> regions{"tessera::" + name};
  for (const Call& call : instructions_of(plan).calls) {
    std::string axes;
    for (int a = 0; a < plan.mesh.rank(); ++a)
      if (call.group.axes.contains(a)) axes += (axes.empty() ? "" : ",") + std::string(names[a]);
    regions.push_back(" tessera::" + std::string(name_of(call.kind)) + " over " + axes);
  }
  return regions;
}

std::string lines(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& line : all) text += "\n" + line;
  return text;
}

}  // namespace

TEST_CASE("a tool sees a region for each operator, and within it one for each call") {
  const Loaded tool;
  arena_bytes = 0;
  run_loopback(4, [](std::shared_ptr<Transport> transport) {
    const auto mesh = make_mesh<Grid>(transport, 2, 2);
    const auto x = full<Real<data, _, model>>(mesh, {4, 3, 8}, 1.0);
    const auto w = full<Real<data, model>>(mesh, {8, 6}, 1.0);
    std::vector<std::vector<std::string>> seen;
    const auto turn_page = [&] {
      CHECK(depth == 0);
      seen.push_back(diary);
      diary.clear();
    };
    diary.clear();
    Recording recording(mesh);
    const auto h = einsum<"bsm,mh->bsh">(x, w);
    turn_page();
    const auto s = sum<"bsh->bs", P<_, _>>(h);
    turn_page();
    const auto g = gelu(h);
    turn_page();
    const auto whole = replicate(g);
    turn_page();
    const Program program = recording.take();

    const std::vector<std::string> operators{"einsum bsm,mh->bsh", "reduce sum bsh->bs", "map Gelu",
                                             "reshard"};
    REQUIRE(program.entries().size() == operators.size());
    std::size_t calls = 0;
    for (std::size_t i = 0; i < operators.size(); ++i) {
      const std::vector<std::string> expected =
          regions_of(operators[i], *program.entries()[i].plan, program.names());
      CHECK_MESSAGE(seen[i] == expected, lines(seen[i])
                                             << "\nwhere was expected" << lines(expected));
      calls += expected.size() - 1;
    }
    CHECK(calls >= 4);
  });
  CHECK(arena_bytes > 0);
  CHECK(depth == 0);
}

TEST_CASE("a tool sees layers, and of a compiled function what it sees of the function") {
  const Loaded tool;
  run_loopback(4, [](std::shared_ptr<Transport> transport) {
    const auto mesh = make_mesh<Grid>(transport, 2, 2);
    const auto x = full<Real<data, _, model>>(mesh, {4, 3, 8}, 1.0);
    const auto f = [&] {
      const Layer outer(mesh, "outer");
      const auto y = layer("inner", [](const auto& z) { return gelu(z); })(x);
      return std::pair(replicate(x), replicate(y));
    };
    auto compiled = compile(f, {.join = false});
    diary.clear();
    (void)f();
    const std::vector<std::string> eager = diary;
    diary.clear();
    (void)compiled();
    const std::vector<std::string> listed = diary;
    CHECK(depth == 0);
    REQUIRE(eager.size() > 4);
    CHECK(eager[0] == "tessera::layer outer");
    CHECK(eager[1] == " tessera::layer inner");
    CHECK(eager[2] == "  tessera::map Gelu");
    CHECK(eager[3] == " tessera::reshard");
    CHECK_MESSAGE(listed.size() > eager.size(), lines(listed));  // layers are opened again
    const auto operators = [](const std::vector<std::string>& all) {
      std::vector<std::string> found;
      for (const std::string& line : all)
        if (line.find("layer") == std::string::npos) found.push_back(line);
      return found;
    };
    CHECK_MESSAGE(operators(listed) == operators(eager), lines(listed) << "\nand" << lines(eager));
    diary.clear();
    (void)compile(f)();
    const std::vector<std::string> both{"tessera::layer outer",
                                        " tessera::layer inner",
                                        "  tessera::map Gelu",
                                        "tessera::layer outer",
                                        " tessera::reshard reshard_together",
                                        "  tessera::all-gather over data,model"};
    CHECK_MESSAGE(diary == both, lines(diary));
    diary.clear();  // what is under way has a region where it begins, and one where it ends
    auto pending = async([&] { return replicate(x); });
    (void)pending.wait();
    CHECK(std::count(diary.begin(), diary.end(), "tessera::reshard") == 2);
    CHECK(depth == 0);
  });
}

TEST_CASE("the regions are closed when an operator throws, and no tool is told of a dry run") {
  const Loaded tool;
  run_loopback(2, [](std::shared_ptr<Transport> transport) {
    const auto mesh =
        make_mesh<Grid>(transport, sizes<Grid>(1, 2), MeshOptions{.memory_limit = 6144});
    const auto x = full<Real<_, model>>(
        mesh, {16, 16}, 1.0);  // 1 KiB, of which the whole takes 2, and 2 to put it together
    diary.clear();
    const auto whole = replicate(x);
    CHECK(diary.size() == 2);
    CHECK_THROWS_AS(replicate(x), MemoryError);
    CHECK(diary.size() == 3);  // the operator began, and came to no call
    CHECK(depth == 0);
  });
  diary.clear();
  const auto dry = dry_mesh<Grid>(4, 4);
  (void)replicate(zeros<Real<data, model>>(dry, 8, 8));
  CHECK(diary.empty());
}
