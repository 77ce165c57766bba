// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Softmax of few long lines: each line is cut into parts, so that there is work for all threads.
/// The parts' largest elements are joined, then their sums, and then each part is finished.
///
///     SoftmaxParts<float>::start("tessera::softmax", lines);
///
/// Laws: the shape alone gives the number of parts, so the order of additions is fixed.
#include <type_traits>

#include <tessera/kernel/device/reduce.hpp>
#include <tessera/kernel/rows/detail/softmax_lines.hpp>
#include <tessera/kernel/scratch.hpp>

namespace tessera::detail {

/// Joins what parts have made: the largest elements, or the sums.
template <class Part, bool Sums> struct JoinSoftmaxParts {
  using Total = std::conditional_t<Sums, TotalType<Part>, ComputeType<Part>>;
  Index lines, parts;
  const Part* from;
  Part* to;

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      Total total = static_cast<Total>(from[i]);
      for (Index p = 1; p < parts; ++p) {
        const Total next = static_cast<Total>(from[p * lines + i]);
        if constexpr (Sums)
          total += next;
        else
          total = next > total ? next : total;
      }
      to[i] = static_cast<Part>(total);
    }
  }
};

template <class T> class SoftmaxParts {
 public:
  using Lines = SoftmaxLines<T>;
  using C = typename Lines::C;

  /// Computes all lines, in parts where few are long.
  static void start(const char* label, const Lines& all) {
    const Index n = all.lines_.n, lines = all.lines_.outer * all.lines_.inner;
    if constexpr (!kernels_on_host)
      if (all.lines_.inner == 1 && row_parts(lines, n) == 1) return all.rows(label);
    const Index parts = parts_of(all);
    if (parts <= 1) return all.start(label);
    Lines body = all;
    body.parts_ = parts;
    body.to_ = nullptr;
    const Scratch<T> greatest(all.greatest_ == nullptr ? lines * (parts + 1) : 1);
    const Scratch<C> sums(all.sums_ == nullptr ? lines * (parts + 1) : 1);
    if (all.greatest_ == nullptr) {
      body.made_sums_ = nullptr;
      body.greatest_parts_ = greatest.data() + lines;
      body.start(label);
      launch(label, lines, 1024,
             JoinSoftmaxParts<T, false>{lines, parts, body.greatest_parts_, greatest.data()});
      body.greatest_parts_ = nullptr;
      body.greatest_ = greatest.data();
    }
    if (all.sums_ == nullptr) {
      C* const made = all.made_sums_ != nullptr ? all.made_sums_ : sums.data();
      body.made_sums_ = sums.data() + lines;
      body.start(label);
      launch(label, lines, 1024, JoinSoftmaxParts<C, true>{lines, parts, body.made_sums_, made});
      body.made_sums_ = nullptr;
      body.sums_ = made;
    }
    if (all.to_ == nullptr) return;
    body.to_ = all.to_;
    if (!kernels_on_host) body.parts_ = n;  // neighbouring threads write neighbouring elements
    body.start(label);
  }

 private:
  static Index parts_of(const Lines& all) {
    const Index n = all.lines_.n;
    if (all.batch_ > 0 || n < 64) return 1;
    if (!kernels_on_host) {
      const Index lines = max_of(1, all.lines_.outer * all.lines_.inner);
      const Index least = all.lines_.inner == 1 ? 32 : 1;
      return min_of(max_of(least, (Index{1} << 18) / lines), n / 16);
    }
    const Index strips = max_of(1, all.lines_.outer * all.strips_);
    const Index elements = saturating_mul(n, min_of(all.lines_.inner, Lines::width));
    return strips >= 64 ? 1 : min_of(min_of(256 / strips, elements / 16384), n);
  }
};

}  // namespace tessera::detail
