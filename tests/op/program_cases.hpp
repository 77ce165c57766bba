// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Random functions of tensors: what they return and what they write is the same compiled and not,
/// they send what their Program says, and take up the memory that it says.
///
///     on_every_mesh("compiled programs", 90, 40, 3, some_program_case);
///
/// Values are small whole numbers, so that every sum is exact in every order; those of gradients
/// are compared to rounding.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/grad.hpp>
#include <tessera/op/compile.hpp>
#include <tessera/program/peak.hpp>
#include <tessera/tessera.hpp>

#include "op/rests.hpp"
#include "support/enumerate.hpp"
#include "support/larger.hpp"
#include "support/observer.hpp"

namespace support {
using namespace tessera;
using Pool = std::vector<DynamicTensor>;

struct BothRests {
  KOKKOS_FUNCTION Several<double, double> operator()(double x, double y) const {
    return several(AddRest{}(x, y), AddRest{}(y, x));
  }
};
struct Turned {
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t i) const { return 5 - i; }
};
template <class From, class To> struct Converted {
  KOKKOS_FUNCTION To operator()(From x) const { return static_cast<To>(x); }
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
  /// Windows of three along a dimension, as many as there are elements.
  static WindowSettings same_window(int dim) {
    return dim == 0 ? WindowSettings{.size = {3, 1}, .low = {1, 0}, .high = {1, 0}}
                    : WindowSettings{.size = {1, 3}, .low = {0, 1}, .high = {0, 1}};
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
    const auto outside = [](const DynamicTensor& t) { return t.core().storage()->adopted(); };
    const bool apart =  // in memory, too
        alike && x.core().storage() != y.core().storage() && !(outside(x) && outside(y));
    const char letter = r.of<char>({'i', 'j'});
    const int dim = letter == 'i' ? 0 : 1;
    const auto rest = [&](const DynamicTensor& t) {
      return map_dynamic<double>("ij->ij", Times{3}, some_sharding(r, 2, axes), t);
    };
    const auto turned_rows = [&](Index rows) {
      return map_dynamic<std::int64_t>("k->k", Turned{}, line,
                                       arange<std::int64_t>(mesh.core(), line, rows));
    };
    const auto doubles = [](const DynamicTensor& places) {
      return map_dynamic<std::int64_t>(places.core().rank() == 1 ? "j->j" : "ij->ij",
                                       Converted<std::int64_t, double>{}, places.sharding(),
                                       places);
    };
    std::optional<Layer> layer;
    if (r.chance(30)) layer.emplace(mesh, r.chance(50) ? "one" : "other");
    switch (r.below(37)) {
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
                                          : einsum("ij,jk->ik", x, y, {made, needs_of(x, y, made)});
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
        if (apart) reshard_into(y, x);
        return;
      case 11:
        to =
            map_dynamic<double>("ij->ij", Times{2}, out, cumulative<Sum>("ij", letter, x, {}, out));
        return;
      case 12:
        to = sort("ij", letter, x, {}, out);
        return;
      case 13:
        to = roll(x, r.below(9) - 4, dim, out);
        return;
      case 14: {  // rows of the one above rows of the other, as many as there were
        if (x.extents()[1] != y.extents()[1]) return;
        const Index rows = x.extents()[0], first = r.below(static_cast<int>(y.extents()[0]) + 1);
        const DynamicTensor both = concatenate(0, {x, y}, some_sharding(r, 2, axes));
        to = slice(both, {first, 0}, {first + rows, x.extents()[1]}, {1, 1}, out);
        return;
      }
      case 15: {
        to = take("ij,k->kj", x, turned_rows(x.extents()[0]), {}, out);
        return;
      }
      case 16: {  // from a row that is the host's number
        if (x.extents()[0] < 4) return;
        const Index row = static_cast<Index>(number) % 3;
        to = dynamic_slice("ij", "i", x, {row}, {x.extents()[0] - 2}, out);
        return;
      }
      case 17:
        to = reverse(x, FixedVector<int, max_dims>{dim}, out);
        return;
      case 18:  // what comes in is the host's number
        to = shift(x, r.below(7) - 3, dim, number + 1, out);
        return;
      case 19: {
        const DynamicTensor wide =
            pad(x, {1, 0}, {0, 2}, {}, number + 1, some_sharding(r, 2, axes));
        to = slice(wide, {0, 1}, {x.extents()[0], x.extents()[1] + 1}, {}, out);
        return;
      }
      case 20: {  // two results
        const auto top = top_k("ij", letter, x, x.extents()[dim], some_sharding(r, 2, axes));
        to = map_dynamic<double>("ij,ij->ij", AddRest{}, out, top.values, doubles(top.indices));
        return;
      }
      case 21:
        to = map_dynamic<double>("ij,ij->ij", AddRest{}, out, x,
                                 doubles(argsort("ij", letter, x, {}, out)));
        return;
      case 22:
        if (x.extents()[1] == y.extents()[1])
          to = rest(scatter<Sum>("ij,k,kj->ij", x, turned_rows(y.extents()[0]), y, {}, out));
        return;
      case 23:
        to = r.chance(50) ? reduce_window<Max>(x, same_window(dim), out)
                          : rest(reduce_window<Sum>(x, same_window(dim), out));
        return;
      case 24:
        if (alike) to = rest(select_and_scatter<Max>(x, y, same_window(dim), out));
        return;
      case 25: {
        const DynamicTensor places = doubles(argmax("ij->j", x, line));
        to = map_dynamic<double>("ij,j->ij", AddRest{}, out, x, places);
        return;
      }
      case 26: {
        if (!alike || y.extents()[0] < 5) return;
        const DynamicTensor part = slice(y, {1, 0}, {4, y.extents()[1]}, {}, y.sharding());
        const Index row = static_cast<Index>(number) % 3;
        to = r.chance(50) ? dynamic_update_slice("ij", "i", x, part, {row}, out)
                          : update(x, part, {2, 0}, out);
        return;
      }
      case 27: {
        const DynamicTensor first = slice(x, {0, 0}, {1, x.extents()[1]}, {}, x.sharding());
        to = broadcast_to(first, x.extents(), out);
        return;
      }
      case 28: {  // started, and waited for after another
        auto pending = async([&] { return reshard(x, out); });
        const DynamicTensor other = rest(y);
        to = pending.wait();
        if (r.chance(50)) pool[0] = other;
        return;
      }
      case 29: {
        const Index n = x.extents()[0], m = x.extents()[1];
        to = reshape(reshape(x, {n * m}, line), {m, n}, out);
        return;
      }
      case 30:  // into what is there
        if (apart) (void)roll(x, 1, dim, {y.sharding(), into(y)});
        return;
      case 31:
        if (x.extents()[1] == y.extents()[0] && y.extents()[1] == x.extents()[0])
          to = rest(einsum("ij,jk,kl->il", {x, y, x}, out));
        return;
      case 32: {
        const DynamicTensor narrow =
            map_dynamic<double>("ij->ij", Converted<double, float>{}, x.sharding(), x);
        to = map_dynamic<float>("ij->ij", Converted<float, double>{}, out,
                                reshard(narrow, some_sharding(r, 2, axes)));
        return;
      }
      case 33: {  // several results of one pass
        if (!alike) return;
        const auto both = map_several<double, double>(BothRests{}, some_sharding(r, 2, axes), x, y);
        to = map_dynamic<double>("ij,ij->ij", AddRest{}, out, both[0], both[1]);
        if (r.chance(50)) pool[0] = both[1];
        return;
      }
      case 34: {  // moved in one call
        const auto both = reshard_together({x, y}, {out, some_sharding(r, 2, axes)});
        to = both[0];
        pool[0] = both[1];
        return;
      }
      case 35: {  // sorted by keys, with what is sorted beside them
        if (!alike) return;
        const auto sorted = sort_by_key("ij", letter, {x, y}, {}, some_sharding(r, 2, axes));
        to = map_dynamic<double>("ij,ij->ij", AddRest{}, out, sorted[0], sorted[1]);
        return;
      }
      default:
        if (apart) map_into<double>("ij,ij->ij", y, AddRest{}, y, x);
        return;
    }
  }
};

/// The gradient of a loss that `random` chooses: a sum of `count` terms, each an operator of a
/// matrix or of a copy of it under another sharding, weighed. Most of the operators have several
/// results, which their adjoints read.
struct SomeGradient {
  Random random;
  int count;

  Pool operator()(Pool& pool, double number) const {
    const DynamicMesh mesh = pool[0].mesh();
    const int axes = mesh.core()->shape().rank();
    Random r = random;
    const DynamicTensor& x = pool[static_cast<std::size_t>(r.below(3))];
    const DynamicTensor scale =
        from_function<double>(mesh, {x.extents()[1]}, some_sharding(r, 1, axes), Numbered{number});
    const auto loss = [&](const DynamicTensor& v, const DynamicTensor& s) {
      Random choice = r;
      Pool copies{v};
      DynamicTensor sum = term(choice, mesh, axes, copies, s);
      for (int i = 1; i < count; ++i) sum = sum + term(choice, mesh, axes, copies, s);
      return sum;
    };
    auto [value, gradients] = value_and_grad<0, 1>(loss)(x, scale);
    return {value, std::get<0>(gradients), std::get<1>(gradients)};
  }
  static DynamicTensor term(Random& r, const DynamicMesh& mesh, int axes, Pool& copies,
                            const DynamicTensor& s) {
    const auto weighed = [&](std::string_view equation, const DynamicTensor& y) {
      const int rank = y.core().rank();
      return einsum(equation, y,
                    from_function<double>(mesh, y.extents(), some_sharding(r, rank, axes),
                                          Numbered{static_cast<double>(r.below(9))}));
    };
    if (r.chance(40)) copies.push_back(reshard(r.of(copies), some_sharding(r, 2, axes)));
    const DynamicTensor v = r.of(copies);
    const Sharding to = r.chance(50) ? some_sharding(r, 2, axes) : v.sharding();
    const char letter = r.of<char>({'i', 'j'});
    switch (r.below(9)) {
      case 0:
        return weighed("ij,ij->", layer_norm<double>(v, s, s, 0.5, to));
      case 1:
        return weighed("ij,ij->", rms_norm<double>(v, s, 0.5, to));
      case 2: {
        const auto [mean, variance] =
            mean_and_variance<double>("ij->i", v, 0, some_sharding(r, 1, axes));
        return weighed("i,i->", mean) + weighed("i,i->", variance);
      }
      case 3:
        return weighed("ij,ij->", top_k("ij", letter, v, 3, to).values);
      case 4:
        return weighed("ij,ij->", sort("ij", letter, v, {}, to));
      case 5: {
        const DynamicTensor keys =
            from_function<double>(mesh, v.extents(), some_sharding(r, 2, axes), Numbered{7});
        return weighed("ij,ij->", sort_by_key("ij", letter, {keys, v}, {}, to)[1]);
      }
      case 6:
        return weighed("ij,ij->", softmax<double>("ij", letter, v * 0.1, to));
      case 7:
        return weighed("ij,ij->", einsum("ij,kj->ik", v, v, some_sharding(r, 2, axes)));
      default:
        return weighed("ij,ij->", reshard(v, to));
    }
  }
};

/// What a function is given: matrices, the last of which may lie in memory of the application's,
/// two of them in one.
struct Given {
  Pool pool;
  std::shared_ptr<std::vector<double>> outside{};

  Given(const DynamicMesh& mesh, Random random, double first) {
    for (int i = 0; i < 5; ++i) pool.push_back(some_matrix(mesh, random, first + i));
    if (random.chance(60)) return;
    const TensorCore last = pool[4].core();
    outside = std::make_shared<std::vector<double>>(static_cast<std::size_t>(last.local_size()));
    if (!last.dry()) std::copy_n(last.data<double>(), outside->size(), outside->begin());
    const auto adopt = [&] {
      return DynamicTensor(TensorCore::adopt(last.mesh(), last.desc(),
                                             last.dry() ? nullptr : outside->data(), outside));
    };
    pool[4] = adopt();
    if (random.chance(50)) pool[3] = adopt();
  }
  /// Returns whether memory of the application's has the same values.
  bool alike_outside(const Given& other) const {
    return outside == nullptr || *outside == *other.outside;
  }
};
/// Returns by what part of the largest of them numbers differ; infinity for other extents.
inline double apart(const HostTensor<double>& x, const HostTensor<double>& y) {
  if (!(x.extents == y.extents)) return std::numeric_limits<double>::infinity();
  double most = 0, by = 0;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    most = std::max(most, std::abs(y.values[i]));
    const bool none = std::isnan(x.values[i]) && std::isnan(y.values[i]);
    if (!none && x.values[i] != y.values[i])
      by = support::larger(by, std::abs(x.values[i] - y.values[i]));
  }
  return by == 0 ? 0 : by / most;
}
inline std::string difference(const Pool& got, const Pool& expected, const char* what,
                              double rounding) {
  if (got.size() != expected.size()) return std::string(what) + ": another number of tensors";
  std::string text;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!(got[i].sharding() == expected[i].sharding()))
      return std::string(what) + " " + std::to_string(i) + " is sharded otherwise";
    const double by =
        got[i].core().dry() ? 0 : apart(to_host<double>(got[i]), to_host<double>(expected[i]));
    if (!(by <= rounding))
      text = std::string(what) + " " + std::to_string(i) + " has other values, by " +
             std::to_string(by) + " of the largest";
  }
  return text;
}

/// The calls that a run of a Program makes on its process.
inline std::vector<Call> calls_of(const Program& program) {
  std::vector<Call> all;
  for (const ProgramEntry& e : program.entries())
    for (const Call& call : instructions_of(*e.plan).calls) all.push_back(call);
  return all;
}

/// Returns whether two descriptions are of the same elements on every process.
inline bool lie_alike(const MeshShape& mesh, const TensorDesc& a, const TensorDesc& b) {
  bool same = a.type == b.type && a.extents == b.extents &&
              a.sharding.partial == b.sharding.partial &&
              a.sharding.reduction == b.sharding.reduction;
  for (int p = 0; same && p < mesh.processes(); ++p)
    same = block(a.extents, a.sharding, mesh, mesh.coordinates(p)) ==
           block(b.extents, b.sharding, mesh, mesh.coordinates(p));
  return same;
}
/// Returns whether each operator's operands and results lie as the tensors that the program has of
/// them.
inline bool lie_as_described(const Program& program) {
  for (const ProgramEntry& e : program.entries()) {
    if (e.operation == nullptr || e.result < 0) continue;
    TensorDescs operands;
    for (int k = 0; k < e.operands.size(); ++k) {
      operands.push_back(e.plan->slots[k].desc);
      if (!lie_alike(program.mesh, operands[k], program.tensor(e.operands[k]).desc)) return false;
    }
    const TensorDescs made = e.operation->results(operands);
    for (int k = 0; k < made.size(); ++k) {
      const int t = k == 0 ? e.result : e.also[k - 1];
      if (!lie_alike(program.mesh, made[k], program.tensor(t).desc)) return false;
    }
  }
  return true;
}
/// Returns which law of a pass does not hold, or nothing.
template <class C> std::string broken_law(const C& compiled, Index limit) {
  const bool chosen = compiled.choice().question != nullptr;
  const Program& given = compiled.listed();
  const Program& listed = chosen ? compiled.choice().program : given;
  const Program& shared = compiled.sharing().program;
  const Program& joined = compiled.joining().program;
  const Program& reused = compiled.reuse().program;
  const Program& last = compiled.overlap().program;
  const auto payload = [](const Program& p) {
    Index sum = 0;
    for (const ProgramEntry& e : p.entries()) sum += e.plan->payload_bytes();
    return sum;
  };
  const auto messages = [](const Program& p) { return over_processes(p).messages.most; };
  const auto calls = [](const Program& p) {
    std::vector<std::string> all;
    for (const ProgramEntry& e : p.entries())
      for (const Call& call : instructions_of(*e.plan).calls) {
        all.emplace_back(name_of(call.kind));
        for (const Piece& piece : call.send) all.back() += " " + std::to_string(piece.count);
      }
    std::sort(all.begin(), all.end());
    return all;
  };
  if (listed.cost() > given.cost() && peak_over_processes(given) <= limit)
    return "the choice makes it slower";
  if (chosen && compiled.choice().cost != listed.cost()) return "the choice has another price";
  for (const Program* program : {&given, &listed, &shared, &joined, &reused, &last})
    if (!lie_as_described(*program)) return "a tensor lies otherwise than its readers expect";
  Index saved = 0;
  for (const SharedMove& move : compiled.sharing().moves) saved += move.payload;
  if (payload(listed) - payload(shared) != saved)
    return "share says that it saves " + std::to_string(saved) + " bytes";
  if (shared.cost() > listed.cost()) return "share makes it slower";
  Index rounded = 0;  // an all-reduce of few elements has a part of at least one on each process
  for (const JoinedCall& call : compiled.joining().calls)
    if (call.collective == Collective::all_reduce)
      rounded += 2 * static_cast<Index>(sizeof(double)) * joined.mesh.processes();
  if (payload(joined) > payload(shared) + rounded) return "join sends more";
  if (messages(joined) > messages(shared))
    return "join makes " + std::to_string(messages(joined)) + " messages of " +
           std::to_string(messages(shared));
  if (payload(reused) != payload(joined) || calls(reused) != calls(joined))
    return "reuse makes other calls";
  if (over_processes(reused).peak.most > over_processes(joined).peak.most)
    return "reuse takes more memory";
  if (calls(last) != calls(reused)) return "overlap makes other calls";
  if (last.cost() > reused.cost()) return "overlap makes it slower";
  const Index before = std::max(over_processes(given).peak.most, over_processes(listed).peak.most);
  const Index after = over_processes(last).peak.most;
  if (after > std::max(limit, before))
    return "the passes take " + std::to_string(after) + " bytes where " + std::to_string(before) +
           " were, and the limit is " + std::to_string(limit);
  return "";
}

/// One function, called twice compiled and twice alone; the second time with other numbers. Its
/// results are the same but for `rounding` (alike).
template <class Function>
std::string program_case(const std::shared_ptr<MeshCore>& core, Random& random,
                         const Function& function, double rounding) {
  const DynamicMesh mesh(core);
  const Random given(random.next());
  // Some limits are small, and keep moves from being shared, joined or started early.
  const Index limit = random.chance(70) ? max_int64 : 1000 + 200 * random.below(30);
  // A choice lets operators sum in another order.
  const bool choose = random.chance(15);
  if (choose) rounding = std::max(rounding, 1e-9);
  auto compiled = compile(
      function, {.choose = choose ? std::optional(ChooseOptions{.steps = 20}) : std::nullopt,
                 .share = random.chance(80),
                 .join = random.chance(80),
                 .reuse = random.chance(80),
                 .overlap = random.chance(80),
                 .memory_limit = limit});
  std::string wrong;
  for (const double number : {1.0, 5.0}) {
    Given alone(mesh, given, number), together(mesh, given, number);
    Pool &pool = alone.pool, &same = together.pool;
    const Pool expected = function(pool, number);
    Ledger& ledger = core->ledger();
    ledger.reset();
    ledger.record_calls(true);
    core->arena().reset_peak();
    const Index before = core->arena().in_use();
    Observer* const watches =
        compiled.structures() > 0 ? observer : nullptr;  // a new one is compared by a call
    if (watches != nullptr) watches->begin();
    const Pool got = compiled(same, number);
    const Program& program = compiled.program();
    const std::vector<Call> calls = calls_of(program);
    if (watches != nullptr) wrong += watches->end(*core, calls);
    if (!core->dry() && ledger.calls() != calls)
      wrong += "it made other calls than its Program:\n" + explain_own(program);
    ledger.record_calls(false);
    const auto is = [&](Index measured, Index planned, const char* what) {
      if (measured != planned && wrong.empty())
        wrong = "the run " + std::string(what) + " " + std::to_string(measured) +
                " bytes, its Program " + std::to_string(planned) + "\n" + explain_passes(compiled) +
                explain_own(program);
    };
    is(ledger.payload_bytes(), program.own_payload_bytes(), "sends");
    // What the Program does not know lies beside its tensors all the time.
    Index others = core->arena().in_use();
    for (const ProgramTensor& t : program.tensors())
      if (t.last >= program.size()) others -= t.bytes;
    is(core->arena().peak(), std::max(before, others + program.peak_bytes()), "takes");
    const std::string results = difference(got, expected, "result", rounding);
    std::string arguments = difference(same, pool, "argument", 0);
    if (!together.alike_outside(alone)) arguments += "memory of the application's has other values";
    if (wrong.empty() && !(results + arguments).empty())
      wrong = results + arguments + "\n" + explain_passes(compiled) + explain(program);
  }
  if (const std::string law = broken_law(compiled, limit); wrong.empty() && !law.empty())
    wrong = law + "\n" + explain_passes(compiled) + explain(compiled.listed());
  // All processes go on alike, whichever found something.
  return wrong.empty() && compiled.structures() != 1 ? compiled.explain_structures() : wrong;
}
inline std::string some_program_case(const std::shared_ptr<MeshCore>& core, Random& random) {
  const SomeFunction function{Random(random.next()), 1 + random.below(14)};
  return program_case(core, random, function, 0);
}
/// Returns what is wrong with a case of a gradient.
inline std::string some_gradient_case(const std::shared_ptr<MeshCore>& core, Random& random) {
  const SomeGradient function{Random(random.next()), 1 + random.below(4)};
  return program_case(core, random, function, 1e-9);
}
}  // namespace support
