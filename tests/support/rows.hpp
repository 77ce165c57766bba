// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The oracle of arg-max, running sums and sorts, in plain loops over whole tensors.
///
///     Whole<std::int64_t> i = support::arg(parse("ab->a"), Reduction::max, x);
#include <algorithm>
#include <cstring>
#include <limits>

#include "reference.hpp"

namespace support {

/// Returns where x has its largest or least element: row-major indices into the reduced dimensions;
/// the first of equal ones, the first NaN if there is one.
template <class T> Whole<std::int64_t> arg(const Terms& terms, Reduction kind, const Whole<T>& x) {
  Term labels = terms.operands[0];
  Extents kept_strides(x.extents.size(), 0), index_strides(x.extents.size(), 0), result;
  for (char label : terms.result) result.push_back(x.extents[labels.find(label)]);
  const Extents out_strides = detail::row_major_strides(result);
  Index step = 1;
  for (int d = labels.size() - 1; d >= 0; --d) {
    if (const int at = terms.result.find(labels[d]); at >= 0) {
      kept_strides[d] = out_strides[at];
    } else {
      index_strides[d] = step;
      step *= x.extents[d];
    }
  }
  Whole<std::int64_t> found(result, -1);
  std::vector<T> best(static_cast<std::size_t>(found.size()));
  Index i = 0;
  for_each_index(x.extents, [&](const Extents& at) {
    const T value = x[i++];
    const Index row = dot(at, kept_strides);
    T& top = best[static_cast<std::size_t>(row)];
    const bool better = kind == Reduction::max ? value > top : value < top;
    if (found[row] >= 0 && (top != top || !(better || value != value))) return;
    top = value;
    found[row] = dot(at, index_strides);
  });
  return found;
}

/// Returns the join by f of all elements up to each along one dimension.
template <class T, class F>
Whole<T> scan_by(int along, const F& f, ScanOptions options, const Whole<T>& x, T start) {
  Whole<T> y(x.extents);
  const Extents strides = detail::row_major_strides(x.extents);
  Extents lines = x.extents;
  lines[along] = x.extents[along] > 0 ? 1 : 0;
  for_each_index(lines, [&](const Extents& at) {
    T total = start;
    for (Index k = 0; k < x.extents[along]; ++k) {
      const Index i =
          dot(at, strides) + (options.reverse ? x.extents[along] - 1 - k : k) * strides[along];
      const T joined = f(total, x[i]);
      y[i] = options.exclusive ? total : joined;
      total = joined;
    }
  });
  return y;
}
/// Scans by a reduction.
template <class T>
Whole<T> scan(int along, Reduction kind, ScanOptions options, const Whole<T>& x, T start) {
  return scan_by(
      along,
      [kind](T a, T b) {
        return kind == Reduction::product ? static_cast<T>(a * b) : combine(kind, a, b);
      },
      options, x, start);
}
template <class T>
Whole<T> scan(int along, Reduction kind, ScanOptions options, const Whole<T>& x) {
  return scan(along, kind, options, x, identity_of<T>(kind));
}

/// Whether a float, zero too, has the sign of negative ones.
template <class T> bool sign_bit(T x) {
  unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, &x, sizeof(T));
  return (bytes[sizeof(T) - 1] & 0x80u) != 0;
}
/// Returns the positions of the elements along one dimension in order, the first `limit` of each
/// line: equal ones keep their order, NaNs come last. `alone`: as keys are sorted that no positions
/// go with, -0 before 0.
template <class T>
Whole<std::int64_t> order(int along, bool descending, Index limit, const Whole<T>& x,
                          bool alone = false) {
  Extents few = x.extents, lines = x.extents;
  few[along] = limit;
  lines[along] = 1;
  Whole<std::int64_t> y(few);
  const Extents strides = detail::row_major_strides(x.extents), to = detail::row_major_strides(few);
  for_each_index(lines, [&](const Extents& at) {
    const Index start = dot(at, strides);
    std::vector<Index> line;
    for (Index k = 0; k < x.extents[along]; ++k) line.push_back(k);
    std::stable_sort(line.begin(), line.end(), [&](Index i, Index j) {
      const T a = x[start + i * strides[along]], b = x[start + j * strides[along]];
      if (a != a || b != b) return a == a && b != b;
      if constexpr (std::numeric_limits<T>::is_iec559)
        if (alone && a == b) return sign_bit(descending ? b : a) && !sign_bit(descending ? a : b);
      return descending ? b < a : a < b;
    });
    for (Index r = 0; r < limit; ++r)
      y[dot(at, to) + r * to[along]] = line[static_cast<std::size_t>(r)];
  });
  return y;
}
/// Returns the elements of x at these positions along one dimension.
template <class T>
Whole<T> arrange(int along, const Whole<T>& x, const Whole<std::int64_t>& positions) {
  Whole<T> y(positions.extents);
  const Extents strides = detail::row_major_strides(x.extents);
  Index i = 0;
  for_each_index(positions.extents, [&](const Extents& at) {
    Extents from = at;
    from[along] = positions[i];
    y[i++] = x[dot(from, strides)];
  });
  return y;
}

}  // namespace support
