// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The whole tensor on the host of every process, and single values.
///
///     HostTensor<float> all = to_host(x);      // all.values, row-major, of all.extents
///     float loss = value(mean(errors));       // of a scalar tensor
///
/// Laws: to_host(x) is the same on every process, whatever the sharding of x.
#include <vector>

#include <tessera/op/reshard.hpp>
#include <tessera/tensor/host_copy.hpp>

namespace tessera {

/// A whole tensor in host memory, row-major.
template <class T> struct HostTensor {
  Extents extents;
  std::vector<HostElement<T>> values;

  template <std::convertible_to<Index>... I> T operator()(I... index) const {
    Index at = 0;
    int d = 0;
    ((at = at * extents[d++] + static_cast<Index>(index)), ...);
    return static_cast<T>(values[static_cast<std::size_t>(at)]);
  }
  bool operator==(const HostTensor&) const = default;
};

namespace detail {
inline void require_data(const TensorCore& x, CallSite site) {
  if (x.mesh()->absent())
    throw UsageError(std::string(site.label) + ": this process takes no part in the mesh " +
                         x.mesh()->to_string() +
                         ", a part of another, and so has nothing of the tensor; call it where "
                         "the mesh's takes_part() is true",
                     site.where);
  if (x.dry())
    throw UsageError(std::string(site.label) +
                         ": the tensor is dry, it has a shape and no data; run on a mesh of "
                         "processes to have values",
                     site.where);
}
/// Throws UsageError unless x has elements T.
template <class T> void require_type(const DynamicTensor& x, CallSite site) {
  if (x.type() != dtype_of<T>)
    throw UsageError(std::string(site.label) + ": the tensor is of " +
                         std::string(name_of(x.type())) + " and is read as " +
                         std::string(name_of(dtype_of<T>)) + "; name its own element type",
                     site.where);
}
template <class T> HostTensor<T> to_host(const TensorCore& x, CallSite site) {
  require_data(x, site);
  const Sharding everywhere = Sharding::replicated(x.rank());
  const bool there = x.sharding() == everywhere && x.halo() == nullptr;
  const TensorCore all = there ? x : reshard(x, everywhere, site);
  HostTensor<T> host{x.extents(), {}};
  host.values.resize(static_cast<std::size_t>(volume(x.extents())));
  copy_to_host(host.values.data(), all.read(), static_cast<Index>(host.values.size() * sizeof(T)));
  return host;
}
}  // namespace detail

/// Returns the whole tensor, on every process. Communication: all-gather over the axes that split x
/// (all-reduce over unfinished ones), on a Strict mesh too. Collective over the mesh. Throws
/// UsageError for a dry tensor.
template <TypedTensor A>
HostTensor<typename A::value_type> to_host(const A& x, Where where = Where::here()) {
  return detail::to_host<typename A::value_type>(x.core(), {"to_host", where, Contract{}});
}
template <Element T> HostTensor<T> to_host(const DynamicTensor& x, Where where = Where::here()) {
  detail::require_type<T>(x, {"to_host", where});
  return detail::to_host<T>(x.core(), {"to_host", where, Contract{}});
}

/// Returns the value of a scalar tensor. Communication: none when it is finished; else an
/// all-reduce, collective over the mesh.
template <TypedTensor A> typename A::value_type value(const A& x, Where where = Where::here()) {
  static_assert(A::rank == 0,
                "[tessera] value takes a scalar tensor; reduce it first: value(sum(x))");
  return static_cast<typename A::value_type>(to_host(x, where).values[0]);
}
/// This overload takes a dynamic tensor of elements T. Throws UsageError when it has another
/// element type, ShapeError when it has dimensions.
template <Element T> T value(const DynamicTensor& x, Where where = Where::here()) {
  if (x.defined() && !x.extents().empty())
    throw ShapeError("value: the tensor is " + to_string(x.extents()) +
                         "; value takes a scalar tensor; reduce it first, or read its one element "
                         "with item",
                     where);
  return static_cast<T>(to_host<T>(x, where).values[0]);
}

}  // namespace tessera
