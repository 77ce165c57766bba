// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A small decoder under any list of rules, whose shardings are chosen, and what it is given.
///
///     const Made<OpenRules> open;
///     const auto weights = open(parameters);   // a Decoder<On<OpenRules>>
#include <tessera/nn.hpp>
#include <tessera/tessera.hpp>

#include "support/grid.hpp"
#include "support/near.hpp"

namespace open_model {
using namespace tessera;

template <class R> using On = Under<double, Grid, R>;
using Ids = ShardedTensor<std::int32_t, Grid, P<data, _>>;
struct SomeIds {
  KOKKOS_FUNCTION std::int32_t operator()(const GlobalIndex& i) const {
    return static_cast<std::int32_t>((3 * i[0] + 5 * i[1]) % 11);
  }
};
constexpr DecoderSizes small{
    .vocabulary = 255, .places = 16, .embed = 64, .heads = 4, .hidden = 514, .layers = 1};
/// Makes a small decoder, of whatever types.
template <class R> struct Made {
  Decoder<On<R>> operator()(Parameters<Grid>& make) const {
    return Decoder<On<R>>::like(make, small);
  }
};
/// Returns whether two models have the same weights.
template <class A, class B> bool near(const A& a, const B& b) {
  bool same = true;
  for_each_tensor(
      [&](const auto& one, const auto& other) { same = same && support::near(one, other); }, a, b);
  return same;
}
}  // namespace open_model
