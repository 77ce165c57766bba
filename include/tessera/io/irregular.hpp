// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Data that the application has divided in its own way: one box for each process, of any size. The
/// boxes become a tensor, or a tensor fills them, by one exchange that is planned from the boxes.
///
///     auto x = from_irregular<Tensor<data, _>>(mesh, {1000, 600}, my_box, view);
///     to_irregular(y, my_box, view);
///
/// Laws: to_irregular(from_irregular(v)) == v; boxes that are the tensor's blocks are adopted: no
/// copy, no communication; all processes check the same declaration, so a wrong one is the same
/// error on every process.
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tessera/comm/complaint.hpp>
#include <tessera/io/detail/memory_bound.hpp>
#include <tessera/op/to_host.hpp>
#include <tessera/tensor/process_mesh.hpp>

namespace tessera {

/// The boxes of all processes, declared in one of three ways.
struct Irregular {
  /// This process's own box; the processes tell each other their boxes. Not on a dry mesh.
  Irregular(const Box& box) : own(box), declared(Declared::own) {}  // NOLINT: a box is enough
  /// The box of every process, the same list on all.
  Irregular(std::vector<Box> boxes)  // NOLINT
      : all(std::move(boxes)), declared(Declared::all) {}
  /// The borders of the parts of each dimension, over the axes that the tensor's spec names for it
  /// (see cut_boxes); the same on all processes.
  Irregular(std::vector<std::vector<Index>> borders)  // NOLINT
      : cuts(std::move(borders)), declared(Declared::cuts) {}

  enum class Declared : std::int64_t { own, all, cuts };
  Box own;
  std::vector<Box> all;
  std::vector<std::vector<Index>> cuts;
  Declared declared;
};

namespace detail {
/// Returns the boxes of all processes, the same list on all. `given`: the number of elements in
/// this process's memory. Collective over the mesh. Throws ShapeError, on all, unless each process
/// has memory for its box.
inline std::vector<Box> agree_on_boxes(MeshCore& mesh, const TensorDesc& desc,
                                       const Irregular& irregular, Index given, CallSite site) {
  const bool own = irregular.declared == Irregular::Declared::own;
  const int processes = mesh.shape().processes();
  if (own && (mesh.dry() || mesh.alone()))
    throw UsageError(
        std::string(site.label) +
            ": on a dry or fake mesh nobody else declares a box; give the boxes of all "
            "processes, or cuts",
        site.where);
  std::vector<Box> boxes = irregular.all;
  const std::string complaint = complaint_of([&] {
    if (irregular.declared == Irregular::Declared::cuts)
      boxes = cut_boxes(desc.extents, desc.sharding, irregular.cuts, mesh.shape());
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
    facts[3] =
        static_cast<std::int64_t>(ops::Memory::in_boxes(boxes, processes).fingerprint.second);
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
    boxes.clear();
    for (int p = 0; p < processes; ++p) {
      Box box;
      for (int d = 0; d < fact(p, 2); ++d)
        box.side.push_back({fact(p, 4 + 2 * d), fact(p, 5 + 2 * d)});
      boxes.push_back(box);
    }
  }
  if (mesh.dry() || mesh.alone()) return boxes;
  for (int p = 0; p < processes && p < static_cast<int>(boxes.size()); ++p)
    if (const Box& box = boxes[static_cast<std::size_t>(p)]; fact(p, 1) != box.size())
      fail("process " + std::to_string(p) + " declares " + to_string(box) + ", " +
           std::to_string(box.size()) + " elements, and gives " +
           (fact(p, 1) < 0 ? "a View that is not contiguous"
                           : "memory of " + std::to_string(fact(p, 1))) +
           "; give a contiguous View of exactly the box");
  return boxes;
}

inline TensorCore from_irregular(const std::shared_ptr<MeshCore>& mesh, const TensorDesc& desc,
                                 const Irregular& irregular, void* data, Index given,
                                 std::shared_ptr<const void> owner, CallSite site) {
  TensorCore::check_desc(*mesh, desc, site.where);
  const std::vector<Box> boxes = agree_on_boxes(*mesh, desc, irregular, given, site);
  const TensorCore operand =
      TensorCore::born({mesh,
                        {desc.type, desc.extents, Sharding::replicated(desc.rank())},
                        std::make_shared<Storage>(mesh, data, std::move(owner))});
  const ops::FromMemory operation{ops::Memory::in_boxes(boxes, mesh->shape().processes()),
                                  desc.sharding};
  return run({operation, {&operand}, site});
}

inline void to_irregular(const TensorCore& x, const Irregular& irregular, void* data, Index given,
                         CallSite site) {
  MeshCore& mesh = mesh_of(x, site);
  const std::vector<Box> boxes = agree_on_boxes(mesh, x.desc(), irregular, given, site);
  const ops::ToMemory operation{ops::Memory::in_boxes(boxes, mesh.shape().processes())};
  const TensorCore view{x.mesh(), x.desc(), std::make_shared<Storage>(x.mesh(), data, nullptr)};
  run({operation, {&x}, site, {.into = &view}});
  view.storage()->use().wait();  // the application reads it
}

/// The conditions on an application's memory for a box: contiguous, row-major, accessible.
template <class T, class View> struct BoxMemory {
  static consteval bool said() {
    static_assert(Kokkos::is_view_v<View>,
                  "[tessera] an irregular box is something else than a Kokkos::View; give a View "
                  "of its elements");
    static_assert(std::is_same_v<typename View::value_type, T>,
                  "[tessera] the View holds another element type than the tensor (or const "
                  "elements); use a View of the tensor's own type");
    static_assert(
        std::is_same_v<typename View::array_layout, Kokkos::LayoutRight> || View::rank() <= 1,
        "[tessera] boxes are LayoutRight; deep_copy the View into one of LayoutRight first");
    static_assert(Kokkos::SpaceAccessibility<KernelSpace, typename View::memory_space>::accessible,
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

/// Returns a tensor of the given extents from one box of each process: `view` is this process's,
/// contiguous and row-major. The boxes are equal or disjoint and cover the tensor. When they are
/// the tensor's own blocks on every process, the memory is adopted (and the View kept alive); else,
/// or where the call has a destination, it is read before this returns. Communication: one exchange
/// of the elements with another owner, and an all-gather of a few integers, in no ledger.
/// Collective over the mesh. Throws ShapeError, the same on every process; it names the processes
/// whose boxes overlap, the hole, or the processes whose memory does not fit. It needs no contract,
/// and keeps the one it is given, as from_root.
template <TypedTensor Tensor, class Bound = NoContract, class View>
Tensor from_irregular(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
                      const Irregular& boxes, const View& view, Where where = Where::here()) {
  static_assert(detail::demand_made<Tensor>());
  using T = typename Tensor::value_type;
  const auto owner = std::make_shared<View>(view);
  return Tensor(detail::from_irregular(
      mesh.core(), {dtype_of<T>, extents, detail::made_sharding<Tensor>()}, boxes, owner->data(),
      detail::BoxMemory<T, View>::size(view), owner,
      {"from_irregular", where, detail::free_bound<detail::Into<Tensor>, Bound>()}));
}
template <class View>
DynamicTensor from_irregular(const DynamicMesh& mesh, const Extents& extents,
                             const Sharding& sharding, const Irregular& boxes, const View& view,
                             const CallOptions& call = Where::here()) {
  using T = typename View::value_type;
  detail::use_element<T>();
  const auto owner = std::make_shared<View>(view);
  return DynamicTensor(detail::from_irregular(mesh.core(), {dtype_of<T>, extents, sharding}, boxes,
                                              owner->data(), detail::BoxMemory<T, View>::size(view),
                                              owner, call.free_site("from_irregular")));
}

/// Fills `view`, an application's memory, with the box of x that this process declares; boxes lie
/// within the tensor and may overlap or leave holes. Communication: one exchange of the elements
/// that another process has (unfinished values are combined first), and an all-gather of a few
/// integers, in no ledger. Collective over the mesh. Throws ShapeError, the same on every process.
template <class Bound = NoContract, TypedTensor A, class View>
void to_irregular(const A& x, const Irregular& boxes, const View& view,
                  Where where = Where::here()) {
  detail::to_irregular(x.core(), boxes, view.data(),
                       detail::BoxMemory<typename A::value_type, View>::size(view),
                       {"to_irregular", where, detail::free_bound<detail::OutOf<A>, Bound>()});
}
template <class View>
void to_irregular(const DynamicTensor& x, const Irregular& boxes, const View& view,
                  const CallOptions& call = Where::here()) {
  const detail::CallSite site = call.free_fresh_site("to_irregular");
  detail::require_type<typename View::value_type>(x, site);
  detail::to_irregular(x.core(), boxes, view.data(),
                       detail::BoxMemory<typename View::value_type, View>::size(view), site);
}

}  // namespace tessera
