// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: halo
// Operators that are started and waited for later, on MPI: also spinning, where the plain calls
// block.
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <utility>

#include "op/async_cases.hpp"
#include "support/world.hpp"

TEST_CASE(
    "what is started gives what the plain operator gives, under every wait and with shared "
    "memory") {
  const int n = support::world()->size();
  for (const Wait wait : {Wait::automatic, Wait::spin}) {
    if (wait == Wait::spin && n > 3) continue;  // spinning on fewer cores than processes takes long
    for (const Shared shared : {Shared::off, Shared::on}) {
      TransportSettings settings = support::world()->settings();
      settings.wait = wait;
      settings.shared = shared;
      settings.shared_least = 64;
      const std::shared_ptr<Transport> transport = support::world()->duplicate(settings);
      for (const MeshSizes<Grid> size :
           {sizes<Grid>(n, 1), sizes<Grid>(n % 2 == 0 ? n / 2 : 1, n % 2 == 0 ? 2 : n)}) {
        const auto mesh = make_mesh<Grid>(transport, size);
        CHECK(async_cases(mesh) == "");
      }
    }
  }
}

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // they take memory of their own
namespace {
template <class... D> using Single = ShardedTensor<float, Grid, P<D...>>;
/// Lets the process have little more memory than it has; at its end, as before.
class ScarceMemory {
 public:
  ScarceMemory() {
    ::getrlimit(RLIMIT_AS, &before_);
    Index pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit little = before_;
    little.rlim_cur = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE) + (6 << 20));
    ::setrlimit(RLIMIT_AS, &little);
  }
  ~ScarceMemory() { ::setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};
}  // namespace

TEST_CASE(
    "an exception while an exchange travels frees nothing that it writes, and ends the mesh") {
  // The result of the convolution is allocated while the borders travel; free memory is in pieces.
  if (support::world()->size() != 2 || !detail::default_memory_is_host) return;
  MeshOptions options;
  options.machine.hidden_percent = 100;
  options.machine.payload_ps_per_kib = 100'000'000;
  const auto mesh = make_mesh<Grid>(support::world(), sizes<Grid>(2, 1), options);
  const auto x = full<Single<_, data, _, _>>(mesh, {1, 16, 4096, 64}, 1);
  const auto k = full<Single<_, _, _, _>>(mesh, {3, 1, 64, 64}, 1);
  std::vector<Real<_>> held;
  const auto hold = [&] { held.push_back(full<Real<_>>(mesh, {1 << 19}, 3)); };
  for (int i = 0; i < 40; ++i) hold();
  std::optional<ScarceMemory> scarce(std::in_place);
  CHECK_THROWS_AS(
      [&] {
        for (;;) hold();
      }(),
      MemoryError);
  for (std::size_t i = 0; i < held.size(); i += 2) held[i] = {};
  const Index in_use = mesh.core()->arena().in_use();
  CHECK_THROWS_AS((void)convolve<nhwc>(x, k, {.low = {1, 0}, .high = {1, 0}}), MemoryError);
  scarce.reset();
  CHECK(mesh.core()->arena().in_use() > in_use);
  CHECK_THROWS_WITH_AS((void)sum(x),
                       doctest::Contains("an exception passed while an operator was under way"),
                       UsageError);
}
#endif
