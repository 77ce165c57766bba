// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every kind of operator in every form: typed, dynamic, under a contract, dry, into a tensor,
// in a Program. A cell of the table performs its form, or says why it cannot be.
#include "op/forms.hpp"

#include <mutex>
#include <set>
#include <string_view>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <tessera/grad.hpp>

using namespace support;

namespace {
/// The options of a call whose result is sharded as `out` says, if it does.
CallOptions with(const Sharding* out, const CallOptions& call) {
  return out != nullptr ? CallOptions{*out, call} : call;
}

struct Einsum : Usual {
  static constexpr OperatorKind kind = OperatorKind::einsum;
  using Operands = Tensors<Real<data, model>, Real<model, _>>;
  using Out = P<_, model>;
  static constexpr std::array extents{Extents{6, 8}, Extents{8, 5}};
  template <class O, class B> static auto typed(const auto& x, const auto& w) {
    return einsum<"ik,kj->ij", O, B>(x, w);
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return einsum("ik,kj->ij", x[0], x[1], with(out, call));
  }
  static constexpr auto value(const Sharding& out) { return ops::Einsum{parse("ik,kj->ij"), out}; }
};

/// A form with one tensor, six by eight.
struct OfOne : Usual {
  using Operands = Tensors<Real<data, model>>;
  using Out = P<_, model>;
  static constexpr std::array extents{Extents{6, 8}};
};
struct Reduce : OfOne {
  static constexpr OperatorKind kind = OperatorKind::reduce;
  using Out = P<model>;
  template <class O, class B> static auto typed(const auto& x) { return sum<"ij->i", O, B>(x); }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return reduce<Sum>("ij->i", x[0], with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::Reduce{parse("ij->i"), Reduction::sum, false, false, DType::f64, out};
  }
};

/// A sharding that is deduced is the operand's, finished.
struct Reshard : OfOne {
  static constexpr OperatorKind kind = OperatorKind::reshard;
  using Plain = P<model, data>;
  template <class O, class B> static auto typed(const auto& x) { return reshard<O, B>(x); }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return out ? reshard(x[0], *out, call) : finish(x[0], call);
  }
  static constexpr auto value(const Sharding& out) { return ops::Reshard{out}; }
};
struct Transpose : OfOne {
  static constexpr OperatorKind kind = OperatorKind::transpose;
  template <class O, class B> static auto typed(const auto& x) {
    return transpose<"ij->ji", O, B>(x);
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return transpose("ij->ji", x[0], with(out, call));
  }
  static constexpr auto value(const Sharding& out) { return ops::Transpose{parse("ij->ji"), out}; }
};
struct Map : Usual {
  static constexpr OperatorKind kind = OperatorKind::map;
  using Operands = Tensors<Real<data, model>, Real<data, model>>;
  using Out = P<data, model>;
  static constexpr std::array extents{Extents{6, 8}, Extents{1, 8}};  // which has to be brought
  template <class O, class B> static auto typed(const auto& x, const auto& y) {
    return map<"ij,ij->ij", O, B>(fn::Maximum{}, x, y);
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return maximum(x[0], x[1], with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::Map{parse("ij,ij->ij"), DType::f64, Linearity::pointwise, out};
  }
};
struct Arg : OfOne {
  static constexpr OperatorKind kind = OperatorKind::arg;
  using Out = P<model>;
  template <class O, class B> static auto typed(const auto& x) { return argmax<"ij->i", O, B>(x); }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return argmax("ij->i", x[0], with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::Arg{parse("ij->i"), Reduction::max, out};
  }
};
struct Moments : OfOne {
  static constexpr OperatorKind kind = tessera::detail::moments_operator;
  using Out = P<model>;
  template <class O, class B> static auto typed(const auto& x) {
    return variance<"ij->i", O, B>(x);
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return variance<double>("ij->i", x[0], 0, with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::Moments{parse("ij->i"), false, out};
  }
};
struct Normalize : Usual {
  static constexpr OperatorKind kind = tessera::detail::normalize_operator;
  using Operands =
      Tensors<Real<data, model>, Real<model>, Real<_>>;  // one of which has to be brought
  using Out = P<data, model>;
  static constexpr std::array extents{Extents{6, 8}, Extents{8}, Extents{8}};
  template <class O, class B>
  static auto typed(const auto& x, const auto& scale, const auto& bias) {
    return layer_norm<O, B>(x, scale, bias, 0.5);
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return layer_norm<double>(x[0], x[1], x[2], 0.5, with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::Normalize{detail::norm_terms(2, 3), true, 0.5, out};
  }
};
struct Scan : OfOne {
  static constexpr OperatorKind kind = OperatorKind::scan;
  template <class O, class B> static auto typed(const auto& x) {
    return cumsum<"ij", 'j', O, B>(x);
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return cumulative<Sum>("ij", 'j', x[0], {}, with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::Scan{parse("ij->ij"), 'j', Reduction::sum, {}, DType::f64, out};
  }
};
struct Broadcast : OfOne {
  static constexpr OperatorKind kind = OperatorKind::broadcast;
  static constexpr Extents whole{6, 8};
  static constexpr std::array extents{Extents{1, 8}};
  template <class O, class B> static auto typed(const auto& x) {
    return broadcast_to<O, B>(x, whole);
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return broadcast_to(x[0], whole, with(out, call));
  }
  static constexpr auto value(const Sharding& out) { return ops::Broadcast{{0, 1}, whole, out}; }
};
struct Softmax : OfOne {
  static constexpr OperatorKind kind = tessera::detail::softmax_operator;
  template <class O, class B> static auto typed(const auto& x) {
    return softmax<"ij", 'j', O, B>(x);
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return softmax<double>("ij", 'j', x[0], with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::Softmax{parse("ij->ij"), 'j', false, out};
  }
};
struct Sort : OfOne {
  static constexpr OperatorKind kind = OperatorKind::sort;
  template <class O, class B> static auto typed(const auto& x) {
    return tessera::sort<"ij", 'j', O, B>(x);
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return tessera::sort("ij", 'j', x[0], {}, with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::Sort{parse("ij->ij"), 'j', {}, out};
  }
};

constexpr std::string_view returns_several =
    "the call returns several tensors, and a destination is one";
struct TopK : OfOne {
  static constexpr OperatorKind kind = OperatorKind::top_k;
  template <class O, class B> static auto typed(const auto& x) {
    return top_k<"ij", 'j', O, B>(x, 3).values;
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return top_k("ij", 'j', x[0], 3, with(out, call)).values;
  }
  static constexpr auto value(const Sharding& out) {
    return ops::Sort{
        parse("ij->ij"),
        'j',
        {.descending = true, .positions = true, .limit = 3, .kind = OperatorKind::top_k},
        out};
  }
  static constexpr std::string_view cannot(Form form) {
    return form == Form::into ? returns_several : std::string_view();
  }
};

struct Slice : OfOne {
  static constexpr OperatorKind kind = OperatorKind::slice;
  template <class O, class B> static auto typed(const auto& x) {
    return slice<O, B>(x, {1, 2}, {6, 7});
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return slice(x[0], {1, 2}, {6, 7}, {}, with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::Slice{{{tessera::Slice{{1, 2}, {6, 7}, {}}}}, out};
  }
};
struct Pad : OfOne {
  static constexpr OperatorKind kind = OperatorKind::pad;
  template <class O, class B> static auto typed(const auto& x) {
    return pad<O, B>(x, {1, 0}, {2, 3});
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return pad(x[0], {1, 0}, {2, 3}, {}, 0, with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::Pad{{{1, 0}, {2, 3}, {}, Outside::zero}, out};
  }
};
struct Reverse : OfOne {
  static constexpr OperatorKind kind = OperatorKind::reverse;
  template <class O, class B> static auto typed(const auto& x) { return reverse<O, B, 0>(x); }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    const FixedVector<int, max_dims> dims{0};
    return reverse(x[0], dims, with(out, call));
  }
  static constexpr auto value(const Sharding& out) { return ops::Reverse{{Dimensions{0}}, out}; }
};
struct Roll : OfOne {
  static constexpr OperatorKind kind = OperatorKind::roll;
  template <class O, class B> static auto typed(const auto& x) { return roll<0, O, B>(x, 2); }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return roll(x[0], 2, 0, with(out, call));
  }
  static constexpr auto value(const Sharding& out) { return ops::Roll{{2, 0}, out}; }
};
struct Shift : OfOne {
  static constexpr OperatorKind kind = OperatorKind::shift;
  template <class O, class B> static auto typed(const auto& x) { return shift<0, O, B>(x, -1); }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return shift(x[0], -1, 0, 0, with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::Shift{{-1, 0, Outside::zero}, out};
  }
};
struct Reshape : OfOne {
  static constexpr OperatorKind kind = OperatorKind::reshape;
  using Plain = P<data, _, model>;
  using Out = P<model, _, data>;
  template <class O, class B> static auto typed(const auto& x) {
    return reshape<O, B>(x, {2, 3, 8});
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return reshape(x[0], {2, 3, 8}, with(out, call));
  }
  static constexpr auto value(const Sharding& out) { return ops::Reshape{{2, 3, 8}, out}; }
};
struct Concatenate : Usual {
  static constexpr OperatorKind kind = OperatorKind::concatenate;
  using Operands = Tensors<Real<data, model>, Real<_, model>>;
  using Out = P<model, _>;
  static constexpr std::array extents{Extents{6, 8}, Extents{3, 8}};
  template <class O, class B> static auto typed(const auto& x, const auto& y) {
    return concatenate<0, O, B>(x, y);
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return concatenate(0, x, with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::Concatenate{{0, {std::nullopt, std::nullopt}}, out};
  }
};
struct Update : Usual {
  static constexpr OperatorKind kind = OperatorKind::update;
  using Operands = Tensors<Real<data, model>, Real<_, model>>;
  using Out = P<model, _>;
  static constexpr std::array extents{Extents{6, 8}, Extents{3, 4}};
  template <class O, class B> static auto typed(const auto& x, const auto& y) {
    return update<O, B>(x, y, {2, 1});
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return update(x[0], x[1], {2, 1}, with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::Update{{{2, 1}, {std::nullopt, std::nullopt}}, out};
  }
};

struct Take : Usual {
  static constexpr OperatorKind kind = OperatorKind::take;
  using Operands = Tensors<Real<model, _>, Index32<data>>;
  using Out = P<model, _>;
  static constexpr std::array extents{Extents{5, 8}, Extents{7}};
  template <class O, class B> static auto typed(const auto& x, const auto& at) {
    return take<"vm,b->bm", O, B>(x, at);
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return take("vm,b->bm", x[0], x[1], OutOfRange::clamp, with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::Take{parse("vm,b->bm"), OutOfRange::clamp, out};
  }
};
struct TakeWindows : Usual {
  static constexpr OperatorKind kind = OperatorKind::take;
  using Operands = Tensors<Real<model, _>, Index32<data>>;
  using Out = P<data, model, _>;
  static constexpr std::array extents{Extents{5, 8}, Extents{7}};
  template <class O, class B> static auto typed(const auto& x, const auto& at) {
    return take<"vm,b->bVm", O, B>(x, at, WindowSizes(3));
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    const WindowSizes three(3);
    return take("vm,b->bVm", x[0], x[1], three, with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::Take{parse("vm,b->bVm"), OutOfRange::clamp, out, {3}};
  }
};
struct Scatter : Usual {
  static constexpr OperatorKind kind = OperatorKind::scatter;
  using Operands = Tensors<Real<model, _>, Index32<data>, Real<data, _>>;
  using Out = P<_, data>;
  static constexpr std::array extents{Extents{5, 8}, Extents{7}, Extents{7, 8}};
  template <class O, class B>
  static auto typed(const auto& x, const auto& at, const auto& updates) {
    return scatter<Sum, "vm,b,bm->vm", O, B>(x, at, updates);
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return scatter<Sum>("vm,b,bm->vm", x[0], x[1], x[2], OutOfRange::drop, with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::Scatter{parse("vm,b,bm->vm"), Reduction::sum, OutOfRange::drop, {}, false, out};
  }
};
struct OneHot : Usual {
  static constexpr OperatorKind kind = OperatorKind::one_hot;
  using Operands = Tensors<Index32<data>>;
  using Out = P<model, _>;
  static constexpr std::array extents{Extents{7}};
  template <class O, class B> static auto typed(const auto& at) {
    return one_hot<double, "bv", 'v', O, B>(at, 5);
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return one_hot<double>("bv", 'v', x[0], 5, with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::OneHot{parse("bv->bv"), 'v', DType::f64, 5, out};
  }
};
struct DynamicSlice : OfOne {
  static constexpr OperatorKind kind = OperatorKind::dynamic_slice;
  template <class O, class B> static auto typed(const auto& x) {
    return dynamic_slice<"ij", 'i', O, B>(x, {2}, {3});
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return dynamic_slice("ij", "i", x[0], {2}, {3}, with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::DynamicSlice{parse("ij->ij"), parse("i->i"), {3}, out};
  }
};
struct DynamicUpdateSlice : Usual {
  static constexpr OperatorKind kind = OperatorKind::dynamic_update_slice;
  using Operands = Tensors<Real<data, model>, Real<_, model>>;
  using Out = P<_, model>;
  static constexpr std::array extents{Extents{6, 8}, Extents{3, 8}};
  template <class O, class B> static auto typed(const auto& x, const auto& y) {
    return dynamic_update_slice<"ij", 'i', O, B>(x, y, {2});
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return dynamic_update_slice("ij", "i", x[0], x[1], {2}, with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::DynamicUpdateSlice{parse("ij,ij->ij"), parse("i->i"), false, out};
  }
};

constexpr Convolution around{.low = {1}, .high = {1}};
constexpr Equation letters{"bxi,xio->bxo"};
/// Images, taps and features.
using Images = Real<_, data, _>;
using Taps = Real<_, _, model>;
using Features = Real<_, data, model>;
constexpr Extents image_extents{2, 6, 4}, tap_extents{3, 4, 2}, feature_extents{2, 6, 2};
struct Convolve : Usual {
  static constexpr OperatorKind kind = OperatorKind::convolve;
  using Operands = Tensors<Images, Taps>;
  using Out = P<_, model, _>;
  static constexpr std::array extents{image_extents, tap_extents};
  template <class O, class B> static auto typed(const auto& x, const auto& k) {
    return convolve<letters, O, B>(x, k, around);
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return convolve(letters.view(), x[0], x[1], around, with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::Convolve{parse(letters.view()), around, ops::ConvolveForm::forward, {}, out};
  }
};
struct InputGradient : Convolve {
  using Operands = Tensors<Features, Taps>;
  static constexpr std::array extents{feature_extents, tap_extents};
  template <class O, class B> static auto typed(const auto& dy, const auto& k) {
    return convolve_input_gradient<letters, O, B>(dy, k, image_extents, around);
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return convolve_input_gradient(letters.view(), x[0], x[1], image_extents, around,
                                   with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::Convolve{parse(letters.view()), around, ops::ConvolveForm::by_input, image_extents,
                         out};
  }
};
struct KernelGradient : Convolve {
  using Operands = Tensors<Images, Features>;
  using Out = P<_, data, model>;
  static constexpr std::array extents{image_extents, feature_extents};
  template <class O, class B> static auto typed(const auto& x, const auto& dy) {
    return convolve_kernel_gradient<letters, O, B>(x, dy, tap_extents, around);
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return convolve_kernel_gradient(letters.view(), x[0], x[1], tap_extents, around,
                                    with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::Convolve{parse(letters.view()), around, ops::ConvolveForm::by_kernel, tap_extents,
                         out};
  }
};

const WindowSettings pool{.size = {3, 1}, .low = {1, 0}, .high = {1, 0}};
constexpr WindowList pool_list{{.size = 3, .low = 1, .high = 1}, {}};
struct ReduceWindow : OfOne {
  static constexpr OperatorKind kind = OperatorKind::reduce_window;
  template <class O, class B> static auto typed(const auto& x) {
    return reduce_window<Max, O, B>(x, pool);
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return reduce_window<Max>(x[0], pool, with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::ReduceWindow{Reduction::max, false, pool_list, out};
  }
};
struct SelectAndScatter : Usual {
  static constexpr OperatorKind kind = OperatorKind::select_and_scatter;
  using Operands = Tensors<Real<data, model>, Real<data, model>>;
  using Out = P<_, model>;
  static constexpr std::array extents{Extents{6, 8}, Extents{6, 8}};
  template <class O, class B> static auto typed(const auto& x, const auto& y) {
    return select_and_scatter<Max, O, B>(x, y, pool);
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return select_and_scatter<Max>(x[0], x[1], pool, with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::SelectAndScatter{true, pool_list, out};
  }
};
struct SelectAndGather : SelectAndScatter {
  static constexpr OperatorKind kind = OperatorKind::select_and_gather;
  template <class O, class B> static auto typed(const auto& x, const auto& y) {
    return select_and_gather<Max, O, B>(x, y, pool);
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return select_and_gather<Max>(x[0], x[1], pool, with(out, call));
  }
  static constexpr auto value(const Sharding& out) {
    return ops::SelectAndScatter{true, pool_list, out, true};
  }
};

/// A call of two operators, the second of which has the destination.
CallOptions first_of(const CallOptions& call) {
  return call.contract() ? CallOptions(*call.contract()) : CallOptions(Where::here());
}
constexpr std::string_view split_as_it_was =
    "a tensor with a halo, and what the adjoint makes of it, is split as the tensor without was";
constexpr Halo rim{{1, 1, Boundary::periodic}, {}};
/// The adjoint makes what can be compared of the halo.
struct HaloExchange : OfOne {
  static constexpr OperatorKind kind = OperatorKind::halo;
  using Out = P<data, model>;
  template <class, class B> static auto typed(const auto& x) {
    return halo_adjoint(halo_exchange<B, 0>(x, 1, 1, Boundary::periodic));
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding*, const CallOptions& call) {
    return halo_adjoint(halo_exchange(x[0], rim, call), call);
  }
  static constexpr auto value(const Sharding&) { return ops::HaloExchange{{rim}}; }
  static constexpr std::string_view cannot(Form form) {
    if (form == Form::named || form == Form::given) return split_as_it_was;
    if (form == Form::into)
      return "a tensor that is there with its halo takes what it needs by exchange()";
    return {};
  }
};
struct HaloAdjoint : HaloExchange {
  static constexpr OperatorKind kind = OperatorKind::halo_adjoint;
  static DynamicTensor dynamic(const Dynamic& x, const Sharding*, const CallOptions& call) {
    return halo_adjoint(halo_exchange(x[0], rim, first_of(call)), call);
  }
  static constexpr auto value(const Sharding&) { return ops::HaloExchange{{rim}, true}; }
  static constexpr std::string_view cannot(Form form) {
    return form == Form::into ? std::string_view() : HaloExchange::cannot(form);
  }
};

constexpr std::string_view memory_is_whole =
    "memory of the caller's has no spec, which could be named, deduced or resharded";
constexpr std::string_view goes_where_asked =
    "a call that makes a tensor, or takes one to another mesh, is told its sharding, so that "
    "nothing is deduced";
constexpr std::string_view memory_is_used_at_once =
    "the caller's memory is used before the call returns, so that the caller may free it then";
constexpr std::string_view compiled_on_one_mesh =
    "the operators of a compiled function have tensors of one mesh for operands and results";
/// From a tensor to memory, and from there to another one.
struct FromRoot : OfOne {
  static constexpr OperatorKind kind = OperatorKind::from_root;
  static constexpr bool free = true, deduces = false, constant = false;
  using Plain = P<data, model>;
  template <class O, class B> static auto typed(const auto& x) {
    const auto host = to_root<B>(x);
    return from_root<ShardedTensor<double, Grid, O>, B>(ProcessMesh<Grid>(x.core().mesh()),
                                                        x.extents(), 0, host.values);
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    const auto host = to_root<double>(x[0], 0, first_of(call));
    return from_root<double>(x[0].mesh(), x[0].extents(), out ? *out : x[0].sharding(), 0,
                             std::span<const double>(host.values), call);
  }
  static TensorDescs operands(TensorDescs x) {
    x[0].sharding = Sharding::replicated(2);
    return x;
  }
  static auto value(const Sharding& out) {
    return ops::FromMemory{ops::Memory::on_root(0, 4), out};
  }
  static constexpr std::string_view cannot(Form form) {
    if (form == Form::deduced) return goes_where_asked;
    if (form == Form::started) return memory_is_used_at_once;
    return form == Form::compiled ? compiled_on_one_mesh : std::string_view();
  }
};
struct ToRoot : FromRoot {
  static constexpr OperatorKind kind = OperatorKind::to_root;
  static TensorDescs operands(const TensorDescs& x) { return x; }
  static auto value(const Sharding&) { return ops::ToMemory{ops::Memory::on_root(0, 4)}; }
  static std::string into(const Meshes& m) {
    return Performed<ToRoot>::with(m.mesh, [&](const auto& x) {
      const Values all = values(x);
      Values typed(m.mesh.process() == 2 ? all.size() : 0), dynamic(typed);
      to_root_into(std::span(typed), x, 2);
      to_root_into<double>(dynamic, DynamicTensor(x), 2);
      return m.mesh.process() != 2 || (typed == all && dynamic == all) ? "" : "the root has others";
    });
  }
  static constexpr std::string_view cannot(Form form) {
    if (form == Form::deduced) return {};
    if (form == Form::named || form == Form::given || form == Form::joined) return memory_is_whole;
    return FromRoot::cannot(form);
  }
};
/// Two rows to each of the first three processes.
std::vector<Box> rows_of(int processes) {
  std::vector<Box> boxes;
  for (int p = 0; p < processes; ++p)
    boxes.push_back(
        Box{{Interval{std::min<Index>(6, 2 * p), std::min<Index>(6, 2 * p + 2)}, Interval{0, 8}}});
  return boxes;
}
struct FromBoxes : FromRoot {
  static constexpr OperatorKind kind = OperatorKind::from_boxes;
  using Memory = Kokkos::View<double**, Kokkos::LayoutRight>;
  static Memory memory(const MeshCore& mesh) {
    const Box own = rows_of(mesh.shape().processes())[static_cast<std::size_t>(mesh.process())];
    return Memory("rows", static_cast<std::size_t>(own[0].hi - own[0].lo), 8);
  }
  template <class O, class B> static auto typed(const auto& x) {
    const Memory rows = memory(*x.core().mesh());
    const std::vector<Box> boxes = rows_of(x.core().mesh()->shape().processes());
    to_irregular<B>(x, boxes, rows);
    return from_irregular<ShardedTensor<double, Grid, O>, B>(ProcessMesh<Grid>(x.core().mesh()),
                                                             x.extents(), boxes, rows);
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    const Memory rows = memory(*x[0].core().mesh());
    const std::vector<Box> boxes = rows_of(x[0].core().mesh()->shape().processes());
    to_irregular(x[0], boxes, rows, first_of(call));
    return from_irregular(x[0].mesh(), x[0].extents(), out ? *out : x[0].sharding(), boxes, rows,
                          call);
  }
  static auto value(const Sharding& out) {
    static const std::vector<Box> boxes = rows_of(4);
    return ops::FromMemory{ops::Memory::in_boxes(boxes, 4), out};
  }
};
struct ToBoxes : FromBoxes {
  static constexpr OperatorKind kind = OperatorKind::to_boxes;
  static TensorDescs operands(const TensorDescs& x) { return x; }
  static auto value(const Sharding&) {
    static const std::vector<Box> boxes = rows_of(4);
    return ops::ToMemory{ops::Memory::in_boxes(boxes, 4)};
  }
  static std::string into(const Meshes& m) {
    return Performed<ToBoxes>::with(m.mesh, [&](const auto& x) {
      const Memory rows = memory(*m.mesh.core());
      to_irregular(x, rows_of(4), rows);
      const Values all = values(x);
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows.data()[i] != all[static_cast<std::size_t>(m.mesh.process()) * 16 + i])
          return "the box has others";
      return "";
    });
  }
  static constexpr std::string_view cannot(Form form) { return ToRoot::cannot(form); }
};

/// A tensor made of none, on the mesh of another one and of its extents.
struct Create : OfOne {
  static constexpr OperatorKind kind = OperatorKind::create;
  static constexpr bool deduces = false, free = true, communicates = false;
  using Plain = P<data, model>;
  template <class O, class> static auto typed(const auto& x) {
    return from_function<ShardedTensor<double, Grid, O>>(ProcessMesh<Grid>(x.core().mesh()),
                                                         x.extents(), Small<double>{});
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return from_function<double>(x[0].mesh(), x[0].extents(), *out, Small<double>{}, call);
  }
  static TensorDescs operands(const TensorDescs&) { return {}; }
  static constexpr auto value(const Sharding& out) {
    return ops::Create{{DType::f64, {6, 8}, out}};
  }
  static constexpr std::string_view cannot(Form form) {
    if (form == Form::deduced) return goes_where_asked;
    return form == Form::bound
               ? "a typed call that makes a tensor of none communicates nothing: it takes no "
                 "contract"
               : std::string_view();
  }
};

/// To a mesh of one row over the same processes.
struct Between : Reshard {
  static constexpr bool constant = false, deduces = false;

  /// Returns one and the same mesh for a mesh, as long as a tensor lies there.
  static ProcessMesh<Grid> other(const std::shared_ptr<MeshCore>& mesh) {
    thread_local std::weak_ptr<MeshCore> from, there;
    if (from.lock() == mesh && there.lock() != nullptr) return ProcessMesh<Grid>(there.lock());
    const int n = mesh->shape().processes();
    std::vector<int> all;
    for (int p = 0; p < n; ++p) all.push_back(p);
    const auto made = mesh->dry()
                          ? dry_mesh<Grid>(sizes<Grid>(n, 1), mesh->process())
                          : make_mesh<Grid>(mesh->transport().among(all), sizes<Grid>(n, 1));
    from = mesh;
    there = made.core();
    return made;
  }
  template <class O, class B> static auto typed(const auto& x) {
    return reshard<ShardedTensor<double, Grid, O>, B>(x, other(x.core().mesh()));
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return reshard(x[0], *out, other(x[0].core().mesh()), call);
  }
  static auto value(const Sharding& out) {
    static const std::vector<int> places{0, 1, 2, 3};
    ops::OnOtherMesh there{out, MeshShape{4, 1}, places, {}};
    for (const std::uint64_t word : {4, 1, 0, 1, 2, 3}) there.fingerprint.add(word);
    return ops::Between{there};
  }
  static constexpr std::string_view cannot(Form form) {
    if (form == Form::deduced) return goes_where_asked;
    return form == Form::compiled ? compiled_on_one_mesh : std::string_view();
  }
};
struct Together : Reshard {
  using Operands = Tensors<Real<data, model>, Real<data, _>>;
  static constexpr std::array extents{Extents{6, 8}, Extents{3, 5}};
  template <class O, class B> static auto typed(const auto& x, const auto& y) {
    if constexpr (std::is_same_v<B, NoContract>)
      return std::get<0>(reshard_together<O, O>(x, y));
    else
      return std::get<0>(reshard_together<B, O, O>(x, y));
  }
  static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call) {
    return out ? reshard_together(x, {*out, *out}, call)[0] : finish_together(x, call)[0];
  }
  static constexpr auto value(const Sharding& out) { return ops::Together{{out, out}}; }
  static constexpr std::string_view cannot(Form form) {
    return form == Form::into ? returns_several : std::string_view();
  }
};

std::vector<Row> table() {
  return {row<Einsum>(),
          row<Reduce>(),
          row<Reshard>(),
          row<Transpose>(),
          row<Map>(),
          row<Arg>(),
          row<Scan>(),
          row<Moments>(),
          row<Normalize>(),
          row<Softmax>(),
          row<Broadcast>(),
          row<Sort>(),
          row<TopK>(),
          row<Slice>(),
          row<Pad>(),
          row<Reverse>(),
          row<Roll>(),
          row<Shift>(),
          row<Reshape>(),
          row<Concatenate>(),
          row<Update>(),
          row<Take>(),
          row<TakeWindows>("take of windows"),
          row<Scatter>(),
          row<OneHot>(),
          row<DynamicSlice>(),
          row<DynamicUpdateSlice>(),
          row<Convolve>(),
          row<InputGradient>("convolve, gradient by the input"),
          row<KernelGradient>("convolve, gradient by the kernel"),
          row<ReduceWindow>(),
          row<SelectAndScatter>(),
          row<SelectAndGather>(),
          row<HaloExchange>(),
          row<HaloAdjoint>(),
          row<FromRoot>(),
          row<ToRoot>(),
          row<FromBoxes>(),
          row<ToBoxes>(),
          row<Create>(),
          row<Between>("reshard between meshes"),
          row<Together>("reshard together")};
}
}  // namespace

namespace {
/// Returns what is wrong with a call of several operators that writes into a tensor: typed, by its
/// function, and dynamic.
template <class Typed, class Call>
std::string wrong_into(const ProcessMesh<Grid>& mesh, const Typed& typed, const Call& dynamic) {
  using Result = std::decay_t<decltype(typed())>;
  const Result expected = typed();
  Result y = full_like(expected, 77);
  const void* const memory = y.core().data();
  for (int i = 0; i < 2; ++i) {
    into(y, typed);
    if (!(to_host(y) == to_host(expected))) return "other values";
    if (y.core().data() != memory) return "other memory";
  }
  const DynamicTensor fresh = dynamic(CallOptions(Where::here()));
  const DynamicTensor z = full_like(fresh, 77);
  const DynamicTensor same = dynamic(into(z));
  if (same.core().storage() != z.core().storage()) return "dynamic, not in the destination";
  if (differ(values(z), values(fresh)) != "") return "dynamic, other values";
  // What another tensor holds is as it was when the call is refused.
  Extents larger = expected.extents();
  for (Index& n : larger) ++n;
  if (larger.empty()) larger.push_back(2);
  const auto refused = [&](const DynamicTensor& there, const auto& call) {
    const Values before = values(there);
    try {
      call(there);
      return false;
    } catch (const ShapeError&) {
      return values(there) == before;
    }
  };
  const DynamicTensor wide = full<double>(mesh, larger, Sharding::replicated(larger.size()), 77);
  if (!refused(wide, [&](const auto& there) { (void)dynamic(into(there)); }))
    return "dynamic, a tensor of other extents is written, or taken";
  if constexpr (Result::rank > 0) {
    Result more = full<Result>(mesh, larger, 77);
    if (!refused(more, [&](const auto&) { into(more, typed); }))
      return "a tensor of other extents is written, or taken";
  }
  // Compiled, and differentiated.
  Result made = full_like(expected, 77);
  auto step = compile([&] { into(made, typed); });
  step();
  if (!(to_host(made) == to_host(expected))) return "compiled, other values";
  return "";
}
}  // namespace

TEST_CASE("a call of several operators writes into a tensor, by the last of them") {
  std::mutex mutex;
  std::string wrong;
  run_loopback(4, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, sizes<Grid>(2, 2));
    const auto x = from_function<Real<data, model>>(mesh, {6, 8}, Small<double>{});
    const auto w = from_function<Real<model, _>>(mesh, {8, 5}, Small<double>{});
    const auto v = from_function<Real<_, data>>(mesh, {5, 7}, Small<double>{});
    const auto ids = from_function<Index32<data>>(mesh, {6}, Small<std::int32_t>{});
    const DynamicTensor X = x, W = w, V = v, Ids = ids;
    using C = const CallOptions&;
    const auto check = [&](const char* name, const auto& typed, const auto& dynamic) {
      std::string text;
      try {
        text = wrong_into(mesh, typed, dynamic);
      } catch (const std::exception& error) {
        text = error.what();
      }
      const std::lock_guard lock(mutex);
      if (!text.empty() && wrong.find(name) == std::string::npos)
        wrong += "\n  " + std::string(name) + ": " + text;
    };
    check(
        "product of three", [&] { return einsum<"ij,jk,kl->il">(x, w, v); },
        [&](C call) {
          return einsum("ij,jk,kl->il", {X, W, V}, call);
        });
    check(
        "product of six",
        [&] { return einsum<"ij,jk,kl,ij,jk,kl->il", P<_, model>>(x, w, v, x, w, v); },
        [&](C call) {
          return einsum("ij,jk,kl,ij,jk,kl->il", {X, W, V, X, W, V}, {Sharding{{}, {1}}, call});
        });
    check(
        "variance", [&] { return variance<"ij->i">(x, 1); },
        [&](C call) { return variance<double>("ij->i", X, 1, call); });
    check(
        "standard deviation", [&] { return standard_deviation<"ij->j">(x, 1); },
        [&](C call) { return standard_deviation<double>("ij->j", X, 1, call); });
    check(
        "norm of order 1", [&] { return norm<1, "ij->i">(x); },
        [&](C call) { return norm<1, double>("ij->i", X, call); });
    check(
        "norm", [&] { return norm<2, "ij->i">(x); },
        [&](C call) { return norm<2, double>("ij->i", X, call); });
    check(
        "norm of all", [&] { return norm<2>(x); },
        [&](C call) { return norm<2, double>("ij->", X, call); });
    check(
        "greatest norm", [&] { return norm<infinite_norm, "ij->i">(x); },
        [&](C call) { return norm<infinite_norm, double>("ij->i", X, call); });
    check(
        "log-sum-exp", [&] { return logsumexp<"ij->i">(x); },
        [&](C call) { return logsumexp<double>("ij->i", X, call); });
    check(
        "counts", [&] { return bincount<"b->v">(ids, 5); },
        [&](C call) { return bincount("b->v", Ids, 5, OutOfRange::drop, call); });
    check(
        "histogram", [&] { return histogram<"ij->v">(x, 5, 0.0, 5.0); },
        [&](C call) { return histogram<double>("ij->v", X, 5, 0.0, 5.0, call); });
    CHECK_THROWS_WITH_AS((void)mean_and_variance<double>("ij->i", X, 0, into(Ids)),
                         doctest::Contains("is not one tensor"), UsageError);
    // Differentiated: the last operator's destination is what the gradient goes through.
    const auto slope = value_and_grad([&](const auto& a) {
      auto y = zeros_like(norm<2, "ij->i">(a));
      into(y, [&] { return norm<2, "ij->i">(a); });
      return sum<"i->">(y);
    })(x);
    const auto plain =
        value_and_grad([&](const auto& a) { return sum<"i->">(norm<2, "ij->i">(a)); })(x);
    const bool same = to_host(slope.gradient) == to_host(plain.gradient);
    const std::lock_guard lock(mutex);
    CHECK(same);
  });
  CHECK_MESSAGE(wrong.empty(), wrong);
}

/// Returns the kinds that operators have unless they are told otherwise.
template <class... Op> std::vector<OperatorKind> kinds_of(std::type_identity<Op>...) {
  return {Op{}.kind()...};
}

TEST_CASE("every kind of operator is in the table of forms") {
#define OPERATOR(Name) \
  std::type_identity<ops::Name> {}
  std::vector<OperatorKind> kinds = kinds_of(TESSERA_OPERATORS);
#undef OPERATOR
  CHECK(kinds.size() > 20);
  for (const detail::OperatorName* name : tessera::detail::OperatorNames::all)
    kinds.push_back(*name);
  std::set<std::string_view> there, wanted;
  for (const Row& row : table()) there.insert(name_of(row.kind));
  for (const OperatorKind kind : kinds) {
    CHECK_MESSAGE(there.contains(name_of(kind)), "no row for " << name_of(kind));
    wanted.insert(name_of(kind));
  }
  CHECK(wanted.size() == there.size());
}

TEST_CASE("a cell of the table that cannot be says why, for one of ten reasons at most") {
  std::set<std::string_view> reasons;
  int cells = 0;
  for (const Row& row : table())
    for (const Cell& cell : row.cells) {
      CHECK(cell.cannot.empty() == static_cast<bool>(cell.perform));
      if (cell.cannot.empty()) continue;
      reasons.insert(cell.cannot);
      ++cells;
    }
  CHECK(reasons.size() <= 10);
  CHECK(cells <= 27);
  MESSAGE(cells << " cells cannot be, for " << reasons.size() << " reasons");
}

TEST_CASE("plans are constants of a program, but those that speak of lists of boxes or processes") {
  std::set<std::string> planned_late;
  for (const Row& row : table())
    if (!row.constant) planned_late.insert(row.name);
  CHECK(planned_late == std::set<std::string>{"from root", "to root", "from boxes", "to boxes",
                                              "reshard between meshes"});
}

TEST_CASE("every operator in every form computes what its typed call does") {
  for (const Row& row : table()) {
    std::mutex mutex;
    std::string wrong;
    run_loopback(4, [&](std::shared_ptr<Transport> world) {
      const Meshes meshes{make_mesh<Grid>(world, sizes<Grid>(2, 2)),
                          make_mesh<Strict<Grid>>(world, sizes<Strict<Grid>>(2, 2))};
      for (std::size_t form = 0; form < form_count; ++form) {
        if (!row.cells[form].perform) continue;
        std::string text;
        try {
          text = row.cells[form].perform(meshes);
        } catch (const std::exception& error) {
          text = error.what();
        }
        if (text.empty()) continue;
        const std::lock_guard lock(mutex);
        if (wrong.find(form_names[form]) == std::string::npos)
          wrong += "\n  " + std::string(form_names[form]) + ": " + text;
      }
    });
    CHECK_MESSAGE(wrong.empty(), row.name << wrong);
  }
}
