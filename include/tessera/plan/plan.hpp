// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A Plan: what one operator does on one process, in steps, with payload, flops and workspace. A
/// plain value of fixed capacity; planners make it, the runtime executes it, tests compare it,
/// program/explain.hpp prints it.
///
///     constexpr Plan p = detail::plan_reshard(desc, to, mesh, 0);
///     p.count(all_gather) == 1;   p.payload_bytes()        // of the process with most
///
/// Laws: the steps and shardings are the same on every process; only the numbers are for process
/// `process`, except payload_bytes(), which is the most on one process (plan/process_classes.hpp
/// finds that process). Executing the plan makes exactly the calls of plan/work/instructions.hpp
/// and needs exactly `peak_bytes` of arena memory.
#include <cstdint>

#include <tessera/base/local_index.hpp>
#include <tessera/base/memory.hpp>
#include <tessera/mesh/contract.hpp>
#include <tessera/mesh/levels.hpp>
#include <tessera/plan/convolve_shape.hpp>
#include <tessera/plan/kind.hpp>
#include <tessera/plan/loop.hpp>
#include <tessera/plan/move/placement.hpp>
#include <tessera/plan/region/region.hpp>
#include <tessera/plan/step/verb.hpp>
#include <tessera/spec/block.hpp>

namespace tessera {

enum class SlotRole : std::uint8_t { operand, temporary, result };

/// Where the result of a plan goes: into its own memory; into a tensor that the caller gave; or
/// added to a tensor that the caller gave, which is also the last operand.
enum class Destination : std::uint8_t { fresh, given, accumulated };

/// A tensor that a plan reads or makes.
struct Slot {
  TensorDesc desc;
  detail::Placement place;  ///< unless sharded, the sharding has no meaning
  Term labels;
  Index bytes = 0;  ///< of this process's block
  /// When set, the block is stored as `panels` equal parts along dimension panel_dim, one after the
  /// other, each row-major: the layout of an all-gather's output and a reduce-scatter's input. Only
  /// products read and write such blocks.
  int panel_dim = -1;
  int panels = 1;
  /// In a gathered block: the operand in which this process's own part stays, for a product to read
  /// it there; its place in the block need not be written.
  std::int8_t own_part = -1;
  SlotRole role = SlotRole::temporary;
  bool given = false;  ///< it lies in the destination that the caller gave
  int last_use = -1;   ///< the step after which a temporary is released
  /// When set, a process holds, in place of its block, the part of this region of the plan that it
  /// needs.
  std::int8_t region = -1;
  /// When set, the block lies within this halo of the plan, in memory that is extended by it, from
  /// its element `first` on (plan/region/stored.hpp).
  std::int8_t stored = -1;
  Index first = 0;
  constexpr bool operator==(const Slot&) const = default;
};

/// Which elements a running sum (or other join) takes in.
struct ScanOptions {
  bool reverse = false;    ///< from the last element to the first
  bool exclusive = false;  ///< only the elements before each one
  constexpr bool operator==(const ScanOptions&) const = default;
};

struct Step {
  StepKind kind;
  detail::VerbSettings settings{};                 ///< those of its verb, packed
  Collective collective = Collective::all_gather;  ///< for a step that communicates
  AxisSet group;                                   ///< the axes over which it communicates
  Level level = Level::core;                       ///< the farthest level that its data crosses
  AxisGroup
      near;  ///< when not empty: in levels, within these and between them (plan/move/staged.hpp)
  bool even = false;            ///< the plain collective rather than its v-form
  bool direct_send = false;     ///< data leaves from the source block, without packing
  bool direct_receive = false;  ///< data arrives in the destination block, without unpacking
  std::int8_t takes = -1;       ///< the input slot whose memory the output takes over, if any
  int panel_dim = -1;           ///< the packed side would be equal panels along this dimension
  FixedVector<std::int8_t, max_operands> in;
  std::int8_t out = -1;
  /// For a step that moves several tensors in one call: the outputs of its further inputs, in
  /// order.
  FixedVector<std::int8_t, max_operands> also;
  Index payload = 0;          ///< bytes, by the law of mesh/call.hpp
  Index network_payload = 0;  ///< the part of these to (or from) other nodes
  Index messages =
      0;  ///< per process: peers for point to point and all-to-all, rounds for the others
  Index flops = 0;
  Index scratch = 0;  ///< arena bytes for packing or ordering, held during this step
  Index rounds = 1;   ///< exchanges that make up the step, one after another
  Index slab = 0;     ///< bytes that one round moves, when there are several
  AxisGroup node;     ///< for a step that goes to the network in one call: its members on one node
  /// For a step that takes regions: the plan's region from its first input to its output; the
  /// regions of further inputs follow it, unless they are listed.
  std::int8_t region = -1;
  FixedVector<std::int8_t, max_operands> also_regions;
  bool fills = false;     ///< the region leaves coordinates that no element fills
  bool overlaps = false;  ///< the next step begins with the work that does not need this exchange
  bool adjoint = false;   ///< the adjoint: adds to each element all values held for it
  /// For an exchange: the data that arrives in each round is merged with the block, and as many
  /// elements are kept (plan/move/merge_split.hpp). Its results replace its inputs.
  bool merges = false;
  Loop loop;  ///< for a contract step that is made in rounds, and communicates between them
  std::int64_t cost = 0;  ///< picoseconds by the machine model, on process 0

  template <class V> constexpr bool is() const { return kind == detail::step_kind<V>; }
  /// Returns its verb. Precondition: is<V>().
  template <class V> constexpr V as() const { return detail::unpacked<V>(settings); }
  constexpr void set(const detail::AnyVerb& verb) {
    kind = verb.kind;
    settings = verb.settings;
  }
  constexpr bool communicates() const { return kind == StepKind::communicate || loop; }
  /// Returns the output of input k; where it is the input itself, its elements stay in place.
  constexpr int output(int k) const { return k == 0 || also.empty() ? out : also[k - 1]; }
  /// Returns whether an output of the step is also one of its inputs.
  constexpr bool in_place(int slot) const { return in.contains(static_cast<std::int8_t>(slot)); }
  constexpr bool operator==(const Step&) const = default;
};

namespace detail {
template <class V>
constexpr Index flops_of_verb(const Plan& plan, const Step& step, const Coordinates& at) {
  return step.as<V>().flops(plan, step, at);
}
template <class V>
constexpr Index scratch_of_verb(const Plan& plan, const Step& step, const Coordinates& at) {
  return step.as<V>().scratch(plan, step, at);
}
}  // namespace detail

/// Some regions: one for each of several tensors, or those of a plan.
using Regions = detail::LazyVector<detail::Region, detail::max_regions>;

struct Plan {
  static constexpr int max_steps = 40;
  static constexpr int max_slots = 48;

  OperatorKind kind = OperatorKind::reshard;
  MeshShape mesh;
  int process = 0;
  Reduction reduction = Reduction::none;      ///< for a reduce, or for a contraction (sum)
  detail::LazyVector<Slot, max_slots> slots;  ///< the operands come first, in order
  detail::LazyVector<Step, max_steps> steps;
  Regions regions;                                   ///< that slots and steps refer to
  detail::LazyVector<Halo, max_operands + 1> halos;  ///< within which slots lie
  detail::ConvolveWindows convolution;               ///< for a convolve step
  WindowList windows;  ///< for a reduce-window or select-and-scatter step
  Destination destination = Destination::fresh;
  Contract needs = Contract::nothing();  ///< the collectives of its moves, with their axes
  int operands = 0;
  int result = 0;  ///< the slot that is returned; an operand when nothing is to be done
  /// For a plan with several results: the slots of the further ones.
  FixedVector<std::int8_t, max_operands> also;
  Sharding result_sharding;  ///< as requested; the slot may leave out axes of size 1
  Index peak_bytes = 0;      ///< most arena memory held at once beside the operands and a given
                             ///< destination, a fresh result included
  Index over_limit = 0;      ///< by which process 0 holds more than the limit of workspace
  std::int64_t cost = 0;     ///< picoseconds by the machine model: the same number on every process

  constexpr TensorDesc result_desc() const {
    return {slots[result].desc.type, slots[result].desc.extents, result_sharding};
  }

  constexpr int count(Collective kind_) const {
    int n = 0;
    for (const Step& step : steps) n += step.communicates() && step.collective == kind_;
    return n;
  }
  /// Returns how many communicating steps there are.
  constexpr int communications() const {
    int n = 0;
    for (const Step& step : steps) n += step.communicates();
    return n;
  }
  /// Return the payload of the process with most, by all steps or by one kind of collective.
  constexpr Index payload_bytes() const;
  constexpr Index payload_bytes(Collective kind_) const;
  /// Return the payload of a process.
  constexpr Index payload_bytes_on(int process_) const;
  /// Returns the payload of `process`, the plan's own. The numbers below are its own too.
  constexpr Index own_payload_bytes() const {
    Index sum = 0;
    for (const Step& step : steps) sum = detail::saturating_add(sum, step.payload);
    return sum;
  }
  constexpr Index own_payload_bytes(Collective kind_) const {
    Index sum = 0;
    for (const Step& step : steps)
      if (step.communicates() && step.collective == kind_)
        sum = detail::saturating_add(sum, step.payload);
    return sum;
  }
  /// Returns how much of the payload goes between nodes.
  constexpr Index network_bytes() const {
    Index sum = 0;
    for (const Step& step : steps) sum = detail::saturating_add(sum, step.network_payload);
    return sum;
  }
  constexpr Index messages() const {
    Index sum = 0;
    for (const Step& step : steps) sum += step.messages;
    return sum;
  }
  constexpr Index flops() const {
    Index sum = 0;
    for (const Step& step : steps) sum = detail::saturating_add(sum, step.flops);
    return sum;
  }
  constexpr bool operator==(const Plan&) const = default;
};

}  // namespace tessera
