// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The ways to carry an operator out: which axis of the mesh splits which of its letters meanwhile.
///
///     const detail::Letters letters = detail::letters_of(operation, operands, result);
///     detail::for_each_way(letters, mesh, [&](const detail::Way& way) { … });
///
/// Every operator has letters here, those that its equation writes or one for each dimension: an
/// axis that splits a letter splits the dimensions that have it, in all tensors. A letter that the
/// result lacks is joined: the result is then unfinished over its axes where the operator allows
/// that, and finished within the operator where not.
///
/// Laws: a way is a legal call, whatever it communicates; its price is its plan's.
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/operation.hpp>

namespace tessera::detail {

/// The letters of an operator's tensors; 0 for a dimension that is whole in every way.
struct Letters {
  FixedVector<Term, max_operands> operands;
  Term result;
  Reduction joins = Reduction::sum;  ///< by which the letters that the result lacks are joined
  bool known = false;                ///< else the operator has one way, the one that was recorded
};

/// The shardings of an operator's tensors while it works.
struct Way {
  Shardings operands;
  Sharding out;
  bool operator==(const Way&) const = default;
};

/// Returns the letters of an operator on these operands.
TESSERA_FUNCTION Letters letters_of(const Operation& operation, const TensorDescs& operands,
                                    const TensorDesc& result);

/// Returns the ways of an operator on a mesh, each once.
TESSERA_FUNCTION std::vector<Way> ways_of(const Operation& operation, const TensorDescs& operands,
                                          const TensorDesc& result, const MeshShape& mesh);

/// Returns the finished shardings that a tensor may have: each axis splits one dimension, or none.
/// Axes that split one dimension are nested in the mesh's order.
TESSERA_FUNCTION std::vector<Sharding> placements(const Extents& extents, const MeshShape& mesh);
/// Returns whether a sharding is one of these.
TESSERA_FUNCTION bool is_placement(const Sharding& sharding, const Extents& extents,
                                   const MeshShape& mesh);

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/program/detail/ways.hpp>
#endif
