// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How long it takes to choose the shardings of whole steps of training, on paper: Transformers of
/// 4, 24 and 96 layers, alike or each of its own width, mixtures of experts, and a U-Net, on meshes
/// of 8 to 4,096 processes and of three axes. The batch alone is annotated: weights, their
/// gradients and what is returned are chosen.
///
///     choose_steps [--json FILE] [NAME ...]      // those rows whose name contains a NAME
///
/// A row has the operators of the step, the seconds of this process's processor time to record it,
/// to price its operators, to solve the network, and of all but the recording; the modelled time
/// before and after, and by how much of the bound it may be too high. FILE is for
/// cmake/docs/figures.py.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <tessera/grad.hpp>
#include <tessera/program/choice.hpp>
#include <tessera/program/choice/detail/question.hpp>
#include <tessera/solve/solve.hpp>
#include <tessera/tessera.hpp>

#include "../../examples/support/step_models.hpp"
#include "support/written.hpp"

namespace {
using namespace tessera;
using T = DynamicTensor;
using Trees = std::vector<T>;

constexpr Index S = 128, M = 512, H = 2048, N = 8, D = 64, V = 1024, E = 64, capacity = 16;

struct Place {
  DynamicMesh mesh;
  T whole(const Extents& extents) const {
    return zeros<float>(mesh, extents, Sharding::replicated(extents.size()));
  }
  /// A batch has two sequences for each process along the first axis.
  Index batch() const { return 2 * mesh.core()->shape()[0]; }
};

/// A step of a model of `layers` layers; every second one of a mixture has experts.
struct Model {
  int layers;
  bool alike, mixture;

  Trees weights(const Place& place) const {
    Trees w{place.whole({V, M})};
    for (int l = 0; l < layers; ++l) {
      for (int i = 0; i < 3; ++i) w.push_back(place.whole({M, N, D}));
      w.push_back(place.whole({N, D, M}));
      if (mixture && l % 2 == 1) {
        w.push_back(place.whole({M, E}));
        w.push_back(place.whole({E, M, H}));
        w.push_back(place.whole({E, H, M}));
      } else {
        const Index wide = alike ? H : H + 32 * l;
        w.push_back(place.whole({M, wide}));
        w.push_back(place.whole({wide, M}));
      }
    }
    return w;
  }
  T loss(const Trees& w, const T& ids, const T& next) const {
    T x = take("vm,bt->btm", w[0], ids);
    std::size_t at = 1;
    for (int l = 0; l < layers; ++l) {
      x = models::attention(&w[at], x);
      at += 4;
      const bool split = mixture && l % 2 == 1;
      x = split ? x + models::mixture(&w[at], models::norm(x), E, capacity)
                : models::feed_forward(&w[at], x);
      at += split ? 3 : 2;
    }
    const T z = softmax<float>("btv", 'v', einsum("btm,vm->btv", models::norm(x), w[0]));
    return reduce<Sum>("btu->", log(take_along_axis("btv", 'v', z, next))) * -0.001f;
  }
  void step(const Place& place) const {
    const Trees w = weights(place);
    const Index b = place.batch();
    const T ids = zeros<std::int32_t>(place.mesh, {b, S}, Sharding{{0}, {}});
    const T next = zeros<std::int32_t>(place.mesh, {b, S, 1}, Sharding{{0}, {}, {}});
    Recording recording(place.mesh);
    const auto gradient = value_and_grad([&](const Trees& v) { return loss(v, ids, next); })(w);
    Trees after;
    for (std::size_t i = 0; i < w.size(); ++i) after.push_back(w[i] - 0.1f * gradient.gradient[i]);
    program = recording.take();
  }
  mutable Program program = {};
};

Program unet_step(const Place& place) {
  Trees w;
  for (const Extents& kernel : models::unet_kernels) w.push_back(place.whole(kernel));
  const T x = zeros<float>(place.mesh, {place.batch(), 3, 256, 256}, Sharding{{0}, {}, {}, {}});
  const auto loss = [&](const Trees& v) {
    return reduce<Sum>("nohw->", square(models::unet(v.data(), x)));
  };
  Recording recording(place.mesh);
  const auto gradient = value_and_grad(loss)(w);
  Trees after;
  for (std::size_t i = 0; i < w.size(); ++i) after.push_back(w[i] - 0.1f * gradient.gradient[i]);
  return recording.take();
}
Program step_of(const Place& place, int layers, bool alike, bool mixture) {
  const Model model{layers, alike, mixture};
  model.step(place);
  return std::move(model.program);
}

double now() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }
}  // namespace

int main(int argc, char** argv) {
  std::string file;
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], "--json") == 0 && i + 1 < argc)
      file = argv[++i];
    else
      names.push_back(argv[i]);
  return run_main(1, argv, [&](Environment&) {
    struct Row {
      std::string name;
      std::function<Program(const Place&)> record;
    };
    std::vector<Row> rows;
    for (const int layers : {4, 24, 96})
      rows.push_back({fmt::format("Transformer of {} layers", layers),
                      [=](const Place& p) { return step_of(p, layers, true, false); }});
    for (const int layers : {4, 24, 96})
      rows.push_back({fmt::format("Transformer of {} widths", layers),
                      [=](const Place& p) { return step_of(p, layers, false, false); }});
    rows.push_back(
        {"mixture of 36 layers", [](const Place& p) { return step_of(p, 36, true, true); }});
    rows.push_back({"U-Net", unet_step});
    std::string json, command = "choose_steps";
    for (const std::string& name : names) command += " '" + name + "'";
    fmt::print("{:26} {:>8} {:>9} {:>8} {:>8} {:>8} {:>8} {:>10} {:>10} {:>6}\n", "step", "mesh",
               "operators", "record s", "prices s", "solve s", "choose s", "before ms", "after ms",
               "gap %");
    for (const Row& row : rows)
      for (const MeshShape& shape : {MeshShape{2, 4}, MeshShape{16, 16}, MeshShape{64, 64},
                                     MeshShape{2, 2, 2}, MeshShape{16, 16, 16}}) {
        std::string mesh;
        for (int a = 0; a < shape.rank(); ++a)
          mesh += (a > 0 ? "x" : "") + std::to_string(shape[a]);
        const std::string name = row.name + " on " + mesh;
        bool wanted = names.empty();
        for (const std::string& one : names) wanted = wanted || name.find(one) != std::string::npos;
        if (!wanted) continue;
        const Place place{dry_mesh(shape, shape.rank() == 2 ? AxisNames{"data", "model"}
                                                            : AxisNames{"data", "model", "third"})};
        const double begin = now();
        const Program program = row.record(place);
        ChooseOptions options{.open_arguments = true, .open_results = true};
        for (int t = 0; t < static_cast<int>(program.tensors().size()); ++t)
          if (program.tensor(t).made < 0 && program.tensor(t).desc.sharding.rank() > 0 &&
              !program.tensor(t).desc.sharding[0].empty())
            options.pins.push_back({t, program.tensor(t).desc.sharding});  // the batch
        const double recorded = now();
        const PlanOptions planning = plan_options(*place.mesh.core());
        const detail::ChoiceQuestion question(program, planning, options);
        const double priced = now();
        (void)solve(question.network(), {.steps = options.steps, .enough = 2});
        const double solved = now();
        const Choice choice = choose(program, planning, options);
        const double chosen = now();
        const double gap = 100 * choice.gap();
        fmt::print("{:26} {:>8} {:>9} {:8.2f} {:8.2f} {:8.2f} {:8.2f} {:10.3f} {:10.3f} {:6.2f}\n",
                   row.name, mesh, program.size(), recorded - begin, priced - recorded,
                   solved - priced, chosen - solved, static_cast<double>(choice.before) / 1e9,
                   static_cast<double>(choice.cost) / 1e9, gap);
        std::fflush(stdout);
        json += fmt::format(
            "{}{{\"name\": \"choose/{}/tessera\", \"real_time\": {:.3f}, \"time_unit\": \"s\", "
            "\"operators\": {}, \"record s\": {:.3f}, \"prices s\": {:.3f}, \"solve s\": {:.3f}, "
            "\"before ms\": {:.3f}, \"after ms\": {:.3f}, \"gap %\": {:.3f}}}",
            json.empty() ? "" : ",\n", name, chosen - solved, program.size(), recorded - begin,
            priced - recorded, solved - priced, static_cast<double>(choice.before) / 1e9,
            static_cast<double>(choice.cost) / 1e9, gap);
      }
    if (file.empty()) return;
    const std::string context =
        tessera_bench::written_context(command, {{"turns", "processor time"}});
    tessera_bench::write_text(file,
                              "{\"context\": " + context + ",\n\"benchmarks\": [" + json + "]}\n");
  });
}
