// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Contracts on a whole Program, for tests: which collectives it may use and over which axes, how
/// much payload, memory and duplicated work.
///
///     const auto contract = only({over<Grid, data, model>(all_gather),
///                                 over<Grid, model>(reduce_scatter)}) &
///                           payload_at_most(64 << 20) & peak_at_most(1 << 30);
///     check(program, contract).kept;      // or, with an exception that names the operator:
///     require(program, contract);
///
/// Laws: a contract is kept exactly when each of its clauses is, on every process; the verdict
/// names the first operator, in the program's order, by which the first broken clause is broken.
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/base/error.hpp>
#include <tessera/mesh/mesh.hpp>
#include <tessera/program/program.hpp>

namespace tessera {

/// Some communication: one kind of collective, or any; over some of these axes.
struct Over {
  AxisSet axes = AxisSet::from_bits((1u << max_axes) - 1);
  Collective collective = Collective::all_gather;
  bool any_collective = true;

  constexpr Over() = default;
  constexpr Over(Collective kind) : collective(kind), any_collective(false) {}
  constexpr Over(AxisSet over) : axes(over) {}
  constexpr Over(Collective kind, AxisSet over)
      : axes(over), collective(kind), any_collective(false) {}

  constexpr bool speaks_of(const Step& s) const {
    return s.communicates() && (any_collective || s.collective == collective);
  }
  /// The step's group, `group` on the program's mesh, spans no other axes than these.
  constexpr bool holds(const Step& s, AxisSet group) const {
    return speaks_of(s) && (group - axes).empty();
  }
  /// The step's group spans one of these axes.
  constexpr bool touches(const Step& s, AxisSet group) const {
    return speaks_of(s) && !(group & axes).empty();
  }
};

namespace detail {
/// Returns the axes A... of mesh M, as a value.
template <class M, class... A> constexpr AxisSet axes_of() {
  static_assert(((M::template index<A> >= 0) && ...),
                "[tessera] the Mesh has no such axis; name axes of the program's mesh");
  return {M::template index<A>...};
}
}  // namespace detail

/// A collective of this kind over these axes.
constexpr Over over(Collective kind, AxisSet axes) { return {kind, axes}; }
template <class M, class... A> constexpr Over over(Collective kind) {
  return {kind, detail::axes_of<M, A...>()};
}
/// Any collective over these axes.
template <class M, class... A> constexpr Over over() { return detail::axes_of<M, A...>(); }

/// One demand. Made by the functions below.
struct ProgramClause {
  enum class Kind { only, no, payload, messages, peak, duplicated, cost };
  Kind kind = Kind::only;
  std::vector<Over> what;  ///< of only, no, payload and messages
  std::int64_t limit = 0;  ///< of the others
};

class ProgramContract {
 public:
  ProgramContract() = default;
  ProgramContract(ProgramClause clause) { clauses_.push_back(std::move(clause)); }
  const std::vector<ProgramClause>& clauses() const { return clauses_; }
  friend ProgramContract operator&(ProgramContract a, const ProgramContract& b) {
    a.clauses_.insert(a.clauses_.end(), b.clauses_.begin(), b.clauses_.end());
    return a;
  }

 private:
  std::vector<ProgramClause> clauses_;
};

/// No step communicates except as listed: each is of a listed kind and spans no axes but the ones
/// listed with that kind. only({}): no communication.
inline ProgramContract only(std::initializer_list<Over> what) {
  return ProgramClause{ProgramClause::Kind::only, what, 0};
}
inline ProgramContract only(Over what) { return only({what}); }
/// No step of this kind spans any of these axes.
inline ProgramContract no(Over what) { return ProgramClause{ProgramClause::Kind::no, {what}, 0}; }
/// At most this many bytes of payload on any process, counting the steps that span one of the axes.
inline ProgramContract payload_at_most(Index bytes, Over what = {}) {
  return ProgramClause{ProgramClause::Kind::payload, {what}, bytes};
}
inline ProgramContract messages_at_most(Index count, Over what = {}) {
  return ProgramClause{ProgramClause::Kind::messages, {what}, count};
}
/// At most this many bytes of tensors and workspace at once on any process.
inline ProgramContract peak_at_most(Index bytes) {
  return ProgramClause{ProgramClause::Kind::peak, {}, bytes};
}
/// At most this many duplicated flops on any process: flops that other processes do as well.
inline ProgramContract duplicated_at_most(Index flops) {
  return ProgramClause{ProgramClause::Kind::duplicated, {}, flops};
}
/// At most this many picoseconds by the machine model.
inline ProgramContract model_time_at_most(std::int64_t picoseconds) {
  return ProgramClause{ProgramClause::Kind::cost, {}, picoseconds};
}

/// Whether a contract is kept; if not, its first broken clause and the first operator that breaks
/// it.
struct ContractVerdict {
  bool kept = true;
  int clause = -1;  ///< the first that is broken
  int entry = -1;   ///< the operator
  int step = -1;    ///< its step, where one step is the cause
  std::string text{};
  explicit operator bool() const { return kept; }
};

/// Returns whether `program` keeps `contract`; if not, which clause is broken and by what.
TESSERA_FUNCTION ContractVerdict check(const Program& program, const ProgramContract& contract);

/// Throws ContractError, with the operator and both facts, unless `program` keeps `contract`.
TESSERA_FUNCTION void require(const Program& program, const ProgramContract& contract);
}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/detail/contract.hpp>
#endif
