// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Parallel text as numbers: a file of prepare.py, or made languages.
///
///     Text text = read_text("ids/learn.safetensors", {"de", "hu"});     // {}: all its languages
///     const Rows& rows = text.languages[0].rows[3];                     // sentences of one length
///
/// Laws: a row of Rows is a sentence's tokens, the end, and padding.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <tessera/base/error.hpp>

#include "../support/facts.hpp"
#include "../support/text.hpp"

namespace translation {

using tessera::Index, tessera::UsageError;
using Id = std::int32_t;

/// Sentences of a language and their translations, as rows of so many tokens: matrices, row-major.
struct Rows {
  Index length = 0;
  std::vector<Id> source, english;
  Index count() const { return length > 0 ? static_cast<Index>(source.size()) / length : 0; }
};

struct Language {
  std::string name;
  Index characters = 0;    ///< to learn from
  std::vector<Rows> rows;  ///< the shortest first; no two of one length

  Index sentences() const {
    Index sum = 0;
    for (const Rows& some : rows) sum += some.count();
    return sum;
  }
};

struct Text {
  std::vector<Language> languages;
  Index source_vocabulary = 0, english_vocabulary = 0;
  Id padding = 0, begin = 2, end = 3;
};

/// Returns a text's first sentences, as many of each language and length as another text has, so
/// that losses of both are means over alike sentences.
inline Text as_many_as(const Text& other, Text text) {
  for (Language& language : text.languages)
    for (Rows& rows : language.rows) {
      Index most = 0;
      for (const Language& like : other.languages)
        for (const Rows& some : like.rows)
          if (like.name == language.name && some.length == rows.length) most = some.count();
      const auto size = static_cast<std::size_t>(std::min(most, rows.count()) * rows.length);
      rows.source.resize(size);
      rows.english.resize(size);
    }
  return text;
}

/// Returns how many tokens a row has before its padding.
inline Index tokens_of(const std::vector<Id>& matrix, Index row, Index length, Id padding) {
  const auto begin = matrix.begin() + row * length;
  return std::find(begin, begin + length, padding) - begin;
}

namespace file {
/// Returns the int32 matrix `name` of a file, of so many columns. Throws UsageError.
inline std::vector<Id> matrix(std::ifstream& from, const tessera::SafetensorsHeader& header,
                              const std::string& name, Index length, const std::string& path) {
  const tessera::SafetensorsEntry* entry = header.find(name);
  if (entry == nullptr || entry->type != tessera::DType::i32 || entry->shape.size() != 2 ||
      entry->shape[1] != length)
    throw UsageError(path + " has no int32 matrix " + name + " of " + std::to_string(length) +
                     " columns; make it again by examples/translate/prepare.py");
  std::vector<Id> read(static_cast<std::size_t>(entry->shape[0] * length));
  from.seekg(header.data_offset + entry->begin);
  from.read(reinterpret_cast<char*>(read.data()), entry->end - entry->begin);
  if (!from) throw UsageError(path + " is cut off within " + name + "; make it again");
  return read;
}
}  // namespace file

/// Reads a file of prepare.py: of these languages, or of all. Throws UsageError, FileError.
inline Text read_text(const std::string& path, const std::vector<std::string>& languages) {
  const tessera::SafetensorsHeader header = tessera::read_checkpoint_header(path);
  const support::Facts facts("--ids", path, header.metadata,
                             "a folder that examples/translate/prepare.py has made");
  const auto fact = [&](const std::string& key) { return facts.number<Index>(key); };
  Text text;
  text.source_vocabulary = fact("source_vocabulary");
  text.english_vocabulary = fact("english_vocabulary");
  text.padding = static_cast<Id>(fact("padding"));
  text.begin = static_cast<Id>(fact("begin"));
  text.end = static_cast<Id>(fact("end"));
  const std::vector<std::string> there = facts.words("languages");
  std::ifstream from(path, std::ios::binary);
  for (const std::string& name : languages.empty() ? there : languages) {
    if (std::find(there.begin(), there.end(), name) == there.end())
      throw UsageError("--languages: " + path + " has no " + name + "; it has " +
                       facts.text("languages"));
    Language language{name, fact("characters." + name), {}};
    for (const Index length : facts.numbers<Index>("lengths")) {
      const std::string stem = name + "." + std::to_string(length) + ".";
      if (header.find(stem + "source") == nullptr) continue;
      Rows rows{length, file::matrix(from, header, stem + "source", length, path),
                file::matrix(from, header, stem + "english", length, path)};
      if (rows.english.size() != rows.source.size())
        throw UsageError(path + ": " + stem + "source and " + stem +
                         "english have other numbers of rows; make it again");
      language.rows.push_back(std::move(rows));
    }
    text.languages.push_back(std::move(language));
  }
  return text;
}

/// Returns made languages: each has a word of its own for each of 20 English ones, every other one
/// says them backwards, and each has a third of the sentences of the one before. `part` draws other
/// sentences.
inline Text made_text(Index languages, Index sentences, std::uint64_t part) {
  const Index words = 20, first = 4;
  Text text;
  text.english_vocabulary = first + words;
  text.source_vocabulary = first + languages * words;
  for (Index l = 0; l < languages; ++l, sentences = std::max<Index>(4, sentences / 3)) {
    Language language{"made" + std::to_string(l), 0, {Rows{8, {}, {}}, Rows{12, {}, {}}}};
    for (Index s = 0; s < sentences; ++s) {
      const auto draw = [&](Index i) {
        return support::mixed(
            part ^ support::mixed(static_cast<std::uint64_t>((l * 1'000'000 + s) * 16 + i)));
      };
      const Index count = 2 + static_cast<Index>(draw(0) % 9);
      Rows& rows = language.rows[count < 8 ? 0 : 1];
      std::vector<Id> english, source;
      for (Index i = 0; i < count; ++i) {
        english.push_back(static_cast<Id>(
            first + static_cast<Index>(draw(i + 1) % static_cast<std::uint64_t>(words))));
        source.push_back(static_cast<Id>(english.back() + l * words));
      }
      if (l % 2 == 1) std::reverse(source.begin(), source.end());
      const auto add = [&](std::vector<Id>& matrix, const std::vector<Id>& ids) {
        matrix.insert(matrix.end(), ids.begin(), ids.end());
        matrix.push_back(text.end);
        matrix.resize(matrix.size() + static_cast<std::size_t>(rows.length - count - 1),
                      text.padding);
      };
      add(rows.source, source);
      add(rows.english, english);
      language.characters += count;
    }
    text.languages.push_back(std::move(language));
  }
  return text;
}

/// Stands for the text that a model has learnt from: another one gives tokens another meaning.
inline std::string digest_of(const Text& text) {
  auto digest =
      static_cast<std::uint64_t>(text.source_vocabulary * 1'000'003 + text.english_vocabulary);
  for (const Language& language : text.languages)
    for (const Rows& rows : language.rows)
      for (const auto* matrix : {&rows.source, &rows.english})
        for (const Id id : *matrix)
          digest = support::mixed(digest ^ static_cast<std::uint64_t>(id));
  return std::to_string(digest);
}

}  // namespace translation
