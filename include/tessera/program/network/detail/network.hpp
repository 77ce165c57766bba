// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How networks are made, and how messages go through them.
///
///     network.route(0, 63)
///
/// Laws: those of program/network/network.hpp.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/math.hpp>
#include <tessera/program/network/network.hpp>

namespace tessera {
TESSERA_FUNCTION void Network::set(Shape shape, const std::vector<int>& sizes, int per_host,
                                   const NetworkLink& link, const NetworkLink& inside) {
  Index processes = per_host;
  for (const int n : sizes) {
    if (n < 1 || per_host < 1)
      throw UsageError(
          "a network is given " + std::to_string(min_of(n, per_host)) +
          " as a number of hosts, switches, links or processes; give numbers from 1 on");
    processes = detail::saturating_mul(processes, n);
  }
  if (sizes.empty() || processes > 1 << 26)
    throw UsageError("a network is for " + std::to_string(processes) +
                     " processes, and can be for 1 to 67108864; give sizes whose product is less");
  for (const NetworkLink& one : {link, inside})
    if (!(one.bytes_per_second > 0 && one.seconds >= 0 && std::isfinite(one.bytes_per_second) &&
          std::isfinite(one.seconds)))
      throw UsageError("a link of a network carries " + std::to_string(one.bytes_per_second) +
                       " bytes a second after " + std::to_string(one.seconds) +
                       " s; give a number above 0, and one of 0 or more");
  shape_ = shape;
  per_host_ = per_host;
  hosts_ = static_cast<int>(processes / per_host);
  link_ = link;
  inside_ = inside;
}

namespace detail {
/// Throws UsageError for more links than a network keeps the names of.
inline void require_links(Index links) {
  constexpr Index most = Index{1} << 26;
  if (links > most)
    throw UsageError("a network is to have " + std::to_string(links) + " links, and can have " +
                     std::to_string(most) + "; give fewer hosts, or fewer links of each");
}
}  // namespace detail

TESSERA_FUNCTION Network Network::nodes(int hosts, int processes_per_host,
                                        const NetworkLink& inside, const NetworkLink& outside) {
  Network n;
  n.set(Shape::nodes, {hosts}, processes_per_host, outside, inside);
  for (int h = 0; h < hosts; ++h) {
    n.add("host " + std::to_string(h) + " to the switch", outside);
    n.add("the switch to host " + std::to_string(h), outside);
  }
  return n;
}

TESSERA_FUNCTION Network Network::nodes(const Machine& machine, int processes) {
  const int per_host = machine.processes_per_node > 0 && machine.processes_per_node < processes
                           ? static_cast<int>(machine.processes_per_node)
                           : std::max(processes, 1);
  const auto link = [](double message_ps, std::int64_t payload_ps_per_kib, int senders) {
    return NetworkLink{1024e12 / static_cast<double>(payload_ps_per_kib) * senders,
                       1e-12 * message_ps};
  };
  const auto inside = static_cast<double>(machine.message_ps),
             outside = static_cast<double>(machine.network_message_ps);
  return nodes(processes < 1 ? 0 : (processes - 1) / per_host + 1, per_host,
               link(inside, machine.payload_ps_per_kib, 1),
               link(outside / 2, machine.network_payload_ps_per_kib, per_host));  // a way has two
}

/// Returns the number of a link's dimension or level.
TESSERA_FUNCTION int Network::kind_of(int link) const {
  if (shape_ == Shape::torus) return link / 2 % static_cast<int>(down_.size());
  return static_cast<int>(std::upper_bound(first_.begin(), first_.end(), link) - first_.begin());
}
/// Returns for how long the links of the fullest kind are busy, a byte of what each host sends, if
/// all hosts send as on these ways, in equal shares.
TESSERA_FUNCTION double Network::fullest_kind(const std::vector<std::pair<int, int>>& ways) const {
  // Of each kind: its links, and the seconds of all of them together, for a byte on each way.
  const std::size_t kinds = std::max(down_.size(), first_.size() + 1);
  std::vector<double> number(kinds), seconds(kinds);
  for (int l = 0; l < links(); ++l) number[static_cast<std::size_t>(kind_of(l))] += 1;
  std::vector<int> way;
  for (const auto& [from, to] : ways) {
    way.clear();
    add_route(from, to, way);
    for (const int l : way)
      seconds[static_cast<std::size_t>(kind_of(l))] += 1 / link(l).bytes_per_second;
  }
  double fullest = 0;
  for (std::size_t k = 0; k < kinds; ++k)
    if (number[k] > 0)
      fullest =
          std::max(fullest, seconds[k] / static_cast<double>(ways.size()) * hosts_ / number[k]);
  return fullest;
}

TESSERA_FUNCTION Machine Network::machine(const Machine& machine, CollectiveWays ways) const {
  const auto picoseconds = [](double seconds) {
    return static_cast<std::int64_t>(std::clamp(1e12 * seconds + 0.5, 1.0, 9e18));
  };
  // The ways from one host stand for all of a network that looks alike from every host.
  double longest = 0;
  const int some = hosts_ / 65536 + 1;
  std::vector<int> way;
  for (int to = 1; to < hosts_; to += some) {
    way.clear();
    add_route(0, to, way);
    double seconds = 0;
    for (const int l : way) seconds += link(l).seconds;
    longest = std::max(longest, seconds);
  }
  double slowest = hosts_ > 1 ? link_.bytes_per_second : inside_.bytes_per_second;
  for (const NetworkLink& link : links_) slowest = std::min(slowest, link.bytes_per_second);
  Machine own = machine;
  own.message_ps = picoseconds(inside_.seconds);
  own.payload_ps_per_kib = picoseconds(1024 / inside_.bytes_per_second);
  own.network_message_ps = picoseconds(longest);
  own.network_payload_ps_per_kib = picoseconds(1024 * per_host_ / slowest);
  own.processes_per_node = per_host_;
  if (ways == CollectiveWays::libraries || hosts_ < 2) return own;
  std::vector<std::pair<int, int>> to_all, around;
  for (int host = 0; host < hosts_; host += some) {
    for (const int next : {host + 1, host + hosts_ - 1}) around.emplace_back(host, next % hosts_);
    if (host > 0) to_all.emplace_back(0, host);
  }
  const double ring = fullest_kind(around);
  own.network_payload_ps_per_kib = picoseconds(1024 * per_host_ * ring);
  own.all_to_all_percent =
      static_cast<std::int64_t>(std::clamp(100 * fullest_kind(to_all) / ring + 0.5, 100.0, 1e9));
  return own;
}

TESSERA_FUNCTION Network Network::torus(const std::vector<int>& sizes, const NetworkLink& link,
                                        int processes_per_host, const NetworkLink& inside) {
  Network n;
  n.set(Shape::torus, sizes, processes_per_host, link, inside);
  n.down_ = sizes;
  detail::require_links(2 * Index{n.hosts_} * std::ssize(sizes));
  for (int h = 0; h < n.hosts_; ++h)
    for (std::size_t d = 0; d < sizes.size(); ++d)
      for (const char* way : {" onwards", " backwards"})
        n.add("the link of host " + std::to_string(h) + " in dimension " + std::to_string(d) + way,
              link);
  return n;
}

TESSERA_FUNCTION Network Network::fat_tree(const std::vector<int>& down, const std::vector<int>& up,
                                           const NetworkLink& link, int processes_per_host,
                                           const NetworkLink& inside) {
  if (down.size() != up.size())
    throw UsageError("a fat tree has children of " + std::to_string(down.size()) +
                     " levels and parents of " + std::to_string(up.size()) +
                     "; give both for each level");
  Network n;
  n.set(Shape::tree, up, 1, link, inside);  // numbers of parents are from 1 on, too
  n.set(Shape::tree, down, processes_per_host, link, inside);
  n.down_ = down;
  n.up_ = up;
  // The members of level l are in `subtrees` subtrees of `copies` switches each.
  int subtrees = n.hosts_, copies = 1;
  for (std::size_t l = 0; l < down.size(); ++l) {
    detail::require_links(n.links() + 2 * detail::saturating_mul(Index{subtrees} * copies, up[l]));
    n.first_.push_back(n.links());
    const std::string level = " of level " + std::to_string(l);
    for (int child = 0; child < subtrees * copies; ++child)
      for (int parent = 0; parent < up[l]; ++parent)
        for (const char* way : {" up to its parent ", " down from its parent "})
          n.add((l == 0 ? "host " + std::to_string(child)
                        : "switch " + std::to_string(child) + level) +
                    way + std::to_string(parent),
                link);
    subtrees /= down[l];
    copies *= up[l];
  }
  return n;
}

TESSERA_FUNCTION Network Network::dragonfly(const Dragonfly& shape, const NetworkLink& link,
                                            int processes_per_host, const NetworkLink& inside) {
  Network n;
  n.set(Shape::dragonfly, {shape.group_links, shape.chassis_links, shape.router_links}, 1, link,
        inside);
  n.set(Shape::dragonfly, {shape.groups, shape.chassis, shape.routers, shape.nodes},
        processes_per_host, link, inside);
  if (shape.groups > shape.routers)
    throw UsageError(
        "a dragonfly has " + std::to_string(shape.groups) + " groups, and " +
        std::to_string(shape.routers) +
        " routers in a chassis; each group is linked with a router of its own, so give "
        "at least as many routers");
  n.dragonfly_ = shape;
  const int routers = shape.groups * shape.chassis * shape.routers;
  detail::require_links(2 * Index{n.hosts_} +
                        detail::saturating_mul(routers, Index{shape.routers} + shape.chassis - 2) +
                        Index{shape.groups} * (shape.groups - 1));
  const auto add = [&](int from, const std::string& to, int side_by_side) {
    const int in_group = shape.chassis * shape.routers;
    n.add("router " + std::to_string(from % shape.routers) + " of chassis " +
              std::to_string(from % in_group / shape.routers) + " of group " +
              std::to_string(from / in_group) + " to " + to,
          {side_by_side * link.bytes_per_second, link.seconds});
  };
  // A level has the links of router 0, then those of router 1, …: to each other one by its number.
  n.first_.push_back(n.links());
  for (int h = 0; h < n.hosts_; ++h) {
    n.add("host " + std::to_string(h) + " to its router", link);
    n.add("the router of host " + std::to_string(h) + " to it", link);
  }
  n.first_.push_back(n.links());
  for (int r = 0; r < routers; ++r)
    for (int to = 0; to < shape.routers; ++to)
      if (to != r % shape.routers) add(r, "router " + std::to_string(to), shape.router_links);
  n.first_.push_back(n.links());
  for (int r = 0; r < routers; ++r)
    for (int to = 0; to < shape.chassis; ++to)
      if (to != r / shape.routers % shape.chassis)
        add(r, "chassis " + std::to_string(to), shape.chassis_links);
  n.first_.push_back(n.links());
  for (int g = 0; g < shape.groups; ++g)
    for (int to = 0; to < shape.groups; ++to)
      if (to != g)
        add(g * shape.chassis * shape.routers + to, "group " + std::to_string(to),
            shape.group_links);
  return n;
}

TESSERA_FUNCTION void Network::add_route(int from, int to, std::vector<int>& links,
                                         bool other_way) const {
  for (const int host : {from, to})
    if (host < 0 || host >= hosts_)
      throw UsageError("a route of host " + std::to_string(host) +
                       " is asked for, and the network has " + std::to_string(hosts_) +
                       ", numbered from 0 on; give one of these");
  if (from == to) return;
  switch (shape_) {
    case Shape::nodes:
      links.push_back(2 * from);
      links.push_back(2 * to + 1);
      break;
    case Shape::torus:
      along_torus(from, to, links, other_way);
      break;
    case Shape::tree:
      along_tree(from, to, links);
      break;
    case Shape::dragonfly:
      along_dragonfly(from, to, links);
      break;
  }
}

TESSERA_FUNCTION bool Network::two_ways(int from, int to) const {
  if (shape_ != Shape::torus) return false;
  for (const int size : down_) {
    if (2 * std::abs(from % size - to % size) == size) return true;
    from /= size;
    to /= size;
  }
  return false;
}

TESSERA_FUNCTION void Network::along_torus(int from, int to, std::vector<int>& links,
                                           bool other_way) const {
  int stride = 1, at = from;
  const int dimensions = static_cast<int>(down_.size());
  for (int d = 0; d < dimensions; ++d) {
    const int size = down_[static_cast<std::size_t>(d)];
    const int own = at / stride % size, other = to / stride % size;
    const int onwards = (other - own + size) % size;
    // Where both ways are as long, SimGrid takes the one onwards, but from the middle.
    const bool forward =
        onwards == size - onwards ? (own != size / 2) != other_way : onwards < size - onwards;
    for (int place = own; place != other;) {
      const int next =
          forward ? (place + 1 == size ? 0 : place + 1) : (place == 0 ? size : place) - 1;
      const int there = at + (next - place) * stride;
      links.push_back(2 * ((forward ? at : there) * dimensions + d) + (forward ? 0 : 1));
      at = there;
      place = next;
    }
    stride *= size;
  }
}

/// A message goes up by the parent that its destination names, and down through copies of the same
/// switches.
TESSERA_FUNCTION void Network::along_tree(int from, int to, std::vector<int>& links) const {
  std::size_t top = 0;
  for (int a = from, b = to; a != b; ++top) a /= down_[top], b /= down_[top];
  links.resize(links.size() + 2 * top);
  auto ascent = links.end() - 2 * static_cast<std::ptrdiff_t>(top);
  auto descent = links.end();
  int subtree_up = from, subtree_down = to, copy = 0, copies = 1, named = to;
  for (std::size_t l = 0; l < top; ++l) {
    if (l > 0) named /= up_[l - 1];
    const int parent = named % up_[l];
    *ascent++ = first_[l] + 2 * ((subtree_up * copies + copy) * up_[l] + parent);
    *--descent = first_[l] + 2 * ((subtree_down * copies + copy) * up_[l] + parent) + 1;
    copy += parent * copies;
    copies *= up_[l];
    subtree_up /= down_[l];
    subtree_down /= down_[l];
  }
}

TESSERA_FUNCTION void Network::along_dragonfly(int from, int to, std::vector<int>& links) const {
  const int chassis = dragonfly_.chassis, routers = dragonfly_.routers, nodes = dragonfly_.nodes;
  int at = from / nodes;  // a router; a group has chassis * routers
  const int end = to / nodes, group = at / routers / chassis, there = end / routers / chassis;
  // A router whose number is `own` has links to all other numbers; this is the place of one of
  // them.
  const auto among = [](int own, int number) { return number < own ? number : number - 1; };
  const auto to_router = [&](int number) {
    const int own = at % routers;
    if (own == number) return;
    links.push_back(first_[1] + at * (routers - 1) + among(own, number));
    at += number - own;
  };
  const auto to_chassis = [&](int number) {
    const int own = at / routers % chassis;
    if (own == number) return;
    links.push_back(first_[2] + at * (chassis - 1) + among(own, number));
    at += (number - own) * routers;
  };
  links.push_back(2 * from);
  if (group != there) {
    to_router(there);
    to_chassis(0);
    links.push_back(first_[3] + group * (dragonfly_.groups - 1) + among(group, there));
    at = there * chassis * routers + group;
  }
  to_router(end % routers);
  to_chassis(end / routers % chassis);
  links.push_back(2 * to + 1);
}

}  // namespace tessera
