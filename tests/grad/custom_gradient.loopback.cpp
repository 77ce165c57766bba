// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions whose gradient their author states, and layers that run again on the way back.
#include <doctest/doctest.h>

#include <array>
#include <string>

#include <tessera/grad.hpp>
#include <tessera/op/compile.hpp>
#include <tessera/tessera.hpp>

#include "grad/typed.hpp"

using namespace tessera;
using namespace gradient_test;

namespace {
/// A kernel that no gradient sees: y = 2 x, on views.
template <class A, class B> void doubled(const A& from, const B& to) {
  for (std::size_t i = 0; i < to.extent(0); ++i)
    for (std::size_t j = 0; j < to.extent(1); ++j) to(i, j) = 2 * from(i, j);
}
}  // namespace

TEST_CASE("a kernel on views that a gradient would need is an error with both places") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto x = from_function<Real<data, _>>(mesh, {6, 4}, Ramp{});
    using Tensor = Real<data, _>;
    const auto says = [&](int line, const auto& f) {
      std::string text;
      try {
        (void)value_and_grad(f)(x);
      } catch (const UsageError& error) {
        text = error.what();
      }
      CHECK_MESSAGE(
          text.find("a tensor that depends on an argument was viewed at") != std::string::npos,
          text);
      CHECK_MESSAGE(
          text.find("custom_gradient.loopback.cpp:" + std::to_string(line)) != std::string::npos,
          text);
    };
    says(__LINE__ + 3, [&](const Tensor& v) {
      const Tensor e = exp(v);
      auto y = zeros_like(v);
      doubled(local_view(e), local_view(y));
      return sum<"ij->">(y * y);
    });
    says(__LINE__ + 4, [&](const Tensor& v) {  // views in the other order, pointers, and a scalar
      auto y = zeros<Real<>>(mesh, {});
      double* const to = y.data();
      const Tensor e = exp(v);
      const double* const from = e.data();
      *to = *from;
      return y;
    });
    says(__LINE__ + 4, [&](const Tensor& v) {  // dynamic, and mdspans
      const DynamicTensor e = exp(DynamicTensor(v));
      const DynamicTensor y = zeros_like(e);
      const auto to = block_mdspan<double, 2>(y);
      const auto from = block_mdspan<const double, 2>(e);
      for (Index i = 0; i < to.extent(0); ++i)
        for (Index j = 0; j < to.extent(1); ++j) to[std::array{i, j}] = from[std::array{i, j}];
      return reduce<Sum>("ij->", tanh(y));
    });
    says(__LINE__ + 5, [&](const Tensor& v) {  // into memory of the application's
      const Box box = v.box();
      const Kokkos::View<double**, Kokkos::LayoutRight> memory(
          "memory", static_cast<std::size_t>(box[0].hi - box[0].lo), 4);
      doubled(local_view(v), memory);
      return sum<"ij->">(adopt<Tensor>(mesh, {6, 4}, memory) + v);
    });
    // Where the loss does not depend on what the kernel made, and where no gradient is lost.
    const auto wanted = value_and_grad([](const Tensor& v) { return sum<"ij->">(v * v); })(x);
    const auto right = [&](const auto& f) {
      CHECK(close(value_and_grad(f)(x).gradient, wanted.gradient));
    };
    right([&](const Tensor& v) {  // looked at, and copied to the host
      const Tensor y = v * v;
      double sum_of_block = 0;
      const auto from = local_view(y);
      for (std::size_t i = 0; i < from.extent(0); ++i) sum_of_block += from(i, 0);
      (void)to_host(y), (void)sum_of_block;
      return sum<"ij->">(y);
    });
    right([&](const Tensor& v) {  // made beside the loss
      auto y = zeros_like(v);
      doubled(local_view(v), local_view(y));
      return sum<"ij->">(v * v) + 0.0 * sum<"ij->">(stop_gradient(y));
    });
    right([&](const Tensor& v) {  // constants that a kernel writes
      auto y = ones_like(v);
      const Tensor still = stop_gradient(v);
      doubled(local_view(still), local_view(y));
      y = ones_like(v);
      local_view(y)(0, 0) = 1;
      return sum<"ij->">(v * v * y);
    });
    right([&](const Tensor& v) {  // with its gradient
      const auto kernel = custom_gradient(
          [](const Tensor& a) {
            auto y = zeros_like(a);
            doubled(local_view(a), local_view(y));
            return y;
          },
          [](const Tensor& dy, const Tensor&) { return 2.0 * dy; });
      return sum<"ij->">(0.5 * kernel(v) * v);
    });
  });
}

TEST_CASE("functions whose gradient their author states") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto x = from_function<Real<data, _>>(mesh, {6, 4}, Ramp{});
    const auto w = from_function<Real<data, _>>(mesh, {6, 4}, Ramp{0.05});
    // The function itself, whose gradient is another.
    const auto scaled = custom_gradient([](const auto& v) { return v; },
                                        [](const auto& dy, const auto& v) { return 3.0 * dy * v; });
    CHECK(close(scaled(x), x));
    const auto got = value_and_grad([&](const auto& v) { return sum<"ij->">(scaled(v) * w); })(x);
    CHECK(close(got.gradient, 3.0 * w * x));
    // A function of several arguments, with what was saved, and with a kernel that no tape sees.
    const auto hidden = custom_gradient(
        [](const auto& a, const auto& b) {
          auto y = zeros_like(a);
          const auto from = local_view(a);
          const auto other = local_view(b);
          const auto to = local_view(y);
          for (Index i = 0; i < static_cast<Index>(to.extent(0)); ++i)
            for (Index j = 0; j < static_cast<Index>(to.extent(1)); ++j)
              to(i, j) = from(i, j) * other(i, j);
          return with_saved(y, b, 2.0);
        },
        [](const auto& dy, const auto& b, double two) {
          return std::tuple(dy * b * two, zero_gradient);
        });
    const auto both = value_and_grad<0, 1>(
        [&](const auto& a, const auto& b) { return sum<"ij->">(hidden(a, b) * a); })(x, w);
    CHECK(close(std::get<0>(both.gradient), x * w + 2.0 * w * x));
    CHECK(close(std::get<1>(both.gradient), zeros_like(w)));
    // Gradients of gradients go through the stated one.
    const auto slope = [&](const auto& v) {
      return sum<"ij->">(
          value_and_grad([&](const auto& u) { return sum<"ij->">(scaled(u) * u); })(v).gradient *
          w);
    };
    // d(s(u) u) = s(u) du + 3 u u du, so that the slope is sum((u + 3 u^2) w).
    const auto second = value_and_grad(slope)(x);
    CHECK(close(second.value, sum<"ij->">((x + 3.0 * x * x) * w)));
    // By the stated gradient of s: 3 w x; of 3 u u: 6 u w.
    CHECK(close(second.gradient, 3.0 * w * x + 6.0 * x * w));
    // With something saved: f(u) = e^u u, whose stated gradient is that of e^u alone, e^u; its own
    // gradient is e^u too.
    const auto saving = custom_gradient(
        [](const auto& u) {
          const auto e = exp(u);
          return with_saved(e * u, e);
        },
        [](const auto& dy, const auto& e) { return dy * e; });
    const auto through = value_and_grad([&](const auto& v) {
      return sum<"ij->">(
          value_and_grad([&](const auto& u) { return sum<"ij->">(saving(u)); })(v).gradient * w);
    })(x);
    CHECK(close(through.value, sum<"ij->">(exp(x) * w)));
    CHECK(close(through.gradient, exp(x) * w));
    // What a gradient would lose is an error.
    const auto captures = [&](const auto& v) {
      const auto inner = custom_gradient([&](const auto& u) { return u * v; },
                                         [](const auto& dy, const auto&) { return dy; });
      return sum<"ij->">(inner(w));
    };
    CHECK_THROWS_WITH_AS(value_and_grad(captures)(x), doctest::Contains("none of its arguments"),
                         UsageError);
    const auto fine = [&](const auto& v) {
      const auto inner = custom_gradient([u = stop_gradient(v)](const auto& a) { return a * u; },
                                         [](const auto& dy, const auto&) { return dy; });
      return sum<"ij->">(inner(v));
    };
    CHECK(close(value_and_grad(fine)(x).gradient, ones_like(x)));
    const auto unfinished = custom_gradient(
        [](const auto& v) { return einsum<"ij,ij->j", P<_, Unreduced<Sum, data>>>(v, v); },
        [](const auto&, const auto& v) { return v; });
    CHECK_THROWS_WITH_AS(
        value_and_grad([&](const auto& v) { return sum<"j->">(unfinished(v)); })(x),
        doctest::Contains("unfinished"), UsageError);
    const auto writes = [&](const auto& v) {
      const auto inner = custom_gradient(
          [](auto a) {
            a *= 2.0;
            return a;
          },
          [](const auto& dy, const auto&) { return dy; });
      return sum<"ij->">(inner(v));
    };
    CHECK_THROWS_WITH_AS(value_and_grad(writes)(1.0 * x), doctest::Contains("writes to a tensor"),
                         UsageError);
    // Dynamic tensors, whose gradient must have the tensor's extents.
    const DynamicTensor untyped = x;
    const auto wrong = custom_gradient(
        [](const DynamicTensor& v) { return 2.0 * v; },
        [](const DynamicTensor& dy, const DynamicTensor&) { return transpose("ij->ji", dy); });
    CHECK_THROWS_WITH_AS(value_and_grad([&](const DynamicTensor& v) {
                           return reduce<Sum>("ij->", wrong(v));
                         })(untyped),
                         doctest::Contains("is given as"), UsageError);
  });
}

TEST_CASE("layers that run again on the way back") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto x = from_function<Real<data, _>>(mesh, {6, 4}, Ramp{});
    std::vector<Dense> layers;
    for (int i = 0; i < 3; ++i)
      layers.push_back({from_function<Real<_, model>>(mesh, {4, 4}, Ramp{0.05}),
                        from_function<Real<model>>(mesh, {4}, Ramp{0.2})});
    const auto dense = [](const auto& v, const Dense& l) {
      return reshard<P<data, _>>(tanh(exp(tanh(einsum<"ik,kj->ij">(v, l.weight) + l.bias))));
    };
    const auto loss = [&](const auto& layer) {
      return [&, layer](const std::vector<Dense>& all) {
        auto h = x;
        for (const Dense& l : all) h = layer(h, l);
        return sum<"ij->">(square(h));
      };
    };
    const auto plain = value_and_grad(loss(dense))(layers);
    const auto again = value_and_grad(loss(recompute(dense)))(layers);
    CHECK(close(again.value, plain.value));
    for (std::size_t i = 0; i < layers.size(); ++i) {
      CHECK(close(again.gradient[i].weight, plain.gradient[i].weight));
      CHECK(close(again.gradient[i].bias, plain.gradient[i].bias));
    }
    // Compiled too; and it keeps less, for more operators.
    auto compiled = compile(value_and_grad(loss(recompute(dense))));
    CHECK(close(compiled(layers).gradient[0].weight, plain.gradient[0].weight));
    const auto record = [&](const auto& f) {
      Recording recording(mesh);
      (void)value_and_grad(f)(layers);
      return recording.take();
    };
    const Program kept = record(loss(dense)), twice = record(loss(recompute(dense)));
    CHECK(twice.peak_bytes() < kept.peak_bytes());
    CHECK(twice.entries().size() > kept.entries().size());
    // A tensor may be given twice, and integers beside it.
    const auto squared = recompute([](const auto& a, const auto& b) { return a * b; });
    const auto by = value_and_grad([&](const auto& v) { return sum<"ij->">(squared(v, v)); })(x);
    CHECK(close(by.gradient, 2.0 * x));
    const auto rows = from_function<ShardedTensor<std::int32_t, Grid, P<_>>>(
        mesh, {3},
        [] KOKKOS_FUNCTION(const GlobalIndex& i) { return static_cast<std::int32_t>(2 * i[0]); });
    const auto looked =
        recompute([](const auto& table, const auto& at) { return take<"vm,b->bm">(table, at); });
    const auto direct = value_and_grad(
        [&](const auto& v) { return sum<"ij->">(square(take<"vm,b->bm">(v, rows))); })(x);
    const auto through =
        value_and_grad([&](const auto& v) { return sum<"ij->">(square(looked(v, rows))); })(x);
    CHECK(close(through.gradient, direct.gradient));
    // Gradients of gradients.
    const auto second = [&](const auto& layer) {
      return value_and_grad([&](const std::vector<Dense>& all) {
        const auto g = value_and_grad(loss(layer))(all).gradient;
        return sum<"ij->">(square(g[0].weight));
      })(layers);
    };
    CHECK(close(second(recompute(dense)).gradient[1].weight, second(dense).gradient[1].weight));
    // Two results, of which one is an integer or not used.
    const auto pair =
        recompute([](const auto& v) { return std::tuple(tanh(v), exp(v), cast<std::int32_t>(v)); });
    const auto one =
        value_and_grad([&](const auto& v) { return sum<"ij->">(std::get<1>(pair(v))); })(x);
    CHECK(close(one.gradient, exp(x)));
  });
}
