// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Trees of tensors: a tensor, or a vector, array, pair, tuple or struct of trees.
///
///     struct Layer {
///       Tensor<data, model> weight;
///       Tensor<model> bias;
///       static constexpr auto fields = std::tuple(&Layer::weight, &Layer::bias);
///     };
///     for_each_tensor(layer, [](const auto& tensor) { … });
///     Layer doubled = map_tensors(layer, [](const auto& tensor) { return tensor + tensor; });
///
/// Laws: tensors are visited in the order in which they are declared; the tree that map_tensors
/// returns has the same shape.
#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/tensor/sharded_tensor.hpp>

namespace tessera {
namespace detail {
template <class T>
inline constexpr bool is_tensor = TypedTensor<T> || std::same_as<T, DynamicTensor>;
template <class T>
concept HasFields = requires {
  std::tuple_size<std::remove_cvref_t<decltype(T::fields)>>::value;
};
template <class T>
concept TupleLike = requires {
  std::tuple_size<T>::value;
};
template <class T>
concept Resizable = requires(T x) {
  x.push_back(*x.begin());
};

template <class T>
inline constexpr bool is_tree = is_tensor<T> || HasFields<T> || Resizable<T> || TupleLike<T>;

template <class T> struct NoTree {
  static consteval bool said() {
    static_assert(never<T>,
                  "[tessera] the type is no tree of tensors; take a tensor, a vector, array, pair "
                  "or tuple of trees, or give the struct `static constexpr auto fields = "
                  "std::tuple(&S::member, ...)`");
    return true;
  }
};
}  // namespace detail

/// Calls f(tensor) for each tensor of a tree.
template <class Tree, class F> void for_each_tensor(const Tree& tree, F&& f) {
  if constexpr (detail::is_tensor<Tree>) {
    f(tree);
  } else if constexpr (detail::HasFields<Tree>) {
    std::apply([&](auto... field) { (for_each_tensor(tree.*field, f), ...); }, Tree::fields);
  } else if constexpr (detail::Resizable<Tree>) {
    for (const auto& one : tree) for_each_tensor(one, f);
  } else if constexpr (detail::TupleLike<Tree>) {
    std::apply([&](const auto&... one) { (for_each_tensor(one, f), ...); }, tree);
  } else {
    static_assert(detail::NoTree<Tree>::said());
  }
}

/// Returns the tree of f(tensor), each of the tensor's own type.
template <class Tree, class F> Tree map_tensors(const Tree& tree, F&& f) {
  if constexpr (detail::is_tensor<Tree>) {
    return Tree(f(tree));
  } else if constexpr (detail::HasFields<Tree>) {
    Tree made = tree;  // whatever else it holds
    std::apply([&](auto... field) { ((made.*field = map_tensors(tree.*field, f)), ...); },
               Tree::fields);
    return made;
  } else if constexpr (detail::Resizable<Tree>) {
    Tree made;
    for (const auto& one : tree) made.push_back(map_tensors(one, f));
    return made;
  } else if constexpr (detail::TupleLike<Tree>) {
    return std::apply([&](const auto&... one) { return Tree{map_tensors(one, f)...}; }, tree);
  } else {
    static_assert(detail::NoTree<Tree>::said());
  }
}

}  // namespace tessera
