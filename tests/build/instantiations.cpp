// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A typed program on a mesh of PROCESSES processes, compiled twice by
// cmake/checks/flat_instantiations.cmake: what is instantiated does not depend on how many they
// are.
#include <tessera/run/plan_of.hpp>

namespace {
using namespace tessera;
namespace grid {
struct expert : Axis<PROCESSES> {};
}  // namespace grid
using grid::expert;
using Grid = Mesh<expert>;
template <class... Dims> using Tensor = ShardedTensor<float, Grid, P<Dims...>>;
constexpr auto on_all = sizes<Grid>(PROCESSES);
constexpr Index d = PROCESSES;

constexpr auto dispatch =
    plan<"gsec,gsm->egcm", P<expert, _, _, _>>(like<Tensor<expert, _, _, _>>(d, 4096, d, 8192 / d),
                                               like<Tensor<expert, _, _>>(d, 4096, 32), on_all);
static_assert(dispatch.count(all_to_all) == 1 && dispatch.messages() == d - 1);
}  // namespace

/// At run time too, for any mesh of that type.
tessera::Plan feed_forward(tessera::Index capacity) {
  return plan<"egcm,emh->egch">(like<Tensor<expert, _, _, _>>(d, d, capacity, 32),
                                like<Tensor<expert, _, _>>(d, 32, 48), on_all);
}
tessera::Index messages() { return dispatch.messages(); }
