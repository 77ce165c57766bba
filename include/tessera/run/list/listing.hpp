// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The calls that a function makes, listed in place of being carried out, and carried out together
/// afterwards.
///
///     Listing calls;
///     { const TakenBy scope(&calls);  y = f(x); }        // listed: y has a description, and no values
///     std::vector<ReadyCall> ready;
///     const Program listed = calls.program();
///     calls.run(listed, listed, ready);                                 // now it has
///
/// Laws: the results are those of the calls made one after the other; memory that nobody else holds
/// ends with the last call that reads it.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/base/digest.hpp>
#include <tessera/program/program.hpp>
#include <tessera/run/kept_request.hpp>
#include <tessera/run/pins.hpp>
#include <tessera/run/recording.hpp>
#include <tessera/run/taker.hpp>

namespace tessera::detail {

/// The layers that are open on a mesh, from the outermost on, so that they can be opened again.
struct LayerPath {
  explicit LayerPath(const OpenLayer& innermost);
  /// Returns whether it is the path of this open layer.
  bool is(const OpenLayer* innermost) const;

  std::vector<std::string> names;
  Where where;  ///< of the innermost
};

/// Opens the layers of a path again, one within the other.
class OpenAgain {
 public:
  explicit OpenAgain(MeshCore& mesh) : mesh_(&mesh) {}
  OpenAgain(const OpenAgain&) = delete;
  OpenAgain& operator=(const OpenAgain&) = delete;
  ~OpenAgain() { close(); }
  void open(const LayerPath* path) { open(path, *mesh_); }
  void open(const LayerPath* path, MeshCore& mesh) {
    if (path == open_ && &mesh == mesh_) return;
    close();
    open_ = path;
    mesh_ = &mesh;
    if (path == nullptr) return;
    for (const std::string& name : path->names)
      layers_.push_back(std::make_unique<Layer>(*mesh_, name, path->where));
  }

 private:
  void close() {
    while (!layers_.empty()) layers_.pop_back();  // the innermost first
  }
  MeshCore* mesh_;
  const LayerPath* open_ = nullptr;
  std::vector<std::unique_ptr<Layer>> layers_;
};

/// One call that is listed.
struct ListedCall {
  explicit ListedCall(const Request& r) : kept(r) {}
  KeptCall kept;
  std::shared_ptr<const Prepared> prepared;
  std::uint64_t name = 0;                      ///< CallName::digest
  FixedVector<int, max_operands> operands;     ///< in the list of tensors
  FixedVector<int, max_operands + 1> results;  ///< the same
  bool into = false;                           ///< its result has a destination
  bool moves = false;                          ///< to memory of another mesh's tensor
  Lane* lane = nullptr;
  int layers = -1;  ///< in the list of paths
  int part = 0;     ///< in the list of meshes
};

/// A tensor of the calls. Those of one memory have one number, and are linked, on whichever meshes
/// they are seen; of them those of one storage, which are seen on one mesh.
struct ListedTensor {
  TensorCore tensor;
  int number = 0;   ///< the first one's place in the list of tensors
  int next = -1;    ///< the next one of this memory
  int end = -1;     ///< the first one's: the last one of this memory
  int beside = -1;  ///< the next one of this storage, of another description
  int holds = 0;    ///< the storage's first one's: how often the list holds the storage
  int made = -1;    ///< the first one's: the call that makes it
  int last = -1;    ///< the first one's: the last call that has it
  bool hidden =
      false;  ///< the first one's, and that of what is written: calls write what was there
  bool awaits = false;  ///< the first one's: a move makes it, which needs its memory
  bool seen = false;    ///< the first one's: it is seen on several meshes
};

/// An operator of a Program that has been planned.
struct ReadyCall {
  std::shared_ptr<const Prepared> prepared;
  std::uint64_t name = 0;  ///< CallName::digest
};

/// On which meshes the calls of a list work: on one, and on each process's own parts of it in
/// manual functions; or on parts of one mesh, the mesh, and meshes over the same processes.
enum class ListsOn : std::uint8_t { one_mesh, one_world };

class Listing final : public Taker {
 public:
  explicit Listing(ListsOn on = ListsOn::one_mesh) : on_(on) {}
  ~Listing() { let_go(); }

  /// Lists a call, and returns its result, whose memory is promised. Throws what planning throws,
  /// MeshError for a mesh of another world, and UsageError when the call has other memory than
  /// tensors.
  TESSERA_FUNCTION TensorCore take(const Request& r) override;
  TESSERA_FUNCTION void refuse(CallSite site) const override;
  bool takes_all() const override { return true; }
  Taker* lister() override { return this; }
  TESSERA_FUNCTION void see(const TensorCore& x, const TensorCore& seen, CallSite site) override;
  void pin(const TensorCore& x, const OpenSharding& to, Where where) override {
    pins_.add(x, to, where);
  }

  /// Returns a digest of what is listed: operators, descriptions, which call reads the result of
  /// which other, what the caller keeps, what memory is the application's, and pins. Two lists of
  /// one structure differ in values alone.
  std::uint64_t structure() const;
  /// Returns whether a list of the same digest has this one's calls.
  bool is(const Program& listed) const;
  /// Returns the list as a Program: what run() does on this process.
  Program program() const;
  /// Carries out a Program of these calls: `listed`, which program() returned for a list of this
  /// structure, or what passes made of it. `ready` keeps the plans of its operators from one list
  /// of a structure to the next. Collective over the mesh. Communication: that of the Program.
  void run(const Program& listed, const Program& program, std::vector<ReadyCall>& ready);

  int size() const { return static_cast<int>(calls_.size()); }
  /// Returns the number of a tensor's memory in the list, as in program(); -1: no call has it.
  int number(const TensorCore& tensor) const {
    const int known = tensor.storage()->listed();
    const bool mine = known >= 0 && known < static_cast<int>(tensors_.size()) &&
                      listed(known).tensor.storage() == tensor.storage();
    return mine ? number_of(known) : -1;
  }
  /// Returns the mesh of the first call; null where none is listed.
  const std::shared_ptr<MeshCore>& mesh() const { return mesh_; }
  /// Returns the meshes of the calls, in the order in which they are first used; and the smallest
  /// one in which all of them lie, or over whose processes they are.
  const std::vector<std::shared_ptr<MeshCore>>& meshes() const { return meshes_; }
  const std::shared_ptr<MeshCore>& world() const { return world_; }

 private:
  friend class ListedRun;
  friend class Replay;

  ListedTensor& listed(int i) { return tensors_[static_cast<std::size_t>(i)]; }
  const ListedTensor& listed(int i) const { return tensors_[static_cast<std::size_t>(i)]; }
  const ListedCall& call(int i) const { return *calls_[static_cast<std::size_t>(i)]; }
  int number_of(int tensor) const { return listed(tensor).number; }
  /// Returns the place of a tensor in the list, where it is added if it is new.
  int found(const TensorCore& tensor, bool made);
  /// Adds a tensor to those of the memory `number`, or where that is -1 to a memory of its own;
  /// returns its place.
  int add(const TensorCore& tensor, int number);
  /// Adds a tensor that the next call has; returns its place.
  int place_of(const TensorCore& tensor, bool made);
  /// Returns the place of a mesh among those of the calls, where it is added if it is new.
  int part_of(const std::shared_ptr<MeshCore>& mesh, CallSite site);
  /// Returns whether somebody else holds a tensor's memory.
  bool kept_by_others(int number) const;
  int layers_now(const MeshCore& mesh);
  void show();
  /// Returns what is pinned, by the number of each tensor.
  std::vector<TensorPin> pins() const;
  /// Calls that did not run keep no promise.
  void let_go();

  ListsOn on_;
  std::shared_ptr<MeshCore> mesh_, world_;
  std::vector<std::shared_ptr<MeshCore>> meshes_;
  BlockPool* pool_ = nullptr;  ///< the mesh's, for calls
  std::vector<std::shared_ptr<ListedCall>> calls_;
  std::vector<ListedTensor> tensors_;
  std::vector<LayerPath> layers_;
  Pins pins_;
  Digest digest_;
};

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/run/list/detail/listed.hpp>
#include <tessera/run/list/detail/listed_run.hpp>
#endif
