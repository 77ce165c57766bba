// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Boxes that an application has cut itself: made of cut points, and checked. The verdict names the
/// processes that disagree, or the hole.
///
///     std::vector<Box> boxes = cut_boxes({7, 6}, Sharding{{0}, {}}, {{0, 5, 7}, {}}, MeshShape{2});
///     check_boxes({7, 6}, boxes, 2, true).ok();
///
/// Laws: boxes that pass are equal or disjoint, and together they are the tensor.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/spec/block.hpp>

namespace tessera {

enum class BoxRule : std::uint8_t { ok, one_a_process, rank_matches, in_bounds, disjoint, cover };

struct BoxVerdict {
  BoxRule rule = BoxRule::ok;
  int first = -1;   ///< the process that breaks the rule
  int second = -1;  ///< the one it collides with
  Box box;          ///< its box, what two have in common, or a hole
  bool ok() const { return rule == BoxRule::ok; }
  bool operator==(const BoxVerdict&) const = default;
};

/// Returns "[0,5) x [2,4)", or "everything" without dimensions.
inline std::string to_string(const Box& box) {
  if (box.rank() == 0) return "everything";
  std::string text;
  for (int d = 0; d < box.rank(); ++d)
    text +=
        (d > 0 ? " x [" : "[") + std::to_string(box[d].lo) + "," + std::to_string(box[d].hi) + ")";
  return text;
}

namespace detail {
/// Appends what is left of `box` without `hole`, which lies partly in it.
inline void subtract(Box box, const Box& hole, std::vector<Box>& rest) {
  const Box common = intersect(box, hole);
  if (common.empty()) {
    rest.push_back(box);
    return;
  }
  for (int d = 0; d < box.rank(); ++d) {
    Box below = box, above = box;
    below[d].hi = common[d].lo;
    above[d].lo = common[d].hi;
    if (!below.empty()) rest.push_back(below);
    if (!above.empty()) rest.push_back(above);
    box[d] = common[d];
  }
}
}  // namespace detail

/// Returns the first rule that boxes[r] of processes r break: one a process, of the tensor's rank,
/// within it, and, if `partition`, equal or disjoint and covering it.
inline BoxVerdict check_boxes(const Extents& extents, std::span<const Box> boxes, int processes,
                              bool partition) {
  if (static_cast<int>(boxes.size()) != processes)
    return {BoxRule::one_a_process, static_cast<int>(boxes.size()), processes, {}};
  const auto box_of = [&](int process) -> const Box& {
    return boxes[static_cast<std::size_t>(process)];
  };
  std::vector<int> order;  // of the non-empty ones, by where they begin
  for (int p = 0; p < processes; ++p) {
    const Box& box = box_of(p);
    if (box.rank() != extents.size()) return {BoxRule::rank_matches, p, -1, box};
    for (int d = 0; d < box.rank(); ++d)
      if (box[d].lo < 0 || box[d].hi < box[d].lo || box[d].hi > extents[d])
        return {BoxRule::in_bounds, p, -1, box};
    if (!box.empty()) order.push_back(p);
  }
  if (!partition) return {};
  if (extents.empty()) return {};  // a scalar: all boxes are equal
  std::stable_sort(order.begin(), order.end(),
                   [&](int p, int q) { return box_of(p)[0].lo < box_of(q)[0].lo; });
  Index covered = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Box& box = box_of(order[i]);
    bool replica = false;
    for (std::size_t j = 0; j < i && !replica; ++j) replica = box_of(order[j]) == box;
    if (!replica) covered = saturating_add(covered, box.size());
    for (std::size_t j = i + 1; j < order.size() && box_of(order[j])[0].lo < box[0].hi; ++j)
      if (const Box common = intersect(box, box_of(order[j]));
          !common.empty() && !(box == box_of(order[j])))
        return {BoxRule::disjoint, std::min(order[i], order[j]), std::max(order[i], order[j]),
                common};
  }
  if (covered == volume(extents)) return {};
  std::vector<Box> rest{whole(extents)};
  for (int p : order) {
    std::vector<Box> less;
    for (const Box& piece : rest) detail::subtract(piece, box_of(p), less);
    rest.swap(less);
  }
  return {BoxRule::cover, -1, -1, rest.front()};
}

/// Returns the sentence for a verdict.
inline std::string explain(const BoxVerdict& verdict, const Extents& extents,
                           std::span<const Box> boxes) {
  const auto process = [](int p) { return "process " + std::to_string(p); };
  const auto given = [&](int p) {
    return process(p) + " declares " + to_string(boxes[static_cast<std::size_t>(p)]);
  };
  switch (verdict.rule) {
    case BoxRule::ok:
      return "the boxes are legal";
    case BoxRule::one_a_process:
      return std::to_string(verdict.first) + " boxes are declared for " +
             std::to_string(verdict.second) + " processes; declare one for each process, in order";
    case BoxRule::rank_matches:
      return given(verdict.first) + ", which has " + std::to_string(verdict.box.rank()) +
             " dimensions, of a tensor " + to_string(extents) + ", which has " +
             std::to_string(extents.size()) + "; give one interval for each dimension";
    case BoxRule::in_bounds:
      return given(verdict.first) + " of a tensor " + to_string(extents) +
             "; boxes are half-open intervals lo <= hi within it";
    case BoxRule::disjoint:
      return given(verdict.first) + " and " + given(verdict.second) + ", which share " +
             to_string(verdict.box) +
             "; boxes are disjoint, or equal where processes have the same data; shrink one of "
             "them";
    case BoxRule::cover:
      return "no process declares " + to_string(verdict.box) + " of the tensor " +
             to_string(extents) + "; together the boxes are the whole tensor; extend one of them";
  }
  return "";
}

/// Returns the box of every process when dimension d is cut at cuts[d] over the axes that
/// `sharding` names for it: part i is [cuts[d][i], cuts[d][i + 1]), parts counted with the first
/// axis major. A dimension without cuts is not split. Throws ShapeError when the cuts do not fit.
inline std::vector<Box> cut_boxes(const Extents& extents, const Sharding& sharding,
                                  const std::vector<std::vector<Index>>& cuts,
                                  const MeshShape& mesh) {
  if (static_cast<int>(cuts.size()) != extents.size() || sharding.rank() != extents.size())
    throw ShapeError("a tensor " + to_string(extents) + " is cut with lists for " +
                     std::to_string(cuts.size()) + " dimensions and a spec of " +
                     std::to_string(sharding.rank()) +
                     "; give one list for each dimension, an empty one where it is not split");
  for (int d = 0; d < extents.size(); ++d) {
    const std::vector<Index>& cut = cuts[static_cast<std::size_t>(d)];
    if (cut.empty() && mesh.parts(sharding[d]) == 1) continue;
    const bool sorted = std::is_sorted(cut.begin(), cut.end());
    if (static_cast<int>(cut.size()) != mesh.parts(sharding[d]) + 1 || !sorted ||
        cut.front() != 0 || cut.back() != extents[d]) {
      std::string text;
      for (Index c : cut) text += (text.empty() ? "" : ",") + std::to_string(c);
      throw ShapeError("dimension " + std::to_string(d) + " of extent " +
                       std::to_string(extents[d]) + " has " +
                       std::to_string(mesh.parts(sharding[d])) + " parts and is cut at {" + text +
                       "}; give the parts' borders in order, from 0 to the extent");
    }
  }
  std::vector<Box> boxes;
  for (int p = 0; p < mesh.processes(); ++p) {
    const Coordinates at = mesh.coordinates(p);
    Box box = whole(extents);
    for (int d = 0; d < extents.size(); ++d) {
      const std::vector<Index>& cut = cuts[static_cast<std::size_t>(d)];
      if (cut.empty()) continue;
      std::size_t part = 0;
      for (int i = 0; i < sharding[d].size(); ++i)
        part = part * static_cast<std::size_t>(mesh[sharding[d][i]]) +
               static_cast<std::size_t>(at[sharding[d][i]]);
      box[d] = {cut[part], cut[part + 1]};
    }
    boxes.push_back(box);
  }
  return boxes;
}

}  // namespace tessera
