// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether all processes run the same operator on the same tensors: the digest of an operator, its
/// description, and the history of its result. MeshCore compares.
///
///     Comparison comparison(operands, {query, site.label}, site);   // level communicating: asks all
///     const detail::Prepared& prepared = prepare(mesh, query, make);
///     comparison.begin(prepared);                         // level normal: looks at its node
///     remember(result, operands, comparison.history());
///
/// Laws: tensors made by the same operators on two processes have equal histories there; work that
/// a process does on its own, without communication, changes no other tensor's history.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <tessera/program/explain.hpp>
#include <tessera/run/extras.hpp>
#include <tessera/tensor/tensor_core.hpp>

namespace tessera::detail {

/// Returns "sum ij->j of float 6x6 P<rows,_> to P<_>", and the numbers of the call: " with 0.5".
inline std::string words_of(CallSite site, const OperationView& operation,
                            const OperandList& operands, const Extras& extras = {}) {
  const AxisNames& names = operands[0]->mesh()->names();
  std::string text(site.label);
  const std::string_view name = operation.name();
  if (text != name && !text.starts_with(name)) text = std::string(name) + " " + text;
  for (int i = 0; i < operands.size(); ++i)
    text += (i == 0 ? " of " : " and ") + to_string(operands[i]->desc(), names);
  text += operation.text(names);
  const Extents* const starts = extras.starts;
  for (int d = 0; starts != nullptr && d < starts->size(); ++d)
    text += (d == 0 ? " from index " : ", ") + std::to_string((*starts)[d]);
  std::string numbers;
  ToldNumbers told(&numbers);
  tell_numbers(extras, operands[0]->type(), told);
  return text + numbers;
}

/// The name of a call that processes compare: its operator and the descriptions of its tensors, and
/// its label, since two functions may have one plan.
struct CallName {
  OperationView operation;
  std::uint64_t digest;

  CallName(const OperationView& of, std::uint64_t known) : operation(of), digest(known) {}
  CallName(const PlanQuery& query, std::string_view label)
      : operation(query.operation), digest(mix(query.digest(), label.size())) {
    for (std::size_t i = 0; i < label.size(); i += 8) {
      std::uint64_t word = 0;
      const std::size_t left = label.size() - i;
      std::memcpy(&word, label.data() + i, left < 8 ? left : 8);
      digest = mix(digest, word);
    }
  }
};

/// Compares an operator that has operands with those of the other processes, its numbers too
/// (run/told_numbers.hpp). At level
/// `communicating` they compare before anything is planned, whether it communicates or not; at
/// `normal` each compares with the announcements on its node, once the operator is known to
/// communicate. The result remembers how it was made.
class Comparison {
 public:
  /// Communication: at level `communicating`, as MeshCore::agree. Throws MismatchError.
  Comparison(const OperandList& operands, const CallName& name, CallSite site, const Extras& extras)
      : operands_(operands), operation_(name.operation), site_(site), extras_(extras) {
    if (!mesh().remembers()) return;
    mark_.call = name.digest;
    const Extents* const starts = extras.starts;
    for (int d = 0; starts != nullptr && d < starts->size(); ++d)
      mark_.call = mix(mark_.call, static_cast<std::uint64_t>((*starts)[d]));
    ToldNumbers told;
    tell_numbers(extras, operands.empty() ? DType::f32 : operands[0]->type(), told);
    if (told.any()) mark_.call = mix(mark_.call, told.digest());
    if (operands.empty()) return;
    for (int i = 0; i < operands.size(); ++i) {
      const Storage* storage = operands[i]->storage().get();
      if (storage == nullptr) continue;
      mark_.operands = mix(mark_.operands, storage->history());
      if (i < 4) mark_.numbers |= (storage->number() & 0xFFFF) << (16 * i);
    }
    if (mesh().check() < Check::communicating) return;
    begin();
    mesh().agree(
        mark_.digest(), [&] { return words(); }, site.where);
  }
  Comparison(const Comparison&) = delete;
  Comparison& operator=(const Comparison&) = delete;

  /// The operator begins. Throws MismatchError.
  void begin(const Prepared& prepared) {
    if (prepared.communicates && !operands_.empty() && mesh().remembers() &&
        mesh().check() < Check::communicating)
      begin();
  }
  /// Returns the history of the result; 0 where nothing is compared.
  std::uint64_t history() const { return mesh().remembers() ? mix(mark_.digest(), ordinal_) : 0; }
  const OperatorMark& mark() const { return mark_; }

 private:
  MeshCore& mesh() const { return *mesh_under(operands_, extras_); }
  std::string words() const { return words_of(site_, operation_, operands_, extras_); }
  void begin() {
    ordinal_ = mesh().begin_operator(
        mark_, [&] { return words(); }, site_.where);
  }

  const OperandList& operands_;
  OperationView operation_;
  CallSite site_;
  const Extras& extras_;
  OperatorMark mark_;
  std::uint64_t ordinal_ = 0;
};

/// Returns the axes over which the operands of a call may differ, in manual mode.
inline AxisSet varies_among(const OperandList& operands) {
  AxisSet axes;
  for (const TensorCore* operand : operands)
    if (operand->storage() != nullptr) axes = axes | operand->storage()->varies();
  return axes;
}
/// The result may differ where an operand does.
inline void note_varies(const TensorCore& result, const OperandList& operands, bool into) {
  const AxisSet axes = varies_among(operands);
  if (axes.empty() || into || result.storage() == nullptr) return;
  for (const TensorCore* operand : operands)
    if (operand->storage() == result.storage()) return;
  result.storage()->set_varies(axes);
}

/// Sets the history of the result, unless its memory is an operand's, which keeps its own; `into`:
/// but the destination's changes. A tensor made of none gets a new one, of how it was made.
inline void remember(const TensorCore& result, const OperandList& operands, std::uint64_t history,
                     bool into = false) {
  if (operands.empty()) return (void)TensorCore::born(result, history);
  note_varies(result, operands, into);
  if (history == 0 || result.storage() == nullptr) return;
  for (const TensorCore* operand : operands)
    if (!into && operand->storage() == result.storage()) return;
  result.storage()->set_history(history);
}

}  // namespace tessera::detail
