// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Counts the bytes that operators of every kind allocate beside their mesh's arena, whose use the
/// plan states to the byte: none that grow with the tensors, but for what plan/work/work_bytes.hpp
/// states of convolutions. What a first call makes and keeps has the same bounds. It replaces the
/// allocation functions of the C library, and therefore is a program of its own.
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
  std::atomic<long> arenas{0};
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
    const auto pairs = from_function<std::int64_t>(mesh, {n, 2}, rows, Place{n - 8});
    const auto along = from_function<std::int64_t>(mesh, {n, n}, rows, Place{n});
    const auto patches = make({n, 4, 4}, Sharding{{0}, {}, {}}), two = make({2, n}, whole);
    const auto floats = cast<float>(x);
    const auto bytes = cast<std::int8_t>(x * 50.0);
    const auto integers = cast<std::int64_t>(x * 1e6);
    const auto complexes = cast<complex<double>>(x);
    const auto brains = cast<bfloat16>(x);
    const auto positive = x > 0.0;
    const WindowSettings pool{.size = {3, 3}, .low = {1, 1}, .high = {1, 1}};
    const auto pooled = reduce_window<Max>(x, pool);
    const Convolution padded{.low = {1, 1}, .high = {1, 1}};
    const char* const nhwc = "nhwc,hwcd->nhwd";
    const auto image64 = cast<double>(image), filter64 = cast<double>(filter);
    const auto image16 = cast<half>(image), filter16 = cast<half>(filter);
    const auto same = convolve(nhwc, image, filter, padded), same64 = cast<double>(same);
    // Two copies of each operand and of the result of these.
    const long copies = static_cast<long>(2 * (2 * ceil_div(8, processes) * n * n + 576)) * 4;
    const long copies64 = 2 * copies;
    const long library = 20 << 20;  // of products, whatever their size
    const std::vector<Row> all = {
        {"product", [&] { einsum("ik,kj->ij", x, y, rows); }, library},
        {"product of a batch", [&] { einsum("bik,bkj->bij", few, few); }, library},
        {"product of halves", [&] { einsum("ik,jk->ij", small, small, rows); }, library},
        {"sum of all", [&] { reduce<Sum>("ij->", y); }},
        {"sum of rows", [&] { reduce<Sum>("ij->i", x); }},
        {"sum of columns", [&] { reduce<Sum>("ij->j", x); }},
        {"deterministic sum", [&] { reduce<Deterministic<Sum>>("ij->j", x); }},
        {"maximum", [&] { reduce<Max>("ij->", x); }},
        {"mean and variance", [&] { mean_and_variance<double>("ij->j", x, 0, Sharding{{}}); }},
        {"norm", [&] { norm<2, double>("ij->", x, Sharding{}); }},
        {"log-sum-exp", [&] { logsumexp<double>("ij->j", x, Sharding{{}}); }},
        {"softmax of rows", [&] { softmax<double>("ij", 'j', x); }},
        {"softmax of columns", [&] { softmax<double>("ij", 'i', x); }},
        {"layer norm", [&] { layer_norm<double>(x, scale, scale, 1e-5); }},
        {"layer norm, split", [&] { layer_norm<double>(y, scale, scale, 1e-5); }},
        {"running sum", [&] { cumulative<Sum>("ij", 'j', x, {}, rows); }},
        {"running sum of columns", [&] { cumulative<Sum>("ij", 'i', x, {}, rows); }},
        {"running sum of a line", [&] { cumulative<Sum>("i", 'i', one, {}, Sharding{{0}}); }},
        {"arg-max", [&] { argmax("ij->j", x, Sharding{{}}); }},
        {"sort of rows", [&] { sort("ij", 'j', x, {}, rows); }},
        {"sort of columns", [&] { sort("ij", 'i', x, {}, rows); }},
        {"sort of a line", [&] { sort("i", 'i', one, {}, Sharding{{0}}); }},
        {"arg-sort of a line", [&] { argsort("i", 'i', one, {}, Sharding{{0}}); }},
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
        {"take", [&] { take("vd,i->id", y, {at}, {}, rows); }},
        {"scatter", [&] { scatter<Sum>("vd,i,id->vd", x, at, x, {}, rows); }},
        {"one-hot", [&] { one_hot<float>("iv", 'v', at, 64, whole); }},
        {"bincount", [&] { bincount("i->v", at, n, {}, line); }},
        {"convolution", [&] { convolve(nhwc, image, filter); }, copies},
        {"sort by key",
         [&] {
           sort_by_key("ij", 'j', {x, x, floats}, {}, rows);
         }},
        {"sort with positions col", [&] { sort_with_indices("ij", 'i', x, {}, rows); }},
        {"sort int8", [&] { sort("ij", 'j', bytes, {}, rows); }},
        {"sort int64", [&] { sort("ij", 'j', integers, {}, rows); }},
        {"sort half", [&] { sort("ij", 'j', small, {}, rows); }},
        {"sort float desc", [&] { sort("ij", 'i', floats, {.descending = true}, rows); }},
        {"top k int8", [&] { top_k("ij", 'j', bytes, 7, rows); }},
        {"top k half col", [&] { top_k("ij", 'i', small, 100, rows); }},
        {"bottom k", [&] { bottom_k("ij", 'j', x, 300, rows); }},
        {"arg min", [&] { argmin("ij->i", x); }},
        {"scan by a function",
         [&] { associative_scan<double>("ij", 'i', fn::Add{}, 0.0, x, {}, rows); }},
        {"scan by a function row",
         [&] { associative_scan<double>("ij", 'j', fn::Add{}, 0.0, x, {}, rows); }},
        {"running log-sum-exp", [&] { cumulative<LogSumExp>("ij", 'i', x, {}, rows); }},
        {"running product", [&] { cumulative<Product>("ij", 'i', x, {}, rows); }},
        {"running sum half", [&] { cumulative<Sum>("ij", 'i', small, {}, rows); }},
        {"running max", [&] { cumulative<Max>("ij", 'j', x, {}, rows); }},
        {"pool max", [&] { reduce_window<Max>(x, pool); }},
        {"pool sum", [&] { reduce_window<Sum>(x, pool); }},
        {"pool mean half", [&] { reduce_window<Mean>(small, pool); }},
        {"pool gradient", [&] { reduce_window_gradient<Max>(x, pooled, pool); }},
        {"select and scatter", [&] { select_and_scatter<Max>(x, pooled, pool); }},
        {"select and scatter half",
         [&] { select_and_scatter<Max>(small, cast<half>(pooled), pool); }},
        {"convolution, pad", [&] { convolve(nhwc, image, filter, padded); }, copies},
        {"convolution, portable",
         [&] {
           convolve(nhwc, image, filter, {.low = {1, 1}, .high = {1, 1}, .portable = true});
         },
         copies},
        {"convolution, double", [&] { convolve(nhwc, image64, filter64, padded); }, copies64},
        {"convolution, half", [&] { convolve(nhwc, image16, filter16, padded); }, copies},
        {"convolution, strided",
         [&] {
           convolve(nhwc, image, filter, {.stride = {2, 2}});
         },
         copies},
        {"convolution, dilated",
         [&] {
           convolve(nhwc, image, filter, {.base_dilation = {2, 2}});
         },
         5 * copies / 2},
        {"convolution, reversed",
         [&] {
           convolve(nhwc, image, filter, {.reversed = {1, 1}});
         },
         copies},
        {"convolution, input grad",
         [&] { convolve_input_gradient(nhwc, same, filter, image.extents(), padded); }, copies},
        {"convolution, kernel grad",
         [&] { convolve_kernel_gradient(nhwc, image, same, filter.extents(), padded); }, copies},
        {"convolution, kernel grad d",
         [&] { convolve_kernel_gradient(nhwc, image64, same64, filter.extents(), padded); },
         copies64},
        {"take windows", [&] { take("xy,nk->nXY", x, {pairs}, WindowSizes(4, 4)); }},
        {"scatter windows", [&] { scatter<Sum>("xy,nk,nXY->xy", x, pairs, patches, {}, rows); }},
        {"scatter set", [&] { scatter<Set>("vd,i,id->vd", x, at, x, {}, rows); }},
        {"scatter max", [&] { scatter<Max>("vd,i,id->vd", x, at, x, {}, rows); }},
        {"scatter half", [&] { scatter<Sum>("vd,i,id->vd", small, at, small, {}, rows); }},
        {"scatter int8", [&] { scatter<Sum>("vd,i,id->vd", bytes, at, bytes, {}, rows); }},
        {"scatter whole",
         [&] { scatter<Sum>("vd,i,id->vd", reshard(x, whole), at, reshard(x, whole), {}, whole); }},
        {"take along", [&] { take_along_axis("bv", 'v', x, along); }},
        {"histogram", [&] { histogram<double>("ij->v", x, 64, -1., 1.); }},
        {"dynamic slice", [&] { dynamic_slice("ij", "i", x, {3}, {n / 2}); }},
        {"product int64", [&] { einsum("ik,kj->ij", integers, integers, rows); }, library},
        {"product int8", [&] { einsum("ik,kj->ij", bytes, bytes, rows); }, library},
        {"product complex", [&] { einsum("ik,kj->ij", complexes, complexes, rows); }, library},
        {"product float", [&] { einsum("ik,kj->ij", floats, floats, rows); }, library},
        {"product float T", [&] { einsum("ki,jk->ij", floats, floats, rows); }, library},
        {"product bf16", [&] { einsum("ik,kj->ij", brains, brains, rows); }, library},
        {"product bf16 kk", [&] { einsum("ki,kj->ij", brains, brains, rows); }, library},
        {"product half rows few", [&] { einsum("ik,kj->ij", cast<half>(two), small, whole); },
         library},
        {"product few rows", [&] { einsum("ik,kj->ij", two, x, whole); }, library},
        {"product own letters", [&] { einsum("ij,jk->j", x, y); }, library},
        {"three",
         [&] {
           einsum("ij,jk,kl->il", {x, y, x}, rows);
         },
         library},
        {"trace", [&] { einsum("ii->", {x}, Sharding{}); }},
        {"hadamard", [&] { einsum("ij,ij->ij", small, small, rows); }},
        {"half matvec", [&] { einsum("ij,ij->i", small, small, line); }},
        {"sum half cols", [&] { reduce<Sum>("ij->j", small); }},
        {"mean half cols", [&] { reduce<Mean>("ij->j", small); }},
        {"any", [&] { reduce<Any>("ij->j", positive); }},
        {"sum int8", [&] { reduce<Sum>("ij->j", bytes); }},
        {"std half", [&] { standard_deviation<half>("ij->j", small); }},
        {"norm half cols", [&] { norm<2, half>("ij->j", small); }},
        {"log softmax half cols", [&] { log_softmax<half>("ij", 'i', small); }},
        {"rms half", [&] { rms_norm<half>(small, cast<half>(scale)); }},
        {"tril", [&] { tril(x); }},
        {"shift", [&] { shift(x, 2, 1, 1.0); }},
        {"reverse",
         [&] {
           reverse(x, {0, 1});
         }},
        {"stack",
         [&] {
           stack(0, {x, x});
         }},
        {"broadcast to",
         [&] {
           broadcast_to(scale, {n, n}, rows);
         }},
        {"random",
         [&] {
           random_normal<double>(mesh, {n, n}, rows, 3);
         }},
        {"transpose half", [&] { transpose("ij->ji", small, columns); }},
        {"transpose complex", [&] { transpose("ij->ji", complexes, columns); }},
        {"pow", [&] { pow(floats, 2.5f); }},
        {"norm of halves", [&] { softmax<half>("ij", 'j', small); }},
    };
    // Returns the bytes in use outside of the arenas of all processes.
    const auto outside = [&] {
      world->barrier();
      if (world->process() == 0) arenas = 0;
      world->barrier();
      arenas += mesh.core()->arena().capacity();
      world->barrier();
      const long used = live - arenas;
      world->barrier();
      return used;
    };
    for (const Row& row : all) {
      const long before_all = outside();
      row.call();  // makes what is kept
      const long keeps = outside() - before_all;
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
        const bool fits = taken <= processes * (row.bound + (64 << 10)) &&
                          keeps <= processes * (row.bound + (256 << 10));
        std::printf("%-32s %12ld bytes beside the plan, %12ld kept%s\n", row.name, taken, keeps,
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
  use_all_elements();
  int wrong = 0;
  for (const int processes : {1, 3}) wrong += run(processes, 512);
  std::printf("%s\n", wrong == 0 ? "ok" : "some operators allocate what no plan states");
  return wrong != 0;
}
