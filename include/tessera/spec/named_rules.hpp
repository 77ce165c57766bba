// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Logical axis rules at run time, for tensors whose sharding is a value: names are text.
/// spec/logical.hpp has the rules as types, and their meaning.
///
///     NamedRules rules(Grid::names());
///     rules.add("batch", "data").add("embed", "model").add("heads", "_");
///     rules.sharding("batch,_,embed")                      // Sharding{{0}, {}, {1}}
///
/// Laws: named_rules<M, R>().sharding("a,_,b") == lower<M, Logical<R, a, _, b>>().
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/spec/logical.hpp>

namespace tessera {

class NamedRules {
 public:
  explicit NamedRules(const AxisNames& mesh) : mesh_(mesh) {}

  /// Adds the last rule; `axes` names mesh axes: "data", "data,model", or "_" for none. Throws
  /// ShardingError when the mesh has no such axis.
  NamedRules& add(std::string_view name, std::string_view axes, Where where = Where::here()) {
    detail::RuleValue<std::string, int> rule{std::string(name), {}};
    for (const std::string_view axis : parts(axes, where)) {
      if (axis == "_") continue;
      const int index = mesh_.find(axis);
      if (index < 0)
        throw ShardingError("the rule for the logical axis " + std::string(name) +
                                " names the mesh axis " + std::string(axis) +
                                ", which the mesh does not have; check the spelling",
                            where);
      rule.axes.push_back(index);
    }
    rules_.push_back(std::move(rule));
    return *this;
  }
  /// Returns the sharding of a tensor whose dimensions have these names: "batch,_,embed"; "" is a
  /// scalar. Throws ShardingError for a name without a rule, or a name that occurs twice.
  Sharding sharding(std::string_view dimensions, Where where = Where::here()) const {
    FixedVector<std::string_view, 2 * max_axes> names = parts(dimensions, where);
    for (std::string_view& name : names)
      if (name == "_") name = {};
    const detail::LogicalChoice choice = detail::choose_rules(rules_, names, std::string_view{});
    if (choice.fault != detail::LogicalFault::none)
      throw ShardingError("\"" + std::string(dimensions) +
                              "\": " + std::string(names[choice.dimension]) +
                              (choice.fault == detail::LogicalFault::unknown
                                   ? " has no rule; every logical axis has at least one; check the "
                                     "spelling, or add the rule " +
                                         std::string(names[choice.dimension]) + " -> _"
                                   : " names two dimensions; a name stands once in a tensor; give "
                                     "one of them another name"),
                          where);
    Sharding s = Sharding::replicated(names.size());
    for (int d = 0; d < names.size(); ++d)
      if (choice.rules[d] >= 0)
        for (int axis : rules_[static_cast<std::size_t>(choice.rules[d])].axes)
          s[d].push_back(axis);
    return s;
  }

 private:
  static FixedVector<std::string_view, 2 * max_axes> parts(std::string_view text, Where where) {
    FixedVector<std::string_view, 2 * max_axes> result;
    while (!text.empty()) {
      const std::size_t comma = text.find(',');
      std::string_view part = text.substr(0, comma);
      while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
      while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
      if (part.empty() || result.size() == max_dims)
        throw ShardingError("\"" + std::string(text) +
                                "\" is not a list of up to 8 names; write names or _ with commas "
                                "between them, as in \"batch,_,embed\"",
                            where);
      result.push_back(part);
      text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    }
    return result;
  }

  AxisNames mesh_;
  std::vector<detail::RuleValue<std::string, int>> rules_;
};

namespace detail {
template <class M, class R> struct AddRule;
template <class M, class Name, class Split> struct AddRule<M, AxisRule<Name, Split>> {
  static void to(NamedRules& rules) {
    const AxisList axes = whole_where_open(lower<M, P<Split>>())[0];
    std::string text = axes.empty() ? "_" : "";
    for (int i = 0; i < axes.size(); ++i)
      text += (i > 0 ? "," : "") + std::string(M::names()[axes[i]]);
    rules.add(type_name<Name>(), text, Where{});
  }
};
template <class M, class R> struct AddRules;
template <class M, class... R> struct AddRules<M, Rules<R...>> {
  static void to(NamedRules& rules) { (AddRule<M, R>::to(rules), ...); }
};
}  // namespace detail

/// Returns the rules R on mesh M, with names printed from their types.
template <class M, class R> NamedRules named_rules() {
  NamedRules rules(M::names());
  detail::AddRules<M, R>::to(rules);
  return rules;
}

}  // namespace tessera
