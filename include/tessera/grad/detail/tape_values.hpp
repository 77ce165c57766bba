// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The bodies of grad/tape.hpp that tell tensors apart: a value has a number.
///
///     tape.number_of(x)       // -1: it depends on no argument
///
/// Laws: tensors are told apart by their memory, and those that are seen in one memory by their
/// descriptions, by their meshes, and by the axes over which they vary in manual mode.
#include <string>
#include <utility>

#include <tessera/grad/tape.hpp>

namespace tessera::detail {

inline int Tape::add_value(const TensorCore& x, const Sharding* under) {
  const int number = static_cast<int>(sums_.size());
  sums_.emplace_back();
  types_.push_back(x.type());
  wanted_.push_back(under != nullptr ? *under : x.sharding().finished());
  varies_.push_back(x.storage()->varies());
  takes_parts_.push_back(false);
  Memory& memory = memories_[memory_of(x)];
  if (memory.seen.empty() || x.storage()->root() == x.storage().get()) memory.storage = x.storage();
  for (Seen& seen : memory.seen)
    if (seen.is(x)) {
      seen.number = number;
      return number;
    }
  memory.seen.push_back({x.desc(), x.mesh().get(), x.storage()->varies(), number});
  return number;
}

TESSERA_FUNCTION int Tape::number_of(const TensorCore& x) {
  const auto found = memories_.find(memory_of(x));
  if (found == memories_.end()) return number_of_written(x);
  const Memory& memory = found->second;
  const Seen* other = nullptr;
  for (const Seen& seen : memory.seen) {
    if (seen.is(x)) return seen.number;
    if (other == nullptr && seen.mesh == x.mesh().get()) other = &seen;
  }
  if (other == nullptr)
    throw UsageError(
        "a tensor that is differentiated is seen on the mesh " + x.mesh()->to_string() +
        " by a manual function that ran before, so that its gradient would be lost; call the "
        "manual function within the function that is differentiated");
  // The block is seen with other dimensions, by no operator: that is a reshape.
  const TensorDesc desc = other->desc;
  const int number = other->number;
  const int seen = add_value(x);
  Node node;
  const ops::Reshape reshape{x.extents(), x.sharding()};
  const MapKernel none;
  node.adjoint = adjoint({.operation = reshape,
                          .operands = {desc},
                          .results = {x.desc()},
                          .kernel = none,
                          .label = "view",
                          .wanted = {wanted_[static_cast<std::size_t>(number)]}},
                         1);
  node.operands.push_back(number);
  node.results.push_back(seen);
  node.made.push_back(x.desc());
  node.label = "gradient of a view";
  node.mesh = x.mesh();
  nodes_.push_back(std::move(node));
  return seen;
}

TESSERA_FUNCTION void Tape::viewed(const TensorCore& x, bool writes, Where where) {
  if (outer_watch_ != nullptr) outer_watch_->viewed(x, writes, where);
  if (follows(x)) {
    read_ = true;
    read_at_ = where;
  } else if (writes && is_differentiable(x.type())) {
    written_[memory_of(x)] = {x.storage(), where};
  }
}

inline int Tape::number_of_written(const TensorCore& x) {
  const auto found = read_ ? written_.find(memory_of(x)) : written_.end();
  if (found == written_.end()) return -1;
  const Where where = found->second.where;
  const int number = add_value(x);
  Node node;
  node.adjoint.missing =
      "its memory was viewed to be written, or adopted, at " + to_string(where) +
      ", and a tensor that depends on an argument was viewed at " + to_string(read_at_) +
      ", so that a kernel may have made the one from the other, which no gradient sees; call the "
      "kernel within custom_gradient, which states its gradient, or let it read stop_gradient of "
      "the tensor where there is none (to_host and value are no views)";
  node.results.push_back(number);
  node.made.push_back(x.desc());
  node.label = "gradient of " + to_string(x.desc(), x.mesh()->names());
  node.where = where;
  node.mesh = x.mesh();
  nodes_.push_back(std::move(node));
  return number;
}

TESSERA_FUNCTION bool Tape::follows(const TensorCore& x) const {
  return is_differentiable(x.type()) && memories_.contains(memory_of(x));
}

}  // namespace tessera::detail
