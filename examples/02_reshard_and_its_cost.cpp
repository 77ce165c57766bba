// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 4
//
// Lesson 2: reshard changes how a tensor is split and nothing else. You will see which collective
// each change takes, that a plan knows its bytes beforehand (even at compile time), and that the
// run keeps to it.
#include <tessera/tessera.hpp>

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
template <class... Dims> using Tensor = ShardedTensor<float, Grid, P<Dims...>>;

// A plan is a value of a constexpr function. 1000 x 600 floats, split 2 x 2: the other half of a
// row of blocks arrives.
constexpr Plan gathered = plan<P<data, _>>(like<Tensor<data, model>>(1000, 600), sizes<Grid>(2, 2));
static_assert(gathered.count(all_gather) == 1 && gathered.payload_bytes() == 500 * 300 * 4);
// Taking a part of what one already has is free.
static_assert(
    plan<P<data, model>>(like<Tensor<_, _>>(1000, 600), sizes<Grid>(64, 64)).payload_bytes() == 0);

/// Reshards x to spec S, prints what process 1 does for it, and compares the plan with what was
/// counted.
template <class S, class X>
void show(const char* change, const ProcessMesh<Grid>& mesh, const X& x) {
  const Like<X> alike{x.extents()};
  if (mesh.process() == 0)
    fmt::print("{}: {}\n", change, with_names<Grid>(plan<S>(alike, mesh.sizes(), 1)));
  mesh.ledger().reset();
  const auto y = reshard<S>(x);
  const Index counted = mesh.ledger().payload_bytes();
  if (counted != plan<S>(alike, mesh.sizes(), mesh.process()).own_payload_bytes())
    throw Error("the plan and the ledger disagree");
  if (to_host(y) != to_host(x)) throw Error("reshard changed the numbers");
}

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment& env) {
    const auto mesh = make_mesh<Grid>(env, 2, 2);
    const auto x = random_normal<Tensor<data, model>>(mesh, {1000, 600}, 1);

    show<P<data, _>>("gather along a dimension", mesh, x);
    show<P<_, data>>("gather one, move the other", mesh, x);
    show<P<model, data>>("swap the axes", mesh, x);
    show<P<data, Axes<model>>>("nothing to do", mesh, x);
    show<P<data, model>>("slice", mesh, replicate(x));
    show<P<Axes<data, model>, _>>("all rows, finer", mesh, x);

    // A sum left open over an axis is part of the type too; finishing it is a reshard.
    const auto open = einsum<"ik,kj->ij", P<data, _, Unreduced<Sum, model>>>(
        x, transpose<"ij->ji">(split<1, model>(x)));
    show<P<data, model>>("finish an open sum, scattered", mesh, open);
    show<P<data, _>>("finish an open sum, everywhere", mesh, open);
  });
}
