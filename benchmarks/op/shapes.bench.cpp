// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 2
// Operators that move data across block borders, on a matrix of floats, 64 KiB to 64 MiB whole,
// split by rows: reshape (rows split and merged, also where the blocks do not divide), roll, shift,
// reverse, transpose, slice, pad, concatenate. Beside each is a memcpy of as many bytes as a
// process makes of the result, and a bare MPI_Sendrecv of as many as the process that sends the
// most sends, by the ledger. In turns; the rate is the bytes of the result over the time.
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/mpi_benchmark.hpp"
#include "support/turns.hpp"

namespace {
using namespace tessera;

namespace grid {
struct data : Axis<> {};
}  // namespace grid
using grid::data;
using Line = Mesh<data>;
template <class... D> using Tensor = ShardedTensor<float, Line, P<D...>>;

std::size_t unsign(Index n) { return static_cast<std::size_t>(n); }

Index side_of_all = 0;  // of the matrices that are measured now

/// Times `make`, which returns a tensor, beside its bytes.
template <class Make> void row(const char* name, const ProcessMesh<Line>& mesh, const Make& make) {
  const std::string what = "shapes/" + std::string(name) + ", " + std::to_string(side_of_all);
  if (!tessera_bench::wanted(what)) return;
  MeshCore& core = *mesh.core();
  const auto y = make();
  const Index result = y.core().local_bytes(core, y.core().desc());
  core.ledger().reset();
  (void)make();
  long moved = core.ledger().payload_bytes();
  MPI_Allreduce(MPI_IN_PLACE, &moved, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
  static std::vector<char> from(1 << 26, 1), to(1 << 26, 1);
  const int processes = mesh.processes(), own = mesh.process();
  const auto wire = [&] {
    if (moved > 0)
      MPI_Sendrecv(from.data(), static_cast<int>(moved), MPI_CHAR, (own + 1) % processes, 0,
                   to.data(), static_cast<int>(moved), MPI_CHAR, (own + processes - 1) % processes,
                   0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  };
  const std::vector<double> t = tessera_bench::in_turns(
      {[&] { (void)make(); }, [&] { std::memcpy(to.data(), from.data(), unsign(result)); }, wire},
      {0.4, 7, 301});
  tessera_bench::note(
      what, {{"tessera", t[0]}, {"memcpy", t[1]}},
      {{"sent, KiB", static_cast<double>(moved) / 1024}, {"sent by MPI_Sendrecv, us", t[2] * 1e6}});
  if (own == 0)
    std::printf("%-36s %9s %9s %10.2f %6.2f %10.2f %6.2f %10.2f\n", name,
                tessera_bench::size_text(result).c_str(), tessera_bench::size_text(moved).c_str(),
                t[0] * 1e6, static_cast<double>(result) / t[0] * 1e-9, t[1] * 1e6, t[0] / t[1],
                t[2] * 1e6);
}

void measure(const ProcessMesh<Line>& mesh, Index side) {
  side_of_all = side;
  const auto x = random_normal<Tensor<data, _>>(mesh, {side, side}, 1);
  const auto odd = random_normal<Tensor<data, _>>(mesh, {side - 1, side}, 1);
  const Index half = side / 2;
  if (mesh.process() == 0) std::printf("%ld x %ld\n", long(side), long(side));
  row("reshape, n m -> (n 2) m/2, in place", mesh, [&] {
    return reshape<P<data, _>>(x, {side * 2, half});
  });
  row("reshape, n m -> (n m), ragged rows", mesh,
      [&] { return reshape<P<data>>(odd, {(side - 1) * side}); });
  row("reshape, n m -> 4 (n/4) m, split within", mesh, [&] {
    return reshape<P<_, data, _>>(x, {4, side / 4, side});
  });
  row("roll by 1 of rows", mesh, [&] { return roll<0>(x, 1); });
  row("roll by half of the rows", mesh, [&] { return roll<0>(x, half); });
  row("roll by 1 of columns, not split", mesh, [&] { return roll<1>(x, 1); });
  row("shift by 1 of rows", mesh, [&] { return shift<0>(x, 1); });
  row("reverse of rows", mesh, [&] { return reverse<0>(x); });
  row("reverse of columns, not split", mesh, [&] { return reverse<1>(x); });
  row("transpose, the sharding goes along", mesh, [&] { return transpose<"ij->ji">(x); });
  row("transpose, rows stay split", mesh, [&] { return transpose<"ij->ji", P<data, _>>(x); });
  row("slice of rows 1 to the last", mesh, [&] { return slice(x, {1, 0}, {side - 1, side}); });
  row("pad of rows by 1, 1", mesh, [&] { return pad(x, {1, 0}, {1, 0}); });
  row("concatenate of two by rows", mesh, [&] { return concatenate<0>(x, odd); });
}
}  // namespace

int main(int argc, char** argv) {
  return run_main(argc, argv, [&](Environment& env) {
    tessera_bench::start(argc, argv);
    const auto mesh = make_mesh<Line>(env, env.world()->size());
    if (mesh.process() == 0) {
      tessera_bench::print_context();
      std::printf("\n%-36s %9s %9s %10s %6s %10s %6s %10s\n", "", "result", "moved", "tessera us",
                  "GB/s", "memcpy us", "ratio", "wire us");
    }
    for (const Index side : {128, 1024, 4096}) measure(mesh, side);
    return tessera_bench::finish();
  });
}
