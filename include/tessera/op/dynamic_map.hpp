// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Elementwise operators on tensors whose sharding is known when the program runs: any functor, by
/// letters, on elements of a type that the call names. Named functions use the tensors' own type
/// (op/named_function.hpp).
///
///     DynamicTensor y = map_dynamic<float>("ij,j->ij", fn::Add{}, Sharding{{0}, {}}, x, bias);
///
/// Laws: each is what map<E> returns for the same elements and shardings.
#include <concepts>

#include <tessera/op/map.hpp>

namespace tessera {
namespace detail {
/// For tensors of elements T..., one type for each, which the caller has checked.
template <class... T, class F, class... A>
DynamicTensor map_mixed(std::string_view equation, const F& f, const Sharding& out, CallSite site,
                        const A&... x) {
  using R = std::remove_cvref_t<decltype(f(T{}...))>;
  use_element<R>();
  const ops::Map operation{parse(equation), dtype_of<R>, linearity<F, T...>, out};
  return DynamicTensor(
      run({operation, {&x.core()...}, site, {.kernel = MapRunner<R, F, T...>::kernel(f)}}));
}
/// Throws UsageError unless all operands have elements T: a kernel would read them as such.
template <class T> void require_elements_of(const OperandList& operands, CallSite site) {
  for (int i = 0; i < operands.size(); ++i)
    if (const DType type = operands[i]->type(); type != dtype_of<T>)
      throw UsageError(std::string(site.label) + ": operand " + std::to_string(i + 1) + " is of " +
                           std::string(name_of(type)) + " and the function is called on " +
                           std::string(name_of(dtype_of<T>)) +
                           "; name the operands' own element type",
                       site.where);
}
template <class T, class F, class... A>
DynamicTensor map_dynamic(std::string_view equation, const F& f, const Sharding& out, CallSite site,
                          const A&... x) {
  require_elements_of<T>({&x.core()...}, site);
  return map_mixed<std::conditional_t<true, T, A>...>(equation, f, out, site, x...);
}
}  // namespace detail

/// Returns f(x...) elementwise, by letters, of tensors of element type T. Throws UsageError when an
/// operand has other elements; with a contract, ContractError when no plan keeps it. Communication:
/// as map. Collective over the mesh.
template <class T, class F, std::same_as<DynamicTensor>... A>
DynamicTensor map_dynamic(const detail::PlacedText& equation, const F& f, const Sharding& out,
                          const A&... x) {
  return detail::map_dynamic<T>(equation.text, f, out, {detail::function_name<F>(), equation.where},
                                x...);
}
template <class T, class F, std::same_as<DynamicTensor>... A>
DynamicTensor map_dynamic(const Contract& contract, const detail::PlacedText& equation, const F& f,
                          const Sharding& out, const A&... x) {
  return detail::map_dynamic<T>(equation.text, f, out,
                                {detail::function_name<F>(), equation.where, contract}, x...);
}

}  // namespace tessera
