// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The text: read, split into a part to learn from and a part held out, and turned into numbers.
///
///     Text text = load_text("/usr/share/common-licenses");
///     Examples batch = text.random_examples(512, 12, seed, step);
///
/// Laws: each file is read once, links to it or not; the same text, seed and step give the same
/// batch.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/base/math.hpp>

namespace support {

using tessera::Index, tessera::UsageError;

/// Characters seen, and the one that came next: contexts is (batch, context), row-major.
struct Examples {
  std::vector<std::int32_t> contexts, next;
};

/// Returns a well-mixed 64-bit number. Source: Steele, Lea and Flood 2014 (SplitMix64).
inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E37'79B9'7F4A'7C15u;
  x = (x ^ x >> 30) * 0xBF58'476D'1CE4'E5B9u;
  x = (x ^ x >> 27) * 0x94D0'49BB'1331'11EBu;
  return x ^ x >> 31;
}

/// Text as ids: the characters that the training part has, in byte order; id 0 is any other.
class Text {
 public:
  Text(const std::string& training, const std::string& held_out, std::string description)
      : description_(std::move(description)) {
    std::set<unsigned char> present(training.begin(), training.end());
    letters_ = "?";
    for (unsigned char c : present) {
      id_of_[c] = static_cast<std::int32_t>(letters_.size());
      letters_ += static_cast<char>(c);
    }
    for (unsigned char c : training) training_.push_back(id_of_[c]);
    for (unsigned char c : held_out) held_out_.push_back(id_of_[c]);
  }

  const std::string& description() const { return description_; }
  Index vocabulary() const { return static_cast<Index>(letters_.size()); }
  const std::vector<std::int32_t>& training() const { return training_; }
  const std::vector<std::int32_t>& held_out() const { return held_out_; }
  char letter(std::int32_t id) const { return letters_[static_cast<std::size_t>(id)]; }

  /// Returns `batch` places of the training part, drawn for this seed and step.
  Examples random_examples(Index batch, Index context, std::uint64_t seed, Index step) const {
    const auto places = training_.size() - static_cast<std::size_t>(context);
    Examples examples;
    for (Index b = 0; b < batch; ++b)
      append(examples, training_,
             mixed(mixed(seed) ^ static_cast<std::uint64_t>(step * batch + b)) % places, context);
    return examples;
  }
  /// Returns the held-out places first, first + 1, ..., at most `batch` of them.
  Examples held_out_examples(Index first, Index batch, Index context) const {
    const Index places = static_cast<Index>(held_out_.size()) - context;
    Examples examples;
    for (Index b = first; b < std::min(places, first + batch); ++b)
      append(examples, held_out_, static_cast<std::size_t>(b), context);
    return examples;
  }

  /// Returns the held-out nats a character under the training text's counts of characters (given
  /// the `before` characters before: 0 or 1), each count raised by a tenth.
  double entropy(int before) const {
    const auto v = letters_.size(), shift = static_cast<std::size_t>(before);
    std::vector<double> count(v * v, 0.1);
    const auto row = [&](const std::vector<std::int32_t>& ids, std::size_t i) {
      return before == 0 ? 0 : static_cast<std::size_t>(ids[i - 1]) * v;
    };
    for (std::size_t i = shift; i < training_.size(); ++i)
      count[row(training_, i) + static_cast<std::size_t>(training_[i])] += 1;
    double nats = 0;
    for (std::size_t i = shift; i < held_out_.size(); ++i) {
      const auto begin = count.begin() + static_cast<std::ptrdiff_t>(row(held_out_, i));
      double total = 0;
      for (auto c = begin; c != begin + static_cast<std::ptrdiff_t>(v); ++c) total += *c;
      nats -= std::log(begin[held_out_[i]] / total);
    }
    return nats / static_cast<double>(held_out_.size() - shift);
  }

 private:
  static void append(Examples& examples, const std::vector<std::int32_t>& ids, std::size_t at,
                     Index context) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(at);
    examples.contexts.insert(examples.contexts.end(), begin, begin + context);
    examples.next.push_back(begin[context]);
  }

  std::string description_, letters_;
  std::int32_t id_of_[256] = {};
  std::vector<std::int32_t> training_, held_out_;
};

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw UsageError("--text: " + path.string() + " cannot be read; give a file that may be");
  return {std::istreambuf_iterator<char>(file), {}};
}
/// Returns the files of a folder in order of name, each once however many links lead to it.
inline std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(std::filesystem::canonical(entry.path()));
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

/// Reads a file, the last tenth of which is held out, or a folder, of which one whole file is: the
/// first that is at least a fiftieth of the whole. Throws UsageError for what is missing, empty or
/// too small.
inline Text load_text(const std::string& name, Index context) {
  namespace fs = std::filesystem;
  std::string training, held_out, description;
  std::error_code error;
  if (fs::is_directory(name, error)) {
    std::vector<std::string> parts;
    std::size_t total = 0, out = 0;
    const auto files = files_of(name);
    for (const auto& file : files) total += parts.emplace_back(contents(file)).size();
    if (total == 0)
      throw UsageError("--text: the folder " + name +
                       " holds no text; give a text file, or a folder with text files in it");
    if (files.size() < 2)
      throw UsageError("--text: the folder " + name +
                       " holds one file, and one is held out; name the "
                       "file itself, or add another");
    while (parts[out].size() * 50 < total) ++out;
    for (std::size_t i = 0; i < parts.size(); ++i) (i == out ? held_out : training) += parts[i];
    description = std::to_string(files.size() - 1) + " files of " + name + ", held out " +
                  files[out].filename().string();
  } else if (fs::exists(name, error)) {
    training = contents(name);
    if (training.empty())
      throw UsageError("--text: the file " + name + " is empty; give one with text in it");
    held_out = training.substr(training.size() - training.size() / 10);
    training.resize(training.size() - held_out.size());
    description = name + ", held out its last tenth";
  } else {
    throw UsageError("--text: there is no file or folder " + name +
                     "; give a text file, or a folder of text files");
  }
  if (static_cast<Index>(std::min(training.size(), held_out.size())) <= context)
    throw UsageError("--text: " + name + " is too short: " + std::to_string(training.size()) +
                     " characters to learn from and " + std::to_string(held_out.size()) +
                     " held out; both must be more than --context, " + std::to_string(context));
  return Text(training, held_out, description);
}

}  // namespace support
