// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Convolutions, and their gradients, with any dimension of either operand split: a halo of the
/// input is exchanged where its spatial dimensions are.
///
///     auto y = convolve<nhwc>(x, k, {.stride = {2, 2}, .low = {3, 3}, .high = {3, 3}});
///     auto dx = convolve_input_gradient<nhwc>(dy, k, x.extents(), settings);
///     auto dk = convolve_kernel_gradient<nhwc>(x, dy, k.extents(), settings);
///     auto d = convolve<"bxi,xio->bxo", P<data, _, _>>(x1, k1);      // one spatial dimension
///
/// Laws: equals the convolution of the whole tensors in plain loops; <convolve(x, k), y> equals
/// <x, input gradient> and <k, kernel gradient>. Settings.portable gives the same bits on every
/// mesh that does not split what is summed.
#include <tessera/kernel/convolve.hpp>
#include <tessera/op/operators.hpp>
#include <tessera/op/result.hpp>
#include <tessera/plan/convolve.hpp>
#include <tessera/plan/gradient_shape.hpp>

namespace tessera {
namespace detail {

inline void require_convolution(const Convolution& c, const Terms& terms, const Extents& x,
                                const Extents& k, const MeshCore& mesh, CallSite site) {
  const Verdict verdict = check_convolution(c, terms, x, k);
  if (!verdict.ok())
    on_process(mesh, site,
               [&] { throw_broken(verdict.rule, explain(verdict, terms, mesh.names())); });
}

/// One convolution, of shapes that are known to be right.
inline TensorCore convolve(const Terms& terms, const ConvolveWindows& shape, bool portable,
                           const TensorCore& x, const TensorCore& k, const Sharding& out,
                           CallSite site) {
  MeshCore& mesh = mesh_of(x, site);
  PlanKey key(OperatorKind::convolve, Reduction::sum, x.type());
  key.add(terms);
  key.add(x.desc());
  key.add(k.desc());
  key.add(out);
  for (const Window& w : shape.windows) key.add(w);
  std::uint64_t sides = static_cast<std::uint64_t>(shape.input) |
                        static_cast<std::uint64_t>(shape.kernel) << 1 |
                        static_cast<std::uint64_t>(shape.result) << 2;
  for (const bool mirrored : shape.mirrored) sides = sides << 1 | (mirrored ? 1u : 0u);
  key.add(sides);
  key.add(static_cast<std::uint64_t>(shape.groups) << 1 | (portable ? 1u : 0u));
  Extras extras;
  extras.portable = portable;
  return run_operator(key, {&x, &k}, site, extras, [&](const PlanOptions& options) {
    require(check_convolve(terms, {x.sharding(), k.sharding()}, out), terms, mesh, site);
    require_elements(check_product_type(x.type()), site);
    require_sharding(out, mesh, site);
    require(check_one_type(Rule::factor_types_alike, x.type(), k.type(), 1), 2, site);
    return plan_convolve(terms, shape, x.desc(), k.desc(), out, mesh.shape(), mesh.process(),
                         options);
  });
}

/// Checks what must hold before parts_of(terms) may be asked.
inline void require_convolve(const Terms& terms, const TensorCore& x, const TensorCore& k,
                             CallSite site) {
  require(check_convolve(terms, {x.sharding(), k.sharding()},
                         Sharding::replicated(terms.result.size())),
          terms, *x.mesh(), site);
}
inline void require_gradient(const Terms& terms, const Extents& given, const Extents& made,
                             const MeshCore& mesh, CallSite site) {
  if (given == made) return;
  on_process(mesh, site, [&] {
    throw ShapeError("\"" + to_text(terms) + "\": the gradient of the result is " +
                     to_string(given) + " and the result of this convolution " + to_string(made) +
                     "; give the settings and extents of the convolution that was made");
  });
}
inline void require_rank(const Extents& extents, int rank, const char* what, CallSite site) {
  if (extents.size() != rank)
    throw ShapeError(std::string(site.label) + ": the extents of the " + what + ", " +
                         to_string(extents) + ", are " + std::to_string(extents.size()) +
                         " and it has " + std::to_string(rank) +
                         " dimensions; give one for each dimension",
                     site.where);
}

inline TensorCore convolve(const Terms& terms, const Convolution& c, const TensorCore& x,
                           const TensorCore& k, const Sharding& out, CallSite site) {
  const MeshCore& mesh = mesh_of(x, site);
  require_convolve(terms, x, k, site);
  require_convolution(c, terms, x.extents(), k.extents(), mesh, site);
  return convolve(terms, shape_of(c, parts_of(terms), k.extents()), c.portable, x, k, out, site);
}
inline TensorCore convolve_input_gradient(const Terms& terms, const Convolution& c,
                                          const TensorCore& dy, const TensorCore& k,
                                          const Extents& x, const Sharding& out, CallSite site) {
  const MeshCore& mesh = mesh_of(dy, site);
  const ConvolveParts parts = parts_of(terms);
  require_rank(x, terms.operands[0].size(), "input", site);
  require_rank(k.extents(), terms.operands[1].size(), "kernel", site);
  require_convolution(c, terms, x, k.extents(), mesh, site);
  const ConvolveWindows shape = shape_of(c, parts, k.extents());
  require_gradient(terms, dy.extents(), convolved_extents(shape, parts, x, k.extents()), mesh,
                   site);
  const ConvolveGradient g = input_gradient(terms, shape, x);
  return convolve(g.terms, g.shape, c.portable, dy, k, out, site);
}
inline TensorCore convolve_kernel_gradient(const Terms& terms, const Convolution& c,
                                           const TensorCore& x, const TensorCore& dy,
                                           const Extents& k, const Sharding& out, CallSite site) {
  const MeshCore& mesh = mesh_of(x, site);
  const ConvolveParts parts = parts_of(terms);
  require_rank(x.extents(), terms.operands[0].size(), "input", site);
  require_rank(k, terms.operands[1].size(), "kernel", site);
  require_convolution(c, terms, x.extents(), k, mesh, site);
  const ConvolveWindows shape = shape_of(c, parts, k);
  require_gradient(terms, dy.extents(), convolved_extents(shape, parts, x.extents(), k), mesh,
                   site);
  const ConvolveGradient g = kernel_gradient(terms, shape, x.extents(), k);
  return convolve(g.terms, g.shape, c.portable, x, dy, out, site);
}

/// The three ways to write a convolution's letters: as it is, as its gradient by the input (of the
/// result's gradient and the kernel), as its gradient by the kernel.
enum class ConvolveForm : std::uint8_t { forward, by_input, by_kernel };
constexpr Terms terms_of(const Terms& terms, ConvolveForm form) {
  Terms t = terms;
  if (form == ConvolveForm::by_input) std::swap(t.operands[0], t.result);
  if (form == ConvolveForm::by_kernel) std::swap(t.operands[1], t.result);
  return t;
}

template <Equation E, ConvolveForm Form, class Out, class A, class B> struct ConvolveCall {
  using mesh = typename CommonMesh<A, B>::type;
  using type = typename CommonType<A, B>::type;
  static_assert(demand_elements<check_product_type(dtype_of<type>).rule, type>());
  static_assert(demand_out<mesh, Out>());
  static constexpr Terms forward = parse(E.view());
  static constexpr Terms terms = terms_of(forward, Form);
  static constexpr Shardings operands{A::sharding(), B::sharding()};
  static constexpr Sharding value = [] {
    if constexpr (!std::is_same_v<Out, Deduced>)
      return lower<mesh, Out>();
    else
      return deduce_convolve(terms, operands);
  }();
  static constexpr Verdict verdict = check_convolve(terms, operands, value);
  static constexpr bool sound = verdict.ok() && CommonType<A, B>::alike && founded<A> && founded<B>;
  static_assert(demand<ConvolveCall, A, B>());
  static constexpr Contract needs(const MeshShape& on, const Contract& contract) {
    return verdict.ok() ? needs_of_convolve(terms, operands, value, on, contract)
                        : Contract::nothing();
  }
  using result = Result<type, mesh, ConvolveCall>;
};
}  // namespace detail

/// Returns the convolution of x by k, of letters E (nhwc, nchw, "bxi,xio->bxo", ...): batch and
/// spatial dimensions split as x's, features as k's, or as `Out` says; `Out` may leave it
/// Unreduced<Sum> over axes that split the input features or k's spatial dimensions. One of x and k
/// may be Unreduced<Sum> itself; `Out` may leave the result so over the same axes.
/// Communication: as plan_convolve says: halos of x, reshards of what is split otherwise, the
/// reduction of partial sums; within `Bound`. Collective over the mesh. Throws ShapeError for
/// windows that are larger than the padded input, channel counts or groups that do not fit. Source:
/// GShard, section 3.3.3 and Appendix A.4.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor B>
typename detail::ConvolveCall<E, detail::ConvolveForm::forward, Out, A, B>::result convolve(
    const A& x, const B& k, const Convolution& settings = {}, Where where = Where::here()) {
  using Typed = detail::ConvolveCall<E, detail::ConvolveForm::forward, Out, A, B>;
  static_cast<void>(&detail::registered_convolve<typename Typed::type>);
  return typename Typed::result(detail::convolve(Typed::forward, settings, x.core(), k.core(),
                                                 Typed::value,
                                                 {E.view(), where, detail::bound<Typed, Bound>()}));
}

/// Returns the gradient of convolve<E>(x, k, settings) by x, of extents `x`, where dy is the
/// gradient of the result: split as dy and k say, or as `Out`. Communication and errors: those of a
/// convolution of dy by k. Collective over the mesh. Throws ShapeError when dy has other extents
/// than that convolution's result.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor B>
typename detail::ConvolveCall<E, detail::ConvolveForm::by_input, Out, A, B>::result
convolve_input_gradient(const A& dy, const B& k, const Extents& x, const Convolution& settings = {},
                        Where where = Where::here()) {
  using Typed = detail::ConvolveCall<E, detail::ConvolveForm::by_input, Out, A, B>;
  static_cast<void>(&detail::registered_convolve<typename Typed::type>);
  return typename Typed::result(detail::convolve_input_gradient(
      Typed::forward, settings, dy.core(), k.core(), x, Typed::value,
      {E.view(), where, detail::bound<Typed, Bound>()}));
}

/// Returns the gradient of convolve<E>(x, k, settings) by k, of extents `k`. The spatial dimensions
/// of dy are summed over, so where they are split the sum is finished over those axes, or left open
/// by `Out`. Communication and errors: those of a convolution of x by dy. Collective over the mesh.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor B>
typename detail::ConvolveCall<E, detail::ConvolveForm::by_kernel, Out, A, B>::result
convolve_kernel_gradient(const A& x, const B& dy, const Extents& k,
                         const Convolution& settings = {}, Where where = Where::here()) {
  using Typed = detail::ConvolveCall<E, detail::ConvolveForm::by_kernel, Out, A, B>;
  static_cast<void>(&detail::registered_convolve<typename Typed::type>);
  return typename Typed::result(detail::convolve_kernel_gradient(
      Typed::forward, settings, x.core(), dy.core(), k, Typed::value,
      {E.view(), where, detail::bound<Typed, Bound>()}));
}

/// The same with everything known at run time; `out` may be left to deduction.
inline DynamicTensor convolve(std::string_view letters, const DynamicTensor& x,
                              const DynamicTensor& k, const Convolution& settings,
                              const Sharding& out, Where where = Where::here()) {
  return DynamicTensor(
      detail::convolve(parse(letters), settings, x.core(), k.core(), out, {letters, where}));
}
inline DynamicTensor convolve(std::string_view letters, const DynamicTensor& x,
                              const DynamicTensor& k, const Convolution& settings = {},
                              Where where = Where::here()) {
  const Terms terms = parse(letters);
  detail::require_convolve(terms, x.core(), k.core(), {letters, where});
  return convolve(letters, x, k, settings, deduce_convolve(terms, {x.sharding(), k.sharding()}),
                  where);
}
inline DynamicTensor convolve_input_gradient(std::string_view letters, const DynamicTensor& dy,
                                             const DynamicTensor& k, const Extents& x,
                                             const Convolution& settings, const Sharding& out,
                                             Where where = Where::here()) {
  const Terms terms = parse(letters);
  const CallSite site{letters, where};
  detail::require_convolve(detail::terms_of(terms, detail::ConvolveForm::by_input), dy.core(),
                           k.core(), site);
  return DynamicTensor(
      detail::convolve_input_gradient(terms, settings, dy.core(), k.core(), x, out, site));
}
inline DynamicTensor convolve_input_gradient(std::string_view letters, const DynamicTensor& dy,
                                             const DynamicTensor& k, const Extents& x,
                                             const Convolution& settings = {},
                                             Where where = Where::here()) {
  const Terms turned = detail::terms_of(parse(letters), detail::ConvolveForm::by_input);
  return convolve_input_gradient(letters, dy, k, x, settings,
                                 deduce_convolve(turned, {dy.sharding(), k.sharding()}), where);
}
inline DynamicTensor convolve_kernel_gradient(std::string_view letters, const DynamicTensor& x,
                                              const DynamicTensor& dy, const Extents& k,
                                              const Convolution& settings, const Sharding& out,
                                              Where where = Where::here()) {
  const Terms terms = parse(letters);
  const CallSite site{letters, where};
  detail::require_convolve(detail::terms_of(terms, detail::ConvolveForm::by_kernel), x.core(),
                           dy.core(), site);
  return DynamicTensor(
      detail::convolve_kernel_gradient(terms, settings, x.core(), dy.core(), k, out, site));
}
inline DynamicTensor convolve_kernel_gradient(std::string_view letters, const DynamicTensor& x,
                                              const DynamicTensor& dy, const Extents& k,
                                              const Convolution& settings = {},
                                              Where where = Where::here()) {
  const Terms turned = detail::terms_of(parse(letters), detail::ConvolveForm::by_kernel);
  return convolve_kernel_gradient(letters, x, dy, k, settings,
                                  deduce_convolve(turned, {x.sharding(), dy.sharding()}), where);
}

}  // namespace tessera
