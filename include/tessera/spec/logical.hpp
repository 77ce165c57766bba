// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Specs by the meaning of dimensions: a model names its dimensions by logical axes, and one list
/// of rules, kept elsewhere, says which mesh axes split them (like Flax's logical axis rules).
///
///     struct batch; struct embed; struct hidden;                  // any types
///     using TwoD = Rules<AxisRule<batch, data>, AxisRule<embed, model>, AxisRule<hidden, _>>;
///     using Activations = Logical<TwoD, batch, _, embed>;         // P<data, _, model>
///
/// The rules are applied in order. A rule gives its mesh axes to the dimension with its name, when
/// that dimension has none yet and this spec does not use any of the axes yet. So an earlier rule
/// takes precedence whatever the order of the dimensions, a later rule for the same name is a
/// fallback, and a dimension without an applicable rule is replicated. Unreduced<Kind, names...>
/// stands for the mesh axes that its names get, after the dimensions. spec/named_rules.hpp does
/// this at run time.
///
/// Laws: Logical is an alias of a canonical P<...>; a mesh axis is used at most once in it.
#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include <tessera/spec/partition_spec.hpp>

namespace tessera {

/// The dimension called Name is split over Split: a mesh axis, Axes<...>, or _ for none.
template <class Name, class Split> struct AxisRule {};

/// A list of rules; earlier ones take precedence. A rule may leave its dimension Open.
template <class... R> struct Rules {};

/// Rules under which every dimension with a name is Open: a model of which nothing is annotated.
struct OpenRules {};

namespace detail {

/// Types as values, which are compared without instantiating anything for each pair. (Addresses
/// would do, were their comparison constant under g++'s sanitizers.)
using TypeId = std::string_view;
template <class T> constexpr TypeId type_id() { return __PRETTY_FUNCTION__; }

/// One rule as a value; ids are types' or, at run time, axes by number.
template <class Name, class AxisId> struct RuleValue {
  Name name{};
  FixedVector<AxisId, max_axes> axes;
};

enum class LogicalFault : std::uint8_t { none, unknown, twice };
struct LogicalChoice {
  LogicalFault fault = LogicalFault::none;
  int dimension = -1;                    ///< the dimension at fault
  FixedVector<int, 2 * max_axes> rules;  ///< the rule of each name; -1: replicated
};

/// Chooses a rule for each of `names`; the empty name stands for a replicated dimension.
template <class RuleList, class Names, class Name>
constexpr LogicalChoice choose_rules(const RuleList& rules, const Names& names, const Name& empty) {
  LogicalChoice choice;
  choice.rules.resize(names.size(), -1);
  FixedVector<bool, 2 * max_axes> open(names.size(), false);
  for (int d = 0; d < names.size(); ++d) {
    if (names[d] == empty) continue;
    for (const auto& rule : rules) open[d] = open[d] || rule.name == names[d];
    if (!open[d]) return {LogicalFault::unknown, d, {}};
    for (int e = 0; e < d; ++e)
      if (names[e] == names[d]) return {LogicalFault::twice, d, {}};
  }
  using AxisIds = decltype(rules.begin()->axes);
  FixedVector<typename AxisIds::value_type, max_axes> used;
  int number = 0;
  for (const auto& rule : rules) {
    const int d = names.find(rule.name);
    bool applies = d >= 0 && open[d];
    for (const auto& axis : rule.axes) applies = applies && !used.contains(axis);
    if (applies) {
      open[d] = false;
      choice.rules[d] = number;
      for (const auto& axis : rule.axes) used.push_back(axis);
    }
    ++number;
  }
  return choice;
}

using TypeRule = RuleValue<TypeId, TypeId>;
template <class R> struct LowerRule;
template <class Name, class A> struct LowerRule<AxisRule<Name, A>> {
  using split = A;
  static constexpr TypeRule value{type_id<Name>(), {type_id<A>()}};
};
template <class Name> struct LowerRule<AxisRule<Name, Replicated>> {
  using split = Replicated;
  static constexpr TypeRule value{type_id<Name>(), {}};
};
template <class Name> struct LowerRule<AxisRule<Name, Open>> {
  using split = Open;
  static constexpr TypeRule value{type_id<Name>(), {}};
};
template <class Name, class... A> struct LowerRule<AxisRule<Name, Axes<A...>>> {
  using split = Axes<A...>;
  static constexpr TypeRule value{type_id<Name>(), {type_id<A>()...}};
};

/// Instantiated only for a wrong use; the assertion is the message, the arguments are the facts.
template <LogicalFault Fault, class Name, class RuleList> struct InvalidLogical {
  static consteval bool said() {
    static_assert(Fault != LogicalFault::unknown || sizeof(RuleList) == 0,
                  "[tessera] Logical names a logical axis for which there is no rule; every name "
                  "has at least one; check the spelling, or add AxisRule<name, _> to the Rules");
    static_assert(Fault != LogicalFault::twice || sizeof(RuleList) == 0,
                  "[tessera] Logical names two dimensions by the same logical axis; a name stands "
                  "once in a tensor; give one of them another name");
    return true;
  }
};

template <class RuleList, class Kind, class... D> struct ResolveLogical;
template <class... R, class Kind, class... D> struct ResolveLogical<Rules<R...>, Kind, D...> {
  static constexpr std::array<TypeRule, sizeof...(R)> rules{LowerRule<R>::value...};
  static constexpr FixedVector<TypeId, 2 * max_axes> names{type_id<D>()...};
  static constexpr LogicalChoice choice = choose_rules(rules, names, type_id<Replicated>());
  static constexpr bool legal() {
    if constexpr (choice.fault != LogicalFault::none)
      return InvalidLogical<choice.fault, typename TypeAt<choice.dimension, D...>::type,
                            Rules<R...>>::said();
    return true;
  }
  template <int D_> static constexpr auto split() {
    constexpr int rule = choice.fault == LogicalFault::none ? choice.rules[D_] : -1;
    if constexpr (rule < 0)
      return std::type_identity<Replicated>{};
    else
      return std::type_identity<typename LowerRule<typename TypeAt<rule, R...>::type>::split>{};
  }
};

template <class Kind, class... D> struct ResolveLogical<OpenRules, Kind, D...> {
  static constexpr bool legal() { return true; }
  template <int D_> static constexpr auto split() {
    constexpr bool named = !std::is_same_v<typename TypeAt<D_, D...>::type, Replicated>;
    return std::type_identity<typename Choose<named>::template type<Open, Replicated>>{};
  }
};

/// The axes that the names of an Unreduced get, in order; none of one that is Open.
template <class Kind, class Done, class... Split> struct JoinUnreduced;
template <class Kind, class... A> struct JoinUnreduced<Kind, AxisPack<A...>> {
  using type = Unreduced<Kind, A...>;
};
template <class Kind, class... A, class S, class... Rest>
struct JoinUnreduced<Kind, AxisPack<A...>, S, Rest...>
    : JoinUnreduced<Kind, AxisPack<A..., S>, Rest...> {};
template <class Kind, class... A, class... Rest>
struct JoinUnreduced<Kind, AxisPack<A...>, Replicated, Rest...>
    : JoinUnreduced<Kind, AxisPack<A...>, Rest...> {};
template <class Kind, class... A, class... Rest>
struct JoinUnreduced<Kind, AxisPack<A...>, Open, Rest...>
    : JoinUnreduced<Kind, AxisPack<A...>, Rest...> {};
template <class Kind, class... A, class... B, class... Rest>
struct JoinUnreduced<Kind, AxisPack<A...>, Axes<B...>, Rest...>
    : JoinUnreduced<Kind, AxisPack<A..., B...>, Rest...> {};

/// The first `Rank` names are dimensions; the names after them are unreduced.
template <class Names, class Kind, class Ds, class Us> struct LogicalSpec;
template <class Names, class Kind, std::size_t... D, std::size_t... U>
struct LogicalSpec<Names, Kind, std::index_sequence<D...>, std::index_sequence<U...>> {
  static_assert(Names::legal());
  static constexpr int rank = sizeof...(D);
  using type =
      P<typename decltype(Names::template split<static_cast<int>(D)>())::type...,
        typename JoinUnreduced<
            Kind, AxisPack<>,
            typename decltype(Names::template split<rank + static_cast<int>(U)>())::type...>::type>;
};

template <class RuleList, class Done, class... D> struct LogicalOf;
template <class RuleList, class... Done> struct LogicalOf<RuleList, AxisPack<Done...>> {
  using type = typename LogicalSpec<ResolveLogical<RuleList, Sum, Done...>, Sum,
                                    std::index_sequence_for<Done...>, std::index_sequence<>>::type;
};
template <class RuleList, class... Done, class Kind, class... U>
struct LogicalOf<RuleList, AxisPack<Done...>, Unreduced<Kind, U...>> {
  using type =
      typename LogicalSpec<ResolveLogical<RuleList, Kind, Done..., U...>, Kind,
                           std::index_sequence_for<Done...>, std::index_sequence_for<U...>>::type;
};
template <class RuleList, class... Done, class First, class... Rest>
struct LogicalOf<RuleList, AxisPack<Done...>, First, Rest...>
    : LogicalOf<RuleList, AxisPack<Done..., First>, Rest...> {};
}  // namespace detail

/// The spec of a tensor whose dimensions are named D... (or _), by the rules R. A last
/// Unreduced<Kind, names...> leaves the mesh axes of those names unfinished.
template <class R, class... D>
using Logical = typename detail::LogicalOf<R, detail::AxisPack<>, D...>::type;

}  // namespace tessera
