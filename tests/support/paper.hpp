// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// All processes of a mesh on paper: their plans are compared, their work lists are carried out in
/// plain loops on plain vectors, call by call, and what each ends with is compared with the oracle.
/// No thread, no MPI, no Kokkos.
///
///     support::Paper paper([&](int process) { return plan_reshard(x, to, mesh, process); }, mesh);
///     std::string wrong = paper.broken_law();           // "" when the laws of plan.hpp and work.hpp hold
///     wrong = paper.wrong_result(inputs, expected);     // "" when every process ends with its block
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "enumerate.hpp"
#include "indexed.hpp"
#include "reference.hpp"

namespace support {

class Paper {
 public:
  using Value = std::int64_t;
  using Values = std::vector<Value>;
  static constexpr Value unwritten = -0x7123'4567'89ab'cdefLL;

  template <class MakePlan>
  Paper(const MakePlan& make, const MeshShape& mesh, const Machine& machine = {})
      : mesh_(mesh), machine_(machine) {
    for (int p = 0; p < mesh.processes(); ++p) {
      plans_.push_back(make(p));
      work_.push_back(work_of(plans_.back()));
    }
  }
  const Plan& plan() const { return plans_[0]; }
  /// Maps multiply what they read; else they add x0 + 2 x1 + 3 x2 + ...
  void multiply(bool on) { multiply_ = on; }
  /// What lies outside a tensor.
  void fill_with(Value value) { outside_ = value; }
  /// Where windows begin, in each dimension.
  void start(const Extents& starts) { starts_ = starts; }

  /// Returns what is wrong with the plans, or nothing.
  std::string broken_law() const {
    for (int p = 0; p < mesh_.processes(); ++p) {
      const Plan& mine = plans_[index(p)];
      const std::string at = "process " + std::to_string(p) + ": ";
      if (mine.process != p) return at + "the plan is another's";
      if (!(leveled(mine) == leveled(plans_[0]))) return at + "other steps than process 0";
      if (work_[index(p)].size() != index(mine.steps.size()))
        return at + "work and steps differ in number";
      for (int i = 0; i < mine.steps.size(); ++i) {
        const Step& step = mine.steps[i];
        std::vector<StepWork> rounds{work_[index(p)][index(i)]};
        for (Index round = 1; round < step.rounds; ++round)
          rounds.push_back(work_of(mine, step, round));
        const std::string text = broken_step(mine, step, rounds);
        if (!text.empty()) return at + "step " + std::to_string(i) + ": " + text;
      }
      if (const std::string text = broken_memory(mine); !text.empty()) return at + text;
    }
    return "";
  }

  /// Carries the plans out on the operands' blocks made from `seeds`; returns the first process
  /// whose result, combined over what it is still partial over, is not its block of `expected`.
  std::string wrong_result(const std::vector<std::uint64_t>& seeds, const Whole<Value>& expected) {
    return wrong_results(seeds, {expected});
  }
  /// The same of a plan with several results, in order.
  std::string wrong_results(const std::vector<std::uint64_t>& seeds,
                            const std::vector<Whole<Value>>& expected) {
    data_.assign(index(mesh_.processes()), std::vector<Values>(index(plan().slots.size())));
    for (int p = 0; p < mesh_.processes(); ++p)
      for (int o = 0; o < plan().operands; ++o)
        slot(p, o) = operand(plan().slots[o], p, seeds[index(o)]);
    try {
      for (int i = 0; i < plan().steps.size(); ++i) carry_out(i);
    } catch (const std::exception& error) {
      return error.what();
    }
    if (expected.size() != 1 + index(plan().also.size()))
      return "it has " + std::to_string(1 + plan().also.size()) + " results";
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (const std::string text = wrong_slot(
              i == 0 ? plan().result : plan().also[static_cast<int>(i) - 1], expected[i]);
          !text.empty())
        return expected.size() == 1 ? text : "result " + std::to_string(i + 1) + ": " + text;
    return "";
  }

 private:
  std::string wrong_slot(int which, const Whole<Value>& expected) {
    const Slot& result = plan().slots[which];
    TensorDesc desc = result.desc;
    if (which == plan().result) desc.sharding = plan().result_sharding;
    if (!(desc.extents == expected.extents))
      return "the result has extents " + to_string(desc.extents) + ", not " +
             to_string(expected.extents);
    const Holding held(desc, result.given ? result.place : Placement{}, mesh_);
    for (int p = 0; p < mesh_.processes(); ++p) {
      const Coordinates at = mesh_.coordinates(p);
      Values mine = slot(p, which);
      for (int k = 0; k < mesh_.group_size(desc.sharding.partial); ++k) {
        const Values& other =
            slot(mesh_.process(mesh_.member(desc.sharding.partial, at, k)), which);
        if (other.size() != mine.size()) return "blocks of one group differ in size";
        for (std::size_t j = 0; j < mine.size(); ++j)
          mine[j] = k == 0 ? other[j] : combine(desc.sharding.reduction, mine[j], other[j]);
      }
      const Values wanted = held.holds(p) ? block_of(expected, held.box(p)) : Values{};
      if (mine.size() != wanted.size())
        return "process " + std::to_string(p) + " has " + std::to_string(mine.size()) +
               " elements, not " + std::to_string(wanted.size());
      for (std::size_t j = 0; j < mine.size(); ++j)
        if (mine[j] != wanted[j])
          return "process " + std::to_string(p) + ", element " + std::to_string(j) +
                 " of its block: " + std::to_string(mine[j]) +
                 (mine[j] == unwritten ? " (never written)" : "") + ", not " +
                 std::to_string(wanted[j]);
    }
    return "";
  }

  /// What process p has of an operand made from `seed`.
  Values operand(const Slot& s, int p, std::uint64_t seed) const {
    if (s.place.sharded()) return block_input<Value>(s.desc, mesh_, mesh_.coordinates(p), seed);
    const Holding held(s.desc, s.place, mesh_);
    return held.holds(p) ? block_of(whole_input<Value>(s.desc, mesh_, seed), held.box(p))
                         : Values{};
  }
  static std::size_t index(Index i) { return static_cast<std::size_t>(i); }
  Values& slot(int process, int s) { return data_[index(process)][index(s)]; }
  static Value& at(Values& values, Index i) {
    if (i < 0 || i >= static_cast<Index>(values.size()))
      throw std::out_of_range("element " + std::to_string(i) + " of a buffer of " +
                              std::to_string(values.size()) + " is touched");
    return values[index(i)];
  }

  // ---- laws
  // ----------------------------------------------------------------------------------------------------

  /// Returns the plan without what is a process's own.
  static Plan leveled(Plan plan) {
    plan.process = 0;
    plan.peak_bytes = 0;
    for (Slot& s : plan.slots) s.bytes = 0;
    for (Step& step : plan.steps)
      step.payload = step.network_payload = step.messages = step.flops = step.scratch = 0;
    return plan;
  }

  /// `rounds`: the work of each round, one for most steps.
  std::string broken_step(const Plan& plan, const Step& step,
                          const std::vector<StepWork>& rounds) const {
    if (step.kind != StepKind::communicate) {
      if (step.payload != 0) return "local work that communicates";
      return step.scratch == arena_charge(rounds[0].send_staging)
                 ? ""
                 : "the work's memory is not the step's scratch";
    }
    Index payload = 0, network = 0, messages = 0, scratch = 0, arriving = 0;
    AxisSet spanned;
    std::string text;
    for (const StepWork& work : rounds) {
      scratch =
          max_of(scratch, arena_charge(work.send_staging) + arena_charge(work.receive_staging));
      if (step.rounds > 1 && max_of(work.send_staging, work.receive_staging) > step.slab)
        return "a round's staging is more than a slab";
      work.for_each_call([&](const CallWork& one) {
        payload += payload_bytes(one.call);
        network += network_bytes(one.call);
        messages += message_count(one.call);
        spanned = spanned | one.call.group.spanned();
        if (text.empty()) text = broken_call(plan, one.call);
      });
      if (!text.empty()) return text;
      for (const Piece& piece : work.call.receive) arriving += piece.count;
      for (const StridedCopy& copy : work.local) arriving += volume(copy.extents);
    }
    if (scratch != step.scratch) return "the staging is not the step's scratch";
    if (payload != step.payload)
      return "the calls' payload is " + std::to_string(payload) + " bytes, the step's " +
             std::to_string(step.payload);
    if (network != step.network_payload)
      return "between nodes the calls have " + std::to_string(network) + " bytes, the step " +
             std::to_string(step.network_payload);
    if (messages != step.messages)
      return "the calls have " + std::to_string(messages) + " messages, the step " +
             std::to_string(step.messages);
    if (!(spanned == step.group)) return "the calls' groups do not make up the step's";
    if ((network > 0 && step.level != Level::network) ||
        levels(step.group, mesh_, machine_).level() != step.level)
      return "the level is wrong";
    if (!step.near.empty()) {
      if (rounds[0].then.empty()) return "in levels, but in one call";
      return broken_pieces(rounds[0].call, plan.slots[step.in[0]], plan.slots[step.out], true);
    }
    for (const StepWork& work : rounds) {
      const Call& call = work.call;
      const bool in_place =
          step.takes >= 0 || (!step.also.empty() && call.kind == Collective::all_reduce);
      if (!work.then.empty() || call.kind != step.collective || !(call.group == step.group) ||
          call.even != step.even || call.in_place != in_place)
        return "the call is not the step's";
      if ((work.send_staging > 0 && step.direct_send) ||
          (work.receive_staging > 0 && step.direct_receive))
        return "direct, and staged";
      if (text = broken_pieces(call, plan.slots[step.in[0]], plan.slots[step.out], false);
          !text.empty())
        return text;
    }
    if (step.merges) return "";
    Index made = plan.slots[step.out].bytes;
    for (int also : step.also) made += plan.slots[also].bytes;
    // Regions may leave elements to be filled, and lie over one another.
    if (step.region < 0 && arriving * static_cast<Index>(size_of(rounds[0].call.type)) != made)
      return "what arrives does not make up the block";
    return "";
  }
  /// Of one call: its group, its pieces if it is even, and what it counts as going between nodes.
  std::string broken_call(const Plan& plan, const Call& call) const {
    const Coordinates at = mesh_.coordinates(plan.process);
    if (call.members != mesh_.group_size(call.group) ||
        call.own != mesh_.group_rank(call.group, at))
      return "the call's group is not as large as the call";
    if (call.even && !packed_alike(call)) return "even, but the pieces are not alike and in order";
    const AxisGroup near = levels(call.group.spanned(), mesh_, machine_).node;
    const auto is_near = [&](int member) {
      const Coordinates peer = mesh_.member(call.group, at, member);
      for (int k = 0; k < mesh_.group_size(near); ++k)
        if (mesh_.member(near, at, k) == peer) return true;
      return false;
    };
    Index far = 0;
    if (call.kind == Collective::all_reduce) {
      for (int q = 0; q < call.members; ++q)
        if (!is_near(q)) far += 2 * block_size(call.send.at(0).count, call.members, q);
    } else {
      for (const Piece& piece : call.kind == Collective::all_gather ? call.receive : call.send)
        if (!is_near(piece.peer)) far += piece.count;
    }
    if (far != call.network)
      return "it counts " + std::to_string(call.network) + " elements between nodes, not " +
             std::to_string(far);
    return "";
  }
  static std::string broken_pieces(const Call& call, const Slot& from, const Slot& to,
                                   bool staged) {
    const bool point_to_point =
        call.kind == Collective::collective_permute || call.kind == Collective::exchange;
    for (const auto* pieces : {&call.send, &call.receive}) {
      int last = -1;
      for (const Piece& piece : *pieces) {
        if (piece.count < 0 || piece.offset < 0 || piece.peer < 0 || piece.peer >= call.members)
          return "a piece is not possible";
        if (point_to_point && (piece.peer <= last || piece.peer == call.own || piece.count == 0))
          return "pieces are not ascending, to others and non-empty";
        last = piece.peer;
      }
    }
    const std::size_t all = index(call.members);
    const auto one_each = [&](const std::vector<Piece>& pieces) {
      if (pieces.size() != all) return false;
      for (std::size_t q = 0; q < all; ++q)
        if (pieces[q].peer != static_cast<int>(q)) return false;
      return true;
    };
    const auto one_own = [&](const std::vector<Piece>& pieces) {
      return pieces.size() == 1 && pieces[0].peer == call.own;
    };
    switch (call.kind) {
      case Collective::all_gather:
        return one_own(call.send) && one_each(call.receive) ? ""
                                                            : "not the pieces of an all-gather";
      case Collective::reduce_scatter:
        return one_each(call.send) && one_own(call.receive) ? ""
                                                            : "not the pieces of a reduce-scatter";
      case Collective::all_to_all:
        return one_each(call.send) && one_each(call.receive) ? ""
                                                             : "not the pieces of an all-to-all";
      case Collective::all_reduce:
        return one_own(call.send) && one_own(call.receive) && (staged || from.bytes == to.bytes)
                   ? ""
                   : "not the pieces of an all-reduce";
      default:
        return "";
    }
  }
  static bool packed_alike(const Call& call) {
    for (const auto* pieces : {&call.send, &call.receive})
      for (std::size_t q = 0; q < pieces->size(); ++q)
        if ((*pieces)[q].count != (*pieces)[0].count ||
            (*pieces)[q].offset != static_cast<Index>(q) * (*pieces)[0].count)
          return false;
    return true;
  }
  /// Replays lifetimes: every temporary is made once and ends at its last use.
  static std::string broken_memory(const Plan& plan) {
    Index peak = 0;
    for (int i = 0; i < plan.steps.size(); ++i) {
      Index held = plan.steps[i].scratch;
      for (int s = plan.operands; s < plan.slots.size(); ++s) {
        int made = -1;
        int passed_on = plan.steps.size();
        for (int k = 0; k < plan.steps.size(); ++k) {
          if (plan.steps[k].out == s || plan.steps[k].also.contains(static_cast<std::int8_t>(s)))
            made = k;
          if (plan.steps[k].takes == s ||
              (plan.steps[k].merges && plan.steps[k].in.contains(static_cast<std::int8_t>(s))))
            passed_on = k;
        }
        if (made < 0) return "slot " + std::to_string(s) + " is never made";
        const bool kept = s == plan.result || plan.also.contains(static_cast<std::int8_t>(s));
        if (!kept && plan.slots[s].last_use < made)
          return "slot " + std::to_string(s) + " is never used";
        const int end = kept ? plan.steps.size() : plan.slots[s].last_use;
        if (made <= i && i <= end && i < passed_on && !plan.slots[s].given)
          held += arena_charge(plan.slots[s].bytes);
      }
      peak = max_of(peak, held);
    }
    return peak == plan.peak_bytes ? ""
                                   : "the peak is " + std::to_string(peak) +
                                         " bytes, the plan says " + std::to_string(plan.peak_bytes);
  }

  // ---- work
  // ----------------------------------------------------------------------------------------------------

  static void copy(Values& from, Values& to, const std::vector<StridedCopy>& copies) {
    for (const StridedCopy& c : copies)
      for_each_index(c.extents, [&](const Extents& i) {
        at(to, c.to_offset + dot(i, c.to_strides)) =
            at(from, c.from_offset + dot(i, c.from_strides));
      });
  }
  void carry_out(int i) {
    const Step& step = plan().steps[i];
    if (step.region >= 0) return take_regions(i);
    for (int p = 0; p < mesh_.processes(); ++p) {
      const Plan& mine = plans_[index(p)];
      slot(p, step.out)
          .assign(index(mine.slots[step.out].bytes) / size_of(mine.slots[step.out].desc.type),
                  unwritten);
      for (int also : step.also)
        slot(p, also).assign(index(mine.slots[also].bytes) / size_of(mine.slots[also].desc.type),
                             unwritten);
    }
    if (step.merges) return merge(i);
    if (!step.also.empty()) return communicate_joined(i);
    if (step.kind == StepKind::communicate) {
      for (Index round = 0; round < step.rounds; ++round) {
        if (round > 0)
          for (int p = 0; p < mesh_.processes(); ++p)
            work_[index(p)][index(i)] = work_of(plans_[index(p)], step, round);
        communicate(i);
      }
      return;
    }
    for (int p = 0; p < mesh_.processes(); ++p) {
      const StepWork& work = work_[index(p)][index(i)];
      Values& out = slot(p, step.out);
      switch (step.kind) {
        case StepKind::slice:
        case StepKind::copy:
        case StepKind::permute:
        case StepKind::diagonal:
          if (work.zeroed) out.assign(out.size(), 0);
          copy(slot(p, step.in[0]), out, work.local);
          break;
        case StepKind::contract:
          contract(work.contract, slot(p, step.in[0]), slot(p, step.in[1]), out);
          break;
        case StepKind::reduce:
          reduce_block(work.reduce, slot(p, step.in[0]), out);
          break;
        case StepKind::round:
        case StepKind::widen:
          out = slot(p, step.in[0]);
          break;
        case StepKind::map:
          map_block(work.map, step, p, out);
          break;
        case StepKind::find:
          find_block(work.find, slot(p, step.in[0]), slot(p, step.in[1]), out);
          break;
        case StepKind::scan:
          scan_block(work.scan, slot(p, step.in[0]),
                     step.in.size() > 1 ? &slot(p, step.in[1]) : nullptr, out);
          break;
        case StepKind::fold:
          fold_block(work.scan, slot(p, step.in[0]), out);
          break;
        case StepKind::sort:
        case StepKind::order:
          sort_block(work.sort, slot(p, step.in[0]),
                     step.in.size() > 1 ? &slot(p, step.in[1]) : nullptr,
                     step.kind == StepKind::order, out);
          break;
        case StepKind::arrange:
          arrange_block(work.sort, slot(p, step.in[0]), slot(p, step.in[1]), out);
          break;
        case StepKind::exponent:
          exponent_block(work.bins, slot(p, step.in[0]), out);
          break;
        case StepKind::bins:
          bins_block(work.bins, slot(p, step.in[0]), slot(p, step.in[1]), out);
          break;
        case StepKind::unbin:
          unbin_block(work.bins, slot(p, step.in[0]), slot(p, step.in[1]), out);
          break;
        case StepKind::take:
          take_block(work.take, plan().reduction, slot(p, step.in[0]),
                     inputs(p, step, 1, step.in.size()), out, at);
          break;
        case StepKind::scatter: {
          const int first = tessera::detail::scatters_into(plan(), step) ? 1 : 0;
          scatter_block(work.scatter, plan().reduction, first > 0 ? &slot(p, step.in[0]) : nullptr,
                        inputs(p, step, first, step.in.size() - 1), slot(p, step.in.back()), out,
                        at);
          break;
        }
        case StepKind::one_hot:
          one_hot_block(work.one_hot, slot(p, step.in[0]), out, at);
          break;
        case StepKind::slide:
          out.assign(out.size(), start_of<Value>(plan().reduction));
          copy(slot(p, step.in[0]), out, {slide_copy(work.slide, starts_, false)});
          break;
        case StepKind::put:
          out = slot(p, step.in[0]);
          copy(slot(p, step.in[1]), out, {slide_copy(work.slide, starts_, true)});
          break;
        case StepKind::communicate:
          break;
        default:
          throw std::logic_error("a step that paper does not compute: " +
                                 std::string(name_of(step.kind)));
      }
    }
  }
  /// Takes regions of several slots to one or to as many, or gives one back.
  void take_regions(int i) {
    const Step& step = plan().steps[i];
    const std::size_t all = index(mesh_.processes());
    std::vector<Values> sends(all), receives(all), sources(all);
    std::vector<const Call*> calls(all);
    const auto of_input = [&](std::size_t p, int k) -> const CallWork& {
      const StepWork& work = work_[p][index(i)];
      return work.joined.empty() ? work : work.joined[index(k)];
    };
    const auto put = [&](Values& from, const std::vector<StridedCopy>& copies, Values& out) {
      if (!step.adjoint) return copy(from, out, copies);
      for (const StridedCopy& c : copies)
        for_each_index(c.extents, [&](const Extents& at_box) {
          at(out, c.to_offset + dot(at_box, c.to_strides)) +=
              at(from, c.from_offset + dot(at_box, c.from_strides));
        });
    };
    for (std::size_t p = 0; p < all; ++p) {
      const StepWork& work = work_[p][index(i)];
      const std::size_t unit = size_of(plan().slots[step.out].desc.type);
      sends[p].assign(index(work.send_staging) / unit, unwritten);
      receives[p].assign(index(work.receive_staging) / unit, unwritten);
      for (int k = 0; k < step.in.size(); ++k) {
        const Slot& made = plans_[p].slots[step.output(k)];
        if (!step.in_place(step.output(k)) && (k == 0 || !step.also.empty())) {
          Values& block = data_[p][index(step.output(k))];
          block.assign(index(made.bytes) / unit, !step.fills || work.boxed ? unwritten
                                                 : step.adjoint            ? 0
                                                                           : outside_);
          Values one{outside_};
          if (step.fills && work.boxed) copy(one, block, work.gaps);
        }
        copy(data_[p][index(step.in[k])], sends[p], of_input(p, k).pack);
      }
      sources[p] = work.send == Buffer::block ? data_[p][index(step.in[0])] : sends[p];
      calls[p] = &work.call;
    }
    if (step.kind == StepKind::communicate)
      for (std::size_t p = 0; p < all; ++p)
        run_call(
            static_cast<int>(p), calls, sources,
            work_[p][index(i)].receive == Buffer::block ? data_[p][index(step.out)] : receives[p]);
    for (std::size_t p = 0; p < all; ++p)
      for (int k = 0; k < step.in.size(); ++k) {
        Values& out = data_[p][index(step.output(k))];
        put(data_[p][index(step.in[k])], of_input(p, k).local, out);
        put(receives[p], of_input(p, k).unpack, out);
      }
  }
  std::vector<Values*> inputs(int p, const Step& step, int first, int last) {
    std::vector<Values*> slots;
    for (int k = first; k < last; ++k) slots.push_back(&slot(p, step.in[k]));
    return slots;
  }
  static void contract(const ContractionWork& work, Values& a, Values& b, Values& c) {
    const Gemm& g = work.gemm;
    for (int panel = 0; panel < work.k_panels; ++panel) {
      Values& x = work.swapped ? b : a;
      Values& y = work.swapped ? a : b;
      const Index x_start = panel * (work.swapped ? work.k_step_b : work.k_step_a);
      const Index y_start = panel * (work.swapped ? work.k_step_a : work.k_step_b);
      for_each_index(g.batch, [&](const Extents& at_batch) {
        const Index x0 = x_start + dot(at_batch, g.batch_a);
        const Index y0 = y_start + dot(at_batch, g.batch_b);
        const Index c0 = dot(at_batch, g.batch_c);
        for (Index m = 0; m < g.m; ++m)
          for (Index n = 0; n < g.n; ++n) {
            Value& out = at(c, c0 + m * g.ldc + n);
            if (panel == 0) out = 0;
            for (Index k = 0; k < g.k; ++k)
              out += at(x, x0 + (g.transpose_a ? k * g.lda + m : m * g.lda + k)) *
                     at(y, y0 + (g.transpose_b ? n * g.ldb + k : k * g.ldb + n));
          }
      });
    }
  }
  void reduce_block(const LocalReduce& work, Values& in, Values& out) {
    Index next = 0;
    for_each_index(work.kept, [&](const Extents& kept) {
      Value total = plan().reduction == Reduction::sum ? 0 : identity_of<Value>(plan().reduction);
      for_each_index(work.reduced, [&](const Extents& reduced) {
        total = combine(plan().reduction, total,
                        at(in, dot(kept, work.kept_strides) + dot(reduced, work.reduced_strides)));
      });
      at(out, next++) = total;
    });
  }
  void find_block(const LocalFind& work, Values& in, Values& best, Values& out) {
    Index next = 0;
    for_each_index(work.rows.kept, [&](const Extents& kept) {
      Value found = std::numeric_limits<Value>::max();
      for_each_index(work.rows.reduced, [&](const Extents& reduced) {
        if (at(in, dot(kept, work.rows.kept_strides) + dot(reduced, work.rows.reduced_strides)) ==
            at(best, next))
          found = min_of(found, work.first + dot(reduced, work.steps));
      });
      at(out, next++) = found;
    });
  }
  void scan_block(const LocalScan& work, Values& in, Values* totals, Values& out) {
    const Reduction kind = plan().reduction;
    const auto join = [kind](Value x, Value y) {
      return kind == Reduction::none ? Compose{}(x, y) : combine(kind, x, y);
    };
    for (Index o = 0; o < work.outer; ++o)
      for (Index i = 0; i < work.inner; ++i) {
        Value total =
            kind == Reduction::sum || kind == Reduction::none ? 0 : identity_of<Value>(kind);
        for (Index k = work.earlier.lo; k < work.earlier.hi; ++k) {
          const Index part = work.reverse ? work.earlier.lo + work.earlier.hi - 1 - k : k;
          total = join(total, at(*totals, (o * work.parts + part) * work.inner + i));
        }
        for (Index k = 0; k < work.n; ++k) {
          const Index j = (o * work.n + (work.reverse ? work.n - 1 - k : k)) * work.inner + i;
          const Value joined = join(total, at(in, j));
          at(out, j) = work.exclusive ? total : joined;
          total = joined;
        }
      }
  }
  static void fold_block(const LocalScan& work, Values& in, Values& out) {
    for (Index o = 0; o < work.outer; ++o)
      for (Index i = 0; i < work.inner; ++i) {
        Value total = 0;
        for (Index k = 0; k < work.n; ++k)
          total = Compose{}(
              total, at(in, (o * work.n + (work.reverse ? work.n - 1 - k : k)) * work.inner + i));
        at(out, o * work.inner + i) = total;
      }
  }
  /// `places`: positions of which some are none. Writes positions, or what is there.
  static void sort_block(const LocalSort& work, Values& in, Values* places, bool positions,
                         Values& out) {
    for (Index o = 0; o < work.outer; ++o)
      for (Index i = 0; i < work.inner; ++i) {
        const auto place = [&](Index k) { return (o * work.n + k) * work.inner + i; };
        std::vector<Index> line;
        for (Index k = 0; k < work.n; ++k)
          if (places == nullptr || at(*places, place(k)) != no_position) line.push_back(k);
        std::stable_sort(line.begin(), line.end(), [&](Index a, Index b) {
          return work.descending ? at(in, place(b)) < at(in, place(a))
                                 : at(in, place(a)) < at(in, place(b));
        });
        for (Index r = 0; r < work.limit; ++r) {
          const bool there = index(r) < line.size();
          Value& result = at(out, (o * work.limit + r) * work.inner + i);
          if (positions)
            result = there ? work.first + line[index(r)] : no_position;
          else
            result = there ? at(in, place(line[index(r)])) : 0;
        }
      }
  }
  static void arrange_block(const LocalSort& work, Values& in, Values& positions, Values& out) {
    for (Index o = 0; o < work.outer; ++o)
      for (Index r = 0; r < work.limit; ++r)
        for (Index i = 0; i < work.inner; ++i) {
          const Index j = (o * work.limit + r) * work.inner + i;
          const Value position = at(positions, j);
          at(out, j) = position == no_position
                           ? 0
                           : at(in, (o * work.n + position - work.first) * work.inner + i);
        }
  }
  /// All rounds of a step that merges: elements are not packed here, but who meets whom is what the
  /// calls say.
  void merge(int i) {
    const Step& step = plan().steps[i];
    const auto state = [&](int p, int k) -> Values& {
      return slot(p, k == 0 ? step.out : step.also[k - 1]);
    };
    for (int p = 0; p < mesh_.processes(); ++p)
      for (int k = 0; k < step.in.size(); ++k) state(p, k) = slot(p, step.in[k]);
    for (Index round = 0; round < step.rounds; ++round) {
      std::vector<StepWork> work;
      for (int p = 0; p < mesh_.processes(); ++p)
        work.push_back(work_of(plans_[index(p)], plans_[index(p)].steps[i], round));
      const std::vector<std::vector<Values>> before = data_;
      for (int p = 0; p < mesh_.processes(); ++p) {
        const Call& mine = work[index(p)].call;
        if (mine.send.size() != mine.receive.size())
          throw std::logic_error("a process merges without sending");
        if (mine.send.empty()) continue;
        const int q = member(mine, p, mine.send.at(0).peer);
        const Call& theirs = work[index(q)].call;
        if (theirs.send.size() != 1 || member(theirs, q, theirs.send[0].peer) != p ||
            theirs.send[0].count != mine.receive.at(0).count)
          throw std::logic_error("processes " + std::to_string(p) + " and " + std::to_string(q) +
                                 " do not meet");
        const LocalMerge& m = work[index(p)].merge;
        if (m.last == work[index(q)].merge.last || m.own != work[index(q)].merge.other)
          throw std::logic_error("both keep the same");
        const auto value = [&](int process, int k, Index j) {
          return before[index(process)][index(k == 0 ? step.out : step.also[k - 1])].at(index(j));
        };
        const int low = m.last ? q : p, high = m.last ? p : q;
        const Index low_n = m.last ? m.other : m.own, high_n = m.last ? m.own : m.other;
        for (Index o = 0; o < m.outer; ++o)
          for (Index c = 0; c < m.inner; ++c) {
            std::vector<std::vector<Value>> both;
            for (const int process : {low, high}) {
              const Index n = process == low ? low_n : high_n;
              for (Index r = 0; r < n; ++r) {
                std::vector<Value> element;
                for (int k = 0; k < step.in.size(); ++k)
                  element.push_back(value(process, k, (o * n + r) * m.inner + c));
                both.push_back(element);
              }
            }
            std::stable_sort(both.begin(), both.end(),
                             [&](const std::vector<Value>& x, const std::vector<Value>& y) {
                               if (x[0] != y[0]) return m.descending ? y[0] < x[0] : x[0] < y[0];
                               return m.positions && x[1] < y[1];
                             });
            for (Index r = 0; r < m.own; ++r)
              for (int k = 0; k < step.in.size(); ++k)
                at(state(p, k), (o * m.own + r) * m.inner + c) =
                    both[index(m.last ? low_n + r : r)][index(k)];
          }
      }
    }
  }
  /// Several tensors in one call.
  void communicate_joined(int i) {
    const Step& step = plan().steps[i];
    const std::size_t all = index(mesh_.processes());
    std::vector<Values> sends(all), receives(all), sources(all);
    std::vector<const Call*> calls(all);
    for (std::size_t p = 0; p < all; ++p) {
      const StepWork& work = work_[p][index(i)];
      const std::size_t unit = size_of(work.call.type);
      sends[p].assign(index(work.send_staging) / unit, unwritten);
      receives[p].assign(index(work.receive_staging) / unit, unwritten);
      Values& packed = work.send == Buffer::send_staging ? sends[p] : receives[p];
      for (int k = 0; k < step.in.size(); ++k)
        copy(slot(static_cast<int>(p), step.in[k]), packed, work.joined.at(index(k)).pack);
      sources[p] = packed;
      calls[p] = &work.call;
    }
    for (std::size_t p = 0; p < all; ++p)
      run_call(static_cast<int>(p), calls, sources, receives[p]);
    for (std::size_t p = 0; p < all; ++p)
      for (int k = 0; k < step.in.size(); ++k)
        copy(receives[p], slot(static_cast<int>(p), k == 0 ? step.out : step.also[k - 1]),
             work_[p][index(i)].joined.at(index(k)).unpack);
  }
  /// On paper the exponent is the largest magnitude itself.
  void exponent_block(const LocalBins& work, Values& in, Values& out) {
    Index next = 0;
    for_each_index(work.rows.kept, [&](const Extents& kept) {
      Value top = 0;
      for_each_index(work.rows.reduced, [&](const Extents& reduced) {
        const Value x =
            at(in, dot(kept, work.rows.kept_strides) + dot(reduced, work.rows.reduced_strides));
        top = max_of(top, x < 0 ? -x : x);
      });
      at(out, next++) = top;
    });
  }
  /// A limb is a digit of base 16, which shows that all of them are moved and in order; the first
  /// counts the exponent for each element too, which shows that all have the same.
  void bins_block(const LocalBins& work, Values& in, Values& tops, Values& out) {
    Index next = 0;
    for_each_index(work.rows.kept, [&](const Extents& kept) {
      for (int limb = 0; limb < work.limbs; ++limb) at(out, next + limb) = 0;
      for_each_index(work.rows.reduced, [&](const Extents& reduced) {
        Value rest =
            at(in, dot(kept, work.rows.kept_strides) + dot(reduced, work.rows.reduced_strides));
        at(out, next) += at(tops, next / work.limbs);
        for (int limb = 0; limb + 1 < work.limbs; ++limb, rest /= 16)
          at(out, next + limb) += rest % 16;
        at(out, next + work.limbs - 1) += rest;
      });
      next += work.limbs;
    });
  }
  void unbin_block(const LocalBins& work, Values& in, Values& tops, Values& out) {
    for (Index i = 0; i < volume(work.rows.kept); ++i) {
      Value total = 0;
      for (int limb = work.limbs - 1; limb >= 0; --limb)
        total = total * 16 + at(in, i * work.limbs + limb);
      at(out, i) = total - work.count * at(tops, i);
    }
  }
  void map_block(const LocalMap& work, const Step& step, int p, Values& out) {
    Index next = 0;
    for_each_index(work.extents, [&](const Extents& i) {
      Value value = multiply_ ? 1 : 0;
      for (int k = 0; k < step.in.size(); ++k) {
        const Value x = at(slot(p, step.in[k]), dot(i, work.strides[k]));
        value = multiply_ ? value * x : value + (k + 1) * x;
      }
      at(out, next++) = value;
    });
  }

  /// The wire: what MPI promises of each call, in loops over all processes.
  void communicate(int i) {
    const Step& step = plan().steps[i];
    const std::size_t all = index(mesh_.processes());
    std::vector<Values> sends(all), receives(all), sources(all);
    for (std::size_t p = 0; p < all; ++p) {
      const StepWork& work = work_[p][index(i)];
      const std::size_t unit = size_of(work.call.type);
      sends[p].assign(index(work.send_staging) / unit, unwritten);
      receives[p].assign(index(work.receive_staging) / unit, unwritten);
    }
    const std::size_t stages = 1 + work_[0][index(i)].then.size();
    for (std::size_t s = 0; s < stages; ++s) {
      const auto one = [&](std::size_t p) -> const CallWork& {
        const StepWork& work = work_[p][index(i)];
        return s == 0 ? work : work.then.at(s - 1);
      };
      const auto buffer = [&](std::size_t p, Buffer which, int block) -> Values& {
        return which == Buffer::block          ? data_[p][index(block)]
               : which == Buffer::send_staging ? sends[p]
                                               : receives[p];
      };
      std::vector<const Call*> calls(all);
      for (std::size_t p = 0; p < all; ++p) {
        copy(s == 0 ? data_[p][index(step.in[0])] : receives[p], sends[p], one(p).pack);
        copy(data_[p][index(step.in[0])], data_[p][index(step.out)], one(p).local);
        sources[p] = buffer(p, one(p).send, step.in[0]);
        calls[p] = &one(p).call;
      }
      for (std::size_t p = 0; p < all; ++p)
        run_call(static_cast<int>(p), calls, sources, buffer(p, one(p).receive, step.out));
      for (std::size_t p = 0; p < all; ++p)
        copy(receives[p], data_[p][index(step.out)], one(p).unpack);
    }
  }
  int member(const Call& call, int p, int q) const {
    return mesh_.process(mesh_.member(call.group, mesh_.coordinates(p), q));
  }

  /// Returns the piece that member q of p's group has for p, or an empty one.
  Piece piece_for(int p, int q, const std::vector<const Call*>& calls) const {
    const Call& theirs = *calls[index(member(*calls[index(p)], p, q))];
    if (theirs.kind == Collective::all_gather) return theirs.send.at(0);
    for (const Piece& piece : theirs.send)
      if (piece.peer == calls[index(p)]->own) return piece;
    return {};
  }
  void run_call(int p, const std::vector<const Call*>& calls, std::vector<Values>& sends,
                Values& receive) {
    const Call& mine = *calls[index(p)];
    if (mine.kind == Collective::all_reduce || mine.kind == Collective::reduce_scatter) {
      const Piece& to = mine.receive.at(0);
      for (int q = 0; q < mine.members; ++q) {
        const int other = member(mine, p, q);
        const Call& theirs = *calls[index(other)];
        const Piece from =
            mine.kind == Collective::all_reduce ? theirs.send.at(0) : piece_for(p, q, calls);
        if (from.count != to.count)
          throw std::logic_error("a reduction of pieces of different sizes");
        if (mine.kind == Collective::reduce_scatter &&
            theirs.send.at(index(q)).count != mine.send.at(index(q)).count)
          throw std::logic_error("a reduce-scatter with counts that differ");
        for (Index j = 0; j < to.count; ++j) {
          Value& out = at(receive, to.offset + j);
          const Value x = at(sends[index(other)], from.offset + j);
          out = q == 0 ? x : combine(mine.reduction, out, x);
        }
      }
      return;
    }
    Index expected = 0;
    for (const Piece& to : mine.receive) {
      const Piece from = piece_for(p, to.peer, calls);
      if (from.count != to.count)
        throw std::logic_error("process " + std::to_string(p) + " expects " +
                               std::to_string(to.count) + " elements of member " +
                               std::to_string(to.peer) + ", which sends " +
                               std::to_string(from.count));
      for (Index j = 0; j < to.count; ++j)
        at(receive, to.offset + j) = at(sends[index(member(mine, p, to.peer))], from.offset + j);
      expected += to.count;
    }
    Index sent = 0;
    for (int q = 0; q < mine.members; ++q) sent += piece_for(p, q, calls).count;
    if (sent != expected)
      throw std::logic_error("process " + std::to_string(p) + " is sent more than it expects");
  }

  MeshShape mesh_;
  Machine machine_;
  bool multiply_ = false;
  Value outside_ = 0;
  Extents starts_;
  std::vector<Plan> plans_;
  std::vector<std::vector<StepWork>> work_;
  std::vector<std::vector<Values>> data_;
};

}  // namespace support
