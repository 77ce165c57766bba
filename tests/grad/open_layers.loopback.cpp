// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layers of which it is open whether they run again on the way back: against all choices of them,
// and against what a step measures.
#include <doctest/doctest.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tessera/grad.hpp>
#include <tessera/op/compile.hpp>
#include <tessera/program/choice/difference.hpp>
#include <tessera/program/peak.hpp>
#include <tessera/run/choose_of.hpp>
#include <tessera/tessera.hpp>

#include "grad/typed.hpp"
#include "support/near.hpp"

using namespace tessera;
using namespace gradient_test;
using support::error_of;

namespace {
using Weight = Real<_, model>;
using Batch = Real<data, _>;
using Again = std::vector<Recompute>;
using Widths = std::vector<Index>;
constexpr int layers = 5;
const Widths mixed{8, 32, 32, 8, 64}, uniform{32, 32, 32, 32, 32};  // within each layer
std::mutex mutex;

struct Net {
  std::vector<Weight> in;
  std::vector<Real<model, _>> out;
  static constexpr auto fields = Fields<&Net::in, &Net::out>{};

  static Net like(const ProcessMesh<Grid>& mesh, const Widths& widths) {
    Net net;
    for (const Index width : widths) {
      net.in.push_back(random_normal<Weight>(mesh, {12, width}, 3, 0, 0.2));
      net.out.push_back(random_normal<Real<model, _>>(mesh, {width, 12}, 4, 0, 0.2));
    }
    return net;
  }
};
/// A loss of texts, and its gradient, some of whose layers run again.
struct TrainStep {
  Again again;
  Net operator()(const Net& net, const Batch& x) const {
    const auto layer = [](const auto& v, const auto& in, const auto& out) {
      return v + einsum<"ij,jk->ik", P<data, _>>(tanh(exp(tanh(einsum<"ij,jk->ik">(v, in)))), out);
    };
    const auto loss = [&](const Net& w) {
      auto h = x;
      for (std::size_t l = 0; l < w.in.size(); ++l) {
        const Layer scope(h, "block " + std::to_string(l));
        h = recompute_if(again[l], layer)(h, w.in[l], w.out[l]);
      }
      return sum(square(h));
    };
    return value_and_grad(loss)(net).gradient;
  }
};
const Again all_open(layers, Open{});
Batch texts(const ProcessMesh<Grid>& mesh) { return random_normal<Batch>(mesh, {60, 12}, 5); }
/// Returns the Program of a step on paper, its weights made within it.
Program dry_program(const Widths& widths, const Again& again) {
  const auto mesh = dry_mesh<Grid>(3, 2);
  Recording recording(mesh);
  (void)TrainStep{again}(Net::like(mesh, widths), texts(mesh));
  return recording.take();
}
Again choice_of(unsigned bits) {
  Again again;
  for (int l = 0; l < layers; ++l) again.emplace_back((bits >> l & 1) != 0);
  return again;
}
Again stated(const Choice& choice) {
  Again again;
  for (const ChosenLayer& layer : choice.layers) again.emplace_back(layer.again);
  return again;
}
int count(const Choice& choice) {
  int n = 0;
  for (const ChosenLayer& layer : choice.layers) n += layer.again ? 1 : 0;
  return n;
}
Index peak_of(const Widths& widths, const Again& again) {
  return peak_over_processes(dry_program(widths, again));
}
Choice layers_within(const Widths& widths, Index limit) {
  const auto record = [&] { return dry_program(widths, all_open); };
  return choose(record, dry_mesh<Grid>(3, 2), {.memory_limit = limit, .keep_shardings = true});
}
bool alike(const Net& a, const Net& b) {
  bool same = true;
  for (std::size_t l = 0; l < a.in.size(); ++l)
    same = same && to_host(a.in[l]) == to_host(b.in[l]) && to_host(a.out[l]) == to_host(b.out[l]);
  return same;
}
}  // namespace

TEST_CASE("the layers that run again are those that a limit asks for") {
  for (const Widths& widths : {mixed, uniform}) {
    std::vector<std::pair<Index, Cost>> all;  // peak and time of every choice
    for (unsigned bits = 0; bits < 1u << layers; ++bits) {
      const Program program = dry_program(widths, choice_of(bits));
      all.emplace_back(peak_over_processes(program), program.cost());
    }
    const Index most = all.front().first, least = all.back().first;
    CHECK(least < most);
    for (int part = 0; part <= 8; ++part) {
      const Index limit = least + (most - least) * part / 8;
      CAPTURE(limit);
      const Choice choice = layers_within(widths, limit);
      CAPTURE(explain(choice));
      CHECK(choice.found);
      CHECK(choice.layers.size() == layers);
      CHECK(peak_over_processes(choice.program) == peak_of(widths, stated(choice)));
      CHECK(peak_over_processes(choice.program) <= limit);
      CHECK(choice.cost == dry_program(widths, stated(choice)).cost());
      CHECK(choice.before == all.front().second);
      CHECK(choice.peak_kept == most);
      CHECK((choice.cost > choice.before) == (count(choice) > 0));
      CHECK((count(choice) == 0) == (limit >= most));
      CHECK(choice.recorded <= 3 * layers + 3);
      // None of them could be kept beside the others; and it is near the best choice there is.
      for (std::size_t l = 0; l < layers; ++l)
        if (choice.layers[l].again) {
          Again fewer = stated(choice);
          fewer[l] = false;
          CHECK(peak_of(widths, fewer) > limit);
        }
      Cost best = infeasible;
      for (const auto& [peak, cost] : all)
        if (peak <= limit) best = std::min(best, cost);
      CHECK(choice.cost - best <= (all.back().second - all.front().second) / 4);
    }
  }
  const Choice none = layers_within(mixed, max_int64);
  CHECK(none.recorded == 1);
  CHECK(count(none) == 0);
  CHECK(explain(none).find("0 of 5 open layers run again\n") != std::string::npos);
  const Choice beyond = layers_within(mixed, 1);
  CHECK(!beyond.found);
  CHECK(count(beyond) == layers);
  CHECK(explain(beyond).find("nothing is found within the limits: the least peak") !=
        std::string::npos);
  CHECK(explain(beyond).find("5 of 5 open layers run again") != std::string::npos);
  CHECK(choose([] { return Program(); }, dry_mesh<Grid>(3, 2), {.memory_limit = 1}).layers.empty());
}

TEST_CASE("of layers that are alike it is chosen how many run again, and few Programs are made") {
  const Index most = peak_of(uniform, choice_of(0)), least = peak_of(uniform, choice_of(31));
  const Choice choice = layers_within(uniform, (most + least) / 2);
  std::set<int> kinds;
  for (const LayerPrice& price : choice.layer_prices) kinds.insert(price.alike);
  CHECK(choice.layer_prices.size() == layers);
  CHECK(kinds.size() == 1);
  std::set<int> other;
  for (const LayerPrice& price : layers_within(mixed, peak_of(mixed, choice_of(31))).layer_prices)
    other.insert(price.alike);
  CHECK(other.size() == 3);
  CHECK(count(choice) > 0);
  CHECK(count(choice) < layers);
  CHECK(explain(choice).find("again  block 0") != std::string::npos);
}

TEST_CASE("layers and shardings are chosen together, within a limit, and never dearer") {
  constexpr unsigned few = 3;
  const auto sizes_of = sizes<Grid>(3, 2);
  const auto dry = dry_mesh<Grid>(3, 2);
  const Net net = Net::like(dry, Widths(few, 32));
  const auto chosen = [&](const Again& again, Index limit, bool keeps = false) {
    return choose(TrainStep{again}, {.memory_limit = limit, .keep_shardings = keeps, .steps = 100})(
        net, texts(dry), sizes_of);
  };
  const auto run_again = [&](unsigned k) {
    Again again(few, false);
    std::fill_n(again.begin(), k, Recompute(true));
    return again;
  };
  const Again open(few, Open{});
  const Choice free = chosen(open, max_int64);
  CHECK(count(free) == 0);
  CHECK(free.recorded == 1);
  const Index most = peak_over_processes(free.program),
              least = chosen(run_again(few), 1).least_peak;
  CHECK(least < most);
  int running = 0;
  for (int part = 0; part <= 4; ++part) {
    const Index limit = least + (most - least) * part / 4;
    CAPTURE(limit);
    const Choice choice = chosen(open, limit), kept = chosen(open, limit, true);
    CAPTURE(explain(choice));
    CHECK((choice.found || !kept.found));
    CHECK((!choice.found || peak_over_processes(choice.program) <= limit));
    CHECK((!kept.found || choice.cost <= kept.cost));
    CHECK(choice.searched <= 2 * static_cast<int>(few) + 1);
    running += count(choice);
    if (part == 4) CHECK(count(choice) == 0);
    Cost best = infeasible;  // of all counts of layers that run again
    for (unsigned k = 0; k <= few && part < 4; ++k)
      if (const Choice one = chosen(run_again(k), limit); one.found)
        best = std::min(best, one.cost);
    CHECK((choice.found ? choice.cost : infeasible) <= best);
  }
  CHECK(running > 0);
}

TEST_CASE("a choice of layers is written, read, repeated and compared") {
  const auto dry = dry_mesh<Grid>(3, 2);
  const Index most = peak_of(mixed, choice_of(0)), least = peak_of(mixed, choice_of(31));
  const Choice choice = layers_within(mixed, (most + least) / 2);
  const ChoiceTable table = table_of(choice);
  CHECK(table.layers == choice.layers);
  CHECK(table.layers[1].name == "block 1");
  CHECK(parse_choice(to_string(table)) == table);
  const auto record = [&] { return dry_program(mixed, all_open); };
  // The same layers run again, whatever the limit.
  const Choice repeated = choose(record, dry, {.stated = keep(table), .keep_shardings = true});
  CHECK(repeated.layers == choice.layers);
  CHECK(repeated.cost == choice.cost);
  CHECK(difference(repeated, table).find("layer") == std::string::npos);
  const Choice none = choose(record, dry, {.keep_shardings = true});
  std::size_t lines = 0;
  const std::string changes = difference(none, table);
  for (std::size_t at = 0; (at = changes.find(": ran again, is kept", at)) != std::string::npos;
       ++at)
    ++lines;
  CHECK(lines == static_cast<std::size_t>(count(choice)));
  // Among choices that cost the same, the previous one stays.
  const Index between = (peak_of(uniform, choice_of(0)) + peak_of(uniform, choice_of(31))) / 2;
  const Choice first = layers_within(uniform, between);
  int others = 0;
  for (unsigned bits = 0; bits < 1u << layers; ++bits) {
    ChoiceTable before = table_of(first);
    for (std::size_t l = 0; l < layers; ++l) before.layers[l].again = (bits >> l & 1) != 0;
    if (before.layers == first.layers || peak_of(uniform, choice_of(bits)) > between ||
        dry_program(uniform, choice_of(bits)).cost() != first.cost)
      continue;
    ++others;
    const ChooseOptions stays{
        .previous = keep(before), .memory_limit = between, .keep_shardings = true};
    CHECK(choose([&] { return dry_program(uniform, all_open); }, dry, stays).layers ==
          before.layers);
  }
  CHECK(others > 0);
  // A name that stands twice is the first, and then the second; other names are kept.
  const std::vector<ChosenLayer> layers_of{{"a", true}, {"b", false}, {"a", false}};
  CHECK(again_by_name({"c", "b", "a", "a", "a"}, layers_of) ==
        std::vector<bool>{false, false, true, false, false});
}

TEST_CASE(
    "a compiled step runs as a choice has it: it holds what was said, with the same numbers") {
  const auto sizes_of = sizes<Grid>(3, 2);
  const auto dry = dry_mesh<Grid>(3, 2);
  for (const bool keeps : {true, false}) {
    const Widths widths(3, 32);
    const Again open(3, Open{}), none(3, false), all(3, true);
    const auto chosen = [&](const Again& again, Index limit) {
      const ChooseOptions options{.memory_limit = limit, .keep_shardings = keeps, .steps = 100};
      return choose(TrainStep{again}, options)(Net::like(dry, widths), texts(dry), sizes_of);
    };
    const Index most = peak_over_processes(chosen(none, max_int64).program);
    const Index limit = (most + chosen(all, 1).least_peak) / 2;
    const Choice choice = chosen(open, limit);
    CAPTURE(explain(choice));
    REQUIRE(choice.found);
    if (keeps) CHECK(count(choice) > 0);
    run_loopback(6, [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(world, 3, 2);
      const Net net = Net::like(mesh, widths);
      const Batch x = texts(mesh);
      auto step = compile(TrainStep{open}, parse_choice(to_string(table_of(choice))),
                          {.memory_limit = limit});
      mesh.arena().reset_peak();
      const Net made = step(net, x);
      const Index peak = mesh.arena().peak(), flops = step.listed().flops();
      auto as_stated = compile(TrainStep{stated(choice)}, table_of(choice), {});
      auto as_kept = compile(TrainStep{none}, table_of(choice), {});
      const bool same = alike(as_stated(net, x), made) && flops == as_stated.listed().flops();
      const bool same_as_kept = !keeps || alike(as_kept(net, x), made);
      const bool same_as_eager = !keeps || alike(TrainStep{none}(net, x), made);
      const std::lock_guard lock(mutex);
      CHECK(peak <= limit);
      CHECK(same);
      CHECK(same_as_kept);
      CHECK(same_as_eager);
    });
  }
}

TEST_CASE(
    "an open layer that nobody has chosen about is an error, or kept where memory is not short") {
  run_loopback(2, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    const Net net = Net::like(mesh, {8});
    const Batch x = texts(mesh);
    const std::string refused = error_of<UsageError>([&] { (void)TrainStep{{Open{}}}(net, x); });
    const std::string limited = error_of<UsageError>([&] {
      auto step = compile(TrainStep{{Open{}}}, {.choose = ChooseOptions{.memory_limit = 1 << 20}});
      (void)step(net, x);
    });
    auto kept = compile(TrainStep{{Open{}}}, {.choose = ChooseOptions{.steps = 20}});
    const Net made = kept(net, x), eager = TrainStep{{false}}(net, x);
    const bool near = close(made.in[0], eager.in[0]) && close(made.out[0], eager.out[0]);
    const std::lock_guard lock(mutex);
    CHECK(near);
    CHECK(refused.find("nothing has chosen whether \"block 0\" runs again; choose(f) does") !=
          std::string::npos);
    CHECK(limited.find("block 0") != std::string::npos);
  });
}

TEST_CASE("an open layer within another is part of it, and without a gradient it is the function") {
  const auto dry = dry_mesh<Grid>(3, 2);
  const auto weights = Net::like(dry, mixed);
  const auto inner = recompute_if(Open{}, [](const auto& v) { return exp(tanh(v)); });
  const auto outer = [&](Recompute again) {
    return recompute_if(
        again, [&](const auto& v, const auto& w) { return inner(einsum<"ij,jk->ik">(v, w)); });
  };
  const auto layers_of = [&](Recompute again) {
    const auto x = texts(dry);
    Recording recording(dry);
    const auto run =
        value_and_grad([&](const Weight& w) { return sum(outer(again)(x, w)); })(weights.in[1]);
    return recording.take().open_layers().size();
  };
  CHECK(layers_of(Open{}) == 1);  // the outer one alone
  CHECK(layers_of(true) == 0);
  CHECK(layers_of(false) == 1);  // the inner one
  run_loopback(6, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 3, 2);
    const Batch x = texts(mesh);
    const bool same = to_host(inner(x)) == to_host(exp(tanh(x)));
    const std::lock_guard lock(mutex);
    CHECK(same);
  });
}
