// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Programs of a hundred operators in which one process does something else at the n-th, as a user
/// would run them: nobody has asked for checks. Each must end with both calls, their places and
/// extents.
///
///     run({.way = Way::kind, .at = 57, .regular = 0, .odd = 3}, part);
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "mismatch/cases.hpp"

namespace mismatch {

/// The operators that one process may take for another; x and y are 24 x 6, split by rows.
struct Kind {
  std::string_view words;
  void (*call)(const ProcessMesh<Grid>& mesh, const DynamicTensor& x, const DynamicTensor& y);
};
inline const Sharding& split_second() {
  static const Sharding s = named_sharding<Grid, P<_, rows>>();
  return s;
}
inline const Kind kinds[] = {
    {"sum ij->j of float 24x6",
     [](const auto&, const auto& x, const auto&) { reduce<Sum>("ij->j", x, whole(1)); }},
    {"max ij->j of float 24x6",
     [](const auto&, const auto& x, const auto&) { reduce<Max>("ij->j", x, whole(1)); }},
    {"mean ij-> of float 24x6",
     [](const auto&, const auto& x, const auto&) { reduce<Mean>("ij->", x, whole(0)); }},
    {"einsum ki,kj->ij of float 24x6",
     [](const auto&, const auto& x, const auto& y) { einsum("ki,kj->ij", x, y, whole(2)); }},
    {"reshard of float 24x6 P<rows,_> to P<_,_>",
     [](const auto&, const auto& x, const auto&) { reshard(x, whole(2)); }},
    {"reshard of float 24x6 P<rows,_> to P<_,rows>",
     [](const auto&, const auto& x, const auto&) { reshard(x, split_second()); }},
    {"to_host of float 24x6", [](const auto&, const auto& x, const auto&) { to_host<float>(x); }},
    {"roll of float 24x6", [](const auto&, const auto& x, const auto&) { roll(x, 1, 0); }},
    {"arg ij->j of float 24x6",
     [](const auto&, const auto& x, const auto&) { argmax("ij->j", x, whole(1)); }},
    {"sort", [](const auto&, const auto& x, const auto&) { sort("ij", 'i', x); }},
    {"halo_exchange",
     [](const auto&, const auto& x, const auto&) {
       halo_exchange(x, Halo{{1, 1, Boundary::periodic}, {}});
     }},
    {"to_root of float 24x6", [](const auto&, const auto& x, const auto&) { to_root<float>(x); }},
    {"a barrier", [](const auto& mesh, const auto&, const auto&) { mesh.core()->barrier(); }},
};
inline constexpr int kind_count = sizeof kinds / sizeof kinds[0];

enum class Way { kind, operands, extents, more, less, late };
inline constexpr std::array<std::string_view, 6> way_names{"other kind",       "swapped operands",
                                                           "other extents",    "an operator more",
                                                           "an operator less", "only one sum less"};

struct Divergence {
  Way way = Way::kind;
  int at = 0;  ///< of the operators 0 to 99
  int regular = 0;
  int odd = 1;
};
inline constexpr int divergence_length = 100;

/// Returns what each of the two calls is called in the message.
inline std::array<std::string, 2> words_of(const Divergence& d) {
  const std::string sum = "sum ij->j of float 24x6 P<rows,_>";
  switch (d.way) {
    case Way::kind:
      return {std::string(kinds[d.regular].words), std::string(kinds[d.odd].words)};
    case Way::operands:
      return {sum, sum};
    case Way::extents:
      return {sum, "sum ij->j of float 24x7 P<rows,_>"};
    case Way::more:
      return {sum, "max ij->j of float 24x6 P<rows,_>"};
    case Way::less:
      return {"max ij->j of float 24x6 P<rows,_>", sum};
    case Way::late:
      return {sum, sum};
  }
  return {};
}

/// Runs a process's part; `diverges()` is called where it does something else.
template <class F> void run(const Divergence& d, const Part& p, const F& diverges) {
  const auto mesh = p.mesh();
  const auto x = matrix(mesh, DType::f32, {24, 6});
  const auto y = matrix(mesh, DType::f32, {24, 6});
  const auto wider = matrix(mesh, DType::f32, {24, 7});
  for (int step = 0; step < divergence_length; ++step) {
    const bool here = step == d.at;
    const bool odd = here && p.odd;
    if (odd) diverges();
    switch (here ? d.way : Way::kind) {
      case Way::kind:
        if (here)
          kinds[odd ? d.odd : d.regular].call(mesh, x, y);
        else
          reduce<Sum>("ij->j", x, whole(1));
        break;
      case Way::operands:
        reduce<Sum>("ij->j", odd ? y : x, whole(1));
        reduce<Sum>("ij->j", odd ? x : y, whole(1));
        break;
      case Way::extents:
        reduce<Sum>("ij->j", odd ? wider : x, whole(1));
        break;
      case Way::more:
        if (odd) reduce<Max>("ij->j", x, whole(1));
        reduce<Sum>("ij->j", x, whole(1));
        break;
      case Way::less:
        if (!odd) reduce<Max>("ij->j", x, whole(1));
        reduce<Sum>("ij->j", x, whole(1));
        break;
      case Way::late:
        if (!odd) reduce<Sum>("ij->j", x, whole(1));
        break;
    }
  }
}

}  // namespace mismatch
