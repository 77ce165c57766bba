// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gradients of one value that are left unfinished and finished together, against each finished by
// itself: the same elements, and never more payload.
#include <doctest/doctest.h>

#include <mutex>
#include <random>

#include <tessera/grad.hpp>
#include <tessera/nn/cross_entropy.hpp>
#include <tessera/nn/embedding.hpp>
#include <tessera/nn/rules.hpp>
#include <tessera/tessera.hpp>

#include "grad/gradient_cases.hpp"
#include "grad/typed.hpp"

using namespace tessera;

namespace {
using namespace gradient_test;
using detail::FinishSums;

/// The gradient of f by a tree, and the value.
template <class F, class Tree>
auto gradient(const F& f, const Tree& tree, FinishSums finish = FinishSums::together) {
  detail::Differentiation run({}, detail::Repeated::refused, finish);
  run.follow(tree);
  run.back(run.forward([&] { return f(tree); }));
  return run.gradient(tree);
}
/// What a gradient sends and calls on the process with most.
struct Sent {
  Index payload = 0;
  int all_reduces = 0, reduce_scatters = 0;
};
template <class Mesh, class F, class Tree>
Sent sent(const Mesh& mesh, const F& f, const Tree& tree, FinishSums finish) {
  Recording recording(mesh);
  (void)gradient(f, tree, finish);
  const Program made = recording.take();
  return {made.payload_bytes(), made.count(Collective::all_reduce),
          made.count(Collective::reduce_scatter)};
}
/// Separate products with the matrices of queries, keys and values.
template <class R> struct Projections {
  using U = Under<double, Grid, R>;
  using Activation = typename U::template Tensor<logical::batch, logical::sequence, logical::embed>;
  typename U::template Tensor<logical::embed, logical::groups, logical::head_dim> q, k, v;
  typename U::template Tensor<logical::groups, logical::head_dim, logical::embed> out;
  Activation x;
  static constexpr auto fields = Fields<&Projections::q, &Projections::k, &Projections::v,
                                        &Projections::out, &Projections::x>{};

  static Projections on(const ProcessMesh<Grid>& mesh, Index batch, Index sequence, Index embed,
                        Index heads) {
    const Index head_dim = embed / heads;
    Projections p;
    int seed = 0;
    const auto make = [&]<class X>(X& to, const Extents& extents) {
      to = random_normal<X>(mesh, extents, static_cast<std::uint64_t>(++seed), 0.0, 0.3);
    };
    make(p.q, {embed, heads, head_dim});
    make(p.k, {embed, heads, head_dim});
    make(p.v, {embed, heads, head_dim});
    make(p.out, {heads, head_dim, embed});
    make(p.x, {batch, sequence, embed});
    return p;
  }
  /// A loss of attention; x is made by an operator, as within a model.
  static auto loss(const Projections& p) {
    const auto x = tanh(p.x);
    const auto q = einsum<"bsm,mgd->bsgd">(x, p.q);
    const auto k = einsum<"btm,mgd->btgd">(x, p.k);
    const auto v = einsum<"btm,mgd->btgd">(x, p.v);
    const auto weights = softmax<"bgst", 't'>(einsum<"bsgd,btgd->bgst">(q, k));
    const auto heads = einsum<"bgst,btgd->bsgd">(weights, v);
    return sum(square(einsum<"bsgd,gdm->bsm", typename Activation::spec>(heads, p.out)));
  }
};
/// One table for the words that come in and those that go out.
template <class R> struct Tied {
  using U = Under<double, Grid, R>;
  Embedding<U> table;
  static constexpr auto fields = Fields<&Tied::table>{};

  struct Words {
    Index n;
    KOKKOS_FUNCTION std::int32_t operator()(const GlobalIndex& i) const {
      return static_cast<std::int32_t>((i.linear() * 7 + 3) % n);
    }
  };
  static Tied on(const ProcessMesh<Grid>& mesh, Index rows, Index embed) {
    using Table = typename U::template Tensor<logical::vocabulary, logical::embed>;
    return {{random_normal<Table>(mesh, {rows, embed}, 4, 0.0, 0.5)}};
  }
  static auto loss_of(const ProcessMesh<Grid>& mesh, Index rows, const Extents& extents) {
    using Ids = ShardedTensor<std::int32_t, Grid,
                              typename U::template Tensor<logical::batch, logical::sequence>::spec>;
    const auto ids = from_function<Ids>(mesh, extents, Words{rows});
    return [ids](const Tied& t) {
      using X = typename U::template Tensor<logical::batch, logical::sequence, logical::embed>;
      const auto x = tanh(look_up<typename X::spec>(t.table, ids));
      return sum(square(logits(t.table, x)));
    };
  }
};
}  // namespace

TEST_CASE("the gradients of a value that are finished together are those finished by themselves") {
  std::mt19937 random(43);
  Index before = 0, now = 0;
  for (const GradientCase& c : gradient_cases()) {
    CAPTURE(std::string(c.name));
    std::vector<std::vector<double>> at;
    for (std::size_t k = 0; k < c.inputs.size(); ++k) at.push_back(values_of(c, k, random));
    const auto seed = random();
    std::mutex mutex;
    for (const auto& [rows, columns] : {std::pair{2, 2}, {3, 2}})
      run_loopback(
          rows * columns, [&, rows = rows, columns = columns](std::shared_ptr<Transport> world) {
            const auto mesh = make_mesh(world, {rows, columns}, {"data", "model"});
            std::mt19937 shardings(seed);
            Dynamic x;
            for (std::size_t k = 0; k < at.size(); ++k)
              x.push_back(
                  whole(mesh, c.inputs[k], at[k], random_sharding(c.inputs[k].size(), shardings)));
            // As within a model: of values that are made, each read twice.
            const auto f = [&](const Dynamic& in) {
              Dynamic made;
              for (const DynamicTensor& one : in) made.push_back(one * 1.0);
              return c.f(mesh, made) + c.f(mesh, made) * 0.5;
            };
            const auto wanted = gradient(f, x, FinishSums::each), got = gradient(f, x);
            const Sent one = sent(mesh, f, x, FinishSums::each);
            const Sent all = sent(mesh, f, x, FinishSums::together);
            for (std::size_t k = 0; k < at.size(); ++k) {
              const auto a = to_host<double>(wanted[k]), b = to_host<double>(got[k]);
              const std::lock_guard lock(mutex);
              CHECK(got[k].sharding() == x[k].sharding());
              CHECK(worst_difference(b.values, a.values) < 1e-12);
              if (k > 0 || mesh.core()->process() != 0) continue;
              CHECK(all.payload <= one.payload);
              before += one.payload;
              now += all.payload;
            }
          });
  }
  MESSAGE("payload of all cases: " << now << " bytes in place of " << before);
  CHECK(now < before);
}

TEST_CASE("separate products of one text: their gradients by it are one all-reduce") {
  const auto compare = [](const auto& mesh, auto rules, const std::string& name) {
    using P = Projections<decltype(rules)>;
    const auto f = [](const P& p) { return P::loss(p); };
    const P p = P::on(mesh, 8, 256, 512, 8);
    const Sent one = sent(mesh, f, p, FinishSums::each),
               all = sent(mesh, f, p, FinishSums::together);
    CHECK(all.payload <= one.payload);
    MESSAGE(name << ": " << all.payload << " bytes in place of " << one.payload << ", "
                 << all.all_reduces << " all-reduces in place of " << one.all_reduces << ", "
                 << all.reduce_scatters << " reduce-scatters in place of " << one.reduce_scatters);
    return std::pair(one, all);
  };
  const auto mesh = dry_mesh<Grid>(2, 4);
  const auto [one, all] = compare(mesh, TensorParallel<data, model>{}, "tensor parallel");
  CHECK(all.all_reduces == one.all_reduces - 2);
  (void)compare(mesh, DataParallel<Axes<data, model>>{}, "data parallel");
  (void)compare(mesh, FullySharded<Axes<data, model>>{}, "fully sharded");
  (void)compare(mesh, TwoDimensional<data, model>{}, "two-dimensional");
  (void)compare(mesh, SequenceSplit<data, model>{}, "sequence split");
  for (const auto& [rows, columns] : {std::pair{1, 2}, {2, 2}, {3, 2}})
    run_loopback(rows * columns,
                 [rows = rows, columns = columns](std::shared_ptr<Transport> world) {
                   const auto on = make_mesh<Grid>(world, rows, columns);
                   using P = Projections<TensorParallel<data, model>>;
                   const auto f = [](const P& p) { return P::loss(p); };
                   const P p = P::on(on, 5, 3, 6, 3);
                   const P a = gradient(f, p, FinishSums::each), b = gradient(f, p);
                   CHECK(close(a.x, b.x));
                   CHECK(close(a.q, b.q));
                   CHECK(close(a.out, b.out));
                 });
}

TEST_CASE("a table for words that come in and words that go out is reduced once") {
  const auto compare = [](const auto& mesh, auto rules, const std::string& name) {
    using T = Tied<decltype(rules)>;
    const auto f = T::loss_of(mesh, 512, {64, 128});
    const T t = T::on(mesh, 512, 64);
    const Sent one = sent(mesh, f, t, FinishSums::each),
               all = sent(mesh, f, t, FinishSums::together);
    CHECK(all.payload <= one.payload);
    MESSAGE(name << ": " << all.payload << " bytes in place of " << one.payload << ", "
                 << all.all_reduces << " all-reduces in place of " << one.all_reduces << ", "
                 << all.reduce_scatters << " reduce-scatters in place of " << one.reduce_scatters);
    return std::pair(one, all);
  };
  const auto mesh = dry_mesh<Grid>(4, 2);
  const auto [one, all] = compare(mesh, DataParallel<data>{}, "data parallel");
  CHECK(all.all_reduces == one.all_reduces - 1);
  (void)compare(mesh, TensorParallel<data, model>{}, "tensor parallel");
  (void)compare(mesh, TwoDimensional<data, model>{}, "two-dimensional");
  (void)compare(mesh, FullySharded<data>{}, "fully sharded");
  run_loopback(6, [](std::shared_ptr<Transport> world) {
    const auto on = make_mesh<Grid>(world, 3, 2);
    using T = Tied<TensorParallel<data, model>>;
    const auto f = T::loss_of(on, 11, {5, 3});
    const T t = T::on(on, 11, 6);
    CHECK(close(gradient(f, t, FinishSums::each).table.weight, gradient(f, t).table.weight));
  });
}

namespace {
/// Three products of a text, each of it as it is, or of what a function makes of it.
template <class T> struct Readers {
  template <class... D> using Of = ShardedTensor<T, Grid, P<D...>>;
  Of<data, _> x;
  Of<_, model> q, k, v;
  static constexpr auto fields = Fields<&Readers::x, &Readers::q, &Readers::k, &Readers::v>{};

  static Readers on(const ProcessMesh<Grid>& mesh, Index rows, Index embed) {
    const auto made = [&]<class X>(std::type_identity<X>, Index n, std::uint64_t seed) {
      return random_normal<X>(mesh, {n, embed}, seed, T(0), T(0.3));
    };
    const std::type_identity<Of<_, model>> weight;
    return {made(std::type_identity<Of<data, _>>{}, rows, 1), made(weight, embed, 2),
            made(weight, embed, 3), made(weight, embed, 4)};
  }
  /// The loss, where each product reads first(x), second(x), third(x), and elements U of weights.
  template <class U, class F, class G, class H>
  static auto loss(const F& first, const G& second, const H& third) {
    return [=](const Readers& r) {
      const auto shown = tanh(r.x);  // made by an operator, as within a model
      const auto part = [](const auto& text, const auto& w) {
        return sum(square(cast<double>(einsum<"im,mj->ij">(text, cast<U>(w)))));
      };
      return part(first(shown), r.q) + part(second(shown), r.k) + part(third(shown), r.v);
    };
  }
};
}  // namespace

TEST_CASE("a cast and a product with a number pass unfinished sums on") {
  constexpr Index rows = 64, embed = 256;
  const auto cast_to = []<class U>(U) { return [](const auto& x) { return cast<U>(x); }; };
  const auto paper = [&]<class T>(std::type_identity<T>, const auto& f) {
    const auto mesh = dry_mesh<Grid>(1, 4);
    const auto r = Readers<T>::on(mesh, rows, embed);
    return std::pair(sent(mesh, f, r, FinishSums::each), sent(mesh, f, r, FinishSums::together));
  };
  const auto split = [&]<class T>(std::type_identity<T>, const auto& f, double error) {
    for (const auto& [data_, model_] : {std::pair{1, 2}, {2, 2}, {3, 2}})
      run_loopback(data_ * model_, [&, data_ = data_, model_ = model_](auto world) {
        const auto mesh = make_mesh<Grid>(world, data_, model_);
        const auto r = Readers<T>::on(mesh, 7, 5);
        const auto a = gradient(f, r, FinishSums::each), b = gradient(f, r);
        CHECK(worst_difference(to_host(cast<double>(b.x)).values,
                               to_host(cast<double>(a.x)).values) < error);
        CHECK(worst_difference(to_host(cast<double>(b.q)).values,
                               to_host(cast<double>(a.q)).values) < error);
      });
  };
  const std::type_identity<double> wide;
  const std::type_identity<float> narrow;
  const Index elements = rows * embed * 2 * 3 / 4;  // of an all-reduce over 4, that a process sends
  {  // x/2, x and -x: one all-reduce of x's size in place of three
    const auto f = Readers<double>::loss<double>([](const auto& x) { return x * 0.5; },
                                                 [](const auto& x) { return x; },
                                                 [](const auto& x) { return -(x * 3.0); });
    const auto [one, all] = paper(wide, f);
    CHECK(all.all_reduces == one.all_reduces - 2);
    CHECK(one.payload - all.payload == 2 * 8 * elements);
    split(wide, f, 1e-12);
  }
  {  // casts to float: three of float become one of double
    const auto f =
        Readers<double>::loss<float>(cast_to(float{}), cast_to(float{}), cast_to(float{}));
    const auto [one, all] = paper(wide, f);
    CHECK(all.all_reduces == one.all_reduces - 2);
    CHECK(one.payload - all.payload == (3 * 4 - 8) * elements);
    split(wide, f, 1e-5);
  }
  {  // two would be as much in one of double, and it is not more
    const auto f = Readers<double>::loss<float>(cast_to(float{}), cast_to(float{}),
                                                [](const auto& x) { return cast<float>(sin(x)); });
    const auto [one, all] = paper(wide, f);
    CHECK(all.payload <= one.payload);
    split(wide, f, 1e-5);
  }
  {  // casts to double: parts in double would be rounded to float before they are summed
    const auto f =
        Readers<float>::loss<double>(cast_to(double{}), cast_to(double{}), cast_to(double{}));
    const auto [one, all] = paper(narrow, f);
    CHECK(all.all_reduces == one.all_reduces);
    CHECK(all.payload == one.payload);
  }
}

TEST_CASE("a gradient that a caller leaves open comes so through casts and numbers") {
  run_loopback(6, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh(world, {3, 2}, {"data", "model"});
    const auto rows = random_normal<float>(mesh, {7, 4}, Sharding{{0}, {}}, 1);
    const Dynamic w{random_normal<double>(mesh, {4, 5}, Sharding{{}, {}}, 2)};
    const auto f = [&](const Dynamic& in) {
      const DynamicTensor y = einsum("ik,kj->ij", rows, cast<float>(in[0] * 0.25));
      return reduce<Sum>("ij->", cast<double>(y * y));
    };
    const Sharding open = Sharding{{}, {}}.with_partial(AxisSet{0}, Reduction::sum);
    const auto got = value_and_grad_under(f, {open})(w).gradient[0];
    CHECK(got.sharding() == open);
    const auto a = to_host<double>(reshard(got, open.finished())),
               b = to_host<double>(value_and_grad(f)(w).gradient[0]);
    CHECK(worst_difference(a.values, b.values) < 1e-6);
    Recording recording(mesh);
    (void)value_and_grad_under(f, {open})(w);
    CHECK(recording.take().count(Collective::all_reduce) == 1);  // of the loss
  });
}

TEST_CASE("a gradient that may be left open is left so by all readers") {
  run_loopback(6, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh(world, {3, 2}, {"data", "model"});
    const auto rows = random_normal<double>(mesh, {7, 4}, Sharding{{0}, {}}, 1);
    const auto w = random_normal<double>(mesh, {4, 5}, Sharding{{}, {}}, 2);
    const auto f = [&](const Dynamic& in) {
      const DynamicTensor y = einsum("ik,kj->ij", rows, in[0]),
                          z = einsum("ik,kj->ij", rows * 2.0, in[0]);
      return reduce<Sum>("ij->", y * y + z);
    };
    const Sharding open = Sharding{{}, {}}.with_partial(AxisSet{0}, Reduction::sum);
    const Dynamic x{w};
    const auto got = value_and_grad_under(f, {open})(x).gradient[0];
    CHECK(got.sharding() == open);
    const auto a = to_host<double>(reshard(got, open.finished())),
               b = to_host<double>(value_and_grad(f)(x).gradient[0]);
    CHECK(worst_difference(a.values, b.values) < 1e-12);
  });
}
