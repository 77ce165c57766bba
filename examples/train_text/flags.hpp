// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What the user asks for on the command line.
///
///     Flags flags = read_flags({"--mesh", "2x2", "--steps=100"});
///
/// Laws: a flag that does not exist or a value that makes no sense is a UsageError that names it.
#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model.hpp"

namespace train_text {

inline constexpr const char* usage =
    R"(Trains a next-character model on text, split over a mesh of processes.

  mpiexec -n 4 train_text [--flag VALUE]...

  --text FILE|FOLDER  what to learn from (/usr/share/common-licenses); a part is held out
  --mesh DxM          processes that split the batch x processes that split the model (near square)
  --context N         characters the model sees (12)      --embed N   width of the model (128)
  --hidden N          width of its hidden layers (512)    --layers N  feed-forward layers (2)
  --batch N           characters predicted a step (512)   --steps N   (1500)
  --lr X              largest learning rate (0.002)       --decay X   of the weights (0.05)
  --sample N          characters to write at the end (300)
  --seed N            (1)
  --double            compute in double precision
  --compiled          list the operators of a step first, and run them together
  --trace FILE        write when what ran in the last three steps, for ui.perfetto.dev
  --dry               print the plan only, for a mesh of any size, on one process
  --help              print this
)";

struct Flags {
  std::string text = "/usr/share/common-licenses", trace;
  int data = 0, model = 0;  ///< 0: as the processes allow
  Sizes sizes;
  Index steps = 1500, sample = 300;
  std::uint64_t seed = 1;
  double rate = 2e-3, decay = 0.05;
  bool in_double = false, compiled = false, dry = false, help = false;
};

namespace detail {
/// Reads all of text as a number from `least` to 1e9; returns whether it is one.
template <class N> bool parse(std::string_view text, N least, N& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end && value >= least && value <= N(1e9);
}
[[noreturn]] inline void refuse(const std::string& flag, std::string_view text,
                                const char* wanted) {
  throw UsageError(flag + " is given \"" + std::string(text) + "\"; give " + wanted);
}
template <class N>
N number(const std::string& flag, std::string_view text, N least, const char* wanted) {
  N value{};
  if (!parse(text, least, value)) refuse(flag, text, wanted);
  return value;
}
inline Index whole(const std::string& flag, std::string_view text) {
  return number<Index>(flag, text, 0, "a whole number from 0 to 1000000000");
}
inline double positive(const std::string& flag, std::string_view text) {
  return number(flag, text, 1e-12, "a positive number");
}
inline Index count(const std::string& flag, std::string_view text) {
  return number<Index>(flag, text, 1, "a whole number from 1 to 1000000000");
}
inline void read_mesh(const std::string& flag, std::string_view text, Flags& flags) {
  const auto x = text.find('x');
  if (x == text.npos || !parse(text.substr(0, x), 1, flags.data) ||
      !parse(text.substr(x + 1), 1, flags.model))
    refuse(flag, text, "two whole numbers with an x between them, as in 2x4");
}
}  // namespace detail

inline Flags read_flags(const std::vector<std::string>& words) {
  Flags flags;
  Sizes& n = flags.sizes;
  using Name = const std::string&;
  using Value = const std::string&;
  const std::map<std::string, bool*> switches{{"--double", &flags.in_double},
                                              {"--compiled", &flags.compiled},
                                              {"--dry", &flags.dry},
                                              {"--help", &flags.help}};
  const std::map<std::string, Index*> counts{{"--context", &n.context}, {"--embed", &n.embed},
                                             {"--hidden", &n.hidden},   {"--layers", &n.layers},
                                             {"--batch", &n.batch},     {"--steps", &flags.steps}};
  const std::map<std::string, std::function<void(Name, Value)>> others{
      {"--text", [&](Name, Value v) { flags.text = v; }},
      {"--trace", [&](Name, Value v) { flags.trace = v; }},
      {"--mesh", [&](Name f, Value v) { detail::read_mesh(f, v, flags); }},
      {"--sample", [&](Name f, Value v) { flags.sample = detail::whole(f, v); }},
      {"--seed",
       [&](Name f, Value v) { flags.seed = static_cast<std::uint64_t>(detail::whole(f, v)); }},
      {"--lr", [&](Name f, Value v) { flags.rate = detail::positive(f, v); }},
      {"--decay",
       [&](Name f, Value v) { flags.decay = detail::number(f, v, 0.0, "a number from 0"); }}};

  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto equals = words[i].find('=');
    const std::string flag = words[i].substr(0, equals);
    if (const auto it = switches.find(words[i]); it != switches.end()) {
      *it->second = true;
      continue;
    }
    if (!counts.contains(flag) && !others.contains(flag))
      throw UsageError("there is no flag " + words[i] + "; --help lists all");
    if (equals == std::string::npos && i + 1 == words.size())
      throw UsageError(flag + " stands last, without its value; --help says what it takes");
    const std::string value =
        equals == std::string::npos ? words[++i] : words[i].substr(equals + 1);
    if (counts.contains(flag))
      *counts.at(flag) = detail::count(flag, value);
    else
      others.at(flag)(flag, value);
  }
  return flags;
}

/// Chooses the mesh where the user did not, and refuses one that the processes cannot fill.
inline void fit_mesh(Flags& flags, int processes) {
  if (flags.data == 0) {
    for (int d = 1; d * d <= processes; ++d)
      if (processes % d == 0) flags.model = d;
    flags.data = processes / flags.model;
  }
  const Index wanted = static_cast<Index>(flags.data) * flags.model;
  const std::string mesh = std::to_string(flags.data) + "x" + std::to_string(flags.model);
  if (flags.dry && wanted > 65536)
    throw UsageError("--mesh " + mesh + " has " + std::to_string(wanted) +
                     " processes; a dry run may have 65536");
  if (!flags.dry && wanted != processes)
    throw UsageError("--mesh " + mesh + " takes " + std::to_string(wanted) +
                     " processes and there are " + std::to_string(processes) +
                     "; start as many (mpiexec -n " + std::to_string(wanted) +
                     "), or name another mesh; --dry plans any mesh without them");
}

}  // namespace train_text
