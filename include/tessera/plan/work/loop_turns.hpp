// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The rounds of a looped product on a process: which blocks are in hand, and what it sends; and
/// the numbers that follow. plan/work/loop_work.hpp makes calls and GEMMs of them.
///
///     detail::LoopTurns turns(plan, plan.steps[0], at);
///     turns.turn(2, 0).block[0];                   // in round 2, whose block of the left operand
///     detail::count_loop(plan, plan.steps[0], at).payload
///
/// A gather loop and a reduce-scatter loop go around a ring from neighbour to neighbour. Where both
/// operands travel, each block comes from its owner: in Cannon's order (Cannon 1969) every block is
/// wanted by exactly one process of a ring at a time, without a first alignment; in SUMMA's (van de
/// Geijn and Watts 1997), which needs no even blocks, by all processes of the ring.
///
/// Laws: a process receives each block of the others once, so that the payload is that of the
/// collectives that the loop replaces; block 0 of a ring is a largest one.
#include <tessera/base/memory.hpp>
#include <tessera/mesh/levels.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera::detail {

/// The blocks in hand in one round, and the part of the loop's letter that is multiplied.
struct LoopTurn {
  Interval range;
  int block[3] = {};  ///< of the tensors that travel: numbers in their rings
};

class LoopTurns {
 public:
  constexpr LoopTurns(const Plan& plan, const Step& step, const Coordinates& at)
      : plan_(&plan), loop_(step.loop), at_(at) {
    slots_[0] = &plan.slots[step.in[0]];
    slots_[1] = &plan.slots[step.in[1]];
    slots_[2] = &plan.slots[step.out];
    for (int t = 0; t < 3; ++t) {
      dims_[t] = slots_[t]->labels.find(loop_.letter);
      if (loop_.rings[t].empty()) continue;
      traveller_ = t;
      sizes_[t] = mesh().parts(loop_.rings[t]);
      owns_[t] = position(loop_.rings[t], at_);
    }
    if (loop_.both_ways) cut_ = first_long_dim();
  }

  constexpr const Loop& loop() const { return loop_; }
  constexpr const MeshShape& mesh() const { return plan_->mesh; }
  constexpr const Slot& slot(int t) const { return *slots_[t]; }
  constexpr bool travels(int t) const { return sizes_[t] > 1; }
  /// The tensor that travels where one does.
  constexpr int traveller() const { return traveller_; }
  constexpr int members(int t) const { return sizes_[t]; }
  constexpr int own(int t) const { return owns_[t]; }
  constexpr bool of_two() const {
    return loop_.kind == LoopKind::cannon || loop_.kind == LoopKind::summa;
  }
  constexpr int parts() const { return loop_.both_ways ? 2 : 1; }
  /// The dimension of the traveller along which its blocks are halved.
  constexpr int cut() const { return cut_; }

  /// Returns the rounds of the process that has most, and of this one.
  constexpr int most_rounds() const {
    return static_cast<int>(ceil_div(all_rounds(), mesh().group_size(loop_.layers)));
  }
  constexpr int rounds() const {
    return static_cast<int>(max_of(0, min_of(most_rounds(), all_rounds() - first_round())));
  }
  /// Returns the blocks in hand in a round, of the halves that go with `part`.
  constexpr LoopTurn turn(int round, int part) const { return turn(round, part, owns_); }
  /// Returns whether a tensor's block changes before this round: then each member of its ring makes
  /// a call.
  constexpr bool changes(int t, int round) const {
    if (round >= rounds()) return false;
    return round == 0 || turn(round, 0).block[t] != turn(round - 1, 0).block[t];
  }
  /// Returns the block that another member of tensor t's ring has in hand.
  constexpr int block_of(int t, int member, int round) const {
    int owns[3] = {owns_[0], owns_[1], owns_[2]};
    owns[t] = member;
    return turn(round, 0, owns).block[t];
  }
  /// Returns the neighbour to which (or, `back`, from which) blocks of a part go.
  constexpr int neighbour(int part, bool back) const {
    const int p = sizes_[traveller_];
    return (owns_[traveller_] + ((part == 0) != back ? 1 : p - 1)) % p;
  }

  /// Returns the coordinates of a member of tensor t's ring.
  constexpr Coordinates place(int t, int member) const {
    Coordinates there = at_;
    const AxisList& ring = loop_.rings[t];
    for (int i = ring.size() - 1; i >= 0; --i) {
      there[ring[i]] = member % mesh()[ring[i]];
      member /= mesh()[ring[i]];
    }
    return there;
  }
  /// Returns the box of a tensor's block; of one that stays, the box that this process has.
  constexpr Box box(int t, int block) const {
    return tessera::block(slots_[t]->desc.extents, slots_[t]->desc.sharding, mesh(),
                          place(t, block));
  }
  /// Returns the half of a traveller's block that goes with `part`, or all of it.
  constexpr Box half(Box box, int part) const {
    if (!loop_.both_ways) return box;
    Interval& side = box[cut_];
    const Index middle = side.lo + ceil_div(side.size(), 2);
    (part == 0 ? side.hi : side.lo) = middle;
    return box;
  }
  /// Returns whether all processes have as much of the letter, around their rings.
  constexpr bool even() const {
    const TensorDesc& desc = slots_[traveller_]->desc;
    const int d = dims_[traveller_];
    return desc.extents[d] %
               mesh().parts(desc.sharding[d].without(loop_.rings[traveller_].set())) ==
           0;
  }
  /// Returns whether the blocks of one operand lie within those of the other, so that Cannon's
  /// order is possible. Precondition: this is process 0, and even().
  constexpr bool nests() const {
    const int fine = sizes_[0] >= sizes_[1] ? 0 : 1, each = sizes_[fine] / sizes_[1 - fine];
    if (sizes_[fine] % sizes_[1 - fine] != 0) return false;
    for (int b = 0; b < sizes_[fine]; ++b) {
      const Interval within = interval(1 - fine, b / each), part = interval(fine, b);
      if (part.size() > 0 && (part.lo < within.lo || part.hi > within.hi)) return false;
    }
    return true;
  }
  /// Returns the bytes of each buffer: those of the left operand (or the only traveller) first.
  constexpr FixedVector<Index, 4> buffers() const {
    FixedVector<Index, 4> bytes;
    for (int t = 0; t < 3; ++t)
      for (int i = 0; i < buffers_of(t); ++i)
        bytes.push_back(
            saturating_mul(box(t, 0).size(), static_cast<Index>(size_of(slots_[t]->desc.type))));
    return bytes;
  }
  /// One to compute with, one in which the next block arrives.
  constexpr int buffers_of(int t) const { return static_cast<int>(min_of(2, sizes_[t] - 1)); }

  /// Calls visit(tensor, round, part, member, elements) for each message of this process.
  template <class Visit> constexpr void for_each_message(const Visit& visit) const {
    const int t = traveller_;
    if (!of_two()) {
      for (int round = 0; round + 1 < sizes_[t]; ++round)
        for (int part = 0; part < parts(); ++part)
          if (const Index n = half(box(t, turn(round, part).block[t]), part).size(); n > 0)
            visit(t, round, part, neighbour(part, false), n);
      return;
    }
    for (int sent = 0; sent < 2; ++sent) {
      const Index n = box(sent, owns_[sent]).size();
      for (int round = 0; n > 0 && round < rounds(); ++round)
        for (int member = 0; changes(sent, round) && member < sizes_[sent]; ++member)
          if (member != owns_[sent] && block_of(sent, member, round) == owns_[sent])
            visit(sent, round, 0, member, n);
    }
  }

 private:
  constexpr int position(const AxisList& ring, const Coordinates& at) const {
    int index = 0;
    for (int i = 0; i < ring.size(); ++i) index = index * mesh()[ring[i]] + at[ring[i]];
    return index;
  }
  constexpr Interval interval(int t, int block) const {
    return tessera::block(slots_[t]->desc.extents[dims_[t]], slots_[t]->desc.sharding[dims_[t]],
                          mesh(), place(t, block));
  }
  constexpr int first_round() const {
    return most_rounds() * mesh().place_in_group(loop_.layers, at_);
  }
  constexpr int all_rounds() const {
    if (loop_.kind == LoopKind::cannon) return static_cast<int>(max_of(sizes_[0], sizes_[1]));
    if (loop_.kind == LoopKind::gather || loop_.kind == LoopKind::scatter)
      return sizes_[traveller_];
    LoopTurn last;
    return overlaps(last, -1);
  }
  constexpr LoopTurn turn(int round, int part, const int (&owns)[3]) const {
    LoopTurn turn;
    round += first_round();
    const int t = traveller_;
    switch (loop_.kind) {
      case LoopKind::none:
        return turn;
      case LoopKind::gather:
      case LoopKind::scatter: {
        const int back = (round + (loop_.kind == LoopKind::scatter ? 1 : 0)) % sizes_[t];
        turn.block[t] = (owns[t] + (part == 0 ? sizes_[t] - back : back)) % sizes_[t];
        turn.range = interval(t, turn.block[t]);
        return turn;
      }
      case LoopKind::cannon: {
        // Every block of the operand with more blocks, in an order in which the other operand's
        // blocks last for `each` rounds. Both are permutations of a ring in every round.
        const int fine = sizes_[0] >= sizes_[1] ? 0 : 1;
        const int coarse = sizes_[1 - fine], each = sizes_[fine] / coarse;
        turn.block[1 - fine] = (owns[0] + owns[1] + round / each) % coarse;
        turn.block[fine] = each * turn.block[1 - fine] + (owns[fine] / coarse + round) % each;
        break;
      }
      case LoopKind::summa:
        (void)overlaps(turn, round);
        break;
    }
    turn.range = intersect(interval(0, turn.block[0]), interval(1, turn.block[1]));
    return turn;
  }
  /// Counts the parts of the letter that lie in one block of both operands, in order, up to number
  /// `index`, or all of them where there are fewer; `turn` gets the last one's blocks.
  constexpr int overlaps(LoopTurn& turn, int index) const {
    int count = 0;
    for (int a = 0, b = 0; a < sizes_[0] && b < sizes_[1] && (index < 0 || count <= index);) {
      const Interval left = interval(0, a), right = interval(1, b);
      if (intersect(left, right).size() > 0) {
        turn.block[0] = a;
        turn.block[1] = b;
        ++count;
      }
      ++(left.hi <= right.hi ? a : b);
    }
    return count;
  }
  constexpr int first_long_dim() const {
    const Slot& s = *slots_[traveller_];
    const Coordinates origin(mesh().rank(), 0);
    for (int d = 0; d < s.desc.rank(); ++d)
      if (tessera::block(s.desc.extents[d], s.desc.sharding[d], mesh(), origin).size() > 1)
        return d;
    return 0;
  }

  const Plan* plan_;
  Loop loop_;
  Coordinates at_;
  const Slot* slots_[3] = {};
  int dims_[3] = {-1, -1, -1};  ///< of the letter
  int sizes_[3] = {1, 1, 1};    ///< of the rings
  int owns_[3] = {};            ///< this process's blocks
  int traveller_ = 0;
  int cut_ = 0;
};

/// The numbers of a looped product on one process.
struct LoopNumbers {
  Index payload = 0;  ///< bytes
  Index messages = 0;
  Index network_payload = 0;
  Index network_messages = 0;
  Index flops = 0;
  Index touched = 0;  ///< bytes of the operands and the result that the products see, each once
  Index scratch = 0;  ///< bytes
  Index products = 0;
};

constexpr LoopNumbers count_loop(const Plan& plan, const Step& step, const Coordinates& at) {
  const LoopTurns turns(plan, step, at);
  LoopNumbers n;
  turns.for_each_message([&](int t, int, int, int member, Index elements) {
    const Index bytes =
        saturating_mul(elements, static_cast<Index>(size_of(turns.slot(t).desc.type)));
    const bool far =
        step.level == Level::network && !on_one_node(step.node, at, turns.place(t, member));
    n.payload = saturating_add(n.payload, bytes);
    n.messages += 1;
    if (far) n.network_payload = saturating_add(n.network_payload, bytes);
    if (far) n.network_messages += 1;
  });
  for (const Index bytes : turns.buffers())
    n.scratch = saturating_add(n.scratch, arena_charge(bytes));
  n.products = static_cast<Index>(turns.rounds()) * turns.parts();
  // Operations for each element of the letter that travels with an operand; or all.
  const bool all = step.loop.kind == LoopKind::scatter;
  Index range = 0;
  for (int round = 0; !all && round < turns.rounds(); ++round)
    range += turns.turn(round, 0).range.size();
  const auto size_along = [&](char label) -> Index {
    if (!all && label == step.loop.letter) return range;
    const Slot& s = turns.slot(turns.slot(0).labels.contains(label) ? 0 : 1);
    const int d = s.labels.find(label);
    return block(s.desc.extents[d], s.desc.sharding[d], plan.mesh, at).size();
  };
  const auto volume_of = [&](const Term& labels) {
    Index elements = 1;
    for (const char label : labels) elements = saturating_mul(elements, size_along(label));
    return elements;
  };
  const Slot& out = plan.slots[step.out];
  n.flops = saturating_mul(2, volume_of(turns.slot(0).labels));
  for (const char label : turns.slot(1).labels)
    if (!turns.slot(0).labels.contains(label)) n.flops = saturating_mul(n.flops, size_along(label));
  const auto touch = [&](const Slot& s) {
    n.touched = saturating_add(
        n.touched, saturating_mul(volume_of(s.labels), static_cast<Index>(size_of(s.desc.type))));
  };
  touch(turns.slot(0));
  touch(turns.slot(1));
  touch(out);
  return n;
}

/// Fills in the numbers of a looped product on the process at `at`.
constexpr void number_loop(const Plan& plan, Step& step, const Coordinates& at) {
  const LoopNumbers n = count_loop(plan, step, at);
  step.payload = n.payload;
  step.network_payload = n.network_payload;
  step.messages = n.messages;
  step.flops = n.flops;
  step.scratch = n.scratch;
}

/// Returns the price of a loop's products.
constexpr std::int64_t work_of_loop(const LoopNumbers& n, DType type, const Machine& machine) {
  return machine.work(n.flops, n.touched, type);
}

/// Returns the price of what travels in a loop around a ring, in which all wait for the slowest
/// neighbours; both ways half goes to each of the two.
constexpr std::int64_t price_of_ring(const LoopNumbers& n, const Plan& plan, const Step& step,
                                     const Machine& machine) {
  if (!step.loop.both_ways) return machine.transfer(n.payload, n.messages, step.level);
  const std::int64_t travel = saturating_add(
      machine.transfer(n.payload - n.network_payload, n.messages - n.network_messages),
      machine.transfer(n.network_payload, n.network_messages, Level::network));
  return plan.mesh.group_size(step.group) > 2
             ? saturating_mul(travel / 100, machine.two_way_percent)
             : travel;
}

/// Returns the price of what travels in a loop in which both operands do. Before each round that
/// begins with another block some process waits for it: in Cannon's order for one message, in
/// SUMMA's until the block's owner has sent it to all of the ring. Those on its node read it at the
/// same time.
constexpr std::int64_t price_of_two(const LoopTurns& turns, const Step& step, const Coordinates& at,
                                    const Machine& machine) {
  std::int64_t travel = 0;
  for (int t = 0; t < 2; ++t) {
    if (!turns.travels(t)) continue;
    Index far = 0;
    for (int member = 0; member < turns.members(t); ++member)
      far += step.level == Level::network && !on_one_node(step.node, at, turns.place(t, member));
    const bool near = far + 1 < turns.members(t);
    if (step.loop.kind == LoopKind::cannon) far = min_of(far, 1);
    const Index bytes = saturating_mul(turns.box(t, 0).size(),
                                       static_cast<Index>(size_of(turns.slot(t).desc.type)));
    const std::int64_t each =
        far > 0 ? machine.transfer(saturating_mul(far, bytes), far, Level::network)
                : machine.transfer(near ? bytes : 0, near ? 1 : 0);
    for (int round = 0; round < turns.rounds(); ++round)
      if (turns.changes(t, round)) travel = saturating_add(travel, each);
  }
  return travel;
}

/// Returns the price of a looped product, always on process 0. In each round `hidden` percent of
/// the lesser of transfer and product cost no time; the sums of a reduce-scatter loop that go one
/// way are needed before the next product can begin, so that nothing of them is hidden.
constexpr std::int64_t price_loop(const Plan& plan, const Step& step, const Machine& machine) {
  const Coordinates origin(plan.mesh.rank(), 0);
  const LoopNumbers n = count_loop(plan, step, origin);
  const Index rounds = max_of(1, step.rounds);
  const LoopTurns turns(plan, step, origin);
  const std::int64_t travel = turns.of_two() ? price_of_two(turns, step, origin, machine)
                                             : price_of_ring(n, plan, step, machine);
  const std::int64_t product = work_of_loop(n, plan.slots[step.in[0]].desc.type, machine);
  const bool hides = step.loop.kind != LoopKind::scatter || step.loop.both_ways;
  const std::int64_t later = turns.of_two() ? travel / rounds * (rounds - 1) : travel;
  const std::int64_t lesser = min_of(later, product / rounds * (rounds - 1));
  const std::int64_t hidden = hides ? lesser / 100 * machine.hidden_percent : 0;
  return saturating_add(saturating_add(product, travel - hidden),
                        saturating_mul(max_of(0, n.products - 1), machine.message_ps));
}

}  // namespace tessera::detail
