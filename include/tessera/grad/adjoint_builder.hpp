// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What the adjoint of an operator is made of, and how it is put together (grad/adjoint.hpp).
///
///     AdjointBuilder build(call, wanted);
///     build.set(0, build.add(ops::Roll{{-by, dim}, out}, {build.cotangent()}));
///     Adjoint made = build.take();
///
/// Laws: steps are in the order in which they run; each reads the call's tensors and earlier steps.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/plan/operation.hpp>
#include <tessera/run/pull_back.hpp>

namespace tessera::detail {

/// A tensor of an adjoint: of the call, a cotangent (the gradient of a result), or one that a step
/// makes.
struct AdjointValue {
  enum class Of : std::uint8_t { none, operand, result, cotangent, step };
  Of of = Of::none;
  int number = 0;
  bool known() const { return of != Of::none; }
  bool operator==(const AdjointValue&) const = default;
};

struct AdjointStep {
  Operation operation;
  FixedVector<AdjointValue, max_operands> inputs;
  std::shared_ptr<const OwnedFunction> function;  ///< of a map, or of what makes a tensor
  Extents starts = {};                            ///< where its window begins; none: it has none
  /// Where this result of the call has no gradient, the step is left out, and `instead` stands for
  /// what it makes; -1: it never is.
  int only_with = -1;
  AdjointValue instead = {};
};

struct Adjoint {
  std::vector<AdjointStep> steps;
  FixedVector<AdjointValue, max_operands> gradients;  ///< one for each operand; Of::none: zero
  std::string missing;                                ///< why there is none
  unsigned left_open = 0;  ///< a bit for each operand whose gradient is an unfinished sum, to be
                           ///< finished with others (grad/adjoint/open_sums.hpp)
};

/// The call whose adjoint is sought, without its tensors.
struct AdjointCall {
  OperationView operation;
  TensorDescs operands, results;
  const MapKernel& kernel;
  std::string_view label;
  Extents starts = {};  ///< where its window begins; none: it has none
  /// Under which shardings the gradients of operands are wanted, and those of results come; none:
  /// under the tensors' own. A sum that is wanted unfinished may be finished as well.
  Shardings wanted = {}, coming = {};
};

/// Puts an adjoint together.
class AdjointBuilder {
 public:
  AdjointBuilder(const AdjointCall& call, unsigned wanted) : call_(call), wanted_(wanted) {
    adjoint_.gradients.resize(call.operands.size());
  }

  const AdjointCall& call() const { return call_; }
  bool wants(int operand) const { return (wanted_ >> operand & 1) != 0; }
  AdjointValue operand(int i) const { return {AdjointValue::Of::operand, i}; }
  AdjointValue result(int k = 0) const { return {AdjointValue::Of::result, k}; }
  AdjointValue cotangent(int k = 0) const { return {AdjointValue::Of::cotangent, k}; }

  TensorDesc desc(AdjointValue v) const {
    switch (v.of) {
      case AdjointValue::Of::operand:
        return call_.operands[v.number];
      case AdjointValue::Of::result:
        return call_.results[v.number];
      case AdjointValue::Of::cotangent:
        return under(call_.results, call_.coming, v.number);
      default:
        return descs_[static_cast<std::size_t>(v.number)];
    }
  }
  /// Returns the description of an operand's gradient.
  TensorDesc gradient_of(int operand) const { return under(call_.operands, call_.wanted, operand); }

  /// Adds an operator that makes an operand's gradient, and leaves sums unfinished where they may
  /// be.
  template <OperationStruct Op>
  AdjointValue add_open(int operand, Op op, const FixedVector<AdjointValue, max_operands>& inputs) {
    TensorDescs descs;
    for (const AdjointValue& v : inputs) descs.push_back(desc(v));
    for (int axis = 0; axis < max_axes; ++axis) {
      if (!open(operand).contains(axis) || op.out.used().contains(axis)) continue;
      Op one = op;
      one.out = op.out.with_partial(op.out.partial | AxisSet{axis}, Reduction::sum);
      if (one.check(descs).ok()) op = one;
    }
    return add(op, inputs);
  }
  /// Adds an operator; returns its result.
  template <OperationStruct Op>
  AdjointValue add(const Op& op, std::initializer_list<AdjointValue> inputs,
                   std::shared_ptr<const OwnedFunction> function = nullptr) {
    FixedVector<AdjointValue, max_operands> values(inputs);
    return add(op, values, std::move(function));
  }
  template <OperationStruct Op>
  AdjointValue add(const Op& op, const FixedVector<AdjointValue, max_operands>& inputs,
                   std::shared_ptr<const OwnedFunction> function = nullptr) {
    TensorDescs descs;
    for (const AdjointValue& v : inputs) descs.push_back(desc(v));
    descs_.push_back(op.results(descs)[0]);
    adjoint_.steps.push_back({op, inputs, std::move(function)});
    return {AdjointValue::Of::step, static_cast<int>(adjoint_.steps.size()) - 1};
  }
  /// Adds an operator whose window begins where the call's does.
  template <OperationStruct Op>
  AdjointValue add_window(const Op& op, std::initializer_list<AdjointValue> inputs) {
    const AdjointValue made = add(op, inputs);
    adjoint_.steps.back().starts = call_.starts;
    return made;
  }
  /// Returns the number of the next step.
  int next_step() const { return static_cast<int>(adjoint_.steps.size()); }
  /// Leaves the steps from `first` on, at least one, out where result k has no gradient; `instead`
  /// then stands for what the last of them makes: a tensor of the same description, which that step
  /// reads.
  void only_with(int k, int first, AdjointValue instead) {
    for (int step = first; step < next_step(); ++step)
      adjoint_.steps[static_cast<std::size_t>(step)].only_with = k;
    adjoint_.steps.back().instead = instead;
  }
  /// The value under another sharding.
  AdjointValue reshard(AdjointValue v, const Sharding& to);
  /// The value with finished elements.
  AdjointValue finish(AdjointValue v) { return reshard(v, desc(v).sharding.finished()); }

  /// States the gradient of an operand, resharded to what it shall have.
  void set(int operand, AdjointValue v) {
    const Sharding to = gradient_of(operand).sharding, from = desc(v).sharding;
    const bool there = from.finished() == to && (from.partial - open(operand)).empty();
    adjoint_.gradients[operand] = there ? v : reshard(v, to);
  }
  /// States that there is none, and why.
  void miss(std::string why) { adjoint_.missing = std::move(why); }
  Adjoint take() { return std::move(adjoint_); }

  static TensorDesc finished(TensorDesc desc) {
    desc.sharding = desc.sharding.finished();
    return desc;
  }

 private:
  static TensorDesc under(const TensorDescs& of, const Shardings& shardings, int i) {
    TensorDesc desc = finished(of[i]);
    if (!shardings.empty()) desc.sharding = shardings[i].finished();
    return desc;
  }
  /// Returns the axes over which an operand's gradient may be left unfinished.
  AxisSet open(int operand) const {
    return call_.wanted.empty() ? AxisSet{} : call_.wanted[operand].partial;
  }

  const AdjointCall& call_;
  unsigned wanted_;
  Adjoint adjoint_;
  std::vector<TensorDesc> descs_;  ///< of the steps' results
};

/// Has adjoint_of(op, build) make the adjoints of these operators; returns true.
template <class... Op> bool have_adjoints() {
  ((adjoint_of_operation<Op> =
        [](const void* op, AdjointBuilder& build) {
          adjoint_of(*static_cast<const Op*>(op), build);
        }),
   ...);
  return true;
}

}  // namespace tessera::detail
