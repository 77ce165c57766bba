// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 4
//
// Lesson 7: Tessera in an application that is there already, which owns MPI, Kokkos, its Views and
// how they are cut. You will make a mesh of your communicator, lend it your memory without a copy,
// hand it a cut of your own, run your kernel on a tensor's block, and get results back into Views.
#include <cstdio>

#include <tessera/tessera.hpp>

using namespace tessera;

namespace grid {
struct rows : Axis<> {};
}  // namespace grid
using grid::rows;
using Line = Mesh<rows>;
template <class... Dims> using Tensor = ShardedTensor<double, Line, P<Dims...>>;
using Field = Kokkos::View<double**, Kokkos::LayoutRight>;

/// The application's own kernel: element (i, j) of the whole field is i + j.
struct Fill {
  LocalView<double, 2> field;
  Index first_row;
  KOKKOS_FUNCTION void operator()(Index i) const {
    for (std::size_t j = 0; j < field.extent(1); ++j)
      field(i, j) = static_cast<double>(first_row + i + static_cast<Index>(j));
  }
};

/// A copy that the host may read: where kernels run on the host, the View itself.
auto on_host(const Field& field) {
  return Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), field);
}

void demand(bool right, const char* what) {
  if (!right) throw Error(what);
}

void use_tessera(MPI_Comm comm, int process, int processes) {
  const auto mesh = make_mesh<Line>(comm, processes);  // over your processes, in your order
  const Index n = 1000, m = 48;

  // Rows cut into ceil(n / p), the last ones short or empty, are a tensor's own blocks: such a View
  // is adopted where it lies, and what is written through either is seen through both.
  auto x = zeros<Tensor<rows, _>>(mesh, n, m);
  const Box block = x.box();
  const Field mine("mine", block[0].size(), m);
  x = adopt<Tensor<rows, _>>(mesh, {n, m}, mine);
  Kokkos::parallel_for(Kokkos::RangePolicy<>(0, block[0].size()),
                       Fill{local_view(x), block[0].lo});  // a kernel of yours, on the block
  x *= 2.0;                                                // an operator of ours, in your View
  Kokkos::fence();
  demand(block.empty() || on_host(mine)(0, 1) == 2.0 * static_cast<double>(block[0].lo + 1),
         "no copy");

  // Any other cut is no tensor's block, and is copied: by one exchange of what has a new owner.
  // Here process p has 100 (p + 1) of the 1000 rows.
  const auto first = [](Index p) { return 50 * p * (p + 1); };
  const Box own{{{first(process), first(process + 1)}, {0, m}}};
  const Field uneven("uneven", own[0].size(), m);
  Kokkos::deep_copy(uneven, static_cast<double>(process));
  mesh.ledger().reset();
  const auto y = from_irregular<Tensor<rows, _>>(mesh, {n, m}, own, uneven);
  std::printf("process %d: its View adopted; of its other one %lld bytes sent\n", process,
              static_cast<long long>(mesh.ledger().payload_bytes()));

  // Whatever operators make of them comes back into your Views, in your cut.
  const auto z = x + y;
  to_irregular(z, own, uneven);
  Kokkos::fence();
  const auto read = on_host(uneven);
  for (Index i = own[0].lo; i < own[0].hi; ++i)
    demand(read(i - own[0].lo, 7) == 2.0 * static_cast<double>(i + 7) + process, "z is x + y");
  // In the tensor's own blocks z needs no exchange: block_mdspan(z) or local_view(z) is its memory.
  const auto at = block_mdspan(z);
  demand(at.extent(0) == block[0].size() && at.extent(1) == m, "a block has its own extents");
  const double energy = value(dot(x, x));  // the same on every process
  if (process == 0) std::printf("energy %.0f\n", energy);
  double wanted = 0;
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < m; ++j) wanted += 4.0 * static_cast<double>((i + j) * (i + j));
  demand(energy == wanted, "whole numbers are summed exactly");
}  // mesh and tensors go before Kokkos and MPI do

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Kokkos::initialize(argc, argv);
  int process = 0, processes = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  try {
    use_tessera(MPI_COMM_WORLD, process, processes);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  Kokkos::finalize();
  MPI_Finalize();
}
