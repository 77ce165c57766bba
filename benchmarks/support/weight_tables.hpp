// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The weights of the three models that the paper on weight-update sharding measures (section 6),
/// as shapes.
///
///     for (const Extents& shape : resnet_50()) all += volume(shape);      // 25,557,032
#include <vector>

#include <tessera/plan.hpp>

namespace tessera_bench {
using tessera::Extents;
using tessera::Index;

/// Source: He et al., "Deep Residual Learning for Image Recognition" (2016), table 1; kernels are
/// height x width x in x out, each with the scale and the shift of its batch norm.
inline std::vector<Extents> resnet_50() {
  std::vector<Extents> all;
  const auto convolution = [&](Index side, Index in, Index out) {
    all.push_back({side, side, in, out});
    all.push_back({out});
    all.push_back({out});
  };
  convolution(7, 3, 64);
  Index in = 64, width = 64;
  for (const int blocks : {3, 4, 6, 3}) {
    for (int block = 0; block < blocks; ++block) {
      convolution(1, in, width);
      convolution(3, width, width);
      convolution(1, width, 4 * width);
      if (block == 0) convolution(1, in, 4 * width);
      in = 4 * width;
    }
    width *= 2;
  }
  all.push_back({2048, 1000});
  all.push_back({1000});
  return all;
}

/// The feed-forward layer and the attentions of a layer, with their layer norms.
inline void transformer_layer(std::vector<Extents>& all, int attentions) {
  constexpr Index model = 1024, hidden = 4096;
  const auto norm = [&] {
    all.push_back({model});
    all.push_back({model});
  };
  for (int a = 0; a < attentions; ++a) {
    for (int k = 0; k < 4; ++k) all.push_back({model, model});
    norm();
  }
  all.push_back({model, hidden});
  all.push_back({hidden});
  all.push_back({hidden, model});
  all.push_back({model});
  norm();
}
/// Source: Vaswani et al., "Attention Is All You Need" (2017), table 3, "big"; the vocabulary of
/// 33,708 is MLPerf 0.6's.
inline std::vector<Extents> transformer_big() {
  std::vector<Extents> all{{33708, 1024}};
  for (int layer = 0; layer < 6; ++layer) transformer_layer(all, 1);
  for (int layer = 0; layer < 6; ++layer) transformer_layer(all, 2);
  return all;
}

/// Source: He et al., "Neural Collaborative Filtering" (2017), NeuMF, in MLPerf 0.6's sizes: the
/// users and items of MovieLens 20M, 64 factors, layers of 256, 256, 128 and 64.
inline std::vector<Extents> ncf() {
  constexpr Index users = 138493, items = 26744;
  return {{users, 64}, {items, 64}, {users, 128}, {items, 128}, {256, 256}, {256},
          {256, 128},  {128},       {128, 64},    {64},         {128, 1},   {1}};
}

}  // namespace tessera_bench
