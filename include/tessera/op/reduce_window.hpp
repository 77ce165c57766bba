// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Reductions under a sliding window (pooling), their gradients, and select-and-scatter.
///
///     const WindowSettings pool{.size = {1, 2, 2, 1}, .stride = {1, 2, 2, 1}};
///     auto y = reduce_window<Max>(x, pool);
///     auto dx = reduce_window_gradient<Max>(x, dy, pool);
///
/// Laws: equals plain loops over the whole tensor; padding and what base dilation leaves empty are
/// the identity of the reduction, but a mean is always over the whole window; the gradient of a
/// maximum goes to the first greatest element of a window.
#include <tessera/kernel/reduce_window.hpp>
#include <tessera/kernel/select_scatter.hpp>
#include <tessera/op/operators.hpp>
#include <tessera/op/result.hpp>
#include <tessera/plan/reduce_window.hpp>
#include <tessera/plan/window_settings.hpp>

namespace tessera {
namespace detail {

inline void require_windows(const WindowSettings& s, const Extents& x, const MeshCore& mesh,
                            CallSite site) {
  const Verdict verdict = check_windows(s, x);
  if (!verdict.ok())
    on_process(mesh, site, [&] {
      throw_broken(verdict.rule,
                   std::string(site.label) + " of " + to_string(x) + ": " + explain(verdict));
    });
}
/// What every operator with windows asks of an operand and its result.
inline void require_windowed(const TensorCore& x, const Sharding& out, CallSite site) {
  const MeshCore& mesh = *x.mesh();
  const Terms terms{{default_labels(x.rank())}, default_labels(x.rank())};
  require(check_window(terms, {x.sharding()}, out), terms, mesh, site);
  require_sharding(out, mesh, site);
}

inline TensorCore reduce_window(Reduction reduction, bool mean, const WindowList& windows,
                                const TensorCore& x, const Sharding& out, CallSite site) {
  MeshCore& mesh = mesh_of(x, site);
  PlanKey key(OperatorKind::reduce_window, reduction, x.type());
  key.add(x.desc());
  key.add(out);
  key.add(static_cast<std::uint64_t>(mean));
  for (const Window& w : windows) key.add(w);
  Extras extras;
  if (mean) {
    Index count = 1;
    for (const Window& w : windows) count = saturating_mul(count, w.size);
    extras.scale = 1.0 / static_cast<double>(count);
  }
  return run_operator(key, {&x}, site, extras, [&](const PlanOptions& options) {
    require_windowed(x, out, site);
    require_elements(check_reduce_type(reduction, mean, x.type()), site);
    return plan_reduce_window(reduction, windows, x.desc(), out, mesh.shape(), mesh.process(),
                              options);
  });
}
inline TensorCore reduce_window(Reduction reduction, bool mean, const WindowSettings& s,
                                const TensorCore& x, const Sharding& out, CallSite site) {
  require_windows(s, x.extents(), mesh_of(x, site), site);
  return reduce_window(reduction, mean, windows_of(s, x.rank()), x, out, site);
}

inline TensorCore select_and_scatter(bool greatest, const WindowSettings& s, const TensorCore& x,
                                     const TensorCore& source, const Sharding& out, CallSite site) {
  MeshCore& mesh = mesh_of(x, site);
  require_windows(s, x.extents(), mesh, site);
  const WindowList windows = windows_of(s, x.rank());
  const Extents made = windowed_extents(x.extents(), windows);
  if (!(source.extents() == made))
    on_process(mesh, site, [&] {
      throw ShapeError(std::string(site.label) + ": the source is " + to_string(source.extents()) +
                       " and there are " + to_string(made) +
                       " windows; give one element for each window");
    });
  if (source.type() != x.type())
    throw ShapeError(std::string(site.label) + ": the tensor is " + std::string(name_of(x.type())) +
                         " and the source " + std::string(name_of(source.type())) +
                         "; cast one of them",
                     site.where);
  PlanKey key(OperatorKind::select_and_scatter, greatest ? Reduction::max : Reduction::min,
              x.type());
  key.add(x.desc());
  key.add(source.desc());
  key.add(out);
  for (const Window& w : windows) key.add(w);
  return run_operator(key, {&x, &source}, site, {}, [&](const PlanOptions& options) {
    require_windowed(x, out, site);
    require_windowed(source, out, site);
    require_elements(check_reduce_type(Reduction::max, false, x.type()), site);
    return plan_select_and_scatter(greatest, windows, x.desc(), source.desc(), out, mesh.shape(),
                                   mesh.process(), options);
  });
}

/// The gradient of a windowed sum or mean, from that of its result.
inline TensorCore reduce_window_gradient(bool mean, const WindowSettings& s, const Extents& x,
                                         const TensorCore& dy, const Sharding& out, CallSite site) {
  MeshCore& mesh = mesh_of(dy, site);
  require_windows(s, x, mesh, site);
  const WindowList windows = windows_of(s, x.size());
  const Extents made = windowed_extents(x, windows);
  if (!(dy.extents() == made))
    on_process(mesh, site, [&] {
      throw ShapeError(std::string(site.label) + ": the gradient of the result is " +
                       to_string(dy.extents()) + " and the result " + to_string(made) +
                       "; give the settings and extents of the operator itself");
    });
  return reduce_window(Reduction::sum, mean, turned(windows, x), dy, out, site);
}

template <class Out, class A> struct WindowCall {
  using mesh = typename A::mesh_type;
  static_assert(demand_out<mesh, Out>());
  static constexpr Terms terms{{default_labels(A::rank)}, default_labels(A::rank)};
  static constexpr Shardings operands{A::sharding()};
  static constexpr Sharding value = [] {
    if constexpr (!std::is_same_v<Out, Deduced>)
      return lower<mesh, Out>();
    else
      return A::sharding();
  }();
  static constexpr Verdict verdict = check_window(terms, operands, value);
  static constexpr bool sound = verdict.ok() && founded<A>;
  static_assert(demand<WindowCall, A>());
  static constexpr Contract needs(const MeshShape& on, const Contract& contract) {
    return verdict.ok() ? needs_of_window(operands[0], value, on, contract) : Contract::nothing();
  }
  using result = Result<typename A::value_type, mesh, WindowCall>;
};
template <class Kind, class A>
inline constexpr bool window_kind = demand_elements<
    check_reduce_type(Kind::reduction, std::is_same_v<Kind, Mean>, dtype_of<typename A::value_type>)
        .rule,
    typename A::value_type>();
}  // namespace detail

/// Returns what lies under each window of x, reduced by Kind (Sum, Product, Mean, Max, Min; of bool
/// Any, All): extents as the windows say, split as x or as `Out`. Communication: what windows reach
/// beyond a process's block, and a reshard where `Out` asks for one; within `Bound`. Collective
/// over the mesh. Throws ShapeError for a window that is larger than the padded tensor.
template <class Kind, class Out = Deduced, class Bound = NoContract, TypedTensor A>
typename detail::WindowCall<Out, A>::result reduce_window(const A& x,
                                                          const WindowSettings& settings,
                                                          Where where = Where::here()) {
  using Typed = detail::WindowCall<Out, A>;
  static_assert(detail::window_kind<Kind, A>);
  static_cast<void>(&detail::registered_reduce_window<typename A::value_type>);
  return typename Typed::result(
      detail::reduce_window(Kind::reduction, std::is_same_v<Kind, Mean>, settings, x.core(),
                            Typed::value, {"reduce_window", where, detail::bound<Typed, Bound>()}));
}

/// Returns the tensor of x's extents in which each window of x has added its element of `source` to
/// the place of its greatest (Kind = Max) or least (Min) element, the first of equal ones; windows
/// wholly in the padding add nothing. Communication: what windows that touch a process's block
/// need. Collective over the mesh. Throws ShapeError when `source` has not one element for each
/// window. Source: XLA's SelectAndScatter.
template <class Kind, class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor B>
typename detail::WindowCall<Out, A>::result select_and_scatter(const A& x, const B& source,
                                                               const WindowSettings& settings,
                                                               Where where = Where::here()) {
  using Typed = detail::WindowCall<Out, A>;
  static_assert(
      std::is_same_v<Kind, Max> || std::is_same_v<Kind, Min>,
      "[tessera] select_and_scatter selects the greatest (Max) or the least (Min) element "
      "of a window; name one of them");
  static_assert(detail::window_kind<Kind, A>);
  static_assert(std::is_same_v<typename detail::CommonType<A, B>::type, typename A::value_type> &&
                std::is_same_v<typename detail::CommonMesh<A, B>::type, typename Typed::mesh>);
  static_cast<void>(&detail::registered_select_scatter<typename A::value_type>);
  return typename Typed::result(detail::select_and_scatter(
      std::is_same_v<Kind, Max>, settings, x.core(), source.core(), Typed::value,
      {"select_and_scatter", where, detail::bound<Typed, Bound>()}));
}

/// Returns the gradient of reduce_window<Kind>(x, settings) by x, where dy is that of the result:
/// Sum, Mean, Max and Min. Communication: that of a reduce_window of dy, or of select_and_scatter.
/// Collective over the mesh.
template <class Kind, class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor B>
typename detail::WindowCall<Out, A>::result reduce_window_gradient(const A& x, const B& dy,
                                                                   const WindowSettings& settings,
                                                                   Where where = Where::here()) {
  using Typed = detail::WindowCall<Out, A>;
  static_assert(detail::window_kind<Kind, A>);
  if constexpr (std::is_same_v<Kind, Max> || std::is_same_v<Kind, Min>) {
    return select_and_scatter<Kind, Out, Bound>(x, dy, settings, where);
  } else {
    static_assert(std::is_same_v<Kind, Sum> || std::is_same_v<Kind, Mean>,
                  "[tessera] there are gradients of windowed Sum, Mean, Max and Min");
    static_assert(A::rank == B::rank && !B::unfinished,
                  "[tessera] the gradient of the result has the result's dimensions, and is "
                  "finished; reshard it to a finished spec first");
    static_cast<void>(&detail::registered_reduce_window<typename A::value_type>);
    return typename Typed::result(detail::reduce_window_gradient(
        std::is_same_v<Kind, Mean>, settings, x.extents(), dy.core(), Typed::value,
        {"reduce_window_gradient", where, detail::bound<Typed, Bound>()}));
  }
}

/// The same with everything known at run time.
template <class Kind>
DynamicTensor reduce_window(const DynamicTensor& x, const WindowSettings& settings,
                            const Sharding& out, Where where = Where::here()) {
  return DynamicTensor(detail::reduce_window(Kind::reduction, std::is_same_v<Kind, Mean>, settings,
                                             x.core(), out, {"reduce_window", where}));
}
template <class Kind>
DynamicTensor reduce_window(const DynamicTensor& x, const WindowSettings& settings,
                            Where where = Where::here()) {
  return reduce_window<Kind>(x, settings, x.sharding(), where);
}
template <class Kind>
DynamicTensor select_and_scatter(const DynamicTensor& x, const DynamicTensor& source,
                                 const WindowSettings& settings, const Sharding& out,
                                 Where where = Where::here()) {
  return DynamicTensor(detail::select_and_scatter(std::is_same_v<Kind, Max>, settings, x.core(),
                                                  source.core(), out,
                                                  {"select_and_scatter", where}));
}
template <class Kind>
DynamicTensor reduce_window_gradient(const DynamicTensor& x, const DynamicTensor& dy,
                                     const WindowSettings& settings, const Sharding& out,
                                     Where where = Where::here()) {
  if constexpr (std::is_same_v<Kind, Max> || std::is_same_v<Kind, Min>)
    return select_and_scatter<Kind>(x, dy, settings, out, where);
  else
    return DynamicTensor(detail::reduce_window_gradient(std::is_same_v<Kind, Mean>, settings,
                                                        x.extents(), dy.core(), out,
                                                        {"reduce_window_gradient", where}));
}

}  // namespace tessera
