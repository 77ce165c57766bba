// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators x element types x partial kinds, as verdicts, against a table written by hand.
#include <tessera/plan.hpp>

using namespace tessera;

namespace {

/// What each element type has: s sum, p product, x max, n min, y any, l all, m mean, e einsum.
constexpr std::string_view table[dtypes] = {
    "spxnme",  // half
    "spxnme",  // bfloat16
    "spxnme",  // float
    "spxnme",  // double
    "spme",    // complex<float>
    "spme",    // complex<double>
    "spxne",   // int8
    "spxne",   // int16
    "spxne",   // int32
    "spxne",   // int64
    "spxne",   // uint8
    "spxne",   // uint16
    "spxne",   // uint32
    "spxne",   // uint64
    "yl",      // bool; its sums and products are integers
};
constexpr std::string_view letters = " spxnyl";  // by Reduction

/// Vectors of one element, split so.
constexpr TensorDescs ones(DType type, const Shardings& split) {
  TensorDescs x;
  for (const Sharding& s : split) x.push_back({type, {1}, s});
  return x;
}
constexpr Verdict check_reduce(Reduction by, bool mean, DType type, const Sharding& x = {{}}) {
  return ops::Reduce{.terms = parse("i->"), .reduction = by, .mean = mean, .type = type}.check(
      ones(type, {x}));
}
constexpr Verdict check_product(DType a, DType b) {
  return ops::Einsum{parse("i,i->i"), Sharding{{}}}.check(
      {TensorDesc{a, {1}, Sharding{{}}}, TensorDesc{b, {1}, Sharding{{}}}});
}
constexpr Verdict check_arg(DType type) {
  return ops::Arg{parse("i->"), Reduction::max}.check(ones(type, {Sharding{{}}}));
}

consteval bool every_type_has_what_the_table_says() {
  for (int t = 0; t < dtypes; ++t) {
    const DType type = static_cast<DType>(t);
    const auto expected = [&](char c) { return table[t].find(c) != std::string_view::npos; };
    for (int r = 1; r < reductions; ++r) {
      const Reduction reduction = static_cast<Reduction>(r);
      const bool has = expected(letters[static_cast<std::size_t>(r)]);
      if (check_reduce(reduction, false, type).ok() != has) return false;
      // A tensor may be unfinished by exactly those kinds.
      Sharding open{{0}};
      open = open.with_partial(AxisSet{1}, reduction);
      if (check(TensorDesc{type, {4}, open}, 2) !=
          (has ? Verdict{} : Verdict{.rule = Rule::reduction_defined, .dim = 1, .type = type}))
        return false;
    }
    if (!check(TensorDesc{type, {4}, Sharding{{0}}}, 2).ok()) return false;
    if (check_reduce(Reduction::sum, true, type).ok() != expected('m')) return false;
    if (check_product(type, type).ok() != expected('e')) return false;
  }
  return true;
}
static_assert(every_type_has_what_the_table_says());

static_assert(check_product(DType::boolean, DType::boolean).rule == Rule::products_of_numbers);
static_assert(check_reduce(Reduction::sum, false, DType::boolean).rule == Rule::sums_of_numbers);
static_assert(check_reduce(Reduction::sum, true, DType::boolean).rule == Rule::means_of_floats);
static_assert(check_reduce(Reduction::max, false, DType::boolean).rule ==
              Rule::extremes_of_numbers);
static_assert(check_reduce(Reduction::min, false, DType::c64).rule == Rule::extremes_of_ordered);
static_assert(check_reduce(Reduction::any, false, DType::i8).rule == Rule::any_and_all_of_truths);
static_assert(check_reduce(Reduction::sum, true, DType::u8).rule == Rule::means_of_floats);
static_assert(check_arg(DType::boolean).rule == Rule::searches_of_ordered &&
              check_arg(DType::u8).ok());
static_assert(detail::check_index_type(DType::i16, 2) ==
                  Verdict{.rule = Rule::indices_of_integers, .operand = 2, .type = DType::i16} &&
              detail::check_index_type(DType::i64, 2).ok());
static_assert(check_product(DType::f32, DType::f64) == Verdict{.rule = Rule::factor_types_alike,
                                                               .operand = 1,
                                                               .type = DType::f32,
                                                               .other = DType::f64});
static_assert(detail::check_one_type(Rule::joined_types_alike, DType::i8, DType::i8, 1).ok());

/// Operators x partial kinds: x is open over axis 0 by `kind`; which operators take it, and leave
/// it open?
constexpr Sharding open(Reduction kind) { return Sharding{{}}.with_partial(AxisSet{0}, kind); }
consteval bool operators_take_the_kinds_they_may() {
  for (int r = 1; r < reductions; ++r) {
    const Reduction kind = static_cast<Reduction>(r);
    const Sharding x = open(kind), done{{}};
    const bool sum = kind == Reduction::sum;
    const DType type =
        kind == Reduction::any || kind == Reduction::all ? DType::boolean : DType::f32;
    const auto product = [&](const Sharding& a, const Sharding& b, const Sharding& out) {
      return ops::Einsum{parse("i,i->i"), out}.check(ones(type, {a, b})).ok();
    };
    const auto moves = [&](const Sharding& from, const Sharding& to) {
      return ops::Reshard{to}.check(ones(type, {from})).ok();
    };
    // A product takes one unfinished sum, and its result is finished or as open.
    if (product(x, done, x) != sum || product(done, x, done) != sum) return false;
    if (product(x, x, x)) return false;
    // A reduction takes its own kind alone; transposing takes any; only values that are finished
    // are reduced anew.
    for (int by = 1; by < reductions; ++by)
      if (check_reduce(static_cast<Reduction>(by), false, type, x).ok() != (by == r)) return false;
    if (check_reduce(Reduction::sum, true, type, x).ok() != sum) return false;
    if (!ops::Transpose{parse("i->i"), x}.check(ones(type, {x})).ok() || !moves(x, done) ||
        moves(done, x))
      return false;
    for (int other = 1; other < reductions; ++other)
      if (moves(x, open(static_cast<Reduction>(other))) != (other == r)) return false;
  }
  return true;
}
static_assert(operators_take_the_kinds_they_may());

/// Claims of functions x partial kinds: of one operand, of two alike, and of one beside a finished
/// one.
struct Row {
  Linearity claim;
  std::string_view one, alike, beside;
};
constexpr Row claims[] = {
    {Linearity::pointwise, "", "", ""},
    {Linearity::linear, "s", "s", ""},
    {Linearity::bilinear, "s", "", "s"},
    {Linearity::linear_in_first, "s", "", "s"},
    {Linearity::monotone, "xnyl", "xnyl", ""},
    {Linearity::linear_monotone, "sxnyl", "sxnyl", ""},
    {Linearity::maximum, "x", "x", ""},
    {Linearity::minimum, "n", "n", ""},
    {Linearity::multiplicative, "p", "p", ""},
    {Linearity::bilinear | Linearity::multiplicative, "sp", "p", "s"},
    {Linearity::linear_in_first | Linearity::multiplicative, "sp", "p", "s"},
    {Linearity::linear | Linearity::multiplicative, "sp", "sp", ""},
    {Linearity::disjunction, "y", "y", ""},
    {Linearity::conjunction, "l", "l", ""},
};
consteval bool claims_act_on_the_kinds_they_may() {
  for (const Row& row : claims)
    for (int r = 1; r < reductions; ++r) {
      const Sharding x = open(static_cast<Reduction>(r)), done{{}};
      const auto acts = [&](const char* terms, const Shardings& on, const Sharding& out,
                            Linearity claim) {
        return ops::Map{.terms = parse(terms), .linearity = claim, .out = out}
            .check(ones(DType::f32, on))
            .ok();
      };
      const auto expected = [&](std::string_view kinds) {
        return kinds.find(letters[static_cast<std::size_t>(r)]) != std::string_view::npos;
      };
      if (acts("i->i", {x}, x, row.claim) != expected(row.one)) return false;
      if (acts("i,i->i", {x, x}, x, row.claim) != expected(row.alike)) return false;
      if (acts("i,i->i", {x, done}, x, row.claim) != expected(row.beside)) return false;
      if (acts("i->i", {x}, done, row.claim)) return false;
      // A selection takes all kinds, alike, where its condition is finished.
      if (!acts("i,i,i->i", {done, x, x}, x, Linearity::selection)) return false;
      if (acts("i,i,i->i", {x, x, x}, x, Linearity::selection)) return false;
    }
  return true;
}
static_assert(claims_act_on_the_kinds_they_may());

}  // namespace

/// Sums and products of unsigned integers are uint64, of other integers and truth values int64,
/// whatever their width; nothing else changes its type.
consteval bool sums_of_integers_are_wide() {
  for (int t = 0; t < dtypes; ++t)
    for (int r = 1; r < reductions; ++r) {
      const auto type = static_cast<DType>(t);
      const auto reduction = static_cast<Reduction>(r);
      const bool adds = reduction == Reduction::sum || reduction == Reduction::product;
      const DType result = detail::reduced_type(reduction, type);
      const bool whole = is_integer(type) || is_boolean(type);
      if (result != (!adds || !whole ? type : is_unsigned(type) ? DType::u64 : DType::i64))
        return false;
      const Sharding done{{0}}, open = done.with_partial(AxisSet{1}, reduction);
      const auto check = [&](DType to, const Sharding& x) {
        return detail::check_reduced_type(reduction, false, type, to, x).rule;
      };
      const Rule own = check_reduce(reduction, false, type).rule;
      if ((own == Rule::ok) != defined(reduction, type)) return false;
      if (check(type, open) != own || check(type, done) != own) return false;
      if (!adds) continue;
      if (check(result, done) != Rule::ok) return false;
      const Rule narrow = reduction == Reduction::sum ? Rule::wide_sums_of_finished
                                                      : Rule::wide_products_of_finished;
      if (check(result, open) != (result == type ? Rule::ok : narrow)) return false;
      const Sharding other = done.with_partial(AxisSet{1}, Reduction::max);
      if (result != type && check(result, other) != Rule::finished) return false;
      // Sixty-four bits of either sign may be named; of what is no integer, nothing.
      for (const DType wide : {DType::i64, DType::u64})
        if (wide != type && check(wide, done) != (whole ? Rule::ok : Rule::sums_as_own_or_64_bits))
          return false;
    }
  return true;
}
static_assert(sums_of_integers_are_wide());
constexpr Rule sum_to(DType type, DType result, bool mean = false) {
  return detail::check_reduced_type(Reduction::sum, mean, type, result, Sharding{{}}).rule;
}
static_assert(sum_to(DType::i8, DType::i16) == Rule::sums_as_own_or_64_bits);
static_assert(sum_to(DType::u32, DType::u16) == Rule::sums_as_own_or_64_bits);
static_assert(sum_to(DType::f16, DType::f32) == Rule::sums_as_own_or_64_bits);
static_assert(sum_to(DType::boolean, DType::u8) == Rule::sums_as_own_or_64_bits);
static_assert(sum_to(DType::boolean, DType::boolean) == Rule::sums_of_numbers);
static_assert(sum_to(DType::boolean, DType::boolean, true) == Rule::means_of_floats);
static_assert(detail::KindType<Mean>::of(DType::i8) == DType::i8);
static_assert(detail::KindType<Deterministic<Sum>>::of(DType::u8) == DType::u64);
static_assert(detail::KindType<As<Product, std::int16_t>>::of(DType::i16) == DType::i16);
