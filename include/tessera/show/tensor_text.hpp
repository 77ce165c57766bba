// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Text of values: elements, whole host tensors, and what one process sees of a tensor. The fmt
/// formatters that call these are show/format.hpp's.
///
///     to_string(x.core(), detail::Shown::some)
///     // float 8x6 P<data,model> on data=2 x model=2, process 1 has [0,4) x [3,6): [3, 4, 5, ...]
///
/// Laws: the text of a tensor needs no communication: one process alone may ask for it.
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/op/to_host.hpp>
#include <tessera/plan/check/check_boxes.hpp>
#include <tessera/program/explain.hpp>
#include <tessera/run/copy_block.hpp>

namespace tessera {
namespace detail {

/// How much of a tensor its text shows: its description, a few elements of the block, all of it.
enum class Shown : std::uint8_t { description, some, block };

template <class T> std::string element_text(T x) {
  if constexpr (RealElement<T>) {
    char text[32];
    std::snprintf(text, sizeof text, "%.5g", static_cast<double>(x));
    return text;
  } else if constexpr (ComplexElement<T>) {
    const std::string imaginary = element_text(x.im);
    return element_text(x.re) + (imaginary[0] == '-' ? "" : "+") + imaginary + "i";
  } else if constexpr (std::is_same_v<T, bool>) {
    return x ? "true" : "false";
  } else {
    return std::to_string(x);
  }
}
/// Appends dimensions d... of a row-major box as nested brackets; long dimensions show their first
/// and last three entries when `cut`. `at(i)` is element i.
template <class At>
void append_nested(std::string& text, const Extents& extents, const At& at, int d, Index offset,
                   Index stride_total, bool cut) {
  if (d == extents.size()) {
    text += element_text(at(offset));
    return;
  }
  const Index n = extents[d];
  const Index stride = n > 0 ? stride_total / n : 0;
  text += "[";
  for (Index i = 0; i < n; ++i) {
    if (i > 0)
      text += d + 1 == extents.size() ? ", "
                                      : ",\n" + std::string(static_cast<std::size_t>(d) + 1, ' ');
    if (cut && n > 8 && i == 3) {
      text += "...";
      i = n - 4;
      continue;
    }
    append_nested(text, extents, at, d + 1, offset + i * stride, stride, cut);
  }
  text += "]";
}

/// The first elements of this process's block in a row, or all of it in nested brackets.
template <class T> std::string block_text(const TensorCore& x, Shown shown) {
  constexpr Index few = 6;
  const Index size = x.local_size();
  const Index count = shown == Shown::block ? size : min_of(size, few);
  std::vector<std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>> values(
      static_cast<std::size_t>(count));
  copy_to_host(values.data(), by_itself(x).read(), count * static_cast<Index>(sizeof(T)));
  const auto at = [&](Index i) { return static_cast<T>(values[static_cast<std::size_t>(i)]); };
  std::string text;
  if (shown == Shown::block) {
    append_nested(text, x.box().extents(), at, 0, 0, size, false);
    return text;
  }
  text = "[";
  for (Index i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + element_text(at(i));
  return text + (count < size ? ", ...]" : "]");
}
}  // namespace detail

/// Returns the text of a tensor as this process sees it. Communication: none.
template <int = dtypes>  // compiled where it is used
std::string to_string(const TensorCore& x, detail::Shown shown = detail::Shown::some) {
  if (!x.defined()) return "an empty tensor";
  const MeshCore& mesh = *x.mesh();
  std::string text = to_string(x.desc(), mesh.names()) + " on " + mesh.to_string();
  if (shown == detail::Shown::description) return text;
  text += ", process " + std::to_string(mesh.process()) + " has " + to_string(x.box());
  if (x.dry()) return text + " (dry)";
  text += shown == detail::Shown::block ? ":\n" : ": ";
  return text + detail::with_type(x.type(), [&](auto zero) {
           return detail::block_text<decltype(zero)>(x, shown);
         });
}

/// Returns the elements as nested brackets, long dimensions cut in the middle.
template <class T> std::string to_string(const HostTensor<T>& t) {
  std::string text;
  detail::append_nested(
      text, t.extents,
      [&](Index i) { return static_cast<T>(t.values[static_cast<std::size_t>(i)]); }, 0, 0,
      volume(t.extents), true);
  return text;
}

/// Returns "1 us a message, 5.1 GB/s ..." : a machine model in everyday units.
inline std::string to_string(const Machine& m) {
  const auto rate = [](std::int64_t ps_per_kib) {
    return ps_per_kib <= 0 ? std::string("at no cost")
                           : detail::bytes_text(max_int64 / 1'000'000 < ps_per_kib
                                                    ? 0
                                                    : 1024 * (1'000'000'000'000 / ps_per_kib)) +
                                 "/s";
  };
  std::string text = "message " + detail::time_text(m.message_ps) + ", payload " +
                     rate(m.payload_ps_per_kib) + ", copy " + rate(m.copy_ps_per_kib) +
                     ", 1000 flop " + detail::time_text(m.kiloflop_ps_f32) + " in single and " +
                     detail::time_text(m.kiloflop_ps_f64) + " in double precision";
  if (m.processes_per_node > 0)
    text += "; between nodes of " + std::to_string(m.processes_per_node) + " processes: message " +
            detail::time_text(m.network_message_ps) + ", payload " +
            rate(m.network_payload_ps_per_kib);
  if (m.all_to_all_percent > 100)
    text += "; all-to-alls " + std::to_string(m.all_to_all_percent) + " % of a transfer";
  return text;
}
}  // namespace tessera
