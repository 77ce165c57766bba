// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Takes rows of a table at indices: the local part of a take; other processes may have other rows.
/// Only the size of an element matters, not its type.
///
///     detail::take(DType::f32, work, table, indices, types, Reduction::sum, out);
///
/// Laws: rows in the table's other parts are written as the identity of a join by `missing`: -0 for
/// a sum, so that sums of parts have the bits of the element (except the payload of a NaN).
#include <cstring>
#include <limits>

#include <tessera/base/local_index.hpp>
#include <tessera/base/reduction.hpp>
#include <tessera/kernel/copy/copy_loops.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/device/packs.hpp>
#include <tessera/kernel/elements.hpp>
#include <tessera/kernel/indexed/detail/index_box.hpp>
#include <tessera/kernel/prefetch.hpp>

namespace tessera::detail {

/// The bytes of one element of any type.
struct ElementBytes {
  alignas(16) unsigned char bytes[16]{};
  template <class Word> Word as() const {
    Word word;
    std::memcpy(&word, bytes, sizeof(Word));
    return word;
  }
};

/// Returns the identity of a join of this kind; for a float sum, -0.
inline ElementBytes neutral_element(DType type, Reduction reduction) {
  ElementBytes neutral;
  with_type(type, [&](auto element) {
    using T = decltype(element);
    with_reduction<T>(reduction, [&](auto r) {
      using F = Fold<decltype(r)::value, Stored<T>>;
      Stored<T> value = F::start();
      if constexpr (decltype(r)::value == Reduction::sum && !IntegerElement<T>) value = -value;
      std::memcpy(neutral.bytes, &value, sizeof(value));
    });
  });
  return neutral;
}

template <class W> struct TakeRows {
  IndexBox box;
  RowBox row;
  bool rows_outside;  // the inner loop is over tuples, not over a row's elements
  Index pieces;       // of a row, on a device
  W missing;
  const W* table;
  W* out;

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    if constexpr (!kernels_on_host) {
      for (Index i = begin; i < end; ++i)
        element(rows_outside ? i % box.size : i / row.size,
                rows_outside ? i / box.size : i % row.size);
    } else if (rows_outside) {
      row.visit(begin, end, [&](Index, Index to, Index from) { column(to, from); });
    } else if (row.size == 1 && box.rank > 0 && box.count == 1 && box.one[0].window < 0) {
      if (box.one[0].wide)
        single_elements<std::int64_t>(begin, end);
      else
        single_elements<std::int32_t>(begin, end);
    } else {
      Index at[max_dims], ahead[max_dims];
      const bool far = row.contiguous();
      constexpr Index rows_ahead = 2;
      box.start(begin, at);
      if (begin + rows_ahead < end) box.start(begin + rows_ahead, ahead);
      for (Index i = begin; i < end; ++i, box.next(at)) {
        if (far && i + rows_ahead < end) {
          Index from = 0;
          if (box.find(ahead, from) == IndexBox::here)
            prefetch_row(table + from, row.size * static_cast<Index>(sizeof(W)));
          box.next(ahead);
        }
        whole_row(at);
      }
    }
  }

 private:
  KOKKOS_FUNCTION void put(IndexBox::Place place, Index to, Index from) const {
    out[to] = place == IndexBox::here ? table[from] : place == IndexBox::dropped ? W{} : missing;
  }
  KOKKOS_FUNCTION void element(Index tuple, Index j) const {
    Index at[max_dims], from = 0;
    box.start(tuple, at);
    const IndexBox::Place place = box.find(at, from);
    row.visit(j, j + 1, [&](Index, Index r, Index t) { put(place, box.offset(at) + r, from + t); });
  }
  void column(Index to, Index from) const {
    Index at[max_dims], offset = 0;
    box.start(0, at);
    for (Index i = 0; i < box.size; ++i, box.next(at)) {
      const IndexBox::Place place = box.find(at, offset);
      put(place, to + box.offset(at), from + offset);
    }
  }
  /// Rows of one element, by one index of type I: along the last dimension of the tuples without
  /// looking at the others.
  template <class I> void single_elements(Index begin, Index end) const {
    const IndexBox::One& one = box.one[0];
    const int last = box.rank - 1;
    const Index to_step = box.stride[last], from_step = box.in_table[last];
    const Index index_step = one.stride[last], top = one.extent - 1;
    Index at[max_dims];
    box.start(begin, at);
    for (Index i = begin; i < end;) {
      const Index run = min_of(end - i, box.extent[last] - at[last]);
      const I* index = static_cast<const I*>(one.data) + box.dot(at, one.stride);
      W* to = out + box.offset(at);
      Index from = box.dot(at, box.in_table) - one.lo * one.step;
      for (Index j = 0; j < run; ++j, index += index_step, to += to_step, from += from_step) {
        Index k = *index;
        if (k < 0 || k > top) {
          if (!box.clamp || top < 0) {
            *to = W{};
            continue;
          }
          k = k < 0 ? 0 : top;
        }
        *to = k < one.lo || k >= one.hi ? missing : table[from + k * one.step];
      }
      i += run;
      at[last] += run - 1;
      box.next(at);
    }
  }
  void whole_row(const Index* at) const {
    Index from = 0;
    const IndexBox::Place place = box.find(at, from);
    W* to = out + box.offset(at);
    if (place == IndexBox::here && row.contiguous()) {
      std::memcpy(static_cast<void*>(to), table + from,
                  static_cast<std::size_t>(row.size) * sizeof(W));
    } else if (place == IndexBox::here) {
      row.visit(0, row.size, [&](Index, Index r, Index t) { to[r] = table[from + t]; });
    } else {
      const W value = place == IndexBox::dropped ? W{} : missing;
      row.visit(0, row.size, [&](Index, Index r, Index) { to[r] = value; });
    }
  }
};

/// On a device: an index is a pack of a row whose elements follow each other.
template <class W> struct TakePacks {
  static constexpr int width = pack_size<W>;
  IndexBox box;
  Index size, packs;  // elements and packs of a row
  W missing;
  const W* table;
  W* out;

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      Index at[max_dims], from = 0;
      box.start(i / packs, at);
      const IndexBox::Place place = box.find(at, from);
      const Index first = i % packs * width, count = min_of(width, size - first);
      const W* const x = table + from + first;
      W* const y = out + box.offset(at) + first;
      if (place == IndexBox::here && count == width && is_packed<width>(x) && is_packed<width>(y))
        store_pack<width>(y, load_pack<width>(x));
      else
        for (Index j = 0; j < count; ++j)
          y[j] = place == IndexBox::here ? x[j] : place == IndexBox::dropped ? W{} : missing;
    }
  }
};

template <class W> struct FillWords {
  W* out;
  W value;
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) out[i] = value;
  }
};

/// For all elements of Bytes bytes.
template <int Bytes>
void take_elements(const LocalIndexed& work, const void* table, const void* const* indices,
                   const DType* types, const ElementBytes& missing, void* out) {
  using W = Word<Bytes>;
  TakeRows<W> kernel{
      index_box(work, indices, types), row_box(work),       false, 1, missing.as<W>(),
      static_cast<const W*>(table),    static_cast<W*>(out)};
  const RowBox& row = kernel.row;
  const bool along_row = row.rank == 0 || row.stride[row.rank - 1] == 1;
  kernel.rows_outside = !along_row && row.size > 1;
  if constexpr (!kernels_on_host) {
    if (row.contiguous() && row.size > 1) {
      const Index packs = ceil_div(row.size, TakePacks<W>::width);
      return launch(
          "tessera::take", kernel.box.size * packs, 1,
          TakePacks<W>{kernel.box, row.size, packs, kernel.missing, kernel.table, kernel.out});
    }
    launch("tessera::take", kernel.box.size * row.size, 1, kernel);
  } else {
    const Index units = kernel.rows_outside ? row.size : kernel.box.size;
    const Index each = kernel.rows_outside ? kernel.box.size : row.size;
    launch("tessera::take", each > 0 ? units : 0, max_of(1, 16384 / max_of(1, each)), kernel);
  }
}
template <int Bytes> void fill_words(void* out, Index n, const ElementBytes& value) {
  using W = Word<Bytes>;
  launch("tessera::fill", n, 32768, FillWords<W>{static_cast<W*>(out), value.as<W>()});
}

struct TakeKernels {
  void (*take)(const LocalIndexed& work, const void* table, const void* const* indices,
               const DType* types, const ElementBytes& missing, void* out);
  void (*fill)(void* out, Index n, const ElementBytes& value);
  template <class T> static constexpr bool has = true;
  template <class T> static constexpr TakeKernels of() {
    return {&take_elements<sizeof(T)>, &fill_words<sizeof(T)>};
  }
};

/// Writes, for every tuple of indices, the row of the table that it names. `types` says which
/// indices are int32 and which int64. Communication: none.
inline void take(DType type, const LocalIndexed& work, const void* table,
                 const void* const* indices, const DType* types, Reduction missing, void* out) {
  kernels_of<TakeKernels>(type).take(work, table, indices, types,
                                     detail::neutral_element(type, missing), out);
}

/// Writes the identity of a join by `reduction` to n elements. Communication: none.
inline void fill_neutral(DType type, Reduction reduction, void* out, Index n) {
  kernels_of<TakeKernels>(type).fill(out, n, detail::neutral_element(type, reduction));
}
}  // namespace tessera::detail
