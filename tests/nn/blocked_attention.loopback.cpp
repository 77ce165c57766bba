// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention by blocks of keys, and causal attention by tiles of queries, against the one by all
// keys at once: values and gradients under all rules, ragged blocks, masks, dropout, half types,
// what is empty; and memory and payload on paper.
#include <tessera/op/compile.hpp>

#include "nn/layer_cases.hpp"

namespace {
using namespace nn_test;

/// How long texts are, and what attention is told.
struct Setup {
  const char* name;
  Index batch = 3, queries = 7, keys = 7, groups = 3;
  AttentionOptions options = {};
  int mask = 0;  ///< 1: some keys are masked, 2: all of them
};
const Setup setups[] = {
    {"all keys", 3, 7, 5, 3},
    {"causal", 3, 7, 7, 3, {.causal = true}},
    {"causal, more keys than queries see", 2, 4, 9, 3, {.causal = true, .first = 2}},
    {"causal, the first queries see none", 2, 7, 5, 3, {.causal = true, .first = -2}},
    {"padding and dropout", 3, 4, 7, 3, {.dropout = {.rate = 0.3, .seed = 9}}, 1},
    {"causal, padding and dropout",
     3,
     7,
     7,
     2,
     {.causal = true, .dropout = {.rate = 0.3, .seed = 9}},
     1},
    {"causal and dropout", 2, 7, 7, 3, {.causal = true, .dropout = {.rate = 0.3, .seed = 9}}},
    {"all keys masked, causal", 2, 5, 5, 1, {.causal = true}, 2},
};
struct Masked {
  int which;
  KOKKOS_FUNCTION bool operator()(const GlobalIndex& i) const {
    return which == 1 && i.linear() % 5 != 1 && i[0] != 1;
  }
};

/// Returns heads, two a group.
template <class U>
Projected<U> projected_on(const ProcessMesh<Grid>& mesh, Index texts, Index queries, Index keys,
                          Index groups, Index elements) {
  Parameters<Grid> make(mesh, 5);
  const auto normal = Initializer::normal(1);
  using K = typename Projected<U>::K;
  return {make.tensor<typename Projected<U>::Q>({texts, queries, groups, 2, elements}, normal),
          make.tensor<K>({texts, keys, groups, elements}, normal),
          make.tensor<K>({texts, keys, groups, elements}, normal)};
}
/// The heads, and the gradients of a sum of them.
template <class U, class M = AllValid>
auto step_of(const Projected<U>& given, const AttentionOptions& options, const M& valid = {}) {
  return value_and_grad([&](const Projected<U>& g) {
    const auto y = blocked_attention(g.q, g.k, g.v, options, valid);
    return std::tuple(nn_test::loss_of(y), y);
  })(given);
}
template <class R>
std::vector<double> numbers_of(const ProcessMesh<Grid>& mesh, const Setup& setup,
                               const AttentionOptions& options) {
  using Valid = typename On<R>::template Of<bool, logical::batch, logical::sequence>;
  const auto given =
      projected_on<On<R>>(mesh, setup.batch, setup.queries, setup.keys, setup.groups, 2);
  const auto valid = from_function<Valid>(mesh, {setup.batch, setup.keys}, Masked{setup.mask});
  const auto [values, gradient] =
      setup.mask > 0 ? step_of(given, options, valid) : step_of(given, options);
  std::vector<double> made;
  append(made, std::get<1>(values));
  append(made, gradient);
  return made;
}
AttentionOptions with_blocks(AttentionOptions options, Index block, Index queries = 0) {
  options.block = block;
  options.queries = queries;
  return options;
}
}  // namespace

TEST_CASE("attention by blocks equals attention by all scores, for every length of block") {
  on_mesh(1, 1, [&](const ProcessMesh<Grid>& mesh) {
    for (const Setup& setup : setups) {
      CAPTURE(std::string(setup.name));
      const auto whole = numbers_of<Whole>(mesh, setup, setup.options);
      for (const Index block : {0, 1, 2, 3, 7, 100})  // 0: tiles of queries alone
        for (const Index queries : {0, 1, 3}) {
          CAPTURE(block);
          CAPTURE(queries);
          CHECK(worst(numbers_of<Whole>(mesh, setup, with_blocks(setup.options, block, queries)),
                      whole) < 1e-12);
        }
    }
  });
}

namespace {
template <class... R> using More = LayerRules<R...>;
template <class... Dims> using Real = ShardedTensor<double, Grid, P<Dims...>>;
using SplitRepeats = More<AxisRule<logical::repeats, model>, AxisRule<logical::sequence, data>>;
}  // namespace

TEST_CASE("attention by blocks equals attention by all scores under all rules") {
  std::mutex mutex;
  for (const auto& [rows, columns] : {std::pair{2, 1}, {1, 2}, {2, 2}, {3, 2}})
    on_mesh(rows, columns, [&](const ProcessMesh<Grid>& mesh) {
      std::uint64_t seed = 11 * static_cast<std::uint64_t>(mesh.processes());
      const auto check = [&]<class R>(const char* rules, std::type_identity<R>) {
        for (int draw = 0; draw < 3; ++draw) {
          seed = Dropout::mixed(seed);
          const Setup& setup = setups[seed % std::size(setups)];
          const Index block = static_cast<Index>(seed / 16 % 6),
                      queries = static_cast<Index>(seed / 256 % 4);
          const auto whole = numbers_of<R>(mesh, setup, setup.options);
          const auto made = numbers_of<R>(mesh, setup, with_blocks(setup.options, block, queries));
          const std::lock_guard lock(mutex);
          CAPTURE(std::string(setup.name));
          CAPTURE(std::string(rules));
          CAPTURE(mesh.processes());
          CAPTURE(block);
          CAPTURE(queries);
          CHECK(worst(made, whole) < 1e-12);
        }
      };
      check("data parallel", std::type_identity<DataParallel<BothAxes>>{});
      check("tensor parallel", std::type_identity<TensorParallel<data, model>>{});
      check("two-dimensional", std::type_identity<TwoDimensional<data, model>>{});
      check("sequence", std::type_identity<SequenceSplit<data, model>>{});
      check("repeats and sequence", std::type_identity<SplitRepeats>{});
      check("elements of heads", std::type_identity<SplitElements>{});
    });
}

TEST_CASE("keys that are split and queries that are whole, or split otherwise") {
  on_mesh(3, 2, [](const ProcessMesh<Grid>& mesh) {
    Parameters<Grid> make(mesh, 5);
    const auto normal = Initializer::normal(1);
    const auto q = make.tensor<Real<_, data, _, _, _>>({3, 7, 2, 2, 4}, normal);
    const auto k = make.tensor<Real<_, model, _, _>>({3, 8, 2, 4}, normal);
    const auto v = make.tensor<Real<data, _, _, model>>({3, 8, 2, 4}, normal);
    const auto numbers = [&](const AttentionOptions& options) {
      const auto f = [&](const auto& a, const auto& b, const auto& c) {
        return nn_test::loss_of(blocked_attention(a, b, c, options));
      };
      std::vector<double> all;
      append(all, value_and_grad<0, 1, 2>(f)(q, k, v).gradient);
      return all;
    };
    CHECK(worst(numbers({.causal = true, .block = 3}), numbers({.causal = true})) < 1e-12);
  });
}

TEST_CASE("attention by blocks of nothing") {
  on_mesh(2, 2, [](const ProcessMesh<Grid>& mesh) {
    for (const auto& [queries, keys] : {std::pair{0, 5}, {5, 0}, {0, 0}})
      for (const bool causal : {false, true}) {
        const Setup setup{"", 2, queries, keys, 3, {.causal = causal}};
        using R = SequenceSplit<data, model>;
        CHECK(worst(numbers_of<R>(mesh, setup, with_blocks(setup.options, 2)),
                    numbers_of<R>(mesh, setup, setup.options)) == 0);
        using Heads = TensorParallel<data, model>;
        CHECK(worst(numbers_of<Heads>(mesh, setup, with_blocks(setup.options, 0, 2)),
                    numbers_of<Heads>(mesh, setup, setup.options)) == 0);
      }
  });
}

namespace {
/// The Program of the way forward and back of process 0.
template <class U> Program program_of(const Projected<U>& given, const AttentionOptions& options) {
  Recording recording(mesh_of(given.q));
  (void)step_of(given, options);
  return recording.take();
}
template <class R, class T = double>
Program long_program(Index length, const AttentionOptions& options) {
  return program_of(projected_on<Under<T, Grid, R>>(dry_mesh<Grid>(2, 4), 8, length, length, 8, 8),
                    options);
}
}  // namespace

TEST_CASE("memory for attention by blocks grows as the text, on paper and measured") {
  const auto check = [&]<class R>(std::type_identity<R>, Index heads, Index queries, Index parts) {
    const AttentionOptions options{.causal = true};
    std::vector<Index> peaks;
    for (const Index length : {1024, 2048, 4096, 8192}) {
      peaks.push_back(long_program<R>(length, with_blocks(options, 128, 128)).peak_bytes());
      const Index text = heads * length * 8 * 8;  // bytes of a process's queries, if whole
      const Index scores = heads * (queries > 0 ? queries : length / parts) * 128 * 8;
      CHECK(peaks.back() < 13 * text + 3 * scores);
    }
    for (std::size_t i = 1; i < peaks.size(); ++i) CHECK(peaks[i] < 2 * peaks[i - 1]);
    CHECK(long_program<R>(4096, with_blocks(options, 0, 4096)).peak_bytes() > 20 * peaks[2]);
  };
  check(std::type_identity<TensorParallel<data, model>>{}, 4 * 2 * 2, 128, 1);
  check(std::type_identity<SequenceSplit<data, model>>{}, 4 * 8 * 2, 0, 4);

  on_mesh(2, 2, [](const ProcessMesh<Grid>& there) {
    using U = On<SequenceSplit<data, model>>;
    const auto run = [](const ProcessMesh<Grid>& mesh, Index block) {
      const auto given = projected_on<U>(mesh, 3, 33, 33, 3, 4);
      mesh.arena().reset_peak();
      return program_of(given, {.causal = true, .dropout = {.rate = 0.1}, .block = block})
          .peak_bytes();
    };
    for (const Index block : {0, 5, 16}) {
      const Index ran = run(there, block), measured = there.arena().peak();
      CHECK(ran == measured);
      if (there.process() == 0) CHECK(ran == run(dry_mesh<Grid>(2, 2), block));
    }
  });
}

TEST_CASE("attention by blocks sends no more than attention by all scores") {
  const auto check = [&]<class R>(const char* rules, std::type_identity<R>) {
    CAPTURE(std::string(rules));
    const AttentionOptions options{.causal = true};
    const Program whole = long_program<R>(1024, options),
                  blocks = long_program<R>(1024, with_blocks(options, 128));
    CHECK(blocks.payload_bytes() <= whole.payload_bytes());
    CHECK(blocks.messages() <= whole.messages());
  };
  check("data parallel", std::type_identity<DataParallel<BothAxes>>{});
  check("tensor parallel", std::type_identity<TensorParallel<data, model>>{});
  check("sequence", std::type_identity<SequenceSplit<data, model>>{});
  check("repeats and sequence", std::type_identity<SplitRepeats>{});
  const auto halves = [&](const AttentionOptions& options) {
    return long_program<SequenceSplit<data, model>, half>(1024, options).payload_bytes();
  };
  CHECK(halves({.block = 128}) <= halves({}));
  // Where elements of heads are split, queries and keys are gathered once more.
  const Index whole = long_program<SplitElements>(1024, {}).payload_bytes(),
              blocks = long_program<SplitElements>(1024, {.block = 128}).payload_bytes(),
              queries_and_keys = 4 * 1024 * 8 * (2 + 1) * 8 * 8 * 3 / 4;
  CHECK(blocks == whole + queries_and_keys);
}

TEST_CASE("causal attention by tiles of queries computes less, and sends what all scores send") {
  const auto check = [&]<class R>(std::type_identity<R>) {
    const AttentionOptions options{.causal = true};
    const Program tiles = long_program<R>(1024, options),
                  whole = long_program<R>(1024, with_blocks(options, 0, 1024));
    // Eight tiles see 1, 2 … 8 eighths of the keys; sums of rows and of gradients are the rest.
    CHECK(static_cast<double>(tiles.flops()) ==
          doctest::Approx(static_cast<double>(whole.flops()) * 9 / 16).epsilon(0.03));
    CHECK(tiles.payload_bytes() == whole.payload_bytes());
    CHECK(tiles.messages() == whole.messages());
    CHECK(tiles.peak_bytes() < whole.peak_bytes());
  };
  check(std::type_identity<DataParallel<BothAxes>>{});
  check(std::type_identity<TensorParallel<data, model>>{});
  // Not where products or gradients are sums over processes: each tile's would be one.
  const auto whole = [&]<class R>(std::type_identity<R>) {
    const AttentionOptions options{.causal = true};
    CHECK(long_program<R>(1024, options).flops() ==
          long_program<R>(1024, with_blocks(options, 0, 1024)).flops());
  };
  whole(std::type_identity<SplitElements>{});
  whole(std::type_identity<SequenceSplit<data, model>>{});
  whole(std::type_identity<More<AxisRule<logical::repeats, data>>>{});
  CHECK(detail::causal_tiles(64, {.causal = true}).count() == 1);
  CHECK(detail::causal_tiles(65, {.causal = true}).count() == 2);
  CHECK(detail::causal_tiles(4096, {.causal = true}).count() == 8);
  CHECK(detail::causal_tiles(4096, {.causal = true, .first = -1}).count() == 1);
  CHECK(detail::causal_tiles(4096, {}).count() == 1);
}

TEST_CASE("attention by blocks in narrow elements, compiled, and its second derivatives") {
  on_mesh(1, 1, [](const ProcessMesh<Grid>& mesh) {
    const AttentionOptions options{.causal = true}, blocked = with_blocks(options, 3, 4),
                                                    tiled = with_blocks(options, 0, 4);
    const auto numbers = [&]<class T>(T, const AttentionOptions& given) {
      const auto made = step_of(projected_on<Under<T, Grid, Whole>>(mesh, 2, 10, 10, 2, 8), given);
      std::vector<double> all;
      for_each_tensor([&](const auto& x) { append(all, cast<double>(x)); }, made.gradient);
      return all;
    };
    const auto exact = numbers(double{}, options);
    for (const AttentionOptions& told : {blocked, tiled}) {
      CHECK(worst(numbers(double{}, told), exact) < 1e-12);
      CHECK(worst(numbers(float{}, told), exact) < 1e-5);
      CHECK(worst(numbers(half{}, told), exact) < 2e-2);
      CHECK(worst(numbers(bfloat16{}, told), exact) < 1e-1);
    }

    const auto given = projected_on<On<Whole>>(mesh, 2, 7, 7, 2, 8);
    const auto second = [&](const AttentionOptions& told) {
      return value_and_grad([&](const Projected<On<Whole>>& g) {
               const auto first = step_of(g, told).gradient;
               return sum(square(first.q)) + sum(first.k * first.v);
             })(given)
          .gradient;
    };
    std::vector<double> by_blocks, by_tiles, by_all;
    append(by_blocks, second(blocked));
    append(by_tiles, second(tiled));
    append(by_all, second(options));
    CHECK(worst(by_blocks, by_all) < 1e-10);
    CHECK(worst(by_tiles, by_all) < 1e-10);
  });
}

TEST_CASE("a layer of attention by blocks, compiled too") {
  on_mesh(2, 2, [](const ProcessMesh<Grid>& mesh) {
    using U = On<TensorParallel<data, model>>;
    Parameters<Grid> make(mesh, 5);
    const auto layer =
        Attention<U>::like(make, {.embed = 5, .heads = 6, .groups = 3, .head_dim = 4});
    const auto x = normal<Activations<U>>(make, {3, 7, 5});
    const auto f = [&](const AttentionOptions& options) {
      return value_and_grad(
                 [&](const Attention<U>& w) { return loss_of(attention(w, x, x, options)); })(layer)
          .gradient;
    };
    const AttentionOptions options{.causal = true, .rotary = true, .dropout = {.rate = 0.2}};
    auto compiled = compile(f);
    std::vector<double> whole, blocks, tiles, again;
    append(whole, f(options));
    append(blocks, f(with_blocks(options, 2, 3)));
    append(tiles, f(with_blocks(options, 0, 3)));
    append(again, compiled(with_blocks(options, 2, 3)));
    CHECK(worst(blocks, whole) < 1e-12);
    CHECK(worst(tiles, whole) < 1e-12);
    CHECK(worst(again, whole) < 1e-12);
  });
}

TEST_CASE("blocks by the bytes of scores, and numbers that are none") {
  const auto mesh = dry_mesh<Grid>(2, 4);
  const AttentionOptions bound{.causal = true, .scores_bytes = 1 << 20};
  const Extents queries{8, 4096, 8, 2, 8};
  const Sharding scores{{0}, {1}, {}, {}, {}};  // 4 x 2 x 2 heads of a process
  const MeshShape& shape = mesh.shape();
  const Index block = detail::block_within(bound, queries, 4096, shape, scores, 8);
  CHECK(block == (1 << 20) / (16 * 8 * 256));
  CHECK(detail::block_within(bound, {8, 64, 8, 2, 8}, 64, shape, scores, 8) == 0);
  CHECK(detail::block_within({.scores_bytes = 1}, queries, 4096, shape, scores, 8) == 1);
  const Program bounded = long_program<TensorParallel<data, model>>(4096, bound);
  CHECK(bounded.peak_bytes() ==
        long_program<TensorParallel<data, model>>(4096, with_blocks(bound, block)).peak_bytes());

  using U = On<Whole>;
  Parameters<Grid> make(mesh, 5);
  const auto layer = Attention<U>::like(make, {.embed = 6, .heads = 3});
  const auto x = normal<Activations<U>>(make, {2, 4, 6});
  const auto says = [&](const AttentionOptions& options, const char* text) {
    CHECK_THROWS_WITH_AS(attention(layer, x, x, options), doctest::Contains(text), UsageError);
    CHECK_THROWS_WITH_AS(attention(layer, x, x, options),
                         doctest::Contains("blocked_attention.loopback.cpp"), UsageError);
  };
  says({.block = -2}, "block is -2");
  says({.queries = -1}, "queries is -1");
  says({.window = -1}, "window is -1");
  says({.scores_bytes = -1}, "scores_bytes is -1");
  const auto given = projected_on<U>(mesh, 2, 6, 6, 2, 8);
  const auto valid = zeros<U::Of<bool, logical::batch, logical::sequence>>(mesh, 2, 7);
  CHECK_THROWS_WITH_AS(blocked_attention(given.q, given.k, given.v, {.block = 2}, valid),
                       doctest::Contains("the mask is 2x7"), ShapeError);
  const auto bias = RelativeBias<U>::like(make, {.buckets = 8, .groups = 2, .repeats = 2});
  const auto near = [&](bool causal, Index farthest) {
    return blocked_attention(given.q, given.k, given.v, {.causal = causal, .farthest = farthest},
                             AllValid{}, bias);
  };
  (void)near(false, 3);
  CHECK_THROWS_WITH_AS(near(false, 2), doctest::Contains("is 2, and of 4 buckets"), UsageError);
  (void)near(true, 5);
  CHECK_THROWS_WITH_AS(near(true, 4), doctest::Contains("is 4, and of 8 buckets"), UsageError);
}

TEST_CASE("a window beyond all places is none") {
  on_mesh(1, 1, [](const ProcessMesh<Grid>& mesh) {
    const Index huge = std::numeric_limits<Index>::max();
    for (const Index block : {0, 2})
      for (const bool causal : {false, true}) {
        const Setup setup{"", 2, 5, 7, 3, {.causal = causal, .first = -2, .block = block}};
        AttentionOptions beyond = setup.options;
        beyond.window = huge;
        CHECK(worst(numbers_of<Whole>(mesh, setup, beyond),
                    numbers_of<Whole>(mesh, setup, setup.options)) < 1e-14);
      }
  });
}
