// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Printing through fmt: tensors, and every public value. The only header that includes fmt; the
/// texts are show/tensor_text.hpp's and program/explain.hpp's.
///
///     fmt::print("{}", x);       // type, extents, spec, mesh, this process's box, a few elements
///     fmt::print("{:s}\n{:b}", x, x);                   // without elements; all of the block
///     fmt::print("{}", with_names(p, mesh));   fmt::print("{}", program);   print(x);
///
/// Laws: formatting communicates nothing, so that one process alone may do it; print(x) brings x to
/// the host, and prints it once, on process 0. Values that know axes by number print axis0, axis1,
/// ... unless they are given with_names; plans made of types know their names.
#include <cstdio>
#include <string>
#include <type_traits>

#if defined(__NVCC__) && !defined(FMT_USE_CONSTEXPR)
#define FMT_USE_CONSTEXPR \
  1  // fmt 9.1 turns half of its constexpr off for nvcc, and nvcc 13.0 then refuses the other half
#endif
#include <fmt/format.h>

#include <tessera/op/to_host.hpp>
#include <tessera/program/like.hpp>
#include <tessera/show/tensor_text.hpp>
#include <tessera/show/visualize.hpp>

namespace tessera {

namespace detail {
/// A plan together with the names of its mesh's axes.
struct NamedPlan {
  Plan plan;
  AxisNames names;
};
/// A value together with the names of its mesh's axes: a Sharding, a TensorDesc, a MeshShape.
template <class T> struct WithNames {
  T value;
  AxisNames names;
};
}  // namespace detail

template <class M> detail::NamedPlan with_names(const Plan& plan, const ProcessMesh<M>&) {
  return {plan, M::names()};
}
template <class M> detail::NamedPlan with_names(const Plan& plan) { return {plan, M::names()}; }

template <class M> detail::WithNames<Sharding> with_names(const Sharding& s) {
  return {s, M::names()};
}
template <class M> detail::WithNames<TensorDesc> with_names(const TensorDesc& d) {
  return {d, M::names()};
}
template <class M> detail::WithNames<MeshShape> with_names(const MeshShape& m) {
  return {m, M::names()};
}

/// Prints the tensor's type, extents, spec and elements, once. Collective over the mesh.
/// Communication: to_host(x).
template <TypedTensor A> void print(const A& x, Where where = Where::here()) {
  std::string text = to_string(x.desc(), x.core().mesh()->names());
  text += x.core().dry() ? " (dry)" : "\n" + to_string(to_host(x, where));
  if (x.core().mesh()->process() != 0) return;
  std::fputs((text + "\n").c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace tessera

template <> struct fmt::formatter<tessera::detail::NamedPlan> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const tessera::detail::NamedPlan& p, Context& context) const {
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

namespace tessera::detail {
/// The text of a value.
inline std::string text_of(const Plan& p) { return explain(p, {}); }
template <class M> std::string text_of(const TypedPlan<M>& p) { return explain(p); }
inline std::string text_of(const Box& b) { return to_string(b); }
inline std::string text_of(const Interval& i) {
  return "[" + std::to_string(i.lo) + "," + std::to_string(i.hi) + ")";
}
inline std::string text_of(const Extents& e) { return to_string(e); }
inline std::string text_of(const Sharding& s) { return to_string(s, {}); }
inline std::string text_of(const TensorDesc& d) { return to_string(d, {}); }
inline std::string text_of(const MeshShape& m) { return to_string(m, {}); }
inline std::string text_of(const Machine& m) { return to_string(m); }
inline std::string text_of(DType type) { return std::string(name_of(type)); }
inline std::string text_of(Reduction kind) { return std::string(name_of(kind)); }
inline std::string text_of(Collective kind) { return std::string(name_of(kind)); }
template <class T> std::string text_of(const WithNames<T>& n) {
  return to_string(n.value, n.names);
}
template <class M> std::string text_of(const MeshSizes<M>& m) {
  return to_string(m.shape, M::names());
}
template <class M> std::string text_of(const ProcessMesh<M>& m) {
  return to_string(m.shape(), M::names()) + ", process " + std::to_string(m.process()) +
         (m.dry() ? " (dry)" : "");
}

/// A formatter by text_of, with the options that strings have: "{:>20}".
template <class T> struct TextFormatter : fmt::formatter<std::string> {
  template <class Context> auto format(const T& value, Context& context) const {
    return fmt::formatter<std::string>::format(text_of(value), context);
  }
};
/// "{}": a few elements of this process's block; "{:s}": none; "{:b}": all of them.
template <class Tensor> struct TensorFormatter {
  Shown shown = Shown::some;
  template <class Parse> constexpr auto parse(Parse& context) {
    auto at = context.begin();
    if (at != context.end() && (*at == 's' || *at == 'b'))
      shown = *at++ == 's' ? Shown::description : Shown::block;
    if (at != context.end() && *at != '}')
      throw fmt::format_error("a tensor is formatted as {}, {:s} or {:b}");
    return at;
  }
  template <class Context> auto format(const Tensor& x, Context& context) const {
    return fmt::format_to(context.out(), "{}", to_string(x.core(), shown));
  }
};
}  // namespace tessera::detail

template <> struct fmt::formatter<tessera::Plan> : tessera::detail::TextFormatter<tessera::Plan> {};
template <class M>
struct fmt::formatter<tessera::TypedPlan<M>>
    : tessera::detail::TextFormatter<tessera::TypedPlan<M>> {};
template <> struct fmt::formatter<tessera::Box> : tessera::detail::TextFormatter<tessera::Box> {};
template <>
struct fmt::formatter<tessera::Interval> : tessera::detail::TextFormatter<tessera::Interval> {};
template <>
struct fmt::formatter<tessera::Extents> : tessera::detail::TextFormatter<tessera::Extents> {};
template <>
struct fmt::formatter<tessera::Sharding> : tessera::detail::TextFormatter<tessera::Sharding> {};
template <>
struct fmt::formatter<tessera::TensorDesc> : tessera::detail::TextFormatter<tessera::TensorDesc> {};
template <>
struct fmt::formatter<tessera::MeshShape> : tessera::detail::TextFormatter<tessera::MeshShape> {};
template <>
struct fmt::formatter<tessera::Machine> : tessera::detail::TextFormatter<tessera::Machine> {};
template <>
struct fmt::formatter<tessera::DType> : tessera::detail::TextFormatter<tessera::DType> {};
template <>
struct fmt::formatter<tessera::Reduction> : tessera::detail::TextFormatter<tessera::Reduction> {};
template <>
struct fmt::formatter<tessera::Collective> : tessera::detail::TextFormatter<tessera::Collective> {};
template <class T>
struct fmt::formatter<tessera::detail::WithNames<T>>
    : tessera::detail::TextFormatter<tessera::detail::WithNames<T>> {};
template <class T>
struct fmt::formatter<tessera::MeshSizes<T>>
    : tessera::detail::TextFormatter<tessera::MeshSizes<T>> {};
template <class T>
struct fmt::formatter<tessera::ProcessMesh<T>>
    : tessera::detail::TextFormatter<tessera::ProcessMesh<T>> {};
template <class T, class M, class S>
struct fmt::formatter<tessera::ShardedTensor<T, M, S>>
    : tessera::detail::TensorFormatter<tessera::ShardedTensor<T, M, S>> {};
template <>
struct fmt::formatter<tessera::DynamicTensor>
    : tessera::detail::TensorFormatter<tessera::DynamicTensor> {};
