// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The signature law, watched: the calls that MPI sees are the calls of the plan, or of the
/// Program.
///
///     support::Signature signature;   support::observer = &signature;   // then run cases
#include <string>
#include <vector>

#include "support/observer.hpp"
#include "support/pmpi.hpp"

namespace support {

/// Compares what PMPI sees with the planned calls.
struct Signature final : Observer {
  long calls = 0;
  void begin() override { pmpi::record(true); }
  std::string end(const tessera::MeshCore& mesh, const std::vector<tessera::Call>& made) override {
    pmpi::record(false);
    std::vector<std::string> planned;
    for (const tessera::Call& call : made)
      for (const std::string& text : pmpi::texts_of(call, mesh.shape(), mesh.coordinates()))
        planned.push_back(text);
    calls += static_cast<long>(planned.size());
    if (planned == pmpi::calls()) return "";
    std::string text = "MPI sees other calls than planned:";
    for (const std::string& call : pmpi::calls()) text += "\n  seen     " + call;
    for (const std::string& call : planned) text += "\n  planned  " + call;
    return text;
  }
};

}  // namespace support
