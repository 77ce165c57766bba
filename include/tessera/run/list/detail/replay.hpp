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

TESSERA_FUNCTION TensorCore Replay::seen_as(const TensorCore& like,
                                            std::shared_ptr<Storage> memory) {
  const AxisSet varies = like.storage()->varies();
  if (memory->varies() == varies) return {like.mesh(), like.desc(), std::move(memory)};
  if (memory.use_count() > 1) {  // others see it as it is
    const std::uint64_t history = memory->history();
    memory = std::make_shared<Storage>(memory);
    memory->set_history(history);
  }
  memory->set_varies(varies);
  return {like.mesh(), like.desc(), std::move(memory)};
}
TESSERA_FUNCTION TensorCore Replay::fresh(int number) const {
  const TensorCore& like = listed(number);
  TensorCore made{like.mesh(), like.desc(),
                  make_storage(like.mesh(), TensorCore::local_bytes(*like.mesh(), like.desc()))};
  made.storage()->set_varies(like.storage()->varies());
  return made;
}

TESSERA_FUNCTION void Replay::run(int i, std::vector<TensorCore>& tensors, OpenAgain& layers) {
  const TakenBy none(nullptr);
  const ListedCall& call = calls_.call(i);
  MeshCore& mesh = *calls_.meshes_[static_cast<std::size_t>(call.part)];
  layers.open(call.layers < 0 ? nullptr : &calls_.layers_[static_cast<std::size_t>(call.layers)],
              mesh);
  const OnLane there(call.lane);
  Request r = call.kept.request();
  std::vector<TensorCore> operands;
  operands.reserve(static_cast<std::size_t>(call.operands.size()));
  for (const int t : call.operands) r.operands.push_back(&operands.emplace_back(seen(t, tensors)));
  TensorCore& first = tensors[static_cast<std::size_t>(calls_.number_of(call.results[0]))];
  if (call.moves && !first.defined())  // to where there is nothing yet
    first = on_process(mesh, r.site, [&] { return fresh(calls_.number_of(call.results[0])); });
  TensorCore into;
  if (call.into) {
    into = seen(call.results[0], tensors);
    r.extras.into = &into;
  }
  std::vector<TensorCore> results(1);
  std::vector<TensorCore> also;
  if (call.results.size() > 1) r.extras.also = &also;
  results[0] = on_process(mesh, r.site, [&] {
    const Agreed agreed =
        agree_on(r, {r.operation, call.name}, [&]() -> const Prepared& { return *call.prepared; });
    return carry_out(r, agreed.prepared, agreed.history);
  });
  if (call.moves) return first.storage()->set_history(into.storage()->history());
  for (TensorCore& one : also) results.push_back(std::move(one));
  for (int k = 0; k < call.results.size(); ++k)
    tensors[static_cast<std::size_t>(calls_.number_of(call.results[k]))] =
        std::move(results[static_cast<std::size_t>(k)]);
}

}  // namespace tessera::detail
