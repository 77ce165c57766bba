// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a pass works on a Program of several parts: piece by piece, each the operators of one part
/// between operators of others, as a Program of that part's mesh.
///
///     in_pieces<Reuse>(program, options, limit, pass, add)
///
/// Laws: a piece has the tensors of the Program under their numbers; what is alive after it
/// outlives it; operators never go from piece to piece.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/detail/over_processes.hpp>
#include <tessera/program/program.hpp>

namespace tessera::detail {

/// Operators begin … end-1 of a Program, all of one part.
struct Piece {
  int begin = 0, end = 0;
  int part = 0;
};

/// Returns the piece that begins with operator `begin`.
inline Piece piece_at(const Program& program, int begin) {
  Piece piece{begin, begin, program.entry(begin).part};
  while (piece.end < program.size() && program.entry(piece.end).part == piece.part) ++piece.end;
  return piece;
}

/// Calls visit(tensor, its description there) for each tensor that an operator has.
template <class Visit> void visit_tensors(const ProgramEntry& e, const Visit& visit) {
  for (int k = 0; k < e.operands.size(); ++k) visit(e.operands[k], e.plan->slots[k].desc);
  if (e.result >= 0) visit(e.result, e.plan->result_desc());
  for (int k = 0; k < e.also.size(); ++k) visit(e.also[k], e.plan->slots[e.plan->also[k]].desc);
}

/// Returns the most bytes that a process holds of tensors that a piece has not, when it begins:
/// alike on all processes, which decide by it.
TESSERA_FUNCTION Index held_beside(const Program& program, const Piece& piece,
                                   const std::vector<bool>& has) {
  Index most = 0;
  for (int p = 0; p < program.mesh.processes(); ++p) {
    Index held = 0;
    for (std::size_t t = 0; t < has.size(); ++t)
      if (const ProgramTensor& x = program.tensors()[t]; !has[t] && x.alive_at(piece.begin))
        held = saturating_add(held, program.charge(x, p));
    most = max_of(most, held);
  }
  return most;
}

/// Returns a piece as a Program of its part. A process that takes no part plays the first one.
TESSERA_FUNCTION Program program_of(const Program& program, const Piece& piece, Index limit) {
  const ProgramPart& part = program.part_at(piece.part);
  Program one = program;
  one.set_parts({});
  one.mesh = part.mesh;
  one.process = std::max(part.places[static_cast<std::size_t>(program.process)], 0);
  one.set_names(part.names());
  std::vector<bool> has(program.tensors().size());
  std::vector<ProgramEntry> entries;
  for (int i = piece.begin; i < piece.end; ++i) {
    entries.push_back(program.entry(i));
    visit_tensors(program.entry(i), [&](int t, const TensorDesc& desc) {
      if (has[static_cast<std::size_t>(t)]) return;
      has[static_cast<std::size_t>(t)] = true;
      if (program.tensor(t).part != piece.part) one.tensor_to_change(t).desc = desc;
    });
  }
  for (int t = 0; t < static_cast<int>(has.size()); ++t) {
    ProgramTensor& x = one.tensor_to_change(t);
    const bool here = has[static_cast<std::size_t>(t)];
    x.made = here && piece.begin <= x.made && x.made < piece.end ? x.made : -1;
    x.last = here && x.last >= piece.end ? program.size() : -1;
    if (!here) x.desc = {x.desc.type, {}, Sharding{}};  // of no mesh
    x.bytes = here ? charge_of(x, one.mesh, one.mesh.coordinates(one.process)) : 0;
  }
  one.relist(std::move(entries));
  one.state_held(limit == max_int64 ? 0 : held_beside(program, piece, has));
  return one;
}

/// Puts what a pass has made of a piece in its place; returns where it ends now.
TESSERA_FUNCTION int put_back(Program& program, const Piece& piece, const Program& changed) {
  for (std::size_t t = program.tensors().size(); t < changed.tensors().size(); ++t) {
    ProgramTensor added = changed.tensors()[t];
    added.part = piece.part;
    added.last = -1;
    added.bytes = program.charge(added, program.process);
    (void)program.add(added);
  }
  std::vector<ProgramEntry> list(program.entries().begin(),
                                 program.entries().begin() + piece.begin);
  std::vector<std::pair<int, int>> renamed;
  for (const ProgramEntry& e : changed.entries()) {
    list.push_back(e);
    list.back().part = piece.part;
    if (e.replaces < 0 || e.replaces == e.result) continue;
    renamed.emplace_back(e.replaces, e.result);
    if (program.tensor(e.replaces).last >= program.size())
      program.tensor_to_change(e.result).last = program.size();
  }
  const int end = static_cast<int>(list.size());
  for (int i = piece.end; i < program.size(); ++i) {
    ProgramEntry& e = list.emplace_back(program.entry(i));
    const auto rename = [&](int& t) {
      for (const auto& [gone, by] : renamed)
        if (t == gone) t = by;
    };
    for (int& t : e.operands) rename(t);
    rename(e.result);
    for (int& t : e.also) rename(t);
  }
  program.relist(std::move(list));
  return end;
}

/// Returns the options of planning on a part.
inline PlanOptions options_on(const ProgramPart& part, PlanOptions options) {
  options.machine = part.machine;
  options.workspace_limit = part.workspace_limit;
  return options;
}

/// Returns what pass(piece, options) makes of all pieces; add(all, made, part) adds what it tells
/// of one.
template <class Made, class Pass, class Add>
Made in_pieces(const Program& program, const PlanOptions& options, Index limit, const Pass& pass,
               const Add& add) {
  Made all;
  all.peak_before = program.peak_bytes();
  all.program = program;
  for (int begin = 0; begin < all.program.size();) {
    const Piece piece = piece_at(all.program, begin);
    const Made made = pass(program_of(all.program, piece, limit),
                           options_on(program.part_at(piece.part), options));
    add(all, made, piece.part);
    begin = put_back(all.program, piece, made.program);
  }
  all.peak_after = all.program.peak_bytes();
  return all;
}

}  // namespace tessera::detail
