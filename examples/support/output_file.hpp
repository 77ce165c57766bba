// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Files that a program writes at its end.
///
///     require_writable("--out", "numbers.csv");   // before the work
///     write_text("numbers.csv", text);
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include <tessera/base/error.hpp>

namespace support {

/// Throws UsageError, which names the flag, unless a file of this name can be written: before a run
/// that writes it at its end. A file that is there stays as it is.
inline void require_writable(const std::string& flag, const std::string& path) {
  if (path.empty()) return;
  const bool there = ::access(path.c_str(), F_OK) == 0;
  // A checkpoint is written beside the file and takes its place, so the folder must take a new one.
  const std::string trial = there ? path + ".trial" : path;
  std::FILE* const file = std::fopen(trial.c_str(), "ab");
  const int error = errno;
  if (file != nullptr) {
    std::fclose(file);
    std::remove(trial.c_str());
  }
  if (file == nullptr || (there && ::access(path.c_str(), W_OK) != 0))
    throw tessera::UsageError(flag + ": the file " + path + " cannot be written (" +
                              std::strerror(file == nullptr ? error : errno) +
                              "); name one in a folder that is there and can be written, before "
                              "the run begins");
}

/// Writes text to a file. Throws UsageError when it cannot be written.
inline void write_text(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr)
    throw tessera::UsageError("the file " + path + " cannot be written; name one that can be");
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), file);
  if (std::fclose(file) != 0 || written != text.size())
    throw tessera::UsageError("the file " + path + " cannot be written: is the disk full?");
}

}  // namespace support
