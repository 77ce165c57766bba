// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: layers
// The measured machine: the same on all processes, and the same again from its file.
#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <set>
#include <string>

#include <support/world.hpp>
#include <tessera/tessera.hpp>

namespace {
using namespace tessera;
namespace grid {
struct all : Axis<> {};
}  // namespace grid
using Line = Mesh<grid::all>;

TEST_CASE("calibrate gives every process the numbers of process 0, and files keep them") {
  const auto mesh = make_mesh<Line>(support::world(), support::world()->size());
  const Machine machine = calibrate(mesh);
  for (const auto& one : detail::machine_fields) {
    const auto field = one.second;
    CAPTURE(one.first);
    CHECK(machine.*field >= detail::least_value(field));
    const auto mine = full<ShardedTensor<std::int64_t, Line, P<grid::all>>>(
        mesh, {mesh.processes()}, machine.*field);
    for (std::int64_t other : to_host(mine).values) CHECK(other == machine.*field);
  }
  CHECK(machine.hidden_percent <= 100);
  CHECK(machine.two_way_percent <= 100);
  const std::string path =
      "machine." + std::to_string(mesh.processes()) + "." + std::to_string(mesh.process()) + ".txt";
  save(machine, path);
  CHECK(load_machine(path) == machine);
  const auto refuses = [&](const std::string& lines, const char* why) {
    std::ofstream(path) << lines;
    CHECK_THROWS_WITH_AS((void)load_machine(path), doctest::Contains(why), UsageError);
  };
  // a file of a time when machines had fewer numbers
  refuses("message_ps 1\npayload_ps_per_kib 1\nkiloflop_ps_f32 1\nkiloflop_ps_f64 1\n",
          "lacks copy_ps_per_kib, network_message_ps, network_payload_ps_per_kib, "
          "processes_per_node");
  refuses("copy_ps_per_kib 0\n",
          "\"copy_ps_per_kib 0\", and it takes one whole number of at least 1");
  refuses("copy_ps_per_kib 2.5\n", "takes one whole number");
  refuses("copy_ps_per_kib\n", "takes one whole number");
  refuses("messages_ps 7\n", "\"messages_ps 7\", and a machine has no number of that name");
  refuses("message_ps 1\n\nmessage_ps 1\n", "and that number twice");
  CHECK(std::remove(path.c_str()) == 0);
  CHECK_THROWS_WITH_AS(load_machine(path),
                       doctest::Contains("there is no machine to read in machine."), UsageError);
}

TEST_CASE(
    "calibrate prices messages within nodes and between them, and keeps how many share a node") {
  const int processes = support::world()->size();
  if (processes % 2 != 0 || processes == 2) return;  // pairs, and several of them
  MeshOptions options;
  options.machine.processes_per_node = 2;
  const auto mesh = make_mesh<Line>(support::world(), sizes<Line>(processes), options);
  mesh.ledger().record_calls(true);
  const Machine machine = calibrate(mesh);
  CHECK(machine.processes_per_node == 2);
  CHECK(machine.network_message_ps > 0);
  CHECK(machine.network_payload_ps_per_kib > 0);
  std::set<std::uint64_t> groups;
  for (const Call& call : mesh.ledger().calls())
    if (call.kind == Collective::all_gather) groups.insert(call.group.key());
  CHECK(groups == std::set<std::uint64_t>{AxisGroup::inner_part({}, 0, 2).key(),
                                          AxisGroup::outer_part({}, 0, 2).key()});
}
}  // namespace
