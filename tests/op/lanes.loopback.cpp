// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: typed
// Operators on instances of the execution space: a tool sees their kernels there, and programs
// whose operators are on several instances compute what they compute on one. In the program
// test_late, kernels run only when they are waited for, so that an order that nobody ensures is a
// wrong one.
#include <doctest/doctest.h>

#include <omp.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/grid.hpp"
#include "support/instances.hpp"

using namespace tessera;

namespace {
template <class... D> using Real = ShardedTensor<double, Grid, P<D...>>;
using Split = Real<data, model>;

// A tool: processes are threads, so each has its own list of the instances of kernels.
thread_local std::vector<std::uint32_t> seen;
void kernel_begins(const char*, std::uint32_t device, std::uint64_t*) { seen.push_back(device); }
struct Tool {
  Tool() { Kokkos::Tools::Experimental::set_begin_parallel_for_callback(kernel_begins); }
  Tool(const Tool&) = delete;
  Tool& operator=(const Tool&) = delete;
  ~Tool() { Kokkos::Tools::Experimental::set_begin_parallel_for_callback(nullptr); }
};

struct AddOne {
  double* x;
  KOKKOS_FUNCTION void operator()(Index i) const { x[i] += 1; }
};

/// The number of threads of the kernel in which it is called.
struct Threads {
  double operator()(double) const { return omp_get_num_threads(); }
};

/// A program chosen by a seed, whose operators are on instances chosen by it, or all on the default
/// one. Returns all that it has made.
std::vector<double> some_program(const ProcessMesh<Grid>& mesh, unsigned seed, bool lanes) {
  std::mt19937 random(seed);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  constexpr Index n = 10;
  std::vector<Split> x;
  for (int i = 0; i < 4; ++i)
    x.push_back(random_uniform<Split>(mesh, {n, n}, static_cast<std::uint64_t>(i)));
  std::vector<double> made;
  const auto on = [&](int i) {
    return mesh.on(i == 0 || !lanes ? KernelSpace() : support::instance(mesh.process(), i));
  };
  for (int i = 0; i < 40; ++i) {
    const auto there = on(pick(3));
    const int later = pick(3), a = pick(4), b = pick(4), c = pick(4);
    Split& to = x[static_cast<std::size_t>(a)];
    const Split y = x[static_cast<std::size_t>(b)], z = x[static_cast<std::size_t>(c)];
    switch (pick(11)) {
      case 0:
        to = y + z;
        break;
      case 1:
        to = sin(einsum<"ij,jk->ik", P<data, model>>(y, z));
        break;
      case 2:
        to = reshard<P<data, model>>(reshard<P<_, model>>(y));
        break;
      case 3:
        if (to.core().storage() != y.core().storage()) reshard_into(to, y);
        break;
      case 4:
        to += y;
        break;
      case 5:
        to = einsum<"ij,i->ij", P<data, model>>(y, cos(sum<"ij->i", P<data>>(z)));
        break;
      case 6: {
        auto pending = async([&] { return reshard<P<_, model>>(y); });
        const Split meanwhile = cos(z);
        const auto elsewhere = on(later);
        to = reshard<P<data, model>>(pending.wait()) + meanwhile;
        break;
      }
      case 7: {  // the application's own kernel, on the same instance
        const auto view = block_view(to);
        Kokkos::parallel_for("application",
                             Kokkos::RangePolicy<KernelSpace, Kokkos::IndexType<Index>>(
                                 detail::lane().space(), 0, view.extent(0)),
                             AddOne{view.data()});
        break;
      }
      case 8:
        to = full<Split>(mesh, {n, n}, i);
        break;
      case 9:
        to = Split(y);  // the same memory
        break;
      case 10:
        for (const double value : to_host(y).values) made.push_back(value);
        break;
    }
    if (pick(4) == 0) to = sin(to);
  }
  for (const Split& one : x)
    for (const double value : to_host(one).values) made.push_back(value);
  return made;
}
}  // namespace

TEST_CASE("a tool sees the kernels of operators on the instance given, and elsewhere again after") {
  const Tool tool;
  run_loopback(4, [](std::shared_ptr<Transport> transport) {
    const auto mesh = make_mesh<Grid>(transport, 2, 2);
    const auto x = random_uniform<Split>(mesh, {300, 300}, 1);
    const auto w = random_uniform<Split>(mesh, {300, 300}, 2);
    const KernelSpace space = support::instance(mesh.process(), 1);
    const auto all_on = [&](const KernelSpace& instance, const auto& work) {
      seen.clear();
      work();
      if (!kernels_on_host) CHECK(!seen.empty());  // there every kernel is one of Kokkos's
      for (const std::uint32_t one : seen)
        CHECK(one == Kokkos::Tools::Experimental::device_id(instance));
    };
    const auto work = [&] {
      all_on(detail::lane().space(), [&] { (void)einsum<"ij,jk->ik">(x, w); });
      all_on(detail::lane().space(), [&] { (void)sin(x); });
      all_on(detail::lane().space(), [&] { (void)sum<"ij->j">(x); });
      all_on(detail::lane().space(), [&] { (void)replicate(x); });
      all_on(detail::lane().space(), [&] { (void)sort<"ij", 'j'>(x); });
      all_on(detail::lane().space(), [&] { (void)zeros_like(x); });
      all_on(detail::lane().space(), [&] { (void)roll<0>(x, 1); });
      all_on(detail::lane().space(),
             [&] { (void)async([&] { return reshard<P<data, _>>(x); }).wait(); });
    };
    {
      const auto there = mesh.on(space);
      CHECK(detail::lane().space() == space);
      work();
    }
    CHECK(detail::lane().space() == KernelSpace());
    work();
    (void)to_host(x);
  });
}

TEST_CASE("kernels run on the instance's threads") {
  if constexpr (kernels_on_host)
    run_loopback(1, [](std::shared_ptr<Transport> transport) {
      const auto mesh = make_mesh<Grid>(transport, 1, 1);
      const auto x = zeros<Real<_>>(mesh, Index{1} << 20);
      const auto most = [&] { return to_host(max<"i->">(map(Threads{}, x))).values.front(); };
      const auto there = mesh.on(support::instance(0, 1));
      CHECK(most() == support::instance(0, 1).concurrency());
    });
}

TEST_CASE("a program on several instances computes what it computes on one") {
  for (const MeshSizes<Grid> size : {sizes<Grid>(1, 1), sizes<Grid>(2, 2), sizes<Grid>(1, 3)}) {
    std::mutex mutex;
    std::string wrong;
    run_loopback(size.shape.processes(), [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(world, size);
      for (unsigned seed = 0; seed < 30; ++seed) {
        const std::vector<double> one = some_program(mesh, seed, false);
        const std::vector<double> several = some_program(mesh, seed, true);
        const std::lock_guard lock(mutex);
        if (one != several && wrong.empty()) wrong = "seed " + std::to_string(seed);
      }
    });
    CHECK_MESSAGE(wrong.empty(), to_string(size.shape, Grid::names()) << ": " << wrong);
  }
}

TEST_CASE("an operator waits for the instance that wrote its operand, and for nobody else") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    const KernelSpace a = support::instance(mesh.process(), 1);
    const KernelSpace b = support::instance(mesh.process(), 2);
    const auto x = full<Real<data>>(mesh, {8}, 1);
    detail::lane().wait();
    const auto waiting = [](const auto& space) {
      if constexpr (requires { space.waiting(); })
        return space.waiting() > 0;
      else
        return false;
    };
    const bool late = !kernels_on_host;
    std::optional<Real<data>> y, z;
    {
      const auto there = mesh.on(a);
      y = x + x;
      CHECK(waiting(a) == late);
    }
    {
      const auto there = mesh.on(b);
      z = x * x;  // both read x
      CHECK(waiting(a) == late);
      z = *z + *y;  // which `a` writes
      CHECK(!waiting(a));
      CHECK(waiting(b) == late);
    }
    CHECK(to_host(*z).values == std::vector<double>(8, 3));
    CHECK(!waiting(b));
  });
}
