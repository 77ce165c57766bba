// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: choose
// Completion: small programs of which some tensors' shardings are given, and what XLA's or Shardy's
// propagation, GShard or JAX give the others. The choice is as stated, or its price is not higher.
// (XLA: sharding_propagation_test; Shardy: propagation tests.)
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/plan.hpp>
#include <tessera/plan/op/elements/map.hpp>
#include <tessera/plan/op/indexed/scatter.hpp>
#include <tessera/plan/op/indexed/take.hpp>
#include <tessera/plan/op/product/einsum.hpp>
#include <tessera/plan/op/rows/normalize.hpp>
#include <tessera/plan/op/rows/reduce.hpp>
#include <tessera/plan/op/rows/scan.hpp>
#include <tessera/plan/op/rows/softmax.hpp>
#include <tessera/plan/op/rows/sort.hpp>
#include <tessera/plan/op/shape/broadcast.hpp>
#include <tessera/plan/op/shape/reshape.hpp>
#include <tessera/plan/op/shape/shape.hpp>
#include <tessera/plan/op/shape/transpose.hpp>
#include <tessera/plan/op/window/convolve.hpp>
#include <tessera/program/choice.hpp>

using namespace tessera;

namespace {

/// A program, what is given of it, and what is expected of the rest. Shardings are written
/// "a,_,b.c": an entry for each dimension.
class Row {
 public:
  Row(const char* name, const MeshShape& mesh, const char* axes) : name_(name), axes_(axes) {
    program_.mesh = mesh;
    program_.set_names({});
  }
  /// An argument; without a sharding it is open, and expected to be whole unless said otherwise.
  int arg(const Extents& extents, const char* given = nullptr, DType type = DType::f32) {
    const Sharding s = given == nullptr ? Sharding::replicated(extents.size()) : sharding(given);
    const int t = add({type, extents, s}, -1);
    if (given == nullptr) open_.push_back(t);
    return t;
  }
  /// An operator; its result is kept where its sharding is given.
  int run(const Operation& any, const FixedVector<int, max_operands>& operands,
          const char* given = nullptr) {
    TensorDescs descs;
    for (const int t : operands) descs.push_back(program_.tensor(t).desc);
    const Operation op =
        any.with_result(given == nullptr ? any.view().deduced(descs) : sharding(given));
    CAPTURE(name_);
    REQUIRE(op.check(descs).ok());
    ProgramEntry entry{std::make_shared<const Plan>(plan(op, descs)), "operator", {}};
    entry.operands = operands;
    entry.operation = std::make_shared<const Operation>(op);
    const TensorDescs made = op.view().results(descs);
    const int i = program_.size();
    entry.result = add(made[0], i);
    for (int k = 1; k < made.size(); ++k) entry.also.push_back(add(made[k], i));
    const int result = entry.result;
    program_.record(std::move(entry));
    for (const int t : operands)
      if (program_.tensor(t).last < kept) program_.tensor_to_change(t).last = i;
    if (given != nullptr) program_.tensor_to_change(result).last = kept;
    return result;
  }
  int einsum(const char* equation, int a, int b, const char* given = nullptr) {
    return run(ops::Einsum{parse(equation), {}}, {a, b}, given);
  }
  int map(const FixedVector<int, max_operands>& x, const char* given = nullptr) {
    FixedVector<int, max_operands> ranks;
    for (const int t : x) ranks.push_back(program_.tensor(t).desc.rank());
    Terms terms;
    int most = 0;
    for (const int rank : ranks) most = rank > most ? rank : most;
    terms.result = detail::default_labels(most);
    for (const int rank : ranks) {
      Term term;
      for (int d = most - rank; d < most; ++d) term.push_back(terms.result[d]);
      terms.operands.push_back(term);
    }
    ops::Map one;
    one.terms = terms;
    return run(one, x, given);
  }
  int sum(const char* equation, int x, const char* given = nullptr) {
    ops::Reduce one;
    one.terms = parse(equation);
    return run(one, {x}, given);
  }
  void expect(int tensor, const char* s) { expected_.emplace_back(tensor, sharding(s)); }

  /// The price of the choice is not above that of what is expected.
  void check() {
    Program program = program_;
    for (int t = 0; t < static_cast<int>(program.tensors().size()); ++t)
      if (program.tensor(t).last == kept) program.tensor_to_change(t).last = program.size();
    std::vector<Sharding> all;
    for (const ProgramTensor& t : program.tensors()) all.push_back(t.desc.sharding);
    for (const auto& [t, s] : expected_) all[static_cast<std::size_t>(t)] = s;
    Cost wanted = 0;
    for (const ProgramEntry& e : program.entries()) {
      TensorDescs descs;
      for (const int t : e.operands) {
        descs.push_back(program.tensor(t).desc);
        descs.back().sharding = all[static_cast<std::size_t>(t)];
      }
      wanted += plan(e.operation->with_result(all[static_cast<std::size_t>(e.result)]), descs).cost;
    }
    ChooseOptions options;
    options.open = open_;
    // The ends of the program that are not given are results of no use; they are as free as the
    // rest.
    const Choice choice = choose(program, {}, options);
    CAPTURE(name_);
    CAPTURE(explain(choice));
    CHECK(choice.cost <= wanted);
    CHECK(choice.cost <= choice.before);
  }

 private:
  static constexpr int kept = 1 << 20;

  Plan plan(const Operation& op, const TensorDescs& descs) const {
    const PlanOptions options;
    return op.plan(descs, {program_.mesh, 0, options});
  }
  int add(const TensorDesc& desc, int made) {
    return program_.add({desc, 64, made, made < 0 ? 0 : made, made < 0 ? 0 : made});
  }
  Sharding sharding(std::string_view text) const {
    Sharding s;
    s.dims.push_back({});
    for (const char c : text)
      if (c == ',')
        s.dims.push_back({});
      else if (const std::size_t axis = axes_.find(c); axis != std::string_view::npos)
        s.dims.back().push_back(static_cast<int>(axis));
    if (text.empty()) s.dims.resize(0);
    return s;
  }

  const char* name_;
  std::string_view axes_;
  Program program_;
  std::vector<int> open_;
  std::vector<std::pair<int, Sharding>> expected_;
};

const MeshShape two{2, 2}, three{2, 2, 2};

}  // namespace

TEST_CASE("elementwise operators and merging") {
  {
    Row r("KE1", two, "ab");
    const int x = r.arg({5, 7, 11, 13}, "_,a,b,_"), y = r.arg({5, 7, 11, 13});
    const int z = r.map({x, y});
    r.expect(y, "_,a,b,_"), r.expect(z, "_,a,b,_"), r.check();
  }
  {
    Row r("KE3", two, "ab");
    const int x = r.arg({2, 9}, "_,a"), y = r.arg({2, 9}, "b,_");
    const int u = r.map({x}), v = r.map({y}), z = r.map({u, v});
    r.expect(u, "b,a"), r.expect(v, "b,a"), r.expect(z, "b,a"), r.check();
  }
  {
    Row r("KE5", MeshShape{4, 2}, "pq");
    const int x = r.arg({8, 4, 256}, "p.q,_,_"), y = r.arg({8, 4, 256}, "p,_,_");
    const int u = r.map({x}), v = r.map({y}), z = r.map({u, v});
    (void)r.map({z}, "p.q,_,_");
    for (const int t : {u, v, z}) r.expect(t, "p.q,_,_");
    r.check();
  }
  {
    Row r("KE7", two, "ab");
    const int x = r.arg({8, 8}, "a,_"), y = r.arg({8, 8}, "_,a"), z = r.map({x, y});
    r.expect(z, "a,_"), r.check();
  }
  {
    Row r("KE9", three, "abc");
    const int x = r.arg({8, 8}, "_,a"), y = r.arg({8, 8}, "b.a,_"), z = r.map({x, y});
    r.expect(z, "b.a,_"), r.check();
  }
  {
    Row r("KE11", three, "abc");
    const int x = r.arg({8, 8}, "a,b"), y = r.arg({8, 8}, "_,a.b.c"), z = r.map({x, y});
    r.expect(z, "_,a.b.c"), r.check();
  }
  {
    Row r("KE15", two, "ab");
    const int x = r.arg({4, 8}, "a,b"), y = r.arg({4, 8}), v = r.arg({8, 16});
    const int e = r.map({x, y}), z = r.einsum("mk,kn->mn", e, v);
    r.expect(y, "a,b"), r.expect(e, "a,b"), r.expect(v, "b,_"), r.expect(z, "a,_"), r.check();
  }
}

TEST_CASE("open and closed dimensions, and operators in order") {
  {
    Row r("KO3", two, "ab");
    const int x = r.arg({8}, "a"), y = r.arg({8});
    (void)r.map({x, y}, "_");
    r.check();
  }
  {
    Row r("KO9", MeshShape{4}, "a");
    const int x = r.arg({32, 96}, "a,_"), u = r.map({x}), c = r.map({u}, "_,_"), v = r.map({u, u}),
              w = r.map({c, v});
    for (const int t : {u, v, w}) r.expect(t, "a,_");
    r.check();
  }
  {
    Row r("KP1", two, "ab");
    const int x = r.arg({8, 8}, "a,_"), w = r.arg({8, 8}), d = r.einsum("mk,kn->mn", x, w),
              e = r.map({d, d});
    (void)r.map({e, e}, "_,a");
    r.expect(w, "_,a"), r.expect(d, "_,a"), r.expect(e, "_,a"), r.check();
  }
  {
    Row r("KP3", two, "ab");
    const int x = r.arg({8, 8}, "a,_"), s = r.map({x}), p = r.map({s, s}), q = r.map({s, s});
    (void)r.map({p}, "_,a");
    (void)r.map({q}, "_,a");
    r.expect(s, "a,_"), r.expect(p, "_,a"), r.expect(q, "_,a"), r.check();
  }
  {
    Row r("KP7", two, "ab");
    const int x = r.arg({32, 1024}), w = r.arg({1024, 16}, "a,b");
    (void)r.einsum("mk,kn->mn", x, w, "a,b");
    r.expect(x, "a,_"), r.check();
  }
}

TEST_CASE("products") {
  {
    Row r("KD1", two, "ab");
    const int x = r.arg({8, 8}, "a,_"), w = r.arg({8, 8}), z = r.einsum("mk,kn->mn", x, w);
    r.expect(z, "a,_"), r.check();
  }
  {
    Row r("KD3", two, "ab");
    const int x = r.arg({2, 8, 16}), w = r.arg({2, 16, 8});
    (void)r.einsum("bmk,bkn->bmn", x, w, "_,a,b");
    r.expect(x, "_,a,_"), r.expect(w, "_,_,b"), r.check();
  }
  {
    Row r("KD5", three, "xyz");
    const int x = r.arg({8, 256, 512}, "x,y,z"), w = r.arg({8, 128, 512}, "x,y,z"),
              z = r.einsum("bmk,bnk->bmn", x, w);
    r.expect(z, "x,y,_"), r.check();
  }
  for (const bool exchanged : {false, true}) {
    Row r(exchanged ? "KD7 exchanged" : "KD7", MeshShape{4}, "a");
    const int small = r.arg({8, 256, 128}, "_,a,_"), large = r.arg({8, 128, 512}, "_,_,a");
    const int z =
        exchanged ? r.einsum("bkn,bmk->bmn", large, small) : r.einsum("bmk,bkn->bmn", small, large);
    r.expect(z, "_,_,a"), r.check();
  }
  {
    Row r("KD9", MeshShape{2, 4, 2}, "uvw");
    const int x = r.arg({4, 16, 32}, "u,v,w"), w = r.arg({4, 32, 64}, "u,w.v,_"),
              z = r.einsum("bmk,bkn->bmn", x, w);
    r.expect(z, "u,v,_"), r.check();
  }
  {
    Row r("KD13", two, "ab");
    const int x = r.arg({256, 512}, "a,_"), w = r.arg({128, 512});
    (void)r.einsum("mk,nk->mn", x, w, "_,a");
    r.expect(w, "a,_"), r.check();
  }
  {
    Row r("KD15", three, "abc");
    const int x = r.arg({8, 4}, "a.b,_"), w = r.arg({4, 16}, "_,a.c"),
              z = r.einsum("mk,kn->mn", x, w);
    r.expect(z, "_,a.c"), r.check();
  }
  {
    Row r("KD17", two, "ab");
    const int x = r.arg({8, 8}, "a,_"), w = r.arg({8, 8}, "_,b.a"), z = r.einsum("mk,kn->mn", x, w);
    r.expect(z, "a,b"), r.check();
  }
  {
    Row r("KD21", MeshShape{4}, "a");
    const int v = r.arg({4}, "a"), w = r.arg({1024, 1024}, "a,_");
    const int l = r.run(ops::Broadcast{{0}, {4, 1024}, {}}, {v}), z = r.einsum("mk,kn->mn", l, w);
    r.expect(l, "_,a"), r.expect(z, "_,_"), r.check();
  }
  {
    Row r("KJ3", two, "ab");
    const int x = r.arg({64, 256}), w = r.arg({256, 32}, "a,_"), z = r.einsum("mk,kn->mn", x, w);
    r.expect(x, "_,a"), r.expect(z, "_,_"), r.check();
  }
}

TEST_CASE("convolutions, reductions and moves") {
  const auto conv = [](Index low) {
    ops::Convolve c;
    c.terms = parse("bhwi,hwio->bhwo");
    c.settings.low = {low, low};
    c.settings.high = {low, low};
    return c;
  };
  {
    Row r("KC1", three, "abc");
    const int x = r.arg({5, 7, 11, 13}, "a,b,c,_"), k = r.arg({3, 3, 13, 4}),
              z = r.run(conv(1), {x, k});
    r.expect(z, "a,b,c,_"), r.check();
  }
  {
    Row r("KC7", two, "ab");
    const int x = r.arg({16, 28, 28, 12}, "_,_,_,a"), k = r.arg({7, 7, 12, 64}, "_,_,a,b"),
              z = r.run(conv(3), {x, k});
    r.expect(z, "_,_,_,b"), r.check();
  }
  {
    Row r("KC9", two, "ab");
    const int x = r.arg({4, 16, 16, 8}), k = r.arg({3, 3, 8, 8});
    (void)r.run(conv(1), {x, k}, "a,b,_,_");
    r.expect(x, "a,b,_,_"), r.check();
  }
  {
    Row r("KR1", two, "ab");
    const int x = r.arg({5, 7, 11, 13}, "_,a,b,_"), z = r.sum("bhwi->hw", x);
    r.expect(z, "a,b"), r.check();
  }
  {
    Row r("KR3", two, "ab");
    const int x = r.arg({8, 8});
    (void)r.sum("ij->j", x, "a");
    r.expect(x, "_,a"), r.check();
  }
  {
    Row r("KR5", three, "abc");
    const int s = r.arg({4, 8, 64, 64}, "a,b,_,c"),
              p = r.run(ops::Softmax{parse("bnst->bnst"), 't', false, {}}, {s});
    r.expect(p, "a,b,_,c"), r.check();
  }
  {
    Row r("KS3", two, "ab");
    const int x = r.arg({11, 17}, "a,b");
    ops::Pad pad;
    pad.low = {2, 2}, pad.high = {3, 3}, pad.interior = {1, 2};
    const int z = r.run(pad, {x});
    r.expect(z, "a,b"), r.check();
  }
  {
    Row r("KS7", MeshShape{4}, "a");
    const int x = r.arg({8, 128}), y = r.arg({8, 128});
    ops::Concatenate both;
    both.dim = 0;
    (void)r.run(both, {x, y}, "a,_");
    r.expect(x, "a,_"), r.expect(y, "a,_"), r.check();
  }
  {
    Row r("KT1", two, "ab");
    const int x = r.arg({7, 11, 13}, "a,_,b"),
              z = r.run(ops::Transpose{parse("abc->bca"), {}}, {x});
    r.expect(z, "_,b,a"), r.check();
  }
  {
    Row r("KT3", two, "ab");
    const int x = r.arg({1430, 1}, "a,_"), z = r.run(ops::Reshape{{10, 11, 13}, {}}, {x});
    r.expect(z, "a,_,_"), r.check();
  }
  {
    Row r("KT5", two, "ab");
    const int x = r.arg({2, 4}, "a,b"), z = r.run(ops::Reshape{{8}, {}}, {x});
    r.expect(z, "a.b"), r.check();
  }
  {
    Row r("KT13", MeshShape{2, 4}, "pq");
    const int x = r.arg({8, 128});
    (void)r.run(ops::Reshape{{8, 1, 128}, {}}, {x}, "_,p,q");
    r.expect(x, "_,q"), r.check();
  }
  {
    Row r("KT15", two, "ab");
    const int x = r.arg({3, 2048}, "_,a"), z = r.run(ops::Broadcast{{0, 1}, {3, 2048, 3}, {}}, {x});
    r.expect(z, "_,a,_"), r.check();
  }
}

TEST_CASE("takes, scatters, sorts and scans") {
  {
    Row r("KG3", two, "ab");
    const int x = r.arg({2, 9}), i = r.arg({3}, nullptr, DType::i32);
    (void)r.run(ops::Take{parse("vm,b->bm"), OutOfRange::clamp, {}, {}}, {x, i}, "a,_");
    r.expect(i, "a"), r.check();
  }
  {
    Row r("KG5", two, "ab");
    const int x = r.arg({1024, 64}, "a,_"), i = r.arg({8, 16}, "b,_", DType::i32);
    const int z = r.run(ops::Take{parse("vm,bs->bsm"), OutOfRange::clamp, {}, {}}, {x, i});
    r.expect(z, "b,_,_"), r.check();
  }
  {
    Row r("KY5", two, "ab");
    const int x = r.arg({8, 1024}, "a,b");
    const int z = r.run(ops::Scan{parse("ij->ij"), 'j', Reduction::sum, {}, DType::f32, {}}, {x});
    r.expect(z, "a,b"), r.check();
  }
}

TEST_CASE("whole models") {
  {  // Transformer layer, two-dimensional: seven tensors given
    Row r("KM1", MeshShape{2, 4}, "xy");
    constexpr Index B = 8, S = 128, M = 512, N = 8, D = 64, H = 2048;
    const int h = r.arg({B, S, M}, "x,_,y"), one = r.arg({M}), nil = r.arg({M});
    int heads[3];
    for (int& head : heads) {
      head = r.einsum("bsm,mnd->bsnd", h, r.arg({M, N, D}, "x,y,_"));
      r.expect(head, "x,_,y,_");
    }
    const int s = r.einsum("bsnd,btnd->bnst", heads[0], heads[1]);
    const int p = r.run(ops::Softmax{parse("bnst->bnst"), 't', false, {}}, {s});
    const int o = r.einsum("bnst,btnd->bsnd", p, heads[2]),
              out = r.einsum("bsnd,ndm->bsm", o, r.arg({N, D, M}, "y,_,x"));
    const int u = r.map({h, out}),
              n = r.run(ops::Normalize{parse("bsm,m,m->bsm"), true, 1e-5, {}}, {u, one, nil});
    const int f = r.einsum("bsm,mh->bsh", n, r.arg({M, H}, "x,y")), g = r.map({f});
    const int z = r.einsum("bsh,hm->bsm", g, r.arg({H, M}, "y,x"));
    (void)r.map({u, z}, "x,_,y");
    r.expect(s, "x,y,_,_"), r.expect(p, "x,y,_,_"), r.expect(o, "x,_,y,_");
    for (const int t : {out, u, n, z}) r.expect(t, "x,_,y");
    r.expect(f, "x,_,y"), r.expect(g, "x,_,y"), r.check();
  }
  {  // Fully sharded weights: gathered where they are used
    Row r("KM5", MeshShape{4}, "d");
    const int x = r.arg({4096, 512}, "d,_"), w1 = r.arg({512, 2048}, "_,d"),
              w2 = r.arg({2048, 512}, "d,_");
    const int h = r.einsum("bm,mh->bh", x, w1), a = r.map({h}), z = r.einsum("bh,hm->bm", a, w2);
    for (const int t : {h, a, z}) r.expect(t, "d,_");
    r.check();
  }
  {  // Mixture of experts, GShard's: two all-to-alls
    Row r("KM3", MeshShape{4}, "e");
    constexpr Index G = 4, S = 64, E = 8, C = 16, M = 128, H = 512;
    const int in = r.arg({G, S, M}, "e,_,_"), mask = r.arg({G, S, E, C}, "e,_,_,_"),
              combine = r.arg({G, S, E, C}, "e,_,_,_");
    const int wi = r.arg({E, M, H}), wo = r.arg({E, H, M});
    const int dispatched = r.einsum("gsec,gsm->egcm", mask, in),
              h = r.map({r.einsum("egcm,emh->egch", dispatched, wi)});
    const int out = r.einsum("egch,ehm->gecm", h, wo);
    (void)r.einsum("gsec,gecm->gsm", combine, out, "e,_,_");
    r.expect(dispatched, "e,_,_,_"), r.expect(h, "e,_,_,_"), r.expect(h - 1, "e,_,_,_"),
        r.expect(out, "_,e,_,_");
    r.expect(wi, "e,_,_"), r.expect(wo, "e,_,_"), r.check();
  }
  {  // Sharded weight update
    Row r("KM11", MeshShape{4}, "d");
    const int x = r.arg({256, 512}, "d,_"), dy = r.arg({256, 1024}, "d,_"),
              v = r.arg({512, 1024}, "d,_"), w = r.arg({512, 1024}, "_,_");
    const int dw = r.einsum("bm,bh->mh", x, dy), next = r.map({v, dw}, "d,_");
    (void)r.map({w, next}, "_,_");
    r.expect(dw, "d,_"), r.check();
  }
  {  // A pipeline as a sharding: stages lie over the axis, and a shift moves their states on
    Row r("KM9", MeshShape{4}, "l");
    constexpr Index L = 4, T = 3, B = 16, M = 256;
    const int w = r.arg({L, M, M}, "l,_,_"), in = r.arg({T, B, M}, "_,_,_");
    const auto rows = [&](int x, Index begin, Index end, const char* given = nullptr) {
      return r.run(ops::Slice{{{Slice{{begin, 0, 0}, {end, B, M}, {}}}}, {}}, {x}, given);
    };
    int s = r.arg({L, B, M});
    r.expect(s, "l,_,_");
    for (Index turn = 0; turn < T + L - 1; ++turn) {
      const int next = rows(in, turn < T ? turn : T - 1, turn < T ? turn + 1 : T);
      r.expect(next, "_,_,_");
      const Slices before{std::nullopt, Slice{{0, 0, 0}, {L - 1, B, M}, {}}};
      const int moved = r.run(ops::Concatenate{{0, before}, {}}, {next, s});
      const int made = r.einsum("lbm,lmh->lbh", moved, w);
      s = r.map({made});
      for (const int t : {moved, made, s}) r.expect(t, "l,_,_");
      if (turn >= L - 1) (void)rows(s, L - 1, L, "_,_,_");
    }
    r.check();
  }
}
