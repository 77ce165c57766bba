// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Watches an operator, or a Program, from outside, beside what every case checks.
///
///     support::observer = &signature;          // op/signature.hpp: what MPI sees
#include <string>
#include <vector>

#include <tessera/comm/mesh_core.hpp>
#include <tessera/program/program.hpp>

namespace support {

struct Observer {
  virtual ~Observer() = default;
  virtual void begin() = 0;
  /// Returns what is wrong with what happened since begin(), or nothing. `planned`: the calls of
  /// this process.
  virtual std::string end(const tessera::MeshCore& mesh,
                          const std::vector<tessera::Call>& planned) = 0;
  /// Ends the observation of a Program over several parts. `world`: the mesh whose processes it
  /// numbers.
  virtual std::string end_of_parts(const tessera::Program&, const tessera::MeshCore& /*world*/) {
    return "";
  }
};
inline Observer* observer = nullptr;

}  // namespace support
