// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pipelines on loopback: losses and gradients by every schedule are those of one part, bytes and
// peaks are as planned, and what cannot be cut is refused in words.
#include <doctest/doctest.h>

#include <tessera/run/tracing.hpp>

#include "op/texts_of.hpp"
#include "pipeline/manual_stages.hpp"
#include "pipeline/pipeline_case.hpp"
#include "support/json.hpp"

using namespace support;

TEST_CASE("pipeline: any schedule gives the loss and the gradients of one part") {
  const std::uint64_t seed = seed_for("pipelines", 381);
  for (const int processes : {1, 2, 3, 4, 6, 8})
    for (int round = 0; round < cases_of(4, 60); ++round) {
      Random random(seed + static_cast<std::uint64_t>(100 * processes + round));
      const PipelineCase c = some_pipeline(random, processes);
      CHECK(quiet(texts_of(processes, [&](const std::shared_ptr<Transport>& transport) {
        return round % 4 == 3 ? pipeline_case<float>(transport, c, 1e-5)
                              : pipeline_case<double>(transport, c, 1e-12);
      })));
    }
}

TEST_CASE("pipeline: the stages change no bit of the loss and the gradients") {
  const std::uint64_t seed = seed_for("bits of pipelines", 384);
  for (const int processes : {2, 3, 4, 6, 8})
    for (int round = 0; round < cases_of(3, 30); ++round) {
      Random random(seed + static_cast<std::uint64_t>(100 * processes + round));
      const PipelineCase c = some_pipeline(random, processes);
      CHECK(quiet(texts_of(processes, [&](const std::shared_ptr<Transport>& transport) {
        return round % 2 == 0 ? pipeline_bits<float>(transport, c)
                              : pipeline_bits<double>(transport, c);
      })));
    }
}

TEST_CASE("pipeline: the losses of 20 steps are those of one part, and to the bit of one stage") {
  const std::uint64_t seed = seed_for("steps of pipelines", 389);
  for (const int processes : {1, 2, 3, 4, 6, 8})
    for (int round = 0; round < cases_of(1, 10); ++round) {
      Random random(seed + static_cast<std::uint64_t>(100 * processes + round));
      const PipelineCase c = some_pipeline(random, processes);
      CHECK(quiet(texts_of(processes, [&](const std::shared_ptr<Transport>& transport) {
        return pipeline_descent<double>(transport, c, 1e-12);
      })));
    }
}

TEST_CASE("pipeline: two calls add up to one of all micro-batches") {
  const PipelineCase all{2, one_f_one_b(2, 5), {0, 0, 1, 1}, {4, 2, 3, 1, 5}};
  PipelineCase some = all;
  some.schedule = one_f_one_b(2, 2);
  CHECK(quiet(texts_of(4, [&](const std::shared_ptr<Transport>& transport) -> std::string {
    const PipelineSetting<double> s(transport, all);
    auto step = s.pipeline();
    const auto once = step(s.model, s.batches);
    const std::vector<Sample<double>> first(s.batches.begin(), s.batches.begin() + 2),
        rest(s.batches.begin() + 2, s.batches.end());
    auto two = PipelineSetting<double>(s.mesh, some).pipeline();
    PipelineCase other = all;
    other.schedule = zero_bubble(2, 3);
    auto three = PipelineSetting<double>(s.mesh, other).pipeline();
    auto sum = two(s.model, first);
    const auto more = three(s.model, rest);
    for_each_tensor([](auto& a, const auto& b) { a = a + b; }, sum.gradient, more.gradient);
    std::string wrong;
    for_each_tensor(
        [&](const auto& a, const auto& b) {
          if (!a.core().mesh()->absent() && !(largest_difference(a, b) <= 1e-12))
            wrong = "a gradient differs";
        },
        sum.gradient, once.gradient);
    return wrong;
  })));
}

TEST_CASE("pipeline: all processes of a part wait for the same messages, whatever their blocks") {
  // Blocks of 3, 3 and 1 rows, on a machine whose messages take as long as its passes.
  Machine slow;
  slow.payload_ps_per_kib = 10'000'000;
  const PipelineCase c{2, zero_bubble(2, 4), {0, 0, 1, 1}, {7, 7, 7, 7}};
  std::vector<std::string> texts = texts_of(6, [&](const std::shared_ptr<Transport>& transport) {
    const PipelineSetting<double> s(
        make_mesh<Lines>(transport, sizes<Lines>(2, 3), {.machine = slow}), c);
    auto step = s.pipeline();
    (void)step(s.model, s.batches);
    std::string text;
    for (const PipelineStage& stage : step.model().stages)
      text += std::to_string(stage.forward.time) + " " + std::to_string(stage.inputs.time) + " " +
              std::to_string(stage.weights.time) + "; ";
    for (const PipelineFlow& flow : step.model().flows) text += std::to_string(flow.time) + " ";
    for (const auto& list : pipeline_instructions(step.model(), step.schedule()))
      for (const PipelineInstruction& i : list)
        text += std::to_string(static_cast<int>(i.kind)) + std::to_string(i.action) +
                std::to_string(i.flow) + std::to_string(i.micro_batch) + ",";
    return text;
  });
  CHECK(texts[0].size() > 100);
  for (const std::string& text : texts) CHECK(text == texts[0]);
}

TEST_CASE("pipeline: stages with manual functions are those of the automatic form, to the byte") {
  const std::uint64_t seed = seed_for("pipelines with manual functions", 387);
  for (const int processes : {1, 2, 3, 4, 6, 8})
    for (int round = 0; round < cases_of(4, 40); ++round)
      CHECK(quiet(texts_of(processes, [&](const std::shared_ptr<Transport>& transport) {
        Random random(seed + static_cast<std::uint64_t>(100 * processes + round));
        return manual_pipeline_case(transport, random);
      })));
}

TEST_CASE("pipeline: a weight's gradient is summed over a part's processes once in a step") {
  for (const int parts : {1, 2}) {
    CHECK(quiet(texts_of(2 * parts, [&](const std::shared_ptr<Transport>& t) -> std::string {
      const Index few = sent_within_part(t, parts, 2), many = sent_within_part(t, parts, 6);
      const Index loss = 16;  // of an all-reduce of one double between two processes
      const bool weights = few >= 2 * static_cast<Index>(sizeof(double)) * width * width;
      if (weights && many - few <= 4 * loss) return "";
      return std::to_string(few) + " bytes with 2 micro-batches and " + std::to_string(many) +
             " with 6";
    })));
  }
}

TEST_CASE("pipeline: the peak of a part is the stated one, and that of a dry run") {
  const std::uint64_t seed = seed_for("peaks of pipelines", 385);
  for (const int processes : {1, 2, 3, 4, 6, 8})
    for (int round = 0; round < cases_of(3, 30); ++round) {
      Random random(seed + static_cast<std::uint64_t>(100 * processes + round));
      const PipelineCase c = some_pipeline(random, processes);
      CHECK(quiet(texts_of(processes, [&](const std::shared_ptr<Transport>& t) {
        return round % 3 == 2 ? pipeline_peak<bfloat16>(t, c) : pipeline_peak(t, c);
      })));
    }
  for (const int processes : {2, 4})
    for (const PipelineSchedule& schedule :
         {gpipe(2, 4), one_f_one_b(2, 4), zero_bubble(2, 4), interleaved(2, 2, 4)}) {
      const int last = schedule.stages() - 1;
      const PipelineCase c{2, schedule, {0, last / 2, last, last}, {6, 6, 6, 6}};
      CHECK(quiet(texts_of(
          processes, [&](const std::shared_ptr<Transport>& t) { return pipeline_peak(t, c); })));
      CHECK(quiet(texts_of(processes, [&](const std::shared_ptr<Transport>& t) {
        return pipeline_peak<bfloat16>(t, c);
      })));
    }
}

TEST_CASE("pipeline: sums of half types over many micro-batches lose none of them") {
  const int many = 320;
  using T = bfloat16;
  for (const int processes : {2, 4})
    CHECK(quiet(texts_of(processes, [&](const std::shared_ptr<Transport>& t) -> std::string {
      const auto mesh = make_mesh<Lines>(t, 2, processes / 2);
      const auto first = mesh.template part<lines::stage>(0);
      const auto bias = full<OnLine<T, _>>(first, {width}, T(1));
      const std::vector<OnLine<T, lines::data, _>> rows(
          many, zeros<OnLine<T, lines::data, _>>(first, {processes / 2, width}));
      const auto f = [](const OnLine<T, _>& b, const OnLine<T, lines::data, _>& x) {
        const auto y = layer("embed", [](const auto& a, const auto& c) {
          return OnLine<T, lines::data, _>(a + c);
        })(x, b);
        return layer("head", [](const auto& a) { return sum<"ij->">(a); })(y);
      };
      auto step =
          pipelined<lines::stage>(mesh, f, {{"embed", 0}, {"head", 1}}, one_f_one_b(2, many));
      const auto [loss, gradient] = step(bias, rows);
      const double wanted = many * processes / 2;  // each row adds 1 to each gradient
      std::string wrong;
      if (!loss.core().mesh()->absent() && to_host(loss).values[0] != T(wanted * width))
        wrong += "the loss is " + std::to_string(static_cast<double>(to_host(loss).values[0]));
      if (!gradient.core().mesh()->absent())
        for (const T g : to_host(gradient).values)
          if (g != T(wanted)) wrong += "; a gradient is " + std::to_string(static_cast<double>(g));
      return wrong;
    })));
}

TEST_CASE("pipeline: what cannot be cut or run is refused in words, on every process") {
  const auto says = [](const PipelineCase& c, const StageMap* map, const std::string& part,
                       int batches = -1) {
    return all_say(texts_of(2,
                            [&](const std::shared_ptr<Transport>& transport) -> std::string {
                              const PipelineSetting<double> s(transport, c);
                              auto step = pipelined<lines::stage>(
                                  s.mesh,
                                  [](const Stack<double>& w, const Sample<double>& b) {
                                    return stack_loss(w, b);
                                  },
                                  map == nullptr ? c.map() : *map, c.schedule);
                              auto given = s.batches;
                              if (batches >= 0) given.resize(static_cast<std::size_t>(batches));
                              (void)step(s.model, given);
                              return "nothing";
                            }),
                   part);
  };
  const PipelineCase good{2, gpipe(2, 2), {0, 0, 1, 1}, {3, 3}};
  CHECK(says(good, nullptr, "is given 1 micro-batches, and its schedule GPipe has 2; give as many",
             1));
  const StageMap typo{{"embed", 0}, {"blocks.0", 0}, {"block.1", 1}, {"head", 1}};
  CHECK(says(good, &typo,
             "no operator runs in layer \"block.1\"; the layers are embed, blocks.0, blocks.1, "
             "blocks.2, blocks.3, head"));
  const StageMap beyond{{"embed", 0}, {"head", 2}};
  CHECK(says(good, &beyond,
             "layer \"head\" is put into stage 2, and there are 2 stages, numbered from 0"));
  const StageMap back{{"embed", 0},    {"blocks.0", 1}, {"blocks.1", 0},
                      {"blocks.2", 1}, {"blocks.3", 1}, {"head", 1}};
  CHECK(says(good, &back, "stages wait for each other: operator"));
  CHECK(says(good, &back, "of layer \"blocks.1\""));
  PipelineCase stuck = good;
  stuck.schedule = parse_schedule("0F0,0F1,0B0,0B1\n1F1,1B1,1F0,1B0", {0, 1});
  stuck.schedule.lists[0] = {{PipelinePass::forward, 0, 0},
                             {PipelinePass::backward, 0, 0},
                             {PipelinePass::forward, 0, 1},
                             {PipelinePass::backward, 0, 1}};
  CHECK(says(stuck, nullptr, "some actions wait for each other: "));
}

TEST_CASE("pipeline: a function may return several tensors, of which the first is differentiated") {
  const PipelineCase c{2, one_f_one_b(2, 3), {0, 0, 1, 1}, {4, 2, 3}};
  CHECK(quiet(texts_of(4, [&](const std::shared_ptr<Transport>& transport) -> std::string {
    const PipelineSetting<double> s(transport, c);
    const auto expected = s.expected();
    const auto with_more = [](const Stack<double>& w, const Sample<double>& b) {
      const auto loss = stack_loss(w, b);
      const auto first = layer("embed", [](const auto& x) { return sum<"ij->">(x); })(b.x);
      return std::tuple(loss, std::tuple(first, loss));
    };
    auto step = pipelined<lines::stage>(s.mesh, with_more, c.map(), c.schedule);
    for (const bool back : {true, false}) {
      std::string wrong;
      const auto check = [&](const auto& value) {
        const auto& [loss, more] = value;
        const auto& [first, again] = more;
        const auto on = [](const auto& x) { return !x.core().mesh()->absent(); };
        if (on(loss) && !(largest_difference(loss, expected.value) == 0))
          wrong = "the loss differs";
        if (on(again) && !(largest_difference(again, expected.value) == 0))
          wrong = "what is given twice differs";
        if (on(first) == on(loss)) wrong = "the second result is not on the first stage";
        if (on(first)) {
          double all = 0;
          for (const Sample<double>& b : s.batches) all += tessera::value(sum<"ij->">(b.x));
          if (!(std::abs(all - tessera::value(first)) <= 1e-12))
            wrong = "the second result differs";
        }
      };
      if (back) {
        const auto [value, gradient] = step(s.model, s.batches);
        check(value);
        for_each_tensor(
            [&](const auto& g, const auto& e) {
              if (!g.core().mesh()->absent() && !(largest_difference(g, e) <= 1e-12))
                wrong = "a gradient differs";
            },
            gradient, expected.gradient);
      } else {
        check(step.evaluate(s.model, s.batches));
      }
      if (!wrong.empty()) return wrong;
    }
    auto idle = pipelined<lines::stage>(
        s.mesh,
        [](const Stack<double>& w, const Sample<double>& b) {
          return std::tuple(stack_loss(w, b), b.y);
        },
        c.map(), c.schedule);
    try {
      (void)idle.evaluate(s.model, s.batches);
    } catch (const UsageError& e) {
      const bool said =
          std::string(e.what()).find("none of its operators makes") != std::string::npos;
      return said ? "" : e.what();
    }
    return "a result that is an argument is taken";
  })));
}

TEST_CASE("pipeline: what a function returns may be read on its way back") {
  const PipelineCase c{2, zero_bubble(2, 3), {0, 0, 1, 1}, {4, 2, 3}};
  CHECK(quiet(texts_of(4, [&](const std::shared_ptr<Transport>& transport) -> std::string {
    const PipelineSetting<double> s(transport, c);
    const auto squared = [](const Stack<double>& w, const Sample<double>& b) {
      const auto loss = stack_loss(w, b);  // the gradient of its square reads it
      const auto tall = layer("head", [](const auto& x) { return x * x; })(loss);
      return std::tuple(tall, loss, tall);
    };
    auto step = pipelined<lines::stage>(s.mesh, squared, c.map(), c.schedule);
    (void)step(s.model, s.batches);
    const Index before = s.own().arena().in_use();
    s.own().arena().reset_peak();
    const auto [value, gradient] = step(s.model, s.batches);
    const Index peak = s.own().arena().peak() - before;
    const auto own = static_cast<std::size_t>(s.mesh.template coordinate<lines::stage>());
    if (const Index stated = step.planned().parts[own].peak_bytes; stated != peak)
      return std::to_string(peak) + " bytes are held, and " + std::to_string(stated) + " stated";
    const auto alone = stack_on<double>([&](int) { return s.own(); });
    double tall = 0, loss = 0;
    std::vector<Stack<double>> sum;
    for (std::size_t m = 0; m < c.rows.size(); ++m) {
      const auto one = value_and_grad(squared)(
          alone, sample_on<double>(s.own(), s.own(), c.rows[m], static_cast<int>(m)));
      tall += tessera::value(std::get<0>(one.value));
      loss += tessera::value(std::get<1>(one.value));
      if (m == 0)
        sum.push_back(one.gradient);
      else
        for_each_tensor([](auto& all, const auto& g) { all = all + g; }, sum[0], one.gradient);
    }
    const auto off = [](double a, double b) { return !(std::abs(a - b) <= 1e-12 * std::abs(b)); };
    if (!std::get<0>(value).core().mesh()->absent() &&
        (off(tessera::value(std::get<0>(value)), tall) ||
         off(tessera::value(std::get<1>(value)), loss) ||
         off(tessera::value(std::get<2>(value)), tall)))
      return "a value differs";
    std::string wrong;
    for_each_tensor(
        [&](const auto& g, const auto& e) {
          if (!g.core().mesh()->absent() && !(largest_difference(g, e) <= 1e-12))
            wrong = "a gradient differs";
        },
        gradient, sum[0]);
    return wrong;
  })));
}

TEST_CASE("pipeline: a table of a user's own, and one that a search finds, give the same") {
  PipelineCase c{
      2,
      parse_schedule("0F0,0F1,0F2,0I1,0I0,0W0,0I2,0W2,0W1\n1F0,1F1,1I1,1F2,1I0,1W1,1I2,1W0,1W2",
                     {0, 1}),
      {0, 0, 1, 1},
      {5, 4, 3}};
  const auto right = [&] {
    return quiet(texts_of(4, [&](const std::shared_ptr<Transport>& t) {
      return pipeline_case<double>(t, c, 1e-12);
    }));
  };
  CHECK(right());
  const PipelineModel model = PipelineModel::chain(2, {{3}, {3}, {2}});
  c.schedule = search_schedule(model, {0, 1}, 3).schedule;
  CHECK(right());
}

TEST_CASE("pipeline: what a search finds for a model's own stages keeps to its limit and runs") {
  PipelineCase c{2, one_f_one_b(2, 6), {0, 0, 1, 1}, {4, 4, 4, 4, 4, 4}};
  const PipelineModel model = [&] {
    const PipelineSetting<double> s(dry_transport(4, 0), c);
    auto step = s.pipeline();
    (void)step(s.model, s.batches);
    return step.model();
  }();
  const PipelineRun turns = simulate(model, c.schedule), all = simulate(model, gpipe(2, 6));
  REQUIRE(turns.peak_bytes() < all.peak_bytes());
  for (const Index limit : {turns.peak_bytes(), all.peak_bytes()}) {
    const FoundSchedule found = search_schedule(model, {0, 1}, 6, {.memory_limit = limit});
    REQUIRE(found.any());
    CHECK(found.run.peak_bytes() <= limit);
    CHECK(found.run.time <= turns.time);
    CHECK(explain(found).find("parts stand idle") != std::string::npos);
    c.schedule = found.schedule;
    CHECK(quiet(texts_of(4, [&](const std::shared_ptr<Transport>& t) {
      const std::string wrong = pipeline_case<double>(t, c, 1e-12);
      return wrong.empty() ? pipeline_peak(t, c) : wrong;
    })));
  }
}

TEST_CASE("pipeline: a process that lists another function is told, and nobody hangs") {
  const PipelineCase c{2, one_f_one_b(2, 2), {0, 0, 1, 1}, {4, 4}};
  const auto texts = texts_of(2, [&](const std::shared_ptr<Transport>& transport) -> std::string {
    const PipelineSetting<double> s(transport, c);
    const bool other = transport->process() == 1;
    auto step = pipelined<lines::stage>(
        s.mesh,
        [other](const Stack<double>& w, const Sample<double>& b) {
          const auto loss = stack_loss(w, b);
          return other ? loss + loss : loss;
        },
        c.map(), c.schedule);
    (void)step(s.model, s.batches);
    return "nothing";
  });
  CHECK(all_say(texts, "a pipeline of 2 stages by the schedule 1F1B with 2 micro-batches"));
}

TEST_CASE("pipeline: when its actions ran") {
  const PipelineCase c{2, zero_bubble(2, 3), {0, 0, 1, 1}, {4, 4, 4}};
  CHECK(quiet(texts_of(4, [&](const std::shared_ptr<Transport>& transport) -> std::string {
    const PipelineSetting<double> s(transport, c);
    auto step = s.pipeline();
    REQUIRE_THAT(complaint_of([&] { (void)step.measured(); }).find("before a call has run") !=
                 std::string::npos);
    Tracing tracing(s.own());
    (void)step(s.model, s.batches);
    Trace trace = tracing.take();
    const PipelineRun run = step.measured();
    const int own = s.mesh.coordinate<lines::stage>();
    REQUIRE_THAT(trace.part.place == "stage " + std::to_string(own));
    REQUIRE_THAT((trace.part.processes == std::vector<int>{2 * own, 2 * own + 1}));
    trace.tracks = stage_tracks(step.schedule(), run, 5);
    REQUIRE_THAT(trace.tracks[1].spans[0].begin == 5 + run.parts[1].spans[0].begin / 1000);
    const std::string json = to_json(trace);
    REQUIRE_THAT(support::is_json(json));
    REQUIRE_THAT(support::count_of(json, "\"cat\":\"track\"") == 2 * 9);
    REQUIRE_THAT(support::count_of(json, "\"name\":\"W2\"") == 2);
    REQUIRE_THAT(json.find("stage 1, part 1") != std::string::npos);
    REQUIRE_THAT(json.find("process " + std::to_string(transport->process()) + " (stage ") !=
                 std::string::npos);
    for (std::size_t p = 0; p < 2; ++p) {
      const std::vector<PipelineSpan>& spans = run.parts[p].spans;
      REQUIRE_THAT(spans.size() == c.schedule.lists[p].size());
      for (std::size_t i = 0; i < spans.size(); ++i) {
        REQUIRE_THAT(spans[i].end > spans[i].begin);
        REQUIRE_THAT((spans[i].begin <= spans[i].sends && spans[i].sends <= spans[i].end));
        REQUIRE_THAT(i == 0 || spans[i].begin >= spans[i - 1].end);
        REQUIRE_THAT(spans[i].end <= run.time);
      }
    }
    REQUIRE_THAT(run.parts[1].spans[0].begin >=
                 run.parts[0].spans[0].end);  // 1F0 reads what 0F0 has made
    REQUIRE_THAT(explain(step.schedule(), run).find("part 1") != std::string::npos);
    return "";
  })));
}
