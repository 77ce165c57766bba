// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Programs that are listed operator by operator, and random ones of all kinds of operators.
///
///     ListedProgram list(MeshShape{2, 4});
///     const int x = list.given({8, 6}, {{0}, {}}), y = list.einsum("ij,jk->ik", x, w);
///     const Program program = list.take(y);
///     const Program any = program_of(some_recipe(random, 5), MeshShape{2, 2, 2});
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/plan.hpp>
#include <tessera/plan/op/elements/map.hpp>
#include <tessera/plan/op/elements/map_several.hpp>
#include <tessera/plan/op/indexed/dynamic_slice.hpp>
#include <tessera/plan/op/indexed/one_hot.hpp>
#include <tessera/plan/op/indexed/scatter.hpp>
#include <tessera/plan/op/indexed/take.hpp>
#include <tessera/plan/op/product/einsum.hpp>
#include <tessera/plan/op/rows/moments.hpp>
#include <tessera/plan/op/rows/normalize.hpp>
#include <tessera/plan/op/rows/reduce.hpp>
#include <tessera/plan/op/rows/scan.hpp>
#include <tessera/plan/op/rows/softmax.hpp>
#include <tessera/plan/op/rows/sort.hpp>
#include <tessera/plan/op/shape/broadcast.hpp>
#include <tessera/plan/op/shape/reshape.hpp>
#include <tessera/plan/op/shape/shape.hpp>
#include <tessera/plan/op/shape/transpose.hpp>
#include <tessera/plan/op/window/convolve.hpp>
#include <tessera/plan/op/window/reduce_window.hpp>
#include <tessera/program/choice.hpp>
#include <tessera/program/ways.hpp>

#include "support/enumerate.hpp"

namespace support {

/// Lists operators as a dry run does: each result has the sharding that follows from its operands.
class ListedProgram {
 public:
  explicit ListedProgram(const MeshShape& mesh) {
    program.mesh = mesh;
    AxisNames names;
    for (const char* name : {"data", "model", "third"})
      if (names.size() < mesh.rank()) names.push_back(name);
    program.set_names(names);
  }
  int given(const Extents& extents, const Sharding& s, DType type = DType::f32) {
    const TensorDesc desc{type, extents, s};
    return program.add({desc, bytes_of(desc), -1, 0, 0});
  }
  int run(const Operation& any, const FixedVector<int, max_operands>& operands,
          const char* label = "operator") {
    TensorDescs descs;
    for (const int t : operands) descs.push_back(program.tensor(t).desc);
    const Operation op = any.with_result(any.view().deduced(descs));
    REQUIRE_MESSAGE(op.check(descs).ok(), explain(op.check(descs)));
    const PlanOptions options;
    ProgramEntry entry{
        std::make_shared<const Plan>(op.plan(descs, {program.mesh, 0, options})), label, {}};
    entry.operands = operands;
    entry.operation = std::make_shared<const Operation>(op);
    const TensorDescs made = op.view().results(descs);
    const int i = program.size();
    // Where nothing is to be done, the result is the operand.
    const int same = entry.plan->result < operands.size() ? operands[entry.plan->result] : -1;
    for (int k = 0; k < made.size(); ++k) {
      const bool is_same = k == 0 && same >= 0 && program.tensor(same).desc == made[0];
      const int t = is_same ? same : program.add({made[k], bytes_of(made[k]), i, i, i});
      if (k == 0)
        entry.result = t;
      else
        entry.also.push_back(t);
    }
    const int result = entry.result;
    program.record(std::move(entry));
    for (const int t : operands) program.tensor_to_change(t).last = i;
    return result;
  }
  int einsum(const char* equation, int a, int b) {
    return run(ops::Einsum{parse(equation), {}}, {a, b}, equation);
  }
  int map(const FixedVector<int, max_operands>& x, const char* label) {
    FixedVector<int, max_operands> ranks;
    for (const int t : x) ranks.push_back(program.tensor(t).desc.rank());
    return run(ops::Map{tessera::detail::broadcast_terms(ranks),
                        program.tensor(x[0]).desc.type,
                        Linearity::pointwise,
                        {}},
               x, label);
  }
  int add(int a, int b) { return map({a, b}, "add"); }
  int relu(int x) { return map({x}, "relu"); }
  void keep(int t) { program.tensor_to_change(t).last = program.size(); }
  /// Returns the Program with the lifetimes of its tensors, which alone are held.
  Program take() {
    program.relist(program.entries());
    program.state_held(0);
    return program;
  }
  Program take(int kept) {
    keep(kept);
    return take();
  }

  Program program;

 private:
  Index bytes_of(const TensorDesc& x) const {
    return tessera::detail::arena_charge(
        tessera::detail::block_volume(x.extents, x.sharding, program.mesh,
                                      program.mesh.coordinates(0)) *
        static_cast<Index>(size_of(x.type)));
  }
};

inline Sharding some_placement(Random& random, const Extents& extents, const MeshShape& mesh) {
  return random.of(tessera::detail::placements(extents, mesh));
}

/// A number for each operator, which says what it is and what it reads: so one operator more, one
/// less or another one is an edit.
using Recipe = std::vector<std::uint64_t>;

inline Recipe some_recipe(Random& random, int operators) {
  Recipe recipe;
  for (int i = 0; i < operators; ++i) recipe.push_back(random.next());
  return recipe;
}

/// Writes programs of all kinds of operators, of extents that axes do not divide. Each operator
/// reads the last tensor or an earlier one.
class SomeProgram {
 public:
  SomeProgram(const MeshShape& mesh, std::uint64_t seed) : list_(mesh), random_(seed) {
    const int rank = 1 + random_.below(3);
    Extents extents;
    for (int d = 0; d < rank; ++d) extents.push_back(extent());
    made_.push_back(given(extents));
  }
  void add(std::uint64_t seed) {
    random_ = Random(seed);
    int x = made_.back();
    if (random_.chance(25)) x = random_.of(made_);
    if (of(x).type != DType::f32) x = list_.run(one_hot(x), {x}, "one_hot");
    for (int tries = 0; tries < 20; ++tries)
      if (const int y = some_operator(x); y >= 0) return made_.push_back(y);
  }
  Program take() {
    for (const int t : made_)
      if (random_.chance(10)) list_.keep(t);
    list_.keep(made_.back());
    return list_.take();
  }

 private:
  static constexpr int most_rank = 4;

  const TensorDesc& of(int t) const { return list_.program.tensor(t).desc; }
  Extents extents_of(int t) const { return of(t).extents; }
  Index extent() {
    return random_.chance(60) ? 1 + random_.below(13) : Index{4} << random_.below(7);
  }
  int given(const Extents& extents, DType type = DType::f32) {
    const Sharding s = random_.chance(50) ? Sharding::replicated(extents.size())
                                          : some_placement(random_, extents, list_.program.mesh);
    return list_.given(extents, s, type);
  }
  /// Returns a tensor of these extents: an earlier one, if there is one, or an argument.
  int another(const Extents& extents) {
    for (const int t : made_)
      if (extents_of(t) == extents && of(t).type == DType::f32 && random_.chance(50)) return t;
    return given(extents);
  }
  static std::string letters(int rank) { return std::string("abcdefgh").substr(0, rank); }
  Operation one_hot(int x) {
    const std::string all = letters(of(x).rank());
    return ops::OneHot{
        parse(("," + all + "->" + all + "z").substr(1)), 'z', DType::f32, 1 + random_.below(5), {}};
  }
  /// Returns what a random operator makes of tensor x; -1: it has none of this rank.
  int some_operator(int x) {
    const Extents n = extents_of(x);
    const int rank = n.size();
    const std::string all = letters(rank);
    const auto terms = [&](const std::string& text) { return parse(text); };
    const auto run = [&](const Operation& op, const FixedVector<int, max_operands>& operands,
                         const char* label) { return list_.run(op, operands, label); };
    const int d = rank > 0 ? random_.below(rank) : 0;
    const char letter = rank > 0 ? all[static_cast<std::size_t>(d)] : '\0';
    const std::string without = rank > 0 ? all.substr(0, static_cast<std::size_t>(d)) +
                                               all.substr(static_cast<std::size_t>(d) + 1)
                                         : all;
    switch (random_.below(rank == 0 ? 3 : 25)) {
      case 0:
        return list_.map({x}, "exp");
      case 1:
        return list_.add(x, another(n));
      case 2: {  // a broadcast, of a tensor to a larger one, or of a row
        if (rank > 1 && random_.chance(50)) return list_.add(x, another({n[rank - 1]}));
        if (rank == most_rank) return -1;
        Dimensions dims;
        Extents larger;
        const int fresh = random_.below(rank + 1);
        for (int k = 0; k <= rank; ++k) {
          if (k != fresh) dims.push_back(k);
          larger.push_back(k == fresh ? extent() : n[k < fresh ? k : k - 1]);
        }
        return run(ops::Broadcast{dims, larger, {}}, {x}, "broadcast");
      }
      case 3: {  // a product over the letter
        const std::string out = without + "z";
        return run(ops::Einsum{terms(all + "," + letter + "z->" + out), {}},
                   {x, another({n[d], extent()})}, "product");
      }
      case 4: {  // a product with a batch, if there are letters for it
        if (rank < 2) return -1;
        const int b = (d + 1) % rank;
        const char batch = all[static_cast<std::size_t>(b)];
        return run(ops::Einsum{terms(all + "," + batch + letter + "z->" + without + "z"), {}},
                   {x, another({n[b], n[d], extent()})}, "products");
      }
      case 5: {  // with itself
        if (rank < 2) return -1;
        std::string other = all;
        other[static_cast<std::size_t>(d)] = 'z';
        return run(ops::Einsum{terms(all + "," + other + "->" + letter + "z"), {}}, {x, x},
                   "squares");
      }
      case 6: {
        ops::Reduce one;
        one.terms = terms(all + "->" + without);
        one.reduction = random_.chance(70) ? Reduction::sum : Reduction::max;
        return run(one, {x}, "reduce");
      }
      case 7:
        return run(ops::Softmax{terms(all + "->" + all), letter, random_.chance(30), {}}, {x},
                   "softmax");
      case 8:
        return run(ops::Scan{terms(all + "->" + all), letter, Reduction::sum, {}, DType::f32, {}},
                   {x}, "scan");
      case 9:
        return run(
            ops::Normalize{
                terms(all + "," + all.back() + "," + all.back() + "->" + all), true, 1e-5, {}},
            {x, another({n[rank - 1]}), another({n[rank - 1]})}, "normalize");
      case 10: {
        std::string turned = all;
        std::rotate(turned.begin(), turned.begin() + 1 + d, turned.end());
        return run(ops::Transpose{terms(all + "->" + turned), {}}, {x}, "transpose");
      }
      case 11: {  // two dimensions are joined, or one is divided
        if (rank > 1 && random_.chance(50)) {
          Extents joined;
          const int at = random_.below(rank - 1);
          for (int k = 0; k < rank; ++k)
            if (k == at + 1)
              joined[at] *= n[k];
            else
              joined.push_back(n[k]);
          return run(ops::Reshape{joined, {}}, {x}, "reshape");
        }
        const Index by = n[d] % 2 == 0 ? 2 : n[d] % 3 == 0 ? 3 : 1;
        if (rank == most_rank || by == 1) return -1;
        Extents divided;
        for (int k = 0; k < rank; ++k) {
          if (k == d) divided.push_back(n[k] / by);
          divided.push_back(k == d ? by : n[k]);
        }
        return run(ops::Reshape{divided, {}}, {x}, "reshape");
      }
      case 12: {
        Slice part{Extents(rank, 0), n, Extents(rank, 1)};
        part.start[d] = random_.below(2) % n[d];
        part.stride[d] = 1 + random_.below(2);
        ops::Slice one;
        one.parts.push_back(part);
        return run(one, {x}, "slice");
      }
      case 13: {
        ops::Pad pad;
        pad.low = pad.high = pad.interior = Extents(rank, 0);
        pad.low[d] = random_.below(3);
        pad.high[d] = random_.below(3);
        pad.interior[d] = random_.below(2);
        return run(pad, {x}, "pad");
      }
      case 14:
        if (random_.chance(30)) return run(ops::Reverse{{Dimensions{d}}, {}}, {x}, "reverse");
        if (random_.chance(50)) return run(ops::Shift{{1, d, Outside::zero}, {}}, {x}, "shift");
        return run(ops::Roll{{1 + random_.below(3), d, Outside::zero}, {}}, {x}, "roll");
      case 15: {
        Extents m = n;
        m[d] = extent();
        ops::Concatenate both;
        both.dim = d;
        return run(both, {x, another(m)}, "concatenate");
      }
      case 16: {  // rows of x that an argument names
        const bool rest = rank > 1;
        if (rank == most_rank && random_.chance(50)) return -1;
        return run(ops::Take{terms(all + ",z->z" + without), OutOfRange::clamp, {}, {}},
                   {x, given({extent()}, DType::i32)}, rest ? "take rows" : "take");
      }
      case 17: {  // rows of x are added where an argument says
        const Index rows = extent();
        return run(ops::Scatter{terms(std::string(1, letter) + "," + all + "->z" + without),
                                Reduction::sum,
                                OutOfRange::drop,
                                {rows},
                                false,
                                {}},
                   {given({n[d]}, DType::i32), x}, "scatter");
      }
      case 18: {
        SortTask task{.descending = random_.chance(50), .positions = random_.chance(50)};
        if (random_.chance(40))
          task.kind = OperatorKind::top_k, task.limit = 1 + random_.below(static_cast<int>(n[d]));
        return run(ops::Sort{terms(all + "->" + all), letter, task, {}}, {x}, "sort");
      }
      case 19:
        return run(ops::Moments{terms(all + "->" + without), random_.chance(50), {}}, {x},
                   "moments");
      case 20: {
        ops::MapSeveral two;
        two.terms = tessera::detail::broadcast_terms({rank});
        two.types = {DType::f32, DType::f32};
        return run(two, {x}, "two of one");
      }
      case 21: {
        ops::ReduceWindow window;
        window.reduction = random_.chance(50) ? Reduction::sum : Reduction::max;
        WindowSettings settings{.size = Extents(rank, 1)};
        settings.low = settings.high = Extents(rank, 0);
        settings.stride = Extents(rank, 1);
        settings.size[d] = 2;
        settings.low[d] = 1;
        settings.stride[d] = 1 + random_.below(2);
        window.windows = tessera::detail::windows_of(settings, rank);
        return run(window, {x}, "window");
      }
      case 22: {  // a batch of images, of one or two dimensions
        if (rank < 3) return -1;
        const int spatial = rank - 2;
        ops::Convolve conv;
        const std::string at = std::string("hw").substr(0, static_cast<std::size_t>(spatial));
        conv.terms = terms("b" + at + "i," + at + "io->b" + at + "o");
        Extents kernel;
        for (int k = 0; k < spatial; ++k) {
          kernel.push_back(1 + random_.below(3));
          conv.settings.low.push_back(kernel[k] / 2);
          conv.settings.high.push_back(kernel[k] / 2);
          conv.settings.stride.push_back(1 + random_.below(2));
        }
        kernel.push_back(n[rank - 1]);
        kernel.push_back(extent());
        return run(conv, {x, another(kernel)}, "convolve");
      }
      case 23:
        return run(ops::Reshard{some_placement(random_, n, list_.program.mesh)}, {x}, "reshard");
      default: {
        const Index size = 1 + random_.below(static_cast<int>(n[d]));
        return run(
            ops::DynamicSlice{
                terms(all + "->" + all), terms(std::string(1, letter) + "->" + letter), {size}, {}},
            {x}, "dynamic slice");
      }
    }
  }

  ListedProgram list_;
  Random random_;
  std::vector<int> made_;
};

/// Returns the program of a recipe; the first argument and what is kept follow from `seed`.
inline Program program_of(const Recipe& recipe, const MeshShape& mesh, std::uint64_t seed) {
  SomeProgram some(mesh, seed);
  for (const std::uint64_t one : recipe) some.add(one);
  return some.take();
}

/// Returns a mesh of at most three axes, whose sizes need not be powers of two.
inline MeshShape some_mesh(Random& random) {
  return random.of<MeshShape>({MeshShape{2}, MeshShape{3}, MeshShape{4}, MeshShape{2, 2},
                               MeshShape{2, 3}, MeshShape{2, 4}, MeshShape{4, 2},
                               MeshShape{2, 2, 2}, MeshShape{3, 1, 2}});
}

}  // namespace support
