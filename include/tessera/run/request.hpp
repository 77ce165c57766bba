// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One call of an operator, and the one way that all take (run/run.hpp).
///
///     TensorCore y = detail::run({ops::Reshard{to}, {&x}, {"reshard", where}});
///
/// Laws: an operator is checked and planned once for each operands' descriptions, destination and
/// contract; what a process throws it throws before it communicates.
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/run/detail/same_calls.hpp>
#include <tessera/run/extras.hpp>
#include <tessera/run/taker.hpp>

namespace tessera::detail {

/// Throws by the category of the broken rule. A text that quotes the call's label needs it not
/// before it.
TESSERA_FUNCTION void require(OperationView operation, const TensorDescs& operands,
                              const MeshCore& mesh, CallSite site);

/// A call that has been planned and compared. The reference holds until another plan is prepared.
struct Agreed {
  const Prepared& prepared;
  OperatorMark mark;      ///< what the processes have said
  std::uint64_t history;  ///< what the results remember
};

/// Plans a call, or finds its plan, and compares it with what the other processes call. Collective
/// over the mesh. Communication: as Comparison. Precondition: mesh_of of the first operand.
TESSERA_FUNCTION Agreed agree_on(const Request& r);

/// Carries out a prepared plan on the operands and returns its result, which is the destination
/// where the plan has one. Collective over the mesh. Communication: plan.steps. Throws
/// CommunicationError, MemoryError.
TESSERA_FUNCTION TensorCore execute(const Prepared& prepared, const OperandList& operands,
                                    CallSite site, const Extras& extras = {});

/// Carries a call out, as all operators are, or gives it to the thread's taker. Collective over the
/// mesh. Communication: as its plan says.
TESSERA_FUNCTION TensorCore run(const Request& r);

/// Runs a call with several results, and returns all.
inline std::vector<TensorCore> run_all(OperationView operation, const OperandList& operands,
                                       CallSite site) {
  std::vector<TensorCore> also;
  std::vector<TensorCore> results{run({operation, operands, site, {.also = &also}})};
  for (TensorCore& result : also) results.push_back(std::move(result));
  return results;
}

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/run/run.hpp>
#endif
