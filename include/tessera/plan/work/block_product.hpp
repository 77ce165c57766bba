// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A product of parts of blocks: of a product in rounds (plan/work/loop_work.hpp), and of one that
/// reads a gathered operand part by part, its own part where it was before the gather.
///
///     for (const BlockProduct& one : part_products(plan, step)) ...   // in this order
///
/// Laws: the products of a step add up to the product of its blocks.
#include <vector>

#include <tessera/plan/move/move.hpp>
#include <tessera/plan/region/stored.hpp>
#include <tessera/plan/work/contraction.hpp>

namespace tessera::detail {

/// Where a block is: in an operand or the result of the product, or in a buffer of a loop.
struct BlockPlace {
  /// 0: left operand, 1: right operand, 2: result; -1: the buffer; own_part: where this process's
  /// part of a gathered operand is.
  int tensor = -1;
  int buffer = -1;
  Index offset = 0;  ///< elements
  static constexpr int own_part = 3;
  constexpr bool operator==(const BlockPlace&) const = default;
};
/// One product of blocks, each from its place's offset on.
struct BlockProduct {
  ContractionWork work;
  BlockPlace blocks[3];
  bool adds = false;   ///< to what the result holds
  bool empty = false;  ///< it writes nothing
};

/// What a product takes of a dimension; with no range, all that is in hand.
struct PartRange {
  char letter = 0;
  const Interval* range = nullptr;
};

/// Returns the product of what this process has of the tensors in these slots: of a tensor with a
/// box, the elements in it, which follow each other from its place on; of another, those that the
/// boxes leave of its whole block. Where the sum is empty, the product writes zeros, unless it
/// adds.
inline BlockProduct block_product(const Plan& plan, const Slot* const (&slots)[3],
                                  const Box* const (&boxes)[3], const BlockPlace (&places)[3],
                                  const PartRange& part, bool adds) {
  const Coordinates at = plan.mesh.coordinates(plan.process);
  BlockProduct product;
  ContractionBlock blocks[3];
  product.adds = adds;
  for (int t = 0; t < 3; ++t) {
    const Slot& slot = *slots[t];
    const bool whole = boxes[t] == nullptr;
    const Box has = whole ? held_box(plan, slot, at) : *boxes[t];
    const int panel_dim = whole ? slot.panel_dim : -1;
    Extents stored = whole ? stored_box(plan, slot, at).extents() : has.extents();
    if (panel_dim >= 0) stored[panel_dim] /= slot.panels;
    const Extents strides = row_major_strides(stored);
    Box used = has;
    for (int d = 0; d < used.rank(); ++d) {
      for (int other = 0; other < 3; ++other)
        if (const int same = slots[other]->labels.find(slot.labels[d]);
            boxes[other] != nullptr && same >= 0)
          used[d] = intersect(used[d], (*boxes[other])[same]);
      if (part.range != nullptr && slot.labels[d] == part.letter)
        used[d] = intersect(used[d], *part.range);
    }
    product.blocks[t] = places[t];
    for (int d = 0; !used.empty() && d < used.rank(); ++d)
      product.blocks[t].offset += (used[d].lo - has[d].lo) * strides[d];
    blocks[t] = {slot.labels, used.extents(), panel_dim, whole ? slot.panels : 1, strides};
    if (panel_dim >= 0) blocks[t].panel_stride = volume(stored);
    blocks[t] = without_units(blocks[t], slot, plan);
    product.empty = product.empty || (t == 2 ? used.empty() : adds && used.empty());
  }
  if (!product.empty) product.work = contraction_work(blocks[0], blocks[1], blocks[2]);
  return product;
}

/// Returns the operand of a contract step (0 or 1) of which the own part stays where it is; -1:
/// neither.
constexpr int operand_in_parts(const Plan& plan, const Step& step) {
  for (int t = 0; t < 2; ++t)
    if (plan.slots[step.in[t]].own_part >= 0) return t;
  return -1;
}

/// Returns the products, one for each part of the gathered operand, in the order of the group, so
/// that every process adds the parts of a sum in one order. Precondition: one operand's own part
/// stays where it is.
inline std::vector<BlockProduct> part_products(const Plan& plan, const Step& step) {
  const Coordinates at = plan.mesh.coordinates(plan.process);
  const int t = operand_in_parts(plan, step);
  const Slot* const slots[3] = {&plan.slots[step.in[0]], &plan.slots[step.in[1]],
                                &plan.slots[step.out]};
  const Slot& gathered = *slots[t];
  const TensorDesc& from = plan.slots[gathered.own_part].desc;
  AxisSet group;
  for (const Step& gather : plan.steps)
    if (gather.out == step.in[t]) group = gather.group;
  const Box whole = held_box(plan, gathered, at);
  const int d = gathered_dim(from.sharding, gathered.desc.sharding, plan.mesh);
  const bool summed = !slots[2]->labels.contains(gathered.labels[d]);
  std::vector<BlockProduct> products;
  for (int q = 0; q < plan.mesh.group_size(group); ++q) {
    const Box box = block(from.extents, from.sharding, plan.mesh, plan.mesh.member(group, at, q));
    const Box* boxes[3] = {};
    BlockPlace places[3] = {{0}, {1}, {2}};
    boxes[t] = &box;
    if (q == plan.mesh.place_in_group(group, at))
      places[t] = {BlockPlace::own_part};
    else if (!box.empty())
      places[t].offset = (box[d].lo - whole[d].lo) * (whole.size() / whole[d].size());
    const BlockProduct one = block_product(plan, slots, boxes, places, {}, summed && q > 0);
    if (!one.empty) products.push_back(one);
  }
  return products;
}

}  // namespace tessera::detail
