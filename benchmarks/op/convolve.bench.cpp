// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 2
// A 3 x 3 convolution, N = 4, C = 32, H = W = 256, K = 32, single precision, split by rows. Tessera
// runs beside the same by hand with MPI and oneDNN, and beside one process that
// convolves the whole image with as many threads, all in the same run and in turns. The figures to
// read are the ratios printed at the end (medians).
#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/mpi_benchmark.hpp"
#if TESSERA_HAVE_DNNL
#include "support/convolution_by_hand.hpp"
#endif

namespace {
using namespace tessera;
namespace grid {
struct rows : Axis<> {};
}  // namespace grid
using Grid = Mesh<grid::rows>;
template <class... D> using Tensor = ShardedTensor<float, Grid, P<D...>>;
constexpr Index n = 4, c = 32, h = 256, w = 256, k = 32;

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}
}  // namespace

int main(int argc, char** argv) {
  Environment env(argc, argv);
  tessera_bench::start(argc, argv);
  const int rank = env.world()->process(), processes = env.world()->size();
  const auto mesh = make_mesh<Grid>(env.world(), processes);
  const auto x = random_normal<Tensor<_, _, grid::rows, _>>(mesh, {n, c, h, w}, 1);
  const auto kernel = random_normal<Tensor<_, _, _, _>>(mesh, {k, c, 3, 3}, 2);
  const Convolution settings{.low = {1, 1}, .high = {1, 1}};
  const auto tessera_form = [&] { return convolve<nchw>(x, kernel, settings); };
#if TESSERA_HAVE_DNNL
  tessera_bench::HandwrittenConvolution hand(rank, processes, n, c, h, w, k);
  const auto y = tessera_form();
  hand.run(x.data(), kernel.data());
  const double most = tessera_bench::most_apart(y.data(), hand.result(), y.local_size());
  if (most > 1e-3) {
    std::fprintf(stderr, "convolve: the two forms differ by %g\n", most);
    return 1;
  }
  // The whole image on one process, which has all threads while the others sleep; oneDNN compiles
  // for as many as there are.
  const int threads = omp_get_max_threads();
  omp_set_num_threads(processes);
  tessera_bench::HandwrittenConvolution alone(0, 1, n, c, h, w, k);
  omp_set_num_threads(threads);
  const HostTensor<float> whole = to_host(x), taps = to_host(kernel);
  cpu_set_t mine, all;
  CPU_ZERO(&all);
  for (int i = 0; i < processes; ++i) CPU_SET(i, &all);
  sched_getaffinity(0, sizeof mine, &mine);
  const auto by_one = [&] {
    if (rank == 0) alone.run(whole.values.data(), taps.values.data());
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (int done = 0; !done;) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (!done) usleep(100);
    }
  };
#endif
  benchmark::RegisterBenchmark("convolve/3x3/tessera",
                               tessera_bench::timed([&] { (void)tessera_form(); }))
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
#if TESSERA_HAVE_DNNL
  benchmark::RegisterBenchmark("convolve/3x3/by hand",
                               tessera_bench::timed([&] { hand.run(x.data(), kernel.data()); }))
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
#endif
#if TESSERA_HAVE_DNNL
  const auto clock = [](auto&& body) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    body();
    double seconds = MPI_Wtime() - start;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
  };
  std::vector<double> ours, theirs, single;
  const int rounds = tessera_bench::seconds_in_turns() >= 0 ? 3 : 41;
  for (int i = 0; i < rounds; ++i) {
    ours.push_back(clock([&] { (void)tessera_form(); }));
    theirs.push_back(clock([&] { hand.run(x.data(), kernel.data()); }));
  }
  if (rank == 0) {
    sched_setaffinity(0, sizeof all, &all);
    omp_set_num_threads(processes);
  }
  for (int i = 0; i < rounds + 1; ++i) single.push_back(clock(by_one));
  const double a = median(ours), b = median(theirs), s = median(single);
  tessera_bench::note(
      "convolve in turns/3x3",
      {{"tessera", a}, {"MPI and oneDNN by hand", b}, {"oneDNN on one process, all threads", s}});
  if (rank == 0) {
    sched_setaffinity(0, sizeof mine, &mine);
    omp_set_num_threads(threads);
    std::printf(
        "convolve 3x3 on %d processes: tessera %.2f ms, by hand %.2f ms, ratio %.3f; one process "
        "with %d threads %.2f ms, efficiency %.3f; "
        "%.1f GFLOP/s a process\n",
        processes, a * 1e3, b * 1e3, a / b, processes, s * 1e3, s / a,
        2.0 * double(n * k * h * w * c * 9) / processes / a * 1e-9);
  }
#endif
  return tessera_bench::finish();
}
