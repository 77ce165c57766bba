// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: within
// Takes, scatters, one-hots and windows that begin anywhere on every mesh of up to 8 processes:
// values, plan, ledger, arena, bits; every element type; adjoints; in place; what is refused.
#include <doctest/doctest.h>

#include <cstring>
#include <mutex>

#include "op/indexed_cases.hpp"
#include "support/every_mesh.hpp"
#include "support/grid.hpp"

using namespace tessera;
using namespace support;

namespace {
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;
using Ids = std::int32_t;

/// Makes a tensor of which element i is f(i), i row-major.
template <class T, class F>
DynamicTensor made(const std::shared_ptr<MeshCore>& mesh, const Extents& extents, const Sharding& s,
                   const F& f) {
  tessera::detail::use_indexed<T>();
  const TensorCore core = TensorCore::make(mesh, {dtype_of<T>, extents, s});
  const Box box = core.box();
  const Extents strides = detail::row_major_strides(extents);
  std::vector<HostElement<T>> values;
  for_each_index(box.extents(), [&](const Extents& at) {
    Index i = 0;
    for (int d = 0; d < at.size(); ++d) i += (box[d].lo + at[d]) * strides[d];
    values.push_back(static_cast<HostElement<T>>(f(i)));
  });
  tessera::detail::copy_from_host(core.data(), values.data(),
                                  static_cast<Index>(values.size() * sizeof(T)));
  return DynamicTensor(core);
}

/// Whole numbers of T, exact in every type.
template <class T> T whole_number(std::int64_t i) {
  if constexpr (ComplexElement<T>)
    return T(static_cast<typename T::value_type>(i), static_cast<typename T::value_type>(-i));
  else if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
    return static_cast<T>(static_cast<float>(i));
  else
    return static_cast<T>(i);
}

/// Takes and scatters of elements T under many shardings, against loops over integers.
template <class T> long wrong_of_type(const std::shared_ptr<MeshCore>& mesh, Random& random) {
  long wrong = 0;
  const int axes = mesh->shape().rank();
  const auto value = [](Index i) {
    return static_cast<std::int64_t>((i * 7 + 3) % (std::is_same_v<T, bool> ? 2 : 5));
  };
  const Extents of_table{7, 5}, of_ids{2, 6};
  const Terms terms = parse("vm,bs->bsm"), back = parse("vm,bs,bsm->vm");
  const WholeIndices ids = whole_indices(of_ids, 5);
  Whole<std::int64_t> table(of_table), updates({2, 6, 5});
  for (Index i = 0; i < table.size(); ++i) table[i] = value(i);
  for (Index i = 0; i < updates.size(); ++i) updates[i] = value(i + 1);
  const auto differs = [&](const DynamicTensor& y, const Whole<std::int64_t>& expected) {
    const HostTensor<T> all = to_host<T>(y);
    std::vector<HostElement<T>> wanted;
    for (std::int64_t i : expected.values)
      wanted.push_back(static_cast<HostElement<T>>(whole_number<T>(i)));
    return all.values.size() != wanted.size() ||
           std::memcmp(all.values.data(), wanted.data(), wanted.size() * sizeof(T)) != 0;
  };
  for (int i = 0; i < 6; ++i) {
    const OutOfRange out_of_range = i % 2 == 0 ? OutOfRange::clamp : OutOfRange::drop;
    const DynamicTensor x = made<T>(mesh, of_table, some_sharding(random, 2, axes),
                                    [&](Index k) { return whole_number<T>(value(k)); });
    const DynamicTensor at = make_indices(
        mesh, {i < 3 ? DType::i32 : DType::i64, of_ids, some_sharding(random, 2, axes)}, 5);
    const DynamicTensor u = made<T>(mesh, {2, 6, 5}, some_sharding(random, 3, axes),
                                    [&](Index k) { return whole_number<T>(value(k + 1)); });
    wrong +=
        differs(tessera::take("vm,bs->bsm", x, at, out_of_range, some_sharding(random, 3, axes)),
                support::take(terms, table, {ids}, out_of_range));
    const Sharding out = some_sharding(random, 2, axes);
    const auto joined_by = [&](Reduction kind) {
      return support::scatter(back, kind, table, {ids}, updates, out_of_range);
    };
    wrong += differs(tessera::scatter<Set>("vm,bs,bsm->vm", x, at, u, out_of_range, out),
                     joined_by(Reduction::none));
    if constexpr (std::is_same_v<T, bool>) {
      wrong += differs(tessera::scatter<Any>("vm,bs,bsm->vm", x, at, u, out_of_range, out),
                       joined_by(Reduction::max));
      wrong += differs(tessera::scatter<All>("vm,bs,bsm->vm", x, at, u, out_of_range, out),
                       joined_by(Reduction::min));
    } else {
      wrong += differs(tessera::scatter<Sum>("vm,bs,bsm->vm", x, at, u, out_of_range, out),
                       joined_by(Reduction::sum));
      if constexpr (OrderedElement<T>) {
        wrong += differs(tessera::scatter<Max>("vm,bs,bsm->vm", x, at, u, out_of_range, out),
                         joined_by(Reduction::max));
        wrong += differs(tessera::scatter<Min>("vm,bs,bsm->vm", x, at, u, out_of_range, out),
                         joined_by(Reduction::min));
      }
    }
    const DynamicTensor hot =
        tessera::one_hot<T>("bsv", 'v', at, 7, some_sharding(random, 3, axes));
    Whole<std::int64_t> expected = support::one_hot<std::int64_t>({'b', 's', 'v'}, 'v', ids, 7);
    if constexpr (ComplexElement<T>)
      wrong += to_host<T>(hot).values.size() != expected.values.size();
    else
      wrong += differs(hot, expected);
    wrong += differs(tessera::dynamic_slice("vm", "v", x, {3}, {3}, some_sharding(random, 2, axes)),
                     support::dynamic_slice(table, {3, 0}, {3, 5}));
    const DynamicTensor rows =
        tessera::dynamic_slice("vm", "v", x, {0}, {2}, some_sharding(random, 2, axes));
    wrong += differs(
        tessera::dynamic_update_slice("vm", "v", x, rows, {4}, out),
        support::dynamic_update(table, support::dynamic_slice(table, {0, 0}, {2, 5}), {4, 0}));
  }
  return wrong;
}

double inner(const DynamicTensor& a, const DynamicTensor& b) {
  const HostTensor<double> x = to_host<double>(a), y = to_host<double>(b);
  REQUIRE(x.values.size() == y.values.size());
  double sum = 0;
  for (std::size_t i = 0; i < x.values.size(); ++i) sum += x.values[i] * y.values[i];
  return sum;
}

}  // namespace

TEST_CASE("takes, scatters, one-hots and windows equal plain loops, and run their plans") {
  const int before = freed_plans.load();
  on_every_mesh("indexed on loopback", 70, 200 / share, 3,
                [](const std::shared_ptr<MeshCore>& mesh, Random& random) {
                  return some_indexed_case(mesh, random);
                });
  const int freed = freed_plans.load() - before;
  MESSAGE(freed << " of them split letters that their axes split nowhere");
  CHECK(freed > 20 / share);
}

TEST_CASE("every element type is taken and scattered to the bit") {
  for (const MeshShape& shape : {MeshShape{1, 1}, MeshShape{2, 2}, MeshShape{3, 2}})
    run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
      Random random(17);
      const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()), {});
      for (int type = 0; type < dtypes; ++type) {
        const long wrong = detail::with_type(static_cast<DType>(type), [&](auto element) {
          return wrong_of_type<decltype(element)>(mesh, random);
        });
        CHECK_MESSAGE(wrong == 0, name_of(static_cast<DType>(type)));
      }
    });
}

TEST_CASE("a take is exact where parts are summed: minus zero, infinities, NaN; truth values") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh_core(world, MeshShape{4}, axis_names(1), {});
    const double special[] = {-0.0,
                              0.0,
                              std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity(),
                              std::numeric_limits<double>::denorm_min(),
                              -1e308,
                              std::numeric_limits<double>::quiet_NaN()};
    const auto at = [&](Index i) { return special[i]; };
    const DynamicTensor x = made<double>(mesh, {7}, {{0}}, at);
    const DynamicTensor ids = made<Ids>(mesh, {9}, {{}}, [](Index i) {
      return i < 7 ? 6 - i : i == 7 ? 7 : -1;
    });
    const HostTensor<double> y =
        to_host<double>(tessera::take("v,n->n", x, ids, OutOfRange::drop, Sharding{{}}));
    for (std::size_t i = 1; i < 7; ++i)
      CHECK(std::memcmp(&y.values[i], &special[6 - i], sizeof(double)) == 0);
    CHECK(y.values[0] != y.values[0]);
    CHECK(!std::signbit(y.values[7]));
    CHECK(!std::signbit(y.values[8]));
    // Left open by a maximum: what is not here is minus infinity.
    const Sharding open = Sharding{{}}.with_partial(AxisSet{0}, Reduction::max);
    const HostTensor<double> z =
        to_host<double>(tessera::take("v,n->n", x, ids, OutOfRange::drop, open));
    for (std::size_t i = 1; i < 7; ++i)
      CHECK(std::memcmp(&z.values[i], &special[6 - i], sizeof(double)) == 0);
    CHECK(z.values[8] == 0);
    const DynamicTensor b = made<bool>(mesh, {7}, {{0}}, [](Index i) { return i % 3 == 0; });
    const HostTensor<bool> t = to_host<bool>(tessera::take(b, ids, 0));
    for (std::size_t i = 0; i < 7; ++i) CHECK(t.values[i] == ((6 - i) % 3 == 0));
  });
}

TEST_CASE("minus zeros that are added to minus zeros stay so, wherever the updates lie") {
  for (const int n : {1, 2, 4})
    run_loopback(n, [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh_core(world, MeshShape{n}, axis_names(1), {});
      const auto zero = [](Index) { return -0.0; };
      const DynamicTensor x = made<double>(mesh, {2}, {{}}, zero);
      const DynamicTensor ids = made<Ids>(mesh, {400}, {{0}}, [](Index) { return 0; });
      const DynamicTensor updates = made<double>(mesh, {400}, {{0}}, zero);
      const HostTensor<double> y = to_host<double>(
          tessera::scatter<Sum>("v,n,n->v", x, ids, updates, OutOfRange::drop, Sharding{{}}));
      CHECK(std::signbit(y.values[0]));
      CHECK(std::signbit(y.values[1]));
    });
}

TEST_CASE("a take and a scatter by sum are adjoint, and a window and its update") {
  std::uint64_t number = 0;
  for (const MeshShape& shape : meshes(8, 2)) {
    ++number;
    run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
      Random random(90 + number);
      const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()), {});
      const int axes = shape.rank();
      const auto some = [&](const Extents& e, double scale) {
        return made<double>(mesh, e, some_sharding(random, e.size(), axes), [&](Index i) {
          return scale * static_cast<double>((i * 37 + 11) % 101 - 50);
        });
      };
      for (int i = 0; i < 8; ++i) {
        const OutOfRange out_of_range = i % 2 == 0 ? OutOfRange::clamp : OutOfRange::drop;
        const DynamicTensor x = some({5, 3}, 0.37), y = some({2, 9, 3}, 0.11);
        const DynamicTensor ids =
            make_indices(mesh, {DType::i64, {2, 9}, some_sharding(random, 2, axes)}, 5);
        const DynamicTensor ax =
            tessera::take("vm,bs->bsm", x, ids, out_of_range, some_sharding(random, 3, axes));
        const DynamicTensor ay = tessera::scatter<Sum>("bs,bsm->vm", {ids, y}, {5}, out_of_range,
                                                       some_sharding(random, 2, axes));
        CHECK(std::fabs(inner(ax, y) - inner(x, ay)) <= 1e-10);
        // The adjoint holds for windows of 2 rows too, which begin from -2 to 6.
        const DynamicTensor rows = some({2, 2, 9, 3}, 0.11);
        const DynamicTensor wx = tessera::take(
            "vm,bs->bVsm", x, ids, {WindowSizes(2), out_of_range}, some_sharding(random, 4, axes));
        const DynamicTensor wy = tessera::scatter<Sum>(
            "bs,bVsm->vm", {ids, rows}, {5}, out_of_range, some_sharding(random, 2, axes));
        CHECK(std::fabs(inner(wx, rows) - inner(x, wy)) <= 1e-10);
        const DynamicTensor u = some({3, 2}, 0.7);
        const Extents start{random.below(6) - 1, random.below(4) - 1};
        const DynamicTensor zero =
            made<double>(mesh, {5, 3}, some_sharding(random, 2, axes), [](Index) { return 0.0; });
        const DynamicTensor bx =
            tessera::dynamic_slice("vm", "vm", x, start, {3, 2}, some_sharding(random, 2, axes));
        const DynamicTensor bu = tessera::dynamic_update_slice("vm", "vm", zero, u, start,
                                                               some_sharding(random, 2, axes));
        CHECK(std::fabs(inner(bx, u) - inner(x, bu)) <= 1e-10);
        // An einsum with the one-hot form is the take.
        const DynamicTensor hot =
            tessera::one_hot<double>("bsv", 'v', ids, 5, some_sharding(random, 3, axes));
        const DynamicTensor by_product =
            tessera::einsum("bsv,vm->bsm", hot, x, some_sharding(random, 3, axes));
        if (out_of_range == OutOfRange::drop)
          CHECK(std::fabs(inner(by_product, y) - inner(ax, y)) <= 1e-10);
      }
    });
  }
}

TEST_CASE("the typed surface: an embedding, its gradient, a cache of keys") {
  for (const MeshSizes<Grid> size : {sizes<Grid>(1, 1), sizes<Grid>(2, 2), sizes<Grid>(3, 2)})
    run_loopback(size.shape.processes(), [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(world, size.shape[0], size.shape[1]);
      auto table = random_uniform<Tensor<double, model, _>>(mesh, {11, 5}, 7);
      const auto ids = random_uniform<Tensor<Ids, data, _>>(mesh, {4, 6}, 8, 0, 10);
      const auto e = take<"vm,bs->bsm">(table, ids);
      static_assert(std::is_same_v<decltype(e), const Tensor<double, data, _, _>>);
      const auto open = take<"vm,bs->bsm", P<data, _, _, Unreduced<Sum, model>>>(table, ids);
      static_assert(
          std::is_same_v<decltype(open), const Tensor<double, data, _, _, Unreduced<Sum, model>>>);
      CHECK(to_host(open) == to_host(e));
      CHECK(to_host(take<0>(table, ids)) == to_host(e));
      const auto scattered = take<"vm,bs->bsm", P<data, _, model>>(table, ids);
      CHECK(to_host(scattered) == to_host(e));
      const HostTensor<double> whole = to_host(table), taken = to_host(e);
      const HostTensor<Ids> at = to_host(ids);
      for (Index b = 0; b < 4; ++b)
        for (Index s = 0; s < 6; ++s)
          for (Index m = 0; m < 5; ++m)
            CHECK(taken(b, s, m) == whole(static_cast<Index>(at(b, s)), m));
      // The gradient: into zeros, into a tensor, in place.
      const auto gradient = scatter<Sum, "bs,bsm->vm", P<model, _>>(ids, e, {11});
      const auto plain = zeros<Tensor<double, model, _>>(mesh, 11, 5);
      const auto added = scatter<Sum, "vm,bs,bsm->vm">(plain, ids, e);
      static_assert(std::is_same_v<decltype(added), const Tensor<double, model, _>>);
      auto in_place = zeros<Tensor<double, model, _>>(mesh, 11, 5);
      const void* before = in_place.data();
      scatter_into<Sum, "vm,bs,bsm->vm">(in_place, ids, e);
      CHECK(in_place.data() == before);
      CHECK(to_host(in_place) == to_host(added));
      CHECK(to_host(gradient) == to_host(added));
      const auto counts = scatter<Sum, "bs,bs->v">(
          ids, iota<Tensor<std::int64_t, data, _>>(mesh, {4, 6}, 0) * 0 + 1, {11});
      CHECK(value(sum(counts)) == 24);
      const auto rows = iota<Tensor<std::int64_t, _, data>>(mesh, {5, 7}, 1);
      CHECK(to_host(rows)(3, 6) == 6);
      CHECK(to_host(sum<"bsv->bs">(one_hot<float, "bsv", 'v'>(ids, 11)))(1, 1) == 1);
      const auto image = from_function<Tensor<std::int64_t, data, model, _>>(
          mesh, {4, 5, 3}, [](const GlobalIndex& i) { return i.linear(); });
      const auto r = iota<Tensor<Ids, data>>(mesh, {4});
      const auto c = iota<Tensor<Ids, _>>(mesh, {4});
      const auto diagonal = take<"xyc,n,n->nc">(image, r, c);
      CHECK(to_host(diagonal)(3, 2) == 3 * 15 + 3 * 3 + 2);
      // The columns of one tensor say the same places: (n, 0), (n, 1), ...
      const auto places = from_function<Tensor<Ids, data, model>>(
          mesh, {4, 2}, [](const GlobalIndex& i) { return i[1] == 0 ? 1 : i[0]; });
      const auto second = take<"xyc,nk->nc">(image, places);
      static_assert(std::is_same_v<decltype(second), const Tensor<std::int64_t, data, _>>);
      CHECK(to_host(second)(3, 2) == 15 + 3 * 3 + 2);
      const auto there = scatter<Set, "nk,n->xy">(places, cast<std::int64_t>(r + 1), {4, 5});
      CHECK(to_host(there)(1, 3) == 4);
      CHECK(value(sum(there)) == 1 + 2 + 3 + 4);
      // Windows of 2 x 3 that begin at (1, 0), (1, 1), (1, 2) and, clamped, (1, 2).
      const auto patches = take<"xyc,nk->nXYc">(image, places, WindowSizes(2, 3));
      static_assert(std::is_same_v<decltype(patches), const Tensor<std::int64_t, data, _, _, _>>);
      const HostTensor<std::int64_t> patch = to_host(patches);
      CHECK(patch(1, 1, 2, 2) == 2 * 15 + 3 * 3 + 2);
      CHECK(patch(3, 0, 1, 0) == 15 + 3 * 3);
      const auto rest = take<"xyc,n,n->XYnc", P<model, _, data, _>>(
          image, r, c, {WindowSizes(3, 1), OutOfRange::drop});
      CHECK(to_host(rest)(2, 0, 1, 1) == 3 * 15 + 3 + 1);
      CHECK(to_host(rest)(0, 0, 2, 1) == 0);
      // Joined where they came from, each element is counted by the windows that have it.
      const auto covered = scatter<Sum, "nk,nXYc->xyc", P<_, model, data>>(
          places, patches * 0 + 1, {4, 5}, OutOfRange::clamp);
      CHECK(to_host(covered)(1, 2, 0) == 4);
      CHECK(to_host(covered)(2, 4, 1) == 2);
      CHECK(to_host(covered)(3, 2, 2) == 0);
      auto overwritten = zeros<Tensor<std::int64_t, _, data, model>>(mesh, 4, 5, 3);
      scatter_into<Set, "xyc,nk,nXYc->xyc">(overwritten, places, patches);
      CHECK(to_host(overwritten)(2, 3, 2) == 2 * 15 + 3 * 3 + 2);
      CHECK(to_host(overwritten)(0, 3, 2) == 0);
      // Windows where no other has a part: of one element each, a take without them.
      CHECK(to_host(take<"vm,bs->bsVm">(table, ids, WindowSizes(1))).values == to_host(e).values);
      // A cache of keys that is written a position at a time: one plan serves all.
      auto cache = zeros<Tensor<double, data, model, _>>(mesh, 4, 9, 5);
      auto copied = zeros<Tensor<double, data, model, _>>(mesh, 4, 9, 5);
      Recording recording(mesh);
      for (Index position = 0; position < 9; ++position) {
        const auto fresh =
            full<Tensor<double, data, _, _>>(mesh, {4, 1, 5}, static_cast<double>(position));
        dynamic_update_slice_into<"bsm", 's'>(cache, fresh, {position});
        copied = dynamic_update_slice<"bsm", 's'>(copied, fresh, {position});
      }
      const Program program = recording.take();
      CHECK(program.size() == 27);  // two writes of a new tensor at each position
      CHECK(program.entry(1).plan == program.entry(25).plan);
      const HostTensor<double> kept = to_host(cache);
      for (Index s = 0; s < 9; ++s) CHECK(kept(2, s, 3) == static_cast<double>(s));
      CHECK(to_host(copied) == kept);
      const auto window = dynamic_slice<"bsm", 's'>(cache, {5}, {3});
      CHECK(to_host(window)(1, 2, 4) == 7);
      CHECK(to_host(dynamic_slice<"bsm", "sm">(cache, {100, -3}, {2, 2}))(0, 1, 0) ==
            8);  // clamped
    });
}

TEST_CASE("many updates to few rows: order, long lists, several threads' worth") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh_core(world, MeshShape{2}, axis_names(1), {});
    const Index n = 60'000;
    const auto where = [](Index i) {
      return (i * i) % 5 == 0               ? 2
             : (i * 7919) % 10'007 % 3 == 0 ? 9'000
                                            : static_cast<Index>((i * 7919) % 10'007);
    };
    const DynamicTensor ids = made<std::int64_t>(mesh, {n}, {{0}}, where);
    const DynamicTensor ones = made<float>(mesh, {n}, {{0}}, [](Index) { return 1.0f; });
    const DynamicTensor order = made<std::int64_t>(mesh, {n}, {{0}}, [](Index i) { return i; });
    std::vector<float> counts(10'007, 0);
    std::vector<std::int64_t> last(10'007, 0);
    for (Index i = 0; i < n; ++i) {
      counts[static_cast<std::size_t>(where(i))] += 1;
      last[static_cast<std::size_t>(where(i))] = i;
    }
    for (const Sharding& out : {Sharding{{}}, Sharding{{0}}}) {
      CHECK(
          to_host<float>(tessera::scatter<Sum>("n,n->v", {ids, ones}, {10'007}, {}, out)).values ==
          counts);
      CHECK(to_host<std::int64_t>(tessera::scatter<Set>("n,n->v", {ids, order}, {10'007}, {}, out))
                .values == last);
    }
    // Sums of short elements are kept in double: 4096 ones and a quarter, each rounded alone, would
    // stay at 256.
    const DynamicTensor quarter =
        made<bfloat16>(mesh, {4096}, {{}}, [](Index) { return bfloat16(0.25f); });
    const DynamicTensor zero = made<Ids>(mesh, {4096}, {{}}, [](Index) { return 0; });
    CHECK(static_cast<float>(to_host<bfloat16>(tessera::scatter<Sum>("n,n->v", {zero, quarter}, {1},
                                                                     {}, Sharding{{}}))
                                 .values[0]) == 1024.0f);
  });
}

namespace {
/// Runs a take of the conformance collection and returns what is wrong with its values, plan,
/// ledger or memory.
std::string run_take_row(const std::shared_ptr<MeshCore>& mesh, const char* equation,
                         const Extents& x, const Sharding& sx, const Extents& i, const Sharding& si,
                         const Sharding& out) {
  const Terms terms = parse(equation);
  const TensorDescs descs{{DType::f32, x, sx}, {DType::i32, i, si}};
  const DynamicTensor table = make_input<float>(mesh, descs[0], 1),
                      ids = make_indices(mesh, descs[1], 2);
  return Trial<float>(mesh, equation)(
      [&] { return tessera::take(equation, table, ids, {}, out); },
      ops::Take{terms, OutOfRange::clamp, out}.plan(
          descs, {mesh->shape(), mesh->process(), plan_options(*mesh)}),
      support::take(terms, whole_input<float>(descs[0], mesh->shape(), 1), {whole_indices(i, 2)},
                    OutOfRange::clamp),
      0);
}
std::string run_scatter_row(const std::shared_ptr<MeshCore>& mesh, const Sharding& x,
                            const Sharding& i, const Sharding& u, const Sharding& out) {
  const Terms terms = parse("vm,bs,bsm->vm");
  const TensorDescs descs{
      {DType::i64, {17, 9}, x}, {DType::i32, {2, 3}, i}, {DType::i64, {2, 3, 9}, u}};
  const DynamicTensor table = make_input<std::int64_t>(mesh, descs[0], 1),
                      ids = make_indices(mesh, descs[1], 2);
  const DynamicTensor updates = make_input<std::int64_t>(mesh, descs[2], 3);
  const auto whole = [&](int t, std::uint64_t seed) {
    return whole_input<std::int64_t>(descs[t], mesh->shape(), seed);
  };
  return Trial<std::int64_t>(mesh, "scatter")(
      [&] { return tessera::scatter<Sum>("vm,bs,bsm->vm", table, ids, updates, {}, out); },
      ops::Scatter{terms, Reduction::sum, OutOfRange::drop, {}, false, out}.plan(
          descs, {mesh->shape(), mesh->process(), plan_options(*mesh)}),
      support::scatter(terms, Reduction::sum, whole(0, 1), {whole_indices({2, 3}, 2)}, whole(2, 3),
                       OutOfRange::drop),
      0);
}
std::string run_update_row(const std::shared_ptr<MeshCore>& mesh, const char* labels,
                           const char* along, const Extents& x, const Sharding& sx,
                           const Extents& u, const Sharding& su, const Extents& start) {
  const Terms terms = detail::same_terms(labels), moving = detail::same_terms(along);
  const TensorDesc dx{DType::i32, x, sx}, du{DType::i32, u, su};
  const DynamicTensor whole = make_input<Ids>(mesh, dx, 1), update = make_input<Ids>(mesh, du, 2);
  return Trial<Ids>(mesh, "update")(
      [&] { return tessera::dynamic_update_slice(labels, along, whole, update, start, sx); },
      detail::plan_dynamic_update(terms.result, moving.result, dx, du, sx, mesh->shape(),
                                  mesh->process(), plan_options(*mesh)),
      support::dynamic_update(whole_input<Ids>(dx, mesh->shape(), 1),
                              whole_input<Ids>(du, mesh->shape(), 2),
                              tessera::detail::starts_of(terms, moving, start)),
      0);
}
}  // namespace

TEST_CASE("rows of the conformance collection, run; the large one shrunk") {
  const auto on = [](const MeshShape& shape, const auto& f) {
    run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
      const std::string wrong = f(make_mesh_core(world, shape, axis_names(shape.rank()), {}));
      CHECK_MESSAGE(wrong.empty(), wrong);
    });
  };
  const MeshShape two{2}, pairs{2, 2}, four{4}, eight{8}, half_each{4, 2};
  using Mesh = const std::shared_ptr<MeshCore>&;
  for (const MeshShape& shape : {two, pairs}) {
    on(shape, [](Mesh m) {
      return run_take_row(m, "vm,b->bm", {2, 9}, {{}, {0}}, {3}, {{}}, {{}, {0}});
    });  // G1
    on(shape, [](Mesh m) {
      return run_take_row(m, "vm,bs->bsm", {17, 9}, {{0}, {}}, {2, 3}, {{}, {}}, {{}, {}, {}});
    });  // G3
    on(shape, [](Mesh m) {
      return run_scatter_row(m, {{}, {0}}, {{}, {}}, {{}, {}, {0}}, {{}, {0}});
    });  // SC1
    on(shape, [](Mesh m) {
      return run_scatter_row(m, {{0}, {}}, {{}, {}}, {{}, {}, {}}, {{0}, {}});
    });  // SC3
    on(shape, [](Mesh m) {
      return run_update_row(m, "ab", "b", {128, 64}, {{}, {0}}, {128, 2}, {{}, {0}}, {60});
    });  // Y3
    on(shape, [](Mesh m) {
      return run_update_row(m, "ab", "ab", {128, 64}, {{}, {0}}, {10, 10}, {{}, {}}, {59, 27});
    });  // Y7
    on(shape, [](Mesh m) {
      return run_update_row(m, "ab", "ab", {128, 64}, {{}, {0}}, {128, 20}, {{}, {}}, {20, 60});
    });  // clamped
  }
  on(four, [](Mesh m) { return run_update_row(m, "a", "a", {16}, {{0}}, {8}, {{0}}, {3}); });  // Y5
  on(eight, [](Mesh m) {
    return run_take_row(m, "vm,abc->abcm", {64, 96}, {{0}, {}}, {16, 1, 1}, {{}, {}, {}},
                        {{}, {}, {}, {}});
  });  // G7
  for (const Sharding& x : {Sharding{{0}, {}, {}, {}}, Sharding{{}, {}, {}, {}},
                            Sharding{{0}, {1}, {}, {}}, Sharding{{}, {0}, {}, {}}})  // G5
    for (const Sharding& i : {Sharding{{0}, {}}, Sharding{{}, {}}, Sharding{{1}, {0}}})
      for (const Sharding& out : {Sharding{{0}, {}, {}, {}}, Sharding{{}, {}, {}, {}}})
        on(half_each, [&](Mesh m) {
          return run_take_row(m, "abcd,ae->aecd", {8, 4, 2, 2}, x, {8, 4}, i, out);
        });
}

TEST_CASE("what is refused at run time, with its numbers") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh_core(world, MeshShape{2}, axis_names(1), {});
    const auto tensor = [&](const Extents& e) {
      return made<float>(mesh, e, Sharding::replicated(e.size()), [](Index) { return 1.0f; });
    };
    const auto indices = [&](const Extents& e) {
      return make_indices(mesh, {DType::i32, e, Sharding::replicated(e.size())}, 1);
    };
    const auto says = [](const auto& f, const std::string& text) {
      try {
        f();
      } catch (const Error& error) {
        CHECK_MESSAGE(std::string(error.what()).find(text) != std::string::npos,
                      std::string(error.what()));
        return;
      }
      FAIL("nothing was thrown");
    };
    const Sharding one{{}}, two{{}, {}};
    says(
        [&] {
          (void)tessera::take("vm,b->bm", tensor({3, 4}), tensor({2}), {}, two);
        },
        "indices are int32 or int64");
    says(
        [&] {
          (void)tessera::take("bv,bs->bs", tensor({3, 4}), indices({2, 5}), {}, two);
        },
        "b is 3 in operand 1");
    says(
        [&] {
          (void)tessera::take("vm,b->bm", tensor({0, 4}), indices({2}), {}, two);
        },
        "there is none to clamp an index to");
    CHECK(to_host<float>(
              tessera::take("vm,b->bm", tensor({0, 4}), indices({2}), OutOfRange::drop, two))
              .values == std::vector<float>(8, 0.0f));
    says(
        [&] {
          (void)tessera::take("vm,b->b", tensor({3, 4}), indices({2}), {}, one);
        },
        "one tensor of indices for each letter");
    says(
        [&] {
          (void)tessera::take(tensor({3, 4}), indices({2}), 2);
        },
        "dimension 2 of a tensor of 2 dimensions");
    says(
        [&] {
          (void)tessera::scatter<Sum>("vm,b,bm->vm", tensor({3, 4}), indices({2}), indices({2, 4}));
        },
        "the tensor and its updates have different element types");
    says(
        [&] {
          (void)tessera::scatter<Any>("vm,b,bm->vm", tensor({3, 4}), indices({2}), tensor({2, 4}));
        },
        "numbers are not true or false");
    says(
        [&] {
          (void)tessera::scatter<Sum>("b,bm->vm", {indices({2}), tensor({2, 4})}, {}, {}, two);
        },
        "the result has 1 indexed letters (v), and 0 extents are given");
    says(
        [&] {
          (void)tessera::scatter<Sum>("b,bm->vm", {indices({2}), tensor({2, 4})}, {-3}, {}, two);
        },
        "an extent of -3");
    says(
        [&] {
          (void)tessera::dynamic_slice("ab", "b", tensor({3, 4}), {0}, {5}, two);
        },
        "5 elements along b, and the tensor has 4");
    says(
        [&] {
          (void)tessera::dynamic_slice("ab", "b", tensor({3, 4}), {0, 1}, {2}, two);
        },
        "1 letters, and 2 starts are given");
    says(
        [&] {
          (void)tessera::dynamic_slice("ab", "c", tensor({3, 4}), {0}, {2}, two);
        },
        "letter c");
    says(
        [&] {
          (void)tessera::dynamic_update_slice("ab", "b", tensor({3, 4}), tensor({2, 2}), {0}, two);
        },
        "the tensor has 3 elements and the update 2");
    says(
        [&] {
          (void)tessera::take("xy,nk->n", tensor({3, 4}), indices({2, 3}));
        },
        "3 columns along k, and 2 letters have no tensor of their own");
    says([&] { (void)tessera::scatter<Sum>("b,bm->vm", {indices({2})}, {3}); },
         "1 tensors are given; it takes 2 to 8");
    const DynamicTensor x = tensor({3, 4}), i = indices({2});
    says(
        [&] {
          (void)tessera::take("v,b->b", tensor({3}), {i, i, i, i, i, i, i, i});
        },
        "9 tensors are given; it takes 2 to 8");
    says([&] { tessera::dynamic_update_slice_into("ab", "b", x, x, {0}); }, "shares its memory");
  });
}

TEST_CASE("processes that ask for windows at different places are told so") {
  std::mutex mutex;
  std::string said;
  try {
    run_loopback(2, [&](std::shared_ptr<Transport> world) {
      MeshOptions options;
      options.check = Check::communicating;
      const auto mesh = make_mesh_core(world, MeshShape{2}, axis_names(1), options);
      const DynamicTensor x = made<float>(mesh, {8}, {{0}}, [](Index) { return 1.0f; });
      try {
        (void)tessera::dynamic_slice("a", "a", x, {mesh->process()}, {2}, Sharding{{}});
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        said += error.what();
        throw;
      }
    });
  } catch (const std::exception&) {
  }
  CHECK_MESSAGE(said.find("from index 0") != std::string::npos, said);
  CHECK_MESSAGE(said.find("from index 1") != std::string::npos, said);
}
