// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How structures are found, made and compared.
///
///     structures.run(calls, options, where)
///
/// Laws: those of run/list/structures.hpp.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/base/error.hpp>
#include <tessera/plan/check/shape_verdict.hpp>
#include <tessera/program/diff.hpp>
#include <tessera/run/list/structures.hpp>
#include <tessera/run/plan_cache.hpp>

namespace tessera::detail {

TESSERA_FUNCTION bool Structures::Known::on(
    const std::vector<std::shared_ptr<MeshCore>>& these) const {
  return std::equal(meshes.begin(), meshes.end(), these.begin(), these.end(),
                    [](const auto& mine, const auto& other) { return mine.lock() == other; });
}
TESSERA_FUNCTION bool Structures::Known::over() const {
  return std::any_of(meshes.begin(), meshes.end(), [](const auto& one) { return one.expired(); });
}

TESSERA_FUNCTION void Structures::run(Listing& calls, const CompileOptions& options, Where where) {
  ++calls_;
  if (calls.mesh() == nullptr) return;  // nothing is listed
  const std::uint64_t structure = calls.structure();
  last_ = 0;
  while (last_ < known_.size() &&
         !(known_[last_].structure == structure && known_[last_].on(calls.meshes()) &&
           calls.is(known_[last_].listed)))
    ++last_;
  if (last_ == known_.size()) make(calls, structure, options, where);
  Known& known = known_[last_];
  known.called = calls_;
  calls.run(known.listed, known.overlap.program, known.ready);
}

TESSERA_FUNCTION void Structures::make(const Listing& calls, std::uint64_t structure,
                                       const CompileOptions& options, Where where) {
  MeshCore& mesh = *calls.world();
  Program listed = calls.program();
  const auto words = [&] {
    std::string text = "the compiled function of " + std::to_string(listed.size()) + " operators";
    for (const ProgramEntry& e : listed.entries()) {
      text += ", " + e.label;
      if (listed.tensor(e.result).last >= listed.size()) text += " (kept)";
    }
    int given = 0;
    for (const ProgramTensor& t : listed.tensors())
      given += t.made < 0 && t.last >= 0 && t.last < listed.size() ? 1 : 0;
    return text + "; " + std::to_string(given) + " tensors are given away";
  };
  (void)mesh.begin_operator({mix(0, structure), 0, 0}, words, where);
  mesh.always_agree(structure, words, where);
  Known known{structure,
              calls.world(),
              {calls.meshes().begin(), calls.meshes().end()},
              calls_,
              calls_,
              std::move(listed),
              {},
              {},
              {},
              {},
              {},
              {}};
  const PlanOptions planning = plan_options(mesh);
  known.sharing.program = known.listed;
  if (options.choose) {
    ChooseOptions choosing = *options.choose;
    choosing.memory_limit = std::min(choosing.memory_limit, options.memory_limit);
    known.choice = tessera::choose(known.listed, planning, choosing);
    known.sharing.program = known.choice.program;
  }
  if (options.share)
    known.sharing = tessera::share(known.sharing.program, planning, options.memory_limit);
  known.joining.program = known.sharing.program;
  if (options.join)
    known.joining = tessera::join(known.sharing.program, planning, options.memory_limit);
  known.reuse.program = known.joining.program;
  if (options.reuse) known.reuse = tessera::reuse(known.joining.program, planning);
  known.overlap.program = known.reuse.program;
  if (options.overlap)
    known.overlap = tessera::overlap(known.reuse.program, planning, options.memory_limit);
  forget(mesh, options);
  last_ = known_.size();
  known_.push_back(std::move(known));
  ++made_;
  warn(options, where);
}

TESSERA_FUNCTION void Structures::forget(const MeshCore& world, const CompileOptions& options) {
  for (Known& known : known_)
    if (known.over()) known.ready.clear();  // no more: meshes end at other times elsewhere
  const auto most = static_cast<std::size_t>(std::max(options.most_structures, 1));
  keep_fewer(&world, most);
  keep_fewer(nullptr, most);
}

TESSERA_FUNCTION void Structures::keep_fewer(const MeshCore* world, std::size_t most) {
  std::vector<std::size_t> of_world;
  for (std::size_t i = 0; i < known_.size(); ++i)
    if (known_[i].world.lock().get() == world) of_world.push_back(i);
  if (of_world.size() < most) return;
  std::sort(of_world.begin(), of_world.end(), [&](std::size_t a, std::size_t b) {
    return known_[a].called > known_[b].called;  // the last ones are called least recently
  });
  of_world.erase(of_world.begin(), of_world.begin() + static_cast<std::ptrdiff_t>(most) - 1);
  std::sort(of_world.begin(), of_world.end());
  for (std::size_t i = of_world.size(); i-- > 0;)
    known_.erase(known_.begin() + static_cast<std::ptrdiff_t>(of_world[i]));
}

/// A word for each operator of a Program, sorted: two Programs are near where they have most in
/// common.
inline std::vector<std::uint64_t> words_of(const Program& program) {
  std::vector<std::uint64_t> words;
  for (int i = 0; i < program.size(); ++i) {
    const ProgramEntry& e = program.entry(i);
    const AxisNames names = program.names_on(e.part);
    std::string text = e.label;
    if (e.operation != nullptr) text += e.operation->view().text(names);
    for (int k = 0; k < e.operands.size(); ++k) {
      const int made = program.tensor(e.operands[k]).made;
      text +=
          to_string(e.plan->slots[k].desc, names) + " " + std::to_string(made < 0 ? 0 : i - made);
      const ProgramTensor& t = program.tensor(e.operands[k]);
      if (made < 0 && t.last < program.size()) text += " given";
      if (t.adopted) text += " adopted";
    }
    if (program.tensor(e.result).last >= program.size()) text += " kept";
    words.push_back(std::hash<std::string>{}(text));
  }
  std::sort(words.begin(), words.end());
  return words;
}
inline std::size_t apart(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  std::vector<std::uint64_t> others;
  std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(others));
  return others.size();
}

TESSERA_FUNCTION const Structures::Known& Structures::last() const {
  if (last_ >= known_.size())
    throw UsageError(
        "a compiled function is asked for its Program before a call has listed an operator; call "
        "it first");
  return known_[last_];
}

TESSERA_FUNCTION std::string Structures::explain() const {
  std::string text = counted(size(), "structure") + " in " + counted(calls_, "call") + "\n";
  if (const std::size_t gone = static_cast<std::size_t>(made_) - known_.size(); gone > 0)
    text += std::to_string(gone) + " are forgotten, those that were called least recently\n";
  std::vector<std::vector<std::uint64_t>> words;
  for (const Known& known : known_) words.push_back(words_of(known.listed));
  for (std::size_t i = 1; i < known_.size(); ++i) {
    std::size_t nearest = i - 1, least = apart(words[i], words[nearest]);
    for (std::size_t j = i - 1; j-- > 0;)
      if (const std::size_t by = apart(words[i], words[j]); by < least) nearest = j, least = by;
    const Known& before = known_[nearest];
    const auto same = std::equal(known_[i].meshes.begin(), known_[i].meshes.end(),
                                 before.meshes.begin(), before.meshes.end(),
                                 [](const auto& a, const auto& b) { return a.lock() == b.lock(); });
    text += "call " + std::to_string(known_[i].call) + " differs from call " +
            std::to_string(before.call) + ":\n" +
            (known_[i].over() ? "  its mesh is gone\n"
             : same           ? ""
                              : "  it is on another mesh\n") +
            tessera::explain(diff(before.listed, known_[i].listed));
  }
  return text;
}

TESSERA_FUNCTION void Structures::warn(const CompileOptions& options, Where where) const {
  if (size() != options.warn_at || known_.back().listed.process != 0) return;
  const std::string place = where.known() ? " (compiled at " + to_string(where) + ")" : "";
  std::fprintf(
      stderr,
      "[tessera] a compiled function has had %d structures in %lld calls%s; each is planned "
      "anew; explain_structures() says how they differ; keep extents, branches and the "
      "tensors that the caller holds alike from call to call\n",
      size(), static_cast<long long>(calls_), place.c_str());
}

}  // namespace tessera::detail
