// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A process's block as a Kokkos View or mdspan with the tensor's dimensions, for the user's own
/// kernels.
///
///     const auto v = local_view(x);                  // v(i, j) is x at x.box() + (i, j)
///     const auto w = local_view<float, 2>(dynamic);
///     const auto m = block_mdspan(x);                // a Kokkos::mdspan of the same memory
///
/// Laws: the View and the mdspan are the block's memory, row-major, in the memory of Kokkos'
/// default execution space; they keep nothing alive. In a function that is differentiated, a kernel
/// that reads one tensor and writes another is an error where the gradient would need it: give it
/// one with custom_gradient (grad/value_and_grad.hpp has the rule).
#include <array>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include <Kokkos_Core.hpp>

#include <tessera/tensor/sharded_tensor.hpp>

namespace tessera {
namespace detail {
template <class T, int Rank> struct Pointers {
  using type = typename Pointers<T, Rank - 1>::type*;
};
template <class T> struct Pointers<T, 0> { using type = T; };
}  // namespace detail

/// A View of a block of Rank dimensions that belongs to a tensor.
template <class T, int Rank>
using LocalView = Kokkos::View<typename detail::Pointers<T, Rank>::type, Kokkos::LayoutRight,
                               KernelMemory, Kokkos::MemoryUnmanaged>;

namespace detail {
template <class T, int Rank, std::size_t... D>
LocalView<T, Rank> view_of(T* data, const Extents& extents, std::index_sequence<D...>) {
  return LocalView<T, Rank>(data, static_cast<std::size_t>(extents[static_cast<int>(D)])...);
}
/// Returns `data`, row-major of these extents, as a View.
template <class T, int Rank> LocalView<T, Rank> view_of(T* data, const Extents& extents) {
  return view_of<T, Rank>(data, extents,
                          std::make_index_sequence<static_cast<std::size_t>(Rank)>{});
}
inline void require_rank(int rank, int asked, Where where) {
  if (rank != asked)
    throw UsageError("a tensor of " + std::to_string(rank) + " dimensions is viewed as one of " +
                         std::to_string(asked) + "; ask for its own number of dimensions",
                     where);
}
}  // namespace detail

/// Returns this process's block. Communication: none.
template <TypedTensor A>
LocalView<typename A::value_type, A::rank> local_view(A& x, Where where = Where::here()) {
  return detail::view_of<typename A::value_type, A::rank>(x.data(where), x.box().extents());
}
template <TypedTensor A>
LocalView<const typename A::value_type, A::rank> local_view(const A& x,
                                                            Where where = Where::here()) {
  return detail::view_of<const typename A::value_type, A::rank>(x.data(where), x.box().extents());
}
/// This overload views elements T, or const T where they are only read. Throws UsageError when the
/// tensor has another element type or number of dimensions.
template <class T, int Rank>
  requires Element<std::remove_const_t<T>> LocalView<T, Rank> local_view(
      const DynamicTensor& x, Where where = Where::here()) {
    detail::require_rank(x.core().rank(), Rank, where);
    return detail::view_of<T, Rank>(x.data<T>(where), x.box().extents());
  }

/// Returns this process's block as one row.
template <TypedTensor Tensor> auto block_view(Tensor& t, Where where = Where::here()) {
  using T = typename Tensor::value_type;
  return Kokkos::View<T*, Kokkos::LayoutRight, KernelMemory, Kokkos::MemoryUnmanaged>(
      t.data(where), static_cast<std::size_t>(t.local_size()));
}

/// A block of Rank dimensions that belongs to a tensor, as a standard mdspan.
template <class T, int Rank>
using BlockMdspan = Kokkos::mdspan<T, Kokkos::dextents<Index, static_cast<std::size_t>(Rank)>,
                                   Kokkos::layout_right>;

namespace detail {
template <class T, int Rank> BlockMdspan<T, Rank> mdspan_of(T* data, const Extents& extents) {
  std::array<Index, static_cast<std::size_t>(Rank)> sides{};
  for (int d = 0; d < Rank; ++d) sides[static_cast<std::size_t>(d)] = extents[d];
  return BlockMdspan<T, Rank>(data, Kokkos::dextents<Index, static_cast<std::size_t>(Rank)>(sides));
}
}  // namespace detail

/// Returns this process's block; its elements are const where x is const. Communication: none.
template <TypedTensor A>
BlockMdspan<typename A::value_type, A::rank> block_mdspan(A& x, Where where = Where::here()) {
  return detail::mdspan_of<typename A::value_type, A::rank>(x.data(where), x.box().extents());
}
template <TypedTensor A>
BlockMdspan<const typename A::value_type, A::rank> block_mdspan(const A& x,
                                                                Where where = Where::here()) {
  return detail::mdspan_of<const typename A::value_type, A::rank>(x.data(where), x.box().extents());
}
/// This overload views elements T, or const T where they are only read. Throws UsageError when the
/// tensor has another element type or number of dimensions.
template <class T, int Rank>
  requires Element<std::remove_const_t<T>> BlockMdspan<T, Rank> block_mdspan(
      const DynamicTensor& x, Where where = Where::here()) {
    detail::require_rank(x.core().rank(), Rank, where);
    return detail::mdspan_of<T, Rank>(x.data<T>(where), x.box().extents());
  }

}  // namespace tessera
