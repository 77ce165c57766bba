// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Measures which library makes which class of matrix products (product_table.hpp), on this
/// thread's lane.
///
///     const detail::ProductRow floats = detail::measure_products(DType::f32);  // about 0.1 s
///     const std::string libraries = detail::product_libraries();  // "blas …\nonednn …"
///
/// Laws: the fixed rule stays where no way is clearly faster; a class takes product_class_seconds,
/// or five calls of each candidate where that is longer; no class is begun after product_seconds.
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include <tessera/kernel/detail/gemm_shape.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/elements.hpp>
#include <tessera/kernel/product/detail/blas.hpp>
#include <tessera/kernel/product/detail/blis.hpp>
#include <tessera/kernel/product/gemm.hpp>
#include <tessera/kernel/product/product_table.hpp>

namespace tessera::detail {

/// The budget in seconds: of a class, all candidates together, and of an element type. Classes that
/// are not reached take the way of the nearest that was; the most frequent come first.
inline constexpr double product_class_seconds = 0.002, product_seconds = 0.15;
/// A way is taken in place of the fixed rule's where it is faster by this factor.
inline constexpr double product_gain = 1.04;

/// Returns a line for each library: its version, and the kernels that it takes for this processor.
inline std::string product_libraries() {
  std::string text;
#if defined(OPENBLAS_SEQUENTIAL)
  text += "blas ";
  text += openblas_get_config();
  text += ' ';
  text += openblas_get_corename();
  text += '\n';
#endif
#if defined(TESSERA_HAVE_DNNL)
  text += "onednn";
  const TesseraDnnlVersion& version = *tessera_dnnl_version();
  for (const int number : {version.major, version.minor, version.patch, tessera_dnnl_isa()})
    text += ' ' + std::to_string(number);
  text += '\n';
#endif
#if defined(TESSERA_HAVE_BLIS)
  if (blis_is_ready()) {
    text += "blis ";
    text += tessera_bli_version();
    text += ' ' + std::to_string(tessera_bli_arch()) + '\n';
  }
#endif
  return text;
}

/// The ways in which products of a type can be made with so many threads; the fixed rule first.
struct ProductCandidates {
  struct Candidate {
    ProductWay way = ProductWay::fixed;
    double of[2] = {1, 1};  ///< the least seconds in every second round, and in the others
    double least() const { return of[0] < of[1] ? of[0] : of[1]; }
  };
  Candidate all[product_ways];
  int count = 0;

  ProductCandidates(DType type, Index threads, bool many) {
    const bool dnnl = type == DType::f32 && dnnl_is_here, several = threads > 1 && !many;
    add(ProductWay::fixed, true);
    add(ProductWay::blas, true);
    add(ProductWay::onednn, dnnl);
    add(ProductWay::blis, blis_is_ready());
    add(ProductWay::blas_pieces, several && blas_is_for_each_thread());
    add(ProductWay::onednn_pieces, several && dnnl);
  }
  const Candidate* begin() const { return all; }
  const Candidate* end() const { return all + count; }
  Candidate* begin() { return all; }
  Candidate* end() { return all + count; }

 private:
  void add(ProductWay way, bool here) {
    if (here) all[count++].way = way;
  }
};

/// Returns seconds: with one thread those of its processor, which other programs prolong less. (A
/// library that has threads all the same would hide its time from that clock.)
inline double product_clock(Index threads) {
  const bool alone = threads == 1 && blas_is_for_each_thread();
  std::timespec now{};
  clock_gettime(alone ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// A sample's product in some memory, which trials share.
class ProductTrial {
 public:
  ProductTrial(DType type, const ProductSample& sample, Index threads,
               std::vector<std::int64_t>& memory)
      : type_(type), threads_(threads), memory_(memory) {
    const Index size = static_cast<Index>(size_of(type));
    const Index batches = sample.many() ? max_of(Index{4}, sample.batches * 4 / size) : 1;
    work_ = {.m = sample.m,
             .n = sample.n,
             .k = sample.k,
             .lda = sample.k,
             .ldb = sample.n,
             .ldc = sample.n,
             .batch = {batches},
             .batch_a = {sample.m * sample.k},
             .batch_b = {sample.k * sample.n},
             .batch_c = {sample.m * sample.n}};
    const auto place = [&](Index elements) {
      return static_cast<std::size_t>(ceil_div(batches * elements * size, 64) * 8);
    };
    b_ = place(work_.batch_a[0]);
    c_ = b_ + place(work_.batch_b[0]);
    const std::size_t end = c_ + place(work_.batch_c[0]);
    // Words that are ordinary numbers of float, of double and of their complex types.
    if (memory_.size() < end) memory_.resize(end);
    for (std::size_t i = 0; i < c_; ++i) memory_[i] = ordinary;
  }
  /// Returns the seconds of `times` such products made in this way.
  double seconds(ProductWay way, int times) {
    const ProductTable all(way);
    const GemmShape shape = gemm_shape(work_, &all);
    const auto multiply = kernels_of<GemmKernels>(type_).run;
    std::int64_t* const a = memory_.data();
    const double start = product_clock(threads_);
    for (int i = 0; i < times; ++i) multiply(shape, 0, a, a + b_, a + c_, false);
    return product_clock(threads_) - start;
  }

 private:
  static constexpr std::int64_t ordinary = 0x3f00'0000'3f00'0000;
  DType type_;
  Index threads_;
  Gemm work_;
  std::vector<std::int64_t>& memory_;
  std::size_t b_ = 0, c_ = 0;
};

/// Returns the fastest way of a sample by the least of several times of each, in turns. A way that
/// takes far longer than another is not tried again. One that is faster than the fixed rule in
/// every second round alone owes that to other programs on the machine.
inline ProductWay fastest_way(DType type, const ProductSample& sample, Index threads,
                              std::vector<std::int64_t>& memory) {
  using Candidate = ProductCandidates::Candidate;
  ProductCandidates all(type, threads, sample.many());
  ProductTrial trial(type, sample, threads, memory);
  double spent = 0, best = 1;
  int times = 1;
  for (const Candidate& c : all) trial.seconds(c.way, 1);
  for (int round = -1; round < 3 || (round < 20 && spent < product_class_seconds); ++round) {
    for (Candidate& c : all) {
      if (round == 0 ? c.least() > 4 * best + 20e-6 : c.least() > 1.5 * best) continue;
      const double seconds = trial.seconds(c.way, times);
      spent += seconds;
      if (round == 0 && times > 1) c.of[0] = c.of[1] = 1;  // one call was too short to time
      double& least = c.of[round & 1];
      if (seconds < least * times) least = seconds / times;
    }
    best = 1;
    for (const Candidate& c : all) best = c.least() < best ? c.least() : best;
    times = best > 20e-6 ? 1 : best > 20e-9 ? static_cast<int>(20e-6 / best) : 1000;
  }
  const Candidate& fixed = *all.begin();
  ProductWay fastest = ProductWay::fixed;
  double least = 2;
  for (const Candidate& c : all) {
    const bool faster =
        c.of[0] * product_gain < fixed.of[0] && c.of[1] * product_gain < fixed.of[1];
    if (faster && c.of[0] + c.of[1] < least) fastest = c.way, least = c.of[0] + c.of[1];
  }
  return fastest;
}

/// Measures the classes of a type for which this program has kernels, and begins none after so many
/// seconds.
inline ProductRow measure_products(DType type, double most = product_seconds) {
  ProductRow row{};
  const Index threads = host_threads();
  std::vector<std::int64_t> memory;
  const double begin = product_clock(threads);
  int measured = 0;
  for (; measured < product_classes && product_clock(threads) - begin < most; ++measured)
    row[measured] = fastest_way(type, product_samples[measured], threads, memory);
  follow_nearest(row, measured);
  return row;
}

}  // namespace tessera::detail
