// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How structures are found, made and compared.
///
///     structures.run(calls, options, where)
///
/// Laws: those of run/structures.hpp.
#include <cstdio>
#include <string>
#include <utility>

#include <tessera/base/compiled.hpp>
#include <tessera/base/error.hpp>
#include <tessera/program/diff.hpp>
#include <tessera/run/plan_cache.hpp>
#include <tessera/run/structures.hpp>

namespace tessera::detail {

TESSERA_FUNCTION void Structures::run(Listing& calls, const CompileOptions& options, Where where) {
  ++calls_;
  if (calls.mesh() == nullptr) return;  // nothing is listed
  MeshCore& mesh = *calls.mesh();
  const std::uint64_t structure = calls.structure();
  last_ = 0;
  while (last_ < known_.size() &&
         !(known_[last_].structure == structure && known_[last_].mesh.lock() == calls.mesh() &&
           calls.is(known_[last_].listed)))
    ++last_;
  if (last_ == known_.size()) {
    Program listed = calls.program();
    mesh.always_agree(
        structure,
        [&] {
          std::string text =
              "the compiled function of " + std::to_string(listed.size()) + " operators";
          for (const ProgramEntry& e : listed.entries()) text += ", " + e.label;
          return text;
        },
        where);
    Known known{structure, calls.mesh(), calls_, std::move(listed), {}, {}, {}, {}, {}};
    const PlanOptions planning = plan_options(mesh);
    known.sharing.program = known.listed;
    if (options.share) known.sharing = tessera::share(known.listed, planning, options.memory_limit);
    known.joining.program = known.sharing.program;
    if (options.join)
      known.joining = tessera::join(known.sharing.program, planning, options.memory_limit);
    known.reuse.program = known.joining.program;
    if (options.reuse) known.reuse = tessera::reuse(known.joining.program, planning);
    known.overlap.program = known.reuse.program;
    if (options.overlap)
      known.overlap = tessera::overlap(known.reuse.program, planning, options.memory_limit);
    known_.push_back(std::move(known));
    warn(options, where);
  }
  calls.run(known_[last_].overlap.program, known_[last_].ready);
}

TESSERA_FUNCTION const Structures::Known& Structures::last() const {
  if (known_.empty())
    throw UsageError(
        "a compiled function is asked for its Program before a call has listed an operator; call "
        "it first");
  return known_[last_];
}

TESSERA_FUNCTION std::string Structures::explain() const {
  std::string text =
      std::to_string(size()) + " structures in " + std::to_string(calls_) + " calls\n";
  for (std::size_t i = 1; i < known_.size(); ++i)
    text += "call " + std::to_string(known_[i].call) + " differs from call " +
            std::to_string(known_[i - 1].call) + ":\n" +
            tessera::explain(diff(known_[i - 1].listed, known_[i].listed));
  return text;
}

TESSERA_FUNCTION void Structures::warn(const CompileOptions& options, Where where) const {
  if (size() != options.warn_at || known_[0].listed.process != 0) return;
  const std::string place = where.known() ? " (compiled at " + to_string(where) + ")" : "";
  std::fprintf(
      stderr,
      "[tessera] a compiled function has had %d structures in %lld calls%s; each is planned "
      "anew; explain_structures() says how they differ; keep extents, branches and the "
      "tensors that the caller holds alike from call to call\n",
      size(), static_cast<long long>(calls_), place.c_str());
}

}  // namespace tessera::detail
