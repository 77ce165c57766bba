// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is made of dynamic tensors, and computed of them in several steps, is what the typed
// functions make and compute.
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/grid.hpp"

namespace {
using namespace tessera;
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;

struct Ramp {
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i) const {
    return static_cast<double>(i[0] * 3 + i[1] * i[1] % 5) / 4;
  }
};

template <class F> void on_every_mesh(const F& f) {
  for (const MeshSizes<Grid> size : {sizes<Grid>(1, 1), sizes<Grid>(4, 1), sizes<Grid>(2, 2),
                                     sizes<Grid>(3, 2), sizes<Grid>(1, 5), sizes<Grid>(8, 1)})
    run_loopback(size.shape.processes(), [&](std::shared_ptr<Transport> world) {
      f(make_mesh<Grid>(std::move(world), size));
    });
}
/// Checks that the elements are the same, to the last bit, under the same sharding.
template <class A> void same(const DynamicTensor& d, const A& typed) {
  using T = typename A::value_type;
  CHECK(d.desc() == typed.desc());
  const HostTensor<T> a = to_host<T>(d), b = to_host(typed);
  CHECK(a.extents == b.extents);
  REQUIRE(a.values.size() == b.values.size());
  CHECK(std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(T)) == 0);
}
template <class T> void statistics(const ProcessMesh<Grid>& mesh) {
  const auto t = random_normal<Tensor<T, data, model>>(mesh, {5, 7}, 3);
  const DynamicTensor d = random_normal<T>(mesh.core(), {5, 7}, Sharding{{0}, {1}}, 3);
  same(d, t);
  same(variance<T>("ij->i", d), variance<"ij->i">(t));
  same(variance<T>("ij->j", d, 1, Sharding{{0}}), variance<"ij->j", P<data>>(t, 1));
  const auto [mean_of, spread_of] = mean_and_variance<T>("ij->j", d, 1, Sharding{{0}});
  const auto [typed_mean, typed_spread] = mean_and_variance<"ij->j", P<data>>(t, 1);
  same(mean_of, typed_mean);
  same(spread_of, typed_spread);
  same(standard_deviation<T>("ij->", d, 1), standard_deviation(t, 1));
  same(norm<1, T>("ij->i", d), norm<1, "ij->i">(t));
  same(norm<2, T>("ij->j", d, Sharding{{0, 1}}), norm<2, "ij->j", P<Axes<data, model>>>(t));
  same(norm<infinite_norm, T>("ij->", d), norm<infinite_norm>(t));
  if constexpr (RealElement<T>) {
    same(logsumexp<T>("ij->i", d, Sharding{{1}}), logsumexp<"ij->i", P<model>>(t));
    same(softmax<T>("ij", 'j', d), softmax<"ij", 'j'>(t));
    same(log_softmax<T>("ij", 'i', d), log_softmax<"ij", 'i'>(t));
    const auto row = random_normal<Tensor<T, model>>(mesh, {7}, 4);
    const DynamicTensor r = random_normal<T>(mesh.core(), {7}, Sharding{{1}}, 4);
    same(layer_norm<T>(d, r, r), layer_norm(t, row, row));
    same(rms_norm<T>(d, r, 0.5, Sharding{{}, {0}}), rms_norm<P<_, data>>(t, row, 0.5));
    same(layer_norm<T>(r, r, r), layer_norm(row, row, row));
  }
}

TEST_CASE("statistics and softmax of dynamic tensors are those of typed ones") {
  on_every_mesh([](const ProcessMesh<Grid>& mesh) {
    statistics<double>(mesh);
    statistics<half>(mesh);
    statistics<complex<float>>(mesh);
  });
}

/// Every named function of one real tensor, as something that takes a typed or a dynamic one.
template <class Visit> void every_function(const Visit& visit) {
  visit([](const auto& a) { return exp(a); });
  visit([](const auto& a) { return exp2(a); });
  visit([](const auto& a) { return expm1(a); });
  visit([](const auto& a) { return log(a); });
  visit([](const auto& a) { return log2(a); });
  visit([](const auto& a) { return log10(a); });
  visit([](const auto& a) { return log1p(a); });
  visit([](const auto& a) { return sqrt(a); });
  visit([](const auto& a) { return rsqrt(a); });
  visit([](const auto& a) { return cbrt(a); });
  visit([](const auto& a) { return sin(a); });
  visit([](const auto& a) { return cos(a); });
  visit([](const auto& a) { return tan(a); });
  visit([](const auto& a) { return asin(a); });
  visit([](const auto& a) { return acos(a); });
  visit([](const auto& a) { return atan(a); });
  visit([](const auto& a) { return sinh(a); });
  visit([](const auto& a) { return cosh(a); });
  visit([](const auto& a) { return tanh(a); });
  visit([](const auto& a) { return asinh(a); });
  visit([](const auto& a) { return acosh(a); });
  visit([](const auto& a) { return atanh(a); });
  visit([](const auto& a) { return erf(a); });
  visit([](const auto& a) { return sigmoid(a); });
  visit([](const auto& a) { return silu(a); });
  visit([](const auto& a) { return relu(a); });
  visit([](const auto& a) { return gelu(a); });
  visit([](const auto& a) { return floor(a); });
  visit([](const auto& a) { return ceil(a); });
  visit([](const auto& a) { return round(a); });
  visit([](const auto& a) { return trunc(a); });
  visit([](const auto& a) { return sign(a); });
  visit([](const auto& a) { return abs(a); });
  visit([](const auto& a) { return square(a); });
  visit([](const auto& a) { return reciprocal(a); });
  visit([](const auto& a) { return isnan(a); });
  visit([](const auto& a) { return isinf(a); });
  visit([](const auto& a) { return isfinite(a); });
  visit([](const auto& a) { return -a; });
  visit([](const auto& a) { return clamp(a, -1, 1); });
  visit([](const auto& a) { return cast<std::int16_t>(a); });
  visit([](const auto& a) { return cast<complex<double>>(a); });
}
/// And of two of them, or one and a number.
template <class Visit> void every_function_of_two(const Visit& visit) {
  visit([](const auto& a, const auto& b) { return a + b; });
  visit([](const auto& a, const auto& b) { return a - b; });
  visit([](const auto& a, const auto& b) { return a * b; });
  visit([](const auto& a, const auto& b) { return a / b; });
  visit([](const auto& a, const auto& b) { return maximum(a, b); });
  visit([](const auto& a, const auto& b) { return minimum(a, b); });
  visit([](const auto& a, const auto& b) { return remainder(a, b); });
  visit([](const auto& a, const auto& b) { return pow(a, b); });
  visit([](const auto& a, const auto& b) { return atan2(a, b); });
  visit([](const auto& a, const auto& b) { return equal(a, b); });
  visit([](const auto& a, const auto& b) { return not_equal(a, b); });
  visit([](const auto& a, const auto& b) { return a < b; });
  visit([](const auto& a, const auto& b) { return a >= b; });
  visit([](const auto& a, const auto& b) { return where(greater(a, b), a, b); });
  visit([](const auto& a, const auto& b) { return where(less_equal(a, b), b, a); });
}
template <class T> void functions(const ProcessMesh<Grid>& mesh) {
  const auto t = random_normal<Tensor<T, data, model>>(mesh, {5, 7}, 3);
  const auto u = random_normal<Tensor<T, model, data>>(mesh, {5, 7}, 4);
  const auto row = random_normal<Tensor<T, model>>(mesh, {7}, 5);
  const DynamicTensor d = t, e = u, r = row;
  every_function([&](const auto& f) { same(f(d), f(t)); });
  every_function_of_two([&](const auto& f) {
    same(f(d, e), f(t, u));
    same(f(d, r), f(t, row));
    same(f(d, row), f(t, row));  // a typed one beside a dynamic one
    same(f(d, 2), f(t, 2));
    same(f(T(0.5f), d), f(T(0.5f), t));
  });
  same(clamp(d, r, e), clamp(t, row, u));
  same(where(d > 0, d, 2), where(t > 0, t, 2));
  same(where(d > 0, 2, r), where(t > 0, 2, row));
  same(where(t > 0, d, row), where(t > 0, t, row));
  same(where(d > 0, 1.5f, -2.5f), where(t > 0, 1.5f, -2.5f));
}
template <class T> void numbers(const ProcessMesh<Grid>& mesh) {
  const auto t = cast<T>(random_uniform<Tensor<std::int32_t, data, model>>(mesh, {5, 7}, 3, 0, 9));
  const DynamicTensor d = t;
  same(d * 3 + d, t * 3 + t);
  same(d / d, t / t);
  same(abs(d), abs(t));
  same(square(-d), square(-t));
  same(where(equal(d, 3), d, T(2)), where(equal(t, 3), t, T(2)));
  same(cast<complex<float>>(d), cast<complex<float>>(t));
  same(cast<bool>(d), cast<bool>(t));
  if constexpr (IntegerElement<T>) {
    same(bitwise_or(bitwise_left_shift(d, 1), bitwise_not(d)),
         bitwise_or(bitwise_left_shift(t, 1), bitwise_not(t)));
    same(floor(relu(d)), floor(relu(t)));
    same(clamp(d, 2, 5), clamp(t, 2, 5));
  } else {
    same(make_complex(real(d), imag(d)), make_complex(real(t), imag(t)));
    same(conj(d), conj(t));
    same(arg(d), arg(t));
  }
}

TEST_CASE("functions with a name make of dynamic tensors what they make of typed ones") {
  for (const MeshSizes<Grid> size : {sizes<Grid>(1, 1), sizes<Grid>(3, 2)})
    run_loopback(size.shape.processes(), [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(std::move(world), size);
      functions<float>(mesh);
      functions<half>(mesh);
      numbers<std::int32_t>(mesh);
      numbers<std::uint8_t>(mesh);
      numbers<complex<float>>(mesh);
      const auto t =
          equal(random_uniform<Tensor<std::int32_t, data, model>>(mesh, {5, 7}, 3, 0, 2), 1);
      const DynamicTensor d = t;
      same(logical_xor(logical_not(d), true), logical_xor(logical_not(t), true));
      same(where(d, d, false), where(t, t, false));
      same(cast<half>(d), cast<half>(t));
      // What is unfinished stays so where the function allows it.
      const auto open = sum<"ij->i", P<data, Unreduced<Sum, model>>>(cast<float>(t));
      same(DynamicTensor(open) * 2, open * 2);
      same(where(DynamicTensor(equal(sum<"ij->i">(cast<float>(t)), 2)), open, open),
           where(equal(sum<"ij->i">(cast<float>(t)), 2), open, open));
      CHECK_THROWS_WITH_AS((void)exp(DynamicTensor(open)),
                           doctest::Contains("an unfinished partial value is used as a value"),
                           ShardingError);
    });
}

TEST_CASE("replicate, split, and softmax to another sharding, of dynamic tensors") {
  on_every_mesh([](const ProcessMesh<Grid>& mesh) {
    const auto t = random_normal<Tensor<float, data, model>>(mesh, {5, 7}, 3);
    const DynamicTensor d = t;
    same(replicate(d), replicate(t));
    same(split(d, 1, AxisList{0, 1}), split<1, Axes<data, model>>(t));
    same(split(d, 0, AxisList{1}), split<0, model>(t));
    same(softmax<float>("ij", 'j', d, Sharding{{1}, {}}),
         reshard<P<model, _>>(softmax<"ij", 'j'>(t)));
    same(log_softmax<float>("ij", 'i', d, Sharding{{}, {0}}),
         reshard<P<_, data>>(log_softmax<"ij", 'i'>(t)));
  });
}

TEST_CASE("dynamic tensors are made as typed ones are") {
  on_every_mesh([](const ProcessMesh<Grid>& mesh) {
    const Sharding s{{1}, {0}};
    const auto& core = mesh.core();
    same(zeros<std::int8_t>(core, {5, 7}, s), zeros<Tensor<std::int8_t, model, data>>(mesh, 5, 7));
    same(full<float>(core, {5, 7}, s, 2.5f), full<Tensor<float, model, data>>(mesh, {5, 7}, 2.5f));
    same(from_function<float>(core, {5, 7}, s, Ramp{}),
         from_function<Tensor<float, model, data>>(mesh, {5, 7}, Ramp{}));
    same(iota<std::int64_t>(core, {5, 7}, s, 1),
         iota<Tensor<std::int64_t, model, data>>(mesh, {5, 7}, 1));
    same(iota<half>(core, {5, 7}, s), iota<Tensor<half, model, data>>(mesh, {5, 7}));
    CHECK_THROWS_WITH_AS((iota<float>(core, {5, 7}, s, 2)),
                         doctest::Contains("iota: dimension 2 of a tensor of 2 dimensions"),
                         ShapeError);
    same(random_uniform<std::int32_t>(core, {5, 7}, s, 4, -3, 3),
         random_uniform<Tensor<std::int32_t, model, data>>(mesh, {5, 7}, 4, -3, 3));
    const std::vector<float> values(35, 1.5f);
    same(from_host<float>(core, {5, 7}, s, values),
         from_host<Tensor<float, model, data>>(mesh, {5, 7}, values));
    const std::vector<std::uint8_t> bytes{1, 0, 7};
    same(from_host<bool>(core, {3}, Sharding{{0}}, std::span<const std::uint8_t>(bytes)),
         from_host<Tensor<bool, data>>(mesh, {3}, bytes));
    CHECK_THROWS_AS((from_host<float>(core, {5, 6}, s, values)), ShapeError);
    CHECK_THROWS_AS(
        (zeros<float>(core, {5}, Sharding{{}}.with_partial(AxisSet{0}, Reduction::sum))),
        ShardingError);
  });
}

TEST_CASE(
    "a function on elements that the tensor does not have is refused, and so is a letter it does "
    "not have") {
  const auto mesh = dry_mesh<Grid>(2, 2);
  const DynamicTensor d = zeros<float>(mesh.core(), {4, 6}, Sharding{{0}, {1}});
  const auto message = [](const auto& f) -> std::string {
    try {
      f();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto says = [&](const auto& f, std::string_view part) {
    return message(f).find(part) != std::string::npos;
  };
  CHECK(says([&] { (void)variance<double>("ij->i", d); },
             "the tensor is of float and is read as double"));
  CHECK(says([&] { (void)map_dynamic<double>("ij->ij", fn::Exp{}, d.sharding(), d); },
             "operand 1 is of float and the function is called on double"));
  CHECK(says([&] { (void)softmax<float>("ij", 'k', d); },
             "runs along a letter that its operand does not have"));
  CHECK(says(
      [&] {
        (void)norm<2, float>("ij->i", d, {Sharding{{0}}, Contract::nothing()});
      },
      "the call accepts Only<>"));
  CHECK(message([&] {
          (void)norm<2, float>("ij->i", d,
                               {Sharding{{0}}, contract_of<Grid, Only<all_reduces<model>>>()});
        }).empty());
}

TEST_CASE("what a function does not take is refused with the sentence of typed calls") {
  const auto mesh = dry_mesh<Grid>(2, 2);
  const DynamicTensor d = zeros<float>(mesh.core(), {4, 6}, Sharding{{0}, {1}}),
                      i = zeros<std::int32_t>(mesh.core(), {4, 6}, Sharding{{0}, {1}}),
                      z = zeros<complex<float>>(mesh.core(), {4, 6}, Sharding{{0}, {1}}),
                      b = zeros<bool>(mesh.core(), {4, 6}, Sharding{{0}, {1}});
  const auto says = [](const auto& f, const char* part) {
    CHECK_THROWS_WITH_AS(f(), doctest::Contains(part), UsageError);
  };
  says([&] { (void)exp(i); }, "Exp of int32: this function is for real numbers");
  says([&] { (void)(b + b); }, "Add of bool: this function is for numbers");
  says([&] { (void)clamp(z, 1, 2); }, "Clamp of complex<float>");
  says([&] { (void)cast<float>(z); }, "Cast of complex<float>");
  says([&] { (void)logical_not(d); }, "this function is for bool");
  says([&] { (void)maximum(d, i); },
       "Maximum: the operands have different element types; elementwise functions do not convert");
  says([&] { (void)where(d, d, d); },
       "Select of float: the elements of the condition are not bool");
  const DynamicTensor r = zeros<float>(mesh.core(), {6}, Sharding{{1}}),
                      scalar = reduce<Sum>("j->", r);
  says([&] { (void)rms_norm<float>(d, r, -1); },
       "RMS norm of float: epsilon is negative or no number");
  says([&] { (void)layer_norm<float>(i, r, r); }, "layer norm: ");
  const auto says_of_shape = [](const auto& f, const char* part) {
    CHECK_THROWS_WITH_AS(f(), doctest::Contains(part), ShapeError);
  };
  says_of_shape(
      [&] { (void)layer_norm<float>(d, r, zeros<double>(mesh.core(), {6}, Sharding{{1}})); },
      "the tensor and its scale or bias have different element types");
  says_of_shape([&] { (void)rms_norm<float>(scalar, r); },
                "the tensor has no dimensions; a norm is over the last one");
  says_of_shape([&] { (void)rms_norm<float>(d, zeros<float>(mesh.core(), {5}, Sharding{{1}})); },
                "RMS norm: ");
  says([&] { (void)where(b, d, i); }, "the operands have different element types");
  says([&] { (void)(i + 0.5); }, "stands beside elements of int32");
  says([&] { (void)exp(DynamicTensor()); }, "an empty tensor is used");
  says([&] { (void)maximum(d, DynamicTensor()); }, "an empty tensor is used");
  CHECK_THROWS_WITH_AS(
      (void)split(d, 2, AxisList{0}),
      doctest::Contains("split: a dimension is named that the tensor does not have; dimensions "
                        "count from 0; name one of the tensor's (dimension 2 of 2)"),
      ShapeError);
  CHECK_THROWS_AS((void)(d + zeros<float>(mesh.core(), {5, 6}, Sharding{{0}, {1}})), ShapeError);
}

TEST_CASE("on a strict mesh calls of dynamic tensors that communicate need a contract") {
  const auto mesh = dry_mesh<Strict<Grid>>(2, 2);
  const DynamicTensor d = zeros<float>(mesh.core(), {4, 6}, Sharding{{0}, {1}}),
                      e = zeros<float>(mesh.core(), {4, 6}, Sharding{{1}, {0}}),
                      b = zeros<bool>(mesh.core(), {4, 6}, Sharding{{1}, {0}});
  (void)gelu(exp(d) + 1);  // local
  (void)cast<double>(where(d > 0, d, 0));
  const Contract gathered = contract_of<Strict<Grid>, Only<gathers<>>>(), all;
  const auto bounded = [&](const Contract& enough, const auto& f) {
    CHECK_THROWS_WITH_AS(f(CallOptions(Where::here())),
                         doctest::Contains("it has no contract, and the mesh is strict"),
                         ContractError);
    CHECK_THROWS_AS(f(CallOptions(Contract::nothing())), ContractError);
    CHECK_NOTHROW(f(CallOptions(enough)));
  };
  bounded(gathered, [&](const CallOptions& call) { (void)maximum(d, e, call); });
  bounded(gathered, [&](const CallOptions& call) { (void)equal(d, e, call); });
  bounded(gathered, [&](const CallOptions& call) { (void)clamp(d, e, e, call); });
  bounded(gathered, [&](const CallOptions& call) { (void)where(b, d, 2, call); });
  bounded(gathered, [&](const CallOptions& call) { (void)replicate(d, call); });
  bounded(all, [&](const CallOptions& call) { (void)split(d, 0, AxisList{1}, call); });
  bounded(all, [&](const CallOptions& call) { (void)softmax<float>("ij", 'j', d, call); });
  bounded(all, [&](const CallOptions& call) {
    (void)softmax<float>("ij", 'j', d, {Sharding{{}, {}}, call});
  });
  bounded(all, [&](const CallOptions& call) {
    (void)log_softmax<float>("ij", 'j', d, {Sharding{{1}, {}}, call});
  });
  bounded(all, [&](const CallOptions& call) {
    (void)logsumexp<float>("ij->i", d, {Sharding{{1}}, call});
  });
  CHECK_NOTHROW((void)exp(d, Contract::nothing()));
  CHECK_NOTHROW((void)cast<double>(d, Contract::nothing()));
}
}  // namespace
