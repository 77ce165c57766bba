// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator of convolutions and their gradients. A gradient is a convolution with other letters
/// and windows: of the result's gradient by the kernel, or of the input by the result's gradient.
///
///     Plan p = detail::plan_convolve(parse("bhwi,hwio->bhwo"), shape, x, k, out, mesh, process);
///
/// For every mesh axis the plan chooses what the axis splits meanwhile: the batch, the groups, the
/// input or output features, a spatial dimension of the result (whose processes then need a halo of
/// the input), or the taps of the kernel (as in filter gradients, where the partial sums are
/// combined); an axis over which an operand is unfinished may also pass through. The cheapest
/// combination wins; the settings, base dilation too, are arithmetic (base/window.hpp), so GShard's
/// three cases (Appendix A.4) are one.
///
///     ops::Convolve{parse("bhwi,hwio->bhwo"), {.stride = {2, 2}}, ConvolveForm::forward, {}, out}
///
/// Laws: corners travel directly or dimension by dimension; a process gets more of the input than
/// it needs only where that is cheaper, copies included; partial sums over input features or taps
/// cost one reduction of the result, scattered where the result is split, in float where the
/// elements are half types; <convolve(x, k), y> == <x, gradient by the input(y, k)> == <k, gradient
/// by the kernel(x, y)>.
#include <utility>

#include <tessera/plan/check/type_rules.hpp>
#include <tessera/plan/op/window/convolution.hpp>
#include <tessera/plan/op/window/convolve_search.hpp>
#include <tessera/plan/op/window/gradient_shape.hpp>
#include <tessera/plan/operation.hpp>

namespace tessera {
namespace detail {

/// Plans a convolution of `input` by `kernel` into a result of sharding `out`, which may leave sums
/// over input features or taps open. Preconditions: check_convolve and check_convolution found
/// nothing wrong.
constexpr Plan plan_convolve(const Terms& terms, const ConvolveWindows& shape,
                             const TensorDesc& input, const TensorDesc& kernel, const Sharding& out,
                             const MeshShape& mesh, int process = 0,
                             const PlanOptions& options = {}) {
  const TensorDesc result{
      input.type, convolved_extents(shape, parts_of(terms), input.extents, kernel.extents), out};
  const auto fewer = [&mesh](TensorDesc desc) {
    desc.sharding = without_unit_axes(desc.sharding, mesh);
    return desc;
  };
  const TensorDesc x = fewer(input), k = fewer(kernel), y = fewer(result);
  const ConvolveFactors factors(terms, shape, x, k, y);
  const FactorAxes axes(factors.rule, mesh, options.free_choice);
  const ConvolveMaker maker(terms, shape, input, kernel, result, x.sharding, k.sharding, y.sharding,
                            mesh);
  ConvolveProblem problem(factors, axes, maker, options);
  const AxisSearch search(problem);
  PlanBuilder build(OperatorKind::convolve, mesh, process, options);
  const FoundPick& best = search.found().back();
  maker.make(build, problem.split_of(axes.roles(best.pick)), convolve_ways[best.variant]);
  return build.plan();
}

constexpr void add_to(Digest& digest, const Convolution& c) {
  for (const Convolution::PerDimension* list :
       {&c.stride, &c.low, &c.high, &c.base_dilation, &c.window_dilation, &c.reversed})
    add_to(digest, *list);
  add_to(digest, c.feature_groups);
  add_to(digest, c.batch_groups);
  add_to(digest, c.portable);
}
}  // namespace detail

namespace ops {
/// The operands are input and kernel; the result's gradient and the kernel; or the input and the
/// result's gradient.
enum class ConvolveForm : std::uint8_t { forward, by_input, by_kernel };

struct Convolve {
  Terms terms = {};  ///< of the convolution itself, whatever the form
  Convolution settings = {};
  ConvolveForm form = ConvolveForm::forward;
  Extents extents = {};  ///< of a gradient's result
  Sharding out = {};

  constexpr OperatorKind kind() const { return OperatorKind::convolve; }
  constexpr Verdict check(const TensorDescs& x) const {
    if (const Verdict v = detail::check_convolve(turned(), detail::shardings_of(x), out); !v.ok())
      return v;
    if (const Verdict v = detail::check_product_type(x[0].type); !v.ok()) return v;
    if (const Verdict v = detail::check_one_type(Rule::factor_types_alike, x[0].type, x[1].type, 1);
        !v.ok())
      return v;
    if (form != ConvolveForm::forward && extents.size() != out.rank())
      return {.rule = Rule::gradient_extent_each, .left = extents.size(), .right = out.rank()};
    if (const Verdict v = detail::check_convolution(settings, terms, input(x), kernel(x)); !v.ok())
      return v;
    if (form != ConvolveForm::forward && !(given(x) == convolved(x)))
      return {.rule = Rule::gradient_fits};
    return {};
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames& names) const {
    if (v.rule == Rule::gradient_extent_each)
      return tessera::explain(v, {.first = form == ConvolveForm::by_input ? "input" : "kernel",
                                  .second = to_string(extents)});
    if (v.rule == Rule::gradient_fits)
      return tessera::explain(v, {.first = to_string(given(x)), .second = to_string(convolved(x))});
    const bool read = detail::check_convolve(turned(), detail::shardings_of(x), out).ok();
    return tessera::explain(v, read ? terms : turned(), names);
  }
  /// Returns the default sharding of the result: the batch and spatial dimensions like the first
  /// operand's, features like the second's.
  constexpr Sharding deduced(const TensorDescs& x) const {
    return detail::deduce_convolve(turned(), detail::shardings_of(x));
  }
  constexpr TensorDescs results(const TensorDescs& x) const {
    return {{x[0].type, form == ConvolveForm::forward ? convolved(x) : extents, out}};
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    const detail::ConvolveGradient c =
        form == ConvolveForm::by_input ? detail::input_gradient(terms, shape(x), extents)
        : form == ConvolveForm::by_kernel
            ? detail::kernel_gradient(terms, shape(x), x[0].extents, extents)
            : detail::ConvolveGradient{terms, shape(x)};
    return detail::plan_convolve(c.terms, c.shape, x[0], x[1], out, on.mesh, on.process,
                                 on.options);
  }
  /// A window of three taps stands for all windows that reach beyond a block; where taps are split,
  /// as in a gradient by the kernel, a window of many taps stands for them.
  constexpr tessera::detail::StandIn<Convolve> stand_in(const TensorDescs& x) const {
    tessera::detail::StandIn<Convolve> call{{turned(), {}, ConvolveForm::forward, {}, out},
                                            tessera::detail::stand_ins(x)};
    if (!detail::check_convolve(turned(), detail::shardings_of(x), out).ok()) return call;
    for (const int d : detail::parts_of(turned()).kernel_spatial) {
      call.operation.settings.low.push_back(1);
      call.operation.settings.high.push_back(1);
      if (x[1].sharding[d].empty()) call.operands[1].extents[d] = 3;
    }
    return call;
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("settings", settings);
    visit("form", form);
    visit("extents", extents);
    visit("to", out);
  }
  constexpr bool operator==(const Convolve&) const = default;
  /// Returns the letters of the operands and the result in this form.
  constexpr Terms turned() const {
    Terms t = terms;
    if (form == ConvolveForm::by_input) std::swap(t.operands[0], t.result);
    if (form == ConvolveForm::by_kernel) std::swap(t.operands[1], t.result);
    return t;
  }

 private:
  constexpr const Extents& input(const TensorDescs& x) const {
    return form == ConvolveForm::by_input ? extents : x[0].extents;
  }
  constexpr const Extents& kernel(const TensorDescs& x) const {
    return form == ConvolveForm::by_kernel ? extents : x[1].extents;
  }
  /// For a gradient, the extents of the result's gradient.
  constexpr const Extents& given(const TensorDescs& x) const {
    return x[form == ConvolveForm::by_input ? 0 : 1].extents;
  }
  constexpr detail::ConvolveWindows shape(const TensorDescs& x) const {
    return detail::shape_of(settings, detail::parts_of(terms), kernel(x));
  }
  /// Returns the extents of the result of the convolution itself.
  constexpr Extents convolved(const TensorDescs& x) const {
    return detail::convolved_extents(shape(x), detail::parts_of(terms), input(x), kernel(x));
  }
};
}  // namespace ops
}  // namespace tessera

TESSERA_OPERATION(Convolve)
