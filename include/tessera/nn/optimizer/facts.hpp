// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The numbers by which an optimizer goes on, as facts of a checkpoint: texts that read as the same
/// numbers again.
///
///     const auto facts = detail::facts_of<std::map<std::string, std::string>>({.calls = 3});
///     detail::counts_of(facts, Where::here()).calls == 3
#include <charconv>
#include <string>
#include <system_error>

#include <tessera/base/error.hpp>
#include <tessera/base/math.hpp>

namespace tessera {

namespace detail {
/// What an optimizer's calls of step() came to.
struct StepCounts {
  Index calls = 0, updates = 0;
  double loss_scale = 1;       ///< of the loss of the next call
  double next_loss_scale = 1;  ///< as all calls leave it
  Index good_steps = 0;        ///< since the scale changed
};

/// Returns the shortest text that reads as the same number.
inline std::string shortest_text(double x) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, x).ptr);
}
/// Returns a fact as a number. Throws UsageError where it is none.
template <class T, class Facts> T number_of_fact(const Facts& facts, const char* key, Where where) {
  const auto said = facts.find(key);
  T value{};
  const std::string text = said == facts.end() ? "" : said->second;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || read.ec != std::errc{} || read.ptr != text.data() + text.size())
    throw UsageError("an optimizer is resumed from facts " +
                         (text.empty() ? "without " + std::string(key)
                                       : "whose " + std::string(key) + " is \"" + text + "\"") +
                         "; write what its facts() returns with its state",
                     where);
  return value;
}

/// Returns counts as facts, a map of texts.
template <class Facts> Facts facts_of(const StepCounts& counts) {
  return {{"optimizer.calls", std::to_string(counts.calls)},
          {"optimizer.updates", std::to_string(counts.updates)},
          {"optimizer.loss_scale", shortest_text(counts.loss_scale)},
          {"optimizer.next_loss_scale", shortest_text(counts.next_loss_scale)},
          {"optimizer.good_steps", std::to_string(counts.good_steps)}};
}
/// Returns the counts among facts. Throws UsageError where one is missing or is no number.
template <class Facts> StepCounts counts_of(const Facts& facts, Where where) {
  StepCounts made;
  made.calls = number_of_fact<Index>(facts, "optimizer.calls", where);
  made.updates = number_of_fact<Index>(facts, "optimizer.updates", where);
  made.loss_scale = number_of_fact<double>(facts, "optimizer.loss_scale", where);
  // Facts of earlier versions have one scale.
  const char* const next = "optimizer.next_loss_scale";
  made.next_loss_scale =
      facts.contains(next) ? number_of_fact<double>(facts, next, where) : made.loss_scale;
  made.good_steps = number_of_fact<Index>(facts, "optimizer.good_steps", where);
  return made;
}
}  // namespace detail

}  // namespace tessera
