// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Solves instances of the ASPLOS 2025 / EuroSys 2025 contest on intra-operator parallelism, and
/// prints for each the cost, the lower bound and the time beside the best that is known.
///
///     solve_contest [--share 0.1] [--processor] [--steps N] [--json FILE] iopddl-A.json ...
///
/// The instances are those of github.com/google/iopddl (Apache 2.0), unpacked by gzip; nothing of
/// them is kept here. The time limit is a share of the contest's, and counts from before the file
/// is read. The cost is computed again from the file's numbers by plain loops, and a limit that is
/// exceeded is said.
///
/// Best known costs: the least of the contest's final results, of XLA's, and of the ten runs of the
/// winners' solver, and best known bounds (Toulbar2 or Gurobi with Lagrange multipliers, hours):
/// iopddl_final_results.csv, convergence.json and lower_bounds/results.db of
/// github.com/ti2-group/iopddl_experiments ("Soft Constraints, Strong Solutions", OpenReview
/// xvzwLMgX3U), read in 2026.
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <tessera/solve/solve.hpp>

#include "support/written.hpp"

namespace {

using tessera::Cost;

struct Known {
  char name;
  double limit, cost, bound;  // seconds of the contest; best known
};
constexpr Known known[] = {
    {'A', 60, 6.548641531e9, 6.513812e9}, {'B', 60, 532843, 532843},
    {'C', 60, 8.4102445e10, 8.250909e10}, {'D', 60, 3.093962e11, 2.982535e11},
    {'E', 60, 3.312394e11, 3.230893e11},  {'F', 120, 3.613545e11, 3.536659e11},
    {'G', 120, 217039, 216931},           {'H', 120, 5.27715e11, 5.081154e11},
    {'I', 120, 5.83706e11, 5.566997e11},  {'J', 120, 1.360982e12, 1.114419e12},
    {'K', 180, 2.242636e9, 2.065624e9},   {'L', 180, 1.970993742e9, 1.918618e9},
    {'M', 180, 4.992816e10, 4.940742e10}, {'N', 180, 1.994701e11, 1.729401e11},
    {'O', 180, 2.195188e11, 1.911700e11}, {'P', 240, 6.518331e11, 6.162463e11},
    {'Q', 240, 5.267768e11, 5.055495e11}, {'R', 240, 3.670609e11, 3.045200e11},
    {'S', 240, 1.521949e9, 1.511240e9},   {'T', 240, 6.713057e11, 5.856868e11},
    {'U', 300, 2.443996e9, 2.018900e9},   {'V', 300, 1617084, 1617084},
    {'W', 300, 1.161498e13, 1.072805e13}, {'X', 300, 2.802233e11, 2.448915e11},
    {'Y', 300, 6.004322e11, 4.952607e11},
};

/// Lists of lists of numbers, one after the other.
struct Rows {
  std::vector<Cost> numbers;
  std::vector<std::size_t> first{0};
  std::size_t size() const { return first.size() - 1; }
  std::span<const Cost> operator[](std::size_t i) const {
    return {numbers.data() + first[i], first[i + 1] - first[i]};
  }
};

struct Instance {
  Rows intervals, costs, usages, edges, edge_costs;
  Cost limit = -1;
};

/// Reads what the contest's files have: objects, strings, numbers, and lists of lists of whole
/// numbers.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {
    std::ifstream in(path, std::ios::binary);
    text_.assign(std::istreambuf_iterator<char>(in), {});
    if (text_.empty()) fail("is empty, or cannot be read");
    at_ = text_.data();
    end_ = at_ + text_.size();
    object("");
  }
  Instance instance;

 private:
  [[noreturn]] void fail(const char* what) const {
    std::fprintf(stderr, "%s %s\n", path_.c_str(), what);
    std::exit(1);
  }
  char next() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t' ||
                          *at_ == ',' || *at_ == ':'))
      ++at_;
    if (at_ == end_) fail("ends too early");
    return *at_;
  }
  std::string word() {
    const char* const begin = ++at_;
    while (at_ < end_ && *at_ != '"') ++at_;
    return {begin, at_++};
  }
  Cost number() {
    Cost value = 0;
    const auto [rest, error] = std::from_chars(at_, end_, value);
    if (error != std::errc{}) fail("has something that is no whole number");
    at_ = rest;
    return value;
  }
  void rows(Rows& into) {
    for (++at_; next() != ']'; into.first.push_back(into.numbers.size())) {
      for (++at_; next() != ']';) into.numbers.push_back(number());
      ++at_;
    }
    ++at_;
  }
  void object(const std::string& path) {
    next();
    for (++at_; next() != '}';) {
      const std::string key = path + "/" + word();
      if (next() == '{')
        object(key);
      else if (*at_ == '"')
        word();
      else if (*at_ == '[')
        rows(key == "/problem/nodes/intervals" ? instance.intervals
             : key == "/problem/nodes/costs"   ? instance.costs
             : key == "/problem/nodes/usages"  ? instance.usages
             : key == "/problem/edges/nodes"   ? instance.edges
             : key == "/problem/edges/costs"   ? instance.edge_costs
                                               : other_);
      else if (key == "/problem/usage_limit")
        instance.limit = number();
      else
        number();
    }
    ++at_;
  }

  std::string path_, text_;
  const char *at_ = nullptr, *end_ = nullptr;
  Rows other_;
};

/// The contest writes 10^18 where something cannot be.
constexpr Cost never = 1'000'000'000'000'000'000;

tessera::CostNetwork network_of(const Instance& instance) {
  tessera::CostNetwork network;
  std::vector<Cost> costs;
  const auto allowed = [&](std::span<const Cost> list) -> const std::vector<Cost>& {
    costs.assign(list.begin(), list.end());
    for (Cost& cost : costs)
      if (cost >= never) cost = tessera::infeasible;
    return costs;
  };
  Cost last = 0;
  for (std::size_t v = 0; v < instance.costs.size(); ++v) {
    const int variable = network.add_variable(allowed(instance.costs[v]));
    const auto interval = instance.intervals[v];
    network.add_usage(variable, static_cast<int>(interval[0]), static_cast<int>(interval[1]),
                      instance.usages[v]);
    last = std::max(last, interval[1]);
  }
  for (std::size_t e = 0; e < instance.edges.size(); ++e)
    network.add_pair(static_cast<int>(instance.edges[e][0]), static_cast<int>(instance.edges[e][1]),
                     allowed(instance.edge_costs[e]));
  if (instance.limit >= 0) network.set_limit(0, static_cast<int>(last), instance.limit);
  return network;
}

/// The contest's own rule, over the file's numbers; -1 where a limit is exceeded.
double evaluated(const Instance& instance, const tessera::Assignment& assignment) {
  double cost = 0;
  std::vector<Cost> used;
  for (std::size_t v = 0; v < instance.costs.size(); ++v) {
    cost += static_cast<double>(instance.costs[v][assignment[v]]);
    const auto interval = instance.intervals[v];
    if (used.size() < static_cast<std::size_t>(interval[1])) used.resize(interval[1], 0);
    for (Cost time = interval[0]; time < interval[1]; ++time)
      used[time] += instance.usages[v][assignment[v]];
  }
  for (std::size_t e = 0; e < instance.edges.size(); ++e) {
    const auto edge = instance.edges[e];
    cost += static_cast<double>(
        instance.edge_costs[e][assignment[edge[0]] * instance.costs[edge[1]].size() +
                               assignment[edge[1]]]);
  }
  for (const Cost amount : used)
    if (instance.limit >= 0 && amount > instance.limit) return -1;
  return cost;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
std::string shortest(double number) {
  std::ostringstream out;
  out << number;
  return out.str();
}
double processor_now() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

int main(int argc, char** argv) {
  double share = 0.1;
  tessera::SolveOptions options;
  std::vector<std::string> files;
  std::string command = "solve_contest", written;
  tessera_bench::WrittenTable table;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--share") == 0 && i + 1 < argc)
      share = std::atof(argv[++i]);
    else if (std::strcmp(argv[i], "--steps") == 0 && i + 1 < argc)
      options.steps = std::strtoull(argv[++i], nullptr, 10), share = 0;
    else if (std::strcmp(argv[i], "--json") == 0 && i + 1 < argc)
      written = argv[++i];
    else if (std::strcmp(argv[i], "--processor") == 0)
      options.clock = processor_now;
    else
      files.push_back(argv[i]);
  }
  if (files.empty()) {
    std::printf(
        "solve_contest [--share of the contest's time | --steps N] [--json RESULT.json] FILE.json "
        "...\n");
    return 0;
  }
  std::printf("%-4s %12s %12s %7s  %8s %8s  %8s %8s  %s\n", "", "cost", "bound", "gap", "/ known",
              "/ known", "seconds", "CPU", "what was done");
  int within = 0;
  for (const std::string& file : files) {
    const std::string stem = file.substr(0, file.rfind('.'));
    const Known* row = nullptr;
    for (const Known& each : known)
      if (!stem.empty() && each.name == stem.back()) row = &each;
    const double begin = now(), processor_begin = processor_now();
    const Instance instance = Reader(file).instance;
    const tessera::CostNetwork network = network_of(instance);
    if (share > 0) {
      options.steps = ~std::uint64_t{0} / 2;
      const double used =
          options.clock != nullptr ? processor_now() - processor_begin : now() - begin;
      options.seconds = std::max((row == nullptr ? 60 : row->limit) * share - used, 0.1);
    }
    const tessera::Solution solution = tessera::solve(network, options);
    const double seconds = now() - begin, processor = processor_now() - processor_begin;
    const double cost = solution.found() ? evaluated(instance, solution.assignment) : -1;
    if (solution.found() &&
        (cost < 0 || std::abs(cost / static_cast<double>(solution.cost) - 1) > 1e-9)) {
      std::fprintf(stderr, "%s: the solver says %lld, the file's rule %g\n", file.c_str(),
                   static_cast<long long>(solution.cost), cost);
      return 1;
    }
    const double bound = static_cast<double>(solution.bound);
    within += row != nullptr && solution.found() && cost <= 1.05 * row->cost;
    using Fact = tessera_bench::WrittenTable::Fact;
    table.add({{"instance", std::string(1, stem.empty() ? '?' : stem.back())},
               {"seconds", options.clock != nullptr ? processor : seconds},
               {"cost", solution.found() ? Fact(cost) : Fact("")},
               {"over the best known",
                row == nullptr || !solution.found() ? Fact("") : Fact(cost / row->cost)},
               {"bound", bound},
               {"gap, %", 100 * solution.gap()}});
    std::printf("%-4c %12.6g %12.6g %6.2f%%  %8.4f %8.4f  %8.2f %8.2f  %s\n",
                stem.empty() ? '?' : stem.back(), cost, bound, 100 * solution.gap(),
                row == nullptr ? 0 : cost / row->cost, row == nullptr ? 0 : bound / row->cost,
                seconds, processor, to_string(solution).c_str());
    std::fflush(stdout);
  }
  if (!written.empty()) {
    command += options.clock != nullptr ? " --processor" : "";
    command +=
        share > 0 ? " --share " + shortest(share) : " --steps " + std::to_string(options.steps);
    table.write(written, command);
  }
  std::printf("%d of %zu within 5 %% of the best known cost\n", within, files.size());
}
