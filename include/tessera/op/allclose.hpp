// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Values on the host of every process: whether two tensors are close, and the only element of a
/// tensor.
///
///     if (!allclose(y, wanted, 1e-4)) throw Error("y is far off");
///     float loss = item(mean(errors));
///
/// Laws: the same on every process; allclose(a, b) is |a - b| <= atol + rtol |b| for all elements,
/// as in NumPy: equal infinities are close, NaNs only with equal_nan; without elements it is true.
#include <string>

#include <tessera/op/elements/dynamic_map.hpp>
#include <tessera/op/reduce.hpp>
#include <tessera/op/to_host.hpp>

namespace tessera {
namespace detail {

struct IsClose {
  static constexpr std::string_view name = "allclose";
  double rtol, atol;
  bool equal_nan;

  template <class T> KOKKOS_FUNCTION static auto wide(T x) {
    if constexpr (ComplexElement<T>)
      return complex<double>(x);
    else
      return static_cast<double>(x);
  }
  template <class A, class B> KOKKOS_FUNCTION bool operator()(A a, B b) const {
    const auto x = wide(a);
    const auto y = wide(b);
    if constexpr (ComplexElement<A> || ComplexElement<B>) {
      const complex<double> p(x), q(y);
      if (p == q) return true;
      const bool nans = equal_nan && !(p == p) && !(q == q);
      const bool finite = q.re - q.re == 0 && q.im - q.im == 0;
      return nans || (finite && Kokkos::hypot(p.re - q.re, p.im - q.im) <=
                                    atol + rtol * Kokkos::hypot(q.re, q.im));
    } else {
      if (x == y) return true;
      if (equal_nan && x != x && y != y) return true;
      return y - y == 0 && Kokkos::fabs(x - y) <= atol + rtol * Kokkos::fabs(y);
    }
  }
};

template <class A, class B>
bool allclose(const TensorCore& a, const TensorCore& b, const IsClose& f, Where where) {
  use_tensor_of<bool>();
  const CallSite site{"allclose", where, Contract{}};
  mesh_of(a, site);
  mesh_of(b, site);
  require_data(a, site);
  const OperandList operands{&a, &b};
  ops::Map operation{
      broadcast_terms({a.rank(), b.rank()}), DType::boolean, Linearity::pointwise, {}, false};
  operation.out = operation.deduced(descs_of(operands)).finished();
  const TensorCore flags =
      run({operation, operands, site, {.kernel = MapRunner<bool, IsClose, A, B>::kernel(f)}});
  const TensorCore whole = reduce(parse(total_equation(flags.rank()).view()), Reduction::all, false,
                                  flags, Sharding::replicated(0), site, {}, DType::boolean);
  return to_host<bool>(whole, site).values[0] != 0;
}
inline void require_one_element(const TensorCore& x, CallSite site) {
  mesh_of(x, site);
  if (volume(x.extents()) != 1)
    throw ShapeError("item: the tensor is " + to_string(x.extents()) + " and has " +
                         std::to_string(volume(x.extents())) +
                         " elements; item reads a tensor of one element; reduce or slice it first, "
                         "or bring it whole to the host with to_host",
                     site.where);
}
}  // namespace detail

/// Returns whether |a - b| <= atol + rtol |b| for all elements, with NumPy's broadcasting, in
/// double. Element types may differ. Communication: operands that are split differently are
/// resharded, then an all-reduce of one truth, on a Strict mesh too. Collective over the mesh.
/// Throws ShapeError when extents disagree, UsageError for a dry tensor.
template <TypedTensor A, TypedTensor B>
bool allclose(const A& a, const B& b, double rtol = 1e-5, double atol = 1e-8,
              bool equal_nan = false, Where where = Where::here()) {
  static_assert(std::is_same_v<typename A::mesh_type, typename B::mesh_type>,
                "[tessera] the operands live on different Mesh types; reshard one of them first");
  return detail::allclose<typename A::value_type, typename B::value_type>(
      a.core(), b.core(), {rtol, atol, equal_nan}, where);
}
/// This overload takes dynamic tensors of elements T. Throws UsageError when one has another
/// element type.
template <Element T>
bool allclose(const DynamicTensor& a, const DynamicTensor& b, double rtol = 1e-5,
              double atol = 1e-8, bool equal_nan = false, Where where = Where::here()) {
  detail::mesh_of(a.core(), {"allclose", where});
  detail::mesh_of(b.core(), {"allclose", where});
  detail::require_elements_of<T>({&a.core(), &b.core()}, {"allclose", where});
  return detail::allclose<T, T>(a.core(), b.core(), {rtol, atol, equal_nan}, where);
}

/// Returns the only element of a tensor, of any number of dimensions, on every process.
/// Communication: as to_host. Collective over the mesh. Throws ShapeError unless there is exactly
/// one element.
template <TypedTensor A> typename A::value_type item(const A& x, Where where = Where::here()) {
  const detail::CallSite site{"item", where, Contract{}};
  detail::require_one_element(x.core(), site);
  return static_cast<typename A::value_type>(
      detail::to_host<typename A::value_type>(x.core(), site).values[0]);
}
template <Element T> T item(const DynamicTensor& x, Where where = Where::here()) {
  const detail::CallSite site{"item", where, Contract{}};
  detail::require_one_element(x.core(), site);
  detail::require_type<T>(x, site);
  return static_cast<T>(detail::to_host<T>(x.core(), site).values[0]);
}

}  // namespace tessera
