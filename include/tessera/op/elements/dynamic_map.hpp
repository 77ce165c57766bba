// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Elementwise operators on tensors whose sharding is known when the program runs: any functor, by
/// letters, on elements of types that the call names. Named functions use the tensors' own type
/// (op/elements/named_function.hpp).
///
///     DynamicTensor y = map_dynamic<float>("ij,j->ij", fn::Add{}, Sharding{{0}, {}}, x, bias);
///     DynamicTensor z = map_dynamic<bool, float, float>("ij,ij,j->ij", fn::Select{}, Sharding{{0}, {}}, x > 0.5f, x, bias);
///
/// Laws: each is what map<E> returns for the same elements and shardings.
#include <concepts>

#include <tessera/op/elements/map.hpp>

namespace tessera {
namespace detail {
/// For tensors of elements T..., one type for each, which the caller has checked.
template <class... T, class F, class... A>
DynamicTensor map_mixed(std::string_view equation, const F& f, const Sharding& out, CallSite site,
                        const A&... x) {
  using R = std::remove_cvref_t<decltype(f(T{}...))>;
  use_element<R>();
  const ops::Map operation{parse(equation), dtype_of<R>, linearity<F, T...>, out, false};
  return DynamicTensor(
      run({operation, {&x.core()...}, site, {.kernel = MapRunner<R, F, T...>::kernel(f)}}));
}
/// Throws UsageError unless the operands have elements T..., one type for each or one for all: a
/// kernel would read them as such.
template <class... T> void require_elements_of(const OperandList& operands, CallSite site) {
  constexpr DType wanted[] = {dtype_of<T>...};
  for (int i = 0; i < operands.size(); ++i)
    if (const DType type = operands[i]->type(), called = wanted[sizeof...(T) == 1 ? 0 : i];
        type != called)
      throw UsageError(std::string(site.label) + ": operand " + std::to_string(i + 1) + " is of " +
                           std::string(name_of(type)) + " and the function is called on " +
                           std::string(name_of(called)) + "; name the operands' own element types",
                       site.where);
}

/// The element types of operands A..., of which a call names one for each, or one for all.
template <class... T> struct NamedElements {
  template <class A, class... B> struct For {
    static_assert(sizeof...(T) == 1 + sizeof...(B),
                  "[tessera] a map on dynamic tensors names another number of element types than "
                  "it has operands; name one for each, or one for all");
    using type = NamedElements;
  };
};
template <class T> struct NamedElements<T> {
  template <class... A> struct For {
    using type = NamedElements<std::conditional_t<true, T, A>...>;
  };
};

template <class... T, class F, class... A>
DynamicTensor map_dynamic(NamedElements<T...>, std::string_view equation, const F& f,
                          const Sharding& out, CallSite site, const A&... x) {
  if constexpr (sizeof...(T) == sizeof...(A)) {
    require_elements_of<T...>({&x.core()...}, site);
    return map_mixed<T...>(equation, f, out, site, x...);
  } else {
    return {};  // it has been said
  }
}
template <class... T, class F, class... A>
DynamicTensor map_dynamic(std::string_view equation, const F& f, const Sharding& out, CallSite site,
                          const A&... x) {
  return map_dynamic(typename NamedElements<T...>::template For<A...>::type{}, equation, f, out,
                     site, x...);
}
}  // namespace detail

/// Returns f(x...) elementwise, by letters, of tensors of element types T..., one for each or one
/// for all. Throws UsageError when an operand has other elements; with a contract, ContractError
/// when no plan keeps it. Communication: as map. Collective over the mesh.
template <class... T, class F, std::same_as<DynamicTensor>... A>
  requires(sizeof...(T) > 0 && sizeof...(A) > 0)
DynamicTensor map_dynamic(const detail::PlacedText& equation, const F& f, const Sharding& out,
                          const A&... x) {
  return detail::map_dynamic<T...>(equation.text, f, out,
                                   {detail::function_name<F>(), equation.where}, x...);
}
template <class... T, class F, std::same_as<DynamicTensor>... A>
  requires(sizeof...(T) > 0 && sizeof...(A) > 0)
DynamicTensor map_dynamic(const Contract& contract, const detail::PlacedText& equation, const F& f,
                          const Sharding& out, const A&... x) {
  return detail::map_dynamic<T...>(equation.text, f, out,
                                   {detail::function_name<F>(), equation.where, contract}, x...);
}

}  // namespace tessera
