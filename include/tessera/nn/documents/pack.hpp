// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Packing: several documents one behind the other in a row of fixed length, so that fewer places
/// are padding. It is arithmetic on the host; every process that gives the same lengths gets the
/// same rows. nn/documents/documents.hpp has their mask.
///
///     const Packing packing = pack_documents({5, 3, 4, 2}, 8);       // lengths, and that of a row
///     packing.rows == 2 && packing.documents[3].row == 1;
///     auto ids = packing.laid<int>({{1, 2, 3, 4, 5}, {6, 7, 8}, {9, 10, 11, 12}, {13, 14}}, 0);   // row-major
///     ids == std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0, 0};
///
/// Laws: each document lies in one row, on places of its own; there are at most 11/9 times as many
/// rows as the fewest, plus 4.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/box.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/math.hpp>

namespace tessera {

/// Which document lies where, in (rows, length). What goes over all places throws ShapeError for a
/// document that does not lie in a row, and for two that have a place in common.
struct Packing {
  struct Document {
    Index row = 0, first = 0, length = 0;
    Index number = 0;  ///< among those of its row, from 1 on
  };
  Index rows = 0, length = 0;
  std::vector<Document> documents;  ///< in the order in which they were given

  Extents extents() const { return {rows, length}; }
  /// Returns how many documents the row with most has.
  Index most() const {
    Index most = 0;
    for (const Document& one : documents) most = std::max(most, one.number);
    return most;
  }
  /// Returns which share of all places has a token; 1 of no places.
  double filled() const {
    Index tokens = 0;
    for (const Document& one : documents) tokens += one.length;
    return rows * length == 0 ? 1
                              : static_cast<double>(tokens) / static_cast<double>(rows * length);
  }

  /// Returns the number of the document at each place, row-major: from 1 on in each row, 0 where
  /// there is none.
  std::vector<std::int32_t> numbers(Where where = Where::here()) const {
    return each([](const Document& one, Index) { return static_cast<std::int32_t>(one.number); },
                std::int32_t{0}, where);
  }
  /// Returns the place of each token in its document, row-major: from 0 on in each; 0 where there
  /// is none.
  std::vector<std::int32_t> places(Where where = Where::here()) const {
    return each([](const Document&, Index i) { return static_cast<std::int32_t>(i); },
                std::int32_t{0}, where);
  }
  /// Returns what each token has, row-major, `padding` where there is none; texts[d] is what those
  /// of document d have. Throws ShapeError unless there are as many as when they were packed.
  template <class T>
  std::vector<T> laid(const std::vector<std::vector<T>>& texts, T padding,
                      Where where = Where::here()) const {
    if (texts.size() != documents.size())
      throw ShapeError("packing: " + std::to_string(texts.size()) + " texts are given, and " +
                           std::to_string(documents.size()) +
                           " documents were packed; give a text for each",
                       where);
    for (std::size_t d = 0; d < texts.size(); ++d)
      if (static_cast<Index>(texts[d].size()) != documents[d].length)
        throw ShapeError("packing: document " + std::to_string(d) + " has " +
                             std::to_string(texts[d].size()) + " tokens, and was packed with " +
                             std::to_string(documents[d].length) +
                             "; pack the lengths of the texts",
                         where);
    return each(
        [&](const Document& one, Index i) {
          return texts[static_cast<std::size_t>(&one - documents.data())]
                      [static_cast<std::size_t>(i)];
        },
        padding, where);
  }

 private:
  template <class T, class F> std::vector<T> each(const F& of, T padding, Where where) const {
    require_sound(where);
    std::vector<T> all(static_cast<std::size_t>(rows * length), padding);
    for (const Document& one : documents)
      for (Index i = 0; i < one.length; ++i)
        all[static_cast<std::size_t>(one.row * length + one.first + i)] = of(one, i);
    return all;
  }
  void require_sound(Where where) const {
    if (rows < 0 || length < 0 || length > std::numeric_limits<std::int32_t>::max())
      throw ShapeError("packing: there are " + std::to_string(rows) + " rows of " +
                           std::to_string(length) +
                           " places; rows and places are 0 or more, and a row's places int32",
                       where);
    for (std::size_t d = 0; d < documents.size(); ++d) {
      const Document& one = documents[d];
      const bool lies = one.row >= 0 && one.row < rows && one.first >= 0 && one.length >= 0 &&
                        one.first <= length && one.length <= length - one.first;
      if (!lies || one.number < 1 || one.number > std::numeric_limits<std::int32_t>::max())
        throw ShapeError(
            "packing: document " + std::to_string(d) + ", number " + std::to_string(one.number) +
                ", has " + std::to_string(one.length) + " places from place " +
                std::to_string(one.first) + " of row " + std::to_string(one.row) +
                " on, and there are " + std::to_string(rows) + " rows of " +
                std::to_string(length) +
                " places; rows and places count from 0, numbers from 1, in int32; pack_documents "
                "gives each document a place",
            where);
    }
    require_apart(where);
  }
  void require_apart(Where where) const {
    std::vector<std::size_t> order;
    for (std::size_t d = 0; d < documents.size(); ++d)
      if (documents[d].length > 0) order.push_back(d);
    const auto place = [&](std::size_t d) {
      return std::pair(documents[d].row, documents[d].first);
    };
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const Document &before = documents[order[i - 1]], &one = documents[order[i]];
      if (before.row == one.row && before.first + before.length > one.first)
        throw ShapeError("packing: documents " + std::to_string(std::min(order[i - 1], order[i])) +
                             " and " + std::to_string(std::max(order[i - 1], order[i])) +
                             " both have place " + std::to_string(one.first) + " of row " +
                             std::to_string(one.row) +
                             ", and a place has one token; pack_documents gives each document "
                             "places of its own",
                         where);
    }
  }
};

/// Returns rows of `length` places for documents of such lengths: the longest first, each into the
/// row where it leaves least. Memory: of the documents and rows. Communication: none; all processes
/// give the same. Throws ShapeError for a document that is longer than a row, or has fewer than 0
/// tokens, and where places of a row are no int32. Source: best fit decreasing, Johnson,
/// "Near-optimal bin packing algorithms" (1973).
inline Packing pack_documents(const std::vector<Index>& lengths, Index length,
                              Where where = Where::here()) {
  constexpr Index most = std::numeric_limits<std::int32_t>::max();
  if (length < 0 || length > most)
    throw ShapeError("pack_documents: a row has " + std::to_string(length) +
                         " places, which are numbered by int32; give it between 0 and " +
                         std::to_string(most),
                     where);
  Packing made{0, length, std::vector<Packing::Document>(lengths.size())};
  std::vector<std::size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
  std::set<std::pair<Index, Index>> open;  // the places that a row has left, and the row
  std::vector<Index> count;                // documents of a row
  for (const std::size_t d : order) {
    const Index own = lengths[d];
    const auto refused = [&](const std::string& why) {
      return ShapeError("pack_documents: document " + std::to_string(d) + " has " +
                            std::to_string(own) + " tokens, and " + why,
                        where);
    };
    if (own < 0) throw refused("no document has fewer than 0; give lengths");
    if (own > length)
      throw refused("a row " + std::to_string(length) + " places; cut it, or give longer rows");
    auto best = open.lower_bound({own, 0});
    if (best == open.end()) {
      best = open.insert({length, made.rows++}).first;
      count.push_back(0);
    }
    const auto [left, row] = *best;
    open.erase(best);
    open.insert({left - own, row});
    made.documents[d] = {row, length - left, own, ++count[static_cast<std::size_t>(row)]};
  }
  return made;
}

}  // namespace tessera
