// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A model's loss and gradient by a pipeline: its layers lie on parts of a mesh, and micro-batches
/// go through them by a schedule.
///
///     const auto loss = [](const Model& m, const Batch& b) { … layer("block.0", block)(x, m.first) … };
///     auto step = pipelined<stage>(mesh, loss, {{"block.0", 0}, {"block.1", 1}}, one_f_one_b(2, 4));
///     auto [value, gradient] = step(model, micro_batches);     // four of them
///     explain(step.schedule(), step.planned())
///
/// The function is written for one mesh, that of a part, `Without<Grid, stage>`; all parts are
/// alike. Each of the model's tensors lies on the part of a stage that uses it. A stage elsewhere
/// that uses it too, as that of a tied weight, gets it once in each call, and its gradient comes
/// back the same way. A micro-batch is a tree of tensors, on any parts; micro-batches may differ in
/// size, but not in the operators that they call. The function runs once for each micro-batch, on
/// all processes, and lists its operators; these are carried out when it has returned, each on its
/// own part.
///
/// Laws: the value and the gradient are sums over the micro-batches, added in the order in which
/// the schedule goes forward, and back, by them; so they have the same bits whatever the parts and
/// stages are. Sums of half types are kept in float and rounded once, before that over processes.
/// The sum over processes that a weight's gradient needs beside, as over those of a data axis, is
/// made once, of the sum over micro-batches.
#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/grad/value_and_grad.hpp>
#include <tessera/pipeline/runner.hpp>
#include <tessera/program/pipeline/chart.hpp>
#include <tessera/program/pipeline/schedules.hpp>
#include <tessera/tensor/process_mesh.hpp>

namespace tessera {

namespace detail {
/// What a function returns: a tensor, or a tuple.
template <class R> struct PipelineResult {
  static constexpr std::size_t tensors = 1;
  template <class Visit> static void each(const R& value, const Visit& visit) {
    visit(value.core());
  }
  static R from(const std::vector<TensorCore>& all, std::size_t& next) { return R(all[next++]); }
};
template <class... R> struct PipelineResult<std::tuple<R...>> {
  static constexpr std::size_t tensors = (PipelineResult<R>::tensors + ... + 0);
  template <class Visit> static void each(const std::tuple<R...>& value, const Visit& visit) {
    std::apply([&](const R&... one) { (PipelineResult<R>::each(one, visit), ...); }, value);
  }
  static std::tuple<R...> from(const std::vector<TensorCore>& all, std::size_t& next) {
    return {PipelineResult<R>::from(all, next)...};
  }
};
}  // namespace detail

template <class F, class Part> class Pipelined {
 public:
  Pipelined(std::shared_ptr<MeshCore> whole, std::vector<ProcessMesh<Part>> parts, F f,
            StageMap map, PipelineSchedule schedule, Where where)
      : f_(std::move(f)),
        where_(where),
        gradient_(whole, cores(parts), map, std::move(schedule), where),
        evaluation_(std::move(whole), cores(parts), std::move(map),
                    forward_alone(gradient_.schedule()), where) {}

  /// Returns the sum over the micro-batches of f(model, micro-batch), a scalar on the part of the
  /// stage that makes it, or a tuple that begins with one, each of which is summed; and of the
  /// gradients of the first by the model, each on the part of its tensor. On
  /// processes of other parts a tensor has no values. Collective over the mesh. Communication: that
  /// of the operators on their parts, and the flows of model(). Throws UsageError where f cannot be
  /// cut by the map, and what f and its gradient throw.
  template <class Model, class Batch>
  auto operator()(const Model& model, const std::vector<Batch>& micro_batches) {
    using Value = ValueOf<Model, Batch>;
    std::vector<detail::ListedMicroBatch> lists;
    for (const Batch& batch : given_alone(micro_batches)) lists.push_back(list<true>(model, batch));
    std::vector<std::shared_ptr<MeshCore>> homes(detail::PipelineResult<Value>::tensors);
    for_each_tensor([&](const auto& x) { homes.push_back(x.core().mesh()); }, model);
    const std::vector<TensorCore> results = gradient_.run(lists, homes);
    std::size_t next = 0;
    Value value = detail::PipelineResult<Value>::from(results, next);
    return ValueAndGradient<Value, Model>{
        std::move(value),
        map_tensors([&](const auto& x) { return std::decay_t<decltype(x)>(results[next++]); },
                    model)};
  }
  /// Returns the sum of the values alone: the stages go forward. As above.
  template <class Model, class Batch>
  auto evaluate(const Model& model, const std::vector<Batch>& micro_batches) {
    using Result = detail::PipelineResult<ValueOf<Model, Batch>>;
    std::vector<detail::ListedMicroBatch> lists;
    for (const Batch& batch : given_alone(micro_batches))
      lists.push_back(list<false>(model, batch));
    std::size_t next = 0;
    return Result::from(
        evaluation_.run(lists, std::vector<std::shared_ptr<MeshCore>>(Result::tensors)), next);
  }

  const PipelineSchedule& schedule() const { return gradient_.schedule(); }
  /// Returns what the stages of the last call need: times are the same on all processes, bytes and
  /// memory this one's; where micro-batches differ, those of the largest. Throws UsageError before
  /// the first.
  const PipelineModel& model() const { return gradient_.model(); }
  /// Returns the last call on paper: the times of simulate(model(), schedule()); and, to the byte,
  /// what each part sends and receives, and its peak: what its arena holds at most beside what it
  /// held when the call began. Throws UsageError before the first.
  PipelineRun planned() const { return gradient_.planned(); }
  /// Returns when the actions of the last call ran, on the first process of each part: to be
  /// compared with planned(), and drawn as that is; bytes and peaks are the planned ones. The
  /// clocks of one node are one. Collective over the mesh. Communication: small, in no ledger.
  /// Throws UsageError before the first call.
  PipelineRun measured() const { return gradient_.measured(); }

 private:
  template <class Model, class Batch>
  using ValueOf = std::decay_t<std::invoke_result_t<const F&, const Model&, const Batch&>>;
  static std::vector<std::shared_ptr<MeshCore>> cores(const std::vector<ProcessMesh<Part>>& parts) {
    std::vector<std::shared_ptr<MeshCore>> all;
    for (const ProcessMesh<Part>& part : parts) all.push_back(part.core());
    return all;
  }
  template <class Batch>
  const std::vector<Batch>& given_alone(const std::vector<Batch>& micro_batches) const {
    if (static_cast<int>(micro_batches.size()) != schedule().micro_batches)
      throw UsageError("a pipeline is given " + std::to_string(micro_batches.size()) +
                           " micro-batches, and its schedule " + schedule().name + " has " +
                           std::to_string(schedule().micro_batches) + "; give as many",
                       where_);
    return micro_batches;
  }

  /// Lists f, and its gradient, on stand-ins for the arguments.
  template <bool Back, class Model, class Batch>
  detail::ListedMicroBatch list(const Model& model, const Batch& batch) {
    detail::ListedMicroBatch one;
    std::vector<TensorCore> given;
    const auto stand_in = [&](const auto& x) {
      const TensorCore& core = x.core();
      (void)core.mesh();
      given.push_back(core);
      one.stand_ins.emplace_back(gradient_.own(), core.desc(),
                                 detail::make_promise(gradient_.own(), where_));
      return std::decay_t<decltype(x)>(one.stand_ins.back());
    };
    const Model own = map_tensors(stand_in, model);
    const Batch its = map_tensors(stand_in, batch);
    using Value = ValueOf<Model, Batch>;
    std::vector<TensorCore> results;
    const auto returned = [&](const TensorCore& x) { results.push_back(x); };
    const detail::TakenBy scope(one.calls.get());
    if constexpr (Back) {
      detail::Differentiation run(where_);
      run.follow_summand(own);
      const Value value = run.forward([&] { return f_(own, its); });
      one.forward = one.calls->size();
      run.back(detail::loss_among(value));
      detail::PipelineResult<Value>::each(value, returned);
      for (TensorCore& g : run.summands(own)) results.push_back(std::move(g));
    } else {
      detail::PipelineResult<Value>::each(f_(own, its), returned);
      one.forward = one.calls->size();
    }
    for (const TensorCore& result : results) one.outputs.push_back(one.calls->number(result));
    one.results = std::move(results);
    for (std::size_t i = 0; i < given.size(); ++i)
      if (const int number = one.calls->number(one.stand_ins[i]); number >= 0)
        one.given.emplace_back(number, given[i]);
    return one;
  }

  F f_;
  Where where_;
  detail::PipelineRunner gradient_, evaluation_;
};

/// Returns f, a function of a model and a micro-batch that returns a scalar, or a tuple that begins
/// with one, as a pipeline along the axis `Stage` of a mesh: its layers belong to stages as `map`
/// says, whose parts and order are the schedule's. Communication: that of making the parts.
/// Collective over the mesh. Throws UsageError where the schedule has other parts than the axis has
/// processes, or cannot end.
template <class Stage, class Grid, class F>
auto pipelined(const ProcessMesh<Grid>& mesh, F&& f, StageMap map, PipelineSchedule schedule,
               Where where = Where::here()) {
  using Part = Without<Grid, Stage>;
  std::vector<ProcessMesh<Part>> parts;
  for (int p = 0; p < mesh.template size<Stage>(); ++p)
    parts.push_back(mesh.template part<Stage>(p));
  return Pipelined<std::decay_t<F>, Part>(mesh.core(), std::move(parts), std::forward<F>(f),
                                          std::move(map), std::move(schedule), where);
}

}  // namespace tessera
