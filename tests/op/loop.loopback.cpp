// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: cases
// Products in rounds and in parts against plain loops and their plans, on several meshes: calls,
// payload and peak of memory are the plan's; the limit of workspace is kept.
#include <doctest/doctest.h>

#include <mutex>

#include "op/loop_cases.hpp"

using namespace tessera;
using namespace support;

namespace {
/// Plays `count` cases on every mesh under every option; returns how many were of this kind.
int play(const char* name, std::uint64_t otherwise, int count, const std::vector<MeshOptions>& all,
         ProductKind kind) {
  const std::uint64_t seed = seed_for(name, otherwise);
  std::mutex mutex;
  std::atomic<int> played = 0;
  kind.count = &played;
  int wrong = 0;
  std::uint64_t number = 0;
  for (const MeshShape& shape :
       {MeshShape{2}, MeshShape{3}, MeshShape{4}, MeshShape{2, 2}, MeshShape{2, 1}, MeshShape{2, 3},
        MeshShape{2, 4}, MeshShape{2, 2, 2}})
    for (const MeshOptions& options : all) {
      ++number;
      run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
        Random random(seed + 1000 * number);
        const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()), options);
        for (int i = 0; i < count; ++i)
          if (const std::string text = some_product(mesh, random, kind); !text.empty()) {
            const std::lock_guard<std::mutex> lock(mutex);
            if (++wrong <= 3) MESSAGE(text);
          }
      });
    }
  CHECK(wrong == 0);
  return played;
}
}  // namespace

TEST_CASE("products in rounds run their plans") {
  CHECK(play("products in rounds", 91, 40, looping_options(), {}) > 100);
}

TEST_CASE("products in rounds read operands that lie within a halo") {
  CHECK(play("products in rounds within halos", 92, 80, looping_options(), {.halos = true}) > 100);
}

TEST_CASE("products read the own part of a gathered operand where it lies") {
  CHECK(play("products in parts", 93, 500, {parts_options()}, {.in_parts = true}) > 60);
}

TEST_CASE("the conformance cases of loops, with shorter sides") {
  for (const LoopRow& full : loop_rows()) {
    const LoopRow row = with_short_sides(full);
    std::mutex mutex;
    std::string wrong;
    run_loopback(row.mesh.processes(), [&](std::shared_ptr<Transport> world) {
      const auto mesh =
          make_mesh_core(world, row.mesh, axis_names(row.mesh.rank()), looping_options(row));
      const std::string text = played_row(mesh, row);
      const std::lock_guard<std::mutex> lock(mutex);
      if (!text.empty()) wrong = text;
    });
    CHECK_MESSAGE(wrong.empty(), wrong);
  }
}

TEST_CASE("a product keeps the workspace limit by a loop") {
  // Both operands are split over both axes; gathered, they take 60 KiB.
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    MeshOptions options;
    options.workspace_limit = 40 << 10;
    const MeshShape shape{2, 2};
    const auto mesh = make_mesh_core(world, shape, axis_names(2), options);
    const TensorDesc desc{DType::f32, {120, 120}, {{0}, {1}}};
    const DynamicTensor x = make_input<float>(mesh, desc, 1), y = make_input<float>(mesh, desc, 2);
    const Index held = mesh->arena().in_use();
    mesh->arena().reset_peak();
    const DynamicTensor z = tessera::einsum("ik,kj->ij", x, y, desc.sharding);
    const Index result = mesh->arena().in_use() - held;
    const Index workspace = mesh->arena().peak() - held - result;
    const bool kept = workspace <= options.workspace_limit && workspace > 0;
    CHECK(kept);
  });
}
