// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every operator takes the same last argument, of typed and of dynamic tensors: a place, a
// sharding, a contract, a destination, or several of them.
#include <concepts>

#include <tessera/grad/stop_gradient.hpp>
#include <tessera/tessera.hpp>

#include "support/grid.hpp"

using namespace tessera;

namespace call_options_rows {

template <class... D> using Real = ShardedTensor<double, Grid, P<D...>>;
using Ids = ShardedTensor<std::int32_t, Grid, P<data>>;
using Truths = ShardedTensor<bool, Grid, P<data, model>>;

extern const Real<data, model> x, y;
extern const Real<model> row;
extern const Real<data, _, _, _> image;
extern const Real<_, _, _, _> taps;
extern const Ids ids;
extern const Truths truths;
extern const DynamicTensor d, e;
constexpr WindowSettings pool{};
extern const Extents to, from;
extern const Dimensions dims;
extern const std::vector<Extents> many;
extern const std::vector<DynamicTensor> list;
extern const std::string_view text;

/// Whether a call takes each part by itself, and all of them joined.
template <class Call> consteval bool takes(const Call&) {
  return std::invocable<Call, Where> && std::invocable<Call, Sharding> &&
         std::invocable<Call, Contract> && std::invocable<Call, CallOptions> &&
         !std::invocable<Call, double> && !std::invocable<Call, AxisList>;
}
template <class... P> consteval bool joins() { return std::constructible_from<CallOptions, P...>; }
static_assert(joins<Sharding, Contract>() && joins<Contract, Sharding>());
static_assert(joins<Sharding, CallOptions>() && joins<CallOptions, Contract>());
static_assert(joins<Sharding, Contract, CallOptions>() && joins<Sharding, Where>());
static_assert(!joins<>() && !joins<int>() && !joins<Sharding, int>());
static_assert(std::same_as<decltype(into(d)), CallOptions>);
static_assert(std::same_as<decltype(into(x)), CallOptions>);

#define TAKES(...) \
  static_assert(takes([](const auto& options) -> decltype((void)(__VA_ARGS__)) { (void)options; }))

// Moves and shapes.
TAKES(reshard<P<_, _>>(x, options));
TAKES(reshard(d, Sharding{}, options));
TAKES(finish(x, options));
TAKES(finish(d, options));
TAKES(replicate(x, options));
TAKES(replicate(d, options));
TAKES(split<0, data>(x, options));
TAKES(split(d, 0, AxisList{0}, options));
TAKES(transpose<"ij->ji">(x, options));
TAKES(transpose(text, d, options));
TAKES(reshape<P<_>>(x, to, options));
TAKES(reshape(d, to, options));
TAKES(slice(x, from, to, {}, options));
TAKES(slice(d, from, to, {}, options));
TAKES(slices(x, many, many, {}, options));
TAKES(slices(d, many, many, {}, options));
TAKES(pad(x, from, to, {}, 0.0, options));
TAKES(pad(d, from, to, {}, 0.0, options));
TAKES(reverse<0>(x, options));
TAKES(reverse(d, dims, options));
TAKES(flip<0>(x, options));
TAKES(flip(d, dims, options));
TAKES(flip(d, options));
TAKES(roll<0>(x, 1, options));
TAKES(roll(d, 1, 0, options));
TAKES(shift<0>(x, 1, 0.0, options));
TAKES(shift(d, 1, 0, 0.0, options));
TAKES(concatenate(0, list, options));  // a typed call's operands are a pack, which ends it
TAKES(stack(0, list, options));
TAKES(update(x, y, from, options));
TAKES(update(d, e, from, options));
TAKES(expand_dims<0>(x, options));
TAKES(expand_dims(d, dims, options));
TAKES(squeeze<0>(x, options));
TAKES(squeeze(d, dims, options));
TAKES(squeeze(d, options));
TAKES(broadcast_to(x, to, options));
TAKES(broadcast_to(d, to, options));
TAKES(broadcast_to(d, to, dims, options));
TAKES(tril(x, 0, options));
TAKES(tril(d, 0, options));
TAKES(triu(x, 0, options));
TAKES(triu(d, 0, options));
TAKES(dynamic_slice<"ij", 'i'>(x, from, to, options));
TAKES(dynamic_slice(text, text, d, from, to, options));
TAKES(dynamic_update_slice<"ij", 'i'>(x, y, from, options));
TAKES(dynamic_update_slice(text, text, d, e, from, options));

// Products and reductions.
TAKES(einsum<"ik,kj->ij">(x, y, options));
TAKES(einsum<"ij->i">(x, options));
TAKES(einsum<"ij,jk,kl->il">(x, y, x, options));
TAKES(einsum<"ij,jk,kl,lm->im">(x, y, x, y, options));
TAKES(einsum<"ik,kj->ij">(x, y, epilogue(fn::Gelu{}), options));
TAKES(einsum(text, d, e, options));
TAKES(einsum(text, {d, e, d}, options));
TAKES(matmul(x, y, options));
TAKES(matmul(d, e, options));
TAKES(dot(x, y, options));
TAKES(dot(d, e, options));
TAKES(reduce<Sum, "ij->i">(x, options));
TAKES(reduce<Sum>(text, d, options));
TAKES(sum<"ij->i">(x, options));
TAKES(mean<"ij->i">(x, options));
TAKES(max<"ij->i">(x, options));
TAKES(min<"ij->i">(x, options));
TAKES(product<"ij->i">(x, options));
TAKES(any<"ij->i">(truths, options));
TAKES(all<"ij->i">(truths, options));
TAKES(sum(x, options));
TAKES(convolve<"bhwi,hwio->bhwo">(image, taps, {}, options));
TAKES(convolve(text, d, e, {}, options));
TAKES(convolve_input_gradient<"bhwi,hwio->bhwo">(image, taps, to, {}, options));
TAKES(convolve_input_gradient(text, d, e, to, {}, options));
TAKES(convolve_kernel_gradient<"bhwi,hwio->bhwo">(image, image, to, {}, options));
TAKES(convolve_kernel_gradient(text, d, e, to, {}, options));

// Windows: one function each for both.
TAKES(reduce_window<Max>(x, pool, options));
TAKES(reduce_window<Max>(d, pool, options));
TAKES(select_and_scatter<Max>(x, y, pool, options));
TAKES(select_and_scatter<Max>(d, e, pool, options));
TAKES(select_and_scatter<Max>(d, y, pool, options));
TAKES(select_and_gather<Max>(x, y, pool, options));
TAKES(select_and_gather<Max>(d, e, pool, options));
TAKES(reduce_window_gradient<Max>(x, y, pool, options));
TAKES(reduce_window_gradient<Mean>(x, y, pool, options));
TAKES(reduce_window_gradient<Max>(d, e, pool, options));
TAKES(reduce_window_gradient<Mean>(d, e, pool, options));

// Indices.
TAKES(take<"vm,b->bm">(x, ids, {}, options));
TAKES(take<"vm,b->bVm">(x, ids, {WindowSizes(2), OutOfRange::drop}, options));
TAKES(take<"vm,b,b->b">(x, ids, ids, OutOfRange::drop, options));
TAKES(take<0>(x, ids, OutOfRange::clamp, options));
TAKES(take(text, d, e, {}, options));
TAKES(take(text, d, x, WindowSizes(2), options));
TAKES(take(text, d, {e, e}, OutOfRange::drop, options));
TAKES(take(d, e, 0, OutOfRange::clamp, options));
TAKES(take_along_axis<"b", 'b'>(row, ids, OutOfRange::clamp, options));
TAKES(take_along_axis(text, 'b', d, e, OutOfRange::clamp, options));
TAKES(scatter<Sum, "vm,b,bm->vm">(x, ids, y, {}, options));
TAKES(scatter<Sum, "b,bm->vm">(ids, y, to, OutOfRange::drop, options));
TAKES(scatter<Sum>(text, d, e, e, {}, options));
TAKES(scatter<Sum>(text, {d, e}, to, OutOfRange::clamp, options));
TAKES(bincount<"b->v">(ids, 3, {}, options));
TAKES(bincount(text, d, 3, {}, options));
TAKES(bincount(text, d, e, 3, OutOfRange::clamp, options));
TAKES(histogram<"ij->v">(x, 3, 0.0, 1.0, options));
TAKES(histogram<double>(text, d, 3, 0.0, 1.0, options));
TAKES(one_hot<float, "bv", 'v'>(ids, 3, options));
TAKES(one_hot<float>(text, 'v', d, 3, options));

// Rows.
TAKES(softmax<"ij", 'j'>(x, options));
TAKES(softmax<double>(text, 'j', d, options));
TAKES(log_softmax<"ij", 'j'>(x, options));
TAKES(log_softmax<double>(text, 'j', d, options));
TAKES(layer_norm(x, row, row, 1e-5, options));
TAKES(layer_norm<double>(d, e, e, 1e-5, options));
TAKES(rms_norm(x, row, 1e-5, options));
TAKES(rms_norm<double>(d, e, 1e-5, options));
TAKES(argmax<"ij->i">(x, options));
TAKES(argmax(text, d, options));
TAKES(argmin(x, options));
TAKES(argmin(text, d, options));
TAKES(cumulative<Max, "ij", 'j'>(x, {}, options));
TAKES(cumulative<Max>(text, 'j', d, {}, options));
TAKES(cumsum<"ij", 'j'>(x, {}, options));
TAKES(associative_scan<"ij", 'j'>(fn::Maximum{}, 0.0, x, {}, options));
TAKES(associative_scan(text, 'j', fn::Maximum{}, 0.0, d, {}, options));
TAKES(tessera::sort<"ij", 'j'>(x, {}, options));
TAKES(tessera::sort(text, 'j', d, {}, options));
TAKES(argsort<"ij", 'j'>(x, {}, options));
TAKES(argsort(text, 'j', d, {}, options));
TAKES(sort_with_indices<"ij", 'j'>(x, {}, options));
TAKES(sort_with_indices(text, 'j', d, {}, options));
TAKES(sort_by_key<"ij", 'j'>(x, y, {}, options));
TAKES(sort_by_key(text, 'j', list, {}, options));
TAKES(top_k<"ij", 'j'>(x, 2, options));
TAKES(top_k(text, 'j', d, 2, options));
TAKES(bottom_k<"ij", 'j'>(x, 2, options));
TAKES(bottom_k(text, 'j', d, 2, options));
TAKES(norm<2, "ij->i">(x, options));
TAKES(norm<2, double>(text, d, options));
TAKES(logsumexp<"ij->i">(x, options));
TAKES(logsumexp<double>(text, d, options));
TAKES(variance<"ij->i">(x, 0, options));
TAKES(variance<double>(text, d, 0, options));
TAKES(mean_and_variance<"ij->i">(x, 0, options));
TAKES(mean_and_variance<double>(text, d, 0, options));
TAKES(standard_deviation<"ij->i">(x, 0, options));
TAKES(standard_deviation<double>(text, d, 0, options));

// Tensors like another one.
TAKES(full_like(x, 2, options));
TAKES(full_like(d, 2, options));
TAKES(zeros_like(x, options));
TAKES(zeros_like(d, options));
TAKES(ones_like(x, options));
TAKES(ones_like(d, options));
TAKES(empty_like(x, options));
TAKES(empty_like(d, options));

// Functions of elements.
TAKES(map<"ij->ij">(fn::Exp{}, x, options));
TAKES(map(fn::Maximum{}, x, y, options));
TAKES(exp(x, options));
TAKES(exp(d, options));
TAKES(maximum(x, y, options));
TAKES(maximum(d, 0, options));
TAKES(maximum(0, x, options));
TAKES(clamp(x, 0, 1, options));
TAKES(clamp(d, e, e, options));
TAKES(where(truths, x, y, options));
TAKES(where(d, 1.0, 0.0, options));
TAKES(cast<float>(x, options));
TAKES(cast<float>(d, options));
TAKES(isnan(x, options));
TAKES(logical_not(d, options));
TAKES(stop_gradient(x, options));
TAKES(stop_gradient(d, options));

}  // namespace call_options_rows
