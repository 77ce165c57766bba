// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The bodies of grad/tape.hpp that add the gradients of one value.
///
///     add_gradient(number, g, site);      // one sum for each sharding
///     total(number, site);                // finished, and added
///
/// Laws: a value's gradient is complete, and finished, when the adjoint of its first reader is
/// done.
#include <utility>
#include <vector>

#include <tessera/grad/adjoint/open_sums.hpp>
#include <tessera/grad/tape.hpp>
#include <tessera/run/run.hpp>

namespace tessera::detail {

inline void Tape::add_gradient(int number, const TensorCore& given, CallSite site, bool left_open) {
  const Sharding wanted = wanted_[static_cast<std::size_t>(number)].finished();
  TensorCore g = given;
  if (!left_open && !(g.sharding().finished() == wanted))
    g = run({ops::Reshard{wanted}, {&given}, site});
  std::vector<TensorCore>& sums = sums_[static_cast<std::size_t>(number)];
  for (TensorCore& sum : sums)
    if (sum.sharding() == g.sharding()) {
      sum = applied(function_of<2>(g.type(), fn::Add{}), {&sum, &g}, site);
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
  TensorCore all;
  for (TensorCore& sum : sums) {
    TensorCore one = std::move(sum);
    if (!(one.sharding() == to)) one = run({ops::Reshard{to}, {&one}, site});
    all = all.defined() ? applied(function_of<2>(one.type(), fn::Add{}), {&all, &one}, site) : one;
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

TESSERA_FUNCTION void Tape::leave_sums_open() {
  std::vector<std::vector<std::pair<std::size_t, int>>> readers(sums_.size());
  last_reader_.assign(sums_.size(), nodes_.size());
  std::vector<bool> reached;
  for (const auto& sums : sums_) reached.push_back(!sums.empty());
  for (std::size_t n = nodes_.size(); n-- > 0;) {
    const Node& node = nodes_[n];
    bool any = false;
    for (const int number : node.results)
      any = any || (number >= 0 && reached[static_cast<std::size_t>(number)]);
    if (!any) continue;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      if (node.operands[i] < 0) continue;
      const auto number = static_cast<std::size_t>(node.operands[i]);
      const bool stated = node.back != nullptr;
      if (!stated && !node.adjoint.gradients[static_cast<int>(i)].known()) continue;
      reached[number] = true;
      last_reader_[number] = n;
      if (!stated) readers[number].emplace_back(n, static_cast<int>(i));
    }
  }
  for (const auto& of_one : readers) {
    if (of_one.size() < 2 || finish_ == FinishSums::each) continue;
    std::vector<Summand> summands;
    std::vector<std::pair<std::size_t, int>> from;
    for (const auto& [n, i] : of_one) {
      Adjoint& adjoint = nodes_[n].adjoint;
      const AdjointValue made = adjoint.gradients[i];
      if (made.of != AdjointValue::Of::step) continue;
      int uses = 0;
      for (const AdjointStep& step : adjoint.steps) uses += step.inputs.contains(made);
      for (const AdjointValue& g : adjoint.gradients) uses += g == made;
      AdjointStep& step = adjoint.steps[static_cast<std::size_t>(made.number)];
      if (uses > 1) continue;
      summands.push_back({&step.operation, reads_of(nodes_[n], step)});
      from.emplace_back(n, i);
    }
    if (summands.size() < 2) continue;
    // What takes more memory unfinished does so for a short while alone.
    const bool near = from.front().first - from.back().first <= 4 * (from.size() - 1);
    const MeshCore& mesh = *nodes_[from[0].first].mesh;
    leave_open(summands, mesh.shape(), plan_options(mesh),
               near ? OpenScatters::yes : OpenScatters::no);
    for (std::size_t k = 0; k < from.size(); ++k)
      if (summands[k].left_open) nodes_[from[k].first].adjoint.left_open |= 1u << from[k].second;
  }
}

}  // namespace tessera::detail
