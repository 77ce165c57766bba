// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: halo
// Contracts of dynamic convolutions, windows and halos: on a strict mesh a call without one is
// refused on all processes where it would communicate; with one it runs, and computes the same.
#include <doctest/doctest.h>

#include <functional>
#include <mutex>

#include <tessera/comm/loopback/loopback.hpp>
#include <tessera/op/halo/halo.hpp>
#include <tessera/op/product/convolve.hpp>
#include <tessera/op/reduce_window.hpp>

#include "support/grid.hpp"

using namespace tessera;

namespace {
using Careful = Strict<Grid>;
template <class... D> using Field = ShardedTensor<double, Careful, P<D...>>;
using Values = std::vector<double>;

struct Ramp {
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i) const {
    return static_cast<double>((i.linear() * 7) % 23) - 9;
  }
};

struct Case {
  const char* name;
  std::function<Values(const CallOptions&)> run;
};

Values values_of(const DynamicTensor& x) { return to_host<double>(x).values; }
/// Returns what this process's extended block holds.
Values values_of(const DynamicHaloTensor& u) {
  const auto view = u.view<double, 4>();
  return Values(view.data(), view.data() + view.size());
}

/// Runs f on loopback meshes of several sizes, and collects what it finds wrong.
template <class F> void on_meshes(const F& f) {
  for (const MeshShape& shape :
       {MeshShape{1, 1}, MeshShape{2, 2}, MeshShape{3, 2}, MeshShape{1, 4}}) {
    std::mutex mutex;
    std::string wrong;
    run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
      const std::string text =
          f(make_mesh<Careful>(world, MeshSizes<Careful>{shape}), shape.processes() > 1);
      const std::lock_guard lock(mutex);
      if (wrong.empty()) wrong = text;
    });
    CHECK_MESSAGE(wrong.empty(), to_string(shape, Grid::names()) << ": " << wrong);
  }
}
/// Every case moves data where there are several processes.
std::string wrong_case(const std::vector<Case>& cases, const Contract& contract, bool moves) {
  for (const Case& one : cases) {
    std::string refused;
    try {
      (void)one.run(Where::here());
    } catch (const ContractError& error) {
      refused = error.what();
    }
    const bool said = refused.find("it has no contract, and the mesh is strict") != refused.npos;
    if (said != moves) return std::string(one.name) + " without a contract: " + refused;
    if (one.run(contract) != one.run(Contract{})) return std::string(one.name) + ": other values";
  }
  return "";
}
}  // namespace

TEST_CASE("convolutions and windows on dynamic tensors keep the contract that they are given") {
  on_meshes([](const ProcessMesh<Careful>& mesh, bool moves) {
    const DynamicTensor x = from_function<Field<_, data, model, _>>(mesh, {2, 8, 8, 2}, Ramp{}),
                        k = from_function<Field<_, _, _, _>>(mesh, {3, 3, 2, 3}, Ramp{}),
                        y = from_function<Field<_, data, model, _>>(mesh, {2, 8, 8, 3}, Ramp{}),
                        taps = from_function<Field<_, data, model, _>>(mesh, {2, 8, 7, 2}, Ramp{});
    const std::string_view nhwc = "bhwi,hwio->bhwo";
    const Convolution around{.low = {1, 1}, .high = {1, 1}};
    const WindowSettings pool{.size = {1, 3, 2, 1}, .low = {0, 1, 0, 0}, .high = {0, 1, 0, 0}};
    const Extents image = x.extents(), kernel = k.extents();
    const Sharding split = x.sharding(), whole = k.sharding();
    using Call = CallOptions;
    const std::vector<Case> cases{
        {"convolve",
         [&](const Call& c) {
           return values_of(convolve(nhwc, x, k, around, {split, c}));
         }},
        {"convolve, deduced",
         [&](const Call& c) { return values_of(convolve(nhwc, x, k, around, c)); }},
        {"input gradient",
         [&](const Call& c) {
           return values_of(convolve_input_gradient(nhwc, y, k, image, around, {split, c}));
         }},
        {"input gradient, deduced",
         [&](const Call& c) {
           return values_of(convolve_input_gradient(nhwc, y, k, image, around, c));
         }},
        {"kernel gradient",
         [&](const Call& c) {
           return values_of(convolve_kernel_gradient(nhwc, x, y, kernel, around, {whole, c}));
         }},
        {"kernel gradient, deduced",
         [&](const Call& c) {
           return values_of(convolve_kernel_gradient(nhwc, x, y, kernel, around, c));
         }},
        {"reduce_window",
         [&](const Call& c) {
           return values_of(reduce_window<Mean>(x, pool, {split, c}));
         }},
        {"reduce_window, deduced",
         [&](const Call& c) { return values_of(reduce_window<Max>(x, pool, c)); }},
        {"select_and_scatter",
         [&](const Call& c) {
           return values_of(select_and_scatter<Min>(x, taps, pool, {split, c}));
         }},
        {"select_and_scatter, deduced",
         [&](const Call& c) { return values_of(select_and_scatter<Max>(x, taps, pool, c)); }},
        {"gradient of a mean",
         [&](const Call& c) {
           return values_of(reduce_window_gradient<Mean>(x, taps, pool, {split, c}));
         }},
        {"gradient of a sum, deduced",
         [&](const Call& c) { return values_of(reduce_window_gradient<Sum>(x, taps, pool, c)); }},
        {"gradient of a maximum, deduced",
         [&](const Call& c) { return values_of(reduce_window_gradient<Max>(x, taps, pool, c)); }}};
    return wrong_case(cases, contract_of<Careful, Only<exchanges<>, all_reduces<>>>(), moves);
  });
}

TEST_CASE("halos of dynamic tensors, and those kept in place, keep the contract of each call") {
  detail::use_accumulate<double>();  // of halo_adjoint and add_back
  on_meshes([](const ProcessMesh<Careful>& mesh, bool moves) {
    const DynamicTensor x = from_function<Field<_, data, model, _>>(mesh, {2, 8, 8, 2}, Ramp{});
    const Halo halo{{}, {1, 2, Boundary::periodic}, {2, 1, Boundary::reflected}, {}};
    const auto fresh = [&] {
      const auto u = make_halo(mesh, x.extents(), x.sharding(), halo, 0.0);
      u.assign(x);
      return u;
    };
    const DynamicHaloTensor extended = halo_exchange(x, halo, Contract{}), kept = fresh();
    kept.exchange(Contract{});  // what the cases do then is another exchange of one that has been
    using Call = CallOptions;
    const std::vector<Case> cases{
        {"halo_exchange", [&](const Call& c) { return values_of(halo_exchange(x, halo, c)); }},
        {"halo_exchange with a value",
         [&](const Call& c) { return values_of(halo_exchange(x, halo, 0.5, c)); }},
        {"halo_exchange_async",
         [&](const Call& c) { return values_of(halo_exchange_async(x, halo, c).wait()); }},
        {"halo_exchange_together",
         [&](const Call& c) {
           return values_of(halo_exchange_together({x, x}, halo, c)[1]);
         }},
        {"halo_adjoint", [&](const Call& c) { return values_of(halo_adjoint(extended, c)); }},
        {"exchange",
         [&](const Call& c) {
           const auto u = fresh();
           u.exchange(c);
           return values_of(u);
         }},
        {"exchange again",
         [&](const Call& c) {
           kept.assign(x);
           kept.exchange(c);
           return values_of(kept);
         }},
        {"exchange_async",
         [&](const Call& c) {
           const auto u = fresh();
           u.exchange_async(c).wait();
           return values_of(u);
         }},
        {"exchange_together",
         [&](const Call& c) {
           const std::vector<DynamicHaloTensor> both{fresh(), fresh()};
           exchange_together(both, c);
           return values_of(both[1]);
         }},
        {"add_back", [&](const Call& c) {
           const auto u = fresh();
           u.exchange(Contract{});
           u.add_back(c);
           return values_of(u.tensor());
         }}};
    const std::string text = wrong_case(cases, contract_of<Careful, Only<exchanges<>>>(), moves);
    if (!text.empty()) return text;
    const Values wanted = values_of(extended);
    if (cases[5].run(Contract{}) != wanted) return std::string("in place: other values");
    CHECK_THROWS_WITH_AS(exchange_together(std::vector<DynamicHaloTensor>{}),
                         doctest::Contains("takes 1 to 8 tensors and is given 0"), UsageError);
    return std::string();
  });
}

TEST_CASE("what is wrong with windows, gradients and halos is said with its numbers") {
  run_loopback(1, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Careful>(world, 1, 1);
    const DynamicTensor x = from_function<Field<_, _>>(mesh, {5, 7}, Ramp{}),
                        image = from_function<Field<_, _, _, _>>(mesh, {2, 8, 8, 2}, Ramp{}),
                        k = from_function<Field<_, _, _, _>>(mesh, {3, 3, 2, 3}, Ramp{});
    const std::string_view nhwc = "bhwi,hwio->bhwo";
    using doctest::Contains;
    CHECK_THROWS_WITH_AS(reduce_window<Sum>(x, {.size = {2}}),
                         Contains("a setting of the window has 1 entries and the tensor 2"),
                         ShapeError);
    CHECK_THROWS_WITH_AS(reduce_window<Sum>(x, {.size = {2, 2}, .stride = {1, 1, 1}}),
                         Contains("a setting of the window has 3 entries and the tensor 2"),
                         ShapeError);
    CHECK_THROWS_WITH_AS(reduce_window<Sum>(x, {.size = {2, 2}, .stride = {1, 0}}),
                         Contains("in dimension 1 is 0; the least is 1"), ShapeError);
    CHECK_THROWS_WITH_AS(reduce_window<Sum>(x, {.size = {6, 2}}),
                         Contains("spans 6 positions and the padded tensor has 5; pad more, or use "
                                  "a smaller window (double 5x7"),
                         ShapeError);
    CHECK_THROWS_WITH_AS(reduce_window<Sum>(x, {.size = {2, 2}}, Sharding{{}}),
                         Contains("the spec of the result has another number of entries"),
                         ShapeError);
    CHECK_THROWS_WITH_AS(select_and_scatter<Max>(x, x, {.size = {2, 2}}),
                         Contains("has extents 5x7, and 4x6 are asked for"), ShapeError);
    CHECK_THROWS_WITH_AS(reduce_window_gradient<Sum>(x, x, {.size = {2, 2}}),
                         Contains("the gradient of the result is 5x7 and the result 4x6"),
                         ShapeError);
    CHECK_THROWS_WITH_AS(
        convolve_input_gradient(nhwc, image, k, {2, 8, 8}),
        Contains("3 extents (2x8x8) are given for the input, which has 4 dimensions"), ShapeError);
    CHECK_THROWS_WITH_AS(convolve_kernel_gradient(nhwc, image, image, {3, 3, 2, 2}),
                         Contains("the gradient of the result is 2x8x8x2 and the result 2x6x6x2"),
                         ShapeError);
    CHECK_THROWS_WITH_AS(convolve(nhwc, image, k, {.stride = {1}}),
                         Contains("\"bhwi,hwio->bhwo\": a setting has 1 entries and there are 2"),
                         ShapeError);
    CHECK_THROWS_WITH_AS(convolve("bhwi->bhwo", image, k), Contains("another number of operands"),
                         ShardingError);
    CHECK_THROWS_WITH_AS(convolve("", image, k), Contains("the equation cannot be read"),
                         ShardingError);
    CHECK_THROWS_WITH_AS(convolve_input_gradient("bhwi->bhwo", image, k, image.extents()),
                         Contains("another number of operands"), ShardingError);
    const DynamicTensor empty;
    const auto is_empty = Contains("an empty tensor is used");
    CHECK_THROWS_WITH_AS(convolve(nhwc, empty, k), is_empty, UsageError);
    CHECK_THROWS_WITH_AS(convolve_kernel_gradient(nhwc, image, empty, k.extents()), is_empty,
                         UsageError);
    CHECK_THROWS_WITH_AS(reduce_window<Sum>(empty, {.size = {2, 2}}), is_empty, UsageError);
    CHECK_THROWS_WITH_AS(reduce_window_gradient<Sum>(x, empty, {.size = {2, 2}}), is_empty,
                         UsageError);
    CHECK_THROWS_WITH_AS(halo_exchange(empty, Halo{}), is_empty, UsageError);
    CHECK_THROWS_WITH_AS(halo_exchange(x, Halo{{}}), Contains("widths for 1 dimensions"),
                         ShapeError);
    CHECK_THROWS_WITH_AS(
        make_halo(mesh, Extents{5, 7}, Sharding{{}, {}}, Halo{{-1, 1, Boundary::none}, {}}, 0.0),
        Contains("the halo of dimension 0 is -1 low and 1 high; widths are 0 or more; to leave "
                 "elements out, use slice (double 5x7"),
        ShapeError);
  });
}
