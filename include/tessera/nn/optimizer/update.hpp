// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The update of one weight's share, as the optimizers state it: a function of elements, or
/// operators.
///
///     struct Descent {                                    // w - rate g, in float or double
///       double rate;
///       template <class C> KOKKOS_FORCEINLINE_FUNCTION auto operator()(C w, C g) const { return several(static_cast<C>(w - rate * g)); }
///     };
///     const Updated made = detail::update_elements(share, Descent{0.1});
///
/// Laws: elements are computed in float, or in double where the weight is double; a factor that is
/// no number leaves weight and state as they are, to the bit.
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/grad/adjoint/parts.hpp>
#include <tessera/kernel/functions/exponential.hpp>
#include <tessera/op/elements/map_several.hpp>
#include <tessera/op/together.hpp>

namespace tessera::detail {

/// One weight's share of a step. All tensors but scalars lie alike.
struct Share {
  TensorCore weight;    ///< the master, where there is one
  TensorCore gradient;  ///< may be narrower than the master
  std::vector<TensorCore> auxiliary;
  TensorCore factor;          ///< of the gradient: a scalar in double
  TensorCore trust;           ///< of the rate: another, for functions that take it
  DType narrow = DType::f32;  ///< of the weight that is made, where this is its master
  bool master = false;        ///< it is
  bool decays = true;         ///< the rule's decay holds for it
  CallSite site = {};
};
struct Updated {
  TensorCore weight;  ///< the narrow copy, where there is a master
  TensorCore master;
  std::vector<TensorCore> auxiliary;
};

/// Returns the element type in which a weight is updated, and in which its state is.
inline DType update_type(DType weight) { return weight == DType::f64 ? DType::f64 : DType::f32; }

/// A function of elements f(weight, gradient, auxiliary...), or f(weight, gradient, trust,
/// auxiliary...), with what surrounds every update.
template <class F, class W, class G, bool Master, bool Trust> struct UpdateFunction {
  using C = ComputeType<W>;
  F f;

  template <class... A>
  KOKKOS_FORCEINLINE_FUNCTION auto operator()(W w, G g, double factor, A... a) const {
    const C scaled = static_cast<C>(factor) * static_cast<C>(g);
    return chosen(!(factor == factor), w, f(static_cast<C>(w), scaled, a...), a...);
  }

 private:
  template <class... A>
  KOKKOS_FORCEINLINE_FUNCTION static auto chosen(bool old, W w, const Several<C, A...>& made,
                                                 A... a) {
    const W weight = kept(old, w, static_cast<W>(made.first));
    if constexpr (Master)
      return Several<W, G, A...>{weight, {static_cast<G>(weight), others(old, made.rest, a...)}};
    else
      return Several<W, A...>{weight, others(old, made.rest, a...)};
  }
  template <class... A>
  requires Trust KOKKOS_FORCEINLINE_FUNCTION static auto chosen(bool old, W w,
                                                                const Several<C, A...>& made,
                                                                double, A... a) {
    return chosen(old, w, made, a...);
  }
  KOKKOS_FORCEINLINE_FUNCTION static Several<> others(bool, const Several<>&) { return {}; }
  template <class First, class... Rest>
  KOKKOS_FORCEINLINE_FUNCTION static Several<First, Rest...> others(
      bool old, const Several<First, Rest...>& made, First a, Rest... rest) {
    return {kept(old, a, made.first), others(old, made.rest, rest...)};
  }
  /// old ? was : made, without a branch, which would keep a loop from becoming vectors.
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T kept(bool old, T was, T made) {
    if constexpr (std::is_floating_point_v<T>)
      return choose(old, was, made);
    else
      return old ? was : made;
  }
};

/// Updates elements of weights W by gradients G, with `N` auxiliary tensors.
template <class W, class G, bool Master, bool Trust, int N, class F>
Updated update_elements_of(const Share& share, const F& f) {
  using Function = UpdateFunction<F, W, G, Master, Trust>;
  using C = typename Function::C;
  OperandList operands{&share.weight, &share.gradient, &share.factor};
  if (Trust) operands.push_back(&share.trust);
  for (const TensorCore& one : share.auxiliary) operands.push_back(&one);
  const auto run = [&]<int... I>(std::integer_sequence<int, I...>) {
    const auto element = [](int) { return C{}; };
    if constexpr (Trust)
      return map_several<W, G, double, double, decltype(element(I))...>(
          Function{f}, operands, share.weight.sharding(), share.site);
    else
      return map_several<W, G, double, decltype(element(I))...>(
          Function{f}, operands, share.weight.sharding(), share.site);
  };
  std::vector<TensorCore> made = run(std::make_integer_sequence<int, N>{});
  Updated updated;
  updated.weight = made[Master ? 1 : 0];
  if (Master) updated.master = made[0];
  updated.auxiliary.assign(made.begin() + (Master ? 2 : 1), made.end());
  return updated;
}

/// The same for the share's types. `Trust`: f takes the factor of the rate, too. In one pass over
/// memory, but where the gradient is neither of the weight's type nor of the narrow one: then it,
/// or the narrow weight, is converted in another pass.
template <int N, bool Trust = false, class F> Updated update_elements(Share share, const F& f) {
  const DType own = share.weight.type();
  const bool together = share.master && share.gradient.type() == share.narrow;
  if (!together) share.gradient = converted(share.gradient, own, share.site);
  return with_real_type(together ? share.narrow : own, [&](auto zero) {
    using G = decltype(zero);
    if constexpr (!std::is_same_v<G, ComputeType<G>>)
      if (together) return update_elements_of<float, G, true, Trust, N>(share, f);
    Updated made = update_elements_of<G, G, false, Trust, N>(share, f);
    if (share.master) made.weight = converted(made.master = made.weight, share.narrow, share.site);
    return made;
  });
}

/// Returns f of tensors of elements T..., by letters, under a sharding.
template <class... T, class F>
TensorCore map_letters(const Terms& terms, const F& f, const OperandList& operands,
                       const Sharding& out, CallSite site,
                       Linearity linearity = Linearity::pointwise) {
  using R = std::remove_cvref_t<std::invoke_result_t<const F&, const T&...>>;
  use_result_of<R, T...>();
  const ops::Map map{terms, dtype_of<R>, linearity, out, false};
  return run({map, operands, site, {.kernel = MapRunner<R, F, T...>::kernel(f)}});
}
/// Returns f of scalars in double, finished or, where f is linear, unfinished alike.
template <class F, class... X> TensorCore map_scalars(const F& f, CallSite site, const X&... x) {
  const OperandList operands{&x...};
  Terms terms;
  for (int i = 0; i < operands.size(); ++i) terms.operands.push_back({});
  const Sharding& out = operands[0]->sharding();
  return map_letters<std::conditional_t<true, double, X>...>(
      terms, f, operands, out, site,
      out.partial.empty() ? Linearity::pointwise : Linearity::linear);
}

/// Reshards tensors together, those of each mesh by themselves: weights may lie on several parts of
/// a mesh.
inline std::vector<TensorCore> reshard_by_mesh(const std::vector<TensorCore>& from,
                                               const std::vector<Sharding>& to, CallSite site) {
  std::vector<TensorCore> made(from.size());
  for (std::size_t first = 0; first < from.size(); ++first) {
    if (made[first].defined()) continue;
    std::vector<std::size_t> here;
    std::vector<TensorCore> tensors;
    std::vector<Sharding> shardings;
    for (std::size_t i = first; i < from.size(); ++i)
      if (from[i].mesh() == from[first].mesh()) {
        here.push_back(i);
        tensors.push_back(from[i]);
        shardings.push_back(to[i]);
      }
    std::vector<TensorCore> moved = reshard_many(tensors, shardings, site);
    for (std::size_t k = 0; k < here.size(); ++k) made[here[k]] = std::move(moved[k]);
  }
  return made;
}

/// Finishes scalars together: few calls for all of them.
inline std::vector<TensorCore> finish_scalars(const std::vector<TensorCore>& open, CallSite site) {
  return reshard_by_mesh(open, std::vector<Sharding>(open.size(), Sharding::replicated(0)), site);
}

}  // namespace tessera::detail
