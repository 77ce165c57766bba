// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The different lists of calls that a function has made, and the Program that stands for each.
///
///     structures.run(calls, options, where);      // carries the calls of a list out
///     structures.size();   structures.last().sharing
///
/// Laws: a list whose structure is known runs by the Program that was made for it; a new one is
/// compared between the processes before anything runs. Structures whose calls lie in one mesh
/// (Listing::world) are kept and forgotten among themselves: its processes make the same calls on
/// it, and know the same ones, whatever some of them call on other meshes meanwhile.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/choice.hpp>
#include <tessera/program/join.hpp>
#include <tessera/program/overlap.hpp>
#include <tessera/program/reuse.hpp>
#include <tessera/program/share.hpp>
#include <tessera/run/list/listing.hpp>

namespace tessera {

/// The passes that a compiled function goes through, and what they keep.
struct CompileOptions {
  /// How the tensors that operators make are split; none: as they say (program/choice.hpp).
  std::optional<ChooseOptions> choose = {};
  bool share =
      true;  ///< a tensor that several operators move alike is moved once (program/share.hpp)
  bool join = true;     ///< small collectives over one group become one (program/join.hpp)
  bool reuse = true;    ///< results lie where operands end (program/reuse.hpp)
  bool overlap = true;  ///< moves start early where calibrated time falls (program/overlap.hpp)
  Index memory_limit = max_int64;  ///< bytes of its tensors and workspace, which passes keep
  int warn_at = 32;  ///< so many structures are told of on stderr, once: each has been planned anew
  /// That are kept of each mesh in which calls lie; the one called least recently goes first.
  int most_structures = 256;
};

namespace detail {

class Structures {
 public:
  struct Known {
    std::uint64_t structure;
    std::weak_ptr<const MeshCore> world;                ///< in which the calls lie
    std::vector<std::weak_ptr<const MeshCore>> meshes;  ///< of the plans
    std::int64_t call;    ///< the first call that had it, counted from 1
    std::int64_t called;  ///< the last one
    Program listed;
    Choice choice;  ///< without a program where nothing was to be chosen
    Sharing sharing;
    Joining joining;
    Reuse reuse;
    Overlap overlap;               ///< its Program is the one that runs
    std::vector<ReadyCall> ready;  ///< its operators

    /// Returns whether it is of these meshes; and whether one of its own has ended.
    bool on(const std::vector<std::shared_ptr<MeshCore>>& these) const;
    bool over() const;
  };
  /// Collective over the mesh of the calls. Communication: that of the Program; for a new structure
  /// one all-reduce of two integers, in no ledger. Throws MismatchError when processes have listed
  /// different calls.
  void run(Listing& calls, const CompileOptions& options, Where where);
  /// Returns how many structures have been made.
  int size() const { return made_; }
  /// Returns the structure of the last call. Throws UsageError before the first one.
  const Known& last() const;
  /// Returns how each structure that is kept differs from the nearest of those before it.
  std::string explain() const;

 private:
  /// Makes room for one more whose calls lie in `world`.
  void forget(const MeshCore& world, const CompileOptions& options);
  /// Keeps fewer than `most` of those of a mesh; of null: of the meshes that have ended.
  void keep_fewer(const MeshCore* world, std::size_t most);
  void make(const Listing& calls, std::uint64_t structure, const CompileOptions& options,
            Where where);
  void warn(const CompileOptions& options, Where where) const;

  std::vector<Known> known_;  ///< in the order of their first calls
  std::size_t last_ = 0;
  int made_ = 0;
  std::int64_t calls_ = 0;
};

}  // namespace detail
}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/run/list/detail/structures.hpp>
#endif
