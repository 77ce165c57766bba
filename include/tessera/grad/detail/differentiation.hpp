// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One call of a function that is differentiated (grad/value_and_grad.hpp).
///
///     Differentiation run(where);
///     run.follow(weights);
///     auto loss = run.forward([&] { return f(weights); });
///     run.back(loss);
///     auto gradient = run.gradient(weights);
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/grad/tape.hpp>
#include <tessera/grad/tree.hpp>

namespace tessera::detail {

/// The scalar that a function returns: its result, or the first of a tuple.
template <class R> const auto& loss_of(const R& result) {
  if constexpr (is_tensor<R>)
    return result;
  else
    return loss_of(std::get<0>(result));
}

class Differentiation {
 public:
  explicit Differentiation(Where where) : where_(where) {}

  template <class Tree> void follow(const Tree& tree) {
    for_each_tensor(tree, [&](const auto& tensor) { follow_one(tensor.core()); });
  }
  template <class F> auto forward(const F& f) {
    const TakenBy scope(&tape_);
    return f();
  }
  template <class Loss> void back(const Loss& loss) { back_from(loss.core()); }
  /// The same of a tensor whose gradient is known.
  template <class Y> void back(const Y& y, const Y& cotangent) {
    back_from(y.core(), cotangent.core());
  }
  /// Returns the gradients of a tree that is followed; trees in the order in which they were.
  template <class Tree> Tree gradient(const Tree& tree) {
    return map_tensors(tree, [&](const auto& tensor) {
      return std::decay_t<decltype(tensor)>(next(tensor.core()));
    });
  }

 private:
  TESSERA_FUNCTION void follow_one(const TensorCore& x);
  TESSERA_FUNCTION void back_from(const TensorCore& loss);
  TESSERA_FUNCTION void back_from(const TensorCore& y, const TensorCore& cotangent);
  /// Gradients of several tensors never share memory.
  TESSERA_FUNCTION TensorCore next(const TensorCore& x);

  Tape tape_;
  Where where_;
  std::vector<int> numbers_;
  std::vector<TensorCore> given_;
  int taken_ = 0;
};

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/grad/detail/differentiate.hpp>
#endif
