// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 2
// Collectives of one group, 8 B to 32 MiB, beside MPI's own call on private buffers, in turns. A
// size is what a process sends; in an all-gather, what it receives. Times are medians in
// microseconds, each followed by its ratio to MPI's: below 1 is faster.
//
//   arena    as operators make it: buffers in the mesh's arena, the default TESSERA_SHARED=auto
//   off      private buffers, TESSERA_SHARED=off: MPI's call and what Tessera puts around it
//   private  private buffers, TESSERA_SHARED=auto: what an adopted block pays
//   on       private buffers, TESSERA_SHARED=on: all that can be copied through shared memory is
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tessera/comm/environment.hpp>
#include <tessera/comm/mesh_core.hpp>
#include <tessera/kernel/use_element.hpp>

#include "support/mpi_benchmark.hpp"
#include "support/turns.hpp"

namespace {
using namespace tessera;

constexpr Collective kinds[] = {all_gather,           reduce_scatter,     all_reduce,
                                all_to_all,           collective_permute, Collective::exchange,
                                Collective::broadcast};
constexpr Index largest = Index{32} << 20;

/// The call of `count` elements as a plan would have it.
Call call_of(Collective kind, int own, int members, Index count) {
  Call call;
  call.kind = kind;
  call.group = AxisSet{0};
  call.own = own;
  call.members = members;
  call.bound = count;
  const Index block = count / members;
  std::vector<Piece> pieces;
  for (int i = 0; i < members; ++i) pieces.push_back({i, i * block, block});
  call.send = call.receive = pieces;
  call.even =
      kind != collective_permute && kind != Collective::exchange && kind != Collective::broadcast;
  if (kind == all_reduce) call.send = call.receive = {{own, 0, count}};
  if (kind == all_gather) call.send = {{own, 0, block}};
  if (kind == reduce_scatter) call.receive = {{own, 0, block}};
  if (kind == all_reduce || kind == reduce_scatter) call.reduction = Reduction::sum;
  if (kind == Collective::broadcast) {
    call.send = call.receive = {{0, 0, count}};
    (own == 0 ? call.receive : call.send).clear();
  }
  if (kind == collective_permute) {  // to the next
    call.send = {{(own + 1) % members, 0, count}};
    call.receive = {{(own + members - 1) % members, 0, count}};
  }
  if (kind == Collective::exchange) {  // everything to the others, in pieces of two lengths
    call.send.clear();
    call.receive.clear();
    const auto length = [&](int from, int to) {
      return count / (members - 1) - ((from + to) % 2 == 0 ? count / 8 : 0);
    };
    Index sent = 0, received = 0;
    for (int peer = 0; peer < members; ++peer) {
      if (peer == own) continue;
      call.send.push_back({peer, sent, length(own, peer)});
      call.receive.push_back({peer, received, length(peer, own)});
      sent += length(own, peer);
      received += length(peer, own);
    }
  }
  return call;
}

/// The call by hand.
struct Plain {
  Call call;
  std::vector<int> send_counts, send_shifts, receive_counts, receive_shifts;

  explicit Plain(const Call& of) : call(of) {
    const auto fill = [&](const std::vector<Piece>& pieces, auto& counts, auto& shifts) {
      counts.assign(static_cast<std::size_t>(call.members), 0);
      shifts = counts;
      for (const Piece& piece : pieces) {
        counts[static_cast<std::size_t>(piece.peer)] = static_cast<int>(piece.count);
        shifts[static_cast<std::size_t>(piece.peer)] = static_cast<int>(piece.offset);
      }
    };
    fill(call.send, send_counts, send_shifts);
    fill(call.receive, receive_counts, receive_shifts);
  }
  void operator()(const float* send, float* receive) const {
    const auto first = [](const std::vector<Piece>& pieces) {
      return pieces.empty() ? 0 : static_cast<int>(pieces.front().count);
    };
    const int block = first(call.send), result = first(call.receive);
    switch (call.kind) {
      case Collective::all_gather:
        MPI_Allgather(send, block, MPI_FLOAT, receive, block, MPI_FLOAT, MPI_COMM_WORLD);
        break;
      case Collective::all_to_all:
        MPI_Alltoall(send, block, MPI_FLOAT, receive, block, MPI_FLOAT, MPI_COMM_WORLD);
        break;
      case Collective::reduce_scatter:
        MPI_Reduce_scatter_block(send, receive, result, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
      case Collective::all_reduce:
        MPI_Allreduce(send, receive, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
      case Collective::collective_permute:
        MPI_Sendrecv(send, block, MPI_FLOAT, call.send.front().peer, 0, receive, result, MPI_FLOAT,
                     call.receive.front().peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        break;
      case Collective::exchange:
        MPI_Alltoallv(send, send_counts.data(), send_shifts.data(), MPI_FLOAT, receive,
                      receive_counts.data(), receive_shifts.data(), MPI_FLOAT, MPI_COMM_WORLD);
        break;
      case Collective::broadcast:
        MPI_Bcast(call.own == 0 ? const_cast<float*>(send) : receive, block + result, MPI_FLOAT, 0,
                  MPI_COMM_WORLD);
        break;
    }
  }
};

struct Setting {
  std::shared_ptr<MeshCore> automatic, off, on;
  std::vector<float> send, receive;
  detail::Block shared_send, shared_receive;

  explicit Setting(Environment& env)
      : automatic(make_mesh_core(env.world(), MeshShape{env.size()}, {"data"},
                                 {.arena_bytes = 3 * largest})),
        off(make_mesh_core(env.world(), MeshShape{env.size()}, {"data"},
                           {.shared = Shared::off, .arena_bytes = 0})),
        on(make_mesh_core(env.world(), MeshShape{env.size()}, {"data"},
                          {.shared = Shared::on, .arena_bytes = 0})),
        send(largest / 4, 1.5f),
        receive(largest / 4),
        shared_send(automatic->arena().allocate(largest)),
        shared_receive(automatic->arena().allocate(largest)) {
    std::fill_n(static_cast<float*>(shared_send.data), largest / 4, 1.5f);
    std::fill_n(static_cast<float*>(shared_receive.data), largest / 4, 1.5f);
  }
};
}  // namespace

int main(int argc, char** argv) {
  Environment env(argc, argv);
  detail::use_element<float>();
  Setting s(env);
  tessera_bench::start(argc, argv);
  auto* shared_send = static_cast<float*>(s.shared_send.data);
  auto* shared_receive = static_cast<float*>(s.shared_receive.data);
  if (env.process() == 0) {
    tessera_bench::print_context();
    std::printf("\n%-19s %8s %9s %9s %5s %9s %5s %9s %5s %9s %5s\n", "", "", "mpi", "arena", "",
                "off", "", "private", "", "on", "");
  }
  for (const Collective kind : kinds) {
    const std::string name(name_of(kind));
    for (Index bytes = 8; bytes <= largest; bytes *= 4) {
      const std::string row = "collectives/" + name + " " + tessera_bench::size_text(bytes);
      if (!tessera_bench::wanted(row)) continue;
      const Plain plain(call_of(kind, env.process(), env.size(), bytes / 4));
      const Call& call = plain.call;
      const auto run = [&](MeshCore& mesh, const float* send, float* receive) {
        mesh.collective(call, send, receive, "benchmark", Where::here());
      };
      Index sent = 0, received = 0;
      for (const Piece& piece : call.send) sent += piece.count;
      for (const Piece& piece : call.receive) received += piece.count;
      const std::vector<double> t = tessera_bench::in_turns(
          {[&] { plain(s.send.data(), s.receive.data()); },
           [&] { run(*s.automatic, shared_send, shared_receive); },
           [&] { run(*s.off, s.send.data(), s.receive.data()); },
           [&] { run(*s.automatic, s.send.data(), s.receive.data()); },
           [&] { run(*s.on, s.send.data(), s.receive.data()); }},
          {}, [&](int round) {  // as in a program: what is sent has just been computed, and
                                // what is received goes where something was before
            std::fill_n(s.send.data(), sent, static_cast<float>(round));
            std::fill_n(shared_send, sent, static_cast<float>(round));
            std::fill_n(s.receive.data(), received, 0.0F);
            std::fill_n(shared_receive, received, 0.0F);
          });
      tessera_bench::note(row, {{"tessera", t[1]},
                                {"MPI", t[0]},
                                {"tessera, shared memory off", t[2]},
                                {"tessera, private", t[3]},
                                {"tessera, shared memory on", t[4]}});
      if (env.process() != 0) continue;
      std::printf("%-19s %8s %9.2f", name.c_str(), tessera_bench::size_text(bytes).c_str(),
                  t[0] * 1e6);
      for (std::size_t i = 1; i < t.size(); ++i)
        std::printf(" %9.2f %5.2f", t[i] * 1e6, t[i] / t[0]);
      std::printf("\n");
      std::fflush(stdout);
    }
  }
  return tessera_bench::finish();
}
