// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A model of four blocks with manual functions over an axis of the parts, as a pipeline: layers
/// whose weights the axis splits, attention in a ring, values that go up the axis, and two layers,
/// perhaps of two stages, within one manual function. It is compared with the automatic form on one
/// part, which every process has for itself. Used on loopback and under MPI.
///
///     std::string wrong = support::manual_pipeline_case(transport, random);
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tessera/pipeline.hpp>

#include "manual/program_case.hpp"

namespace support {

/// (rows, tokens, width): rows are split over data, and tokens over model.
using Tokens = InGrid<data, model, _>;
inline constexpr Index token_width = 3, token_hidden = 24;  // each size of model divides the latter

struct TokenBlock {
  InGrid<_, model> in;
  InGrid<model, _> out;
  static constexpr auto fields = Fields<&TokenBlock::in, &TokenBlock::out>{};
};
struct TokenStack {
  std::vector<TokenBlock> blocks;
  static constexpr auto fields = Fields<&TokenStack::blocks>{};
};
struct TokenSample {
  Tokens x, y;
  static constexpr auto fields = Fields<&TokenSample::x, &TokenSample::y>{};
};

/// Each value goes one coordinate up, and the last one nowhere.
struct Up {
  static constexpr int to(int from, int size) { return from + 1 < size ? from + 1 : -1; }
};

/// The loss by manual functions.
struct ManualTokens {
  /// Tokens are gathered, hidden elements split, and sums come back as each process's tokens.
  static constexpr auto wide = [](const auto& x, const auto& in, const auto& out) {
    const auto all = all_gather_over<model, 1>(x);
    const auto h = tanh(einsum<"rtw,wh->rth", P<data, _, _>>(all, in));
    const auto parts = einsum<"rth,hw->rtw", P<data, _, _>>(h, out);
    return x + reduce_scatter_over<model, 1>(parts);
  };
  /// Keys, which are values too, travel around the axis.
  static constexpr auto ring = [](const auto& x) {
    auto keys = x;
    const auto weights = [&] { return exp(einsum<"rtw,ruw->rtu", P<data, _, _>>(x, keys)); };
    auto w = weights();
    auto total = sum<"rtu->rt">(w);
    auto heads = einsum<"rtu,ruw->rtw", P<data, _, _>>(w, keys);
    for (int step = 1; step < axis_size<model>(x); ++step) {
      keys = permute_over<model, Shift<1>>(keys);
      w = weights();
      total = total + sum<"rtu->rt">(w);
      heads = heads + einsum<"rtu,ruw->rtw", P<data, _, _>>(w, keys);
    }
    return heads / expand_dims<2>(total);
  };
  static constexpr auto moved = [](const auto& x) {
    const auto place = cast<double>(axis_index<model>(x)) + 1.0;
    return sin(x) + permute_over<model, Up>(x * place) * 0.5;
  };

  static auto loss(const TokenStack& m, const TokenSample& s) {
    Tokens x = layer("blocks.0", [](const Tokens& a, const TokenBlock& b) {
      return manual<model>([](const auto&... all) { return along<1, model>(wide(all...)); })(
          a, b.in, b.out);
    })(s.x, m.blocks[0]);
    x = layer("blocks.1", [](const Tokens& a) {
      return Tokens(manual<model>([](const auto& v) { return along<1, model>(ring(v)); })(a));
    })(x);
    const TokenBlock &c = m.blocks[1], &d = m.blocks[2];
    x = manual<model>(
        [](const auto& v, const auto& in, const auto& out, const auto& last, const auto& back) {
          const auto up = layer("blocks.2", [](const auto& a, const auto& w, const auto& u) {
            return moved(wide(a, w, u));
          })(v, in, out);
          return along<1, model>(layer("blocks.3", wide)(up, last, back));
        })(x, c.in, c.out, d.in, d.out);
    return layer("head", [](const Tokens& a, const Tokens& y) {
      return manual<model>([](const auto& v, const auto& wanted) {
        return all_reduce_over<model>(sum<"rtw->">(square(v - wanted)));
      })(a, y);
    })(x, s.y);
  }
};

/// The same by the library's own operators.
struct AutomaticTokens {
  static Tokens wide(const Tokens& x, const TokenBlock& b) {
    const auto h = tanh(einsum<"rtw,wh->rth", P<data, _, model>>(x, b.in));
    return x + einsum<"rth,hw->rtw", P<data, model, _>>(h, b.out);
  }
  static Tokens ring(const Tokens& x) {
    const auto w = exp(einsum<"rtw,ruw->rtu", P<data, model, _>>(x, x));
    return einsum<"rtu,ruw->rtw", P<data, model, _>>(w, x) / expand_dims<2>(sum<"rtu->rt">(w));
  }
  static Tokens moved(const Tokens& x) {
    const ProcessMesh<Grid> mesh(x.core().mesh());
    const int p = mesh.size<model>();
    const Index r = x.extent(0), t = x.extent(1) / p;
    const DynamicTensor blocks = reshape(DynamicTensor(x), {r, p, t, token_width});
    const DynamicTensor places = iota<double>(DynamicMesh(mesh), {p}, Sharding{{}}, 0) + 1.0;
    const DynamicTensor numbered = einsum("p,rptw->rptw", places, blocks);
    const DynamicTensor none =
        full<double>(DynamicMesh(mesh), {r, 1, t, token_width}, Sharding::replicated(4), 0.0);
    const DynamicTensor up =
        p == 1 ? none
               : concatenate(1, {none, slice(numbered, {0, 0, 0, 0}, {r, p - 1, t, token_width})});
    const DynamicTensor flat = reshape(up, {r, p * t, token_width});
    return sin(x) + as<Tokens>(reshard(flat, named_sharding<Grid, P<data, model, _>>())) * 0.5;
  }
  static auto loss(const TokenStack& m, const TokenSample& s) {
    const Tokens x = ring(wide(s.x, m.blocks[0]));
    const Tokens y = wide(moved(wide(x, m.blocks[1])), m.blocks[2]);
    return sum<"rtw->", P<>>(square(y - s.y));
  }
};

/// What is run: on which part of a mesh replica x stage x data x model, by which schedule, and the
/// stage of each block, the last one's having the head; and the rows of each micro-batch.
struct ManualPipeline {
  using Whole = Mesh<fixed::replica, fixed::stage, data, model>;
  using Stages = Without<Whole, fixed::replica>;

  MeshShape shape;
  int replica = 0;
  PipelineSchedule schedule;
  std::vector<int> stage_of;
  std::vector<Index> rows;

  std::string text() const {
    std::string words = schedule.name + " on " + to_string(shape, Whole::names()) + ", blocks in";
    for (const int stage : stage_of) words += " " + std::to_string(stage);
    return words + ": ";
  }
  StageMap map() const {
    StageMap map{{"head", stage_of.back()}};
    for (int b = 0; b < 4; ++b)
      map.add("blocks." + std::to_string(b), stage_of[static_cast<std::size_t>(b)]);
    return map;
  }
  ManualPipeline in_one_stage() const {
    ManualPipeline one = *this;
    one.schedule = gpipe(shape[1], static_cast<int>(rows.size()));
    one.stage_of.assign(4, 0);
    return one;
  }
};
inline ManualPipeline some_manual_pipeline(Random& random, int processes) {
  ManualPipeline c;
  do {
    c.shape = random.of(meshes_of(processes, 4));
  } while (c.shape[1] > 4);
  c.replica = random.below(c.shape[0]);
  const int s = c.shape[1], m = 1 + random.below(5);
  const int kind = random.below(4);
  c.schedule = kind == 0   ? gpipe(s, m)
               : kind == 1 ? one_f_one_b(s, m)
               : kind == 2 ? zero_bubble(s, m)
                           : interleaved(s, 1 + random.below(2), m);
  for (int b = 0; b < 4; ++b) c.stage_of.push_back(random.below(c.schedule.stages()));
  std::sort(c.stage_of.begin(), c.stage_of.end());
  for (int k = 0; k < m; ++k) c.rows.push_back(1 + random.below(4));
  return c;
}

struct ManualWave {
  int salt;
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i) const {
    double phase = 1.0 + salt;
    for (int d = 0; d < i.size(); ++d) phase += (1.7 - d) * static_cast<double>(i[d]);
    return Kokkos::sin(phase) / 2;
  }
};

/// A pipeline with what it is given, on a process that is in it.
class ManualSetting {
 public:
  ManualSetting(const ProcessMesh<ManualPipeline::Stages>& on, const ManualPipeline& c)
      : mesh(on), case_(c) {
    model_of = stack_on([&](int b) { return part(c.stage_of[static_cast<std::size_t>(b)]); });
    for (std::size_t m = 0; m < c.rows.size(); ++m)
      batches.push_back(sample_on(part(c.stage_of.front()), part(c.stage_of.back()), m));
  }
  ProcessMesh<Grid> part(int stage) const {
    return mesh.part<fixed::stage>(case_.schedule.part(stage));
  }
  ProcessMesh<Grid> own() const { return mesh.part<fixed::stage>(mesh.coordinate<fixed::stage>()); }
  auto pipeline() const {
    return pipelined<fixed::stage>(
        mesh, [](const TokenStack& w, const TokenSample& s) { return ManualTokens::loss(w, s); },
        case_.map(), case_.schedule);
  }
  /// The automatic form on this process's part alone, summed over the micro-batches.
  auto expected() const {
    const TokenStack alone = stack_on([&](int) { return own(); });
    const auto one = value_and_grad([&](const TokenStack& w) {
      InGrid<> sum_of;
      for (std::size_t m = 0; m < case_.rows.size(); ++m) {
        const InGrid<> loss = AutomaticTokens::loss(w, sample_on(own(), own(), m));
        sum_of = m == 0 ? loss : InGrid<>(sum_of + loss);
      }
      return sum_of;
    });
    return one(alone);
  }

  ProcessMesh<ManualPipeline::Stages> mesh;
  TokenStack model_of;
  std::vector<TokenSample> batches;

 private:
  template <class On> static TokenStack stack_on(const On& part_of) {
    TokenStack m;
    const int block_of[] = {0, 2, 3};
    for (const int b : block_of)
      m.blocks.push_back({from_function<InGrid<_, model>>(part_of(b), {token_width, token_hidden},
                                                          ManualWave{1 + b}),
                          from_function<InGrid<model, _>>(part_of(b), {token_hidden, token_width},
                                                          ManualWave{11 + b})});
    return m;
  }
  TokenSample sample_on(const ProcessMesh<Grid>& x, const ProcessMesh<Grid>& y,
                        std::size_t m) const {
    const Extents extents{case_.rows[m], 2 * mesh.size<model>(), token_width};
    return {from_function<Tokens>(x, extents, ManualWave{30 + static_cast<int>(m)}),
            from_function<Tokens>(y, extents, ManualWave{50 + static_cast<int>(m)})};
  }

  ManualPipeline case_;
};

/// Watches what MPI is asked to send.
struct SendsWatched {
  std::function<void()> begin;
  std::function<Index()> elements;  ///< since then
};

/// The pipeline gives the values of the automatic form, and the bits of one stage; a dry run counts
/// the bytes that are sent and held, and the peak is the stated one. Processes of other replicas do
/// nothing, and nobody waits for them.
inline std::string manual_pipeline_case(const std::shared_ptr<Transport>& transport, Random& random,
                                        const SendsWatched* watch = nullptr) {
  const ManualPipeline c = some_manual_pipeline(random, transport->size());
  MeshOptions options;
  options.check = watch == nullptr ? Check::communicating : Check::normal;
  if (watch != nullptr) options.shared = Shared::off;
  const auto whole_on = [&](const std::shared_ptr<Transport>& world) {
    return make_mesh<ManualPipeline::Whole>(world, MeshSizes<ManualPipeline::Whole>(c.shape),
                                            options);
  };
  const auto whole = whole_on(transport);
  const auto mesh = whole.part<fixed::replica>(c.replica);
  if (!mesh.takes_part()) return "";
  const ManualSetting s(mesh, c), t(mesh, c.in_one_stage());
  const auto expected = s.expected();
  auto step = s.pipeline(), in_one = t.pipeline();
  const auto [value_of, gradient] = step(s.model_of, s.batches);
  const auto [other_value, other_gradient] = in_one(t.model_of, t.batches);
  std::string wrong;
  const auto compare = [&](const char* what, const auto& x, const auto& y, const auto& one) {
    using X = std::decay_t<decltype(x)>;
    const ProcessMesh<Grid> home(x.core().mesh());
    const X moved = one.core().mesh() == home.core() ? one : reshard<X>(one, home);
    if (!home.takes_part() || !wrong.empty()) return;
    wrong = apart(to_host(x), to_host(y), what);
    if (!(to_host(x) == to_host(moved))) wrong += std::string(what) + " has other bits";
  };
  compare("the value", value_of, expected.value, other_value);
  for_each_tensor(
      [&](const auto& g, const auto& e, const auto& o) { compare("a gradient", g, e, o); },
      gradient, expected.gradient, other_gradient);
  compare("the evaluation", step.evaluate(s.model_of, s.batches), expected.value, other_value);
  if (!wrong.empty()) return c.text() + wrong;

  struct Counted {
    Index messages, collectives, exchanged, peak, stated;
  };
  const auto count = [](const ManualSetting& on, auto& run) {
    const auto& own = on.own();
    detail::ChargedTogether& memory = own.core()->arena().together();
    on.mesh.ledger().reset();
    own.ledger().reset();
    memory.peak = memory.now;
    const Index before = memory.now;
    const auto kept = run(on.model_of, on.batches);
    const auto stage = static_cast<std::size_t>(on.mesh.template coordinate<fixed::stage>());
    Index sent = 0;
    for (const Collective kind : {Collective::exchange, Collective::collective_permute})
      sent += on.mesh.ledger().payload_bytes(kind) + own.ledger().payload_bytes(kind);
    return Counted{on.mesh.ledger().payload_bytes(), own.ledger().payload_bytes(), sent,
                   memory.peak - before, run.planned().parts[stage].peak_bytes};
  };
  if (watch != nullptr) watch->begin();
  const Counted real = count(s, step);
  if (watch != nullptr && 8 * watch->elements() != real.exchanged)
    wrong = "MPI sends " + std::to_string(8 * watch->elements()) + " bytes, and the ledgers say " +
            std::to_string(real.exchanged) + "; ";
  const auto dry_whole = whole_on(dry_transport(transport->size(), transport->process()));
  const ManualSetting dry(dry_whole.part<fixed::replica>(c.replica), c);
  auto dry_step = dry.pipeline();
  (void)dry_step(dry.model_of, dry.batches);
  const Counted planned = count(dry, dry_step);
  const auto same = [&](Index a, Index b, const char* what) {
    if (a != b)
      wrong += std::string(what) + " " + std::to_string(a) + " bytes, and planned are " +
               std::to_string(b) + "; ";
  };
  same(real.messages, planned.messages, "messages and moves have");
  same(real.collectives, planned.collectives, "a part's collectives have");
  same(real.peak, planned.peak, "the run takes");
  same(real.peak, real.stated, "the run takes (as it states)");
  return wrong.empty() ? "" : c.text() + wrong;
}

}  // namespace support
