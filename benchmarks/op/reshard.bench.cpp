// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 2
// Reshards of a matrix of floats, 1 KiB to 64 MiB whole, beside the same by hand (rows packed with
// memcpy, one MPI call, rows unpacked; buffers made once) and beside a memcpy of as many bytes as a
// process makes of the result; in turns. `moved` is what a process receives from others, the rate
// is the bytes of its result over the time. Ragged: extents that do not divide.
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
template <class... D> using Matrix = ShardedTensor<float, Line, P<D...>>;

std::size_t unsign(Index n) { return static_cast<std::size_t>(n); }

/// Copies a box of rows x columns between two matrices.
void copy_rows(const float* from, Index from_width, float* to, Index to_width, Index rows,
               Index columns) {
  for (Index i = 0; i < rows; ++i)
    std::memcpy(to + i * to_width, from + i * from_width, unsign(columns) * sizeof(float));
}

/// The blocks of an extent, as everybody who cuts by hand has them: counts and starts.
struct Cut {
  std::vector<int> counts, starts;
  Cut(Index n, int parts, Index width) {
    for (int p = 0; p < parts; ++p) {
      counts.push_back(static_cast<int>(detail::block_size(n, parts, p) * width));
      starts.push_back(p == 0 ? 0 : starts.back() + counts[unsign(p) - 1]);
    }
  }
};

/// A matrix of rows x columns, by hand.
struct ByHand {
  int parts, own;
  Index rows, columns;
  std::vector<float> packed, received, result;

  ByHand(int p, int process, Index m, Index n)
      : parts(p),
        own(process),
        rows(m),
        columns(n),
        packed(unsign(m * n)),
        received(packed.size()),
        result(packed.size()) {}

  /// Rows are cut: they arrive in order.
  void gather_rows(const float* x) {
    const Cut cut(rows, parts, columns);
    if (rows % parts == 0)
      MPI_Allgather(x, cut.counts[0], MPI_FLOAT, result.data(), cut.counts[0], MPI_FLOAT,
                    MPI_COMM_WORLD);
    else
      MPI_Allgatherv(x, cut.counts[unsign(own)], MPI_FLOAT, result.data(), cut.counts.data(),
                     cut.starts.data(), MPI_FLOAT, MPI_COMM_WORLD);
  }
  /// Columns are cut: they are put beside each other.
  void gather_columns(const float* x) {
    const Cut cut(columns, parts, rows), wide(columns, parts, 1);
    if (columns % parts == 0)
      MPI_Allgather(x, cut.counts[0], MPI_FLOAT, received.data(), cut.counts[0], MPI_FLOAT,
                    MPI_COMM_WORLD);
    else
      MPI_Allgatherv(x, cut.counts[unsign(own)], MPI_FLOAT, received.data(), cut.counts.data(),
                     cut.starts.data(), MPI_FLOAT, MPI_COMM_WORLD);
    for (std::size_t p = 0; p < unsign(parts); ++p)
      copy_rows(&received[unsign(cut.starts[p])], wide.counts[p], &result[unsign(wide.starts[p])],
                columns, rows, wide.counts[p]);
  }
  /// The own columns of a whole matrix.
  void slice_columns(const float* x) {
    const Cut wide(columns, parts, 1);
    copy_rows(x + wide.starts[unsign(own)], columns, result.data(), wide.counts[unsign(own)], rows,
              wide.counts[unsign(own)]);
  }
  /// Rows are cut, and columns are to be.
  void turn(const float* x) {
    const Index own_rows = detail::block_size(rows, parts, own),
                own_columns = detail::block_size(columns, parts, own);
    const Cut wide(columns, parts, 1), send(columns, parts, own_rows),
        receive(rows, parts, own_columns);
    for (std::size_t p = 0; p < unsign(parts); ++p)
      copy_rows(x + wide.starts[p], columns, &packed[unsign(send.starts[p])], wide.counts[p],
                own_rows, wide.counts[p]);
    if (rows % parts == 0 && columns % parts == 0)
      MPI_Alltoall(packed.data(), send.counts[0], MPI_FLOAT, result.data(), send.counts[0],
                   MPI_FLOAT, MPI_COMM_WORLD);
    else
      MPI_Alltoallv(packed.data(), send.counts.data(), send.starts.data(), MPI_FLOAT, result.data(),
                    receive.counts.data(), receive.starts.data(), MPI_FLOAT, MPI_COMM_WORLD);
  }
};

struct Row {
  int process;
  std::string name;
  Index bytes;

  template <class To, class X>
  void operator()(const X& x, const std::function<void()>& by_hand) const {
    const std::string what = "reshard/" + name + " " + tessera_bench::size_text(bytes);
    if (!tessera_bench::wanted(what)) return;
    MeshCore& mesh = *x.core().mesh();
    const auto y = reshard<To>(x);
    const Index result = y.core().local_bytes(mesh, y.core().desc());
    mesh.ledger().reset();
    (void)reshard<To>(x);
    const Index moved = mesh.ledger().payload_bytes();
    static std::vector<char> from(1 << 26, 1), to(1 << 26, 1);
    const std::vector<double> t =
        tessera_bench::in_turns({[&] { (void)reshard<To>(x); }, by_hand,
                                 [&] { std::memcpy(to.data(), from.data(), unsign(result)); }},
                                {0.4, 7, 301});
    tessera_bench::note(what, {{"tessera", t[0]}, {"MPI by hand", t[1]}, {"roofline", t[2]}});
    if (process == 0)
      std::printf("%-32s %8s %8s %10.2f %6.2f %10.2f %6.2f %10.2f %6.2f\n", name.c_str(),
                  tessera_bench::size_text(bytes).c_str(), tessera_bench::size_text(moved).c_str(),
                  t[0] * 1e6, static_cast<double>(result) / t[0] * 1e-9, t[1] * 1e6, t[0] / t[1],
                  t[2] * 1e6, t[0] / t[2]);
  }
};
}  // namespace

int main(int argc, char** argv) {
  return run_main(argc, argv, [&](Environment& env) {
    tessera_bench::start(argc, argv);
    const int p = env.world()->size();
    const auto mesh = make_mesh<Line>(env, p);
    if (mesh.process() == 0) {
      tessera_bench::print_context();
      std::printf("\n%-32s %8s %8s %10s %6s %10s %6s %10s %6s\n", "", "matrix", "moved", "tessera",
                  "GB/s", "by hand", "ratio", "memcpy", "ratio");
    }
    for (const Index side : {16, 64, 256, 1024, 4096})
      for (const bool ragged : {false, true}) {
        const Index m = ragged ? side - 1 : side, n = ragged ? side + 1 : side;
        const Index bytes = side * side * 4;
        ByHand hand(p, mesh.process(), m, n);
        const auto rows = random_normal<Matrix<data, _>>(mesh, {m, n}, 1);
        const auto columns = random_normal<Matrix<_, data>>(mesh, {m, n}, 1);
        const auto whole = random_normal<Matrix<_, _>>(mesh, {m, n}, 1);
        const auto row = [&](const char* name) {
          return Row{mesh.process(), std::string(name) + (ragged ? ", ragged" : ""), bytes};
        };
        row("all-gather of rows").operator()<P<_, _>>(rows, [&] { hand.gather_rows(rows.data()); });
        row("all-gather of columns").operator()<P<_, _>>(columns, [&] {
          hand.gather_columns(columns.data());
        });
        row("all-to-all, rows to columns").operator()<P<_, data>>(rows, [&] {
          hand.turn(rows.data());
        });
        row("slice of columns").operator()<P<_, data>>(whole, [&] {
          hand.slice_columns(whole.data());
        });
      }
    return tessera_bench::finish();
  });
}
