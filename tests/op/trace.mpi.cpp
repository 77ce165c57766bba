// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: cases
// Traces of processes, in one file.
#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdio>
#include <string>

#include "op/trace_cases.hpp"
#include "support/world.hpp"

using namespace tessera;

TEST_CASE("the traces of all processes are one file") {
  const auto& world = support::world();
  const auto mesh = make_mesh<Grid>(world, world->size(), 1);
  using X = ShardedTensor<float, Grid, P<data, _>>;
  const auto x = random_normal<X>(mesh, {9, 14}, 1);
  std::string faults;
  const Trace trace = support::traced(mesh, faults, [&] {
    (void)sum(einsum<"bi,bj->ij">(x, reshard<P<data, _>>(reshard<P<_, data>>(x))));
  });
  CHECK(faults == "");
  const std::string path = "/tmp/tessera_trace_mpi" +
                           std::to_string(mesh.core()->gather_facts({::getpid()}, {}).front()) +
                           ".json";
  write_trace(mesh, path, trace);
  mesh.core()->barrier();
  const std::string text = support::text_of(path);
  CHECK(support::is_json(text));
  CHECK(support::count_of(text, "process_name") == world->size());
  mesh.core()->barrier();
  if (mesh.process() == 0) std::remove(path.c_str());
  CHECK_THROWS_AS(write_trace(mesh, "/tmp/no/such/folder/run.json", trace), FileError);
}
