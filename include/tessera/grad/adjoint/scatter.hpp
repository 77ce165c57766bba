// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The adjoints of scatters: what was added is taken again; of what was set the last ones; of the
/// largest or least those that equal it, in equal shares.
///
///     // y = scatter<Sum> "vm,bs,bsm->vm" of table, tokens, updates: dtable = dy, dupdates = the take of dy
///
/// Laws: indices have no gradient, and neither have updates whose index is outside.
#include <tessera/grad/adjoint/reduce.hpp>
#include <tessera/plan/op/indexed/scatter.hpp>
#include <tessera/plan/op/indexed/take.hpp>

namespace tessera {
namespace fn {
/// x where two positions are equal, else zero.
struct WhereSame {
  static constexpr std::string_view name = "gradient";
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(const T& x, const std::int64_t& a,
                                           const std::int64_t& b) const {
    return a == b ? x : T{};
  }
};
/// An element's row-major position in the whole tensor, from 1 on.
struct PositionFromOne {
  Extents whole;
  KOKKOS_FUNCTION std::int64_t operator()(const GlobalIndex& i) const {
    std::int64_t at = 0;
    for (int d = 0; d < i.size(); ++d) at = at * whole[d] + i[d];
    return at + 1;
  }
};
}  // namespace fn

/// It is linear in x: its pull is the function itself.
template <> struct Pulled<fn::WhereSame, 0> {
  static constexpr Reads reads{1, 2};
  static fn::WhereSame of(const fn::WhereSame&) { return {}; }
};

namespace detail {

/// The tensors of a scatter's call, by their part in it.
class ScatterAdjoint {
 public:
  ScatterAdjoint(const ops::Scatter& op, AdjointBuilder& build)
      : op_(op), build_(build), count_(op.terms.operands.size()) {}

  bool has_table() const { return has_operand(op_.terms); }
  int table() const { return at(0); }
  int updates() const { return at(count_ - 1); }

  /// Scatters other updates in the same way, into v where it is known, else into zeros.
  AdjointValue scattered(AdjointValue into, AdjointValue updates, Reduction reduction,
                         const Sharding& out) {
    ops::Scatter same{{}, reduction, op_.out_of_range, {}, false, out};
    same.terms.result = op_.terms.result;
    FixedVector<AdjointValue, max_operands> values;
    const auto add = [&](const Term& letters, AdjointValue v) {
      same.terms.operands.push_back(letters);
      values.push_back(v);
    };
    if (into.known()) add(op_.terms.result, into);
    for_each_index(add);
    add(op_.terms.operands.back(), updates);
    if (!into.known())
      for (const char letter : indexed_letters(same.terms))
        same.indexed.push_back(build_.call().results[0].extents[op_.terms.result.find(letter)]);
    return build_.add(same, values);
  }
  /// What v, which is like the result, has for each update.
  AdjointValue taken(AdjointValue v) {
    const TensorDesc to = build_.gradient_of(updates());
    const Term& letters = op_.terms.operands.back();
    ops::Take back;
    FixedVector<AdjointValue, max_operands> values;
    const auto add = [&](const Term& own, AdjointValue of) {
      back.terms.operands.push_back(own);
      values.push_back(of);
    };
    add(op_.terms.result, v);
    for_each_index(add);
    back.terms.result = letters;
    const Term windows = indices_of_take(back.terms).windows();
    for (const char letter : letters) {  // the updates' own letters are a repetition
      bool known = windows.contains(letter);
      for (const Term& own : back.terms.operands) known = known || own.contains(letter);
      if (!known) back.terms.result = letters_without(back.terms.result, Term{letter});
    }
    for (const char letter : windows) back.windows.push_back(to.extents[letters.find(letter)]);
    back.out_of_range = op_.out_of_range;
    back.out = sharding_of(back.terms.result, letters, to.sharding);
    return repeated(build_, build_.add(back, values), back.terms.result, letters, to);
  }

 private:
  /// The operand of a term: in place the table is the last of the call, else the first.
  int at(int term) const {
    if (!op_.in_place) return term;
    return term == 0 ? count_ - 1 : term - 1;
  }
  template <class Add> void for_each_index(const Add& add) {
    for (int k = has_table() ? 1 : 0; k + 1 < count_; ++k)
      add(op_.terms.operands[k], build_.operand(at(k)));
  }

  const ops::Scatter& op_;
  AdjointBuilder& build_;
  int count_;
};

/// Makes the adjoint of a scatter that replaces the table's elements: the last update of each place
/// counts.
inline void adjoint_of_set(ScatterAdjoint scatter, AdjointBuilder& build) {
  const AdjointValue g = build.cotangent();
  const int updates = scatter.updates();
  const TensorDesc to = build.gradient_of(updates);
  if (scatter.has_table() && build.wants(scatter.table()))
    build.set(scatter.table(), scatter.scattered(g, no_gradient(build, to), Reduction::none,
                                                 build.desc(g).sharding));
  if (!build.wants(updates)) return;
  const TensorDesc numbers{DType::i64, to.extents, to.sharding};
  const AdjointValue own =
      from_index<std::int64_t>(build, numbers, fn::PositionFromOne{to.extents});
  const AdjointValue last =
      scatter.taken(scatter.scattered({}, own, Reduction::none, build.desc(g).sharding));
  const auto where = with_gradient_type(to.type, [](auto zero) {
    using T = decltype(zero);
    return std::make_shared<const OwnedFunction>(
        LoopRunner<T, fn::WhereSame, T, std::int64_t, std::int64_t>::kernel({}));
  });
  build.set(updates, mapped(build, {scatter.taken(g), last, own}, where));
}

/// Makes the adjoint of a scatter by the largest or the least: all elements that equal it count, in
/// equal shares.
inline void adjoint_of_extreme(ScatterAdjoint scatter, AdjointBuilder& build) {
  const AdjointValue y = build.finish(build.result());
  const TensorDesc made = build.desc(y);
  const int updates = scatter.updates();
  const auto equal = [&](AdjointValue a, AdjointValue b) {
    return mapped(build, {a, b}, function_of<2>(made.type, fn::OneWhereEqual{}));
  };
  const AdjointValue of_updates = equal(build.finish(build.operand(updates)), scatter.taken(y));
  AdjointValue of_table;
  if (scatter.has_table())
    of_table = equal(build.reshard(build.finish(build.operand(scatter.table())), made.sharding), y);
  const auto wide = [&](AdjointValue v) {
    return v.known() ? converted(build, v, facts_of(made.type).compute) : v;
  };
  const AdjointValue count =
      scatter.scattered(wide(of_table), wide(of_updates), Reduction::sum, made.sharding);
  const AdjointValue share = share_of(build, build.cotangent(), count);
  const auto product = function_of<2>(made.type, fn::Masked{});
  if (scatter.has_table() && build.wants(scatter.table()))
    build.set(scatter.table(), mapped(build, {share, of_table}, product));
  if (build.wants(updates))
    build.set(updates, mapped(build, {scatter.taken(share), of_updates}, product));
}

/// Positions are int64.
template <int = dtypes> void use_positions_of_gradients() {
  use_indexed<std::int64_t>();
  use_rows_of<std::int64_t>();
}

inline void adjoint_of(const ops::Scatter& op, AdjointBuilder& build) {
  use_positions_of_gradients();
  ScatterAdjoint scatter(op, build);
  if (op.reduction == Reduction::none) return adjoint_of_set(scatter, build);
  if (op.reduction == Reduction::max || op.reduction == Reduction::min)
    return adjoint_of_extreme(scatter, build);
  if (op.reduction != Reduction::sum)
    return build.miss(
        "a scatter by product has no gradient yet; multiply by exp of a scatter<Sum> of "
        "logarithms, or keep its operands out of the gradient with stop_gradient");
  if (scatter.has_table() && build.wants(scatter.table()))
    build.set(scatter.table(), build.cotangent());
  if (build.wants(scatter.updates()))
    build.set(scatter.updates(), scatter.taken(build.cotangent()));
}

/// v, which lies at positions along dimension d of a tensor `to`, added there to zeros.
inline AdjointValue scattered_along(AdjointBuilder& build, AdjointValue v, AdjointValue positions,
                                    int d, const TensorDesc& to) {
  ops::Scatter back;
  back.terms.result = letters_of(to);
  Term moved = back.terms.result;
  moved[d] = other_case(moved[d]);
  back.terms.operands = {moved, moved};
  back.indexed = {to.extents[d]};
  back.out = to.sharding;
  return build.add(back, {positions, v});
}

inline const bool scatter_has_adjoint = have_adjoints<ops::Scatter>();

}  // namespace detail
}  // namespace tessera
