// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Data that the application has cut in its own way: one box a process, of any size. They become a
/// tensor, and a tensor fills them, by one exchange that is planned from the boxes.
///
///     auto x = from_irregular<Tensor<data, _>>(mesh, {1000, 600}, my_box, view);
///     to_irregular(y, my_box, view);
///
/// Laws: to_irregular(from_irregular(v)) == v; boxes that are the tensor's blocks are adopted: no
/// copy, no communication; what is declared is the same question on every process, so a wrong
/// declaration is the same error on every process.
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tessera/comm/complaint.hpp>
#include <tessera/op/gather.hpp>
#include <tessera/op/operators.hpp>
#include <tessera/plan/check_boxes.hpp>
#include <tessera/plan/place.hpp>
#include <tessera/tensor/process_mesh.hpp>

namespace tessera {

/// The boxes of all processes, declared in one of three ways.
struct Irregular {
  /// This process's own box; the processes tell each other theirs. Not on a dry mesh.
  Irregular(const Box& box) : own(box), declared(Declared::own) {}  // NOLINT: a box is enough
  /// The box of every process, the same list on all.
  Irregular(std::vector<Box> boxes)  // NOLINT
      : all(std::move(boxes)), declared(Declared::all) {}
  /// Borders of the parts of each dimension, over the axes that the tensor's spec names for it (see
  /// cut_boxes); the same on all.
  Irregular(std::vector<std::vector<Index>> borders)  // NOLINT
      : cuts(std::move(borders)), declared(Declared::cuts) {}

  enum class Declared : std::int64_t { own, all, cuts };
  Box own;
  std::vector<Box> all;
  std::vector<std::vector<Index>> cuts;
  Declared declared;
};

namespace detail {
using BoxList = std::shared_ptr<const std::vector<Box>>;

/// A plan and the boxes that it views.
struct PlanWithBoxes {
  BoxList boxes;
  Plan plan;
};

/// Returns the boxes of all processes, the same list on all. `given`: the elements of this
/// process's memory. Collective over the mesh. Throws ShapeError, on all, unless each has memory
/// for its box.
inline BoxList agree_on_boxes(MeshCore& mesh, const TensorDesc& desc, const Irregular& irregular,
                              Index given, CallSite site) {
  const bool own = irregular.declared == Irregular::Declared::own;
  const int processes = mesh.shape().processes();
  if (own && mesh.dry())
    throw UsageError(std::string(site.label) +
                         ": on a dry mesh nobody else declares a box; give the boxes of all "
                         "processes, or cuts",
                     site.where);
  auto boxes = std::make_shared<std::vector<Box>>(irregular.all);
  const std::string complaint = complaint_of([&] {
    if (irregular.declared == Irregular::Declared::cuts)
      *boxes = cut_boxes(desc.extents, desc.sharding, irregular.cuts, mesh.shape());
  });
  std::vector<std::int64_t> facts(4 + 2 * max_dims);
  facts[0] = complaint.empty() ? static_cast<std::int64_t>(irregular.declared) : -1;
  facts[1] = given;
  if (own) {
    facts[2] = irregular.own.rank();
    for (int d = 0; d < irregular.own.rank(); ++d) {
      facts[static_cast<std::size_t>(4 + 2 * d)] = irregular.own[d].lo;
      facts[static_cast<std::size_t>(5 + 2 * d)] = irregular.own[d].hi;
    }
  } else {
    std::uint64_t digest = boxes->size();
    for (const Box& box : *boxes)
      for (const Interval& side : box.side)
        digest = mix(mix(digest, static_cast<std::uint64_t>(side.lo)),
                     static_cast<std::uint64_t>(side.hi));
    facts[3] = static_cast<std::int64_t>(digest);
  }
  const std::vector<std::int64_t> all = mesh.gather_facts(facts, site.where);
  const auto fact = [&](int process, int i) {
    return all[static_cast<std::size_t>(process) * facts.size() + static_cast<std::size_t>(i)];
  };
  const auto fail = [&](const std::string& text) {
    throw ShapeError(std::string(site.label) + ": " + text, site.where);
  };
  for (int p = 0; p < processes; ++p) {
    if (fact(p, 0) < 0)
      fail(p == mesh.process() ? complaint
                               : "process " + std::to_string(p) + " declares cuts that do not fit");
    if (fact(p, 0) != fact(0, 0) || fact(p, 3) != fact(0, 3))
      fail("processes 0 and " + std::to_string(p) +
           " declare different boxes; lists and cuts are the same on every process");
  }
  if (own) {
    boxes->clear();
    for (int p = 0; p < processes; ++p) {
      Box box;
      for (int d = 0; d < fact(p, 2); ++d)
        box.side.push_back({fact(p, 4 + 2 * d), fact(p, 5 + 2 * d)});
      boxes->push_back(box);
    }
  }
  if (mesh.dry()) return boxes;
  for (int p = 0; p < processes && p < static_cast<int>(boxes->size()); ++p)
    if (const Box& box = (*boxes)[static_cast<std::size_t>(p)]; fact(p, 1) != box.size())
      fail("process " + std::to_string(p) + " declares " + to_string(box) + ", " +
           std::to_string(box.size()) + " elements, and gives memory of " +
           std::to_string(fact(p, 1)) + "; give a contiguous View of exactly the box");
  return boxes;
}

/// Finds or makes the plan of a tensor `desc` from or to boxes. Throws ShapeError, on all
/// processes, when the boxes break a rule.
template <class Make>
const Prepared& prepare_irregular(MeshCore& mesh, PlanKey& key, const TensorDesc& desc,
                                  const BoxList& boxes, bool partition, CallSite site,
                                  const Make& make) {
  key.add(desc);
  std::uint64_t first = 0, second = 0x51ED'270B'9C3F'A8E5u;  // 128 bits stand for the boxes
  for (const Box& box : *boxes) {
    first = mix(first, static_cast<std::uint64_t>(box.rank()));
    for (const Interval& side : box.side)
      for (const Index end : {side.lo, side.hi}) {
        first = mix(first, static_cast<std::uint64_t>(end));
        second = mix(second ^ first, static_cast<std::uint64_t>(~end));
      }
  }
  key.add(first);
  key.add(second);
  return prepare(mesh, key, [&]() -> std::shared_ptr<const Plan> {
    const Verdict verdict = check_boxes(desc.extents, *boxes, mesh.shape().processes(), partition);
    if (!verdict.ok())
      throw_broken(verdict.rule,
                   std::string(site.label) + ": " + explain(verdict, desc.extents, *boxes),
                   site.where);
    const auto whole = std::make_shared<PlanWithBoxes>(PlanWithBoxes{boxes, make(*boxes)});
    return {whole, &whole->plan};
  });
}

inline TensorCore from_irregular(const std::shared_ptr<MeshCore>& mesh, const TensorDesc& desc,
                                 const Irregular& irregular, void* data, Index given,
                                 std::shared_ptr<const void> owner, CallSite site) {
  TensorCore::check_desc(*mesh, desc, site.where);
  if (!desc.sharding.partial.empty())
    throw ShardingError(std::string(site.label) + ": " + to_string(desc.sharding, mesh->names()) +
                            " is unfinished; a tensor is made finished; drop Unreduced",
                        site.where);
  const BoxList boxes = agree_on_boxes(*mesh, desc, irregular, given, site);
  PlanKey key(OperatorKind::from_boxes);
  const Prepared& prepared =
      prepare_irregular(*mesh, key, desc, boxes, true, site, [&](std::span<const Box> list) {
        return plan_from_boxes(desc, list, mesh->shape(), mesh->process(), plan_options(*mesh));
      });
  const TensorCore operand =
      TensorCore::born({mesh,
                        {desc.type, desc.extents, Sharding::replicated(desc.rank())},
                        std::make_shared<Storage>(mesh, data, std::move(owner))});
  const OperandList operands{&operand};
  const PlanQuery query = query_of(key);
  Comparison comparison(operands, query, site);
  comparison.begin(prepared);
  TensorCore result = execute(prepared, operands, site);
  remember(result, operands, comparison.history());
  return result;
}

inline void to_irregular(const TensorCore& x, const Irregular& irregular, void* data, Index given,
                         CallSite site) {
  const std::shared_ptr<MeshCore>& mesh = x.mesh();
  const BoxList boxes = agree_on_boxes(*mesh, x.desc(), irregular, given, site);
  PlanKey key(OperatorKind::to_boxes);
  PlanOptions options = plan_options(*mesh);
  const OperandList operands{&x};
  const StoredOperands stored(operands, nullptr);
  stored.tell(options, key);
  const Prepared& prepared =
      prepare_irregular(*mesh, key, x.desc(), boxes, false, site, [&](std::span<const Box> list) {
        return plan_to_boxes(x.desc(), list, mesh->shape(), mesh->process(), options);
      });
  const PlanQuery query = query_of(key);
  Comparison comparison(operands, query, site);
  comparison.begin(prepared);
  const TensorCore destination(mesh, prepared.plan->result_desc(),
                               std::make_shared<Storage>(mesh, data, nullptr));
  execute(prepared, operands, site, 1, {}, &destination);
  tessera::fence();
}

/// What memory of the application must be to be a box: contiguous, row-major, within reach.
template <class T, class View> struct BoxMemory {
  static consteval bool said() {
    static_assert(Kokkos::is_view_v<View>, "[tessera] irregular boxes are Kokkos Views");
    static_assert(std::is_same_v<typename View::value_type, T>,
                  "[tessera] the View holds another element type than the tensor (or const "
                  "elements); use a View of the tensor's own type");
    static_assert(
        std::is_same_v<typename View::array_layout, Kokkos::LayoutRight> || View::rank() <= 1,
        "[tessera] boxes are LayoutRight; deep_copy the View into one of LayoutRight first");
    static_assert(Kokkos::SpaceAccessibility<Kokkos::DefaultExecutionSpace,
                                             typename View::memory_space>::accessible,
                  "[tessera] kernels cannot reach the View's memory; make it in the default "
                  "execution space's memory");
    return true;
  }
  static_assert(said());
  /// A View that is not contiguous has no size that fits a box.
  static Index size(const View& view) {
    return view.span_is_contiguous() ? static_cast<Index>(view.size()) : -1;
  }
};
}  // namespace detail

/// Returns the tensor of the given extents of which each process has one box: `view` is this
/// process's, contiguous and row-major. The boxes are equal or disjoint and cover the tensor. When
/// they are the tensor's own blocks on every process, the memory is adopted (and the View kept
/// alive); else it is read before this returns. Communication: one exchange, as plan_from_boxes
/// says, and an all-gather of a few integers, in no ledger. Collective over the mesh. Throws
/// ShapeError, the same on every process, naming the processes whose boxes overlap, the hole, or
/// whose memory does not fit.
template <TypedTensor Tensor, class View>
Tensor from_irregular(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
                      const Irregular& boxes, const View& view, Where where = Where::here()) {
  static_assert(!Tensor::unfinished,
                "[tessera] a tensor is made finished; only operators leave values Unreduced; drop "
                "Unreduced from its spec");
  using T = typename Tensor::value_type;
  const auto owner = std::make_shared<View>(view);
  return Tensor(detail::from_irregular(mesh.core(), {dtype_of<T>, extents, Tensor::sharding()},
                                       boxes, owner->data(), detail::BoxMemory<T, View>::size(view),
                                       owner, {"from_irregular", where}));
}
template <class View>
DynamicTensor from_irregular(const std::shared_ptr<MeshCore>& mesh, const Extents& extents,
                             const Sharding& sharding, const Irregular& boxes, const View& view,
                             Where where = Where::here()) {
  using T = typename View::value_type;
  use_element<T>();
  const auto owner = std::make_shared<View>(view);
  return DynamicTensor(detail::from_irregular(mesh, {dtype_of<T>, extents, sharding}, boxes,
                                              owner->data(), detail::BoxMemory<T, View>::size(view),
                                              owner, {"from_irregular", where}));
}

/// Fills `view`, memory of the application, with the box of x that this process declares; boxes lie
/// within the tensor and may overlap or leave holes. Communication: one exchange, as plan_to_boxes
/// says (unfinished values are combined first), and an all-gather of a few integers, in no ledger.
/// Collective over the mesh. Throws ShapeError, the same on every process.
template <TypedTensor A, class View>
void to_irregular(const A& x, const Irregular& boxes, const View& view,
                  Where where = Where::here()) {
  detail::to_irregular(x.core(), boxes, view.data(),
                       detail::BoxMemory<typename A::value_type, View>::size(view),
                       {"to_irregular", where});
}
template <class View>
void to_irregular(const DynamicTensor& x, const Irregular& boxes, const View& view,
                  Where where = Where::here()) {
  detail::require_type<typename View::value_type>(x, {"to_irregular", where});
  detail::to_irregular(x.core(), boxes, view.data(),
                       detail::BoxMemory<typename View::value_type, View>::size(view),
                       {"to_irregular", where});
}

}  // namespace tessera
