// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Counts the bytes that operators of every kind allocate beside their mesh's arena, whose use the
/// plan states to the byte: none that grow with the tensors, once plans and what libraries keep
/// have been made by a first call. It replaces the allocation functions of the C library, and
/// therefore is a program of its own.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}

namespace {
std::atomic<long> live{0}, peak{0};

void* counted(void* p) {
  if (p == nullptr) return p;
  const long now = live += static_cast<long>(malloc_usable_size(p));
  long seen = peak.load();
  while (now > seen && !peak.compare_exchange_weak(seen, now)) {
  }
  return p;
}
void uncount(void* p) {
  if (p != nullptr) live -= static_cast<long>(malloc_usable_size(p));
}
}  // namespace

extern "C" {
void* malloc(std::size_t n) { return counted(__libc_malloc(n)); }
void* calloc(std::size_t n, std::size_t each) { return counted(__libc_calloc(n, each)); }
void* realloc(void* p, std::size_t n) {
  uncount(p);
  return counted(__libc_realloc(p, n));
}
void* memalign(std::size_t alignment, std::size_t n) {
  return counted(__libc_memalign(alignment, n));
}
void* aligned_alloc(std::size_t alignment, std::size_t n) { return memalign(alignment, n); }
int posix_memalign(void** p, std::size_t alignment, std::size_t n) {
  *p = memalign(alignment, n);
  return *p == nullptr ? 12 : 0;  // ENOMEM
}
void free(void* p) {
  uncount(p);
  __libc_free(p);
}
}

using namespace tessera;

namespace {
struct Row {
  const char* name;
  std::function<void()> call;
  long bound = 0;  ///< bytes of a library's own memory on a process
};

struct Wave {
  template <class At> KOKKOS_FUNCTION double operator()(const At& at) const {
    return Kokkos::cos(0.7 * static_cast<double>(at.linear()));
  }
};
struct Place {
  Index n;
  template <class At> KOKKOS_FUNCTION std::int64_t operator()(const At& at) const {
    return (at.linear() * 37) % n;
  }
};

/// Runs all rows on `processes` threads; returns how many allocated too much.
int run(int processes, Index n) {
  std::atomic<int> wrong{0};
  std::vector<std::string> texts;
  run_loopback(processes, [&](std::shared_ptr<Transport> world) {
    const DynamicMesh mesh = make_mesh(world, MeshShape{processes}, {"a"});
    const Sharding rows{{0}, {}}, columns{{}, {0}}, whole{{}, {}}, line{{}};
    const auto make = [&](const Extents& extents, const Sharding& s) {
      return from_function<double>(mesh, extents, s, Wave{});
    };
    const auto x = make({n, n}, rows), y = make({n, n}, columns);
    const auto one = make({n * n}, Sharding{{0}}), scale = make({n}, line);
    const auto few = make({n, 32, 32}, Sharding{{0}, {}, {}});
    const auto at = from_function<std::int64_t>(mesh, {n}, line, Place{n});
    const auto image =
        from_function<float>(mesh, {8, n, n / 8, 8}, Sharding{{0}, {}, {}, {}}, Wave{});
    const auto filter = from_function<float>(mesh, {3, 3, 8, 8}, Sharding{{}, {}, {}, {}}, Wave{});
    const auto small = cast<half>(x);
    const std::vector<Row> all = {
        {"product", [&] { einsum("ik,kj->ij", x, y, rows); }},
        {"product of a batch", [&] { einsum("bik,bkj->bij", few, few); }},
        {"product of halves", [&] { einsum("ik,jk->ij", small, small, rows); }, 64 << 10},
        {"sum of all", [&] { reduce<Sum>("ij->", y); }},
        {"sum of rows", [&] { reduce<Sum>("ij->i", x); }},
        {"sum of columns", [&] { reduce<Sum>("ij->j", x); }},
        {"deterministic sum", [&] { reduce<Deterministic<Sum>>("ij->j", x); }},
        {"maximum", [&] { reduce<Max>("ij->", x); }},
        {"mean and variance", [&] { mean_and_variance<double>("ij->j", x, Sharding{{}}); }},
        {"norm", [&] { norm<2, double>("ij->", x, Sharding{}); }},
        {"log-sum-exp", [&] { log_sum_exp<double>("ij->j", x, Sharding{{}}); }},
        {"softmax of rows", [&] { softmax<double>("ij", 'j', x); }},
        {"softmax of columns", [&] { softmax<double>("ij", 'i', x); }},
        {"layer norm", [&] { layer_norm<double>(x, scale, scale, 1e-5); }},
        {"layer norm, split", [&] { layer_norm<double>(y, scale, scale, 1e-5); }},
        {"running sum", [&] { cumulative<Sum>("ij", 'j', x, rows); }},
        {"running sum of columns", [&] { cumulative<Sum>("ij", 'i', x, rows); }},
        {"running sum of a line", [&] { cumulative<Sum>("i", 'i', one, Sharding{{0}}); }},
        {"arg-max", [&] { arg_max("ij->j", x, Sharding{{}}); }},
        {"sort of rows", [&] { sort("ij", 'j', x, rows); }},
        {"sort of columns", [&] { sort("ij", 'i', x, rows); }},
        {"sort of a line", [&] { sort("i", 'i', one, Sharding{{0}}); }},
        {"arg-sort of a line", [&] { arg_sort("i", 'i', one, Sharding{{0}}); }},
        {"top 7", [&] { top_k("ij", 'j', x, 7, rows); }},
        {"top third of a line", [&] { top_k("i", 'i', one, n * n / 3, line); }},
        {"map", [&] { tanh(x) * x + 1.0; }},
        {"choice", [&] { where(x > 0.0, x, 2 * x); }},
        {"cast", [&] { cast<float>(x); }},
        {"reshard", [&] { reshard(x, columns); }},
        {"gather", [&] { reshard(x, whole); }},
        {"transpose", [&] { transpose("ij->ji", x, rows); }},
        {"slice",
         [&] {
           slice(x, {1, 3}, {n - 1, n}, {1, 2}, rows);
         }},
        {"pad",
         [&] {
           pad(x, {1, 1}, {1, 1}, {0, 1}, 3.0, rows);
         }},
        {"roll", [&] { roll(x, 3, 0, rows); }},
        {"concatenate",
         [&] {
           concatenate(0, {x, x}, rows);
         }},
        {"reshape",
         [&] {
           reshape(x, {n / 2, 2 * n}, rows);
         }},
        {"take", [&] { take("vd,i->id", y, {at}, rows); }},
        {"scatter", [&] { scatter<Sum>("vd,i,id->vd", x, at, x, rows); }},
        {"one-hot", [&] { one_hot<float>("iv", 'v', at, 64, whole); }},
        {"bincount", [&] { bincount("i->v", at, n, line); }},
        {"convolution", [&] { convolve("nhwc,hwcd->nhwd", image, filter); }},
        {"norm of halves", [&] { softmax<half>("ij", 'j', small); }},
    };
    for (const Row& row : all) {
      row.call();  // makes what is kept
      long taken = max_int64;
      for (int again = 0; again < 3; ++again) {  // what others allocate meanwhile is not a row's
        row.call();
        world->barrier();
        const long before = live;
        if (world->process() == 0) peak = before;
        world->barrier();
        row.call();
        world->barrier();
        taken = std::min(taken, peak - before);
      }
      if (world->process() == 0) {
        const bool fits = taken <= processes * (row.bound + (64 << 10));
        std::printf("%-24s %12ld bytes beside the plan%s\n", row.name, taken,
                    fits ? "" : ": TOO MUCH");
        wrong += !fits;
      }
      world->barrier();
    }
  });
  return wrong;
}
}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  detail::use_all_elements();
  int wrong = 0;
  for (const int processes : {1, 3}) wrong += run(processes, 512);
  std::printf("%s\n", wrong == 0 ? "ok" : "some operators allocate what no plan states");
  return wrong != 0;
}
