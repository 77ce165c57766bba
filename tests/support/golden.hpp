// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Compares a text with the one that is kept in tests/golden.
///
///     CHECK(support::golden("feed_forward.txt", text) == text);
///
/// With TESSERA_UPDATE_GOLDEN=1 in the environment the kept text is replaced instead; read the
/// difference in git.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace support {

/// The kept text, or a sentence saying that there is none.
inline std::string golden(const std::string& file, const std::string& text) {
  const std::string path = std::string(TESSERA_GOLDEN_DIR) + "/" + file;
  if (std::getenv("TESSERA_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream in(path);
  if (!in)
    return "there is no " + path + "; run once with TESSERA_UPDATE_GOLDEN=1 and read what it says";
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace support
