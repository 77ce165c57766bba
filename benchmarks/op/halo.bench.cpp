// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 2
// Halo exchange of blocks of 16 to 256 doubles cubed, widths 1 to 3, split along each dimension in
// turn, periodic (so that two faces go each way): a halo tensor beside the same by hand with
// MPI_Isend and MPI_Irecv (faces packed by hand; or of subarray types; the better counts) and with
// MPI_Neighbor_alltoallw of subarray types; in turns. Then a step of a 7-point stencil on 128 cubed
// beside a plain program of Kokkos and MPI with the same loop.
#include <algorithm>
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
struct row : Axis<> {};
}  // namespace grid
using grid::row;
using Line = Mesh<row>;
template <class... D> using Field = ShardedTensor<double, Line, P<D...>>;

/// An extended block and its exchange with the other process, by hand.
class ByHand {
 public:
  ByHand(int n, int width, int dimension, int rank)
      : n_(n), width_(width), dimension_(dimension), peer_(1 - rank) {
    for (int d = 0; d < 3; ++d) shape_[d] = n + (d == dimension ? 2 * width : 0);
    block_.resize(static_cast<std::size_t>(shape_[0]) * shape_[1] * shape_[2]);
    for (int d = 0; d < 3; ++d) face_[d] = d == dimension ? width : n;
    const int at[4] = {width, n, 0, n + width};  // what goes low and high, what comes low and high
    for (int k = 0; k < 4; ++k) {
      int starts[3] = {0, 0, 0};
      starts[dimension] = at[k];
      starts_[k] = at[k];
      MPI_Type_create_subarray(3, shape_, face_, starts, MPI_ORDER_C, MPI_DOUBLE, &types_[k]);
      MPI_Type_commit(&types_[k]);
    }
    const int other[2] = {peer_, peer_};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, other, MPI_UNWEIGHTED, 2, other,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph_);
    packed_.resize(4 * static_cast<std::size_t>(face_[0]) * face_[1] * face_[2]);
  }
  ByHand(const ByHand&) = delete;
  ByHand& operator=(const ByHand&) = delete;
  ~ByHand() {
    for (MPI_Datatype& type : types_) MPI_Type_free(&type);
    MPI_Comm_free(&graph_);
  }
  double* data() { return block_.data(); }
  const std::vector<double>& block() const { return block_; }

  /// What goes low arrives high.
  void packed() {
    const std::size_t face = packed_.size() / 4;
    MPI_Request requests[4];
    for (int k = 0; k < 2; ++k)
      MPI_Irecv(&packed_[(2 + static_cast<std::size_t>(k)) * face], static_cast<int>(face),
                MPI_DOUBLE, peer_, 1 - k, MPI_COMM_WORLD, &requests[k]);
    for (int k = 0; k < 2; ++k) {
      copy_face(starts_[k], &packed_[static_cast<std::size_t>(k) * face], true);
      MPI_Isend(&packed_[static_cast<std::size_t>(k) * face], static_cast<int>(face), MPI_DOUBLE,
                peer_, k, MPI_COMM_WORLD, &requests[2 + k]);
    }
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < 2; ++k)
      copy_face(starts_[2 + k], &packed_[(2 + static_cast<std::size_t>(k)) * face], false);
  }
  void typed() {
    MPI_Request requests[4];
    for (int k = 0; k < 2; ++k)
      MPI_Irecv(data(), 1, types_[2 + k], peer_, 1 - k, MPI_COMM_WORLD, &requests[k]);
    for (int k = 0; k < 2; ++k)
      MPI_Isend(data(), 1, types_[k], peer_, k, MPI_COMM_WORLD, &requests[2 + k]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  }
  void neighbours() {
    const int ones[2] = {1, 1};
    const MPI_Aint zero[2] = {0, 0};
    const MPI_Datatype receive[2] = {types_[3], types_[2]};
    MPI_Neighbor_alltoallw(data(), ones, zero, types_, data(), ones, zero, receive, graph_);
  }

  /// Writes the faces of a block laid out as this one.
  void write_faces(double* block) const {
    for (int k = 0; k < 2; ++k) {
      int at[3] = {0, 0, 0};
      at[dimension_] = starts_[k];
      for (int i = at[0]; i < at[0] + face_[0]; ++i)
        for (int j = at[1]; j < at[1] + face_[1]; ++j)
          for (int l = at[2]; l < at[2] + face_[2]; ++l)
            block[(static_cast<std::size_t>(i) * shape_[1] + j) * shape_[2] + l] += 1;
    }
  }

 private:
  void copy_face(int start, double* packed, bool out) {
    int at[3] = {0, 0, 0};
    at[dimension_] = start;
    const auto bytes = static_cast<std::size_t>(face_[2]) * sizeof(double);
    for (int i = 0; i < face_[0]; ++i)
      for (int j = 0; j < face_[1]; ++j, packed += face_[2]) {
        double* here = data() +
                       ((static_cast<std::size_t>(at[0]) + i) * shape_[1] + at[1] + j) * shape_[2] +
                       at[2];
        if (dimension_ < 2)
          std::memcpy(out ? packed : here, out ? here : packed, bytes);
        else
          for (int k = 0; k < face_[2]; ++k) (out ? packed : here)[k] = (out ? here : packed)[k];
      }
  }

  int n_, width_, dimension_, peer_;
  int shape_[3], face_[3], starts_[4];
  std::vector<double> block_, packed_;
  MPI_Datatype types_[4];
  MPI_Comm graph_ = MPI_COMM_NULL;
};

struct Number {
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i) const {
    return static_cast<double>(i.linear() % 1009);
  }
};

template <int D, class... S> void compare(const ProcessMesh<Line>& mesh, int n, int width) {
  const std::string row = "halo/" + std::to_string(n) + "^3, width " + std::to_string(width) +
                          " along " + std::to_string(D);
  if (!tessera_bench::wanted(row)) return;
  Extents extents{n, n, n};
  extents[D] *= 2;
  auto u = make_halo<Field<S...>, D>(mesh, extents, width, width, Boundary::periodic);
  u.assign(from_function<Field<S...>>(mesh, extents, Number{}));
  // A block for each way: each finds its own as cold as the others find theirs.
  ByHand hand(n, width, D, mesh.process()), typed(n, width, D, mesh.process()),
      wide(n, width, D, mesh.process());
  const auto view = u.view();
  for (ByHand* each : {&hand, &typed, &wide})
    std::memcpy(each->data(), view.data(), view.size() * sizeof(double));
  u.exchange();
  hand.packed();
  wide.neighbours();
  const bool right = hand.block() == wide.block() &&
                     std::memcmp(hand.data(), view.data(), view.size() * sizeof(double)) == 0;
  for (int i = 0; i < 40; ++i) u.exchange();
  // As in a program, each process has written its faces since it last exchanged them.
  const auto write = [&](int) {
    for (double* block : {u.view().data(), hand.data(), typed.data(), wide.data()})
      hand.write_faces(block);
  };
  const std::vector<double> t =
      tessera_bench::in_turns({[&] { u.exchange(); }, [&] { hand.packed(); },
                               [&] { typed.typed(); }, [&] { wide.neighbours(); }},
                              {0.3, 11, 401}, write);
  const double sends = std::min(t[1], t[2]), best = std::min(sends, t[3]);
  tessera_bench::note(row,
                      {{"tessera", t[0]}, {"MPI_Isend", sends}, {"MPI_Neighbor_alltoallw", t[3]}});
  if (mesh.process() == 0)
    std::printf("%4d^3  %d  along %d  %9s %10.2f %10.2f %6.2f %10.2f %6.2f %10.2f%s\n", n, width, D,
                tessera_bench::size_text(2L * width * n * n * 8).c_str(), t[0] * 1e6, sends * 1e6,
                t[0] / sends, t[3] * 1e6, t[0] / t[3], t[0] / best,
                right ? "" : "  THE HALOS DIFFER");
}

/// One row of a 7-point stencil: what both programs compute.
struct Step {
  const double* in;
  double* out;
  int n1, n2, s0, s1;  // strides of the extended block
  void operator()(int row) const {
    const int i = row / n1, j = row % n1;
    const double* c = in + (i + 1) * static_cast<std::ptrdiff_t>(s0) + (j + 1) * s1 + 1;
    double* o = out + (c - in);
#pragma omp simd
    for (int k = 0; k < n2; ++k)
      o[k] =
          0.4 * c[k] + 0.1 * (c[k - 1] + c[k + 1] + c[k - s1] + c[k + s1] + c[k - s0] + c[k + s0]);
  }
};
void sweep(const double* in, double* out, int n) {
  const int side = n + 2;
  Kokkos::parallel_for("step", Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace>(0, n * n),
                       Step{in, out, n, n, side * side, side});
}

/// The step with Kokkos and MPI alone: split along dimension 0, whose faces lie in one piece;
/// periodic in all dimensions.
struct Plain {
  int n, rank;
  Kokkos::View<double***, Kokkos::LayoutRight, Kokkos::HostSpace> a, b;
  Plain(int side, int process)
      : n(side), rank(process), a("a", n + 2, n + 2, n + 2), b("b", n + 2, n + 2, n + 2) {}
  void wrap(int i) {
    const int e = n + 1;
    for (int j = 1; j <= n; ++j) a(i, j, 0) = a(i, j, n), a(i, j, e) = a(i, j, 1);
    for (int k = 0; k <= e; ++k) a(i, 0, k) = a(i, n, k), a(i, e, k) = a(i, 1, k);
  }
  void step() {
    for (int i = 1; i <= n; ++i) wrap(i);
    const int face = (n + 2) * (n + 2), peer = 1 - rank;
    MPI_Request requests[4];
    MPI_Irecv(&a(0, 0, 0), face, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&a(n + 1, 0, 0), face, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&a(1, 0, 0), face, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(&a(n, 0, 0), face, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    sweep(a.data(), b.data(), n);
    std::swap(a, b);
  }
};

void stencil(const ProcessMesh<Line>& mesh, int n) {
  const std::string row_name = "stencil/" + std::to_string(n) + "^3";
  if (!tessera_bench::wanted(row_name)) return;
  using Block = Field<row, _, _>;
  auto u = make_halo<Block, 0, 1, 2>(mesh, {2 * n, n, n}, 1, 1, Boundary::periodic);
  auto v = u.like();
  u.assign(from_function<Block>(mesh, {2 * n, n, n}, Number{}));
  Plain plain(n, mesh.process());
  std::memcpy(plain.a.data(), u.view().data(), u.view().size() * sizeof(double));
  const auto step = [&] {
    u.exchange();
    sweep(u.view().data(), v.view().data(), n);
    std::swap(u, v);
  };
  for (int i = 0; i < 40; ++i) {
    step();
    plain.step();
  }
  bool right = true;
  const auto mine = u.interior();
  for (int i = 0; i < n; ++i)
    right = right && mine(i, i / 2, n - 1) == plain.a(i + 1, i / 2 + 1, n);
  const std::vector<double> t =
      tessera_bench::in_turns({step, [&] { plain.step(); }}, {1.0, 11, 401});
  tessera_bench::note(row_name, {{"tessera", t[0]}, {"Kokkos and MPI by hand", t[1]}});
  if (mesh.process() == 0)
    std::printf(
        "7-point stencil, %d^3 a process: a step %.1f us, plain Kokkos and MPI %.1f us, ratio "
        "%.3f%s\n",
        n, t[0] * 1e6, t[1] * 1e6, t[0] / t[1], right ? "" : "  THE FIELDS DIFFER");
}
}  // namespace

int main(int argc, char** argv) {
  return run_main(argc, argv, [&](Environment& env) {
    tessera_bench::start(argc, argv);
    MeshOptions options;
    options.arena_bytes = Index{400} << 20;
    const auto mesh = make_mesh<Line>(env, sizes<Line>(env.world()->size()), options);
    if (mesh.process() == 0) {
      tessera_bench::print_context();
      std::printf("\n%38s %10s %10s %6s %10s %6s %10s\n", "faces", "tessera us", "sends us",
                  "ratio", "alltoallw", "ratio", "to best");
    }
    for (const int n : {16, 32, 64, 128, 256})
      for (const int width : {1, 2, 3}) {
        compare<0, row, _, _>(mesh, n, width);
        compare<1, _, row, _>(mesh, n, width);
        compare<2, _, _, row>(mesh, n, width);
      }
    for (const int n : {32, 128}) stencil(mesh, n);
    return tessera_bench::finish();
  });
}
