// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Writes down every data call that this process makes to MPI, by standing between the program and
/// the library (MPI 4.0, chapter 15.2). support/pmpi.cpp defines the functions.
///
///     support::pmpi::record(true);
///     reshard(x, to);
///     support::pmpi::record(false);
///     support::pmpi::calls();        // "all-gather of float over 0,1: 12 each"
///     support::pmpi::texts_of(call, mesh)          // what a planned call should read
///
/// Blocking, nonblocking and large-count forms read alike; counts, displacements, members, types
/// and reductions do not.
#include <string>
#include <vector>

#include <tessera/mesh/call.hpp>
#include <tessera/mesh/mesh_shape.hpp>

namespace support::pmpi {

void record(bool on);  ///< starting forgets what was recorded
const std::vector<std::string>& calls();

/// The next call of this function, e.g. "MPI_Allreduce", returns `code` (of MPI's own handling of
/// errors nothing is seen) and is not made, except that MPI_Test and MPI_Wait do what they are
/// asked for first: what was begun is not left to write into memory that is given back. An empty
/// name takes the order back.
void fail(const std::string& function, int code);
/// Returns whether the order was carried out.
bool failed();
/// From now on MPI_Abort never returns, and ends nothing.
void hang_in_abort();

template <class Counts> std::string list(const Counts& counts) {
  std::string text = "[";
  for (std::size_t i = 0; i < counts.size(); ++i)
    text += (i > 0 ? " " : "") + std::to_string(counts[i]);
  return text + "]";
}

inline std::string head(const std::string& operation, tessera::DType type,
                        const std::vector<int>& members) {
  std::string text = operation + " of " + std::string(name_of(type)) + " over ";
  for (std::size_t i = 0; i < members.size(); ++i)
    text += (i > 0 ? "," : "") + std::to_string(members[i]);
  return text + ": ";
}
inline std::string reducing(const char* operation, tessera::Reduction reduction) {
  return std::string(operation) + " (" + std::string(name_of(reduction)) + ")";
}

/// Returns the calls to MPI that a planned call of the process at `at` stands for: none in a group
/// of one. `numbers`: those that MPI gives the mesh's processes; empty: it numbers them alike.
inline std::vector<std::string> texts_of(const tessera::Call& call, const tessera::MeshShape& mesh,
                                         const tessera::Coordinates& at,
                                         const std::vector<int>& numbers = {}) {
  using tessera::Collective, tessera::Index, tessera::Piece;
  if (call.members == 1) return {};
  std::vector<int> members;
  for (int k = 0; k < call.members; ++k)
    members.push_back(mesh.process(mesh.member(call.group, at, k)));
  if (!numbers.empty())
    for (int& member : members) member = numbers[static_cast<std::size_t>(member)];
  const auto counts = [](const std::vector<Piece>& pieces) {
    std::vector<Index> n;
    for (const Piece& piece : pieces) n.push_back(piece.count);
    return list(n);
  };
  const auto shifts = [](const std::vector<Piece>& pieces) {
    std::vector<Index> n;
    for (const Piece& piece : pieces) n.push_back(piece.offset);
    return list(n);
  };
  switch (call.kind) {
    case Collective::all_gather:
      if (call.even)
        return {head("all-gather", call.type, members) + std::to_string(call.send[0].count) +
                " each"};
      return {head("all-gather-v", call.type, members) + std::to_string(call.send[0].count) +
              " to " + counts(call.receive) + " at " + shifts(call.receive)};
    case Collective::reduce_scatter:
      return {head(reducing("reduce-scatter", call.reduction), call.type, members) +
              counts(call.send)};
    case Collective::all_reduce:
      return {head(reducing("all-reduce", call.reduction), call.type, members) +
              std::to_string(call.send[0].count) + (call.in_place ? " in place" : "")};
    case Collective::all_to_all:
      if (call.even)
        return {head("all-to-all", call.type, members) + std::to_string(call.send[0].count) +
                " each"};
      return {head("all-to-all-v", call.type, members) + counts(call.send) + " at " +
              shifts(call.send) + " to " + counts(call.receive) + " at " + shifts(call.receive)};
    case Collective::broadcast: {
      if (call.send.empty() && call.receive.empty()) return {};
      const Piece& piece = call.send.empty() ? call.receive.front() : call.send.front();
      return {head("broadcast", call.type, members) + std::to_string(piece.count) + " from " +
              std::to_string(members[static_cast<std::size_t>(piece.peer)])};
    }
    case Collective::collective_permute:
    case Collective::exchange:
      break;
  }
  std::vector<std::string> texts;
  for (const Piece& piece : call.receive)
    texts.push_back(head("receive", call.type, members) + std::to_string(piece.count) + " from " +
                    std::to_string(members[static_cast<std::size_t>(piece.peer)]));
  for (const Piece& piece : call.send)
    texts.push_back(head("send", call.type, members) + std::to_string(piece.count) + " to " +
                    std::to_string(members[static_cast<std::size_t>(piece.peer)]));
  return texts;
}

}  // namespace support::pmpi
