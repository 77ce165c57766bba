// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A decoder under MPI, on as many processes as there are: split as whole, and documents
// that share rows as alone.
#include "nn/decoder_case.hpp"
#include "support/enumerate.hpp"
#include "support/world.hpp"

TEST_CASE("a decoder under MPI: split as whole, and documents packed as alone") {
  using namespace nn_test;
  for (const MeshShape& shape : support::meshes_of(support::world()->size(), 2)) {
    const auto mesh = make_mesh<Grid>(support::world(), shape[0], shape[1]);
    const Numbers whole = decoder_numbers<Whole>(mesh);
    CHECK(worst(decoder_numbers<TensorParallel<data, model>>(mesh), whole) < 1e-10);
    CHECK(worst(decoder_numbers<TwoDimensional<data, model>>(mesh), whole) < 1e-10);
    const Values alone = packed_decoder_numbers<Whole>(mesh, own_rows(), false);
    const auto packed =
        packed_decoder_numbers<SequenceSplit<data, model>>(mesh, shared_rows(), true);
    CHECK(farthest_apart(packed, alone) < 1e-11);
  }
}
