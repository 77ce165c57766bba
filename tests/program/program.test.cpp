// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: program_lists
// Programs put together by hand: sums, the peak of memory, contracts, differences.
#include <doctest/doctest.h>

#include <algorithm>

#include "support/enumerate.hpp"

using namespace tessera;
using namespace support;

namespace {

namespace axes {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace axes
using Grid = Mesh<axes::data, axes::model>;

/// Records operators as a run would: tensors by number, each given up where it is told.
class Maker {
 public:
  Program program;
  explicit Maker(const MeshShape& mesh, int process = 0) {
    program.mesh = mesh;
    program.process = process;
    program.set_names({"data", "model"});
  }
  int given(const TensorDesc& desc) {
    const Index bytes = charge(desc);
    held_ = detail::saturating_add(held_, bytes);
    return program.add({desc, bytes, -1, 0, 0});
  }
  int run(const Plan& plan, const char* label, const FixedVector<int, max_operands>& operands,
          int line = 0) {
    ProgramEntry entry{std::make_shared<const Plan>(plan), label, {"made.cpp", line}, held_};
    entry.operands = operands;
    program.record(entry);
    const int i = program.size() - 1;
    held_ = detail::saturating_add(held_, charge(plan.result_desc()));
    program.entry_to_change(i).result =
        program.add({plan.result_desc(), charge(plan.result_desc()), i, i, 0});
    return program.entry(i).result;
  }
  void drop(int tensor) {
    held_ -= program.tensor(tensor).bytes;
    program.tensor_to_change(tensor).last = program.size() - 1;
    dropped_.push_back(tensor);
  }
  Program take() {
    for (int t = 0; t < static_cast<int>(program.tensors().size()); ++t)
      if (std::find(dropped_.begin(), dropped_.end(), t) == dropped_.end())
        program.tensor_to_change(t).last = program.size();
    return program;
  }

 private:
  Index charge(const TensorDesc& desc) const {
    return detail::arena_charge(detail::saturating_mul(
        block(desc.extents, desc.sharding, program.mesh, program.mesh.coordinates(program.process))
            .size(),
        static_cast<Index>(size_of(desc.type))));
  }
  Index held_ = 0;
  std::vector<int> dropped_;
};

/// The feed-forward layer of GSPMD's "2D finalized", forward: two products and what stands between
/// them.
Program layer(const MeshShape& mesh, int process, const Sharding& w_in_sharding = {{0}, {1}},
              bool checkpoint = false) {
  Maker make(mesh, process);
  const TensorDesc x{DType::f32, {8, 16, 64}, {{0}, {}, {1}}};
  const TensorDesc w_in{DType::f32, {64, 256}, w_in_sharding};
  const TensorDesc w_out{DType::f32, {256, 64}, {{1}, {0}}};
  const TensorDesc h{DType::f32, {8, 16, 256}, {{0}, {}, {1}}};
  const int tx = make.given(x), ti = make.given(w_in), to = make.given(w_out);
  make.program.enter("layer");
  make.program.enter("in");
  const int product =
      make.run(ops::Einsum{parse("bsm,mh->bsh"), h.sharding}.plan({x, w_in}, {mesh, process}),
               "bsm,mh->bsh", {tx, ti}, 10);
  int hidden = make.run(
      ops::Map{
          .terms = parse("abc->abc"), .type = DType::f32, .out = h.sharding, .reads_index = false}
          .plan({h}, {mesh, process}),
      "Gelu", {product}, 11);
  make.program.leave();
  make.drop(product);
  if (checkpoint)
    hidden =
        make.run(ops::Reshard{{{0}, {1}, {}}}.plan({h}, {mesh, process}), "reshard", {hidden}, 12);
  make.program.enter("out");
  make.run(
      ops::Einsum{parse("bsh,hm->bsm"), {{0}, {}, {1}}}.plan(
          {checkpoint ? TensorDesc{h.type, h.extents, {{0}, {1}, {}}} : h, w_out}, {mesh, process}),
      "bsh,hm->bsm", {hidden, to}, 13);
  make.program.leave();
  make.program.leave();
  return make.take();
}

}  // namespace

TEST_CASE("sums by axes and by layer are those of the program") {
  for (const MeshShape& mesh : meshes(8, 2))
    for (int process = 0; mesh.rank() == 2 && process < mesh.processes(); ++process) {
      const Program p = layer(mesh, process, {{}, {}}, true);
      Index payload = 0, messages = 0;
      std::int64_t cost = 0;
      int steps = 0;
      for (const CollectiveTotal& t : by_axes(p)) {
        payload += t.payload;
        messages += t.messages;
        steps += t.steps;
        cost += t.cost;
        Index of_group = 0;
        for (const CollectiveTotal& u : by_axes(p)) of_group += u.axes == t.axes ? u.payload : 0;
        CHECK(of_group == p.own_payload_bytes(t.axes));
      }
      CHECK(payload == p.own_payload_bytes());
      CHECK(messages == p.messages());
      CHECK(cost <= p.cost());
      int communications = 0;
      for (const ProgramEntry& e : p.entries()) communications += e.plan->communications();
      CHECK(steps == communications);

      const std::vector<LayerTotal> layers = by_layer(p);
      REQUIRE(layers.size() == 4);
      CHECK(layers[0].path == "");
      CHECK(layers[1].path == "layer");
      CHECK(layers[2].path == "layer/in");
      CHECK(layers[3].path == "layer/out");
      CHECK(layers[2].depth == 2);
      CHECK(layers[2].operators == 2);
      for (int outer : {0, 1}) {  // everything stands in "layer"
        const LayerTotal& t = layers[static_cast<std::size_t>(outer)];
        CHECK(t.operators == p.size());
        CHECK(t.payload == p.own_payload_bytes());
        CHECK(t.messages == p.messages());
        CHECK(t.flops == p.flops());
        CHECK(t.duplicated == p.duplicated_flops());
        CHECK(t.peak == p.peak_bytes());
        CHECK(t.cost == p.cost());
      }
      const Program part = p.part("layer/in");
      CHECK(part.size() == 2);
      CHECK(part.own_payload_bytes() == layers[2].payload);
      CHECK(part.peak_bytes() == layers[2].peak);
      CHECK(p.part("in").empty());
      CHECK(p.part("").size() == p.size());

      Index extra = 0;
      for (const DuplicatedWork& d : duplicated_work(p)) {
        extra += d.extra;
        CHECK(d.copies > 1);
        CHECK(p.entry(d.entry).plan->steps[d.step].flops == d.flops);
      }
      CHECK(extra == p.duplicated_flops());
    }
}

TEST_CASE("the peak is an operator's, and the tensors that are alive make up what is held") {
  const MeshShape mesh{2, 4};
  for (int process = 0; process < 8; ++process) {
    const Program p = layer(mesh, process);
    const PeakMoment peak = peak_moment(p);
    CHECK(peak.bytes == p.peak_bytes());
    CHECK(peak.held == p.entry(peak.entry).held_before);
    CHECK(peak.workspace == p.entry(peak.entry).plan->peak_bytes);
    CHECK(peak.unnamed == 0);
    CHECK(std::is_sorted(peak.tensors.begin(), peak.tensors.end(),
                         [&](int a, int b) { return p.tensor(a).bytes > p.tensor(b).bytes; }));
    for (const MemoryMoment& m : memory_timeline(p)) {
      Index alive = 0;
      for (const ProgramTensor& t : p.tensors()) alive += t.alive_at(m.entry) ? t.bytes : 0;
      CHECK(alive == m.held);
    }
    // The product of the first einsum was dropped before the second began; the program's part keeps
    // that.
    CHECK(p.tensor(p.entry(0).result).alive_at(1));
    CHECK(!p.tensor(p.entry(0).result).alive_at(2));
    const Program out = p.part("layer/out");
    Index alive = 0;
    for (const ProgramTensor& t : out.tensors()) alive += t.alive_at(0) ? t.bytes : 0;
    CHECK(alive == out.entry(0).held_before);
  }
  const Program none = Maker(mesh).take();
  CHECK(peak_moment(none).entry == -1);
  CHECK(explain_memory(none).find("no operators") != std::string::npos);
}

TEST_CASE("the chart of memory: a row an operator, fewer where they are many") {
  const Program p = layer(MeshShape{2, 4}, 0);
  const auto lines = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  };
  const PeakMoment peak = peak_moment(p);
  const long alive = static_cast<long>(peak.tensors.size());
  CHECK(lines(explain_memory(p)) == 2 + p.size() + 1 + alive + 1);
  CHECK(lines(explain_memory(p, 2)) == 2 + 2 + 1 + std::min(alive, 2L) + (alive > 2) + 1);
  CHECK(explain_memory(p, 1).find("worst of 1 to 3") != std::string::npos);
  CHECK(explain_memory(p).find("given; operand 2 of #1 einsum bsm,mh->bsh at made.cpp:10") !=
        std::string::npos);
}

TEST_CASE("contracts: each clause, kept and broken") {
  const MeshShape mesh{2, 4};
  const Program p = layer(mesh, 0);
  const auto gathers = over<Grid, axes::data, axes::model>(all_gather);
  const auto scatters = over<Grid, axes::model>(reduce_scatter);
  CHECK(over<Grid, axes::model>().axes == AxisSet{1});
  const auto broken_by = [&](const ProgramContract& contract, int clause, int entry, int step,
                             const char* text) {
    const ContractVerdict v = check(p, contract);
    CHECK(!v.kept);
    CHECK(v.clause == clause);
    CHECK(v.entry == entry);
    CHECK(v.step == step);
    CHECK_MESSAGE(v.text.find(text) != std::string::npos, v.text);
    CHECK_THROWS_AS(require(p, contract), ContractError);
  };
  const ProgramContract tight = only({gathers, scatters}) & no(all_to_all) & no(all_reduce) &
                                payload_at_most(p.payload_bytes()) & peak_at_most(p.peak_bytes()) &
                                messages_at_most(p.messages()) & duplicated_at_most(0) &
                                model_time_at_most(p.cost());
  CHECK(tight.clauses().size() == 8);
  CHECK(check(p, tight).kept);
  require(p, tight);
  CHECK(check(p, ProgramContract{}).kept);
  CHECK(check(p, only({Over{}})).kept);

  // The first operator gathers x over model and w_in over data; the third scatters over model.
  broken_by(only(gathers), 0, 2, 2,
            "#3 einsum bsh,hm->bsm in layer layer/out at made.cpp:13 communicates by "
            "reduce-scatter over model");
  broken_by(no(all_to_all) & only({over<Grid, axes::data>(all_gather), scatters}), 1, 0, 0,
            "accepts only all-gather over data, reduce-scatter over model");
  broken_by(only({}), 0, 0, 0, "accepts no communication");
  broken_by(no(scatters), 0, 2, 2, "refuses reduce-scatter over model");
  broken_by(no(over<Grid, axes::data>()), 0, 0, 1, "refuses communication over data");
  CHECK(check(p, no(over<Grid, axes::data>(reduce_scatter))).kept);
  broken_by(payload_at_most(p.entry(0).plan->payload_bytes()), 0, 2, -1, "#3 einsum");
  broken_by(payload_at_most(0, scatters), 0, 2, -1, "payload of reduce-scatter over model");
  broken_by(messages_at_most(p.messages() - 1), 0, 2, -1, "messages");
  const PeakMoment peak = peak_moment(p);
  broken_by(peak_at_most(peak.bytes - 1), 0, peak.entry, -1, "the program's peak is");
  broken_by(model_time_at_most(0), 0, 0, -1, "model time");

  const Program replicated = layer(mesh, 0, {{}, {}}, true);
  if (replicated.duplicated_flops() > 0) CHECK(!check(replicated, duplicated_at_most(0)).kept);
  // Payload over one axis: the sum over the steps whose group spans it, on the process with most.
  Index over_data = 0;
  for (int process = 0; process < mesh.processes(); ++process) {
    Index there = 0;
    for (const CollectiveTotal& t : by_axes(on_process(replicated, process)))
      if (t.axes.contains(0)) there += t.payload;
    over_data = max_of(over_data, there);
  }
  CHECK(check(replicated, payload_at_most(over_data, over<Grid, axes::data>())).kept);
  if (over_data > 0)
    CHECK(!check(replicated, payload_at_most(over_data - 1, over<Grid, axes::data>())).kept);
}

TEST_CASE("a program on replicated operands does work several times, and says which") {
  Maker make(MeshShape{2, 4});
  const TensorDesc a{DType::f32, {8, 8}, {{0}, {}}}, b{DType::f32, {8, 8}, {{}, {}}};
  const int ta = make.given(a), tb = make.given(b);
  make.run(ops::Einsum{parse("ik,kj->ij"), {{0}, {}}}.plan({a, b}, {make.program.mesh}),
           "ik,kj->ij", {ta, tb});
  const Program p = make.take();
  const std::vector<DuplicatedWork> twice = duplicated_work(p);
  REQUIRE(twice.size() == 1);
  CHECK(twice[0].copies == 4);
  CHECK(twice[0].flops == 2 * 4 * 8 * 8);
  CHECK(twice[0].extra == 2 * 4 * 8 * 8 * 3 / 4);
  CHECK(explain(p).find(
            "duplicated: 384 flop of 512 flop in #1 ik,kj->ij, done alike by 4 processes") !=
        std::string::npos);
  CHECK(!check(p, duplicated_at_most(383)).kept);
  CHECK(check(p, duplicated_at_most(384)).kept);
}

TEST_CASE("differences: the same, other specs, another mesh") {
  const MeshShape mesh{2, 4};
  const Program p = layer(mesh, 0);
  CHECK(diff(p, p).same());
  CHECK(explain(diff(p, p)).find("0 appeared, 0 vanished, 0 changed, 3 alike") !=
        std::string::npos);

  const Program q = layer(mesh, 0, {{}, {}}, true);
  const ProgramDiff d = diff(p, q);
  CHECK(d.appeared() == 1);
  CHECK(d.vanished() == 0);
  CHECK(d.rows.size() == 4);
  CHECK(d.rows[2].appeared());
  CHECK(d.rows[2].after == 2);
  CHECK(d.changed() >= 2);
  CHECK(d.payload() == q.payload_bytes() - p.payload_bytes());
  CHECK(d.flops() == q.flops() - p.flops());
  CHECK(d.peak() == q.peak_bytes() - p.peak_bytes());
  CHECK(d.cost() == q.cost() - p.cost());
  const ProgramDiff back = diff(q, p);
  CHECK(back.vanished() == 1);
  CHECK(back.payload() == -d.payload());
  CHECK(explain(d).find("  +  layer: reshard reshard") != std::string::npos);
  CHECK(explain(back).find("  -  layer: reshard reshard") != std::string::npos);

  const ProgramDiff grown = diff(p, layer(MeshShape{4, 8}, 0));
  CHECK(grown.changed() == 3);
  CHECK(explain(grown).find("data=2 x model=4 -> data=4 x model=8") != std::string::npos);
}

TEST_CASE("differences: as many operators are aligned as can be, in order") {
  Random random(seed_for("alignment", 31));
  const MeshShape mesh{2, 2};
  const TensorDesc x{DType::f32, {4}, {{0}}};
  const auto plan = std::make_shared<const Plan>(
      ops::Map{.terms = parse("a->a"), .type = DType::f32, .out = {{0}}, .reads_index = false}.plan(
          {x}, {mesh}));
  static const char* const labels[] = {"a", "b", "c", "d"};
  for (int round = 0; round < 2000; ++round) {
    Program programs[2];
    for (Program& p : programs) {
      p.mesh = mesh;
      for (int i = random.below(12); i > 0; --i)
        p.record({plan, labels[random.below(1 + round % 4)], {}, 0});
    }
    const Program &a = programs[0], &b = programs[1];
    // The plain table of longest common subsequences.
    std::vector<std::vector<int>> longest(
        static_cast<std::size_t>(a.size()) + 1,
        std::vector<int>(static_cast<std::size_t>(b.size()) + 1, 0));
    const auto at = [&](int i, int j) -> int& {
      return longest[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
    };
    for (int i = 1; i <= a.size(); ++i)
      for (int j = 1; j <= b.size(); ++j)
        at(i, j) = a.entry(i - 1).label == b.entry(j - 1).label
                       ? at(i - 1, j - 1) + 1
                       : std::max(at(i - 1, j), at(i, j - 1));
    const ProgramDiff d = diff(a, b);
    int next_a = 0, next_b = 0, both = 0;
    bool right = true;
    for (const DiffRow& row : d.rows) {
      if (row.before >= 0) right = right && row.before == next_a++;
      if (row.after >= 0) right = right && row.after == next_b++;
      if (row.before >= 0 && row.after >= 0) {
        ++both;
        right = right && a.entry(row.before).label == b.entry(row.after).label && !row.changed;
      }
    }
    CHECK((right && next_a == a.size() && next_b == b.size() && both == at(a.size(), b.size())));
  }
}

TEST_CASE("contracts and headlines speak of the process with most") {
  Maker make(MeshShape{3, 3});
  const TensorDesc x{DType::f32, {7, 9}, {{0}, {1}}};
  const int tx = make.given(x);
  make.run(ops::Reshard{{{1}, {0}}}.plan({x}, {make.program.mesh}), "reshard", {tx});
  const Program& p = make.program;
  Index most = 0, peak = 0;
  int first = -1;
  for (int process = 0; process < 9; ++process) {
    const Program there = on_process(p, process);
    if (there.own_payload_bytes() > most) first = process;
    most = max_of(most, there.own_payload_bytes());
    peak = max_of(peak, there.peak_bytes());
  }
  REQUIRE(p.own_payload_bytes() == 0);  // process 0 keeps what it has
  REQUIRE(first > 0);
  CHECK(p.payload_bytes() == most);
  CHECK(p.payload_bytes(Collective::all_gather) == 0);
  CHECK(p.payload_bytes(AxisSet{0} | AxisSet{1}) == most);
  CHECK(check(p, payload_at_most(most) & peak_at_most(peak)).kept);
  const std::string who = "process " + std::to_string(first);
  const ContractVerdict payload = check(p, payload_at_most(most - 1));
  CHECK(!payload.kept);
  CHECK_MESSAGE(payload.text.find("the payload of " + who + ", which has most, to " +
                                  detail::bytes_text(most)) != std::string::npos,
                payload.text);
  CHECK(!check(p, payload_at_most(0)).kept);
  CHECK(!check(p, messages_at_most(0)).kept);
  CHECK(!check(p, peak_at_most(peak - 1)).kept);
  CHECK(explain(p).find("most on one process: 1 operators") != std::string::npos);
  CHECK(explain(p).find("  payload " + detail::bytes_text(most) + " (" + who + ") in") !=
        std::string::npos);
  CHECK(explain_own(p).find("  payload 0 B in 0 messages") != std::string::npos);
}

TEST_CASE("a count beyond 64 bits is printed as at least what can be counted") {
  constexpr Index huge = Index{1} << 40;
  const AxisNames names{"a", "b"};
  Maker make(MeshShape{2, 2});
  const TensorDesc x{DType::f32, {huge, huge}, {{0}, {}}}, w{DType::f32, {huge, huge}, {{0}, {}}};
  const int tx = make.given(x), tw = make.given(w);
  make.run(ops::Einsum{parse("ik,kj->ij"), {{0}, {}}}.plan({x, w}, {make.program.mesh}),
           "ik,kj->ij", {tx, tw});
  make.run(
      ops::Reduce{.terms = parse("ij->"), .reduction = Reduction::sum, .type = x.type, .out = {}}
          .plan({x}, {make.program.mesh}),
      "ij->", {tx});
  const Program& p = make.program;
  for (const ProgramEntry& e : p.entries())
    if (e.plan->kind == OperatorKind::einsum) {
      const std::string text = explain(*e.plan, names);
      CHECK_MESSAGE(text.find("payload at least 8191.9 PiB, workspace at least 8191.9 PiB, at "
                              "least 9223.3 Pflop") != std::string::npos,
                    text);
      CHECK(explain_work(*e.plan, names).find("has no instructions") != std::string::npos);
    }
  // All-reduce, reduce-scatter, all-gather and all-to-all of more than can be counted.
  Sharding open{{}, {}};
  open.partial = AxisSet{0};
  open.reduction = Reduction::sum;
  for (const auto& [from, to] : std::vector<std::pair<Sharding, Sharding>>{
           {open, {{}, {}}}, {open, {{0}, {}}}, {{{0}, {}}, {{}, {}}}, {{{0}, {}}, {{}, {0}}}}) {
    const TensorDesc desc{DType::i8, {Index{1} << 50, Index{1} << 50}, from};
    const Plan plan = ops::Reshard{to}.plan({desc}, {MeshShape{2, 2}});
    CHECK_MESSAGE(explain(plan, names).find("payload at least 8191.9 PiB") != std::string::npos,
                  explain(plan, names));
  }
  CHECK(explain(p).find("  payload at least 8191.9 PiB") != std::string::npos);
  CHECK(explain(p).find("peak memory at least 8191.9 PiB") != std::string::npos);
  CHECK(explain_memory(p).find("most on one process: at least 8191.9 PiB") != std::string::npos);
  CHECK(explain_all(p).find("at least 8191.9 PiB") != std::string::npos);
  CHECK(explain(diff(p, Program{})).find("payload at least 8191.9 PiB -> 0 B") !=
        std::string::npos);
  CHECK(check(p, payload_at_most(1 << 20)).text.find("to at least 8191.9 PiB") !=
        std::string::npos);
  CHECK(check(p, peak_at_most(1 << 20)).text.find("hold at least 8191.9 PiB") != std::string::npos);
  // What can be counted is exact.
  CHECK(detail::bytes_text(max_int64 - (Index{1} << 20)) == "8191.9 PiB");
  CHECK(detail::bytes_text(max_int64) == "at least 8191.9 PiB");
}
