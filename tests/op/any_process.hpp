// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What any process of an MPI job sends, calls and takes up, as every other one knows it before: by
/// its own Program, stated for that process.
///
///     std::string wrong = support::as_any_process_plans({whole, part}, [&] { return f(x); });
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tessera/base/digest.hpp>
#include <tessera/program/on_process.hpp>
#include <tessera/tessera.hpp>

#include "op/signature.hpp"

namespace support {

/// Runs f() on all processes of meshes[0], twice, and compares what the second run does on each
/// process with what each other one's Program says. `meshes`: all on which f has operators, whose
/// memory has nothing but what f reads; f returns what it made.
template <class F>
std::string as_any_process_plans(const std::vector<std::shared_ptr<tessera::MeshCore>>& meshes,
                                 const F& f) {
  using namespace tessera;
  MeshCore& world = *meshes[0];
  enum Fact { sent, peak, calls, signature, facts };
  const auto signature_of = [](const std::vector<std::string>& calls) {
    detail::Digest digest;
    for (const std::string& call : calls)
      for (const char letter : call + "\n") digest.add(static_cast<std::uint64_t>(letter));
    return static_cast<std::int64_t>(digest.value());
  };
  (void)f();
  for (const auto& mesh : meshes) mesh->ledger().reset();
  detail::ChargedTogether& memory = world.arena().together();
  memory.peak = memory.now;
  Recording recording(meshes[0]);
  pmpi::record(true);
  const auto kept = f();
  pmpi::record(false);
  const Program program = recording.take();
  std::vector<std::int64_t> own{0, memory.peak, static_cast<std::int64_t>(pmpi::calls().size()),
                                signature_of(pmpi::calls())};
  for (const auto& mesh : meshes) own[sent] += mesh->ledger().payload_bytes();
  (void)kept;
  const std::vector<std::int64_t> all = world.gather_facts(own, {});
  std::string wrong;
  for (int p = 0; p < world.shape().processes(); ++p) {
    const Program there = on_process(program, p);
    const std::vector<std::string> planned = Signature::planned_calls(there, world);
    const auto is = [&](Fact fact, std::int64_t stated, const char* what) {
      const std::int64_t measured = all[static_cast<std::size_t>(p * facts + fact)];
      if (measured != stated)
        wrong += "process " + std::to_string(p) + " " + what + " " + std::to_string(measured) +
                 ", and process " + std::to_string(world.process()) + " plans " +
                 std::to_string(stated) + "; ";
    };
    is(sent, there.own_payload_bytes(), "sends");
    is(peak, there.peak_bytes(), "takes");
    is(calls, static_cast<std::int64_t>(planned.size()), "makes calls:");
    is(signature, signature_of(planned), "makes calls of the digest");
  }
  return wrong;
}

}  // namespace support
