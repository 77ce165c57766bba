// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Functions whose gradient their author states: kernels of one's own, gradients that are clipped
/// or scaled on the way, and derivatives that are computed better than operator by operator.
///
///     const auto clipped = custom_gradient([](const auto& v) { return v; },
///                                          [](const auto& dy, const auto&) { return clamp(dy, -1.0f, 1.0f); });
///     auto y = clipped(x);                       // x, and its gradient is kept within -1 and 1
///
/// The second function gets the gradient of what the first returned, and the first one's arguments;
/// it returns the gradients by them: of one argument a tree like it, else a tuple, with
/// zero_gradient for an argument that has none. Where the first function returns
/// with_saved(y, what...), the second gets these in place of the arguments.
///
/// Laws: what the first function calls no gradient sees; gradients of gradients see what the second
/// one calls, and, where something is saved, what the first one calls. Source: JAX's custom_vjp.
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/grad/detail/custom_call.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {

/// Stands for the gradient by an argument that has none.
struct ZeroGradient {};
inline constexpr ZeroGradient zero_gradient{};

/// What a function returns, and what its gradient will need.
template <class Y, class... Saved> struct WithSaved {
  Y result;
  std::tuple<Saved...> saved;
};
/// Returns y, and what the gradient gets beside that of y, in place of the arguments.
/// Communication: none. Throws nothing.
template <class Y, class... Saved> WithSaved<Y, Saved...> with_saved(Y y, Saved... saved) {
  return {std::move(y), {std::move(saved)...}};
}

namespace detail {
template <class T> inline constexpr bool has_saved = false;
template <class Y, class... Saved> inline constexpr bool has_saved<WithSaved<Y, Saved...>> = true;

/// Returns what the gradient of `made` is computed from.
template <class Made, class... A> auto saved_of(const Made& made, const A&... arguments) {
  if constexpr (has_saved<Made>)
    return made.saved;
  else
    return std::tuple<A...>(arguments...);
}
template <class Made> auto result_of(const Made& made) {
  if constexpr (has_saved<Made>)
    return made.result;
  else
    return made;
}

/// Adds the tensors of a gradient by an argument to a list; undefined ones where it has none.
template <class A, class G>
void list_gradients(const G& gradient, const A& argument, std::vector<TensorCore>& list) {
  if constexpr (std::is_same_v<G, ZeroGradient>) {
    for_each_tensor([&](const auto&) { list.emplace_back(); }, argument);
  } else {
    static_assert(
        std::is_same_v<G, A>,
        "[tessera] the gradient that custom_gradient's second function returns is no tree "
        "like its argument; return one of the argument's type, of several arguments a "
        "tuple of these, or zero_gradient");
    for_each_tensor([&](const auto& tensor) { list.push_back(tensor.core()); }, gradient);
  }
}
template <class G, class... A>
std::vector<TensorCore> gradients_of(const G& gradients, const A&... arguments) {
  std::vector<TensorCore> list;
  if constexpr (sizeof...(A) == 1) {
    (list_gradients(gradients, arguments, list), ...);
  } else {
    static_assert(std::tuple_size_v<G> == sizeof...(A),
                  "[tessera] custom_gradient's second function returns another number of gradients "
                  "than the first has arguments; return a tuple with one for each");
    std::apply([&](const auto&... one) { (list_gradients(one, arguments, list), ...); }, gradients);
  }
  return list;
}
/// The tree with the tensors of a list, in its order; of those without a gradient empty ones.
template <class Tree> Tree with_tensors(const Tree& tree, const std::vector<TensorCore>& list) {
  std::size_t next = 0;
  const auto tensor_of = [&](const auto& tensor) {
    using Tensor = std::decay_t<decltype(tensor)>;
    const TensorCore& one = list[next++];
    return one.defined() ? Tensor(one) : Tensor();
  };
  return map_tensors(tensor_of, tree);
}

/// The tree with empty tensors, which keep nothing alive.
template <class Tree> Tree shape_of_tree(const Tree& tree) {
  return map_tensors([](const auto& tensor) { return std::decay_t<decltype(tensor)>(); }, tree);
}

/// A function, and what returns the gradients by its arguments: back(cotangents, made, saved,
/// arguments), trees of which `made` and `arguments` are empty.
template <class F, class Back> class OwnGradient {
 public:
  OwnGradient(F f, Back back, const char* name, Where where)
      : f_(std::move(f)), back_(std::move(back)), name_(name), where_(where) {}

  template <class... A>
    requires std::is_invocable_v<const F&, const A&...>
  auto operator()(const A&... arguments) const {
    using Made = std::decay_t<std::invoke_result_t<const F&, const A&...>>;
    CustomCall call({name_, where_}, has_saved<Made>);
    if (!call.differentiated()) return result_of(f_(arguments...));
    (for_each_tensor([&](const auto& x) { call.argument(x.core()); }, arguments), ...);
    auto made = call.forward([&] { return f_(arguments...); });
    const auto saved = saved_of(made, arguments...);
    std::apply([&](const auto&... one) { (keep(call, one), ...); }, saved);
    auto y = map_tensors(
        [&](const auto& one) { return std::decay_t<decltype(one)>(call.result(one.core())); },
        result_of(made));
    call.record([made_like = shape_of_tree(y), saved,
                 given = std::tuple<A...>(shape_of_tree(arguments)...),
                 back = back_](const std::vector<TensorCore>& cotangents) {
      return back(cotangents, made_like, saved, given);
    });
    return y;
  }

 private:
  template <class T> static void keep(CustomCall& call, const T& saved) {
    if constexpr (is_tree<T>) for_each_tensor([&](const auto& x) { call.keep(x.core()); }, saved);
  }

  F f_;
  Back back_;
  const char* name_;
  Where where_;
};
}  // namespace detail

/// Returns a function that is f, and whose gradient is back(dy, arguments...). Arguments and result
/// are trees of tensors; what f reads beside its arguments has no gradient. Communication: that of
/// f and back. Collective over the mesh. Throws UsageError where f reads a tensor that is
/// differentiated and is not among its arguments, or returns an unfinished one.
template <class F, class Back>
auto custom_gradient(F&& f, Back&& back, Where where = Where::here()) {
  const auto run = [own = std::decay_t<Back>(std::forward<Back>(back))](
                       const std::vector<TensorCore>& cotangents, const auto& y, const auto& saved,
                       const auto& given) {
    const auto dy = detail::with_tensors(y, cotangents);
    const auto gradients = std::apply([&](const auto&... one) { return own(dy, one...); }, saved);
    return std::apply(
        [&](const auto&... argument) { return detail::gradients_of(gradients, argument...); },
        given);
  };
  return detail::OwnGradient<std::decay_t<F>, std::decay_t<decltype(run)>>(
      std::forward<F>(f), run, "custom_gradient", where);
}

}  // namespace tessera
