// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contracts in calls: what runs keeps them, results do not change, and sizes that break one are answered on every process.
#include <doctest/doctest.h>

#include <mutex>

#include <tessera/tessera.hpp>

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
namespace {
using grid::data, grid::model;
using Grid = Mesh<data, model>;
template <class... D>
using Real = ShardedTensor<double, Grid, P<D...>>;
template <class... D>
using Guarded = ShardedTensor<double, Strict<Grid>, P<D...>>;

struct Ramp {
  template <class I>
  KOKKOS_FUNCTION double operator()(const I& i) const {
    double value = 1;
    for (int d = 0; d < i.size(); ++d) value = value * 3 + static_cast<double>(i[d] % 5);
    return value;
  }
};

/// Runs f on loopback meshes of several sizes and collects what it finds wrong.
template <class M, class F>
void on_meshes(F f) {
  for (const MeshShape shape : {MeshShape{1, 1}, MeshShape{2, 2}, MeshShape{3, 2}, MeshShape{1, 4}, MeshShape{4, 1}}) {
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
template <class M, class F>
Contract used(const ProcessMesh<M>& mesh, F f) {
  Recording recording(mesh);
  f();
  Contract seen = Contract::nothing();
  const Program program = recording.take();
  for (const ProgramEntry& entry : program.entries()) seen = seen.joined(entry.plan->needs);
  return seen;
}
template <class F>
std::string message(F f) {
  try {
    f();
  } catch (const ContractError& error) {
    return error.what();
  }
  return "";
}
bool says(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }
}  // namespace

#define REQUIRE_THAT(...) \
  if (!(__VA_ARGS__)) return std::string(#__VA_ARGS__)

TEST_CASE("a call keeps its contract and computes the same") {
  on_meshes<Grid>([](const ProcessMesh<Grid>& mesh) -> std::string {
    const auto x = from_function<Real<data, model>>(mesh, {7, 6}, Ramp{});
    const auto w = from_function<Real<model, _>>(mesh, {6, 5}, Ramp{});
    const auto usual = gather(einsum<"ik,kj->ij">(x, w));
    const auto check = [&](auto contract, const auto& run) {
      using C = decltype(contract);
      HostTensor<double> result;
      const Contract seen = used(mesh, [&] { result = gather(run()); });
      return contract_of<Grid, C>().joined(contract_of<Grid, Only<gathers<>>>()).covers(seen) && result == usual;
    };
    using Sum1 = Only<all_reduces<model>>;
    REQUIRE_THAT(check(Sum1{}, [&] { return einsum<"ik,kj->ij", Deduced, Sum1>(x, w); }));
    using Pieces = Only<reduce_scatters<model>, gathers<model>>;
    REQUIRE_THAT(check(Pieces{}, [&] { return einsum<"ik,kj->ij", Deduced, Pieces>(x, w); }));
    using Gathered = Only<gathers<model>>;
    REQUIRE_THAT(check(Gathered{}, [&] { return einsum<"ik,kj->ij", Deduced, Gathered>(x, w); }));
    using Moves = Only<exchanges<>>;
    REQUIRE_THAT(check(Moves{}, [&] { return einsum<"ik,kj->ij", Deduced, Moves>(x, w); }));
    REQUIRE_THAT(used(mesh, [&] { (void)einsum<"ik,kj->ij", P<data, _, Unreduced<Sum, model>>, Only<>>(x, w); }) == Contract::nothing());

    REQUIRE_THAT(gather(reshard<P<model, data>, Only<exchanges<>>>(x)) == gather(x));
    REQUIRE_THAT(gather(reshard<P<model, data>, Only<gathers<>>>(x)) == gather(x));
    REQUIRE_THAT(gather(sum<"ij->i", Deduced, Only<gathers<model>, reduce_scatters<model>>>(x)) == gather(sum<"ij->i">(x)));
    REQUIRE_THAT(gather(map<Only<exchanges<>>>(fn::Add{}, x, reshard<P<model, data>>(x))) == gather(x + x));
    REQUIRE_THAT(gather(softmax<"ij", 'j', Only<all_reduces<model>>>(x)) == gather(softmax<"ij", 'j'>(x)));
    auto out = zeros<Real<data, _>>(mesh, 7, 5);
    einsum_into<"ik,kj->ij", Only<all_reduces<model>>>(out, x, w);
    REQUIRE_THAT(gather(out) == usual);
    // The contract is part of what a plan is looked up by.
    REQUIRE_THAT((contract_of<Grid, Only<gathers<>>>().covers(used(mesh, [&] { (void)reshard<P<model, data>, Only<gathers<>>>(x); }))));
    return "";
  });
}

TEST_CASE("a strict mesh: local work needs no contract, the rest has one, sizes that break it are an error on all processes") {
  on_meshes<Strict<Grid>>([](const ProcessMesh<Strict<Grid>>& mesh) -> std::string {
    const auto x = from_function<Guarded<data, model>>(mesh, {6, 8}, Ramp{});
    const auto w = from_function<Guarded<model, _>>(mesh, {8, 5}, Ramp{});
    const auto rows = from_function<Guarded<_, _>>(mesh, {6, 8}, Ramp{});
    REQUIRE_THAT(used(mesh, [&] { (void)gelu(x + rows * 2.0); }) == Contract::nothing());
    const auto y = einsum<"ik,kj->ij", Deduced, Only<all_reduces<model>>>(x, w);
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(y)>, Guarded<data, _>>);
    REQUIRE_THAT(gather(y).values.size() == 30);

    // Names fit, but an extent of 1 that is split and stretches has to be gathered.
    const auto row = from_function<Guarded<data, model>>(mesh, {1, 8}, Ramp{});
    const std::string text = message([&] { (void)(x + row); });
    const bool splits = mesh.shape()[0] > 1;
    REQUIRE_THAT(splits == says(text, "(it has no contract, and the mesh is strict), and with these sizes needs Only<gathers<data>>"));
    REQUIRE_THAT(message([&] { (void)map<Only<gathers<data>>>(fn::Add{}, x, row); }).empty());
    // Dynamic tensors are caught when they run.
    const std::string late = message([&] { (void)reshard(DynamicTensor(x), Sharding{{}, {}}); });
    REQUIRE_THAT((mesh.processes() > 1) == says(late, "accepts Only<>"));
    REQUIRE_THAT(gather(x) == gather(rows));
    return "";
  });
}
