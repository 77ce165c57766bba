// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: transport
// Shared teams without MPI: each member is a thread, and what they share is ordinary memory.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <tessera/comm/shared/team.hpp>
#include <tessera/comm/transport.hpp>

#include "comm/collective_cases.hpp"

using namespace tessera;

namespace {

/// The memory that `size` members share.
struct Memory {
  std::vector<detail::SharedMember> members;
  std::vector<std::unique_ptr<detail::SharedFlags>> flags;
  std::vector<std::unique_ptr<std::byte[]>> stages;
  std::vector<std::unique_ptr<std::byte[]>> arenas;

  Memory(int size, Index half, Index arena) {
    for (int i = 0; i < size; ++i) {
      flags.push_back(std::make_unique<detail::SharedFlags>());
      stages.push_back(std::make_unique<std::byte[]>(static_cast<std::size_t>(2 * half)));
      arenas.push_back(std::make_unique<std::byte[]>(static_cast<std::size_t>(arena)));
      members.push_back({flags.back().get(), stages.back().get(), arenas.back().get()});
    }
  }
};

/// A group whose calls go through a team. In some calls the data of some members are moved into the
/// arena first, in some those of all.
class TeamGroup final : public detail::Group {
 public:
  TeamGroup(const Memory& memory, int own, Index half, Index arena_bytes)
      : own_(own),
        size_(static_cast<int>(memory.members.size())),
        arena_(memory.arenas[static_cast<std::size_t>(own)].get()),
        arena_bytes_(arena_bytes),
        team_(memory.members, own, half, arena_, arena_bytes) {}
  int own() const override { return own_; }
  int size() const override { return size_; }
  /// Returns how many calls were made in one step.
  int together() const { return together_; }
  void run(const Call& call, const void* send, void* receive) override {
    const auto wait = [](auto come) {
      while (!come()) std::this_thread::yield();
    };
    const bool reduces = call.reduction != Reduction::none;
    const auto make = [&](const void* from) {
      if (!reduces && team_.take(call, from, receive, wait)) {
        ++together_;
        return;
      }
      const bool in_steps = reduces || call.kind == Collective::all_gather ||
                            (call.kind == Collective::all_to_all && call.even);
      if (!in_steps) throw UsageError("a case that fits neither staging memory nor arena");
      team_.run(call, from, receive, wait);
    };
    Index bytes = 0;
    for (const Piece& piece : call.send)
      bytes = max_of(bytes, static_cast<Index>(size_of(call.type)) * (piece.offset + piece.count));
    // What is not made in steps must lie in the arena of all where it is large.
    const bool moved = ++calls_ % 3 == 0 || (calls_ + own_) % 2 == 0 || !call.even;
    if (!call.in_place && moved && bytes <= arena_bytes_) {
      if (bytes > 0) std::memcpy(arena_, send, static_cast<std::size_t>(bytes));
      make(arena_);
      std::memset(arena_, 0x55, static_cast<std::size_t>(arena_bytes_));  // nobody reads it now
    } else {
      make(send);
    }
  }

 private:
  int own_;
  int size_;
  std::byte* arena_;
  Index arena_bytes_;
  detail::SharedTeam team_;
  int calls_ = 0;
  int together_ = 0;
};

template <class F> void on_members(int size, F f) {
  std::vector<std::thread> threads;
  for (int own = 0; own < size; ++own) threads.emplace_back([&, own] { f(own); });
  for (std::thread& thread : threads) thread.join();
}

template <class T> std::string all_wrong(detail::Group& group, Index scale) {
  for (const Collective kind : cases::kinds)
    for (const cases::Shape shape : cases::shapes)
      for (const Reduction reduction : {Reduction::sum, Reduction::max, Reduction::min})
        for (const bool in_place : {false, true}) {
          const bool reduces = kind == reduce_scatter || kind == all_reduce;
          if ((!reduces && reduction != Reduction::sum) || (in_place && kind != all_reduce))
            continue;
          auto c = cases::make_case<T>(kind, shape, reduction, group.own(), group.size(), scale,
                                       in_place);
          if (std::string text = cases::wrong(group, c); !text.empty()) return text;
        }
  return {};
}

}  // namespace

TEST_CASE("shared teams reduce NaN, infinities, zeros and ends of ranges as plain rules do") {
  constexpr Index arena = 1 << 16;
  for (const int size : {1, 2, 3, 4, 6})
    for (const Index half : {Index{512}, Index{4096}}) {
      const Memory memory(size, half, arena);
      std::mutex mutex;
      std::string first;
      on_members(size, [&](int own) {
        TeamGroup group(memory, own, half, arena);
        const std::string text = cases::all_special_wrong(group);
        const std::lock_guard lock(mutex);
        if (first.empty()) first = text;
      });
      CHECK_MESSAGE(first.empty(), first);
    }
}

TEST_CASE("a shared team gives what plain loops give: one step and many, staged and in place") {
  constexpr Index arena = 1 << 16;
  for (const int size : {1, 2, 3, 4, 6, 8})
    for (const Index half : {Index{512}, Index{4096}})
      for (const Index scale : {1, 40, 43}) {
        const Memory memory(size, half, arena);
        std::mutex mutex;
        std::string first;
        std::vector<int> together;
        on_members(size, [&](int own) {
          TeamGroup group(memory, own, half, arena);
          std::string text;
          for (int round = 0; round < 2 && text.empty(); ++round) {
            text = all_wrong<float>(group, scale);
            if (text.empty()) text = all_wrong<double>(group, scale);
            if (text.empty()) text = all_wrong<std::int32_t>(group, scale);
            if (text.empty()) text = all_wrong<std::int64_t>(group, scale);
          }
          const std::lock_guard lock(mutex);
          if (first.empty()) first = text;
          together.push_back(group.together());
        });
        CHECK_MESSAGE(first.empty(), first);
        for (const int count : together) {
          CHECK(count == together.front());
          CHECK(count > 0);
        }
      }
}

TEST_CASE("floating sums go in the order of the members, to the last bit") {
  constexpr Index n = 5003;
  constexpr Index half = 4096;
  for (const int size : {2, 3, 5}) {
    const auto element = [](int member, Index i) {
      return static_cast<float>(std::sin(0.37 * static_cast<double>(i) + 1.7 * member) *
                                std::exp(0.9 * member));
    };
    std::vector<float> expected;
    for (Index i = 0; i < n; ++i) {
      float sum = element(0, i);
      for (int member = 1; member < size; ++member) sum += element(member, i);
      expected.push_back(sum);
    }
    const Memory memory(size, half, 64);
    std::vector<int> same(static_cast<std::size_t>(size));
    on_members(size, [&](int own) {
      TeamGroup group(memory, own, half, 0);
      std::vector<float> x;
      for (Index i = 0; i < n; ++i) x.push_back(element(own, i));
      Call call = detail::control_all_reduce(group, Reduction::sum, n);
      call.type = DType::f32;
      group.run(call, x.data(), x.data());
      same[static_cast<std::size_t>(own)] =
          std::memcmp(x.data(), expected.data(), x.size() * sizeof(float)) == 0;
    });
    for (const int yes : same) CHECK(yes == 1);
  }
}

TEST_CASE("what decides about shared memory is known to all members") {
  for (const cases::Shape shape : cases::shapes)
    for (const Collective kind : cases::kinds) {
      Index first = 0;
      for (int own = 0; own < 4; ++own) {
        const auto c = cases::make_case<double>(kind, shape, Reduction::sum, own, 4, 5);
        const Index weight = detail::window_weight(c.call);
        if (own == 0) first = weight;
        CHECK(weight == first);
        if (kind == Collective::collective_permute || kind == Collective::exchange)
          CHECK(weight == c.call.bound * 8);
      }
    }
  CHECK(detail::may_share(Shared::on, false));
  CHECK_FALSE(detail::may_share(Shared::off, true));
  CHECK(detail::may_share(Shared::automatic, true));
  CHECK_FALSE(detail::may_share(Shared::automatic, false));
}

TEST_CASE("TESSERA_SHARED is read strictly") {
  setenv("TESSERA_SHARED", "off", 1);
  CHECK(detail::settings_from_environment().shared == Shared::off);
  setenv("TESSERA_SHARED", "open", 1);
  CHECK_THROWS_AS(detail::settings_from_environment(), UsageError);
  unsetenv("TESSERA_SHARED");
  CHECK(detail::settings_from_environment().shared == Shared::automatic);
  CHECK(name_of(Shared::automatic) == "auto");
}
