// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Beam search: of each text the hypotheses that are likeliest go on. Two ways to the same
/// hypotheses: each is a row of the batch, and kept keys and values are reordered as hypotheses
/// leave; or all hypotheses of a text lie interleaved in one row, `flat`, where a mask says which
/// of the tokens each of them has, and nothing that is kept ever moves.
///
///     const auto found = beam_search(mesh, model, {{1, 2, 3}, {4}}, {.beams = 4, .most = 20, .end = 0});
///     found[0][0].tokens;                        // the best one that follows 1 2 3
///
/// Laws: both ways find the same hypotheses; with as many beams as there are texts the best one is
/// found. Source: GShard, appendix A.1 (flat); Wu et al. (2016), section 7.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tessera/nn/decoding/beams.hpp>
#include <tessera/nn/decoding/decode.hpp>
#include <tessera/op/rows/softmax.hpp>
#include <tessera/op/rows/statistics.hpp>
#include <tessera/op/rows/top_k.hpp>
#include <tessera/op/to_host.hpp>

namespace tessera {
namespace detail {

inline void require_beams(const BeamOptions& options, Where where) {
  if (options.beams < 1 || options.most < 1)
    throw UsageError("beam_search: " + std::to_string(options.beams) + " beams, and " +
                         std::to_string(options.most) +
                         " tokens to write; give at least one of each",
                     where);
}
/// Gives row i of kept keys and values what row order[i] has.
template <class Tree, class Row> void take_rows(Tree& kept, const Row& order, Where where) {
  for_each_tensor(
      [&](auto& x) {
        using X = std::decay_t<decltype(x)>;
        x = take<"btgd,c->ctgd", typename X::spec>(x, order, OutOfRange::clamp, where);
      },
      kept);
}

/// A beam search over several texts at once, by a reader (beam_search_by).
template <class U, class Reader> class BeamSearch {
 public:
  using Mesh = ProcessMesh<typename U::mesh_type>;
  BeamSearch(const Mesh& mesh, Reader& reader, const std::vector<std::vector<std::int32_t>>& begins,
             const BeamOptions& options, Where where)
      : mesh_(mesh),
        reader_(reader),
        begins_(begins),
        options_(options),
        where_(where),
        beams_(begins.size(), Beams(options)),
        rows_(begins.size()) {
    require_beams(options, where);
    for (const auto& begin : begins) longest_ = max_of(longest_, static_cast<Index>(begin.size()));
    places_ = longest_ + (options.flat ? options.beams : 1) * (options.most - 1);
  }

  std::vector<std::vector<Hypothesis>> run() {
    if (begins_.empty()) return {};
    read_beginnings();
    for (Index step = 0; going(); ++step) options_.flat ? read_flat(step) : read_rows(step);
    std::vector<std::vector<Hypothesis>> found;
    for (const Beams& one : beams_) found.push_back(one.found());
    return found;
  }

 private:
  template <class T, class... Names> using Of = typename U::template Of<T, Names...>;
  using Ids = Of<std::int32_t, logical::batch, logical::sequence>;
  using Row = Of<std::int32_t, logical::batch>;
  using Seen = Of<bool, logical::batch, logical::sequence, logical::cache>;
  using Kept = Of<std::int32_t, logical::batch, logical::cache>;
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  Index texts() const { return static_cast<Index>(begins_.size()); }
  bool going() const {
    for (const Beams& one : beams_)
      if (one.going() > 0) return true;
    return false;
  }
  Index begin_length(std::size_t text) const { return static_cast<Index>(begins_[text].size()); }

  /// Gives each text the likeliest tokens of its hypotheses: scores is (n, s, v), n s rows, one of
  /// each text's beginning, or one of each of its hypotheses.
  template <class Scores> void expand(const Scores& scores, bool beginning) {
    const std::size_t rows = beginning ? 1 : at(options_.beams);
    const Index few = min_of(2 * options_.beams, scores.extent(2));
    const auto best =
        top_k<"bsv", 'v'>(log_softmax<"bsv", 'v'>(widened(scores, where_), where_), few, where_);
    const auto values = to_host(best.values, where_);
    const auto indices = to_host(best.indices, where_);
    for (std::size_t text = 0; text < beams_.size(); ++text) {
      Beams& own = beams_[text];
      Beams::Scores its(beginning ? 1 : own.going());
      Beams::Tokens tokens(its.size());
      for (std::size_t h = 0; h < its.size(); ++h)
        for (Index i = 0; i < few; ++i) {
          const std::size_t from = (text * rows + h) * at(few) + at(i);
          its[h].push_back(static_cast<double>(values.values[from]));
          tokens[h].push_back(static_cast<std::int32_t>(indices.values[from]));
        }
      if (beginning)
        own.begin(its, tokens);
      else if (own.going() > 0)
        own.next(its, tokens);
    }
  }

  void read_beginnings() {
    reader_.begin(texts(), places_);
    std::vector<std::int32_t> ids, last;
    std::vector<std::vector<Index>> places(begins_.size());
    for (std::size_t b = 0; b < begins_.size(); ++b) {
      for (Index i = 0; i < longest_; ++i) {
        ids.push_back(i < begin_length(b) ? begins_[b][at(i)] : 0);
        places[b].push_back(i);
      }
      last.push_back(static_cast<std::int32_t>(begin_length(b) - 1));
    }
    const auto scores = reader_.read(from_host<Ids>(mesh_, {texts(), longest_}, ids, where_),
                                     NewPlaces<U>::at(mesh_, places, places_, where_),
                                     from_host<Row>(mesh_, {texts()}, last, where_));
    expand(expand_dims<1>(scores, where_), true);
  }

  /// Hypotheses are rows: those that go on take the keys and values of the rows that they were.
  void read_rows(Index step) {
    const Index beams = options_.beams, rows = texts() * beams;
    std::vector<std::int32_t> from, ids;
    std::vector<std::vector<Index>> places;
    for (std::size_t text = 0; text < beams_.size(); ++text) {
      const Beams& own = beams_[text];
      const std::vector<std::int32_t> tokens = own.tokens();
      for (std::size_t h = 0; h < at(beams); ++h) {
        const bool goes = h < own.going();
        const Index before = !goes || step == 0 ? 0 : own.parents()[h];
        from.push_back(
            static_cast<std::int32_t>(static_cast<Index>(text) * (step == 0 ? 1 : beams) + before));
        ids.push_back(goes ? tokens[h] : 0);
        places.push_back({begin_length(text) + step});
      }
    }
    reader_.reorder(from_host<Row>(mesh_, {rows}, from, where_));
    expand(reader_.read(from_host<Ids>(mesh_, {rows, 1}, ids, where_),
                        NewPlaces<U>::at(mesh_, places, places_, where_)),
           false);
  }

  /// Hypotheses of a text lie in one row, a token of each beside those of the others.
  void read_flat(Index step) {
    const Index beams = options_.beams;
    std::vector<std::int32_t> ids, places, first, kept;
    std::vector<std::uint8_t> seen;
    for (std::size_t text = 0; text < beams_.size(); ++text) {
      const Beams& own = beams_[text];
      const std::vector<std::int32_t> tokens = own.tokens();
      const Index begin = begin_length(text), own_first = begin + step * beams;
      std::vector<std::vector<Index>> lines;  // the places that hold each hypothesis' own tokens
      for (std::size_t h = 0; h < at(beams); ++h) {
        const bool goes = h < own.going();
        lines.emplace_back();
        if (goes && step > 0) lines[h] = rows_[text][at(own.parents()[h])];
        lines[h].push_back(own_first + static_cast<Index>(h));
        ids.push_back(goes ? tokens[h] : 0);
        places.push_back(static_cast<std::int32_t>(begin + step));
        std::vector<std::uint8_t> row(at(places_));
        for (Index i = 0; i < begin; ++i) row[at(i)] = 1;
        for (const Index i : lines[h]) row[at(i)] = 1;
        seen.insert(seen.end(), row.begin(), row.end());
      }
      rows_[text] = std::move(lines);
      first.push_back(static_cast<std::int32_t>(own_first));
      for (Index i = 0; i < places_; ++i)
        kept.push_back(static_cast<std::int32_t>(i < begin ? i : begin + (i - begin) / beams));
    }
    NewPlaces<U> at_places{from_host<Ids>(mesh_, {texts(), beams}, places, where_),
                           from_host<Row>(mesh_, {texts()}, first, where_),
                           from_host<Seen>(mesh_, {texts(), beams, places_}, seen, where_)};
    at_places.kept = from_host<Kept>(mesh_, {texts(), places_}, kept, where_);
    expand(reader_.read(from_host<Ids>(mesh_, {texts(), beams}, ids, where_), at_places), false);
  }

  const Mesh& mesh_;
  Reader& reader_;
  const std::vector<std::vector<std::int32_t>>& begins_;
  const BeamOptions& options_;
  Where where_;
  std::vector<Beams> beams_;                           ///< of each text
  std::vector<std::vector<std::vector<Index>>> rows_;  ///< flat: of each text and hypothesis
  Index longest_ = 0, places_ = 0;
};

/// Reads on with a decoder.
template <class U> class DecoderReader {
 public:
  DecoderReader(const ProcessMesh<typename U::mesh_type>& mesh, const Decoder<U>& model,
                const AttentionOptions& attention, Where where)
      : mesh_(mesh), model_(model), attention_(attention), where_(where) {}
  void begin(Index batch, Index places) {
    cache_ = DecoderCache<U>::like(mesh_, model_, batch, places, where_);
  }
  template <class I, class... Last>
  auto read(const I& ids, const NewPlaces<U>& at, const Last&... last) {
    return decode(model_, cache_, ids, at, last..., attention_, where_);
  }
  template <class Row> void reorder(const Row& order) { take_rows(cache_, order, where_); }

 private:
  const ProcessMesh<typename U::mesh_type>& mesh_;
  const Decoder<U>& model_;
  const AttentionOptions& attention_;
  Where where_;
  DecoderCache<U> cache_;
};
}  // namespace detail

/// Returns the best hypotheses of each text, the best first, at most options.beams of each, by a
/// reader, which has begin(batch, places): empties what it keeps and makes room; read(ids, at) and
/// read(ids, at, last): as decode; and reorder(order): row i goes on from what row order[i] has, of
/// which there may then be more. Collective over the mesh; every process gives the same.
/// Communication: that of reading and top_k; each step every process gets the best 2 beams scores
/// of each hypothesis. Throws UsageError for options below 1.
template <class U, class Reader>
std::vector<std::vector<Hypothesis>> beam_search_by(
    const ProcessMesh<typename U::mesh_type>& mesh, Reader& reader,
    const std::vector<std::vector<std::int32_t>>& begins, const BeamOptions& options,
    Where where = Where::here()) {
  return detail::BeamSearch<U, Reader>(mesh, reader, begins, options, where).run();
}

/// Returns the best hypotheses of each text, the best first, at most options.beams of each:
/// `begins` are their beginnings, the same on every process. Communication: that of decode and
/// top_k; where rows are reordered, and the batch is split, keys and values move; each step every
/// process gets the best 2 beams scores of each hypothesis. Collective over the mesh. Throws
/// UsageError for an empty beginning and options below 1, ShapeError where a text could be longer
/// than the model's table of positions.
template <class U>
std::vector<std::vector<Hypothesis>> beam_search(
    const ProcessMesh<typename U::mesh_type>& mesh, const Decoder<U>& model,
    const std::vector<std::vector<std::int32_t>>& begins, const BeamOptions& options = {},
    const AttentionOptions& attention = {}, Where where = Where::here()) {
  detail::require_beams(options, where);
  for (std::size_t b = 0; b < begins.size(); ++b)
    detail::require_text("beam_search", b, begins[b], options.most, model, where);
  detail::DecoderReader<U> reader(mesh, model, attention, where);
  return beam_search_by<U>(mesh, reader, begins, options, where);
}

}  // namespace tessera
