// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One operator on one mesh with everything chosen by a seed, run and compared with plain loops and
/// with its plan. The processes choose alike, so a case is collective. Used on loopback by the
/// thousand and under MPI by the hundred.
///
///     support::Random random(seed);                      // the same on every process
///     std::string wrong = support::some_case(mesh, random);
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/enumerate.hpp"
#include "support/observer.hpp"
#include "support/reference.hpp"
#include "within_halo.hpp"

namespace support {

/// x + 2 y (+ 3 z): linear, so it may act on unfinished sums.
struct Weighted {
  template <class T> KOKKOS_FUNCTION T operator()(T x, T y) const { return x + 2 * y; }
  template <class T> KOKKOS_FUNCTION T operator()(T x, T y, T z) const { return x + 2 * y + 3 * z; }
};

}  // namespace support

template <>
inline constexpr tessera::Linearity tessera::detail::linearity_of<support::Weighted> =
    tessera::Linearity::linear;

namespace support {

/// Returns this process's block of the tensor `desc` made of `seed`, partial or not.
template <class T>
DynamicTensor make_input(const std::shared_ptr<MeshCore>& mesh, const TensorDesc& desc,
                         std::uint64_t seed) {
  use_element<T>();
  const TensorCore core = TensorCore::make(mesh, desc);
  const std::vector<T> values = block_input<T>(desc, mesh->shape(), mesh->coordinates(), seed);
  detail::copy_from_host(core.data(), values.data(), static_cast<Index>(values.size() * sizeof(T)));
  return DynamicTensor(core);
}
template <class T> std::vector<T> host_block(const DynamicTensor& x) {
  std::vector<T> values(static_cast<std::size_t>(x.local_size()));
  tessera::detail::fence();
  detail::copy_to_host(values.data(), x.core().data(),
                       static_cast<Index>(values.size() * sizeof(T)));
  return values;
}

/// Returns where two lists of values differ by more than `tolerance`, or nothing.
template <class T>
std::string difference(const std::vector<T>& mine, const std::vector<T>& wanted, double tolerance) {
  if (mine.size() != wanted.size())
    return std::to_string(mine.size()) + " elements, not " + std::to_string(wanted.size());
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const bool both_nan = mine[i] != mine[i] && wanted[i] != wanted[i];
    const bool equal =
        mine[i] == wanted[i] || both_nan ||
        std::fabs(static_cast<double>(mine[i]) - static_cast<double>(wanted[i])) <= tolerance;
    if (!equal)
      return "element " + std::to_string(i) + " is " + std::to_string(mine[i]) + ", not " +
             std::to_string(wanted[i]);
  }
  return "";
}

/// How many plans have an axis split a letter that it splits in no tensor.
inline std::atomic<int> freed_plans = 0;

/// Returns make(options); counts the plan where it is another one than without the free choice.
template <class Make> Plan counted(PlanOptions options, const Make& make) {
  const Plan plan = make(options);
  options.free_choice = false;
  if (plan.process == 0 && !(make(options) == plan)) ++freed_plans;
  return plan;
}

/// Runs one operator and compares: its plan with the dry plan, the ledger and the arena with
/// the plan, its values with the oracle, and a second run with the first, bit by bit.
template <class T> class Trial {
 public:
  Trial(std::shared_ptr<MeshCore> mesh, std::string label)
      : mesh_(std::move(mesh)), label_(std::move(label)) {}

  /// `run` makes the result, `plan` is the dry plan. Collective over the mesh.
  template <class Run>
  std::string operator()(const Run& run, const Plan& plan, const Whole<T>& expected,
                         double tolerance) {
    label_ += "\n" + describe(plan);
    try {
      return wrong(run, plan, expected, tolerance);
    } catch (const std::exception& error) {
      throw std::runtime_error(label_ + error.what());
    }
  }

 private:
  template <class Run>
  std::string wrong(const Run& run, const Plan& plan, const Whole<T>& expected, double tolerance) {
    detail::Arena& arena = mesh_->arena();
    Ledger& ledger = mesh_->ledger();
    const Index held = arena.in_use();
    arena.reset_peak();
    ledger.reset();
    ledger.record_calls(true);
    Recording recording(mesh_);
    if (observer != nullptr) observer->begin();
    const DynamicTensor y = run();
    const std::string seen =
        observer != nullptr ? observer->end(*mesh_, instructions_of(plan).calls) : "";
    const Program program = recording.take();
    const Index peak = arena.peak() - held;
    const Index kept = arena.in_use() - held;
    const Traffic traffic = ledger.total();
    const std::vector<Call> calls = ledger.calls();
    ledger.record_calls(false);
    const std::vector<T> mine = host_block<T>(y);
    const HostTensor<T> all = to_host<T>(y);
    const std::vector<T> again = host_block<T>(run());

    if (!seen.empty()) return told(seen);
    if (program.entries().size() != 1)
      return told("it was recorded as " + std::to_string(program.entries().size()) + " operators");
    if (!(*program.entries()[0].plan == plan))
      return told("it ran another plan than the dry one:\n" + describe(*program.entries()[0].plan));
    if (peak != plan.peak_bytes)
      return told("the arena's peak is " + std::to_string(peak) + " bytes, not " +
                  std::to_string(plan.peak_bytes));
    if (kept !=
        (plan.result < plan.operands ? 0 : detail::arena_charge(plan.slots[plan.result].bytes)))
      return told("it keeps " + std::to_string(kept) + " bytes");
    if (traffic.payload_bytes != plan.own_payload_bytes())
      return told("the ledger has " + std::to_string(traffic.payload_bytes) + " bytes, not " +
                  std::to_string(plan.own_payload_bytes()));
    if (traffic.network_bytes != plan.network_bytes())
      return told("between nodes the ledger has " + std::to_string(traffic.network_bytes) +
                  " bytes, not " + std::to_string(plan.network_bytes()));
    if (!(calls == instructions_of(plan).calls)) return told("it made other calls than planned");

    const TensorDesc& desc = plan.result_desc();
    if (!(y.desc() == desc)) return told("the result is " + describe(y.desc(), mesh_->shape()));
    if (!(desc.extents == expected.extents))
      return told("the result's extents are not " + to_string(expected.extents));
    if (mine.size() != again.size() ||
        (!mine.empty() && std::memcmp(mine.data(), again.data(), mine.size() * sizeof(T)) != 0))
      return told("a second run gave other bits");
    if (desc.sharding.partial.empty())
      if (const std::string text = difference(mine, block_of(expected, y.box()), tolerance);
          !text.empty())
        return told("of its block, " + text);
    if (const std::string text = difference(all.values, expected.values, tolerance); !text.empty())
      return told("gathered, " + text);
    return "";
  }
  std::string told(const std::string& text) const {
    return label_ + "process " + std::to_string(mesh_->process()) + ": " + text;
  }

  std::shared_ptr<MeshCore> mesh_;
  std::string label_;
};

/// Chooses and runs single cases of element type T.
template <class T> class Cases {
 public:
  /// `within`: operands lie within halos.
  Cases(std::shared_ptr<MeshCore> mesh, Random& random, bool within = false)
      : mesh_(std::move(mesh)), shape_(mesh_->shape()), random_(random) {
    if (within) within_ = WithinHalos(random);
  }

  std::string reshard() {
    const int rank = random_.below(4);
    const Reduction kind = some_kind();
    const Sharding from =
        some_sharding(random_, rank, shape_.rank(), random_.chance(40) ? 40 : 0, kind);
    Sharding to = some_sharding(random_, rank, shape_.rank());
    if (random_.chance(20) && !from.partial.empty()) {
      for (int d = 0; d < rank; ++d) to[d] = to[d].without(from.partial);
      to = to.with_partial(from.partial, kind);
    }
    const TensorDesc desc{dtype_of<T>, extents(rank), from};
    const DynamicTensor x = input(desc, 1);
    return trial("reshard " + describe(desc, shape_) + " to " + describe(to, shape_))(
        [&] { return tessera::reshard(x, to); },
        ops::Reshard{to}.plan({desc}, {shape_, mesh_->process(), within_.options(mesh_)}),
        whole_input<T>(desc, shape_, 1), tolerance(1, 1));
  }

  std::string einsum() {
    static const char* const equations[] = {
        "ik,kj->ij",       "ik,jk->ij", "ki,kj->ij", "bij,bjk->bik", "bsm,mh->bsh",
        "bqhd,bkhd->bhqk", "i,j->ji",   "ij,ij->",   "ij,ji->ij",    "ika,kj->ji",
        "ia,jb->ij",       ",ij->ji",   "ab,b->a",   "bsm,bsh->mh"};
    const char* equation = equations[random_.below(static_cast<int>(std::size(equations)))];
    const Terms terms = parse(equation);
    const int open = random_.below(3);
    const TensorDesc a = operand(terms.operands[0], open == 1, Reduction::sum);
    const TensorDesc b = operand(terms.operands[1], open == 2, Reduction::sum);
    const Sharding out = result(terms, {a.sharding, b.sharding}, Reduction::sum);
    const DynamicTensor x = input(a, 1);
    const DynamicTensor y = input(b, 2);
    const Whole<T> expected =
        support::einsum(terms, whole_input<T>(a, shape_, 1), whole_input<T>(b, shape_, 2));
    return trial(std::string(equation) + ", " + describe(a, shape_) + ", " + describe(b, shape_) +
                 " to " + describe(out, shape_))(
        [&] { return tessera::einsum(equation, x, y, out); },
        counted(within_.options(mesh_),
                [&](const PlanOptions& options) {
                  return ops::Einsum{terms, out}.plan({a, b}, {shape_, mesh_->process(), options});
                }),
        expected, tolerance(summands(terms), 2));
  }

  std::string reduce() {
    static const char* const equations[] = {"a->",     "ab->a",  "ab->b", "ab->ba",
                                            "abc->ca", "abc->b", "->",    "abc->"};
    const char* equation = equations[random_.below(static_cast<int>(std::size(equations)))];
    const Terms terms = parse(equation);
    const Reduction kind = some_kind();
    const TensorDesc a = operand(terms.operands[0], random_.chance(40), kind);
    const bool mean = std::is_floating_point_v<T> && kind == Reduction::sum && random_.chance(40);
    const Sharding out = mean ? some_sharding(random_, terms.result.size(), shape_.rank())
                              : result(terms, {a.sharding}, kind);
    const DynamicTensor x = input(a, 1);
    Whole<T> expected = support::reduce(terms, kind, whole_input<T>(a, shape_, 1));
    const Index n = summands(terms);
    if (mean)
      for (T& value : expected.values) value /= static_cast<T>(n);
    const auto run = [&] {
      if (mean) return tessera::reduce<Mean>(equation, x, out);
      if (kind == Reduction::max) return tessera::reduce<Max>(equation, x, out);
      if (kind == Reduction::min) return tessera::reduce<Min>(equation, x, out);
      // Wider sums of integers: integer_sums.loopback.cpp.
      if constexpr (IntegerElement<T>) return tessera::reduce<As<Sum, T>>(equation, x, out);
      return tessera::reduce<Sum>(equation, x, out);
    };
    return trial(std::string(mean ? "mean " : name_of(kind)) + " " + equation + ", " +
                 describe(a, shape_) + " to " + describe(out, shape_))(
        run,
        detail::plan_reduce_as(a.type, terms, kind, a, out, shape_, mesh_->process(),
                               within_.options(mesh_)),
        expected, tolerance(n, 1));
  }

  std::string map() {
    static const char* const equations[] = {"ab,ab->ab", "ab,b->ab",  "ab,ba->ab",  "abc,c->abc",
                                            "a,b->ba",   "abc,->abc", "ab,b,a->ab", "a,a,a->a"};
    const char* equation = equations[random_.below(static_cast<int>(std::size(equations)))];
    const Terms terms = parse(equation);
    const AxisSet open = random_.chance(25) ? AxisSet{random_.below(shape_.rank())} : AxisSet{};
    const auto opened = [&](Sharding s) {
      for (int d = 0; d < s.rank(); ++d) s[d] = s[d].without(open);
      return s.with_partial(open, Reduction::sum);
    };
    TensorDescs descs;
    std::vector<Whole<T>> whole;
    std::vector<DynamicTensor> x;
    std::string text = equation;
    for (const Term& term : terms.operands) {
      TensorDesc desc = operand(term, false, Reduction::sum);
      desc.sharding = opened(desc.sharding);
      if (random_.chance(30) && desc.rank() > 0) desc.extents[random_.below(desc.rank())] = 1;
      const std::uint64_t seed = 30 + x.size();
      descs.push_back(desc);
      whole.push_back(whole_input<T>(desc, shape_, seed));
      x.push_back(input(desc, seed));
      text += ", " + describe(desc, shape_);
    }
    const Sharding out = opened(some_sharding(random_, terms.result.size(), shape_.rank()));
    const Weighted f;
    const Whole<T> expected = support::map<T>(terms, whole, [&](const std::vector<T>& v) {
      return v.size() == 2 ? f(v[0], v[1]) : f(v[0], v[1], v[2]);
    });
    const auto run = [&] {
      return x.size() == 2 ? map_dynamic<T>(equation, f, out, x[0], x[1])
                           : map_dynamic<T>(equation, f, out, x[0], x[1], x[2]);
    };
    return trial(text + " to " + describe(out, shape_))(
        run,
        ops::Map{.terms = terms, .type = dtype_of<T>, .out = out, .reads_index = false}.plan(
            descs, {shape_, mesh_->process(), within_.options(mesh_)}),
        expected, 6 * tolerance(1, 1));
  }

  /// Zeros above or below a diagonal of the last two dimensions.
  std::string triangle() {
    const int rank = 2 + random_.below(2);
    const bool lower = random_.chance(50);
    const Index diagonal = random_.below(13) - 6;
    const TensorDesc a{
        dtype_of<T>, extents(rank),
        some_sharding(random_, rank, shape_.rank(), random_.chance(30) ? 40 : 0, some_kind())};
    const DynamicTensor x = input(a, 1);
    Whole<T> expected = whole_input<T>(a, shape_, 1);
    Index i = 0;
    for_each_index(a.extents, [&](const Extents& at) {
      const Index above = at[rank - 1] - at[rank - 2];
      if (lower ? above > diagonal : above < diagonal) expected[i] = T{};
      ++i;
    });
    return trial((lower ? "tril " : "triu ") + std::to_string(diagonal) + " " +
                 describe(a, shape_))(
        [&] { return lower ? tril(x, diagonal) : triu(x, diagonal); },
        ops::Map{.terms = detail::broadcast_terms({rank}),
                 .type = a.type,
                 .out = a.sharding,
                 .reads_index = false}
            .plan({a}, {shape_, mesh_->process(), within_.options(mesh_)}),
        expected, tolerance(1, 1));
  }

  std::string transpose() {
    static const char* const equations[] = {"ab->ba", "abc->cab", "abc->bac", "abcd->dbca"};
    const char* equation = equations[random_.below(static_cast<int>(std::size(equations)))];
    const Terms terms = parse(equation);
    const TensorDesc a = operand(terms.operands[0], random_.chance(30), some_kind());
    const DynamicTensor x = input(a, 1);
    const Sharding out =
        detail::deduce(terms, {a.sharding}).with_partial(a.sharding.partial, a.sharding.reduction);
    return trial(std::string(equation) + ", " + describe(a, shape_))(
        [&] { return tessera::transpose(equation, x); },
        ops::Transpose{terms, out}.plan({a}, {shape_, mesh_->process(), within_.options(mesh_)}),
        support::transpose(terms, whole_input<T>(a, shape_, 1)), tolerance(1, 1));
  }

 private:
  Trial<T> trial(const std::string& label) const {
    return Trial<T>(mesh_, std::string(name_of(dtype_of<T>)) + " on " + describe(shape_) + ": " +
                               label + within_.text());
  }
  DynamicTensor input(const TensorDesc& desc, std::uint64_t seed) {
    return within_.put(make_input<T>(mesh_, desc, seed));
  }
  Reduction some_kind() {
    return random_.of<Reduction>({Reduction::sum, Reduction::max, Reduction::min});
  }
  Index some_extent() {
    return random_.of<Index>({1, 2, 3, 4, 5, 7, 8, 3, 5, random_.chance(20) ? 0 : 6});
  }
  Extents extents(int rank) {
    Extents result;
    for (int d = 0; d < rank; ++d) result.push_back(some_extent());
    return result;
  }
  TensorDesc operand(const Term& term, bool open, Reduction kind) {
    TensorDesc desc{
        dtype_of<T>, {}, some_sharding(random_, term.size(), shape_.rank(), open ? 40 : 0, kind)};
    for (char label : term) {
      if (!letters_.contains(label)) {
        letters_.push_back(label);
        of_letter_.push_back(some_extent());
      }
      desc.extents.push_back(of_letter_[letters_.find(label)]);
    }
    return desc;
  }
  Sharding result(const Terms& terms, const Shardings& operands, Reduction kind) {
    const Sharding out = some_sharding(random_, terms.result.size(), shape_.rank(), 40, kind);
    return detail::check_open_axes(terms, operands, out, kind).ok()
               ? out
               : some_sharding(random_, terms.result.size(), shape_.rank());
  }
  /// How many terms each element of the result is the sum of.
  Index summands(const Terms& terms) const {
    Index n = 1;
    for (int l = 0; l < letters_.size(); ++l)
      if (!terms.result.contains(letters_[l])) n *= of_letter_[l];
    return n;
  }
  /// Integers exactly. Floating point: a sum of n products of `factors` parts that are sums over
  /// all processes errs by less than (n + p) eps times the sum of what it adds, each at most 4 *
  /// 0.37 p in size.
  double tolerance(Index n, int factors) const {
    if (!std::is_floating_point_v<T>) return 0;
    const double p = shape_.processes();
    const double terms = static_cast<double>(n > 0 ? n : 1);
    return (terms + 2 * p) * static_cast<double>(std::numeric_limits<T>::epsilon()) * terms *
           std::pow(1.48 * p, factors);
  }

  std::shared_ptr<MeshCore> mesh_;
  MeshShape shape_;
  Random& random_;
  WithinHalos within_;
  Term letters_;
  Extents of_letter_;
};

/// Runs one case, all of it chosen by `random`; operands lie `within` halos or by themselves.
/// Collective over the mesh.
inline std::string some_case(const std::shared_ptr<MeshCore>& mesh, Random& random,
                             bool within = false) {
  const DType type = random.of<DType>({DType::f32, DType::f64, DType::i32, DType::i64});
  const int which = random.below(7);
  return with_sampled_type(type, [&](auto element) {
    Cases<decltype(element)> cases(mesh, random, within);
    switch (which) {
      case 0:
        return cases.reshard();
      case 1:
        return cases.reduce();
      case 2:
        return cases.map();
      case 3:
        return cases.transpose();
      case 4:
        return cases.triangle();
      default:
        return cases.einsum();
    }
  });
}

}  // namespace support
