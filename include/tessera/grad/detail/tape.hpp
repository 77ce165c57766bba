// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The bodies of grad/tape.hpp.
///
///     tape.take(r)        // runs r, and records its adjoint where an operand is followed
#include <string>
#include <utility>

#include <tessera/grad/adjoint/parts.hpp>
#include <tessera/grad/adjoint/wanted.hpp>
#include <tessera/grad/detail/gradient_sums.hpp>
#include <tessera/grad/detail/stated_gradient.hpp>
#include <tessera/grad/detail/tape_values.hpp>
#include <tessera/grad/tape.hpp>
#include <tessera/run/run.hpp>

namespace tessera::detail {

TESSERA_FUNCTION int Tape::follow(const TensorCore& x, Where where, const Sharding* under) {
  if (number_of(x) >= 0)
    throw UsageError(
        "one tensor is given twice, and its gradient by each place cannot be told apart; give the "
        "function the tensor once, and let it use it twice",
        where);
  return add_value(x, under);
}

TESSERA_FUNCTION void Tape::refuse(CallSite site) const {
  throw UsageError(std::string(site.label) +
                       ": a block is copied or its halo refreshed inside a function that is "
                       "differentiated, and its gradient would be lost; call halo_exchange, and "
                       "give its result to operators as it is, or do this before",
                   site.where);
}

/// The gradient of what is pinned may lie otherwise.
TESSERA_FUNCTION void Tape::pin(const TensorCore& x, const OpenSharding& to, Where where) {
  const TakenBy scope(outer_);
  pin_tensor(x, to, where);
}

inline unsigned Tape::followed(const OperandList& operands) {
  unsigned bits = 0;
  for (int i = 0; i < operands.size(); ++i)
    if (is_differentiable(operands[i]->type()) && number_of(*operands[i]) >= 0) bits |= 1u << i;
  return bits;
}

TESSERA_FUNCTION TensorCore Tape::take(const Request& r) {
  const TakenBy outer(outer_);
  const auto* const product = r.operation.get_if<ops::Einsum>();
  if (product != nullptr && product->epilogue && followed(r.operands) != 0) return take_epilogue(r);
  return take_one(r);
}

/// A product and its epilogue, one after the other: the adjoint of the function needs the product.
TESSERA_FUNCTION TensorCore Tape::take_epilogue(const Request& r) {
  const auto& whole = *r.operation.get_if<ops::Einsum>();
  const int factors = whole.terms.operands.size();
  const ops::Einsum alone{whole.terms, whole.out};
  Request product{alone, {}, r.site};
  TensorDescs extras;
  for (int i = 0; i < r.operands.size(); ++i)
    if (i < factors)
      product.operands.push_back(r.operands[i]);
    else
      extras.push_back(r.operands[i]->desc());
  const TensorCore made = take_one(product);
  const Terms all = with_extras(whole.terms, extras);
  Terms terms{{whole.terms.result}, whole.terms.result};
  OperandList operands{&made};
  for (int i = factors; i < r.operands.size(); ++i) {
    terms.operands.push_back(all.operands[i]);
    operands.push_back(r.operands[i]);
  }
  const ops::Map after{terms, whole.type, whole.adds ? Linearity::linear : Linearity::pointwise,
                       whole.out, r.extras.kernel.reads_index};
  return take_one({after, operands, r.site, r.extras});
}

TESSERA_FUNCTION TensorCore Tape::take_copied(const Request& r) {
  Request alone = r;
  alone.extras.into = nullptr;
  alone.extras.destination = Destination::fresh;
  const TensorCore made = take_one(alone);
  const Term letters = letters_of(made.desc());
  const auto copy = conversion(made.type(), made.type());
  Extras extras = into(*r.extras.into);
  extras.kernel = copy->kernel();
  const ops::Map map{{{letters}, letters}, made.type(), Linearity::linear, made.sharding()};
  return take_one({map, {&made}, r.site, extras});
}

TESSERA_FUNCTION TensorCore Tape::take_one(const Request& r) {
  const unsigned wanted = followed(r.operands);
  std::vector<TensorCore> also;
  Request all = r;
  if (wanted != 0 && all.extras.also == nullptr &&
      r.operation.results(descs_of(r.operands)).size() > 1) {
    if (r.extras.into != nullptr) return take_copied(r);
    all.extras.also = &also;
  }
  const TensorCore result = run(all);
  if (wanted != 0) {
    std::vector<TensorCore> results{result};
    if (all.extras.also != nullptr)
      results.insert(results.end(), all.extras.also->begin(), all.extras.also->end());
    record(r, results, wanted);
  }
  if (r.extras.into != nullptr) {
    const Storage* const memory = memory_of(*r.extras.into);
    ++writes_[memory];
    if (r.extras.destination == Destination::given) written_.erase(memory);
    if (wanted == 0) memories_.erase(memory);
  }
  return result;
}

TESSERA_FUNCTION void Tape::record(const Request& r, const std::vector<TensorCore>& results,
                                   unsigned wanted) {
  bool differentiable = false;
  TensorDescs made;
  for (const TensorCore& result : results) {
    differentiable = differentiable || is_differentiable(result.type());
    made.push_back(result.desc());
  }
  const bool into = r.extras.into != nullptr;
  if (!differentiable) return;
  if (!into && results.size() == 1 && results[0].storage() == r.operands[0]->storage() &&
      results[0].desc() == r.operands[0]->desc())
    return;  // the operand itself
  Node node;
  const std::string label(r.site.label);
  AdjointCall call{r.operation, descs_of(r.operands), made, r.extras.kernel, label};
  if (r.extras.starts != nullptr) call.starts = *r.extras.starts;
  for (int i = 0; i < r.operands.size(); ++i)
    call.wanted.push_back((wanted >> i & 1) != 0
                              ? wanted_[static_cast<std::size_t>(number_of(*r.operands[i]))]
                              : r.operands[i]->sharding().finished());
  call.coming = into ? finished_shardings(made) : coming(call);
  node.adjoint = adjoint(call, wanted);
  bool any = !node.adjoint.missing.empty();
  for (const AdjointValue& g : node.adjoint.gradients) any = any || g.known();
  if (!any) {  // a constant
    if (into) memories_.erase(memory_of(*r.extras.into));
    return;
  }
  for (int i = 0; i < r.operands.size(); ++i)
    node.operands.push_back((wanted >> i & 1) != 0 ? number_of(*r.operands[i]) : -1);
  for (const AdjointStep& step : node.adjoint.steps)
    for (const AdjointValue& v : step.inputs) {
      const bool operand = v.of == AdjointValue::Of::operand;
      if (!operand && v.of != AdjointValue::Of::result) continue;
      bool known = false;
      for (const Kept& kept : node.kept) known = known || kept.as == v;
      if (known) continue;
      const TensorCore& tensor =
          operand ? *r.operands[v.number] : results[static_cast<std::size_t>(v.number)];
      // A destination has been written by now: an operand in it is gone, a result is in it.
      const bool written = into && memory_of(tensor) == memory_of(*r.extras.into);
      node.kept.push_back({v, tensor, writes_[memory_of(tensor)] + (written && !operand ? 1 : 0)});
    }
  if (into) memories_.erase(memory_of(*r.extras.into));
  // A gradient that may be left unfinished may come so, where the operator passes it on.
  if (const int to = made.size() == 1 && !into ? detail::passes_to(node.adjoint, made[0].type) : -1;
      to >= 0 && call.coming[0] == call.wanted[to].finished())
    call.coming[0] = call.wanted[to];
  for (int k = 0; k < made.size(); ++k) {
    const TensorCore& result = results[static_cast<std::size_t>(k)];
    made[k].sharding = call.coming[k];
    node.results.push_back(is_differentiable(result.type()) ? add_value(result, &call.coming[k])
                                                            : -1);
  }
  node.made.assign(made.begin(), made.end());
  node.mesh = r.mesh();
  add_node(std::move(node), r.site);
}

inline void Tape::add_node(Node node, CallSite site) {
  node.label = "gradient of " + std::string(site.label);
  node.where = site.where;
  if (const OpenLayer* const open = innermost_layer(*node.mesh); open != nullptr)
    node.layers = std::make_unique<LayerPath>(*open);
  nodes_.push_back(std::move(node));
}

inline void Tape::require_unwritten(const Node& node, const Kept& kept) {
  if (writes_[memory_of(kept.tensor)] != kept.writes)
    throw UsageError(node.label +
                         ": it needs a tensor that was overwritten after the call; write to "
                         "another tensor, or copy this one before",
                     node.where);
}

inline bool Tape::gives_last(const Node& node, std::size_t number_of_node,
                             std::size_t operand) const {
  const int number = node.operands[operand];
  for (std::size_t i = operand + 1; i < node.operands.size(); ++i)
    if (node.operands[i] == number) return false;
  return last_reader_[static_cast<std::size_t>(number)] == number_of_node;
}

TESSERA_FUNCTION void Tape::run_back(Node& node, std::size_t number_of_node) {
  const CallSite site{node.label, node.where};
  std::vector<TensorCore> cotangents;
  bool any = false;
  for (const int number : node.results) {
    cotangents.push_back(number >= 0 ? total(number, site) : TensorCore());
    if (number >= 0) sums_[static_cast<std::size_t>(number)].clear();
    any = any || cotangents.back().defined();
  }
  if (!any) return;
  unsigned absent = 0;
  for (std::size_t k = 0; k < cotangents.size(); ++k)
    if (!cotangents[k].defined()) absent |= 1u << k;
  const auto cotangent = [&](std::size_t k) -> const TensorCore& {
    TensorCore& g = cotangents[k];
    if (!g.defined()) g = filled(node.mesh, AdjointBuilder::finished(node.made[k]), 0, site);
    return g;
  };
  if (!node.adjoint.missing.empty())
    throw UsageError(node.label + ": " + node.adjoint.missing, node.where);
  OpenAgain layers(*node.mesh);
  layers.open(node.layers.get());
  // A sum is finished when its last summand is there.
  const auto finish = [&] {
    for (const int number : node.operands)
      if (number >= 0 && last_reader_[static_cast<std::size_t>(number)] == number_of_node)
        (void)total(number, site);
  };
  if (node.back) {
    for (const Kept& kept : node.kept) require_unwritten(node, kept);
    for (std::size_t k = 0; k < cotangents.size(); ++k)
      if (node.results[k] >= 0) (void)cotangent(k);
    run_stated(node, number_of_node, cotangents, site);
    return finish();
  }
  const std::vector<AdjointStep>& steps = node.adjoint.steps;
  std::vector<TensorCore> made(steps.size());
  const auto value = [&](AdjointValue v) -> const TensorCore& {
    const auto at = static_cast<std::size_t>(v.number);
    if (v.of == AdjointValue::Of::step) return made[at];
    if (v.of == AdjointValue::Of::cotangent) return cotangent(at);
    for (const Kept& kept : node.kept) {
      if (!(kept.as == v)) continue;
      require_unwritten(node, kept);
      return kept.tensor;
    }
    throw UsageError(node.label + ": a value of the adjoint is missing", node.where);
  };
  std::vector<std::size_t> last(steps.size(), 0);  // which step reads each one's result last
  const auto used = [&](AdjointValue v, std::size_t by) {
    if (v.of == AdjointValue::Of::step) last[static_cast<std::size_t>(v.number)] = by;
  };
  for (std::size_t k = 0; k < steps.size(); ++k)
    for (const AdjointValue& v : steps[k].inputs) used(v, k);  // `instead` is one of them
  for (const AdjointValue& g : node.adjoint.gradients) used(g, steps.size());
  const auto release = [&](std::size_t k) {
    for (const AdjointValue& v : steps[k].inputs)
      if (const auto step = static_cast<std::size_t>(v.number);
          v.of == AdjointValue::Of::step && last[step] == k)
        made[step] = TensorCore();
  };
  for (std::size_t k = 0; k < steps.size(); ++k) {
    if (steps[k].only_with >= 0 && (absent >> steps[k].only_with & 1) != 0) {
      if (steps[k].instead.known()) made[k] = value(steps[k].instead);
      release(k);
      continue;
    }
    OperandList operands;
    for (const AdjointValue& v : steps[k].inputs) operands.push_back(&value(v));
    Extras extras{.mesh = &node.mesh};
    if (steps[k].function != nullptr) extras.kernel = steps[k].function->kernel();
    if (!steps[k].starts.empty()) extras.starts = &steps[k].starts;
    const Sharding sum = operands.empty() ? Sharding{} : operands[0]->sharding();
    const bool passes = !sum.partial.empty() && passes_to(node) >= 0;
    made[k] = passes ? run({passing(steps[k].operation, sum), operands, site, extras})
                     : run({steps[k].operation, operands, site, extras});
    release(k);
  }
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    if (const AdjointValue g = node.adjoint.gradients[static_cast<int>(i)];
        node.operands[i] >= 0 && g.known())
      add_gradient(node.operands[i], value(g), site, (node.adjoint.left_open >> i & 1) != 0,
                   gives_last(node, number_of_node, i));
  made.clear();
  finish();
}

TESSERA_FUNCTION void Tape::seed(int number, const TensorCore& gradient) {
  const TakenBy outer(outer_);
  if (number >= 0) add_gradient(number, gradient, {"gradient", {}});
}

TESSERA_FUNCTION void Tape::run_back() {
  const TakenBy outer(outer_);
  leave_sums_open();
  while (!nodes_.empty()) {
    Node node = std::move(nodes_.back());
    nodes_.pop_back();  // with the tensors that it keeps
    run_back(node, nodes_.size());
  }
}

TESSERA_FUNCTION TensorCore Tape::gradient(int number, const TensorCore& of, Where where) {
  const TakenBy outer(outer_);
  if (const TensorCore g = total(number, {"gradient", where}); g.defined()) return g;
  const TensorDesc zeros{of.type(), of.extents(),
                         wanted_[static_cast<std::size_t>(number)].finished()};
  return filled(of.mesh(), zeros, 0, {"gradient", where});
}

}  // namespace tessera::detail
