// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Random functions of tensors: what they return and what they write is the same compiled and not,
/// they send what their Program says, and take up the memory that it says.
///
///     on_every_mesh("compiled programs", 90, 40, 3, some_program_case);
///
/// Values are small whole numbers, so that every sum is exact in every order.
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/op/compile.hpp>
#include <tessera/tessera.hpp>

#include "support/enumerate.hpp"

namespace support {
using namespace tessera;
using Pool = std::vector<DynamicTensor>;

/// The rest of a sum by 101.
struct AddRest {
  KOKKOS_FUNCTION double operator()(double x, double y) const {
    const double sum = x + 2 * y;
    return sum - 101 * Kokkos::floor(sum / 101);
  }
};
struct Times {
  double factor;
  KOKKOS_FUNCTION double operator()(double x) const {
    const double y = factor * x;
    return y - 101 * Kokkos::floor(y / 101);
  }
};
struct Turned {
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t i) const { return 5 - i; }
};
struct Numbered {
  double first;
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    double value = first;
    for (int d = 0; d < i.size(); ++d) value = value * 3 + static_cast<double>(i[d] * (d + 2));
    return value - 101 * Kokkos::floor(value / 101);
  }
};

/// The contract that accepts what the product of x and y communicates where it does not loop, and
/// nothing else.
inline Contract needs_of(const DynamicTensor& x, const DynamicTensor& y, const Sharding& out) {
  const MeshCore& mesh = *x.core().mesh();
  PlanOptions options;
  options.machine = mesh.machine();
  options.machine.hidden_percent = 0;
  return ops::Einsum{parse("ij,jk->ik"), out}
      .plan({x.core().desc(), y.core().desc()}, {mesh.shape(), mesh.process(), options})
      .needs;
}

/// Matrices of three extents, squares among them, so that most pairs fit.
inline DynamicTensor some_matrix(const DynamicMesh& mesh, Random& random, double first) {
  const std::vector<Index> sides{6, 6, 7};
  const Extents extents{random.of(sides), random.of(sides)};
  const int axes = mesh.core()->shape().rank();
  return from_function<double>(mesh, extents, some_sharding(random, 2, axes), Numbered{first});
}

/// A function that `random` chooses: it calls `count` operators on a pool of matrices, some of
/// which write into tensors that are there; `number` is the host's, and changes from call to call.
struct SomeFunction {
  Random random;
  int count;

  Pool operator()(Pool& pool, double number) const {
    Random r = random;
    const DynamicMesh mesh = pool[0].mesh();
    const int axes = mesh.core()->shape().rank();
    pool[0] = map_dynamic<double>("ij->ij", Times{number}, pool[0].sharding(), pool[0]);
    for (int i = 0; i < count; ++i) step(pool, r, mesh, axes, number + i);
    Pool returned;
    for (const DynamicTensor& x : pool)
      if (r.chance(60)) returned.push_back(x);
    return returned;
  }
  static void step(Pool& pool, Random& r, const DynamicMesh& mesh, int axes, double number) {
    const auto at = [&]() -> DynamicTensor& {
      return pool[static_cast<std::size_t>(r.below(static_cast<int>(pool.size())))];
    };
    DynamicTensor& x = at();
    DynamicTensor& y = at();
    DynamicTensor& to = at();
    const Sharding out = some_sharding(r, 2, axes);
    const Sharding line = some_sharding(r, 1, axes);
    const bool alike = x.extents() == y.extents();
    switch (r.below(18)) {
      case 0:
      case 1:
        to = reshard(x, out);
        return;
      case 2:
        if (alike) to = map_dynamic<double>("ij,ij->ij", AddRest{}, out, x, y);
        return;
      case 3:
        to = map_dynamic<double>("ij->ij", Times{number}, out, x);
        return;
      case 4:
      case 5:
      case 6: {
        if (x.extents()[1] != y.extents()[0]) return;
        const Sharding made = some_sharding(r, 2, axes);
        const DynamicTensor product = r.below(2) == 0
                                          ? einsum("ij,jk->ik", x, y, made)
                                          : einsum("ij,jk->ik", x, y, made, needs_of(x, y, made));
        to = map_dynamic<double>("ij->ij", Times{3}, out, product);
        return;
      }
      case 7: {
        const DynamicTensor sums = reduce<Sum>("ij->j", x, line);
        to = map_dynamic<double>("ij,j->ij", AddRest{}, out, x, sums);
        return;
      }
      case 8:
        to = transpose("ij->ji", x, out);
        return;
      case 9:
        to = from_function<double>(mesh, x.extents(), out, Numbered{number});
        return;
      case 10:  // what is there, is written
        if (alike && x.core().storage() != y.core().storage()) reshard_into(y, x);
        return;
      case 11:
        to = map_dynamic<double>("ij->ij", Times{2}, out,
                                 cumulative<Sum>("ij", r.of<char>({'i', 'j'}), x, out));
        return;
      case 12:
        to = sort("ij", r.of<char>({'i', 'j'}), x, out);
        return;
      case 13:
        to = roll(x, r.below(9) - 4, r.below(2), out);
        return;
      case 14: {  // rows of the one above rows of the other, as many as there were
        if (x.extents()[1] != y.extents()[1]) return;
        const Index rows = x.extents()[0], first = r.below(static_cast<int>(y.extents()[0]) + 1);
        const DynamicTensor both = concatenate(0, {x, y}, some_sharding(r, 2, axes));
        to = slice(both, {first, 0}, {first + rows, x.extents()[1]}, {1, 1}, out);
        return;
      }
      case 15: {
        const DynamicTensor rows = arange<std::int64_t>(mesh.core(), line, x.extents()[0]);
        to = take("ij,k->kj", x, map_dynamic<std::int64_t>("k->k", Turned{}, line, rows), out);
        return;
      }
      case 16: {  // from a row that is the host's number
        if (x.extents()[0] < 4) return;
        const Index row = static_cast<Index>(number) % 3;
        to = dynamic_slice("ij", "i", x, {row}, {x.extents()[0] - 2}, out);
        return;
      }
      default:
        if (alike && x.core().storage() != y.core().storage())
          map_into<double>("ij,ij->ij", y, AddRest{}, y, x);
        return;
    }
  }
};

inline Pool given_to(const DynamicMesh& mesh, Random random, double first) {
  Pool pool;
  for (int i = 0; i < 5; ++i) pool.push_back(some_matrix(mesh, random, first + i));
  return pool;
}
inline std::string difference(const Pool& got, const Pool& expected, const char* what) {
  if (got.size() != expected.size()) return std::string(what) + ": another number of tensors";
  std::string text;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!(got[i].sharding() == expected[i].sharding()))
      return std::string(what) + " " + std::to_string(i) + " is sharded otherwise";
    if (!got[i].core().dry() && !(to_host<double>(got[i]) == to_host<double>(expected[i])))
      text = std::string(what) + " " + std::to_string(i) + " has other values";
  }
  return text;
}

/// One function, called twice compiled and twice alone; the second time with other numbers.
inline std::string some_program_case(const std::shared_ptr<MeshCore>& core, Random& random) {
  const DynamicMesh mesh(core);
  const SomeFunction function{Random(random.next()), 1 + random.below(14)};
  const Random given(random.next());
  // Some limits are small, and keep moves from being shared, joined or started early.
  const Index limit = random.chance(70) ? max_int64 : 1000 + 200 * random.below(30);
  auto compiled = compile(function, {.share = random.chance(80),
                                     .join = random.chance(80),
                                     .reuse = random.chance(80),
                                     .overlap = random.chance(80),
                                     .memory_limit = limit});
  std::string wrong;
  for (const double number : {1.0, 5.0}) {
    Pool pool = given_to(mesh, given, number), same = given_to(mesh, given, number);
    const Pool expected = function(pool, number);
    Ledger& ledger = core->ledger();
    ledger.reset();
    core->arena().reset_peak();
    const Index before = core->arena().in_use();
    const Pool got = compiled(same, number);
    const Program& program = compiled.program();
    const auto is = [&](Index measured, Index planned, const char* what) {
      if (measured != planned && wrong.empty())
        wrong = "the run " + std::string(what) + " " + std::to_string(measured) +
                " bytes, its Program " + std::to_string(planned) + "\n" +
                explain(compiled.sharing()) + explain(compiled.joining()) +
                explain(compiled.reuse()) + explain(compiled.overlap()) + explain_own(program);
    };
    is(ledger.payload_bytes(), program.own_payload_bytes(), "sends");
    // What the Program does not know lies beside its tensors all the time.
    Index others = core->arena().in_use();
    for (const ProgramTensor& t : program.tensors())
      if (t.last >= program.size()) others -= t.bytes;
    is(core->arena().peak(), std::max(before, others + program.peak_bytes()), "takes");
    const std::string results = difference(got, expected, "result");
    const std::string arguments = difference(same, pool, "argument");
    if (wrong.empty() && !(results + arguments).empty())
      wrong = results + arguments + "\n" + explain(compiled.sharing()) + explain(program);
  }
  // All processes go on alike, whichever found something.
  return wrong.empty() && compiled.structures() != 1 ? "there are several structures" : wrong;
}
}  // namespace support
