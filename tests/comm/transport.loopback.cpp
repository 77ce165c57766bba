// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: transport
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <tessera/comm/detail/standstill.hpp>
#include <tessera/comm/loopback/loopback.hpp>

#include "comm/collective_cases.hpp"

using namespace tessera;

namespace {

/// Runs f on `processes` and returns the text of what run_loopback throws.
template <class E, class F> std::string thrown(int processes, F f, double limit = 20) {
  try {
    run_loopback(processes, f, {limit});
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

Call all_reduce_of(const detail::Group& group, Index count) {
  Call call = detail::control_all_reduce(group, Reduction::sum, count);
  return call;
}

}  // namespace

TEST_CASE("every call in every shape and type gives what plain loops give, small and shared out") {
  for (int processes = 1; processes <= 8; ++processes) {
    std::mutex mutex;
    std::string first;
    run_loopback(processes, [&](std::shared_ptr<Transport> transport) {
      auto group = transport->group(detail::all_members(processes), 1);
      for (const Index scale : {1, 5000}) {
        const std::string text =
            cases::all_types_wrong(*group, processes > 4 ? min_of(scale, 2000) : scale);
        const std::lock_guard lock(mutex);
        if (first.empty()) first = text;
      }
    });
    CHECK_MESSAGE(first.empty(), first);
  }
}

TEST_CASE("NaN, infinities, zeros of both signs and ends of ranges are reduced alike everywhere") {
  for (const int processes : {1, 2, 3, 4, 6}) {
    std::mutex mutex;
    std::string first;
    run_loopback(processes, [&](std::shared_ptr<Transport> transport) {
      auto group = transport->group(detail::all_members(processes), 1);
      const std::string text = cases::all_special_wrong(*group);
      const std::lock_guard lock(mutex);
      if (first.empty()) first = text;
    });
    CHECK_MESSAGE(first.empty(), first);
  }
}

TEST_CASE("groups of some processes, in any order, and duplicates do not meet") {
  std::atomic<int> bad{0};
  run_loopback(6, [&](std::shared_ptr<Transport> transport) {
    const int rank = transport->process();
    const bool odd = rank % 2 != 0;
    auto mine = transport->group(odd ? std::vector{5, 1, 3} : std::vector{0, 2, 4}, odd ? 1 : 0);
    CHECK(mine->size() == 3);
    auto other = transport->duplicate();
    auto all = other->group(detail::all_members(6), 1);
    if (!cases::all_types_wrong(*mine).empty()) ++bad;
    if (!cases::all_types_wrong(*all).empty()) ++bad;
    transport->barrier();
    other->barrier();
  });
  CHECK(bad == 0);
}

TEST_CASE("reductions add in the order of the members: the same bits every time") {
  std::vector<float> results;
  for (int repeat = 0; repeat < 5; ++repeat)
    run_loopback(7, [&](std::shared_ptr<Transport> transport) {
      auto group = transport->group(detail::all_members(7), 1);
      Call call = all_reduce_of(*group, 1);
      call.type = DType::f32;
      float x = 1.0f / static_cast<float>(3 + transport->process());
      group->run(call, &x, &x);
      if (transport->process() == 0) results.push_back(x);
    });
  float expected = 1.0f / 3;
  for (int i = 1; i < 7; ++i) expected += 1.0f / static_cast<float>(3 + i);
  for (const float x : results) CHECK(x == expected);
}

TEST_CASE("a process that throws ends the others' waits, and its exception comes out") {
  std::atomic<int> told{0};
  const std::string text = thrown<std::out_of_range>(4, [&](std::shared_ptr<Transport> transport) {
    auto group = transport->group(detail::all_members(4), 1);
    if (transport->process() == 2) throw std::out_of_range("planted");
    std::int64_t x = 1;
    try {
      group->run(all_reduce_of(*group, 1), &x, &x);
    } catch (const CommunicationError& error) {
      if (std::string(error.what()).find("process 2 failed") != std::string::npos) ++told;
      throw;
    }
  });
  CHECK(text == "planted");
  CHECK(told == 3);
}

TEST_CASE("a process that returns early is named") {
  const std::string text = thrown<CommunicationError>(3, [](std::shared_ptr<Transport> transport) {
    auto group = transport->group(detail::all_members(3), 1);
    std::int64_t x = 1;
    group->run(all_reduce_of(*group, 1), &x, &x);
    if (transport->process() == 1) return;
    group->run(all_reduce_of(*group, 1), &x, &x);
  });
  CHECK(has(text, "process 1 has ended"));
  CHECK(has(text, "all-reduce (sum) of int64 over 3 processes, sends 1, receives 1"));
}

TEST_CASE("a process that never comes: all end within the limit, with what each did last") {
  const auto start = std::chrono::steady_clock::now();
  const std::string text = thrown<CommunicationError>(
      3,
      [](std::shared_ptr<Transport> transport) {
        auto group = transport->group(detail::all_members(3), 1);
        if (transport->process() == 1) {
          std::this_thread::sleep_for(std::chrono::milliseconds(900));
          return;
        }
        transport->blackboard()->enter(
            transport->process(),
            {"einsum \"ik,kj->ij\"", Where{"x/planted.cpp", 12}, "all-reduce", "model"});
        std::int64_t x = 1;
        group->run(all_reduce_of(*group, 1), &x, &x);
      },
      0.3);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
  CHECK(has(text, "waited longer than the limit of 0.3 s"));
  CHECK(has(text,
            "process 0: waits in all-reduce over model for einsum \"ik,kj->ij\" (at "
            "planted.cpp:12), call 1"));
  CHECK(has(text, "process 1: has made no call yet"));
  CHECK(has(text, "TESSERA_TIME_LIMIT"));
}

TEST_CASE("calls that do not fit together are named, both of them") {
  const auto run = [](auto change) {
    return thrown<MismatchError>(4, [&](std::shared_ptr<Transport> transport) {
      auto group = transport->group(detail::all_members(4), 1);
      auto c = cases::make_case<double>(Collective::all_gather, cases::Shape::ragged,
                                        Reduction::none, group->own(), 4, 1);
      c.receive.resize(100);
      c.send.resize(100);
      if (group->own() == 2) change(c.call);
      group->run(c.call, c.send.data(), c.receive.data());
    });
  };
  std::string text = run([](Call& call) { call.kind = Collective::all_to_all; });
  CHECK(has(text, "process 0 calls all-gather of double"));
  CHECK(has(text, "process 2 calls all-to-all of double"));
  text = run([](Call& call) { call.type = DType::f32; });
  CHECK(has(text, "process 2 calls all-gather of float"));
  text = run([](Call& call) { call.send.front().count += 1; });
  CHECK(has(text, "the first has 6 elements for the second, which expects 5"));
  text = run([](Call& call) { call.receive[3].count -= 1; });
  CHECK(has(text, "process 3 calls"));
  CHECK(has(text, "process 2 calls"));

  text = thrown<MismatchError>(2, [](std::shared_ptr<Transport> transport) {
    auto group = transport->group(detail::all_members(2), 1);
    std::int64_t x[2] = {};
    Call call = all_reduce_of(*group, 1 + group->own());
    group->run(call, x, x);
  });
  CHECK(has(text, "the first has 1 elements for the second, which expects 2"));
  text = thrown<MismatchError>(2, [](std::shared_ptr<Transport> transport) {
    auto group = transport->group(detail::all_members(2), 1);
    std::int64_t x[2] = {};
    Call call;
    call.kind = Collective::exchange;
    call.type = DType::i64;
    call.members = 2;
    call.own = group->own();
    if (group->own() == 0) call.send = {{1, 0, 1}};
    group->run(call, x, x);
  });
  CHECK(has(text, "the first has 1 elements for the second, which expects 0"));
}

TEST_CASE("the number of processes is 1 to 64") {
  CHECK_THROWS_AS(run_loopback(0, [](std::shared_ptr<Transport>) {}), UsageError);
  CHECK_THROWS_AS(run_loopback(65, [](std::shared_ptr<Transport>) {}), UsageError);
  std::atomic<int> count{0};
  run_loopback(64, [&](std::shared_ptr<Transport> transport) {
    auto group = transport->group(detail::all_members(64), 1);
    std::int64_t x = 1;
    group->run(all_reduce_of(*group, 1), &x, &x);
    if (x == 64) ++count;
  });
  CHECK(count == 64);
}

TEST_CASE("who waits is judged only by what others have begun, or by their end") {
  const auto bytes =
      static_cast<std::size_t>(detail::Blackboard::bytes_for(2)) + sizeof(detail::Trail) * 2;
  const std::unique_ptr<void, decltype(&std::free)> memory(
      std::aligned_alloc(64, (bytes + 63) / 64 * 64), &std::free);
  std::memset(memory.get(), 0, bytes);
  detail::Blackboard board(memory.get(), {0, 1});
  const auto waits = [&](int process, std::uint64_t mesh, std::uint64_t ordinal) {
    board.enter(process, {"work", Where::here(), "all-gather", "all", {mesh, ordinal, {3, 0}}});
  };
  const auto later = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    return detail::standstill(board, 0);
  };
  const auto begins = [&](int process, std::uint64_t mesh, std::uint64_t ordinal) {
    board.trail(process).write({mesh, ordinal, 1, 1, 0}, [] { return "sum"; });
    waits(process, mesh, ordinal);
  };
  waits(0, 77, 0);
  waits(1, 77, 0);
  CHECK(later() == "");  // a slow call before the mesh's first operator
  begins(0, 77, 1);
  begins(1, 78, 1);
  CHECK(has(later(), "process 1 stands in another call than process 0"));
  begins(1, 77, 1);
  CHECK(later() == "");
  // As many operators of another mesh as records have room for, after the one that 0 waits in.
  for (std::uint64_t k = 2; k < 2 + 2 * detail::Trail::length; ++k) begins(1, 78, k);
  CHECK(later() == "");
  begins(0, 77, 2);
  CHECK(has(later(), "process 1 stands in another call than process 0"));
  // Of so many meshes since, nobody knows how far it is in this one.
  for (std::uint64_t k = 0; k < detail::Trail::meshes; ++k) begins(1, 100 + k, 1);
  CHECK(later() == "");
  begins(0, 500, 1);  // a newer mesh, in which it has called nothing
  CHECK(has(later(), "process 1 stands in another call than process 0"));
  waits(0, 79, 0);
  waits(1, 79, 0);
  CHECK(later() == "");
  board.leave(1);  // and computes
  CHECK(detail::standstill(board, 0) == "");
  board.end(1);
  CHECK(has(detail::standstill(board, 0), "process 1 has ended, but process 0 waits for it"));
}
