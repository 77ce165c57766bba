// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a plan says it overruled: batch dimensions win, then the left operand; an axis is used once.
#include <tessera/plan/op/elements/map.hpp>
#include <tessera/plan/op/product/einsum.hpp>
#include <tessera/plan/op/rows/reduce.hpp>
#include <tessera/program/overruled.hpp>

using namespace tessera;

namespace {
constexpr MeshShape square{2, 2};
constexpr Plan product(const char* equation, const Extents& a, const Sharding& sa, const Extents& b,
                       const Sharding& sb, const Sharding& out) {
  return ops::Einsum{parse(equation), out}.plan(
      {TensorDesc{DType::f32, a, sa}, TensorDesc{DType::f32, b, sb}}, {square});
}
constexpr AxisSet x{0}, y{1};

// Nothing is in the way of anything.
static_assert(
    overruled(product("ik,kj->ij", {8, 8}, {{0}, {1}}, {8, 8}, {{1}, {}}, {{0}, {}})).empty());
static_assert(
    overruled(product("ik,kj->ij", {8, 8}, {{0}, {}}, {8, 8}, {{}, {1}}, {{0}, {1}})).empty());
// What is left open, or gathered only in the result, overrules nothing.
static_assert(
    overruled(product("ik,kj->ij", {8, 8}, {{0}, {}}, {8, 8}, {{}, {1}}, {{}, {}})).empty());

// Each operand's k gives way to what the other has on its axis.
static_assert(overruled(product("ik,kj->ij", {64, 64}, {{0}, {1}}, {64, 64}, {{0}, {1}},
                                {{0}, {1}})) ==
              OverruledList{{0, 'k', 1, 'j', 1, y}, {1, 'k', 0, 'i', 0, x}});
// The batch dimension wins over a free one of the right operand.
static_assert(overruled(product("bik,bkj->bij", {4, 8, 8}, {{0}, {}, {}}, {4, 8, 8}, {{}, {}, {0}},
                                {{0}, {}, {}})) == OverruledList{{1, 'j', 0, 'b', 0, x}});

// Elementwise: the left operand's split of i, and an axis that nothing is split over.
constexpr Plan sum(const Sharding& a, const Sharding& b, const Sharding& out) {
  return ops::Map{.terms = parse("ij,ij->ij"), .type = DType::f32, .out = out, .reads_index = false}
      .plan({{DType::f32, {8, 8}, a}, {DType::f32, {8, 8}, b}}, {square});
}
static_assert(overruled(sum({{0}, {}}, {{1}, {}}, {{0}, {}})) ==
              OverruledList{{1, 'i', 1, 'i', 0, x}});
static_assert(overruled(sum({{0}, {}}, {{}, {0}}, {{0}, {}})) ==
              OverruledList{{1, 'j', 0, 'i', 0, x}});
// Half of a sum on each process, and then its gather, is less work than the operand's gather and
// all of the sum; where the operand is smaller than the sum, that is gathered.
static_assert(overruled(sum({{0}, {}}, {{}, {}}, {{}, {}})).empty());
static_assert(
    overruled(ops::Map{
        .terms = parse("i,ij->ij"), .type = DType::f32, .out = {{}, {}}, .reads_index = false}
                  .plan({{DType::f32, {8}, {{0}}}, {DType::f32, {8, 800}, {{}, {}}}}, {square})) ==
    OverruledList{{0, 'i', 0, 0, -1, {}}});
static_assert(overruled(sum({{}, {}}, {{0}, {}}, {{}, {0}})) ==
              OverruledList{{1, 'i', 0, 'j', -1, x}});

// A reduction's operand is reduced as it lies.
static_assert(overruled(ops::Reduce{
                            .terms = parse("ij->j"), .reduction = Reduction::sum, .out = {{0}}}
                            .plan({TensorDesc{DType::f32, {8, 8}, {{0}, {1}}}}, {square}))
                  .empty());
}  // namespace
