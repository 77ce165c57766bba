// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A Program: the ordered list of plans that a run, or a dry run, went through, with its layers and
/// the lifetimes of its tensors.
///
///     Program p = plan(project)(like<X>(8, 512), like<W>(512, 96), sizes<Grid>(64, 64));
///     p.payload_bytes(AxisSet{1});   p.peak_bytes();   p.duplicated_flops()
///
/// See also: program/summary.hpp for sums by axis, layer and operator; program/timeline.hpp for
/// memory over time; program/contract.hpp for what a test may demand; program/diff.hpp to compare
/// two programs; program/simulation.hpp for all processes at once.
///
/// Laws: a dry run of f on process r records the same Program as a run of f on process r.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/base/copy_on_write.hpp>
#include <tessera/base/where.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/spec/open_sharding.hpp>

namespace tessera {

class Operation;

/// One operator that ran.
struct ProgramEntry {
  std::shared_ptr<const Plan> plan;
  std::string label;  ///< the equation or the function's name
  Where where;
  Index held_before = 0;  ///< bytes of tensors alive on this process when it began
  int layer = 0;          ///< in Program::layers()
  FixedVector<int, max_operands> operands{};  ///< in Program::tensors()
  int result = -1;  ///< in Program::tensors(); -1: the operator did not finish
  FixedVector<int, max_operands> also{};  ///< the further results of an operator with several
  /// Null for an operator that passes leave alone: it reads or writes other memory than tensors of
  /// the mesh, or is under way still.
  std::shared_ptr<const Operation> operation{};
  int call = -1;      ///< which call of a compiled function it is; -1: none, a pass added it
  int replaces = -1;  ///< the tensor in whose place an operand's memory takes the result; -1: none
  Contract contract{};      ///< what the call accepts
  int meanwhile = 0;        ///< operators that run while it is under way
  std::int64_t hidden = 0;  ///< picoseconds of its cost that they hide
  int part = 0;             ///< in Program::parts(), where there are several
};

/// One tensor that an operator read or made.
struct ProgramTensor {
  TensorDesc desc;
  Index bytes = 0;  ///< of arena memory on this process; 0 for adopted memory
  int made = -1;    ///< the operator that made it; -1: none
  int first = 0;    ///< the first operator that began while it was alive, or that made it
  int last = 0;  ///< the last operator that began while it was alive; the number of operators when
                 ///< it outlived the recording
  bool adopted = false;  ///< its memory is the application's, or that of another tensor
  int part = 0;          ///< in Program::parts(), where there are several
  bool seen = false;     ///< it is a tensor of other parts, too, in the same memory
  /// Its memory is there when the operator that makes it begins: a move's, which goes to it.
  bool awaits = false;
  /// Returns the first operator that begins while its memory is there.
  constexpr int begins() const { return made < 0 ? first : awaits ? made : made + 1; }
  /// Returns whether it was alive when operator `entry` began.
  constexpr bool alive_at(int entry) const {
    return first <= entry && entry <= last && begins() <= entry;
  }
};

/// A part of the processes of a Program, on which some of its operators work: a part of the mesh;
/// for each process its own part, in a manual function; all of them, as the mesh or as another one.
struct ProgramPart {
  std::string name;  ///< "stage=0", "manual model"; of the mesh itself ""
  MeshShape mesh;
  std::vector<std::string> axis_names;
  std::vector<int> places;  ///< each process's number there, of the Program's; -1: it has none
  AxisList axes;            ///< the axis of the Program's mesh that each axis is
  bool other = false;       ///< its axes are not those of the Program's mesh
  Machine machine = {};     ///< what its plans are priced by
  Index workspace_limit = max_int64;

  AxisNames names() const {
    AxisNames all;
    for (const std::string& axis : axis_names) all.push_back(axis);
    return all;
  }
};

/// What a tensor's sharding shall be where shardings are chosen (op/constrain.hpp).
struct TensorPin {
  int tensor = -1;
  OpenSharding to;
  Where where = {};
  /// The tensor's type leaves it open: it is chosen, though it is an argument or a result.
  bool opens = false;
  /// The argument whose place the tensor takes in the next call: where both are chosen, they lie
  /// alike. -1: none.
  int like = -1;
};

/// A tensor of a function's arguments: "1.weight" is field `weight` of the second one.
struct ProgramArgument {
  int tensor = -1;
  std::string path;
};

/// A layer of which it is open whether it runs again on the way back (grad/recompute.hpp), as it
/// was recorded.
struct ProgramOpenLayer {
  std::string path;  ///< of the named layer that it lies in
  bool again = false;
  int begin = 0, end = 0;  ///< its operators on the way forward are begin … end-1
};

/// A part of a program that the user has named; layer 0 is all of it.
struct ProgramLayer {
  std::string name;
  int parent = -1;
};

class Program {
 public:
  MeshShape mesh;
  int process = 0;

  /// The names are copied: a Program outlives the mesh it ran on.
  void set_names(const AxisNames& names) { names_.assign(names.begin(), names.end()); }
  AxisNames names() const {
    AxisNames names;
    for (const std::string& name : names_) names.push_back(name);
    return names;
  }

  /// The parts on which operators work; empty where all work on the mesh.
  const std::vector<ProgramPart>& parts() const { return *parts_; }
  void set_parts(std::vector<ProgramPart> parts) { parts_.own() = std::move(parts); }
  const ProgramPart& part_at(int part) const { return (*parts_)[static_cast<std::size_t>(part)]; }
  /// Return the names of a part's axes, its shape, and the number there of a process of the
  /// program; -1: it takes no part.
  AxisNames names_on(int part) const { return parts().empty() ? names() : part_at(part).names(); }
  const MeshShape& mesh_on(int part) const { return parts().empty() ? mesh : part_at(part).mesh; }
  int place_on(int part, int of) const {
    return parts().empty() ? of : part_at(part).places[static_cast<std::size_t>(of)];
  }
  /// Returns whether the program's process has a part in an operator.
  bool takes_part(const ProgramEntry& e) const { return place_on(e.part, process) >= 0; }
  /// Returns axes of a part as axes of the program's mesh; all of these for those of another mesh.
  AxisSet axes_on(int part, AxisSet axes) const {
    if (parts().empty()) return axes;
    if (part_at(part).other) return axes.empty() ? axes : mesh.axes();
    AxisSet all;
    const AxisList& numbers = part_at(part).axes;
    for (int a = 0; a < numbers.size(); ++a)
      if (axes.contains(a)) all.insert(numbers[a]);
    return all;
  }
  /// Returns the bytes of arena memory that a tensor takes up on a process of the program.
  Index charge(const ProgramTensor& t, int of) const;

  /// Appends an operator, in the layer that was entered last.
  void record(ProgramEntry entry) {
    entry.layer = layer_;
    entries_.own().push_back(std::move(entry));
  }
  /// Enters the layer `name` within the current one: the existing layer, if there is one.
  void enter(std::string_view name) {
    for (std::size_t i = 1; i < layers_->size(); ++i)
      if ((*layers_)[i].parent == layer_ && (*layers_)[i].name == name) {
        layer_ = static_cast<int>(i);
        return;
      }
    layers_.own().push_back({std::string(name), layer_});
    layer_ = static_cast<int>(layers_->size()) - 1;
  }
  void leave() {
    if (layer_ > 0) layer_ = (*layers_)[static_cast<std::size_t>(layer_)].parent;
  }
  /// Returns the number of the layer in which operators are recorded, and goes to another one.
  int layer() const { return layer_; }
  void go_to_layer(int layer) { layer_ = layer; }
  int add(const ProgramTensor& tensor) {
    tensors_.own().push_back(tensor);
    return static_cast<int>(tensors_->size()) - 1;
  }
  /// The arguments of a function that choose has recorded (run/choose_of.hpp).
  void name_argument(const ProgramArgument& argument) { arguments_.push_back(argument); }
  const std::vector<ProgramArgument>& arguments() const { return arguments_; }
  /// The open layers, in the order in which they ran.
  void add_open_layer(ProgramOpenLayer layer) { open_layers_.push_back(std::move(layer)); }
  const std::vector<ProgramOpenLayer>& open_layers() const { return open_layers_; }
  void pin(const TensorPin& pin) { pins_.push_back(pin); }
  const std::vector<TensorPin>& pins() const { return pins_; }
  /// Return an operator and a tensor to be changed.
  ProgramEntry& entry_to_change(int i) { return entries_.own()[static_cast<std::size_t>(i)]; }
  ProgramTensor& tensor_to_change(int i) { return tensors_.own()[static_cast<std::size_t>(i)]; }

  const std::vector<ProgramEntry>& entries() const { return *entries_; }
  const ProgramEntry& entry(int i) const { return (*entries_)[static_cast<std::size_t>(i)]; }
  const std::vector<ProgramTensor>& tensors() const { return *tensors_; }
  const ProgramTensor& tensor(int i) const { return (*tensors_)[static_cast<std::size_t>(i)]; }
  const std::vector<ProgramLayer>& layers() const { return *layers_; }
  int size() const { return static_cast<int>(entries_->size()); }
  bool empty() const { return entries_->empty(); }

  /// Returns whether two tensors may have memory in common. What the application has may be that of
  /// any tensor that was there before the program, and of none that the program makes.
  bool may_overlap(int a, int b) const {
    const auto outside = [&](int t, int other) {
      return tensor(t).adopted && tensor(other).made < 0;
    };
    return a == b || outside(a, b) || outside(b, a);
  }
  /// Returns whether an operator may change the values of tensor t, or makes it.
  bool writes(const ProgramEntry& e, int t) const {
    bool may = e.result >= 0 && may_overlap(e.result, t);
    for (const int other : e.also) may = may || may_overlap(other, t);
    return may;
  }

  /// Returns "encoder.0/attention"; for layer 0, an empty string.
  std::string layer_path(int layer) const {
    if (layer <= 0) return "";
    const ProgramLayer& l = (*layers_)[static_cast<std::size_t>(layer)];
    return l.parent > 0 ? layer_path(l.parent) + "/" + l.name : l.name;
  }
  /// Returns whether `layer` is `outer` or lies in it.
  bool within(int layer, int outer) const {
    while (layer > outer) layer = (*layers_)[static_cast<std::size_t>(layer)].parent;
    return layer == outer;  // a layer's number is larger than its parent's
  }
  /// Returns the program of one layer alone, named by its path; empty when there is none. Tensors
  /// keep their numbers; lifetimes count the remaining operators.
  Program part(std::string_view path) const {
    Program result = *this;
    result.entries_ = {};
    std::vector<int> kept_before{0};
    int outer = -1;
    for (int i = 0; i < static_cast<int>(layers_->size()); ++i)
      if (layer_path(i) == path) outer = i;
    for (const ProgramEntry& e : *entries_) {
      if (outer >= 0 && within(e.layer, outer)) result.entries_.own().push_back(e);
      kept_before.push_back(result.size());
    }
    const auto moved = [&](int i) {
      return kept_before[static_cast<std::size_t>(i < size() ? i : size())];
    };
    for (ProgramTensor& t : result.tensors_.own()) {
      const bool kept = t.made >= 0 && moved(t.made) != moved(t.made + 1);
      t.last = t.last >= size() ? result.size() : moved(t.last + 1) - 1;
      t.first = moved(t.first);
      t.made = kept ? moved(t.made) : -1;
    }
    return result;
  }

  /// Returns a Program with the layers of this one, and nothing else of it.
  Program without_operators() const {
    Program result;
    result.layers_ = layers_;
    return result;
  }

  /// Returns the bytes that are held when it begins by tensors that it does not name.
  Index held_by_others() const;
  /// Puts other operators in place of the ones there are, and finds the lifetimes of tensors anew:
  /// what outlived the program does so still.
  void relist(std::vector<ProgramEntry> entries);
  /// States in each operator what is held when it begins: its tensors that are alive, and the bytes
  /// of others.
  void state_held(Index others);

  int count(Collective kind) const {
    int n = 0;
    for (const ProgramEntry& e : *entries_) n += e.plan->count(kind);
    return n;
  }
  /// Return the payload of the process with most: of all steps, of one kind of collective, or of
  /// the steps that communicate over exactly the axes of `group`.
  Index payload_bytes() const;
  Index payload_bytes(Collective kind) const;
  Index payload_bytes(AxisSet group) const;
  /// Returns the payload of `process`, the program's own. The numbers below are its own too.
  Index own_payload_bytes() const {
    return sum([](const Plan& p) { return p.own_payload_bytes(); });
  }
  Index own_payload_bytes(Collective kind) const {
    return sum([&](const Plan& p) { return p.own_payload_bytes(kind); });
  }
  Index own_payload_bytes(AxisSet group) const {
    Index bytes = 0;
    for (const ProgramEntry& e : *entries_)
      for (const Step& s : e.plan->steps)
        if (takes_part(e) && s.communicates() && axes_on(e.part, s.group) == group)
          bytes = detail::saturating_add(bytes, s.payload);
    return bytes;
  }
  /// Returns the payload that goes between nodes.
  Index network_bytes() const {
    return sum([](const Plan& p) { return p.network_bytes(); });
  }
  Index messages() const {
    return sum([](const Plan& p) { return p.messages(); });
  }
  Index flops() const {
    return sum([](const Plan& p) { return p.flops(); });
  }
  std::int64_t cost() const {
    std::int64_t total = sum([](const Plan& p) { return p.cost; });
    for (const ProgramEntry& e : *entries_)
      if (takes_part(e)) total -= e.hidden;
    return total;
  }
  /// Returns the duplicated flops: those that this process would save if replicated work were
  /// split.
  Index duplicated_flops() const {
    return sum([](const Plan& p) { return duplicated_flops(p); });
  }
  static Index duplicated_flops(const Plan& plan) {
    Index extra = 0;
    for (const Step& s : plan.steps)
      if (const Index alike = copies(plan, s); alike > 1)
        extra = detail::saturating_add(extra, detail::saturating_sub(s.flops, s.flops / alike));
    return extra;
  }
  /// Returns the most bytes held at once: tensors alive and an operator's own workspace.
  Index peak_bytes() const {
    Index peak = 0;
    for (const ProgramEntry& e : *entries_)
      if (takes_part(e))
        peak = max_of(peak, detail::saturating_add(e.held_before, e.plan->peak_bytes));
    return peak;
  }

  /// Returns how many processes do the same local work in a step.
  static Index copies(const Plan& plan, const Step& step) {
    if (step.flops == 0) return 1;
    AxisSet split = step.loop.layers;
    for (int k = 0; k < step.in.size(); ++k) {
      const Sharding& s = plan.slots[step.in[k]].desc.sharding;
      const AxisSet ring = k < 2 ? step.loop.rings[k].set() : AxisSet{};
      split = split | (s.used() - ring) | s.partial;
    }
    return plan.mesh.group_size(plan.mesh.axes() - split);
  }

 private:
  template <class F> Index sum(const F& f) const {
    Index total = 0;
    for (const ProgramEntry& e : *entries_)
      if (takes_part(e)) total = detail::saturating_add(total, f(*e.plan));
    return total;
  }

  std::vector<std::string> names_;
  // Copies share these: a pass returns most of its Program.
  detail::CopyOnWrite<std::vector<ProgramEntry>> entries_;
  detail::CopyOnWrite<std::vector<ProgramTensor>> tensors_;
  detail::CopyOnWrite<std::vector<ProgramLayer>> layers_{std::vector{ProgramLayer{}}};
  detail::CopyOnWrite<std::vector<ProgramPart>> parts_;
  std::vector<TensorPin> pins_;
  std::vector<ProgramArgument> arguments_;
  std::vector<ProgramOpenLayer> open_layers_;
  int layer_ = 0;
};

}  // namespace tessera

#include <tessera/program/over_processes.hpp>  // defines Program's members over all processes
#if TESSERA_BODIES
#include <tessera/program/detail/relist.hpp>
#endif
