// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Flags of a program: `--name VALUE`, `--name=VALUE`, and switches without a value.
///
///     FlagTable table;
///     table.count("--steps", steps).positive("--lr", rate).flag("--dry", dry);
///     table.read({"--steps", "100", "--dry"});
///
/// Laws: a flag that does not exist or a value that makes no sense is a UsageError that names it.
#include <charconv>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/base/math.hpp>

namespace support {

using tessera::Index;

/// The grid of processes that a flag names; 0 x 0: as the processes allow.
struct MeshFlag {
  int data = 0, model = 0;
};

class FlagTable {
 public:
  using Name = const std::string&;
  using Value = const std::string&;
  using Read = std::function<void(Name, Value)>;

  FlagTable& flag(const std::string& name, bool& on) {
    switches_[name] = &on;
    return *this;
  }
  FlagTable& other(const std::string& name, Read read) {
    reads_[name] = std::move(read);
    return *this;
  }
  FlagTable& text(const std::string& name, std::string& value) {
    return other(name, [&value](Name, Value v) { value = v; });
  }
  /// A whole number from 1 on.
  FlagTable& count(const std::string& name, Index& value) {
    return number(name, value, Index{1}, "a whole number from 1 to 1000000000");
  }
  FlagTable& whole(const std::string& name, Index& value) {
    return number(name, value, Index{0}, "a whole number from 0 to 1000000000");
  }
  FlagTable& whole(const std::string& name, std::uint64_t& value) {
    return number(name, value, std::uint64_t{0}, "a whole number from 0 to 1000000000");
  }
  FlagTable& positive(const std::string& name, double& value) {
    return number(name, value, 1e-12, "a positive number");
  }
  FlagTable& from_zero(const std::string& name, double& value) {
    return number(name, value, 0.0, "a number from 0");
  }
  FlagTable& one_of(const std::string& name, std::string& value,
                    const std::vector<std::string>& words) {
    return other(name, [&value, words](Name flag, Value text) {
      std::string all;
      for (const std::string& word : words) {
        if (word == text) return void(value = text);
        all += (all.empty() ? "" : word == words.back() ? " or " : ", ") + word;
      }
      refuse(flag, text, all.c_str());
    });
  }
  FlagTable& mesh(const std::string& name, MeshFlag& value) {
    return other(name, [&value](Name flag, Value text) {
      const auto x = text.find('x');
      if (x == text.npos || !parse(text.substr(0, x), 1, value.data) ||
          !parse(text.substr(x + 1), 1, value.model))
        refuse(flag, text, "two whole numbers with an x between them, as in 2x4");
    });
  }

  void read(const std::vector<std::string>& words) const {
    for (std::size_t i = 0; i < words.size(); ++i) {
      const auto equals = words[i].find('=');
      const std::string flag = words[i].substr(0, equals);
      if (const auto it = switches_.find(words[i]); it != switches_.end()) {
        *it->second = true;
        continue;
      }
      const auto it = reads_.find(flag);
      if (it == reads_.end())
        throw tessera::UsageError("there is no flag " + words[i] + "; there are" + names());
      if (equals == std::string::npos && i + 1 == words.size())
        throw tessera::UsageError(flag +
                                  " stands last, without its value; --help says what it "
                                  "takes");
      it->second(flag, equals == std::string::npos ? words[++i] : words[i].substr(equals + 1));
    }
  }

  [[noreturn]] static void refuse(const std::string& flag, std::string_view text,
                                  const char* wanted) {
    throw tessera::UsageError(flag + " is given \"" + std::string(text) + "\"; give " + wanted);
  }

 private:
  std::string names() const {
    std::string all;
    for (const auto& [name, on] : switches_) all += " " + name;
    for (const auto& [name, read] : reads_) all += " " + name;
    return all;
  }
  /// Reads all of text as a number from `least` to 1e9; returns whether it is one.
  template <class N> static bool parse(std::string_view text, N least, N& value) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc{} && stop == end && value >= least && value <= N(1e9);
  }
  template <class N>
  FlagTable& number(const std::string& name, N& value, N least, const char* wanted) {
    return other(name, [&value, least, wanted](Name flag, Value text) {
      if (!parse(text, least, value)) refuse(flag, text, wanted);
    });
  }

  std::map<std::string, bool*> switches_;
  std::map<std::string, Read> reads_;
};

/// Chooses the mesh where the user did not, and refuses one that the processes cannot fill.
inline void fit_mesh(MeshFlag& mesh, int processes, bool dry) {
  if (mesh.data == 0) {
    for (int d = 1; d * d <= processes; ++d)
      if (processes % d == 0) mesh.model = d;
    mesh.data = processes / mesh.model;
  }
  const Index wanted = static_cast<Index>(mesh.data) * mesh.model;
  const std::string text = std::to_string(mesh.data) + "x" + std::to_string(mesh.model);
  if (dry && wanted > 65536)
    throw tessera::UsageError("--mesh " + text + " has " + std::to_string(wanted) +
                              " processes; a dry run may have 65536");
  if (!dry && wanted != processes)
    throw tessera::UsageError("--mesh " + text + " takes " + std::to_string(wanted) +
                              " processes and there are " + std::to_string(processes) +
                              "; start as many (mpiexec -n " + std::to_string(wanted) +
                              "), or name another mesh; --dry plans any mesh without them");
}

}  // namespace support
