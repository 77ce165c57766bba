// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Tensors of the parts of a mesh seen as one tensor of the mesh, and the other way round: the same
/// blocks, and nothing moves. Between the two, operators of the whole mesh are the collectives of
/// manual mode, with their plans, prices and gradients.
///
///     const TensorCore all = seen_outer(x, whole, {.lead = {1}}, site);       // (2, ...), P<model, ...>
///     const TensorCore y = seen_inner(reshard(all, to, site), x.mesh(), {}, {}, site);
///
/// Laws: the adjoint of each is the other. A gradient that differs where its value is equal is a
/// part of a sum over these axes; seen from outside it is unfinished over them.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/plan/op/move/reshard.hpp>
#include <tessera/run/program_parts.hpp>
#include <tessera/run/request.hpp>
#include <tessera/run/require_operands.hpp>
#include <tessera/run/taker.hpp>
#include <tessera/spec/manual_view.hpp>
#include <tessera/tensor/part_core.hpp>

namespace tessera::detail {

/// Returns the axes of a mesh by their numbers in the one on which the manual functions around it
/// are called (manual_whole_of), its whole mesh in what follows.
inline AxisList axes_in_whole(const MeshCore& mesh) {
  const PartHome* const home = mesh.attached<PartHome>();
  return home != nullptr && home->own ? home->axes : axes_in(mesh, mesh);
}
/// Returns the axes of `outer` that the axes of `inner`, a part of it, are.
inline AxisList free_axes_in(const MeshCore& inner, const MeshCore& outer) {
  const AxisList mine = axes_in_whole(inner), theirs = axes_in_whole(outer);
  AxisList free;
  for (int i = 0; i < mine.size(); ++i)
    for (int k = 0; k < theirs.size(); ++k)
      if (theirs[k] == mine[i]) free.push_back(k);
  return free;
}
/// Returns axes of a mesh by their numbers in the whole mesh.
inline AxisSet in_whole(AxisSet axes, const MeshCore& mesh) {
  const AxisList numbers = axes_in_whole(mesh);
  AxisSet whole;
  for (int a = 0; a < numbers.size(); ++a)
    if (axes.contains(a)) whole.insert(numbers[a]);
  return whole;
}
inline AxisSet from_whole(AxisSet axes, const MeshCore& mesh) {
  const AxisList numbers = axes_in_whole(mesh);
  AxisSet own;
  for (int a = 0; a < numbers.size(); ++a)
    if (axes.contains(numbers[a])) own.insert(a);
  return own;
}

/// Returns the part of `outer` that this process is in, without the axes `named`. On a process that
/// is not in `outer` it is dry, as that is.
inline std::shared_ptr<MeshCore> own_part(const std::shared_ptr<MeshCore>& outer, AxisSet named,
                                          Where where) {
  // A part of the whole mesh, however it came about, so that there is one for these axes.
  const std::shared_ptr<MeshCore> whole = manual_whole_of(outer, where);
  const AxisList still = axes_in_whole(*outer);
  MeshPart part{whole->shape(), whole->coordinates()};
  for (int i = 0; i < still.size(); ++i)
    if (!named.contains(i)) part.at[still[i]] = -1;
  return part_of(whole, part, where, true);
}

/// Returns the same memory as a tensor of another mesh.
inline TensorCore seen_on(const TensorCore& x, const std::shared_ptr<MeshCore>& mesh,
                          const TensorDesc& desc, AxisSet varies, CallSite site) {
  const auto storage = std::make_shared<Storage>(x.storage());
  if (!x.storage()->promised()) storage->set_history(x.storage()->history());
  storage->set_varies(varies);
  const TensorCore seen(mesh, desc, storage);
  if (Taker* const lister = lister_of_thread()) lister->see(x, seen, site);
  return seen;
}
/// Returns a tensor for a move to write, which has memory now or, where calls are listed, when the
/// move runs.
inline TensorCore landing(const std::shared_ptr<MeshCore>& mesh, const TensorDesc& desc,
                          CallSite site) {
  if (lister_of_thread() == nullptr) return TensorCore::make(mesh, desc, site.where);
  TensorCore::check_desc(*mesh, desc, site.where);
  return {mesh, desc, make_promise(mesh, site.where)};
}
/// Returns x as one that may differ over `axes` too.
inline TensorCore seen_varying(const TensorCore& x, AxisSet axes, CallSite site) {
  if ((axes - x.storage()->varies()).empty()) return x;
  return seen_on(x, x.mesh(), x.desc(), x.storage()->varies() | axes, site);
}

/// Returns x, a tensor of a part of `outer` on each of its processes, as one of `outer`.
/// Communication: none.
inline TensorCore seen_outer(const TensorCore& x, const std::shared_ptr<MeshCore>& outer,
                             const ManualView& view, CallSite site);

/// Returns x, a tensor of a mesh, as one of its part `inner`, which may differ over the axes
/// `varies` of the whole mesh. Communication: none.
inline TensorCore seen_inner(const TensorCore& x, const std::shared_ptr<MeshCore>& inner,
                             const ManualView& view, AxisSet varies, CallSite site) {
  const AxisList free = free_axes_in(*inner, *x.mesh());
  const TensorDesc desc = inner_desc(x.desc(), free, view, x.mesh()->shape());
  // Where its gradient differs and it does not, that is a part of a sum.
  const auto back = [outer = x.mesh(), view, varies, label = std::string(site.label),
                     where = site.where](const std::vector<TensorCore>& g) {
    ManualView whole = view;
    whole.partial = from_whole(g[0].storage()->varies() - varies, *outer);
    return std::vector<TensorCore>{seen_outer(g[0], outer, whole, {label, where, Contract{}})};
  };
  return beside_tapes(
      x, back, site, [&] { return seen_on(x, inner, desc, varies, site); }, Stated::seen);
}

inline TensorCore seen_outer(const TensorCore& x, const std::shared_ptr<MeshCore>& outer,
                             const ManualView& view, CallSite site) {
  const AxisList free = free_axes_in(*x.mesh(), *outer);
  const TensorDesc desc = outer_desc(x.desc(), free, view, outer->shape());
  // Over its own axes a tensor of the outer mesh is one.
  const AxisSet still = x.storage()->varies() - in_whole(outer->shape().axes(), *outer);
  const auto back = [inner = x.mesh(), view, varies = x.storage()->varies(),
                     label = std::string(site.label),
                     where = site.where](const std::vector<TensorCore>& g) {
    return std::vector<TensorCore>{
        seen_inner(g[0], inner, view, varies, {label, where, Contract{}})};
  };
  return beside_tapes(
      x, back, site, [&] { return seen_on(x, outer, desc, still, site); }, Stated::seen);
}

/// Returns the axes of the whole mesh over which x differs and which the call does not concern, as
/// leading dimensions.
inline AxisList leading_axes(const TensorCore& x, AxisSet concerned) {
  AxisList lead;
  for (int a = 0; a < max_axes; ++a)
    if ((x.storage()->varies() - concerned).contains(a)) lead.push_back(a);
  return lead;
}

/// Returns the sum of x, a tensor of a part, over axes of the whole mesh. Communication: an
/// all-reduce over them. Collective over the whole mesh.
inline TensorCore summed_over(const TensorCore& x, AxisSet axes, CallSite site) {
  const std::shared_ptr<MeshCore> whole = manual_whole_of(x.mesh(), site.where);
  const AxisList lead = leading_axes(x, axes);
  const TensorCore parts = seen_outer(x, whole, {{}, lead, axes}, site);
  const Sharding to = parts.sharding().finished();
  const ops::Reshard move{to};
  const TensorCore sum = run({move, {&parts}, site});
  return seen_inner(sum, x.mesh(), {{}, lead, {}}, lead.set(), site);
}

}  // namespace tessera::detail
