// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: program_lists
// Networks: routes, messages that share links, the rounds of calls, and the times of plans.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include <tessera/base/error.hpp>
#include <tessera/plan/op/move/between_parts.hpp>
#include <tessera/plan/op/move/reshard.hpp>
#include <tessera/plan/op/product/einsum.hpp>
#include <tessera/plan/work/instructions.hpp>
#include <tessera/program/network/rounds.hpp>
#include <tessera/program/network/sharing.hpp>
#include <tessera/program/network/timing.hpp>
#include <tessera/program/on_process.hpp>

using namespace tessera;

namespace {

constexpr NetworkLink link{12.5e9, 1e-6};

int in_common(const std::vector<int>& a, const std::vector<int>& b) {
  int count = 0;
  for (const int l : a) count += std::count(b.begin(), b.end(), l) > 0;
  return count;
}

TEST_CASE("a route of a torus is the shortest, and of two dimensions the first comes first") {
  for (const std::vector<int>& sizes :
       {std::vector{5}, std::vector{2, 3}, std::vector{4, 4, 4}, std::vector{3, 1, 4, 2}}) {
    const Network torus = Network::torus(sizes, link);
    for (int a = 0; a < torus.hosts(); ++a)
      for (int b = 0; b < torus.hosts(); ++b) {
        std::size_t hops = 0;
        int stride = 1;
        for (const int size : sizes) {
          const int apart = std::abs(a / stride % size - b / stride % size);
          hops += static_cast<std::size_t>(std::min(apart, size - apart));
          stride *= size;
        }
        std::vector<int> route = torus.route(a, b);
        REQUIRE(route.size() == hops);
        std::sort(route.begin(), route.end());
        REQUIRE(std::unique(route.begin(), route.end()) == route.end());
      }
  }
  const Network ring = Network::torus({4}, link);
  CHECK(ring.name(ring.route(3, 0)[0]) == "the link of host 3 in dimension 0 onwards");
  CHECK(ring.name(ring.route(0, 3)[0]) == "the link of host 3 in dimension 0 backwards");
}

TEST_CASE("hosts half of a dimension apart have two ways, which share no link of it") {
  for (const std::vector<int>& sizes :
       {std::vector{6}, std::vector{5}, std::vector{4, 3}, std::vector{2, 1, 4}}) {
    const Network torus = Network::torus(sizes, link);
    std::vector<int> carried(static_cast<std::size_t>(torus.links()));  // by all ways of all pairs
    for (int a = 0; a < torus.hosts(); ++a)
      for (int b = 0; b < torus.hosts(); ++b) {
        bool half = false;
        int hops = 0, stride = 1;  // hops: that both ways have
        for (const int size : sizes) {
          const int apart = std::abs(a / stride % size - b / stride % size);
          if (2 * apart == size)
            half = true;
          else
            hops += std::min(apart, size - apart);
          stride *= size;
        }
        REQUIRE(torus.two_ways(a, b) == half);
        const std::vector<int> route = torus.route(a, b);
        std::vector<int> other;
        torus.add_route(a, b, other, true);
        REQUIRE(other.size() == route.size());
        if (sizes.size() == 1) REQUIRE(in_common(route, other) == hops);
        if (!half) REQUIRE(route == other);
        for (const std::vector<int>& way : {route, other})
          for (const int l : way) ++carried[static_cast<std::size_t>(l)];
      }
    // All links of a dimension carry as much, where all send as much to all, half each way.
    for (int l = 0; l < torus.links(); ++l)
      REQUIRE(carried[static_cast<std::size_t>(l)] ==
              carried[static_cast<std::size_t>(l) % (2 * sizes.size())]);
  }
  CHECK_FALSE(Network::fat_tree({4}, {1}, link).two_ways(0, 2));
}

TEST_CASE("a route of a fat tree turns at the lowest common switch, which its destination names") {
  const Network tree = Network::fat_tree({3, 2, 4}, {1, 2, 3}, link);
  REQUIRE(tree.hosts() == 24);
  REQUIRE(tree.links() == 2 * (24 * 1 + 8 * 2 + 4 * 2 * 3));
  for (int a = 0; a < 24; ++a)
    for (int b = 0; b < 24; ++b) {
      const int levels = a == b ? 0 : a / 3 == b / 3 ? 1 : a / 6 == b / 6 ? 2 : 3;
      const std::vector<int> route = tree.route(a, b);
      REQUIRE(static_cast<int>(route.size()) == 2 * levels);
      if (a == b) continue;
      CHECK(tree.name(route.front()).starts_with("host " + std::to_string(a) + " up"));
      CHECK(tree.name(route.back()).starts_with("host " + std::to_string(b) + " down"));
      // Messages to one host from other subtrees come down the same links.
      for (int c = 0; c < 24; ++c)
        if (c / 6 != b / 6 && a / 6 != b / 6) CHECK(in_common(route, tree.route(c, b)) >= 3);
    }
  CHECK_THROWS_AS(Network::fat_tree({2, 2}, {1}, link), UsageError);
  CHECK_THROWS_AS(Network::torus({2, 0}, link), UsageError);
  CHECK_THROWS_AS(Network::nodes(0, 1, link, link), UsageError);
}

TEST_CASE("a route of a dragonfly goes the minimal way, by the link of two groups") {
  const Dragonfly shape{.groups = 3, .chassis = 2, .routers = 4, .nodes = 2, .group_links = 5};
  const Network dragonfly = Network::dragonfly(shape, link);
  REQUIRE(dragonfly.hosts() == 48);
  REQUIRE(dragonfly.links() == 2 * 48 + 24 * 3 + 24 * 1 + 3 * 2);
  for (int a = 0; a < 48; ++a)
    for (int b = 0; b < 48; ++b) {
      // Where a host's router is: group, chassis, number.
      const auto of = [](int host) { return std::array{host / 16, host / 8 % 2, host / 2 % 4}; };
      std::array at = of(a), to = of(b);
      std::size_t hops = a == b ? 0 : 2;
      if (at[0] != to[0]) {
        hops += 1 + (at[2] != to[0]) + (at[1] != 0);
        at = {to[0], 0, at[0]};
      }
      hops += (at[1] != to[1]) + (at[2] != to[2]);
      std::vector<int> route = dragonfly.route(a, b);
      REQUIRE(route.size() == hops);
      if (a == b) continue;
      CHECK(dragonfly.name(route.front()) == "host " + std::to_string(a) + " to its router");
      CHECK(dragonfly.name(route.back()) == "the router of host " + std::to_string(b) + " to it");
      // All messages from one group to another go through one link, which is five.
      int wide = 0;
      for (const int l : route) wide += dragonfly.link(l).bytes_per_second == 5 * 12.5e9;
      CHECK(wide == (of(a)[0] != of(b)[0]));
      if (wide > 0 && a / 16 != b / 16)
        CHECK(in_common(route, dragonfly.route(a / 16 * 16, b / 16 * 16 + 15)) >= 1);
      std::sort(route.begin(), route.end());
      REQUIRE(std::unique(route.begin(), route.end()) == route.end());
    }
  CHECK(dragonfly.name(dragonfly.route(0, 47)[1]) ==
        "router 0 of chassis 0 of group 0 to router 2");
  CHECK(dragonfly.name(dragonfly.route(0, 47)[2]) == "router 2 of chassis 0 of group 0 to group 2");
  CHECK_THROWS_WITH_AS(Network::dragonfly({.groups = 3, .routers = 2}, link),
                       doctest::Contains("has 3 groups, and 2 routers in a chassis"), UsageError);
  CHECK_THROWS_AS(Network::dragonfly({.nodes = 0}, link), UsageError);
  CHECK_THROWS_AS(Network::dragonfly({.router_links = 0}, link), UsageError);
}

TEST_CASE("the routes of a small dragonfly, link by link") {
  // Host 12 g + 6 c + 2 r + n is node n of router r of chassis c of group g.
  const Network dragonfly =
      Network::dragonfly({.groups = 3, .chassis = 2, .routers = 3, .nodes = 2}, link);
  const struct {
    int from, to;
    std::vector<std::string> between;  ///< the names of the links between routers
  } routes[] = {
      {0, 1, {}},  // of one router
      {0, 4, {"router 0 of chassis 0 of group 0 to router 2"}},
      {0, 6, {"router 0 of chassis 0 of group 0 to chassis 1"}},
      {0,
       11,
       {"router 0 of chassis 0 of group 0 to router 2",
        "router 2 of chassis 0 of group 0 to chassis 1"}},
      {8,
       35,
       {"router 1 of chassis 1 of group 0 to router 2",
        "router 2 of chassis 1 of group 0 to chassis 0",
        "router 2 of chassis 0 of group 0 to group 2",
        "router 0 of chassis 0 of group 2 to router 2",
        "router 2 of chassis 0 of group 2 to chassis 1"}},
      {16,  // arrives at the router of host 2
       2,
       {"router 2 of chassis 0 of group 1 to router 0",
        "router 0 of chassis 0 of group 1 to group 0"}},
      {12,
       29,
       {"router 0 of chassis 0 of group 1 to router 2",
        "router 2 of chassis 0 of group 1 to group 2",
        "router 1 of chassis 0 of group 2 to router 2"}},
      {23,
       25,
       {"router 2 of chassis 1 of group 1 to chassis 0",
        "router 2 of chassis 0 of group 1 to group 2",
        "router 1 of chassis 0 of group 2 to router 0"}},
  };
  for (const auto& route : routes) {
    std::vector<std::string> names{"host " + std::to_string(route.from) + " to its router"};
    names.insert(names.end(), route.between.begin(), route.between.end());
    names.push_back("the router of host " + std::to_string(route.to) + " to it");
    std::vector<std::string> found;
    for (const int l : dragonfly.route(route.from, route.to)) found.push_back(dragonfly.name(l));
    CAPTURE(route.from);
    CAPTURE(route.to);
    CHECK(found == names);
  }
}

TEST_CASE("a network writes itself as a platform of SimGrid's") {
  const auto has = [](const Network& network, const std::string& words) {
    CAPTURE(network.simgrid_platform());
    CHECK(network.simgrid_platform().find(words) != std::string::npos);
  };
  has(Network::fat_tree({3, 2}, {1, 2}, {12.5e9, 1e-6}),
      R"(radical="0-5" speed="1Gf" bw="1.25e+10Bps" lat="1e-06s")");
  has(Network::fat_tree({3, 2}, {1, 2}, link), R"("FAT_TREE" topo_parameters="2;3,2;1,2;1,1")");
  has(Network::torus({4, 3, 2}, link), R"("TORUS" topo_parameters="4,3,2")");
  has(Network::dragonfly({.groups = 2, .chassis = 3, .routers = 4, .nodes = 5, .chassis_links = 6},
                         link),
      R"("DRAGONFLY" topo_parameters="2,1;3,6;4,1;5")");
  const Network nodes = Network::nodes(2, 3, {50e9, 1e-7}, link);
  has(nodes, R"(loopback_bw="5e+10Bps" loopback_lat="1e-07s"/>)");
  CHECK(nodes.simgrid_hosts() == "host-0\nhost-0\nhost-0\nhost-1\nhost-1\nhost-1\n");
}

TEST_CASE("messages share links as water fills them") {
  std::mt19937 random(5);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 60; ++round) {
    const Network network = round % 2 == 0 ? Network::torus({3, 4}, {1000, 0})
                                           : Network::fat_tree({3, 4}, {1, 2}, {1000, 0});
    std::vector<detail::NetworkMessage> messages;
    for (int m = 1 + below(12); m > 0; --m) {
      const int from = below(12), to = below(12);
      if (from != to) messages.push_back({from, to, 1.0 + below(1000)});
    }
    if (messages.empty()) continue;
    // A second way to the times: all rates rise a little at a time, until a link on the way is
    // full, and anew when a message has ended.
    constexpr double step = 0.5;
    std::vector<double> left, ends(messages.size());
    for (const detail::NetworkMessage& m : messages) left.push_back(m.bytes);
    double now = 0;
    for (std::size_t ended = 0; ended < messages.size();) {
      std::vector<double> rates(messages.size()), used(static_cast<std::size_t>(network.links()));
      std::vector<bool> stopped;
      for (const double bytes : left) stopped.push_back(bytes <= 0);
      for (bool any = true; any;) {
        any = false;
        for (std::size_t m = 0; m < messages.size(); ++m) {
          if (stopped[m]) continue;
          for (const int l : network.route(messages[m].from, messages[m].to))
            used[static_cast<std::size_t>(l)] += step;
          rates[m] += step;
        }
        for (std::size_t m = 0; m < messages.size(); ++m) {
          for (const int l : network.route(messages[m].from, messages[m].to))
            stopped[m] = stopped[m] || used[static_cast<std::size_t>(l)] >= 1000;
          any = any || !stopped[m];
        }
      }
      double next = std::numeric_limits<double>::infinity();
      for (std::size_t m = 0; m < messages.size(); ++m)
        if (left[m] > 0) next = std::min(next, left[m] / rates[m]);
      now += next;
      for (std::size_t m = 0; m < messages.size(); ++m) {
        if (left[m] <= 0) continue;
        left[m] -= next * rates[m];
        if (left[m] > 1e-6) continue;
        left[m] = 0;
        ends[m] = now;
        ++ended;
      }
    }
    detail::LinkUse use(network);
    const std::vector<double> took = detail::SharedLinks(network).times_of(messages, use);
    for (std::size_t m = 0; m < messages.size(); ++m)
      CHECK(took[m] == doctest::Approx(ends[m]).epsilon(0.02));
    for (std::size_t l = 0; l < use.bytes.size(); ++l)
      CHECK(use.bytes[l] <= 1000 * use.seconds[l] * (1 + 1e-9));
  }
}

TEST_CASE("a message shares links from when its latencies are over") {
  // Two messages meet at host 2; the farther one comes a second later, and they share from then on.
  const Network line = Network::torus({5}, {1000, 1});
  detail::LinkUse use(line);
  detail::SharedLinks links(line);
  const std::vector<detail::NetworkMessage> messages{{1, 2, 3000}, {0, 2, 3000}, {3, 3, 1000}};
  const std::vector<double> took = links.times_of(messages, use);
  CHECK(took[0] == doctest::Approx(1 + 1 + 4));           // 1000 bytes alone, 2000 at half the rate
  CHECK(took[1] == doctest::Approx(2 + 4 + 1));           // 2000 beside the other, 1000 alone
  CHECK(took[2] == doctest::Approx(1e-7 + 1000 / 50e9));  // on one host
  CHECK(line.name(line.route(1, 2)[0]) == line.name(line.route(0, 2)[1]));
  // Another round finds the links free again, and counts as often as it is made.
  const detail::LinkUse before = use;
  CHECK(links.times_of({{0, 1, 1000}}, use, 3) == std::vector<double>{2});
  const auto first = static_cast<std::size_t>(line.route(0, 1)[0]);
  CHECK(use.bytes[first] == before.bytes[first] + 3000);
  CHECK(use.seconds[first] == doctest::Approx(before.seconds[first] + 3));
  CHECK(links.times_of(messages, use) == took);
}

TEST_CASE("at once, a message takes as long as the one of its links that has most to carry") {
  const Network line = Network::torus({7}, {1000, 1}, 2);
  const auto host = [](int number) { return 2 * number; };
  const std::vector<detail::NetworkMessage> messages{{host(1), host(2), 3000},
                                                     {host(0), host(2), 2000},
                                                     {host(0), host(1), 500},
                                                     {host(4), host(5), 100},
                                                     {host(3), host(3) + 1, 1000}};
  detail::LinkUse use(line);
  detail::SharedLinks links(line);
  const std::vector<double> own{1 + 5, 2 + 5, 1 + 2.5, 1 + 0.1, 1e-7 + 1000 / 50e9};
  const std::vector<double>& took = links.times_at_once(messages, use, 3);
  for (std::size_t m = 0; m < own.size(); ++m) CHECK(took[m] == doctest::Approx(own[m]));
  const auto first = static_cast<std::size_t>(line.route(0, 1)[0]);
  CHECK(use.bytes[first] == 3 * 2500);
  CHECK(use.seconds[first] == doctest::Approx(3 * 2.5));
  CHECK(links.times_at_once({{host(0), host(1), 500}}, use)[0] == doctest::Approx(1 + 0.5));
}

TEST_CASE("the rounds of a call carry its payload") {
  for (const int members : {2, 3, 4, 5, 8, 12, 16})
    for (const Collective kind : {all_gather, reduce_scatter, all_reduce, all_to_all}) {
      const Index block = 6, all = kind == all_reduce ? 6 * members : 0;
      for (int own = 0; own < members; ++own) {
        Call call;
        call.kind = kind;
        call.group = AxisSet{0};
        call.own = own;
        call.members = members;
        const auto pieces = [&](std::vector<Piece>& of, bool one) {
          if (kind == all_reduce)
            of.push_back({own, 0, all});
          else if (one)
            of.push_back({own, 0, block});
          else
            for (int m = 0; m < members; ++m) of.push_back({m, m * block, block});
        };
        pieces(call.send, kind == all_gather);
        pieces(call.receive, kind == reduce_scatter);
        double bytes = 0;
        for (int r = 0; r < detail::rounds_of(call); ++r) {
          const detail::RoundMessage m = detail::message_of(call, own, r);
          REQUIRE(m.to != own);
          bytes += m.bytes;
        }
        CHECK(bytes == static_cast<double>(detail::payload_bytes(call)));
      }
    }
}

ProgramEntry entry_of(std::shared_ptr<const Plan> plan) {
  ProgramEntry entry;
  entry.plan = std::move(plan);
  entry.label = "move";
  return entry;
}

/// The time of a move of 1024 x 1024 floats over 8 x 8 processes.
double microseconds(const Network& network, int per_node, const Sharding& to) {
  Program program;
  program.mesh = {8, 8};
  const TensorDesc desc{DType::f32, {1024, 1024}, Sharding{{0}, {1}}};
  PlanOptions options;
  options.machine.processes_per_node = per_node;
  program.record(
      entry_of(std::make_shared<Plan>(detail::plan_reshard(desc, to, program.mesh, 0, options))));
  return 1e6 * simulate(program, network, {.computes = false}).seconds;
}

TEST_CASE("moves take as long as SimGrid 3.32 lets them under the same calls") {
  const Sharding none{{}, {}}, columns{{}, {1}}, rows{{0}, {}}, turned{{1}, {0}};
  struct Row {
    const char* name;
    Network network;
    int per_node;
    double gather_all, gather_x, gather_y, transpose;
  };
  const std::vector<Row> table{
      {"fat tree", Network::fat_tree({8, 8}, {1, 8}, link), 0, 348.32, 48.71, 42.71, 40.72},
      {"thin tree", Network::fat_tree({8, 8}, {1, 2}, link), 0, 1229.13, 158.83, 42.71, 40.72},
      {"torus", Network::torus({4, 4, 4}, link), 0, 559.52, 67.93, 51.20, 23.99},
      {"nodes", Network::nodes(8, 8, {50e9, 1e-7}, link), 8, 373.34, 299.64, 9.49, 38.72},
  };
  for (const Row& row : table) {
    CAPTURE(row.name);
    CHECK(microseconds(row.network, row.per_node, none) ==
          doctest::Approx(row.gather_all).epsilon(0.002));
    CHECK(microseconds(row.network, row.per_node, columns) ==
          doctest::Approx(row.gather_x).epsilon(0.002));
    CHECK(microseconds(row.network, row.per_node, rows) ==
          doctest::Approx(row.gather_y).epsilon(0.002));
    CHECK(microseconds(row.network, row.per_node, turned) ==
          doctest::Approx(row.transpose).epsilon(0.002));
  }
}

TEST_CASE("calls take what their rounds say, with blocks that differ and in rings, too") {
  // Rows over 8 or 6 processes at a switch: each round takes two latencies and its largest message.
  const auto gather = [](int processes, Index rows) {
    Program program;
    program.mesh = {processes};
    const TensorDesc desc{DType::f64, {rows, 125}, Sharding{{0}, {}}};  // rows of 1000 bytes
    PlanOptions options;
    options.machine.processes_per_node = 1;
    program.record(entry_of(std::make_shared<Plan>(
        detail::plan_reshard(desc, Sharding{{}, {}}, program.mesh, processes - 1, options))));
    const Network network = Network::nodes(processes, 1, {1e12, 0}, {1e6, 1});
    const double seconds = simulate(program, network, {.computes = false}).seconds;
    for (int p = 0; p < processes; ++p)
      CHECK(simulate(on_process(program, p), network, {.computes = false}).seconds == seconds);
    return seconds;
  };
  CHECK(gather(8, 8) == doctest::Approx(3 * 2 + 0.007));
  CHECK(gather(8, 9) == doctest::Approx(3 * 2 + 0.002 + 0.004 + 0.008));  // 2 2 2 2 1 0 0 0
  CHECK(gather(8, 1) == doctest::Approx(3 * 2 + 0.001 + 0.001 + 0.001));
  CHECK(gather(6, 6) == doctest::Approx(5 * 2 + 0.005));
  CHECK(gather(6, 7) == doctest::Approx(5 * 2 + 5 * 0.002));  // 2 2 2 1 0 0: a 2 is in each round
  CHECK(gather(1, 5) == 0);
}

TEST_CASE("an operator that is under way hides others") {
  Program program;
  program.mesh = {4};
  const TensorDesc desc{DType::f64, {4, 125}, Sharding{{0}, {}}};
  const auto move = std::make_shared<Plan>(
      detail::plan_reshard(desc, Sharding{{}, {}}, program.mesh, 0, PlanOptions{}));
  const Network network = Network::nodes(4, 1, {1e12, 0}, {1e6, 0.5});
  program.record(entry_of(move));
  const NetworkOptions options{.computes = false};
  const double alone = simulate(program, network, options).seconds;
  CHECK(alone == doctest::Approx(2 * 1 + 0.003));
  // Two moves one after the other, and both under way at once: of the second none of its two rounds
  // is hidden by the first, since they go through the same links; by a third, all of the first is.
  program.record(entry_of(move));
  CHECK(simulate(program, network, options).seconds == doctest::Approx(2 * alone));
  Program early;
  early.mesh = program.mesh;
  ProgramEntry first = entry_of(move);
  first.meanwhile = 1;
  early.record(first);
  early.record(entry_of(move));
  const NetworkTimes times = simulate(early, network, options);
  CHECK(times.seconds == doctest::Approx(2 * alone));
  CHECK(times.operators[0].seconds == 0);
  CHECK(times.exposed == doctest::Approx(2 * alone));
}

TEST_CASE("what products in rounds hide by their plans, they hide on a network, and gain by it") {
  struct Layout {
    const char* terms;
    Sharding a, b, out;
  };
  const std::vector<Layout> layouts{
      {"ik,kj->ij", {{0, 1}, {}}, {{0, 1}, {}}, {{0, 1}, {}}},  // one operand travels
      {"ik,kj->ij", {{}, {0, 1}}, {{0, 1}, {}}, {{0, 1}, {}}},  // sums travel
      {"ik,kj->ij", {{0}, {1}}, {{0}, {1}}, {{0}, {1}}},        // both operands travel
      {"ik,jk->ij", {{0}, {1}}, {{1}, {0}}, {{0}, {1}}},
      {"ik,kj->ij", {{0}, {1}}, {{1}, {}}, {{0}, {1}}},
  };
  std::mt19937_64 random(11);
  const auto one_of = [&](const auto& all) { return all[random() % all.size()]; };
  std::map<LoopKind, int> seen;
  for (int round = 0; round < 250; ++round) {
    const Layout& layout = layouts[round < 150 ? static_cast<std::size_t>(round) % 5 : 2];
    const MeshShape mesh = one_of(
        std::array<MeshShape, 7>{MeshShape{1, 4}, {2, 2}, {3, 2}, {4, 4}, {6, 4}, {4, 8}, {5, 5}});
    const auto extent = [&] {
      return one_of(std::array<Index, 6>{2048, 4099, 8192, 9001, 12288, 20011});
    };
    const Index i = extent(), k = extent(), j = extent();
    const bool turned = std::string(layout.terms) == "ik,jk->ij";
    const TensorDesc a{DType::f32, {i, k}, layout.a};
    const TensorDesc b{DType::f32, turned ? Extents{j, k} : Extents{k, j}, layout.b};
    PlanOptions options;
    options.machine.processes_per_node = one_of(std::array<int, 3>{1, 1, 2});
    options.machine.kiloflop_ps_f32 = one_of(std::array<std::int64_t, 2>{500, 2000});
    // Both operands in blocks that do not nest: within so little memory by SUMMA's loop alone.
    const bool limited = round >= 150;
    if (limited) options.workspace_limit = (i * j + 3 * (i * k + k * j)) / mesh.processes() * 4;
    const Network network = Network::nodes(options.machine, mesh.processes());
    const auto seconds = [&](int hidden, Plan& plan) {
      options.machine.hidden_percent = hidden;
      plan = ops::Einsum{parse(layout.terms), layout.out}.plan({a, b}, {mesh, 0, options});
      Program program;
      program.mesh = mesh;
      program.record(entry_of(std::make_shared<Plan>(plan)));
      return simulate(program, network, {.machine = options.machine}).seconds;
    };
    Plan plain, hides;
    const double before = seconds(0, plain), after = seconds(100, hides);
    const Step* loop = nullptr;
    for (const Step& step : hides.steps)
      if (step.loop) loop = &step;
    if (loop == nullptr || (limited && loop->loop.kind != LoopKind::summa)) continue;
    ++seen[loop->loop.kind];
    CAPTURE(round);
    CAPTURE(mesh.processes());
    CAPTURE(name_of(loop->loop.kind));
    CAPTURE(before);
    if (!limited) CHECK(after < before);
    // Sums that travel, and halves that go both ways, hide more where a round need not wait for
    // all.
    const double planned = 1e-12 * static_cast<double>(hides.cost);
    const bool more = loop->loop.kind == LoopKind::scatter || loop->loop.both_ways;
    CHECK(after < 1.03 * planned);
    CHECK(after > (more ? 0.6 : 0.97) * planned);
  }
  CHECK(seen[LoopKind::gather] > 20);
  CHECK(seen[LoopKind::scatter] > 5);
  CHECK(seen[LoopKind::cannon] > 2);
  CHECK(seen[LoopKind::summa] > 0);
}

/// A part of a mesh with one axis of the program's.
ProgramPart part_of(const std::string& name, int axis, int size, std::vector<int> places) {
  ProgramPart part;
  part.name = name;
  part.mesh = {size};
  part.places = std::move(places);
  part.axes.push_back(axis);
  return part;
}

TEST_CASE("operators on parts of a mesh go on where their processes stand") {
  const auto gather = [](int processes, Index rows) {
    const TensorDesc desc{DType::f64, {rows, 125}, Sharding{{0}, {}}};
    ProgramEntry entry = entry_of(std::make_shared<Plan>(
        detail::plan_reshard(desc, Sharding{{}, {}}, MeshShape{processes}, 0, PlanOptions{})));
    return entry;
  };
  const auto alone = [](ProgramEntry entry, int processes) {
    Program program;
    program.mesh = {processes};
    entry.part = 0;
    program.record(entry);
    return simulate(program, Network::nodes(processes, 1, {1e12, 0}, {1e6, 1}), {.computes = false})
        .seconds;
  };
  Program stages;
  stages.mesh = {2, 4};
  stages.set_parts({part_of("stage=0", 1, 4, {0, 1, 2, 3, -1, -1, -1, -1}),
                    part_of("stage=1", 1, 4, {-1, -1, -1, -1, 0, 1, 2, 3}),
                    {}});
  ProgramPart whole;
  whole.mesh = {2, 4};
  whole.places = {0, 1, 2, 3, 4, 5, 6, 7};
  for (const int axis : {0, 1}) whole.axes.push_back(axis);
  stages.set_parts({stages.part_at(0), stages.part_at(1), whole});
  const ProgramEntry shorter = gather(4, 4), longer = gather(4, 400);
  const auto on = [](ProgramEntry entry, int part) {
    entry.part = part;
    return entry;
  };
  // The stages work at once: the second takes longer, and nobody waits for the first.
  stages.record(on(shorter, 0));
  stages.record(on(longer, 1));
  const Network network = Network::nodes(8, 1, {1e12, 0}, {1e6, 1});
  NetworkTimes times = simulate(stages, network, {.computes = false});
  CHECK(times.seconds == doctest::Approx(alone(longer, 4)));
  CHECK(times.exposed == doctest::Approx(alone(shorter, 4)));
  CHECK(times.operators[0].seconds == doctest::Approx(alone(shorter, 4)));
  CHECK(times.link.find("host 0") == std::string::npos);  // of stage 1
  // A move of all processes begins when the later stage has ended.
  const TensorDesc desc{DType::f64, {8, 125}, Sharding{{0, 1}, {}}};
  const ProgramEntry move = entry_of(std::make_shared<Plan>(
      detail::plan_reshard(desc, Sharding{{1}, {}}, stages.mesh, 0, PlanOptions{})));
  Program moves;
  moves.mesh = stages.mesh;
  moves.record(move);
  stages.record(on(move, 2));
  CHECK(simulate(stages, network, {.computes = false}).seconds ==
        doctest::Approx(alone(longer, 4) + simulate(moves, network, {.computes = false}).seconds));
}

TEST_CASE("a move that process 0 takes no part in takes its time") {
  // Rows of 1000 bytes go from processes 1 and 2 to process 3; to 0 and from it go none.
  const MeshShape mesh{4}, two{2}, one{1};
  const Extents extents{4, 125};
  const std::vector<int> from{1, 2}, to{3};
  const std::vector<Box> before = detail::boxes_in_part(extents, Sharding{{0}, {}}, two, from, 4),
                         after = detail::boxes_in_part(extents, Sharding{{}, {}}, one, to, 4);
  const TensorDesc desc{DType::f64, extents, Sharding{{}, {}}};
  const ops::BetweenParts move{ops::Memory::in_boxes(before, 4), ops::Memory::in_boxes(after, 4)};
  std::vector<Box> kept;
  Planning planning{mesh};
  planning.boxes = &kept;
  Program program;
  program.mesh = mesh;
  program.record(entry_of(std::make_shared<Plan>(move.plan({desc}, planning))));
  const NetworkTimes times =
      simulate(program, Network::nodes(4, 1, {1e12, 0}, {1e6, 1}), {.computes = false});
  CHECK(times.seconds == doctest::Approx(2 + 0.004));  // of four rows through the link to host 3
  CHECK(times.exposed == 0);                           // process 0 waits for nobody
}

TEST_CASE("of manual functions all parts run at once, and share links") {
  // A gather over an axis of the mesh, and the same in a manual function over the other axis.
  for (const int axis : {0, 1}) {
    const MeshShape mesh{4, 4};
    const TensorDesc desc{DType::f64, {16, 125}, Sharding{{axis}, {}}},
        within{DType::f64, {16, 125}, Sharding{{0}, {}}};
    const auto plan = [](const TensorDesc& from, const MeshShape& of) {
      return entry_of(std::make_shared<Plan>(
          detail::plan_reshard(from, Sharding{{}, {}}, of, 0, PlanOptions{})));
    };
    Program automatic, manual;
    automatic.mesh = manual.mesh = mesh;
    automatic.record(plan(desc, mesh));
    std::vector<int> places;
    for (int p = 0; p < 16; ++p) places.push_back(mesh.coordinates(p)[axis]);
    manual.set_parts({part_of("manual", axis, 4, places)});
    manual.record(plan(within, {4}));
    for (const Network& network :
         {Network::torus({16}, link), Network::fat_tree({4, 4}, {1, 1}, link)}) {
      // The mesh on the places in its own order, and turned.
      for (const AxisList& order : {AxisList{0, 1}, AxisList{1, 0}}) {
        NetworkOptions options{.computes = false};
        options.machine.order.axes = order;
        const NetworkTimes a = simulate(automatic, network, options),
                           m = simulate(manual, network, options);
        CHECK(m.seconds == a.seconds);
        CHECK(m.link_bytes == a.link_bytes);
        CHECK(m.seconds > 0);
      }
    }
  }
}

TEST_CASE("the links of a machine are those of a network of nodes") {
  Machine machine{.message_ps = 500'000, .payload_ps_per_kib = 1'024'000, .processes_per_node = 4};
  const Network six = Network::nodes(machine, 6);
  CHECK(six.hosts() == 2);
  CHECK(six.processes() == 8);
  CHECK(six.inside().bytes_per_second == doctest::Approx(1e9));
  CHECK(six.inside().seconds == doctest::Approx(5e-7));
  CHECK(six.link(0).bytes_per_second == doctest::Approx(4 * 1024e12 / 800'000));
  CHECK(six.link(0).seconds == doctest::Approx(1e-6));  // a way has two links
  detail::LinkUse use(six);
  CHECK(detail::SharedLinks(six).times_of({{0, 4, 1}}, use)[0] ==
        doctest::Approx(1e-12 * static_cast<double>(machine.transfer(1, 1, Level::network))));
  machine.processes_per_node = 0;
  CHECK(Network::nodes(machine, 6).hosts() == 1);
  CHECK(Network::nodes(machine, 6).processes() == 6);
  CHECK_THROWS_AS((void)Network::nodes(machine, 0), UsageError);
}

TEST_CASE("a network's machine has its slowest links, which the processes of a host share") {
  const Network tree = Network::fat_tree({4, 4}, {1, 2}, {1e9, 2e-6}, 8, {5e9, 1e-7});
  const Machine machine = tree.machine({.copy_ps_per_kib = 77});
  CHECK(machine.copy_ps_per_kib == 77);
  CHECK(machine.processes_per_node == 8);
  CHECK(machine.message_ps == 100'000);
  CHECK(machine.payload_ps_per_kib == 204'800);
  CHECK(machine.network_message_ps == 8'000'000);  // over both levels, up and down
  CHECK(machine.network_payload_ps_per_kib == 8 * 1'024'000);
  const Machine given{.message_ps = 500'000, .processes_per_node = 4};
  CHECK(Network::nodes(given, 16).machine(given) == given);
  CHECK(Network::nodes(1, 4, {5e9, 1e-7}, {1e9, 1e-6}).machine().processes_per_node == 4);
}

TEST_CASE(
    "made as links make them, a machine's bytes go around rings, and all-to-alls fill links") {
  const auto machine = [](const Network& network) {
    return network.machine({.copy_ps_per_kib = 77}, CollectiveWays::links);
  };
  // Of 16 hosts 15 are 64 links away together, on each of two ways; to the next it is half of one.
  const Machine ring = machine(Network::torus({16}, {1e9, 1e-6}, 2));
  CHECK(ring.copy_ps_per_kib == 77);
  CHECK(ring.network_payload_ps_per_kib == 1'024'000);
  CHECK(ring.all_to_all_percent == 427);
  CHECK(machine(Network::torus({4, 16}, {1e9, 1e-6})).all_to_all_percent ==
        std::lround(100 * 64 * 4 / 63.0));
  // Each message goes up and down; of 15, 12 share the two links of four hosts, or the one, which a
  // ring fills as it does those of hosts.
  for (const int up : {1, 2}) {
    const Machine tree = machine(Network::fat_tree({4, 4}, {1, up}, {1e9, 0}));
    CHECK(tree.network_payload_ps_per_kib == 1'024'000);
    CHECK(tree.all_to_all_percent == 320 / up);
  }
  CHECK(machine(Network::nodes(8, 4, {5e9, 0}, {1e9, 0})).all_to_all_percent == 100);
  CHECK(machine(Network::nodes(8, 4, {5e9, 0}, {1e9, 0})).network_payload_ps_per_kib == 4'096'000);
  CHECK(Network::torus({16}, {1e9, 0}).machine().all_to_all_percent == 100);
}

TEST_CASE("by such a machine moves on a torus cost what they take") {
  const Network torus = Network::torus({16}, {1e9, 0});
  PlanOptions options;
  options.machine = torus.machine({.copy_ps_per_kib = 1}, CollectiveWays::links);
  for (const Sharding& to : {Sharding{{}, {0}}, Sharding{{}, {}}}) {
    Program program;
    program.mesh = {16};
    const auto plan = std::make_shared<Plan>(detail::plan_reshard(
        {DType::f64, {1024, 1024}, Sharding{{0}, {}}}, to, program.mesh, 0, options));
    program.record(entry_of(plan));
    std::int64_t cost = 0;
    for (const Step& step : plan->steps) cost += step.cost;
    const NetworkTimes times =
        simulate(program, torus, {.computes = false, .ways = CollectiveWays::links});
    CHECK(times.seconds == doctest::Approx(1e-12 * static_cast<double>(cost)).epsilon(0.001));
  }
}

TEST_CASE("a mesh within a host sends all-to-alls over no links of the network") {
  const Network torus = Network::torus({8, 8}, {1e9, 0}, 4, {5e9, 0});
  const Machine machine = torus.machine({}, CollectiveWays::links);
  CHECK(machine.all_to_all_percent > 200);
  for (const int processes : {4, 8}) {
    std::int64_t cost[2] = {};
    for (const bool by_rings : {false, true}) {
      PlanOptions options;
      options.machine = machine;
      if (by_rings) options.machine.all_to_all_percent = 100;
      const Plan plan = detail::plan_reshard({DType::f64, {1024, 1024}, Sharding{{0}, {}}},
                                             Sharding{{}, {0}}, MeshShape{processes}, 0, options);
      REQUIRE(plan.count(Collective::all_to_all) == 1);
      for (const Step& step : plan.steps) cost[by_rings] += step.cost;
    }
    CHECK((cost[0] > cost[1]) == (processes > 4));
  }
}

TEST_CASE("where all-to-alls fill links, a product gathers along the axes of its mesh") {
  // A feed-forward layer's, over both axes: GSPMD's "2D finalized".
  const Machine torus = Network::torus({32, 32}, {70e9, 0}, 2).machine({}, CollectiveWays::links);
  const TensorDesc x{DType::bf16, {512, 1024, 8192}, Sharding{{0}, {}, {1}}},
      w{DType::bf16, {8192, 65536}, Sharding{{0}, {1}}};
  const auto plan = [&](std::int64_t percent) {
    PlanOptions options;
    options.machine = Machine{.message_ps = 1,
                              .payload_ps_per_kib = torus.network_payload_ps_per_kib / 2,
                              .copy_ps_per_kib = 4'551,
                              .kiloflop_ps_f32 = 16,
                              .all_to_all_percent = percent};
    return ops::Einsum{parse("aby,yz->abz"), Sharding{{0}, {}, {1}}}.plan(
        {x, w}, {MeshShape{32, 64}, 0, options});
  };
  const Plan cheap = plan(100), dear = plan(torus.all_to_all_percent);
  CHECK(cheap.count(Collective::exchange) == 2);
  CHECK(dear.count(all_gather) == 2);
  CHECK(dear.communications() == 2);
  constexpr Index MiB = 1 << 20;
  CHECK(dear.payload_bytes() == 256 * MiB * 63 / 64 + 16 * MiB * 31 / 32);
  CHECK(cheap.payload_bytes() < dear.payload_bytes());
}

TEST_CASE("links and hosts that there are not are errors") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH_AS(Network::torus({4}, {nan, 0}), doctest::Contains("bytes a second"),
                       UsageError);
  CHECK_THROWS_AS(Network::torus({4}, {0, 0}), UsageError);
  CHECK_THROWS_AS(Network::nodes(2, 2, {1, -1}, link), UsageError);
  CHECK_THROWS_AS(Network::fat_tree({2}, {1}, {1, nan}), UsageError);
  CHECK_THROWS_WITH_AS(Network::torus({65536, 65536}, link),
                       doctest::Contains("4294967296 processes"), UsageError);
  CHECK_THROWS_AS(Network::torus({}, link), UsageError);
  CHECK_THROWS_WITH_AS(Network::torus({4}, link).route(0, 4), doctest::Contains("host 4"),
                       UsageError);
}

TEST_CASE("on a torus an all-to-all grows as the root of the processes, an all-reduce hardly") {
  // GShard, section 5.2 and Figure 9: as much data on each process, 16 to 2,048 of them.
  const auto seconds = [](int side, Index rows, Index columns, const Sharding& from,
                          const Sharding& to) {
    Program program;
    program.mesh = {side * side};
    const TensorDesc desc{DType::f32, {rows, columns}, from};
    program.record(entry_of(
        std::make_shared<Plan>(detail::plan_reshard(desc, to, program.mesh, 0, PlanOptions{}))));
    return simulate(program, Network::torus({side, side}, {70e9, 0}), {.computes = false}).seconds;
  };
  const Sharding whole{{}, {}};
  double all_to_all = 0, all_reduce = 0;
  for (const int side : {4, 8, 16}) {
    const double moved =
        seconds(side, 16 * side * side, 1 << 15, Sharding{{0}, {}}, Sharding{{}, {0}});
    const double summed =
        seconds(side, 512, 1024, whole.with_partial(AxisSet{0}, Reduction::sum), whole);
    if (side > 4) {
      CHECK(moved / all_to_all > 1.6);
      CHECK(moved / all_to_all < 2.1);
      CHECK(summed / all_reduce < 1.4);
    }
    all_to_all = moved;
    all_reduce = summed;
  }
}

TEST_CASE(
    "as links make collectives, rings cost the same for all members, and a link is kept full") {
  const auto seconds = [](const Network& network, const Sharding& from, const Sharding& to,
                          CollectiveWays ways) {
    Program program;
    program.mesh = {network.processes()};
    const TensorDesc desc{DType::f64, {64, 64}, from};  // 32 KiB
    program.record(entry_of(
        std::make_shared<Plan>(detail::plan_reshard(desc, to, program.mesh, 0, PlanOptions{}))));
    const NetworkTimes times = simulate(program, network, {.computes = false, .ways = ways});
    CHECK(times.busy <= times.seconds * (1 + 1e-9));
    return times.seconds;
  };
  constexpr auto libraries = CollectiveWays::libraries, links = CollectiveWays::links;
  const Sharding rows{{0}, {}}, columns{{}, {0}}, whole{{}, {}};
  const Sharding open = whole.with_partial(AxisSet{0}, Reduction::sum);
  for (const int n : {4, 8, 16}) {
    const Network ring = Network::torus({n}, {32768, 0});
    // Each link carries a half of all blocks but one, as often as it is gone around.
    const double around = (n - 1.0) / n / 2;
    CHECK(seconds(ring, rows, whole, links) == doctest::Approx(around));
    CHECK(seconds(ring, open, rows, links) == doctest::Approx(around));
    CHECK(seconds(ring, open, whole, links) == doctest::Approx(2 * around));
    // A message is 1 / n^2 of all. On a link are those of 1, 2, … n/2 - 1 processes before it, by
    // how far they go, and half of the n/2 that go both ways: n^2 / 8, as many as half of the ring
    // sends to the other half over each of the two links between them.
    const double moved = seconds(ring, rows, columns, links);
    CHECK(moved == doctest::Approx(1.0 / 8));
    CHECK(moved <= seconds(ring, rows, columns, libraries));
  }
  const Network switched = Network::nodes(6, 1, {1e12, 0}, {32768, 1});  // no power of two
  CHECK(seconds(switched, rows, whole, links) ==
        doctest::Approx(seconds(switched, rows, whole, libraries)));
}

TEST_CASE(
    "as links make them, messages point to point set out at once, and both ways round a torus") {
  const Network torus = Network::torus({4, 4}, {1e6, 0});
  struct Move {
    Sharding from, to;
    Collective kind;
    bool all;  ///< whether each process sends or receives
  };
  const std::vector<Move> moves{
      {Sharding{{}, {1}, {0}}, Sharding{{0}, {}, {1}}, Collective::exchange, true},
      {Sharding{{}, {1}, {0}}, Sharding{{}, {0}, {1}}, Collective::collective_permute, false}};
  for (const Move& move : moves) {
    Program program;
    program.mesh = {4, 4};
    const auto plan = std::make_shared<Plan>(detail::plan_reshard(
        {DType::f64, {5, 8, 8}, move.from}, move.to, program.mesh, 0, PlanOptions{}));
    REQUIRE(plan->count(move.kind) == 1);
    std::vector<double> carried(static_cast<std::size_t>(torus.links()));
    double bytes = 0, payload = 0;
    for (int p = 0; p < 16; ++p)
      for (const Call& call : instructions_of(on_process(*plan, p)).calls) {
        payload += static_cast<double>(detail::payload_bytes(call));
        for (const Piece& piece : call.send) {
          const int to = program.mesh.process(
              program.mesh.member(call.group, program.mesh.coordinates(p), piece.peer));
          const double half = 4 * static_cast<double>(piece.count);
          bytes += 2 * half;
          for (const bool other : {false, true}) {
            std::vector<int> way;
            torus.add_route(p, to, way, other);
            for (const int l : way) carried[static_cast<std::size_t>(l)] += half;
          }
        }
      }
    CHECK(bytes == payload);
    const double fullest = *std::max_element(carried.begin(), carried.end());
    program.record(entry_of(plan));
    const NetworkTimes times =
        simulate(program, torus, {.computes = false, .ways = CollectiveWays::links});
    CHECK(times.link_bytes == fullest);
    CHECK(times.seconds == doctest::Approx(fullest / 1e6));
    CHECK((times.exposed > 0) == move.all);
  }
}

TEST_CASE("what does not fit a network is an error, and the slowest link is named") {
  Program program;
  program.mesh = {8, 8};
  CHECK_THROWS_WITH_AS(simulate(program, Network::torus({4, 4}, link)),
                       doctest::Contains("for 64 processes, and the network has places for 16"),
                       UsageError);
  const TensorDesc desc{DType::f32, {1024, 1024}, Sharding{{0}, {1}}};
  const auto plan = std::make_shared<Plan>(
      detail::plan_reshard(desc, Sharding{{}, {1}}, program.mesh, 0, PlanOptions{}));
  program.record(entry_of(plan));
  const NetworkTimes times = simulate(program, Network::nodes(8, 8, {50e9, 1e-7}, link));
  CHECK(times.link == "host 0 to the switch");
  CHECK(times.link_bytes == 8 * plan->own_payload_bytes());
  CHECK(times.exposed <= times.seconds);
  CHECK(explain(times).find("busiest link: host 0 to the switch") != std::string::npos);
}

}  // namespace

TEST_CASE("networks of more links than can be kept are refused before they are made") {
  constexpr NetworkLink link{1e9, 1e-6};
  const auto says = [](const auto& make) {
    try {
      (void)make();
    } catch (const UsageError& error) {
      return std::string(error.what()).find("links, and can have 67108864") != std::string::npos;
    }
    return false;
  };
  CHECK(says([&] {
    return Network::dragonfly({.groups = 1, .chassis = 1, .routers = 70'000, .nodes = 1}, link);
  }));
  CHECK(says([&] { return Network::fat_tree({1 << 20}, {1 << 20}, link); }));
  CHECK(says([&] { return Network::torus(std::vector<int>(26, 2), link); }));
}
