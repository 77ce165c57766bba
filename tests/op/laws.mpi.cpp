// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: cases
// A sample of the cases of laws.loopback.cpp between the processes of an MPI job; and the signature
// law: the calls that MPI sees are the calls of the plan.
#include <doctest/doctest.h>

#include <climits>

#include "op/cases.hpp"
#include "op/signature.hpp"

using namespace tessera;
using namespace support;

namespace {

/// One for all tests: each costs communicators, of which MPICH has 2045.
const std::shared_ptr<Transport>& world() {
  static const std::shared_ptr<Transport> transport = mpi_transport(MPI_COMM_WORLD);
  return transport;
}

/// Runs `count` cases on each mesh over all processes; returns the number of calls that PMPI has
/// seen on this one.
long run_cases(const char* name, std::uint64_t otherwise, int count,
               const std::shared_ptr<Transport>& transport, Check check, bool within = false) {
  const std::uint64_t seed = seed_for(name, otherwise, world()->process() == 0);
  Signature signature;
  observer = check < Check::communicating ? &signature
                                          : nullptr;  // the comparison of operators is a call too
  std::uint64_t number = 0;
  int wrong = 0;
  for (int axes = 1; axes <= 3; ++axes)
    for (const MeshShape& shape : meshes_of(transport->size(), axes)) {
      Random random(seed + 1000 * ++number);
      MeshOptions options;
      options.machine = some_machine(random);
      options.check = check;
      options.shared = observer != nullptr
                           ? Shared::off
                           : Shared::automatic;  // MPI sees nothing of shared memory
      options.arena_bytes = number % 2 == 0 ? 0 : 1 << 20;
      const auto mesh = make_mesh_core(transport, shape, axis_names(shape.rank()), options);
      for (int i = 0; i < count; ++i)
        if (const std::string text = some_case(mesh, random, within); !text.empty() && ++wrong <= 3)
          MESSAGE(text);
    }
  observer = nullptr;
  CHECK(wrong == 0);
  return signature.calls;
}
std::shared_ptr<Transport> waiting(Wait wait, Index large_count) {
  TransportSettings settings = world()->settings();
  settings.wait = wait;
  settings.large_count = large_count;
  return world()->duplicate(settings);
}

}  // namespace

TEST_CASE("operators under MPI: values, plan, arena and ledger, and the calls that MPI sees") {
  const long calls = run_cases("operators under MPI", 40, 60, world(), Check::normal);
  if (world()->size() > 1) CHECK(calls > 50);
}

TEST_CASE("the same on what lies within a halo") {
  run_cases("operators within halos under MPI", 46, 40, world(), Check::normal, true);
  run_cases("operators within halos, compared", 47, 10, world(), Check::communicating, true);
}

TEST_CASE("the same where processes compare what they call") {
  run_cases("operators under MPI, compared", 41, 10, world(), Check::communicating);
}

TEST_CASE("the signature is the same napping, spinning and with large counts") {
  const int few =
      world()->size() <= 2 ? 60 : 4;  // where processes outnumber cores, spinning is slow
  run_cases("napping", 42, 20, waiting(Wait::nap, INT_MAX), Check::normal);
  run_cases("spinning", 43, few, waiting(Wait::spin, INT_MAX), Check::normal);
  // An MPI without large counts makes other calls, in pieces: there the values alone are compared.
  const Check check = MPI_VERSION >= 4 ? Check::normal : Check::communicating;
  run_cases("large counts", 44, 20, waiting(Wait::nap, 3), check);
  run_cases("large counts, spinning", 45, few, waiting(Wait::spin, 3), check);
}
