// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 2
// Collectives of one group, 8 B to 32 MiB: Tessera's with windows off and on, beside the plain MPI
// call, in turns. A size is what a process sends in an all-reduce, an all-to-all or a
// reduce-scatter, and what it receives in an all-gather. The figures to read are the ratios to MPI
// that the table at the end gives (medians of alternating calls; below 1 is faster). Buffers are
// private memory, but in the last column, where what is sent lies in the mesh's arena. Left to
// itself (TESSERA_WINDOWS=auto) a mesh gives exchanges of private buffers to MPI, since there the
// copy to shared memory costs what reading saves.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tessera/comm/environment.hpp>
#include <tessera/comm/mesh_core.hpp>
#include <tessera/kernel/use_element.hpp>

#include "support/mpi_benchmark.hpp"

namespace {
using namespace tessera;

constexpr Collective kinds[] = {all_gather, reduce_scatter, all_reduce, all_to_all};
constexpr Index largest = Index{32} << 20;

/// The call of `count` elements as a plan would have it.
Call even_call(Collective kind, int own, int members, Index count) {
  use_element<float>();
  Call call;
  call.kind = kind;
  call.even = true;
  call.own = own;
  call.members = members;
  const Index block = count / members;
  std::vector<Piece> pieces;
  for (int i = 0; i < members; ++i) pieces.push_back({i, i * block, block});
  call.send = call.receive = pieces;
  if (kind == all_reduce) call.send = call.receive = {{own, 0, count}};
  if (kind == all_gather) call.send = {{own, 0, block}};
  if (kind == reduce_scatter) call.receive = {{own, 0, block}};
  if (kind == all_reduce || kind == reduce_scatter) call.reduction = Reduction::sum;
  return call;
}

/// The same by hand.
void plain(const Call& call, const float* send, float* receive) {
  const int block = static_cast<int>(call.send.front().count);
  const int result = static_cast<int>(call.receive.front().count);
  if (call.kind == all_gather)
    MPI_Allgather(send, block, MPI_FLOAT, receive, block, MPI_FLOAT, MPI_COMM_WORLD);
  else if (call.kind == all_to_all)
    MPI_Alltoall(send, block, MPI_FLOAT, receive, block, MPI_FLOAT, MPI_COMM_WORLD);
  else if (call.kind == reduce_scatter)
    MPI_Reduce_scatter_block(send, receive, result, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  else
    MPI_Allreduce(send, receive, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

struct Setting {
  std::shared_ptr<MeshCore> off, on;
  std::vector<float> send, receive;
  Block shared;

  explicit Setting(Environment& env)
      : off(make_mesh_core(env.world(), MeshShape{env.size()}, {"data"},
                           {.windows = Windows::off, .arena_bytes = 0})),
        on(make_mesh_core(env.world(), MeshShape{env.size()}, {"data"},
                          {.windows = Windows::on, .arena_bytes = 2 * largest})),
        send(largest / 4, 1.5f),
        receive(largest / 4),
        shared(on->arena().allocate(largest)) {
    std::fill_n(static_cast<float*>(shared.data), largest / 4, 1.5f);
  }
};

/// Returns the median time in seconds of each body, called in turns, there and back; of a round,
/// the slowest process's. `write` is called before each, outside the measurement: what is sent has
/// just been computed, as in a program.
std::vector<double> medians(const std::vector<std::function<void()>>& bodies, int rounds,
                            const std::function<void(int)>& write) {
  std::vector<std::vector<double>> times(bodies.size());
  for (int round = 0; round < rounds; ++round)
    for (std::size_t turn = 0; turn < bodies.size(); ++turn) {
      const std::size_t i = round % 2 == 0 ? turn : bodies.size() - 1 - turn;
      write(round);
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      bodies[i]();
      double seconds = MPI_Wtime() - start;
      MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      if (round > 1) times[i].push_back(seconds);
    }
  std::vector<double> result;
  for (auto& t : times) {
    std::nth_element(t.begin(), t.begin() + static_cast<std::ptrdiff_t>(t.size() / 2), t.end());
    result.push_back(t[t.size() / 2]);
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  Environment env(argc, argv);
  Setting s(env);
  Group& off = s.off->group(AxisSet{0});
  Group& on = s.on->group(AxisSet{0});
  auto* shared = static_cast<float*>(s.shared.data);

  for (const Collective kind : kinds) {
    const Call call = even_call(kind, env.rank(), env.size(), (Index{1} << 20) / 4);
    const auto add = [&](const char* name, auto body) {
      benchmark::RegisterBenchmark((std::string(name_of(kind)) + "/1 MiB/" + name).c_str(),
                                   tessera_bench::timed(body))
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
    };
    add("mpi", [call, &s] { plain(call, s.send.data(), s.receive.data()); });
    add("off", [call, &s, &off] { off.run(call, s.send.data(), s.receive.data()); });
    add("windows", [call, &s, &on] { on.run(call, s.send.data(), s.receive.data()); });
    add("windows in place", [call, &s, &on, shared] { on.run(call, shared, s.receive.data()); });
  }
  const int status = tessera_bench::run_benchmarks(argc, argv);

  const TransportSettings& settings = s.on->transport().settings();
  if (env.rank() == 0)
    std::printf(
        "\nwindows from %lld bytes, %lld bytes of staging a process; times in microseconds, and "
        "ratios to MPI\n%-14s %10s %10s %10s %7s %10s %7s %10s %7s\n",
        static_cast<long long>(settings.window_least),
        static_cast<long long>(settings.window_stage), "", "bytes", "mpi", "off", "ratio",
        "windows", "ratio", "in place", "ratio");
  for (const Collective kind : kinds)
    for (Index bytes = 8; bytes <= largest; bytes *= bytes < 8192 ? 32 : 2) {
      const Call call = even_call(kind, env.rank(), env.size(), bytes / 4);
      const std::vector<double> t =
          medians({[&] { plain(call, s.send.data(), s.receive.data()); },
                   [&] { off.run(call, s.send.data(), s.receive.data()); },
                   [&] { on.run(call, s.send.data(), s.receive.data()); },
                   [&] { on.run(call, shared, s.receive.data()); }},
                  bytes > (4 << 20)     ? 17
                  : bytes > (256 << 10) ? 61
                                        : 301,
                  [&](int round) {
                    const auto value = static_cast<float>(round);
                    const Index count = kind == all_gather ? call.send.front().count : bytes / 4;
                    std::fill_n(s.send.data(), count, value);
                    std::fill_n(shared, count, value);
                  });
      if (env.rank() == 0)
        std::printf("%-14s %10lld %10.1f %10.1f %7.2f %10.1f %7.2f %10.1f %7.2f\n",
                    std::string(name_of(kind)).c_str(), static_cast<long long>(bytes), t[0] * 1e6,
                    t[1] * 1e6, t[1] / t[0], t[2] * 1e6, t[2] / t[0], t[3] * 1e6, t[3] / t[0]);
    }
  return status;
}
