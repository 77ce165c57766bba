// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Checks the cases of a file that must not compile: the file without any case compiles (the
/// control), and each case gives an error with the text that its line `// CASE name: text` demands.
/// In a file with the line `// ERRORS each: 1` nothing follows it: each case gives one error, or as
/// many as `// ERRORS name: 2, since …` says. `// NOTE name: text` demands a text of the lines
/// around the error, as of the source that it shows.
///
///     check_cases SOURCE BATCH COMPILER ARGUMENTS…
///
/// Starting a compiler costs more than most cases, so all are compiled together first, with the
/// control: in BATCH, a copy of SOURCE, every branch of `#if defined(CASE_…)` is a block, or a
/// namespace where the branches are not within a function. An error is a case's
/// if it stands on the case's lines or in what was instantiated from there. Cases whose error is
/// not among them, since another case has had it or an error has hidden it, or that have more than
/// they say, are compiled together without the others, and so on; what no batch shows is compiled
/// by itself, and where an error is no case's, so is the control.
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <regex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <sys/wait.h>

namespace {

using Lines = std::vector<std::string>;

struct Case {
  std::string name;
  std::string says;
  std::vector<std::string> notes;
  Lines shown;            // the lines of its errors, in a batch
  int errors = 0;         // that it says it has (0: it does not say),
  int had = 0;            // and that it had among all
  std::size_t first = 0;  // its lines, counted from 1
  std::size_t last = 0;
  bool found = false;
  bool settled = false;  // a batch has shown all that is demanded
};

Lines read_lines(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  Lines lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

struct Answer {
  bool compiles;
  Lines lines;
};
Answer compile(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  std::string text;
  std::array<char, 4096> buffer{};
  for (std::size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    text.append(buffer.data(), n);
  const int status = pclose(pipe);
  Answer answer{WIFEXITED(status) && WEXITSTATUS(status) == 0, {}};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    answer.lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return answer;
}

/// Returns the text of an error, or nothing where the line is none.
std::string error_in(const std::string& line) {
  const std::size_t at = line.find("error: ");
  return at == std::string::npos ? "" : line.substr(at);
}

bool says(const Case& c, const std::string& error) {
  return !error.empty() && std::regex_search(error, std::regex("(" + c.says + ")"));
}

bool shows(const Lines& lines, const std::string& text) {
  const std::regex expression("(" + text + ")");
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return std::regex_search(line, expression); });
}

/// The cases of a source, and where its branches begin and end: lines counted from 0.
struct Source {
  Lines lines;
  std::vector<Case> cases;
  std::vector<std::pair<std::size_t, Case*>> branches;  // the control's is nullptr
  std::size_t end = 0;
  bool in_function = false;
};

void read_comments(const Lines& lines, std::vector<Case>& cases) {
  static const std::regex declared("^// CASE ([A-Za-z0-9_]+): *(.+)$");
  static const std::regex noted("^// NOTE ([A-Za-z0-9_]+): *(.+)$");
  static const std::regex counted("^// ERRORS ([A-Za-z0-9_]+): ([0-9]+), since .+$");
  std::smatch match;
  for (const std::string& line : lines)
    if (std::regex_match(line, match, declared)) {
      cases.emplace_back();
      cases.back().name = match[1];
      cases.back().says = match[2];
    }
  for (const std::string& line : lines) {
    if (line == "// ERRORS each: 1")
      for (Case& c : cases) c.errors = 1;
    const bool count = std::regex_match(line, match, counted);
    if (!count && !std::regex_match(line, match, noted)) continue;
    Case* of = nullptr;
    for (Case& c : cases)
      if (c.name == match[1]) of = &c;
    if (of == nullptr) throw std::runtime_error("there is no case for the line: " + line);
    if (count)
      of->errors = std::stoi(match[2]);
    else
      of->notes.push_back(match[2]);
  }
}

Source read_source(const std::string& path) {
  static const std::regex branch("^#(if|elif) defined\\(CASE_([A-Za-z0-9_]+)\\)$");
  Source source;
  source.lines = read_lines(path);
  read_comments(source.lines, source.cases);
  if (source.cases.empty()) throw std::runtime_error(path + " has no line `// CASE name: text`");
  Case* open = nullptr;
  std::smatch match;
  for (std::size_t i = 0; i < source.lines.size(); ++i) {
    const std::string& line = source.lines[i];
    const bool is_branch = std::regex_match(line, match, branch);
    if (!is_branch && line != "#else" && line != "#endif") continue;
    if (open != nullptr) open->last = i;  // the line before, counted from 1
    open = nullptr;
    if (line == "#endif") {
      source.end = i;
      continue;
    }
    if (is_branch) {
      const std::string name = match[2];
      for (Case& c : source.cases)
        if (c.name == name) open = &c;
      if (open == nullptr || open->first != 0)
        throw std::runtime_error("CASE_" + name + " has no line `// CASE " + name +
                                 ": …`, or two branches");
      open->first = i + 2;
      if (source.branches.empty() && i + 1 < source.lines.size())
        source.in_function = source.lines[i + 1].rfind("  ", 0) == 0;
    }
    source.branches.emplace_back(i, open);
  }
  for (const Case& c : source.cases)
    if (c.first == 0) throw std::runtime_error("case " + c.name + " has no branch");
  return source;
}

/// Returns the source with the branches of the cases that are not settled, all at once, and, in the
/// `first` batch, with the control. The control comes first: a compiler reports an error that two
/// branches share where it comes upon it, and the control has none.
Lines make_batch(const Source& source, bool first) {
  using Offset = Lines::difference_type;
  const auto begin = source.lines.begin();
  Lines lines(begin, begin + static_cast<Offset>(source.branches.front().first));
  const auto add = [&](std::size_t at, std::size_t end) {  // with the numbers they have
    lines.push_back("#line " + std::to_string(at + 1));
    lines.insert(lines.end(), begin + static_cast<Offset>(at), begin + static_cast<Offset>(end));
  };
  for (const bool controls : {true, false})
    for (std::size_t b = 0; b < source.branches.size(); ++b) {
      const auto& [at, of] = source.branches[b];
      const bool is_control = of == nullptr;
      if (is_control != controls || (is_control ? !first : of->settled)) continue;
      const std::string name = is_control ? "control" : "case_" + of->name;
      lines.push_back(source.in_function ? "{" : "namespace " + name + " {");
      add(at + 1, b + 1 < source.branches.size() ? source.branches[b + 1].first : source.end);
      lines.push_back("}");
    }
  add(source.end + 1, source.lines.size());
  return lines;
}

/// Settles the cases that show what they should among the errors of a batch. Returns whether each
/// error is one of theirs.
bool attribute(std::vector<Case>& cases, const std::string& path, const Lines& output) {
  const auto line_of = [&path](const std::string& line) -> std::size_t {
    if (line.rfind(path + ":", 0) != 0) return 0;
    const std::size_t at = path.size() + 1;
    return at < line.size() && line[at] >= '0' && line[at] <= '9' ? std::stoul(line.substr(at)) : 0;
  };
  bool theirs = true;
  Case* last = nullptr;  // whose error was the last
  const auto hold = [&](std::size_t line, const std::string& error) {
    bool found = false;
    for (Case& c : cases)
      if (c.first <= line && line <= c.last) {
        found = true;
        last = &c;
        ++c.had;
        c.found = c.found || says(c, error);
      }
    theirs = theirs && found;
  };
  std::size_t from = 0;  // g++ says before an error from where it came,
  std::string waiting;   // and clang after it
  static const std::regex gcc_context(
      "(In instantiation of|In substitution of|[Ii]n function|"
      "[Ii]n member function|[Aa]t global scope|In constructor)");
  for (const std::string& line : output) {
    const std::size_t here = line_of(line);
    const std::string error = error_in(line);
    if (!error.empty()) {
      theirs = theirs && waiting.empty();
      waiting.clear();
      last = nullptr;
      if (here != 0)
        hold(here, error);
      else if (from != 0)
        hold(from, error);
      else
        waiting = error;
    } else if (here != 0 && (line.find(" required ") != std::string::npos ||
                             line.find(" expansion of ") != std::string::npos)) {
      from = here;
    } else if (here != 0 && (line.find("note: in ") != std::string::npos ||
                             line.find("note: while ") != std::string::npos)) {
      if (!waiting.empty()) hold(here, std::exchange(waiting, {}));
    } else if (std::regex_search(line, gcc_context)) {
      from = 0;
    }
    if (last != nullptr) last->shown.push_back(line);
  }
  for (Case& c : cases) {
    c.settled =
        c.settled || (c.found && (c.errors == 0 || c.had == c.errors) &&
                      std::all_of(c.notes.begin(), c.notes.end(),
                                  [&c](const std::string& note) { return shows(c.shown, note); }));
    c.found = false;
    c.had = 0;
    c.shown.clear();
  }
  return theirs && waiting.empty();
}

int check(const std::vector<std::string>& words) {
  const std::string& source = words[0];
  const std::string& together = words[1];
  std::string compiler;
  for (std::size_t i = 2; i < words.size(); ++i) compiler += quoted(words[i]) + " ";

  Source text = read_source(source);
  std::vector<Case>& cases = text.cases;
  const auto left = [&cases] {
    return std::count_if(cases.begin(), cases.end(), [](const Case& c) { return !c.settled; });
  };
  int wrong = 0;
  int batches = 0;
  bool each_is_theirs = text.branches.back().second == nullptr;  // else there is no #else
  for (auto before = left() + 1; batches == 0 || (left() > 1 && left() < before); ++batches) {
    before = left();
    {
      std::ofstream out(together);
      for (const std::string& line : make_batch(text, batches == 0)) out << line << '\n';
    }
    const bool theirs = attribute(cases, together, compile(compiler + quoted(together)).lines);
    if (batches == 0) each_is_theirs = each_is_theirs && theirs;
  }
  const auto print = [](const Answer& answer) {
    for (const std::string& line : answer.lines) std::cout << "  " << line << '\n';
  };
  int alone = 0;
  for (const Case& c : cases) {
    if (c.settled) continue;
    ++alone;
    const Answer answer = compile(compiler + "-DCASE_" + c.name + " " + quoted(source));
    bool said = false;
    int errors = 0;
    for (const std::string& line : answer.lines) {
      said = said || says(c, error_in(line));
      errors += error_in(line).empty() ? 0 : 1;
    }
    bool noted = true;
    for (const std::string& note : c.notes) {
      const bool found = shows(answer.lines, note);
      if (!found) std::cout << "Case " << c.name << " does not show: " << note << '\n';
      noted = noted && found;
    }
    std::cout << "by itself: " << c.name << '\n';
    if (!answer.compiles && said && noted && (c.errors == 0 || errors == c.errors)) continue;
    ++wrong;
    if (!answer.compiles && said && c.errors != 0 && errors != c.errors) {
      std::cout << "Case " << c.name << " says what it should, in " << errors
                << " errors; it must have " << c.errors << ":\n";
      print(answer);
      continue;
    }
    std::cout << "Case " << c.name
              << (answer.compiles ? " compiles; it must not, and say: "
                                  : " does not compile, as it should, but does not say: ")
              << c.says << '\n';
    print(answer);
  }
  if (!each_is_theirs || wrong > 0)
    if (const Answer control = compile(compiler + quoted(source)); !control.compiles) {
      std::cout << "The control, which is the file without any case, does not compile:\n";
      print(control);
      ++wrong;
    }
  std::cout << cases.size() << " cases in " << batches << " batches, " << alone
            << " of them by themselves, " << wrong << " wrong\n";
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) throw std::runtime_error("check_cases SOURCE BATCH COMPILER ARGUMENTS…");
  return check({argv + 1, argv + argc});
} catch (const std::exception& e) {
  std::cerr << "check_cases: " << e.what() << '\n';
  return 1;
}
