// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Plans alone: built without Kokkos and without MPI. README's own plan, checked while compiling,
/// and printed; install.cmake compares the text.
#include <cstdio>

#include <tessera/plan.hpp>
#include <tessera/version.hpp>

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
template <class... Dims> using Tensor = ShardedTensor<float, Grid, P<Dims...>>;

constexpr auto p = plan<"bsm,mh->bsh">(like<Tensor<data, _, model>>(8, 512, 5120),
                                       like<Tensor<data, model>>(5120, 20480), sizes<Grid>(2, 4));
static_assert(p.count(all_reduce) == 0 && p.payload_bytes(all_gather) <= 80 << 20);
constexpr auto moved = plan<P<_, data>>(like<Tensor<data, _>>(1000, 600), sizes<Grid>(2, 4));
static_assert(moved.count(all_to_all) == 1 && moved.payload_bytes() == 500 * 300 * 4);

int main() {
  std::fputs(to_string(p).c_str(), stdout);
  return version == Version{0, 1, 0} ? 0 : 1;
}
