// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What a file says beside its tensors.
///
///     const Facts facts("--weights", path, read_checkpoint_header(path).metadata, "a file that fetch.py has made");
///     const Index heads = facts.number<Index>("heads");
#include <charconv>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/io/checkpoint.hpp>

namespace support {

/// The facts of a file, as texts and numbers. Throws UsageError for one that is not there, or no
/// number, and says what to give in its place.
class Facts {
 public:
  /// `flag` is the one that names the file, `give` what the user may give in its place.
  Facts(std::string flag, std::string path, tessera::CheckpointFacts facts, std::string give)
      : flag_(std::move(flag)),
        path_(std::move(path)),
        facts_(std::move(facts)),
        give_(std::move(give)) {}
  const std::string& text(const std::string& key) const {
    const auto said = facts_.find(key);
    if (said == facts_.end()) refuse(key, "nothing");
    return said->second;
  }
  template <class N> N number(const std::string& key) const { return number<N>(key, text(key)); }
  /// Returns the words of a text, between blanks, and the numbers that they are.
  std::vector<std::string> words(const std::string& key) const {
    std::istringstream from(text(key));
    return {std::istream_iterator<std::string>(from), {}};
  }
  template <class N> std::vector<N> numbers(const std::string& key) const {
    std::vector<N> all;
    for (const std::string& word : words(key)) all.push_back(number<N>(key, word));
    return all;
  }

 private:
  template <class N> N number(const std::string& key, const std::string& said) const {
    N value{};
    const char* const end = said.data() + said.size();
    if (const auto read = std::from_chars(said.data(), end, value);
        read.ec != std::errc{} || read.ptr != end)
      refuse(key, "\"" + said + "\"");
    return value;
  }
  [[noreturn]] void refuse(const std::string& key, const std::string& said) const {
    throw tessera::UsageError(flag_ + ": " + path_ + " says " + said + " of its \"" + key +
                              "\"; give " + give_);
  }
  std::string flag_, path_;
  tessera::CheckpointFacts facts_;
  std::string give_;
};

}  // namespace support
