// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A model of four blocks with a skip connection, a tied weight and a loss, whose stages lie on the
/// parts of a mesh. Its pipelines are compared with the same function on one part, which every
/// process has for itself. Used on loopback and under MPI.
///
///     std::string wrong = support::pipeline_case<double>(transport, {2, one_f_one_b(2, 4), {0, 0, 1, 1}, {4, 4, 4, 4}}, 1e-12);
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tessera/pipeline.hpp>
#include <tessera/tessera.hpp>

#include "op/cases.hpp"
#include "support/larger.hpp"

namespace support {
using namespace tessera;

namespace lines {
struct stage : Axis<> {};
struct data : Axis<> {};
}  // namespace lines
using Lines = Mesh<lines::stage, lines::data>;
using Line = Without<Lines, lines::stage>;
template <class T, class... S> using OnLine = ShardedTensor<T, Line, P<S...>>;

template <class T> struct Block {
  OnLine<T, _, _> weight;
  OnLine<T, _> bias;
  static constexpr auto fields = Fields<&Block::weight, &Block::bias>{};
};
template <class T> struct Stack {
  OnLine<T, _, _> embed;  ///< used again at the end
  std::vector<Block<T>> blocks;
  static constexpr auto fields = Fields<&Stack::embed, &Stack::blocks>{};
};
template <class T> struct Sample {
  OnLine<T, lines::data, _> x, y;
  static constexpr auto fields = Fields<&Sample::x, &Sample::y>{};
};

inline constexpr Index width = 5;

/// The sum of squares of what the stack makes of x, less y. Block 2 reads what block 0 has made,
/// beside what block 1 has.
template <class T> auto stack_loss(const Stack<T>& m, const Sample<T>& s) {
  const auto block = [](const OnLine<T, lines::data, _>& x, const Block<T>& b) {
    return OnLine<T, lines::data, _>(tanh(einsum<"ik,kj->ij">(x, b.weight) + b.bias));
  };
  auto x = layer("embed", [](const auto& a, const auto& w) {
    return OnLine<T, lines::data, _>(einsum<"ik,kj->ij">(a, w));
  })(s.x, m.embed);
  std::vector<OnLine<T, lines::data, _>> made;
  for (std::size_t i = 0; i < m.blocks.size(); ++i) {
    if (i == 2)
      x = layer("blocks.2", [](const auto& a, const auto& b) { return a + b; })(x, made[0]);
    x = layer("blocks." + std::to_string(i), block)(x, m.blocks[i]);
    made.push_back(x);
  }
  return layer("head", [](const auto& a, const auto& w, const auto& y) {
    return sum<"ij->">(square(einsum<"ik,jk->ij">(a, w) - y));
  })(x, m.embed, s.y);
}

/// A function of the index that nobody would make by mistake.
template <class T> struct Wave {
  int salt;
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    double phase = 1.0 + salt;
    for (int d = 0; d < i.size(); ++d) phase += (1.7 - d) * static_cast<double>(i[d]);
    return static_cast<T>(Kokkos::sin(phase) / 2);
  }
};
template <class T, class On> Stack<T> stack_on(const On& part_of) {
  const auto matrix = [](const ProcessMesh<Line>& on, int salt) {
    return from_function<OnLine<T, _, _>>(on, {width, width}, Wave<T>{salt});
  };
  Stack<T> m{matrix(part_of(0), 1), {}};
  for (int b = 0; b < 4; ++b)
    m.blocks.push_back({matrix(part_of(b), 10 + b),
                        from_function<OnLine<T, _>>(part_of(b), {width}, Wave<T>{20 + b})});
  return m;
}
template <class T>
Sample<T> sample_on(const ProcessMesh<Line>& x, const ProcessMesh<Line>& y, Index rows, int salt) {
  const auto one = [&](const ProcessMesh<Line>& on, int more) {
    return from_function<OnLine<T, lines::data, _>>(on, {rows, width}, Wave<T>{30 + salt + more});
  };
  return {one(x, 0), one(y, 100)};
}

template <class X> double largest_difference(const X& a, const X& b, double scale = 0) {
  double most = 0;
  const auto x = to_host(a), y = to_host(b);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    scale = std::max(scale, std::abs(static_cast<double>(y.values[i])));
    most = support::larger(
        most, std::abs(static_cast<double>(x.values[i]) - static_cast<double>(y.values[i])));
  }
  return scale == 0 ? most : most / scale;
}

/// What is run: a schedule, the stage of each block (the embedding is in the first's, the head in
/// the last's), and the rows of each micro-batch.
struct PipelineCase {
  int parts = 1;
  PipelineSchedule schedule;
  std::vector<int> stage_of;
  std::vector<Index> rows;

  std::string text() const {
    std::string words = schedule.name + " on " + std::to_string(parts) + " parts, blocks in";
    for (const int stage : stage_of) words += " " + std::to_string(stage);
    words += ", rows";
    for (const Index r : rows) words += " " + std::to_string(r);
    return words + ": ";
  }
  StageMap map() const {
    StageMap map{{"embed", stage_of.front()}, {"head", stage_of.back()}};
    for (int b = 0; b < 4; ++b)
      map.add("blocks." + std::to_string(b), stage_of[static_cast<std::size_t>(b)]);
    return map;
  }
  /// Returns the same with all blocks in one stage.
  PipelineCase in_one_stage() const {
    PipelineCase one = *this;
    one.schedule = gpipe(parts, static_cast<int>(rows.size()));
    one.stage_of.assign(4, 0);
    return one;
  }
};

/// A table in which each action comes after all that it needs, else in any order: of each stage and
/// micro-batch the way back is one action or two.
inline PipelineSchedule some_table(Random& random, int parts, int stages, int micro_batches) {
  PipelineSchedule s{"random", micro_batches, {}, {}};
  s.lists.resize(static_cast<std::size_t>(parts));
  for (int stage = 0; stage < stages; ++stage)
    s.part_of.push_back(stage < parts ? stage : random.below(parts));
  // Of each: the passes that are listed: forward, by inputs, by weights.
  std::vector<int> listed(static_cast<std::size_t>(stages * micro_batches));
  const auto done = [&](int stage, int m) -> int& {
    return listed[static_cast<std::size_t>(stage * micro_batches + m)];
  };
  for (int left = 3 * stages * micro_batches; left > 0;) {
    const int stage = random.below(stages), m = random.below(micro_batches);
    int& own = done(stage, m);
    const bool ready = own == 0   ? stage == 0 || done(stage - 1, m) > 0
                       : own == 1 ? stage + 1 == stages || done(stage + 1, m) > 1
                                  : own == 2;
    if (!ready) continue;
    const bool whole = own == 1 && random.chance(50);
    const PipelinePass pass = own == 0   ? PipelinePass::forward
                              : own == 2 ? PipelinePass::backward_weights
                              : whole    ? PipelinePass::backward
                                         : PipelinePass::backward_inputs;
    s.lists[static_cast<std::size_t>(s.part(stage))].push_back({pass, stage, m});
    own += whole ? 2 : 1;
    left -= whole ? 2 : 1;
  }
  return s;
}

/// A schedule, a map of four blocks and micro-batches, chosen by a seed.
inline PipelineCase some_pipeline(Random& random, int processes) {
  PipelineCase c;
  do {
    c.parts = 1 + random.below(processes);
  } while (processes % c.parts != 0 || c.parts > 4);
  const int m = 1 + random.below(6), each = 1 + random.below(2);
  switch (random.below(6)) {
    case 0:
      c.schedule = gpipe(c.parts, m);
      break;
    case 1:
      c.schedule = one_f_one_b(c.parts, m);
      break;
    case 2:
      c.schedule = zero_bubble(c.parts, m);
      break;
    case 3:
      c.schedule = interleaved(c.parts, each, m);
      break;
    case 4:
      c.schedule = some_table(random, c.parts, each * c.parts, m);
      break;
    default:
      c.schedule = zero_bubble_v(c.parts, m);
  }
  const int stages = c.schedule.stages();
  for (int b = 0; b < 4; ++b) c.stage_of.push_back(random.below(stages));
  std::sort(c.stage_of.begin(), c.stage_of.end());
  const bool even = random.chance(50);
  for (int k = 0; k < m; ++k)
    c.rows.push_back(even && k > 0 ? c.rows[0] : static_cast<Index>(random.below(6)));
  return c;
}

/// A pipeline with what it is given.
template <class T> class PipelineSetting {
 public:
  PipelineSetting(std::shared_ptr<Transport> transport, const PipelineCase& c)
      : PipelineSetting(make_mesh<Lines>(transport, c.parts, transport->size() / c.parts), c) {}
  PipelineSetting(const ProcessMesh<Lines>& on, const PipelineCase& c) : mesh(on), case_(c) {
    model = stack_on<T>([&](int b) { return part(c.stage_of[static_cast<std::size_t>(b)]); });
    for (std::size_t m = 0; m < c.rows.size(); ++m)
      batches.push_back(sample_on<T>(part(c.stage_of.front()), part(c.stage_of.back()), c.rows[m],
                                     static_cast<int>(m)));
  }
  ProcessMesh<Line> part(int stage) const {
    return mesh.template part<lines::stage>(case_.schedule.part(stage));
  }
  ProcessMesh<Line> own() const {
    return mesh.template part<lines::stage>(mesh.template coordinate<lines::stage>());
  }
  auto pipeline() const {
    return pipelined<lines::stage>(
        mesh, [](const Stack<T>& w, const Sample<T>& s) { return stack_loss(w, s); }, case_.map(),
        case_.schedule);
  }
  /// The same function on this process's part alone, summed over the micro-batches.
  ValueAndGradient<OnLine<T>, Stack<T>> expected() const {
    return expected(stack_on<T>([&](int) { return own(); }));
  }
  /// The same with other weights, on this process's part.
  ValueAndGradient<OnLine<T>, Stack<T>> expected(const Stack<T>& alone) const {
    std::vector<ValueAndGradient<OnLine<T>, Stack<T>>> sum;
    for (std::size_t m = 0; m < case_.rows.size(); ++m) {
      const auto one = value_and_grad([](const Stack<T>& w, const Sample<T>& s) {
        return stack_loss(w, s);
      })(alone, sample_on<T>(own(), own(), case_.rows[m], static_cast<int>(m)));
      if (m == 0) {
        sum.push_back({one.value, one.gradient});
        continue;
      }
      sum[0].value = sum[0].value + one.value;
      for_each_tensor([](auto& all, const auto& g) { all = all + g; }, sum[0].gradient,
                      one.gradient);
    }
    return sum[0];
  }

  ProcessMesh<Lines> mesh;
  Stack<T> model;
  std::vector<Sample<T>> batches;

 private:
  PipelineCase case_;
};

/// Runs a pipeline twice, and evaluates: the values are those of one part; the payload of the whole
/// mesh is the model's flows and the moves of the tied weight; and a part's peak is that of a dry
/// run.
template <class T>
std::string pipeline_case(std::shared_ptr<Transport> transport, const PipelineCase& c,
                          double tolerance) {
  const PipelineSetting<T> s(transport, c);
  const auto expected = s.expected();
  auto step = s.pipeline();
  std::string wrong;
  const auto compare = [&](const std::string& what, const auto& x, const auto& y) {
    if (x.core().mesh()->absent() || !wrong.empty()) return;
    if (const double by = largest_difference(x, y); !(by <= tolerance))
      wrong = what + " differs by " + std::to_string(by);
  };
  for (int round = 0; round < 2 && wrong.empty(); ++round) {
    s.mesh.ledger().reset();
    const auto [value, gradient] = step(s.model, s.batches);
    const Index sent = s.mesh.ledger().total().payload_bytes;
    compare("the value", value, expected.value);
    if (value.core().mesh() != s.part(c.stage_of.back()).core())
      return c.text() + "the loss is elsewhere";
    std::vector<std::string> paths;
    for_each_named_tensor([&](const std::string& path, const auto&) { paths.push_back(path); },
                          s.model);
    std::size_t at = 0;
    for_each_tensor(
        [&](const auto& g, const auto& e, const auto& x) {
          if (g.core().mesh() != x.core().mesh())
            wrong = "the gradient of " + paths[at] + " is elsewhere";
          compare("the gradient of " + paths[at++], g, e);
        },
        gradient, expected.gradient, s.model);
    s.mesh.ledger().reset();
    const auto first = s.part(c.stage_of.front()), last = s.part(c.stage_of.back());
    if (first.core() != last.core()) (void)reshard<OnLine<T, _, _>>(s.model.embed, last);
    const Index tied = s.mesh.ledger().total().payload_bytes;
    const auto own = static_cast<std::size_t>(s.mesh.template coordinate<lines::stage>());
    const Index planned = step.planned().parts[own].sent_bytes + tied;
    if (wrong.empty() && sent != planned)
      wrong = std::to_string(sent) + " bytes are sent, and " + std::to_string(planned) + " planned";
  }
  if (wrong.empty()) compare("the evaluation", step.evaluate(s.model, s.batches), expected.value);
  return wrong.empty() ? "" : c.text() + wrong;
}

/// Whether each stage goes through the micro-batches in their order, as one stage does by GPipe:
/// else the sums over them are added in another order.
inline bool in_order(const PipelineSchedule& s) {
  for (const auto& list : s.lists)
    for (std::size_t i = 0; i < list.size(); ++i)
      for (std::size_t k = 0; k < i; ++k)
        if (list[k].stage == list[i].stage && list[k].pass == list[i].pass &&
            list[k].micro_batch > list[i].micro_batch)
          return false;
  return true;
}

/// A pipeline's value and gradients have the bits of the same function with all of its blocks in
/// one stage of the same mesh.
template <class T>
std::string pipeline_bits(std::shared_ptr<Transport> transport, const PipelineCase& c) {
  if (!in_order(c.schedule)) return "";
  const PipelineSetting<T> s(transport, c), t(s.mesh, c.in_one_stage());
  auto step = s.pipeline(), same = t.pipeline();
  const auto [value, gradient] = step(s.model, s.batches);
  const auto [its_value, its_gradient] = same(t.model, t.batches);
  const auto part_of = [&](const auto& x) {
    for (int p = 0; p < c.parts; ++p)
      if (s.mesh.template part<lines::stage>(p).core() == x.core().mesh())
        return s.mesh.template part<lines::stage>(p);
    return t.part(0);
  };
  std::string wrong;
  const auto compare = [&](const auto& x, const auto& other) {
    const auto on = part_of(x);
    const auto y =
        other.core().mesh() == on.core() ? other : reshard<std::decay_t<decltype(x)>>(other, on);
    if (!x.core().mesh()->absent() && largest_difference(x, y) != 0)
      wrong = "other bits than in one stage";
  };
  compare(value, its_value);
  for_each_tensor(compare, gradient, its_gradient);
  return wrong.empty() ? "" : c.text() + wrong;
}

/// Twenty steps of descent: a loss is that of one part to a tolerance, and has the bits of one
/// stage.
template <class T>
std::string pipeline_descent(std::shared_ptr<Transport> transport, const PipelineCase& c,
                             double tolerance) {
  PipelineSetting<T> s(transport, c), t(s.mesh, c.in_one_stage());
  auto step = s.pipeline(), same = t.pipeline();
  auto alone = stack_on<T>([&](int) { return s.own(); });
  const auto improve = [](auto& model, const auto& gradient) {
    for_each_tensor([](auto& w, const auto& g) { w = w - g * static_cast<T>(0.01); }, model,
                    gradient);
  };
  std::string wrong;
  for (int number = 1; number <= 20; ++number) {
    const auto run = step(s.model, s.batches);
    const auto its = same(t.model, t.batches);
    const auto expected = s.expected(alone);
    improve(s.model, run.gradient);
    improve(t.model, its.gradient);
    improve(alone, expected.gradient);
    const auto there = reshard<OnLine<T>>(its.value, s.part(c.stage_of.back()));
    if (run.value.core().mesh()->absent() || !wrong.empty()) continue;
    const std::string words = c.text() + "step " + std::to_string(number) + ": ";
    if (in_order(c.schedule) && largest_difference(run.value, there) != 0)
      wrong = words + "other bits than in one stage";
    else if (!(largest_difference(run.value, expected.value) <= tolerance))
      wrong = words + "another loss than on one part";
  }
  return wrong;
}

/// What a part's own processes send among each other in a step with `m` micro-batches.
inline Index sent_within_part(std::shared_ptr<Transport> transport, int parts, int m) {
  const std::vector<Index> rows(static_cast<std::size_t>(m), 6);
  const PipelineSetting<double> s(
      std::move(transport), {parts, one_f_one_b(parts, m), {0, 0, parts - 1, parts - 1}, rows});
  auto step = s.pipeline();
  s.own().ledger().reset();
  (void)step(s.model, s.batches);
  return s.own().ledger().total().payload_bytes;
}

/// The peak of a part's arena in a pipeline is that of a dry run of the same process, and the one
/// that the pipeline states.
template <class T = float>
std::string pipeline_peak(std::shared_ptr<Transport> transport, const PipelineCase& c) {
  struct Peaks {
    Index arena, stated;
  };
  const auto peaks = [&](std::shared_ptr<Transport> on) -> Peaks {
    const PipelineSetting<T> s(std::move(on), c);
    auto step = s.pipeline();
    (void)step(s.model, s.batches);
    const Index before = s.own().arena().in_use();
    s.own().arena().reset_peak();
    (void)step(s.model, s.batches);
    const auto own = static_cast<std::size_t>(s.mesh.template coordinate<lines::stage>());
    return {s.own().arena().peak() - before, step.planned().parts[own].peak_bytes};
  };
  const Peaks dry = peaks(dry_transport(transport->size(), transport->process())),
              real = peaks(transport);
  if (dry.arena == real.arena && dry.stated == real.arena && real.stated == real.arena) return "";
  return c.text() + "the peak is " + std::to_string(real.arena) + " bytes, a dry run's " +
         std::to_string(dry.arena) + ", and stated are " + std::to_string(real.stated) + " and " +
         std::to_string(dry.stated);
}

}  // namespace support
