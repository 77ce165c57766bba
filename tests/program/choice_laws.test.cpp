// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: choose
// The laws of choices, on random programs of all kinds of operators: prices, brute force, what an
// alternative costs, and edits. TESSERA_TEST_CASES=all runs 10,000 of each.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "program/listed_program.hpp"

#include <tessera/program/choice/difference.hpp>

using namespace tessera;
using support::Random;

namespace {

Cost price_of(const Plan& plan, Objective objective) {
  return objective == Objective::time ? plan.cost : plan.payload_bytes() * 4096 + (plan.cost >> 20);
}
/// Returns the price of a program, whose operators are planned anew on what they read; infeasible
/// where one does not make what the program says.
Cost price_of(const Program& program, Objective objective) {
  Cost cost = 0;
  const PlanOptions options;
  for (const ProgramEntry& e : program.entries()) {
    TensorDescs descs;
    for (const int t : e.operands) descs.push_back(program.tensor(t).desc);
    if (!e.operation->check(descs).ok()) return infeasible;
    const Plan plan = e.operation->plan(descs, {program.mesh, 0, options});
    if (!(plan.result_desc() == program.tensor(e.result).desc)) return infeasible;
    cost = detail::add_costs(cost, price_of(plan, objective));
  }
  return cost;
}
ChooseOptions some_options(Random& random) {
  ChooseOptions options;
  if (random.chance(40)) options.objective = Objective::payload;
  options.open_arguments = random.chance(30);
  options.open_results = random.chance(30);
  return options;
}
std::string text_of(const Choice& choice) {
  return explain(choice.given()) + explain(choice) + to_string(choice.solution) + "\n" +
         explain(choice.program);
}
/// The least price of any sharding of the free tensors, each operator planned on them, and how;
/// infeasible where there are too many to try.
struct Least {
  Cost cost = infeasible;
  std::string how = {};
};
Least least_of_all(const Choice& choice) {
  const Program& program = choice.given();
  std::vector<int> which;
  std::vector<std::vector<Sharding>> domains;
  std::size_t all = 1;
  for (std::size_t t = 0; t < choice.free.size(); ++t) {
    if (!choice.free[t]) continue;
    which.push_back(static_cast<int>(t));
    domains.push_back(
        tessera::detail::placements(program.tensor(which.back()).desc.extents, program.mesh));
    const Sharding& own = program.tensor(which.back()).desc.sharding;
    if (std::find(domains.back().begin(), domains.back().end(), own) == domains.back().end())
      domains.back().push_back(own);
    all *= domains.back().size();
    if (all > 400) return {};
  }
  std::vector<std::size_t> at(which.size(), 0);
  std::vector<Sharding> shardings;
  for (const ProgramTensor& t : program.tensors()) shardings.push_back(t.desc.sharding);
  const PlanOptions options;
  Least least;
  for (std::size_t n = 0; n < all; ++n) {
    std::string how;
    for (std::size_t i = 0, rest = n; i < which.size(); rest /= domains[i++].size())
      shardings[static_cast<std::size_t>(which[i])] = domains[i][rest % domains[i].size()];
    Cost cost = 0;
    for (const ProgramEntry& e : program.entries()) {
      TensorDescs descs;
      for (const int t : e.operands) {
        descs.push_back(program.tensor(t).desc);
        descs.back().sharding = shardings[static_cast<std::size_t>(t)];
      }
      const Sharding& out = shardings[static_cast<std::size_t>(e.result)];
      const Operation op = e.operation->with_result(out);
      if (!op.check(descs).ok()) {
        cost = infeasible;
        break;
      }
      cost = detail::add_costs(
          cost, price_of(op.plan(descs, {program.mesh, 0, options}), choice.objective));
      how += "  " + e.label + " " + to_string(out, program.names()) + "\n";
      const TensorDescs made = op.view().results(descs);
      for (int k = 0; k < e.also.size(); ++k) {  // further results are brought home
        const Sharding& home = shardings[static_cast<std::size_t>(e.also[k])];
        if (made[k + 1].sharding == home) continue;
        const Operation move = ops::Reshard{home};
        cost = detail::add_costs(
            cost, price_of(move.plan({made[k + 1]}, {program.mesh, 0, options}), choice.objective));
      }
    }
    if (cost < least.cost) least = {cost, how};
  }
  return least;
}
/// Some random programs, each with what is asked of it; `run` returns what is wrong, or nothing.
template <class Run>
void on_programs(const char* name, std::uint64_t seed, int some, int operators, const Run& run) {
  Random random(support::seed_for(name, seed));
  int wrong = 0;
  for (int i = 0; i < support::cases_of(some, 10'000); ++i) {
    const MeshShape mesh = support::some_mesh(random);
    const support::Recipe recipe = support::some_recipe(random, 1 + random.below(operators));
    const std::string text = run(recipe, mesh, random);
    CAPTURE(i);
    CHECK_MESSAGE(text.empty(), text);
    wrong += text.empty() ? 0 : 1;
    if (wrong > 3) break;
  }
}
}  // namespace

TEST_CASE("a choice costs what its program costs, and never more than plain deduction") {
  on_programs("laws of choices", 361, 150, 9,
              [](const auto& recipe, const MeshShape& mesh, Random& random) -> std::string {
                const Program program = support::program_of(recipe, mesh, random.next());
                const ChooseOptions options = some_options(random);
                const Choice choice = choose(program, {}, options);
                std::string wrong;
                if (!choice.found) wrong = "nothing is found\n";
                if (choice.before != price_of(program, options.objective))
                  wrong += "the price before\n";
                if (choice.cost != price_of(choice.program, options.objective))
                  wrong += "the price after\n";
                if (choice.cost > choice.before) wrong += "dearer than plain deduction\n";
                if (random.chance(20) && !(choose(program, {}, options).chosen == choice.chosen))
                  wrong += "another answer to the same question\n";
                if (choice.gap() > 0)
                  wrong += "a gap of " + std::to_string(100 * choice.gap()) + " %\n";
                for (std::size_t t = 0; t < choice.chosen.size(); ++t) {
                  const ProgramTensor& tensor = program.tensor(static_cast<int>(t));
                  const bool open = tensor.made < 0
                                        ? options.open_arguments
                                        : tensor.last < program.size() || options.open_results;
                  if (choice.free[t] ? !open : !(choice.chosen[t] == tensor.desc.sharding))
                    wrong += "tensor " + std::to_string(t) + " is stated\n";
                }
                return wrong.empty() ? wrong : wrong + text_of(choice);
              });
}

TEST_CASE("a chosen program holds its own tensors alone, and keeps those that outlive it") {
  int kept = 0;
  on_programs("memory of choices", 365, 100, 7,
              [&](const auto& recipe, const MeshShape& mesh, Random& random) -> std::string {
                Program program = support::program_of(recipe, mesh, random.next());
                for (int t = 0; t < static_cast<int>(program.tensors().size()); ++t)
                  if (random.chance(30)) program.tensor_to_change(t).last = program.size();
                const Index others = 1 << random.below(20);
                program.state_held(others);
                ChooseOptions options = some_options(random);
                options.open_results = random.chance(70);
                const Choice choice = choose(program, {}, options);
                const Program& made = choice.program;
                std::string wrong;
                std::vector<bool> is_made(made.tensors().size(), false);
                for (const ProgramEntry& e : made.entries()) {
                  is_made[static_cast<std::size_t>(e.result)] = true;
                  for (const int t : e.also) is_made[static_cast<std::size_t>(t)] = true;
                }
                const auto has = [&](std::size_t t) {
                  return made.tensors()[t].made < 0 || is_made[t];
                };
                for (int i = 0; i < made.size(); ++i) {
                  Index held = others;
                  for (std::size_t t = 0; t < made.tensors().size(); ++t)
                    if (has(t) && made.tensors()[t].alive_at(i)) held += made.tensors()[t].bytes;
                  if (held != made.entry(i).held_before)
                    wrong += "operator " + std::to_string(i) + " finds " + std::to_string(held) +
                             " bytes, it says " + std::to_string(made.entry(i).held_before) + "\n";
                }
                for (std::size_t t = 0; t < choice.chosen.size(); ++t) {
                  const ProgramTensor& given = program.tensors()[t];
                  if (given.last < program.size()) continue;
                  TensorDesc desc = given.desc;
                  desc.sharding = choice.chosen[t];
                  bool stands = false;
                  for (std::size_t k = 0; k < made.tensors().size(); ++k)
                    stands = stands || (has(k) && made.tensors()[k].desc == desc &&
                                        made.tensors()[k].last >= made.size());
                  if (!stands) wrong += "nothing stands for tensor " + std::to_string(t) + "\n";
                  kept += given.made >= 0 && !(desc == given.desc) ? 1 : 0;
                }
                return wrong.empty() ? wrong : wrong + text_of(choice);
              });
  CHECK(kept > 20 / support::share);
}

TEST_CASE("of all shardings of a small program none costs less than the choice of any kind") {
  int tried = 0;
  on_programs("brute force on choices", 362, 150, 3,
              [&](const auto& recipe, const MeshShape& mesh, Random& random) -> std::string {
                const Program program = support::program_of(recipe, mesh, random.next());
                ChooseOptions options = some_options(random);
                options.open_arguments = false;
                const Choice choice = choose(program, {}, options);
                const Least least = least_of_all(choice);
                const bool exact = choice.question->exact();
                tried += exact && is_feasible(least.cost) ? 1 : 0;
                if (!exact || choice.cost <= least.cost) return {};
                return std::to_string(least.cost) + " is less than " + std::to_string(choice.cost) +
                       "\n" + least.how + text_of(choice);
              });
  CHECK(tried > 50 / support::share);
}

TEST_CASE("what a sharding costs the whole program is what forcing it costs") {
  int exact = 0;
  on_programs("alternatives of choices", 363, 60, 5,
              [&](const auto& recipe, const MeshShape& mesh, Random& random) -> std::string {
                const Program program = support::program_of(recipe, mesh, random.next());
                ChooseOptions options = some_options(random);
                const Choice choice = choose(program, {}, options);
                std::vector<int> free;
                for (std::size_t t = 0; t < choice.free.size(); ++t)
                  if (choice.question->has_choice(static_cast<int>(t)))
                    free.push_back(static_cast<int>(t));
                if (free.empty()) return {};
                const int t = random.of(free);
                const auto why = min_marginals(choice.question->network());
                const std::vector<Cost> prices =
                    tessera::detail::prices_of_homes(*choice.question, why, t);
                const std::size_t one =
                    static_cast<std::size_t>(random.below(static_cast<int>(prices.size())));
                options.pins.push_back({t, choice.question->shardings(t)[one]});
                Cost forced = infeasible;
                std::string how;
                try {
                  const Choice other = choose(program, {}, options);
                  forced = other.cost;
                  how = explain(other.program);
                } catch (const ShardingError&) {
                }
                exact += why.exact && choice.question->exact() ? 1 : 0;
                if (forced == prices[one]) return {};
                if (!why.exact && forced > prices[one]) return {};                 // "at least"
                if (!choice.question->exact() && forced < prices[one]) return {};  // "at most"
                return "tensor " + std::to_string(t) + ": " + std::to_string(prices[one]) +
                       " is printed, forced it is " + std::to_string(forced) + "\n" + how +
                       explain(choice, t) + text_of(choice);
              });
  CHECK(exact > 20 / support::share);
}

TEST_CASE("after an edit of any program a sharding differs only where keeping it would cost more") {
  int edited = 0, kept = 0;
  on_programs(
      "edits of choices", 364, 30, 6,
      [&](support::Recipe recipe, const MeshShape& mesh, Random& random) -> std::string {
        const std::uint64_t seed = random.next();
        ChooseOptions options = some_options(random);
        const Choice before = choose(support::program_of(recipe, mesh, seed), {}, options);
        const ChoiceTable table = table_of(before);
        const auto at = recipe.begin() + random.below(static_cast<int>(recipe.size()));
        const int edit = random.below(4);
        if (edit == 1 && recipe.size() > 1)
          recipe.erase(at);
        else if (edit == 2)
          recipe.insert(at, random.next());
        else if (edit == 3)
          *at = random.next();
        const Program program = support::program_of(recipe, mesh, seed);
        const Choice anew = choose(program, {}, options);
        options.previous = keep(table);
        const Choice choice = choose(program, {}, options);
        std::string wrong;
        if (choice.cost > anew.cost) wrong += "dearer than without the previous choice\n";
        if (edit == 0 && !(choice.chosen == before.chosen)) wrong += "changed without an edit\n";
        const std::vector<int> row = tessera::detail::aligned(program, table);
        options.previous = nullptr;
        std::vector<int> others;
        for (std::size_t t = 0; t < row.size(); ++t) {
          if (row[t] < 0 || !choice.free[t]) continue;
          const Sharding& was = table.tensors[static_cast<std::size_t>(row[t])].sharding;
          if (was == choice.chosen[t])
            options.pins.push_back({static_cast<int>(t), was}), ++kept;
          else if (was.partial.empty())
            others.push_back(static_cast<int>(t)), ++edited;
        }
        for (const int t : others) {
          ChooseOptions forced = options;
          forced.pins.push_back(
              {t,
               table.tensors[static_cast<std::size_t>(row[static_cast<std::size_t>(t)])].sharding});
          try {
            if (choose(program, {}, forced).cost <= choice.cost)
              wrong += "tensor " + std::to_string(t) + " could be kept\n";
          } catch (const ShardingError&) {
          }
        }
        return wrong.empty() ? wrong : wrong + difference(choice, table) + text_of(choice);
      });
  CHECK(edited > 0);
  CHECK(kept > 30 / support::share);
}
