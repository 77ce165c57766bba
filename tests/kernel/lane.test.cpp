// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_elements
// Lanes: kernels run on the instance that is named, a lane is one for all equal instances, and what
// kernels share between them waits for nobody. Runs on the host's space and on
// support/late_space.hpp.
#include <doctest/doctest.h>

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <thread>
#include <vector>

#include <tessera/kernel/copy/copy.hpp>
#include <tessera/kernel/fence.hpp>
#include <tessera/kernel/fill.hpp>
#include <tessera/kernel/reduce.hpp>
#include <tessera/kernel/sort/sort.hpp>
#include <tessera/kernel/use_element.hpp>

#include "kernel/buffer.hpp"
#include "support/instances.hpp"

using namespace tessera;

namespace {
[[maybe_unused]] const bool elements = (use_element<float>(), true);

/// An instance other than the default one.
KernelSpace another() { return support::instance(0, 0); }

/// The instances on which a tool sees kernels begin, and how often it sees fences.
std::vector<std::uint32_t> seen;
int fences = 0;
void kernel_begins(const char*, std::uint32_t device, std::uint64_t*) { seen.push_back(device); }
void fence_begins(const char* name, std::uint32_t, std::uint64_t*) {
  if (std::string_view(name) == "tessera::fence") ++fences;  // Kokkos fences for tools, too
}
struct Tool {
  Tool() {
    seen.clear();
    fences = 0;
    Kokkos::Tools::Experimental::set_begin_parallel_for_callback(kernel_begins);
    Kokkos::Tools::Experimental::set_begin_fence_callback(fence_begins);
  }
  Tool(const Tool&) = delete;
  Tool& operator=(const Tool&) = delete;
  ~Tool() {
    Kokkos::Tools::Experimental::set_begin_parallel_for_callback(nullptr);
    Kokkos::Tools::Experimental::set_begin_fence_callback(nullptr);
  }
};
/// The number by which a tool knows an instance.
std::uint32_t number_of(const KernelSpace& space) {
  return Kokkos::Tools::Experimental::device_id(space);
}
std::uint32_t number_of(const detail::Lane& lane) { return number_of(lane.space()); }

const Extents line{Index{1} << 17};
}  // namespace

TEST_CASE("a lane is one for all equal instances, and a thread's own choice") {
  const KernelSpace space = another();
  CHECK(&detail::lane_of(space) == &detail::lane_of(KernelSpace(space)));
  CHECK(&detail::lane_of(KernelSpace()) == &detail::lane());
  CHECK(detail::lane().number() == 0);
  {
    const detail::OnLane there(detail::lane_of(space));
    CHECK(&detail::lane() == &detail::lane_of(space));
    CHECK(detail::lane().number() > 0);
    {
      const detail::OnLane back(detail::lane_of(KernelSpace()));
      CHECK(detail::lane().number() == 0);
    }
    CHECK(&detail::lane() == &detail::lane_of(space));
    std::thread([] { CHECK(detail::lane().number() == 0); }).join();
  }
  CHECK(detail::lane().number() == 0);
}

TEST_CASE("what a lane owns is made once, and another lane's is another") {
  struct Handle {
    const detail::Lane& of;
    explicit Handle(const detail::Lane& lane) : of(lane) {}
  };
  detail::Lane& mine = detail::lane_of(another());
  CHECK(&mine.own<Handle>() == &mine.own<Handle>());
  CHECK(&mine.own<Handle>().of == &mine);
  CHECK(&detail::lane().own<Handle>() != &mine.own<Handle>());
}

namespace {
struct CountThreads {
  std::atomic<int>* most;
  void run(Index, Index) const {
    int before = *most;
    while (before < omp_get_num_threads() &&
           !most->compare_exchange_weak(before, omp_get_num_threads())) {
    }
  }
};
}  // namespace

TEST_CASE("kernels run on the lane's threads") {
  if constexpr (kernels_on_host) {
    std::atomic<int> most{0};
    const detail::OnLane there(detail::lane_of(another()));
    CHECK(detail::lane().threads() == support::instance_threads);
    detail::launch("test", 100, 1, CountThreads{&most});
    CHECK(most == support::instance_threads);
  }
}

TEST_CASE("a tool sees every kernel on the instance given") {
  const KernelSpace space = another();
  test::Random random(3);
  const test::Buffer<float> x(test::small_numbers<float>(random, line[0]));
  const test::Buffer<float> y(std::vector<float>(static_cast<std::size_t>(line[0])));
  const detail::LocalSort first{.outer = 1, .n = line[0], .limit = 4};
  const test::Buffer<std::int64_t> words(std::vector<std::int64_t>(
      static_cast<std::size_t>(first.scratch_bytes(sizeof(float), false) / 8)));
  const auto run_all = [&] {
    detail::StridedCopy some[20];
    for (int i = 0; i < 20; ++i) some[i] = {{Index{1} << 12}, i << 12, {1}, i << 12, {1}};
    detail::copy(DType::f32, x.data(), y.data(), some, 20);
    detail::fill_zeros(y.data(), 4);
    detail::reduce(DType::f32, Reduction::sum, {{}, {}, line, {1}}, x.data(), y.data());
    detail::sort(DType::f32, first, x.data(), y.data(), words.data());
  };
  const std::vector<float> given = x.values();
  for (detail::Lane* there : {&detail::lane(), &detail::lane_of(space)}) {
    run_all();  // makes what is kept
    detail::fence();
    const detail::OnLane on(*there);
    {
      const Tool tool;
      run_all();
      // On the host a kernel is one of Kokkos's where the lane has several threads for it.
      const bool launched = !kernels_on_host || there->threads() > 1;
      CHECK((seen.size() > (kernels_on_host ? 0 : 20)) == launched);
      for (const std::uint32_t one : seen) CHECK(one == number_of(*there));
      detail::fence();  // x and y go
    }
    // The last kernel has written the least four elements.
    std::vector<float> least = given, made = y.values();
    std::sort(least.begin(), least.end());
    least.resize(4), made.resize(4);
    CHECK(made == least);
    // What it wrote over was the sum, over zeros, over a copy.
    detail::StridedCopy whole{{line[0]}, 0, {1}, 0, {1}};
    detail::copy(DType::f32, x.data(), y.data(), &whole, 1);
    CHECK(y.values() == given);
    detail::reduce(DType::f32, Reduction::sum, {{}, {}, line, {1}}, x.data(), y.data());
    CHECK(y.values()[0] == std::accumulate(given.begin(), given.end(), 0.0f));
  }
}

namespace {
/// The sums of ones, each through memory that two kernels share.
template <class Space> void share_memory(const Space& space) {
  const detail::OnLane there(detail::lane_of(space));
  const Index n = line[0];
  const test::Buffer<float> ones(std::vector<float>(static_cast<std::size_t>(n), 1));
  const test::Buffer<float> sums(std::vector<float>(8));
  const detail::LocalReduce all{{}, {}, line, {1}};
  detail::reduce(DType::f32, Reduction::sum, all, ones.data(), sums.data());
  detail::fence();
  const Tool tool;
  for (int i = 0; i < 8; ++i)
    detail::reduce(DType::f32, Reduction::sum, all, ones.data(), sums.data() + i, i + 1);
  if constexpr (!kernels_on_host) {
    CHECK(fences == 0);
    CHECK(space.waiting() >= 16);
  }
  const std::vector<float> made = sums.values();
  for (int i = 0; i < 8; ++i)
    CHECK(made[static_cast<std::size_t>(i)] == static_cast<float>(n * (i + 1)));
}
}  // namespace

TEST_CASE("kernels that share memory between them do not wait, and find what they wrote") {
  share_memory(another());
}
