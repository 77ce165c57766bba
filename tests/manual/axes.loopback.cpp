// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Manual functions of two axes beside an automatic one, whose collectives name one of them or both;
// values that enter and leave unfinished; every element type; Strict meshes; layers that run again.
#include <doctest/doctest.h>

#include <tessera/grad.hpp>
#include <tessera/manual.hpp>
#include <tessera/tessera.hpp>

#include "op/texts_of.hpp"

using namespace tessera;
using namespace support;

namespace {
namespace cube {
struct a : Axis<> {};
struct b : Axis<> {};
struct c : Axis<> {};
struct outside : Axis<> {};
}  // namespace cube
using Cube = Mesh<cube::a, cube::b, cube::c>;
template <class... D> using Tensor = ShardedTensor<double, Cube, P<D...>>;

struct Waves {
  double first;
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    return Kokkos::sin(first + 1.37 * static_cast<double>(i.linear()));
  }
};
/// Runs f on cubes that are a whole mesh, and on cubes that are a part of one.
template <class F> bool on_cubes(const F& f) {
  bool all = true;
  MeshOptions options;
  options.check = Check::communicating;
  const auto told = [](const std::string& text, const MeshShape& s) {
    return text.empty() ? text : to_string(s, Cube::names()) + ": " + text;
  };
  for (const MeshShape& s :
       {MeshShape{1, 1, 1}, {2, 1, 2}, {1, 2, 2}, {2, 2, 1}, {2, 2, 2}, {2, 3, 1}, {3, 1, 2}})
    all = quiet(texts_of(s.processes(),
                         [&](const std::shared_ptr<Transport>& w) {
                           return told(f(make_mesh<Cube>(w, MeshSizes<Cube>(s), options), s), s);
                         })) &&
          all;
  using Whole = Mesh<cube::a, cube::outside, cube::b, cube::c>;
  for (const MeshShape& s : {MeshShape{2, 2, 1}, {2, 1, 2}, {1, 3, 1}})
    all = quiet(texts_of(2 * s.processes(),
                         [&](const std::shared_ptr<Transport>& w) {
                           const auto mesh =
                               make_mesh<Whole>(w, sizes<Whole>(s[0], 2, s[1], s[2]), options);
                           const auto part = mesh.template part<cube::outside>(1);
                           if (!part.takes_part()) return std::string();
                           return told(f(part, s), s);
                         })) &&
          all;
  return all;
}
template <class H, class G> bool near(const H& mine, const G& other) {
  if (!(mine.extents == other.extents)) return false;
  for (std::size_t i = 0; i < mine.values.size(); ++i)
    if (!(std::fabs(mine.values[i] - other.values[i]) <= 1e-12 * (1 + std::fabs(other.values[i]))))
      return false;
  return true;
}
/// f and g of x are the same, and their gradients, each element counting differently.
template <class F, class G, class X> std::string unlike(const F& f, const G& g, const X& x) {
  const auto weighed = [](const auto& y) {
    using Y = std::decay_t<decltype(y)>;
    return sum(y * sin(y) *
               from_function<Y>(ProcessMesh<Cube>(y.core().mesh()), y.extents(), Waves{0.9}));
  };
  if (!near(to_host(f(x)), to_host(g(x)))) return "values differ";
  const auto mine = value_and_grad([&](const X& t) { return weighed(f(t)); })(x);
  const auto other = value_and_grad([&](const X& t) { return weighed(g(t)); })(x);
  return near(to_host(mine.gradient), to_host(other.gradient)) ? "" : "gradients differ";
}
}  // namespace

TEST_CASE("collectives over one of two named axes, or both") {
  using namespace cube;
  CHECK(on_cubes([](const ProcessMesh<Cube>& mesh, const MeshShape& s) -> std::string {
    const Index p = s[0], q = s[1], n = 6, k = 6;  // blocks are (6, 6), ragged over c where it is 4
    // t: (p, q, n, k), the block of (i, j) is t[i, j]
    const auto x = from_function<Tensor<a, b, _, c>>(mesh, {p, q, n, k}, Waves{0.1});
    const auto in = [](const auto& f) {
      return [f](const auto& t) {
        return manual<a, b>([&](const auto& v) { return f(squeeze<0>(squeeze<0>(v))); })(t);
      };
    };
    const auto out = [](const auto& y) { return along<1, b>(along<0, a>(expand_dims<0, 1>(y))); };
    std::string text;
    const auto check = [&](const char* name, const auto& f, const auto& g) {
      if (!text.empty()) return;
      text = unlike(in(f), g, x);
      if (!text.empty()) text = std::string(name) + ": " + text;
    };
    check(
        "sum over a",
        [&](const auto& v) { return along<0, b>(expand_dims<0>(all_reduce_over<a>(v))); },
        [](const auto& t) { return sum<"pqij->qij", P<b, _, c>>(t); });
    check(
        "sum over b, next to what varies",
        [&](const auto& v) { return out(v * all_reduce_over<b>(v)); },
        [](const auto& t) {
          const auto all = sum<"pqij->pij", P<a, _, c>>(t);
          return einsum<"pqij,pij->pqij", P<a, b, _, c>>(t, all);
        });
    check(
        "the greatest over b", [&](const auto& v) { return out(v * all_reduce_over<Max, b>(v)); },
        [](const auto& t) {
          return einsum<"pqij,pij->pqij", P<a, b, _, c>>(t, max<"pqij->pij", P<a, _, c>>(t));
        });
    check(
        "the mean over both, and a sum by its kind",
        [&](const auto& v) {
          return all_reduce_over<Mean, a, b>(v) + all_reduce_over<a>(all_reduce_over<Sum, b>(v));
        },
        [](const auto& t) { return mean<"pqij->ij", P<_, c>>(t) + sum<"pqij->ij", P<_, c>>(t); });
    check(
        "sum over both", [&](const auto& v) { return all_reduce_over<b, a>(v * v); },
        [](const auto& t) { return sum<"pqij->ij", P<_, c>>(t * t); });
    check(
        "gather along 0 over b",
        [&](const auto& v) { return along<0, a>(expand_dims<0>(all_gather_over<b, 0>(v))); },
        [&](const auto& t) {
          return reshape<P<a, _, c>>(t, {p, q * n, k});
        });
    check(
        "gather along 1 over a",
        [&](const auto& v) { return along<0, b>(expand_dims<0>(all_gather_over<a, 1>(v))); },
        [&](const auto& t) {
          return reshape<P<b, _, c>>(transpose<"pqij->qipj", P<b, _, a, c>>(t), {q, n, p * k});
        });
    check(
        "scatter along 0 over a, gathered over b",
        [&](const auto& v) {
          return along<1, a>(all_gather_over<b>(reduce_scatter_over<a, 0>(v)));
        },
        [](const auto& t) { return sum<"pqij->qij", P<_, a, c>>(t); });
    check(
        "all-to-all over b", [&](const auto& v) { return out(all_to_all_over<b, 0, 1>(v)); },
        [&](const auto& t) {  // pq(Ri)j -> pRi(qj)
          const auto cut = reshape(DynamicTensor(t), {p, q, q, n / q, k});
          const auto turned = reshape(transpose("pqRij->pRiqj", cut), {p, q, n / q, q * k});
          return as<Tensor<a, b, _, c>>(reshard(turned, named_sharding<Cube, P<a, b, _, c>>()));
        });
    check(
        "a shift over a", [&](const auto& v) { return out(permute_over<a, Shift<1>>(v)); },
        [](const auto& t) { return roll<0>(t, 1); });
    check(
        "own block over a of what is equal over b",
        [&](const auto& v) {
          const auto all = all_reduce_over<a, b>(v);
          return along<0, a>(own_block<a, 0>(all));
        },
        [](const auto& t) { return sum<"pqij->ij", P<a, c>>(t); });
    return text;
  }));
}

TEST_CASE("sums enter and leave unfinished, with their gradients") {
  using namespace cube;
  CHECK(on_cubes([](const ProcessMesh<Cube>& mesh, const MeshShape& s) -> std::string {
    const auto x = from_function<Tensor<Axes<a, c>, _>>(mesh, {3 * s[0] * s[2], 5}, Waves{0.4});
    const auto open = [](const auto& t) {
      return einsum<"ki,kj->ij", P<_, _, Unreduced<Sum, a, c>>>(t, sin(t));
    };
    const auto enters = [&](const auto& t) {
      return manual<a>([](const auto& u) { return all_reduce_over<a>(u); })(open(t));
    };
    const auto leaves = [](const auto& t) {
      return finish(manual<a, c>(
          [](const auto& v) { return part_of_sum<a, c>(einsum<"ki,kj->ij">(v, sin(v))); })(t));
    };
    const auto whole = [](const auto& t) { return einsum<"ki,kj->ij", P<_, _>>(t, sin(t)); };
    if (const auto text = unlike(enters, whole, x); !text.empty()) return "enters: " + text;
    if (const auto text = unlike(leaves, whole, x); !text.empty()) return "leaves: " + text;
    return "";
  }));
}

namespace {
template <class T> struct Few {
  template <class I> KOKKOS_FUNCTION T operator()(const I& i) const {
    return static_cast<T>(static_cast<float>((3 * i.linear()) % 5));
  }
};
template <class T> std::string with_elements(const ProcessMesh<Cube>& mesh, const MeshShape& s) {
  using namespace cube;
  using X = ShardedTensor<T, Cube, P<a, c>>;
  const Index n = 2 * s[0] * s[0];
  const auto x = from_function<X>(mesh, {n, 5}, Few<T>{});
  const auto host = to_host(x);
  const auto same = to_host(manual<a>([](const auto& v) {
    const auto all = all_gather_over<a, 0>(v);
    const auto there = permute_over<a, Shift<-1>>(permute_over<a, Shift<1>>(own_block<a, 0>(all)));
    const auto turned = all_to_all_over<a, 1, 0>(all_to_all_over<a, 0, 1>(there));
    return equal_by_promise<a>(varying<a>(all_gather_over<a, 0>(turned)));
  })(x));
  REQUIRE_THAT(same == host);
  if constexpr (!std::is_same_v<T, bool>) {
    const auto sums = to_host(manual<a>(
        [](const auto& v) { return all_gather_over<a, 0>(reduce_scatter_over<a, 0>(v)); })(x));
    const auto wanted = to_host(manual<a>([](const auto& v) { return all_reduce_over<a>(v); })(x));
    REQUIRE_THAT(sums == wanted);
  }
  return "";
}
}  // namespace

TEST_CASE("every element type") {
  CHECK(on_cubes([](const ProcessMesh<Cube>& mesh, const MeshShape& s) -> std::string {
    std::string text;
    const auto of = [&]<class T>(std::type_identity<T>) {
      if (text.empty()) text = with_elements<T>(mesh, s);
    };
    of(std::type_identity<float>{});
    of(std::type_identity<half>{});
    of(std::type_identity<bfloat16>{});
    of(std::type_identity<tessera::complex<double>>{});
    of(std::type_identity<std::int8_t>{});
    of(std::type_identity<std::uint64_t>{});
    of(std::type_identity<bool>{});
    return text;
  }));
}

TEST_CASE(
    "on a Strict mesh operators have contracts, and collectives say by their names what they "
    "send") {
  CHECK(quiet(texts_of(4, [&](const std::shared_ptr<Transport>& world) -> std::string {
    using namespace cube;
    using Guarded = Strict<Cube>;
    const auto mesh = make_mesh<Guarded>(world, 2, 2, 1);
    using X = ShardedTensor<double, Guarded, P<a, b>>;
    const auto x = from_function<X>(mesh, {4, 6}, Waves{0.3});
    const auto loss = [](const X& t) {
      return manual<a>([](const auto& v) {
        static_assert(detail::is_strict<typename std::decay_t<decltype(v)>::mesh_type>);
        return sum<"ij->", P<>, Only<all_reduces<b>>>(all_reduce_over<a>(v * v));
      })(t);
    };
    double wanted = 0;
    for (const double value : to_host(x).values) wanted += value * value;
    REQUIRE_THAT(std::fabs(value(loss(x)) - wanted) < 1e-12);
    // A contract that a collective is given holds it.
    constexpr Contract sums_alone = contract_of<Guarded, Only<all_reduces<a>>>();
    const auto summed = manual<a>([&](const auto& v) { return all_reduce_over<a>(v, sums_alone); });
    REQUIRE_THAT(summed(x).extent(0) == 2);
    const std::string text = complaint_of([&] {
      (void)manual<a>([&](const auto& v) { return all_gather_over<a, 0>(v, sums_alone); })(x);
    });
    REQUIRE_THAT(text.find("all_gather_over: the call accepts") != std::string::npos);
    return "";
  })));
}

TEST_CASE("layers within and around manual functions run again for their gradients") {
  using namespace cube;
  CHECK(on_cubes([](const ProcessMesh<Cube>& mesh, const MeshShape& s) -> std::string {
    const auto x = from_function<Tensor<a, c>>(mesh, {4 * s[0], 5}, Waves{0.3});
    const auto body = [](const auto& v) { return along<0, a>(sin(v) * all_reduce_over<a>(v * v)); };
    const auto plain = [&](const auto& t) { return manual<a>(body)(t); };
    const auto around = [&](const auto& t) { return recompute(plain)(t); };
    const auto within = [](const auto& t) {
      return manual<a>([](const auto& v) {
        return along<0, a>(
            recompute([](const auto& u) { return sin(u) * all_reduce_over<a>(u * u); })(v));
      })(t);
    };
    if (const auto text = unlike(around, plain, x); !text.empty()) return "around: " + text;
    if (const auto text = unlike(within, plain, x); !text.empty()) return "within: " + text;
    return "";
  }));
}

TEST_CASE("a dynamic tensor that varies is none of a type that says it is equal") {
  CHECK(quiet(texts_of(4, [&](const std::shared_ptr<Transport>& world) -> std::string {
    using namespace cube;
    const auto mesh = make_mesh<Cube>(world, 2, 2, 1);
    const auto x = from_function<Tensor<a, b>>(mesh, {4, 6}, Waves{0.3});
    using Equal = ShardedTensor<double, ManualMesh<Cube, a>, P<_, b>>;
    const std::string text = complaint_of([&] {
      (void)manual<a>([](const auto& v) { return as<Equal>(DynamicTensor(v) * 2.0); })(x);
    });
    REQUIRE_THAT(text.find("is given a type that says it is equal") != std::string::npos);
    const auto y = manual<a>(
        [](const auto& v) { return as<Equal>(DynamicTensor(all_reduce_over<a>(v)) * 2.0); })(x);
    REQUIRE_THAT(y.extent(0) == 2);
    return "";
  })));
}
