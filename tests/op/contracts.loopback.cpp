// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: typed
// Contracts in calls: what runs keeps them, results do not change, and sizes that break one are
// answered on every process.
#include <doctest/doctest.h>

#include <mutex>
#include <numeric>

#include <tessera/tessera.hpp>

#include "op/texts_of.hpp"
#include "support/grid.hpp"

using namespace tessera;

namespace {
template <class... D> using Real = ShardedTensor<double, Grid, P<D...>>;
template <class... D> using Guarded = ShardedTensor<double, Strict<Grid>, P<D...>>;

namespace lines {
struct line : Axis<> {};
}  // namespace lines
using Line = Mesh<lines::line>;

struct Ramp {
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    double value = 1;
    for (int d = 0; d < i.size(); ++d) value = value * 3 + static_cast<double>(i[d] % 5);
    return value;
  }
};

/// Runs f on loopback meshes of several sizes and collects what it finds wrong.
template <class M, class F> void on_meshes(F f) {
  for (const MeshShape shape :
       {MeshShape{1, 1}, MeshShape{2, 2}, MeshShape{3, 2}, MeshShape{1, 4}, MeshShape{4, 1}}) {
    std::mutex mutex;
    std::string first;
    run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<M>(world, MeshSizes<M>{shape});
      const std::string text = f(mesh);
      const std::lock_guard lock(mutex);
      if (first.empty()) first = text;
    });
    CHECK_MESSAGE(first.empty(), to_string(shape, Grid::names()) << ": " << first);
  }
}
/// Returns the collectives of the calls that f makes, as a contract on the mesh.
template <class M, class F> Contract used(const ProcessMesh<M>& mesh, F f) {
  Recording recording(mesh);
  f();
  Contract seen = Contract::nothing();
  const Program program = recording.take();
  for (const ProgramEntry& entry : program.entries()) seen = seen.joined(entry.plan->needs);
  return seen;
}
template <class F> std::string message(F f) {
  try {
    f();
  } catch (const ContractError& error) {
    return error.what();
  }
  return "";
}
bool says(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("a call keeps its contract and computes the same") {
  on_meshes<Grid>([](const ProcessMesh<Grid>& mesh) -> std::string {
    const auto x = from_function<Real<data, model>>(mesh, {7, 6}, Ramp{});
    const auto w = from_function<Real<model, _>>(mesh, {6, 5}, Ramp{});
    const auto usual = to_host(einsum<"ik,kj->ij">(x, w));
    const auto check = [&](auto contract, const auto& run) {
      using C = decltype(contract);
      HostTensor<double> result;
      const Contract seen = used(mesh, [&] { result = to_host(run()); });
      return contract_of<Grid, C>().joined(contract_of<Grid, Only<gathers<>>>()).covers(seen) &&
             result == usual;
    };
    using Sum1 = Only<all_reduces<model>>;
    REQUIRE_THAT(check(Sum1{}, [&] { return einsum<"ik,kj->ij", Deduced, Sum1>(x, w); }));
    using Pieces = Only<reduce_scatters<model>, gathers<model>>;
    REQUIRE_THAT(check(Pieces{}, [&] { return einsum<"ik,kj->ij", Deduced, Pieces>(x, w); }));
    using Gathered = Only<gathers<model>>;
    REQUIRE_THAT(check(Gathered{}, [&] { return einsum<"ik,kj->ij", Deduced, Gathered>(x, w); }));
    using Moves = Only<exchanges<>>;
    REQUIRE_THAT(check(Moves{}, [&] { return einsum<"ik,kj->ij", Deduced, Moves>(x, w); }));
    REQUIRE_THAT(used(mesh, [&] {
                   (void)einsum<"ik,kj->ij", P<data, _, Unreduced<Sum, model>>, Only<>>(x, w);
                 }) == Contract::nothing());

    REQUIRE_THAT(to_host(reshard<P<model, data>, Only<exchanges<>>>(x)) == to_host(x));
    REQUIRE_THAT(to_host(reshard<P<model, data>, Only<gathers<>>>(x)) == to_host(x));
    REQUIRE_THAT(to_host(sum<"ij->i", Deduced, Only<gathers<model>, reduce_scatters<model>>>(x)) ==
                 to_host(sum<"ij->i">(x)));
    REQUIRE_THAT(to_host(map<Only<exchanges<>>>(fn::Add{}, x, reshard<P<model, data>>(x))) ==
                 to_host(x + x));
    REQUIRE_THAT(to_host(softmax<"ij", 'j', Deduced, Only<all_reduces<model>>>(x)) ==
                 to_host(softmax<"ij", 'j'>(x)));
    auto out = zeros<Real<data, _>>(mesh, 7, 5);
    einsum_into<"ik,kj->ij", Only<all_reduces<model>>>(out, x, w);
    REQUIRE_THAT(to_host(out) == usual);
    // The contract is part of what a plan is looked up by.
    REQUIRE_THAT((contract_of<Grid, Only<gathers<>>>().covers(
        used(mesh, [&] { (void)reshard<P<model, data>, Only<gathers<>>>(x); }))));
    return "";
  });
}

TEST_CASE(
    "a strict mesh: local work needs no contract, the rest has one, sizes that break it are an "
    "error on all processes") {
  on_meshes<Strict<Grid>>([](const ProcessMesh<Strict<Grid>>& mesh) -> std::string {
    const auto x = from_function<Guarded<data, model>>(mesh, {6, 8}, Ramp{});
    const auto w = from_function<Guarded<model, _>>(mesh, {8, 5}, Ramp{});
    const auto rows = from_function<Guarded<_, _>>(mesh, {6, 8}, Ramp{});
    REQUIRE_THAT(used(mesh, [&] { (void)gelu(x + rows * 2.0); }) == Contract::nothing());
    const auto y = einsum<"ik,kj->ij", Deduced, Only<all_reduces<model>>>(x, w);
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(y)>, Guarded<data, _>>);
    REQUIRE_THAT(to_host(y).values.size() == 30);

    // Names fit, but an extent of 1 that is split and stretches has to be gathered.
    const auto row = from_function<Guarded<data, model>>(mesh, {1, 8}, Ramp{});
    const std::string text = message([&] { (void)(x + row); });
    const bool splits = mesh.shape()[0] > 1;
    REQUIRE_THAT(splits == says(text,
                                "(it has no contract, and the mesh is strict), and with these "
                                "sizes needs Only<gathers<data>>"));
    REQUIRE_THAT(message([&] { (void)map<Only<gathers<data>>>(fn::Add{}, x, row); }).empty());
    // Dynamic tensors are caught when they run.
    const std::string late = message([&] { (void)reshard(DynamicTensor(x), Sharding{{}, {}}); });
    REQUIRE_THAT((mesh.processes() > 1) == says(late, "accepts Only<>"));
    REQUIRE_THAT(to_host(x) == to_host(rows));
    return "";
  });
}

TEST_CASE(
    "calls on dynamic tensors keep the contract they are given, and throw on all processes where "
    "none can") {
  on_meshes<Grid>([](const ProcessMesh<Grid>& mesh) -> std::string {
    const DynamicTensor x = from_function<Real<data, model>>(mesh, {7, 6}, Ramp{});
    const DynamicTensor w = from_function<Real<model, _>>(mesh, {6, 5}, Ramp{});
    const auto contract = [](auto only) { return contract_of<Grid, decltype(only)>(); };
    const Contract anything, nothing = Contract::nothing();
    const Contract gathers_all = contract(Only<gathers<>>{}),
                   sums = contract(Only<all_reduces<model>>{});
    const auto keeps = [&](const Contract& bound, const auto& run, const auto& usual) {
      DynamicTensor result;
      const bool kept = bound.covers(used(mesh, [&] { result = run(CallOptions(bound)); }));
      return kept && to_host<double>(result) == to_host<double>(usual());
    };
    const auto sum_of = [&](const CallOptions& call) { return reduce<Sum>("ij->i", x, call); };
    REQUIRE_THAT(keeps(
        sums, [&](const CallOptions& c) { return einsum("ik,kj->ij", x, w, c); },
        [&] { return einsum("ik,kj->ij", x, w); }));
    REQUIRE_THAT(keeps(
        sums,
        [&](const CallOptions& c) {
          return einsum("ik,kj->ij", x, w, {Sharding{{0}, {}}, c});
        },
        [&] { return einsum("ik,kj->ij", x, w); }));
    REQUIRE_THAT(keeps(
        gathers_all,
        [&](const CallOptions& c) {
          return reshard(x, Sharding{{1}, {0}}, c);
        },
        [&] { return x; }));
    REQUIRE_THAT(keeps(sums, sum_of, [&] { return reduce<Sum>("ij->i", x); }));
    REQUIRE_THAT(keeps(
        nothing, [&](const CallOptions& c) { return transpose("ij->ji", x, c); },
        [&] { return transpose("ij->ji", x); }));
    REQUIRE_THAT(keeps(
        gathers_all,
        [&](const CallOptions& c) { return cumulative<Sum>("ij", 'j', x, ScanOptions{}, c); },
        [&] { return cumulative<Sum>("ij", 'j', x); }));
    REQUIRE_THAT(keeps(
        gathers_all,
        [&](const CallOptions& c) {
          return async([&] { return reshard(x, Sharding{{}, {}}, c); }).wait();
        },
        [&] { return x; }));
    REQUIRE_THAT(keeps(
        sums,
        [&](const CallOptions& c) {
          return async([&] { return reduce<Sum>("ij->i", x, {Sharding{{0}}, c}); }).wait();
        },
        [&] { return reduce<Sum>("ij->i", x); }));
    REQUIRE_THAT(keeps(
        gathers_all,
        [&](const CallOptions& c) {
          return reshard_together({x, w}, {Sharding{{}, {}}, Sharding{{}, {}}}, c)[1];
        },
        [&] { return w; }));
    REQUIRE_THAT(keeps(
        gathers_all,
        [&](const CallOptions& c) {
          return map_dynamic<double>(*c.contract(), "ij,ij->ij", fn::Add{}, Sharding{{0}, {}}, x,
                                     x);
        },
        [&] {
          return map_dynamic<double>("ij,ij->ij", fn::Add{}, Sharding{{0}, {}}, x, x);
        }));
    REQUIRE_THAT(to_host<std::int64_t>(argmax("ij->i", x, sums)) ==
                 to_host<std::int64_t>(argmax("ij->i", x)));

    const bool columns = mesh.shape()[1] > 1, rows = mesh.shape()[0] > 1, both = rows || columns;
    const auto refused = [](const auto& run) {
      return says(message(run), "the call accepts Only<");
    };
    REQUIRE_THAT(columns == refused([&] { (void)einsum("ik,kj->ij", x, w, nothing); }));
    REQUIRE_THAT(columns == refused([&] {
                   (void)einsum("ik,kj,lj->il", {x, w, w},
                                {Sharding{{0}, {}}, contract(Only<gathers<data>>{})});
                 }));
    REQUIRE_THAT(columns == refused([&] { (void)sum_of(nothing); }));
    REQUIRE_THAT(both == refused([&] { (void)reshard(x, Sharding{{}, {}}, nothing); }));
    REQUIRE_THAT(columns ==
                 refused([&] { (void)cumulative<Sum>("ij", 'j', x, ScanOptions{}, nothing); }));
    REQUIRE_THAT(columns == refused([&] { (void)argmin("ij->i", x, nothing); }));
    REQUIRE_THAT(columns ==
                 refused([&] { (void)reduce<Deterministic<Sum>>("ij->i", x, nothing); }));
    REQUIRE_THAT(
        columns == refused([&] {
          (void)map_dynamic<double>(nothing, "ij,ij->ij", fn::Add{}, Sharding{{0}, {}}, x, x);
        }));
    REQUIRE_THAT(both == refused([&] {
                   (void)reshard_together({x, w}, {Sharding{{}, {}}, w.sharding()}, nothing);
                 }));
    const DynamicTensor y = zeros<Real<data, _>>(mesh, 7, 5), row = zeros<Real<data>>(mesh, 7),
                        turned = zeros<Real<model, data>>(mesh, 6, 7);
    REQUIRE_THAT(columns == refused([&] { einsum_into("ik,kj->ij", y, x, w, nothing); }));
    REQUIRE_THAT(columns == refused([&] { einsum_into("ik,kj->ij", y, x, w, 2.0, 1.0, nothing); }));
    REQUIRE_THAT(columns == refused([&] { reduce_into<Sum>("ij->i", row, x, nothing); }));
    einsum_into("ik,kj->ij", y, x, w, 2.0, 0.0, sums);
    einsum_into("ik,kj->ij", y, x, w, -1.0, 1.0, anything);
    REQUIRE_THAT(to_host<double>(y) == to_host<double>(einsum("ik,kj->ij", x, w)));
    reduce_into<Sum>("ij->i", row, x, sums);
    REQUIRE_THAT(to_host<double>(row) == to_host<double>(reduce<Sum>("ij->i", x)));
    transpose_into("ij->ji", turned, x, nothing);
    REQUIRE_THAT(to_host<double>(turned) == to_host<double>(transpose("ij->ji", x)));
    return "";
  });
}

TEST_CASE("several tensors together keep one contract; host and files need none on a strict mesh") {
  on_meshes<Strict<Grid>>([](const ProcessMesh<Strict<Grid>>& mesh) -> std::string {
    const auto x = from_function<Guarded<data, model>>(mesh, {6, 8}, Ramp{});
    const auto w = from_function<Guarded<model, _>>(mesh, {8, 5}, Ramp{});
    const auto seen = used(mesh, [&] {
      const auto [a, b] = reshard_together<Only<gathers<>>, P<_, _>, P<_, _>>(x, w);
      (void)a, (void)b;
    });
    REQUIRE_THAT((contract_of<Strict<Grid>, Only<gathers<>>>().covers(seen)));
    const auto open = einsum<"ik,kj->ij", P<data, _, Unreduced<Sum, model>>>(x, w);
    const auto [finished] = finish_together<Only<all_reduces<model>>>(open);
    REQUIRE_THAT(to_host(finished) ==
                 to_host(einsum<"ik,kj->ij", Deduced, Only<all_reduces<model>>>(x, w)));
    const HostTensor<double> all = to_root(x);
    REQUIRE_THAT(to_host(from_root<Guarded<_, data>>(mesh, {6, 8}, 0, all.values)) == to_host(x));
    return "";
  });
}

TEST_CASE(
    "takes, scatters and windows of dynamic tensors: a strict mesh wants a contract of them") {
  on_meshes<Strict<Grid>>([](const ProcessMesh<Strict<Grid>>& mesh) -> std::string {
    const auto typed = from_function<Guarded<data, model>>(mesh, {7, 6}, Ramp{});
    const DynamicTensor x = typed, updates = typed + typed;
    const DynamicTensor ids = iota<ShardedTensor<std::int32_t, Strict<Grid>, P<data>>>(mesh, {7});
    using Moves = Only<gathers<>, all_reduces<>, reduce_scatters<>, exchanges<>>;
    const Contract moves = contract_of<Strict<Grid>, Moves>();
    const bool rows = mesh.shape()[0] > 1;
    // Without a contract refused where rows are split; with one, what is asked for by `out` too.
    const auto held = [&](const auto& call, const DynamicTensor& usual, const Sharding& out) {
      const std::string text = message([&] { (void)call(CallOptions(Where::here())); });
      if (rows != says(text, "(it has no contract, and the mesh is strict)")) return false;
      const DynamicTensor y = call(CallOptions(moves));
      return y.sharding() == out && to_host<double>(y) == to_host<double>(usual);
    };
    const Sharding whole{{}, {}}, columns{{}, {1}}, blocks{{0}, {1}};
    const OutOfRange clamp = OutOfRange::clamp, drop = OutOfRange::drop;
    const DynamicTensor taken = take("vm,b->bm", x, ids, clamp, {whole, moves});
    REQUIRE_THAT(to_host<double>(taken) == to_host<double>(x));  // each row at its own place
    REQUIRE_THAT(held([&](const CallOptions& c) { return take("vm,b->bm", x, ids, clamp, c); },
                      taken, blocks));
    REQUIRE_THAT(held([&](const CallOptions& c) { return take("vm,b->bm", x, {ids}, clamp, c); },
                      taken, blocks));
    REQUIRE_THAT(
        held([&](const CallOptions& c) { return take(x, ids, 0, clamp, c); }, taken, blocks));
    REQUIRE_THAT(held(
        [&](const CallOptions& c) {
          return take(x, ids, 0, clamp, {columns, c});
        },
        taken, columns));

    const DynamicTensor joined = scatter<Sum>("vm,b,bm->vm", x, ids, updates, drop, {whole, moves});
    REQUIRE_THAT(to_host<double>(joined) == to_host(typed + typed + typed));
    const DynamicTensor fresh = scatter<Sum>("b,bm->vm", {ids, updates}, {7}, drop, {whole, moves});
    REQUIRE_THAT(to_host<double>(fresh) == to_host<double>(updates));
    REQUIRE_THAT(held(
        [&](const CallOptions& c) { return scatter<Sum>("vm,b,bm->vm", x, ids, updates, drop, c); },
        joined, blocks));
    REQUIRE_THAT(held(
        [&](const CallOptions& c) {
          return scatter<Sum>("b,bm->vm", {ids, updates}, {7}, drop, c);
        },
        fresh, columns));

    const DynamicTensor hot = one_hot<double>("bv", 'v', ids, 7);  // local: it needs no contract
    REQUIRE_THAT(hot.sharding() == Sharding{{0}, {}});
    REQUIRE_THAT(held(
        [&](const CallOptions& c) {
          return one_hot<double>("bv", 'v', ids, 7, {whole, c});
        },
        hot, whole));

    const DynamicTensor window = dynamic_slice("vm", "v", x, {2}, {3}, {whole, moves});
    REQUIRE_THAT(to_host<double>(window) ==
                 to_host<double>(slice(x, {2, 0}, {5, 6}, {}, {whole, moves})));
    REQUIRE_THAT(
        held([&](const CallOptions& c) { return dynamic_slice("vm", "v", x, {2}, {3}, c); }, window,
             columns));
    REQUIRE_THAT(held(
        [&](const CallOptions& c) { return dynamic_update_slice("vm", "v", x, updates, {0}, c); },
        updates, blocks));
    const DynamicTensor y = zeros<Guarded<data, model>>(mesh, 7, 6);
    REQUIRE_THAT(held(
        [&](const CallOptions& c) {
          dynamic_update_slice_into("vm", "v", y, updates, {0}, c);
          return y;
        },
        updates, blocks));
    return "";
  });
}

TEST_CASE("dynamic calls that move tensors in, out, together and between meshes take a contract") {
  on_meshes<Strict<Grid>>([](const ProcessMesh<Strict<Grid>>& mesh) -> std::string {
    std::vector<int> everyone(static_cast<std::size_t>(mesh.processes()));
    std::iota(everyone.begin(), everyone.end(), 0);
    const auto row = make_mesh<Line>(mesh.core()->transport().among(everyone), mesh.processes());
    const DynamicTensor x = from_function<Guarded<data, model>>(mesh, {6, 8}, Ramp{});
    const Sharding everywhere{{}, {}}, rows{{0}, {}};
    const Contract nothing = Contract::nothing();
    const Contract moves = contract_of<Grid, Only<exchanges<data, model>>>(),
                   gathered = contract_of<Grid, Only<gathers<>>>();
    const bool several = mesh.processes() > 1;
    const auto refused = [&](const auto& run) {
      return says(message(run), "the call accepts Only<>");
    };
    const HostTensor<double> all = to_host<double>(x);
    const std::span<const double> values(all.values);
    Box own = whole({6, 8});
    own[0] = {6 * mesh.process() / mesh.processes(), 6 * (mesh.process() + 1) / mesh.processes()};
    const Kokkos::View<double*> view("box", static_cast<std::size_t>(own.size()));

    // The host needs none; where one is given, it is kept.
    const auto in = [&](const auto&... call) {
      return from_root<double>(mesh.core(), {6, 8}, rows, 0, values, call...);
    };
    REQUIRE_THAT(to_host<double>(in()) == all);
    REQUIRE_THAT(to_host<double>(in(CallOptions(moves))) == all);
    REQUIRE_THAT(several == refused([&] { (void)in(CallOptions(nothing)); }));
    REQUIRE_THAT(to_root<double>(x, 0, moves).values == to_root<double>(x).values);
    REQUIRE_THAT(several == refused([&] { (void)to_root<double>(x, 0, nothing); }));
    to_irregular(x, own, view);
    to_irregular(x, own, view, moves);
    REQUIRE_THAT(several == refused([&] { to_irregular(x, own, view, nothing); }));
    const auto cut = [&](const auto&... call) {
      return from_irregular(mesh.core(), {6, 8}, Sharding{{}, {0, 1}}, own, view, call...);
    };
    REQUIRE_THAT(to_host<double>(cut()) == all);
    REQUIRE_THAT(to_host<double>(cut(CallOptions(moves))) == all);
    REQUIRE_THAT(several == refused([&] { (void)cut(CallOptions(nothing)); }));

    // What goes between meshes, or together, does.
    const auto over = [&](const auto&... call) { return reshard(x, rows, row, call...); };
    REQUIRE_THAT(to_host<double>(over(CallOptions(moves))) == all);
    REQUIRE_THAT((mesh.shape()[1] > 1) == refused([&] { (void)over(); }));
    REQUIRE_THAT(several == refused([&] {
                   (void)reshard_together({x, x}, {everywhere, everywhere});
                 }));
    REQUIRE_THAT(to_host<double>(reshard_together({x, x}, {everywhere, everywhere}, gathered)[1]) ==
                 all);
    return "";
  });
}
