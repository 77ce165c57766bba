// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: transport
// Collectives through shared memory between processes; without MPI, on one process:
// shared.loopback.cpp.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <tessera/comm/mesh_core.hpp>

#include "comm/collective_cases.hpp"
#include "support/world.hpp"

using namespace tessera;

namespace {

const std::shared_ptr<Transport>& world() { return support::world(); }

TransportSettings asking(Shared asked, Wait wait, Index least = 1, Index stage = 16384,
                         Index small_after = max_int64) {
  TransportSettings settings = world()->settings();
  settings.shared = asked;
  settings.wait = wait;
  settings.shared_least = least;
  settings.shared_stage = stage;
  settings.shared_small_after = small_after;
  return settings;
}

std::shared_ptr<detail::Group> group_of(const std::shared_ptr<Transport>& transport) {
  return transport->group(detail::all_members(transport->size()), 1);
}

Call sum_over_data(const detail::Group& group, Index count) {
  Call call = detail::control_all_reduce(group, Reduction::sum, count);
  call.type = DType::f32;
  call.group = AxisSet{0};
  return call;
}

}  // namespace

TEST_CASE(
    "every call in every shape and type, through shared memory where it can, around the chunks") {
  for (const Wait wait : {Wait::nap, Wait::spin}) {
    if (wait == Wait::spin && world()->size() > 2) continue;  // more processes than cores
    auto transport = world()->duplicate(asking(Shared::on, wait));
    auto group = group_of(transport);
    for (const Index scale : {1, 341, 342, 900}) {  // 3 * 341 floats: just below a half of 4096
      if (scale == 900 && world()->size() > 4) continue;
      const std::string text = cases::all_types_wrong(*group, scale);
      CHECK_MESSAGE(text.empty(), text);
    }
    CHECK((group->shared_bytes() > 0) == (world()->size() > 1));
  }
}

TEST_CASE("NaN, infinities, zeros of both signs and ends of ranges are reduced alike everywhere") {
  for (const Index stage : {4096, 65536}) {
    auto group = group_of(world()->duplicate(asking(Shared::on, Wait::nap, 1, stage)));
    const std::string text = cases::all_special_wrong(*group);
    CHECK_MESSAGE(text.empty(), text);
    CHECK((group->shared_bytes() > 0) == (world()->size() > 1));
  }
}

TEST_CASE("shared memory is used from the threshold on, and off is off") {
  auto on = group_of(world()->duplicate(asking(Shared::on, Wait::nap, 4096)));
  auto off = group_of(world()->duplicate(asking(Shared::off, Wait::nap, 4096)));
  std::vector<float> x(1024, 1.0f);
  const auto run = [&](detail::Group& group, Index count) {
    const Call call = sum_over_data(group, count);
    group.run(call, x.data(), x.data());
    return detail::payload_bytes(call);
  };
  run(*on, 1023);
  CHECK(on->shared_bytes() == 0);
  const Index payload = run(*on, 1024);
  CHECK(on->shared_bytes() == (world()->size() > 1 ? payload : 0));
  run(*off, 1024);
  CHECK(off->shared_bytes() == 0);
}

TEST_CASE("left to itself, a mesh with cores enough uses shared memory, wherever buffers lie") {
  const int p = world()->size();
  auto mesh = make_mesh_core(world(), MeshShape{p}, {"data"}, {.arena_bytes = 1 << 20});
  constexpr Index n = 30000;
  detail::Block block = mesh->arena().allocate(n * 4);
  std::vector<float> own(n, 1.0f);
  std::vector<float> all(static_cast<std::size_t>(n * p));
  auto* shared = static_cast<float*>(block.data);
  std::memcpy(shared, own.data(), n * 4);
  auto gather = cases::make_case<float>(all_gather, cases::Shape::even, Reduction::none,
                                        mesh->process(), p, n / 3);
  gather.call.group = AxisSet{0};
  const bool possible = p > 1 && block.shared && world()->settings().shared == Shared::automatic;
  const Index payload = detail::payload_bytes(gather.call);
  if (world()->settings().shared != Shared::on) {
    mesh->collective(gather.call, shared, all.data(), "gather", Where::here());
    CHECK(mesh->ledger().shared_bytes() == (possible ? payload : 0));
    // One process's data elsewhere: it copies them to its staging memory.
    const float* send = mesh->process() == p - 1 ? own.data() : shared;
    mesh->collective(gather.call, send, all.data(), "gather", Where::here());
    CHECK(mesh->ledger().shared_bytes() == (possible ? 2 * payload : 0));
    CHECK(all == std::vector<float>(all.size(), 1.0f));
    const Call sum = sum_over_data(mesh->group(AxisSet{0}), n);
    mesh->collective(sum, own.data(), own.data(), "sum", Where::here());
    CHECK(own[n - 1] == static_cast<float>(p));
    CHECK(mesh->ledger().shared_bytes() ==
          (possible ? 2 * payload + detail::payload_bytes(sum) : 0));
  }
  mesh->arena().release(block);
}

TEST_CASE("floating sums are the same run after run, spinning or napping, staged or in place") {
  const int p = world()->size();
  constexpr Index n = 30011;
  auto mesh = make_mesh_core(world(), MeshShape{p}, {"data"},
                             {.shared = Shared::on, .arena_bytes = 1 << 20});
  detail::Block block = mesh->arena().allocate(n * 4);
  auto* shared = static_cast<float*>(block.data);
  std::vector<float> x(n);
  for (Index i = 0; i < n; ++i)
    x[static_cast<std::size_t>(i)] = shared[i] =
        static_cast<float>(std::sin(0.37 * static_cast<double>(i) + world()->process()) *
                           std::exp(0.5 * world()->process()));
  const Call call = [&] {
    Call made = sum_over_data(mesh->group(AxisSet{0}), n);
    made.in_place = false;
    return made;
  }();
  std::vector<float> first(n);
  std::vector<float> again(n);
  mesh->collective(call, x.data(), first.data(), "sum", Where::here());
  for (int round = 0; round < 5; ++round) {
    const void* send = round % 2 == 0 ? static_cast<const void*>(shared) : x.data();
    mesh->collective(call, send, again.data(), "sum", Where::here());
    CHECK(std::memcmp(first.data(), again.data(), n * 4) == 0);
  }
  // In place, in the arena, with only some processes' buffers there.
  Call in_place = call;
  in_place.in_place = true;
  float* data = world()->process() % 2 == 0 ? shared : x.data();
  mesh->collective(in_place, data, data, "sum", Where::here());
  CHECK(std::memcmp(first.data(), data, n * 4) == 0);
  if (p <= 2) {
    auto spinning = group_of(world()->duplicate(asking(Shared::on, Wait::spin)));
    spinning->run(call, again.data(), first.data());
    auto napping = group_of(world()->duplicate(asking(Shared::on, Wait::nap, 1, 1 << 20)));
    napping->run(call, again.data(), x.data());
    CHECK(std::memcmp(first.data(), x.data(), n * 4) == 0);
  }
  mesh->arena().release(block);
}

TEST_CASE(
    "the ledger's payload does not change; a column of its own says what shared memory carried") {
  const int p = world()->size();
  Ledger ledgers[2];
  for (const Shared asked : {Shared::off, Shared::on}) {
    auto mesh = make_mesh_core(world(), MeshShape{p}, {"data"}, {.shared = asked});
    std::vector<float> x(50000, 1.0f);
    detail::Group& group = mesh->group(AxisSet{0});
    for (const Index n : {100, 50000})
      mesh->collective(sum_over_data(group, n), x.data(), x.data(), "sum", Where::here());
    CHECK(x[0] == static_cast<float>(p) * static_cast<float>(p));
    CHECK(x[49999] == static_cast<float>(p));
    ledgers[asked == Shared::on ? 1 : 0] = mesh->ledger();
    const Index carried =
        asked == Shared::on && p > 1 ? detail::payload_bytes(sum_over_data(group, 50000)) : 0;
    CHECK(mesh->ledger().shared_bytes() == carried);
    mesh->ledger().reset();
    CHECK(mesh->ledger().shared_bytes() == 0);
  }
  CHECK(ledgers[0].total() == ledgers[1].total());
  CHECK(ledgers[0].of(all_reduce, AxisSet{0}) == ledgers[1].of(all_reduce, AxisSet{0}));
}

TEST_CASE(
    "groups of some processes have shared memory of their own, which come and go with meshes") {
  const int p = world()->size();
  if (p % 2 != 0) return;
  for (int round = 0; round < 6; ++round) {
    auto mesh = make_mesh_core(world(), MeshShape{2, p / 2}, {"a", "b"},
                               {.shared = Shared::on, .arena_bytes = 0});
    for (const AxisSet axes : {AxisSet{1}, AxisSet{0}, AxisSet{0, 1}}) {
      detail::Group& group = mesh->group(axes);
      std::vector<float> x(40000, static_cast<float>(group.own()));
      Call call = sum_over_data(group, 40000);
      call.group = axes;
      mesh->collective(call, x.data(), x.data(), "sum", Where::here());
      const int s = group.size();
      CHECK(x[0] == static_cast<float>(s * (s - 1) / 2));
      CHECK(x[39999] == static_cast<float>(s * (s - 1) / 2));
    }
  }
}

TEST_CASE("where shared memory is too small, all members fall back to MPI") {
  auto group = group_of(world()->duplicate(asking(Shared::on, Wait::nap, 1, Index{1} << 50)));
  const std::string text = cases::all_types_wrong(*group, 3);
  CHECK_MESSAGE(text.empty(), text);
  CHECK(group->shared_bytes() == 0);
}

TEST_CASE("processes that ask for shared memory differently are told so") {
  if (world()->size() == 1) return;
  const Shared asked = world()->process() == 0 ? Shared::on : Shared::off;
  CHECK_THROWS_AS(make_mesh_core(world(), MeshShape{world()->size()}, {"a"}, {.shared = asked}),
                  MismatchError);
}
