// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// From the tokens that a model of anarcii writes for an antibody's chain to IMGT's numbers of its
/// residues, as the package's version 2.0.8 has them, with its rules for what is odd.
///
///     const std::vector<Id> source = source_tokens("EVQLVESGG...");            // empty: a letter is unknown
///     const Answer answer = numbered(source, tokens, scores);
///     answer.residues[0];                                          // {{1, ""}, 'E'}
///
/// Laws: an answer with an error has no residues; else its numbers go up, but for insertions, and 1
/// to 128 are among them, with '-' where there is no residue.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace number_antibodies {

using Id = std::int32_t;

namespace token {
inline constexpr Id padding = 0, begin = 1, end = 2, skip = 3, first_letter = 4, insertion = 132;
inline constexpr Id number(int n) { return n + 3; }
inline constexpr bool is_number(Id t) { return t >= number(1) && t <= number(128); }
inline constexpr int number_of(Id t) { return t - 3; }
inline std::string word(Id t) {
  if (is_number(t)) return std::to_string(number_of(t));
  static const std::string words[] = {"<PAD>", "<SOS>", "<EOS>", "<SKIP>"};
  return t < 4 ? words[t] : t == insertion ? "X" : t == 133 ? "H" : t == 134 ? "L" : "K";
}
}  // namespace token

inline constexpr std::string_view letters = "ACDEFGHIKLMNPQRSTVWXY";

/// Returns a sequence's tokens, between those that begin and end it; none where a letter, which is
/// large, is unknown.
inline std::vector<Id> source_tokens(std::string_view text) {
  std::vector<Id> ids{token::begin};
  for (const char c : text) {
    const bool rare = std::string_view("BJOUZ").find(c) != std::string_view::npos;
    const auto at = letters.find(rare ? 'X' : c);
    if (at == std::string_view::npos) return {};
    ids.push_back(token::first_letter + static_cast<Id>(at));
  }
  ids.push_back(token::end);
  return ids;
}

/// A place in IMGT's scheme: its number, and letters where residues are inserted.
struct Number {
  int number = 0;
  std::string insertion;
  auto operator<=>(const Number&) const = default;
};

/// What is said of a sequence. Residues that are numbered go from `start` to `end` in it.
struct Answer {
  std::vector<std::pair<Number, char>> residues;
  std::string chain = "F", error;
  double score = 0;
  long start = 0, end = 0;
};

inline const std::string too_few = "Less than 50 non insertion residues numbered.";

namespace detail {
/// Returns the letters of insertion i: A to Z, and then AA to ZZ.
inline std::string insertion_letters(long i) {
  const auto letter = static_cast<char>('A' + i % 26);
  return std::string(i % 52 < 26 ? 1 : 2, letter);
}
/// Appends the numbers of `count` residues between two numbers; in the middle of a loop the first
/// half counts up from its beginning, and the second down to its end. Returns whether there may be
/// insertions here.
inline bool insert_between(int from, int to, long count, std::vector<Number>& numbers) {
  const bool middle = from == 32 || from == 60 || from == 111;
  const bool loop =
      (from >= 27 && from <= 38) || (from >= 56 && from <= 65) || (from >= 105 && from <= 117);
  if (loop && !middle) return false;
  const long half = middle ? count / 2 : count;
  for (long i = 0; i < half; ++i) numbers.push_back({from, insertion_letters(i)});
  for (long i = half; i < count; ++i)
    numbers.push_back({to, insertion_letters(2 * half - i - (count % 2 == 0 ? 1 : 0))});
  return true;
}
/// Returns the mean of the scores that count, up to token `end`; 0 where there are too few.
inline double mean_score(const std::vector<Id>& tokens, const std::vector<float>& scores,
                         long end) {
  double sum = 0;
  long count = 0;
  for (long i = 0; i < end; ++i) {
    const Id t = tokens[static_cast<std::size_t>(i)];
    if (t == token::padding || t == token::begin || t == token::skip || t == token::insertion)
      continue;
    sum += static_cast<double>(scores[static_cast<std::size_t>(i)]);  // that of the next token
    ++count;
  }
  return count < 50 ? 0 : sum / static_cast<double>(count);
}

/// Numbers, and beside them residues, while they are read.
struct Reading {
  std::vector<Number> numbers;
  std::string residues, aside;  ///< aside: before the first number
  long start = -1, end = 0;     ///< 0: not known
  std::string error;
};

inline Reading read(const std::vector<Id>& source, const std::vector<Id>& tokens, long end) {
  Reading made;
  const auto refuse = [&](const std::string& why) {
    made.error = "Could not apply numbering: " + why;
    return made;
  };
  const auto no_number = [&](Id t) {
    return refuse("invalid literal for int() with base 10: '" + token::word(t) + "'");
  };
  long run = 0;  // of insertions
  for (long at = 2; at < end; ++at) {
    const Id t = tokens[static_cast<std::size_t>(at)];
    const Id from = source[static_cast<std::size_t>(at - 1)];
    if (from == token::end || (t == token::skip && made.start >= 0)) {
      made.end = at - 3;
      break;
    }
    const char residue = letters[static_cast<std::size_t>(from - token::first_letter)];
    if (t == token::skip) {
      made.aside += residue;
      continue;
    }
    if (t == token::insertion) {
      ++run;
    } else if (!token::is_number(t)) {
      return no_number(t);
    } else {
      if (run > 0) {
        const Id before = tokens[static_cast<std::size_t>(at - run - 1)];
        if (!token::is_number(before)) return no_number(before);
        if (!insert_between(token::number_of(before), token::number_of(t), run, made.numbers))
          return refuse("Forbidden cdr insertion predicted.");
        run = 0;
      }
      made.numbers.push_back({token::number_of(t), ""});
    }
    made.residues += residue;
    if (made.start < 0) made.start = at - 2;
  }
  if (made.end == 0) made.end = end - 3;
  if (std::set<Number>(made.numbers.begin(), made.numbers.end()).size() != made.numbers.size())
    made.error = "Model predicted duplicate numbers";
  else if (made.numbers.empty())
    refuse("list index out of range");
  return made;
}

/// Where the numbers end late in a chain, but before its residues, they go on to its last one.
inline void go_on(Reading& made, const std::vector<Id>& source, const std::vector<Id>& tokens,
                  long end, int last) {
  const auto source_end = static_cast<long>(source.size()) - 1;
  const Id final = tokens[static_cast<std::size_t>(end - 1)];
  const int reached = token::is_number(final) ? token::number_of(final) : last;
  if (end - 1 >= source_end || reached == last || reached <= 119) return;
  for (long i = 0; i < std::min<long>(last - reached, source_end + 1 - end); ++i) {
    made.numbers.push_back({reached + 1 + static_cast<int>(i), ""});
    const Id id = source[static_cast<std::size_t>(end + i - 1)];
    made.residues += letters[static_cast<std::size_t>(id - token::first_letter)];
    ++made.end;
  }
}
/// Residues aside get the numbers before the first one, where it is 2 to 8.
inline void take_aside(Reading& made) {
  const int first = made.numbers.front().number;
  if (first < 2 || first > 8) return;
  const int taken = std::min(first - 1, static_cast<int>(made.aside.size()));
  for (int n = first - 1; n >= first - taken; --n)
    made.numbers.insert(made.numbers.begin(), {n, ""});
  made.residues.insert(0, made.aside.substr(made.aside.size() - static_cast<std::size_t>(taken)));
  made.start -= taken;
}
/// Returns residues with their numbers, and '-' at those of 1 to 128 that are left out. Residues
/// that got no number before they ended take those that follow.
inline std::vector<std::pair<Number, char>> filled(const Reading& made) {
  std::vector<std::pair<Number, char>> all;
  auto residue = made.residues.begin();
  const auto take = [&] { return residue == made.residues.end() ? '-' : *residue++; };
  for (const Number& number : made.numbers) {
    for (int n = all.empty() ? 1 : all.back().first.number + 1; n < number.number; ++n)
      all.push_back({{n, ""}, '-'});
    all.push_back({number, take()});
  }
  for (int n = all.back().first.number + 1; n <= 128; ++n) all.push_back({{n, ""}, take()});
  return all;
}
}  // namespace detail

/// Returns the answer for a source by the tokens that the model wrote, each the likeliest after
/// those before it, from token::begin on, and the score of each token's follower; as many of them
/// as the source has tokens, or up to token::end.
inline Answer numbered(const std::vector<Id>& source, const std::vector<Id>& tokens,
                       const std::vector<float>& scores) {
  const auto ended = std::find(tokens.begin(), tokens.end(), token::end) - tokens.begin();
  const long end = std::min<long>(ended, static_cast<long>(source.size()));
  Answer answer;
  answer.score = detail::mean_score(tokens, scores, end);
  if (answer.score < 15) {
    answer.error = answer.score == 0 ? too_few : "Score less than cut off.";
    return answer;
  }
  detail::Reading made = detail::read(source, tokens, end);
  if (!made.error.empty()) {
    answer.error = made.error;
    return answer;
  }
  answer.chain = token::word(tokens[1]);
  detail::go_on(made, source, tokens, end, answer.chain == "H" ? 128 : 127);
  detail::take_aside(made);
  answer.residues = detail::filled(made);
  answer.start = made.start;
  answer.end = made.end;
  return answer;
}

}  // namespace number_antibodies
