// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Makes a model whose layers are stages of a pipeline: each parameter on the part of the mesh
/// whose stage uses it, so that no process ever holds another stage's.
///
///     const auto stage_of = [](std::string_view path) { return path.starts_with("blocks.1") ? 1 : 0; };
///     const auto model = on_stages<stage>(mesh, 7, one_f_one_b(2, 4), stage_of, [](auto& make) {
///       return Decoder<Here>::like(make, sizes);
///     });
///
/// Or all stages as one layer, for pipeline/shifted.hpp, each process holding its own:
///
///     Parameters<Grid> make(mesh, 7);
///     const auto blocks = of_all_stages(make, {4}, [](auto& each) {
///       return DecoderBlock<OfStages<Here, stage>>::like(each, sizes);   // each tensor is (4, ...)
///     });
///
/// Laws: the elements are those that Parameters(part, seed) makes of the whole model on one part,
/// or of the stages one after the other. Communication: none.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/comm/dry.hpp>
#include <tessera/nn/parameters.hpp>
#include <tessera/program/pipeline/schedule.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {
namespace detail {
/// Returns a mesh like another, without processes.
template <class M> ProcessMesh<M> described_mesh(const ProcessMesh<M>& mesh, Where where) {
  return ProcessMesh<M>(make_mesh_core(dry_transport(mesh.processes()), mesh.shape(),
                                       mesh.core()->names(), {}, where));
}
}  // namespace detail

/// Returns make_model(make), a tree of parameters, of which the one at `path` lies on the part of
/// stage_of(path) in the schedule; make_model is called twice. Throws UsageError where stage_of
/// names a stage that there is not, or a tensor of the tree is no parameter.
template <class Stage, class Grid, class StageOf, class MakeModel>
auto on_stages(const ProcessMesh<Grid>& mesh, std::uint64_t seed, const PipelineSchedule& schedule,
               const StageOf& stage_of, const MakeModel& make_model, Where where = Where::here()) {
  using Part = Without<Grid, Stage>;
  const ProcessMesh<Part> first = mesh.template part<Stage>(0);
  Parameters<Part> described(detail::described_mesh(first, where), seed);
  detail::ParameterShardings order;
  described.follow(order);
  const auto shapes = make_model(described);
  std::vector<ProcessMesh<Part>> homes;
  for_each_named_tensor(
      [&](const std::string& path, const auto& x) {
        const std::int64_t number = order.number_of(x.core());
        if (number < 0)
          throw UsageError("on_stages: the tensor at " + path +
                               " is no parameter; make it by Parameters::tensor",
                           where);
        const int stage = stage_of(std::string_view(path));
        if (stage < 0 || stage >= schedule.stages())
          throw UsageError("on_stages: the parameter " + path + " is put into stage " +
                               std::to_string(stage) + ", and the schedule has " +
                               std::to_string(schedule.stages()) + " stages, numbered from 0",
                           where);
        const auto at = static_cast<std::size_t>(number);
        if (at >= homes.size()) homes.resize(at + 1, first);
        homes[at] = mesh.template part<Stage>(schedule.part(stage));
      },
      shapes);
  Parameters<Part> make(first, seed);
  make.spread(std::move(homes));
  return make_model(make);
}

/// Returns make_layer(make), a layer of OfStages<U, Lead...> (pipeline/each_stage.hpp) of all
/// stages, whose numbers along the dimensions Lead... are `stages`: {4}, or {rounds, 4}. Each stage
/// has the elements that a layer of U would have, made after those of the stages before.
/// make_layer is called twice. Communication: none. Throws what make_layer throws.
template <class M, class MakeLayer>
auto of_all_stages(Parameters<M>& make, const Extents& stages, const MakeLayer& make_layer,
                   Where where = Where::here()) {
  Parameters<M> described(detail::described_mesh(make.mesh(), where), 0);
  described.stack(stages, 0);
  (void)make_layer(described);
  struct Stacked {
    Parameters<M>& make;
    ~Stacked() { make.unstack(); }
  };
  make.stack(stages, described.made());
  const Stacked until_made{make};
  return make_layer(make);
}

}  // namespace tessera
