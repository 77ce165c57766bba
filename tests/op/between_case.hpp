// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A tensor that goes to another mesh over the same processes and back, all of it chosen by a seed
/// alike on every process. Used on loopback and under MPI.
///
///     std::string wrong = support::between_case(transport, random);
#include <numeric>

#include "cases.hpp"

namespace support {

inline DeviceAssignment some_assignment(Random& random, const MeshShape& shape) {
  switch (random.below(5)) {
    case 0:
      return {};
    case 1:
      return as_snake(shape);
    case 2: {
      DeviceOrder order;
      for (int a = shape.rank() - 1; a >= 0; --a) order.axes.push_back(a);
      return along_axes(shape, order);
    }
    default: {
      std::vector<int> list(static_cast<std::size_t>(shape.processes()));
      std::iota(list.begin(), list.end(), 0);
      for (int i = shape.processes() - 1; i > 0; --i)
        std::swap(list[static_cast<std::size_t>(i)],
                  list[static_cast<std::size_t>(random.below(i + 1))]);
      return DeviceAssignment(list);
    }
  }
}

template <class T>
std::string between_case_of(const std::shared_ptr<MeshCore>& a, const std::shared_ptr<MeshCore>& b,
                            Random& random) {
  const int rank = random.below(4);
  Extents extents;
  for (int d = 0; d < rank; ++d) extents.push_back(random.of<Index>({0, 1, 2, 3, 5, 7, 8, 12}));
  const TensorDesc desc{dtype_of<T>, extents,
                        some_sharding(random, rank, a->shape().rank(), random.chance(30) ? 40 : 0)};
  const Sharding to = some_sharding(random, rank, b->shape().rank());
  const DynamicTensor x = make_input<T>(a, desc, 3);
  const Whole<T> expected = whole_input<T>(desc, a->shape(), 3);
  const std::string label = describe(desc, a->shape()) + " on " + describe(a->shape()) + " to " +
                            describe(to, b->shape()) + " on " + describe(b->shape()) + ": ";

  a->ledger().reset();
  a->arena().reset_peak();
  const Index held = a->arena().in_use();
  Recording recording(a);
  const DynamicTensor y = reshard(x, to, b);
  const Program program = recording.take();
  const Plan& plan = *program.entries().at(0).plan;
  if (a->ledger().total().payload_bytes != plan.own_payload_bytes())
    return label + "the ledger and the plan differ in payload";
  if (a->arena().peak() - held != plan.peak_bytes)
    return label + "the arena's peak is not the plan's";
  if (y.core().mesh() != b || !(y.sharding() == to)) return label + "the result is another tensor";
  if (const std::string text = difference(host_block<T>(y), block_of(expected, y.box()), 1e-9);
      !text.empty())
    return label + text;
  // What is here already is not sent for: nothing more arrives than what the old block lacks of the
  // new one.
  if (desc.sharding.partial.empty()) {
    Index arriving = 0;
    for (const Step& step : plan.steps)
      if (step.kind == StepKind::communicate)
        for (const Piece& piece : detail::relocation_work(plan, step, 0).call.receive)
          arriving += piece.count;
    if (arriving != y.box().size() - detail::intersect(x.box(), y.box()).size())
      return label + "more arrives than is needed";
  }
  const DynamicTensor back = reshard(y, desc.sharding.finished(), a);
  if (const std::string text =
          difference(host_block<T>(back), block_of(expected, back.box()), 1e-9);
      !text.empty())
    return label + "and back, " + text;
  return "";
}

/// Runs some cases between two meshes over all processes of `transport`.
inline std::string between_case(const std::shared_ptr<Transport>& transport, Random& random,
                                int count) {
  const auto some_mesh = [&] {
    const MeshShape shape = random.of(meshes_of(transport->size(), 1 + random.below(3)));
    MeshOptions options;
    options.device_assignment = some_assignment(random, shape);
    options.check = Check::communicating;
    options.arena_bytes = random.chance(50) ? 0 : 1 << 20;
    return make_mesh_core(transport, shape, axis_names(shape.rank()), options);
  };
  const auto a = some_mesh();
  const auto b = some_mesh();
  for (int i = 0; i < count; ++i) {
    const std::string text = random.chance(50) ? between_case_of<double>(a, b, random)
                                               : between_case_of<std::int32_t>(a, b, random);
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace support
