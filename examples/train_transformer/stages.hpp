// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The model in training, its layers in stages on the parts of a mesh.
///
///     StagedTrainer<U> trainer(mesh, flags, one_f_one_b(2, 8));
///     const double nats = everywhere(mesh, trainer.step(rows, 1)).values[0];
///     explain(trainer.schedule(), trainer.planned());
///
/// Laws: the losses, the weights and the files of Trainer, to rounding: micro-batches add the
/// gradients of their rows. For one split of a part the number of stages changes no
/// bit, but of the norm by which gradients are clipped.
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <tessera/nn/decoding/sampling.hpp>
#include <tessera/nn/on_stages.hpp>
#include <tessera/pipeline/pipelined.hpp>

#include "schedule.hpp"
#include "trainer.hpp"

namespace train_transformer {

namespace grid {
struct stage : Axis<> {};
}  // namespace grid
using grid::stage;
using Staged = Mesh<stage, data, model>;
static_assert(std::is_same_v<Without<Staged, stage>, Grid>);

/// Some rows of a batch, ids on the first stage's part and what comes next on the last one's.
template <class U> struct MicroBatch {
  using Counted = typename U::template Tensor<logical::batch, logical::sequence>;
  Ids<U> ids, next;
  std::optional<Counted> counted;  ///< of held-out text: 1 where a loss is counted, else 0
  Turn turn;
  double share = 1;  ///< of the rows of the batch
  static constexpr auto fields =
      Fields<&MicroBatch::ids, &MicroBatch::next, &MicroBatch::counted>{};
};

// What a pipeline computes of a micro-batch.
template <class U> struct Objective {
  Sizes n;
  /// Returns what is made small, and the cross-entropy, each times the share of the micro-batch.
  std::tuple<Scalar<U>, Scalar<U>> operator()(const Model<U>& weights,
                                              const MicroBatch<U>& batch) const {
    const auto share = static_cast<typename U::value_type>(batch.share);
    const auto [objective, nats] = losses(weights, batch.ids, batch.next, n, batch.turn);
    const Layer scope(batch.ids, "loss");
    return {objective * share, nats * share};
  }
};
template <class U> struct CountedLoss {
  Sizes n;
  Scalar<U> operator()(const Model<U>& weights, const MicroBatch<U>& batch) const {
    const auto [out, auxiliary] = scores(weights, batch.ids, n, batch.turn);
    const Layer scope(batch.ids, "loss");
    return sum<"bs->">(cross_entropy(out, batch.next) * *batch.counted);
  }
};
template <class U> struct LastScores {
  Sizes n;
  auto operator()(const Model<U>& weights, const MicroBatch<U>& batch) const {
    const auto [out, auxiliary] = scores(weights, batch.ids, n, batch.turn);
    const Layer scope(batch.ids, "head");
    return squeeze<1>(slice<1>(out, {n.context - 1}, {n.context}));
  }
};

/// Returns a tensor of one part on this process's: every part gets one.
template <class X> X on_every_part(const ProcessMesh<Staged>& mesh, const X& x) {
  std::vector<X> there;
  for (int p = 0; p < mesh.size<stage>(); ++p) there.push_back(reshard<X>(x, mesh.part<stage>(p)));
  return there[static_cast<std::size_t>(mesh.coordinate<stage>())];
}
/// Returns the elements of a tensor of one part, on every process.
template <class X> auto everywhere(const ProcessMesh<Staged>& mesh, const X& x) {
  return to_host(on_every_part(mesh, x));
}

template <class U> class StagedTrainer {
 public:
  StagedTrainer(const ProcessMesh<Staged>& mesh, const Flags& flags,
                const PipelineSchedule& schedule)
      : mesh_(mesh),
        n_(flags.sizes),
        trainer_(born(mesh, n_, schedule), flags),
        step_(pipelined<stage>(mesh, Objective<U>{n_},
                               stage_map(n_.layers, schedule.stages(), true), schedule)),
        counted_(pipelined<stage>(mesh, CountedLoss<U>{n_},
                                  stage_map(n_.layers, schedule.stages(), true),
                                  forward_alone(schedule))),
        last_(pipelined<stage>(mesh, LastScores<U>{n_},
                               stage_map(n_.layers, schedule.stages(), false),
                               once_forward(schedule))) {}

  const Model<U>& weights() const { return trainer_.weights(); }
  const PipelineSchedule& schedule() const { return step_.schedule(); }
  /// Returns what the stages of a step need. Throws UsageError before the first.
  const PipelineModel& model() const { return step_.model(); }
  /// Returns the last step on paper, and when its actions ran, as Pipelined does.
  PipelineRun planned() const { return step_.planned(); }
  PipelineRun measured() const { return step_.measured(); }
  /// Returns the bytes that this process has sent.
  Index payload_bytes() const {
    return mesh_.ledger().payload_bytes() + own_part(mesh_).ledger().payload_bytes();
  }
  static ProcessMesh<Grid> own_part(const ProcessMesh<Staged>& mesh) {
    return mesh.part<stage>(mesh.coordinate<stage>());
  }

  /// Improves the weights; returns the cross-entropy before that, a scalar of the last stage.
  Scalar<U> step(const Rows& rows, Index number) {
    const auto run = step_(trainer_.weights(), micro_batches(rows, {number, true}, nullptr));
    const Layer scope(own_part(mesh_), "optimizer");
    trainer_.improve(run.gradient);
    return std::get<1>(run.value);
  }
  /// Returns the sum of the losses of rows, each times what is counted of it, on every process.
  double counted_loss(const Rows& rows, const std::vector<float>& counted) {
    const auto sum =
        counted_.evaluate(trainer_.weights(), micro_batches(rows, {0, false}, &counted));
    return static_cast<double>(everywhere(mesh_, sum).values[0]);
  }
  /// Returns the scores of what follows each row, (rows, vocabulary), on this process's part.
  auto next_scores(const Rows& rows) {
    return on_every_part(
        mesh_, last_.evaluate(trainer_.weights(),
                              std::vector{micro_batch(rows, 0, rows.count, {0, false}, nullptr)}));
  }
  /// Returns the character that is drawn to follow a row, on every process. It is the draw of
  /// number `place`.
  Id next_character(const Rows& row, Index place) {
    const auto one = [&](Index value) {
      using Row = typename U::template Of<Id, logical::batch>;
      return from_host<Row>(own_part(mesh_), {1}, std::vector{static_cast<Id>(value)});
    };
    return to_host(next_token(next_scores(row), {.seed = n_.seed}, one(0), one(place))).values[0];
  }

  /// As Trainer's.
  void save(const std::string& path, Index step, const std::string& text) {
    trainer_.save(mesh_, path, step, text);
  }
  Index resume(const std::string& path, const std::string& text) {
    return trainer_.resume(mesh_, path, text);
  }

 private:
  ProcessMesh<Grid> part(const PipelineSchedule& schedule, int of_stage) const {
    return mesh_.part<stage>(schedule.part(of_stage));
  }
  /// Returns rows `begin` to `end` - 1 of a batch; `counted`: what is counted of its characters.
  MicroBatch<U> micro_batch(const Rows& rows, Index begin, Index end, Turn turn,
                            const std::vector<float>* counted) const {
    const ProcessMesh<Grid> first = part(schedule(), 0),
                            last = part(schedule(), schedule().stages() - 1);
    const Rows some = some_of(rows, begin, end, n_.context);
    const Extents extents{some.count, n_.context};
    turn.first_row = begin;
    MicroBatch<U> batch{from_host<Ids<U>>(first, extents, some.ids),
                        from_host<Ids<U>>(last, extents, some.next),
                        {},
                        turn,
                        static_cast<double>(some.count) / static_cast<double>(rows.count)};
    if (counted != nullptr)
      batch.counted = from_host<typename MicroBatch<U>::Counted>(
          last, extents,
          std::vector<typename U::value_type>(counted->begin() + begin * n_.context,
                                              counted->begin() + end * n_.context));
    return batch;
  }
  /// Divides a batch among as many micro-batches as the schedule has, the first of which may have
  /// one row more.
  std::vector<MicroBatch<U>> micro_batches(const Rows& rows, const Turn& turn,
                                           const std::vector<float>* counted) const {
    const Index m = schedule().micro_batches;
    const auto begin_of = [&](Index k) { return k * (rows.count / m) + min_of(k, rows.count % m); };
    std::vector<MicroBatch<U>> all;
    for (Index k = 0; k < m; ++k)
      all.push_back(micro_batch(rows, begin_of(k), begin_of(k + 1), turn, counted));
    return all;
  }
  static Model<U> born(const ProcessMesh<Staged>& mesh, const Sizes& n,
                       const PipelineSchedule& schedule) {
    return on_stages<stage>(
        mesh, n.seed, schedule,
        [&](std::string_view path) { return stage_of_weight(path, n.layers, schedule.stages()); },
        [&](auto& make) { return Model<U>::like(make, n); });
  }

  ProcessMesh<Staged> mesh_;
  Sizes n_;
  Trainer<U> trainer_;
  Pipelined<Objective<U>, Grid> step_;
  Pipelined<CountedLoss<U>, Grid> counted_;
  Pipelined<LastScores<U>, Grid> last_;
};

}  // namespace train_transformer
