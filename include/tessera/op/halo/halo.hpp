// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Halo exchange for stencil codes: each process gets its block of a tensor with the elements
/// around it that its stencils read. op/halo/halo_tensor.hpp shows its use.
///
///     auto u = halo_exchange<0, 1>(x, 1, 1, Boundary::periodic);      // low, high: all dimensions
///     auto v = halo_exchange<0, 1>(x, {1, 2}, {0, 1}, {Boundary::none, Boundary::reflected});
///     auto w = halo_exchange<0>(x, 1, 1, Boundary::constant, 2.5f);   // 2.5 outside the tensor
///     auto g = halo_adjoint(v);                                       // a tensor like x
///     auto pending = halo_exchange_async<0, 1>(x, 1, 1, Boundary::periodic);
///     auto [a, b] = halo_exchange_together<0>(1, 1, Boundary::none, x, y);    // the same messages
///
/// Widths may exceed blocks: elements then come from several processes away. With Boundary::none
/// there is nothing outside the tensor, and blocks at its rim are extended less.
///
/// Laws: element i of u.global() is element i of the tensor, or the one that the boundary says;
/// <halo_exchange(x), y> == <x, halo_adjoint(y)> (with constants outside as 0).
#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <tessera/op/async.hpp>
#include <tessera/op/call/result.hpp>
#include <tessera/op/call/scalar.hpp>
#include <tessera/op/halo/halo_tensor.hpp>
#include <tessera/op/to_host.hpp>
#include <tessera/plan/check/shape_verdict.hpp>

namespace tessera {

/// A value for each of N dimensions, or one for all.
template <class T, std::size_t N> struct ForEach {
  std::array<T, N> values{};
  constexpr ForEach(T value) { values.fill(value); }  // NOLINT: 1 is a width
  constexpr ForEach(std::initializer_list<T> list) : given(list.size()) {
    std::size_t i = 0;
    for (const T& value : list)
      if (i < N) values[i++] = value;
  }
  std::size_t given = N;
};

namespace detail {
/// How a halo exchange of A along D... is made, with widths that stand for all.
template <TypedTensor A, int... D> struct HaloBy {
  static constexpr Dimensions dims{D...};
  static consteval bool said() {
    constexpr Rule broken = check_dimensions(dims, A::rank).rule;
    static_assert(!dims.empty() && broken != Rule::dimension_known,
                  "[tessera] halo_exchange names a dimension that its tensor does not have, or "
                  "none; dimensions count from 0; name at least one of the tensor's");
    static_assert(
        broken != Rule::dimension_once,
        "[tessera] halo_exchange names a dimension twice; give both its widths at one place");
    return true;
  }
  static_assert(said());
  using Widths = ForEach<Index, sizeof...(D)>;
  using Boundaries = ForEach<Boundary, sizeof...(D)>;

  static constexpr ops::HaloExchange make(const TensorDescs&) {
    return {{halo(1, 1, Boundary::periodic)}};
  }
  /// Throws UsageError for another number of widths than dimensions.
  static constexpr Halo halo(const Widths& low, const Widths& high, const Boundaries& boundary,
                             Where where = {}) {
    const std::size_t all[] = {low.given, high.given, boundary.given};  // spelled out for nvcc
    for (const std::size_t given : all)
      if (given != sizeof...(D))
        throw UsageError("halo_exchange names " + std::to_string(dims.size()) +
                             " dimensions and is given " + std::to_string(given) +
                             " widths (or boundaries); give one for all, or one for each",
                         where);
    Halo result(A::rank, HaloDim{});
    for (int i = 0; i < dims.size(); ++i)
      if (dims[i] >= 0 && dims[i] < A::rank)  // else it has been reported
        result[dims[i]] = {low.values[i], high.values[i], boundary.values[i]};
    return result;
  }
};

inline void require_group(std::size_t tensors, CallSite site) {
  if (tensors == 0 || tensors > static_cast<std::size_t>(max_operands))
    throw UsageError(std::string(site.label) + " takes 1 to " + std::to_string(max_operands) +
                         " tensors and is given " + std::to_string(tensors) +
                         "; make several exchanges of the others",
                     site.where);
}

/// Returns a call that was started, to wait for.
inline std::unique_ptr<UnderWay> alone(std::unique_ptr<Started> started) {
  auto calls = std::make_unique<UnderWay>();
  calls->add(std::move(started));
  return calls;
}
}  // namespace detail

/// A halo exchange that was started, whose result is an H. End it by wait(); else its destructor
/// waits.
template <class H> class [[nodiscard]] PendingHalo : public Pending<H> {
 public:
  PendingHalo(std::unique_ptr<detail::Started> started, const Halo& halo)
      : PendingHalo(H(started->begun(), halo), started) {}
  /// Returns the result as it is so far: the process's own elements are there, the halo is not.
  const H& begun() const { return this->result_; }

 private:
  PendingHalo(H begun, std::unique_ptr<detail::Started>& started)
      : Pending<H>(detail::alone(std::move(started)), std::move(begun)) {}
};

/// Returns x, (n, m, ...), with a halo along dimensions D...: each process has its block with `low`
/// elements before it and `high` behind it along each of them; `outside` lies beyond a constant
/// boundary. Communication: one exchange between neighbours, or one for each of these dimensions
/// that is split, whichever costs less, within the contract `Bound`. Collective over the mesh.
/// Throws ShapeError for a negative width, or a mirror image that is wider than the tensor,
/// UsageError when `outside` is no element of x's type.
template <class Bound, int... D, TypedTensor A>
HaloTensor<TensorOf<A>> halo_exchange(const A& x, typename detail::HaloBy<A, D...>::Widths low,
                                      typename detail::HaloBy<A, D...>::Widths high,
                                      typename detail::HaloBy<A, D...>::Boundaries boundary,
                                      detail::GivenElement<typename A::value_type> outside = {},
                                      Where where = Where::here()) {
  using Typed = detail::Typed<detail::HaloBy<A, D...>, Deduced, A>;
  const Halo halo = detail::HaloBy<A, D...>::halo(low, high, boundary, where);
  const detail::CallSite site{"halo_exchange", where, detail::bound<Typed, Bound>()};
  const typename A::value_type beyond = outside.at(site);
  return {detail::halo_exchange(detail::OperandList{&x.core()}, halo, &beyond, site), halo};
}
template <int... D, TypedTensor A>
HaloTensor<TensorOf<A>> halo_exchange(const A& x, typename detail::HaloBy<A, D...>::Widths low,
                                      typename detail::HaloBy<A, D...>::Widths high,
                                      typename detail::HaloBy<A, D...>::Boundaries boundary,
                                      detail::GivenElement<typename A::value_type> outside = {},
                                      Where where = Where::here()) {
  return halo_exchange<NoContract, D...>(x, low, high, boundary, outside, where);
}
/// With one HaloDim for each dimension; zero beyond constant boundaries, or `outside`. `call`: a
/// Contract.
inline DynamicHaloTensor halo_exchange(const DynamicTensor& x, const Halo& halo,
                                       const CallOptions& call = Where::here()) {
  return {detail::halo_exchange({&x.core()}, halo, nullptr, call.fresh_site("halo_exchange")),
          halo};
}
template <class T = void, Scalar S>
  requires Element<detail::NamedOrOwn<T, S>> DynamicHaloTensor
  halo_exchange(const DynamicTensor& x, const Halo& halo, S outside,
                const CallOptions& call = Where::here()) {
    using E = detail::NamedOrOwn<T, S>;
    const detail::CallSite site = call.fresh_site("halo_exchange");
    detail::require_type<E>(x, site);
    const E beyond = detail::scalar_as<E>(outside, site);
    return {detail::halo_exchange({&x.core()}, halo, &beyond, site), halo};
  }

/// Starts halo_exchange: the process's own elements are copied at once. Communication: as
/// halo_exchange. Collective over the mesh: all processes start and run their operators in the same
/// order. Errors: as halo_exchange.
template <class Bound, int... D, TypedTensor A>
PendingHalo<HaloTensor<TensorOf<A>>> halo_exchange_async(
    const A& x, typename detail::HaloBy<A, D...>::Widths low,
    typename detail::HaloBy<A, D...>::Widths high,
    typename detail::HaloBy<A, D...>::Boundaries boundary,
    detail::GivenElement<typename A::value_type> outside = {}, Where where = Where::here()) {
  using Typed = detail::Typed<detail::HaloBy<A, D...>, Deduced, A>;
  const Halo halo = detail::HaloBy<A, D...>::halo(low, high, boundary, where);
  const detail::CallSite site{"halo_exchange", where, detail::bound<Typed, Bound>()};
  const typename A::value_type beyond = outside.at(site);
  auto started = std::make_unique<detail::Started>();
  (void)detail::halo_exchange(detail::OperandList{&x.core()}, halo, &beyond, site,
                              {.started = started.get()});
  return {std::move(started), halo};
}
template <int... D, TypedTensor A>
PendingHalo<HaloTensor<TensorOf<A>>> halo_exchange_async(
    const A& x, typename detail::HaloBy<A, D...>::Widths low,
    typename detail::HaloBy<A, D...>::Widths high,
    typename detail::HaloBy<A, D...>::Boundaries boundary,
    detail::GivenElement<typename A::value_type> outside = {}, Where where = Where::here()) {
  return halo_exchange_async<NoContract, D...>(x, low, high, boundary, outside, where);
}
inline PendingHalo<DynamicHaloTensor> halo_exchange_async(const DynamicTensor& x, const Halo& halo,
                                                          const CallOptions& call = Where::here()) {
  auto started = std::make_unique<detail::Started>();
  (void)detail::halo_exchange({&x.core()}, halo, nullptr, call.fresh_site("halo_exchange"),
                              {.started = started.get()});
  return {std::move(started), halo};
}

/// Returns the tensors x..., of one element type and each of its own shape, each with such a halo,
/// all by the exchanges that one of them needs. At most eight. Communication, collective over,
/// errors: as halo_exchange.
template <int... D, TypedTensor First, TypedTensor... Rest>
std::tuple<HaloTensor<TensorOf<First>>, HaloTensor<TensorOf<Rest>>...> halo_exchange_together(
    typename detail::HaloBy<First, D...>::Widths low,
    typename detail::HaloBy<First, D...>::Widths high,
    typename detail::HaloBy<First, D...>::Boundaries boundary, const First& first,
    const Rest&... rest) {
  static_assert(
      ((First::rank == Rest::rank) && ...) && sizeof...(Rest) < max_operands,
      "[tessera] tensors that share a halo exchange have one element type, one mesh and as many "
      "dimensions, and are eight at most; exchange the others on their own");
  // A group takes no contract; on a Strict mesh it compiles where it does not communicate.
  using Typed = detail::Typed<detail::HaloBy<First, D...>, Deduced, First, Rest...>;
  (void)detail::bound<Typed, NoContract>();
  const Halo halo = detail::HaloBy<First, D...>::halo(low, high, boundary, {});
  const typename First::value_type outside{};
  std::vector<TensorCore> cores;
  TensorCore made = detail::halo_exchange({&first.core(), &rest.core()...}, halo, &outside,
                                          {"halo_exchange_together", {}}, {.also = &cores});
  std::size_t next = 0;
  return {HaloTensor<TensorOf<First>>(std::move(made), halo),
          HaloTensor<TensorOf<Rest>>(cores[next++], halo)...};
}
inline std::vector<DynamicHaloTensor> halo_exchange_together(
    const std::vector<DynamicTensor>& tensors, const Halo& halo,
    const CallOptions& call = Where::here()) {
  const detail::CallSite site = call.fresh_site("halo_exchange_together");
  detail::require_group(tensors.size(), site);
  detail::OperandList operands;
  for (const DynamicTensor& tensor : tensors) operands.push_back(&tensor.core());
  std::vector<TensorCore> cores;
  std::vector<DynamicHaloTensor> results;
  results.emplace_back(detail::halo_exchange(operands, halo, nullptr, site, {.also = &cores}),
                       halo);
  for (TensorCore& core : cores) results.emplace_back(std::move(core), halo);
  return results;
}

/// Exchanges the halos of tensors that are stored with them, at most eight of one element type and
/// mesh, each with its own widths: one message for each neighbour. Communication, collective over,
/// errors: as exchange() of one.
template <class... H>
  requires(sizeof...(H) > 0 && (std::is_base_of_v<DynamicHaloTensor, H> && ...))
void exchange_together(const H&... tensors) {
  detail::exchange({&tensors.block()...}, {"exchange_together", {}});
}
inline void exchange_together(const std::vector<DynamicHaloTensor>& tensors,
                              const CallOptions& call = Where::here()) {
  const detail::CallSite site = call.fresh_site("exchange_together");
  detail::require_group(tensors.size(), site);
  FixedVector<const detail::HaloBlock*, max_operands> blocks;
  for (const DynamicHaloTensor& tensor : tensors) blocks.push_back(&tensor.block());
  detail::exchange(blocks, site);
}

/// The adjoint of halo_exchange: returns a tensor, each element of which is the sum of its values
/// at all its places in the extended blocks of y. Places outside that are no element's image are
/// dropped. Communication: as halo_exchange, the other way round; `call` may be a Contract.
/// Collective over the mesh. Throws nothing of its own.
template <TypedTensor A>
A halo_adjoint(const HaloTensor<A>& y, const CallOptions& call = Where::here()) {
  static_assert(is_number(dtype_of<typename A::value_type>),
                "[tessera] truth values have no sums, so that a halo of them has no adjoint; cast "
                "to a number first");
  if constexpr (is_number(dtype_of<typename A::value_type>))
    detail::use_accumulate<typename A::value_type>();
  return A(detail::halo_adjoint(y.block(), call.site("halo_adjoint")));
}
/// For elements whose kernels use_accumulate<T>() has compiled.
inline DynamicTensor halo_adjoint(const DynamicHaloTensor& y,
                                  const CallOptions& call = Where::here()) {
  return DynamicTensor(detail::halo_adjoint(y.block(), call.site("halo_adjoint")));
}

/// Returns a halo tensor of the given extents, with `value` for every element and outside the
/// tensor. Communication: none. Throws ShapeError for a negative width, UsageError when `value` is
/// no element of the type.
template <TypedTensor A, int... D>
HaloTensor<A> make_halo(const ProcessMesh<typename A::mesh_type>& mesh, const Extents& extents,
                        typename detail::HaloBy<A, D...>::Widths low,
                        typename detail::HaloBy<A, D...>::Widths high,
                        typename detail::HaloBy<A, D...>::Boundaries boundary,
                        detail::GivenElement<typename A::value_type> value = {},
                        Where where = Where::here()) {
  const Halo halo = detail::HaloBy<A, D...>::halo(low, high, boundary, where);
  const TensorDesc desc{dtype_of<typename A::value_type>, extents, detail::made_sharding<A>()};
  const detail::CallSite site{"make_halo", where};
  const typename A::value_type element = value.at(site);
  detail::use_tensor_of<typename A::value_type>();
  HaloTensor<A> made(detail::make_halo_core(mesh.core(), desc, halo, site, &element), halo);
  if (!mesh.dry()) detail::fill(made.view().data(), made.box().size(), element);
  return made;
}
/// Makes a halo tensor of elements T or, where the call names none, of the number's own type.
template <class T = void, Scalar S>
  requires Element<detail::NamedOrOwn<T, S>> DynamicHaloTensor
  make_halo(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
            const Halo& halo, S value, Where where = Where::here()) {
    using E = detail::NamedOrOwn<T, S>;
    const detail::CallSite site{"make_halo", where};
    const E element = detail::scalar_as<E>(value, site);
    detail::use_element<E>();
    const TensorDesc desc{dtype_of<E>, extents, sharding};
    DynamicHaloTensor made(detail::make_halo_core(mesh.core(), desc, halo, site, &element), halo);
    if (!mesh.dry()) detail::fill(made.block().core.template data<E>(), made.box().size(), element);
    return made;
  }

}  // namespace tessera
