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
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/grad/tape.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera::detail {

/// The scalar that a function returns: its result, or the first of a tuple.
template <class R> const auto& loss_among(const R& result) {
  if constexpr (is_tensor<R>)
    return result;
  else
    return loss_among(std::get<0>(result));
}

/// What becomes of arguments without a gradient, and of tensors that are given twice: an error, or
/// no gradient, and all of it at the first place.
enum class Repeated : std::uint8_t { refused, once };

/// Has the kernels compiled that gradients by tensors of elements T need beside those of the
/// function: what was taken, sorted, scanned or selected goes back by them.
template <class T> void use_gradients_of() {
  if constexpr (RealElement<T> || ComplexElement<T>) {
    use_indexed<T>();
    use_rows_of<T>();
    use_select_scatter_of<T>();
  }
}

class Differentiation {
 public:
  explicit Differentiation(Where where, Repeated repeated = Repeated::refused,
                           FinishSums finish = FinishSums::together)
      : tape_(finish), where_(where), repeated_(repeated) {}

  template <class Tree> void follow(const Tree& tree) {
    follow_each(tree, [&](const TensorCore& x) { follow_one(x); });
  }
  /// Follows tensors whose gradients are added to others': sums over axes over which a tensor is
  /// equal may be left unfinished.
  template <class Tree> void follow_summand(const Tree& tree) {
    follow_each(tree, [&](const TensorCore& x) { follow_one_summand(x); });
  }
  /// Follows a tensor whose gradient is wanted under another sharding.
  TESSERA_FUNCTION void follow(const TensorCore& x, const Sharding& under);
  template <class F> auto forward(const F& f) {
    const TakenBy scope(&tape_);
    const WatchedBy views(&tape_);
    return f();
  }
  template <class Loss> void back(const Loss& loss) { back_from(loss.core()); }
  /// Goes back from a tree whose gradient is known.
  template <class Y> void back(const Y& y, const Y& cotangent) {
    for_each_tensor([&](const auto& one, const auto& its) { seed(one.core(), its.core()); }, y,
                    cotangent);
    tape_.run_back();
  }
  /// Returns the gradients of a tree that is followed; trees in the order in which they were.
  template <class Tree> Tree gradient(const Tree& tree) {
    return map_tensors(
        [&](const auto& tensor) { return std::decay_t<decltype(tensor)>(next(tensor.core())); },
        tree);
  }
  /// Returns the gradients one after the other, perhaps unfinished.
  template <class Tree> std::vector<TensorCore> summands(const Tree& tree) {
    std::vector<TensorCore> all;
    for_each_tensor([&](const auto& tensor) { all.push_back(next(tensor.core())); }, tree);
    return all;
  }
  /// Returns those of all tensors that were followed; undefined where there is none.
  TESSERA_FUNCTION std::vector<TensorCore> gradients();

 private:
  template <class Tree, class Follow>
  static void follow_each(const Tree& tree, const Follow& follow) {
    for_each_tensor(
        [&](const auto& tensor) {
          using Tensor = std::decay_t<decltype(tensor)>;
          if constexpr (TypedTensor<Tensor>) use_gradients_of<typename Tensor::value_type>();
          follow(tensor.core());
        },
        tree);
  }
  TESSERA_FUNCTION void follow_one(const TensorCore& x, const Sharding* under = nullptr);
  TESSERA_FUNCTION void follow_one_summand(const TensorCore& x);
  TESSERA_FUNCTION void back_from(const TensorCore& loss);
  TESSERA_FUNCTION void seed(const TensorCore& y, const TensorCore& cotangent);
  /// Gradients of several tensors never share memory.
  TESSERA_FUNCTION TensorCore next(const TensorCore& x);

  Tape tape_;
  Where where_;
  Repeated repeated_;
  std::vector<int> numbers_;
  std::vector<TensorCore> followed_;
  std::vector<TensorCore> given_;
  int taken_ = 0;
};

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/grad/detail/differentiate.hpp>
#endif
