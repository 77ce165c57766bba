// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <tessera/plan/check/verdict.hpp>
#include <tessera/plan/deduce.hpp>
#include <tessera/plan/elementwise.hpp>
#include <tessera/plan/op/elements/map.hpp>
#include <tessera/plan/op/product/einsum.hpp>
#include <tessera/plan/op/rows/reduce.hpp>
#include <tessera/plan/op/shape/transpose.hpp>

using namespace tessera;

// ---- equations
// ---------------------------------------------------------------------------------------------------

static_assert(parse("bsm,mh->bsh").operands.size() == 2);
static_assert(parse("bsm,mh->bsh").operands[0] == Term{'b', 's', 'm'});
static_assert(parse("bsm,mh->bsh").result == Term{'b', 's', 'h'});
static_assert(parse(" b s m , mh -> b s h ") == parse("bsm,mh->bsh"));
static_assert(parse("ab->").well_formed && parse("ab->").result.empty());
static_assert(parse(",->").well_formed && parse(",->").operands.size() == 2);
static_assert(!parse("ab").well_formed && !parse("").well_formed && !parse("a1->a").well_formed &&
              !parse("a->b->c").well_formed);
static_assert(!parse("abcdefghi->a").well_formed);          // nine dimensions
static_assert(!parse("a,b,c,d,e,f,g,h,i->a").well_formed);  // nine operands
static_assert(!parse("a->b,c").well_formed && !parse("a-b").well_formed &&
              !parse("...a->a").well_formed);
static_assert(Equation("ik,kj->ij").view() == "ik,kj->ij");
static_assert(Equation::from("ik,kj->ij").view() == "ik,kj->ij");
template <Equation E> struct Holds { static constexpr std::string_view text = E.view(); };
static_assert(Holds<"ik,kj->ij">::text == "ik,kj->ij" &&
              std::is_same_v<Holds<"ij->ji">, Holds<"ij->ji">>);

// ---- what a result's sharding is when nobody says
// ----------------------------------------------------------------

/// Tensors of one element, split so.
constexpr TensorDescs ones(const Shardings& split) {
  TensorDescs x;
  for (const Sharding& s : split) x.push_back({DType::f32, Extents(s.rank(), 1), s});
  return x;
}
constexpr Sharding deduce(const Terms& terms, const Shardings& x) {
  return ops::Einsum{terms}.deduced(ones(x));
}
static_assert(deduce(parse("bsm,mh->bsh"), {Sharding{{0}, {}, {1}}, Sharding{{0}, {1}}}) ==
              Sharding{{0}, {}, {1}});
static_assert(deduce(parse("bij,bjk->bik"), {Sharding{{}, {0}, {}}, Sharding{{0}, {}, {}}}) ==
              Sharding{{0}, {}, {}});  // batch first
static_assert(deduce(parse("ik,kj->ij"), {Sharding{{0}, {}}, Sharding{{}, {0}}}) ==
              Sharding{{0}, {}});  // then the left
static_assert(deduce(parse("ik,kj->ij"), {Sharding{{}, {0}}, Sharding{{0}, {}}}) ==
              Sharding{{}, {}});
static_assert(deduce(parse("ik,kj->ij"), {Sharding{{0, 1}, {}}, Sharding{{}, {1}}}) ==
              Sharding{{0, 1}, {}});
static_assert(deduce(parse("ij->ji"), {Sharding{{0}, {1}}}) == Sharding{{1}, {0}});

// ---- a verdict for every rule
// ------------------------------------------------------------------------------------

inline constexpr Sharding none2 = Sharding::replicated(2);
inline constexpr Sharding row{{0}, {}};
inline constexpr Sharding column{{}, {0}};
constexpr Verdict check_einsum(const Terms& terms, const Shardings& x, const Sharding& out) {
  return ops::Einsum{terms, out}.check(ones(x));
}
/// Checks the extents of a product, or of a map, which stretches dimensions of extent 1.
constexpr Verdict check_extents(const Terms& terms, const TensorDescs& x, bool map) {
  const Sharding whole = Sharding::replicated(terms.result.size());
  return map ? ops::Map{.terms = terms, .out = whole}.check(x) : ops::Einsum{terms, whole}.check(x);
}
constexpr Verdict check_map(const Terms& terms, const Shardings& x, const Sharding& out,
                            Linearity linearity) {
  return ops::Map{.terms = terms, .linearity = linearity, .out = out}.check(ones(x));
}
constexpr Verdict check_reduce(const Terms& terms, const Shardings& x, const Sharding& out,
                               Reduction reduction, bool mean) {
  return ops::Reduce{.terms = terms, .reduction = reduction, .mean = mean, .out = out}.check(
      ones(x));
}
constexpr Verdict check_transpose(const Terms& terms, const Shardings& x, const Sharding& out) {
  return ops::Transpose{terms, out}.check(ones(x));
}
constexpr Sharding open(Sharding s, AxisSet axes, Reduction kind = Reduction::sum) {
  return s.with_partial(axes, kind);
}

static_assert(check_einsum(parse("ik,kj->ij"), {none2, none2}, none2).ok());
static_assert(check_einsum(parse("ik,kj"), {none2, none2}, none2).rule == Rule::equation_readable);
static_assert(check_einsum(parse("ik,kj,jl->il"), {none2, none2}, none2) ==
              Verdict{Rule::operand_count, -1, 0, -1, 3, 2});
static_assert(check_einsum(parse("ikl,kj->ij"), {none2, none2}, none2) ==
              Verdict{Rule::rank_matches, 0, 0, -1, 3, 2});
static_assert(check_einsum(parse("ik,kj->i"), {none2, none2}, none2) ==
              Verdict{Rule::rank_matches, 2, 0, -1, 1, 2});
static_assert(check_einsum(parse("ii,ij->ij"), {none2, none2}, none2).ok());
static_assert(check_map(parse("ii,ij->ij"), {none2, none2}, none2, Linearity::linear) ==
              Verdict{Rule::label_once, 0, 'i'});
static_assert(check_reduce(parse("ii->"), {none2}, Sharding{}, Reduction::max, false) ==
              Verdict{Rule::label_once, 0, 'i'});
static_assert(check_extents(parse("ii->i"), {TensorDesc{DType::f32, {3, 4}, none2}}, false) ==
              Verdict{Rule::extents_agree, 0, 'i', -1, 3, 4});
static_assert(deduce(parse("ii->i"), {Sharding{{}, {1}}}) == Sharding{{1}});
static_assert(deduce(parse("ii,ij->ij"), {Sharding{{0}, {1}}, none2}) == Sharding{{0}, {}});
static_assert(check_einsum(parse("ik,kj->ii"), {none2, none2}, none2) ==
              Verdict{Rule::label_once, 2, 'i'});
static_assert(check_einsum(parse("ik,kj->iz"), {none2, none2}, none2) ==
              Verdict{Rule::result_label_known, 2, 'z'});
static_assert(check_einsum(parse("ik,kj->ij"), {open(none2, {0}), none2}, none2).ok());
static_assert(check_einsum(parse("ik,kj->ij"), {open(none2, {0}, Reduction::max), none2}, none2) ==
              Verdict{Rule::finished, 0});
static_assert(check_einsum(parse("ik,kj->ij"), {open(none2, {0}), open(none2, {1})}, none2) ==
              Verdict{Rule::one_unfinished, 1});
static_assert(check_einsum(parse("ik,kj->ij"), {column, row}, open(none2, {0})).ok());
static_assert(check_einsum(parse("ik,kj->ij"), {row, none2}, open(none2, {0})) ==
              Verdict{Rule::open_axis_contracted, 2, 0, 0});
static_assert(check_einsum(parse("ik,kj->ij"), {column, row}, open(none2, {0}, Reduction::max))
                  .rule == Rule::reduction_alike);

static_assert(check_reduce(parse("ij->i"), {column}, Sharding{{}}, Reduction::max, false).ok());
static_assert(check_reduce(parse("ij->i"), {column}, open(Sharding{{}}, {0}, Reduction::max),
                           Reduction::max, false)
                  .ok());
static_assert(
    check_reduce(parse("ij->i"), {open(none2, {0})}, Sharding{{}}, Reduction::sum, false).ok());
static_assert(check_reduce(parse("ij->i"), {open(none2, {0})}, Sharding{{}}, Reduction::max,
                           false) == Verdict{Rule::reduction_alike, 0});
static_assert(check_reduce(parse("ij->i"), {column}, open(Sharding{{}}, {0}), Reduction::sum,
                           true) == Verdict{Rule::finished, 1});

static_assert(check_transpose(parse("ij->ji"), {row}, column).ok());
static_assert(check_transpose(parse("ij->j"), {row}, Sharding{{}}) ==
              Verdict{Rule::label_kept, 0, 'i'});
static_assert(check_transpose(parse("ij->ji"), {row}, open(none2, {0})).rule ==
              Rule::open_axis_contracted);
static_assert(check_transpose(parse("ij->ji"), {open(none2, {0})}, open(none2, {0}, Reduction::min))
                  .rule == Rule::reduction_alike);

static_assert(check_map(parse("ij,ij->ij"), {row, row}, row, Linearity::pointwise).ok());
static_assert(check_map(parse("ij,ij->i"), {row, row}, Sharding{{}}, Linearity::pointwise) ==
              Verdict{Rule::label_kept, 0, 'j'});
static_assert(check_map(parse("ij->ij"), {open(none2, {0})}, none2, Linearity::pointwise) ==
              Verdict{Rule::finished, 0});
static_assert(
    check_map(parse("ij->ij"), {open(none2, {0})}, open(none2, {0}), Linearity::linear).ok());
static_assert(check_map(parse("ij->ij"), {open(none2, {0}, Reduction::max)},
                        open(none2, {0}, Reduction::max), Linearity::linear)
                  .rule == Rule::finished);
static_assert(check_map(parse("ij->ij"), {open(none2, {0}, Reduction::max)},
                        open(none2, {0}, Reduction::max), Linearity::monotone)
                  .ok());
static_assert(check_map(parse("ij->ij"), {open(none2, {0})}, open(none2, {0}), Linearity::monotone)
                  .rule == Rule::finished);
static_assert(check_map(parse("ij,ij->ij"), {open(none2, {0}), none2}, open(none2, {0}),
                        Linearity::linear) == Verdict{Rule::finished, 1});
static_assert(check_map(parse("ij,ij->ij"), {open(none2, {0}), open(none2, {1})},
                        open(none2, {0, 1}), Linearity::linear)
                  .rule == Rule::finished);
static_assert(check_map(parse("ij->ij"), {open(none2, {0})}, none2, Linearity::linear) ==
              Verdict{Rule::finished, 1});
static_assert(check_map(parse("ij->ij"), {none2}, open(none2, {0}), Linearity::linear).rule ==
              Rule::open_axis_contracted);
static_assert(check_map(parse("i,i->i"),
                        {open(Sharding{{}}, {0}, Reduction::max),
                         open(Sharding{{}}, {0}, Reduction::min)},
                        open(Sharding{{}}, {0}, Reduction::max), Linearity::monotone)
                  .rule == Rule::reduction_alike);
static_assert(check_map(parse("i,i->i"),
                        {open(Sharding{{}}, {0}, Reduction::max),
                         open(Sharding{{}}, {0}, Reduction::max)},
                        open(Sharding{{}}, {0}, Reduction::max), Linearity::maximum)
                  .ok());
static_assert(!check_map(parse("i,i->i"),
                         {open(Sharding{{}}, {0}, Reduction::max),
                          open(Sharding{{}}, {0}, Reduction::max)},
                         open(Sharding{{}}, {0}, Reduction::max), Linearity::minimum)
                   .ok());

static_assert(check_map(parse("ij,ij->ij"), {open(none2, {0}), none2}, open(none2, {0}),
                        Linearity::bilinear)
                  .ok());
static_assert(check_map(parse("ij,ij->ij"), {none2, open(none2, {0})}, open(none2, {0}),
                        Linearity::bilinear)
                  .ok());
static_assert(check_map(parse("ij,ij->ij"), {open(none2, {0}), open(none2, {0})}, open(none2, {0}),
                        Linearity::bilinear) == Verdict{Rule::one_unfinished, 1});
static_assert(check_map(parse("ij,ij->ij"), {open(none2, {0}), none2}, open(none2, {0}),
                        Linearity::linear_in_first)
                  .ok());
static_assert(check_map(parse("ij,ij->ij"), {none2, open(none2, {0})}, open(none2, {0}),
                        Linearity::linear_in_first) == Verdict{Rule::finished, 1});
static_assert(check_map(parse("ij,ij->ij"), {open(none2, {0}, Reduction::max), none2},
                        open(none2, {0}, Reduction::max),
                        Linearity::bilinear) == Verdict{Rule::finished, 0});

constexpr TensorDesc of(Extents extents) {
  return {DType::f32, extents, Sharding::replicated(extents.size())};
}
static_assert(check_extents(parse("ik,kj->ij"), {of({2, 3}), of({3, 4})}, false).ok());
static_assert(check_extents(parse("ik,kj->ij"), {of({2, 3}), of({5, 4})}, false) ==
              Verdict{Rule::extents_agree, 1, 'k', -1, 3, 5});
static_assert(check_extents(parse("ij,j->ij"), {of({2, 3}), of({1})}, true).ok());
static_assert(!check_extents(parse("ij,j->ij"), {of({2, 3}), of({1})}, false).ok());
static_assert(check_extents(parse("ij,j,j->ij"), {of({2, 1}), of({3}), of({4})}, true).rule ==
              Rule::extents_agree);

// ---- broadcasting
// ------------------------------------------------------------------------------------------------

static_assert(detail::broadcast_terms({3, 2, 0}) == parse("abc,bc,->abc"));
static_assert(detail::broadcast_extents(parse("ab,b->ab"), {of({2, 1}), of({3})}) == Extents{2, 3});
static_assert(detail::broadcast_extents(parse("ab,b->ab"), {of({2, 0}), of({1})}) == Extents{2, 0});
