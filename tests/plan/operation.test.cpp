// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: plan_operators
#include <set>
#include <span>
#include <vector>

#include <doctest/doctest.h>
#include <tessera/plan/op/elements/map.hpp>
#include <tessera/plan/op/elements/map_several.hpp>
#include <tessera/plan/op/halo/halo_exchange.hpp>
#include <tessera/plan/op/indexed/dynamic_slice.hpp>
#include <tessera/plan/op/indexed/one_hot.hpp>
#include <tessera/plan/op/indexed/scatter.hpp>
#include <tessera/plan/op/indexed/take.hpp>
#include <tessera/plan/op/move/between.hpp>
#include <tessera/plan/op/move/place.hpp>
#include <tessera/plan/op/move/reshard.hpp>
#include <tessera/plan/op/move/together.hpp>
#include <tessera/plan/op/product/einsum.hpp>
#include <tessera/plan/op/rows/arg.hpp>
#include <tessera/plan/op/rows/moments.hpp>
#include <tessera/plan/op/rows/normalize.hpp>
#include <tessera/plan/op/rows/scan.hpp>
#include <tessera/plan/op/rows/softmax.hpp>
#include <tessera/plan/op/rows/sort.hpp>
#include <tessera/plan/op/shape/reshape.hpp>
#include <tessera/plan/op/shape/shape.hpp>
#include <tessera/plan/op/shape/transpose.hpp>
#include <tessera/plan/op/window/convolve.hpp>
#include <tessera/plan/op/window/reduce_window.hpp>

#include "support/enumerate.hpp"

using namespace tessera;

namespace {
struct down : Axis<> {};
struct across : Axis<> {};
const MeshShape mesh{2, 3};
const TensorDesc x{DType::f32, {12, 18}, Sharding{{0}, {}}};
const TensorDesc w{DType::f32, {18, 24}, Sharding{{}, {1}}};
const Sharding both{{0}, {1}};
const TensorDesc ids{DType::i32, {5, 7}, Sharding{{0}, {}}};
const TensorDesc rows{DType::f32, {5, 7, 18}, Sharding{{0}, {}, {1}}};
const Sharding three{{0}, {}, {1}};

/// What holds of every operator: the value of any kind answers what the struct answers.
template <class Op> void check_laws(const Op& op, const TensorDescs& operands) {
  const Operation any(op);
  const PlanOptions options;
  CHECK(any.kind() == op.kind());
  CHECK(any.name() == detail::name_in_messages(op));
  CHECK(any.digest() == detail::digest_of(op));
  CHECK(any.check(operands) == op.check(operands));
  CHECK(any.view().get_if<Op>() != nullptr);
  CHECK(*any.view().get_if<Op>() == op);
  const Operation copy = any;
  CHECK(copy == any);
  CHECK(copy.digest() == any.digest());
  REQUIRE(op.check(operands).ok());
  CHECK(any.results(operands) == op.results(operands));
  for (int process = 0; process < mesh.processes(); ++process) {
    std::vector<Box> boxes, others;  // which the plans view
    const Plan plan = op.plan(operands, {mesh, process, options, &boxes});
    CHECK(any.plan(operands, {mesh, process, options, &others}) == plan);
    CHECK(plan.kind == op.kind());
    CHECK(plan.result_desc() == op.results(operands)[0]);
  }
}

const std::vector<Box> quarters{{{{0, 6}, {0, 9}}},   {{{6, 12}, {0, 9}}},  {{{0, 6}, {9, 18}}},
                                {{{6, 12}, {9, 18}}}, {{{6, 12}, {9, 18}}}, {{{0, 6}, {9, 18}}}};
const std::vector<int> backwards{5, 4, 3, 2, 1, 0};
ops::Between to_row(const Sharding& out, const std::vector<int>& places) {
  ops::OnOtherMesh there{out, MeshShape{6}, places};
  for (const int place : places) there.fingerprint.add(static_cast<std::uint64_t>(place));
  return {there};
}

ops::Einsum product(std::string_view equation, const Sharding& out) {
  return {parse(equation), out};
}
ops::Reduce reduction(std::string_view equation, Reduction kind, const Sharding& out) {
  return {parse(equation), kind, false, false, DType::f32, out};
}
ops::Convolve convolution(ops::ConvolveForm form, const Convolution& settings,
                          const Extents& extents, const Sharding& out) {
  return {parse("bxi,xio->bxo"), settings, form, extents, out};
}
const Convolution around{.low = {1}, .high = {1}};
const Sharding line{{}, {0}, {}};
const TensorDesc image{DType::f32, {2, 12, 4}, line};
const TensorDesc taps{DType::f32, {3, 4, 6}, Sharding{{}, {}, {1}}};
const TensorDesc features{DType::f32, {2, 12, 6}, line};
const WindowList pool{{.size = 3, .low = 1, .high = 1}, {}};
const Halo halo{{1, 2, Boundary::periodic}, {}};
}  // namespace

TEST_CASE("an operation answers what its struct answers") {
  check_laws(product("ik,kj->ij", both), {x, w});
  check_laws(product("ik,kj->ji", Sharding{{1}, {}}), {x, w});
  check_laws(product("ik->k", Sharding{{1}}), {x});
  check_laws(ops::Einsum{parse("ik,kj->ij"), both, true, DType::f64},
             {x, w, {DType::f32, {24}, Sharding{{1}}}});
  check_laws(reduction("ij->i", Reduction::sum, Sharding{{0}}), {x});
  check_laws(reduction("ij->j", Reduction::max, Sharding{{}}), {x});
  check_laws(ops::Reduce{parse("ij->j"), Reduction::sum, true, true, DType::f32, Sharding{{}}},
             {x});
  check_laws(ops::Reshard{both}, {x});
  check_laws(ops::Transpose{parse("ij->ji"), both}, {x});
  check_laws(ops::Map{detail::broadcast_terms({2, 1}), DType::f64, Linearity::pointwise, both},
             {x, {DType::f32, {18}, Sharding{{1}}}});
  check_laws(ops::MapSeveral{detail::broadcast_terms({2, 1}), {DType::f64, DType::f32}, both},
             {x, {DType::f32, {18}, Sharding{{1}}}});
  check_laws(ops::Arg{parse("ij->i"), Reduction::max, Sharding{{0}}}, {x});
  check_laws(ops::Scan{parse("ij->ij"), 'j', Reduction::sum, {.reverse = true}, DType::f32, both},
             {x});
  check_laws(ops::Scan{parse("ij->ij"), 'i', Reduction::none, {}, DType::f32, both}, {x});
  check_laws(ops::Softmax{parse("ij->ij"), 'j', false, both}, {x});
  check_laws(ops::Softmax{parse("ij->ij"), 'i', true, {{}, {0}}}, {x});
  const TensorDesc along{DType::f32, {18}, Sharding{{1}}};
  check_laws(ops::Moments{parse("ij->i"), true, Sharding{{0}}}, {x});
  check_laws(ops::Normalize{parse("ij,j,j->ij"), true, 1e-5, both}, {x, along, along});
  check_laws(ops::Normalize{parse("ij,j->ij"), false, 1e-6, {{}, {0}}}, {x, along});
  check_laws(ops::Sort{parse("ij->ij"), 'j', {.descending = true, .positions = true}, both}, {x});
  check_laws(ops::Sort{parse("ij->ij"), 'i', {.limit = 3, .kind = OperatorKind::top_k}, both}, {x});
  check_laws(ops::Take{parse("vm,bs->bsm"), OutOfRange::clamp, three}, {x, ids});
  const Terms into = parse("vm,bs,bsm->vm"), fresh = parse("bs,bsm->vm");
  check_laws(ops::Take{parse("vm,bs->bsVm"), OutOfRange::clamp, {{}, {}, {}, {}}, {3}}, {x, ids});
  check_laws(ops::Scatter{into, Reduction::sum, OutOfRange::drop, {}, false, both}, {x, ids, rows});
  check_laws(ops::Scatter{into, Reduction::none, OutOfRange::clamp, {}, true, both},
             {ids, rows, x});
  check_laws(ops::Scatter{fresh, Reduction::max, OutOfRange::drop, {9}, false, both}, {ids, rows});
  check_laws(ops::OneHot{parse("bvs->bvs"), 'v', DType::f64, 9, three}, {ids});
  const TensorDesc window{DType::f32, {12, 3}, both};
  check_laws(ops::DynamicSlice{parse("ij->ij"), parse("j->j"), {3}, both}, {x});
  check_laws(ops::DynamicUpdateSlice{parse("ij,ij->ij"), parse("j->j"), false, both}, {x, window});
  check_laws(ops::DynamicUpdateSlice{parse("ij,ij->ij"), parse("j->j"), true, both}, {window, x});
  using enum ops::ConvolveForm;
  check_laws(convolution(forward, around, {}, line), {image, taps});
  check_laws(convolution(by_input, around, image.extents, line), {features, taps});
  check_laws(convolution(by_kernel, around, taps.extents, Sharding{{}, {}, {1}}),
             {image, features});
  check_laws(ops::ReduceWindow{Reduction::max, false, pool, both}, {x});
  check_laws(ops::ReduceWindow{Reduction::sum, true, pool, both, true, x.extents}, {x});
  check_laws(ops::SelectAndScatter{true, pool, both}, {x, x});
  check_laws(ops::SelectAndScatter{true, pool, both, true}, {x, x});
  check_laws(ops::HaloExchange{{halo}}, {x, x});
  check_laws(ops::HaloExchange{{halo}, true}, {x});
  check_laws(ops::HaloExchange{{halo, Halo{{}, {1, 0, Boundary::none}}}, true, true}, {x, x});
  const Slice lines{{3, 0}, {9, 18}, {}}, columns{{0, 1}, {12, 17}, {1, 2}};
  check_laws(ops::Slice{{{lines}}, both}, {x});
  check_laws(ops::Slice{{{lines, columns}}, both}, {x});
  check_laws(ops::Pad{{{1, 0}, {-2, 3}, {1, 0}, Outside::other}, both}, {x});
  check_laws(ops::Reverse{{{1, 0}}, both}, {x});
  check_laws(ops::Roll{{5, 0}, both}, {x});
  check_laws(ops::Shift{{-5, 1, Outside::one}, both}, {x});
  check_laws(ops::Concatenate{{0, {std::nullopt, lines}}, both}, {x, x});
  check_laws(ops::Update{{{2, 3}, {std::nullopt, lines}}, x.sharding},
             {{DType::f32, {20, 30}, x.sharding}, x});
  check_laws(ops::Reshape{{4, 3, 18}, Sharding{{0}, {}, {1}}}, {x});
}

TEST_CASE("in place an operator needs what it needs elsewhere, its tensor the last operand") {
  const Contract anything;
  ops::Scatter scatter{parse("vm,bs,bsm->vm"), Reduction::sum, OutOfRange::drop, {}, false, both};
  const Contract needed = needs(scatter, {x, ids, rows}, mesh, anything);
  CHECK_FALSE(Contract::nothing().covers(needed));
  scatter.in_place = true;
  CHECK(needs(scatter, {ids, rows, x}, mesh, anything) == needed);
  const PlanOptions options;
  const Plan plan = scatter.plan({ids, rows, x}, {mesh, 0, options});
  CHECK(plan.slots[0].desc == ids);
  CHECK(plan.slots[1].desc == rows);
  CHECK(plan.slots[2].desc == x);
  // A rule speaks of the operands as the equation orders them.
  const Verdict v = scatter.check({ids, {DType::f64, rows.extents, rows.sharding}, x});
  CHECK(v == Verdict{.rule = Rule::update_types_alike,
                     .operand = 2,
                     .type = DType::f32,
                     .other = DType::f64});
}

TEST_CASE("operations in, out, between meshes and together answer what their structs answer") {
  const TensorDesc open{
      DType::f32, {12, 18}, Sharding{{0}, {}}.with_partial(AxisSet{1}, Reduction::sum)};
  check_laws(ops::FromMemory{ops::Memory::on_root(4, 6), both}, {x});
  check_laws(ops::ToMemory{ops::Memory::on_root(4, 6)}, {open});
  check_laws(ops::FromMemory{ops::Memory::in_boxes(quarters, 6), both}, {x});
  check_laws(ops::ToMemory{ops::Memory::in_boxes(quarters, 6)}, {open});
  check_laws(to_row(Sharding{{}, {0}}, backwards), {open});
  check_laws(ops::Together{{both, Sharding{{}, {}}}}, {x, w});
}

TEST_CASE("of boxes and places 128 bits are compared, wherever the lists lie") {
  std::vector<Box> copy = quarters;
  const ops::FromMemory op{ops::Memory::in_boxes(quarters, 6), both};
  CHECK(op == ops::FromMemory{ops::Memory::in_boxes(copy, 6), both});
  CHECK(detail::digest_of(op) ==
        detail::digest_of(ops::FromMemory{ops::Memory::in_boxes(copy, 6), both}));
  copy[3][1].hi = 17;
  CHECK_FALSE(op == ops::FromMemory{ops::Memory::in_boxes(copy, 6), both});
  CHECK(detail::digest_of(op) !=
        detail::digest_of(ops::FromMemory{ops::Memory::in_boxes(copy, 6), both}));
  const std::vector<int> straight{0, 1, 2, 3, 4, 5};
  const Sharding by_rows{{0}, {}};
  CHECK_FALSE(to_row(by_rows, backwards) == to_row(by_rows, straight));
  CHECK(detail::digest_of(to_row(by_rows, backwards)) !=
        detail::digest_of(to_row(by_rows, straight)));
  CHECK(detail::digest_of(to_row(by_rows, backwards)) !=
        detail::digest_of(to_row(Sharding{{}, {0}}, backwards)));
  const PlanOptions options;
  CHECK_THROWS_AS(op.plan({x}, {mesh, 0, options}), UsageError);  // nobody keeps its boxes
}

TEST_CASE("descriptions that differ have digests that differ") {
  std::set<std::uint64_t> digests;
  int count = 0;
  for (const Extents& extents : {Extents{1, 1, 1}, Extents{4, 8, 12}, Extents{7, 2, 5}})
    for (const Sharding& s : support::shardings(3, 3, Reduction::sum))
      for (const bool moved : {false, true}) {
        detail::Digest digest;
        if (moved) digest.add(1);
        add_to(digest, TensorDesc{DType::f32, extents, s});
        digests.insert(digest.value());
        ++count;
      }
  CHECK(static_cast<int>(digests.size()) == count);
}

TEST_CASE("what goes in, out and between is checked, and needs an exchange over all axes") {
  const auto rule = [](const auto& op, const TensorDesc& of) { return op.check({of}).rule; };
  const TensorDesc open{
      DType::f32, {12, 18}, Sharding{{0}, {}}.with_partial(AxisSet{1}, Reduction::sum)};
  CHECK(rule(ops::FromMemory{ops::Memory::on_root(6, 6), both}, x) == Rule::root_known);
  CHECK(rule(ops::ToMemory{ops::Memory::on_root(-1, 6)}, x) == Rule::root_known);
  CHECK(rule(ops::FromMemory{ops::Memory::on_root(0, 6), open.sharding}, x) == Rule::made_finished);
  CHECK(rule(ops::FromMemory{ops::Memory::on_root(0, 6), Sharding{{0}}}, x) == Rule::entry_each);
  const std::span<const Box> fewer = std::span(quarters).first(5);
  CHECK(rule(ops::ToMemory{ops::Memory::in_boxes(fewer, 6)}, x) == Rule::box_each_process);
  CHECK(rule(ops::FromMemory{ops::Memory::in_boxes(fewer, 5), both}, x) == Rule::ok);
  CHECK(rule(ops::FromMemory{ops::Memory::in_boxes(fewer.first(3), 3), both}, x) ==
        Rule::boxes_cover);
  CHECK(rule(ops::ToMemory{ops::Memory::in_boxes(fewer.first(3), 3)}, x) == Rule::ok);
  CHECK(rule(ops::FromMemory{ops::Memory::in_boxes(quarters, 6), open.sharding}, x) ==
        Rule::made_finished);
  CHECK(rule(to_row(open.sharding, backwards), x) == Rule::arrives_finished);
  CHECK(rule(to_row(Sharding{{0}}, backwards), x) == Rule::dimensions_kept);
  const Verdict second = ops::Together{{both, open.sharding}}.check({x, x});
  CHECK(second.rule == Rule::reshardable);
  CHECK(second.operand == 1);

  Contract moved = Contract::nothing();
  moved.accept(Collective::exchange, mesh.axes());
  const Contract finish = needs(ops::Reshard{open.sharding.finished()}, {open}, mesh, Contract{});
  CHECK(needs(ops::FromMemory{ops::Memory::on_root(0, 6), both}, {x}, mesh, Contract{}) == moved);
  CHECK(needs(ops::FromMemory{ops::Memory::in_boxes(quarters, 6), both}, {x}, mesh, Contract{}) ==
        moved);
  CHECK(needs(ops::ToMemory{ops::Memory::on_root(0, 6)}, {x}, mesh, Contract{}) == moved);
  CHECK(needs(ops::ToMemory{ops::Memory::in_boxes(quarters, 6)}, {open}, mesh, Contract{}) ==
        moved.joined(finish));
  CHECK(needs(to_row(both, backwards), {open}, mesh, Contract{}) == moved.joined(finish));
  const Sharding whole{{}, {}};
  const Contract each = needs(ops::Reshard{whole}, {x}, mesh, Contract{})
                            .joined(needs(ops::Reshard{whole}, {w}, mesh, Contract{}));
  CHECK(needs(ops::Together{{whole, whole}}, {x, w}, mesh, Contract{}) == each);
}

TEST_CASE("operations differ where a member differs, and have other digests") {
  std::vector<Operation> every{
      product("ik,kj->ij", both),
      product("ik,kj->ij", Sharding{{0}, {}}),
      product("ik,kj->ji", both),
      product("ik,jk->ij", both),
      ops::Einsum{parse("ik,kj->ij"), both, true},
      ops::Einsum{parse("ik,kj->ij"), both, true, DType::f64},
      ops::Einsum{parse("ik,kj->ij"), both, true, DType::f64, true},
      reduction("ij->i", Reduction::sum, Sharding{{0}}),
      reduction("ij->i", Reduction::max, Sharding{{0}}),
      reduction("ij->i", Reduction::sum, Sharding{{1}}),
      ops::Reduce{parse("ij->i"), Reduction::sum, true, false, DType::f32, Sharding{{0}}},
      ops::Reduce{parse("ij->i"), Reduction::sum, false, true, DType::f32, Sharding{{0}}},
      ops::Reduce{parse("ij->i"), Reduction::sum, false, false, DType::f64, Sharding{{0}}},
      ops::Reshard{both},
      ops::Reshard{Sharding{{0}, {}}},
      ops::Take{parse("vm,bs->bsm"), OutOfRange::clamp, three},
      ops::Take{parse("vm,bs->bsm"), OutOfRange::drop, three},
      ops::Take{parse("vm,bs->bsVm"), OutOfRange::clamp, {{}, {}, {}, {}}, {3}},
      ops::Take{parse("vm,bs->bsVm"), OutOfRange::clamp, {{}, {}, {}, {}}, {4}},
      ops::Scatter{parse("bs,bsm->vm"), Reduction::sum, OutOfRange::drop, {9}, false, both},
      ops::Scatter{parse("bs,bsm->vm"), Reduction::none, OutOfRange::drop, {9}, false, both},
      ops::Scatter{parse("bs,bsm->vm"), Reduction::sum, OutOfRange::clamp, {9}, false, both},
      ops::Scatter{parse("bs,bsm->vm"), Reduction::sum, OutOfRange::drop, {8}, false, both},
      ops::Scatter{parse("bs,bsm->vm"), Reduction::sum, OutOfRange::drop, {9}, true, both},
      ops::OneHot{parse("bsv->bsv"), 'v', DType::f32, 9, three},
      ops::OneHot{parse("bsv->bsv"), 's', DType::f32, 9, three},
      ops::OneHot{parse("bsv->bsv"), 'v', DType::f64, 9, three},
      ops::OneHot{parse("bsv->bsv"), 'v', DType::f32, 8, three},
      ops::DynamicSlice{parse("ij->ij"), parse("j->j"), {3}, both},
      ops::DynamicSlice{parse("ij->ij"), parse("i->i"), {3}, both},
      ops::DynamicSlice{parse("ij->ij"), parse("j->j"), {4}, both},
      ops::DynamicUpdateSlice{parse("ij,ij->ij"), parse("j->j"), false, both},
      ops::DynamicUpdateSlice{parse("ij,ij->ij"), parse("j->j"), true, both},
      ops::FromMemory{ops::Memory::on_root(0, 6), both},
      ops::FromMemory{ops::Memory::on_root(1, 6), both},
      ops::ToMemory{ops::Memory::on_root(0, 6)},
      ops::ToMemory{ops::Memory::on_root(1, 6)},
      ops::FromMemory{ops::Memory::in_boxes(quarters, 6), both},
      ops::FromMemory{ops::Memory::in_boxes(quarters, 6), Sharding{{0}, {}}},
      ops::ToMemory{ops::Memory::in_boxes(quarters, 6)},
      to_row(both, backwards),
      ops::Together{{both, both}},
      ops::Together{{both, Sharding{{0}, {}}}}};
  using enum ops::ConvolveForm;
  for (const Convolution& c : {Convolution{}, Convolution{.stride = {2}}, Convolution{.low = {2}},
                               Convolution{.high = {2}}, Convolution{.base_dilation = {2}},
                               Convolution{.window_dilation = {2}}, Convolution{.reversed = {1}},
                               Convolution{.feature_groups = 2}, Convolution{.batch_groups = 2},
                               Convolution{.portable = true}})
    every.push_back(convolution(forward, c, {}, line));
  every.push_back(convolution(by_input, {}, {}, line));
  every.push_back(convolution(by_kernel, {}, {}, line));
  every.push_back(convolution(by_kernel, {}, taps.extents, line));
  every.push_back(convolution(forward, {}, {}, taps.sharding));
  for (const Window& window :
       {Window{}, Window{.size = 2}, Window{.stride = 2}, Window{.low = 2}, Window{.high = 2},
        Window{.base_dilation = 2}, Window{.window_dilation = 2}, Window{.reversed = true}}) {
    every.push_back(ops::ReduceWindow{Reduction::max, false, {{}, window}, both});
    every.push_back(ops::SelectAndScatter{true, {{}, window}, both});
    every.push_back(ops::SelectAndScatter{true, {{}, window}, both, true});
  }
  every.push_back(ops::ReduceWindow{Reduction::sum, false, pool, both});
  every.push_back(ops::ReduceWindow{Reduction::sum, true, pool, both});
  every.push_back(ops::ReduceWindow{Reduction::sum, true, pool, both, true, {12, 18}});
  every.push_back(ops::ReduceWindow{Reduction::sum, true, pool, both, true, {12, 19}});
  every.push_back(ops::SelectAndScatter{false, pool, both});
  every.push_back(ops::SelectAndScatter{false, pool, both, true});
  for (const HaloDim& d : {HaloDim{}, HaloDim{1}, HaloDim{0, 1}, HaloDim{0, 0, Boundary::periodic}})
    every.push_back(ops::HaloExchange{{Halo{{}, d}}});
  every.push_back(ops::HaloExchange{{halo}, true});
  every.push_back(ops::HaloExchange{{halo}, true, true});
  every.push_back(ops::HaloExchange{{halo, halo}, true, true});
  const Slice part{{0, 2}, {4, 6}, {}}, other{{0, 1}, {4, 6}, {}};
  for (const Sharding& out : {both, x.sharding}) {
    every.push_back(ops::Slice{{{part}}, out});
    every.push_back(ops::Slice{{{other}}, out});
    every.push_back(ops::Slice{{{part, other}}, out});
    every.push_back(ops::Slice{{{part, other, part}}, out});
    every.push_back(ops::Pad{{{0, 2}, {4, 6}}, out});
    every.push_back(ops::Pad{{{0, 2}, {4, 6}, {}, Outside::one}, out});
    every.push_back(ops::Pad{{{0, 2}, {4, 6}, {1, 0}}, out});
    every.push_back(ops::Reverse{{{0}}, out});
    every.push_back(ops::Reverse{{{0, 1}}, out});
    every.push_back(ops::Roll{{1, 0}, out});
    every.push_back(ops::Roll{{0, 1}, out});
    every.push_back(ops::Shift{{1, 0}, out});
    every.push_back(ops::Shift{{1, 0, Outside::one}, out});
    every.push_back(ops::Concatenate{{0}, out});
    every.push_back(ops::Concatenate{{0, {part}}, out});
    every.push_back(ops::Concatenate{{0, {std::nullopt, part}}, out});
    every.push_back(ops::Update{{{0, 2}}, out});
    every.push_back(ops::Update{{{0, 2}, {part}}, out});
    every.push_back(ops::Reshape{{4, 6}, out});
    every.push_back(ops::Reshape{{6, 4}, out});
  }
  std::set<std::uint64_t> digests;
  for (std::size_t i = 0; i < every.size(); ++i) {
    digests.insert(every[i].digest());
    for (std::size_t j = 0; j < every.size(); ++j) CHECK((every[i] == every[j]) == (i == j));
  }
  CHECK(digests.size() == every.size());
}

TEST_CASE("what an operation needs does not depend on extents") {
  const TensorDesc small{DType::f32, {1, 2}, Sharding{{0}, {1}}},
      large{DType::f32, {1 << 20, 1 << 20}, Sharding{{0}, {1}}};
  const ops::Reshard whole{Sharding{{}, {}}};
  const Contract needed = needs(whole, {small}, mesh, Contract{});
  CHECK(needed == needs(whole, {large}, mesh, Contract{}));
  CHECK(needed.covers(Contract::nothing()));
  CHECK_FALSE(Contract::nothing().covers(needed));
  // What elements move along decides, and never how far.
  const ops::Roll near{{1, 0}, large.sharding}, far{{999, 0}, large.sharding},
      still{{0, 0}, large.sharding};
  CHECK(needs(near, {large}, mesh, Contract{}) == needs(far, {large}, mesh, Contract{}));
  CHECK_FALSE(needs(far, {large}, mesh, Contract{}) == Contract::nothing());
  CHECK(needs(still, {large}, mesh, Contract{}) == Contract::nothing());
}

TEST_CASE("numbers of an operator do not change what it needs either") {
  const auto alike = [](const auto& few, const auto& many, const TensorDescs& operands) {
    return needs(few, operands, mesh, Contract{}) == needs(many, operands, mesh, Contract{});
  };
  const Terms fresh = parse("bs,bsm->vm"), letters = parse("ij->ij"), along = parse("i->i");
  CHECK(alike(ops::Scatter{fresh, Reduction::sum, OutOfRange::drop, {1}, false, both},
              ops::Scatter{fresh, Reduction::sum, OutOfRange::drop, {1 << 20}, false, both},
              {ids, rows}));
  CHECK(alike(ops::OneHot{parse("bsv->bsv"), 'v', DType::f32, 1, three},
              ops::OneHot{parse("bsv->bsv"), 'v', DType::f32, 1 << 20, three}, {ids}));
  CHECK(alike(ops::DynamicSlice{letters, along, {1}, both},
              ops::DynamicSlice{letters, along, {1 << 20}, both}, {x}));
}

TEST_CASE("what slides windows needs the same for all that reach beyond a block, of any numbers") {
  const Contract exchanged = contract_of<Mesh<down, across>, Only<exchanges<down>>>();
  const auto needed = [](const auto& op, const TensorDescs& operands) {
    return needs(op, operands, mesh, Contract{});
  };
  using enum ops::ConvolveForm;
  const TensorDesc whole{DType::f32, taps.extents, Sharding::replicated(3)};
  CHECK(needed(convolution(forward, around, {}, line), {image, whole}) == exchanged);
  CHECK(needed(convolution(forward, {}, {}, line), {image, whole}) == exchanged);
  CHECK(needed(convolution(by_input, {.stride = {7}}, {}, line), {features, whole}) == exchanged);
  const Contract summed = needed(convolution(by_kernel, {}, {}, whole.sharding), {image, features});
  CHECK(contract_of<Mesh<down, across>, Only<exchanges<down>, all_reduces<down>>>() == summed);
  const TensorDesc tall{DType::f32, {12, 18}, Sharding{{0}, {}}};
  for (const WindowList& windows : {pool, WindowList{{}, {}}}) {
    CHECK(needed(ops::ReduceWindow{Reduction::sum, false, windows, tall.sharding}, {tall}) ==
          exchanged);
    CHECK(needed(ops::SelectAndScatter{true, windows, tall.sharding}, {tall, tall}) == exchanged);
    CHECK(needed(ops::SelectAndScatter{true, windows, tall.sharding, true}, {tall, tall}) ==
          exchanged);
  }
  for (const Index width : {1, 3, 9000}) {
    CHECK(needed(ops::HaloExchange{{Halo{{0, width}, {}}}}, {tall}) == exchanged);
    CHECK(needed(ops::HaloExchange{{Halo{{width, 0, Boundary::reflected}, {}}}, true}, {tall}) ==
          exchanged);
    CHECK(needed(ops::HaloExchange{{Halo{{}, {width, width}}}}, {tall}) == Contract::nothing());
  }
}

TEST_CASE("the exchange of a halo in place has one plan under every contract") {
  const Halo widths{{1, 2, Boundary::periodic}, {2, 1, Boundary::reflected}};
  PlanOptions free, bound;
  bound.contract = Contract::nothing();
  for (const std::int64_t message_ps : {1, 100'000'000})
    for (const bool adjoint : {false, true}) {
      free.machine.message_ps = bound.machine.message_ps = message_ps;
      const TensorDesc spread{DType::f32, {12, 18}, both};
      const ops::HaloExchange exchange{{widths}, adjoint, true};
      CHECK(exchange.plan({spread}, {mesh, 1, free}) == exchange.plan({spread}, {mesh, 1, bound}));
    }
}

TEST_CASE("what is broken is explained with its facts") {
  const AxisNames names{"data", "model"};
  const ops::Einsum op = product("ik,kj->ij", both);
  const TensorDescs operands{x, {DType::f32, {17, 24}, w.sharding}};
  const Verdict v = Operation(op).check(operands);
  CHECK(v.rule == Rule::extents_agree);
  CHECK(detail::OperationView(op).explain(v, operands, names).find("k is 18 in operand 1") !=
        std::string::npos);
  CHECK(detail::OperationView(op).text(names) == " to P<data,model>");
  const Slice part{{0, 2}, {4, 6}, {}};
  CHECK(detail::OperationView(ops::Slice{{{part}}, both}).text(names) ==
        " start 0x2, limit 4x6 to P<data,model>");
  CHECK(detail::OperationView(ops::Roll{{5, 1}, both}).text(names) ==
        " by 5, dimension 1 to P<data,model>");
  CHECK(detail::OperationView(ops::Concatenate{{1, {std::nullopt, part}}, both}).text(names) ==
        " dimension 1, operand 2, start 0x2, limit 4x6 to P<data,model>");
}

TEST_CASE("broken rules of indices and windows say their numbers, and whose they are") {
  const AxisNames names{"data", "model"};
  const auto said = [&](detail::OperationView op, const TensorDescs& operands) {
    return op.explain(op.check(operands), operands, names);
  };
  const ops::Scatter scatter{
      parse("bs,bsm->vm"), Reduction::sum, OutOfRange::drop, {}, false, both};
  CHECK(said(scatter, {ids, rows}) ==
        "the result has 1 indexed letters (v), and 0 extents are given; give one for each letter");
  const ops::Take take{parse("vm,bs->bsm"), OutOfRange::clamp, three};
  CHECK(said(take, {{DType::f32, {0, 18}, both}, ids}) ==
        "the indexed dimension v has extent 0, and 630 of its elements are asked for; there is "
        "none to clamp an index to; make it longer, or drop such indices (OutOfRange::drop)");
  CHECK(said(take, {x, {DType::f32, ids.extents, ids.sharding}}) ==
        "the indices are of another element type; indices are int32 or int64; convert them with "
        "cast first (operand 2)");
  const ops::DynamicSlice slice{parse("ij->ij"), parse("ji->ji"), {3}, both};
  CHECK(said(slice, {x}) ==
        "the window moves along ji, 2 letters, and 1 sizes are given; give one for each letter");
  const ops::DynamicUpdateSlice update{parse("ij,ij->ij"), parse("j->j"), false, both};
  CHECK(said(update, {x, {DType::f64, {12, 3}, both}}).find("(operand 2, float and double)") !=
        std::string::npos);
  CHECK(said(update, {x, {DType::f32, {11, 3}, both}})
            .find("along i the tensor has 12 elements and the update 11;") == 0);
  CHECK(detail::OperationView(ops::OneHot{parse("bsv->bsv"), 'v', DType::f32, 9, three})
            .text(names) == " extent 9 to P<data,_,model>");
}
