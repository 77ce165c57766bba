// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Making a model whose shardings were chosen on paper.
///
///     using Here = Under<float, Grid, OpenRules>;                  // nothing is annotated
///     const auto make = [](auto& parameters) { return Decoder<Here>::like(parameters, sizes_of); };
///     Parameters<Grid> dry(dry_mesh<Grid>(2, 2), 7);
///     const Choice choice = choose(step)(make(dry), ids, sizes<Grid>(2, 2));   // step(model, ids)
///     auto model = born_as(choice, "0", mesh, 7, make);            // each weight as it is chosen
///
/// Laws: the elements are those of make(parameters) alone; no process holds more of a weight than
/// its block.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/nn/detail/each_chosen.hpp>
#include <tessera/nn/parameters.hpp>
#include <tessera/program/choice.hpp>
#include <tessera/tensor/process_mesh.hpp>

namespace tessera {

/// Returns make(parameters), a model that is a tree of tensors, on `mesh`: its tensors lie as the
/// choice says of argument `path` of its function and those of types that are not Open as their
/// types say; one that the function does not read is whole. `make` is called twice, on a dry mesh
/// first. Communication: none. Collective over the mesh. Throws ShardingError where a type states
/// otherwise than the choice, UsageError for a choice whose function has no such argument.
template <class M, class Make>
auto born_as(const Choice& choice, std::string_view path, const ProcessMesh<M>& mesh,
             std::uint64_t seed, const Make& make, Where where = Where::here()) {
  detail::ParameterShardings shardings;
  {
    Parameters<M> dry(dry_mesh(mesh), seed);
    dry.follow(shardings);
    const auto model = make(dry);
    detail::for_each_chosen(choice, path, model, {"born_as", where},
                            [&](std::size_t, const std::string&, const auto& x,
                                const Sharding& to) { return shardings.state(x.core(), to); });
  }
  Parameters<M> parameters(mesh, seed);
  parameters.place(shardings);
  return make(parameters);
}

}  // namespace tessera
