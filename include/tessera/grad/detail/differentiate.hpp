// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The bodies of grad/detail/differentiation.hpp.
///
///     run.back(loss)          // the adjoints, from a gradient of one on
#include <string>

#include <tessera/grad/adjoint/parts.hpp>
#include <tessera/grad/detail/differentiation.hpp>
#include <tessera/run/run.hpp>

namespace tessera::detail {

TESSERA_FUNCTION void Differentiation::follow(const TensorCore& x, const Sharding& under) {
  const MeshCore& mesh = mesh_of(x, {"value_and_grad", where_});
  const TensorDesc desc{x.type(), x.extents(), under};
  TensorCore::check_desc(mesh, desc, where_);
  follow_one(x, &under);
  followed_.push_back(x);
}

TESSERA_FUNCTION void Differentiation::follow_one_summand(const TensorCore& x) {
  const AxisSet others =
      mesh_of(x, {"value_and_grad", where_}).shape().axes() - x.sharding().used();
  const Sharding under = x.sharding().with_partial(others, Reduction::sum);
  follow_one(x, x.sharding().partial.empty() ? &under : nullptr);
}

TESSERA_FUNCTION void Differentiation::follow_one(const TensorCore& x, const Sharding* under) {
  if (repeated_ == Repeated::once) {
    followed_.push_back(x);
    const bool known = !is_differentiable(x.type()) || tape_.follows(x);
    numbers_.push_back(known ? -1 : tape_.follow(x, where_));
    return;
  }
  (void)mesh_of(x, {"value_and_grad", where_});
  if (!is_differentiable(x.type()))
    throw UsageError("the gradient by a tensor of " + std::string(name_of(x.type())) +
                         " is asked for; gradients are by floating-point and complex tensors",
                     where_);
  if (!x.sharding().partial.empty())
    throw UsageError(
        "the gradient by an unfinished tensor is asked for, whose gradient would have another "
        "type; finish it with reshard first",
        where_);
  numbers_.push_back(tape_.follow(x, where_, under));
}

TESSERA_FUNCTION void Differentiation::back_from(const TensorCore& loss) {
  if (loss.rank() != 0)
    throw UsageError("the function returns a tensor of " + to_string(loss.extents()) +
                         ", and a gradient is that of one number; reduce it, as in "
                         "sum<\"ij->\">(y), or take vjp",
                     where_);
  if (!is_differentiable(loss.type()))
    throw UsageError("the function returns " + std::string(name_of(loss.type())) +
                         ", and only floating-point and complex numbers have gradients; cast it",
                     where_);
  const int number = tape_.number_of(loss);
  if (number < 0) return;
  const TensorDesc one = AdjointBuilder::finished(loss.desc());
  tape_.seed(number, filled(loss.mesh(), one, 1, {"gradient", where_}));
  tape_.run_back();
}

TESSERA_FUNCTION void Differentiation::seed(const TensorCore& y, const TensorCore& cotangent) {
  if (!cotangent.defined()) return;
  if (!(y.extents() == cotangent.extents()) || y.type() != cotangent.type()) {
    const AxisNames& names = y.mesh()->names();
    throw UsageError("the function's result is " + to_string(y.desc(), names) +
                         ", and its gradient " + to_string(cotangent.desc(), names) +
                         "; give a tensor of the same element type and extents",
                     where_);
  }
  given_.push_back(cotangent);
  const Sharding finished = y.sharding().finished();
  const ops::Reshard move{finished};
  const int number = is_differentiable(y.type()) ? tape_.number_of(y) : -1;
  tape_.seed(number, cotangent.sharding() == finished
                         ? cotangent
                         : run({move, {&cotangent}, {"gradient", where_}}));
}

TESSERA_FUNCTION std::vector<TensorCore> Differentiation::gradients() {
  std::vector<TensorCore> all;
  for (std::size_t i = 0; i < numbers_.size(); ++i)
    all.push_back(numbers_[i] < 0 ? TensorCore()
                                  : tape_.gradient(numbers_[i], followed_[i], where_));
  return all;
}

TESSERA_FUNCTION TensorCore Differentiation::next(const TensorCore& x) {
  TensorCore g = tape_.gradient(numbers_[static_cast<std::size_t>(taken_++)], x, where_);
  for (const TensorCore& other : given_)
    if (other.storage() == g.storage()) {
      g = copied(g, {"gradient", where_});
      break;
    }
  given_.push_back(g);
  return g;
}

}  // namespace tessera::detail
