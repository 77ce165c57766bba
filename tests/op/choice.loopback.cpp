// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Choices as values: made of a function and its arguments, run again, written, read, compared, and
// kept from one edit of a program to the next.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include <unistd.h>

#include <tessera/io/choice_file.hpp>
#include <tessera/op/compile.hpp>
#include <tessera/run/choose_of.hpp>
#include <tessera/tessera.hpp>

#include "support/enumerate.hpp"
#include "support/grid.hpp"
#include "support/near.hpp"

using namespace tessera;
using support::Random, support::near, support::error_of;

namespace {
template <class... D> using Real = ShardedTensor<double, Grid, P<D...>>;

std::mutex mutex;

struct Weights {
  DynamicTensor in, out;
  static constexpr auto fields = Fields<&Weights::in, &Weights::out>{};
};
/// The block of the tests, of whatever shardings.
DynamicTensor feed(const DynamicTensor& x, const Weights& w) {
  return einsum("bh,ho->bo", tanh(einsum("bi,ih->bh", x, w.in)), w.out);
}
TensorDesc matrix(Index rows, Index columns, const Sharding& s = {{}, {}}) {
  return {DType::f64, {rows, columns}, s};
}
Weights dry_weights(const ProcessMesh<Grid>& mesh, Index wide) {
  const auto dry = [&](Index rows, Index columns) {
    return DynamicTensor(TensorCore::make(mesh.core(), matrix(rows, columns)));
  };
  return {dry(64, wide), dry(wide, 64)};
}

/// A small program as a list of numbers, which is edited.
struct Operator {
  int kind;
  Index extent;
  std::vector<int> axes;  ///< of the argument that it takes: a dimension for each axis, or -1
};
Operator some_operator(Random& random) {
  return {random.below(5), Index{4} << random.below(7), {random.below(3) - 1, random.below(3) - 1}};
}
Program listed(const std::vector<Operator>& operators, const MeshSizes<Grid>& sizes) {
  const auto run = [&](const ProcessMesh<Grid>& mesh, const DynamicTensor& first) {
    DynamicTensor x = first;
    const auto given = [&](Index rows, Index columns, const std::vector<int>& axes) {
      Sharding s = Sharding::replicated(2);
      for (int a = 0; a < 2; ++a)
        if (axes[static_cast<std::size_t>(a)] >= 0)
          s[axes[static_cast<std::size_t>(a)]].push_back(a);
      return DynamicTensor(TensorCore::make(mesh.core(), matrix(rows, columns, s)));
    };
    for (const Operator& o : operators) switch (o.kind) {
        case 0:
          x = einsum("ij,jk->ik", x, given(x.extents()[1], o.extent, o.axes));
          break;
        case 1:
          x = x + given(x.extents()[0], x.extents()[1], o.axes);
          break;
        case 2:
          x = tanh(x);
          break;
        case 3:
          x = einsum("ij,kj->ki", x, given(o.extent, x.extents()[1], o.axes));
          break;
        default:
          x = exp(x) + x;
      }
    return x;
  };
  return plan(run)(matrix(64, 32, {{0}, {}}), sizes);
}
}  // namespace

TEST_CASE("a choice of a function: its arguments have paths, are opened by them and born so") {
  const auto sizes_of = sizes<Grid>(2, 4);
  const auto mesh = dry_mesh<Grid>(sizes_of);
  const Weights weights = dry_weights(mesh, 512);
  const Choice stated = choose(feed)(matrix(256, 64, {{0}, {}}), weights, sizes_of);
  const Program alike = plan([&](const DynamicTensor& x) {
    const auto on = x.mesh();
    const auto dry = [&](Index rows, Index columns) {
      return DynamicTensor(TensorCore::make(x.core().mesh(), matrix(rows, columns)));
    };
    return feed(x, {dry(64, 512), dry(512, 64)});
  })(matrix(256, 64, {{0}, {}}), sizes_of);
  CHECK(stated.chosen == choose(alike, plan_options(*mesh.core())).chosen);
  CHECK(stated.argument("1.in") == Sharding{{}, {}});
  const ChooseOptions one{.open_paths = {"1.in"}}, both{.open_paths = {"1"}};
  const Choice in = choose(feed, one)(matrix(256, 64, {{0}, {}}), weights, sizes_of);
  const Choice all = choose(feed, both)(matrix(256, 64, {{0}, {}}), weights, sizes_of);
  CHECK(in.argument("1.out") == Sharding{{}, {}});
  CHECK(in.cost <= stated.cost);
  CHECK(all.cost <= in.cost);
  CHECK(all.argument("0") == Sharding{{0}, {}});
  if (!(all.argument("1.in") == Sharding{{}, {}}))
    CHECK(explain(all).find("argument 1.in") != std::string::npos);
  CHECK(error_of<UsageError>([&] { (void)all.argument("1.bias"); }).find("1.bias") !=
        std::string::npos);
  const ChooseOptions none{.open_paths = {"2"}};
  CHECK(error_of<UsageError>([&] {
          (void)choose(feed, none)(matrix(256, 64), weights, sizes_of);
        }).find("those that operators read are 0, 1.in, 1.out") != std::string::npos);
}

TEST_CASE("a choice is carried out by a compiled function, its arguments born as it says") {
  for (const MeshSizes<Grid> size : {sizes<Grid>(2, 2), sizes<Grid>(3, 2)})
    run_loopback(size.shape.processes(), [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(world, size);
      const auto whole = [&](const Extents& extents, std::uint64_t seed) {
        return DynamicTensor(random_normal<Real<_, _>>(mesh, extents, seed));
      };
      const DynamicTensor x = whole({7, 64}, 1);
      const Weights weights{whole({64, 96}, 2), whole({96, 64}, 3)};
      ChooseOptions options{.open_paths = {"1"}};
      options.pins = {};
      const auto pinned = [](const DynamicTensor& a, const Weights& w) {
        return einsum("bh,ho->bo", constrain(tanh(einsum("bi,ih->bh", a, w.in)), {Open{}, {1}}),
                      w.out);
      };
      const Choice choice = choose(pinned, options)(x, weights, mesh);
      const Weights born{reshard(weights.in, choice.argument("1.in")),
                         reshard(weights.out, choice.argument("1.out"))};
      auto step = compile(feed, choice);
      bool right = near(step(x, born), feed(x, weights));
      const Choice& again = step.choice();
      for (std::size_t t = 0; t < choice.chosen.size(); ++t)
        if (choice.free[t]) right = right && again.chosen[t] == choice.chosen[t];
      std::string other;
      if (!(choice.argument("1.in") == Sharding{{}, {}}))
        other = error_of<ShardingError>([&] { (void)compile(feed, choice)(x, weights); });
      const std::lock_guard lock(mutex);
      CHECK(right);
      CHECK((other.empty() || other.find("choice.argument(path)") != std::string::npos));
    });
}

TEST_CASE("a table is read as it was written, and what is none is refused with its line") {
  Random random(41);
  const std::string path =
      (std::filesystem::temp_directory_path() / ("tessera_choice_" + std::to_string(::getpid())))
          .string();
  for (int i = 0; i < 20; ++i) {
    std::vector<Operator> operators(static_cast<std::size_t>(1 + random.below(6)));
    for (Operator& o : operators) o = some_operator(random);
    const ChoiceTable table = table_of(choose(listed(operators, sizes<Grid>(2, 4))));
    CHECK(parse_choice(to_string(table)) == table);
    write_choice(path, table);
    CHECK(read_choice(path) == table);
  }
  ChoiceTable odd{{"data", "model"}, {2, 4}, Objective::payload, 3, 2, 1, {}};
  odd.tensors.push_back({"layer 1/ij,jk->ik", DType::bf16, {}, {}, true});
  odd.tensors.push_back({"x", DType::c64, {3, 0}, Sharding{{1, 0}, {}}, false});
  odd.tensors.push_back(
      {"y", DType::i8, {5}, Sharding{{0}}.with_partial(AxisSet{1}, Reduction::max), false});
  CHECK(parse_choice(to_string(odd)) == odd);
  std::filesystem::remove(path);
  CHECK_THROWS_AS((void)read_choice(path), FileError);
  const std::string text = to_string(odd);
  for (std::size_t n = 0; n + 40 < text.size(); ++n) {  // torn, or with another byte
    try {
      (void)parse_choice(text.substr(0, n));
    } catch (const FileError&) {
    }
    std::string changed = text;
    changed[n] = static_cast<char>(changed[n] ^ 5);
    try {
      (void)parse_choice(changed);
    } catch (const FileError&) {
    }
  }
  const auto says = [](const std::string& of) {
    return error_of<FileError>([&] { (void)parse_choice(of); });
  };
  const std::string head =
      "tessera choice 1\nmesh data=2\nobjective time\ncost before=3 after=2 bound=1\n";
  CHECK(says("nothing").find("line 1") != std::string::npos);
  CHECK(says(head + "chosen float 8 P<model> x\n").find("line 5: the mesh has no axis \"model\"") !=
        std::string::npos);
  CHECK(says(head + "chosen float 8 P<data,data> x\n").find("line 5") != std::string::npos);
  CHECK(says(head + "chosen floats 8 P<data> x\n").find("no element type") != std::string::npos);
}

TEST_CASE("after an edit a sharding differs only where keeping it, too, would cost more") {
  Random random(43);
  int edited = 0, kept = 0;
  for (int i = 0; i < 60; ++i) {
    const auto sizes_of = random.below(2) == 0 ? sizes<Grid>(2, 2) : sizes<Grid>(2, 4);
    std::vector<Operator> operators(static_cast<std::size_t>(2 + random.below(6)));
    for (Operator& o : operators) o = some_operator(random);
    const Choice before = choose(listed(operators, sizes_of));
    const ChoiceTable table = table_of(before);
    const auto at = static_cast<std::ptrdiff_t>(random.below(static_cast<int>(operators.size())));
    if (i % 4 == 1)
      operators.erase(operators.begin() + at);
    else if (i % 4 == 2)
      operators.insert(operators.begin() + at, some_operator(random));
    else if (i % 4 == 3)
      operators[static_cast<std::size_t>(at)] = some_operator(random);
    if (operators.empty()) continue;
    const Program program = listed(operators, sizes_of);
    const Choice anew = choose(program);
    ChooseOptions options{.previous = keep(table)};
    const Choice choice = choose(program, {}, options);
    CAPTURE(i);
    CAPTURE(difference(choice, table));
    CHECK(choice.cost <= anew.cost);
    CHECK(choice.bound == anew.bound);
    if (i % 4 == 0) {
      CHECK(choice.chosen == before.chosen);
      CHECK(difference(choice, table).find("0 tensors split otherwise, 0 new, 0 gone") !=
            std::string::npos);
    }
    const std::vector<int> row = detail::aligned(program, table);
    std::vector<TensorPin> pins;
    for (std::size_t t = 0; t < row.size(); ++t)
      if (row[t] >= 0 && choice.free[t] &&
          table.tensors[static_cast<std::size_t>(row[t])].sharding == choice.chosen[t])
        pins.push_back({static_cast<int>(t), choice.chosen[t]});
    kept += static_cast<int>(pins.size());
    for (std::size_t t = 0; t < row.size(); ++t) {
      if (row[t] < 0 || !choice.free[t]) continue;
      const Sharding& was = table.tensors[static_cast<std::size_t>(row[t])].sharding;
      if (was == choice.chosen[t] || !was.partial.empty()) continue;
      ++edited;
      ChooseOptions forced;
      forced.pins = pins;
      forced.pins.push_back({static_cast<int>(t), was});
      CHECK(choose(program, {}, forced).cost > choice.cost);
    }
  }
  CHECK(edited > 3);
  CHECK(kept > 60);
}

TEST_CASE("the specs of a choice are C++") {
  const auto sizes_of = sizes<Grid>(2, 4);
  const Choice choice = choose(feed, {.open_paths = {"1"}})(
      matrix(256, 64, {{0}, {}}), dry_weights(dry_mesh<Grid>(sizes_of), 512), sizes_of);
  const std::string text = specs_of(choice);
  CAPTURE(text);
  CHECK(text.find("using Tanh = P<") != std::string::npos);
  CHECK(text.find(";  // argument 1.in, 64x512\n") != std::string::npos);
}
