// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <tessera/comm/arena.hpp>

using namespace tessera;

namespace {

/// Heap memory that counts, and can be made to run out.
class CountingMemory final : public detail::MemorySource {
 public:
  void* allocate(Index bytes) override {
    if (bytes > remaining) return nullptr;
    remaining -= bytes;
    ++allocations;
    return host_.allocate(bytes);
  }
  void release(void* memory, Index bytes) noexcept override {
    remaining += bytes;
    ++releases;
    host_.release(memory, bytes);
  }
  Index left() const override { return told; }
  Index remaining = max_int64;
  Index told = max_int64;  ///< what it says is left
  int allocations = 0;
  int releases = 0;

 private:
  detail::HostMemory host_;
};

}  // namespace

TEST_CASE("charges are whole units, and nothing for nothing") {
  static_assert(detail::arena_charge(0) == 0);
  static_assert(detail::arena_charge(1) == 256 && detail::arena_charge(256) == 256 &&
                detail::arena_charge(257) == 512);
  detail::Arena arena(std::make_shared<detail::HostMemory>());
  detail::Block empty = arena.allocate(0);
  CHECK(empty.data == nullptr);
  CHECK(arena.in_use() == 0);
  detail::Block a = arena.allocate(1000);
  detail::Block b = arena.allocate(1);
  CHECK(arena.in_use() == 1024 + 256);
  CHECK(reinterpret_cast<std::uintptr_t>(a.data) % 256 == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(b.data) % 256 == 0);
  arena.release(a);
  CHECK(a.data == nullptr);
  CHECK(arena.in_use() == 256);
  CHECK(arena.peak() == 1280);
  arena.reset_peak();
  CHECK(arena.peak() == 256);
  arena.release(a);  // an emptied block may be released again
  CHECK(arena.in_use() == 256);
  arena.release(b);
  arena.release(empty);
  CHECK(arena.in_use() == 0);
}

TEST_CASE(
    "random sequences: blocks are aligned, disjoint, keep their contents, and are counted as the "
    "model counts") {
  alignas(256) static std::byte window[64 * 1024];
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    INFO("seed " << seed);
    const bool with_window = seed % 2 == 0;
    detail::Arena arena(std::make_shared<detail::HostMemory>(), with_window ? window : nullptr,
                        with_window ? 64 * 1024 : 0);
    std::vector<std::pair<detail::Block, unsigned char>> out;
    Index model = 0;
    Index peak = 0;
    bool good = true;
    for (int step = 0; step < 2000; ++step) {
      if (out.empty() || random() % 100 < 55) {
        const Index bytes =
            static_cast<Index>(random() % 50 == 0 ? random() % 3'000'000 : random() % 5000);
        detail::Block block = arena.allocate(bytes);
        const auto mark = static_cast<unsigned char>(random());
        good &= (bytes == 0) == (block.data == nullptr) &&
                reinterpret_cast<std::uintptr_t>(block.data) % 256 == 0 && block.bytes == bytes;
        const auto* at = static_cast<std::byte*>(block.data);
        good &= bytes == 0 ||
                block.shared == (with_window && at >= window && at < window + sizeof window);
        if (bytes > 0) std::memset(block.data, mark, static_cast<std::size_t>(bytes));
        out.emplace_back(block, mark);
        model += detail::arena_charge(bytes);
      } else {
        std::swap(out[random() % out.size()], out.back());
        auto [block, mark] = out.back();
        out.pop_back();
        for (Index i = 0; i < block.bytes; i += 97)
          good &= static_cast<unsigned char*>(block.data)[i] == mark;
        if (block.bytes > 0)
          good &= static_cast<unsigned char*>(block.data)[block.bytes - 1] == mark;
        model -= detail::arena_charge(block.bytes);
        arena.release(block);
      }
      peak = max_of(peak, model);
      good &= arena.in_use() == model && arena.peak() == peak && arena.capacity() >= model;
      if (!good) break;
    }
    REQUIRE(good);
    for (auto& entry : out) arena.release(entry.first);
    CHECK(arena.in_use() == 0);
    if (const Index all = arena.capacity(); with_window) CHECK(all >= arena.shared_bytes());
  }
}

TEST_CASE("neighbours that are free join, so that what was given back fits again") {
  auto memory = std::make_shared<CountingMemory>();
  detail::Arena arena(memory);
  std::vector<detail::Block> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(arena.allocate(64 * 1024));
  CHECK(memory->allocations == 1);
  const Index capacity = arena.capacity();
  for (int i : {1, 3, 5, 7, 9, 11, 13, 15, 0, 2, 4, 6, 8, 10, 12, 14})
    arena.release(blocks[static_cast<std::size_t>(i)]);
  detail::Block whole = arena.allocate(capacity);
  CHECK(memory->allocations == 1);
  CHECK(arena.capacity() == capacity);
  arena.release(whole);
  arena.close();
  CHECK(memory->releases == 1);
}

TEST_CASE("a repeated pattern of requests allocates nothing anew") {
  auto memory = std::make_shared<CountingMemory>();
  detail::Arena arena(memory);
  int after_first = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<detail::Block> blocks;
    for (Index bytes : {300'000, 5, 70'000, 2'000'000, 4096, 1'000'000})
      blocks.push_back(arena.allocate(bytes));
    for (detail::Block& block : blocks) arena.release(block);
    if (round == 0) after_first = memory->allocations;
  }
  CHECK(memory->allocations == after_first);
}

TEST_CASE("a dry arena counts and holds nothing") {
  detail::Arena arena(nullptr);
  CHECK(arena.dry());
  detail::Block huge = arena.allocate(Index{1} << 50);
  CHECK(huge.data == nullptr);
  CHECK(arena.in_use() == Index{1} << 50);
  CHECK(arena.capacity() == 0);
  arena.release(huge);
  CHECK(arena.in_use() == 0);
  CHECK(arena.peak() == Index{1} << 50);
}

TEST_CASE("errors say what was asked for, what is in use and what is held") {
  auto memory = std::make_shared<CountingMemory>();
  memory->remaining = 3 << 20;
  detail::Arena arena(memory);
  detail::Block block = arena.allocate(1 << 20);
  const auto text = [&](auto f) {
    try {
      f();
    } catch (const MemoryError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  std::string message = text([&] { arena.allocate(5 << 20); });
  CHECK(message.find("5242880 bytes were asked for, 1048576 are in use of 1048576 held") !=
        std::string::npos);
  CHECK(arena.in_use() == 1 << 20);
  detail::Block small =
      arena.allocate((3 << 20) / 2);  // the generous chunk does not fit, the exact one does
  CHECK(small.data != nullptr);
  CHECK(text([&] { arena.allocate(-1); }).find("-1 bytes") != std::string::npos);

  detail::Arena limited(std::make_shared<detail::HostMemory>(), nullptr, 0, 1024);
  detail::Block a = limited.allocate(1024);
  CHECK(text([&] { limited.allocate(1); }).find("its limit is 1024") != std::string::npos);
  limited.release(a);
  a = limited.allocate(1000);
  limited.close();
  CHECK(text([&] { limited.allocate(1); }).find("closed") != std::string::npos);
  limited.release(a);  // harmless after close
  arena.release(block);
  arena.release(small);
}

TEST_CASE("what is not there is refused before anything is taken, each sharer's part at most") {
  const auto source = std::make_shared<CountingMemory>();
  source->told = Index{100} << 20;
  detail::Arena arena(source, nullptr, 0, max_int64, 4);
  arena.require(Index{25} << 20);
  CHECK_THROWS_AS(arena.require((Index{25} << 20) + 1), MemoryError);
  CHECK_THROWS_AS(arena.allocate(Index{26} << 20), MemoryError);
  CHECK(source->allocations == 0);
  detail::Block held = arena.allocate(Index{20} << 20);
  source->told = 0;
  arena.release(held);
  arena.require(Index{20} << 20);  // it is held already
  held = arena.allocate(Index{20} << 20);
  CHECK(source->allocations == 1);
  std::string text;
  try {
    arena.require(Index{3} << 20);
  } catch (const MemoryError& error) {
    text = error.what();
  }
  CHECK(text.find("3145728 bytes would be needed, 20971520 are in use of ") != std::string::npos);
  CHECK(text.find(", and 0 are left on this machine for 4 processes; ") != std::string::npos);
  arena.release(held);

  detail::Arena trusting(source, nullptr, 0, Index{1} << 30, 4);  // a limit is taken at its word
  detail::Block block = trusting.allocate(Index{26} << 20);
  CHECK_THROWS_AS(trusting.require(Index{1} << 30), MemoryError);
  trusting.release(block);
}

TEST_CASE("a range that a lane may still use is for that lane alone, until all are settled") {
  detail::FreeRanges free;
  free.give(0, 4096);
  CHECK(free.take(1024, 1) == 0);
  CHECK(free.take(1024, 2) == 1024);
  free.give(0, 1024, 1);
  free.give(1024, 1024, 2);
  CHECK(free.ranges().size() == 3);  // neighbours of different lanes stay apart
  CHECK(free.lanes() == 3);
  CHECK(free.take(2048, 0) == 2048);
  CHECK(free.take(512, 0) == -1);
  CHECK(free.take(512, 2) == 1024);
  free.give(1024, 512, 2);
  CHECK(free.take(2048, 3) == -1);
  free.settle();
  CHECK(free.lanes() == 0);
  CHECK(free.ranges().size() == 1);
  CHECK(free.take(2048) == 0);
}

TEST_CASE("the machine says what is left of its memory") {
  const Index left = detail::memory_left();
  CHECK(left > 0);
  CHECK(left < Index{1} << 50);
}
