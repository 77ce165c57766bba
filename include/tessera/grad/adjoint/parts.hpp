// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What the adjoints of several operators have in common: functions of elements, and repetition
/// with its inverse, the sum.
///
///     v = detail::repeated(build, v, from, to);      // letters of `to` that `from` has not
///
/// Laws: summed(repeated(v)) is v times the number of repetitions.
#include <tessera/grad/adjoint_builder.hpp>
#include <tessera/op/create/create.hpp>
#include <tessera/op/elements/map_runner.hpp>
#include <tessera/plan/op/elements/create.hpp>
#include <tessera/plan/op/elements/map.hpp>
#include <tessera/plan/op/move/reshard.hpp>
#include <tessera/plan/op/product/einsum.hpp>
#include <tessera/plan/op/rows/reduce.hpp>
#include <tessera/plan/op/shape/broadcast.hpp>
#include <tessera/plan/op/shape/reshape.hpp>
#include <tessera/plan/op/shape/transpose.hpp>

namespace tessera::detail {

inline AdjointValue AdjointBuilder::reshard(AdjointValue v, const Sharding& to) {
  return desc(v).sharding == to ? v : add(ops::Reshard{to}, {v});
}

/// Calls use(T{}) for an element type that has gradients.
template <class Use> auto with_gradient_type(DType type, const Use& use) {
  if (type == DType::c64) return use(complex<float>{});
  if (type == DType::c128) return use(complex<double>{});
  return with_real_type(type, use);
}
inline bool is_differentiable(DType type) { return is_real(type) || is_complex(type); }

/// f of N operands of elements `type`.
template <int N, class F> std::shared_ptr<const OwnedFunction> function_of(DType type, const F& f) {
  return with_gradient_type(type, [&](auto zero) -> std::shared_ptr<const OwnedFunction> {
    using T = decltype(zero);
    if constexpr (N == 1 && std::is_invocable_v<const F&, T>)
      return std::make_shared<OwnedFunction>(LoopRunner<T, F, T>::kernel(f));
    else if constexpr (N == 2 && std::is_invocable_v<const F&, T, T>)
      return std::make_shared<OwnedFunction>(LoopRunner<T, F, T, T>::kernel(f));
    else if constexpr (N == 3 && std::is_invocable_v<const F&, T, T, T>)
      return std::make_shared<OwnedFunction>(LoopRunner<T, F, T, T, T>::kernel(f));
    else
      return nullptr;
  });
}
/// Returns the function that converts elements to another type.
inline std::shared_ptr<const OwnedFunction> conversion(DType from, DType to) {
  return with_gradient_type(from, [&](auto source) {
    return with_gradient_type(to, [&](auto target) -> std::shared_ptr<const OwnedFunction> {
      using From = decltype(source);
      using To = fn::Converted<decltype(target)>;
      if constexpr (ComplexElement<From> && !ComplexElement<decltype(target)>)
        return nullptr;
      else
        return std::make_shared<OwnedFunction>(
            LoopRunner<decltype(target), To, From>::kernel(To{}));
    });
  });
}

/// sum + x as elements `to`, for x of elements `of`: those of half types are added in float, and a
/// sum of them may be float itself.
inline std::shared_ptr<const OwnedFunction> addition(DType sum, DType of, DType to) {
  if (sum == of && of == to) return function_of<2>(of, fn::Add{});
  return with_gradient_type(of, [&](auto x) -> std::shared_ptr<const OwnedFunction> {
    using T = decltype(x);
    if constexpr (sizeof(T) == 2) {
      if (to == of)
        return std::make_shared<OwnedFunction>(LoopRunner<T, fn::AddAs<T>, float, T>::kernel({}));
      if (sum == of)
        return std::make_shared<OwnedFunction>(
            LoopRunner<float, fn::AddAs<float>, T, T>::kernel({}));
      return std::make_shared<OwnedFunction>(
          LoopRunner<float, fn::AddAs<float>, float, T>::kernel({}));
    } else {
      return nullptr;
    }
  });
}

/// Letters for the dimensions of a tensor.
inline Term letters_of(const TensorDesc& x) { return default_labels(x.rank()); }

/// Letters without repetition: "ii" becomes "i".
inline Term distinct(const Term& letters) {
  Term once;
  for (char letter : letters)
    if (!once.contains(letter)) once.push_back(letter);
  return once;
}
/// The sharding of letters that a tensor has: each as its first dimension.
inline Sharding sharding_of(const Term& letters, const Term& of, const Sharding& s) {
  Sharding out;
  for (char letter : letters) out.dims.push_back(s[of.find(letter)]);
  return out;
}

/// f of values with these letters, under the sharding `out` of the letters of the first.
inline AdjointValue mapped(AdjointBuilder& build, const Terms& terms,
                           const FixedVector<AdjointValue, max_operands>& values, DType type,
                           const Sharding& out, std::shared_ptr<const OwnedFunction> f) {
  const bool reads_index = f->kernel().reads_index;
  return build.add(ops::Map{terms, type, Linearity::pointwise, out, reads_index}, values,
                   std::move(f));
}
/// f of values of equal extents, under the first one's sharding.
inline AdjointValue mapped(AdjointBuilder& build,
                           const FixedVector<AdjointValue, max_operands>& values,
                           std::shared_ptr<const OwnedFunction> f) {
  const TensorDesc first = build.desc(values[0]);
  Terms terms;
  terms.result = letters_of(first);
  for (int k = 0; k < values.size(); ++k) terms.operands.push_back(terms.result);
  return mapped(build, terms, values, first.type, first.sharding, std::move(f));
}
inline AdjointValue scaled(AdjointBuilder& build, AdjointValue v, double factor) {
  if (factor == 1) return v;
  return mapped(build, {v}, function_of<1>(build.desc(v).type, fn::Scale{factor}));
}
inline AdjointValue converted(AdjointBuilder& build, AdjointValue v, DType type) {
  const TensorDesc x = build.desc(v);
  if (x.type == type) return v;
  const Term letters = letters_of(x);
  return mapped(build, {{letters}, letters}, {v}, type, x.sharding, conversion(x.type, type));
}

/// Runs f on tensors of equal extents and shardings; the result has the same, and elements `type`.
inline TensorCore applied(const std::shared_ptr<const OwnedFunction>& f,
                          const OperandList& operands, DType type, CallSite site) {
  const TensorCore& first = *operands[0];
  Terms terms;
  terms.result = letters_of(first.desc());
  for (int k = 0; k < operands.size(); ++k) terms.operands.push_back(terms.result);
  const ops::Map map{terms, type, Linearity::linear, first.sharding()};
  return run({map, operands, site, {.kernel = f->kernel()}});
}
/// Returns x's elements in memory of their own.
inline TensorCore copied(const TensorCore& x, CallSite site) {
  return applied(conversion(x.type(), x.type()), {&x}, x.type(), site);
}
/// Returns x's elements as another type.
inline TensorCore converted(const TensorCore& x, DType type, CallSite site) {
  return x.type() == type ? x : applied(conversion(x.type(), type), {&x}, type, site);
}
/// Makes a tensor of equal elements.
inline TensorCore filled(const std::shared_ptr<MeshCore>& mesh, const TensorDesc& desc,
                         double value, CallSite site) {
  return with_gradient_type(desc.type, [&](auto zero) {
    const auto element = from_double<decltype(zero)>(value);
    return create(mesh, desc, FillRunner<decltype(zero)>::kernel(element), site);
  });
}
/// A tensor of elements T, of which element i is f(i).
template <class T, class F>
AdjointValue from_index(AdjointBuilder& build, const TensorDesc& desc, const F& f) {
  return build.add(ops::Create{desc}, {},
                   std::make_shared<const OwnedFunction>(IndexFunctionRunner<T, F>::kernel(f)));
}
/// A tensor of zeros.
inline AdjointValue no_gradient(AdjointBuilder& build, const TensorDesc& desc) {
  return build.add(
      ops::Create{desc}, {}, with_gradient_type(desc.type, [](auto zero) {
        return std::make_shared<const OwnedFunction>(FillRunner<decltype(zero)>::kernel(zero));
      }));
}

/// v with letters `from`, repeated to a tensor `to` with letters `letters`: what these have beside,
/// and dimensions that had extent 1.
inline AdjointValue repeated(AdjointBuilder& build, AdjointValue v, const Term& from,
                             const Term& letters, const TensorDesc& to) {
  const TensorDesc x = build.desc(v);
  if (from == letters && x.extents == to.extents) return build.reshard(v, to.sharding);
  Dimensions dims;
  for (char letter : from) dims.push_back(letters.find(letter));
  return build.add(ops::Broadcast{dims, to.extents, to.sharding}, {v});
}
/// v with letters `from`, summed to a tensor `to` with letters `letters`: over what these have not,
/// and over what `to` has once. `operand`: the one whose gradient it is, so that the sum may be
/// left unfinished as that may; -1: it is finished.
inline AdjointValue summed(AdjointBuilder& build, AdjointValue v, const Term& from,
                           const Term& letters, const TensorDesc& to, int operand = -1) {
  const TensorDesc x = build.desc(v);
  Terms terms{{from}, {}};
  Sharding out;
  for (int d = 0; d < letters.size(); ++d) {
    const int at = from.find(letters[d]);
    if (at < 0 || x.extents[at] != to.extents[d]) continue;
    terms.result.push_back(letters[d]);
    out.dims.push_back(to.sharding[d]);
  }
  if (terms.result == from) return build.reshard(v, to.sharding);
  const bool whole = terms.result == letters;
  const ops::Reduce sum{terms, Reduction::sum, false, false, x.type, whole ? to.sharding : out};
  if (whole && operand >= 0) return build.add_open(operand, sum, {v});
  v = build.add(sum, {v});
  return whole ? v : build.add(ops::Reshape{to.extents, to.sharding}, {v});
}

}  // namespace tessera::detail
