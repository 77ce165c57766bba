// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: transport
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <tessera/comm/dry.hpp>
#include <tessera/comm/loopback/loopback.hpp>
#include <tessera/comm/mesh_core.hpp>

#include "comm/collective_cases.hpp"

using namespace tessera;

namespace {

template <class E, class F> std::string thrown(int processes, F f, double limit = 20) {
  try {
    run_loopback(processes, f, {limit});
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

template <class E, class F> std::string text_of(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

bool has(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE("\"" << part << "\" is not in: " << text);
  return found;
}

Call sum_over(MeshCore& mesh, AxisSet axes, Index count) {
  Call call = detail::control_all_reduce(mesh.group(axes), Reduction::sum, count);
  call.group = axes;
  return call;
}

struct Counter {
  int value = 0;
};

}  // namespace

TEST_CASE("groups of a mesh are the processes that differ along their axes") {
  std::atomic<int> bad{0};
  run_loopback(8, [&](std::shared_ptr<Transport> transport) {
    auto mesh = make_mesh_core(transport, MeshShape{2, 2, 2}, {"a", "b", "c"});
    for (std::uint32_t bits = 0; bits < 8; ++bits) {
      const AxisSet axes = AxisSet::from_bits(bits);
      std::int64_t x = 1 + 1000 * mesh->process();
      const Call call = sum_over(*mesh, axes, 1);
      mesh->collective(call, &x, &x, "sum", Where::here());
      std::int64_t expected = 0;
      for (int k = 0; k < mesh->shape().group_size(axes); ++k)
        expected +=
            1 + 1000 * mesh->shape().process(mesh->shape().member(axes, mesh->coordinates(), k));
      if (x != expected) ++bad;
    }
    if (mesh->ledger().count(all_reduce) != 8) ++bad;
    if (mesh->axes_text(AxisSet{0, 2}) != "a,c" || mesh->to_string() != "a=2 x b=2 x c=2") ++bad;
  });
  CHECK(bad == 0);
}

TEST_CASE("a mesh that does not fit its processes is refused on all of them") {
  std::atomic<int> count{0};
  run_loopback(3, [&](std::shared_ptr<Transport> transport) {
    const std::string text = text_of<MeshError>([&] {
      make_mesh_core(transport, MeshShape{2, 2}, {"data", "model"});
    });
    if (text.find("the mesh data=2 x model=2 has 4 processes but the communicator has 3; ") !=
        std::string::npos)
      ++count;
  });
  CHECK(count == 3);
}

TEST_CASE("processes that ask for different meshes are told both") {
  const std::string text = thrown<MismatchError>(4, [&](std::shared_ptr<Transport> transport) {
    make_mesh_core(transport, transport->process() == 3 ? MeshShape{4, 1} : MeshShape{2, 2},
                   {"data", "model"});
  });
  CHECK(has(text, "data=2 x model=2"));
  CHECK(has(text, "data=4 x model=1"));
}

TEST_CASE("agree: silent when all agree, both calls named on every process when not") {
  std::atomic<int> told{0};
  std::mutex mutex;
  std::string sample;
  run_loopback(6, [&](std::shared_ptr<Transport> transport) {
    auto mesh = make_mesh_core(transport, MeshShape{2, 3}, {"data", "model"},
                               {.check = Check::communicating});
    for (std::uint64_t step = 0; step < 10; ++step) mesh->agree(step, "the same", Where::here());
    const bool odd = mesh->process() == 4;
    const std::string text = text_of<MismatchError>([&] {
      if (odd)
        mesh->agree(
            7, [] { return std::string("reduce of 3x4"); }, Where{"user.cpp", 40});
      else
        mesh->agree(8, "einsum \"ik,kj->ij\" of 2x2", Where{"user.cpp", 30});
    });
    const bool good =
        text.find("reduce of 3x4") != std::string::npos &&
        text.find("einsum \"ik,kj->ij\" of 2x2") != std::string::npos &&
        text.find("user.cpp:40") != std::string::npos &&
        text.find("user.cpp:30") != std::string::npos &&
        text.find(odd ? "but process 0 calls" : "but process 4 calls") != std::string::npos;
    if (good) ++told;
    const std::lock_guard lock(mutex);
    if (!good) sample = text;
    if (!has(text_of<UsageError>([&] { mesh->agree(1, "x", {}); }),
             "cannot be used: a call on it failed"))
      ++told;
  });
  CHECK_MESSAGE(told == 6, sample);
}

TEST_CASE("agree says nothing below level communicating, and something from it on") {
  for (const Check level :
       {Check::none, Check::light, Check::normal, Check::communicating, Check::heavy}) {
    std::atomic<int> told{0}, usable{0};
    run_loopback(2, [&](std::shared_ptr<Transport> transport) {
      auto mesh = make_mesh_core(transport, MeshShape{2}, {"data"}, {.check = level});
      const std::uint64_t own = static_cast<std::uint64_t>(mesh->process());
      const std::string text =
          text_of<MismatchError>([&] { mesh->agree(own, "different", Where::here()); });
      if (text != "nothing was thrown") return void(++told);
      std::int64_t x = 3 + mesh->process();
      mesh->collective(sum_over(*mesh, AxisSet{0}, 1), &x, &x, "sum", Where::here());
      if (x == 7) ++usable;
    });
    const bool compares = level == Check::communicating || level == Check::heavy;
    CAPTURE(static_cast<int>(level));
    CHECK(told == (compares ? 2 : 0));
    CHECK(usable == (compares ? 0 : 2));
  }
}

TEST_CASE("level heavy compares counts before it communicates") {
  const std::string text = thrown<MismatchError>(3, [&](std::shared_ptr<Transport> transport) {
    auto mesh = make_mesh_core(transport, MeshShape{3}, {"data"}, {.check = Check::heavy});
    for (const Collective kind : cases::kinds)
      for (const cases::Shape shape : cases::shapes) {
        auto c = cases::make_case<float>(kind, shape, Reduction::sum, mesh->process(), 3, 1);
        c.call.group = AxisSet{0};
        mesh->collective(c.call, c.send.data(), c.receive.data(), "right", Where::here());
        if (c.receive != c.expected) throw std::runtime_error("wrong result");
      }
    auto c = cases::make_case<float>(Collective::all_to_all, cases::Shape::ragged, Reduction::none,
                                     mesh->process(), 3, 1);
    c.call.group = AxisSet{0};
    if (mesh->process() == 1) c.call.send[2].count = 1;
    mesh->collective(c.call, c.send.data(), c.receive.data(), "einsum", Where::here());
  });
  CHECK(has(text, "einsum: all-to-all of float over 3 processes"));
}

TEST_CASE("processes that never come are listed by operator and place") {
  const std::string text = thrown<CommunicationError>(
      2,
      [&](std::shared_ptr<Transport> transport) {
        auto mesh = make_mesh_core(transport, MeshShape{2}, {"model"});
        std::int64_t x = 1;
        const Call call = sum_over(*mesh, AxisSet{0}, 1);
        mesh->collective(call, &x, &x, "first", Where{"a.cpp", 1});
        if (mesh->process() == 1) {
          std::this_thread::sleep_for(std::chrono::milliseconds(800));
          return;
        }
        mesh->collective(call, &x, &x, "second", Where{"a.cpp", 2});
      },
      0.3);
  CHECK(has(text, "process 0: waits in all-reduce over model for second (at a.cpp:2)"));
  CHECK(has(text, "process 1: left all-reduce over model for first (at a.cpp:1)"));
}

TEST_CASE("a closed or poisoned mesh refuses use and says why; attachments end with it") {
  run_loopback(1, [&](std::shared_ptr<Transport> transport) {
    auto mesh = make_mesh_core(transport, MeshShape{1}, {"data"});
    mesh->attachment<Counter>().value = 3;
    CHECK(mesh->attachment<Counter>().value == 3);
    CHECK(mesh->attachment<std::vector<int>>().empty());
    detail::Block block = mesh->arena().allocate(100);
    CHECK(block.data != nullptr);
    mesh->close();
    mesh->close();
    CHECK(has(text_of<UsageError>([&] { mesh->group(AxisSet{0}); }),
              "the mesh data=1 cannot be used: it is closed"));
    CHECK_THROWS_AS(mesh->transport(), UsageError);
    CHECK_THROWS_AS(mesh->arena().allocate(1), MemoryError);
    mesh->arena().release(block);

    auto other = make_mesh_core(transport, MeshShape{1}, {"data"});
    other->poison("the disk is full");
    other->poison("later");
    CHECK(has(text_of<UsageError>([&] { other->require_usable({}); }), "the disk is full"));
  });
}

TEST_CASE("a dry mesh keeps the ledger of a real one and holds no memory") {
  auto mesh = make_mesh_core(dry_transport(4096, 65), MeshShape{64, 64}, {"data", "model"});
  CHECK(mesh->dry());
  CHECK(mesh->coordinates() == Coordinates{1, 1});
  detail::Block block = mesh->arena().allocate(Index{1} << 45);
  CHECK(block.data == nullptr);
  mesh->collective(sum_over(*mesh, AxisSet{1}, 128), nullptr, nullptr, "sum", Where::here());
  CHECK(mesh->ledger().payload_bytes(AxisSet{1}) == 2 * (128 - 2) * 8);
  mesh->agree(1, "nothing", Where::here());
  mesh->arena().release(block);
}

TEST_CASE("a plan of another process is refused") {
  run_loopback(2, [&](std::shared_ptr<Transport> transport) {
    auto mesh = make_mesh_core(transport, MeshShape{2}, {"data"});
    Call call = sum_over(*mesh, AxisSet{0}, 1);
    call.own = 1 - call.own;
    std::int64_t x = 0;
    CHECK_THROWS_AS(mesh->collective(call, &x, &x, "sum", Where::here()), UsageError);
  });
}

TEST_CASE("many meshes in one run, and 20000 small collectives, each with its own numbers") {
  std::atomic<int> bad{0};
  run_loopback(4, [&](std::shared_ptr<Transport> transport) {
    const std::int64_t own = transport->process();
    for (int i = 0; i < 300; ++i) {
      const bool square = i % 2 == 0;
      auto mesh = make_mesh_core(transport, square ? MeshShape{2, 2} : MeshShape{4}, {"a", "b"});
      std::int64_t x = 10 * i + own;
      mesh->collective(sum_over(*mesh, AxisSet{0}, 1), &x, &x, "sum", Where::here());
      // Along the first axis of 2 x 2 process p meets p + 2 or p - 2.
      if (x != (square ? 20 * i + 2 * (own % 2) + 2 : 40 * i + 6)) ++bad;
    }
    auto mesh = make_mesh_core(transport, MeshShape{4}, {"a"});
    const Call call = sum_over(*mesh, AxisSet{0}, 4);
    for (std::int64_t i = 0; i < 20000; ++i) {
      std::int64_t x[4] = {i, own, i * own, 1};
      mesh->collective(call, x, x, "small", Where::here());
      if (x[0] != 4 * i || x[1] != 6 || x[2] != 6 * i || x[3] != 4) ++bad;
    }
    if (mesh->ledger().count(all_reduce) != 20000) ++bad;
  });
  CHECK(bad == 0);
}
