// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Makes a failure on one process an error on all: for failures that only one process can see, such
/// as a file that it cannot open or data that it lacks.
///
///     fail_together<FileError>(mesh, path.empty() ? "no file is named" : "", where);
///
/// Laws: either all processes return or all throw the same error, so nobody waits for a process
/// that has left.
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include <tessera/comm/mesh_core.hpp>

namespace tessera {

/// Throws E on every process when `complaint` is not empty on some process, with the complaint of
/// the first of these. Communication: one all-reduce of an integer, in no ledger; the text, if
/// there is one. Collective over: all processes of the mesh.
template <class E = UsageError>
void fail_together(MeshCore& mesh, const std::string& complaint, Where where) {
  const int processes = mesh.shape().processes();
  const std::int64_t first = mesh.least(complaint.empty() ? processes : mesh.process(), where);
  if (first >= processes) return;
  constexpr std::size_t words = 128;  // 1023 characters
  std::vector<std::int64_t> text(words);
  std::memcpy(text.data(), complaint.data(),
              complaint.size() < 8 * words ? complaint.size() : 8 * words - 1);
  const std::vector<std::int64_t> all = mesh.gather_facts(text, where);
  const char* said =
      reinterpret_cast<const char*>(all.data() + static_cast<std::size_t>(first) * words);
  throw E(said + (processes > 1 ? " (process " + std::to_string(first) + ")" : std::string()),
          where);
}

/// Runs f() and returns the text of its exception, or nothing: a complaint for fail_together.
template <class F> std::string complaint_of(F&& f) {
  try {
    f();
    return {};
  } catch (const std::exception& error) {
    const std::string text = error.what();
    constexpr std::string_view mark = "[tessera] ";
    if (text.empty()) return "an exception without a text";
    return text.starts_with(mark) ? text.substr(mark.size()) : text;
  }
}

}  // namespace tessera
