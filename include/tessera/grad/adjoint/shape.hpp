// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The adjoints of operators that move elements and compute nothing: each moves them back. Elements
/// that were dropped get zero, those that were repeated the sum.
///
///     // y = slice(x, {2}, {5}): dx = pad(dy, {2}, {n - 5})
///
/// Laws: the adjoint of an adjoint is the operator itself, where it moves every element once.
#include <tessera/grad/adjoint/parts.hpp>
#include <tessera/plan/op/shape/shape.hpp>
#include <tessera/plan/op/shape/transpose.hpp>

namespace tessera::detail {

inline void adjoint_of(const ops::Reshard&, AdjointBuilder& build) {
  build.set(0, build.cotangent());
}
inline void adjoint_of(const ops::Transpose& op, AdjointBuilder& build) {
  const Terms back{{op.terms.result}, op.terms.operands[0]};
  build.set(0, build.add(ops::Transpose{back, build.gradient_of(0).sharding}, {build.cotangent()}));
}
inline void adjoint_of(const ops::Reshape&, AdjointBuilder& build) {
  const TensorDesc to = build.gradient_of(0);
  build.set(0, build.add(ops::Reshape{to.extents, to.sharding}, {build.cotangent()}));
}
inline void adjoint_of(const ops::Broadcast& op, AdjointBuilder& build) {
  const Term made = default_labels(op.extents.size());
  Term own;
  for (int d : op.dims) own.push_back(made[d]);
  build.set(0, summed(build, build.cotangent(), made, own, build.gradient_of(0), 0));
}

/// The elements of v at the places of a slice of a tensor `to`, zero elsewhere.
inline AdjointValue padded(AdjointBuilder& build, AdjointValue v, const Slice& part,
                           const TensorDesc& to) {
  ops::Padding back;
  const Extents made = build.desc(v).extents;
  for (int d = 0; d < to.rank(); ++d) {
    const Index step = part.step(d);
    const Index covered = made[d] == 0 ? 0 : (made[d] - 1) * step + 1;
    back.low.push_back(made[d] == 0 ? 0 : part.start[d]);
    back.high.push_back(to.extents[d] - covered - back.low[d]);
    back.interior.push_back(step - 1);
  }
  return build.add(ops::Pad{back, to.sharding}, {v});
}
inline AdjointValue sliced(AdjointBuilder& build, AdjointValue v, const Slice& part,
                           const Sharding& out) {
  return build.add(ops::Slice{{{part}}, out}, {v});
}
inline void adjoint_of(const ops::Slice& op, AdjointBuilder& build) {
  const TensorDesc to = build.gradient_of(0);
  AdjointValue sum = padded(build, build.cotangent(0), op.parts[0], to);
  const Term all = letters_of(to);
  for (int k = 1; k < op.parts.size(); ++k) {
    const AdjointValue part = padded(build, build.cotangent(k), op.parts[k], to);
    const DType type = k + 1 < op.parts.size() ? facts_of(to.type).compute : to.type;
    sum = mapped(build, {{all, all}, all}, {sum, part}, type, to.sharding,
                 addition(build.desc(sum).type, to.type, type));
  }
  build.set(0, sum);
}
inline void adjoint_of(const ops::Pad& op, AdjointBuilder& build) {
  const TensorDesc to = build.gradient_of(0);
  ops::Padding back;  // what was added goes, what was cropped is zero
  Slice within;
  for (int d = 0; d < to.rank(); ++d) {
    const Index step = op.interior.empty() ? 1 : op.interior[d] + 1;
    back.low.push_back(-op.low[d]);
    back.high.push_back(-op.high[d]);
    within.start.push_back(0);
    within.limit.push_back(to.extents[d] == 0 ? 0 : (to.extents[d] - 1) * step + 1);
    within.stride.push_back(step);
  }
  build.set(0, sliced(build, build.add(ops::Pad{back, to.sharding}, {build.cotangent()}), within,
                      to.sharding));
}
inline void adjoint_of(const ops::Reverse& op, AdjointBuilder& build) {
  build.set(0,
            build.add(ops::Reverse{{op.dims}, build.gradient_of(0).sharding}, {build.cotangent()}));
}
inline void adjoint_of(const ops::Roll& op, AdjointBuilder& build) {
  build.set(0, build.add(ops::Roll{{-op.by, op.dim}, build.gradient_of(0).sharding},
                         {build.cotangent()}));
}
inline void adjoint_of(const ops::Shift& op, AdjointBuilder& build) {
  build.set(0, build.add(ops::Shift{{-op.by, op.dim}, build.gradient_of(0).sharding},
                         {build.cotangent()}));
}

inline void adjoint_of(const ops::Concatenate& op, AdjointBuilder& build) {
  const TensorDescs& x = build.call().operands;
  Index at = 0;
  for (int k = 0; k < x.size(); ++k) {
    const Slice part = part_of(op.slices, k, x[k].extents);
    const Extents taken = part.extents();
    if (build.wants(k)) {
      const TensorDesc to = build.gradient_of(k);
      Slice here = part_of({}, k, taken);
      here.start[op.dim] = at;
      here.limit[op.dim] = at + taken[op.dim];
      build.set(k, padded(build, sliced(build, build.cotangent(), here, to.sharding), part, to));
    }
    at += taken[op.dim];
  }
}
inline void adjoint_of(const ops::Update& op, AdjointBuilder& build) {
  const TensorDescs& x = build.call().operands;
  const Slice block = part_of(op.slices, 1, x[1].extents);
  Slice here = part_of({}, 1, block.extents());
  for (int d = 0; d < op.start.size(); ++d) {
    here.start[d] += op.start[d];
    here.limit[d] += op.start[d];
  }
  const AdjointValue g = build.cotangent();
  const TensorDesc made = build.desc(g);
  const auto of_block = [&](const Sharding& out) { return sliced(build, g, here, out); };
  if (build.wants(1)) {
    const TensorDesc to = build.gradient_of(1);
    build.set(1, padded(build, of_block(to.sharding), block, to));
  }
  if (!build.wants(0)) return;
  // All but what the block replaced: the cotangent without its block.
  const TensorDesc to = build.gradient_of(0);
  const AdjointValue blank = no_gradient(build, {made.type, block.extents(), made.sharding});
  const AdjointValue rest = build.add(ops::Update{{here.start, {}}, made.sharding}, {g, blank});
  build.set(0, padded(build, rest, part_of(op.slices, 0, x[0].extents), to));
}

inline const bool shape_has_adjoint =
    have_adjoints<ops::Reshard, ops::Transpose, ops::Reshape, ops::Broadcast, ops::Slice, ops::Pad,
                  ops::Reverse, ops::Roll, ops::Shift, ops::Concatenate, ops::Update>();

}  // namespace tessera::detail
