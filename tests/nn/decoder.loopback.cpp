// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A Transformer, written once: the same loss and gradients under all rules, and the collectives
// that each set of rules is known for.
#include <algorithm>
#include <array>
#include <iomanip>
#include <sstream>

#include <tessera/op/compile.hpp>
#include <tessera/program/summary.hpp>

#include "nn/decoder_case.hpp"
#include "support/golden.hpp"

namespace {
using namespace nn_test;

/// The Program of f on process 0 of a dry mesh of 2 x 4.
template <class F> Program dry_program(const ProcessMesh<Grid>& mesh, const F& f) {
  Recording recording(mesh);
  f();
  return recording.take();
}
/// How many calls of a collective a Program has over exactly these axes.
int count(const Program& p, Collective kind, AxisSet axes) {
  int n = 0;
  for (const ProgramEntry& e : p.entries())
    for (const Step& s : e.plan->steps)
      n += s.communicates() && s.collective == kind && s.group == axes;
  return n;
}
int count(const Program& p) {
  int n = 0;
  for (const ProgramEntry& e : p.entries()) n += e.plan->communications();
  return n;
}
const AxisSet over_data{0}, over_model{1}, over_both{0, 1};

/// The loss of a decoder of elements T, and the largest gradient by its table.
template <class T> std::pair<double, double> loss_in(const ProcessMesh<Grid>& mesh) {
  using U = Under<T, Grid, TensorParallel<data, model>>;
  Parameters<Grid> make(mesh, 3);
  const auto weights = Decoder<U>::like(
      make, {.vocabulary = 11, .places = 5, .embed = 6, .heads = 3, .hidden = 7, .layers = 1});
  const auto ids = from_function<TokenIds<U>>(mesh, {5, 4}, Ids{11});
  const DecoderOptions options{.dropout = {.rate = 0.2, .seed = 8}};
  const auto f = [&](const auto& w) {
    return mean(cross_entropy(next_tokens(w, ids, options), ids));
  };
  const auto [loss, gradient] = value_and_grad(f)(weights);
  return {static_cast<double>(value(loss)),
          static_cast<double>(value(max(abs(gradient.table.weight))))};
}

constexpr DecoderSizes large{
    .vocabulary = 4000, .places = 64, .embed = 64, .heads = 8, .hidden = 256, .layers = 1};

struct BlockPlan {
  Program forward, both;
  Index parameters = 0;
};
template <class R> BlockPlan block_plan() {
  using U = Under<float, Grid, R>;
  const auto mesh = dry_mesh<Grid>(2, 4);
  Parameters<Grid> make(mesh, 1);
  const auto block = DecoderBlock<U>::like(make, large);
  const auto x = make.tensor<Activations<U>>({16, 64, 64}, Initializer::zeros());
  BlockPlan plan;
  plan.forward = dry_program(mesh, [&] { (void)decoder_block(block, x); });
  const auto f = [&](const auto& w, const auto& v) { return sum(decoder_block(w, v)); };
  plan.both = dry_program(mesh, [&] { (void)value_and_grad<0, 1>(f)(block, x); });
  plan.parameters = parameter_table(block).bytes();
  return plan;
}
/// A decoder of one block under the rules R, on paper: each collective over each group of axes,
/// with its calls and its payload on the process with most, forward, and forward and backward.
template <class R> void add_totals(std::ostringstream& text, const char* rules) {
  const auto mesh = dry_mesh<Grid>(2, 4);
  Parameters<Grid> make(mesh, 3);
  const auto weights = Decoder<On<R>>::like(make, large);
  const auto loss = decoder_loss<R>(mesh, large.vocabulary, {.batch = 16, .sequence = 64});
  const Program forward = dry_program(mesh, [&] { (void)loss(weights); });
  const Program both = dry_program(mesh, [&] { (void)value_and_grad(loss)(weights); });
  const auto ahead = by_axes(forward);
  text << rules << "\n";
  for (const CollectiveTotal& total : by_axes(both)) {
    const auto same = [&](const CollectiveTotal& t) {
      return t.axes == total.axes && t.collective == total.collective;
    };
    const auto found = std::find_if(ahead.begin(), ahead.end(), same);
    std::string axes;
    for (int axis = 0; axis < 2; ++axis)
      if (total.axes.contains(axis))
        axes += (axes.empty() ? "" : " x ") + std::string(Grid::names()[axis]);
    text << "  " << std::left << std::setw(16) << name_of(total.collective) << std::setw(14) << axes
         << std::right << std::setw(4) << (found == ahead.end() ? 0 : found->steps) << std::setw(11)
         << (found == ahead.end() ? 0 : found->payload) << std::setw(5) << total.steps
         << std::setw(11) << total.payload << "\n";
  }
}
}  // namespace

TEST_CASE("rules x collectives x payload of a decoder: a table to read") {
  std::ostringstream text;
  text << "A decoder of one block, vocabulary 4000, 64 places, d 64, 8 heads, hidden 256, in "
          "double, on "
          "2 x 4\n(data x model), 16 texts of 64 tokens: calls and payload in bytes, forward, and "
          "forward and backward.\n\n";
  add_totals<DataParallel<BothAxes>>(text, "data parallel");
  add_totals<TensorParallel<data, model>>(text, "tensor parallel (Megatron-LM)");
  add_totals<TwoDimensional<data, model>>(text, "two-dimensional (GSPMD's 2D finalized)");
  add_totals<FullySharded<BothAxes>>(text, "fully sharded (ZeRO, stage 3)");
  add_totals<SequenceSplit<data, model>>(text, "sequence split");
  const std::string kept = support::golden("rules.txt", text.str());
  CHECK_MESSAGE(kept == text.str(), "rules.txt holds\n"
                                        << kept << "but now it reads\n"
                                        << text.str());
}

TEST_CASE("a decoder has one loss and one gradient under all rules and on all meshes") {
  Numbers whole;
  on_mesh(1, 1, [&](const ProcessMesh<Grid>& mesh) { whole = decoder_numbers<Whole>(mesh); });
  std::mutex mutex;
  for (const auto& [rows, columns] : {std::pair{2, 1}, {2, 2}, {3, 2}})
    on_mesh(rows, columns, [&](const ProcessMesh<Grid>& mesh) {
      const auto check = [&]<class R>(const char* rules, std::type_identity<R>) {
        const Numbers split = decoder_numbers<R>(mesh);
        const std::lock_guard lock(mutex);
        CAPTURE(rules);
        CAPTURE(mesh.processes());
        CHECK(worst(split, whole) < 1e-10);
      };
      check("data parallel", std::type_identity<DataParallel<BothAxes>>{});
      check("tensor parallel", std::type_identity<TensorParallel<data, model>>{});
      check("two-dimensional", std::type_identity<TwoDimensional<data, model>>{});
      check("fully sharded", std::type_identity<FullySharded<BothAxes>>{});
      check("sequence", std::type_identity<SequenceSplit<data, model>>{});
    });
}

TEST_CASE(
    "a batch below the data axis, heads that no axis divides, one letter, and no text at all") {
  DecoderSizes one_letter = ragged_decoder;
  one_letter.vocabulary = 1;
  const auto numbers = [&]<class R>(std::type_identity<R>, const ProcessMesh<Grid>& mesh) {
    return std::array{decoder_numbers<R>(mesh, ragged_decoder, {.batch = 1}),
                      decoder_numbers<R>(mesh, one_letter),
                      decoder_numbers<R>(mesh, ragged_decoder, {.sequence = 0})};
  };
  std::array<Numbers, 3> whole;
  on_mesh(1, 1, [&](const auto& mesh) { whole = numbers(std::type_identity<Whole>{}, mesh); });
  CHECK(worst(whole[1], Numbers(whole[1].size(), 0.0)) < 1e-15);  // nothing to learn
  CHECK(std::isnan(whole[2][0]));                                 // the mean of no losses
  std::mutex mutex;
  on_mesh(3, 2, [&](const ProcessMesh<Grid>& mesh) {
    const auto check = [&]<class R>(std::type_identity<R> rules) {
      const auto split = numbers(rules, mesh);
      const std::lock_guard lock(mutex);
      CHECK(worst(split[0], whole[0]) < 1e-10);
      CHECK(worst(split[1], whole[1]) < 1e-10);
      CHECK(std::isnan(split[2][0]));
    };
    check(std::type_identity<DataParallel<BothAxes>>{});
    check(std::type_identity<TensorParallel<data, model>>{});
    check(std::type_identity<TwoDimensional<data, model>>{});
    check(std::type_identity<FullySharded<BothAxes>>{});
    check(std::type_identity<SequenceSplit<data, model>>{});
  });
}

TEST_CASE("a block communicates as its rules are known for") {
  const BlockPlan whole = block_plan<Whole>();
  CHECK(count(whole.both) == 0);
  {  // an all-reduce for each gradient (queries, keys and values have one), and one for the loss
    const BlockPlan p = block_plan<DataParallel<BothAxes>>();
    CHECK(count(p.forward) == 0);
    CHECK(count(p.both, all_reduce, over_both) == 11);
    CHECK(count(p.both) == 11);
  }
  {  // Megatron-LM: two all-reduces of x over the model axis each way
    const BlockPlan p = block_plan<TensorParallel<data, model>>();
    const Index x = 8 * 64 * 64 * 4;  // bytes on a process
    CHECK(count(p.forward, all_reduce, over_model) == 2);
    CHECK(count(p.forward) == 2);
    CHECK(p.forward.payload_bytes() == 2 * x * 2 * 3 / 4);
    CHECK(count(p.both, all_reduce, over_model) == 4);
    CHECK(p.both.payload_bytes(over_model) == 4 * x * 2 * 3 / 4);
    CHECK(count(p.both, all_reduce, over_data) == 11);
    CHECK(count(p.both) == 15);
  }
  {  // GSPMD's 2D finalized: weights are gathered over data, x over model, sums are scattered. The
     // projection after attention is smaller than x: it is gathered whole, and texts go to all
     // processes and back, which sends 62 KiB in place of 98.
    const BlockPlan p = block_plan<TwoDimensional<data, model>>();
    CHECK(count(p.forward, all_gather, over_data) == 3);
    CHECK(count(p.forward, all_gather, over_both) == 1);
    CHECK(count(p.forward, all_gather, over_model) == 2);
    CHECK(count(p.forward, all_to_all, over_model) == 2);
    CHECK(count(p.forward, reduce_scatter, over_model) == 1);
    const auto mesh = dry_mesh<Grid>(2, 4);
    const Program held = dry_program(mesh, [&] {  // who wants the pattern, says so
      const DynamicTensor x =
          zeros<ShardedTensor<float, Grid, P<data, _, model, _>>>(mesh, 16, 64, 8, 8);
      const DynamicTensor w = zeros<ShardedTensor<float, Grid, P<model, _, data>>>(mesh, 8, 8, 64);
      const Contract pattern = contract_of<Grid, Only<gathers<data>, reduce_scatters<model>>>();
      (void)einsum("bsnd,ndm->bsm", x, w, {Sharding{{0}, {}, {1}}, pattern});
    });
    CHECK(count(held, all_gather, over_data) == 1);
    CHECK(count(held, reduce_scatter, over_model) == 1);
    CHECK(count(held) == 2);
    CHECK(count(p.forward, all_reduce, over_model) == 4);  // of rows, for norms
    CHECK(p.forward.payload_bytes(all_reduce) < p.forward.payload_bytes() / 20);
    CHECK(8 * p.parameters < whole.parameters + 10000);
  }
  {  // ZeRO 3: a weight is gathered each way, and its gradient scattered
    const BlockPlan p = block_plan<FullySharded<BothAxes>>();
    CHECK(count(p.forward, all_gather, over_both) == 5);  // four matrices and a bias
    CHECK(count(p.forward) == 5);
    CHECK(count(p.both, all_gather, over_both) == 9);
    CHECK(count(p.both, reduce_scatter, over_both) == 5);
    CHECK(count(p.both, all_reduce, over_both) == 6);  // norms, a bias, the loss
    CHECK(count(p.both) == 20);
    CHECK(8 * p.parameters < whole.parameters + 16000);
  }
  {  // keys and values are gathered, their gradients scattered; one number a head says whether all
     // are finite
    const BlockPlan p = block_plan<SequenceSplit<data, model>>();
    CHECK(count(p.forward, all_gather, over_model) == 2);
    CHECK(count(p.forward, all_reduce, over_model) == 1);
    CHECK(p.forward.payload_bytes(all_reduce) < 1000);
    CHECK(count(p.forward) == 3);
    CHECK(count(p.both, all_gather, over_model) == 4);
    CHECK(count(p.both, reduce_scatter, over_model) == 2);
    CHECK(count(p.both, all_reduce, over_both) == 11);
  }
}

TEST_CASE("a vocabulary that is split is never gathered") {
  using U = Under<float, Grid, TensorParallel<data, model>>;
  const auto mesh = dry_mesh<Grid>(2, 4);
  Parameters<Grid> make(mesh, 1);
  const auto weights = Decoder<U>::like(make, large);
  const auto ids = zeros<TokenIds<U>>(mesh, 16, 64);
  const auto table_alone = [&](const auto& table) { return sum(look_up(table, ids)); };
  const Program looked =
      dry_program(mesh, [&] { (void)value_and_grad(table_alone)(weights.table); });
  CHECK(count(looked, all_reduce, over_model) == 1);  // of the rows that were asked for
  CHECK(looked.payload_bytes(over_model) == 8 * 64 * 64 * 4 * 2 * 3 / 4);
  CHECK(count(looked, all_gather, over_data) == 2);  // ids and their gradients, less than a table
  CHECK(looked.payload_bytes(all_gather) < 4000 * 64 * 4 / 4);
  CHECK(count(looked, all_reduce, over_data) == 1);  // the sum
  CHECK(count(looked) == 4);

  const auto scores =
      make.tensor<U::Tensor<logical::batch, logical::sequence, logical::vocabulary>>(
          {16, 64, 4000}, Initializer::zeros());
  const auto f = [&](const auto& x) { return mean(cross_entropy(x, ids)); };
  const Program loss = dry_program(mesh, [&] { (void)value_and_grad(f)(scores); });
  CHECK(count(loss, all_reduce, over_model) == 3);  // largest, sum, chosen: a number a token each
  CHECK(loss.payload_bytes(over_model) == 3 * 8 * 64 * 4 * 2 * 3 / 4);
  CHECK(count(loss, all_reduce, over_data) == 1);
  CHECK(count(loss) == 4);
  const auto step = [&](const auto& w) { return mean(cross_entropy(next_tokens(w, ids), ids)); };
  const Program all = dry_program(mesh, [&] { (void)value_and_grad(step)(weights); });
  bool split = true;
  for (const ProgramTensor& t : all.tensors())
    for (int d = 0; d < t.desc.extents.size(); ++d)
      split = split && (t.desc.extents[d] != 4000 || !t.desc.sharding[d].empty());
  CHECK(split);
  CHECK(count(all, all_gather, over_model) == 0);
  CHECK(annotated(weights, all).find("18 annotated of ") == 0);
}

TEST_CASE("a compiled step of a decoder is the step") {
  on_mesh(2, 2, [](const ProcessMesh<Grid>& mesh) {
    using U = On<TensorParallel<data, model>>;
    Parameters<Grid> make(mesh, 3);
    const auto weights = Decoder<U>::like(
        make, {.vocabulary = 11, .places = 5, .embed = 6, .heads = 3, .hidden = 7, .layers = 1});
    const auto ids = from_function<TokenIds<U>>(mesh, {5, 4}, Ids{11});
    const auto step = [&](const auto& w, std::uint64_t number) {
      const DecoderOptions options{.dropout = {.rate = 0.2, .seed = 8, .step = number}};
      return value_and_grad(
          [&](const auto& v) { return mean(cross_entropy(next_tokens(v, ids, options), ids)); })(w);
    };
    auto compiled = compile(step);
    for (const std::uint64_t number : {1, 2}) {
      const auto plain = step(weights, number);
      const auto again = compiled(weights, number);
      Numbers a, b;
      append(a, std::tuple(plain.value, plain.gradient));
      append(b, std::tuple(again.value, again.gradient));
      CHECK(worst(b, a) < 1e-12);
    }
    CHECK(compiled.structures() == 1);
  });
}

TEST_CASE("a decoder in less memory: attention by blocks, and blocks that run again") {
  // On paper, where a text is long enough for its scores to be what is large.
  using U = Under<float, Grid, TensorParallel<data, model>>;
  const auto paper = dry_mesh<Grid>(2, 4);
  const auto peak = [&](const DecoderOptions& options) {
    Parameters<Grid> make(paper, 1);
    DecoderSizes sizes = large;
    sizes.places = 2048;
    sizes.layers = 4;
    const auto weights = Decoder<U>::like(make, sizes);
    const auto ids = zeros<TokenIds<U>>(paper, 2, 2048);
    const auto f = [&](const auto& w) {
      return mean(cross_entropy(next_tokens(w, ids, options), ids));
    };
    return dry_program(paper, [&] { (void)value_and_grad(f)(weights); });
  };
  const Program kept = peak({});
  // Of a process's text and two heads; eight tiles of queries see 9/16 of all keys.
  const Index scores = Index{1} * 2 * 2048 * 2048 * 4 * 9 / 16;
  const Program blocks = peak({.attention = {.block = 256}}),
                bounded = peak({.attention = {.scores_bytes = 1 << 20}}),
                half = peak({.again = {true, true}}),
                again = peak({.again = {true, true, true, true}});
  CHECK(kept.peak_bytes() > 4 * scores);
  CHECK(blocks.peak_bytes() < kept.peak_bytes() / 3);
  CHECK(bounded.peak_bytes() < kept.peak_bytes() / 3);
  CHECK(half.peak_bytes() <= kept.peak_bytes() - scores);
  CHECK(again.peak_bytes() <= half.peak_bytes() - scores);
  // A block is run once more each, and sends once more what it sends forward.
  CHECK(2 * (half.flops() - kept.flops()) == again.flops() - kept.flops());
  CHECK(count(half, all_reduce, over_model) - count(kept, all_reduce, over_model) == 4);
  CHECK(count(again, all_reduce, over_model) - count(kept, all_reduce, over_model) == 8);

  Numbers whole;
  on_mesh(1, 1, [&](const ProcessMesh<Grid>& mesh) { whole = decoder_numbers<Whole>(mesh); });
  std::mutex mutex;
  on_mesh(2, 2, [&](const ProcessMesh<Grid>& mesh) {
    const auto check = [&](DecoderOptions options) {
      options.dropout = with_dropout.dropout;
      const Numbers made =
          decoder_numbers<TensorParallel<data, model>>(mesh, ragged_decoder, {}, options);
      const std::lock_guard lock(mutex);
      CHECK(worst(made, whole) < 1e-10);
    };
    check({.again = {false, true}});
    check({.again = {true}});
    check({.attention = {.block = 3}, .again = {true, true}});
    check({.attention = {.scores_bytes = 64}});
  });
}

TEST_CASE("a decoder of packed documents gives what each gives alone") {
  std::mutex mutex;
  Values alone;
  on_mesh(1, 1, [&](const ProcessMesh<Grid>& mesh) {
    alone = packed_decoder_numbers<Whole>(mesh, own_rows(), false);
  });
  const auto check = [&](const ProcessMesh<Grid>& mesh, const DecoderOptions& options) {
    const auto by = [&]<class R>(std::type_identity<R>) {
      const double far =
          farthest_apart(packed_decoder_numbers<R>(mesh, shared_rows(), true, options), alone);
      const std::lock_guard lock(mutex);
      CAPTURE(mesh.processes());
      CHECK(far < 1e-11);
    };
    by(std::type_identity<TensorParallel<data, model>>{});
    by(std::type_identity<SequenceSplit<data, model>>{});
  };
  on_mesh(2, 2, [&](const ProcessMesh<Grid>& mesh) {
    check(mesh, {});
    check(mesh, {.attention = {.block = 2}, .again = {true, true}});
  });
  on_mesh(3, 1, [&](const ProcessMesh<Grid>& mesh) { check(mesh, {.attention = {.queries = 4}}); });
}

TEST_CASE("a decoder of narrower elements, with losses in float") {
  on_mesh(2, 2, [](const ProcessMesh<Grid>& mesh) {
    const auto wide = loss_in<double>(mesh);
    const auto near = [&](const std::pair<double, double>& narrow, double error) {
      CHECK(std::fabs(narrow.first - wide.first) < error);
      CHECK(std::fabs(narrow.second - wide.second) < error);
    };
    near(loss_in<float>(mesh), 1e-5);
    near(loss_in<half>(mesh), 1e-2);
    near(loss_in<bfloat16>(mesh), 1e-1);
  });
}

TEST_CASE("a text that is longer than the table of positions") {
  const auto mesh = dry_mesh<Grid>(2, 2);
  using U = On<Whole>;
  Parameters<Grid> make(mesh, 1);
  const auto model = Decoder<U>::like(make, large);
  CHECK_THROWS_WITH_AS(next_tokens(model, zeros<TokenIds<U>>(mesh, 2, 65)),
                       doctest::Contains("65 places from place 0 on, and the table has 64 rows"),
                       ShapeError);
}
