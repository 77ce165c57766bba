// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How the ways of an operator are found.
///
///     detail::ways_of(operation, operands, result, mesh)
///
/// Laws: those of program/ways.hpp.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/op/indexed/one_hot.hpp>
#include <tessera/plan/op/indexed/scatter.hpp>
#include <tessera/plan/op/product/einsum.hpp>
#include <tessera/plan/op/shape/broadcast.hpp>
#include <tessera/plan/op/shape/reshape.hpp>
#include <tessera/plan/op/window/convolve.hpp>
#include <tessera/program/ways.hpp>

namespace tessera::detail {

/// Returns the last letters of a result, for an operand that is stretched to it.
inline Term last_letters(const Term& result, int rank) {
  Term letters;
  for (int d = 0; d < rank; ++d) {
    const int at = result.size() - rank + d;
    letters.push_back(at >= 0 ? result[at] : '\0');
  }
  return letters;
}

inline bool fits(const Term& term, const TensorDesc& x) { return term.size() == x.rank(); }

/// The letters of an equation. An operator that works in place has its tensor last.
inline void take_terms(Letters& letters, const Terms& terms, const TensorDescs& x) {
  letters.result = terms.result;
  const int own = std::min(terms.operands.size(), x.size());
  int shift = 0;  // of the operands against the terms
  for (int k = 0; k < own; ++k)
    if (!fits(terms.operands[k], x[k])) shift = 1;
  for (int k = 0; k < x.size(); ++k) {
    if (k >= own)
      letters.operands.push_back(last_letters(terms.result, x[k].rank()));
    else
      letters.operands.push_back(terms.operands[(k + shift) % own]);
    if (!fits(letters.operands.back(), x[k])) return;
  }
  letters.known = true;
}

/// A letter for each dimension, the same in all tensors.
inline void take_dimensions(Letters& letters, const TensorDescs& x, int rank) {
  letters.result = default_labels(rank);
  letters.known = true;
  for (const TensorDesc& operand : x) {
    letters.operands.push_back(default_labels(operand.rank()));
    letters.known = letters.known && operand.rank() == rank;
  }
}

/// Dimensions of one element are whole, whatever is split elsewhere.
inline void leave_out_ones(Letters& letters, const TensorDescs& x, const TensorDesc& result) {
  for (int d = 0; d < result.rank(); ++d)
    if (result.extents[d] < 2) letters.result[d] = '\0';
  for (int k = 0; k < x.size(); ++k)
    for (int d = 0; d < x[k].rank(); ++d)
      if (x[k].extents[d] < 2) letters.operands[k][d] = '\0';
}

TESSERA_FUNCTION Letters letters_of(const Operation& operation, const TensorDescs& x,
                                    const TensorDesc& result) {
  Letters letters;
  if (!operation.states_result()) return letters;
  const OperationView view = operation.view();
  if (const auto* const c = view.get_if<ops::Convolve>()) {
    take_terms(letters, c->turned(), x);
    // Windows slide: the kernel is whole along them.
    const Term spatial =
        letters_without(c->terms.result, letters_without(c->terms.result, c->terms.operands[0]));
    Term& kernel = c->form == ops::ConvolveForm::by_kernel ? letters.result : letters.operands[1];
    for (char& letter : kernel)
      if (spatial.contains(letter)) letter = '\0';
  } else if (const auto* const b = view.get_if<ops::Broadcast>()) {
    letters.result = default_labels(result.rank());
    Term own;
    for (int d = 0; d < b->dims.size(); ++d) own.push_back(letters.result[b->dims[d]]);
    letters.operands.push_back(own);
    letters.known = true;
  } else if (const auto* const hot = view.get_if<ops::OneHot>()) {
    letters.result = hot->terms.result;
    letters.operands.push_back(letters_without(hot->terms.result, Term{hot->along}));
    letters.known = true;
  } else if (const Terms* const terms = view.terms()) {
    take_terms(letters, *terms, x);
  } else if (operation.kind() == OperatorKind::reshape ||
             operation.kind() == OperatorKind::reshard ||
             operation.kind() == OperatorKind::from_root ||
             operation.kind() == OperatorKind::from_boxes) {
    return letters;
  } else {
    take_dimensions(letters, x, result.rank());
  }
  if (const auto* const r = view.get_if<ops::Reduce>()) letters.joins = r->reduction;
  if (const auto* const s = view.get_if<ops::Scatter>()) letters.joins = s->reduction;
  letters.known = letters.known && letters.result.size() == result.rank();
  if (letters.known) leave_out_ones(letters, x, result);
  return letters;
}

/// Calls visit(choice) for each way to give every axis one of `values` values.
template <class Visit> void for_each_choice(int axes, int values, const Visit& visit) {
  std::vector<int> choice(static_cast<std::size_t>(axes), 0);
  for (;;) {
    visit(choice);
    int a = 0;
    while (a < axes && ++choice[static_cast<std::size_t>(a)] == values)
      choice[static_cast<std::size_t>(a++)] = 0;
    if (a == axes) return;
  }
}

/// Returns the axes that are worth splitting over.
inline std::vector<int> wide_axes(const MeshShape& mesh) {
  std::vector<int> axes;
  for (int a = 0; a < mesh.rank(); ++a)
    if (mesh[a] > 1) axes.push_back(a);
  return axes;
}

TESSERA_FUNCTION std::vector<Sharding> placements(const Extents& extents, const MeshShape& mesh) {
  const std::vector<int> axes = wide_axes(mesh);
  std::vector<Sharding> all;
  const int rank = extents.size();
  for_each_choice(static_cast<int>(axes.size()), rank + 1, [&](const std::vector<int>& choice) {
    Sharding s = Sharding::replicated(rank);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (choice[i] == 0) continue;
      if (extents[choice[i] - 1] < 2) return;
      s[choice[i] - 1].push_back(axes[i]);
    }
    all.push_back(s);
  });
  return all;
}

TESSERA_FUNCTION bool is_placement(const Sharding& sharding, const Extents& extents,
                                   const MeshShape& mesh) {
  for (int d = 0; d < extents.size(); ++d) {
    if (!sharding[d].empty() && extents[d] < 2) return false;
    for (int i = 0; i < sharding[d].size(); ++i)
      if (mesh[sharding[d][i]] < 2 || (i > 0 && sharding[d][i] <= sharding[d][i - 1])) return false;
  }
  return sharding.partial.empty();
}

/// The ways of a reshape: from each placement of one side to what follows on the other.
inline std::vector<Way> reshape_ways(const Operation& operation, const TensorDesc& x,
                                     const TensorDesc& result, const MeshShape& mesh) {
  std::vector<Way> ways;
  const auto add = [&](const Way& way) {
    if (std::find(ways.begin(), ways.end(), way) == ways.end()) ways.push_back(way);
  };
  for (const Sharding& s : placements(x.extents, mesh))
    add({{s}, operation.view().deduced({{x.type, x.extents, s}})});
  const Operation back(ops::Reshape{x.extents, {}});
  for (const Sharding& s : placements(result.extents, mesh))
    add({{back.view().deduced({{x.type, result.extents, s}})}, s});
  return ways;
}

TESSERA_FUNCTION std::vector<Way> ways_of(const Operation& operation, const TensorDescs& x,
                                          const TensorDesc& result, const MeshShape& mesh) {
  std::vector<Way> ways;
  if (operation.kind() == OperatorKind::reshape) return reshape_ways(operation, x[0], result, mesh);
  const Letters letters = letters_of(operation, x, result);
  if (!letters.known) return ways;
  std::string all;  // the letters that may be split
  const auto note = [&](const Term& term) {
    for (const char letter : term)
      if (letter != '\0' && all.find(letter) == std::string::npos) all.push_back(letter);
  };
  note(letters.result);
  for (const Term& term : letters.operands) note(term);
  const std::vector<int> axes = wide_axes(mesh);
  for_each_choice(static_cast<int>(axes.size()), static_cast<int>(all.size()) + 1,
                  [&](const std::vector<int>& choice) {
                    Way way;
                    const auto under = [&](const Term& term) {
                      Sharding s = Sharding::replicated(term.size());
                      for (std::size_t i = 0; i < axes.size(); ++i) {
                        if (choice[i] == 0) continue;
                        const int d = term.find(all[static_cast<std::size_t>(choice[i] - 1)]);
                        if (d >= 0) s[d].push_back(axes[i]);
                      }
                      return s;
                    };
                    AxisSet joined;
                    for (std::size_t i = 0; i < axes.size(); ++i)
                      if (choice[i] != 0 &&
                          !letters.result.contains(all[static_cast<std::size_t>(choice[i] - 1)]))
                        joined.insert(axes[i]);
                    TensorDescs descs = x;
                    for (int k = 0; k < x.size(); ++k) {
                      way.operands.push_back(under(letters.operands[k]));
                      descs[k].sharding = way.operands[k];
                    }
                    way.out = under(letters.result);
                    const Sharding open = way.out.with_partial(joined, letters.joins);
                    if (operation.with_result(open).check(descs).ok())
                      way.out = open;
                    else if (!operation.with_result(way.out).check(descs).ok())
                      return;
                    if (std::find(ways.begin(), ways.end(), way) == ways.end()) ways.push_back(way);
                  });
  return ways;
}

}  // namespace tessera::detail
