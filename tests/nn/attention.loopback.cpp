// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention against plain loops over heads, central differences, and itself on other meshes: three
// groups of heads over two processes, a text and another one of other length, and masks.
#include <algorithm>

#include <tessera/op/compile.hpp>

#include "nn/layer_cases.hpp"

namespace {
using namespace nn_test;

/// Attention by loops; valid(b, t) says which keys count.
struct Loops {
  Index b, s, t, m, c, g, r, d;
  bool causal, rotary;
  template <class Valid>
  std::vector<double> operator()(const Values& v, const std::vector<double>& x,
                                 const std::vector<double>& y, const Valid& valid) const {
    const auto at = [](const std::vector<double>& all, Index i) {
      return all[static_cast<std::size_t>(i)];
    };
    std::vector<double> out(static_cast<std::size_t>(b * s * m));
    for (Index i = 0; i < b; ++i)
      for (Index head = 0; head < g * r; ++head) {
        const Index group = head / r;
        const auto part = [&](const std::vector<double>& from, Index n, Index width,
                              const std::vector<double>& weight, Index heads, Index which) {
          std::vector<double> made;
          for (Index p = 0; p < n; ++p)
            for (Index e = 0; e < d; ++e) {
              double sum = 0;
              for (Index k = 0; k < width; ++k)
                sum += at(from, (i * n + p) * width + k) * at(weight, (k * heads + which) * d + e);
              made.push_back(sum);
            }
          return made;
        };
        const auto turned = [&](std::vector<double> q) {
          const std::vector<double> before = q;
          for (std::size_t k = 0; rotary && k < q.size(); ++k) {
            const Index e = static_cast<Index>(k) % d, place = static_cast<Index>(k) / d;
            const double angle =
                double(place) * std::pow(1e4, -double(e % (d / 2)) / double(d / 2));
            const double partner =
                e < d / 2 ? -before[k + std::size_t(d / 2)] : before[k - std::size_t(d / 2)];
            q[k] = before[k] * std::cos(angle) + partner * std::sin(angle);
          }
          return q;
        };
        const auto q = turned(part(x, s, m, v[0], g * r, head));
        const auto key = turned(part(y, t, c, v[1], g, group)), val = part(y, t, c, v[2], g, group);
        for (Index p = 0; p < s; ++p) {
          std::vector<double> weight;
          double total = 0;
          for (Index k = 0; k < t; ++k) {
            double score = 0;
            for (Index e = 0; e < d; ++e) score += at(q, p * d + e) * at(key, k * d + e);
            const bool seen = valid(i, k) && !(causal && k > p);
            weight.push_back(seen ? std::exp(score / std::sqrt(double(d))) : 0);
            total += weight.back();
          }
          for (Index e = 0; e < d; ++e) {
            double made = 0;
            for (Index k = 0; k < t; ++k) made += at(weight, k) / total * at(val, k * d + e);
            for (Index j = 0; j < m; ++j)
              out[static_cast<std::size_t>((i * s + p) * m + j)] +=
                  made * at(v[3], (head * d + e) * m + j);
          }
        }
      }
    return out;
  }
};

struct CausalCase {
  static constexpr const char* name = "causal attention, rotary, two heads a key";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    return std::tuple(
        Attention<U>::like(make, {.embed = 5, .heads = 6, .groups = 3, .head_dim = 4}),
        normal<Activations<U>>(make, {3, 4, 5}));
  }
  template <class Given> static auto run(const Given& given) {
    const auto& x = std::get<1>(given);
    return attention(std::get<0>(given), x, x, {.causal = true, .rotary = true});
  }
  static std::vector<double> loops(const Values& v) {
    return Loops{3, 4, 4, 5, 5, 3, 2, 4, true, true}(v, v[4], v[4],
                                                     [](Index, Index) { return true; });
  }
};
struct CrossCase {
  static constexpr const char* name = "attention to another text, with padding";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    return std::tuple(Attention<U>::like(make, {.embed = 6, .heads = 3, .context = 4}),
                      normal<Activations<U>>(make, {3, 4, 6}),
                      normal<Activations<U>>(make, {3, 5, 4}));
  }
  template <class A, class X> static auto run(const std::tuple<A, X, X>& given) {
    return padded(std::get<0>(given), std::get<1>(given), std::get<2>(given));
  }
  template <class U, class X>
  static auto padded(const Attention<U>& layer, const X& x, const X& context) {
    using Valid = typename U::template Of<bool, logical::batch, logical::sequence>;
    const auto valid = from_function<Valid>(mesh_of(x), {3, 5}, SomeTrue{});
    return attention(layer, x, context, {}, valid);
  }
  static std::vector<double> loops(const Values& v) {
    return Loops{3, 4, 5, 6, 4, 3, 1, 2, false, false}(
        v, v[4], v[5], [](Index i, Index k) { return (i * 5 + k) % 5 != 1; });
  }
};
}  // namespace

TEST_CASE("attention equals plain loops, and its gradients differences, under all rules") {
  check_layer<CausalCase>();
  check_layer<CrossCase>();
}

TEST_CASE("a query whose keys are all masked gets zeros, and passes no gradient on") {
  on_mesh(2, 2, [](const ProcessMesh<Grid>& mesh) {
    using U = On<TensorParallel<data, model>>;
    Parameters<Grid> make(mesh, 5);
    const auto layer = Attention<U>::like(make, {.embed = 6, .heads = 3});
    const auto x = normal<Activations<U>>(make, {3, 4, 6});
    const auto none = zeros<U::Of<bool, logical::batch, logical::sequence>>(mesh, 3, 4);
    const auto f = [&](const auto& given) {
      return loss_of(attention(layer, given, given, {.causal = true}, none));
    };
    const auto [loss, gradient] = value_and_grad(f)(x);
    CHECK(value(loss) == 0);
    CHECK(value(max(abs(gradient))) == 0);
  });
}

namespace {
/// Lengths of documents by a seed, none longer than a row.
std::vector<Index> some_lengths(std::uint64_t seed, std::size_t count, Index most) {
  std::vector<Index> lengths(count);
  for (Index& one : lengths) {
    seed = Dropout::mixed(seed);
    one = 1 + static_cast<Index>(seed % static_cast<std::uint64_t>(most));
  }
  return lengths;
}
}  // namespace

TEST_CASE("packing loses nothing, mixes nothing, and wastes little") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    const Index length = 5 + static_cast<Index>(seed % 60);
    const std::vector<Index> lengths = some_lengths(seed, seed % 37, length);
    const Packing packing = pack_documents(lengths, length);
    std::vector<std::vector<Index>> texts;
    Index total = 0;
    for (const Index n : lengths) {
      texts.emplace_back();
      for (Index i = 0; i < n; ++i) texts.back().push_back(++total);  // a token of its own
    }
    const auto tokens = packing.laid<Index>(texts, 0);
    const auto numbers = packing.numbers(), places = packing.places();
    std::vector<Index> found(static_cast<std::size_t>(total) + 1);
    bool sound = tokens.size() == static_cast<std::size_t>(packing.rows * length);
    for (std::size_t at = 0; at < tokens.size(); ++at) {
      ++found[static_cast<std::size_t>(tokens[at])];
      sound = sound && (tokens[at] == 0) == (numbers[at] == 0);
    }
    for (std::size_t n = 1; n < found.size(); ++n) sound = sound && found[n] == 1;
    for (std::size_t d = 0; d < lengths.size(); ++d)
      for (Index i = 0; i < lengths[d]; ++i) {
        const Packing::Document& own = packing.documents[d];
        const auto at = static_cast<std::size_t>(own.row * length + own.first + i);
        sound = sound && own.first + i < length && tokens[at] == texts[d][std::size_t(i)] &&
                numbers[at] == own.number && places[at] == i && own.number <= packing.most();
      }
    CHECK(sound);
    std::vector<Index> used(static_cast<std::size_t>(packing.rows));
    for (std::size_t d = 0; d < lengths.size(); ++d)
      used[static_cast<std::size_t>(packing.documents[d].row)] += lengths[d];
    std::sort(used.begin(), used.end());
    if (used.size() > 1) CHECK(used[0] + used[1] > length);  // no two rows are one
    if (packing.rows > 0) CHECK(packing.filled() == double(total) / double(packing.rows * length));
  }
  CHECK(pack_documents({4, 3, 6, 7}, 10).rows == 2);  // first fit in this order takes 3
  CHECK(pack_documents({}, 8).rows == 0);
  CHECK_THROWS_WITH_AS(pack_documents({3, 9, 2}, 8),
                       doctest::Contains("document 1 has 9 tokens, and a row 8 places"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(pack_documents({2, -1}, 8),
                       doctest::Contains("document 1 has -1 tokens, and no document has fewer"),
                       ShapeError);
  for (const Index length : {Index{-1}, Index{1} << 31})
    CHECK_THROWS_WITH_AS(pack_documents({}, length),
                         doctest::Contains("numbered by int32; give it between 0 and 2147483647"),
                         ShapeError);
  // The memory is that of documents and rows, not of places.
  const Packing long_rows = pack_documents({7, 0, 0}, std::numeric_limits<std::int32_t>::max());
  CHECK(long_rows.rows == 1);
  CHECK(pack_documents({0, 0}, 0).numbers().empty());
  const Packing full = pack_documents({0, 4, 0, 4}, 4);  // what is empty takes no row
  CHECK(full.rows == 2);
  CHECK(full.numbers() == std::vector<std::int32_t>{1, 1, 1, 1, 1, 1, 1, 1});
  // Rows that were not packed by it.
  for (const Packing::Document& wrong : {Packing::Document{0, 2, 4, 1},
                                         {0, -1, 2, 1},
                                         {0, 6, 0, 1},
                                         {2, 0, 1, 1},
                                         {-1, 0, 1, 1},
                                         {0, 0, -1, 1},
                                         {0, 0, 1, 0}}) {
    const Packing own{2, 5, {{1, 0, 5, 1}, wrong}};
    for (const auto line : {&Packing::numbers, &Packing::places})
      CHECK_THROWS_WITH_AS((own.*line)(Where::here()), doctest::Contains("there are 2 rows of 5"),
                           ShapeError);
  }
  const Packing mixed{2, 5, {{1, 2, 3, 1}, {0, 0, 5, 1}, {1, 0, 3, 2}, {1, 2, 0, 3}}};
  CHECK_THROWS_WITH_AS(mixed.places(),
                       doctest::Contains("documents 0 and 2 both have place 2 of row 1"),
                       ShapeError);
  const Packing two = pack_documents({3, 2}, 5);
  CHECK_THROWS_WITH_AS(two.laid<int>({{1, 2, 3}}, 0), doctest::Contains("1 texts are given, and 2"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(two.laid<int>({{1, 2, 3}, {1}}, 0),
                       doctest::Contains("document 1 has 1 tokens, and was packed with 2"),
                       ShapeError);
}

namespace {
constexpr Index doc_groups = 2, doc_repeats = 2, doc_elements = 4;
constexpr Index query_size = doc_groups * doc_repeats * doc_elements,
                key_size = doc_groups * doc_elements;

/// Documents of queries and of keys, in rows, and numbers for each place of each document.
struct DocumentCase {
  static constexpr Index largest = std::numeric_limits<std::int32_t>::max();
  std::vector<Index> queries, keys;  ///< lengths
  Packing query_rows, key_rows;

  /// The document of queries d is that of keys d; both have the same numbers, in the same rows, as
  /// large as there are. One has no keys, and one no queries.
  static DocumentCase across(std::uint64_t seed) {
    DocumentCase c{some_lengths(seed, 6, 4), some_lengths(seed + 1, 6, 5), {}, {}};
    c.keys[(seed + 2) % 6] = c.queries[(seed + 4) % 6] = 0;
    c.query_rows = {3, 9, {}}, c.key_rows = {3, 12, {}};
    for (std::size_t d = 0; d < 6; ++d) {  // two in a row
      const bool second = d % 2 == 1;
      const Index row = static_cast<Index>(d / 2), number = largest - (second ? 1 : 0);
      c.query_rows.documents.push_back({row, second ? 4 : 0, c.queries[d], number});
      c.key_rows.documents.push_back({row, second ? 6 : 0, c.keys[d], number});
    }
    return c;
  }
  /// Documents in rows of their queries, one of which has no places.
  static DocumentCase within(std::uint64_t seed) {
    std::vector<Index> lengths = some_lengths(seed, 7, 7);
    lengths[(seed + 3) % 7] = 0;
    const Packing rows = pack_documents(lengths, 9);
    return {lengths, lengths, rows, rows};
  }

  /// What the places of document d have, `width` numbers each; `which` tells tensors apart.
  template <class T>
  static std::vector<T> text(std::size_t d, Index length, Index width, int which) {
    std::vector<T> all;
    for (Index i = 0; i < length * width; ++i)
      all.push_back(static_cast<T>(
          float((i * 5 + static_cast<Index>(d) * 7 + (i / 3) % 4 + which) % 13 - 6) / 8));
    return all;
  }
  /// The whole tensor; document `spoilt` has `other` everywhere, and padding has NaN.
  template <class T>
  static std::vector<T> rows(const Packing& at, const std::vector<Index>& lengths, Index width,
                             int which, double padding, int spoilt, double other) {
    std::vector<T> all(static_cast<std::size_t>(at.rows * at.length * width),
                       static_cast<T>(static_cast<float>(padding)));
    for (std::size_t d = 0; d < lengths.size(); ++d) {
      const std::vector<T> own = text<T>(d, lengths[d], width, which);
      const Packing::Document& to = at.documents[d];
      for (std::size_t i = 0; i < own.size(); ++i)
        all[static_cast<std::size_t>((to.row * at.length + to.first) * width) + i] =
            static_cast<int>(d) == spoilt ? static_cast<T>(static_cast<float>(other)) : own[i];
    }
    return all;
  }
};

/// What document d has of (rows, length, ...).
std::vector<double> part(const std::vector<double>& all, const Packing& at, std::size_t d,
                         Index width) {
  const Packing::Document& own = at.documents[d];
  const auto from = all.begin() + (own.row * at.length + own.first) * width;
  return {from, from + own.length * width};
}

/// The heads of a case, and the gradients by queries, keys and values of the sum of the heads times
/// their weights, of each document; document `spoilt` has `other` in those of q, k and v that
/// `tensors` names, and weights of `slope`; what is no document's has `padding`.
struct DocumentResults {
  std::vector<std::vector<double>> of;  ///< each document
  std::vector<double> padding;          ///< heads and gradients where there is none
};
struct Spoilt {
  int document = -1;
  std::string_view tensors = "";
  double other = 0, slope = 0, padding = NAN;
};
template <class T, class R, class Run>
DocumentResults packed_results(const ProcessMesh<Grid>& mesh, const DocumentCase& c, bool cross,
                               const Spoilt& spoilt, const Run& attend) {
  using U = Under<T, Grid, R>;
  using H = Projected<U>;
  const Packing &to = c.query_rows, &from = c.key_rows;
  const Extents queries{to.rows, to.length, doc_groups, doc_repeats, doc_elements},
      keys{from.rows, from.length, doc_groups, doc_elements};
  const auto made = [&](char tensor, const Packing& at, const std::vector<Index>& lengths,
                        Index width, int which) {
    const bool here = spoilt.tensors.find(tensor) != std::string_view::npos;
    return DocumentCase::rows<T>(at, lengths, width, which, spoilt.padding,
                                 here ? spoilt.document : -1, spoilt.other);
  };
  const H given{from_host<typename H::Q>(mesh, queries, made('q', to, c.queries, query_size, 1)),
                from_host<typename H::K>(mesh, keys, made('k', from, c.keys, key_size, 2)),
                from_host<typename H::K>(mesh, keys, made('v', from, c.keys, key_size, 3))};
  const auto weights = from_host<typename H::Q>(
      mesh, queries,
      DocumentCase::rows<T>(to, c.queries, query_size, 4, 0.5, spoilt.document, spoilt.slope));
  const auto numbers = [&](const Packing& at) {  // padding is 0, and negative
    std::vector<std::int32_t> all = at.numbers();
    if (cross) std::replace(all.begin(), all.end(), 0, std::numeric_limits<std::int32_t>::min());
    return from_host<TokenIds<U>>(mesh, at.extents(), all);
  };
  const auto to_documents = numbers(to), from_documents = numbers(from);
  const auto [loss, gradient] = value_and_grad([&](const H& x) {
    const auto y =
        cross ? attend(x, CrossDocuments{to_documents, from_documents}) : attend(x, to_documents);
    return std::tuple(sum(cast<double>(y) * cast<double>(weights)), y);
  })(given);
  const std::vector<double> all[] = {
      to_host(cast<double>(std::get<1>(loss))).values, to_host(cast<double>(gradient.q)).values,
      to_host(cast<double>(gradient.k)).values, to_host(cast<double>(gradient.v)).values};
  DocumentResults results;
  for (std::size_t d = 0; d < c.queries.size(); ++d) {
    std::vector<double> own;
    for (int n = 0; n < 4; ++n) {
      const auto more = part(all[n], n < 2 ? to : from, d, n < 2 ? query_size : key_size);
      own.insert(own.end(), more.begin(), more.end());
    }
    results.of.push_back(own);
  }
  for (int n = 0; n < 4; ++n) {
    const auto used = (n < 2 ? to : from).numbers();
    const Index width = n < 2 ? query_size : key_size;
    for (std::size_t i = 0; i < all[n].size(); ++i)
      if (used[i / static_cast<std::size_t>(width)] == 0) results.padding.push_back(all[n][i]);
  }
  return results;
}
/// The same of each document alone, in plain attention without a mask.
template <class T, class Run>
std::vector<std::vector<double>> each_alone(const ProcessMesh<Grid>& mesh, const DocumentCase& c,
                                            const Run& attend) {
  using H = Projected<Under<T, Grid, Whole>>;
  std::vector<std::vector<double>> results;
  for (std::size_t d = 0; d < c.queries.size(); ++d) {
    const auto text = [&](bool queries, int which) {
      return DocumentCase::text<T>(d, (queries ? c.queries : c.keys)[d],
                                   queries ? query_size : key_size, which);
    };
    const Extents q{1, c.queries[d], doc_groups, doc_repeats, doc_elements},
        k{1, c.keys[d], doc_groups, doc_elements};
    const H given{from_host<typename H::Q>(mesh, q, text(true, 1)),
                  from_host<typename H::K>(mesh, k, text(false, 2)),
                  from_host<typename H::K>(mesh, k, text(false, 3))};
    const auto weights = from_host<typename H::Q>(mesh, q, text(true, 4));
    const auto [loss, gradient] = value_and_grad([&](const H& x) {
      const auto y = attend(x, AllValid{});
      return std::tuple(sum(cast<double>(y) * cast<double>(weights)), y);
    })(given);
    results.emplace_back();
    append(results.back(), cast<double>(std::get<1>(loss)));
    for_each_tensor([&](const auto& x) { append(results.back(), cast<double>(x)); }, gradient);
  }
  return results;
}

const AttentionOptions document_ways[] = {
    {},
    {.block = 2},
    {.causal = true},
    {.causal = true, .block = 3, .queries = 2},
    {.causal = true, .queries = 3},
    {.window = 2},
    {.causal = true, .window = 3, .block = 2},
    {.scores_bytes = 1000},
    {.dropout = {.rate = 0.4, .seed = 9}},
    {.causal = true, .dropout = {.rate = 0.4, .seed = 9}, .block = 2, .queries = 3}};

/// Attention by the masks of one document after the other, each of which a query of that document
/// sees alone. What a place drops is told by the row, so that no document can be alone for it.
template <class T, class R>
DocumentResults by_masks(const ProcessMesh<Grid>& mesh, const DocumentCase& c, bool cross,
                         const AttentionOptions& options) {
  const auto attend = [&]<class U, class M>(const Projected<U>& x, const M& mask) {
    using Q = typename Projected<U>::Q;
    const auto &queries = detail::mask_of_queries(mask), &keys = detail::mask_of_keys(mask);
    Q y = x.q * T{};
    for (Index k = 0; k < (cross ? 2 : c.query_rows.most()); ++k) {
      const auto number = static_cast<std::int32_t>(cross ? DocumentCase::largest - k : k + 1);
      const auto own = [number](std::int32_t n) { return n == number; };
      const Q of_one = blocked_attention(x.q, x.k, x.v, options, map(own, keys));
      y = y + map<"bsgrd,bs->bsgrd", typename Q::spec>(fn::Multiply{}, of_one,
                                                       cast<T>(map(own, queries)));
    }
    return y;
  };
  return packed_results<T, R>(mesh, c, cross, {.padding = 0}, attend);
}

template <class T, class R>
void check_documents(const ProcessMesh<Grid>& mesh, std::uint64_t seed, double bound,
                     std::mutex& mutex) {
  for (const bool cross : {false, true}) {
    const DocumentCase c = cross ? DocumentCase::across(seed) : DocumentCase::within(seed);
    for (const AttentionOptions& options : document_ways) {
      if (cross && (options.causal || options.window > 0)) continue;  // by places in rows
      const auto attend = [&](const auto& x, const auto& mask) {
        return blocked_attention(x.q, x.k, x.v, options, mask);
      };
      const auto run = [&](const Spoilt& spoilt) {
        return packed_results<T, R>(mesh, c, cross, spoilt, attend);
      };
      const DocumentResults packed = run({});
      const auto expected = options.dropout.rate > 0 ? by_masks<T, R>(mesh, c, cross, options).of
                                                     : each_alone<T>(mesh, c, attend);
      const bool zeros = std::all_of(packed.padding.begin(), packed.padding.end(),
                                     [](double x) { return x == 0; });
      // A document that is not finite, or whose gradient is not: no other one changes.
      bool same = true, nan = true, none = true;
      const std::size_t bad = seed % c.queries.size();
      for (const auto& [tensors, other, slope] : {std::tuple{"q", double(NAN), 0.0},
                                                  {"k", double(NAN), 0.0},
                                                  {"v", double(NAN), 0.0},
                                                  {"k", -double(INFINITY), 0.5},
                                                  {"v", double(NAN), 0.5},
                                                  {"qkv", 3e38, 0.0},
                                                  {"", 0.0, double(INFINITY)}}) {
        const DocumentResults spoilt = run({static_cast<int>(bad), tensors, other, slope});
        const std::size_t heads = static_cast<std::size_t>(c.queries[bad] * query_size);
        for (std::size_t d = 0; d < c.queries.size(); ++d)
          if (d != bad) same = same && spoilt.of[d] == packed.of[d];
        for (std::size_t i = 0; i < spoilt.of[bad].size(); ++i) {
          if (!std::isfinite(other) && i < heads && options.dropout.rate == 0)
            nan = nan && std::isnan(spoilt.of[bad][i]);
          if (!std::isfinite(other) && slope == 0 && i >= heads)
            none = none && spoilt.of[bad][i] == 0;
          if (std::isinf(slope) && i >= heads && i < 2 * heads && c.keys[bad] > 1 &&
              options.dropout.rate == 0)
            nan = nan && !std::isfinite(spoilt.of[bad][i]);
        }
        same = same && spoilt.padding == packed.padding;
      }
      const std::lock_guard lock(mutex);
      CAPTURE(cross);
      CAPTURE(options.causal);
      CAPTURE(options.window);
      CAPTURE(options.block);
      CAPTURE(options.scores_bytes);
      CAPTURE(options.dropout.rate);
      CAPTURE(mesh.processes());
      for (std::size_t d = 0; d < expected.size(); ++d)
        CHECK(worst(packed.of[d], expected[d]) < bound);
      CHECK(zeros);
      CHECK(same);
      CHECK(nan);
      CHECK(none);
    }
  }
}
}  // namespace

TEST_CASE("documents that share rows give what each gives alone, and spoil no other") {
  std::mutex mutex;
  std::uint64_t seed = 1;
  for (const auto& [rows, columns] : {std::pair{1, 1}, {2, 1}, {1, 3}, {2, 2}, {3, 2}})
    on_mesh(rows, columns, [&, seed = ++seed](const ProcessMesh<Grid>& mesh) {
      check_documents<double, TensorParallel<data, model>>(mesh, seed, 1e-12, mutex);
      check_documents<double, SequenceSplit<data, model>>(mesh, seed, 1e-12, mutex);
      check_documents<double, SplitElements>(mesh, seed, 1e-12, mutex);
    });
}

TEST_CASE("documents in narrow elements, with a relative bias, and compiled") {
  std::mutex mutex;
  on_mesh(2, 2, [&](const ProcessMesh<Grid>& mesh) {
    check_documents<float, SequenceSplit<data, model>>(mesh, 3, 1e-5, mutex);
    check_documents<half, SequenceSplit<data, model>>(mesh, 4, 1e-2, mutex);
    check_documents<bfloat16, TensorParallel<data, model>>(mesh, 5, 6e-2, mutex);

    const DocumentCase c = DocumentCase::within(8);
    for (const AttentionOptions& options : document_ways) {
      if (options.dropout.rate > 0) continue;  // by the row: no document is alone for it
      AttentionOptions near = options;
      near.farthest = 5;
      const auto attend = [&]<class U>(const Projected<U>& x, const auto& mask) {
        Parameters<Grid> make(mesh, 5);
        const auto bias = RelativeBias<U>::like(
            make, {.buckets = 6, .groups = doc_groups, .repeats = doc_repeats});
        return blocked_attention(x.q, x.k, x.v, near, mask, bias);
      };
      const auto packed =
          packed_results<double, TensorParallel<data, model>>(mesh, c, false, {}, attend);
      const auto expected = each_alone<double>(mesh, c, attend);
      for (std::size_t d = 0; d < expected.size(); ++d)
        CHECK(worst(packed.of[d], expected[d]) < 1e-12);
    }
  });
}

namespace {
/// What a layer makes of rows of documents, and its gradients: by x of each document, and by the
/// layer's own tensors.
struct LayerResults {
  std::vector<std::vector<double>> of;
  std::vector<double> parameters;
};
template <class R, class Mask>
LayerResults layer_results(const ProcessMesh<Grid>& mesh, const Packing& rows, double padding,
                           int spoilt, const AttentionOptions& options, const Mask& mask_of) {
  using U = On<R>;
  Parameters<Grid> make(mesh, 5);
  const auto layer = Attention<U>::like(make, {.embed = 6, .heads = 3, .bias = true});
  std::vector<Index> lengths;
  for (const Packing::Document& one : rows.documents) lengths.push_back(one.length);
  const auto laid = [&](int which, double other, double bad) {
    return from_host<Activations<U>>(
        mesh, {rows.rows, rows.length, 6},
        DocumentCase::rows<double>(rows, lengths, 6, which, other, spoilt, bad));
  };
  const auto x = laid(1, padding, NAN), weights = laid(2, 0, 0);
  const auto mask = mask_of(documents_of<U>(mesh, rows));
  auto step = compile([&](const Attention<U>& w, const Activations<U>& given) {
    return value_and_grad<0, 1>([&](const auto& u, const auto& v) {
      const auto y = attention(u, v, v, options, mask);
      return std::tuple(sum(y * weights), y);
    })(w, given);
  });
  const auto made = step(layer, x);
  LayerResults results;
  append(results.parameters, std::get<0>(made.gradient));
  const auto y = to_host(std::get<1>(made.value)).values,
             dx = to_host(std::get<1>(made.gradient)).values;
  for (std::size_t d = 0; d < lengths.size(); ++d) {
    results.of.push_back(part(y, rows, d, 6));
    const auto more = part(dx, rows, d, 6);
    results.of.back().insert(results.of.back().end(), more.begin(), more.end());
  }
  return results;
}
}  // namespace

TEST_CASE(
    "a layer of attention to documents, compiled, whatever padding and other documents hold") {
  on_mesh(2, 2, [](const ProcessMesh<Grid>& mesh) {
    const Packing rows = pack_documents(some_lengths(6, 7, 7), 9);
    for (const AttentionOptions& options :
         {AttentionOptions{}, {.rotary = true}, {.causal = true, .rotary = true, .block = 4}}) {
      const auto results = [&](double padding, int spoilt, bool places) {
        const auto all = [](const auto& documents) { return documents; };
        const auto numbers = [](const auto& documents) { return documents.numbers; };
        using R = SequenceSplit<data, model>;
        return places ? layer_results<R>(mesh, rows, padding, spoilt, options, all)
                      : layer_results<R>(mesh, rows, padding, spoilt, options, numbers);
      };
      const LayerResults plain = results(0, -1, true), padded = results(NAN, -1, true),
                         spoilt = results(NAN, 2, true), by_row = results(0, -1, false);
      CHECK(padded.of == plain.of);
      CHECK(padded.parameters == plain.parameters);
      CHECK(worst(by_row.parameters, plain.parameters) < 1e-12);
      for (std::size_t d = 0; d < plain.of.size(); ++d) {
        if (d != 2) CHECK(spoilt.of[d] == plain.of[d]);
        CHECK(worst(by_row.of[d], plain.of[d]) < 1e-12);
      }
    }
  });
}

namespace {
/// The Program of the way forward and back with documents, or without a mask.
template <class R>
Program document_program(const ProcessMesh<Grid>& mesh, Index batch, Index length,
                         const AttentionOptions& options, bool documents) {
  using U = On<R>;
  using H = Projected<U>;
  Parameters<Grid> make(mesh, 5);
  const H given{normal<typename H::Q>(make, {batch, length, doc_groups, doc_repeats, doc_elements}),
                normal<typename H::K>(make, {batch, length, doc_groups, doc_elements}),
                normal<typename H::K>(make, {batch, length, doc_groups, doc_elements})};
  const auto numbers = from_function<TokenIds<U>>(mesh, {batch, length}, Ids{3});
  mesh.arena().reset_peak();
  Recording recording(mesh);
  (void)value_and_grad([&](const H& x) {
    return documents ? loss_of(blocked_attention(x.q, x.k, x.v, options, numbers))
                     : loss_of(blocked_attention(x.q, x.k, x.v, options));
  })(given);
  return recording.take();
}
}  // namespace

TEST_CASE("documents: memory and payload are planned, and only the numbers of keys are gathered") {
  const auto more = []<class R>(std::type_identity<R>, const AttentionOptions& options) {
    const auto mesh = dry_mesh<Grid>(2, 4);
    return document_program<R>(mesh, 8, 64, options, true).payload_bytes() -
           document_program<R>(mesh, 8, 64, options, false).payload_bytes();
  };
  const Index numbers = 8 / 2 * 64 * 4 * 3 / 4;  // of a process's rows, from three others
  for (const Index block : {0, 16}) {
    CHECK(more(std::type_identity<SequenceSplit<data, model>>{}, {.block = block}) == numbers);
    CHECK(more(std::type_identity<TensorParallel<data, model>>{}, {.block = block}) == 0);
    CHECK(more(std::type_identity<DataParallel<BothAxes>>{}, {.block = block}) == 0);
  }
  on_mesh(2, 2, [](const ProcessMesh<Grid>& there) {
    using R = SequenceSplit<data, model>;
    for (const AttentionOptions& options : document_ways) {
      const Index sent = there.ledger().payload_bytes();
      const Program ran = document_program<R>(there, 3, 33, options, true);
      CHECK(ran.peak_bytes() == there.arena().peak());
      CHECK(ran.own_payload_bytes() == there.ledger().payload_bytes() - sent);
      if (there.process() == 0)
        CHECK(ran.peak_bytes() ==
              document_program<R>(dry_mesh<Grid>(2, 2), 3, 33, options, true).peak_bytes());
    }
  });
}

TEST_CASE("places in documents turn queries and keys by one table") {
  const auto mesh = dry_mesh<Grid>(2, 2);
  using U = On<SequenceSplit<data, model>>;
  Parameters<Grid> make(mesh, 5);
  const auto layer = Attention<U>::like(make, {.embed = 6, .heads = 3});
  const auto x = normal<Activations<U>>(make, {2, 4, 6});
  const auto places = zeros<TokenIds<U>>(mesh, 2, 4);
  Recording recording(mesh);
  (void)attention(layer, x, x, {.rotary = true}, Documents<TokenIds<U>>{places, places});
  const Program program = recording.take();
  int tables = 0, turned = 0;
  for (const ProgramEntry& entry : program.entries()) {
    tables += entry.label == "rotary angle" ? 1 : 0;
    turned += entry.label == "rotary" ? 1 : 0;
  }
  CHECK(tables == 2);  // cosines and sines
  CHECK(turned == 2);
}

TEST_CASE("documents of wrong sizes say so") {
  const auto mesh = dry_mesh<Grid>(2, 2);
  using U = On<Whole>;
  Parameters<Grid> make(mesh, 5);
  const auto layer = Attention<U>::like(make, {.embed = 6, .heads = 3});
  const auto x = normal<Activations<U>>(make, {2, 4, 6}),
             other = normal<Activations<U>>(make, {2, 5, 6});
  const auto numbers = [&](Index rows, Index length) {
    return zeros<TokenIds<U>>(mesh, rows, length);
  };
  const auto says = [&](const auto& context, const auto& mask, const char* text) {
    CHECK_THROWS_WITH_AS(attention(layer, x, context, {}, mask), doctest::Contains(text),
                         ShapeError);
  };
  says(x, numbers(2, 5), "the mask is 2x5, and there are 2 texts of 4 keys");
  says(x, numbers(3, 4), "the mask is 3x4, and there are 2 texts of 4 keys");
  says(other, numbers(2, 5), "the mask is 2x5, and there are 2 texts of 4 queries");
  says(other, CrossDocuments{numbers(2, 3), numbers(2, 5)},
       "the mask is 2x3, and there are 2 texts of 4 queries");
  says(x, Documents<TokenIds<U>>{numbers(2, 4), numbers(2, 3)},
       "the mask is 2x3, and there are 2 texts of 4 places in documents");
  const auto table = Embedding<U, logical::positions>::like(make, 9, 6);
  CHECK_THROWS_WITH_AS(detail::with_positions(table, x, numbers(2, 4), 0, Where::here()),
                       doctest::Contains("documents are given without the places in them"),
                       UsageError);
}

TEST_CASE("attention of wrong sizes says so") {
  const auto mesh = dry_mesh<Grid>(2, 2);
  using U = On<Whole>;
  Parameters<Grid> make(mesh, 5);
  CHECK_THROWS_WITH_AS(Attention<U>::like(make, {.embed = 6, .heads = 4, .groups = 3}),
                       doctest::Contains("4 heads in groups: 3"), UsageError);
  CHECK_THROWS_WITH_AS(Attention<U>::like(make, {.embed = 6, .heads = 4}),
                       doctest::Contains("6 elements in heads: 4"), UsageError);
  const auto x = make.tensor<U::Tensor<_, _, _, _>>({2, 3, 2, 3}, Initializer::zeros());
  CHECK_THROWS_WITH_AS(rotary(x), doctest::Contains("has 3 elements"), ShapeError);
}

TEST_CASE("documents have the second derivatives of no mask, also where a gradient is zero") {
  run_loopback(1, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 1, 1);
    using U = Under<double, Grid, DataParallel<data>>;
    using Q = U::Tensor<logical::batch, logical::sequence, logical::groups, logical::repeats,
                        logical::head_dim>;
    using K = U::Tensor<logical::batch, logical::sequence, logical::groups, logical::head_dim>;
    const auto q = random_normal<Q>(mesh, {2, 5, 1, 2, 3}, 1), zero = q * 0.0;
    const auto k = random_normal<K>(mesh, {2, 5, 1, 3}, 2),
               v = random_normal<K>(mesh, {2, 5, 1, 3}, 3),
               u = random_normal<K>(mesh, {2, 5, 1, 3}, 4);
    const auto ones = full<U::Of<std::int32_t, logical::batch, logical::sequence>>(mesh, {2, 5}, 1);
    for (const Index block : {Index{0}, Index{2}})
      for (const Q& at : {q, zero}) {
        // The derivative by w of <gradient by v or k of sum(heads w), u>.
        const auto second = [&](const auto& mask, bool by_values) {
          return value_and_grad([&](const Q& w) {
                   const auto by =
                       value_and_grad<0, 1>([&](const K& keys, const K& values) {
                         return sum(blocked_attention(q, keys, values, {.block = block}, mask) * w);
                       })(k, v)
                           .gradient;
                   return sum((by_values ? std::get<1>(by) : std::get<0>(by)) * u);
                 })(at)
              .gradient;
        };
        for (const bool by_values : {false, true}) {
          const auto plain = second(AllValid{}, by_values), packed = second(ones, by_values);
          CHECK(value(max(abs(plain))) > 0.01);
          CHECK(value(max(abs(packed - plain))) <= 1e-12);
        }
      }
  });
}

TEST_CASE("documents in different rows take nothing that goes by places") {
  run_loopback(1, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 1, 1);
    using U = Under<double, Grid, DataParallel<data>>;
    using X = U::Tensor<logical::batch, logical::sequence, logical::embed>;
    Parameters<Grid> make(mesh, 5);
    const auto layer = Attention<U>::like(make, {.embed = 6, .heads = 2});
    const auto x = random_normal<X>(mesh, {1, 3, 6}, 1), y = random_normal<X>(mesh, {1, 5, 6}, 2);
    using Numbers = U::Of<std::int32_t, logical::batch, logical::sequence>;
    const CrossDocuments across{full<Numbers>(mesh, {1, 3}, 1), full<Numbers>(mesh, {1, 5}, 1)};
    CHECK(value(max(abs(attention(layer, x, y, {}, across) - attention(layer, x, y)))) <= 1e-12);
    for (const auto& [options, what] :
         {std::pair{AttentionOptions{.causal = true}, "a causal mask"},
          {AttentionOptions{.window = 2}, "a window"},
          {AttentionOptions{.rotary = true}, "rotary"}})
      CHECK_THROWS_WITH_AS((void)attention(layer, x, y, options, across), doctest::Contains(what),
                           UsageError);
    // A place of no document that is not finite, where the context is another tensor.
    auto host = to_host(x);
    host.values[0] = NAN;
    const auto spoilt = from_host<X>(mesh, {1, 3, 6}, host.values);
    const auto numbers = from_host<Numbers>(mesh, {1, 3}, std::vector<std::int32_t>{0, 1, 1});
    const auto gradient = value_and_grad([&](const Attention<U>& w) {
                            return sum(square(attention(w, spoilt, x + 0.5, {}, numbers)));
                          })(layer)
                              .gradient;
    CHECK(std::isfinite(value(max(abs(gradient.query)))));
  });
}
