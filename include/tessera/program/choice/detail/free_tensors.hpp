// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Which tensors of a Program a choice may split otherwise, and what their operators allow.
///
///     FreeTensors tensors(program, planning, options);
///     tensors.is_free(t);   tensors.may_be_copied(t);   tensors.is_open(entry)
///
/// Laws: those of program/choice.hpp; all processes find the same.
#include <cstddef>
#include <vector>

#include <tessera/program/choice/options.hpp>
#include <tessera/program/choice/pinned_tensors.hpp>
#include <tessera/program/detail/program_edit.hpp>

namespace tessera::detail {

class FreeTensors : protected ProgramEdit {
 public:
  FreeTensors(const Program& program, const PlanOptions& planning, const ChooseOptions& options)
      : ProgramEdit(program, planning), options_of_choice_(options), pins_(program_, options.pins) {
    find_free();
    count_readers();
    for (int t = 0; t < tensors(); ++t)
      if (pins_.pinned(t)) pins_.require(t, is_free(t));
  }
  /// Returns whether the Program that was given keeps what is pinned.
  bool keeps_pins() const {
    bool keeps = true;
    for (int t = 0; t < tensors(); ++t)
      keeps = keeps && pins_.allow(t, program_.tensor(t).desc.sharding);
    return keeps;
  }
  bool is_free(int t) const { return free_[static_cast<std::size_t>(t)]; }
  /// Returns whether several operators read a tensor, which nobody writes, so that a copy of it
  /// may serve them.
  bool may_be_copied(int t) const {
    return !options_of_choice_.keep_shardings && readers_[static_cast<std::size_t>(t)] > 1 &&
           !alone_[static_cast<std::size_t>(t)];
  }
  /// Returns whether an operator has ways, and is not left as it was recorded.
  bool is_open(const ProgramEntry& e) const {
    if (e.operation == nullptr || !e.plan->halos.empty() || e.result < 0) return false;
    if (!e.operation->states_result() || is_stated(e)) return false;
    for (int k = 0; k < e.operands.size(); ++k)
      if (!(e.plan->slots[k].desc == program_.tensor(e.operands[k]).desc)) return false;
    return e.plan->result_desc() == program_.tensor(e.result).desc;
  }
  /// Returns whether the result is a tensor of its own, and not another name of an operand: the
  /// caller keeps it, or an operator changes one of them.
  bool makes_own(const ProgramEntry& e) const {
    bool own = program_.tensor(e.result).last >= program_.size() ||
               written_[static_cast<std::size_t>(e.result)];
    for (const int t : e.operands) own = own || written_[static_cast<std::size_t>(t)];
    return own;
  }
  /// Returns whether an operator changes a tensor that is there.
  bool is_written(int t) const { return written_[static_cast<std::size_t>(t)]; }
  /// Returns whether an operator is a reshard that the caller wrote.
  static bool is_stated(const ProgramEntry& e) {
    return e.plan->kind == OperatorKind::reshard &&
           (e.label == "reshard" || e.label == "constrain");
  }
  /// Returns whether an operator brings one tensor to another sharding, and does nothing else.
  static bool is_move(const ProgramEntry& e) {
    return e.operation != nullptr && e.operation->view().get_if<ops::Reshard>() != nullptr &&
           e.result != e.operands[0] && e.also.empty();
  }

 protected:
  int tensors() const { return static_cast<int>(program_.tensors().size()); }

  ChooseOptions options_of_choice_;
  PinnedTensors pins_;

 private:
  /// A tensor is free that an operator with ways makes, that the caller does not keep, and that
  /// only operators read which say which sharding they read.
  void find_free() {
    free_.assign(program_.tensors().size(), false);
    if (options_of_choice_.keep_shardings) return;
    for (int i = 0; i < program_.size(); ++i) {
      const ProgramEntry& e = program_.entry(i);
      if (!is_open(e) && !(is_move(e) && !is_stated(e))) continue;
      if (e.plan->destination != Destination::fresh) continue;
      free_[static_cast<std::size_t>(e.result)] = program_.tensor(e.result).made == i;
      for (const int t : e.also) free_[static_cast<std::size_t>(t)] = program_.tensor(t).made == i;
    }
    for (const int t : options_of_choice_.open) free_[static_cast<std::size_t>(t)] = true;
    for (const std::string& path : options_of_choice_.open_paths) open_path(path);
    for (int t = 0; t < tensors(); ++t) {
      const ProgramTensor& tensor = program_.tensor(t);
      if (tensor.made < 0 && options_of_choice_.open_arguments)
        free_[static_cast<std::size_t>(t)] = true;
      const bool kept = tensor.made >= 0 && tensor.last >= program_.size();
      const bool open = pins_.open(t);
      if (tensor.made < 0 && open) free_[static_cast<std::size_t>(t)] = true;
      if (tensor.adopted || (kept && !options_of_choice_.open_results && !open))
        free_[static_cast<std::size_t>(t)] = false;
    }
    for (int i = 0; i < program_.size(); ++i) {
      const ProgramEntry& e = program_.entry(i);
      const auto pin = [&](int t) {
        if (t >= 0) free_[static_cast<std::size_t>(t)] = false;
      };
      if (!is_open(e) && !is_move(e)) {
        pin(e.result);
        for (const int t : e.also) pin(t);
        // An operator without an Operation reads its operands as they are.
        for (int k = 0; k < e.operands.size(); ++k)
          if (e.operation == nullptr || !e.plan->halos.empty() ||
              !(e.plan->slots[k].desc == program_.tensor(e.operands[k]).desc))
            pin(e.operands[k]);
      }
      for_each_changed(e, i, [&](int t) {
        if (t != e.result || !is_open(e)) pin(t);
      });
    }
  }
  void open_path(const std::string& path) {
    bool found = false;
    for (const ProgramArgument& argument : program_.arguments()) {
      const std::string& own = argument.path;
      if (own != path && own.substr(0, path.size() + 1) != path + ".") continue;
      found = free_[static_cast<std::size_t>(argument.tensor)] = true;
    }
    if (found) return;
    std::string all;
    for (const ProgramArgument& argument : program_.arguments())
      all += (all.empty() ? "" : ", ") + argument.path;
    throw UsageError("choose: " + path +
                     " is to be open, and no operator reads such an argument; " +
                     (all.empty() ? "a Program that plan() recorded names none: give choose the "
                                    "function, or numbers (ChooseOptions::open)"
                                  : "those that operators read are " + all));
  }
  /// Counts the operators that read a tensor, and finds those that are read where they lie alone.
  void count_readers() {
    readers_.assign(program_.tensors().size(), 0);
    written_.assign(program_.tensors().size(), false);
    alone_ = written_;
    for (int i = 0; i < program_.size(); ++i) {
      const ProgramEntry& e = program_.entry(i);
      for (int k = 0; k < e.operands.size(); ++k) {
        bool again = false;
        for (int j = 0; j < k; ++j) again = again || e.operands[j] == e.operands[k];
        if (!again && is_open(e)) ++readers_[static_cast<std::size_t>(e.operands[k])];
        // A copy would communicate for a call that may not.
        if (e.contract.bounded()) alone_[static_cast<std::size_t>(e.operands[k])] = true;
      }
      if (e.operation == nullptr || !e.plan->halos.empty())  // it reads the very memory
        for (const int t : e.operands) written_[static_cast<std::size_t>(t)] = true;
      for_each_changed(e, i, [&](int t) {
        written_[static_cast<std::size_t>(t)] = alone_[static_cast<std::size_t>(t)] = true;
      });
    }
  }

  std::vector<bool> free_;
  std::vector<int> readers_;
  std::vector<bool> written_;  ///< whether an operator changes a tensor that is there
  std::vector<bool> alone_;    ///< whether a tensor may have no copies
};

}  // namespace tessera::detail
