// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Which operator a plan is of. An operator that others ask for by name has its kind here; the kind
/// of any other stands in its own struct (plan/op/).
///
///     name_of(OperatorKind::to_root) == "to root"
///
/// Laws: kinds are equal where they are made of the same name object; no two have the same text.
#include <cstdint>
#include <string_view>

#include <tessera/base/digest.hpp>

namespace tessera {

namespace detail {
/// The name of a kind, as plans print it.
struct OperatorName {
  std::string_view text;
  std::uint64_t number;                                                            ///< in digests
  constexpr OperatorName(const char* name) : text(name), number(stirred(text)) {}  // NOLINT: a name
};
}  // namespace detail

/// The kinds that others ask for by name.
#define TESSERA_OPERATOR_KINDS(KIND)                 \
  KIND(reshard, "reshard")                           \
  KIND(einsum, "einsum")                             \
  KIND(reduce, "reduce")                             \
  KIND(map, "map")                                   \
  KIND(transpose, "transpose")                       \
  KIND(arg, "arg")                                   \
  KIND(scan, "scan")                                 \
  KIND(sort, "sort")                                 \
  KIND(top_k, "top-k")                               \
  KIND(from_root, "from root")                       \
  KIND(to_root, "to root")                           \
  KIND(from_boxes, "from boxes")                     \
  KIND(to_boxes, "to boxes")                         \
  KIND(slice, "slice")                               \
  KIND(pad, "pad")                                   \
  KIND(reverse, "reverse")                           \
  KIND(roll, "roll")                                 \
  KIND(shift, "shift")                               \
  KIND(concatenate, "concatenate")                   \
  KIND(update, "update")                             \
  KIND(reshape, "reshape")                           \
  KIND(halo, "halo exchange")                        \
  KIND(halo_adjoint, "halo adjoint")                 \
  KIND(convolve, "convolve")                         \
  KIND(reduce_window, "reduce-window")               \
  KIND(select_and_scatter, "select and scatter")     \
  KIND(select_and_gather, "select and gather")       \
  KIND(take, "take")                                 \
  KIND(scatter, "scatter")                           \
  KIND(one_hot, "one-hot")                           \
  KIND(dynamic_slice, "dynamic slice")               \
  KIND(dynamic_update_slice, "dynamic update slice") \
  KIND(create, "create")                             \
  KIND(broadcast, "broadcast")

class OperatorKind {
 public:
  constexpr OperatorKind(const detail::OperatorName& name) : named(&name) {}  // NOLINT: a name
#define TESSERA_KIND(kind, text) static const OperatorKind kind;
  TESSERA_OPERATOR_KINDS(TESSERA_KIND)
#undef TESSERA_KIND
  constexpr bool operator==(const OperatorKind& other) const {
    return detail::same_object(named, named->number, other.named, other.named->number);
  }

  const detail::OperatorName* named;  ///< public, so that a kind may be a template's argument
};
/// Returns the name as plans print it: "einsum".
constexpr std::string_view name_of(OperatorKind kind) { return kind.named->text; }

namespace detail {
constexpr void add_to(Digest& digest, OperatorKind kind) { digest.add(kind.named->number); }

/// The names of the kinds above.
struct OperatorNames {
#define TESSERA_KIND(kind, text) static constexpr OperatorName kind{text};
  TESSERA_OPERATOR_KINDS(TESSERA_KIND)
#undef TESSERA_KIND
#define TESSERA_KIND(kind, text) &kind,
  static constexpr const OperatorName* all[] = {TESSERA_OPERATOR_KINDS(TESSERA_KIND)};
#undef TESSERA_KIND
};
}  // namespace detail

#define TESSERA_KIND(kind, text) \
  inline constexpr OperatorKind OperatorKind::kind = detail::OperatorNames::kind;
TESSERA_OPERATOR_KINDS(TESSERA_KIND)
#undef TESSERA_KIND
#undef TESSERA_OPERATOR_KINDS

}  // namespace tessera
