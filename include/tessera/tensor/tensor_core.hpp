// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The erased tensor under `ShardedTensor` and `DynamicTensor`: element type, global extents,
/// sharding, mesh, and this process's block. Copies are shallow.
///
///     TensorCore t = TensorCore::make(mesh, desc);     // contents unspecified
///     t.data<float>();   t.box();
///
/// Laws: the block is contiguous, row-major, unless its storage says that it lies within a halo;
/// t.local_size() == t.box().size(); a dry tensor has no data.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/comm/mesh_core.hpp>
#include <tessera/kernel/lane_use.hpp>
#include <tessera/spec/halo.hpp>
#include <tessera/spec/sharding.hpp>
#include <tessera/spec/typed_tensor.hpp>
#include <tessera/spec/verdict.hpp>
#include <tessera/tensor/detail/block_pool.hpp>

namespace tessera {
namespace detail {

/// One block of memory, returned to its arena (or its owner) when the last tensor that uses it
/// ends.
class Storage {
 public:
  Storage(std::shared_ptr<MeshCore> mesh, Index bytes)
      : mesh_(std::move(mesh)), block_(mesh_->arena().allocate(bytes)), data_(block_.data) {
    if (data_ != nullptr) own_use_.write();
  }
  Storage(std::shared_ptr<MeshCore> mesh, void* data, std::shared_ptr<const void> owner)
      : mesh_(std::move(mesh)), data_(data), owner_(mesh_->keep(std::move(owner))), adopted_(true) {
    if (data_ != nullptr) own_use_.write();
  }
  /// Shares the memory of `of`, which lives as long, for another halo or to be seen on another
  /// mesh. Where that memory is promised, it is there when the promise is kept.
  explicit Storage(const std::shared_ptr<Storage>& of)
      : mesh_(of->mesh_),
        data_(of->promised() ? nullptr : of->data_),  // asked first: it may just have arrived
        owner_(mesh_->keep(of)),
        adopted_(true),
        promised_(of->promised()),
        late_(promised_),
        root_(of->root()),
        use_(of->use_),
        varies_(of->varies_),
        user_(of->user_) {}
  /// The memory of a result that an operator under way will make; keep() brings it.
  Storage(std::shared_ptr<MeshCore> mesh, Where where)
      : mesh_(std::move(mesh)), promised_(true), user_(where) {}
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage() {
    mesh_->note_end(this);
    delete halo_;
    if (adopted_) {
      own_use_.wait();
      mesh_->let_go(owner_);
    } else {
      mesh_->arena().release(block_, own_use_.lanes());
    }
  }
  /// Returns the memory. Throws UsageError while it is promised.
  void* data() const {
    if (data_ == nullptr && promised()) refuse();
    return data_;
  }
  /// Returns true while an operator under way makes the values.
  bool promised() const {
    if (late_ && !root_->promised_) arrive();
    return promised_;
  }
  /// An operator under way writes what is there; show() ends that.
  void hide(Where where) {
    if (promised()) return;
    hidden_ = std::exchange(data_, nullptr);
    promised_ = true;
    broken_ = false;
    user_ = where;
  }
  void show() {
    if (hidden_ != nullptr) data_ = std::exchange(hidden_, nullptr);
    promised_ = false;
  }
  /// The promise is not kept: what should have made the values has failed, or ended before.
  void break_promise() { broken_ = promised_; }
  /// Returns true where a promise is not kept.
  bool broken() const { return promised() && (broken_ || root_->broken_); }
  /// Keeps the promise by the memory of `made`, which nobody else uses.
  void keep(Storage& made) {
    std::swap(block_, made.block_);
    std::swap(data_, made.data_);
    std::swap(owner_, made.owner_);
    std::swap(adopted_, made.adopted_);
    std::swap(own_use_, made.own_use_);
    std::swap(promised_, made.promised_);
  }
  /// Which lanes use the memory. Who reads or writes it tells, before (kernel/lane_use.hpp).
  LaneUse& use() { return *use_; }
  bool adopted() const { return adopted_; }
  /// Returns the object that this one shares its memory with; itself where it has its own.
  const Storage* root() const { return root_; }
  /// Returns the object whose memory this one has; null where it has its own.
  std::shared_ptr<const Storage> root_owner() const {
    if (root_ == this) return nullptr;
    const auto of = std::static_pointer_cast<const Storage>(mesh_->kept(owner_));
    return of.get() == root_ ? of : of->root_owner();
  }
  const MeshCore* mesh() const { return mesh_.get(); }
  /// Returns the block's number among all blocks of its arena; 0 for adopted memory.
  std::uint64_t serial() const { return block_.serial; }
  /// Returns the halo within which the stored block lies; null: it lies by itself.
  const Halo* halo() const { return halo_; }
  void set_halo(const Halo& halo) {
    delete std::exchange(halo_, nullptr);
    halo_ = new Halo(halo);
  }
  /// Returns the bytes of arena memory that the block takes up.
  Index charge() const { return adopted_ ? 0 : arena_charge(block_.bytes); }

  /// Returns the axes over which the values may differ between the own parts of processes, in
  /// manual mode (mesh/manual.hpp), of the mesh on which the function is called; elsewhere none.
  AxisSet varies() const { return varies_; }
  void set_varies(AxisSet axes) { varies_ = axes; }

  /// Counts the operators in progress that read or write this memory, and keeps the place of the
  /// operator's call for errors.
  void begin_use(Where where) {
    ++users_;
    user_ = where;
  }
  void end_use() { --users_; }
  bool in_use() const { return users_ > 0; }
  Where user() const { return user_; }
  /// A number that a list of tensors gives it; a hint, since other lists give it others.
  int listed() const { return listed_; }
  void set_listed(int number) { listed_ = number; }

  /// Returns a digest that stands for the values: equal on all processes that computed them in the
  /// same way, 0 where nobody compares (MeshCore::remembers). The number counts such blocks of this
  /// process.
  std::uint64_t history() const {
    (void)promised();
    return history_;
  }
  std::uint64_t number() const {
    (void)promised();
    return number_;
  }
  void set_history(std::uint64_t history) {
    history_ = history;
    if (history != 0) number_ = mesh_->next_number();
  }
  /// Keeps no history, for memory whose values other processes know nothing of.
  void forget() {
    forgets_ = true;
    history_ = number_ = 0;
  }

 private:
  /// The memory that was promised when this one began to share it is there.
  void arrive() const {
    late_ = promised_ = false;
    data_ = root_->data_;
    if (forgets_) return;
    history_ = root_->history_;
    if (history_ != 0) number_ = mesh_->next_number();
  }
  [[noreturn]] void refuse() const {
    if (broken())
      throw UsageError(
          "a tensor has no values: the operator that makes it" +
          (user_.known() ? ", which was called at " + to_string(user_) + "," : std::string()) +
          " did not run, since the async or compiled function around it failed; call that again, "
          "or make the tensor anew");
    throw UsageError(
        "a tensor is used before the operator that makes it has been waited for; the operator was "
        "started at " +
        to_string(user_) +
        "; wait for it first; inside async or a compiled function, give the tensor to operators "
        "alone");
  }

  std::shared_ptr<MeshCore> mesh_;
  Block block_;
  mutable void* data_ = nullptr;
  void* hidden_ = nullptr;
  std::uint64_t owner_ = 0;  ///< the key under which the mesh keeps the owner
  bool adopted_ = false;
  mutable bool promised_ = false;
  mutable bool late_ = false;  ///< shares memory that was promised, and has not looked at it since
  bool broken_ = false;
  bool forgets_ = false;
  const Halo* halo_ = nullptr;  ///< owned by this object
  const Storage* root_ = this;
  LaneUse own_use_;
  LaneUse* use_ = &own_use_;
  AxisSet varies_;
  int users_ = 0;
  int listed_ = -1;
  Where user_;
  mutable std::uint64_t history_ = 0;
  mutable std::uint64_t number_ = 0;
};

/// Returns a block of the mesh's arena; its reference count comes from the mesh's pool.
inline std::shared_ptr<Storage> make_storage(const std::shared_ptr<MeshCore>& mesh, Index bytes) {
  return std::allocate_shared<Storage>(PoolAllocator<Storage>(mesh->attachment<PoolOwner>().pool()),
                                       mesh, bytes);
}
/// Returns memory that an operator of the mesh will make, which was called at `where`.
inline std::shared_ptr<Storage> make_promise(const std::shared_ptr<MeshCore>& mesh, Where where) {
  return std::allocate_shared<Storage>(PoolAllocator<Storage>(mesh->attachment<PoolOwner>().pool()),
                                       mesh, where);
}
/// Throws ShardingError unless a tensor that no operator returns may have this sharding.
inline void require_made_finished(const MeshCore& mesh, const Sharding& sharding,
                                  std::string_view label, Where where) {
  if (sharding.partial.empty()) return;
  throw_broken(
      Rule::made_finished,
      std::string(label) + explain(Verdict{.rule = Rule::made_finished}, sharding, mesh.names()),
      where);
}
/// Returns whether such a tensor may have this type; if not, reports it.
template <class Tensor> consteval bool demand_made() {
  if constexpr (Tensor::unfinished) return InvalidOperator<Rule::made_finished, Tensor>::said();
  return true;
}
/// Returns the sharding of a tensor whose type may leave nothing open.
template <class Tensor> constexpr const Sharding& closed_sharding() {
  if constexpr (Tensor::open) static_assert(InvalidOperator<Rule::nothing_open, Tensor>::said());
  return TensorFacts<Tensor>::sharding();
}
/// Returns the sharding of a type of tensors that no operator returns.
template <class Tensor> constexpr const Sharding& made_sharding() {
  static_assert(demand_made<Tensor>());
  return closed_sharding<Tensor>();
}
}  // namespace detail

class TensorCore {
 public:
  TensorCore() = default;
  TensorCore(std::shared_ptr<MeshCore> mesh, const TensorDesc& desc,
             std::shared_ptr<detail::Storage> storage)
      : mesh_(std::move(mesh)), desc_(desc), storage_(std::move(storage)) {}

  /// Makes a tensor with unspecified contents. Communication: none. Throws ShapeError,
  /// ShardingError or MemoryError.
  static TensorCore make(const std::shared_ptr<MeshCore>& mesh, const TensorDesc& desc,
                         Where where = {}) {
    check_desc(*mesh, desc, where);
    return born({mesh, desc, detail::make_storage(mesh, local_bytes(*mesh, desc))});
  }
  /// Makes a tensor of memory that belongs to the application; `owner` keeps it alive.
  static TensorCore adopt(const std::shared_ptr<MeshCore>& mesh, const TensorDesc& desc, void* data,
                          std::shared_ptr<const void> owner, Where where = {}) {
    check_desc(*mesh, desc, where);
    return born({mesh, desc, std::make_shared<detail::Storage>(mesh, data, std::move(owner))});
  }
  /// Returns the tensor, whose values come from no operator: a count distinguishes it from other
  /// such tensors of its element type and extents. `made`: a digest of how it was made, if any.
  static TensorCore born(TensorCore tensor, std::uint64_t made = 0) {
    MeshCore& mesh = *tensor.mesh_;
    if (!mesh.remembers()) return tensor;
    std::uint64_t history = static_cast<std::uint64_t>(tensor.type());
    for (const Index extent : tensor.extents())
      history = detail::mix(history, static_cast<std::uint64_t>(extent));
    history = detail::mix(history, mesh.next_born(history));
    tensor.storage_->set_history(made == 0 ? history : detail::mix(history, made));
    return tensor;
  }

  bool defined() const { return mesh_ != nullptr; }
  const std::shared_ptr<MeshCore>& mesh() const {
    if (mesh_ == nullptr)
      throw UsageError(
          "an empty tensor is used; assign one made by zeros, random, from_function or an operator "
          "first");
    return mesh_;
  }
  const TensorDesc& desc() const { return desc_; }
  DType type() const { return desc_.type; }
  const Extents& extents() const { return desc_.extents; }
  const Sharding& sharding() const { return desc_.sharding; }
  int rank() const { return desc_.rank(); }
  bool dry() const { return mesh()->dry(); }
  /// Returns whether its type leaves dimensions open, so that operators on it are for functions
  /// whose shardings are chosen alone.
  bool open() const { return open_; }
  /// Return the same tensor as one of an open type, and as one whose sharding is all there is.
  TensorCore as_open() const { return with_open(true); }
  TensorCore as_closed() const { return with_open(false); }
  const std::shared_ptr<detail::Storage>& storage() const { return storage_; }

  /// Returns the box of global indices that this process owns.
  Box box() const {
    return block(desc_.extents, desc_.sharding, mesh()->shape(), mesh_->coordinates());
  }
  Index local_size() const { return box().size(); }
  /// Returns the halo within which the block lies, null where it lies by itself.
  const Halo* halo() const { return storage_ ? storage_->halo() : nullptr; }
  /// Returns the memory, which begins with the halo.
  void* memory() const { return storage_ ? storage_->data() : nullptr; }
  /// Return it for kernels of this thread's lane that write it, or only read it: work of other
  /// lanes that is in their way is waited for.
  void* data() const {
    if (memory() != nullptr) storage_->use().write();
    return memory();
  }
  const void* read() const {
    if (memory() != nullptr) storage_->use().read();
    return memory();
  }
  template <class T> T* data() const { return static_cast<T*>(data()); }

  static Index local_bytes(const MeshCore& mesh, const TensorDesc& desc) {
    return detail::saturating_mul(
        block(desc.extents, desc.sharding, mesh.shape(), mesh.coordinates()).size(),
        static_cast<Index>(size_of(desc.type)));
  }
  static void check_desc(const MeshCore& mesh, const TensorDesc& desc, Where where) {
    if (desc.extents.size() != desc.sharding.rank())
      throw ShapeError("a tensor of extents " + to_string(desc.extents) +
                           " is given the sharding " + to_string(desc.sharding, mesh.names()) +
                           ", which has " + std::to_string(desc.sharding.rank()) +
                           " dimensions; give one extent for each dimension of the spec",
                       where);
    for (int d = 0; d < desc.extents.size(); ++d)
      if (desc.extents[d] < 0)
        throw ShapeError("dimension " + std::to_string(d) + " has extent " +
                             std::to_string(desc.extents[d]) + "; extents are not negative",
                         where);
    if (const Verdict verdict = check(desc, mesh.shape().rank()); !verdict.ok())
      detail::throw_broken(verdict.rule, explain(verdict, desc.sharding, mesh.names()), where);
  }

 private:
  TensorCore with_open(bool open) const {
    TensorCore same = *this;
    same.open_ = open;
    return same;
  }

  std::shared_ptr<MeshCore> mesh_;
  TensorDesc desc_;
  std::shared_ptr<detail::Storage> storage_;
  bool open_ = false;
};
}  // namespace tessera
