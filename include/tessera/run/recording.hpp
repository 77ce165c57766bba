// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Recording what runs on a mesh as a Program, and naming the layers of a model.
///
///     Recording recording(mesh);
///     {
///       Layer scope(mesh, "encoder.0");
///       y = attention(x, weights);                  // its operators are encoder.0's
///     }
///     z = layer("head", project)(y, w);             // project(y, w) within the layer "head"
///     Program program = recording.take();
///
/// An error names the layers that are open, and the place of the innermost: an operator such as a +
/// b cannot carry the place of its own call.
///
/// Laws: a dry run of a function and a real one record the same Program; layers change nothing
/// else. An operator belongs to the layers that are open when it begins, whichever mesh of those
/// around the operator's they were opened on. A Layer costs its name and a look-up on each of
/// these.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tessera/kernel/tool_region.hpp>
#include <tessera/program/program.hpp>
#include <tessera/program/trace_event.hpp>
#include <tessera/run/detail/open_layers.hpp>
#include <tessera/run/pins.hpp>
#include <tessera/run/program_parts.hpp>
#include <tessera/run/taker.hpp>
#include <tessera/tensor/part_core.hpp>
#include <tessera/tensor/process_mesh.hpp>
#include <tessera/tensor/tensor_core.hpp>

namespace tessera {
namespace detail {

/// How many of the meshes that one lies in may be recorded at once, beside each other.
inline constexpr int most_recorders = 8;

/// What a mesh records. Tensors are told apart by their storage, and watched until they end.
class Recorder {
 public:
  Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder() { layers_->shown_by = nullptr; }
  bool on() const { return mesh_ != nullptr; }

  void start(MeshCore& mesh) {
    mesh_ = &mesh;
    mesh.watch_ends(true);
    program_ = {};
    program_.mesh = mesh.shape();
    program_.set_names(mesh.names());
    program_.process = mesh.process();
    meshes_ = {&mesh};
    follow(layers_of(mesh), true);
    together_.clear();
    live_.clear();
    elsewhere_.clear();
    serials_.clear();
    pins_ = {};
  }
  Program stop() {
    note_ends();
    pins_.put_into(program_);
    for (const auto& [storage, watched] : live_)
      program_.tensor_to_change(watched.tensor).last = program_.size();
    for (int i = 0; i < program_.size(); ++i)  // what is under way still, no pass changes
      if (program_.entry(i).result < 0) program_.entry_to_change(i).operation = nullptr;
    live_.clear();
    if (meshes_.size() > 1) {
      program_.set_parts(program_parts(*meshes_[0], meshes_));
      for (int i = 0; i < program_.size(); ++i)
        program_.entry_to_change(i).held_before = together_[static_cast<std::size_t>(i)];
    }
    if (on()) std::exchange(mesh_, nullptr)->watch_ends(false);
    traced_ = nullptr;
    before_ += program_.size();
    return std::exchange(program_, {});
  }
  /// The layers that are open.
  const std::shared_ptr<OpenLayers>& layers() const { return layers_; }
  /// Who is told when operators run; null: nobody.
  TraceSink* traced() const { return traced_; }
  /// Tells `sink`, until the recording ends.
  void trace(TraceSink* sink) { traced_ = sink; }
  /// Returns the number of the recording's first operator, as begin() counts them.
  int started() const { return before_; }

  /// Records an operator that begins; returns its number, counted over all recordings.
  template <class Operands>
  int begin(ProgramEntry entry, MeshCore& mesh, const Operands& operands) {
    note_ends();
    entry.part = part_of(mesh);
    entry.held_before = mesh_->arena().in_use();
    together_.push_back(mesh_->arena().together().now);
    serials_.push_back(mesh_->arena().serial());
    for (const TensorCore* operand : operands) entry.operands.push_back(number_of(*operand, -1));
    if (const auto layers = layers_of(mesh); layers != followed_) follow(layers, false);
    go_to(followed_->innermost);
    program_.record(std::move(entry));
    return before_ + program_.size() - 1;
  }
  /// Records a result of operator `number`, if the recording in which that began has not ended.
  void end(int number, const TensorCore& result) {
    const int entry = number - before_;
    if (!on() || entry < 0 || entry >= program_.size()) return;
    ProgramEntry& e = program_.entry_to_change(entry);
    const int tensor = number_of(result, entry);
    if (e.result < 0)
      e.result = tensor;
    else
      e.also.push_back(tensor);
  }
  /// Returns the number of a tensor; -1: no operator has had it.
  int known(const TensorCore& x) const {
    const auto known = live_.find(x.storage().get());
    return known == live_.end() || known->second.storage.expired() ? -1 : known->second.tensor;
  }
  /// Returns how many operators the recording has.
  int size() const { return program_.size(); }
  /// Notes an open layer that has run, of operators `begin` to the last one.
  void add_open_layer(std::string path, bool again, int begin) {
    if (on()) program_.add_open_layer({std::move(path), again, begin, program_.size()});
  }
  /// Notes that a result takes an argument's place; nothing, where no operator has them.
  void tie(const TensorCore& argument, const TensorCore& result) {
    const int from = known(argument), to = known(result);
    if (from < 0 || to < 0 || from == to) return;
    program_.pin({to, OpenSharding::any(result.rank()), {}, true, from});
  }
  /// Notes what the sharding of a tensor shall be; nothing, where no operator has it.
  void pin(const TensorCore& x, const OpenSharding& to, Where where, bool opens = false) {
    pins_.add(x, to, where, opens);
    if (const int number = known(x); number >= 0) pins_.tell(x.storage(), number);
  }

  /// Returns the layers that are open on a mesh, which it and its parts have together; a Layer
  /// shares them, so that it may end after the mesh.
  static std::shared_ptr<OpenLayers> layers_of(MeshCore& mesh) {
    MeshCore* whole = &mesh;
    visit_around(mesh, [&](MeshCore& on) { whole = &on; });
    return whole->attachment<Recorder>().layers_;
  }

 private:
  struct Watched {
    std::weak_ptr<const Storage> storage;
    int tensor = 0;
    bool memory = false;  ///< that a view has shown, and no operator has had the tensor itself
  };
  /// Notes which tensors have ended since the last call. Those of other meshes tell nobody.
  void note_ends() {
    if (!on()) return;
    for (const std::uintptr_t storage : mesh_->ends()) note_end(storage);
    mesh_->ends().clear();
    std::size_t left = 0;
    for (const std::uintptr_t storage : elsewhere_)
      if (!note_end(storage)) elsewhere_[left++] = storage;
    elsewhere_.resize(left);
  }
  /// Returns whether nothing is watched at an address any more, and notes when that ended.
  bool note_end(std::uintptr_t storage) {
    const auto watched = live_.find(reinterpret_cast<const Storage*>(storage));
    if (watched == live_.end()) return true;
    if (!watched->second.storage.expired()) return false;
    program_.tensor_to_change(watched->second.tensor).last = program_.size() - 1;
    live_.erase(watched);
    return true;
  }
  /// Returns the number of a part of the mesh, which is added if it is new.
  int part_of(MeshCore& mesh) {
    if (const int known = number_among(meshes_, mesh); known >= 0) return known;
    meshes_.push_back(&mesh);
    return static_cast<int>(meshes_.size()) - 1;
  }
  /// Returns the first operator that began when there was the arena's block `serial`.
  int first_since(std::uint64_t serial) const {
    int first = 0, end = static_cast<int>(serials_.size());  // serials only grow
    while (first < end) {
      const int middle = first + (end - first) / 2;
      if (serials_[static_cast<std::size_t>(middle)] < serial)
        first = middle + 1;
      else
        end = middle;
    }
    return first;
  }
  /// These layers are the Program's; at its start, those of them that are opened from now on. Later
  /// others are followed when a mesh around this one has ended: they have all been opened since.
  void follow(const std::shared_ptr<OpenLayers>& layers, bool starts) {
    followed_ = layers;
    opened_before_ = starts ? layers->opened : 0;
    entered_.clear();
    entered_as_.clear();
  }
  /// Goes to an open layer of the Program: of those that it has, the ones opened later have ended.
  void go_to(const OpenLayer* layer) {
    if (layer == nullptr || layer->number < opened_before_) return program_.go_to_layer(0);
    for (; !entered_.empty() && entered_.back() > layer->number; entered_.pop_back())
      entered_as_.pop_back();
    if (!entered_.empty() && entered_.back() == layer->number)
      return program_.go_to_layer(entered_as_.back());
    go_to(layer->outer);
    program_.enter(layer->name);
    entered_.push_back(layer->number);
    entered_as_.push_back(program_.layer());
  }
  int number_of(const TensorCore& x, int made) {
    const std::shared_ptr<Storage>& storage = x.storage();
    const auto known = live_.find(storage.get());
    if (known != live_.end() && !known->second.storage.expired()) {
      if (known->second.memory) complete(known->second, x);
      return known->second.tensor;
    }
    if (known != live_.end())  // another storage has its address
      program_.tensor_to_change(known->second.tensor).last = program_.size() - 1;
    // A view within a manual function takes no memory; what it views does, with as many bytes.
    const PartHome* const home = x.mesh()->attached<PartHome>();
    if (storage && home != nullptr && home->own && storage->mesh() != x.mesh().get() &&
        !live_.contains(storage->root())) {
      add(x, storage->root_owner(), storage->root(), made);
      live_[storage->root()].memory = true;
    }
    const int number = add(x, storage, storage.get(), made);
    pins_.tell(storage, number);
    return number;
  }
  /// Says of a tensor of which the memory alone was known that it is x.
  void complete(Watched& watched, const TensorCore& x) {
    watched.memory = false;
    ProgramTensor& tensor = program_.tensor_to_change(watched.tensor);
    tensor.desc = x.desc();
    tensor.part = x.mesh().get() != mesh_ && lies_in(*x.mesh(), *mesh_) ? part_of(*x.mesh()) : 0;
    pins_.tell(x.storage(), watched.tensor);
  }
  /// Adds the tensor x, or the memory in which it is seen.
  int add(const TensorCore& x, std::weak_ptr<const Storage> watched, const Storage* storage,
          int made) {
    const std::uint64_t serial = storage ? storage->serial() : 0;
    ProgramTensor tensor{x.desc(), storage ? storage->charge() : 0,         made, made,
                         0,        storage != nullptr && storage->adopted()};
    if (made < 0 || serials_[static_cast<std::size_t>(made)] >= serial) {
      tensor.made = -1;  // no recorded operator made it
      tensor.first = first_since(serial);
    }
    if (MeshCore& on = *x.mesh(); &on != mesh_ && lies_in(on, *mesh_)) {
      tensor.part = part_of(on);
      if (on.absent()) tensor.bytes = 0;
    }
    const int number = program_.add(tensor);
    live_[storage] = {std::move(watched), number};
    if (!storage || storage->mesh() != mesh_)
      elsewhere_.push_back(reinterpret_cast<std::uintptr_t>(storage));
    return number;
  }

  MeshCore* mesh_ = nullptr;  ///< while it records
  TraceSink* traced_ = nullptr;
  int before_ = 0;  ///< operators of the recordings that have ended
  Program program_;
  std::unordered_map<const Storage*, Watched> live_;
  std::vector<std::uintptr_t> elsewhere_;  ///< of these, those of other meshes
  std::vector<std::uint64_t> serials_;     ///< of the arena, when each operator began
  std::vector<Index> together_;            ///< bytes held then, of the parts' arenas too
  std::vector<MeshCore*> meshes_;          ///< on which there are operators, the recorded one first
  Pins pins_;
  std::shared_ptr<OpenLayers> layers_ = std::make_shared<OpenLayers>();
  std::shared_ptr<OpenLayers> followed_;  ///< those of the mesh that is a part of none
  std::uint64_t opened_before_ = 0;       ///< the recording
  std::vector<std::uint64_t> entered_;  ///< the open layers that the Program has, outer ones first
  std::vector<int> entered_as_;         ///< which of its layers each is
};

/// Tells who lists or records calls what the sharding of a tensor shall be.
inline void pin_tensor(const TensorCore& x, const OpenSharding& to, Where where) {
  if (taker_of_thread != nullptr) return taker_of_thread->pin(x, to, where);
  const Recorder* const recorder = x.mesh()->attached<Recorder>();
  if (recorder != nullptr && recorder->on()) x.mesh()->attachment<Recorder>().pin(x, to, where);
}

/// Returns the innermost layer that is open on a mesh; null where none is. A mesh and its parts
/// have theirs together.
inline const OpenLayer* innermost_layer(const MeshCore& mesh) {
  const Recorder* recorder = whole_mesh(mesh).attached<Recorder>();
  return recorder == nullptr ? nullptr : recorder->layers()->innermost;
}
/// Returns "layer "encoder.0/attention" of model.cpp:12" for an error; "" where none is open.
inline std::string layer_text(const MeshCore& mesh) {
  const OpenLayer* const innermost = innermost_layer(mesh);
  if (innermost == nullptr) return "";
  std::string text = "layer \"" + path_of(innermost) + "\"";
  if (innermost->where.known()) text += " of " + to_string(innermost->where);
  return text;
}
}  // namespace detail

/// Records every operator on `mesh`, and on its parts, while it lives; take() ends it and returns
/// the Program, which has parts where there were operators on some.
class Recording {
 public:
  explicit Recording(const DynamicMesh& mesh) : mesh_(mesh.core()) {
    detail::Recorder& recorder = mesh_->attachment<detail::Recorder>();
    if (recorder.on())
      throw UsageError(
          "a mesh is recorded twice at once; end the first Recording before the second begins");
    recorder.start(*mesh_);
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() {
    if (mesh_ != nullptr) mesh_->attachment<detail::Recorder>().stop();
  }
  /// Throws UsageError when it has been called before.
  Program take(Where where = Where::here()) {
    if (mesh_ == nullptr)
      throw UsageError("a recording is taken twice; keep what the first take() returned", where);
    return std::exchange(mesh_, nullptr)->template attachment<detail::Recorder>().stop();
  }

 private:
  std::shared_ptr<MeshCore> mesh_;
};

/// Names a part of a model: operators that run on the mesh, on a part of it, or on the mesh that it
/// is a part of, while it lives, belong to the layer, which lies in the layers that are open.
/// Layers of one name in the same place are one layer. A layer that was open before a Recording
/// began is not in its Program. A Kokkos Tools library sees a region. Communication: none.
class Layer {
 public:
  /// `on`: a ProcessMesh, or a tensor on it.
  template <detail::KnowsMesh X>
  Layer(const X& on, std::string_view name, Where where = Where::here())
      : Layer(*detail::mesh_behind(on), name, where) {}
  Layer(MeshCore& mesh, std::string_view name, Where where = Where::here())
      : region_([&] { return "tessera::layer " + std::string(name); }, runs(mesh)),
        layers_(detail::Recorder::layers_of(mesh)) {
    open_ = {std::string(name), where, layers_->innermost, layers_->opened++};
    layers_->innermost = &open_;
    if (runs(mesh)) {
      layers_->shown_by = &mesh;
      show();
    }
  }
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;
  ~Layer() {
    layers_->innermost = open_.outer;
    show();
  }

 private:
  /// Returns whether the calls within are carried out, and not listed.
  static bool runs(const MeshCore& mesh) {
    const detail::Taker* const taker = detail::taker_of_thread;
    return !mesh.dry() && (taker == nullptr || !taker->takes_all());
  }

  /// Tells the other processes of the node, for reports.
  void show() const {
    if (layers_->shown_by != nullptr && layers_->shown_by->shows_layers())
      layers_->shown_by->show_layer(detail::path_of(layers_->innermost));
  }

  detail::ToolRegion region_;
  detail::OpenLayer open_;
  std::shared_ptr<detail::OpenLayers> layers_;
};

namespace detail {
template <class F> struct NamedLayer {
  std::string name;
  F f;
  Where where;
  template <class... A>
    requires std::is_invocable_v<const F&, A...> std::invoke_result_t<const F&, A...>
  operator()(A&&... a) const {
    const Layer scope(mesh_among(a...), name, where);
    return f(std::forward<A>(a)...);
  }
};
}  // namespace detail

/// Returns f as a layer: calling it runs f in a Layer of this name, on the mesh of the first
/// argument that has one. Communication: that of f.
template <class F>
detail::NamedLayer<std::decay_t<F>> layer(std::string name, F&& f, Where where = Where::here()) {
  return {std::move(name), std::forward<F>(f), where};
}

}  // namespace tessera
