// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Compares the calls of all members of a group: one all-reduce when they agree; when they do not,
/// the members exchange texts and every member throws.
///
///     if (!all_equal(group, digest)) report_disagreement(group, digest, "einsum ...", where);
///
/// Laws: either all members return or all throw.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/comm/transport.hpp>

namespace tessera::detail {

/// While it lives, the blackboard shows that this process is in a call.
class Publish {
 public:
  Publish(Blackboard* board, int process, const CallNote& note) : board_(board), process_(process) {
    if (board_ != nullptr) board_->enter(process_, note);
  }
  Publish(const Publish&) = delete;
  Publish& operator=(const Publish&) = delete;
  ~Publish() {
    if (board_ != nullptr) board_->leave(process_);
  }

 private:
  Blackboard* board_;
  int process_;
};

/// Collective over: the group. The maximum of n is the complement of the minimum of n's complement:
/// one call finds both.
inline bool all_equal(Group& group, std::uint64_t digest) {
  std::int64_t values[2] = {static_cast<std::int64_t>(digest), static_cast<std::int64_t>(~digest)};
  group.run(control_all_reduce(group, Reduction::min, 2), values, values);
  return values[0] == ~values[1];
}

/// Returns `count` integers from each member. Collective over: the group.
inline std::vector<std::int64_t> gather_integers(Group& group, const std::vector<std::int64_t>& own,
                                                 std::size_t count) {
  Call call;
  call.kind = Collective::all_gather;
  call.type = DType::i64;
  call.even = true;
  call.own = group.own();
  call.members = group.size();
  call.send = {{group.own(), 0, static_cast<Index>(count)}};
  for (int i = 0; i < group.size(); ++i)
    call.receive.push_back({i, static_cast<Index>(count) * i, static_cast<Index>(count)});
  std::vector<std::int64_t> all(count * static_cast<std::size_t>(group.size()));
  group.run(call, own.data(), all.data());
  return all;
}

/// Returns the text of a call and its place, cut to the length that a Trail keeps.
inline std::string placed(std::string text, Where where) {
  const std::string place = where.known() ? " (at " + to_string(where) + ")" : "";
  const std::size_t most = Trail::text_bytes - 1 - min_of(place.size(), Trail::text_bytes / 2);
  if (text.size() > most) text.resize(most);
  return text + place;
}

/// The rule and the way out, printed after two calls that differ.
inline constexpr std::string_view same_calls_text =
    "; all processes must call the same operators in the same order, with the same shapes and "
    "shardings: look for branches and sizes that depend on the process";

/// Throws MismatchError on each member; it names the member's own call and the call of the first
/// member that differs.
[[noreturn]] inline void report_disagreement(Group& group, std::uint64_t digest,
                                             const std::string& description, Where where) {
  constexpr std::size_t text_words = 96;  // 768 characters of description and place
  std::string text = description + (where.known() ? " (at " + to_string(where) + ")" : "");
  text.resize(text.size() < 8 * text_words ? text.size() : 8 * text_words - 1);
  std::vector<std::int64_t> own(1 + text_words);
  own[0] = static_cast<std::int64_t>(digest);
  std::memcpy(own.data() + 1, text.data(), text.size());
  const std::vector<std::int64_t> all = gather_integers(group, own, own.size());
  const auto record = [&](int member) {
    return all.data() + static_cast<std::size_t>(member) * own.size();
  };
  const auto text_of = [&](int member) {
    return std::string(reinterpret_cast<const char*>(record(member) + 1));
  };
  int other = 0;
  while (other < group.size() - 1 && record(other)[0] == own[0]) ++other;
  throw MismatchError("process " + std::to_string(group.own()) + " calls " + description +
                          ", but process " + std::to_string(other) + " calls " + text_of(other) +
                          std::string(same_calls_text),
                      where);
}

/// Returns the numbers given by `processes` processes, in the order of the processes in the mesh,
/// where the caller is `process`: the control group may number them differently.
inline std::vector<std::int64_t> gather_in_order(Group& control,
                                                 const std::vector<std::int64_t>& own, int process,
                                                 int processes) {
  std::vector<std::int64_t> mine = own;
  mine.push_back(process);
  const std::vector<std::int64_t> all = gather_integers(control, mine, mine.size());
  std::vector<std::int64_t> ordered(own.size() * static_cast<std::size_t>(processes));
  for (auto from = all.begin(); from != all.end(); from += static_cast<std::ptrdiff_t>(mine.size()))
    std::copy_n(from, own.size(),
                ordered.begin() + from[static_cast<std::ptrdiff_t>(own.size())] *
                                      static_cast<std::ptrdiff_t>(own.size()));
  return ordered;
}

}  // namespace tessera::detail
