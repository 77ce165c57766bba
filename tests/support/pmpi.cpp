// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The functions of support/pmpi.hpp, and MPI's data calls in between: each is written down and
/// passed on to PMPI_.
#include "pmpi.hpp"

#include <mpi.h>

#include <chrono>
#include <map>
#include <thread>
#include <utility>

namespace support::pmpi {
namespace {

std::string planned;
int planned_code = MPI_SUCCESS;
bool recording = false;
std::vector<std::string> recorded;

tessera::DType type_of(MPI_Datatype type) {
  if (type == MPI_FLOAT) return tessera::DType::f32;
  if (type == MPI_DOUBLE) return tessera::DType::f64;
  if (type == MPI_UINT8_T || type == MPI_BYTE) return tessera::DType::u8;
  return type == MPI_INT32_T ? tessera::DType::i32 : tessera::DType::i64;
}
/// What the program has given MPI to combine elements with: the function, or its large-count form.
struct OwnOp {
  MPI_User_function* plain = nullptr;
#if MPI_VERSION >= 4
  MPI_User_function_c* large = nullptr;
#endif
};
std::map<MPI_Op, OwnOp> own_ops;

/// Returns what a function of the program's own does, by letting it combine 3 and 5.
template <class T> tessera::Reduction tried(const OwnOp& op, MPI_Datatype type) {
  T in = 3, out = 5;
  if (op.plain != nullptr) {
    int count = 1;
    op.plain(&in, &out, &count, &type);
  }
#if MPI_VERSION >= 4
  if (op.large != nullptr) {
    MPI_Count count = 1;
    op.large(&in, &out, &count, &type);
  }
#endif
  using tessera::Reduction;
  for (const auto& [result, reduction] : {std::pair{T(8), Reduction::sum},
                                          {T(15), Reduction::product},
                                          {T(5), Reduction::max},
                                          {T(3), Reduction::min}})
    if (out == result) return reduction;
  return Reduction::none;
}
tessera::Reduction reduction_of(MPI_Op op, MPI_Datatype type) {
  if (op == MPI_SUM) return tessera::Reduction::sum;
  if (op == MPI_MAX) return tessera::Reduction::max;
  if (op == MPI_MIN) return tessera::Reduction::min;
  const auto own = own_ops.find(op);
  if (own != own_ops.end() && type == MPI_FLOAT) return tried<float>(own->second, type);
  if (own != own_ops.end() && type == MPI_DOUBLE) return tried<double>(own->second, type);
  return tessera::Reduction::none;
}
/// Returns the ranks in MPI_COMM_WORLD of the members of `comm`, in its order.
std::vector<int> members_of(MPI_Comm comm) {
  MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  PMPI_Comm_group(comm, &group);
  int size = 0;
  PMPI_Group_size(group, &size);
  std::vector<int> ranks(static_cast<std::size_t>(size)), result(ranks.size());
  for (int i = 0; i < size; ++i) ranks[static_cast<std::size_t>(i)] = i;
  PMPI_Group_translate_ranks(group, size, ranks.data(), world, result.data());
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  return result;
}
template <class T> std::string listed(const T* values, MPI_Comm comm) {
  int size = 0;
  PMPI_Comm_size(comm, &size);
  return list(std::vector<T>(values, values + size));
}

template <class N> void all_gather(N count, MPI_Datatype type, N each, MPI_Comm comm) {
  if (!recording) return;
  recorded.push_back(head("all-gather", type_of(type), members_of(comm)) + std::to_string(count) +
                     " each" + (count == each ? "" : ", but receives " + std::to_string(each)));
}
template <class N, class D>
void all_gather_v(N count, MPI_Datatype type, const N* counts, const D* shifts, MPI_Comm comm) {
  if (!recording) return;
  recorded.push_back(head("all-gather-v", type_of(type), members_of(comm)) + std::to_string(count) +
                     " to " + listed(counts, comm) + " at " + listed(shifts, comm));
}
template <class N> void all_to_all(N count, MPI_Datatype type, N each, MPI_Comm comm) {
  if (!recording) return;
  recorded.push_back(head("all-to-all", type_of(type), members_of(comm)) + std::to_string(count) +
                     " each" + (count == each ? "" : ", but receives " + std::to_string(each)));
}
template <class N, class D>
void all_to_all_v(const N* sends, const D* send_shifts, MPI_Datatype type, const N* receives,
                  const D* receive_shifts, MPI_Comm comm) {
  if (!recording) return;
  recorded.push_back(head("all-to-all-v", type_of(type), members_of(comm)) + listed(sends, comm) +
                     " at " + listed(send_shifts, comm) + " to " + listed(receives, comm) + " at " +
                     listed(receive_shifts, comm));
}
template <class N>
void reduce_scatter(const N* counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  if (!recording) return;
  recorded.push_back(
      head(reducing("reduce-scatter", reduction_of(op, type)), type_of(type), members_of(comm)) +
      listed(counts, comm));
}
template <class N> void reduce_scatter_block(N count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  if (!recording) return;
  const std::vector<int> members = members_of(comm);
  recorded.push_back(
      head(reducing("reduce-scatter", reduction_of(op, type)), type_of(type), members) +
      list(std::vector<N>(members.size(), count)));
}
template <class N>
void all_reduce(const void* send, N count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  if (!recording) return;
  recorded.push_back(
      head(reducing("all-reduce", reduction_of(op, type)), type_of(type), members_of(comm)) +
      std::to_string(count) + (send == MPI_IN_PLACE ? " in place" : ""));
}
template <class N> void broadcast(N count, MPI_Datatype type, int root, MPI_Comm comm) {
  if (!recording) return;
  const std::vector<int> members = members_of(comm);
  recorded.push_back(head("broadcast", type_of(type), members) + std::to_string(count) + " from " +
                     std::to_string(members[static_cast<std::size_t>(root)]));
}
template <class N>
void one_way(const char* verb, const char* word, N count, MPI_Datatype type, int peer,
             MPI_Comm comm) {
  if (!recording) return;
  const std::vector<int> members = members_of(comm);
  recorded.push_back(head(verb, type_of(type), members) + std::to_string(count) + " " + word + " " +
                     std::to_string(members[static_cast<std::size_t>(peer)]));
}

/// What a request that is made once says each time it is started.
std::map<MPI_Request, std::string> kept;
template <class N>
void keep(MPI_Request request, const char* verb, const char* word, N count, MPI_Datatype type,
          int peer, MPI_Comm comm) {
  const std::vector<int> members = members_of(comm);
  kept[request] = head(verb, type_of(type), members) + std::to_string(count) + " " + word + " " +
                  std::to_string(members[static_cast<std::size_t>(peer)]);
}
void started(MPI_Request request) {
  if (recording) recorded.push_back(kept[request]);
}

}  // namespace

void fail(const std::string& function, int code) {
  planned = function;
  planned_code = code;
}
bool failed() { return planned.empty(); }
bool abort_hangs = false;
void hang_in_abort() { abort_hangs = true; }
bool waits_to_fail(const char* function) { return planned == function; }
/// Returns the code with which `function` is to fail now, else MPI_SUCCESS.
int failing(const char* function) {
  if (planned != function) return MPI_SUCCESS;
  planned.clear();
  return planned_code;
}

void record(bool on) {
  recording = on;
  if (on) recorded.clear();
}
const std::vector<std::string>& calls() { return recorded; }

}  // namespace support::pmpi

namespace pmpi = support::pmpi;
using Op = MPI_Op;
using Comm = MPI_Comm;
using Type = MPI_Datatype;
using Request = MPI_Request;

extern "C" {

int MPI_Op_create(MPI_User_function* function, int commutes, Op* op) {
  const int code = PMPI_Op_create(function, commutes, op);
  pmpi::own_ops[*op] = {function};
  return code;
}
#if MPI_VERSION >= 4
int MPI_Op_create_c(MPI_User_function_c* function, int commutes, Op* op) {
  const int code = PMPI_Op_create_c(function, commutes, op);
  pmpi::own_ops[*op] = {nullptr, function};
  return code;
}
#endif
int MPI_Allgather(const void* s, int sn, Type st, void* r, int rn, Type rt, Comm c) {
  if (const int code = pmpi::failing("MPI_Allgather")) return code;
  pmpi::all_gather(sn, st, rn, c);
  return PMPI_Allgather(s, sn, st, r, rn, rt, c);
}
int MPI_Allgatherv(const void* s, int sn, Type st, void* r, const int rn[], const int rd[], Type rt,
                   Comm c) {
  if (const int code = pmpi::failing("MPI_Allgatherv")) return code;
  pmpi::all_gather_v(sn, st, rn, rd, c);
  return PMPI_Allgatherv(s, sn, st, r, rn, rd, rt, c);
}
int MPI_Alltoall(const void* s, int sn, Type st, void* r, int rn, Type rt, Comm c) {
  if (const int code = pmpi::failing("MPI_Alltoall")) return code;
  pmpi::all_to_all(sn, st, rn, c);
  return PMPI_Alltoall(s, sn, st, r, rn, rt, c);
}
int MPI_Alltoallv(const void* s, const int sn[], const int sd[], Type st, void* r, const int rn[],
                  const int rd[], Type rt, Comm c) {
  if (const int code = pmpi::failing("MPI_Alltoallv")) return code;
  pmpi::all_to_all_v(sn, sd, st, rn, rd, c);
  return PMPI_Alltoallv(s, sn, sd, st, r, rn, rd, rt, c);
}
int MPI_Reduce_scatter(const void* s, void* r, const int rn[], Type t, Op op, Comm c) {
  if (const int code = pmpi::failing("MPI_Reduce_scatter")) return code;
  pmpi::reduce_scatter(rn, t, op, c);
  return PMPI_Reduce_scatter(s, r, rn, t, op, c);
}
int MPI_Reduce_scatter_block(const void* s, void* r, int rn, Type t, Op op, Comm c) {
  if (const int code = pmpi::failing("MPI_Reduce_scatter_block")) return code;
  pmpi::reduce_scatter_block(rn, t, op, c);
  return PMPI_Reduce_scatter_block(s, r, rn, t, op, c);
}
int MPI_Allreduce(const void* s, void* r, int n, Type t, Op op, Comm c) {
  if (const int code = pmpi::failing("MPI_Allreduce")) return code;
  pmpi::all_reduce(s, n, t, op, c);
  return PMPI_Allreduce(s, r, n, t, op, c);
}

int MPI_Iallgather(const void* s, int sn, Type st, void* r, int rn, Type rt, Comm c, Request* q) {
  if (const int code = pmpi::failing("MPI_Iallgather")) return code;
  pmpi::all_gather(sn, st, rn, c);
  return PMPI_Iallgather(s, sn, st, r, rn, rt, c, q);
}
int MPI_Iallgatherv(const void* s, int sn, Type st, void* r, const int rn[], const int rd[],
                    Type rt, Comm c, Request* q) {
  if (const int code = pmpi::failing("MPI_Iallgatherv")) return code;
  pmpi::all_gather_v(sn, st, rn, rd, c);
  return PMPI_Iallgatherv(s, sn, st, r, rn, rd, rt, c, q);
}
int MPI_Ialltoall(const void* s, int sn, Type st, void* r, int rn, Type rt, Comm c, Request* q) {
  if (const int code = pmpi::failing("MPI_Ialltoall")) return code;
  pmpi::all_to_all(sn, st, rn, c);
  return PMPI_Ialltoall(s, sn, st, r, rn, rt, c, q);
}
int MPI_Ialltoallv(const void* s, const int sn[], const int sd[], Type st, void* r, const int rn[],
                   const int rd[], Type rt, Comm c, Request* q) {
  if (const int code = pmpi::failing("MPI_Ialltoallv")) return code;
  pmpi::all_to_all_v(sn, sd, st, rn, rd, c);
  return PMPI_Ialltoallv(s, sn, sd, st, r, rn, rd, rt, c, q);
}
int MPI_Ireduce_scatter(const void* s, void* r, const int rn[], Type t, Op op, Comm c, Request* q) {
  if (const int code = pmpi::failing("MPI_Ireduce_scatter")) return code;
  pmpi::reduce_scatter(rn, t, op, c);
  return PMPI_Ireduce_scatter(s, r, rn, t, op, c, q);
}
int MPI_Ireduce_scatter_block(const void* s, void* r, int rn, Type t, Op op, Comm c, Request* q) {
  if (const int code = pmpi::failing("MPI_Ireduce_scatter_block")) return code;
  pmpi::reduce_scatter_block(rn, t, op, c);
  return PMPI_Ireduce_scatter_block(s, r, rn, t, op, c, q);
}
int MPI_Iallreduce(const void* s, void* r, int n, Type t, Op op, Comm c, Request* q) {
  if (const int code = pmpi::failing("MPI_Iallreduce")) return code;
  pmpi::all_reduce(s, n, t, op, c);
  return PMPI_Iallreduce(s, r, n, t, op, c, q);
}

int MPI_Bcast(void* b, int n, Type t, int root, Comm c) {
  if (const int code = pmpi::failing("MPI_Bcast")) return code;
  pmpi::broadcast(n, t, root, c);
  return PMPI_Bcast(b, n, t, root, c);
}
int MPI_Ibcast(void* b, int n, Type t, int root, Comm c, Request* q) {
  if (const int code = pmpi::failing("MPI_Ibcast")) return code;
  pmpi::broadcast(n, t, root, c);
  return PMPI_Ibcast(b, n, t, root, c, q);
}

int MPI_Isend(const void* s, int n, Type t, int to, int tag, Comm c, Request* q) {
  if (const int code = pmpi::failing("MPI_Isend")) return code;
  pmpi::one_way("send", "to", n, t, to, c);
  return PMPI_Isend(s, n, t, to, tag, c, q);
}
int MPI_Irecv(void* r, int n, Type t, int from, int tag, Comm c, Request* q) {
  if (const int code = pmpi::failing("MPI_Irecv")) return code;
  pmpi::one_way("receive", "from", n, t, from, c);
  return PMPI_Irecv(r, n, t, from, tag, c, q);
}

// Requests that are started time after time: written down each time.
int MPI_Send_init(const void* s, int n, Type t, int to, int tag, Comm c, Request* q) {
  const int code = PMPI_Send_init(s, n, t, to, tag, c, q);
  pmpi::keep(*q, "send", "to", n, t, to, c);
  return code;
}
int MPI_Recv_init(void* r, int n, Type t, int from, int tag, Comm c, Request* q) {
  const int code = PMPI_Recv_init(r, n, t, from, tag, c, q);
  pmpi::keep(*q, "receive", "from", n, t, from, c);
  return code;
}
int MPI_Startall(int n, Request q[]) {
  if (const int code = pmpi::failing("MPI_Startall")) return code;
  for (int i = 0; i < n; ++i) pmpi::started(q[i]);
  return PMPI_Startall(n, q);
}

// Large counts.
#if MPI_VERSION >= 4

int MPI_Allgather_c(const void* s, MPI_Count sn, Type st, void* r, MPI_Count rn, Type rt, Comm c) {
  if (const int code = pmpi::failing("MPI_Allgather_c")) return code;
  pmpi::all_gather(sn, st, rn, c);
  return PMPI_Allgather_c(s, sn, st, r, rn, rt, c);
}
int MPI_Allgatherv_c(const void* s, MPI_Count sn, Type st, void* r, const MPI_Count rn[],
                     const MPI_Aint rd[], Type rt, Comm c) {
  if (const int code = pmpi::failing("MPI_Allgatherv_c")) return code;
  pmpi::all_gather_v(sn, st, rn, rd, c);
  return PMPI_Allgatherv_c(s, sn, st, r, rn, rd, rt, c);
}
int MPI_Alltoall_c(const void* s, MPI_Count sn, Type st, void* r, MPI_Count rn, Type rt, Comm c) {
  if (const int code = pmpi::failing("MPI_Alltoall_c")) return code;
  pmpi::all_to_all(sn, st, rn, c);
  return PMPI_Alltoall_c(s, sn, st, r, rn, rt, c);
}
int MPI_Alltoallv_c(const void* s, const MPI_Count sn[], const MPI_Aint sd[], Type st, void* r,
                    const MPI_Count rn[], const MPI_Aint rd[], Type rt, Comm c) {
  if (const int code = pmpi::failing("MPI_Alltoallv_c")) return code;
  pmpi::all_to_all_v(sn, sd, st, rn, rd, c);
  return PMPI_Alltoallv_c(s, sn, sd, st, r, rn, rd, rt, c);
}
int MPI_Reduce_scatter_c(const void* s, void* r, const MPI_Count rn[], Type t, Op op, Comm c) {
  if (const int code = pmpi::failing("MPI_Reduce_scatter_c")) return code;
  pmpi::reduce_scatter(rn, t, op, c);
  return PMPI_Reduce_scatter_c(s, r, rn, t, op, c);
}
int MPI_Reduce_scatter_block_c(const void* s, void* r, MPI_Count rn, Type t, Op op, Comm c) {
  if (const int code = pmpi::failing("MPI_Reduce_scatter_block_c")) return code;
  pmpi::reduce_scatter_block(rn, t, op, c);
  return PMPI_Reduce_scatter_block_c(s, r, rn, t, op, c);
}
int MPI_Allreduce_c(const void* s, void* r, MPI_Count n, Type t, Op op, Comm c) {
  if (const int code = pmpi::failing("MPI_Allreduce_c")) return code;
  pmpi::all_reduce(s, n, t, op, c);
  return PMPI_Allreduce_c(s, r, n, t, op, c);
}

int MPI_Iallgather_c(const void* s, MPI_Count sn, Type st, void* r, MPI_Count rn, Type rt, Comm c,
                     Request* q) {
  if (const int code = pmpi::failing("MPI_Iallgather_c")) return code;
  pmpi::all_gather(sn, st, rn, c);
  return PMPI_Iallgather_c(s, sn, st, r, rn, rt, c, q);
}
int MPI_Iallgatherv_c(const void* s, MPI_Count sn, Type st, void* r, const MPI_Count rn[],
                      const MPI_Aint rd[], Type rt, Comm c, Request* q) {
  if (const int code = pmpi::failing("MPI_Iallgatherv_c")) return code;
  pmpi::all_gather_v(sn, st, rn, rd, c);
  return PMPI_Iallgatherv_c(s, sn, st, r, rn, rd, rt, c, q);
}
int MPI_Ialltoall_c(const void* s, MPI_Count sn, Type st, void* r, MPI_Count rn, Type rt, Comm c,
                    Request* q) {
  if (const int code = pmpi::failing("MPI_Ialltoall_c")) return code;
  pmpi::all_to_all(sn, st, rn, c);
  return PMPI_Ialltoall_c(s, sn, st, r, rn, rt, c, q);
}
int MPI_Ialltoallv_c(const void* s, const MPI_Count sn[], const MPI_Aint sd[], Type st, void* r,
                     const MPI_Count rn[], const MPI_Aint rd[], Type rt, Comm c, Request* q) {
  if (const int code = pmpi::failing("MPI_Ialltoallv_c")) return code;
  pmpi::all_to_all_v(sn, sd, st, rn, rd, c);
  return PMPI_Ialltoallv_c(s, sn, sd, st, r, rn, rd, rt, c, q);
}
int MPI_Ireduce_scatter_c(const void* s, void* r, const MPI_Count rn[], Type t, Op op, Comm c,
                          Request* q) {
  if (const int code = pmpi::failing("MPI_Ireduce_scatter_c")) return code;
  pmpi::reduce_scatter(rn, t, op, c);
  return PMPI_Ireduce_scatter_c(s, r, rn, t, op, c, q);
}
int MPI_Ireduce_scatter_block_c(const void* s, void* r, MPI_Count rn, Type t, Op op, Comm c,
                                Request* q) {
  if (const int code = pmpi::failing("MPI_Ireduce_scatter_block_c")) return code;
  pmpi::reduce_scatter_block(rn, t, op, c);
  return PMPI_Ireduce_scatter_block_c(s, r, rn, t, op, c, q);
}
int MPI_Iallreduce_c(const void* s, void* r, MPI_Count n, Type t, Op op, Comm c, Request* q) {
  if (const int code = pmpi::failing("MPI_Iallreduce_c")) return code;
  pmpi::all_reduce(s, n, t, op, c);
  return PMPI_Iallreduce_c(s, r, n, t, op, c, q);
}

int MPI_Bcast_c(void* b, MPI_Count n, Type t, int root, Comm c) {
  if (const int code = pmpi::failing("MPI_Bcast_c")) return code;
  pmpi::broadcast(n, t, root, c);
  return PMPI_Bcast_c(b, n, t, root, c);
}
int MPI_Ibcast_c(void* b, MPI_Count n, Type t, int root, Comm c, Request* q) {
  if (const int code = pmpi::failing("MPI_Ibcast_c")) return code;
  pmpi::broadcast(n, t, root, c);
  return PMPI_Ibcast_c(b, n, t, root, c, q);
}

int MPI_Isend_c(const void* s, MPI_Count n, Type t, int to, int tag, Comm c, Request* q) {
  if (const int code = pmpi::failing("MPI_Isend_c")) return code;
  pmpi::one_way("send", "to", n, t, to, c);
  return PMPI_Isend_c(s, n, t, to, tag, c, q);
}
int MPI_Irecv_c(void* r, MPI_Count n, Type t, int from, int tag, Comm c, Request* q) {
  if (const int code = pmpi::failing("MPI_Irecv_c")) return code;
  pmpi::one_way("receive", "from", n, t, from, c);
  return PMPI_Irecv_c(r, n, t, from, tag, c, q);
}
#endif

// ---- these are only made to fail
// --------------------------------------------------------------------------------------

int MPI_Wait(Request* q, MPI_Status* s) {
  const int done = PMPI_Wait(q, s);
  const int code = pmpi::failing("MPI_Wait");
  return code != MPI_SUCCESS ? code : done;
}
int MPI_Test(Request* q, int* flag, MPI_Status* s) {
  if (!pmpi::waits_to_fail("MPI_Test")) return PMPI_Test(q, flag, s);
  const int done = PMPI_Wait(q, s);
  *flag = 1;
  const int code = pmpi::failing("MPI_Test");
  return code != MPI_SUCCESS ? code : done;
}
int MPI_Ireduce(const void* s, void* r, int n, Type t, Op op, int root, Comm c, Request* q) {
  if (const int code = pmpi::failing("MPI_Ireduce")) return code;
  return PMPI_Ireduce(s, r, n, t, op, root, c, q);
}
int MPI_Ibarrier(Comm c, Request* q) {
  if (const int code = pmpi::failing("MPI_Ibarrier")) return code;
  return PMPI_Ibarrier(c, q);
}
int MPI_Comm_dup(Comm c, Comm* to) {
  if (const int code = pmpi::failing("MPI_Comm_dup")) return code;
  return PMPI_Comm_dup(c, to);
}
int MPI_Comm_idup(Comm c, Comm* to, Request* q) {
  if (const int code = pmpi::failing("MPI_Comm_idup")) return code;
  return PMPI_Comm_idup(c, to, q);
}
int MPI_Comm_group(Comm c, MPI_Group* g) {
  if (const int code = pmpi::failing("MPI_Comm_group")) return code;
  return PMPI_Comm_group(c, g);
}
int MPI_Group_incl(MPI_Group g, int n, const int ranks[], MPI_Group* to) {
  if (const int code = pmpi::failing("MPI_Group_incl")) return code;
  return PMPI_Group_incl(g, n, ranks, to);
}
int MPI_Comm_create_group(Comm c, MPI_Group g, int tag, Comm* to) {
  if (const int code = pmpi::failing("MPI_Comm_create_group")) return code;
  return PMPI_Comm_create_group(c, g, tag, to);
}
int MPI_Comm_split_type(Comm c, int type, int key, MPI_Info info, Comm* to) {
  if (const int code = pmpi::failing("MPI_Comm_split_type")) return code;
  return PMPI_Comm_split_type(c, type, key, info, to);
}
int MPI_Comm_set_errhandler(Comm c, MPI_Errhandler h) {
  if (const int code = pmpi::failing("MPI_Comm_set_errhandler")) return code;
  return PMPI_Comm_set_errhandler(c, h);
}
int MPI_Abort(Comm c, int code) {
  while (pmpi::abort_hangs) std::this_thread::sleep_for(std::chrono::seconds(1));
  return PMPI_Abort(c, code);
}
int MPI_Comm_rank(Comm c, int* rank) {
  if (const int code = pmpi::failing("MPI_Comm_rank")) return code;
  return PMPI_Comm_rank(c, rank);
}
int MPI_Comm_size(Comm c, int* size) {
  if (const int code = pmpi::failing("MPI_Comm_size")) return code;
  return PMPI_Comm_size(c, size);
}

}  // extern "C"
