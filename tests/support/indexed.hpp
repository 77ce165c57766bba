// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The oracle of takes, scatters, one-hots and windows, in plain loops over whole tensors; and
/// their local work in a dry run.
///
///     Whole<float> y = support::take(parse("vm,bs->bsm"), x, {ids}, OutOfRange::clamp);
#include <functional>

#include "reference.hpp"

namespace support {

using WholeIndices = Whole<std::int64_t>;

/// Returns the index that stands for i, or -1 where it is dropped.
inline Index placed(std::int64_t i, Index extent, OutOfRange out_of_range) {
  if (i >= 0 && i < extent) return i;
  if (out_of_range == OutOfRange::drop || extent <= 0) return -1;
  return i < 0 ? 0 : extent - 1;
}

/// Joins two values by a reduction; none sets the second.
template <class T> T joined(Reduction kind, T x, T y) {
  if (kind == Reduction::none) return y;
  if (kind == Reduction::product) return static_cast<T>(x * y);
  return static_cast<T>(combine(kind, x, y));
}
template <class T> T start_of(Reduction kind) {
  if (kind == Reduction::product) return T{1};
  return kind == Reduction::max || kind == Reduction::min ? identity_of<T>(kind) : T{};
}

namespace detail_of_indexed {
/// The letters of an operator with their extents; visits every combination with the place in each
/// tensor.
struct Letters {
  Term labels;
  Extents extents;
  void add(const Term& term, const Extents& of) {
    for (int d = 0; d < term.size(); ++d)
      if (!labels.contains(term[d])) {
        labels.push_back(term[d]);
        extents.push_back(of[d]);
      }
  }
  /// A letter that the others lack stands at `column`.
  Index place(const Extents& at, const Term& term, const Extents& of, Index column = 0) const {
    Extents c;
    for (char label : term) c.push_back(labels.contains(label) ? at[labels.find(label)] : column);
    return dot(c, detail::row_major_strides(of));
  }
};
}  // namespace detail_of_indexed

/// `windows`: the extents of the result's letters of windows.
template <class T>
Whole<T> take(const Terms& terms, const Whole<T>& x, const std::vector<WholeIndices>& indices,
              OutOfRange out_of_range, const Extents& windows = {}) {
  detail_of_indexed::Letters letters;
  letters.add(detail::indices_of_take(terms).windows(), windows);
  const Term indexed = detail::letters_without(terms.operands[0], terms.result);
  const auto places = detail::indices_of_take(terms).places();
  letters.add(terms.operands[0], x.extents);
  for (std::size_t k = 0; k < indices.size(); ++k)
    letters.add(terms.operands[static_cast<int>(k) + 1], indices[k].extents);
  Extents result;
  for (char label : terms.result) result.push_back(letters.extents[letters.labels.find(label)]);
  letters = {terms.result, result};
  Whole<T> y(result);
  Index next = 0;
  for_each_index(result, [&](const Extents& at) {
    Extents from;
    bool lost = false;
    for (int d = 0; d < terms.operands[0].size(); ++d) {
      const char label = terms.operands[0][d];
      if (const int k = indexed.find(label); k >= 0) {
        const auto [tensor, column] = places[k];
        const WholeIndices& i = indices[static_cast<std::size_t>(tensor)];
        const Index place = letters.place(at, terms.operands[tensor + 1], i.extents, column);
        const int w = terms.result.find(detail::indices_of_take(terms).window(label));
        const Index first =
            placed(i[place], x.extents[d] - (w < 0 ? 1 : result[w]) + 1, out_of_range);
        from.push_back(first + (w < 0 ? 0 : at[w]));
        lost = lost || first < 0;
      } else {
        from.push_back(at[terms.result.find(label)]);
      }
    }
    y[next++] = lost ? T{} : x[dot(from, detail::row_major_strides(x.extents))];
  });
  return y;
}

/// Into x, which holds what the scatter begins with and has the result's extents and letters.
template <class T>
Whole<T> scatter(const Terms& terms, Reduction kind, Whole<T> x,
                 const std::vector<WholeIndices>& indices, const Whole<T>& updates,
                 OutOfRange out_of_range) {
  const Term& from = terms.operands.back();
  const Term indexed = detail::letters_without(terms.result, from);
  const int first = detail::has_operand(terms) ? 1 : 0;
  const auto places = detail::indices_of_scatter(terms).places();
  const detail_of_indexed::Letters letters{from, updates.extents};
  Index next = 0;
  for_each_index(updates.extents, [&](const Extents& at) {
    const T update = updates[next++];
    Extents to;
    for (int d = 0; d < terms.result.size(); ++d) {
      const int k = indexed.find(terms.result[d]);
      if (k < 0) {
        to.push_back(at[from.find(terms.result[d])]);
        continue;
      }
      const auto [tensor, column] = places[k];
      const WholeIndices& i = indices[static_cast<std::size_t>(tensor)];
      const Index place = letters.place(at, terms.operands[first + tensor], i.extents, column);
      const int w = from.find(detail::indices_of_scatter(terms).window(terms.result[d]));
      const Index begin =
          placed(i[place], x.extents[d] - (w < 0 ? 1 : updates.extents[w]) + 1, out_of_range);
      if (begin < 0) return;
      to.push_back(begin + (w < 0 ? 0 : at[w]));
    }
    T& out = x[dot(to, detail::row_major_strides(x.extents))];
    out = joined(kind, out, update);
  });
  return x;
}

template <class T>
Whole<T> one_hot(const Term& labels, char along, const WholeIndices& indices, Index extent) {
  const Term of_indices = detail::letters_without(labels, Term{along});
  Extents result;
  for (char label : labels)
    result.push_back(label == along ? extent : indices.extents[of_indices.find(label)]);
  Whole<T> y(result);
  const detail_of_indexed::Letters letters{labels, result};
  Index next = 0;
  for_each_index(result, [&](const Extents& at) {
    y[next++] = static_cast<T>(
        indices[letters.place(at, of_indices, indices.extents)] == at[labels.find(along)] ? 1 : 0);
  });
  return y;
}

/// `start` and `size` have an element a dimension.
template <class T>
Whole<T> dynamic_slice(const Whole<T>& x, const Extents& start, const Extents& size) {
  Whole<T> y(size);
  Index next = 0;
  for_each_index(size, [&](const Extents& at) {
    Extents from = at;
    for (int d = 0; d < from.size(); ++d)
      from[d] += std::max<Index>(0, std::min(start[d], x.extents[d] - size[d]));
    y[next++] = x[dot(from, detail::row_major_strides(x.extents))];
  });
  return y;
}
template <class T>
Whole<T> dynamic_update(Whole<T> x, const Whole<T>& update, const Extents& start) {
  Index next = 0;
  for_each_index(update.extents, [&](const Extents& at) {
    Extents to = at;
    for (int d = 0; d < to.size(); ++d)
      to[d] += std::max<Index>(0, std::min(start[d], x.extents[d] - update.extents[d]));
    x[dot(to, detail::row_major_strides(x.extents))] = update[next++];
  });
  return x;
}

// ---- local work in a dry run; at(values, i) is checked access
// ------------------------------------------------------------

/// Calls visit(offset of the tuple, offset in the table or -1 where it is elsewhere or -2 where it
/// is dropped).
template <class Values, class At, class Visit>
void for_each_tuple(const detail::LocalIndexed& work, const std::vector<Values*>& indices,
                    const At& at, const Visit& visit) {
  for_each_index(work.tuples, [&](const Extents& tuple) {
    Index table = dot(tuple, work.in_table);
    bool lost = false, elsewhere = false;
    for (int k = 0; k < work.indices.size(); ++k) {
      const detail::LocalIndex& index = work.indices[k];
      Index i = placed(at(*indices[static_cast<std::size_t>(index.tensor)],
                          index.offset + dot(tuple, index.strides)),
                       index.extent, work.out_of_range);
      lost = lost || i < 0;
      if (index.window >= 0) i += tuple[index.window];
      elsewhere = elsewhere || i < index.held.lo || i >= index.held.hi;
      table += (i - index.held.lo) * index.step;
    }
    visit(dot(tuple, work.strides), lost ? -2 : elsewhere ? -1 : table);
  });
}

template <class Values, class At>
void take_block(const detail::LocalIndexed& work, Reduction kind, Values& table,
                const std::vector<Values*>& indices, Values& out, const At& at) {
  using Value = typename Values::value_type;
  for_each_tuple(work, indices, at, [&](Index to, Index from) {
    for_each_index(work.row, [&](const Extents& row) {
      at(out, to + dot(row, work.row_strides)) =
          from == -2   ? Value{}
          : from == -1 ? start_of<Value>(kind)
                       : at(table, from + dot(row, work.row_in_table));
    });
  });
}

template <class Values, class At>
void scatter_block(const detail::LocalScatter& work, Reduction kind, Values* operand,
                   const std::vector<Values*>& indices, Values& updates, Values& out,
                   const At& at) {
  using Value = typename Values::value_type;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Value identity = start_of<Value>(kind);
    out[i] = work.start == detail::ScatterStart::operand ? at(*operand, static_cast<Index>(i))
                                                         : identity;
  }
  if (!work.updates) return;
  for_each_tuple(work.rows, indices, at, [&](Index from, Index bin) {
    if (bin < 0) return;
    Index to = 0;
    for (int d = work.table.size() - 1; d >= 0; --d) {
      to += bin % work.table[d] * work.table_strides[d];
      bin /= work.table[d];
    }
    for_each_index(work.rows.row, [&](const Extents& row) {
      Value& value = at(out, to + dot(row, work.rows.row_in_table));
      value = joined(kind, value, at(updates, from + dot(row, work.rows.row_strides)));
    });
  });
}

template <class Values, class At>
void one_hot_block(const detail::LocalOneHot& work, Values& indices, Values& out, const At& at) {
  Index next = 0;
  for_each_index(work.extents, [&](const Extents& i) {
    at(out, next++) = at(indices, dot(i, work.strides)) == work.first + i[work.along];
  });
}

}  // namespace support
