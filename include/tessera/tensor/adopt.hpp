// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Tensors of memory that the application has.
///
///     auto x = adopt<Tensor<data, _>>(mesh, {1000, 3}, view);     // a Kokkos::View of the block
///
/// Laws: the tensor's block is the view's memory, in both directions.
#include <memory>
#include <string>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <tessera/tensor/process_mesh.hpp>
#include <tessera/tensor/sharded_tensor.hpp>

namespace tessera {

/// Returns a tensor whose block on this process is the memory of `view`, not a copy; all processes
/// make the same call. The view is contiguous, LayoutRight, in the memory of the default execution
/// space, and has the block's extents; the tensor keeps it alive. Communication: none. Throws
/// ShapeError when the extents are not those of this process's block.
template <TypedTensor Tensor, class View>
Tensor adopt(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
             const View& view, Where where = Where::here()) {
  static_assert(Kokkos::is_view_v<View>,
                "[tessera] adopt is given something else than a Kokkos::View; give a View of the "
                "process's block");
  static_assert(std::is_same_v<typename View::non_const_value_type, typename Tensor::value_type> &&
                    !std::is_const_v<typename View::value_type>,
                "[tessera] the View holds another element type than the tensor (or const "
                "elements); use a View of the tensor's own type");
  static_assert(
      static_cast<int>(View::rank()) == Tensor::rank,
      "[tessera] the View has another number of dimensions than the tensor; give one of as many");
  static_assert(
      std::is_same_v<typename View::array_layout, Kokkos::LayoutRight> || View::rank() <= 1,
      "[tessera] blocks are LayoutRight; deep_copy the View into one of LayoutRight first");
  static_assert(Kokkos::SpaceAccessibility<KernelSpace, typename View::memory_space>::accessible,
                "[tessera] kernels cannot reach the View's memory; make it in the default "
                "execution space's memory");
  static_assert(!Tensor::unfinished,
                "[tessera] the spec of an adopted tensor is Unreduced; a tensor is adopted "
                "finished; drop Unreduced from its spec");
  const TensorDesc desc{dtype_of<typename Tensor::value_type>, extents,
                        detail::made_sharding<Tensor>()};
  auto owner = std::make_shared<View>(view);
  const TensorCore core = TensorCore::adopt(mesh.core(), desc, owner->data(), owner, where);
  const Extents block = core.box().extents();
  Extents given;
  for (int d = 0; d < Tensor::rank; ++d)
    given.push_back(static_cast<Index>(view.extent(static_cast<std::size_t>(d))));
  if (!(given == block) || !view.span_is_contiguous())
    throw ShapeError("adopt: process " + std::to_string(mesh.process()) + " owns a block of " +
                         to_string(block) + " of the tensor " + to_string(desc.extents) + " " +
                         to_string(desc.sharding, mesh.core()->names()) +
                         " and is given a View of " + to_string(given) +
                         (view.span_is_contiguous() ? "" : ", which is not contiguous") +
                         "; give a contiguous View of exactly the block",
                     where);
  detail::tell_view(core, true, where);
  return Tensor(core);
}

}  // namespace tessera
