// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Where each process writes what it is doing, in memory that the others of its node can read: when
/// a process never comes, one of them can report what everybody did last. comm/watchdog.hpp decides
/// when.
///
///     board.enter(process, {"einsum", Where::here(), "all-gather", "model"});
///     board.leave(process);   board.report();       // one line a process
///
/// Laws: writing never waits; a reader sees what was written once the writer is quiet.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/base/where.hpp>
#include <tessera/comm/detail/trail.hpp>

namespace tessera::detail {

/// The operator of a mesh that a call belongs to (comm/detail/mesh_history.hpp), and the mesh's
/// records on the board.
struct CallPlace {
  std::uint64_t mesh = 0;  ///< 0: no known mesh
  std::uint64_t ordinal = 0;
  std::uint64_t members[2] = {};  ///< a bit for each record; 0 when there are too many
};

/// What a process says about a call as it begins.
struct CallNote {
  std::string_view label;  ///< the operator, e.g. einsum "ik,kj->ij"
  Where where;             ///< of the user's call
  std::string_view kind;   ///< e.g. all-gather
  std::string_view over;   ///< names of the group's axes
  CallPlace place = {};
};

inline std::int64_t steady_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

enum class Activity : std::uint32_t { none, waits, left, ended };

/// The plain data of a record.
struct CallState {
  std::int64_t time = 0;  ///< steady clock, the same for all processes of a node
  std::uint64_t calls = 0;
  Activity activity = Activity::none;
  std::int32_t line = 0;
  CallPlace place;
  char label[96] = {};
  char file[48] = {};
  char kind[24] = {};
  char over[48] = {};
  char layer[64] = {};  ///< the path of the open layers
};
inline constexpr int state_words = static_cast<int>(sizeof(CallState) / 8);
static_assert(sizeof(CallState) == 8 * state_words);
inline constexpr int number_words = static_cast<int>(offsetof(CallState, label) / 8);

/// A record that may lie in memory shared by processes: words are atomic and hold no addresses. All
/// zero is a valid start.
struct alignas(64) CallRecord {
  std::atomic<std::uint64_t> version;  ///< odd while being written
  std::atomic<std::uint64_t> words[state_words];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// The start of a blackboard's memory.
struct alignas(64) BlackboardHead {
  std::atomic<std::uint64_t> reported;  ///< not 0 once a process of the node prints the report
  std::atomic<std::int64_t> noticed;    ///< when a process has last told that others are late
};

/// Copies the text; returns true when `to` held another one.
template <std::size_t N> bool copy_text(char (&to)[N], std::string_view from) {
  const std::size_t count = from.size() < N - 1 ? from.size() : N - 1;
  if (std::memcmp(to, from.data(), count) == 0 && to[count] == 0) return false;
  std::memcpy(to, from.data(), count);
  std::memset(to + count, 0, N - count);
  return true;
}

class Blackboard {
 public:
  /// Returns how many bytes of zeroed memory `records` records take.
  static constexpr std::size_t bytes_for(int records) {
    return sizeof(detail::BlackboardHead) + static_cast<std::size_t>(records) * bytes_of_one;
  }

  /// `slot[r]` is the record of process r in `memory`, or -1 when it is on another node; the
  /// processes of this node have records 0, 1, ... in some order.
  Blackboard(void* memory, std::vector<int> slot)
      : head_(static_cast<detail::BlackboardHead*>(memory)),
        records_(reinterpret_cast<detail::CallRecord*>(static_cast<char*>(memory) +
                                                       sizeof(detail::BlackboardHead))),
        trails_(reinterpret_cast<detail::Trail*>(
            records_ + std::count_if(slot.begin(), slot.end(), [](int at) { return at >= 0; }))),
        slot_(std::move(slot)),
        written_(slot_.size()),
        meshes_(slot_.size(), 1) {}

  int size() const { return static_cast<int>(slot_.size()); }
  /// Returns the index of a process's record, or -1 when the process is on another node.
  int slot(int process) const { return slot_[static_cast<std::size_t>(process)]; }
  /// The operators that a process has begun. Only that process writes there.
  detail::Trail& trail(int process) { return trails_[slot(process)]; }
  const detail::Trail& trail(int process) const { return trails_[slot(process)]; }
  /// Returns the greatest number of any mesh that this process has had.
  std::uint64_t& last_mesh(int process) { return meshes_[static_cast<std::size_t>(process)]; }

  /// Process `process` begins a call. Only that process writes its record.
  void enter(int process, const CallNote& note) {
    detail::CallState& state = written_[static_cast<std::size_t>(process)];
    state.time = detail::steady_nanoseconds();
    ++state.calls;
    state.activity = detail::Activity::waits;
    state.line = note.where.line;
    state.place = note.place;
    std::string_view file = note.where.file;
    if (const auto slash = file.rfind('/'); slash != std::string_view::npos)
      file.remove_prefix(slash + 1);
    bool texts = detail::copy_text(state.label, note.label);
    texts = detail::copy_text(state.file, file) || texts;
    texts = detail::copy_text(state.kind, note.kind) || texts;
    texts = detail::copy_text(state.over, note.over) || texts;
    write(process, texts ? detail::state_words : detail::number_words);
  }
  /// The process is within the layers of this path from now on.
  void layer(int process, std::string_view path) {
    detail::CallState& state = written_[static_cast<std::size_t>(process)];
    if (path.size() >= sizeof state.layer) path.remove_prefix(path.size() - sizeof state.layer + 1);
    if (detail::copy_text(state.layer, path)) write(process, detail::state_words);
  }
  /// Ends the call in progress.
  void leave(int process) { mark(process, detail::Activity::left); }
  /// The process will make no further call.
  void end(int process) { mark(process, detail::Activity::ended); }

  /// Returns true for the first process of the node that asks: it prints the report.
  bool claim_report() { return head_->reported.exchange(1) == 0; }
  /// Returns true unless a process of the node has told within `apart` nanoseconds that others are
  /// late.
  bool claim_notice(std::int64_t apart) {
    const std::int64_t now = detail::steady_nanoseconds();
    std::int64_t last = head_->noticed.load();
    return (last == 0 || now - last >= apart) && head_->noticed.compare_exchange_strong(last, now);
  }

  /// Returns e.g. `waits in all-gather over model for einsum (at ffn.cpp:12), call 7, for 2.0 s`.
  std::string describe(int process) const {
    if (slot_[static_cast<std::size_t>(process)] < 0) return "unknown (another node)";
    const detail::CallState state = read(process);
    if (state.activity == detail::Activity::none) return "has made no call yet";
    if (state.calls == 0) return "has ended without any call";
    char ago[32];
    std::snprintf(ago, sizeof ago, "%.1f s",
                  1e-9 * static_cast<double>(detail::steady_nanoseconds() - state.time));
    std::string text = state.kind;
    if (state.over[0] != '\0') text += std::string(" over ") + state.over;
    if (state.label[0] != '\0') text += std::string(" for ") + state.label;
    if (state.line > 0)
      text += std::string(" (at ") + state.file + ":" + std::to_string(state.line) + ")";
    if (state.layer[0] != '\0') text += std::string(" in layer \"") + state.layer + "\"";
    text += ", call " + std::to_string(state.calls);
    detail::Called called;
    if (state.place.mesh != 0 && trail(process).find(state.place.mesh, state.place.ordinal, called))
      if (const std::string words = trail(process).text(called.text); !words.empty())
        text += " [operator " + std::to_string(called.ordinal) + ": " + words + "]";
    if (state.activity == detail::Activity::waits) return "waits in " + text + ", for " + ago;
    if (state.activity == detail::Activity::ended) return "has ended; its last call was " + text;
    return "left " + text + ", " + ago + " ago, and has not called since";
  }

  /// Returns a line for each process.
  std::string report() const {
    std::string text;
    for (int process = 0; process < size(); ++process)
      text += "\n  process " + std::to_string(process) + ": " + describe(process);
    return text;
  }

  /// Returns what a process said last.
  detail::CallState read(int process) const {
    const detail::CallRecord& from = record(process);
    std::uint64_t words[detail::state_words];
    for (int attempt = 0; attempt < 100; ++attempt) {
      const std::uint64_t version = from.version.load(std::memory_order_acquire);
      for (int i = 0; i < detail::state_words; ++i)
        words[i] = from.words[i].load(std::memory_order_acquire);
      if (version % 2 == 0 && from.version.load(std::memory_order_acquire) == version) break;
    }
    detail::CallState state;
    std::memcpy(static_cast<void*>(&state), words, sizeof state);
    return state;
  }

 private:
  static constexpr std::size_t bytes_of_one = sizeof(detail::CallRecord) + sizeof(detail::Trail);

  detail::CallRecord& record(int process) const {
    return records_[slot_[static_cast<std::size_t>(process)]];
  }

  void mark(int process, detail::Activity activity) {
    detail::CallState& state = written_[static_cast<std::size_t>(process)];
    state.time = detail::steady_nanoseconds();
    state.activity = activity;
    write(process, detail::number_words);
  }

  /// Writes the first `count` words of what the process said last; its texts rarely change.
  void write(int process, int count) {
    detail::CallRecord& to = record(process);
    std::uint64_t words[detail::state_words];
    std::memcpy(words, &written_[static_cast<std::size_t>(process)],
                static_cast<std::size_t>(count) * sizeof words[0]);
    const std::uint64_t version = to.version.load(std::memory_order_relaxed);
    to.version.store(version + 1, std::memory_order_relaxed);
    for (int i = 0; i < count; ++i) to.words[i].store(words[i], std::memory_order_release);
    to.version.store(version + 2, std::memory_order_release);
  }

  detail::BlackboardHead* head_;
  detail::CallRecord* records_;
  detail::Trail* trails_;  ///< after the records
  std::vector<int> slot_;
  std::vector<detail::CallState> written_;  ///< by the processes that write through this object
  std::vector<std::uint64_t> meshes_;       ///< of those processes
};
}  // namespace tessera::detail
