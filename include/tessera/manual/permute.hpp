// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Values that go from process to process along a named axis, within a manual function
/// (manual/manual.hpp).
///
///     auto next = permute_over<model, Shift<1>>(keys);       // those of the process before
///     auto swapped = permute_over<model, Sends<0, 1, 1, 0>>(x);    // 0 to 1, 1 to 0
///
/// A permutation is a type, so that it is one on all processes: `static constexpr int to(int from,
/// int size)` says where the value of coordinate `from` goes; -1: nowhere. Who gets none has zeros.
///
/// Laws: no coordinate gets two values; the gradient goes the way back.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <tessera/kernel/fill.hpp>
#include <tessera/manual/detail/over_axes.hpp>
#include <tessera/op/create/create.hpp>
#include <tessera/plan/op/move/between_parts.hpp>

namespace tessera {

/// Each value goes `By` coordinates up, around the axis.
template <int By> struct Shift {
  static constexpr int to(int from, int size) { return ((from + By) % size + size) % size; }
};
/// Pairs of coordinates: from, to, from, to, ...
template <int... FromTo> struct Sends {
  static constexpr int count = sizeof...(FromTo);
  static constexpr std::array<int, static_cast<std::size_t>(count) + 1> list{FromTo..., 0};
  static constexpr int to(int from, int) {
    for (std::size_t i = 0; i + 1 < count; i += 2)
      if (list[i] == from) return list[i + 1];
    return -1;
  }
  /// Whether no coordinate stands twice on one side, nor is negative.
  static constexpr bool sound = [] {
    if (count % 2 != 0) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (list[i] < 0) return false;
      for (std::size_t k = i % 2; k < i; k += 2)
        if (list[k] == list[i]) return false;
    }
    return true;
  }();
};

namespace detail {
template <class Permutation> constexpr bool sound_permutation() {
  if constexpr (requires { Permutation::sound; }) return Permutation::sound;
  return true;
}

/// Returns for each coordinate the one whose value it gets; -1: none. Throws UsageError where it
/// would get two, or where a value goes to no coordinate.
template <class Permutation>
std::vector<int> sources_of(int size, std::string_view axis, Where where) {
  std::vector<int> from(static_cast<std::size_t>(size), -1);
  for (int c = 0; c < size; ++c) {
    const int to = Permutation::to(c, size);
    if (to < 0) continue;
    if (to >= size || from[static_cast<std::size_t>(to)] >= 0)
      throw UsageError("permute_over: coordinate " + std::to_string(c) + " sends to " +
                           std::to_string(to) + " along axis " + std::string(axis) + ", " +
                           (to >= size ? "which has " + std::to_string(size) + " processes"
                                       : "and so does coordinate " +
                                             std::to_string(from[static_cast<std::size_t>(to)])) +
                           "; each coordinate gets one value at most",
                       where);
    from[static_cast<std::size_t>(to)] = c;
  }
  return from;
}

template <class T> MapKernel zeros_kernel() {
  static const T zero{};
  return FillRunner<T>::kernel(zero);
}

/// Moves the blocks of x, a tensor of a part, along an axis of the mesh on which the function is
/// called, to each coordinate that of from[c]. The gradient goes the way back.
inline TensorCore permuted(const TensorCore& x, int axis, const std::vector<int>& from,
                           const MapKernel& zeros, CallSite site) {
  const std::shared_ptr<MeshCore> whole = manual_whole_of(x.mesh(), site.where);
  const auto back = [axis, from, zeros, label = std::string(site.label),
                     where = site.where](const std::vector<TensorCore>& g) {
    std::vector<int> home(from.size(), -1);
    for (std::size_t c = 0; c < from.size(); ++c)
      if (from[c] >= 0) home[static_cast<std::size_t>(from[c])] = static_cast<int>(c);
    return std::vector<TensorCore>{permuted(g[0], axis, home, zeros, {label, where, Contract{}})};
  };
  const auto move = [&] {
    const TensorDesc seen = outer_desc(x.desc(), axes_in_whole(*x.mesh()),
                                       {{}, leading_axes(x, {}), {}}, whole->shape());
    Box none;
    for (int d = 0; d < seen.rank(); ++d) none.side.push_back({0, 0});
    std::vector<Box> before, after;
    for (int p = 0; p < whole->shape().processes(); ++p) {
      Coordinates at = whole->shape().coordinates(p);
      before.push_back(block(seen.extents, seen.sharding, whole->shape(), at));
      at[axis] = from[static_cast<std::size_t>(at[axis])];
      after.push_back(at[axis] >= 0 ? block(seen.extents, seen.sharding, whole->shape(), at)
                                    : none);
    }
    const int own = whole->coordinates()[axis];
    const bool listed = lister_of_thread() != nullptr;  // where all processes list the same
    const bool all = std::count(from.begin(), from.end(), -1) == 0;
    const TensorCore result = listed && !all ? create(x.mesh(), x.desc(), zeros, site)
                                             : landing(x.mesh(), x.desc(), site);
    if (!listed && from[static_cast<std::size_t>(own)] < 0 && result.memory() != nullptr)
      fill_zeros(result.data(), TensorCore::local_bytes(*x.mesh(), x.desc()));
    result.storage()->set_varies(x.storage()->varies());
    const TensorDesc anywhere{x.type(), seen.extents, Sharding::replicated(seen.rank())};
    const TensorCore source = seen_on(x, whole, anywhere, {}, site),
                     target = seen_on(result, whole, anywhere, {}, site);
    const ops::BetweenParts operation{ops::Memory::in_boxes(before, whole->shape().processes()),
                                      ops::Memory::in_boxes(after, whole->shape().processes())};
    run({operation, {&source}, site, {.into = &target}});
    if (!listed) result.storage()->set_history(target.storage()->history());
    return result;
  };
  return beside_tapes(x, back, site, move);
}
}  // namespace detail

/// Returns, at each coordinate of the axis X, the value that x, (n, m, ...), which varies over X,
/// has where `Permutation` sends it from; zeros where it sends none. Communication: one exchange
/// over X: each block goes once. Collective over the mesh. Throws UsageError where two values would
/// go to one coordinate, or one to a coordinate that there is not.
template <class X, class Permutation, TypedTensor A>
auto permute_over(const A& x, const CallOptions& call = Where::here()) {
  using Checked = detail::OverAxes<A, detail::OverAxis::varies, X>;
  static_assert(detail::sound_permutation<Permutation>(),
                "[tessera] Sends<from, to, ...> is no permutation: a coordinate stands twice among "
                "those that send, or among those that get a value, or one has no partner");
  if constexpr (Checked::said() && detail::sound_permutation<Permutation>()) {
    const detail::CallSite site = call.free_fresh_site("permute_over");
    constexpr int axis = Checked::W::template index<X>;
    const auto whole = detail::manual_whole_of(x.core().mesh(), site.where);
    using M = typename A::mesh_type;
    using Y = ShardedTensor<typename A::value_type, M, detail::spec_of<M, detail::OwnSharding<A>>>;
    const TensorCore finished =
        detail::moved_to(x.core(), Y::sharding(), detail::named_call("permute_over", site.where));
    return Y(detail::permuted(
        finished, axis,
        detail::sources_of<Permutation>(whole->shape()[axis], whole->names()[axis], site.where),
        detail::zeros_kernel<typename A::value_type>(), site));
  } else {
    return detail::Unknown<A>();
  }
}

}  // namespace tessera
