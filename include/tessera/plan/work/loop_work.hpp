// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A looped product on a process as a list: start a call, let it progress, wait for it, multiply;
/// or, where nothing hides behind products, make a call at once.
///
///     detail::LoopWork work = detail::loop_work(plan, plan.steps[0]);
///     for (const detail::LoopEvent& event : work.events) ...      // in this order
///
/// Laws: what a product reads has arrived and is not written meanwhile; all members of a ring make
/// the same calls in the same order; the payload of the calls is the step's; the buffers add up to
/// step.scratch.
#include <algorithm>
#include <utility>
#include <vector>

#include <tessera/mesh/call.hpp>
#include <tessera/plan/work/block_product.hpp>
#include <tessera/plan/work/loop_turns.hpp>

namespace tessera::detail {

/// One call; its pieces count from the beginning of both memories.
struct LoopCall {
  Call call;
  BlockPlace from, to;
};
struct LoopEvent {
  enum class Kind { call, start, wait, multiply, progress };
  Kind kind = Kind::multiply;
  int number = 0;  ///< of the call or of the product
};
struct LoopWork {
  FixedVector<Index, 4> buffers;  ///< bytes
  std::vector<LoopCall> calls;
  std::vector<BlockProduct> products;
  std::vector<LoopEvent> events;
};

class LoopMaker {
 public:
  LoopMaker(const Plan& plan, const Step& step)
      : plan_(plan),
        step_(step),
        at_(plan.mesh.coordinates(plan.process)),
        turns_(plan, step, at_),
        t_(turns_.traveller()) {
    work_.buffers = turns_.buffers();
  }

  LoopWork make() {
    if (turns_.loop().kind == LoopKind::gather)
      gather();
    else if (turns_.loop().kind == LoopKind::scatter)
      scatter();
    else
      fetch();
    return std::move(work_);
  }

 private:
  // ---- one operand travels

  void gather() {
    const int last = turns_.members(t_) - 1;
    for (int round = 0; round <= last; ++round) {
      if (round < last) {
        LoopCall& next = call(t_, in_hand(round, 0), in_hand(round + 1, 0));
        for (int part = 0; part < turns_.parts(); ++part) {
          send(next, turns_.neighbour(part, false), in_hand(round, part).offset,
               piece(round, part).size());
          receive(next, turns_.neighbour(part, true), in_hand(round + 1, part).offset,
                  piece(round + 1, part).size());
        }
        start(next);
      }
      for (int part = 0; part < turns_.parts(); ++part) {
        if (part > 0 && round < last && !turns_.loop().at_once)
          work_.events.push_back({LoopEvent::Kind::progress});
        multiply(piece(round, part), in_hand(round, part), adds(round, part));
      }
      if (round < last) wait();
    }
  }
  /// Returns whether what a product makes in a round is there in part. Where the halves of a block
  /// are parts of the same sums, one may arrive before the other.
  bool adds(int round, int part) const {
    const int other = (turns_.members(t_) - round) % turns_.members(t_);
    const bool both = turns_.parts() > 1 && !makes(turns_.slot(t_).labels[turns_.cut()]);
    if (!makes(turns_.loop().letter)) return round > 0 || (both && part == 1);
    return both && (part == 0 ? round > other : round >= other);
  }
  Box piece(int round, int part) const {
    return turns_.half(turns_.box(t_, turns_.turn(round, part).block[t_]), part);
  }
  /// Where the operand's block of a round is: the own one where it always is.
  BlockPlace in_hand(int round, int part) const {
    if (round == 0) return {t_, -1, before(turns_.own(t_), part)};
    return {-1, (round - 1) % turns_.buffers_of(t_), before(0, part)};
  }
  /// Returns the elements of a block before the half that goes with `part`.
  Index before(int block, int part) const {
    return part == 0 ? 0 : turns_.half(turns_.box(t_, block), 0).size();
  }
  bool makes(char letter) const { return turns_.slot(2).labels.contains(letter); }

  // ---- the result travels

  void scatter() {
    const int last = turns_.members(t_) - 1;
    std::vector<int> under_way(2, -1);
    for (int round = 0; round <= last; ++round)
      for (int part = 0; part < turns_.parts(); ++part) {
        int& pending = under_way[static_cast<std::size_t>(part)];
        if (pending >= 0) wait(pending);
        multiply(piece(round, part), sum(round, part), round > 0);
        if (round == last) continue;
        LoopCall& next = call(t_, sum(round, part), sum(round + 1, part));
        send(next, turns_.neighbour(part, false), sum(round, part).offset,
             piece(round, part).size());
        receive(next, turns_.neighbour(part, true), sum(round + 1, part).offset,
                piece(round + 1, part).size());
        start(next);
        pending = static_cast<int>(work_.calls.size()) - 1;
      }
  }
  /// Where the sums of a round are: those of the last one in the result.
  BlockPlace sum(int round, int part) const {
    if (round + 1 == turns_.members(t_)) return {2, -1, before(turns_.own(t_), part)};
    return {-1, round % turns_.buffers_of(t_), before(0, part)};
  }

  // ---- both operands travel

  /// A block that was fetched, or the own one.
  struct Fetched {
    Box box;
    BlockPlace place;
    int count = 0;  ///< fetches so far
  };
  void fetch() {
    Fetched now[2] = {}, next[2] = {};
    std::vector<int> pending;
    for (int round = 0; round < turns_.most_rounds(); ++round) {
      if (round == 0) prepare(0, now, next, pending);
      finish(pending);
      for (int t = 0; t < 2; ++t) now[t] = next[t];
      if (round + 1 < turns_.most_rounds()) prepare(round + 1, now, next, pending);
      if (round < turns_.rounds()) multiply(turns_.turn(round, 0).range, now, round > 0);
    }
    if (turns_.rounds() > 0) return;
    for (int t = 0; t < 2; ++t) now[t] = {turns_.box(t, turns_.own(t)), {t, -1, 0}, 0};
    multiply(Interval{}, now, false);  // zeros
  }
  /// Starts the calls that bring the blocks of a round. Layers make as many, some of them empty.
  void prepare(int round, const Fetched (&now)[2], Fetched (&next)[2], std::vector<int>& pending) {
    for (int t = 0; t < 2; ++t) {
      next[t] = now[t];
      if (!turns_.changes(t, round)) {
        if (turns_.loop().layers.empty()) continue;
        start(call(t, {t, -1, 0}, {t, -1, 0}));
        pending.push_back(static_cast<int>(work_.calls.size()) - 1);
        continue;
      }
      const int block = turns_.turn(round, 0).block[t], own = turns_.own(t);
      const int buffer = (t == 0 ? 0 : turns_.buffers_of(0)) + now[t].count % turns_.buffers_of(t);
      next[t] = {turns_.box(t, block), {-1, buffer, 0}, now[t].count + 1};
      LoopCall& one = call(t, {t, -1, 0}, next[t].place);
      for (int member = 0; member < turns_.members(t); ++member)
        if (member != own && turns_.block_of(t, member, round) == own)
          send(one, member, 0, turns_.box(t, own).size());
      if (block == own)
        next[t].place = {t, -1, 0};
      else
        receive(one, block, 0, next[t].box.size());
      start(one);
      pending.push_back(static_cast<int>(work_.calls.size()) - 1);
    }
  }
  void finish(std::vector<int>& pending) {
    for (const int number : pending) wait(number);
    pending.clear();
  }

  // ---- calls

  LoopCall& call(int t, BlockPlace from, BlockPlace to) {
    from.offset = to.offset = 0;
    LoopCall& one = work_.calls.emplace_back(LoopCall{{}, from, to});
    tensor_ = t;
    one.call.kind = Collective::collective_permute;
    one.call.group = turns_.loop().rings[t].set();
    one.call.type = turns_.slot(t).desc.type;
    one.call.members = turns_.members(t);
    one.call.own = plan_.mesh.place_in_group(one.call.group, at_);
    one.call.bound = turns_.box(t, 0).size();
    return one;
  }
  int number_of(int member) const {
    return plan_.mesh.place_in_group(turns_.loop().rings[tensor_].set(),
                                     turns_.place(tensor_, member));
  }
  void send(LoopCall& one, int member, Index offset, Index count) {
    if (count == 0) return;
    one.call.send.push_back({number_of(member), offset, count});
    if (step_.level == Level::network &&
        !on_one_node(step_.node, at_, turns_.place(tensor_, member)))
      one.call.network += count;
  }
  void receive(LoopCall& one, int member, Index offset, Index count) {
    if (count > 0) one.call.receive.push_back({number_of(member), offset, count});
  }
  void start(LoopCall& one) {
    const auto by_peer = [](const Piece& x, const Piece& y) { return x.peer < y.peer; };
    std::sort(one.call.send.begin(), one.call.send.end(), by_peer);
    std::sort(one.call.receive.begin(), one.call.receive.end(), by_peer);
    const auto kind = turns_.loop().at_once ? LoopEvent::Kind::call : LoopEvent::Kind::start;
    work_.events.push_back({kind, static_cast<int>(work_.calls.size()) - 1});
  }
  void wait() { wait(static_cast<int>(work_.calls.size()) - 1); }
  void wait(int number) {
    if (!turns_.loop().at_once) work_.events.push_back({LoopEvent::Kind::wait, number});
  }

  // ---- products

  /// Multiplies with the only traveller's block `box`, which is at `place`.
  void multiply(const Box& box, BlockPlace place, bool adds) {
    const Box* boxes[3] = {};
    BlockPlace places[3] = {{0, -1, 0}, {1, -1, 0}, {2, -1, 0}};
    boxes[t_] = &box;
    places[t_] = place;
    multiply(boxes, places, nullptr, adds);
  }
  void multiply(const Interval& range, const Fetched (&now)[2], bool adds) {
    const Box* boxes[3] = {&now[0].box, &now[1].box, nullptr};
    BlockPlace places[3] = {now[0].place, now[1].place, {2, -1, 0}};
    multiply(boxes, places, &range, adds);
  }
  void multiply(const Box* const (&boxes)[3], const BlockPlace (&places)[3], const Interval* range,
                bool adds) {
    const Slot* const slots[3] = {&turns_.slot(0), &turns_.slot(1), &turns_.slot(2)};
    const PartRange part{turns_.loop().letter, range};
    const BlockProduct product = block_product(plan_, slots, boxes, places, part, adds);
    if (product.empty) return;
    work_.products.push_back(product);
    work_.events.push_back(
        {LoopEvent::Kind::multiply, static_cast<int>(work_.products.size()) - 1});
  }

  const Plan& plan_;
  const Step& step_;
  Coordinates at_;
  LoopTurns turns_;
  int t_;
  int tensor_ = 0;  ///< of the call that is being made
  LoopWork work_;
};

/// Returns the work of a looped product on the plan's process. Precondition: step.loop.
inline LoopWork loop_work(const Plan& plan, const Step& step) {
  return LoopMaker(plan, step).make();
}

}  // namespace tessera::detail
