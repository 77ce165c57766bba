// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A choice of shardings as a small text file, which a project keeps beside its source.
///
///     write_choice("step.choice", table_of(choice));            // on one process
///     auto step = compile(f, read_choice("step.choice"));      // on all
///
/// Laws: read_choice returns what was written; the old file is unchanged where writing fails.
#include <fstream>
#include <iterator>
#include <string>

#include <tessera/base/error.hpp>
#include <tessera/io/detail/replacement.hpp>
#include <tessera/program/choice/table.hpp>

namespace tessera {

/// Writes a choice; one process calls it. Communication: none. Throws FileError.
inline void write_choice(const std::string& path, const ChoiceTable& table) {
  detail::Replacement file;
  file.take_name(path);
  file.make(to_string(table), 0);
  file.commit();
}

/// Reads a choice, on every process that wants it. Communication: none. Throws FileError where the
/// file is missing or is none.
inline ChoiceTable read_choice(const std::string& path, Where where = Where::here()) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw FileError(
        "the choice " + path + " cannot be read; write it by write_choice, or check its name",
        where);
  return parse_choice(std::string(std::istreambuf_iterator<char>(file), {}));
}

}  // namespace tessera
