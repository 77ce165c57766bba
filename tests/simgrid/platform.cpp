// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes a network of networks.hpp for smpirun: the platform and the host of each process.
//
//   platform fat_tree 64 fat_tree_64           fat_tree_64.xml and fat_tree_64.hosts
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

#include "networks.hpp"

int main(int argc, char** argv) {
  try {
    if (argc != 4)
      throw tessera::UsageError(
          "say which network, for how many processes, and the files' name without its end");
    const tessera::Network network = simgrid::network_of(argv[1], std::stoi(argv[2]));
    const std::string name = argv[3];
    std::ofstream platform(name + ".xml"), hosts(name + ".hosts");
    platform << network.simgrid_platform() << std::flush;
    hosts << network.simgrid_hosts() << std::flush;
    if (!platform || !hosts)
      throw tessera::FileError(name + ".xml and " + name +
                               ".hosts cannot be written; name a folder that there is");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
