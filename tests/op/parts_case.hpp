// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A tensor that goes from one part of a mesh, or part of a part, to another, to the whole mesh and
/// back, all of it chosen by a seed alike on every process. Used on loopback and under MPI.
///
///     std::string wrong = support::parts_case(transport, random, 20);
#include "op/cases.hpp"

namespace support {

/// Some axes of a mesh, each fixed at one of its coordinates.
inline DynamicMesh some_part(const DynamicMesh& whole, Random& random) {
  AxisList axes;
  std::vector<int> at;
  while (axes.empty())
    for (int a = 0; a < whole.shape().rank(); ++a)
      if (random.chance(50)) {
        axes.push_back(a);
        at.push_back(random.below(whole.shape()[a]));
      }
  return whole.part(axes, at);
}

template <class T>
std::string parts_case_of(const DynamicMesh& whole, const DynamicMesh& a, const DynamicMesh& b,
                          Random& random) {
  const int rank = random.below(4);
  Extents extents;
  for (int d = 0; d < rank; ++d) extents.push_back(random.of<Index>({0, 1, 2, 3, 5, 7, 8, 12}));
  const TensorDesc desc{dtype_of<T>, extents,
                        some_sharding(random, rank, a.shape().rank(), random.chance(30) ? 40 : 0)};
  const Sharding to = some_sharding(random, rank, b.shape().rank());
  const Sharding wide = some_sharding(random, rank, whole.shape().rank());
  const std::string label = describe(desc, a.shape()) + " on " + describe(a.shape()) + " to " +
                            describe(to, b.shape()) + " on " + describe(b.shape()) + " and " +
                            describe(wide, whole.shape()) + ": ";
  WithinHalos within(random);
  const DynamicTensor plain = a.takes_part() ? make_input<T>(a.core(), desc, 3)
                                             : DynamicTensor(TensorCore::make(a.core(), desc));
  const DynamicTensor x = random.chance(30) ? within.put(plain) : plain;
  const Whole<T> expected = whole_input<T>(desc, a.shape(), 3);
  const auto wrong = [&](const DynamicTensor& y, const DynamicMesh& mesh) {
    return mesh.takes_part() ? difference(host_block<T>(y), block_of(expected, y.box()), 1e-9)
                             : std::string();
  };
  MeshCore& both = *detail::mesh_of_both(a.core(), b.core());
  Ledger& ledger = both.ledger();
  ledger.reset();
  const Index others = a.ledger().total().payload_bytes;
  Recording recording(whole.core());
  const DynamicTensor y = reshard(x, to, b);
  const Program program = recording.take();
  if (a.core() != b.core() && !both.absent()) {
    const Plan& plan = *program.entries().back().plan;  // what finishes x goes before
    const bool finishes = &both == a.core().get() && !desc.sharding.partial.empty();
    if (!finishes && ledger.total().payload_bytes != plan.own_payload_bytes())
      return label + "the ledger and the plan differ in payload";
    if (!a.takes_part() && !b.takes_part() && ledger.total().payload_bytes != 0)
      return label + "a process of neither part sends";
    Index arriving = 0, lacking = b.takes_part() ? y.box().size() : 0;
    if (a.takes_part() && b.takes_part() && desc.sharding.partial.empty())
      lacking -= detail::intersect(x.box(), y.box()).size();
    for (const Step& step : plan.steps)
      if (step.kind == StepKind::communicate)
        for (const Piece& piece : detail::relocation_work(plan, step, 0).call.receive)
          arriving += piece.count;
    if (desc.sharding.partial.empty() && arriving != lacking)
      return label + "other than what is needed arrives";
  }
  if (!a.takes_part() && a.ledger().total().payload_bytes != others)
    return label + "a process sends for a part that it is not in";
  if (y.core().mesh() != b.core() || !(y.sharding() == to))
    return label + "the result is another tensor";
  if (const std::string text = wrong(y, b); !text.empty()) return label + text;
  const DynamicTensor z = reshard(y, wide, whole);
  if (const std::string text = wrong(z, whole); !text.empty())
    return label + "to the whole mesh, " + text;
  const DynamicTensor back = reshard(z, desc.sharding.finished(), a);
  if (const std::string text = wrong(back, a); !text.empty()) return label + "and back, " + text;
  return "";
}

/// Runs some cases between two parts of a mesh over all processes of `transport`.
inline std::string parts_case(const std::shared_ptr<Transport>& transport, Random& random,
                              int count) {
  const MeshShape shape = random.of(meshes_of(transport->size(), 1 + random.below(3)));
  MeshOptions options;
  options.check = Check::communicating;
  options.arena_bytes = random.chance(50) ? 0 : 1 << 20;
  const DynamicMesh whole(make_mesh_core(transport, shape, axis_names(shape.rank()), options));
  for (int i = 0; i < count; ++i) {
    const auto part = [&](const DynamicMesh& of) {
      const DynamicMesh one = some_part(of, random);
      return random.chance(30) ? some_part(one, random) : one;
    };
    const DynamicMesh a = part(whole), b = part(random.chance(20) ? a : whole);
    const std::string text = random.chance(50) ? parts_case_of<double>(whole, a, b, random)
                                               : parts_case_of<std::int32_t>(whole, a, b, random);
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace support
