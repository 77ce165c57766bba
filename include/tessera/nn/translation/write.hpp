// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Translations of many sources: the likeliest tokens one by one, drawn ones, or a beam search.
///
///     const auto texts = generate(mesh, model, {{5, 6, 7}, {8}}, {.begin = 1, .most = 20}, {.batch = 8, .end = 2, .sampling = {.temperature = 0}});
///     const auto found = beam_search(mesh, model, {{5, 6, 7}, {8}}, 1, {.beams = 4, .most = 20, .end = 2});
///     found[0][0].tokens;                    // the best translation of 5 6 7
///
/// Laws: a translation does not depend on the others, on how many are under way, or on the mesh, as
/// far as its scores do not; beam_search of one beam gives the greedy ones.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tessera/nn/decoding/beam_search.hpp>
#include <tessera/nn/decoding/generate.hpp>
#include <tessera/nn/translation/decode.hpp>

namespace tessera {

/// What each target begins with, and how long it may be.
struct TargetRequest {
  std::int32_t begin = 0;  ///< the token that begins all targets
  Index most = 64;         ///< tokens to write at most
};

namespace detail {
/// Reads targets on, whose sources are encoded once.
template <class U> class TranslatorReader {
 public:
  using Mesh = ProcessMesh<typename U::mesh_type>;
  using Sources = std::vector<std::vector<std::int32_t>>;
  /// Encodes sources `from` to before `to`.
  TranslatorReader(const Mesh& mesh, const Translator<U>& model, const Sources& sources,
                   std::size_t from, std::size_t to, const TranslatorOptions& options, Where where)
      : model_(model), options_(options), where_(where) {
    using Ids = typename U::template Of<std::int32_t, logical::batch, logical::sequence>;
    using Row = typename U::template Of<std::int32_t, logical::batch>;
    std::size_t longest = 1;
    for (std::size_t i = from; i < to; ++i) longest = std::max(longest, sources[i].size());
    std::vector<std::int32_t> ids, lengths;
    for (std::size_t i = from; i < to; ++i) {
      ids.insert(ids.end(), sources[i].begin(), sources[i].end());
      ids.resize(ids.size() + longest - sources[i].size(), 0);
      lengths.push_back(static_cast<std::int32_t>(sources[i].size()));
    }
    const auto batch = static_cast<Index>(to - from), places = static_cast<Index>(longest);
    valid_ = places_before<U>(from_host<Row>(mesh, {batch}, lengths, where), places, where);
    states_ = encode(model, from_host<Ids>(mesh, {batch, places}, ids, where),
                     dropping_nothing(options), valid_, where)
                  .states;
  }
  void begin(Index batch, Index places) {
    if (batch != states_.extent(0))
      throw UsageError("a reader of translations: " + std::to_string(batch) +
                           " targets are to be written, and there are " +
                           std::to_string(states_.extent(0)) +
                           " sources; give a target for each source",
                       where_);
    cache_ = TranslatorCache<U>::like(model_, states_, places, valid_, where_);
  }
  template <class I, class... Last>
  auto read(const I& ids, const NewPlaces<U>& at, const Last&... last) {
    return decode(model_, cache_, ids, at, last..., options_, where_);
  }
  /// Rows of one source have the same keys of it, so that these move as there are more rows alone.
  template <class Row> void reorder(const Row& order) {
    const bool grows = order.extent(0) != cache_.target.front().keys.extent(0);
    take_rows(cache_.target, order, where_);
    if (!grows) return;
    take_rows(cache_.source, order, where_);
    using Mask = typename TranslatorCache<U>::Mask;
    cache_.source_valid = take<"bt,c->ct", typename Mask::spec>(*cache_.source_valid, order,
                                                                OutOfRange::clamp, where_);
  }

 private:
  const Translator<U>& model_;
  TranslatorOptions options_;
  Where where_;
  typename TranslatorStates<U>::X states_;
  typename U::template Of<bool, logical::batch, logical::sequence> valid_;
  TranslatorCache<U> cache_;
};

/// Throws UsageError for tokens that the model has not, ShapeError for more places than it has.
template <class U>
void require_sources(const char* call, const Translator<U>& model,
                     const std::vector<std::vector<std::int32_t>>& sources, std::int32_t begin,
                     Index most, const TranslatorOptions& options, Where where) {
  const auto require_token = [&](const std::string& what, std::int32_t token, Index tokens) {
    if (token < 0 || token >= tokens)
      throw UsageError(std::string(call) + ": " + what + " is token " + std::to_string(token) +
                           ", and the model has tokens 0 to " + std::to_string(tokens - 1) +
                           " there; give one of them",
                       where);
  };
  require_token("the beginning of all targets", begin, model.target.weight.extent(0));
  for (std::size_t i = 0; i < sources.size(); ++i)
    for (std::size_t k = 0; k < sources[i].size(); ++k)
      require_token("place " + std::to_string(k) + " of source " + std::to_string(i), sources[i][k],
                    model.source_table().weight.extent(0));
  require_places(model, most - 1, options, where);
}
}  // namespace detail

/// Returns the translation of each source, with the token that ends it, if it has ended: how.batch
/// of them at once, the tokens by how.sampling. how.chunk and how.attention say nothing here: a
/// target begins with one token, and attention is that of `options`. Communication: that of encode,
/// decode and next_token; each step every process gets the new tokens. Collective over the mesh;
/// every process gives the same. Throws UsageError for tokens that the model has not and for
/// options below 1, ShapeError where a text could be longer than the model's tables of positions.
template <class U>
std::vector<std::vector<std::int32_t>> generate(
    const ProcessMesh<typename U::mesh_type>& mesh, const Translator<U>& model,
    const std::vector<std::vector<std::int32_t>>& sources, const TargetRequest& target,
    GenerateOptions how = {}, const TranslatorOptions& options = {}, Where where = Where::here()) {
  detail::require_sources("generate", model, sources, target.begin, target.most, options, where);
  const auto batch = static_cast<std::size_t>(max_of(how.batch, Index{1}));
  how.chunk = min_of(how.chunk, Index{1});  // a target begins with one token
  const Index begins = how.first;
  const auto written = how.written;
  std::vector<std::vector<std::int32_t>> all;
  for (std::size_t from = 0; from < sources.size(); from += batch) {
    const std::size_t to = std::min(from + batch, sources.size());
    how.first = begins + static_cast<Index>(from);
    if (how.batch > 0) how.batch = static_cast<Index>(to - from);
    if (written)
      how.written = [&written, from](Index text, std::int32_t token) {
        written(static_cast<Index>(from) + text, token);
      };
    const auto make = [&](Index rows, Index places) {
      detail::TranslatorReader<U> reader(mesh, model, sources, from, to, options, where);
      reader.begin(rows, places);
      return [reader](const auto& ids, const auto& at, const auto& last) mutable {
        return reader.read(ids, at, last);
      };
    };
    const std::vector<TextRequest> requests(to - from, TextRequest{{target.begin}, target.most});
    for (auto& text : generate_by<U>(mesh, make, requests, how, where))
      all.push_back(std::move(text));
  }
  return all;
}

/// Returns the best translations of each source, the best first, at most how.beams of each; all
/// sources are searched at once. Communication: that of encode, and as beam_search of a decoder;
/// the keys and values of sources move once, to as many rows as beams. Collective over the mesh;
/// every process gives the same. Throws as generate.
template <class U>
std::vector<std::vector<Hypothesis>> beam_search(
    const ProcessMesh<typename U::mesh_type>& mesh, const Translator<U>& model,
    const std::vector<std::vector<std::int32_t>>& sources, std::int32_t begin,
    const BeamOptions& how = {}, const TranslatorOptions& options = {},
    Where where = Where::here()) {
  detail::require_beams(how, where);
  detail::require_sources("beam_search", model, sources, begin, how.most, options, where);
  if (sources.empty()) return {};
  detail::TranslatorReader<U> reader(mesh, model, sources, 0, sources.size(), options, where);
  return beam_search_by<U>(mesh, reader, std::vector(sources.size(), std::vector{begin}), how,
                           where);
}

}  // namespace tessera
