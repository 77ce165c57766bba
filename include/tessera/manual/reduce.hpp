// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Reductions by the name of an axis other than a plain sum, within a manual function
/// (manual/manual.hpp). Sums are in manual/collectives.hpp.
///
///     // within manual<model>: x is (n, m) at each coordinate of model
///     auto most = all_reduce_over<Max, model>(x);       // (n, m): the greatest of all, equal
///     auto mean = all_reduce_over<Mean, model>(x);
///
/// It is the library's own reduce, along a dimension that the axis splits.
///
/// Laws: all_reduce_over<Sum, X>(x) == all_reduce_over<X>(x).
#include <array>

#include <tessera/manual/collectives.hpp>
#include <tessera/op/reduce.hpp>

namespace tessera {
namespace detail {

/// The blocks of A at all coordinates as one tensor of the mesh on which the function is called:
/// leading dimensions for the axes that a call does not concern, then for those that it reduces.
template <class A, AxisSet Others, AxisSet Reduced> struct Stacked {
  static constexpr AxisList axes(AxisSet set) {
    AxisList list;
    for (int a = 0; a < max_axes; ++a)
      if (set.contains(a)) list.push_back(a);
    return list;
  }
  static constexpr AxisList lead = axes(Others);
  static constexpr AxisList all = [] {
    AxisList list = lead;
    for (int i = 0; i < axes(Reduced).size(); ++i) list.push_back(axes(Reduced)[i]);
    return list;
  }();
  static constexpr Sharding sharding(const AxisList& before) {
    return outer_sharding(OwnSharding<A>::value, free_axes<typename A::mesh_type>(),
                          {{}, before, {}});
  }
  struct Given {
    static constexpr Sharding value = sharding(all);
  };
  struct Made {
    static constexpr Sharding value = sharding(lead);
  };
  /// "abcd->acd" where the second dimension is reduced.
  static constexpr Equation equation = [] {
    Equation e;
    const auto add = [&](char letter) { e.text[e.length++] = letter; };
    for (int d = 0; d < Given::value.rank(); ++d) add(static_cast<char>('a' + d));
    add('-');
    add('>');
    for (int d = 0; d < Given::value.rank(); ++d)
      if (d < lead.size() || d >= all.size()) add(static_cast<char>('a' + d));
    return e;
  }();
};
/// Accepts whatever a call does, on a Strict mesh too: its name says what it sends.
using Anything =
    Only<gathers<>, reduce_scatters<>, all_reduces<>, all_to_alls<>, permutes<>, exchanges<>>;
}  // namespace detail

/// Returns x, (n, m, ...), reduced by Kind (Max, Min, Mean, Product, Sum; of bool Any, All) over
/// the axes X..., over which it varies; the result is equal over them, and finished. Elements are
/// those of reduce<Kind>. Communication: an all-reduce over X... Collective over the mesh. Throws
/// nothing of its own.
template <class Kind, class... X, TypedTensor A>
  requires(!MeshAxis<Kind>)
auto all_reduce_over(const A& x, const CallOptions& call = Where::here()) {
  using Checked = detail::OverAxes<A, detail::OverAxis::varies, X...>;
  if constexpr (Checked::said()) {
    const detail::CallSite site = call.free_fresh_site("all_reduce_over");
    constexpr AxisSet others = (Checked::varies | Checked::unfinished) - Checked::axes;
    using On = detail::Stacked<A, others, Checked::axes>;
    using W = typename Checked::W;
    using Given = ShardedTensor<typename A::value_type, W, detail::spec_of<W, typename On::Given>>;
    const TensorCore own = detail::moved_to(x.core(), detail::OwnSharding<A>::value,
                                            detail::named_call("all_reduce_over", site.where));
    const Given all(detail::seen_outer(own, detail::manual_whole_of(own.mesh(), site.where),
                                       {{}, On::all, {}}, site));
    const auto made =
        reduce<Kind, On::equation, detail::spec_of<W, typename On::Made>, detail::Anything>(all,
                                                                                            call);
    using M = detail::ManualOf<W, Checked::Facts::named.bits,
                               (Checked::varies - Checked::axes).bits, Checked::unfinished.bits>;
    using Y = ShardedTensor<typename decltype(made)::value_type, M,
                            detail::spec_of<M, detail::OwnSharding<A>>>;
    return Y(detail::seen_inner(made.core(), own.mesh(), {{}, On::lead, {}}, others, site));
  } else {
    return detail::Unknown<A>();
  }
}

}  // namespace tessera
