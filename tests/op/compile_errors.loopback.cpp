// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: program
// What compiled functions say: where an operator is wrong, that a mesh is gone, how the structures
// of two processes differ, and that there are many.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <tessera/op/compile.hpp>
#include <tessera/tessera.hpp>

#include "support/grid.hpp"

using namespace tessera;

namespace {
template <class... D> using Real = ShardedTensor<double, Grid, P<D...>>;

std::string place(int line) { return "compile_errors.loopback.cpp:" + std::to_string(line); }
template <class F> std::string said(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
/// Returns what f writes to stderr.
template <class F> std::string on_stderr(F f) {
  std::fflush(stderr);
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  const int kept = dup(2);
  dup2(fileno(file), 2);
  f();
  std::fflush(stderr);
  dup2(kept, 2);
  close(kept);
  std::rewind(file);
  std::string text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  std::fclose(file);
  return text;
}
}  // namespace

TEST_CASE("errors of listed operators name the operators' own places, when listed and when run") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh =
        make_mesh<Grid>(world, sizes<Grid>(2, 1), MeshOptions{.memory_limit = 40'000});
    const DynamicTensor x = full<Real<data, _>>(mesh, {16, 16}, 1.0);
    const Sharding rows{{0}, {}};
    int wrong = 0;
    const std::string listed = said([&] {
      (void)compile([&] {
        const Layer scope(mesh, "a layer");
        const DynamicTensor y = reshard(x, rows);
        wrong = __LINE__ + 1;
        const DynamicTensor z = reshape(y, {17, 16}, rows);
        return reduce<Sum>("ij->", z, Sharding{});
      })();
    });
    CHECK_MESSAGE(listed.find(place(wrong)) != std::string::npos, listed);
    CHECK(listed.find("a layer") != std::string::npos);
    const std::string run = said([&] {
      (void)compile([&] {
        const Layer scope(mesh, "a layer");
        const DynamicTensor y = map_dynamic<double>("ij,ij->ij", fn::Add{}, rows, x, x);
        wrong = __LINE__ + 1;
        const DynamicTensor wide = einsum("ij,kl->ijkl", y, y, Sharding{{0}, {}, {}, {}});
        return reduce<Sum>("ijkl->", wide, Sharding{});
      })();
    });
    CHECK_MESSAGE(run.find(place(wrong)) != std::string::npos, run);
    CHECK(run.find("a layer") != std::string::npos);
  });
}

TEST_CASE("a compiled function whose mesh is gone says so, and works on another one") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    auto twice = compile([](const DynamicTensor& x) {
      return map_dynamic<double>("ij,ij->ij", fn::Add{}, Sharding{{}, {0}}, x, x);
    });
    const auto on = [&](Index n) {
      const auto mesh = make_mesh<Grid>(world, 2, 1);
      const DynamicTensor x = full<Real<data, _>>(mesh, {n, 4}, 1.5);
      return to_host<double>(twice(x)).values[0];
    };
    CHECK(on(4) == 3.0);
    CHECK(twice.program().size() > 0);  // it outlives its mesh
    CHECK(on(6) == 3.0);
    CHECK(twice.structures() == 2);
    CHECK_MESSAGE(twice.explain_structures().find("its mesh is gone") != std::string::npos,
                  twice.explain_structures());
    CHECK(explain(twice).find("double 6x4") != std::string::npos);
  });
  run_loopback(1, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 1, 1);
    const DynamicTensor x = full<Real<data, _>>(mesh, {4, 4}, 1.5);
    int line = 0;
    auto twice = compile([&] {
      line = __LINE__ + 1;
      return reshard(x, Sharding{{}, {0}});
    });
    (void)twice();
    mesh.core()->poison("the reason");
    const std::string text = said([&] { (void)twice(); });
    CHECK_MESSAGE(text.find("cannot be used: the reason") != std::string::npos, text);
    CHECK_MESSAGE(text.find(place(line)) != std::string::npos, text);
  });
}

TEST_CASE("processes that keep different results are told which") {
  CHECK_THROWS_WITH_AS(run_loopback(2,
                                    [](std::shared_ptr<Transport> world) {
                                      const auto mesh = make_mesh<Grid>(world, 2, 1);
                                      const auto x = full<Real<data, _>>(mesh, {4, 3}, 2.0);
                                      std::optional<Real<data, _>> best;
                                      auto f = compile([&] {
                                        const auto y = x + x;
                                        if (mesh.process() == 0) best = y;
                                        return sum(y);
                                      });
                                      (void)f();
                                    }),
                       doctest::Contains("(kept)"), MismatchError);
}

TEST_CASE("many structures are told of once, on one process") {
  const std::string text = on_stderr([] {
    run_loopback(2, [](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(world, 2, 1);
      auto f = compile(
          [&](Index n) {
            return sum(full<Real<data, _>>(mesh, {n, 3}, 2.0));
          },
          {.warn_at = 3});
      for (Index n = 1; n < 7; ++n) (void)f(n);
      CHECK(f.structures() == 6);
    });
  });
  const std::size_t at = text.find("a compiled function has had 3 structures in 3 calls");
  CHECK_MESSAGE(at != std::string::npos, text);
  CHECK(text.find("a compiled function", at + 1) == std::string::npos);
  CHECK(text.find("compiled at compile_errors.loopback.cpp") != std::string::npos);
}
