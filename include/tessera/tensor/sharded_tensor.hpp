// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The typed tensor: its type holds element type, mesh and spec; `DynamicTensor` is the same with a
/// sharding that is known only at run time.
///
///     template <class... Dims> using Tensor = ShardedTensor<float, Grid, P<Dims...>>;
///     Tensor<data, _, model> x = zeros<Tensor<data, _, model>>(mesh, 8, 512, 5120);
///
///     ShardedTensor<float, Grid, P<data, Open>> h = x;     // how dimension 1 is split is chosen
///
/// A type whose spec has Open entries promises the others; x.sharding() is the truth. Operators on
/// such tensors are for functions whose shardings are chosen (program/choice.hpp).
///
/// Laws: lower<M, S>() == x.sharding(), but for what is open; copies share the block.
#include <array>
#include <type_traits>
#include <utility>

#include <tessera/kernel/use_element.hpp>
#include <tessera/mesh/manual.hpp>
#include <tessera/spec/partition_spec.hpp>
#include <tessera/spec/typed_tensor.hpp>
#include <tessera/tensor/dynamic_mesh.hpp>
#include <tessera/tensor/tensor_core.hpp>
#include <tessera/tensor/view_watch.hpp>

namespace tessera {
namespace detail {
/// Throws unless the tensor's block lies by itself: a block within a halo belongs to a halo tensor.
inline void require_by_itself(const TensorCore& core, Where where) {
  if (core.halo() != nullptr)
    throw UsageError(
        "the block of a halo tensor is asked for as contiguous elements; it lies within its halo, "
        "and is not contiguous; use view() or interior() of the halo tensor, or a copy of it by "
        "tensor()",
        where);
}

/// Returns the tensor of an open type that promises `promised`. Throws ShardingError where it lies
/// otherwise.
inline TensorCore kept_promise(const TensorCore& core, const Sharding& promised, Where where = {}) {
  if (!core.defined()) return core;
  if (!keeps(core.sharding(), promised)) {
    const AxisNames names = core.mesh()->names();
    throw ShardingError("a tensor that lies " + to_string(core.sharding(), names) +
                            " is given the type of " + to_string(promised, names) +
                            "; a type may leave dimensions open, and what it states is true; "
                            "reshard the tensor first, or leave those dimensions open",
                        where);
  }
  return core.as_open();
}

/// Returns the tensor as one that may differ over `axes` too, in manual mode.
inline TensorCore as_varying(const TensorCore& core, AxisSet axes) {
  if (core.storage() == nullptr || (axes - core.storage()->varies()).empty()) return core;
  if (core.storage()->promised()) {  // what makes it is of this type, and nothing else has it
    core.storage()->set_varies(core.storage()->varies() | axes);
    return core;
  }
  const auto seen = std::make_shared<Storage>(core.storage());
  seen->set_history(core.storage()->history());
  seen->set_varies(core.storage()->varies() | axes);
  return {core.mesh(), core.desc(), seen};
}

/// Returns the tensor of a type that promises, in manual mode, that it differs over no other axes.
/// Throws UsageError where it may.
inline TensorCore as_promised(const TensorCore& core, AxisSet axes) {
  if (core.storage() != nullptr && !(core.storage()->varies() - axes).empty())
    throw UsageError(
        "within a manual function, a tensor that may differ over an axis is given a type that says "
        "it is equal over it; all_reduce_over<axis>(x) or all_gather_over<axis>(x) makes it equal, "
        "and equal_by_promise<axis>(x) claims that it is");
  return as_varying(core, axes);
}

/// Whether a tensor of spec From is one of spec To, which has open entries, as it lies.
template <class M, class From, class To> constexpr bool opens() {
  return keeps(lower<M, From>(), lower<M, To>());
}

/// Says that a tensor has no elements by index. A base class, so that no tensor's type pays for it.
struct ElementsByIndex {
  template <class... Index> double operator()(const Index&...) const {
    static_assert(never<Index...>,
                  "[tessera] the elements of a tensor live on several processes, so that x(i, j) "
                  "names none here; to_host(x)(i, j) brings the whole to the host, value(x) reads "
                  "a scalar, slice(x, ...) takes a part, local_view(x) is this process's block");
    return 0;
  }
  template <class Index> double operator[](const Index& index) const { return (*this)(index); }
};
}  // namespace detail

/// T is an Element: half, bfloat16, float, double, complex, an integer or bool. Another type does
/// not compile, and the message lists them.
template <class T, class M, class S> class ShardedTensor : public detail::ElementsByIndex {
  static_assert(detail::ElementsOf<T>::known);
  static_assert(detail::demand_spec<M, S>());
  static consteval bool said() {
    if constexpr (detail::check_spec<M, S>().ok() && !detail::unfounded_spec<S>) {
      static_assert(
          std::is_same_v<detail::spec_of<M, detail::Lower<M, S>>, S>,
          "[tessera] this PartitionSpec is not in its canonical form; write P<...> in place "
          "of PartitionSpec<...>, so that equal shardings are one type");
      if constexpr (!tessera::defined(detail::lower<M, S>().reduction,
                                      dtype_of<typename detail::ElementsOf<T>::type>))
        return detail::InvalidOperator<Rule::reduction_defined, S, T>::said();
    }
    return true;
  }
  static_assert(said());

 public:
  using value_type = typename detail::ElementsOf<T>::type;  // T
  using mesh_type = M;
  using spec = S;
  static constexpr int rank = detail::lower<M, S>().rank();
  static constexpr bool unfinished = !detail::lower<M, S>().partial.empty();
  static constexpr bool open = detail::has_open(detail::lower<M, S>());

  ShardedTensor() = default;
  /// Wraps an erased tensor that has this element type and sharding. Throws ShardingError for one
  /// that does not lie as an open type promises.
  explicit ShardedTensor(TensorCore core) : core_(std::move(core)) {
    detail::require_by_itself(core_, {});
    detail::use_tensor_of<value_type>();
    if constexpr (open) core_ = detail::kept_promise(core_, detail::lower<M, S>());
    if constexpr (detail::is_manual<M>)
      core_ = detail::as_promised(core_, detail::varying_axes<M>());
  }
  /// A tensor whose type agrees with this one's closed entries is one of this open type as it lies.
  template <class ItsSpec>
    requires(open && !std::is_same_v<ItsSpec, S> && detail::opens<M, ItsSpec, S>())
  ShardedTensor(const ShardedTensor<T, M, ItsSpec>& x) : core_(x.core().as_open()) {}
  /// A tensor does not turn into one of another spec, mesh or element type by itself: that would be
  /// hidden communication, or a hidden loss. Deleted, so that the compiler reports it at the
  /// return; the line of the declaration is part of its message.
  template <class Other, class ItsMesh, class ItsSpec>
    requires(Element<T> && !detail::unfounded_spec<ItsSpec> &&
             (!open || !std::is_same_v<Other, T> || !std::is_same_v<ItsMesh, M> ||
              !detail::opens<M, ItsSpec, S>()))
  // clang-format off
  ShardedTensor(const ShardedTensor<Other, ItsMesh, ItsSpec>&) = delete;  // [tessera] the tensor has another spec, mesh or element type than is declared; nothing is resharded or converted unseen; reshard<P<...>>(x) or cast<T>(x), or declare its own P<...>
  // clang-format on
  /// For a T that is no element type, or a result of a call with a mistake: the error has been
  /// reported.
  template <class Other, class ItsMesh, class ItsSpec>
    requires(!Element<T> || detail::unfounded_spec<ItsSpec>)
  ShardedTensor(const ShardedTensor<Other, ItsMesh, ItsSpec>&) {}

  const TensorCore& core() const { return core_; }
  bool defined() const { return core_.defined(); }
  const Extents& extents() const { return core_.extents(); }
  Index extent(int d) const { return core_.extents()[d]; }
  Index size() const { return volume(core_.extents()); }
  static constexpr const Sharding& sharding() requires(!open) { return detail::lower<M, S>(); }
  const Sharding& sharding() const requires(open) { return core_.sharding(); }
  const TensorDesc& desc() const { return core_.desc(); }
  Box box() const { return core_.box(); }
  Index local_size() const { return core_.local_size(); }
  /// This process's block: contiguous, row-major, with extents box().extents(), in the memory of
  /// Kokkos' default execution space; for kernels on this thread's instance (ProcessMesh::on): work
  /// of other instances that is in their way is waited for. What a kernel does there no gradient
  /// sees: it is an error where it would matter (grad/value_and_grad.hpp).
  value_type* data(Where where = Where::here()) {
    detail::tell_view(core_, true, where);
    return core_.data<value_type>();
  }
  const value_type* data(Where where = Where::here()) const {
    detail::tell_view(core_, false, where);
    return static_cast<const value_type*>(core_.read());
  }

 private:
  TensorCore core_;
};

namespace detail {
/// The return type of a function that has reported a broken rule of its own, for operands of type
/// X.
template <TypedTensor X>
using Unknown =
    ShardedTensor<typename X::value_type, typename X::mesh_type, Unfounded<typename X::spec>>;
}  // namespace detail

/// A tensor whose sharding is known only at run time.
class DynamicTensor : public detail::ElementsByIndex {
 public:
  DynamicTensor() = default;
  explicit DynamicTensor(TensorCore core) : core_(std::move(core)) {}
  template <class T, class M, class S>
  DynamicTensor(const ShardedTensor<T, M, S>& typed)
      : core_(typed.core().as_closed()) {}  // NOLINT: a typed tensor is a dynamic one

  const TensorCore& core() const { return core_; }
  bool defined() const { return core_.defined(); }
  DynamicMesh mesh() const { return core_.mesh(); }
  const Extents& extents() const { return core_.extents(); }
  const Sharding& sharding() const { return core_.sharding(); }
  const TensorDesc& desc() const { return core_.desc(); }
  DType type() const { return core_.type(); }
  Box box() const { return core_.box(); }
  Index local_size() const { return core_.local_size(); }
  /// Returns the memory of the block as elements T, or const T where they are only read. Throws
  /// UsageError when the tensor holds others.
  template <class T> T* data(Where where = Where::here()) const {
    constexpr DType type = dtype_of<std::remove_const_t<T>>;
    if (type != core_.type())
      throw UsageError("a tensor of " + std::string(name_of(core_.type())) + " is read as " +
                       std::string(name_of(type)) + "; ask for data<" +
                       std::string(name_of(core_.type())) + ">()");
    detail::require_by_itself(core_, {});
    detail::tell_view(core_, !std::is_const_v<T>, where);
    if constexpr (std::is_const_v<T>)
      return static_cast<T*>(core_.read());
    else
      return core_.data<T>();
  }

 private:
  TensorCore core_;
};

/// Returns the typed view of a dynamic tensor; throws ShardingError when it has another type or
/// sharding.
template <class Tensor> Tensor as(const DynamicTensor& tensor, Where where = Where::here()) {
  const TensorDesc& desc = tensor.desc();
  const AxisNames names = tensor.core().mesh()->names();
  const Sharding& promised = detail::TensorFacts<Tensor>::sharding();
  if (desc.type != dtype_of<typename Tensor::value_type> || !detail::keeps(desc.sharding, promised))
    throw ShardingError("a tensor of " + std::string(name_of(desc.type)) + " sharded " +
                            to_string(desc.sharding, names) + " is read as " +
                            std::string(name_of(dtype_of<typename Tensor::value_type>)) +
                            " sharded " + to_string(promised, names) +
                            "; reshard it first, or name its own type",
                        where);
  detail::require_by_itself(tensor.core(), where);
  return Tensor(tensor.core());
}

}  // namespace tessera
