// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The schedule of a pipeline: for each part of a mesh, the list of what it does with which stage
/// and which micro-batch. program/pipeline/schedules.hpp makes the known ones.
///
///     const PipelineSchedule s = parse_schedule("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1", {0, 1});
///     s.stages() == 2;   s.micro_batches == 2;
///     to_string(s.lists[1][1])                       // "1B0": stage 1 goes back by micro-batch 0
///
/// A stage goes back at once (B), or by its inputs first (I), on which the stage before it waits,
/// and by its weights (W) when there is time. Source of the notation: PyTorch's pipeline schedules.
///
/// Laws: parse_schedule(to_string(s), s.part_of) == s.
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>

namespace tessera {

/// What a stage does with a micro-batch. `backward` is both of the two after it, in this order.
enum class PipelinePass : std::uint8_t { forward, backward, backward_inputs, backward_weights };

/// Returns F, B, I or W.
constexpr char letter_of(PipelinePass pass) { return "FBIW"[static_cast<std::size_t>(pass)]; }

struct PipelineAction {
  PipelinePass pass = PipelinePass::forward;
  int stage = 0;
  int micro_batch = 0;
  constexpr bool operator==(const PipelineAction&) const = default;
};

/// Returns "1F0": stage 1, forward, micro-batch 0.
inline std::string to_string(const PipelineAction& a) {
  return std::to_string(a.stage) + letter_of(a.pass) + std::to_string(a.micro_batch);
}

struct PipelineSchedule {
  std::string name;
  int micro_batches = 0;
  std::vector<int> part_of;                        ///< the part of each stage
  std::vector<std::vector<PipelineAction>> lists;  ///< the list of each part, in order

  int stages() const { return static_cast<int>(part_of.size()); }
  int parts() const { return static_cast<int>(lists.size()); }
  int part(int stage) const { return part_of[static_cast<std::size_t>(stage)]; }
  /// Returns whether some stage goes back; an evaluation goes forward alone.
  bool goes_back() const {
    for (const std::vector<PipelineAction>& list : lists)
      for (const PipelineAction& a : list)
        if (a.pass != PipelinePass::forward) return true;
    return false;
  }
  bool operator==(const PipelineSchedule& other) const {
    return micro_batches == other.micro_batches && part_of == other.part_of && lists == other.lists;
  }
};

/// Returns a schedule's way forward alone, for an evaluation.
inline PipelineSchedule forward_alone(const PipelineSchedule& s) {
  PipelineSchedule forward{s.name + ", forward alone", s.micro_batches, s.part_of, {}};
  for (const std::vector<PipelineAction>& list : s.lists) {
    forward.lists.emplace_back();
    for (const PipelineAction& a : list)
      if (a.pass == PipelinePass::forward) forward.lists.back().push_back(a);
  }
  return forward;
}

/// Returns a line for each part, of its actions with commas between them.
inline std::string to_string(const PipelineSchedule& s) {
  std::string text;
  for (const std::vector<PipelineAction>& list : s.lists) {
    for (std::size_t i = 0; i < list.size(); ++i) text += (i > 0 ? "," : "") + to_string(list[i]);
    text += "\n";
  }
  return text;
}

namespace detail {
/// Reads a number that begins at `at`; -1 where there is none.
inline int read_number(std::string_view text, std::size_t& at) {
  const std::size_t begin = at;
  int number = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9' && number < 100'000'000)
    number = 10 * number + (text[at++] - '0');
  return at == begin ? -1 : number;
}
}  // namespace detail

/// Returns the schedule of a text: a line for each part, of actions such as 2F0 (stage, pass,
/// micro-batch) with commas or spaces between them; `part_of` names the part of each stage. Throws
/// UsageError for a word that is no action. Whether a schedule can be carried out, check_schedule
/// says (program/pipeline/check.hpp).
inline PipelineSchedule parse_schedule(std::string_view text, std::vector<int> part_of,
                                       Where where = Where::here()) {
  PipelineSchedule s{"of a table", 0, std::move(part_of), {}};
  std::size_t at = 0;
  bool in_line = false;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '\n') in_line = false;
    if (c == ',' || std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    const int stage = detail::read_number(text, at);
    const std::size_t pass =
        at < text.size() ? std::string_view("FBIW").find(text[at]) : std::string_view::npos;
    ++at;
    const int micro_batch =
        stage < 0 || pass == std::string_view::npos ? -1 : detail::read_number(text, at);
    const bool ends = at >= text.size() || text[at] == ',' ||
                      std::isspace(static_cast<unsigned char>(text[at])) != 0;
    if (micro_batch < 0 || !ends) {
      std::size_t end = begin;
      while (end < text.size() && text[end] != ',' && text[end] != '\n' && text[end] != ' ') ++end;
      throw UsageError(
          "a schedule has the word \"" + std::string(text.substr(begin, end - begin)) +
              "\", and its words are a stage, one of F, B, I, W, and a micro-batch, as "
              "in 2F0; write it so",
          where);
    }
    if (!in_line) s.lists.emplace_back();
    in_line = true;
    s.lists.back().push_back({static_cast<PipelinePass>(pass), stage, micro_batch});
    if (micro_batch >= s.micro_batches) s.micro_batches = micro_batch + 1;
  }
  return s;
}

}  // namespace tessera
