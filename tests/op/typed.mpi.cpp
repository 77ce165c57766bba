// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: layers
// A layer written with types, between the processes of an MPI job: equal to plain loops, and to its
// dry plan.
#include <doctest/doctest.h>

#include <cmath>

#include <tessera/tessera.hpp>

#include "support/grid.hpp"
#include "support/larger.hpp"
#include "support/reference.hpp"

using namespace tessera;

namespace {
template <class... D> using Tensor = ShardedTensor<double, Grid, P<D...>>;

Tensor<data, _, model> layer(const Tensor<data, _, model>& x, const Tensor<data, model>& w_in,
                             const Tensor<model, data>& w_out) {
  const auto h = gelu(einsum<"bsm,mh->bsh">(x, w_in));
  return softmax<"bsm", 'm'>(einsum<"bsh,hm->bsm", P<data, _, model>>(h, w_out));
}

support::Whole<double> whole(const HostTensor<double>& x) {
  support::Whole<double> result(x.extents);
  result.values = x.values;
  return result;
}

void check_layer(const ProcessMesh<Grid>& mesh) {
  const auto x = random_normal<Tensor<data, _, model>>(mesh, {5, 2, 7}, 1);
  const auto w_in = random_normal<Tensor<data, model>>(mesh, {7, 11}, 2);
  const auto w_out = random_normal<Tensor<model, data>>(mesh, {11, 7}, 3);
  mesh.ledger().reset();
  mesh.arena().reset_peak();
  Recording recording(mesh);
  const auto y = layer(x, w_in, w_out);
  const Program ran = recording.take();
  CHECK(ran.own_payload_bytes() == mesh.ledger().payload_bytes());
  CHECK(ran.peak_bytes() == mesh.arena().peak());
  const Program dry =
      plan(layer)(like<Tensor<data, _, model>>(5, 2, 7), like<Tensor<data, model>>(7, 11),
                  like<Tensor<model, data>>(11, 7), mesh.sizes(), mesh.process());
  CHECK(explain(ran) == explain(dry));

  auto h = support::einsum(parse("bsm,mh->bsh"), whole(to_host(x)), whole(to_host(w_in)));
  for (double& value : h.values) value = 0.5 * value * (1 + std::erf(value / std::sqrt(2.0)));
  auto expected = support::einsum(parse("bsh,hm->bsm"), h, whole(to_host(w_out)));
  for (Index row = 0; row < 10; ++row) {
    double largest = expected[row * 7], sum = 0;
    for (Index m = 0; m < 7; ++m) largest = std::fmax(largest, expected[row * 7 + m]);
    for (Index m = 0; m < 7; ++m)
      sum += expected[row * 7 + m] = std::exp(expected[row * 7 + m] - largest);
    for (Index m = 0; m < 7; ++m) expected[row * 7 + m] /= sum;
  }
  const auto all = to_host(y);
  double worst = 0;
  for (std::size_t i = 0; i < all.values.size(); ++i)
    worst = support::larger(worst, std::fabs(all.values[i] - expected.values[i]));
  CHECK(worst < 1e-12);
  CHECK(to_host(reshard<P<_, Axes<model, data>, _>>(y)) == all);
  CHECK(to_host(layer(x, w_in, w_out)) == all);  // the same bits again
}

}  // namespace

TEST_CASE("a typed layer under MPI equals plain loops and its plan") {
  const std::shared_ptr<Transport> world = mpi_transport(MPI_COMM_WORLD);
  const int p = world->size();
  for (int d = 1; d <= p; ++d)
    if (p % d == 0) check_layer(make_mesh<Grid>(world, d, p / d));
}
