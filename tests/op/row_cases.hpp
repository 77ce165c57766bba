// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Single random cases of arg-max, running joins and deterministic sums, run and compared as those
/// of cases.hpp are.
///
///     std::string wrong = support::some_row_case(mesh, random);
#include <algorithm>
#include <cmath>
#include <limits>

#include <tessera/kernel/reduce.hpp>

#include "cases.hpp"
#include "support/rows.hpp"

namespace support {

template <class T> class RowCases {
 public:
  /// `within`: operands lie within halos.
  RowCases(std::shared_ptr<MeshCore> mesh, Random& random, bool within = false)
      : mesh_(std::move(mesh)), shape_(mesh_->shape()), random_(random) {
    if (within) within_ = WithinHalos(random);
  }

  std::string arg() {
    const Terms terms = some_terms();
    const Reduction kind = random_.chance(50) ? Reduction::max : Reduction::min;
    const TensorDesc x =
        operand(terms, some_sharding(random_, terms.operands[0].size(), shape_.rank()), true);
    Sharding out = some_sharding(random_, terms.result.size(), shape_.rank(), 40, Reduction::min);
    if (!detail::check_arg(terms, {x.sharding}, out).ok())
      out = some_sharding(random_, terms.result.size(), shape_.rank());
    const std::string equation = to_text(terms);
    const DynamicTensor input = stored(x, 1);
    return trial<std::int64_t>("arg " + std::string(name_of(kind)) + " " + equation, x, out)(
        [&] {
          return kind == Reduction::max ? argmax(equation, input, out)
                                        : argmin(equation, input, out);
        },
        ops::Arg{terms, kind, out}.plan({x}, {shape_, mesh_->process(), within_.options(mesh_)}),
        support::arg(terms, kind, whole_input<T>(x, shape_, 1)), 0);
  }

  std::string scan() {
    const Terms terms = detail::same_terms(random_.of<std::string>({"a", "ab", "abc", "abc"}));
    const int along = random_.below(terms.result.size());
    const bool by_function = std::is_same_v<T, std::int64_t> && random_.chance(40);
    const Reduction kind = by_function ? Reduction::none
                                       : random_.of<Reduction>({Reduction::sum, Reduction::product,
                                                                Reduction::max, Reduction::min});
    const ScanOptions options{random_.chance(50), random_.chance(50)};
    const bool open = random_.chance(30) && kind != Reduction::product && !by_function;
    const TensorDesc x = operand(
        terms, some_sharding(random_, terms.result.size(), shape_.rank(), open ? 40 : 0, kind),
        false);
    const Sharding out = random_.chance(60)
                             ? x.sharding
                             : some_sharding(random_, terms.result.size(), shape_.rank());
    const std::string labels = to_text(terms.result);
    const DynamicTensor input = stored(x, 1);
    const auto run = [&] {
      const char letter = terms.result[along];
      if constexpr (std::is_same_v<T, std::int64_t>)
        if (by_function)
          return associative_scan(labels, letter, Compose{}, T{0}, input, options, out);
      // Wider sums of integers: integer_sums.loopback.cpp.
      using Running = std::conditional_t<IntegerElement<T>, As<Product, T>, Product>;
      using Added = std::conditional_t<IntegerElement<T>, As<Sum, T>, Sum>;
      if (kind == Reduction::product)
        return cumulative<Running>(labels, letter, input, options, out);
      if (kind == Reduction::max) return cumulative<Max>(labels, letter, input, options, out);
      if (kind == Reduction::min) return cumulative<Min>(labels, letter, input, options, out);
      return cumulative<Added>(labels, letter, input, options, out);
    };
    const double n = static_cast<double>(max_of(1, x.extents[along]));
    const double largest =
        kind == Reduction::product ? std::pow(1.5, n) : 1.5 * shape_.processes() * n;
    const double tolerance = std::is_floating_point_v<T>
                                 ? (n + 3 * shape_.processes()) * largest *
                                       static_cast<double>(std::numeric_limits<T>::epsilon())
                                 : 0;
    return trial<T>(
        "running " + std::string(name_of(kind)) + " of " + labels + " along " + terms.result[along],
        x, out)(run,
                detail::plan_scan_as(x.type, terms.result, along, kind, options, x, out, shape_,
                                     mesh_->process(), within_.options(mesh_)),
                scanned(along, kind, options, whole_input<T>(x, shape_, 1)), tolerance);
  }

  /// The oracle sums exponentials: the elements are small.
  std::string logsumexp() {
    const Terms terms = detail::same_terms(random_.of<std::string>({"a", "ab", "abc", "abc"}));
    const int rank = terms.result.size(), along = random_.below(rank);
    const ScanOptions options{random_.chance(50), random_.chance(50)};
    const TensorDesc x = operand(terms, some_sharding(random_, rank, shape_.rank()), false);
    const Sharding out =
        random_.chance(60) ? x.sharding : some_sharding(random_, rank, shape_.rank());
    const Whole<T> whole = whole_input<T>(x, shape_, 1);
    Whole<long double> wide(x.extents);
    for (Index i = 0; i < whole.size(); ++i) wide[i] = whole[i];
    const Whole<long double> running = support::scan_by(
        along, [](long double a, long double b) { return std::log(std::exp(a) + std::exp(b)); },
        options, wide, -std::numeric_limits<long double>::infinity());
    Whole<T> expected(x.extents);
    double largest = 1;
    for (Index i = 0; i < running.size(); ++i) {
      expected[i] = static_cast<T>(running[i]);
      if (std::isfinite(expected[i]))
        largest = std::max(largest, std::fabs(static_cast<double>(expected[i])));
    }
    const std::string labels = to_text(terms.result);
    const DynamicTensor input = stored(x, 1);
    return trial<T>("running log-sum-exp of " + labels + " along " + terms.result[along], x, out)(
        [&] { return cumulative<LogSumExp>(labels, terms.result[along], input, options, out); },
        detail::plan_scan_as(x.type, terms.result, along, Reduction::none, options, x, out, shape_,
                             mesh_->process(), within_.options(mesh_)),
        expected,
        (std::is_same_v<T, double> ? 40 : 4) * largest *
            static_cast<double>(std::numeric_limits<T>::epsilon()));
  }

  /// The oracle sums in long double. (That the bits are the same on every mesh is in
  /// rows.loopback.cpp.)
  std::string deterministic_sum() {
    const Terms terms = some_terms();
    const TensorDesc x =
        operand(terms, some_sharding(random_, terms.operands[0].size(), shape_.rank()), false);
    const Sharding out = some_sharding(random_, terms.result.size(), shape_.rank());
    const bool mean = random_.chance(30) && detail::reduced_count(terms, x.extents) > 0;
    const std::string equation = to_text(terms);
    const Whole<T> whole = whole_input<T>(x, shape_, 1);
    Whole<long double> wide(x.extents);
    for (Index i = 0; i < whole.size(); ++i) wide[i] = whole[i];
    const Whole<long double> sums = support::reduce(terms, Reduction::sum, wide);
    Whole<T> expected(sums.extents);
    for (Index i = 0; i < sums.size(); ++i)
      expected[i] = static_cast<T>(
          sums[i] / static_cast<long double>(mean ? detail::reduced_count(terms, x.extents) : 1));
    const auto sum_of = [&](const DynamicTensor& input, const Sharding& to) {
      return mean ? tessera::reduce<Deterministic<Mean>>(equation, input, to)
                  : tessera::reduce<Deterministic<Sum>>(equation, input, to);
    };
    const DynamicTensor input = stored(x, 1);
    return trial<T>("deterministic " + std::string(mean ? "mean " : "sum ") + equation, x, out)(
        [&] { return sum_of(input, out); },
        detail::plan_deterministic_sum(terms, x, out, shape_, mesh_->process(),
                                       within_.options(mesh_)),
        expected, static_cast<double>(std::numeric_limits<T>::epsilon()) * 200);
  }

 private:
  DynamicTensor stored(const TensorDesc& desc, std::uint64_t seed) {
    return within_.put(make_input<T>(mesh_, desc, seed));
  }
  static Whole<T> scanned(int along, Reduction kind, ScanOptions options, const Whole<T>& x) {
    if constexpr (std::is_same_v<T, std::int64_t>)
      if (kind == Reduction::none) return support::scan_by(along, Compose{}, options, x, T{0});
    return support::scan(along, kind, options, x, detail::identity<T>(kind));
  }
  template <class R>
  Trial<R> trial(const std::string& name, const TensorDesc& x, const Sharding& out) const {
    return Trial<R>(mesh_, std::string(name_of(dtype_of<T>)) + " on " + describe(shape_) + ": " +
                               name + ", " + describe(x, shape_) + " to " + describe(out, shape_));
  }
  Terms some_terms() {
    return parse(random_.of<std::string>({"a->", "ab->a", "ab->b", "ab->", "abc->ca", "abc->b",
                                          "abc->c", "abc->ab", "abcd->db", "a->a"}));
  }
  TensorDesc operand(const Terms& terms, const Sharding& s, bool full) {
    TensorDesc x{dtype_of<T>, {}, s};
    for (char label : terms.operands[0]) {
      Index extent = random_.of<Index>({1, 2, 3, 4, 5, 7, 8, 9, 13, random_.chance(20) ? 0 : 6});
      if (full && extent == 0 && !terms.result.contains(label)) extent = 3;
      x.extents.push_back(extent);
    }
    return x;
  }

  std::shared_ptr<MeshCore> mesh_;
  MeshShape shape_;
  Random& random_;
  WithinHalos within_;
};

/// Runs one case, all of it chosen by `random`. Collective over the mesh.
inline std::string some_row_case(const std::shared_ptr<MeshCore>& mesh, Random& random,
                                 bool within = false) {
  const int which = random.below(4);
  const int type = random.below(which >= 2 ? 2 : 4);
  const auto run = [&](auto element) {
    RowCases<decltype(element)> cases(mesh, random, within);
    if constexpr (std::is_floating_point_v<decltype(element)>)
      if (which >= 2) return which == 2 ? cases.deterministic_sum() : cases.logsumexp();
    return which == 0 ? cases.arg() : cases.scan();
  };
  switch (type) {
    case 0:
      return run(float{});
    case 1:
      return run(double{});
    case 2:
      return run(std::int32_t{});
    default:
      return run(std::int64_t{});
  }
}

}  // namespace support
