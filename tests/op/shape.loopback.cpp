// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: within
// Slice and its siblings on every mesh of up to 8 processes: values, plan, ledger, arena, bits;
// their laws and adjoints; every element type; the typed surface; what is refused.
#include <doctest/doctest.h>

#include <functional>

#include "op/elements.hpp"
#include "op/shape_cases.hpp"
#include "support/every_mesh.hpp"
#include "support/grid.hpp"

using namespace tessera;
using namespace support;

namespace {
template <class... D> using Tensor = ShardedTensor<float, Grid, P<D...>>;

/// A finished tensor of doubles, and the numbers of operators on it.
struct Sample {
  Sample(const std::shared_ptr<MeshCore>& mesh, Random& random) : mesh_(mesh), random_(random) {
    const int rank = 1 + random.below(3);
    for (int d = 0; d < rank; ++d) {
      const Index n = random.of<Index>({1, 2, 3, 5, 7, 8, random.chance(20) ? 0 : 4});
      extents.push_back(n);
      start.push_back(random.below(static_cast<int>(n) + 1));
      limit.push_back(start.back() + random.below(static_cast<int>(n - start.back()) + 1));
      stride.push_back(1 + random.below(3));
      low.push_back(random.below(6) - 2);
      high.push_back(random.below(6) - 2);
      interior.push_back(random.below(3));
      if (low.back() + high.back() + detail::dilated(n, interior.back() + 1) < 0)
        low.back() = high.back() = 0;
    }
    dim = random.below(rank);
    by = random.below(21) - 10;
    x = tensor(extents, 1);
  }
  DynamicTensor tensor(const Extents& of, std::uint64_t seed) const {
    return make_input<double>(mesh_, {DType::f64, of, some()(of.size())}, seed);
  }
  std::function<Sharding(int)> some() const {
    return [this](int rank) { return some_sharding(random_, rank, mesh_->shape().rank()); };
  }
  bool same(const DynamicTensor& a, const DynamicTensor& b) const {
    const HostTensor<double> left = to_host<double>(a), right = to_host<double>(b);
    return left.extents == right.extents && left.values == right.values;
  }

  std::shared_ptr<MeshCore> mesh_;
  Random& random_;
  Extents extents, start, limit, stride, low, high, interior;
  int dim = 0;
  Index by = 0;
  DynamicTensor x;
};

double dot_of(const DynamicTensor& a, const DynamicTensor& b) {
  const HostTensor<double> x = to_host<double>(a), y = to_host<double>(b);
  double sum = 0;
  for (std::size_t i = 0; i < x.values.size(); ++i) sum += x.values[i] * y.values[i];
  return x.extents == y.extents ? sum : std::numeric_limits<double>::quiet_NaN();
}

std::string broken_law(const std::shared_ptr<MeshCore>& mesh, Random& random) {
  const Sample s(mesh, random);
  const DynamicTensor& x = s.x;
  const int rank = s.extents.size();
  std::string wrong;
  const auto law = [&](const char* text, bool holds) {
    if (!holds && wrong.empty())
      wrong = std::string(text) + " fails for " + describe(x.desc(), mesh->shape()) + " on " +
              describe(mesh->shape());
  };
  const Dimensions all = detail::Along<>::of(rank);
  law("reverse(reverse(x)) == x", s.same(reverse(reverse(x, all, s.some()(rank)), all), x));
  law("roll(roll(x, k), -k) == x",
      s.same(roll(roll(x, s.by, s.dim, s.some()(rank)), -s.by, s.dim), x));
  const Extents none(rank, 0), more{s.interior};
  Extents grown = s.extents, ends = s.extents;
  for (int d = 0; d < rank; ++d) {
    ends[d] = s.stride[d] + detail::dilated(s.extents[d], more[d] + 1);
    grown[d] = more[d] + 1;
  }
  const DynamicTensor wide = pad(x, s.stride, more, more, 9.0, s.some()(rank));
  law("slice(pad(x)) == x", s.same(slice(wide, s.stride, ends, grown, s.some()(rank)), x));
  const Sharding flat = s.some()(1);
  const DynamicTensor row = reshape(x, {volume(s.extents)}, flat);
  law("reshape there and back", s.same(reshape(row, s.extents, s.some()(rank)), x) &&
                                    s.same(reshape(reshape(x, {volume(s.extents)}), s.extents), x));
  std::vector<DynamicTensor> parts;
  Extents from = none, to = s.extents;
  for (const Index cut : {s.start[s.dim], s.limit[s.dim], s.extents[s.dim]}) {
    to[s.dim] = cut;
    parts.push_back(slice(x, from, to, {}, s.some()(rank)));
    from[s.dim] = cut;
  }
  law("concatenate of slices == x", s.same(concatenate(s.dim, parts), x));
  std::vector<Extents> starts, limits;
  for (Index cut = 0; cut <= s.extents[s.dim]; ++cut) {  // more than eight of them, now and then
    starts.push_back(none);
    limits.push_back(s.extents);
    starts.back()[s.dim] = cut;
  }
  const std::vector<DynamicTensor> many = slices(x, starts, limits, s.stride, s.some()(rank));
  bool alike = many.size() == starts.size();
  for (std::size_t k = 0; alike && k < many.size(); ++k)
    alike = s.same(many[k], slice(x, starts[k], limits[k], s.stride));
  law("slices(x, ...)[k] == slice(x, ...)", alike);
  law("update(x, slice(x, s, l), s) == x",
      s.same(update(x, slice(x, s.start, s.limit, {}, s.some()(rank)), s.start), x));
  law("shift there and back keeps the middle",
      s.same(update(x, shift(shift(x, s.by, s.dim), -s.by, s.dim), none),
             shift(shift(x, s.by, s.dim, 0, s.some()(rank)), -s.by, s.dim)));
  return wrong;
}

/// <A x, y> == <x, A^T y>, where A^T is the operator that carries a gradient back.
std::string broken_adjoint(const std::shared_ptr<MeshCore>& mesh, Random& random) {
  const Sample s(mesh, random);
  const DynamicTensor& x = s.x;
  const int rank = s.extents.size();
  std::string wrong;
  const auto adjoint = [&](const char* text, const DynamicTensor& ax, const DynamicTensor& y,
                           const DynamicTensor& aty) {
    const double left = dot_of(ax, y), right = dot_of(x, aty);
    if (!(std::fabs(left - right) <= 1e-10 * (1 + std::fabs(left))) && wrong.empty())
      wrong = std::string(text) + ": " + std::to_string(left) + " against " +
              std::to_string(right) + " for " + describe(x.desc(), mesh->shape()) + " on " +
              describe(mesh->shape());
  };
  const auto out = s.some();
  {
    const DynamicTensor ax = slice(x, s.start, s.limit, s.stride, out(rank)),
                        y = s.tensor(ax.extents(), 5);
    Extents before, behind, between;
    for (int d = 0; d < rank; ++d) {
      between.push_back(s.stride[d] - 1);
      before.push_back(s.start[d]);
      behind.push_back(s.extents[d] - s.start[d] - detail::dilated(y.extents()[d], s.stride[d]));
    }
    adjoint("slice and pad", ax, y, pad(y, before, behind, between, 0.0, out(rank)));
  }
  {
    const DynamicTensor ax = pad(x, s.low, s.high, s.interior, 0, out(rank)),
                        y = s.tensor(ax.extents(), 6);
    Extents before, behind, first, last, every;
    for (int d = 0; d < rank; ++d) {  // what was cropped comes back as zeros
      before.push_back(max_of(0, -s.low[d]));
      behind.push_back(max_of(0, -s.high[d]));
      every.push_back(s.interior[d] + 1);
      first.push_back(max_of(0, s.low[d]));
      last.push_back(first[d] + detail::dilated(s.extents[d], every[d]));
    }
    adjoint("pad and slice", ax, y, slice(pad(y, before, behind), first, last, every, out(rank)));
  }
  const DynamicTensor y = s.tensor(s.extents, 7);
  adjoint("roll", roll(x, s.by, s.dim, out(rank)), y, roll(y, -s.by, s.dim, out(rank)));
  adjoint("shift", shift(x, s.by, s.dim, 0, out(rank)), y, shift(y, -s.by, s.dim));
  adjoint("reverse", reverse(x, {s.dim}, out(rank)), y, reverse(y, {s.dim}));
  {
    const DynamicTensor ax = reshape(x, {1, volume(s.extents)}, out(2));
    const DynamicTensor z = s.tensor(ax.extents(), 8);
    adjoint("reshape", ax, z, reshape(z, s.extents, out(rank)));
  }
  {
    Extents other = s.extents, first(rank, 0), last = s.extents;
    other[s.dim] = 3;
    const DynamicTensor ax =
        concatenate(s.dim, {s.tensor(other, 9), x, s.tensor(other, 9)}, out(rank));
    const DynamicTensor z = s.tensor(ax.extents(), 10);
    first[s.dim] = 3;
    last[s.dim] += 3;
    // The operator is affine in x: without what the other operands contribute it is linear.
    const DynamicTensor rest = concatenate(
        s.dim, {s.tensor(other, 9), shift(x, 100, s.dim), s.tensor(other, 9)}, out(rank));
    const double left = dot_of(ax, z) - dot_of(rest, z), right = dot_of(x, slice(z, first, last));
    if (!(std::fabs(left - right) <= 1e-10 * (1 + std::fabs(left))) && wrong.empty())
      wrong = "concatenate and slice";
  }
  return wrong;
}

/// Elements of any type, as their bytes.
std::vector<std::byte> bytes_of(const DynamicTensor& x) {
  const DynamicTensor all = reshard(x, Sharding::replicated(x.extents().size()));
  std::vector<std::byte> bytes(static_cast<std::size_t>(all.local_size()) * size_of(x.type()));
  tessera::detail::fence();
  tessera::detail::copy_to_host(bytes.data(), all.core().data(), static_cast<Index>(bytes.size()));
  return bytes;
}

/// All operators on a tensor of some type, unfinished by some kind or not, against exact values.
std::string wrong_elements(const std::shared_ptr<MeshCore>& mesh, Random& random) {
  const MeshShape& shape = mesh->shape();
  const DType type = static_cast<DType>(random.below(dtypes));
  Reduction kind = static_cast<Reduction>(random.below(reductions));
  if (!defined(kind, type)) kind = Reduction::none;
  const Reduction values =
      kind == Reduction::none ? (is_boolean(type) ? Reduction::any : Reduction::sum) : kind;
  TensorDesc desc{
      type, {5, 4}, some_sharding(random, 2, shape.rank(), kind == Reduction::none ? 0 : 60, kind)};
  if (desc.sharding.partial.empty()) kind = Reduction::none;
  const TensorCore core = TensorCore::make(mesh, desc);
  const Box box = core.box();
  const int part = shape.place_in_group(desc.sharding.partial, mesh->coordinates());
  std::vector<std::byte> mine(static_cast<std::size_t>(core.local_size()) * size_of(type));
  Index local = 0;
  for_each_index(box.extents(), [&](const Extents& at) {
    store(type, mine.data(), local++,
          element_value(type, values, 3, (box[0].lo + at[0]) * 4 + box[1].lo + at[1], part));
  });
  tessera::detail::copy_from_host(core.data(), mine.data(), static_cast<Index>(mine.size()));
  const DynamicTensor x(core);
  Whole<Exact> whole(desc.extents);
  for (Index i = 0; i < whole.size(); ++i) {
    whole[i] = element_value(type, values, 3, i, 0);
    for (int q = 1; q < shape.group_size(desc.sharding.partial); ++q)
      whole[i] = join_exact(values, whole[i], element_value(type, values, 3, i, q));
    whole[i] = stored(type, whole[i]);
  }
  std::string wrong;
  const auto compare = [&](const char* what, const DynamicTensor& y, const Whole<Exact>& expected) {
    const std::vector<std::byte> bytes = bytes_of(y);
    bool equal = y.extents() == expected.extents;
    for (Index i = 0; equal && i < expected.size(); ++i)
      equal = load(type, bytes.data(), i) == expected[i];
    if (!equal && wrong.empty())
      wrong = std::string(what) + " of " + describe(desc, shape) + " on " + describe(shape);
  };
  const auto out = [&](int rank) {
    if (kind != Reduction::none && rank == 2 && random.chance(50)) return desc.sharding;
    return some_sharding(random, rank, shape.rank());
  };
  // What stays itself when it is joined with itself.
  const bool one = values != Reduction::sum || kind == Reduction::none;
  const Exact outside = one ? 1 : 0;
  const detail::OutsideValue value =
      is_boolean(type) ? detail::OutsideValue(one) : detail::OutsideValue(one ? 1 : 0);
  compare("slice", slice(x, {1, 0}, {5, 3}, {2, 1}, out(2)),
          support::slice(whole, {1, 0}, {5, 3}, {2, 1}));
  compare("pad", pad(x, {1, -1}, {0, 3}, {0, 1}, value, out(2)),
          support::pad(whole, {1, -1}, {0, 3}, {0, 1}, outside));
  compare("reverse", reverse(x, {1, 0}, out(2)), support::reverse(whole, {0, 1}));
  compare("roll", roll(x, 2, 0, out(2)), support::roll(whole, 2, 0));
  compare("shift", shift(x, -1, 1, value, out(2)), support::shift(whole, -1, 1, outside));
  compare("concatenate", concatenate(0, {x, x}, out(2)),
          support::concatenate<Exact>({whole, whole}, 0));
  compare("update", update(x, slice(x, {0, 0}, {2, 2}), {3, 1}, out(2)),
          support::update(whole, support::slice(whole, {0, 0}, {2, 2}, {1, 1}), {3, 1}));
  compare("reshape", reshape(x, {2, 5, 2}, out(3)), support::reshape(whole, {2, 5, 2}));
  return wrong;
}

struct Ramp {
  KOKKOS_FUNCTION float operator()(const GlobalIndex& i) const {
    float value = 0;
    for (int d = 0; d < i.size(); ++d) value = value * 100 + static_cast<float>(i[d]);
    return value;
  }
};
}  // namespace

TEST_CASE("operators that move elements equal plain loops, and run their plans") {
  on_every_mesh("shapes on loopback", 70, 240 / share, 3,
                [](const std::shared_ptr<MeshCore>& mesh, Random& random) {
                  return some_shape_case(mesh, random);
                });
}
TEST_CASE("results that are made elsewhere than they are asked for") {
  on_every_mesh("detours", 79, 1, 2, [](const std::shared_ptr<MeshCore>& mesh, Random& random) {
    return one_in(3, random) ? wrong_detour(mesh) : std::string();
  });
}
TEST_CASE("their laws") {
  on_every_mesh("laws of shapes", 73, 12 / (share > 1 ? 4 : 1), 2, broken_law);
}
TEST_CASE("their adjoints") {
  on_every_mesh("adjoints of shapes", 74, 12 / (share > 1 ? 4 : 1), 2, broken_adjoint);
}
TEST_CASE("elements of every type, unfinished by every kind") {
  use_all_elements();
  on_every_mesh("elements of shapes", 75, 24 / (share > 1 ? 4 : 1), 2, wrong_elements);
}

TEST_CASE("typed calls: dimensions and specs are template arguments") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto x = from_function<Tensor<data, model>>(mesh, {5, 7}, Ramp{});
    const auto y = from_function<Tensor<_, _>>(mesh, {5, 3}, Ramp{});
    const auto whole = [](const auto& t) {
      const auto host = to_host(t);
      Whole<float> all(host.extents);
      all.values.assign(host.values.begin(), host.values.end());
      return all;
    };
    const auto equal = [](const Whole<float>& a, const Whole<float>& b) {
      return a.extents == b.extents && a.values == b.values;
    };
    const Whole<float> all = whole(x), few = whole(y);

    const auto a = slice(x, {1, 2}, {4, 7});
    static_assert(std::is_same_v<decltype(a), const Tensor<data, model>>);
    CHECK(equal(whole(a), support::slice(all, {1, 2}, {4, 7}, {1, 1})));
    const auto b = slice<1>(x, {1}, {6}, {2});
    CHECK(equal(whole(b), support::slice(all, {0, 1}, {5, 6}, {1, 2})));
    const auto c = slice<P<model, _>>(x, {1, 2}, {4, 7}, {1, 3});
    static_assert(std::is_same_v<decltype(c), const Tensor<model, _>>);
    CHECK(equal(whole(c), support::slice(all, {1, 2}, {4, 7}, {1, 3})));
    const auto d = slice<P<data, model>, Only<exchanges<model>>, 1>(x, {1}, {6});
    CHECK(equal(whole(d), support::slice(all, {0, 1}, {5, 6}, {1, 1})));
    CHECK(
        equal(whole(slice<1, 0>(x, {1, 2}, {6, 5})), support::slice(all, {2, 1}, {5, 6}, {1, 1})));

    CHECK(equal(whole(pad(x, {1, 0}, {0, -2})), support::pad(all, {1, 0}, {0, -2}, {0, 0}, 0.0f)));
    CHECK(
        equal(whole(pad<1>(x, {2}, {1}, {1}, 4)), support::pad(all, {0, 2}, {0, 1}, {0, 1}, 4.0f)));
    CHECK(equal(whole(pad<P<_, data>>(x, {1, 1}, {1, 1}, {}, -0.5)),
                support::pad(all, {1, 1}, {1, 1}, {0, 0}, -0.5f)));
    CHECK(equal(whole(reverse(x)), support::reverse(all, {0, 1})));
    CHECK(equal(whole(reverse<1>(x)), support::reverse(all, {1})));
    CHECK(equal(whole(reverse<P<_, model>, Only<exchanges<data, model>>, 0>(x)),
                support::reverse(all, {0})));
    CHECK(equal(whole(roll<0>(x, 2)), support::roll(all, 2, 0)));
    CHECK(equal(whole(roll<1, P<_, data>>(x, -3)), support::roll(all, -3, 1)));
    CHECK(equal(whole(shift<0>(x, 1)), support::shift(all, 1, 0, 0.0f)));
    CHECK(equal(whole(shift<1, P<_, data>>(x, -2, 3)), support::shift(all, -2, 1, 3.0f)));

    const auto e = concatenate<1>(y, x, y);
    static_assert(std::is_same_v<decltype(e), const Tensor<data, model>>,
                  "the spec of the first that is split");
    CHECK(equal(whole(e), support::concatenate<float>({few, all, few}, 1)));
    CHECK(equal(whole(concatenate<1, P<model, _>>(x, y)),
                support::concatenate<float>({all, few}, 1)));
    const auto turned = concatenate<0>(slice_of<0>(x, {3}, {5}), slice_of(x, {0, 0}, {3, 7}));
    static_assert(std::is_same_v<decltype(turned), const Tensor<data, model>>);
    CHECK(equal(whole(turned), support::roll(all, 2, 0)));
    const auto outer = concatenate<1, P<data, _>>(slice_of<1>(x, {0}, {7}, {3}), y);
    static_assert(std::is_same_v<decltype(outer), const Tensor<data, _>>);
    CHECK(equal(whole(outer), support::concatenate<float>(
                                  {support::slice(all, {0, 0}, {5, 7}, {1, 3}), few}, 1)));
    const auto corner = update(slice_of<1>(x, {2}, {6}), slice_of(y, {1, 1}, {3, 3}), {2, 1});
    CHECK(
        equal(whole(corner), support::update(support::slice(all, {0, 2}, {5, 6}, {1, 1}),
                                             support::slice(few, {1, 1}, {3, 3}, {1, 1}), {2, 1})));
    const auto row = update<P<model, _>, NoContract, 0>(x, slice_of<0>(x, {4}, {5}), {0});
    CHECK(equal(whole(row),
                support::update(all, support::slice(all, {4, 0}, {5, 7}, {1, 1}), {0, 0})));
    const auto f = update(x, y, {0, 3});
    static_assert(std::is_same_v<decltype(f), const Tensor<data, model>>);
    CHECK(equal(whole(f), support::update(all, few, {0, 3})));
    CHECK(equal(whole(update<1>(x, y, {4})), support::update(all, few, {0, 4})));
    const auto g = update<P<_, _>>(y, slice(x, {0, 0}, {2, 2}), {1, 1});
    CHECK(
        equal(whole(g), support::update(few, support::slice(all, {0, 0}, {2, 2}, {1, 1}), {1, 1})));

    const auto h = reshape<P<Axes<data, model>>>(x, {35});
    static_assert(std::is_same_v<decltype(h), const Tensor<Axes<data, model>>>);
    CHECK(equal(whole(h), support::reshape(all, {35})));
    CHECK(equal(whole(reshape<P<_, data, _>>(h, {7, 5, 1})), support::reshape(all, {7, 5, 1})));

    // Unfinished values are moved unfinished, and finished where that is asked for.
    const auto open = einsum<"ij,kj->ik", P<data, _, Unreduced<Sum, model>>>(x, x);
    const auto late = pad<1>(open, {1}, {0});
    static_assert(std::is_same_v<decltype(late), const Tensor<data, _, Unreduced<Sum, model>>>);
    const Whole<float> product = whole(reshard<P<data, _>>(open));
    CHECK(
        equal(whole(reshard<P<_, _>>(late)), support::pad(product, {0, 1}, {0, 0}, {0, 0}, 0.0f)));
    CHECK(equal(whole(roll<1, P<data, model>>(open, 1)), support::roll(product, 1, 1)));
    CHECK_THROWS_WITH_AS((void)pad<1>(open, {1}, {0}, {}, 2),
                         doctest::Contains("a sum takes 0 there, a product 0 or 1"), ShardingError);
    const auto most = max<"ij->i", P<data, Unreduced<Max, model>>>(x);
    CHECK(equal(whole(reshard<P<_>>(pad(most, {1}, {0}, {}, -2))),
                support::pad(whole(max<"ij->i">(x)), {1}, {0}, {0}, -2.0f)));
  });
}

TEST_CASE("several slices share one exchange, and one message to a neighbour") {
  run_loopback(3, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 3, 1);
    const auto x = from_function<Tensor<data, _>>(mesh, {30, 2}, Ramp{});
    Ledger& ledger = mesh.core()->ledger();
    detail::Arena& arena = mesh.core()->arena();
    const Index held = arena.in_use();
    arena.reset_peak();
    ledger.reset();
    Recording recording(mesh);
    const auto parts = slices<0>(x, {{0}, {1}, {2}}, {{28}, {29}, {30}});
    const Program program = recording.take();
    static_assert(std::is_same_v<decltype(parts), const std::vector<Tensor<data, _>>>);
    const Plan& plan = *program.entry(0).plan;
    CHECK(program.size() == 1);
    CHECK(plan.communications() == 1);
    CHECK(plan.messages() <= 1);
    CHECK(ledger.total().payload_bytes == plan.own_payload_bytes());
    CHECK(arena.peak() - held == plan.peak_bytes);
    for (Index k = 0; k < 3; ++k) {
      const HostTensor<float> part = to_host(parts[static_cast<std::size_t>(k)]);
      CHECK(part.extents == Extents{28, 2});
      CHECK(part.values[0] == static_cast<float>(k * 100));
      CHECK(part.values[55] == static_cast<float>((27 + k) * 100 + 1));
    }
    CHECK_THROWS_WITH_AS((void)slices<0>(x, {{0}}, {{1}, {2}}),
                         doctest::Contains("there are 1 starts and 2 limits"), UsageError);
    CHECK_THROWS_WITH_AS((void)slices<0>(x, {{0}, {29}}, {{1}, {31}}),
                         doctest::Contains("the slice is [29, 31) in dimension 0, which has 30"),
                         ShapeError);
    CHECK(slices(DynamicTensor(x), {}, {}).empty());
  });
}

TEST_CASE("contracts of typed and dynamic calls") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto x = from_function<Tensor<data, model>>(mesh, {6, 8}, Ramp{});
    const DynamicTensor t(x);
    const Contract gathers_model = contract_of<Grid, Only<gathers<model>>>();
    Recording recording(mesh);
    (void)slice<P<data, model>, Only<gathers<model>>, 1>(x, {2}, {8});
    (void)slice(t, {0, 2}, {6, 8}, {}, gathers_model);
    const Program program = recording.take();
    CHECK(program.entry(0).plan->count(all_gather) == 1);
    CHECK(*program.entry(0).plan == *program.entry(1).plan);
    CHECK_THROWS_AS((void)roll(t, 1, 0, gathers_model), ContractError);
    const auto strict = make_mesh<Strict<Grid>>(world, 2, 2);
    const auto s = zeros<ShardedTensor<float, Strict<Grid>, P<data, _>>>(strict, 6, 8);
    (void)slice<1>(s, {1}, {4});  // nothing moves along a dimension that is whole
    (void)roll<1>(s, 3);
    // Every dynamic call takes a contract, and has one on a strict mesh: nothing.
    const DynamicTensor d(s);
    const Contract moves = contract_of<Grid, Only<exchanges<data>, gathers<data>>>();
    const auto bounded = [&](const auto& call) {
      CHECK_THROWS_WITH_AS(call(CallOptions(Where::here())),
                           doctest::Contains("it has no contract, and the mesh is strict"),
                           ContractError);
      call(CallOptions(moves));
    };
    bounded([&](const CallOptions& c) { (void)slice(d, {1, 0}, {6, 8}, {}, c); });
    bounded([&](const CallOptions& c) {
      (void)slices(d, {{1, 0}, {2, 0}}, {{5, 8}, {6, 8}}, {}, c);
    });
    bounded([&](const CallOptions& c) { (void)pad(d, {0, 0}, {1, 0}, {}, 1, c); });
    bounded([&](const CallOptions& c) { (void)reverse(d, {0}, c); });
    bounded([&](const CallOptions& c) { (void)roll(d, 1, 0, c); });
    bounded([&](const CallOptions& c) { (void)shift(d, 1, 0, {}, c); });
    bounded([&](const CallOptions& c) { (void)concatenate(0, {d, d}, c); });
    bounded([&](const CallOptions& c) { (void)update(d, slice_of(d, {0, 0}, {2, 8}), {3, 0}, c); });
    bounded([&](const CallOptions& c) { (void)reshape(d, {3, 16}, c); });
    bounded([&](const CallOptions& c) { (void)flip(d, c); });
    bounded([&](const CallOptions& c) { (void)stack(0, {d, d}, {Sharding{{0}, {}, {}}, c}); });
    CHECK(stack(0, {d, d}).sharding() == Sharding{{}, {0}, {}});
    CHECK(stack(-1, {d, d}, {Sharding{{}, {}, {}}, moves}).extents() == Extents{6, 8, 2});
  });
}

TEST_CASE("what is refused, with the numbers") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh_core(world, MeshShape{2}, axis_names(1), {});
    const Sharding split{{0}, {}};
    const DynamicTensor x = make_input<double>(mesh, {DType::f64, {4, 6}, split}, 1);
    const DynamicTensor one = make_input<double>(mesh, {DType::f64, {4}, {{0}}}, 1);
    const DynamicTensor ints = make_input<std::int64_t>(mesh, {DType::i64, {4, 6}, split}, 1);
    const DynamicTensor open = make_input<double>(
        mesh, {DType::f64, {4, 6}, Sharding{{}, {}}.with_partial(AxisSet{0}, Reduction::sum)}, 1);
    const auto refuses = [](const auto& call, const char* part) {
      CHECK_THROWS_WITH_AS(call(), doctest::Contains(part), ShapeError);
    };
    refuses(
        [&] {
          (void)slice(x, {0, 2}, {4, 9});
        },
        "slice: the slice is [2, 9) in dimension 1, which has 6 elements");
    refuses([&] { (void)slice(x, {0}, {4}); }, "slice: start has 1 entry for 2 dimensions");
    refuses([&] { (void)slice(x, {0, 0}, {4, 6}, {1, 0}); }, "the stride is 0 in dimension 1");
    refuses(
        [&] {
          (void)slice(x, {0, 0}, {4, 6}, {}, Sharding{{0}});
        },
        "another number of entries than the result has dimensions");
    refuses(
        [&] {
          (void)pad(x, {-3, 0}, {-2, 0});
        },
        "pad: the padding is -3_-2 in dimension 0, which has 4 elements");
    refuses([&] { (void)reverse(x, {2}); },
            "reverse: a dimension is named that the tensor does not have; dimensions count from 0; "
            "name one of the tensor's "
            "(operand 1, dimension 2 of 2)");
    refuses([&] { (void)reverse(x, {1, 1}); }, "a dimension is named twice");
    refuses([&] { (void)roll(x, 1, -1); }, "dimension -1 of 2");
    refuses(
        [&] {
          (void)concatenate(0, {x, one});
        },
        "different numbers of dimensions; reshape one of them first (operand 2, 2 against 1)");
    refuses(
        [&] {
          (void)concatenate(0, {x, ints});
        },
        "different element types; cast one of them (operand 2, double and int64)");
    refuses(
        [&] {
          (void)concatenate(1, {x, slice(x, {0, 0}, {3, 6})});
        },
        "dimension 0 has 4 elements in one and 3 in the other");
    refuses(
        [&] {
          (void)update(x, x, {0, 1});
        },
        "update: the block, of 6 elements, begins at 1 in dimension 1, which has 6 elements");
    CHECK_THROWS_WITH_AS((void)concatenate(0, {x, slice_of(x, {0, 0}, {9, 6})}),
                         doctest::Contains("concatenate: of operand 2, the slice is [0, 9) in "
                                           "dimension 0"),
                         ShapeError);
    refuses(
        [&] {
          (void)reshape(x, {5, 5});
        },
        "reshape: a tensor of 4x6 has 24 elements and one of 5x5 has 25");
    CHECK_THROWS_WITH_AS((void)concatenate(0, {x, open}), doctest::Contains("not Unreduced alike"),
                         ShardingError);
    CHECK_THROWS_WITH_AS((void)roll(x, 1, 0, open.sharding()),
                         doctest::Contains("the result is Unreduced where the operand is not"),
                         ShardingError);
    CHECK_THROWS_WITH_AS((void)roll(x, 1, 0, Sharding{{0}, {0}}),
                         doctest::Contains("uses a mesh axis twice"), ShardingError);
    CHECK_THROWS_WITH_AS((void)pad(open, {1, 1}, {1, 1}, {}, 1),
                         doctest::Contains("a sum takes 0 there"), ShardingError);
    CHECK_THROWS_WITH_AS(
        (void)pad(ints, {1, 1}, {1, 1}, {}, 0.5),
        doctest::Contains("a value of type double stands beside elements of int64"), UsageError);
    CHECK_THROWS_WITH_AS((void)concatenate(0, std::vector<DynamicTensor>()),
                         doctest::Contains("there are 0 operands"), UsageError);
    CHECK_THROWS_WITH_AS((void)concatenate(0, std::vector<DynamicTensor>(9, x)),
                         doctest::Contains("there are 9 operands"), UsageError);
    CHECK_THROWS_AS((void)slice(DynamicTensor(), {}, {}), UsageError);
  });
}

TEST_CASE("processes that do not move alike are told the numbers of both") {
  std::vector<std::string> texts(2);
  try {
    run_loopback(2, [&](std::shared_ptr<Transport> world) {
      MeshOptions options;
      options.check = Check::communicating;
      const auto mesh = make_mesh_core(world, MeshShape{2}, axis_names(1), options);
      const DynamicTensor x = make_input<double>(mesh, {DType::f64, {4, 6}, {{0}, {}}}, 1);
      try {
        (void)slice(x, {0, world->process()}, {4, 6});
      } catch (const std::exception& error) {
        texts[static_cast<std::size_t>(world->process())] = error.what();
        throw;
      }
    });
  } catch (const std::exception&) {
  }
  for (const std::string& text : texts) {
    CAPTURE(text);
    CHECK(text.find("start 0x0, limit 4x6") != std::string::npos);
    CHECK(text.find("start 0x1, limit 4x6") != std::string::npos);
  }
}
