// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: layers
// Pipelines under MPI: values, bytes and peaks as on loopback, and the calls that MPI sees are the
// schedule's messages.
#include <doctest/doctest.h>

#include "pipeline/manual_stages.hpp"
#include "pipeline/nested_model.hpp"
#include "pipeline/pipeline_case.hpp"
#include "support/pmpi.hpp"
#include "support/world.hpp"

using namespace support;

TEST_CASE("pipeline: any schedule under MPI gives the loss and the gradients of one part") {
  const std::uint64_t seed = seed_for("pipelines under MPI", 382, support::world()->process() == 0);
  for (int round = 0; round < cases_of(6, 40); ++round) {
    Random random(seed + static_cast<std::uint64_t>(round));
    const PipelineCase c = some_pipeline(random, support::world()->size());
    std::string text = round % 3 == 2 ? pipeline_case<float>(support::world(), c, 1e-5)
                                      : pipeline_case<double>(support::world(), c, 1e-12);
    if (text.empty()) text = pipeline_bits<float>(support::world(), c);
    if (text.empty()) text = pipeline_peak(support::world(), c);
    if (text.empty() && round == 0) text = pipeline_descent<double>(support::world(), c, 1e-12);
    CHECK_MESSAGE(text.empty(), text);
  }
}

TEST_CASE("pipeline: any table runs under MPI with messages that wait for their receivers") {
  const int size = support::world()->size();
  const std::uint64_t seed = seed_for("tables under MPI", 390, support::world()->process() == 0);
  for (int round = 0; round < cases_of(2, 20); ++round) {
    Random random(seed + static_cast<std::uint64_t>(round));
    PipelineCase c;
    c.parts = size % 4 == 0 && round % 2 == 0 ? 4 : size % 3 == 0 ? 3 : size % 2 == 0 ? 2 : 1;
    c.schedule = some_table(random, c.parts, c.parts * (1 + round % 2), 3);
    const int last = c.schedule.stages() - 1;
    c.stage_of = {0, last / 3, last / 2, last};
    c.rows = {30'000, 20'000, 100};  // messages of a megabyte, and of a few kilobytes
    const std::string text = pipeline_case<double>(support::world(), c, 1e-9);
    CHECK_MESSAGE(text.empty(), text);
  }
}

namespace {
/// Returns the elements of the calls that were recorded.
Index elements_of(const char* what) {
  Index sum = 0;
  for (const std::string& call : support::pmpi::calls())
    if (call.find(what) == 0) sum += std::stoll(call.substr(call.find(": ") + 2));
  return sum;
}
}  // namespace

TEST_CASE("pipeline: stages with manual functions under MPI are those of the automatic form") {
  const SendsWatched watch{[] { support::pmpi::record(true); },
                           [] {
                             support::pmpi::record(false);
                             return elements_of("send");
                           }};
  const std::uint64_t seed =
      seed_for("pipelines with manual functions under MPI", 388, support::world()->process() == 0);
  for (int round = 0; round < cases_of(5, 30); ++round) {
    Random random(seed + static_cast<std::uint64_t>(round));
    const std::string text = manual_pipeline_case(support::world(), random, &watch);
    CHECK_MESSAGE(text.empty(), text);
  }
}

TEST_CASE("pipeline: MPI sees the messages of the process's own list, and no others") {
  const int size = support::world()->size();
  const int parts = size % 2 == 0 ? 2 : 1;
  const PipelineCase c{parts, one_f_one_b(parts, 3), {0, 0, parts - 1, parts - 1}, {6, 6, 6}};
  const PipelineSetting<double> s(support::world(), c);
  auto step = s.pipeline();
  (void)step(s.model, s.batches);
  support::pmpi::record(true);
  (void)step(s.model, s.batches);
  support::pmpi::record(false);
  const Index sent = elements_of("send"), received = elements_of("receive");
  support::pmpi::record(true);
  if (parts == 2) (void)reshard<OnLine<double, _, _>>(s.model.embed, s.part(1));  // the tied weight
  support::pmpi::record(false);
  const PipelineRun run = simulate(step.model(), step.schedule());
  const PipelinePart& own = run.parts[static_cast<std::size_t>(s.mesh.coordinate<lines::stage>())];
  CHECK(8 * (sent - elements_of("send")) == own.sent_bytes);
  CHECK(8 * (received - elements_of("receive")) == own.received_bytes);
  const bool first = s.mesh.coordinate<lines::stage>() == 0;
  // The second stage sends at least the gradient of the tied weight, which every process has.
  const bool sends = first ? s.batches[0].x.core().local_size() > 0 : true;
  CHECK((own.sent_bytes > 0) == (parts == 2 && sends));
  const std::string wrong = pipeline_peak(support::world(), c);
  CHECK_MESSAGE(wrong.empty(), wrong);
}

TEST_CASE("pipeline: the blog's nested patterns under MPI have the numbers of one process") {
  namespace blog = nested_test::blog;
  const int size = support::world()->size(), over_x = size % 2 == 0 ? 2 : 1;
  const auto mesh = make_mesh<blog::Grid>(support::world(), over_x, size / over_x);
  const double by =
      nested_test::apart(blog::numbers_on(mesh, {}, blog::by_turns), blog::of_one_process({}));
  CHECK(by <= 1e-12);
}
