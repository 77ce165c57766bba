// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a pass works on a Program of several parts: piece by piece, each the operators of one part
/// between operators of others, as a Program of that part's mesh.
///
///     in_pieces<Reuse>(program, options, limit, pass, add)
///
/// Laws: a piece has its own tensors alone, numbered anew; what is alive after it outlives it;
/// operators never go from piece to piece. All pieces together take time linear in operators and
/// tensors, and in those times processes where there is a limit.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <tessera/plan/plan_options.hpp>
#include <tessera/program/detail/over_processes.hpp>
#include <tessera/program/program.hpp>

namespace tessera::detail {

/// The pieces of a Program, one after the other, and what becomes of them.
class ProgramPieces {
 public:
  ProgramPieces(const Program& program, Index limit)
      : program_(program), counts_held_(limit != max_int64), local_(program.tensors().size(), -1) {
    for (const ProgramTensor& t : program.tensors()) {
      if (t.made < 0 && t.last >= t.begins()) given_.push_back(static_cast<int>(tensors_.size()));
      tensors_.push_back({-1, t.last, false});
    }
    std::stable_sort(given_.begin(), given_.end(), [&](int a, int b) {
      return program.tensor(a).begins() < program.tensor(b).begins();
    });
    if (counts_held_) held_.resize(static_cast<std::size_t>(program.mesh.processes()));
  }

  bool over() const { return end_ == program_.size(); }
  /// Returns the next piece. A process that takes no part plays the first one.
  Program next() {
    begin_ = end_;
    part_ = program_.entry(begin_).part;
    while (end_ < program_.size() && program_.entry(end_).part == part_) ++end_;
    begin_given();
    for (const int t : of_piece_) local_[at(t)] = -1;
    of_piece_.clear();
    const ProgramPart& part = program_.part_at(part_);
    Program one = program_.without_operators();
    one.mesh = part.mesh;
    one.process = std::max(part.places[at(program_.process)], 0);
    one.set_names(part.names());
    std::vector<ProgramEntry> entries;
    for (int i = begin_; i < end_; ++i) {
      ProgramEntry e = program_.entry(i);
      const auto rename = [&](int& t, const TensorDesc& desc) {
        t = current(t);
        if (local_[at(t)] < 0) add_to(one, t, desc);
        t = local_[at(t)];
      };
      for (int k = 0; k < e.operands.size(); ++k) rename(e.operands[k], e.plan->slots[k].desc);
      if (e.result >= 0) rename(e.result, e.plan->result_desc());
      for (int k = 0; k < e.also.size(); ++k)
        rename(e.also[k], e.plan->slots[e.plan->also[k]].desc);
      if (e.replaces >= 0) rename(e.replaces, e.plan->result_desc());
      entries.push_back(std::move(e));
    }
    const int count = static_cast<int>(entries.size());
    for (std::size_t k = 0; k < of_piece_.size(); ++k) {
      ProgramTensor& x = one.tensor_to_change(static_cast<int>(k));
      const bool given = at(of_piece_[k]) < program_.tensors().size();
      x.made = given && begin_ <= x.made && x.made < end_ ? x.made - begin_ : -1;
      x.last = tensors_[at(of_piece_[k])].last >= end_ ? count : -1;  // it outlives the piece
    }
    one.relist(std::move(entries));
    one.state_held(held_beside());
    return one;
  }
  int part() const { return part_; }

  /// Puts what a pass has made of the piece in its place.
  void put_back(const Program& changed) {
    for (std::size_t k = of_piece_.size(); k < changed.tensors().size(); ++k) {
      ProgramTensor added = changed.tensors()[k];
      added.part = part_;
      added.bytes = program_.charge(added, program_.process);
      of_piece_.push_back(static_cast<int>(tensors_.size()));
      local_.push_back(static_cast<int>(k));
      tensors_.push_back({-1, -1, false});
      added_.push_back(added);
    }
    std::vector<bool> made(of_piece_.size());
    for (const ProgramEntry& given : changed.entries()) {
      ProgramEntry& e = entries_.emplace_back(given);
      e.part = part_;
      const auto number_of = [&](int& t) {
        if (t >= 0) t = number(t);
      };
      for (int& t : e.operands) number_of(t);
      if (e.result >= 0) made[at(e.result)] = true;
      number_of(e.result);
      for (int& t : e.also) made[at(t)] = true, number_of(t);
      number_of(e.replaces);
      if (e.replaces < 0 || e.replaces == e.result) continue;
      Tensor &gone = tensors_[at(e.replaces)], &by = tensors_[at(e.result)];
      if (gone.by < 0 && current(e.result) != e.replaces) gone.by = e.result;
      by.last = std::max(by.last, std::exchange(gone.last, -1));
    }
    for (std::size_t k = 0; counts_held_ && k < of_piece_.size(); ++k) {
      Tensor& t = tensors_[at(of_piece_[k])];
      const bool alive = (t.alive || made[k]) && t.last >= end_;
      if (alive != t.alive) hold(tensor(of_piece_[k]), alive ? 1 : -1);
      t.alive = alive;
    }
  }
  /// Returns the number in the Program of a tensor of the piece.
  int number(int local) const { return of_piece_[at(local)]; }

  /// Returns the Program with all of its pieces as they are now.
  Program program() {
    Program all = program_;
    for (const ProgramTensor& added : added_) (void)all.add(added);
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      ProgramTensor& x = all.tensor_to_change(static_cast<int>(t));
      const bool outlives = tensors_[t].last >= program_.size();
      if (outlives != (x.last >= program_.size())) x.last = outlives ? program_.size() : -1;
    }
    all.relist(std::move(entries_));
    return all;
  }

 private:
  struct Tensor {
    int by = -1;    ///< the one in whose place it is now; -1: none
    int last = -1;  ///< the last operator of the given Program that has it
    bool alive = false;
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  const ProgramTensor& tensor(int t) const {
    const int given = static_cast<int>(program_.tensors().size());
    return t < given ? program_.tensor(t) : added_[at(t - given)];
  }
  int current(int t) {
    int now = t;
    while (tensors_[at(now)].by >= 0) now = tensors_[at(now)].by;
    while (t != now) t = std::exchange(tensors_[at(t)].by, now);  // a shorter way from now on
    return now;
  }
  void add_to(Program& one, int t, const TensorDesc& desc) {
    ProgramTensor x = tensor(t);
    if (x.part != part_) x.desc = desc;
    x.part = 0;
    x.bytes = charge_of(x, one.mesh, one.mesh.coordinates(one.process));
    local_[at(t)] = one.add(x);
    of_piece_.push_back(t);
  }
  /// Counts the tensors that no operator makes and that are there before the piece ends.
  void begin_given() {
    for (; counts_held_ && begun_ < given_.size(); ++begun_) {
      const ProgramTensor& t = program_.tensor(given_[begun_]);
      if (t.begins() >= end_) return;
      tensors_[at(given_[begun_])].alive = true;
      hold(t, 1);
    }
  }
  /// Counts the bytes of a tensor on each process.
  void hold(const ProgramTensor& t, int sign) {
    for (std::size_t p = 0; p < held_.size(); ++p) held_[p] += sign * charge(t, p);
  }
  Index charge(const ProgramTensor& t, std::size_t process) const {
    return min_of(program_.charge(t, static_cast<int>(process)),
                  max_int64 >> 20);  // sums stay exact
  }
  /// Returns the most bytes that a process holds of tensors that the piece has not, when it begins:
  /// alike on all processes, which decide by it.
  Index held_beside() const {
    Index most = 0;
    for (std::size_t p = 0; p < held_.size(); ++p) {
      Index held = held_[p];
      for (const int t : of_piece_)
        if (tensors_[at(t)].alive) held -= charge(tensor(t), p);
      most = max_of(most, held);
    }
    return most;
  }

  const Program& program_;
  bool counts_held_;
  int begin_ = 0, end_ = 0, part_ = 0;  ///< of the piece
  std::vector<Tensor> tensors_;
  std::vector<int> given_;            ///< that no operator makes, in the order in which they begin
  std::size_t begun_ = 0;             ///< so many of these have begun
  std::vector<ProgramTensor> added_;  ///< behind those of the given Program
  std::vector<ProgramEntry> entries_;
  std::vector<int> of_piece_;  ///< the number of each of its tensors
  std::vector<int> local_;     ///< each tensor's number in the piece; -1: it has none
  std::vector<Index> held_;    ///< on each process, when the piece begins
};

/// Returns the options of planning on a part.
inline PlanOptions options_on(const ProgramPart& part, PlanOptions options) {
  options.machine = part.machine;
  options.workspace_limit = part.workspace_limit;
  return options;
}

/// Returns what pass(piece, options) makes of all pieces; add(all, made, pieces) adds what it tells
/// of one.
template <class Made, class Pass, class Add>
Made in_pieces(const Program& program, const PlanOptions& options, Index limit, const Pass& pass,
               const Add& add) {
  Made all;
  all.peak_before = program.peak_bytes();
  ProgramPieces pieces(program, limit);
  while (!pieces.over()) {
    const Program piece = pieces.next();
    const Made made = pass(piece, options_on(program.part_at(pieces.part()), options));
    pieces.put_back(made.program);
    add(all, made, pieces);
  }
  all.program = pieces.program();
  all.peak_after = all.program.peak_bytes();
  return all;
}

}  // namespace tessera::detail
