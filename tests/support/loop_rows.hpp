// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The looped products that a partitioner must get right, at full size: planned as they are
/// (plan/loop.test.cpp), and played with shorter sides (op/loop.loopback.cpp).
///
///     for (const LoopRow& row : loop_rows()) …
#include <vector>

#include <tessera/plan/op/product/einsum.hpp>

namespace support {
using namespace tessera;

/// Returns the step of a plan that is made in rounds, or null.
inline const Step* loop_of(const Plan& plan) {
  for (const Step& step : plan.steps)
    if (step.loop) return &step;
  return nullptr;
}

struct LoopRow {
  const char* name;
  const char* equation;
  Extents a;
  Sharding sa;
  Extents b;
  Sharding sb, out;
  MeshShape mesh;
  Index limit;  ///< of workspace: less than the plain form needs; 0: none, transfers hide
  LoopKind kind;
  int ring;  ///< members
  DType type = DType::f32;
};

inline std::vector<LoopRow> loop_rows() {
  const Index mib = Index{1} << 20;
  const MeshShape of_13{4, 2, 4};
  return {
      {"W1",
       "bmkl,bnkl->bmn",
       {320, 25, 64, 128},
       {{}, {}, {0}, {}},
       {320, 39296, 64, 128},
       {{}, {}, {0}, {}},
       {{}, {0}, {}},
       MeshShape{4},
       700 * mib,
       LoopKind::scatter,
       4},
      {"W3",
       "bsk,knh->bsnh",
       {16, 1024, 16384},
       {{0}, {}, {1}},
       {16384, 67, 128},
       {{1}, {}, {}},
       {{0}, {}, {1}, {}},
       MeshShape{2, 4},
       144 * mib,
       LoopKind::scatter,
       4},
      {"W3, n in two",
       "bsk,knph->bsnph",
       {16, 1024, 16384},
       {{0}, {}, {1, 2}},
       {16384, 2, 33, 128},
       {{1, 2}, {}, {}, {}},
       {{0}, {}, {1}, {2}, {}},
       MeshShape{2, 2, 2},
       300 * mib,
       LoopKind::scatter,
       4},
      // Less payload than the row's loop over the other operand.
      {"W5",
       "bmkl,bnkl->bmn",
       {32, 24, 63, 128},
       {{}, {0}, {}, {}},
       {32, 39296, 63, 128},
       {{}, {}, {0}, {}},
       {{}, {0}, {}},
       MeshShape{2},
       70 * mib,
       LoopKind::scatter,
       2},
      {"W5, the other way round",
       "bmkl,bnkl->bmn",
       {32, 39296, 63, 128},
       {{}, {0}, {}, {}},
       {32, 24, 63, 128},
       {{}, {}, {0}, {}},
       {{}, {0}, {}},
       MeshShape{2},
       16 * mib,
       LoopKind::gather,
       2},
      {"W7",
       "mck,ckn->mn",
       {2048, 2, 3264},
       {{}, {}, {0}},
       {2, 3264, 2176},
       {{0}, {}, {}},
       {{}, {0}},
       MeshShape{2},
       0,
       LoopKind::scatter,
       2},
      {"W11",
       "bsk,kn->bsn",
       {8, 2048, 3264},
       {{0}, {1}, {}},
       {3264, 2176},
       {{}, {1}},
       {{0}, {}, {1}},
       MeshShape{2, 4},
       0,
       LoopKind::gather,
       4},
      {"W13",
       "bsk,kn->bsn",
       {64, 2048, 20480},
       {{0, 1}, {}, {2}},
       {20480, 65536},
       {{2}, {0}},
       {{0, 1}, {}, {2}},
       of_13,
       1100 * mib,
       LoopKind::gather,
       4,
       DType::bf16},
      {"D35",
       "ik,kj->ij",
       {4000, 4000},
       {{0}, {1}},
       {4000, 4000},
       {{0}, {1}},
       {{0}, {1}},
       MeshShape{2, 4},
       24 * mib,
       LoopKind::cannon,
       8},
      {"D35 on 2 x 3",
       "ik,kj->ij",
       {4002, 4002},
       {{0}, {1}},
       {4002, 4002},
       {{0}, {1}},
       {{0}, {1}},
       MeshShape{2, 3},
       34 * mib,
       LoopKind::summa,
       6},
  };
}

/// Returns the row with short sides, which divide as badly as the long ones do.
inline LoopRow with_short_sides(LoopRow row) {
  const auto shorten = [](Extents& extents) {
    for (Index& n : extents)
      if (n > 16) n = 8 + n % 9;
  };
  shorten(row.a);
  shorten(row.b);
  row.type = DType::f64;
  return row;
}

}  // namespace support
