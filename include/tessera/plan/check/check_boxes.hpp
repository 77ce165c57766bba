// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Boxes that an application chooses: made from cut points, and checked. The verdict names the
/// processes that disagree, or the hole.
///
///     std::vector<Box> boxes = detail::cut_boxes({7, 6}, Sharding{{0}, {}}, {{0, 5, 7}, {}}, MeshShape{2});
///     detail::check_boxes({7, 6}, boxes, 2, true).ok();
///
/// Laws: boxes that pass are equal or disjoint, and together they cover the tensor.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tessera/base/verdict.hpp>
#include <tessera/spec/block.hpp>

namespace tessera {

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
/// Appends the rest of `box` without `hole`, which overlaps it.
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
/// Returns the processes whose boxes are not empty, ordered by the boxes' beginnings.
inline std::vector<int> by_begin(std::span<const Box> boxes) {
  std::vector<int> order;
  for (int p = 0; p < static_cast<int>(boxes.size()); ++p)
    if (!boxes[static_cast<std::size_t>(p)].empty()) order.push_back(p);
  std::stable_sort(order.begin(), order.end(), [&](int p, int q) {
    return boxes[static_cast<std::size_t>(p)][0].lo < boxes[static_cast<std::size_t>(q)][0].lo;
  });
  return order;
}
/// Returns a part of the tensor that no box has. Precondition: there is one.
inline Box hole(const Extents& extents, std::span<const Box> boxes) {
  std::vector<Box> rest{whole(extents)};
  for (int p : by_begin(boxes)) {
    std::vector<Box> less;
    for (const Box& piece : rest) subtract(piece, boxes[static_cast<std::size_t>(p)], less);
    rest.swap(less);
  }
  return rest.front();
}

/// Returns the first rule that boxes[r] of processes r break: one for each process, of as many
/// dimensions as the tensor has, within the tensor and, if `partition`, equal or disjoint and
/// covering it.
inline Verdict check_boxes(const Extents& extents, std::span<const Box> boxes, int processes,
                           bool partition) {
  if (static_cast<int>(boxes.size()) != processes)
    return {.rule = Rule::box_each_process,
            .left = static_cast<Index>(boxes.size()),
            .right = processes};
  const auto box_of = [&](int process) -> const Box& {
    return boxes[static_cast<std::size_t>(process)];
  };
  for (int p = 0; p < processes; ++p) {
    const Box& box = box_of(p);
    if (box.rank() != extents.size())
      return {.rule = Rule::box_rank_matches,
              .operand = p,
              .left = box.rank(),
              .right = extents.size()};
    for (int d = 0; d < box.rank(); ++d)
      if (box[d].lo < 0 || box[d].hi < box[d].lo || box[d].hi > extents[d])
        return {.rule = Rule::box_in_bounds, .operand = p};
  }
  if (!partition) return {};
  if (extents.empty()) return {};  // a scalar: all boxes are equal
  const std::vector<int> order = detail::by_begin(boxes);
  Index covered = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Box& box = box_of(order[i]);
    bool replica = false;
    for (std::size_t j = 0; j < i && !replica; ++j) replica = box_of(order[j]) == box;
    if (!replica) covered = saturating_add(covered, box.size());
    for (std::size_t j = i + 1; j < order.size() && box_of(order[j])[0].lo < box[0].hi; ++j)
      if (!intersect(box, box_of(order[j])).empty() && !(box == box_of(order[j])))
        return {.rule = Rule::boxes_disjoint,
                .left = std::min(order[i], order[j]),
                .right = std::max(order[i], order[j])};
  }
  if (covered == volume(extents)) return {};
  return {.rule = Rule::boxes_cover, .left = covered, .right = volume(extents)};
}
}  // namespace detail

/// Returns the sentence for a verdict on these boxes.
inline std::string explain(const Verdict& v, const Extents& extents, std::span<const Box> boxes) {
  const auto box_of = [&](Index p) { return boxes[static_cast<std::size_t>(p)]; };
  const auto given = [&](Index p) {
    return "process " + std::to_string(p) + " declares " + to_string(box_of(p));
  };
  detail::FactNames names{.second = to_string(extents)};
  if (v.operand >= 0) names.first = given(v.operand);
  if (v.rule == Rule::boxes_cover) names.first = to_string(detail::hole(extents, boxes));
  if (v.rule == Rule::boxes_disjoint) {
    names.first = given(v.left);
    names.second = given(v.right) + ", which share " +
                   to_string(detail::intersect(box_of(v.left), box_of(v.right)));
  }
  return explain(v, names);
}

namespace detail {
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
}  // namespace detail
}  // namespace tessera
