// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Networks as files of SimGrid's.
///
///     network.simgrid_platform()
///
/// Laws: those of program/network/network.hpp.
#include <charconv>
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/network/network.hpp>

namespace tessera {

namespace detail {
/// Returns a number so that reading it gives it back, without a comma in any language.
inline std::string exact(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), number).ptr};
}
/// Returns "2,8,4".
inline std::string listed(const std::vector<int>& numbers) {
  std::string text;
  for (const int n : numbers) text += (text.empty() ? "" : ",") + std::to_string(n);
  return text;
}
}  // namespace detail

TESSERA_FUNCTION std::string Network::simgrid_platform() const {
  std::string topology;
  const Dragonfly& d = dragonfly_;
  switch (shape_) {
    case Shape::nodes:
      break;
    case Shape::torus:
      topology = R"( topology="TORUS" topo_parameters=")" + detail::listed(down_) + '"';
      break;
    case Shape::tree:
      topology = R"( topology="FAT_TREE" topo_parameters=")" + std::to_string(down_.size()) + ";" +
                 detail::listed(down_) + ";" + detail::listed(up_) + ";" +
                 detail::listed(std::vector<int>(down_.size(), 1)) + '"';
      break;
    case Shape::dragonfly:
      topology = R"( topology="DRAGONFLY" topo_parameters=")" +
                 detail::listed({d.groups, d.group_links}) + ";" +
                 detail::listed({d.chassis, d.chassis_links}) + ";" +
                 detail::listed({d.routers, d.router_links}) + ";" + std::to_string(d.nodes) + '"';
      break;
  }
  return R"(<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="hosts" prefix="host-" suffix="" radical="0-)" +
         std::to_string(hosts_ - 1) + R"(" speed="1Gf" bw=")" +
         detail::exact(link_.bytes_per_second) + R"(Bps" lat=")" + detail::exact(link_.seconds) +
         R"(s" loopback_bw=")" + detail::exact(inside_.bytes_per_second) +
         R"(Bps" loopback_lat=")" + detail::exact(inside_.seconds) + R"(s")" + topology +
         "/>\n</platform>\n";
}

TESSERA_FUNCTION std::string Network::simgrid_hosts() const {
  std::string text;
  for (int p = 0; p < processes(); ++p) text += "host-" + std::to_string(host_of(p)) + "\n";
  return text;
}

}  // namespace tessera
