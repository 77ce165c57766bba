// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// All processes of a mesh in a dry run: their plans are compared, their lists of instructions are
/// carried out in plain loops on plain vectors, call by call, and what each ends with is compared
/// with the oracle. No thread, no MPI, no Kokkos.
///
///     support::DryRun dry([&](int process) { return plan_reshard(x, to, mesh, process); }, mesh);
///     std::string wrong = dry.broken_law();           // "" when the laws of plan.hpp and of the lists hold
///     wrong = dry.wrong_result(inputs, expected);     // "" when every process ends with its block
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <tessera/plan/op/move/reshard.hpp>
#include <tessera/plan/op/rows/arg.hpp>
#include <tessera/plan/op/rows/scan.hpp>
#include <tessera/plan/step/bins.hpp>
#include <tessera/plan/step/create.hpp>
#include <tessera/plan/step/indexed.hpp>
#include <tessera/plan/step/sort.hpp>

#include "enumerate.hpp"
#include "fences.hpp"
#include "indexed.hpp"
#include "reference.hpp"

namespace support {

class DryRun {
 public:
  using Value = std::int64_t;
  using Values = std::vector<Value>;
  static constexpr Value unwritten = -0x7123'4567'89ab'cdefLL;

  template <class MakePlan>
  DryRun(const MakePlan& make, const MeshShape& mesh, const Machine& machine = {})
      : mesh_(mesh), machine_(machine) {
    for (int p = 0; p < mesh.processes(); ++p) {
      plans_.push_back(make(p));
      lists_.push_back(instructions_of(plans_.back()));
    }
  }
  const Plan& plan() const { return plans_[0]; }
  /// Maps multiply what they read; else they add x0 + 2 x1 + 3 x2 + ...
  void multiply(bool on) { multiply_ = on; }
  /// In a product in rounds, data move at the end of a call rather than at its beginning.
  void move_late(bool on) { late_ = on; }
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
      for (int i = 0; i < mine.steps.size(); ++i) {
        const Step& step = mine.steps[i];
        std::vector<tessera::detail::MoveWork> rounds;
        for (Index round = 0; round < step.rounds; ++round)
          rounds.push_back(step.kind == StepKind::communicate || step.region >= 0
                               ? tessera::detail::move_work(mine, step, round)
                               : tessera::detail::MoveWork{});
        const std::string text = broken_step(mine, step, rounds);
        if (!text.empty()) return at + "step " + std::to_string(i) + ": " + text;
      }
      if (const std::string text = broken_memory(mine); !text.empty()) return at + text;
      if (const Index peak = peak_bytes(lists_[index(p)]); peak != mine.peak_bytes)
        return at + "the list holds " + std::to_string(peak) + " bytes, the plan says " +
               std::to_string(mine.peak_bytes);
      if (const std::string text = broken_fences(lists_[index(p)]); !text.empty()) return at + text;
    }
    return "";
  }

  /// Carries the plans out on the operands' blocks made from `seeds`; returns the first process
  /// whose result, combined over what it is still partial over, is not its block of `expected`.
  std::string wrong_result(const std::vector<std::uint64_t>& seeds, const Whole<Value>& expected) {
    return wrong_results(seeds, {expected});
  }
  /// Compares a plan with several results, in order.
  std::string wrong_results(const std::vector<std::uint64_t>& seeds,
                            const std::vector<Whole<Value>>& expected) {
    data_.assign(index(mesh_.processes()), std::vector<Values>(index(plan().slots.size())));
    for (int p = 0; p < mesh_.processes(); ++p)
      for (int o = 0; o < plan().operands; ++o)
        slot(p, o) = operand(plan().slots[o], p, seeds[index(o)]);
    try {
      play();
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
    const detail::Holding held(desc, result.given ? result.place : detail::Placement{}, mesh_);
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
    const detail::Holding held(s.desc, s.place, mesh_);
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
                          const std::vector<tessera::detail::MoveWork>& rounds) const {
    if (step.loop) return broken_loop(plan, step);
    if (step.kind != StepKind::communicate)
      return step.payload != 0 ? "local work that communicates" : "";
    Index payload = 0, network = 0, messages = 0, scratch = 0, arriving = 0;
    AxisSet spanned;
    std::string text;
    for (const tessera::detail::MoveWork& work : rounds) {
      scratch = max_of(scratch, tessera::detail::arena_charge(work.send_bytes) +
                                    tessera::detail::arena_charge(work.receive_bytes) +
                                    tessera::detail::arena_charge(work.sum_bytes));
      if (step.rounds > 1 && max_of(work.send_bytes, work.receive_bytes) > step.slab)
        return "a round's staging is more than a slab";
      work.for_each_call([&](const tessera::detail::CallWork& one) {
        payload += detail::payload_bytes(one.call);
        network += detail::network_bytes(one.call);
        messages += detail::message_count(one.call);
        spanned = spanned | one.call.group.spanned();
        if (text.empty()) text = broken_call(plan, one.call);
      });
      if (!text.empty()) return text;
      for (const Piece& piece : work.call.receive) arriving += piece.count;
      for (const detail::MemoryCopy& copy : work.local) arriving += volume(copy.copy.extents);
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
        detail::levels(step.group, mesh_, machine_).level() != step.level)
      return "the level is wrong";
    if (!step.near.empty()) {
      if (rounds[0].then.empty()) return "in levels, but in one call";
      return broken_pieces(rounds[0].call, plan.slots[step.in[0]], plan.slots[step.out], true);
    }
    for (const tessera::detail::MoveWork& work : rounds) {
      const Call& call = work.call;
      const bool in_place =
          step.takes >= 0 || (!step.also.empty() && call.kind == Collective::all_reduce);
      if (!work.then.empty() || call.kind != step.collective || !(call.group == step.group) ||
          call.even != step.even || call.in_place != in_place)
        return "the call is not the step's";
      if ((work.send_bytes > 0 && step.direct_send) ||
          (work.receive_bytes > 0 && step.direct_receive))
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
  /// Returns what is wrong with a product in rounds: its calls and buffers are those that the step
  /// counts.
  std::string broken_loop(const Plan& plan, const Step& step) const {
    const detail::LoopWork work = detail::loop_work(plan, step);
    Index payload = 0, network = 0, messages = 0, scratch = 0, flops = 0;
    for (const detail::LoopCall& one : work.calls) {
      payload += detail::payload_bytes(one.call);
      network += detail::network_bytes(one.call);
      messages += detail::message_count(one.call);
      if (const std::string text = broken_call(plan, one.call); !text.empty()) return text;
      if (const std::string text =
              broken_pieces(one.call, plan.slots[step.in[0]], plan.slots[step.out], false);
          !text.empty())
        return text;
    }
    for (const detail::BlockProduct& one : work.products)
      flops += one.work.gemm.flops() * one.work.k_panels;
    for (const Index bytes : work.buffers) scratch += detail::arena_charge(bytes);
    if (payload != step.payload || network != step.network_payload || messages != step.messages)
      return "the calls have other numbers than the step";
    if (flops != step.flops) return "the products have other operations than the step";
    return scratch == step.scratch ? "" : "the buffers are not the step's scratch";
  }
  /// Returns what is wrong with one call: its group, its pieces if it is even, and what it counts
  /// as going between nodes.
  std::string broken_call(const Plan& plan, const Call& call) const {
    const Coordinates at = mesh_.coordinates(plan.process);
    if (call.members != mesh_.group_size(call.group) ||
        call.own != mesh_.place_in_group(call.group, at))
      return "the call's group is not as large as the call";
    if (call.even && !packed_alike(call)) return "even, but the pieces are not alike and in order";
    const AxisGroup near = detail::levels(call.group.spanned(), mesh_, machine_).node;
    const auto is_near = [&](int member) {
      const Coordinates peer = mesh_.member(call.group, at, member);
      for (int k = 0; k < mesh_.group_size(near); ++k)
        if (mesh_.member(near, at, k) == peer) return true;
      return false;
    };
    Index far = 0;
    if (call.kind == Collective::all_reduce) {
      for (int q = 0; q < call.members; ++q)
        if (!is_near(q)) far += 2 * detail::block_size(call.send.at(0).count, call.members, q);
    } else {
      for (const Piece& piece : detail::sends_to_all(call.kind) ? call.receive : call.send)
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
      case Collective::broadcast:
        return call.receive.empty()
                   ? (call.send.empty() || one_own(call.send) ? ""
                                                              : "not the pieces of who broadcasts")
               : call.send.empty() && call.receive.size() == 1 && call.receive[0].peer != call.own
                   ? ""
                   : "not the pieces of a broadcast";
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
          held += detail::arena_charge(plan.slots[s].bytes);
      }
      peak = max_of(peak, held);
    }
    return peak == plan.peak_bytes ? ""
                                   : "the peak is " + std::to_string(peak) +
                                         " bytes, the plan says " + std::to_string(plan.peak_bytes);
  }

  // ---- work
  // ----------------------------------------------------------------------------------------------------

  static void copy(Values& from, Index from_stride, Values& to, Index to_stride,
                   const detail::StridedCopy& c, bool adds) {
    for_each_index(c.extents, [&](const Extents& i) {
      Value& value = at(to, (c.to_offset + dot(i, c.to_strides)) * to_stride);
      const Value x = at(from, (c.from_offset + dot(i, c.from_strides)) * from_stride);
      value = adds ? value + x : x;
    });
  }
  /// A memory of a process. Staging memory has an element at the byte where it begins.
  Values& memory(int p, detail::MemoryNumber m) {
    return m < detail::send_staging ? slot(p, m)
                                    : staging_[index(p)][index(m - detail::send_staging)];
  }
  static Index stride(detail::MemoryNumber m, DType type) {
    return whole_elements(m) ? 1 : static_cast<Index>(size_of(type));
  }
  static bool whole_elements(detail::MemoryNumber m) {
    return m < detail::send_staging || m == detail::wide_sums || m >= detail::first_loop_buffer;
  }
  /// Carries out all lists, from one call to the next.
  void play() {
    const int all = mesh_.processes();
    staging_.assign(index(all),
                    std::vector<Values>(index(detail::max_memories - detail::send_staging)));
    incoming_.assign(index(all), {});
    for (int p = 0; p < all; ++p) incoming_[index(p)].resize(lists_[index(p)].calls.size());
    std::vector<std::size_t> next(index(all), 0);
    for (;;) {
      std::vector<const Instruction*> at_call;
      for (int p = 0; p < all; ++p)
        if (const Instruction* call = advance(p, next[index(p)]); call != nullptr)
          at_call.push_back(call);
      if (at_call.empty()) return;
      if (at_call.size() != index(all)) throw std::logic_error("not every process makes a call");
      const std::size_t number = index(at_call[0]->first);
      std::vector<const Call*> calls;
      std::vector<Values> sources;
      for (int p = 0; p < all; ++p) {
        if (index(at_call[index(p)]->first) != number)
          throw std::logic_error("processes meet in different calls");
        calls.push_back(&lists_[index(p)].calls.at(number));
        sources.push_back(at_call[index(p)]->from == detail::no_memory
                              ? Values{}
                              : memory(p, at_call[index(p)]->from));
      }
      std::vector<Index> strides;
      for (int p = 0; p < all; ++p)
        strides.push_back(stride(at_call[index(p)]->from, calls[index(p)]->type));
      for (int p = 0; p < all; ++p) {
        const Instruction& i = *at_call[index(p)];
        Values& arrived = incoming_[index(p)][number];
        if (i.to != detail::no_memory) arrived = memory(p, i.to);
        run_call(p, calls, sources, strides, arrived, stride(i.to, calls[index(p)]->type));
        if (i.action == Action::call || late_) arrive(p, i);
      }
    }
  }
  /// What has come is there.
  void arrive(int p, const Instruction& i) {
    const Call& call = lists_[index(p)].calls[index(i.first)];
    const Index unit = stride(i.to, call.type);
    for (const Piece& piece : call.receive)
      for (Index j = 0; j < piece.count; ++j)
        at(memory(p, i.to), (piece.offset + j) * unit) =
            at(incoming_[index(p)][index(i.first)], (piece.offset + j) * unit);
  }
  /// Carries out instructions up to the next call that begins; null: none does.
  const Instruction* advance(int p, std::size_t& next) {
    const Instructions& list = lists_[index(p)];
    const Plan& mine = plans_[index(p)];
    while (next < list.all.size()) {
      const Instruction& i = list.all[next++];
      const auto copies = [&](bool adds) {
        for (int c = 0; c < i.count; ++c)
          copy(memory(p, i.from), stride(i.from, i.type), memory(p, i.to), stride(i.to, i.type),
               list.copies.at(index(i.first + c)), adds);
      };
      switch (i.action) {
        case Action::allocate: {
          const std::size_t unit =
              i.to < detail::send_staging ? size_of(mine.slots[i.to].desc.type)
              : i.to == detail::wide_sums
                  ? size_of(tessera::detail::facts_of(mine.slots[mine.steps[i.step].out].desc.type)
                                .compute)
              : i.to >= detail::first_loop_buffer ? size_of(mine.slots[0].desc.type)
                                                  : 1;
          memory(p, i.to).assign(index(i.bytes) / unit, unwritten);
          break;
        }
        case Action::take_over:
          // A call in place leaves what is there; so does a merge.
          memory(p, i.to) = memory(p, i.from);
          break;
        case Action::place:
          slot(p, i.to).assign(index(mine.slots[i.to].bytes) / size_of(mine.slots[i.to].desc.type),
                               unwritten);
          break;
        case Action::release:
          memory(p, i.to).clear();
          break;
        case Action::fill:
          slot(p, i.to).assign(slot(p, i.to).size(), mine.steps[i.step].adjoint ? 0 : outside_);
          break;
        case Action::fill_gaps: {
          Values one{outside_};
          for (int c = 0; c < i.count; ++c)
            copy(one, 1, slot(p, i.to), 1, list.copies.at(index(i.first + c)), false);
          break;
        }
        case Action::zero:
          slot(p, i.to).assign(slot(p, i.to).size(), 0);
          break;
        case Action::copy:
        case Action::accumulate:
          copies(i.action == Action::accumulate);
          break;
        case Action::to_wide:
        case Action::to_narrow:
          memory(p, i.to) = memory(p, i.from);
          break;
        case Action::compute:
          compute(p, list.kernels.at(index(i.first)));
          break;
        case Action::start:
          if (late_) break;  // the data move when all wait
          return &i;
        case Action::call:
          return &i;
        case Action::wait: {
          const auto began = std::find_if(list.all.begin(), list.all.end(), [&](const auto& other) {
            return other.action == Action::start && other.first == i.first;
          });
          if (late_) return &*began;
          arrive(p, *began);
          break;
        }
        case Action::fence:
        case Action::progress:
          break;
        default:
          throw std::logic_error("an instruction that a dry run does not carry out: " +
                                 std::string(name_of(i.action)));
      }
    }
    return nullptr;
  }
  template <class Work> static const Work& work_in(const KernelCall& kernel) {
    return std::get<Work>(kernel.work);
  }
  void compute(int p, const KernelCall& kernel) {
    const Step& step = plan().steps[kernel.step];
    const auto in = [&](int k) -> Values& { return memory(p, kernel.in[k]); };
    if (kernel.kind == StepKind::communicate) return merge(p, kernel);
    Values& out = memory(p, kernel.out);
    if (step.is<tessera::step::Contract>()) {
      contract(kernel, in(0), in(1), out);
    } else if (step.is<tessera::step::Reduce>()) {
      reduce_block(work_in<detail::LocalReduce>(kernel), in(0), out);
    } else if (step.is<tessera::step::Round>() || step.is<tessera::step::Widen>()) {
      out = in(0);
    } else if (step.is<tessera::step::Map>()) {
      map_block(work_in<detail::LocalMap>(kernel), step, p, out);
    } else if (step.is<tessera::step::Find>()) {
      if (const auto& work = work_in<detail::LocalFind>(kernel); kernel.in.size() > 1) {
        find_block(work, in(0), in(1), out);
      } else {
        Values best(index(volume(work.rows.kept)));
        reduce_block(work.rows, in(0), best);
        find_block(work, in(0), best, out);
      }
    } else if (step.is<tessera::step::Scan>()) {
      scan_block(work_in<detail::LocalScan>(kernel), in(0), kernel.in.size() > 1 ? &in(1) : nullptr,
                 out);
    } else if (step.is<tessera::step::Fold>()) {
      fold_block(work_in<detail::LocalScan>(kernel), in(0), out);
    } else if (step.is<tessera::step::Sort>() || step.is<tessera::step::Order>()) {
      sort_block(work_in<detail::LocalSort>(kernel), in(0), kernel.in.size() > 1 ? &in(1) : nullptr,
                 step.is<tessera::step::Order>(), out);
    } else if (step.is<tessera::step::Arrange>()) {
      arrange_block(work_in<detail::LocalSort>(kernel), in(0), in(1), out);
    } else if (step.is<tessera::step::Exponent>()) {
      exponent_block(work_in<detail::LocalBins>(kernel), in(0), out);
    } else if (step.is<tessera::step::Bins>()) {
      bins_block(work_in<detail::LocalBins>(kernel), in(0), in(1), out);
    } else if (step.is<tessera::step::Unbin>()) {
      unbin_block(work_in<detail::LocalBins>(kernel), in(0), in(1), out);
    } else if (step.is<tessera::step::Take>()) {
      take_block(work_in<detail::LocalIndexed>(kernel), plan().reduction, in(0),
                 inputs(p, step, 1, step.in.size()), out, at);
    } else if (step.is<tessera::step::Scatter>()) {
      const int first = tessera::detail::scatters_into(plan(), step) ? 1 : 0;
      scatter_block(work_in<detail::LocalScatter>(kernel), plan().reduction,
                    first > 0 ? &in(0) : nullptr, inputs(p, step, first, step.in.size() - 1),
                    in(step.in.size() - 1), out, at);
    } else if (step.is<tessera::step::OneHot>()) {
      one_hot_block(work_in<detail::LocalOneHot>(kernel), in(0), out, at);
    } else if (step.is<tessera::step::Slide>()) {
      out.assign(out.size(), start_of<Value>(plan().reduction));
      copy(in(0), 1, out, 1,
           detail::slide_copy(work_in<detail::LocalSlide>(kernel), starts_, false), false);
    } else if (step.is<tessera::step::Put>()) {
      out = in(0);
      copy(in(1), 1, out, 1, detail::slide_copy(work_in<detail::LocalSlide>(kernel), starts_, true),
           false);
    } else {
      throw std::logic_error("a step that a dry run does not compute: " +
                             std::string(name_of(step.kind)));
    }
  }
  /// Merges two messages: of the elements of both in order, the lower process keeps the first.
  void merge(int p, const KernelCall& kernel) {
    const auto& work = work_in<tessera::detail::MergeWork>(kernel);
    const detail::LocalMerge& m = work.lines;
    const auto element = [&](bool own, Index j) {
      std::vector<Value> all;
      for (const tessera::detail::MergedTensor& t : work.tensors)
        all.push_back(at(memory(p, own ? detail::send_staging : detail::receive_staging),
                         (own ? t.own : t.other) + j * static_cast<Index>(size_of(t.type))));
      return all;
    };
    for (Index o = 0; o < m.outer; ++o)
      for (Index c = 0; c < m.inner; ++c) {
        std::vector<std::vector<Value>> both;
        for (const bool own : {!m.last, m.last}) {
          const Index n = own ? m.own : m.other;
          for (Index r = 0; r < n; ++r) both.push_back(element(own, (o * n + r) * m.inner + c));
        }
        std::stable_sort(both.begin(), both.end(),
                         [&](const std::vector<Value>& x, const std::vector<Value>& y) {
                           if (x[0] != y[0]) return m.descending ? y[0] < x[0] : x[0] < y[0];
                           return m.positions && x[1] < y[1];
                         });
        for (Index r = 0; r < m.own; ++r)
          for (int k = 0; k < work.tensors.size(); ++k)
            at(memory(p, kernel.in[k + 2]), (o * m.own + r) * m.inner + c) =
                both[index(m.last ? m.other + r : r)][index(k)];
      }
  }
  std::vector<Values*> inputs(int p, const Step& step, int first, int last) {
    std::vector<Values*> slots;
    for (int k = first; k < last; ++k) slots.push_back(&slot(p, step.in[k]));
    return slots;
  }
  static void contract(const KernelCall& kernel, Values& a, Values& b, Values& c) {
    const auto& work = work_in<detail::ContractionWork>(kernel);
    const detail::Gemm& g = work.gemm;
    const auto offset = [&](std::size_t k) {
      return kernel.offsets.empty() ? 0 : kernel.offsets.at(k);
    };
    for (int panel = 0; panel < work.k_panels; ++panel) {
      Values& x = work.swapped ? b : a;
      Values& y = work.swapped ? a : b;
      const Index x_start =
          offset(work.swapped ? 1 : 0) + panel * (work.swapped ? work.k_step_b : work.k_step_a);
      const Index y_start =
          offset(work.swapped ? 0 : 1) + panel * (work.swapped ? work.k_step_a : work.k_step_b);
      for_each_index(g.batch, [&](const Extents& at_batch) {
        const Index x0 = x_start + dot(at_batch, g.batch_a);
        const Index y0 = y_start + dot(at_batch, g.batch_b);
        const Index c0 = offset(2) + dot(at_batch, g.batch_c);
        for (Index m = 0; m < g.m; ++m)
          for (Index n = 0; n < g.n; ++n) {
            Value& out = at(c, c0 + m * g.ldc + n);
            if (panel == 0 && !kernel.adds) out = 0;
            for (Index k = 0; k < g.k; ++k)
              out += at(x, x0 + (g.transpose_a ? k * g.lda + m : m * g.lda + k)) *
                     at(y, y0 + (g.transpose_b ? n * g.ldb + k : k * g.ldb + n));
          }
      });
    }
  }
  void reduce_block(const detail::LocalReduce& work, Values& in, Values& out) {
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
  void find_block(const detail::LocalFind& work, Values& in, Values& best, Values& out) {
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
  void scan_block(const detail::LocalScan& work, Values& in, Values* totals, Values& out) {
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
  static void fold_block(const detail::LocalScan& work, Values& in, Values& out) {
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
  static void sort_block(const detail::LocalSort& work, Values& in, Values* places, bool positions,
                         Values& out) {
    for (Index o = 0; o < work.outer; ++o)
      for (Index i = 0; i < work.inner; ++i) {
        const auto place = [&](Index k) { return (o * work.n + k) * work.inner + i; };
        std::vector<Index> line;
        for (Index k = 0; k < work.n; ++k)
          if (places == nullptr || at(*places, place(k)) != detail::no_position) line.push_back(k);
        std::stable_sort(line.begin(), line.end(), [&](Index a, Index b) {
          return work.descending ? at(in, place(b)) < at(in, place(a))
                                 : at(in, place(a)) < at(in, place(b));
        });
        for (Index r = 0; r < work.limit; ++r) {
          const bool there = index(r) < line.size();
          Value& result = at(out, (o * work.limit + r) * work.inner + i);
          if (positions)
            result = there ? work.first + line[index(r)] : detail::no_position;
          else
            result = there ? at(in, place(line[index(r)])) : 0;
        }
      }
  }
  static void arrange_block(const detail::LocalSort& work, Values& in, Values& positions,
                            Values& out) {
    for (Index o = 0; o < work.outer; ++o)
      for (Index r = 0; r < work.limit; ++r)
        for (Index i = 0; i < work.inner; ++i) {
          const Index j = (o * work.limit + r) * work.inner + i;
          const Value position = at(positions, j);
          at(out, j) = position == detail::no_position
                           ? 0
                           : at(in, (o * work.n + position - work.first) * work.inner + i);
        }
  }
  /// In a dry run the exponent is the largest magnitude itself.
  void exponent_block(const detail::LocalBins& work, Values& in, Values& out) {
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
  void bins_block(const detail::LocalBins& work, Values& in, Values& tops, Values& out) {
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
  void unbin_block(const detail::LocalBins& work, Values& in, Values& tops, Values& out) {
    for (Index i = 0; i < volume(work.rows.kept); ++i) {
      Value total = 0;
      for (int limb = work.limbs - 1; limb >= 0; --limb)
        total = total * 16 + at(in, i * work.limbs + limb);
      at(out, i) = total - work.count * at(tops, i);
    }
  }
  void map_block(const detail::LocalMap& work, const Step& step, int p, Values& out) {
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

  int member(const Call& call, int p, int q) const {
    return mesh_.process(mesh_.member(call.group, mesh_.coordinates(p), q));
  }

  /// Returns the piece that member q of p's group has for p, or an empty one.
  Piece piece_for(int p, int q, const std::vector<const Call*>& calls) const {
    const Call& theirs = *calls[index(member(*calls[index(p)], p, q))];
    if (theirs.kind == Collective::all_gather) return theirs.send.at(0);
    if (theirs.kind == Collective::broadcast)
      return theirs.send.empty() || &theirs == calls[index(p)] ? Piece{} : theirs.send[0];
    for (const Piece& piece : theirs.send)
      if (piece.peer == calls[index(p)]->own) return piece;
    return {};
  }
  /// The wire: what MPI promises of a call.
  void run_call(int p, const std::vector<const Call*>& calls, std::vector<Values>& sends,
                const std::vector<Index>& strides, Values& receive, Index unit) {
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
          Value& out = at(receive, (to.offset + j) * unit);
          const Value x = at(sends[index(other)], (from.offset + j) * strides[index(other)]);
          out = q == 0 ? x : combine(mine.reduction, out, x);
        }
      }
      return;
    }
    const auto sent_by = [&](int q, Index j) { return at(sends[index(q)], j * strides[index(q)]); };
    Index expected = 0;
    for (const Piece& to : mine.receive) {
      const Piece from = piece_for(p, to.peer, calls);
      if (from.count != to.count)
        throw std::logic_error("process " + std::to_string(p) + " expects " +
                               std::to_string(to.count) + " elements of member " +
                               std::to_string(to.peer) + ", which sends " +
                               std::to_string(from.count));
      const bool stays = mine.own_stays && to.peer == mine.own;
      for (Index j = 0; !stays && j < to.count; ++j)
        at(receive, (to.offset + j) * unit) = sent_by(member(mine, p, to.peer), from.offset + j);
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
  bool late_ = false;
  Value outside_ = 0;
  Extents starts_;
  std::vector<Plan> plans_;
  std::vector<Instructions> lists_;
  std::vector<std::vector<Values>> staging_;
  std::vector<std::vector<Values>> incoming_;  ///< what each call brings, until it is waited for
  std::vector<std::vector<Values>> data_;
};

}  // namespace support
