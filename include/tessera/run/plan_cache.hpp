// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Plans worked out once for each operator, extents, shardings and result, and kept in the mesh.
///
///     const detail::Prepared& p = prepare(mesh, query, [&] { return operation.plan(...); });
///
/// Laws: equal keys give the same Prepared object as long as it is kept; a look-up allocates
/// nothing; plans take at most MeshOptions::plan_cache_bytes, the last one aside, and the least
/// recently used go first. An operator in progress keeps its own plan.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/comm/mesh_core.hpp>
#include <tessera/plan/builder.hpp>
#include <tessera/plan/op/product/einsum_order.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/plan/work/instructions.hpp>
#include <tessera/run/detail/recent_cache.hpp>
#include <tessera/tensor/tensor_core.hpp>

namespace tessera {
namespace detail {

/// Calls visit(word) for each number that describes how operands and a destination are stored.
template <class Visit> void for_each_word(const StoredWithin& stored, const Visit& visit) {
  const auto each = [&](const Halo& halo) {
    visit(halo.size());
    for (const HaloDim& d : halo) {
      visit(d.low);
      visit(d.high);
      visit(static_cast<std::int64_t>(d.boundary));
    }
  };
  for (const Halo& halo : stored.operands) each(halo);
  each(stored.destination);
}

template <> inline constexpr Limit list_limit<const TensorCore*, max_operands> = Limit::operands;
using OperandList = FixedVector<const TensorCore*, max_operands>;

inline TensorDescs descs_of(const OperandList& operands) {
  TensorDescs descs;
  for (const TensorCore* operand : operands) descs.push_back(operand->desc());
  return descs;
}

/// How operands and the destination are stored, where one of them lies within a halo.
class StoredOperands {
 public:
  StoredOperands(const OperandList& operands, const TensorCore* into) {
    bool any = into != nullptr && into->halo() != nullptr;
    for (const TensorCore* operand : operands) any = any || operand->halo() != nullptr;
    if (any) list(operands, into);
  }
  StoredOperands(const StoredOperands&) = delete;
  StoredOperands& operator=(const StoredOperands&) = delete;

  /// Returns how they are stored; null where none lies within a halo.
  const StoredWithin* get() const { return within_; }

 private:
  void list(const OperandList& operands, const TensorCore* into) {
    StoredWithin* const within = new (memory_) StoredWithin;
    const auto of = [](const TensorCore& x) { return x.halo() != nullptr ? *x.halo() : Halo{}; };
    for (const TensorCore* operand : operands) within->operands.push_back(of(*operand));
    if (into != nullptr) within->destination = of(*into);
    within_ = within;
  }
  // By hand: most calls have none, and a std::optional costs each compilation a hundred templates.
  alignas(StoredWithin) std::byte memory_[sizeof(StoredWithin)];
  const StoredWithin* within_ = nullptr;
};
static_assert(std::is_trivially_destructible_v<StoredWithin>);

/// Views of all that distinguishes one planned operator from another on one mesh: the operator, the
/// descriptions of its operands, where its result goes and what the call accepts; and, where one
/// lies within a halo, how they are stored.
class PlanQuery {
 public:
  PlanQuery(OperationView asked, const OperandList& of, Destination goes, const Contract& accepts,
            const StoredWithin* within = nullptr)
      : operation(asked),
        operands(of),
        destination(goes),
        contract(accepts.bits()),
        stored(within) {
    Digest digest;
    digest.add(operation.digest());
    for (const TensorCore* operand : operands) add_to(digest, operand->desc());
    digest.add(static_cast<std::uint64_t>(destination));
    digest.add(contract);
    if (stored != nullptr)
      for_each_word(*stored, [&](std::int64_t w) { digest.add(static_cast<std::uint64_t>(w)); });
    digest_ = digest.value();
  }
  std::uint64_t digest() const { return digest_; }

  OperationView operation;
  const OperandList& operands;
  Destination destination;
  std::uint64_t contract;
  const StoredWithin* stored;

 private:
  std::uint64_t digest_;
};

/// A PlanQuery as a value.
struct PlannedCall {
  explicit PlannedCall(const PlanQuery& q)
      : operation(q.operation),
        operands(descs_of(q.operands)),
        destination(q.destination),
        contract(q.contract),
        digest_(q.digest()) {
    if (q.stored != nullptr) for_each_word(*q.stored, [&](std::int64_t w) { stored.push_back(w); });
  }
  std::uint64_t digest() const { return digest_; }
  bool operator==(const PlanQuery& q) const {
    if (digest_ != q.digest() || !(operation.view() == q.operation) ||
        operands.size() != q.operands.size() || destination != q.destination ||
        contract != q.contract || !lies_as(q.stored))
      return false;
    for (int i = 0; i < operands.size(); ++i)
      if (!(operands[i] == q.operands[i]->desc())) return false;
    return true;
  }
  bool operator==(const PlannedCall& other) const {
    return digest_ == other.digest_ && operation == other.operation && operands == other.operands &&
           destination == other.destination && contract == other.contract && stored == other.stored;
  }

  Operation operation;
  TensorDescs operands;
  Destination destination;
  std::uint64_t contract;
  std::vector<std::int64_t> stored;  ///< how the operands are stored; empty: without halos

 private:
  bool lies_as(const StoredWithin* asked) const {
    std::size_t words = 0;
    bool same = true;
    if (asked != nullptr)
      for_each_word(*asked, [&](std::int64_t w) {
        same = same && words < stored.size() && stored[words] == w;
        ++words;
      });
    return same && words == stored.size();
  }
  std::uint64_t digest_;
};

/// A plan and the instructions of this process for it.
struct Prepared : std::enable_shared_from_this<Prepared> {
  std::shared_ptr<const Plan> plan;
  /// What is planned; null where it reads or writes other memory than tensors of its mesh.
  std::shared_ptr<const Operation> operation;
  Instructions list;
  /// In place of a plan, for a product of three or more tensors: which pairs are multiplied.
  std::shared_ptr<const EinsumOrder> order;
  bool communicates = false;  ///< on some process: the steps are the same on all
  double scale = 1;           ///< the factor of a sum, for a mean
};

/// Returns the bytes of a prepared plan outside the object.
inline Index heap_bytes(const Prepared& prepared) {
  Index bytes = heap_bytes(prepared.list);
  if (prepared.order != nullptr) bytes += static_cast<Index>(sizeof(EinsumOrder));
  if (prepared.plan == nullptr) return bytes;
  bytes += static_cast<Index>(sizeof(Plan));
  if (prepared.operation != nullptr) bytes += static_cast<Index>(sizeof(Operation));
  for (const Slot& slot : prepared.plan->slots)
    if (slot.place.kind == Placement::Kind::boxes)
      bytes += static_cast<Index>(slot.place.count * static_cast<Index>(sizeof(Box)));
  return bytes;
}
/// Returns whether a plan's operands and result are tensors of its mesh: a pass over a Program may
/// plan its operator anew.
inline bool of_own_tensors(const Plan& plan) {
  bool own = plan.slots[plan.result].place.sharded();
  for (int i = 0; i < plan.operands; ++i) own = own && plan.slots[i].place.sharded();
  return own;
}
/// The plans that a mesh keeps.
struct PlanCache {
  RecentCache<PlannedCall, Prepared> plans;
};
}  // namespace detail

/// How full the plan cache of a mesh is, and how it was used.
struct PlanCacheUse {
  Index plans = 0;
  Index bytes = 0;    ///< of the plans and of their processes' work
  Index limit = 0;    ///< MeshOptions::plan_cache_bytes
  Index made = 0;     ///< plans that were worked out, some perhaps again
  Index found = 0;    ///< look-ups that found their plan
  Index evicted = 0;  ///< plans dropped, the least recently used first
};
/// Returns how full the plan cache of this process is. Communication: none.
inline PlanCacheUse plan_cache_use(MeshCore& mesh) {
  const auto& plans = mesh.attachment<detail::PlanCache>().plans;
  return {static_cast<Index>(plans.size()),
          plans.bytes(),
          mesh.options().plan_cache_bytes,
          plans.made(),
          plans.found(),
          plans.evicted()};
}

/// Returns the planner's options for this mesh.
inline PlanOptions plan_options(const MeshCore& mesh) {
  PlanOptions options{mesh.machine(), mesh.workspace_limit()};
  options.narrow_parts = mesh.options().narrow_parts;
  return options;
}

namespace detail {
/// Returns the prepared plan for `query`, made by `make` when it is new. `make` returns the plan,
/// with the memory that it views, as one shared_ptr<const Plan>. The reference holds until another
/// plan is prepared.
template <class Make>
const Prepared& prepare(MeshCore& mesh, const PlanQuery& query, const Make& make) {
  return mesh.attachment<PlanCache>().plans.get(query, mesh.options().plan_cache_bytes, [&] {
    Prepared prepared;
    prepared.plan = make();
    if (of_own_tensors(*prepared.plan))
      prepared.operation = std::make_shared<const Operation>(query.operation);
    prepared.scale = query.operation.scale(descs_of(query.operands));
    prepared.list = instructions_of(*prepared.plan);
    for (const Step& step : prepared.plan->steps)
      prepared.communicates = prepared.communicates || step.communicates() || step.merges;
    return prepared;
  });
}

/// Returns the order of a product of many tensors, which `find` works out when it is new.
template <class Find>
std::shared_ptr<const EinsumOrder> prepare_order(MeshCore& mesh, const PlanQuery& query,
                                                 const Find& find) {
  return mesh.attachment<PlanCache>()
      .plans
      .get(query, mesh.options().plan_cache_bytes,
           [&] {
             Prepared prepared;
             prepared.order = std::make_shared<const EinsumOrder>(find());
             return prepared;
           })
      .order;
}
}  // namespace detail
}  // namespace tessera
