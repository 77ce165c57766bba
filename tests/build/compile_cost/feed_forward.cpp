// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The layer of the README.
#include <tessera/tessera.hpp>

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
template <class... Dims> using Tensor = ShardedTensor<float, Grid, P<Dims...>>;

Tensor<data, _, model> feed_forward(const Tensor<data, _, model>& x,
                                    const Tensor<data, model>& w_in,
                                    const Tensor<model, data>& w_out) {
  auto h = gelu(einsum<"bsm,mh->bsh">(x, w_in));
  return einsum<"bsh,hm->bsm", P<data, _, model>>(h, w_out);
}
