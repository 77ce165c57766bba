// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a listed call is carried out by itself.
///
///     replay.run(0, tensors, layers);
///
/// Laws: those of run/list/replay.hpp.
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <tessera/run/list/detail/listed_run.hpp>
#include <tessera/run/list/replay.hpp>

namespace tessera::detail {

inline TensorCore Replay::seen(int t, const std::vector<TensorCore>& tensors) const {
  const TensorCore& listed = calls_.listed(t).tensor;
  return {calls_.mesh_, listed.desc(),
          tensors[static_cast<std::size_t>(calls_.number_of(t))].storage()};
}

TESSERA_FUNCTION void Replay::run(int i, std::vector<TensorCore>& tensors, OpenAgain& layers) {
  const TakenBy none(nullptr);
  const ListedCall& call = calls_.call(i);
  layers.open(call.layers < 0 ? nullptr : &calls_.layers_[static_cast<std::size_t>(call.layers)]);
  const OnLane there(call.lane);
  Request r = call.kept.request();
  std::vector<TensorCore> operands;
  operands.reserve(static_cast<std::size_t>(call.operands.size()));
  for (const int t : call.operands) r.operands.push_back(&operands.emplace_back(seen(t, tensors)));
  TensorCore into;
  if (call.into) {
    into = seen(call.results[0], tensors);
    r.extras.into = &into;
  }
  std::vector<TensorCore> results(1);
  std::vector<TensorCore> also;
  if (call.results.size() > 1) r.extras.also = &also;
  results[0] = on_process(*calls_.mesh_, r.site, [&] {
    const Agreed agreed =
        agree_on(r, {r.operation, call.name}, [&]() -> const Prepared& { return *call.prepared; });
    return carry_out(r, agreed.prepared, agreed.history);
  });
  for (TensorCore& one : also) results.push_back(std::move(one));
  for (int k = 0; k < call.results.size(); ++k)
    tensors[static_cast<std::size_t>(calls_.number_of(call.results[k]))] =
        std::move(results[static_cast<std::size_t>(k)]);
}

}  // namespace tessera::detail
