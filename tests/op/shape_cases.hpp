// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Single random cases of slice and its siblings, run and compared as those of cases.hpp are.
///
///     std::string wrong = support::some_shape_case(mesh, random);
#include "cases.hpp"
#include "support/shapes.hpp"

namespace support {

template <class T> class ShapeCases {
 public:
  /// `within`: operands lie within halos.
  ShapeCases(std::shared_ptr<MeshCore> mesh, Random& random, bool within = false)
      : mesh_(std::move(mesh)), shape_(mesh_->shape()), random_(random) {
    if (within) within_ = WithinHalos(random);
  }

  std::string slice() {
    const TensorDesc x = some_tensor(some_kind());
    Extents start, limit, stride;
    for (Index n : x.extents) {
      start.push_back(random_.below(static_cast<int>(n) + 1));
      limit.push_back(start.back() + random_.below(static_cast<int>(n - start.back()) + 1));
      stride.push_back(1 + (random_.chance(40) ? random_.below(4) : 0));
    }
    const Sharding out = result_of(x.sharding, x.rank());
    const DynamicTensor input = stored(x, 1);
    return trial(
        "slice " + to_string(start) + " to " + to_string(limit) + " by " + to_string(stride), x,
        out)([&] { return tessera::slice(input, start, limit, stride, out); },
             plan(ops::Slice{{{Slice{start, limit, stride}}}, out}, {x}),
             support::slice(whole_input<T>(x, shape_, 1), start, limit, stride), tolerance());
  }

  std::string pad() {
    const TensorDesc x = some_tensor(some_kind());
    Extents low, high, interior;
    for (Index n : x.extents) {
      interior.push_back(random_.chance(30) ? random_.below(3) : 0);
      const Index wide = n + (n > 1 ? (n - 1) * interior.back() : 0);
      low.push_back(random_.below(7) - 3);
      high.push_back(random_.below(random_.chance(20) ? 20 : 7) - 3);
      if (low.back() + high.back() + wide < 0) low.back() = high.back() = 1;
    }
    const bool open = x.sharding.reduction == Reduction::sum;
    const T value = open ? T{} : static_cast<T>(random_.below(3) - 1);
    const Sharding out = result_of(x.sharding, x.rank());
    const DynamicTensor input = stored(x, 1);
    return trial("pad " + to_string(low) + "_" + to_string(high) + "_" + to_string(interior), x,
                 out)([&] { return tessera::pad(input, low, high, interior, value, out); },
                      plan(ops::Pad{{low, high, interior}, out}, {x}),
                      support::pad(whole_input<T>(x, shape_, 1), low, high, interior, value),
                      tolerance());
  }

  std::string reverse() {
    const TensorDesc x = some_tensor(some_kind());
    Dimensions dims;
    std::vector<int> list;
    for (int d = x.rank() - 1; d >= 0; --d)
      if (random_.chance(60)) {
        dims.push_back(d);
        list.push_back(d);
      }
    const Sharding out = result_of(x.sharding, x.rank());
    const DynamicTensor input = stored(x, 1);
    return trial("reverse", x, out)(
        [&] { return tessera::reverse(input, dims, out); }, plan(ops::Reverse{{dims}, out}, {x}),
        support::reverse(whole_input<T>(x, shape_, 1), list), tolerance());
  }

  std::string roll() {
    const TensorDesc x = some_tensor(some_kind(), 1);
    const int dim = random_.below(x.rank());
    const Index by = random_.below(41) - 20;
    const Sharding out = result_of(x.sharding, x.rank());
    const DynamicTensor input = stored(x, 1);
    return trial("roll by " + std::to_string(by) + " along " + std::to_string(dim), x, out)(
        [&] { return tessera::roll(input, by, dim, out); }, plan(ops::Roll{{by, dim}, out}, {x}),
        support::roll(whole_input<T>(x, shape_, 1), by, dim), tolerance());
  }

  std::string shift() {
    const TensorDesc x = some_tensor(some_kind(), 1);
    const int dim = random_.below(x.rank());
    const Index by = random_.below(21) - 10;
    const T value =
        x.sharding.reduction == Reduction::sum ? T{} : static_cast<T>(random_.below(3) - 1);
    const Sharding out = result_of(x.sharding, x.rank());
    const DynamicTensor input = stored(x, 1);
    return trial("shift by " + std::to_string(by) + " along " + std::to_string(dim), x, out)(
        [&] { return tessera::shift(input, by, dim, value, out); },
        plan(ops::Shift{{by, dim}, out}, {x}),
        support::shift(whole_input<T>(x, shape_, 1), by, dim, value), tolerance());
  }

  std::string concatenate() {
    const TensorDesc x = some_tensor(some_kind(), 1);
    const int dim = random_.below(x.rank());
    TensorDescs descs;
    Slices slices;
    std::vector<DynamicSlice> inputs;
    std::vector<Whole<T>> wholes;
    const int count = 1 + random_.below(4);
    for (int k = 0; k < count; ++k) {
      TensorDesc one = x;
      if (k > 0) {
        one.extents[dim] = some_extent();
        if (random_.chance(50)) one.sharding = alike(x.sharding, x.rank());
      }
      std::optional<Slice> slice;
      if (random_.chance(40)) slice = within(one.extents);
      add_operand(one, slice, static_cast<std::uint64_t>(k), inputs, wholes);
      descs.push_back(one);
      slices.push_back(slice);
    }
    const Sharding out = result_of(x.sharding, x.rank());
    std::string text = "concatenate along " + std::to_string(dim);
    for (const TensorDesc& one : descs) text += ", " + describe(one, shape_);
    return trial(text, x, out)([&] { return tessera::concatenate(dim, inputs, out); },
                               plan(ops::Concatenate{{dim, slices}, out}, descs),
                               support::concatenate(wholes, dim), tolerance());
  }

  std::string update() {
    const TensorDesc x = some_tensor(some_kind());
    TensorDesc block{x.type, {}, random_.chance(50) ? x.sharding : alike(x.sharding, x.rank())};
    Slices slices{std::nullopt, std::nullopt};
    Extents start, part = x.extents;
    if (random_.chance(30)) {
      slices[0] = Slice{Extents(x.rank(), 0), {}, {}};
      for (Index n : x.extents) slices[0]->limit.push_back(n - random_.below(n > 0 ? 2 : 1));
      part = slices[0]->extents();
    }
    for (Index n : part) {
      start.push_back(random_.below(static_cast<int>(n) + 1));
      block.extents.push_back(random_.below(static_cast<int>(n - start.back()) + 1));
    }
    if (random_.chance(40)) slices[1] = within(block.extents);
    const Sharding out = result_of(x.sharding, x.rank());
    std::vector<DynamicSlice> inputs;
    std::vector<Whole<T>> wholes;
    add_operand(x, slices[0], 1, inputs, wholes);
    add_operand(block, slices[1], 2, inputs, wholes);
    return trial("update at " + to_string(start) + " with " + describe(block, shape_), x, out)(
        [&] { return tessera::update(inputs[0], inputs[1], start, out); },
        plan(ops::Update{{start, slices}, out}, {x, block}),
        support::update(wholes[0], wholes[1], start), tolerance());
  }

  std::string reshape() {
    const auto extents = some_reshape(random_);
    const Extents &from = extents.first, &to = extents.second;
    const TensorDesc x{dtype_of<T>, from,
                       some_sharding(random_, from.size(), shape_.rank(),
                                     random_.chance(30) ? 40 : 0, some_kind())};
    const bool derived = random_.chance(40);
    const Sharding out =
        derived ? detail::reshaped_sharding(x, to) : result_of(x.sharding, to.size());
    const DynamicTensor input = stored(x, 1);
    return trial("reshape to " + to_string(to), x, out)(
        [&] { return derived ? tessera::reshape(input, to) : tessera::reshape(input, to, out); },
        plan(ops::Reshape{to, out}, {x}), support::reshape(whole_input<T>(x, shape_, 1), to),
        tolerance());
  }

 private:
  template <class Op> Plan plan(const Op& op, const TensorDescs& x) {
    return planned(op, x, shape_, mesh_->process(), within_.options(mesh_));
  }
  DynamicTensor stored(const TensorDesc& desc, std::uint64_t seed) {
    return within_.put(make_input<T>(mesh_, desc, seed));
  }
  Trial<T> trial(const std::string& name, const TensorDesc& x, const Sharding& out) const {
    return Trial<T>(mesh_, std::string(name_of(dtype_of<T>)) + " on " + describe(shape_) + ": " +
                               name + " of " + describe(x, shape_) + " to " +
                               describe(out, shape_));
  }
  /// Makes the extents those of a larger tensor; returns the slice of it that has had them.
  Slice within(Extents& extents) {
    Slice slice;
    for (Index& n : extents) {
      const Index step = 1 + random_.below(2);
      slice.start.push_back(random_.below(3));
      slice.stride.push_back(step);
      slice.limit.push_back(slice.start.back() + (n > 0 ? (n - 1) * step + 1 : 0));
      n = slice.limit.back() + random_.below(3);
    }
    return slice;
  }
  void add_operand(const TensorDesc& desc, const std::optional<Slice>& slice, std::uint64_t seed,
                   std::vector<DynamicSlice>& inputs, std::vector<Whole<T>>& wholes) {
    const DynamicTensor input = stored(desc, seed);
    const Whole<T> whole = whole_input<T>(desc, shape_, seed);
    if (slice) {
      const Extents steps = slice->stride.empty() ? Extents(slice->start.size(), 1) : slice->stride;
      inputs.push_back(slice_of(input, slice->start, slice->limit, slice->stride));
      wholes.push_back(support::slice(whole, slice->start, slice->limit, steps));
    } else {
      inputs.push_back(input);
      wholes.push_back(whole);
    }
  }
  Reduction some_kind() {
    return random_.of<Reduction>({Reduction::sum, Reduction::max, Reduction::min});
  }
  Index some_extent() {
    return random_.of<Index>({1, 2, 3, 4, 5, 7, 8, 9, 13, random_.chance(20) ? 0 : 6});
  }
  TensorDesc some_tensor(Reduction kind, int least = 0) {
    const int rank = least + random_.below(4 - least);
    TensorDesc x{dtype_of<T>,
                 {},
                 some_sharding(random_, rank, shape_.rank(), random_.chance(30) ? 40 : 0, kind)};
    for (int d = 0; d < rank; ++d) x.extents.push_back(some_extent());
    return x;
  }
  /// Some sharding of a result: the operand's own, another finished one, or one that stays as open.
  Sharding result_of(const Sharding& x, int rank) {
    if (rank == x.rank() && random_.chance(40)) return x;
    return random_.chance(50) ? some_sharding(random_, rank, shape_.rank()) : alike(x, rank);
  }
  /// Some sharding that is unfinished as x is.
  Sharding alike(const Sharding& x, int rank) {
    Sharding out = some_sharding(random_, rank, shape_.rank());
    for (int d = 0; d < rank; ++d) out[d] = out[d].without(x.partial);
    return out.with_partial(x.partial, x.reduction);
  }
  /// Moving changes nothing; finishing a sum rounds.
  double tolerance() const {
    return std::is_floating_point_v<T> ? 4 * shape_.processes() * shape_.processes() *
                                             static_cast<double>(std::numeric_limits<T>::epsilon())
                                       : 0;
  }

  std::shared_ptr<MeshCore> mesh_;
  MeshShape shape_;
  Random& random_;
  WithinHalos within_;
};

/// Runs operators whose results are made elsewhere than they are asked for; returns what is wrong.
/// Collective over the mesh.
inline std::string wrong_detour(const std::shared_ptr<MeshCore>& mesh) {
  const MeshShape shape = mesh->shape();
  const int last = shape.rank() - 1;
  AxisList every;
  for (int axis = 0; axis <= last; ++axis) every.push_back(axis);
  const PlanOptions options = plan_options(*mesh);
  std::string wrong;
  const auto run = [&](const std::string& name, const TensorDesc& x, const Sharding& out,
                       const auto& operation, const Plan& plan, const Whole<double>& expected) {
    const DynamicTensor input = make_input<double>(mesh, x, 1);
    const std::string text = Trial<double>(mesh, name + " on " + describe(shape))(
        [&] { return operation(input, out); }, plan, expected, 0);
    if (wrong.empty()) wrong = text;
  };
  const auto reshaped = [&](const TensorDesc& x, const Extents& to, const Sharding& out) {
    run(
        "reshape", x, out,
        [&](const DynamicTensor& t, const Sharding& s) { return tessera::reshape(t, to, s); },
        planned(ops::Reshape{to, out}, {x}, shape, mesh->process(), options),
        support::reshape(whole_input<double>(x, shape, 1), to));
  };
  const auto sliced = [&](const TensorDesc& x, const Extents& lo, const Extents& hi,
                          const Sharding& out) {
    run(
        "slice", x, out,
        [&](const DynamicTensor& t, const Sharding& s) { return tessera::slice(t, lo, hi, {}, s); },
        planned(ops::Slice{{{Slice{lo, hi, {}}}}, out}, {x}, shape, mesh->process(), options),
        support::slice(whole_input<double>(x, shape, 1), lo, hi, Extents(lo.size(), 1)));
  };
  const auto rolled = [&](const TensorDesc& x, Index by, const Sharding& out) {
    run(
        "roll", x, out,
        [&](const DynamicTensor& t, const Sharding& s) { return tessera::roll(t, by, 0, s); },
        planned(ops::Roll{{by, 0}, out}, {x}, shape, mesh->process(), options),
        support::roll(whole_input<double>(x, shape, 1), by, 0));
  };
  const TensorDesc whole{DType::f64, {38, 38, 324}, {every, {}, {}}},
      inner{DType::f64, {38, 38, 2, 162}, {{}, {}, {}, every}},
      rows{DType::f64, {203, 96}, {every, {}}};
  reshaped(whole, inner.extents, inner.sharding);
  reshaped(inner, whole.extents, whole.sharding);
  reshaped(inner, {38, 38, 4, 81}, {{}, {}, {}, every});
  reshaped(whole, {1444, 324}, {{last}, {}});
  reshaped(whole, {1444, 324}, {{}, {}});
  sliced(rows, {51, 0}, {102, 96}, {{}, {}});
  sliced(rows, {77, 3}, {78, 90}, {{}, {}});
  sliced(rows, {20, 0}, {150, 96}, {{last}, {}});
  sliced(rows, {20, 0}, {150, 96}, {{}, every});
  rolled(rows, 5, {{}, {}});
  rolled(rows, -70, {{last}, {}});
  rolled(rows, 5, {{}, every});
  return wrong;
}

/// Runs one case, all of it chosen by `random`. Collective over the mesh.
inline std::string some_shape_case(const std::shared_ptr<MeshCore>& mesh, Random& random,
                                   bool within = false) {
  const DType type = random.of<DType>({DType::f32, DType::f64, DType::i32, DType::i64});
  const int which = random.below(9);  // reshape twice as often
  return with_sampled_type(type, [&](auto element) {
    ShapeCases<decltype(element)> cases(mesh, random, within);
    switch (which) {
      case 0:
        return cases.slice();
      case 1:
        return cases.pad();
      case 2:
        return cases.reverse();
      case 3:
        return cases.roll();
      case 4:
        return cases.shift();
      case 5:
        return cases.concatenate();
      case 6:
        return cases.update();
      default:
        return cases.reshape();
    }
  });
}

}  // namespace support
