// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The gradient of pooling by a maximum: each window's source goes to the element that the window
/// selects, and each element sums its sources. And the gradient of that: each window takes the
/// value at the element that it selects. base/local_window.hpp describes the windows.
///
///     // {1, 4, 3, 2} under windows of two side by side, sources {10, 20}: {0, 10, 20, 0}
///     const detail::LocalSelectScatter pairs{.input = {4}, .source = {2}, .result = {4}, .first = {0},
///                                    .windows = {{.size = 2, .stride = 2}}};
///     detail::select_and_scatter(DType::f32, true, pairs, in, source, scratch, result);
///
/// Laws: a window selects the first, in row-major order, of its equally great elements, NaN before
/// all others (as in kernel/reduce.hpp's maxima), and never padding; sources are summed in
/// row-major order of their windows, so that the bits do not depend on which results are computed
/// together; the sum of all results is the sum of the sources, if the result covers the input and
/// all windows contain an element.
#include <string>

#include <tessera/base/dtype.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/local_window.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/elements.hpp>
#include <tessera/kernel/window/detail/window_rows.hpp>

namespace tessera::detail {

/// What a window selects so far: the number of a tap or of an element, or -1.
template <class T> struct SelectedOf {
  bool greatest;
  ComputeType<T> value{};
  Index at = -1;

  KOKKOS_FUNCTION void take(T element, Index here) {
    const auto x = static_cast<ComputeType<T>>(element);
    const bool beyond = greatest ? x > value : x < value;
    const bool rises = value == value && (beyond || x != x);
    if (at >= 0 && !rises) return;
    value = x;
    at = here;
  }
};

/// Finds the tap that each window selects, or -1; or, without `selected`, the element of `values`
/// there, or 0.
template <class T> struct SelectTaps {
  WindowRows shape;
  bool greatest;
  const T* in;
  const T* values;
  Index* selected;
  T* out;

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      if constexpr (kernels_on_host) {
        piece(i / shape.pieces, i % shape.pieces * WindowRows::most);
      } else {
        SelectedOf<T> best{greatest};
        ResultTaps walk(shape, i);
        for (Index tap, from; walk.next(tap, from);) best.take(in[from], gathers() ? from : tap);
        write(i, best.at);
      }
    }
  }
  void piece(Index row, Index lo) const {
    const Index hi = min_of(shape.width(), lo + WindowRows::most);
    SelectedOf<T> best[WindowRows::most];
    for (Index j = 0; j < hi - lo; ++j) best[j] = {greatest};
    RowTaps walk(shape, row, lo, hi);
    for (RowTap t; walk.next(t);)
      for (Index j = 0; j < t.count; ++j) {
        const Index from = t.from + j * t.hop;
        best[t.to + j * t.step].take(in[from], gathers() ? from : t.tap);
      }
    for (Index j = 0; j < hi - lo; ++j) write(row * shape.width() + lo + j, best[j].at);
  }

 private:
  KOKKOS_FUNCTION bool gathers() const { return selected == nullptr; }
  KOKKOS_FUNCTION void write(Index i, Index at) const {
    if (gathers())
      out[i] = at < 0 ? T{} : values[at];
    else
      selected[i] = at;
  }
};

/// Sums, for each element, the sources of the windows that selected it: these are windows over the
/// sources, whose taps run in the other direction.
template <class T> struct SumSelected {
  using Total = TotalType<T>;
  using F = Fold<Reduction::sum, Total>;
  WindowRows shape;
  const Index* selected;
  const T* source;
  T* out;

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    const Index last = shape.taps - 1;
    for (Index i = begin; i < end; ++i) {
      if constexpr (kernels_on_host) {
        piece(i / shape.pieces, i % shape.pieces * WindowRows::most);
      } else {
        Total total{};
        ResultTaps walk(shape, i);
        for (Index tap, from; walk.next(tap, from);)
          if (selected[from] == last - tap)
            total = F::join(total, static_cast<Total>(source[from]));
        out[i] = static_cast<T>(total);
      }
    }
  }
  void piece(Index row, Index lo) const {
    const Index hi = min_of(shape.width(), lo + WindowRows::most);
    const Index last = shape.taps - 1;
    Total total[WindowRows::most];
    for (Index j = 0; j < hi - lo; ++j) total[j] = Total{};
    RowTaps walk(shape, row, lo, hi);
    for (RowTap t; walk.next(t);)
      for (Index j = 0; j < t.count; ++j) {
        const Index from = t.from + j * t.hop;
        Total& sum = total[t.to + j * t.step];
        if (selected[from] == last - t.tap) sum = F::join(sum, static_cast<Total>(source[from]));
      }
    T* to = out + row * shape.width() + lo;
    for (Index j = 0; j < hi - lo; ++j) to[j] = static_cast<T>(total[j]);
  }
};

template <class T>
void select_scatter_elements(bool greatest, const LocalSelectScatter& work, const void* input,
                             const void* source, void* scratch, void* result) {
  // Source o at tap t reads element i where o * stride - low + t * dilation == (first + i) * base;
  // with tap size-1-t in place of t, that is a window over the sources.
  WindowList turned;
  for (int d = 0; d < work.windows.size(); ++d) {
    const Window& w = work.windows[d];
    turned.push_back(
        {.size = w.size,
         .stride = w.base_dilation,
         .low = (w.size - 1) * w.window_dilation - w.low - work.first[d] * w.base_dilation,
         .base_dilation = w.stride,
         .window_dilation = w.window_dilation});
  }
  const WindowRows reads =
      window_rows(work.input, row_major_strides(work.input), work.source, work.windows);
  const WindowRows sums =
      window_rows(work.source, row_major_strides(work.source), work.result, turned);
  auto* const selected = static_cast<Index*>(scratch);
  launch("tessera::select_scatter", reads.indices(), reads.grain(),
         SelectTaps<T>{reads, greatest, static_cast<const T*>(input), nullptr, selected, nullptr});
  launch("tessera::select_scatter", sums.indices(), sums.grain(),
         SumSelected<T>{sums, selected, static_cast<const T*>(source), static_cast<T*>(result)});
}

template <class T>
void select_gather_elements(bool greatest, const LocalReduceWindow& work, const void* input,
                            const void* values, void* result) {
  const WindowRows reads = window_rows(work.input, work.input_strides, work.result, work.windows);
  launch("tessera::select_gather", reads.indices(), reads.grain(),
         SelectTaps<T>{reads, greatest, static_cast<const T*>(input), static_cast<const T*>(values),
                       nullptr, static_cast<T*>(result)});
}

struct SelectScatterKernels {
  void (*scatter)(bool greatest, const LocalSelectScatter& work, const void* input,
                  const void* source, void* scratch, void* result);
  void (*gather)(bool greatest, const LocalReduceWindow& work, const void* input,
                 const void* values, void* result);
  template <class T> static constexpr bool has = OrderedElement<T>;
  template <class T> static constexpr SelectScatterKernels of() {
    return {&select_scatter_elements<T>, &select_gather_elements<T>};
  }
};

inline void require_ordered(DType type) {
  if (!is_ordered(type))
    throw UsageError("elements of " + std::string(name_of(type)) +
                     " have no greatest and no least, by which select_and_scatter selects; real "
                     "numbers and integers do");
}

/// Sums sources at the elements that their windows select, by the greatest or else the least; the
/// input must hold all elements of the windows that reach the result. `scratch` has eight bytes for
/// each source. Communication: none. Throws UsageError when elements of `type` have no order.
inline void select_and_scatter(DType type, bool greatest, const LocalSelectScatter& work,
                               const void* input, const void* source, void* scratch, void* result) {
  require_ordered(type);
  kernels_of<SelectScatterKernels>(type).scatter(greatest, work, input, source, scratch, result);
}
/// Takes for each window the element of `values`, which lie as the input, where it selects; 0 for a
/// window of padding alone. Communication: none. Throws as select_and_scatter.
inline void select_and_gather(DType type, bool greatest, const LocalReduceWindow& work,
                              const void* input, const void* values, void* result) {
  require_ordered(type);
  kernels_of<SelectScatterKernels>(type).gather(greatest, work, input, values, result);
}
}  // namespace tessera::detail
