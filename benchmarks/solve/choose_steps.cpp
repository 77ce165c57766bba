// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How long it takes to choose the shardings of whole steps of training, on paper: Transformers of
/// 4, 24 and 96 layers, alike or each of its own width, mixtures of experts, and a U-Net, on meshes
/// of 8 to 4,096 processes and of three axes. The batch alone is annotated: weights, their
/// gradients and what is returned are chosen.
///
///     choose_steps [--json FILE] [NAME ...]      // those rows whose name contains a NAME
///
/// A row has the operators of the step, the seconds to record it and to choose, the modelled time
/// before and after, and by how much of the bound it may be too high.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <tessera/grad.hpp>
#include <tessera/program/choice.hpp>
#include <tessera/tessera.hpp>

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

T norm(const T& x) {
  const Place place{x.mesh()};
  return layer_norm<float>(x, place.whole({M}), place.whole({M}));
}
T attention(const T* w, const T& x) {
  const T a = norm(x);
  const T q = einsum("btm,mnd->btnd", a, w[0]), k = einsum("btm,mnd->btnd", a, w[1]),
          v = einsum("btm,mnd->btnd", a, w[2]);
  const T scores = softmax<float>("bnts", 's', einsum("btnd,bsnd->bnts", q, k) * 0.125f);
  return x + einsum("btnd,ndm->btm", einsum("bnts,bsnd->btnd", scores, v), w[3]);
}
T feed_forward(const T* w, const T& x) {
  return x + einsum("bth,hm->btm", gelu(einsum("btm,mh->bth", norm(x), w[0])), w[1]);
}
/// GShard's algorithm 2, to the expert that likes a token best.
T experts(const T* w, const T& input) {
  const T x = norm(input);
  const T gates = softmax<float>("gse", 'e', einsum("gsm,me->gse", x, w[0]));
  const T top = one_hot<float>("gse", 'e', argmax("gse->gs", gates), E);
  const T place =
      cast<std::int64_t>(reduce<Sum>("gse->gs", cumulative<Sum>("gse", 's', top) * top) - 1.0f);
  const T slots = one_hot<float>("gsc", 'c', place, capacity);
  const T x_of = einsum("gsec,gsm->egcm", einsum("gse,gsc->gsec", top, slots), x);
  const T y = einsum("egch,ehm->egcm", relu(einsum("egcm,emh->egch", x_of, w[1])), w[2]);
  return input + einsum("gsec,egcm->gsm", einsum("gse,gsc->gsec", gates * top, slots), y);
}

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
      x = attention(&w[at], x);
      at += 4;
      const bool split = mixture && l % 2 == 1;
      x = split ? experts(&w[at], x) : feed_forward(&w[at], x);
      at += split ? 3 : 2;
    }
    const T z = softmax<float>("btv", 'v', einsum("btm,vm->btv", norm(x), w[0]));
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

T conv(const T& x, const T& k, Index stride = 1) {
  Convolution same{.stride = {stride, stride}, .low = {1, 1}, .high = {1, 1}};
  if (stride == 2) same.low = {0, 0};
  return convolve("nihw,oihw->nohw", x, k, same);
}
T twice_as_large(const T& x) {
  const Extents e = x.desc().extents;
  const T rows = reshape(broadcast_to(x, {e[0], e[1], e[2], 2, e[3]}, {0, 1, 2, 4}),
                         {e[0], e[1], 2 * e[2], e[3]});
  return reshape(broadcast_to(rows, {e[0], e[1], 2 * e[2], e[3], 2}, {0, 1, 2, 3}),
                 {e[0], e[1], 2 * e[2], 2 * e[3]});
}
Program unet_step(const Place& place) {
  const Trees w{place.whole({16, 3, 3, 3}), place.whole({32, 16, 3, 3}),
                place.whole({32, 32, 3, 3}), place.whole({3, 48, 3, 3})};
  const T x = zeros<float>(place.mesh, {place.batch(), 3, 256, 256}, Sharding{{0}, {}, {}, {}});
  const auto loss = [&](const Trees& v) {
    const T a = relu(conv(x, v[0])), m = relu(conv(relu(conv(a, v[1], 2)), v[2]));
    return reduce<Sum>("nohw->", square(conv(concatenate(1, {twice_as_large(m), a}), v[3])));
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

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
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
    std::string json;
    fmt::print("{:26} {:>8} {:>9} {:>8} {:>8} {:>10} {:>10} {:>6}\n", "step", "mesh", "operators",
               "recorded", "chosen s", "before ms", "after ms", "gap %");
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
        const Choice choice = choose(program, plan_options(*place.mesh.core()), options);
        const double chosen = now();
        fmt::print("{:26} {:>8} {:>9} {:8.2f} {:8.2f} {:10.3f} {:10.3f} {:6.2f}\n", row.name, mesh,
                   program.size(), recorded - begin, chosen - recorded,
                   static_cast<double>(choice.before) / 1e9, static_cast<double>(choice.cost) / 1e9,
                   100 * choice.gap());
        std::fflush(stdout);
        json += fmt::format(
            "{}{{\"step\": \"{}\", \"mesh\": \"{}\", \"operators\": {}, "
            "\"recorded_s\": {:.3f}, \"chosen_s\": {:.3f}, \"before_ps\": {}, "
            "\"cost_ps\": {}, \"gap\": {:.6f}}}",
            json.empty() ? "" : ",\n", row.name, mesh, program.size(), recorded - begin,
            chosen - recorded, choice.before, choice.cost, choice.gap());
      }
    if (file.empty()) return;
    std::FILE* const out = std::fopen(file.c_str(), "w");
    if (out == nullptr) throw FileError("choose_steps: " + file + " cannot be written");
    std::fputs(("[" + json + "]\n").c_str(), out);
    std::fclose(out);
  });
}
