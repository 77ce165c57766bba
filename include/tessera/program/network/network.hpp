// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A network of hosts: links, and the way of a message from one host to another. Links in both
/// directions are two links each.
///
///     const Network tree = Network::fat_tree({8, 8}, {1, 8}, {.bytes_per_second = 12.5e9, .seconds = 1e-6});
///     const Network torus = Network::torus({4, 4, 4}, {});
///     const Network nodes = Network::nodes(8, 8, {.bytes_per_second = 50e9}, {});
///     const Network dragonfly = Network::dragonfly({.groups = 4, .chassis = 2, .routers = 4, .nodes = 2}, {});
///     tree.hosts() == 64;   tree.route(0, 63)             // numbers of links
///     std::string platform = dragonfly.simgrid_platform();
///
/// Laws: a route begins and ends with links of its hosts, and each link begins where the one before
/// it ends. It is the route of SimGrid 3.32 on the platform that the network writes, but within a
/// dragonfly's group of several chassis, where SimGrid goes on from the first chassis, wherever the
/// message is.
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/mesh/machine.hpp>
#include <tessera/program/network/options.hpp>

namespace tessera {

struct NetworkLink {
  double bytes_per_second = 12.5e9;
  double seconds = 1e-6;  ///< the latency: what a message takes beside its bytes
};

/// Groups of chassis of routers of nodes. The routers of a chassis are linked with one another, and
/// so are those that have the same number in the chassis of a group, and each group with every
/// other.
struct Dragonfly {
  int groups = 1, chassis = 1, routers = 1, nodes = 1;
  int group_links = 1, chassis_links = 1,
      router_links = 1;  ///< as many side by side count as one link
};

class Network {
 public:
  /// Returns a fat tree: `down[l]` children of each switch of level l + 1, `up[l]` parents of each
  /// host (l = 0) or switch of level l. A message goes up to the lowest common level, by the parent
  /// that its destination's number names, and down. Processes of one host send one another by
  /// `inside`, each message at its full rate. Throws UsageError for numbers below 1, or not as many
  /// of both, and for links that nothing goes through. Source: Leiserson (1985); routes as in
  /// Zahavi, "D-Mod-K routing" (2010).
  TESSERA_FUNCTION static Network fat_tree(const std::vector<int>& down, const std::vector<int>& up,
                                           const NetworkLink& link, int processes_per_host = 1,
                                           const NetworkLink& inside = {50e9, 1e-7});
  /// Returns a torus: each host has a link to the next in each dimension. A message goes along the
  /// dimensions in their order, the first varying fastest, the shorter way around; where both ways
  /// are as long, onwards, but backwards from the host in the middle of the dimension. Throws
  /// UsageError for a size below 1, and for links that nothing goes through.
  TESSERA_FUNCTION static Network torus(const std::vector<int>& sizes, const NetworkLink& link,
                                        int processes_per_host = 1,
                                        const NetworkLink& inside = {50e9, 1e-7});
  /// Returns hosts with a link each way to a switch that is never full. Throws UsageError for
  /// numbers below 1, and for links that nothing goes through.
  TESSERA_FUNCTION static Network nodes(int hosts, int processes_per_host,
                                        const NetworkLink& inside, const NetworkLink& outside);
  /// Returns such hosts with the links of a machine, as `calibrate` or a file has them, for at
  /// least so many processes: machine.processes_per_node on a host (0: all). The link of a host is
  /// as fast as all its processes together send, and a message between hosts takes the machine's
  /// latency on its two links together. Throws UsageError for no processes.
  TESSERA_FUNCTION static Network nodes(const Machine& machine, int processes);
  /// Returns a dragonfly, whose links between groups hang on the first chassis: in group g the
  /// router g' is linked with router g of group g'. A message goes the minimal way: to the router
  /// that is linked with its destination's group, first in its chassis, then in its group; in the
  /// group of its destination as well. Throws UsageError for numbers below 1, for more groups than
  /// routers of a chassis, and for links that nothing goes through. Source: Kim, Dally, Scott,
  /// Abts, "Technology-driven, highly-scalable dragonfly topology" (2008); two dimensions within a
  /// group as in Faanes et al., "Cray Cascade" (2012).
  TESSERA_FUNCTION static Network dragonfly(const Dragonfly& shape, const NetworkLink& link,
                                            int processes_per_host = 1,
                                            const NetworkLink& inside = {50e9, 1e-7});

  /// Returns the machine with the messages of this network, so that plans and choices are priced
  /// for it: between hosts they take the latency of the longest way from the first host, and the
  /// rate of the slowest link, which the processes of a host share, as if no other host used it.
  /// Made as links make them, bytes go around the ring of the hosts, half each way, with as many
  /// rings side by side as a host has processes; and those of an all-to-all of all hosts take as
  /// long as the fullest kind of link (a dimension, a level), if the ways of the first host stand
  /// for all. All else is `machine`'s. Communication: none.
  TESSERA_FUNCTION Machine machine(const Machine& machine = {},
                                   CollectiveWays ways = CollectiveWays::libraries) const;

  int hosts() const { return hosts_; }
  int processes() const { return hosts_ * per_host_; }
  int host_of(int process) const { return process / per_host_; }
  int links() const { return static_cast<int>(links_.size()); }
  const NetworkLink& link(int number) const { return links_[static_cast<std::size_t>(number)]; }
  /// Returns "host 3 to switch 1 of level 1".
  const std::string& name(int number) const { return names_[static_cast<std::size_t>(number)]; }
  /// Returns what two processes of one host send one another by; no messages share it.
  const NetworkLink& inside() const { return inside_; }
  /// Returns the links from one host to another, in order; none where they are one. Throws
  /// UsageError for a host that the network has not.
  std::vector<int> route(int from, int to) const {
    std::vector<int> links;
    add_route(from, to, links);
    return links;
  }
  /// Appends the links of a route to `links`; of the other way, if there are two.
  TESSERA_FUNCTION void add_route(int from, int to, std::vector<int>& links,
                                  bool other_way = false) const;
  /// Returns whether another way is as short as the route: in a torus, where the hosts are half of
  /// a dimension apart. It is the route with all such dimensions gone around the other way.
  TESSERA_FUNCTION bool two_ways(int from, int to) const;

  /// Returns the network as a platform file of SimGrid, whose hosts are called host-0, host-1, …;
  /// and the host of each process, one a line. Communication: none.
  TESSERA_FUNCTION std::string simgrid_platform() const;
  TESSERA_FUNCTION std::string simgrid_hosts() const;

 private:
  enum class Shape { tree, torus, nodes, dragonfly };
  void set(Shape shape, const std::vector<int>& sizes, int per_host, const NetworkLink& link,
           const NetworkLink& inside);
  void along_torus(int from, int to, std::vector<int>& links, bool other_way) const;
  void along_tree(int from, int to, std::vector<int>& links) const;
  void along_dragonfly(int from, int to, std::vector<int>& links) const;
  int kind_of(int link) const;
  double fullest_kind(const std::vector<std::pair<int, int>>& ways) const;
  int add(std::string name, const NetworkLink& link) {
    names_.push_back(std::move(name));
    links_.push_back(link);
    return links() - 1;
  }

  Shape shape_ = Shape::nodes;
  int hosts_ = 0, per_host_ = 1;
  std::vector<int> down_, up_;  ///< a tree's numbers; down_ has the sizes of a torus
  std::vector<int> first_;  ///< the number of the first link of each level of a tree or dragonfly
  Dragonfly dragonfly_;
  NetworkLink link_;  ///< the kind of link that the network is made of
  std::vector<NetworkLink> links_;
  std::vector<std::string> names_;
  NetworkLink inside_;
};

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/network/detail/network.hpp>
#include <tessera/program/network/detail/platform.hpp>
#endif
