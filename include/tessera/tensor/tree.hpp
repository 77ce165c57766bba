// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Trees of tensors: a tensor, or a vector, array, pair, tuple, optional, variant or struct of
/// trees. A struct names its fields once; every tensor then has a path, such as "layers.3.weight".
///
///     struct Dense {
///       Tensor<data, model> weight;
///       Tensor<model> bias;
///       static constexpr auto fields = Fields<&Dense::weight, &Dense::bias>{};
///     };
///     for_each_tensor([](auto& w, const auto& g) { w = w - 0.1f * g; }, dense, gradient);
///     for_each_named_tensor([&](const std::string& path, const auto&) { paths += path + " "; }, dense);
///     Dense doubled = map_tensors([](const auto& w) { return w + w; }, dense);
///
/// Laws: tensors are visited in the order in which they are declared; no two of a tree have one
/// path; the tree that map_tensors returns has the same structure.
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <tessera/tensor/sharded_tensor.hpp>

namespace tessera {
namespace detail {
/// Its text ends with the member's name: "… Member = &Dense::weight]".
template <auto Member> constexpr auto member_text() {
  return std::string_view(__PRETTY_FUNCTION__);
}
template <auto Member> constexpr std::string_view member_name() {
  constexpr std::string_view text = member_text<Member>();
  constexpr auto begin = text.rfind("::") + 2, end = text.find_first_of("];)", begin);
  static_assert(begin < end && end != std::string_view::npos,
                "[tessera] this compiler spells the name of a member in an unknown way");
  return text.substr(begin, end - begin);
}
template <std::size_t N> constexpr bool all_differ(std::array<std::string_view, N> names) {
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) == names.end();
}
}  // namespace detail

/// The members of a struct that are trees, in order: `static constexpr auto fields =
/// Fields<&S::weight, &S::mean>{};`. Other members are copied with the struct. Fields that no
/// gradient moves, such as running means, are named once more, `static constexpr auto untrained =
/// Fields<&S::mean>{};`: optimizers leave all that is in them as it is.
template <auto... Members> struct Fields {
  static constexpr std::size_t size = sizeof...(Members);
  static constexpr std::array<std::string_view, size> names{detail::member_name<Members>()...};
  template <std::size_t I> static constexpr auto member = std::get<I>(std::tuple(Members...));
  static_assert(detail::all_differ(names),
                "[tessera] two fields of a struct have one name; give one of them another");

  static constexpr bool has(std::string_view name) { return std::ranges::count(names, name) > 0; }
};

namespace detail {
template <class T>
inline constexpr bool is_tensor = TypedTensor<T> || std::same_as<T, DynamicTensor>;
template <class T>
concept HasFields = requires {
  std::remove_cvref_t<decltype(T::fields)>::names;
};
template <class T>
concept TupleLike = requires {
  std::tuple_size<T>::value;
};
template <class T>
concept Resizable = requires(T x) {
  x.push_back(*x.begin());
};
template <class T> inline constexpr bool is_optional = false;
template <class T> inline constexpr bool is_optional<std::optional<T>> = true;
template <class T> inline constexpr bool is_variant = false;
template <class... T> inline constexpr bool is_variant<std::variant<T...>> = true;

template <class T>
inline constexpr bool is_tree =
    is_tensor<T> || HasFields<T> || Resizable<T> || TupleLike<T> || is_optional<T> || is_variant<T>;

template <class T> struct NoTree {
  static consteval bool said() {
    static_assert(never<T>,
                  "[tessera] the type is no tree of tensors; take a tensor, a vector, array, "
                  "pair, tuple, optional or variant of trees, or give the struct `static constexpr "
                  "auto fields = Fields<&S::weight, &S::bias>{}`");
    return true;
  }
};
/// Instantiated for trees that are walked together and can never have one structure.
template <class First, class Other> struct OtherTree {
  static consteval bool said() {
    static_assert(never<First>,
                  "[tessera] trees that are walked together have one structure, and the types of "
                  "these differ; make one like the other, by map_tensors");
    return true;
  }
};

/// A place in a tree: parts from the root, kept where the walk is.
struct TreePlace {
  const TreePlace* within = nullptr;
  std::string_view name = {};
  Index number = -1;       ///< of an element that has no name
  bool untrained = false;  ///< the struct that it is a field of says so

  bool trained() const { return !untrained && (within == nullptr || within->trained()); }
  std::string path() const {
    if (within == nullptr) return {};
    std::string text = within->path();
    if (!text.empty()) text += '.';
    return text += number < 0 ? std::string(name) : std::to_string(number);
  }
};

/// Throws unless all trees have as many elements here, or the same alternative.
inline void require_alike(const TreePlace& place, const char* what,
                          std::initializer_list<Index> of_trees) {
  const auto other =
      std::ranges::find_if(of_trees, [&](Index n) { return n != *of_trees.begin(); });
  if (other == of_trees.end()) return;
  const std::string path = place.path();
  throw UsageError("trees that are walked together have one structure, and " +
                   (path.empty() ? std::string("at their root") : "at " + path) +
                   " the first has " + what + std::to_string(*of_trees.begin()) + " and tree " +
                   std::to_string(other - of_trees.begin() + 1) + " has " + what +
                   std::to_string(*other) + "; make one like the other, by map_tensors");
}

/// The I-th child of a struct or tuple.
template <std::size_t I, class Tree> constexpr auto& child_of(Tree& tree) {
  if constexpr (HasFields<Tree>)
    return tree.*std::remove_cvref_t<decltype(Tree::fields)>::template member<I>;
  else
    return std::get<I>(tree);
}
template <class Tree> struct Children {  // a tuple's have numbers
  static constexpr std::size_t size = std::tuple_size_v<Tree>;
  static constexpr bool named = false;
};
template <HasFields Tree> struct Children<Tree> : std::remove_cvref_t<decltype(Tree::fields)> {
  static constexpr bool named = true;
};
/// Returns whether a struct says that gradients do not move a field.
template <class Tree> constexpr bool is_untrained(std::string_view field) {
  if constexpr (requires { Tree::untrained; }) {
    constexpr bool all_fields = std::ranges::all_of(
        Tree::untrained.names, [](std::string_view one) { return Tree::fields.has(one); });
    static_assert(all_fields,
                  "[tessera] a struct names an untrained member that is none of its fields; name "
                  "it among the fields, too");
    return Tree::untrained.has(field);
  } else {
    return false;
  }
}

/// Trees of types First and Other can have one structure, as far as their types say.
template <class First, class Other> constexpr bool alike() {
  if constexpr (HasFields<First> && HasFields<Other>)
    return std::ranges::equal(Children<First>::names, Children<Other>::names);
  else if constexpr (is_tensor<First> || HasFields<First>)
    return is_tensor<First> == is_tensor<Other> && HasFields<First> == HasFields<Other>;
  else if constexpr (Resizable<First>)
    return Resizable<Other> && !is_tensor<Other>;
  else if constexpr (TupleLike<First> && TupleLike<Other>)
    return std::tuple_size_v<First> == std::tuple_size_v<Other>;
  else
    return is_optional<First> == is_optional<Other> && is_variant<First> == is_variant<Other>;
}

template <class F, class Tree, class... Others>
void walk(const TreePlace& place, F& f, Tree& tree, Others&... others);

template <class F, std::size_t... I, class Tree, class... Others>
void walk_children(const TreePlace& place, F& f, std::index_sequence<I...>, Tree& tree,
                   Others&... others) {
  [[maybe_unused]] const auto child = [&]<std::size_t J>(std::integral_constant<std::size_t, J>) {
    using T = std::remove_const_t<Tree>;
    TreePlace here{&place, {}, static_cast<Index>(J)};
    if constexpr (Children<T>::named) {
      constexpr std::string_view name = Children<T>::names[J];
      here = {&place, name, -1, is_untrained<T>(name)};
    }
    walk(here, f, child_of<J>(tree), child_of<J>(others)...);
  };
  (child(std::integral_constant<std::size_t, I>{}), ...);
}

template <class F, class Tree, class... Others>
void walk(const TreePlace& place, F& f, Tree& tree, Others&... others) {
  using T = std::remove_const_t<Tree>;
  if constexpr (!is_tree<T>) {
    static_assert(NoTree<T>::said());
  } else if constexpr (!(alike<T, std::remove_const_t<Others>>() && ...)) {
    static_assert((OtherTree<T, std::remove_const_t<Others>>::said() && ...));
  } else if constexpr (is_tensor<T>) {
    f(place, tree, others...);
  } else if constexpr (is_optional<T>) {
    require_alike(place, "trees: ", {Index{tree.has_value()}, Index{others.has_value()}...});
    if (tree.has_value()) walk(place, f, *tree, *others...);
  } else if constexpr (is_variant<T>) {
    require_alike(place, "alternative ",
                  {static_cast<Index>(tree.index()), static_cast<Index>(others.index())...});
    const auto alternative = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
      if (tree.index() == I) walk(place, f, *std::get_if<I>(&tree), *std::get_if<I>(&others)...);
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (alternative(std::integral_constant<std::size_t, I>{}), ...);
    }
    (std::make_index_sequence<std::variant_size_v<T>>{});
  } else if constexpr (Resizable<T>) {
    require_alike(place, "elements: ",
                  {static_cast<Index>(tree.size()), static_cast<Index>(others.size())...});
    TreePlace here{&place, {}, 0};
    auto at = std::tuple(others.begin()...);
    for (auto& one : tree) {
      std::apply([&](auto&... other) { walk(here, f, one, *other++...); }, at);
      ++here.number;
    }
  } else {
    walk_children(place, f, std::make_index_sequence<Children<T>::size>{}, tree, others...);
  }
}
}  // namespace detail

/// Calls f(tensor, others...) for each tensor of a tree and the tensors at its place in other trees
/// of the same structure, whose tensors may have other types. A tree that is no constant gives f
/// tensors to write to. Throws UsageError where vectors differ in length, optionals or variants in
/// what they hold.
template <class F, class Tree, class... Others>
void for_each_tensor(F&& f, Tree&& tree, Others&&... others) {
  const auto call = [&f](const detail::TreePlace&, auto&... tensors) { f(tensors...); };
  detail::walk({}, call, tree, others...);
}

/// Calls f(path, tensor, others...) for each tensor: a path has names of fields and numbers of
/// elements, with dots between them. A tree that is a tensor has the path "".
template <class F, class Tree, class... Others>
void for_each_named_tensor(F&& f, Tree&& tree, Others&&... others) {
  const auto call = [&f](const detail::TreePlace& place, auto&... tensors) {
    f(place.path(), tensors...);
  };
  detail::walk({}, call, tree, others...);
}

/// Returns a tree like the first, of the tensors f(tensor, others...), each of its tensor's own
/// type.
template <class F, class Tree, class... Others>
std::remove_cvref_t<Tree> map_tensors(F&& f, Tree&& tree, Others&&... others) {
  std::remove_cvref_t<Tree> made = tree;  // and whatever else it holds
  const auto assign = [&f](auto& tensor, const auto&... of_others) {
    tensor = std::remove_cvref_t<decltype(tensor)>(f(std::as_const(tensor), of_others...));
  };
  for_each_tensor(assign, made, std::as_const(others)...);
  return made;
}

namespace detail {
/// The type of a tree's first tensor.
template <class Tree> struct FirstTensorOf : FirstTensorOf<typename Tree::value_type> {};
template <class Tree>
  requires(is_tensor<Tree>)
struct FirstTensorOf<Tree> {
  using type = Tree;
};
template <HasFields Tree>
struct FirstTensorOf<Tree>
    : FirstTensorOf<std::remove_cvref_t<decltype(child_of<0>(std::declval<Tree&>()))>> {};
template <class First, class... More>
struct FirstTensorOf<std::tuple<First, More...>> : FirstTensorOf<First> {};
template <class First, class Second>
struct FirstTensorOf<std::pair<First, Second>> : FirstTensorOf<First> {};
template <class Tree> using FirstTensor = typename FirstTensorOf<Tree>::type;

/// Gives `made` as many elements, and the same alternatives, as `tree` has.
template <class Made, class Tree> void make_alike(Made& made, const Tree& tree) {
  if constexpr (!is_tree<Made> || is_tensor<Made> || !alike<Made, Tree>()) {
    // for_each_tensor says what is wrong
  } else if constexpr (is_optional<Made>) {
    if (tree.has_value()) make_alike(made.emplace(), *tree);
  } else if constexpr (is_variant<Made>) {
    const auto alternative = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
      if (tree.index() == I) make_alike(made.template emplace<I>(), *std::get_if<I>(&tree));
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (alternative(std::integral_constant<std::size_t, I>{}), ...);
    }
    (std::make_index_sequence<std::variant_size_v<Made>>{});
  } else if constexpr (Resizable<Made>) {
    for (const auto& one : tree) {
      made.push_back({});
      make_alike(made.back(), one);
    }
  } else {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (make_alike(child_of<I>(made), child_of<I>(tree)), ...);
    }
    (std::make_index_sequence<Children<Made>::size>{});
  }
}
}  // namespace detail

/// Returns a tree of type Made, of the structure of `tree`, of the tensors f(tensor). Members of
/// structs that are no fields are as their types declare them.
template <class Made, class F, class Tree> Made map_tensors_to(F&& f, const Tree& tree) {
  Made made{};
  detail::make_alike(made, tree);
  for_each_tensor(
      [&f](auto& tensor, const auto& x) { tensor = std::remove_cvref_t<decltype(tensor)>(f(x)); },
      made, tree);
  return made;
}

}  // namespace tessera
