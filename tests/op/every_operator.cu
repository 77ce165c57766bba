// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every public operator in one translation unit, for compilers of device code: that it compiles is
// the test.
#include <tessera/tessera.hpp>

namespace grid {
struct data : tessera::Axis<> {};
struct model : tessera::Axis<2> {};
}  // namespace grid
using namespace tessera;
using grid::data, grid::model;
using Grid = Mesh<data, model>;
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;

struct Ramp {
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i) const {
    return 0.5 * static_cast<double>(i.linear());
  }
};
template <class T> struct Row {
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    return static_cast<T>(static_cast<float>(i[0]));
  }
};
struct Blend {
  template <class T> KOKKOS_FUNCTION T operator()(T a, T b, T c) const { return a * b + c; }
};
struct BlendTwice {
  template <class T> KOKKOS_FUNCTION Several<T, T> operator()(T a, T b, T c) const {
    return several(Blend{}(a, b, c), Blend{}(b, c, a));
  }
};

struct Masked {
  template <class T> KOKKOS_FUNCTION T operator()(const GlobalIndex& i, T x) const {
    return i[0] < i[1] ? x : T{};
  }
};

/// Reads a halo under indices of the whole tensor.
template <class T> struct Shift {
  GlobalView<LocalView<T, 3>> from;
  LocalView<T, 3> to;
  Index i, k;
  KOKKOS_FUNCTION void operator()(int) const { to(0, 0, 0) = from(i - 1, 0, k); }
};

/// The functions of op/elements/functions.hpp and its siblings, each in a kernel.
template <class T> void every_function(const ProcessMesh<Grid>& mesh) {
  const auto x = from_function<Tensor<T, data, model>>(mesh, {4, 6}, Ramp{});
  const auto f = sin(x) + cos(x) + tan(x) + asin(x) + acos(x) + atan(x) + sinh(x) + cosh(x) +
                 asinh(x) + acosh(x) + atanh(x) + atan2(x, x) + exp2(x) + expm1(x) + log2(x) +
                 log10(x) + log1p(x) + rsqrt(x) + cbrt(x) + pow(x, x) + pow(x, 2) + pow(2, x) +
                 erf(x) + sigmoid(x) + silu(x) + floor(x) + ceil(x) + round(x) + trunc(x) +
                 sign(x) + clamp(x, -1, 1) + clamp(x, -x, x) + square(x) + reciprocal(x) +
                 remainder(x, 3) + map_with_index(Masked{}, x);
  const auto t = logical_or(logical_and(f < x, x <= 1), logical_xor(2 > x, logical_not(x >= f)));
  const auto u = logical_or(isnan(f), logical_or(isinf(f), logical_and(isfinite(f), equal(x, f))));
  const auto n = cast<std::int32_t>(where(t, x, 0) + where(u, T{1}, T{}) * where(t, 2, x));
  const auto bits =
      bitwise_or(bitwise_and(n, 7), bitwise_xor(bitwise_left_shift(n, 2), bitwise_not(n)));
  const auto z =
      make_complex(cast<float>(bitwise_right_shift(bits, 1)), cast<float>(not_equal(n, 3)));
  const auto h = cast<tessera::half>(real(z) + imag(conj(z)) + abs(z) + arg(z));
  fmt::print(fmt::runtime("{}"), to_host(cast<double>(sin(h) * h)).values.size());
}

/// The same with axes and shardings that are known when the program runs.
void every_dynamic_function(const DynamicMesh& mesh) {
  const DynamicTensor n = iota<float>(mesh, {4, 6}, Sharding{{0}, {1}}, 1);
  const DynamicTensor x = maximum(exp(n), 0.5f);
  const DynamicTensor z = where(isnan(x), cast<float>(logical_not(isinf(n))), 1.0f);
  const DynamicTensor s =
      softmax<float>("ij", 'j', split(replicate(z), 0, AxisList{0}), Sharding{{}, {1}});
  fmt::print(fmt::runtime("{}"), to_host<float>(s).values.size());
}

/// Tensors made by rule.
template <class T> void every_creation(const ProcessMesh<Grid>& mesh) {
  const auto x =
      eye<Tensor<T, data, model>>(mesh, {4, 6}, 1) + ones<Tensor<T, data, _>>(mesh, 4, 6);
  const auto y = full_like(x, T(2)) * zeros_like(x) + ones_like(x);
  const auto a = arange<Tensor<T, data>>(mesh, 3, 20, 4);
  const auto b = linspace<Tensor<T, data>>(mesh, 0, 4, 5);
  DynamicTensor d = arange<T>(mesh, Sharding{{0}}, 5);
  auto c = empty_like(a);
  map_into(c, fn::Add{}, a, b);
  ((c += b) -= a) *= 2;
  axpy(2, a, c /= b);
  axpy(2, d, d += d);
  map_into<T>("i,i->i", d, fn::Multiply{}, d, d);
  print(dot(a, c));
  const auto s = stack<0>(x, y);
  print(matmul(
      s, reshape<P<data, _>>(
             broadcast_to<P<_, data>>(squeeze<0>(expand_dims<0>(flip<0>(b))), {6, 5}), {6, 5})));
  fmt::print(fmt::runtime("{}{}"), allclose(a, c), item(dot(a, c)) == T(1));
  print(dot(s, s));
  fmt::print(fmt::runtime("{}"), broadcast_to(d, {2, 5}, Sharding{{}, {0}}).extents()[0]);
  fmt::print(
      fmt::runtime("{}{}{}{}"), x + y, a + b, empty_like(b).size(),
      to_host<T>(ones_like(d)).values.size() +
          to_host<T>(full_like(linspace<T>(mesh.core(), Sharding{{0}}, 0, 4, 5), 3)).values.size());
}

/// What works at indices.
template <class T> void every_index(const ProcessMesh<Grid>& mesh) {
  auto table = from_function<Tensor<T, model, _>>(mesh, {16, 6}, Ramp{});
  auto ids = iota<Tensor<std::int32_t, data, _>>(mesh, {4, 3}, 1);
  auto wide = cast<std::int64_t>(ids);
  auto rows = take<"vm,bs->bsm">(table, ids);
  auto same = take<0>(table, wide, OutOfRange::drop);
  auto lines = take_along_axis<"vm", 'v'>(table, iota<Tensor<std::int32_t, data, _>>(mesh, {4, 6}));
  auto pairs = take<"vm,bs,bs->bs">(table, ids, wide);
  auto back = scatter<Sum, "vm,bs,bsm->vm">(table, ids, rows);
  auto fresh = scatter<Sum, "bs,bsm->vm">(wide, rows, {16});
  auto most = scatter<Max, "bs,bs->v">(ids, pairs, {16});
  auto last = scatter<Set, "vm,bs,bs,bs->vm">(table, ids, wide, pairs);
  scatter_into<Sum, "vm,bs,bsm->vm">(table, ids, rows);
  auto counts = bincount<"bs->v">(ids, 16) + histogram<"bsm->v">(rows, 16, -4.0, 4.0);
  auto hot = one_hot<T, "bsv", 'v'>(ids, 16);
  auto window = dynamic_slice<"bsm", 'm'>(rows, {2}, {3});
  auto put = dynamic_update_slice<"bsm", 'm'>(rows, window, {1});
  dynamic_update_slice_into<"bsm", 'm'>(put, window, {0});
  auto by_name = take("vm,bs->bsm", DynamicTensor(table), DynamicTensor(ids));
  fmt::print(fmt::runtime("{}{}"), to_host(same).values.size() + to_host(back).values.size(),
             to_host(fresh).values.size() + to_host(most).values.size() +
                 to_host(last).values.size() + to_host(hot).values.size() +
                 to_host(put).values.size() + to_host<T>(by_name).values.size());
}

template <class T> void every_operator(const ProcessMesh<Grid>& mesh) {
  auto x = from_function<Tensor<T, data, _, model>>(mesh, {4, 6, 8}, Ramp{});
  auto w = random_uniform<Tensor<T, data, model>>(mesh, {8, 10}, 7, 0, 2);
  auto z = zeros<Tensor<T, data, _, model>>(mesh, 4, 6, 8);
  auto o = full<Tensor<T, model>>(mesh, {8}, T{1});
  const std::vector<T> values(80, T{3});
  auto h = from_host<Tensor<T, data, model>>(mesh, {8, 10}, values);

  auto y = einsum<"bsm,mh->bsh">(x, w);
  auto r = einsum<"bsm,mh->bsh", P<data, _, Axes<model>>>(x, w);
  auto u = einsum<"bsm,bsm->", P<Unreduced<Sum, data, model>>>(x, x);
  auto c = einsum<"bsm,mh,mh->bh">(x, w, h);
  auto d = einsum<"bsm->mb">(x);
  auto trace = einsum<"mm,mh->h">(random_uniform<Tensor<T, data, model>>(mesh, {8, 8}, 8), w);
  auto t = transpose<"bsm->mbs">(x);
  auto ep = einsum<"bsm,mh->bsh">(x, w, epilogue(fn::Square{}).scale(T{2}).bias(trace).residual(y));
  auto th = einsum<"bsm,mh->bsh">(x, w, then(Blend{}, trace, y));
  einsum_into<"bsm,mh->bsh">(y, x, w);
  einsum_into<"bsm,mh->bsh">(y, x, w, T{2}, T{3});
  reshard_into(z, reshard<P<_, data, _>>(x));
  auto s = sum<"bsm->b">(x);
  auto total = sum(x) + value(reshard<P<>>(u));
  auto running = cumsum<"bsm", 'm'>(x, {.reverse = true});
  auto place = argmax<"bsm->bs">(x);
  auto composed = associative_scan<"bsm", 'm'>(fn::Maximum{}, T{}, x);
  auto ordered = tessera::sort<"bsm", 'm'>(x, {.descending = true});
  auto places = argsort<"bsm", 'b'>(x);
  auto ranked = sort_with_indices<"bsm", 'm'>(x);
  auto [sorted_keys, with_them] = sort_by_key<"bsm", 'm'>(x, places);
  auto three = sort_by_key<"bsm", 'm'>(SortOptions{}, x, z, places);
  auto largest = top_k<"bsm", 'm'>(x, 3);
  auto least = bottom_k<"bsm", 'm'>(x, 3);
  auto exact = sum<"bsm->b">(x, deterministic);
  auto top = max<"bsm->bs">(x);
  auto low = min(x);
  auto g = map(Blend{}, x, x, o);
  auto [blended, twice] = map_several(BlendTwice{}, x, x, o);
  auto e = map<"bsm,bs->bsm">(fn::Subtract{}, x, top);
  auto k = (x + z) * T{2} - T{1} / (x * x + T{1});
  auto a = reshard<P<_, data, _>>(x);
  auto b = reshard<P<model, _, data>>(split<2, Axes<data, model>>(replicate(x)));
  auto pending = async([&] { return reshard<P<_, data, _>>(x); });
  auto counting = async([&] { return reduce<Sum, "bsm->b">(x); });
  auto [first, second] = reshard_together<P<_, data, _>, P<_, _>>(x, w);
  auto [finished] = finish_together(u);
  a = pending.wait() + first;
  s = counting.wait();
  auto extended = halo_exchange<0, 2>(x, {1, 2}, 1, {Boundary::periodic, Boundary::none});
  auto outside = halo_exchange<2>(z, 1, 1, Boundary::constant, T{2});
  auto travelling = halo_exchange_async<0>(x, 1, 1, Boundary::symmetric);
  auto [halo_x, halo_z] = halo_exchange_together<0>(1, 0, Boundary::none, x, z);
  auto kept = make_halo<Tensor<T, data, _, model>, 0>(mesh, {4, 6, 8}, 1, 1, Boundary::reflected);
  kept.assign(x);
  kept.exchange();
  kept.add_back();
  exchange_together(kept, outside);
  axpy(2, x, kept *= T{3});
  map_into(kept, fn::Add{}, kept, x);
  print(sum(kept + reshard<P<_, data, _>>(kept)));
  auto summed = halo_adjoint(extended) + kept.tensor() + travelling.wait().tensor();
  Kokkos::parallel_for(
      Kokkos::RangePolicy<>(0, 1),
      Shift<T>{kept.global(), local_view(summed), kept.own_box()[0].lo, kept.own_box()[2].lo});
  auto root = from_root<Tensor<T, data, model>>(mesh, {8, 10}, 0, values);
  auto blocks = from_blocks<Tensor<T, data, model>>(mesh, {8, 10}, to_block(root).values);
  write_npy(blocks, "x.npy");
  auto loaded = read_npy<Tensor<T, _, data>>(mesh, "x.npy");
  Kokkos::View<T**, Kokkos::LayoutRight> box("box", 8, 10);
  to_irregular(loaded, whole({8, 10}), box);
  auto regular = from_irregular<Tensor<T, data, _>>(mesh, {8, 10}, whole({8, 10}), box);
  fmt::print(fmt::runtime("{}{}{}"), regular, to_root(regular).values.size(), draw_svg(regular));
  print(total);
  // fmt's own check of literals is no constant expression to nvcc 13.0, hence fmt::runtime.
  fmt::print(fmt::runtime("{}{}"), visualize(x),
             plan<"bsm,mh->bsh">(like<Tensor<T, data, _, model>>(4, 6, 8),
                                 like<Tensor<T, data, model>>(8, 10), sizes<Grid>(2, 2))
                 .steps.size());
  auto bounded = einsum<"bsm,mh->bsh", Deduced, Only<gathers<>, all_reduces<>>>(x, w);
  auto row = submesh<Strict<Mesh<model>>>(mesh);
  auto other = make_mesh<Grid>(mesh.core()->transport().among({0, 1}), mesh.sizes());
  auto moved = reshard<Tensor<T, _, model>>(w, other);
  using Named = Rules<AxisRule<Ramp, data>, AxisRule<Blend, model>>;
  auto logical = zeros<ShardedTensor<T, Grid, Logical<Named, Blend, _, Ramp>>>(mesh, 4, 6, 8);
  fmt::print(fmt::runtime("{}{}{}"), row.process(),
             to_host(moved).values.size() + to_host(bounded).values.size(), logical.size());
  if constexpr (std::is_floating_point_v<T>) {
    auto n = random_normal<Tensor<T, data, _, model>>(mesh, {4, 6, 8}, 7);
    auto m = mean<"bsm->sm">(n);
    auto f = relu(n) + gelu(n) + exp(n) + log(n) + tanh(n) + sqrt(abs(n)) + maximum(n, -n) +
             minimum(n, n);
    auto p = softmax<"bsm", 'm'>(n);
    auto q = log_softmax<"bsm", 'b'>(n);
    auto logs = cumulative<LogSumExp, "bsm", 'm'>(tril(n) + triu(n, 1));
    Kokkos::View<T**, Kokkos::LayoutRight> view("block", 8, 10);
    auto v = adopt<Tensor<T, _, _>>(mesh, {8, 10}, view);
    auto dynamic_result =
        einsum("ik,kj->ij", DynamicTensor(v), DynamicTensor(transpose<"ij->ji">(v)));
    fmt::print(fmt::runtime("{}"), to_host<T>(dynamic_result).values.size());
  }
}

/// What rows are summed up to, of floating-point elements.
template <class T> void every_statistic(const ProcessMesh<Grid>& mesh) {
  const auto x = random_normal<Tensor<T, data, model>>(mesh, {4, 6}, 3);
  const auto rows = variance<"ij->i">(x) + standard_deviation<"ij->i">(x, 1) + norm<1, "ij->i">(x) +
                    norm<2, "ij->i">(x) + norm<infinite_norm, "ij->i">(x) +
                    logsumexp<"ij->i", P<data>>(x) + product<"ij->i">(x);
  const auto totals = variance(x, 1) + standard_deviation(x) + norm(x) + norm<1>(x) +
                      norm<infinite_norm>(x) + logsumexp(x) + product(x) + sum(x, deterministic);
  const auto [centre, spread] = mean_and_variance<"ij->i">(x);
  const auto column = sum<"ij->j">(x);
  const auto normed = layer_norm(x, column, column) + rms_norm(x, column);
  fmt::print(fmt::runtime("{}{}"), centre, spread);
  const auto softened = softmax<"ij", 'j'>(x) + log_softmax<"ij", 'i'>(x);
  fmt::print(fmt::runtime("{}{}{}"), rows, totals, to_root(softened).values.size());
}

/// What all numbers have, complex ones and the narrowest too.
template <class T> void every_number(const ProcessMesh<Grid>& mesh) {
  const auto x = from_function<Tensor<T, data, model>>(mesh, {4, 6}, Row<T>{});
  auto y = einsum<"ij,jk->ik">(x, reshard<P<model, _>>(x)) * T(2) -
           x / full<Tensor<T, _, _>>(mesh, {1, 1}, T(1));
  const auto open = reduce<Product, "ij->i", P<data, Unreduced<Product, model>>>(x);
  const auto running = cumsum<"ij", 'j'>(x) + cumprod<"ij", 'i'>(x, {.exclusive = true});
  const auto [finished] = finish_together(open);
  using Wide = typename std::decay_t<decltype(finished)>::value_type;  // int64 of integers
  einsum_into<"ij,kj->ik">(y, x, x, T(1), T(1));
  fmt::print(fmt::runtime("{}{}{}{}"), product<"ij->j">(y), sum(x, deterministic),
             to_host(equal(finished, full<Tensor<Wide, data>>(mesh, {4}, Wide(1)))).values.size(),
             to_host(running).values.size());
}
/// Operators that move elements.
template <class T> void every_shape(const ProcessMesh<Grid>& mesh) {
  const auto x = from_function<Tensor<T, data, model>>(mesh, {4, 6}, Row<T>{});
  const Extents low{1, 0}, high{0, 2}, limit{3, 6};
  const auto a = slice(x, low, limit);
  const auto b = slice<P<_, model>, Only<exchanges<data, model>>, 1>(x, {2}, {6}, {2});
  const std::vector<Extents> starts{low, low}, limits{limit, limit};
  const auto halves = slices(x, starts, limits);
  const auto c = pad(x, low, high, {}, T(1));
  const auto d = pad<1>(x, {1}, {-1});
  const auto e = reverse<0, 1>(reverse(x));
  const auto f = roll<0>(x, 2);
  const auto g = shift<1, P<data, _>>(x, -1);
  const auto h = concatenate<0>(f, halves[1], x);
  const auto i = update(x, slice<1>(a, {1}, {5}), low);
  const auto j = reshape<P<data, _, model>>(x, {4, 3, 2});
  const auto m = concatenate<0>(slice_of<0>(x, {1}, {2}), x, slice_of(x, low, limit));
  const auto n = update(slice_of(x, low, limit), slice_of<1>(a, {1}, {5}), low);
  const DynamicTensor y(x);
  const FixedVector<int, max_dims> columns{1};
  const std::vector<DynamicTensor> parts{roll(y, 1, 0), reverse(y, columns), shift(y, 1, 0, T(1))};
  const auto k = concatenate(1, parts);
  const auto o = concatenate(0, {slice_of(y, low, limit), y, x}),
             p = update(y, slice_of(y, low, limit), low);
  const auto l = update(pad(slice(y, low, limit), low, high), slice(y, low, limit), low);
  fmt::print(fmt::runtime("{}{}{}{}"), m, n, o.extents()[0], p.extents()[0]);
  fmt::print(fmt::runtime("{}{}{}{}{}{}{}{}{}{}"), a, b, c, d, e, g, h, i, j,
             reshape(k, Extents{volume(k.extents())}).extents()[0] + l.extents()[0]);
}
/// Convolutions, windows and their gradients.
template <class T> void every_window(const ProcessMesh<Grid>& mesh) {
  const auto x = from_function<Tensor<T, _, data, _, model>>(mesh, {2, 8, 8, 4}, Row<T>{});
  const auto k = from_function<Tensor<T, _, _, model, _>>(mesh, {3, 3, 4, 6}, Row<T>{});
  Convolution settings;
  settings.stride = {2, 2};
  settings.low = settings.high = {1, 1};
  const auto y = convolve<nhwc, P<_, data, _, _>>(x, k, settings);
  const auto dx = convolve_input_gradient<nhwc, P<_, data, _, model>>(y, k, x.extents(), settings);
  const auto dk = convolve_kernel_gradient<nhwc>(x, y, k.extents(), settings);
  WindowSettings pool;
  pool.size = pool.stride = {1, 2, 2, 1};
  const auto most = reduce_window<Sum>(x, pool);
  const auto back = reduce_window_gradient<Sum>(x, most, pool);
  fmt::print(fmt::runtime("{}{}{}"), dx + back, dk, to_host(most).values.size());
}
template <class T> void every_pool(const ProcessMesh<Grid>& mesh) {
  const auto x = from_function<Tensor<T, data, model>>(mesh, {4, 6}, Ramp{});
  WindowSettings pool;
  pool.size = {2, 3};
  const auto most = reduce_window<Max>(x, pool);
  fmt::print(fmt::runtime("{}{}"), select_and_scatter<Min>(x, most, pool),
             reduce_window_gradient<Max>(x, reduce_window<Min>(x, pool), pool));
}
template <class T> void every_order(const ProcessMesh<Grid>& mesh) {
  const auto x = from_function<Tensor<T, data, model>>(mesh, {4, 6}, Ramp{});
  const auto top = max<"ij->i">(x) + min<"ij->i">(x) + clamp(maximum(x, -x), 0, 2);
  fmt::print(fmt::runtime("{}{}{}{}"), argmax<"ij->i">(top), argmin(x), cummax<"ij", 'j'>(x),
             cummin<"ij", 'i'>(x));
}
void every_truth(const ProcessMesh<Grid>& mesh) {
  const auto x = less(from_function<Tensor<float, data, model>>(mesh, {4, 6}, Ramp{}), 3);
  const auto open = reduce<Any, "ij->i", P<data, Unreduced<Any, model>>>(x);
  const auto both = logical_and(any<"ij->i">(x), all<"ij->i">(x));
  fmt::print(fmt::runtime("{}{}{}{}"), logical_xor(both, reshard<P<data>>(open)), any(x), all(x),
             cumulative<All, "ij", 'j'>(x));
}
template <class T> void every_complex(const ProcessMesh<Grid>& mesh) {
  const auto x = random_normal<Tensor<T, data, model>>(mesh, {4, 6}, 3);
  fmt::print(fmt::runtime("{}{}{}"), variance<"ij->i">(x) + standard_deviation<"ij->i">(x),
             norm<2, "ij->j">(x), mean(x));
}

int main(int argc, char** argv) {
  Environment env(argc, argv);
  const auto mesh = make_mesh<Grid>(env, env.world()->size() / 2, 2);
  every_creation<float>(mesh);
  every_creation<std::int32_t>(mesh);
  every_creation<complex<double>>(mesh);
  every_function<float>(mesh);
  every_dynamic_function(mesh);
  every_dynamic_function(make_mesh(env, {2, env.world()->size() / 2}, {"rows", "columns"}));
  every_index<float>(mesh);
  every_index<std::int64_t>(mesh);
  every_operator<float>(mesh);
  every_operator<double>(mesh);
  every_operator<std::int32_t>(mesh);
  every_operator<std::int64_t>(mesh);
  every_statistic<float>(mesh);
  every_statistic<tessera::half>(mesh);
  every_statistic<bfloat16>(mesh);
  every_number<tessera::half>(mesh);
  every_number<std::int8_t>(mesh);
  every_number<std::uint8_t>(mesh);
  every_number<std::uint64_t>(mesh);
  every_number<complex<double>>(mesh);
  every_shape<float>(mesh);
  every_shape<bfloat16>(mesh);
  every_shape<complex<double>>(mesh);
  every_shape<std::uint8_t>(mesh);
  every_shape<std::uint32_t>(mesh);
  every_window<float>(mesh);
  every_window<complex<double>>(mesh);
  every_window<std::int32_t>(mesh);
  every_pool<float>(mesh);
  every_pool<tessera::half>(mesh);
  every_order<std::int16_t>(mesh);
  every_order<std::uint16_t>(mesh);
  every_order<bfloat16>(mesh);
  every_truth(mesh);
  every_complex<complex<float>>(mesh);
}
