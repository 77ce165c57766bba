// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Printing through fmt: plans, programs, and tensors (gathered first). The only header that
/// includes fmt.
///
///     fmt::print("{}", with_names(p, mesh));   fmt::print("{}", program);   print(x);
///
/// Laws: printing a plan communicates nothing; print(x) gathers, and prints once, on process 0.
#include <cstdio>
#include <string>
#include <type_traits>

#if defined(__NVCC__) && !defined(FMT_USE_CONSTEXPR)
#define FMT_USE_CONSTEXPR \
  1  // fmt 9.1 turns half of its constexpr off for nvcc, and nvcc 13.0 then refuses the other half
#endif
#include <fmt/format.h>

#include <tessera/op/gather.hpp>
#include <tessera/op/visualize.hpp>
#include <tessera/plan/explain.hpp>

namespace tessera {

/// A plan together with the names of its mesh's axes.
struct NamedPlan {
  Plan plan;
  AxisNames names;
};
template <class M> NamedPlan with_names(const Plan& plan, const ProcessMesh<M>&) {
  return {plan, M::names()};
}
template <class M> NamedPlan with_names(const Plan& plan) { return {plan, M::names()}; }

namespace detail {
template <class T> std::string element_text(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    char text[32];
    std::snprintf(text, sizeof text, "%.5g", static_cast<double>(x));
    return text;
  } else {
    return std::to_string(x);
  }
}
/// Appends dimensions d... of the tensor as nested brackets; long dimensions show their first and
/// last three entries.
template <class T>
void append_nested(std::string& text, const HostTensor<T>& t, int d, Index offset,
                   Index stride_total) {
  if (d == t.extents.size()) {
    text += element_text(t.values[static_cast<std::size_t>(offset)]);
    return;
  }
  const Index n = t.extents[d];
  const Index stride = n > 0 ? stride_total / n : 0;
  text += "[";
  for (Index i = 0; i < n; ++i) {
    if (i > 0)
      text += d + 1 == t.extents.size() ? ", "
                                        : ",\n" + std::string(static_cast<std::size_t>(d) + 1, ' ');
    if (n > 8 && i == 3) {
      text += "...";
      i = n - 4;
      continue;
    }
    append_nested(text, t, d + 1, offset + i * stride, stride);
  }
  text += "]";
}
}  // namespace detail

/// Returns the elements as nested brackets, long dimensions cut in the middle.
template <class T> std::string to_string(const HostTensor<T>& t) {
  std::string text;
  detail::append_nested(text, t, 0, 0, volume(t.extents));
  return text;
}

/// Prints the tensor's type, extents, spec and elements, once. Collective over the mesh.
/// Communication: gather(x).
template <TypedTensor A> void print(const A& x, Where where = Where::here()) {
  std::string text = to_string(x.desc(), x.core().mesh()->names());
  text += x.core().dry() ? " (dry)" : "\n" + to_string(gather(x, where));
  if (x.core().mesh()->process() != 0) return;
  std::fputs((text + "\n").c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace tessera

template <> struct fmt::formatter<tessera::NamedPlan> : fmt::formatter<std::string> {
  template <class Context> auto format(const tessera::NamedPlan& p, Context& context) const {
    return fmt::formatter<std::string>::format(tessera::explain(p.plan, p.names), context);
  }
};
template <> struct fmt::formatter<tessera::Program> : fmt::formatter<std::string> {
  template <class Context> auto format(const tessera::Program& p, Context& context) const {
    return fmt::formatter<std::string>::format(tessera::explain(p), context);
  }
};
template <class T> struct fmt::formatter<tessera::HostTensor<T>> : fmt::formatter<std::string> {
  template <class Context> auto format(const tessera::HostTensor<T>& t, Context& context) const {
    return fmt::formatter<std::string>::format(tessera::to_string(t), context);
  }
};
