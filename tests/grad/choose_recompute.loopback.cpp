// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which layers run again under a limit on memory: against all choices, and against what a step
// measures.
#include <doctest/doctest.h>

#include <tessera/grad.hpp>
#include <tessera/grad/choose_recompute.hpp>
#include <tessera/tessera.hpp>

#include "grad/typed.hpp"

using namespace tessera;
using namespace gradient_test;

namespace {
using Weight = Real<_, model>;
constexpr Index widths[] = {8, 32, 32, 8, 64};  // within each layer
constexpr int layers = 5;

struct Net {
  std::vector<Weight> in;
  std::vector<Real<model, _>> out;
  static constexpr auto fields = Fields<&Net::in, &Net::out>{};
};
/// A step on texts of 60 rows, some of whose layers run again.
Net step(const ProcessMesh<Grid>& mesh, const std::vector<bool>& again) {
  Net net;
  for (const Index width : widths) {
    net.in.push_back(random_normal<Weight>(mesh, {12, width}, 3, 0, 0.2));
    net.out.push_back(random_normal<Real<model, _>>(mesh, {width, 12}, 4, 0, 0.2));
  }
  const auto x = random_normal<Real<data, _>>(mesh, {60, 12}, 5);
  const auto layer = [](const auto& v, const auto& in, const auto& out) {
    return v + einsum<"ij,jk->ik", P<data, _>>(tanh(exp(tanh(einsum<"ij,jk->ik">(v, in)))), out);
  };
  const auto loss = [&](const Net& w) {
    auto h = x;
    for (std::size_t l = 0; l < w.in.size(); ++l)
      h = recompute_if(again[l], layer)(h, w.in[l], w.out[l]);
    return sum(square(h));
  };
  return value_and_grad(loss)(net).gradient;
}
Program program_of(const ProcessMesh<Grid>& mesh, const std::vector<bool>& again) {
  Recording recording(mesh);
  (void)step(mesh, again);
  return recording.take();
}
Program dry_program(const std::vector<bool>& again) {
  return program_of(dry_mesh<Grid>(3, 2), again);
}
Index peak_of(const std::vector<bool>& again) {
  return over_processes(dry_program(again)).peak.most;
}
}  // namespace

TEST_CASE("the layers that run again are those that a limit asks for") {
  std::vector<std::pair<Index, Index>> all;  // peak and flops of every choice
  for (unsigned bits = 0; bits < 1u << layers; ++bits) {
    std::vector<bool> again;
    for (int l = 0; l < layers; ++l) again.push_back((bits >> l & 1) != 0);
    all.emplace_back(peak_of(again), dry_program(again).flops());
  }
  const Index most = all.front().first, least = all.back().first;
  CHECK(least < most);
  for (int part = 0; part <= 8; ++part) {
    const Index limit = least + (most - least) * part / 8;
    CAPTURE(limit);
    const RecomputeChoice choice = choose_recompute(layers, limit, &dry_program);
    CHECK(choice.within());
    CHECK(choice.peak == peak_of(choice.again));
    CHECK(choice.flops == dry_program(choice.again).flops());
    CHECK(choice.cost == dry_program(choice.again).cost());
    CHECK((choice.share_of_time() > 0) == (choice.count() > 0));
    CHECK(choice.peak_kept == most);
    CHECK(choice.plans <= 2 * layers + 2);
    CHECK((choice.count() == 0) == (limit >= most));
    // None of them could be kept beside the others; and it is near the best choice there is.
    for (int l = 0; l < layers; ++l)
      if (choice.again[static_cast<std::size_t>(l)]) {
        std::vector<bool> fewer = choice.again;
        fewer[static_cast<std::size_t>(l)] = false;
        CHECK(peak_of(fewer) > limit);
      }
    Index best = max_int64;
    for (const auto& [peak, flops] : all)
      if (peak <= limit) best = std::min(best, flops);
    const Index kept = all.front().second, range = all.back().second - kept;
    CHECK(best >= kept);
    CHECK(choice.flops - best <= range / 4);
  }
  const RecomputeChoice none = choose_recompute(layers, max_int64, &dry_program);
  CHECK(none.plans == 1);
  CHECK(none.flops == none.flops_kept);
  CHECK(none.peak_again == 0);  // not planned, and not said
  CHECK(explain(none).find("where all do") == std::string::npos);
  const RecomputeChoice beyond = choose_recompute(layers, 1, &dry_program);
  CHECK(!beyond.within());
  CHECK(beyond.count() == layers);
  CHECK(beyond.plans == 2);
  CHECK(explain(beyond).find("5 of 5 layers run again: " + std::to_string(least) +
                             " bytes, more than the limit of 1, where none does " +
                             std::to_string(most)) == 0);
  CHECK(choose_recompute(0, 1, [](const std::vector<bool>&) { return Program(); }).again.empty());
}

TEST_CASE("a step with the layers that were chosen holds what was said") {
  const Index limit =
      (peak_of(std::vector<bool>(layers, false)) + peak_of(std::vector<bool>(layers, true))) / 2;
  const RecomputeChoice choice = choose_recompute(layers, limit, &dry_program);
  CHECK(explain(choice).find("2 of 5 layers run again: ") == 0);
  run_loopback(6, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 3, 2);
    mesh.arena().reset_peak();
    const Net made = step(mesh, choice.again);
    CHECK(mesh.arena().peak() <= limit);
    if (mesh.process() == 0) CHECK(mesh.arena().peak() == choice.peak);  // no other has more
    const Net kept = step(mesh, std::vector<bool>(layers, false));
    for (int l = 0; l < layers; ++l) {
      const std::size_t at = static_cast<std::size_t>(l);
      CHECK(to_host(made.in[at]) == to_host(kept.in[at]));
      CHECK(to_host(made.out[at]) == to_host(kept.out[at]));
    }
  });
}
