// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Turns the example at the head of each header into a test that runs it.
///
///     extract CONTEXTS OUT ROOT HEADER...
///
/// An example is the first indented block of the comment that a header opens with. What stands at
/// the level of a namespace (namespaces, templates, structs, a main) is put there, the rest into a
/// function; an expression that compares with ==, <=, >= or !=, or calls allclose, becomes a CHECK.
/// CONTEXTS holds what examples take for granted: what comes before the first section is put at the
/// top, and a section `//// comm/arena.hpp` before that header's example. After the name may stand
/// `compiled only` (the example is not run), `on 4 processes` (it is run on a loopback of so many,
/// with `transport` at hand) `declarations` (it is no function's inside) or `outline` (it is for
/// the reader's eyes alone). A header without an example, and a section without a header, are
/// errors.
///
/// A document, such as README.md, is handled in the same way: its blocks of C++ are one example.
/// Its `using` declarations and functions stand in the namespace too. A block with a main is a
/// program by itself, which is compiled alone and not run.
#include <cctype>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Line {
  int number = 0;
  std::string text;
};
struct Context {
  std::string mode;
  std::vector<Line> lines;
  bool used = false;
};

[[noreturn]] void fail(const std::string& text) {
  std::cerr << text << "\n";
  std::exit(1);
}

std::vector<Line> lines_of(const std::string& path) {
  std::ifstream in(path);
  if (!in) fail(path + " cannot be read");
  std::vector<Line> lines;
  for (std::string text; std::getline(in, text);)
    lines.push_back({static_cast<int>(lines.size()) + 1, text});
  return lines;
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

/// The C++ of a document: its programs, and all other blocks as one example.
struct Blocks {
  std::vector<std::vector<Line>> programs;
  std::vector<Line> example;
};

Blocks blocks_of(const std::vector<Line>& lines) {
  Blocks blocks;
  std::vector<Line> block;
  bool inside = false, program = false;
  for (const Line& line : lines) {
    if (line.text.rfind("```", 0) != 0) {
      if (inside) block.push_back(line);
      program = program || (inside && line.text.rfind("int main(", 0) == 0);
      continue;
    }
    if (program)
      blocks.programs.push_back(block);
    else
      blocks.example.insert(blocks.example.end(), block.begin(), block.end());
    block.clear();
    program = false;
    inside = !inside && line.text == "```cpp";
  }
  return blocks;
}

/// Returns the first indented block of the opening comment, without the comment's own marks.
std::vector<Line> example_of(const std::vector<Line>& lines) {
  const std::string mark = "///     ";
  std::vector<Line> example;
  for (const Line& line : lines) {
    if (line.text.rfind("#include", 0) == 0) break;
    if (line.text.rfind(mark, 0) == 0)
      example.push_back({line.number, line.text.substr(mark.size())});
    else if (!example.empty())
      break;
  }
  return example;
}

bool starts_with_any(const std::string& text, std::initializer_list<const char*> words) {
  for (const std::string word : words)
    if (text.rfind(word, 0) == 0 &&
        (text.size() == word.size() ||
         (std::isalnum(static_cast<unsigned char>(text[word.size()])) == 0 &&
          text[word.size()] != '_')))
      return true;
  return false;
}

/// Returns whether a function is defined: its type and name, parameters, and a brace.
bool defines_function(const std::string& text) {
  const std::string head = trimmed(text.substr(0, text.find('{')));
  const auto parameters = head.find('(');
  return parameters != std::string::npos && head.back() == ')' &&
         !starts_with_any(head, {"for", "if", "while", "switch", "return", "auto", "const"}) &&
         head.substr(0, parameters).find_first_of("=.") == std::string::npos &&
         head.substr(0, parameters).find(' ') != std::string::npos;
}

/// A piece of an example: a statement, a declaration or an expression.
struct Piece {
  int number = 0;
  std::string text;
  bool ended = false;  ///< by a semicolon or a closing brace
};

/// Cuts an example into pieces: at semicolons, at closing braces of definitions, and at ends of
/// lines, all outside of brackets.
std::vector<Piece> pieces_of(const std::string& path, const std::vector<Line>& example) {
  std::vector<Piece> pieces;
  Piece piece;
  int depth = 0;
  bool definition = false;  // the open brace is that of a namespace, a struct or a function
  const auto end = [&](bool ended) {
    piece.text = trimmed(piece.text);
    piece.ended = ended;
    if (!piece.text.empty() && piece.text != ";") pieces.push_back(piece);
    piece = {};
  };
  for (std::size_t l = 0; l < example.size(); ++l) {
    const std::string& text = example[l].text;
    if (text.rfind("#", 0) == 0) {
      pieces.push_back({example[l].number, text, true});
      continue;
    }
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '/' && i + 1 < text.size() && text[i + 1] == '/') break;
      if (piece.text.empty() && std::isspace(static_cast<unsigned char>(c))) continue;
      if (piece.text.empty()) piece.number = example[l].number;
      if (c == '"' ||
          (c == '\'' && (i == 0 || !std::isdigit(static_cast<unsigned char>(text[i - 1]))))) {
        std::size_t close = i + 1;
        while (close < text.size() && text[close] != c) close += text[close] == '\\' ? 2 : 1;
        piece.text += text.substr(i, close - i + 1);
        i = close;
        continue;
      }
      if (depth == 0 && c == '{') {
        const std::string& t = piece.text;
        definition = t.rfind("namespace", 0) == 0 || t.rfind("struct", 0) == 0 ||
                     t.rfind("template", 0) == 0 || t.rfind("for", 0) == 0 ||
                     t.rfind("if", 0) == 0 || defines_function(t);
      }
      if (c == '(' || c == '{' || c == '[') ++depth;
      if (c == ')' || c == '}' || c == ']') --depth;
      piece.text += c;
      if (depth == 0 && c == ';') end(true);
      if (depth == 0 && c == '}' && definition) {
        definition = false;
        while (i + 1 < text.size() && text[i + 1] == ';') piece.text += text[++i];
        end(true);
      }
    }
    if (depth == 0 && !piece.text.empty()) {
      const bool goes_on = l + 1 < example.size() && (example[l + 1].text.rfind("  ", 0) == 0 ||
                                                      piece.text.rfind("template", 0) == 0);
      if (!goes_on) end(false);
    }
    if (!piece.text.empty()) piece.text += "\n";
  }
  if (depth != 0)
    fail(path + ":" + std::to_string(example[0].number) +
         ": a bracket of the example is not closed");
  end(false);
  return pieces;
}

/// Returns whether a comparison, and no assignment, stands outside of brackets and templates'
/// arguments.
bool compares(const std::string& text) {
  int depth = 0;
  bool found = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      const std::size_t close = text.find(c, i + 1);
      if (close == std::string::npos) break;
      i = close;
      continue;
    }
    if (c == '(' || c == '{' || c == '[') ++depth;
    if (c == ')' || c == '}' || c == ']') --depth;
    if (depth != 0) continue;
    const std::string two = text.substr(i, 2);
    if (two == "==" || two == "!=" || two == "<=" || two == ">=") {
      found = true;
      ++i;
    } else if (c == '=') {
      return false;
    }
  }
  return found;
}

bool belongs_to_a_namespace(const std::string& text, bool document) {
  return starts_with_any(text, {"namespace", "template", "struct"}) || defines_function(text) ||
         text.rfind("#", 0) == 0 || (document && starts_with_any(text, {"using"}));
}

void place(std::ostream& out, const std::string& path, int number) {
  out << "#line " << number << " \"" << path << "\"\n";
}

void write_context(std::ostream& out, const std::string& contexts, const Context* context) {
  if (context == nullptr) return;
  for (const Line& line : context->lines) {
    place(out, contexts, line.number);
    out << line.text << "\n";
  }
}

void write_example(std::ostream& out, const std::string& root, const std::string& header,
                   const std::string& contexts, Context* context, int index) {
  const bool document = header.ends_with(".md");
  const std::string path = root + (document ? "/" : "/include/tessera/") + header;
  const Blocks blocks =
      document ? blocks_of(lines_of(path)) : Blocks{{}, example_of(lines_of(path))};
  const std::vector<Line>& example = blocks.example;
  for (const auto& program : blocks.programs) {
    out << "\nnamespace program_" << index << "_" << program.front().number << " {\n";
    for (const Line& line : program) {
      if (line.text.rfind("#include", 0) == 0) continue;
      place(out, path, line.number);
      out << line.text << "\n";
    }
    out << "}\n";
  }
  if (example.empty() && document) return;
  if (example.empty()) fail(path + ":1: the header has no example; see CONTRIBUTING.md");
  const std::string mode = context == nullptr ? "" : context->mode;
  if (mode == "outline") return;
  const std::vector<Piece> pieces = pieces_of(path, example);
  out << "\nnamespace example_" << index << " {\n";
  if (mode == "declarations") {
    for (const Piece& piece : pieces) {
      const bool call = std::islower(static_cast<unsigned char>(piece.text[0])) != 0 &&
                        piece.text.back() == ';' &&
                        piece.text.find('(') < piece.text.find_first_of(" <") &&
                        !starts_with_any(piece.text, {"static_assert"});
      if (call) {
        out << "[[maybe_unused]] static void call_" << piece.number << "() {\n";
        write_context(out, contexts, context);
      }
      place(out, path, piece.number);
      out << piece.text << (piece.ended ? "\n" : ";\n");
      if (call) out << "}\n";
    }
    out << "}  // namespace example_" << index << "\n";
    return;
  }
  for (const Piece& piece : pieces)
    if (belongs_to_a_namespace(piece.text, document) && piece.text.rfind("#include", 0) != 0) {
      place(out, path, piece.number);
      out << piece.text << "\n";
    }
  place(out, path, example.front().number);
  const bool run = mode != "compiled only";
  if (run)
    out << "TEST_CASE(\"the example of " << (document ? "" : "tessera/") << header << "\") {\n";
  else
    out << "[[maybe_unused]] static void example() {\n";
  const bool parallel = mode.rfind("on ", 0) == 0;
  if (parallel)
    out << "tessera::run_loopback(" << std::atoi(mode.c_str() + 3)
        << ", [&]([[maybe_unused]] std::shared_ptr<tessera::Transport> transport) {\n";
  write_context(out, contexts, context);
  for (const Piece& piece : pieces) {
    if (belongs_to_a_namespace(piece.text, document)) continue;
    place(out, path, piece.number);
    std::string text = piece.text;
    const bool statement = starts_with_any(text, {"auto", "const", "constexpr", "static_assert",
                                                  "using", "for", "if", "throw", "return"});
    const bool check = !statement && (compares(text) || starts_with_any(text, {"allclose"}));
    if (check && text.back() == ';') text.pop_back();
    if (check)
      out << "CHECK((" << text << "));\n";
    else
      out << text << (piece.ended ? "\n" : ";\n");
  }
  if (parallel) out << "});\n";
  out << "}\n}  // namespace example_" << index << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) fail("extract CONTEXTS OUT ROOT HEADER...");
  const std::string contexts = argv[1];
  const std::string root = argv[3];
  std::map<std::string, Context> sections;
  std::ostringstream out;
  Context* open = nullptr;
  place(out, contexts, 1);
  for (const Line& line : lines_of(contexts)) {
    if (line.text.rfind("//// ", 0) == 0) {
      std::string name = trimmed(line.text.substr(5));
      std::string mode;
      if (const auto blank = name.find(' '); blank != std::string::npos) {
        mode = trimmed(name.substr(blank));
        name.resize(blank);
      }
      open = &sections[name];
      open->mode = mode;
    } else if (open != nullptr) {
      open->lines.push_back(line);
    } else {
      out << line.text << "\n";
    }
  }
  for (int i = 4; i < argc; ++i)
    if (!std::string(argv[i]).ends_with(".md")) out << "#include <tessera/" << argv[i] << ">\n";
  for (int i = 4; i < argc; ++i) {
    const auto section = sections.find(argv[i]);
    if (section != sections.end()) section->second.used = true;
    write_example(out, root, argv[i], contexts,
                  section == sections.end() ? nullptr : &section->second, i);
  }
  for (const auto& [name, section] : sections)
    if (!section.used) fail(contexts + " has a section for " + name + ", which is no header");
  std::ofstream(argv[2]) << out.str();
}
