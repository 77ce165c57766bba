// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A choice of a model's weights as the list of rules under which a model of the same source lies
/// so, in C++.
///
///     using Here = Under<float, Grid, OpenRules>;
///     const Choice choice = choose(step)(model, ids, sizes<Grid>(2, 4));   // a Decoder<Here>, "0"
///     fmt::print("{}", layer_rules_of(choice, "0", model));
///     // using Chosen = LayerRules<AxisRule<logical::embed, data>, AxisRule<logical::hidden, model>>;
///
/// The names of dimensions come from the layers' own source: a layer is a template of an Under, and
/// under `detail::LogicalNames` its tensors are the names of their dimensions.
///
/// Laws: the text compiles where the mesh's axes and the names can be named; under it each weight
/// has its chosen sharding, or a spec of its own in the text.
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/nn/detail/each_chosen.hpp>
#include <tessera/nn/rules.hpp>
#include <tessera/program/choice.hpp>
#include <tessera/spec/derived_rules.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {

namespace detail {
/// In place of rules: the tensors of a model under it are the names of their dimensions.
struct LogicalNames {};

/// Returns a name as the source of a user of namespace tessera spells it.
template <class Name> std::string source_name() {
  std::string name(full_type_name<Name>());
  for (const std::string_view prefix :
       {"tessera::", "{anonymous}::", "(anonymous namespace)::", "<unnamed>::"})
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  return name;
}
template <class... Names> struct NamedDimensions {
  static std::vector<std::string> names() {
    return {(std::is_same_v<Names, Replicated> ? std::string() : source_name<Names>())...};
  }
};
}  // namespace detail

template <Element T, class M> struct Under<T, M, detail::LogicalNames> {
  using value_type = T;
  using mesh_type = M;
  using rules = detail::LogicalNames;
  template <class... Names> using Tensor = detail::NamedDimensions<Names...>;
  template <Element U, class... Names> using Of = detail::NamedDimensions<Names...>;
};

namespace detail {
/// A layer's type under LogicalNames; void for what is no template of an Under.
template <class Layer> struct Renamed { using type = void; };
template <template <class...> class Layer, class T, class M, class R, class... More>
struct Renamed<Layer<Under<T, M, R>, More...>> {
  using type = Layer<Under<T, M, LogicalNames>, More...>;
};

template <class Tree, std::size_t I>
using FieldOf =
    std::remove_cvref_t<decltype(std::declval<Tree&>().*
                                 std::remove_cvref_t<decltype(Tree::fields)>::template member<I>)>;

/// The names of the elements of a vector, an array or an optional, and of element I of a tuple.
template <class Names> struct ElementNames { using type = void; };
template <class T, class Allocator> struct ElementNames<std::vector<T, Allocator>> {
  using type = T;
};
template <class T, std::size_t N> struct ElementNames<std::array<T, N>> { using type = T; };
template <class T> struct ElementNames<std::optional<T>> { using type = T; };

using AllNames = std::vector<std::vector<std::string>>;

/// Appends the names of each tensor of a tree, in the tree's order; none where they are not known.
template <class Given, class Tree> void add_names(const Tree& tree, AllNames& all) {
  using Names =
      typename Choose<std::is_void_v<Given>>::template type<typename Renamed<Tree>::type, Given>;
  if constexpr (is_tensor<Tree>) {
    if constexpr (requires { Names::names(); })
      all.push_back(Names::names());
    else
      all.push_back(std::vector<std::string>(static_cast<std::size_t>(tree.core().rank())));
  } else if constexpr (HasFields<Tree>) {
    using TheFields = std::remove_cvref_t<decltype(Tree::fields)>;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      const auto one = [&]<std::size_t At>(std::integral_constant<std::size_t, At>) {
        const auto& child = tree.*TheFields::template member<At>;
        if constexpr (HasFields<Names>)
          add_names<FieldOf<Names, At>>(child, all);
        else
          add_names<void>(child, all);
      };
      (one(std::integral_constant<std::size_t, I>{}), ...);
    }
    (std::make_index_sequence<TheFields::size>{});
  } else if constexpr (is_optional<Tree>) {
    if (tree) add_names<typename ElementNames<Names>::type>(*tree, all);
  } else if constexpr (requires { tree.begin(); }) {
    for (const auto& child : tree) add_names<typename ElementNames<Names>::type>(child, all);
  } else {
    for_each_tensor(
        [&](const auto& x) {
          all.push_back(std::vector<std::string>(static_cast<std::size_t>(x.core().rank())));
        },
        tree);
  }
}

template <class R> struct RuleNames;
template <class... Names, class... Split> struct RuleNames<Rules<AxisRule<Names, Split>...>> {
  static bool has(const std::string& name) { return ((source_name<Names>() == name) || ...); }
};

/// Returns "model", "Axes<data, model>" or "_".
inline std::string split_text(const FixedVector<int, max_axes>& axes, const AxisNames& names) {
  std::string text;
  for (const int axis : axes) text += (text.empty() ? "" : ", ") + std::string(names[axis]);
  return axes.size() > 1 ? "Axes<" + text + ">" : axes.empty() ? "_" : text;
}
}  // namespace detail

/// Returns `using Chosen = LayerRules<...>;`, under which the weights of argument `path` of a
/// choice's function have the chosen shardings, a tree of layers that are templates of an Under.
/// Those for which no list of rules does so too follow as a spec each, and so does what has no
/// names. `model` tells the tree's structure; its tensors are not read. Communication: none. Throws
/// UsageError for a choice whose function has no such argument.
template <class Model>
std::string layer_rules_of(const Choice& choice, std::string_view path, const Model& model,
                           Where where = Where::here()) {
  detail::AllNames all;
  detail::add_names<void>(model, all);
  const AxisNames axes = choice.given().names();
  std::vector<NamedSharding> tensors;
  std::vector<std::string> paths, fields;
  detail::for_each_chosen(
      choice, path, model, {"layer_rules_of", where},
      [&](std::size_t number, const std::string& field, const auto& x, const Sharding& sharding) {
        tensors.push_back({all[number], sharding, volume(x.extents()) + 1});
        paths.push_back(std::string(path) + (field.empty() ? "" : "." + field) + ", " +
                        to_string(x.extents()));
        fields.push_back(field.empty() ? "argument" : field);
        return true;
      });
  const DerivedRules derived = derive_rules(tensors);
  std::string rules;
  const auto add = [&](const std::string& name, const std::string& split) {
    rules += (rules.empty() ? "" : ",\n                          ") + ("AxisRule<" + name) + ", " +
             split + ">";
  };
  std::vector<std::string> named;
  for (const auto& rule : derived.rules) {
    add(rule.name, detail::split_text(rule.axes, axes));
    named.push_back(rule.name);
  }
  for (const NamedSharding& tensor : tensors)  // names of the user's own have a rule each
    for (const std::string& name : tensor.names) {
      bool known = name.empty() || detail::RuleNames<LayerRules<>>::has(name);
      for (const std::string& other : named) known = known || other == name;
      if (known) continue;
      add(name, "_");
      named.push_back(name);
    }
  std::string text = "using Chosen = LayerRules<" + rules + ">;\n";
  if (derived.differ.empty()) return text;
  text += "// No list of rules splits these so, too; each has a spec of its own.\n";
  for (const int t : derived.differ) {
    const auto i = static_cast<std::size_t>(t);
    std::string name = fields[i];
    for (char& c : name)
      if (c == '.') c = '_';
    text +=
        "using " + name + " = " + to_string(tensors[i].sharding, axes) + ";  // " + paths[i] + "\n";
  }
  return text;
}

}  // namespace tessera
