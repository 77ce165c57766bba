// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What the processes of a mesh have called, compared at run time: each writes a digest of every
/// operator that communicates to memory that the processes of its node can read
/// (comm/detail/trail.hpp), and reads its neighbours' digests. The later of two neighbours finds
/// the other's digest there, so that nobody waits.
///
///     history.write(digest, words, numbers, [&] { return "sum ij->j of float 6x6"; });
///     if (history.differs()) throw MismatchError(history.difference());
///
/// Laws: when two processes of a node call different operators, one of them finds it, at the latest
/// when the second calls; a process more than Trail::length operators behind is not compared.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/comm/detail/agreement.hpp>
#include <tessera/comm/detail/mix.hpp>
#include <tessera/comm/transport.hpp>

namespace tessera::detail {

/// The digests of an operator that a process is about to run.
struct OperatorMark {
  std::uint64_t call = 0;      ///< the operator, its text, extents and shardings
  std::uint64_t operands = 0;  ///< the origins of its operands
  std::uint64_t numbers = 0;   ///< of its first operands, 16 bits each
  std::uint64_t digest() const { return mix(call, operands); }
};

class MeshHistory {
 public:
  /// Communication: one all-reduce of an integer over `control`. Collective over: all processes of
  /// the transport.
  void open(Transport& transport, Group& control) {
    board_ = transport.blackboard();
    if (board_ == nullptr) return;
    process_ = transport.process();
    seat_ = transport.seat();
    for (int p = 0; p < transport.size(); ++p) seats_.push_back(transport.seat_of(p));
    const std::vector<int> nodes = nodes_of(transport);
    std::vector<int> here;
    std::size_t own = 0;
    for (int p = 0; p < transport.size(); ++p) {
      const auto at = static_cast<std::size_t>(p);
      if (board_->slot(seats_[at]) < 0) continue;
      if (!nodes.empty() && nodes[at] != nodes[static_cast<std::size_t>(process_)]) continue;
      if (p == process_) own = here.size();
      here.push_back(p);
    }
    spans_nodes_ = static_cast<int>(here.size()) < transport.size();
    if (here.size() > 1) neighbours_.push_back(here[(own + 1) % here.size()]);
    if (here.size() > 2) neighbours_.push_back(here[(own + here.size() - 1) % here.size()]);
    place_.mesh = board_->last_mesh(seat_) + 1;
    auto complement = static_cast<std::int64_t>(~place_.mesh);
    control.run(control_all_reduce(control, Reduction::min, 1), &complement, &complement);
    place_.mesh = board_->last_mesh(seat_) = ~static_cast<std::uint64_t>(complement);
    mark_members(transport, place_);
  }
  /// Sets the bits of a transport's processes.
  static void mark_members(const Transport& transport, CallPlace& place) {
    Blackboard* board = const_cast<Transport&>(transport).blackboard();
    for (int p = 0; board != nullptr && p < transport.size(); ++p) {
      const int slot = board->slot(transport.seat_of(p));
      if (slot >= 128) {
        place.members[0] = place.members[1] = 0;
        return;
      }
      if (slot >= 0) place.members[slot / 64] |= std::uint64_t{1} << slot % 64;
    }
  }
  bool on() const { return place_.mesh != 0; }
  bool spans_nodes() const { return spans_nodes_; }
  const CallPlace& place() const { return place_; }

  /// Records an operator. `text` stands for its words, which make() returns.
  template <class Make> void write(const OperatorMark& mark, std::uint64_t text, const Make& make) {
    ++place_.ordinal;
    digest_ = mix(digest_, mark.digest());
    board_->trail(seat_).write({place_.mesh, place_.ordinal, digest_, text | 1, mark.numbers},
                               make);
  }

  /// Returns whether a neighbour is known to have called a different operator in this place, or
  /// before.
  bool differs() const {
    Called theirs;
    for (const int neighbour : neighbours_)
      if (find(neighbour, place_.ordinal, theirs) && theirs.digest != digest_) return true;
    return false;
  }
  /// Returns both calls in words, for the first that differ and are still recorded.
  std::string difference() const {
    for (const int neighbour : neighbours_) {
      Called own, theirs;
      if (!find(neighbour, place_.ordinal, theirs) || theirs.digest == digest_) continue;
      std::uint64_t first = place_.ordinal;
      while (first > 1 && find(process_, first - 1, own) && find(neighbour, first - 1, theirs) &&
             own.digest != theirs.digest)
        --first;
      if (find(process_, first, own) && find(neighbour, first, theirs))
        return both(own, neighbour, theirs);
    }
    return "another process calls something else";
  }
  /// Compares the last Trail::length operators of all processes. Communication: an all-reduce of
  /// two integers over `control`. Collective over: all processes of the mesh. Throws MismatchError
  /// on all of them, for the first operator that differs.
  void compare_nodes(Group& control) const {
    std::vector<std::int64_t> own;
    for (std::uint64_t back = Trail::length; back-- > 0;) {
      Called one;
      const bool there = place_.ordinal > back && find(process_, place_.ordinal - back, one);
      own.push_back(there ? static_cast<std::int64_t>(one.digest) : 0);
    }
    if (all_equal(control, digest_)) return;
    const std::vector<std::int64_t> all = gather_integers(control, own, own.size());
    std::size_t first = own.size() - 1;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i] != all[i % own.size()] && i % own.size() < first) first = i % own.size();
    Called one;
    const std::uint64_t ordinal = place_.ordinal - (own.size() - 1 - first);
    report_disagreement(
        control, static_cast<std::uint64_t>(own[first]),
        find(process_, ordinal, one) ? words(process_, one) : "an operator that is not known", {});
  }

 private:
  bool find(int process, std::uint64_t ordinal, Called& called) const {
    return board_->trail(seats_[static_cast<std::size_t>(process)])
        .find(place_.mesh, ordinal, called);
  }
  std::string words(int process, const Called& called) const {
    const std::string text =
        board_->trail(seats_[static_cast<std::size_t>(process)]).text(called.text);
    return text.empty() ? "an operator whose words are no longer known" : text;
  }
  static std::string numbers(const Called& called) {
    std::string text;
    for (int i = 0; i < 4; ++i)
      if (const std::uint64_t number = called.operands >> (16 * i) & 0xFFFF; number != 0)
        text += (text.empty() ? " " : ", ") + std::to_string(number);
    return text;
  }
  std::string both(const Called& own, int other, const Called& theirs) const {
    const std::string mine = words(process_, own);
    const std::string others = words(other, theirs);
    const auto call = [](const std::string& text) { return text.substr(0, text.rfind(" (at ")); };
    const bool alike = call(mine) == call(others);  // except for the operands
    const std::string_view why =
        own.operands == theirs.operands
            ? " (which were made by other operators, or with other numbers)"
            : " (each counts its own as they are made)";
    return "process " + std::to_string(process_) + " calls " + mine +
           (alike ? " with tensors" + numbers(own) : "") + ", but process " +
           std::to_string(other) + " calls " + others +
           (alike ? " with tensors" + numbers(theirs) + std::string(why) : "") +
           ", both as the mesh's communicating operator " + std::to_string(own.ordinal);
  }

  Blackboard* board_ = nullptr;
  int process_ = 0;
  int seat_ = 0;
  std::vector<int> seats_;
  std::vector<int> neighbours_;  ///< on this node: the next process of the mesh, the previous one
  bool spans_nodes_ = false;
  CallPlace place_;
  std::uint64_t digest_ = 0;
};

}  // namespace tessera::detail
