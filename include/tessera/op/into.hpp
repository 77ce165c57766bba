// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Operators that write into a tensor that is there already, so that a loop makes none. With
/// dynamic tensors every call with one result can do so, by CallOptions::into
/// (op/call/call_options.hpp).
///
///     einsum_into<"ik,kj->ij">(c, a, b);               // c = a b
///     einsum_into<"ik,kj->ij">(c, a, b, 2.0f, 1.0f);   // c = 2 a b + c
///     into(y, [&] { return cumsum<"ij", 'j'>(x); });   // any operators: the last one writes y
///     reshard_into(replica, x);   reduce_into<Sum, "ij->i">(rows, x);   map_into(y, fn::Exp{}, x);
///
/// Laws: the destination gets what the operator of the same name returns, under the destination's
/// own spec; its memory stays where it is; a destination that shares memory with an operand is
/// refused, but that map_into may read the destination itself: map_into(y, fn::Add{}, y, x). Each
/// throws UsageError where its destination shares memory with an operand, ShapeError where it has
/// other extents than the result.
#include <string>
#include <type_traits>
#include <utility>

#include <tessera/kernel/functions/arithmetic.hpp>
#include <tessera/op/call/scalar.hpp>
#include <tessera/op/elements/dynamic_map.hpp>
#include <tessera/op/product/einsum.hpp>
#include <tessera/op/reduce.hpp>
#include <tessera/op/reshard.hpp>
#include <tessera/op/shape/transpose.hpp>
#include <tessera/run/into_last.hpp>

namespace tessera {
namespace detail {
/// Returns the extras of a map, which may read its destination too.
inline Extras into(const TensorCore& destination, const OperandList& operands) {
  Extras extras = into(destination);
  for (const TensorCore* operand : operands)
    if (operand->storage() == destination.storage()) extras.destination = Destination::accumulated;
  return extras;
}

/// alpha times a product, plus beta times what it is added to; elements T are computed in C. As
/// BLAS: with alpha 0 the product does not matter, whatever it is.
template <class T, class C = ComputeType<T>> struct AddScaled {
  C alpha;
  C beta;
  template <class U> KOKKOS_FUNCTION U operator()(U product) const {
    return static_cast<U>(scaled(product));
  }
  template <class U> KOKKOS_FUNCTION U operator()(U product, U old) const {
    const C kept = fn::Multiply{}(beta, static_cast<C>(old));
    return static_cast<U>(alpha == C{} ? kept : fn::Add{}(scaled(product), kept));
  }

 private:
  template <class U> KOKKOS_FORCEINLINE_FUNCTION C scaled(U product) const {
    return alpha == C{} ? C{} : fn::Multiply{}(alpha, static_cast<C>(product));
  }
};

template <class T>
void accumulate(const Terms& terms, const TensorCore& c, const TensorCore& a, const TensorCore& b,
                T alpha, T beta, CallSite site) {
  const AddScaled<T> add{static_cast<ComputeType<T>>(alpha), static_cast<ComputeType<T>>(beta)};
  if (beta == T{}) {  // as BLAS: what c holds is not read, NaN or not
    Extras extras = into(c);
    if (!(alpha == T{1})) extras.kernel = EpilogueRunner<T, AddScaled<T>, T>::kernel(add);
    (void)einsum(terms, a, b, c.sharding(), site, extras, {}, dtype_of<T>);
    return;
  }
  Extras extras = changing(c);
  extras.kernel = EpilogueRunner<T, AddScaled<T>, T, T>::kernel(add);
  (void)einsum(terms, a, b, c.sharding(), site, extras, OperandList{&c}, dtype_of<T>);
}

/// A map of operands of elements T....
template <class... T, class F>
void map_into(NamedElements<T...>, const PlacedText& equation, const TensorCore& y, const F& f,
              const OperandList& operands) {
  using R = std::remove_cvref_t<decltype(f(T{}...))>;
  const CallSite site{function_name<F>(), equation.where};
  use_element<R>();
  require_elements_of<T...>(operands, site);
  Extras extras = into(y, operands);
  extras.kernel = MapRunner<R, F, T...>::kernel(f);
  const ops::Map operation{parse(equation.text), dtype_of<R>, linearity<F, T...>, y.sharding()};
  (void)run({operation, operands, site, extras});
}

template <class Call, class C> consteval bool demand_type() {
  static_assert(!Call::sound || std::is_same_v<typename Call::type, typename C::value_type>,
                "[tessera] the destination holds another element type than the result; give a "
                "tensor of the result's element type");
  return true;
}
}  // namespace detail

/// Writes the result of f() to y, whose memory stays where it is: the last operator that f calls
/// makes it there, and the others make tensors of their own. f gives tensors to operators and
/// returns the last one's result, and does not look at their elements, as in async. Communication,
/// collective over: as f's operators. Throws, before y is written, ShapeError when y has other
/// extents than the result, UsageError when y shares memory with an operand of the last operator
/// (but of a map), when that returns several tensors or has a destination of its own, or when f
/// returns another tensor than it made.
template <TypedTensor Y, class F> void into(Y& y, F&& f, Where where = Where::here()) {
  using Result = std::decay_t<std::invoke_result_t<F&>>;
  static_assert(std::is_same_v<Result, TensorOf<Y>>,
                "[tessera] the function given to into returns another type of tensor than the "
                "destination's; name the destination's spec in the call, or give a tensor of the "
                "result's type");
  if constexpr (std::is_same_v<Result, TensorOf<Y>>) {
    detail::write_last(y.core(), where, [&] { return f().core(); });
  }
}

/// Writes the product of a and b to c, under c's own spec. Communication: as einsum with that spec.
/// Collective over the mesh. Throws ShapeError when extents disagree, UsageError when c shares
/// memory with an operand.
template <Equation E, class Bound = NoContract, TypedTensor C, TypedTensor A, TypedTensor B>
void einsum_into(C& c, const A& a, const B& b, Where where = Where::here()) {
  using Typed = detail::TypedEinsum<E, typename C::spec, A, B>;
  static_assert(detail::demand_type<Typed, C>());
  (void)detail::run({Typed::operation,
                     {&a.core(), &b.core()},
                     {E.view(), where, detail::bound<Typed, Bound>()},
                     detail::into(c.core())});
}
/// Writes alpha * a * b + beta * c to c; with beta 0 what c held does not matter, and with alpha 0
/// neither do the elements of a and b. Throws UsageError when a number is no element of c's type.
template <Equation E, class Bound = NoContract, TypedTensor C, TypedTensor A, TypedTensor B>
void einsum_into(C& c, const A& a, const B& b, detail::GivenElement<typename C::value_type> alpha,
                 detail::GivenElement<typename C::value_type> beta, Where where = Where::here()) {
  using Typed = detail::TypedEinsum<E, typename C::spec, A, B>;
  static_assert(detail::demand_type<Typed, C>());
  const detail::CallSite site{E.view(), where, detail::bound<Typed, Bound>()};
  detail::accumulate(Typed::operation.terms, c.core(), a.core(), b.core(), alpha.at(site),
                     beta.at(site), site);
}

/// Writes x to y, under y's spec. Communication: as reshard. Collective over the mesh.
template <class Bound = NoContract, TypedTensor Y, TypedTensor X>
void reshard_into(Y& y, const X& x, Where where = Where::here()) {
  using Typed = detail::TypedReshard<typename Y::spec, X>;
  static_assert(!Typed::sound || std::is_same_v<typename Typed::result, TensorOf<Y>>,
                "[tessera] the destination of a reshard has another element type or mesh than "
                "what is resharded; give a tensor of the same");
  (void)detail::run({Typed::operation,
                     {&x.core()},
                     {"reshard", where, detail::bound<Typed, Bound>()},
                     detail::into(y.core())});
}

namespace detail {
/// The destination names the element type of a sum or product of integers.
template <class Kind, class T, bool = KindType<Kind>::of(DType::i8) != DType::i8> struct NamedBy {
  using type = Kind;
};
template <class Kind, class T> struct NamedBy<Kind, T, true> { using type = As<Kind, T>; };
}  // namespace detail

/// Writes the reduction of x to y, under y's spec; sums and products of integers have y's element
/// type, x's own, int64 or uint64; those of bool one of the latter two. Communication: as reduce.
/// Collective over the mesh.
template <class Kind, Equation E, class Bound = NoContract, TypedTensor Y, TypedTensor X>
void reduce_into(Y& y, const X& x, Where where = Where::here()) {
  using Named =
      std::conditional_t<std::is_integral_v<typename X::value_type> &&
                             IntegerElement<typename Y::value_type>,
                         typename detail::NamedBy<Kind, typename Y::value_type>::type, Kind>;
  using Typed = detail::TypedReduce<Named, E, typename Y::spec, X>;
  static_assert(!Typed::sound || std::is_same_v<typename Typed::result, TensorOf<Y>>,
                "[tessera] the destination of a reduction has another element type, mesh or number "
                "of dimensions than its result; give a tensor of the result's type");
  (void)detail::run_reduce<Named, Typed>(x, {E.view(), where, detail::bound<Typed, Bound>()},
                                         detail::into(y.core()));
}

/// Writes x with its dimensions reordered to y, under y's spec. Collective over the mesh.
/// Communication: as transpose.
template <Equation E, class Bound = NoContract, TypedTensor Y, TypedTensor X>
void transpose_into(Y& y, const X& x, Where where = Where::here()) {
  using Typed = detail::TypedTranspose<E, typename Y::spec, X>;
  static_assert(!Typed::sound || std::is_same_v<typename Typed::result, TensorOf<Y>>,
                "[tessera] the destination of a transpose has another element type or mesh than "
                "what is transposed; give a tensor of the same");
  (void)detail::run({Typed::operation,
                     {&x.core()},
                     {E.view(), where, detail::bound<Typed, Bound>()},
                     detail::into(y.core())});
}

/// Writes f(x...) to y elementwise, dimensions lined up from the right, under y's spec. An operand
/// may be y itself. The place of the call, which cannot follow a pack, may go first: at().
/// Communication: as map. Collective over the mesh.
template <class Bound = NoContract, TypedTensor Y, class F, TypedTensor... X>
  requires(sizeof...(X) >= 1)
void map_into(const At& at, Y& y, const F& f, const X&... x) {
  using Typed = detail::TypedMap<detail::FromTheRight, typename Y::spec, F, detail::Elements, X...>;
  static_assert(!Typed::sound || std::is_same_v<typename Typed::result, TensorOf<Y>>,
                "[tessera] the destination of a map has another element type, mesh or number of "
                "dimensions than its result; give a tensor of the result's type");
  const detail::OperandList operands{&x.core()...};
  detail::Extras extras = detail::into(y.core(), operands);
  if constexpr (Typed::by::function::callable)
    extras.kernel =
        detail::MapRunner<typename Y::value_type, F, typename X::value_type...>::kernel(f);
  (void)detail::run({Typed::operation,
                     operands,
                     {detail::function_name<F>(), at.where, detail::bound<Typed, Bound>()},
                     extras});
}
template <class Bound = NoContract, TypedTensor Y, class F, TypedTensor... X>
  requires(sizeof...(X) >= 1)
void map_into(Y& y, const F& f, const X&... x) { map_into<Bound>(At{}, y, f, x...); }

/// This overload takes everything at run time.
inline void einsum_into(std::string_view equation, const DynamicTensor& c, const DynamicTensor& a,
                        const DynamicTensor& b, const CallOptions& call = Where::here()) {
  (void)detail::einsum(parse(equation), a.core(), b.core(), c.sharding(), call.site(equation),
                       detail::into(c.core()));
}
/// alpha * a * b + beta * c; T, or alpha's type where the call names none, is the tensors' element
/// type.
template <class T = void, Scalar S, Scalar R>
  requires Element<detail::NamedOrOwn<T, S>>
void einsum_into(std::string_view equation, const DynamicTensor& c, const DynamicTensor& a,
                 const DynamicTensor& b, S alpha, R beta, const CallOptions& call = Where::here()) {
  using E = detail::NamedOrOwn<T, S>;
  const detail::CallSite site = call.site(equation);
  detail::require_elements_of<E>({&c.core(), &a.core(), &b.core()}, site);
  detail::accumulate(parse(equation), c.core(), a.core(), b.core(),
                     detail::scalar_as<E>(alpha, site), detail::scalar_as<E>(beta, site), site);
}
template <class Kind>
void reduce_into(std::string_view equation, const DynamicTensor& y, const DynamicTensor& x,
                 const CallOptions& call = Where::here()) {
  ops::Reduce operation = detail::reduction_of<Kind>(parse(equation), {x.core().desc()});
  if (detail::KindType<Kind>::of(DType::i8) != DType::i8 &&
      (tessera::is_integer(x.type()) || is_boolean(x.type())))
    operation.type = y.type();  // which names that of a sum of integers
  operation.out = y.sharding();
  (void)detail::run({operation, {&x.core()}, call.site(equation), detail::into(y.core())});
}
/// Operands and y are of element types T... and what f returns, as in map_dynamic.
template <class... T, class F, std::same_as<DynamicTensor>... X>
  requires(sizeof...(T) > 0 && sizeof...(X) > 0)
void map_into(const detail::PlacedText& equation, const DynamicTensor& y, const F& f,
              const X&... x) {
  using Elements = typename detail::NamedElements<T...>::template For<X...>::type;
  if constexpr (sizeof...(T) == 1 || sizeof...(T) == sizeof...(X))  // else it has been said
    detail::map_into(Elements{}, equation, y.core(), f, {&x.core()...});
}
inline void transpose_into(std::string_view equation, const DynamicTensor& y,
                           const DynamicTensor& x, const CallOptions& call = Where::here()) {
  const ops::Transpose operation{parse(equation), y.sharding()};
  (void)detail::run({operation, {&x.core()}, call.site(equation), detail::into(y.core())});
}
inline void reshard_into(const DynamicTensor& y, const DynamicTensor& x,
                         const CallOptions& call = Where::here()) {
  (void)detail::reshard(x.core(), y.sharding(), call.site("reshard"), detail::into(y.core()));
}

}  // namespace tessera
