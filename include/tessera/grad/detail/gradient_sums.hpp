// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The bodies of grad/tape.hpp that add the gradients of one value.
///
///     add_gradient(number, g, site);      // one sum for each sharding
///     total(number, site);                // finished, and added
///
/// Laws: a value's gradient is complete, and finished, when the adjoint of its first reader is
/// done. With half types a sum of two and more is float until the last gradient has come, and is
/// rounded then: k gradients of n elements take k - 1 maps as for other types, which keep 4 n bytes
/// in place of 2 n from the second to the last but one. A sum that is finished under another
/// sharding is rounded before it moves.
#include <tuple>
#include <utility>
#include <vector>

#include <tessera/grad/adjoint/open_sums.hpp>
#include <tessera/grad/tape.hpp>
#include <tessera/run/run.hpp>
#include <tessera/run/whole_view.hpp>

namespace tessera::detail {

/// sum + x, as elements `to`.
inline TensorCore added(const TensorCore& sum, const TensorCore& x, DType to, CallSite site) {
  return applied(addition(sum.type(), x.type(), to), {&sum, &x}, to, site);
}

inline void Tape::add_gradient(int number, const TensorCore& given, CallSite site, bool left_open,
                               bool last) {
  const Sharding wanted = wanted_[static_cast<std::size_t>(number)].finished();
  TensorCore g = given;
  if (!left_open && !(g.sharding().finished() == wanted))
    g = run({ops::Reshard{wanted}, {&given}, site});
  g = as_varying(g, varies_[static_cast<std::size_t>(number)]);
  std::vector<TensorCore>& sums = sums_[static_cast<std::size_t>(number)];
  for (TensorCore& sum : sums)
    if (sum.sharding() == g.sharding() && sum.storage()->varies() == g.storage()->varies()) {
      sum = added(sum, g, last ? g.type() : facts_of(g.type()).compute, site);
      return;
    }
  sums.push_back(g);
}

TESSERA_FUNCTION TensorCore Tape::total(int number, CallSite site) {
  const Sharding& wanted = wanted_[static_cast<std::size_t>(number)];
  std::vector<TensorCore>& sums = sums_[static_cast<std::size_t>(number)];
  if (sums.empty()) return {};
  AxisSet open = wanted.partial;  // what is open in all of them may stay so
  for (const TensorCore& sum : sums) open = open & sum.sharding().partial;
  const Sharding to = wanted.finished().with_partial(open, Reduction::sum);
  const AxisSet varies = varies_[static_cast<std::size_t>(number)];
  const AxisSet of_first = sums[0].storage()->varies();
  bool parts = takes_parts_[static_cast<std::size_t>(number)];
  for (const TensorCore& sum : sums) parts = parts && sum.storage()->varies() == of_first;
  TensorCore all;
  for (TensorCore& sum : sums) {
    TensorCore one =
        converted(std::exchange(sum, {}), types_[static_cast<std::size_t>(number)], site);
    if (!(one.sharding() == to)) one = run({ops::Reshard{to}, {&one}, site});
    if (const AxisSet over = one.storage()->varies() - varies; !parts && !over.empty())
      one = summed_over(one, over, {site.label, site.where, Contract{}});
    all = all.defined() ? added(all, one, one.type(), site) : one;
  }
  sums.assign(1, all);
  return all;
}

/// What a value of an adjoint is.
inline TensorDesc Tape::desc_of(const Node& node, AdjointValue v) {
  const auto at = static_cast<std::size_t>(v.number);
  if (v.of == AdjointValue::Of::cotangent) return AdjointBuilder::finished(node.made[at]);
  if (v.of == AdjointValue::Of::step) {
    const AdjointStep& step = node.adjoint.steps[at];
    return step.operation.results(reads_of(node, step))[0];
  }
  for (const Kept& kept : node.kept)
    if (kept.as == v) return kept.tensor.desc();
  return {};
}
inline TensorDescs Tape::reads_of(const Node& node, const AdjointStep& step) {
  TensorDescs reads;
  for (const AdjointValue& v : step.inputs) reads.push_back(desc_of(node, v));
  return reads;
}

inline int Tape::passes_to(const Node& node) {
  if (node.back != nullptr || node.results.size() != 1 || node.results[0] < 0) return -1;
  return detail::passes_to(node.adjoint, node.made[0].type);
}

/// A reader of a value, behind nodes that pass its gradient on.
struct Tape::Passage {
  std::vector<std::size_t> through;
  std::size_t node;
  int operand;
};

TESSERA_FUNCTION void Tape::leave_sums_open() {
  std::vector<std::vector<std::pair<std::size_t, int>>> readers(sums_.size());
  std::vector<int> gradients(sums_.size());  // of each value, stated ones too
  last_reader_.assign(sums_.size(), nodes_.size());
  for (std::size_t v = 0; v < sums_.size(); ++v) gradients[v] = sums_[v].empty() ? 0 : 1;
  for (std::size_t n = nodes_.size(); n-- > 0;) {
    const Node& node = nodes_[n];
    bool any = false;
    for (const int number : node.results)
      any = any || (number >= 0 && gradients[static_cast<std::size_t>(number)] > 0);
    if (!any) continue;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      if (node.operands[i] < 0) continue;
      const auto number = static_cast<std::size_t>(node.operands[i]);
      const bool stated = node.back != nullptr;
      if (!stated && !node.adjoint.gradients[static_cast<int>(i)].known()) continue;
      ++gradients[number];
      last_reader_[number] = n;
      if (!stated) readers[number].emplace_back(n, static_cast<int>(i));
    }
  }
  for (const auto& of_one : readers) {
    if (of_one.size() < 2 || finish_ == FinishSums::each) continue;
    std::vector<Summand> summands;
    std::vector<Passage> from;
    for (const auto& [reader, operand] : of_one) {
      Summand one{nullptr, {}};
      Passage way{{}, reader, operand};
      // Through values that one operator reads, to the one that makes the sum.
      while (passes_to(nodes_[way.node]) == way.operand) {
        const Node& passed = nodes_[way.node];
        const auto value = static_cast<std::size_t>(passed.results[0]);
        if (gradients[value] != 1 || readers[value].empty()) break;
        if (!passed.adjoint.steps.empty())
          one.passes.insert(one.passes.begin(), passed.adjoint.steps[0].operation);
        way.through.push_back(way.node);
        std::tie(way.node, way.operand) = readers[value].front();
      }
      Adjoint& adjoint = nodes_[way.node].adjoint;
      const AdjointValue made = adjoint.gradients[way.operand];
      if (made.of != AdjointValue::Of::step) continue;
      int uses = 0;
      for (const AdjointStep& step : adjoint.steps) uses += step.inputs.contains(made);
      for (const AdjointValue& g : adjoint.gradients) uses += g == made;
      AdjointStep& step = adjoint.steps[static_cast<std::size_t>(made.number)];
      if (uses > 1) continue;
      one.made_by = &step.operation;
      one.reads = reads_of(nodes_[way.node], step);
      summands.push_back(std::move(one));
      from.push_back(std::move(way));
    }
    if (summands.size() < 2) continue;
    // What takes more memory unfinished does so for a short while alone.
    const bool near = from.front().node - from.back().node <= 4 * (from.size() - 1);
    const MeshCore& mesh = *nodes_[from[0].node].mesh;
    leave_open(summands, mesh.shape(), plan_options(mesh),
               near ? OpenScatters::yes : OpenScatters::no);
    for (std::size_t k = 0; k < from.size(); ++k) {
      if (!summands[k].left_open) continue;
      const Passage& way = from[k];
      nodes_[way.node].adjoint.left_open |= 1u << way.operand;
      for (const std::size_t n : way.through) {
        nodes_[n].adjoint.left_open |= 1u << passes_to(nodes_[n]);
        wanted_[static_cast<std::size_t>(nodes_[n].results[0])] =
            summands[k].made_by->results(summands[k].reads)[0].sharding;
      }
    }
  }
}

}  // namespace tessera::detail
