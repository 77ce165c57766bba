// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What GShard, the paper on weight-update sharding and the blog on GSPMD measured on pods of TPU
/// v3 and v4, beside what simulate(program, network) says of the same programs on such a pod, as
/// its makers describe it: a table of rows with the likely reason of each difference.
///
///     papers [--json FILE] [SECTION ...]     // of "figure 9", "figure 8", ...: all
///
/// All work is at the machine's peak, and links are always full where they have something to carry:
/// a roofline. FILE is for benchmarks/network/draw.py.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <tessera/grad.hpp>
#include <tessera/plan/op/move/reshard.hpp>
#include <tessera/program/network/timing.hpp>
#include <tessera/program/peak.hpp>
#include <tessera/tessera.hpp>

#include "network/blog_models.hpp"
#include "network/pods.hpp"
#include "nn/gshard_models.hpp"
#include "support/weight_tables.hpp"
#include "support/written.hpp"

namespace {
using namespace gshard;
using namespace pods;

ProcessMesh<Grid> cores_of(int cores) {
  return dry_mesh<Grid>(sizes<Grid>(cores, 1), 0, {.machine = tpu_v3(cores)});
}

/// Milliseconds of a move of a tensor over all cores.
double moved(int cores, const Extents& extents, const Sharding& from, const Sharding& to) {
  Program program;
  program.mesh = {cores};
  PlanOptions options;
  options.machine = tpu_v3(cores);
  ProgramEntry entry;
  entry.plan = std::make_shared<Plan>(
      detail::plan_reshard({DType::f32, extents, from}, to, program.mesh, 0, options));
  program.record(entry);
  return milliseconds(times_of(program, false).seconds);
}

struct Row {
  std::string name;
  double model;
  std::optional<double> paper;  ///< none where it prints no number
  std::string unit, reason;
};
class Table {
 public:
  void add(Row row) {
    const bool printed = row.paper.has_value();
    const std::string off = printed && *row.paper != 0
                                ? fmt::format("{:+.0f} %", 100 * (row.model / *row.paper - 1))
                                : "";
    fmt::print("| {} | {:.4g} | {} | {} | {} | {} |\n", row.name, row.model, row.unit,
               printed ? fmt::format("{:.4g}", *row.paper) : "", off, row.reason);
    std::fflush(stdout);
    using Fact = tessera_bench::WrittenTable::Fact;
    written.add({{"of the papers", row.name},
                 {"model", row.model},
                 {"unit", row.unit},
                 {"paper", printed ? Fact(*row.paper) : Fact("")},
                 {"difference", off},
                 {"likely reason", row.reason}});
  }

  tessera_bench::WrittenTable written;
};

/// GShard, figure 9: an all-reduce and an all-to-all of as much on each core.
void collectives(Table& table) {
  const Sharding rows{{0}, {}, {}}, columns{{}, {0}, {}}, whole{{}, {}, {}};
  double first[2] = {}, last[2] = {};
  for (int cores = 16; cores <= 2048; cores *= 2) {
    const Index n = cores;
    last[0] = moved(cores, {16, 16, 8192}, whole.with_partial({0}, Reduction::sum), whole);
    last[1] = moved(cores, {n, n, (Index{2} << 20) / n}, rows, columns);
    if (cores == 16) first[0] = last[0], first[1] = last[1];
    table.add(
        {fmt::format("figure 9, all-reduce of 8 MiB, {} cores", cores), last[0], {}, "ms", ""});
    table.add(
        {fmt::format("figure 9, all-to-all of 8 MiB, {} cores", cores), last[1], {}, "ms", ""});
  }
  table.add({"figure 9, all-reduce, 2,048 cores over 16", last[0] / first[0], 1, "times",
             "a ring sends 2 (n - 1) / n of the data"});
  table.add({"figure 9, all-to-all, 2,048 cores over 16", last[1] / first[1], 9, "times",
             "links are always full here, on few cores too"});
}

/// GShard, figure 8: forwards through a Transformer layer and one of experts, 2,048 tokens a core.
struct Layers {
  double all = 0, moves = 0;  ///< milliseconds; moves: dispatch and combine between cores
};
Layers layers_on(Table& table, int cores) {
  using U = On<float>;
  const auto mesh = cores_of(cores);
  Parameters<Grid> make(mesh, 1);
  const Sizes sizes{.layers = 2, .experts = cores};
  const auto dense = Block<U>::like(make, sizes, false, false),
             mixed = Block<U>::like(make, sizes, false, true);
  const auto x = zeros<Activations<U>>(mesh, {cores * 16, 128, sizes.embed});
  Recording recording(mesh);
  (void)after(mixed, after(dense, x));
  const Program program = recording.take();
  const NetworkTimes times = times_of(program);
  Layers made{milliseconds(times.seconds), milliseconds(times.exposed)};
  double gating = 0, experts = 0, local = 0;
  for (int i = 0; i < program.size(); ++i) {
    const NetworkTimes::Operator& one = times.operators[static_cast<std::size_t>(i)];
    const std::string layer = program.layer_path(program.entry(i).layer);
    if (layer.empty()) continue;
    (layer == "gating"    ? gating
     : layer == "experts" ? experts
                          : local) += milliseconds(one.seconds - one.exposed);
  }
  const auto row = [&](const char* what, double part) {
    table.add({fmt::format("figure 8, {} cores, {}", cores, what), part, {}, "ms", ""});
  };
  row("between cores", made.moves);
  row("gate", gating);
  row("to buffers and back", local);
  row("experts", experts);
  row("Transformer layer and attention", made.all - made.moves - gating - local - experts);
  return made;
}
void layers(Table& table) {
  const Layers few = layers_on(table, 128);
  for (const int cores : {256, 512, 1024}) (void)layers_on(table, cores);
  const Layers many = layers_on(table, 2048);
  table.add({"figure 8, dispatch and combine, 128 cores", 100 * few.moves / few.all, 16, "%",
             "maps go through memory here, which a compiler fuses with products"});
  table.add({"figure 8, dispatch and combine, 2,048 cores", 100 * many.moves / many.all, 36, "%",
             "maps go through memory here, which a compiler fuses with products"});
  table.add({"figure 8, dispatch and combine, 2,048 over 128", many.moves / few.moves, 3.75,
             "times", "links are always full here, as in figure 9"});
  table.add({"figure 8, both layers, 2,048 over 128", many.all / few.all, 1.7, "times",
             "gating is at peak here, and sequential there"});
}

/// A step of GShard's training: in float, with Adafactor. The first `repeated` layers keep what
/// they read alone, and run again on the way back.
Program step(int cores, Index layers, Index tokens, int repeated = 0) {
  using U = On<float>;
  const auto mesh = cores_of(cores);
  Recording recording(mesh);
  Parameters<Grid> make(mesh, 1);
  auto model = Translator<U>::like(make, {.layers = layers, .experts = cores});
  Optimizer<Adafactor> optimizer(Adafactor{}, model);
  const auto text = zeros<Texts<U>>(mesh, {cores * (tokens / 128), 128});
  std::vector<Recompute> again(static_cast<std::size_t>(layers));
  std::fill_n(again.begin(), repeated, Recompute(true));
  const auto run = optimizer.value_and_grad([&](const Translator<U>& w) {
    return mean(cross_entropy(translate(w, text, text, again), text));
  })(model);
  optimizer.step(model, run.gradient);
  return recording.take();
}

/// GShard, table 3.
void steps(Table& table) {
  struct Case {
    int cores;
    Index batch;           ///< tokens
    double shallow, deep;  ///< the paper's steps a second with 12 and with 36 layers
  };
  struct Seconds {
    double all, products;  ///< products: of operations alone, at peak
  };
  const auto seconds_of = [](const Program& program) {
    return Seconds{times_of(program).seconds / finer,
                   static_cast<double>(program.flops()) / v3.flops};
  };
  for (const Case& one : {Case{128, 1 << 20, 2.16, 0.67}, Case{512, 1 << 20, 3.28, 1.05},
                          Case{2048, 4 << 20, 2.15, 0.72}}) {
    const Index tokens = one.batch / one.cores;
    const Seconds shallow = seconds_of(step(one.cores, 12, tokens)),
                  deep = seconds_of(step(one.cores, 36, tokens));
    const std::string experts = fmt::format("table 3, {} experts, ", one.cores);
    const auto rows = [&](const char* layers, const Seconds& model, double paper) {
      table.add({experts + layers, 1 / model.all, paper, "/s",
                 1 / model.all < paper
                     ? "maps go through memory here, which a compiler fuses with products"
                     : "gating is at peak here, without latency, and none runs again"});
      table.add({experts + layers + ", products alone", 1 / model.products, paper, "/s",
                 fmt::format("the paper reaches {:.0f} % of the cores' peak",
                             100 * paper * model.products)});
    };
    rows("12 layers", shallow, one.shallow);
    rows("36 layers", deep, one.deep);
    table.add({experts + "12 layers over 36", deep.all / shallow.all, one.shallow / one.deep,
               "times", "a part of the paper's 36 layers runs again"});
  }
}

double percent_of_peak(const Program& program, const Core& core, const NetworkTimes& times) {
  return 100 * static_cast<double>(program.flops()) / core.flops / (times.seconds / finer);
}
/// Returns the least number up to `all` that fits; all, if none does.
template <class Fits> int fewest(int all, const Fits& fits) {
  int few = 0;
  while (few < all) {
    const int half = (few + all) / 2;
    if (fits(half))
      all = half;
    else
      few = half + 1;
  }
  return all;
}

/// What a step runs on: a mesh that lies on a network by the order of its axes.
struct Pod {
  Core core;
  Network network;
  int rows, columns;
  AxisList order{0, 1};
  bool narrow = true;  ///< parts of sums of bfloat16 travel as they are, as in XLA
};
/// What a step reaches under GSPMD's "2D finalized", if as few layers run again as let it have the
/// device's memory.
struct Reached {
  int again = 0;
  double percent = 0;  ///< of the devices' peak, by all operations
};
template <class Heads> Reached reached(const blog::Sizes& model, const Pod& pod) {
  Machine machine = machine_of(pod.core, pod.network);
  machine.order.axes = pod.order;
  const auto mesh = dry_mesh<Grid>(sizes<Grid>(pod.rows, pod.columns), 0,
                                   {.machine = machine, .narrow_parts = pod.narrow});
  const auto fits = [&](int again) {
    return peak_over_processes(blog::step<Heads>(mesh, model, again)) <= pod.core.capacity;
  };
  const int again = fewest(static_cast<int>(model.layers), fits);
  const Program program = blog::step<Heads>(mesh, model, again);
  return {again, percent_of_peak(program, pod.core, simulated(program, machine, pod.network))};
}
/// The blog's table. The first axis of a mesh splits the batch.
void utilization(Table& table) {
  const auto row = [&](const std::string& name, const Reached& model, double paper,
                       const char* reason) {
    table.add({"blog, " + name + ", of peak", model.percent, paper, "%", reason});
    table.add({"blog, " + name + ", layers that run again",
               static_cast<double>(model.again),
               {},
               "",
               ""});
  };
  constexpr int cores = 2048;
  Pod pod{v3, slice(cores), 32, 64};
  row("LaMDA, 2,048 cores of TPU v3 as 32 x 64", reached<logical::groups>(blog::lamda, pod), 56.5,
      "maps go through memory here, and nothing hides transfers; products are at peak");
  pod.narrow = false;
  row("LaMDA, the same with parts of sums in float", reached<logical::groups>(blog::lamda, pod),
      56.5, "sums send twice the bytes");
  row("MLPerf-BERT, 2,048 chips of TPU v4 as 256 x 8",
      reached<logical::repeats>(blog::bert,
                                {v4, Network::torus({8, 16, 16}, {v4.link / finer, 0}), 256, 8}),
      63, "nothing hides transfers here; products are at peak");
  const Program mixture = step(cores, 32, 2048);
  table.add({"blog, GShard-M4, 2048 experts, 32 layers, of peak",
             percent_of_peak(mixture, v3, times_of(mixture)), 46.8, "%",
             "maps go through memory here, which a compiler fuses with products"});
  // Which mesh the sparse decoder had is not published. 64 x 32 lies on the pod with its axes
  // turned.
  Reached best;
  std::string name;
  for (const Pod& one : {Pod{v3, slice(cores), 16, 128}, Pod{v3, slice(cores), 32, 64},
                         Pod{v3, slice(cores), 64, 32, {1, 0}}}) {
    const Reached model = reached<logical::groups>(blog::glam, one);
    if (model.percent <= best.percent) continue;
    best = model;
    name = fmt::format("{} x {}", one.rows, one.columns);
  }
  row("GLaM, 64 experts, 2,048 cores of TPU v3 as " + name, best, 53.8,
      "nothing hides transfers here; its mesh is not published");
}

/// GShard, figure 7: the most memory that a step takes, with 2,048 tokens of source and of target.
void memory(Table& table) {
  for (const Index layers : {12, 36}) {
    double few = 0, gib = 0;
    for (const int cores : {128, 512, 2048}) {
      gib = static_cast<double>(peak_over_processes(step(cores, layers, 2048))) /
            static_cast<double>(Index{1} << 30);
      table.add(
          {fmt::format("figure 7, {} experts, {} layers", cores, layers), gib, {}, "GiB", ""});
      if (cores == 128) few = gib;
    }
    table.add({fmt::format("figure 7, {} layers, 2,048 experts over 128", layers), gib / few, 1,
               "times", "gates, which each core has whole, grow with experts"});
  }
}

/// GShard, section 5.1: the share of a step in which layers run again, as few as let it have the
/// memory of a core, or all.
void repetitions(Table& table) {
  constexpr int cores = 2048;
  constexpr Index tokens = 2048;
  struct Case {
    int layers;
    double paper;
    const char* reason;
  };
  for (const Case& one :
       {Case{12, 0, ""}, Case{24, 0, ""},
        Case{36, 28,
             "two layers free the half GiB that is missing here; what XLA lacks is not told"},
        Case{60, 34,
             "in float not even all 60 make it fit; the paper's activations are bfloat16"}}) {
    const int enough = fewest(one.layers, [&](int again) {
      return peak_over_processes(step(cores, one.layers, tokens, again)) <= v3.capacity;
    });
    const Program program = step(cores, one.layers, tokens, enough);
    const double with = times_of(program).seconds,
                 without = times_of(step(cores, one.layers, tokens)).seconds;
    const std::string name = fmt::format("section 5.1, {} layers, ", one.layers);
    table.add({name + "layers that run again", static_cast<double>(enough), {}, "", ""});
    table.add({name + "with them",
               static_cast<double>(peak_over_processes(program)) / (Index{1} << 30),
               {},
               "GiB",
               ""});
    table.add({name + "share of the step that runs again", 100 * (1 - without / with), one.paper,
               "%", one.reason});
  }
}

/// The paper on weight-update sharding, section 6.1: what a step saves where each core updates its
/// share of the weights. Both ways reduce gradients and, in shares, gather weights.
void updates(Table& table) {
  const auto saved = [](const std::vector<Extents>& shapes, Index state, int cores, double* moves) {
    Index elements = 0;
    for (const Extents& shape : shapes) elements += volume(shape);
    const Sharding whole{{}}, shares{{0}};
    const Extents line{ceil_div(elements, cores) * cores};
    const double reduced = moved(cores, line, whole.with_partial({0}, Reduction::sum), whole),
                 scattered = moved(cores, line, whole.with_partial({0}, Reduction::sum), shares),
                 gathered = moved(cores, line, shares, whole);
    // A weight, its gradient and state are read, the weight and its state written.
    const double all = 1e3 * static_cast<double>((3 * 4 + 2 * state) * elements) / v3.memory;
    if (moves != nullptr) *moves = reduced;
    return all + reduced - (all / cores + scattered + gathered);
  };
  double moves = 0;
  const double transformer = saved(tessera_bench::transformer_big(), 8, 2048, &moves);
  table.add({"section 6.1, Transformer on 2,048 cores, saved", transformer, 46.5 - 25.6, "ms",
             "memory is at its peak rate here; at 63 % of it, it would be the paper's"});
  table.add({"section 6.1, Transformer on 2,048 cores, a step of 46.5 ms", 46.5 - transformer, 25.6,
             "ms", "as the row before"});
  const double resnet = saved(tessera_bench::resnet_50(), 4, 2048, &moves);
  // 16 images a core; 3.8e9 products an image (He et al., table 1), as many twice on the way back.
  const double products = 1e3 * 16 * 3 * 2 * 3.8e9 / v3.flops;
  const double step = products + moves + 1e3 * static_cast<double>(20 * 25557032) / v3.memory;
  table.add({"section 6.1, ResNet-50 on 2,048 cores, saved of a step", 100 * resnet / step, 6, "%",
             "products at peak rate make the rest of the step short"});
}

}  // namespace

int main(int argc, char** argv) {
  const std::pair<std::string, void (*)(Table&)> sections[] = {
      {"figure 9", &collectives},    {"figure 8", &layers}, {"figure 7", &memory},
      {"section 5.1", &repetitions}, {"table 3", &steps},   {"blog", &utilization},
      {"section 6.1", &updates}};
  std::vector<std::string> wanted;
  std::string file;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    bool known = false;
    for (const auto& [name, make] : sections) known = known || name == word;
    if (known) {
      wanted.push_back(word);
    } else if (word == "--json" && i + 1 < argc) {
      file = argv[++i];
    } else {
      std::string all;
      for (const auto& [name, make] : sections)
        all += fmt::format("{}\"{}\"", all.empty() ? "" : ", ", name);
      fmt::print(stderr,
                 "papers: \"{}\" is none of its sections; give --json FILE, and those that you "
                 "want of {}\n",
                 word, all);
      return 2;
    }
  }
  try {
    Table table;
    fmt::print(
        "| | model | unit | paper | difference | likely reason |\n|---|---|---|---|---|---|\n");
    for (const auto& [name, make] : sections)
      if (wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end())
        make(table);
    std::string command = "papers";
    for (const std::string& name : wanted) command += " '" + name + "'";
    if (!file.empty())
      table.written.write(file, command, "simulated by simulate(program, network)");
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
