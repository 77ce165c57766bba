// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Contracts: which collectives an operator may use, over which axes. A contract as a type is
/// written in a call and checked at compile time; as a value it tells planners what is forbidden.
///
///     using Exactly = Only<gathers<data>, reduce_scatters<model>>;
///     auto y = einsum<"bsh,hm->bsm", P<data, _, model>, Exactly>(h, w);
///     using Nothing = Only<>;                         // no communication at all
///     contract_of<Grid, Only<gathers<>>>();           // all-gathers over any axes
///     using StrictGrid = Strict<Mesh<data, model>>;   // every call that communicates has a contract
///
/// An exchange is the most general way to move data, so exchanges<a> accepts permutes and
/// broadcasts over a too, and lets a planner use point-to-point messages that no other clause
/// allows.
///
/// Laws: a contract covers whatever any of its clauses covers, in any order; the contract that
/// accepts everything covers every other.
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include <tessera/mesh/call.hpp>
#include <tessera/mesh/mesh.hpp>

namespace tessera {

/// The accepted axes of each kind of collective.
class Contract {
 public:
  static constexpr int kinds = 6;  ///< of clauses

  /// Accepts everything.
  constexpr Contract() = default;
  static constexpr Contract nothing() {
    Contract contract;
    contract.bits_ = 0;
    return contract;
  }
  /// A broadcast counts as the exchange in whose place it stands.
  constexpr AxisSet axes(Collective kind) const {
    return AxisSet::from_bits(static_cast<std::uint32_t>(bits_ >> shift(kind)) & every_axis);
  }
  constexpr void accept(Collective kind, AxisSet axes) {
    bits_ |= static_cast<std::uint64_t>(axes.bits & every_axis) << shift(kind);
  }
  constexpr bool accepts(Collective kind, AxisSet over) const {
    AxisSet allowed = axes(kind);
    if (kind == Collective::collective_permute) allowed = allowed | axes(Collective::exchange);
    return (over - allowed).empty();
  }
  /// Returns whether everything that `needs` accepts is accepted here.
  constexpr bool covers(const Contract& needs) const {
    for (int kind = 0; kind < kinds; ++kind)
      if (!accepts(static_cast<Collective>(kind), needs.axes(static_cast<Collective>(kind))))
        return false;
    return true;
  }
  /// Returns the contract that accepts what either does.
  constexpr Contract joined(const Contract& other) const { return from_bits(bits_ | other.bits_); }
  /// Returns false for the contract that accepts everything.
  constexpr bool bounded() const { return bits_ != everything; }
  constexpr std::uint64_t bits() const { return bits_; }
  static constexpr Contract from_bits(std::uint64_t bits) {
    Contract contract;
    contract.bits_ = bits;
    return contract;
  }
  constexpr bool operator==(const Contract&) const = default;

 private:
  static constexpr std::uint32_t every_axis = (1u << max_axes) - 1;
  static constexpr std::uint64_t everything = (std::uint64_t{1} << (max_axes * kinds)) - 1;
  static constexpr int shift(Collective kind) {
    return max_axes * static_cast<int>(kind == Collective::broadcast ? Collective::exchange : kind);
  }

  std::uint64_t bits_ = everything;
};

// The clauses of a contract: that kind of collective over any of these axes; without axes, over
// all.
template <class... A> struct gathers {};
template <class... A> struct reduce_scatters {};
template <class... A> struct all_reduces {};
template <class... A> struct all_to_alls {};
template <class... A> struct permutes {};
template <class... A> struct exchanges {};

/// The collectives that a call may use: clauses in any order; without clauses, no communication.
template <class... Clauses> struct Only {};

/// Stands for a missing contract: on a Strict mesh that means Only<>.
struct NoContract {};

/// A mesh on which an operator that communicates without a contract does not compile. Calls that
/// bring a tensor to or from the host, a file or the application's own boxes need no contract:
/// to_host, to_root, from_root, from_irregular, to_irregular, read_npy and write_npy say by their
/// names that they communicate.
template <class M> struct Strict;
template <class... A> struct Strict<Mesh<A...>> : Mesh<A...> {};

namespace detail {
template <class M> inline constexpr bool is_strict = false;
template <class M> inline constexpr bool is_strict<Strict<M>> = true;

template <class C> struct ClauseOf { static constexpr bool known = false; };
template <Collective Kind, class... A> struct KnownClause {
  static constexpr bool known = true;
  template <class M> static constexpr bool add(Contract& contract) {
    static_assert(((M::template index<A> >= 0) && ...),
                  "[tessera] a contract names an axis that the mesh of the call does not have; its "
                  "clauses list axes of the mesh; check the spelling");
    AxisSet axes;
    if (sizeof...(A) == 0) axes = AxisSet::from_bits((1u << max_axes) - 1);
    ((M::template index<A> >= 0 ? axes.insert(M::template index<A>) : void()), ...);
    contract.accept(Kind, axes);
    return ((M::template index<A> >= 0) && ...);
  }
};
template <class... A> struct ClauseOf<gathers<A...>> : KnownClause<Collective::all_gather, A...> {};
template <class... A>
struct ClauseOf<reduce_scatters<A...>> : KnownClause<Collective::reduce_scatter, A...> {};
template <class... A>
struct ClauseOf<all_reduces<A...>> : KnownClause<Collective::all_reduce, A...> {};
template <class... A>
struct ClauseOf<all_to_alls<A...>> : KnownClause<Collective::all_to_all, A...> {};
template <class... A>
struct ClauseOf<permutes<A...>> : KnownClause<Collective::collective_permute, A...> {};
template <class... A> struct ClauseOf<exchanges<A...>> : KnownClause<Collective::exchange, A...> {};

template <class M, class C> struct LowerContract {
  static consteval bool said() {
    static_assert(sizeof(M) == 0,
                  "[tessera] a contract is written Only<clauses...>, as in "
                  "Only<gathers<data>, reduce_scatters<model>>; wrap the clauses in Only<...>");
    return true;
  }
  static_assert(said());
  static constexpr Contract value{};
};
template <class M> struct LowerContract<M, NoContract> {
  static constexpr Contract value = is_strict<M> ? Contract::nothing() : Contract{};
};
template <class M, class... C> struct LowerContract<M, Only<C...>> {
  static consteval bool said() {
    static_assert(
        (ClauseOf<C>::known && ...),
        "[tessera] Only<...> holds something that is not a clause; the clauses are gathers, "
        "reduce_scatters, all_reduces, all_to_alls, permutes and exchanges, each <axes...>");
    return true;
  }
  static_assert(said());
  static constexpr Contract value = [] {
    Contract contract = Contract::nothing();
    bool legal = true;  // else the error has been reported, and anything is accepted
    if constexpr ((ClauseOf<C>::known && ...))
      legal = (ClauseOf<C>::template add<M>(contract) && ...);
    else
      legal = false;
    return legal ? contract : Contract{};
  }();
};

constexpr int nth_in(std::uint32_t axes, int n) {
  for (int axis = 0; axis < max_axes; ++axis)
    if ((axes >> axis & 1u) != 0 && n-- == 0) return axis;
  return 0;
}
template <class M, template <class...> class Clause, std::uint32_t Axes, class Is>
struct ClauseOver;
template <class M, template <class...> class Clause, std::uint32_t Axes, std::size_t... I>
struct ClauseOver<M, Clause, Axes, std::index_sequence<I...>> {
  using type = Clause<typename M::template axis<nth_in(Axes, static_cast<int>(I))>...>;
};
template <class Done, class M, template <class...> class Clause, std::uint32_t Axes>
struct AddClause;
template <class... Done, class M, template <class...> class Clause>
struct AddClause<Only<Done...>, M, Clause, 0> {
  using type = Only<Done...>;
};
template <class... Done, class M, template <class...> class Clause, std::uint32_t Axes>
struct AddClause<Only<Done...>, M, Clause, Axes> {
  static constexpr auto count = static_cast<std::size_t>(AxisSet::from_bits(Axes).size());
  using type =
      Only<Done..., typename ClauseOver<M, Clause, Axes, std::make_index_sequence<count>>::type>;
};
/// The contract with these bits as it is written on mesh M: messages advise it.
template <class M, std::uint64_t Bits> struct WrittenContract {
  template <Collective Kind>
  static constexpr std::uint32_t over = Contract::from_bits(Bits).axes(Kind).bits;
  using a = typename AddClause<Only<>, M, gathers, over<Collective::all_gather>>::type;
  using b = typename AddClause<a, M, reduce_scatters, over<Collective::reduce_scatter>>::type;
  using c = typename AddClause<b, M, all_reduces, over<Collective::all_reduce>>::type;
  using d = typename AddClause<c, M, all_to_alls, over<Collective::all_to_all>>::type;
  using e = typename AddClause<d, M, permutes, over<Collective::collective_permute>>::type;
  using type = typename AddClause<e, M, exchanges, over<Collective::exchange>>::type;
};
}  // namespace detail

/// Returns contract C as a value on mesh M.
template <class M, class C> constexpr const Contract& contract_of() {
  return detail::LowerContract<M, C>::value;
}

/// Returns "Only<gathers<data,model>,reduce_scatters<model>>", or "anything".
inline std::string to_string(const Contract& contract, const AxisNames& names) {
  if (!contract.bounded()) return "anything";
  static constexpr const char* clauses[Contract::kinds] = {
      "gathers", "all_to_alls", "reduce_scatters", "all_reduces", "permutes", "exchanges"};
  std::string text;
  for (int kind = 0; kind < Contract::kinds; ++kind) {
    const AxisSet axes = contract.axes(static_cast<Collective>(kind));
    if (axes.empty()) continue;
    text += (text.empty() ? "" : ",") + std::string(clauses[kind]) + "<";
    bool first = true;
    for (int a = 0; a < names.size(); ++a)
      if (axes.contains(a))
        text += (std::exchange(first, false) ? "" : ",") + std::string(names[a]);
    text += ">";
  }
  return "Only<" + text + ">";
}

}  // namespace tessera
